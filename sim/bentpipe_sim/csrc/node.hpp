// A node: the ports of its model, the wires to its inputs and from its outputs, and its counters.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "event_queue.hpp"
#include "capture.hpp"
#include "model.h"
#include "nic.hpp"
#include "recording.hpp"
#include "wire.hpp"

namespace bp {

class QueueMonitor;
class ArrivalMonitor;
struct Node;

struct alignas(64) Output {  // where the cells of an output port go, and how many went there: a cache line
    Wire* wire = nullptr;
    Node* to = nullptr;
    uint64_t delay = 0;  // ticks on the wire, after the tick that follows an evaluation or after the end of the cell's sending
    uint64_t sends = 0;  // all bits: the end of the cell's sending counts (bp_ports::o_end); 0: it does not
    uint32_t to_port = 0;
    // The next place of a cell. MERGED: to a wire on which it may overtake others. WIRE: to the wire. DIRECT: ahead of time into the ports of the next node, if that has no cell (only where
    // the wire has no delay of its own). BYPASS: past a link, if the link allows it. GENERAL: none of these is certain.
    enum Route : uint8_t { WIRE, DIRECT, BYPASS, GENERAL, MERGED } route = GENERAL;
    bool traced = false;
    uint64_t cells = 0;
    // For a link: bits of cells that may bypass it now, and that might when it was last evaluated.
    uint64_t room = 0, granted = 0;
};
static_assert(sizeof(Output) == 64, "an output is a cache line");

struct Tap {  // a capture at an input port
    int port;
    bool back;
    Capture* capture;
};

// The code of the event loop that steps a node (Loop::classify_outputs). It stands in the node's ports as `kind`.
struct StepKind {
    // PLAIN and NIC: the loop handles only the cell that arrives and the cell that leaves. SONET: the ledger sees both cells, too.
    // SLOW_PATH: a link, or a node with captures, virtual paths, monitors or a recording.
    enum Kind : uint8_t { PLAIN, NIC, SONET, SLOW_PATH };
    // The ports' time_tick, post_valid, settled and kind as one number.
    static uint32_t flags(const bp_ports& ports) {
        static_assert(offsetof(bp_ports, kind) == offsetof(bp_ports, time_tick) + 3, "they are beside each other");
        uint32_t all;
        std::memcpy(&all, &ports.time_tick, sizeof all);
        return all;
    }
    // The value of flags() with which a node of this kind takes the fast path: a short clock will do.
    static constexpr uint32_t fast(Kind kind) { return 0x00010001u | uint32_t(kind) << 24; }
};

struct Port {
    Wire in;
    Output out;
};

// A node lies in front of its model, and in front of it its ports, the first nearest to it: so that all it needs is in few pages.
// Members used in most evaluations are in its model's ports (model.h): its ticket, what comes next (arrive(), later()), its
// clocks and how many of them there were.
struct alignas(64) Node {
    static constexpr uint32_t PORTS = 16;

    // The first cell of an input as a key: the tick of its arrival, above the port's number. IN_PORTS stands for the cell that is
    // in the node's ports already, and comes after all inputs. If another cell arrives in the same tick, the cell stays there:
    // arrive() has CONTENDED in place of IN_PORTS, and later() the tick.
    static constexpr unsigned PORT_BITS = 5;
    static constexpr uint32_t IN_PORTS = PORTS, CONTENDED = PORTS + 1;
    static uint64_t key(uint64_t tick, uint32_t port) { return tick << PORT_BITS | port; }
    static uint32_t port_of(uint64_t key) { return uint32_t(key & ((1u << PORT_BITS) - 1)); }
    static constexpr uint64_t NO_CELL = ~0ull;
    struct Arrival {  // the same as two numbers
        uint64_t tick;
        uint32_t port;

        static Arrival of(uint64_t key) { return {uint64_t(int64_t(key) >> PORT_BITS), port_of(key)}; }
        uint64_t as_key() const { return tick == NO_CELL ? NO_CELL : key(tick, port); }
    };
    // arrive(): the cell that arrives next, at an input or in the ports. later(): while one is in the ports, the next at an input.
    static Arrival arrive(const bp_ports& ports) { return {ports.arrive_tick, ports.arrive_port}; }
    static Arrival later(const bp_ports& ports) { return {ports.later_tick, ports.later_port}; }
    static void arrive(bp_ports& ports, Arrival first) {
        ports.arrive_tick = first.tick;
        ports.arrive_port = uint8_t(first.port);
    }
    static void later(bp_ports& ports, Arrival first) {
        ports.later_tick = first.tick;
        ports.later_port = uint8_t(first.port);
    }
    static bool has_cell_in_ports(const bp_ports& ports) {
        static_assert(IN_PORTS % 2 == 0 && CONTENDED == IN_PORTS + 1, "they differ in one bit");
        return (ports.arrive_port | 1) == CONTENDED;
    }

    struct End {
        void operator()(Node* node) const;
    };
    using Owner = std::unique_ptr<Node, End>;
    // std::runtime_error: it can't be loaded, or lacks a port. `index` is its place in the network.
    static Owner make(const char* path, int index, Inbox& inbox, LedgerFeed& feed);
    Node(const Node&) = delete;

    static Node& of(bp_ports& ports) { return reinterpret_cast<Node*>(&ports)[-1]; }
    bp_ports& ports() { return *reinterpret_cast<bp_ports*>(this + 1); }
    const bp_ports& ports() const { return *reinterpret_cast<const bp_ports*>(this + 1); }

    Wire& in(uint32_t port) { return before(port).in; }
    Output& out(uint32_t port) { return before(port).out; }
    const Wire& in(uint32_t port) const { return before(port).in; }
    const Output& out(uint32_t port) const { return before(port).out; }

    // Evaluate the model for a tick, whose inputs are set.
    void clock(bool with_cell) {
        bp_ports& ports = this->ports();
        (ports.settled && !ports.post_valid ? ports.clocks->shorter[with_cell] : ports.clocks->whole)(&ports);
    }
    void quiet();           // evaluate the model without time passing
    void apply_bypassed();  // tell the model of the cells that bypassed it
    // Cells can bypass a link that has a wire without delay before it and a wire behind it.
    void look_at_room() {
        apply_bypassed();  // against the room that there was
        allows_bypass = link && adjacent && out(0).to && !tapped;
        out(0).room = out(0).granted = allows_bypass ? ports().room : 0;
    }
    // Cells that bypassed the link and that the model has not been told of.
    uint32_t bypassed() const { return uint32_t((out(0).granted - out(0).room) / CELL_BITS); }
    uint64_t evaluations() const { return ports().with_cell + ports().without_cell; }
    uint64_t cells_in() const { return ports().with_cell + bypassed_before; }
    uint64_t cells_out() const {  // the same cells left out
        uint64_t sum = 0;
        for (uint32_t p = 0; p < PORTS; ++p) sum += out(p).cells;
        return sum;
    }
    void settle();  // as many of them as it needs to be idle
    void write(uint32_t addr, uint32_t value);
    uint32_t read(uint32_t addr);
    void archive(Archive& a);  // std::runtime_error: its model gives no state
    bool saves() const { return model_.state != nullptr; }
    void* state(uint64_t* length);  // of its model, all cells that came to it among it; errors as of archive
    void record(const uint64_t& now);  // from now on; no cell goes by it then. Errors as of archive, or it is already

    // The first tick with work of its own or a cell, not before that after the last; NEVER if there is none.
    uint64_t next() const {
        const bp_ports& ports = this->ports();
        const uint64_t after = next_free();
        return ports.post_valid ? after : std::max(std::min(ports.status_due, ports.arrive_tick), after);
    }
    uint64_t next_free() const { return evaluations() ? ports().time_now + 1 : 0; }  // the first tick that it hasn't seen
    static uint64_t next_unless_posting(const bp_ports& ports, uint64_t tick) {  // after its evaluation at this tick
        uint64_t found = std::min(ports.status_due, ports.arrive_tick);
        if (__builtin_expect(found <= tick, 0)) {
            found = tick + 1;
            asm volatile("" : "+r"(found));  // a branch
        }
        return found;
    }
    uint64_t least() const {  // of the inputs' keys
        const auto of_four = [&](uint32_t p) {
            return std::min(std::min(first[p], first[p + 1]), std::min(first[p + 2], first[p + 3]));
        };
        static_assert(PORTS == 16, "these are all");
        uint64_t found = of_four(0);
        if (ports().inputs > 4) found = std::min(found, of_four(4));
        if (ports().inputs > 8) found = std::min(found, std::min(of_four(8), of_four(12)));
        return found;
    }

    uint64_t first[PORTS];  // of the inputs: see key(); those with a wire are below ports().inputs
    uint8_t turn = 0;       // the first of them to be asked, if cells came at once

    static constexpr uint64_t CELL_BITS = 424;  // with its HEC

    uint32_t index;
    bool link = false, line = false, path = false;  // line: of SONET; path: it passes virtual paths
    bool watched = false;                           // any of tapped, tags and path, or there are monitors
    bool makes_cells;                               // a switch: what it drops may be one of these
    bool tapped = false;
    bool tags = false;  // a NIC: cells with CLP = 1 that come to it are counted
    bool extras = false;  // a link: it makes cells of its own (o_extra)
    bool adjacent = false, allows_bypass = false;
    uint64_t bypassed_before = 0;  // cells that bypassed the link and that the model has been told of
    std::optional<Nic> nic;  // if it is one
    QueueMonitor* monitor = nullptr;
    std::vector<ArrivalMonitor*> arrivals;
    std::vector<Tap> taps;
    uint64_t digests[PORTS]{};   // of what went to outputs that are traced
    uint64_t digest_before = 0;  // without the last cell that bypassed a link
    std::unique_ptr<Recording> recording;
    uint64_t ingress_most = 0, ingress_lost = 0;

  private:
    using Library = std::unique_ptr<void, int (*)(void*)>;

    Node(const bp_model& model, int index, Inbox& inbox, LedgerFeed& feed);
    ~Node();

    // In the order of memory.
    Port& before(uint32_t port) { return reinterpret_cast<Port*>(this)[-1 - int64_t(port)]; }
    const Port& before(uint32_t port) const { return reinterpret_cast<const Port*>(this)[-1 - int64_t(port)]; }

    Library library_{nullptr, nullptr};
    const bp_model& model_;
};
static_assert(offsetof(bp_ports, i_hec_error) - offsetof(bp_ports, i_payload) == offsetof(CellInFlight, hec_error) &&
                  offsetof(bp_ports, o_hec_error) - offsetof(bp_ports, o_payload) == offsetof(CellInFlight, hec_error) &&
                  offsetof(bp_ports, i_header) - offsetof(bp_ports, i_payload) == offsetof(CellInFlight, header) &&
                  offsetof(bp_ports, o_header) - offsetof(bp_ports, o_payload) == offsetof(CellInFlight, header),
              "a cell is the same in the ports and on a wire");

}  // namespace bp
