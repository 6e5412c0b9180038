// The event loop: owns time, moves cells between Verilated nodes, evaluates a node only at ticks at which it has work.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <dlfcn.h>
#include <memory>
#include <string>
#include <vector>

#include "capture.hpp"
#include "ledger.hpp"
#include "model.h"
#include "network.h"
#include "pattern.hpp"

namespace {

constexpr uint64_t NEVER = ~0ull;
constexpr int PORTS = 16;
constexpr uint64_t INGRESS = 8;  // cells that an input holds while the node takes those of others
constexpr uint64_t NEVER_TICK = (1ull << 48) - 1;  // the node's own "never"

// A cell on its way: 64 octets, a cache line. Payload first, then the header, as in the wide datapath.
struct alignas(64) Flying {
    uint32_t word[13];
    uint32_t hec_error;
    uint64_t tick;
};
static_assert(sizeof(Flying) == 64, "a cell on its way is a cache line");

// Cells of one wire in order of arrival, and before them those that have arrived and wait at the node's input.
class Wire {
  public:
    explicit Wire(size_t size = 64) : cells_(size), mask_(size - 1) {}
    bool empty() const { return head_ == tail_; }
    Flying& front() { return cells_[head_ & mask_]; }
    void pop() { ++head_; }
    const Flying& at(uint64_t k) const { return cells_[(head_ + k) & mask_]; }
    uint64_t size() const { return tail_ - head_; }
    uint64_t most() const { return most_; }  // that there ever were
    Flying& push() {
        if (tail_ - head_ == cells_.size()) grow();
        Flying& cell = cells_[tail_++ & mask_];
        most_ = std::max(most_, tail_ - head_);
        return cell;
    }
    void erase(uint64_t k) {
        for (; k > 0; --k) cells_[(head_ + k) & mask_] = cells_[(head_ + k - 1) & mask_];
        ++head_;
    }

  private:
    void grow() {
        std::vector<Flying> larger(cells_.size() * 2);
        for (size_t i = 0; i < cells_.size(); ++i) larger[i] = cells_[(head_ + i) & mask_];
        tail_ -= head_;
        head_ = 0;
        cells_.swap(larger);
        mask_ = cells_.size() - 1;
    }
    std::vector<Flying> cells_;
    size_t mask_;
    uint64_t head_ = 0, tail_ = 0, most_ = 0;
};

struct Face {  // an output port
    int to = -1, to_port = 0;
    uint64_t delay = 0;
    bool traced = false;
    uint64_t digest = 0;
};

struct Tap {  // on the wire to an input port
    int port;
    bool back;
    bp::Capture* capture;
};

struct Node {
    Node() { std::fill(first, first + PORTS, NEVER); }
    const bp_model* model = nullptr;
    void* instance = nullptr;
    void (*clock)(void*) = nullptr;
    // Inputs
    uint8_t *tick = nullptr, *i_valid = nullptr, *i_hec_error = nullptr, *i_port = nullptr;
    uint64_t* now = nullptr;
    uint32_t *i_header = nullptr, *i_payload = nullptr;
    uint32_t *csr_addr = nullptr, *csr_w_data = nullptr, *csr_r_data = nullptr;
    uint8_t *csr_w_en = nullptr, *csr_r_en = nullptr;
    // Outputs
    uint8_t *o_valid = nullptr, *o_hec_error = nullptr, *o_port = nullptr, *idle = nullptr;
    uint32_t *o_header = nullptr, *o_payload = nullptr;
    uint64_t* due = nullptr;
    // What the ledger wants to know of: a switch's cell dropped, a link's cell in error; cells in and out of a SONET line
    const uint8_t* told = nullptr;
    const bp_port *drop_vc = nullptr, *drop_reason = nullptr;
    const uint32_t* drop_accepted = nullptr;
    bool link = false, line = false;
    uint64_t last = NEVER;  // tick of the last evaluation
    uint32_t inputs = 0;              // ports with a wire are below this
    uint32_t turn = 0;                // the first of them to be asked
    uint64_t first[PORTS];            // tick of the first cell of each wire, NEVER if there is none
    std::unique_ptr<Wire> in[PORTS];
    std::vector<Tap> taps;
    bool tapped = false;
    Face out[PORTS];
    bp_node_stats stats{};
    int nic = -1;
};

struct Pdu {
    std::vector<uint8_t> octets;  // whole cells, zeros behind the SDU
    uint32_t length = 0;
    uint8_t uu = 0;
    bool notify = false;
};

struct TxVc {
    std::deque<Pdu> queue;  // the first is in work once `posted`
    bool posted = false, listed = false;
    uint32_t fetched = 0;      // octets
    uint64_t cells = 0;        // of all PDUs handed over
    uint32_t source_length = 0, source_key = 0;
    uint64_t source_offset = 0;
    int ledger = -1;           // its place in the ledger
};

struct RxVc {
    std::vector<uint8_t> octets;
    bool sink = false;
    uint32_t sink_key = 0, reply_vc = 0, reply_length = 0, every = 0;
    uint64_t sink_offset = 0, good = 0, bad = 0;
    int ledger = -1;
};

struct Nic {
    int node = -1;
    std::vector<TxVc> tx;
    std::vector<RxVc> rx;
    std::deque<uint32_t> to_post;
    std::vector<bp::Capture*> captures;
    uint8_t *post_valid, *post_uu, *post_cpi, *post_taken, *fetch, *done;
    uint8_t *rx_valid, *rx_last, *rx_status, *rx_uu;
    uint16_t *post_length, *rx_index, *rx_length;
    uint32_t *block, *rx_payload;
    const bp_port *post_vc, *fetch_vc, *done_vc, *rx_vc;  // their types depend on the number of VCs
};

uint32_t get(const bp_port* port) {
    if (port->width <= 8) return *static_cast<uint8_t*>(port->data);
    if (port->width <= 16) return *static_cast<uint16_t*>(port->data);
    return *static_cast<uint32_t*>(port->data);
}

void set(const bp_port* port, uint32_t value) {
    if (port->width <= 8) *static_cast<uint8_t*>(port->data) = uint8_t(value);
    else if (port->width <= 16) *static_cast<uint16_t*>(port->data) = uint16_t(value);
    else *static_cast<uint32_t*>(port->data) = value;
}

uint64_t clock_ns() {
    return uint64_t(std::chrono::duration_cast<std::chrono::nanoseconds>(
                        std::chrono::steady_clock::now().time_since_epoch())
                        .count());
}

const uint8_t NOTHING = 0;

bool good_of(const Flying& cell, uint32_t key, uint32_t mask) {
    return !cell.hec_error && ((cell.word[12] >> 4 ^ key) & mask) == 0;
}

}  // namespace

struct bp_net final : bp::CellCounts {
    std::vector<std::unique_ptr<Node>> nodes;
    std::vector<uint64_t> next;  // a node's next tick with work, beside each other for the search
    std::vector<std::unique_ptr<Nic>> nics;
    std::deque<bp_port> ports;  // copies with stable addresses
    std::vector<bp_event> events;
    std::vector<std::vector<uint8_t>> received;  // SDUs of the events, by handle
    std::vector<std::vector<uint8_t>> spare;
    std::vector<void*> libraries;
    std::vector<std::unique_ptr<bp::Capture>> captures;
    bp::Ledger ledger{*this};
    std::string error;
    uint64_t now = 0;
    bool timing = false;

    ~bp_net() {
        for (auto& node : nodes) node->model->destroy(node->instance);
        for (void* library : libraries) dlclose(library);
    }

    // The first tick at which a node has work of its own or a cell to take, not before the tick after the last.
    uint64_t next_of(const Node& node) {
        uint64_t first = *node.due >= NEVER_TICK ? NEVER : *node.due;
        for (uint32_t p = 0; p < node.inputs; ++p) first = std::min(first, node.first[p]);
        if (node.nic >= 0 && !nics[size_t(node.nic)]->to_post.empty()) first = now;
        if (first != NEVER && node.last != NEVER) first = std::max(first, node.last + 1);
        return first;
    }

    // The node may have been due before now all along, for something that it was not set to do.
    void wake(int index) { next[size_t(index)] = std::max(next_of(*nodes[size_t(index)]), now); }

    void load(Nic& nic, uint32_t vc) {  // make a source's next PDU
        TxVc& tx = nic.tx[vc];
        Pdu pdu;
        pdu.length = tx.source_length;
        pdu.octets.resize((pdu.length + 47) / 48 * 48);
        bp::pattern_fill(pdu.octets.data(), tx.source_key, tx.source_offset, pdu.length);
        tx.source_offset += pdu.length;
        enqueue(nic, vc, std::move(pdu));
    }

    void enqueue(Nic& nic, uint32_t vc, Pdu&& pdu) {
        TxVc& tx = nic.tx[vc];
        const uint64_t cells = (uint64_t(pdu.length) + 8 + 47) / 48;
        tx.cells += cells;
        if (tx.ledger >= 0) ledger.enqueue(tx.ledger, pdu.length, cells);
        tx.queue.push_back(std::move(pdu));
        if (!tx.listed) {
            tx.listed = true;
            nic.to_post.push_back(vc);
        }
    }

    void before(Node& node, Nic& nic) {
        *nic.post_valid = 0;
        if (nic.to_post.empty()) return;
        const uint32_t vc = nic.to_post.front();
        const Pdu& pdu = nic.tx[vc].queue.front();
        *nic.post_valid = 1;
        set(nic.post_vc, vc);
        *nic.post_length = uint16_t(pdu.length);
        *nic.post_uu = pdu.uu;
        *nic.post_cpi = 0;
    }

    void after(Nic& nic, uint64_t tick) {
        if (*nic.post_taken) {
            TxVc& tx = nic.tx[nic.to_post.front()];
            nic.to_post.pop_front();
            tx.posted = true;
            tx.fetched = 0;
        }
        if (*nic.done) {
            const uint32_t vc = get(nic.done_vc);
            TxVc& tx = nic.tx[vc];
            if (tx.queue.front().notify) event(nic, tick, vc, 15, tx.queue.front().length, nullptr);
            if (spare.size() < 256) spare.push_back(std::move(tx.queue.front().octets));
            tx.queue.pop_front();
            tx.posted = false;
            tx.listed = false;
            if (!tx.queue.empty()) {
                tx.listed = true;
                nic.to_post.push_back(vc);
            } else if (tx.source_length) {
                load(nic, vc);
            }
        }
        if (*nic.fetch) {
            TxVc& tx = nic.tx[get(nic.fetch_vc)];
            const Pdu& pdu = tx.queue.front();
            if (tx.fetched < pdu.octets.size()) std::memcpy(nic.block, pdu.octets.data() + tx.fetched, 48);
            tx.fetched += 48;
        }
        if (*nic.rx_valid) {
            RxVc& rx = nic.rx[get(nic.rx_vc)];
            const size_t at = size_t(*nic.rx_index) * 48;
            if (rx.octets.size() < at + 48) rx.octets.resize(std::max<size_t>(at + 48, 4 * 48 + rx.octets.size() * 2));
            std::memcpy(rx.octets.data() + at, nic.rx_payload, 48);
        }
        if (*nic.rx_last) {
            const uint32_t vc = get(nic.rx_vc);
            RxVc& rx = nic.rx[vc];
            if (rx.ledger >= 0) ledger.ended(rx.ledger, *nic.rx_status, *nic.rx_length);
            if (rx.sink) consume(nic, rx);
            else event(nic, tick, vc, *nic.rx_status, *nic.rx_length, &rx);
        }
    }

    void consume(Nic& nic, RxVc& rx) {
        const uint32_t length = *nic.rx_length;
        if (*nic.rx_status == 0 && bp::pattern_equal(rx.octets.data(), rx.sink_key, rx.sink_offset, length)) ++rx.good;
        else ++rx.bad;
        rx.sink_offset += length;
        if (rx.every && (rx.good + rx.bad) % rx.every == 0) {
            Pdu reply;
            reply.length = rx.reply_length;
            reply.octets.resize((reply.length + 47) / 48 * 48);
            enqueue(nic, rx.reply_vc, std::move(reply));
        }
    }

    void event(Nic& nic, uint64_t tick, uint32_t vc, uint32_t status, uint32_t length, RxVc* rx) {
        events.emplace_back();
        bp_event& e = events.back();
        e.tick = tick;
        e.nic = uint32_t(nic.node);
        e.vc = vc;
        e.status = status;
        e.length = length;
        e.handle = uint32_t(received.size());
        e.head_length = 0;
        if (rx && status == 0) {
            e.head_length = std::min<uint32_t>(length, sizeof e.head);
            std::memcpy(e.head, rx->octets.data(), e.head_length);
            for (bp::Capture* capture : nic.captures) capture->sdu(tick, rx->octets.data(), length);
            if (spare.empty()) spare.emplace_back();
            received.push_back(std::move(spare.back()));
            spare.pop_back();
            received.back().swap(rx->octets);
            if (rx->octets.size() < received.back().size()) rx->octets.resize(received.back().size());
        } else if (rx) {
            e.length = 0;
        }
    }

    void tap(Node& node, int port, uint64_t tick, const Flying& cell) {
        uint8_t payload[48];
        std::memcpy(payload, cell.word, 48);
        for (const Tap& each : node.taps)
            if (each.port == port) each.capture->cell(tick, cell.word[12], payload, cell.hec_error != 0, each.back);
    }

    void step(size_t index, uint64_t tick) {
        Node& node = *nodes[index];
        // The cell that came first; of several that came at once, in turn.
        uint32_t port = 0, ready = 0;
        uint64_t earliest = NEVER;
        auto look = [&](uint32_t from, uint32_t to) {
            for (uint32_t p = from; p < to; ++p) {
                ready += node.first[p] <= tick;
                if (node.first[p] < earliest) {
                    earliest = node.first[p];
                    port = p;
                }
            }
        };
        if (node.inputs == 1) {
            look(0, 1);
        } else {
            look(node.turn, node.inputs);
            look(0, node.turn);
        }
        *node.now = tick;
        *node.tick = 1;
        if (earliest <= tick) {
            Wire& from = *node.in[port];
            const Flying& cell = from.front();
            std::memcpy(node.i_payload, cell.word, 48);
            *node.i_header = cell.word[12];
            *node.i_hec_error = uint8_t(cell.hec_error);
            if (node.i_port) *node.i_port = uint8_t(port);
            if (__builtin_expect(node.tapped, 0)) tap(node, int(port), tick, cell);
            if (node.line) ledger.line_in(int(index), int(port), tick, cell.word[12], cell.word, cell.hec_error != 0);
            *node.i_valid = 1;
            from.pop();
            node.first[port] = from.empty() ? NEVER : from.front().tick;
            ++node.stats.cells_in;
            if (ready > 1 || node.first[port] <= tick) {
                node.turn = port + 1;
                wait(node, tick);
            }
        } else {
            *node.i_valid = 0;
        }
        Nic* nic = node.nic >= 0 ? nics[size_t(node.nic)].get() : nullptr;
        if (nic) before(node, *nic);
        if (timing) {
            const uint64_t start = clock_ns();
            node.clock(node.instance);
            node.stats.nanoseconds += clock_ns() - start;
        } else {
            node.clock(node.instance);
        }
        ++node.stats.evaluations;
        node.last = tick;
        if (*node.o_valid) {
            Face& face = node.out[node.o_port ? *node.o_port : 0];
            ++node.stats.cells_out;
            if (face.traced) {
                uint64_t d = bp::mix64(face.digest ^ tick);
                d = bp::mix64(d ^ *node.o_header ^ (uint64_t(node.o_hec_error ? *node.o_hec_error : 0) << 32));
                for (int k = 0; k < 12; ++k) d = bp::mix64(d ^ node.o_payload[k]);
                face.digest = d;
            }
            if (face.to >= 0) {
                Node& to = *nodes[size_t(face.to)];
                Flying& cell = to.in[size_t(face.to_port)]->push();
                std::memcpy(cell.word, node.o_payload, 48);
                cell.word[12] = *node.o_header;
                cell.hec_error = node.o_hec_error ? *node.o_hec_error : 0;
                cell.tick = tick + 1 + face.delay;
                uint64_t& first = to.first[face.to_port];
                if (first == NEVER) {
                    first = cell.tick;
                    if (first < next[size_t(face.to)])
                        next[size_t(face.to)] = to.last == NEVER ? first : std::max(first, to.last + 1);
                }
            }
            if (node.line) ledger.line_out(int(index), *node.o_port, *node.o_header, node.o_payload, *node.o_hec_error);
        } else if (node.link && *node.i_valid) {
            tell(node, int(index), true);
        }
        if (__builtin_expect(*node.told, 0)) tell(node, int(index), false);
        if (nic) after(*nic, tick);
        next[index] = next_of(node);
    }

    // Cells that have arrived and have to wait: at most INGRESS of them at an input, and one that finds no place is lost.
    void wait(Node& node, uint64_t tick) {
        for (uint32_t p = 0; p < node.inputs; ++p) {
            if (node.first[p] > tick) continue;
            Wire& wire = *node.in[p];
            uint64_t count = 0;
            while (count <= INGRESS && count < wire.size() && wire.at(count).tick <= tick) ++count;
            if (count > INGRESS) {
                wire.erase(INGRESS);
                ++node.stats.ingress_lost;
                --count;
            }
            node.stats.ingress_most = std::max(node.stats.ingress_most, count);
        }
    }

    // The ledger gets what the node says of the cell that it took in this step.
    void tell(Node& node, int index, bool gone) {
        if (ledger.empty()) return;
        const uint32_t header = *node.i_header;
        if (!node.link) {
            const uint32_t vc = get(node.drop_vc), reason = get(node.drop_reason);
            ledger.seen(index, vc * 4 + reason);
            ledger.dropped(index, vc, reason, *node.drop_accepted, header);
            return;
        }
        ledger.seen(index, gone);
        if (gone || *node.o_valid) {  // one that has errors and is gone comes here twice
            ledger.changed(index, header, *node.i_hec_error, node.i_payload, *node.o_header, *node.o_hec_error,
                           node.o_payload, gone);
        }
    }

    uint32_t sent(int index, uint32_t vc) override {
        return bp_csr_read(this, index, (nodes[size_t(index)]->nic >= 0 ? 0x30000 : 0x40000) + vc);
    }

    uint64_t on_wire(int index, int port, uint32_t key, uint32_t mask) override {
        const Wire& wire = *nodes[size_t(index)]->in[port];
        uint64_t found = 0;
        for (uint64_t k = 0; k < wire.size(); ++k) found += good_of(wire.at(k), key, mask);
        return found;
    }

    void quiet(Node& node) {  // a clock without time passing
        *node.tick = 0;
        *node.i_valid = 0;
        if (node.nic >= 0) *nics[size_t(node.nic)]->post_valid = 0;
        node.clock(node.instance);
    }
};

extern "C" {

bp_net* bp_new(void) { return new bp_net; }
void bp_free(bp_net* net) { delete net; }
const char* bp_error(bp_net* net) { return net->error.c_str(); }

int bp_add_node(bp_net* net, const char* path, int is_nic) {
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        net->error = dlerror();
        return -1;
    }
    net->libraries.push_back(library);
    auto* model = static_cast<const bp_model*>(dlsym(library, "bentpipe_model"));
    if (!model) {
        net->error = "not a node model";
        return -1;
    }
    auto made = std::make_unique<Node>();
    Node& node = *made;
    node.model = model;
    node.instance = model->create();
    node.clock = model->clock;
    uint32_t count = 0;
    const bp_port* ports = model->ports(node.instance, &count);
    std::string missing;
    auto find = [&](const char* name, bool needed = true) -> const bp_port* {
        for (uint32_t k = 0; k < count; ++k)
            if (!std::strcmp(ports[k].name, name)) {
                net->ports.push_back(ports[k]);
                return &net->ports.back();
            }
        if (needed) missing = name;
        return nullptr;
    };
    auto data = [&](const char* name, bool needed = true) -> void* {
        const bp_port* port = find(name, needed);
        return port ? port->data : nullptr;
    };
    auto u8 = [&](const char* name, bool needed = true) { return static_cast<uint8_t*>(data(name, needed)); };
    auto u32 = [&](const char* name) { return static_cast<uint32_t*>(data(name)); };
    node.tick = u8("time_tick");
    node.now = static_cast<uint64_t*>(data("time_now"));
    node.i_valid = u8("i_valid");
    node.i_hec_error = u8("i_hec_error");
    node.i_port = u8("i_port", false);
    node.i_header = u32("i_header");
    node.i_payload = u32("i_payload");
    node.o_valid = u8("o_valid");
    node.o_hec_error = u8("o_hec_error", false);
    node.o_port = u8("o_port", false);
    node.o_header = u32("o_header");
    node.o_payload = u32("o_payload");
    node.idle = u8("status_idle");
    node.due = static_cast<uint64_t*>(data("status_due"));
    node.csr_addr = u32("csr_addr");
    node.csr_w_en = u8("csr_w_en");
    node.csr_w_data = u32("csr_w_data");
    node.csr_r_en = u8("csr_r_en");
    node.csr_r_data = u32("csr_r_data");
    const bp_port* drop = find("drop", false);
    const bp_port* in_error = find("error", false);
    const bp_port* told = drop ? drop : in_error;
    node.told = told ? static_cast<const uint8_t*>(told->data) : &NOTHING;
    node.link = in_error != nullptr;
    if (drop) {
        node.drop_vc = find("drop_vc");
        node.drop_reason = find("drop_reason");
        node.drop_accepted = u32("drop_accepted");
    }
    std::unique_ptr<Nic> nic;
    if (is_nic) {
        nic = std::make_unique<Nic>();
        nic->node = int(net->nodes.size());
        nic->post_valid = u8("post_valid");
        nic->post_vc = find("post_vc");
        nic->post_length = static_cast<uint16_t*>(data("post_length"));
        nic->post_uu = u8("post_uu");
        nic->post_cpi = u8("post_cpi");
        nic->post_taken = u8("post_taken");
        nic->fetch = u8("fetch");
        nic->fetch_vc = find("fetch_vc");
        nic->block = u32("block");
        nic->done = u8("done");
        nic->done_vc = find("done_vc");
        nic->rx_valid = u8("rx_valid");
        nic->rx_vc = find("rx_vc");
        nic->rx_index = static_cast<uint16_t*>(data("rx_index"));
        nic->rx_payload = u32("rx_payload");
        nic->rx_last = u8("rx_last");
        nic->rx_status = u8("rx_status");
        nic->rx_length = static_cast<uint16_t*>(data("rx_length"));
        nic->rx_uu = u8("rx_uu");
        if (missing.empty()) {
            nic->tx.resize(size_t(1) << nic->post_vc->width);
            nic->rx.resize(size_t(1) << nic->rx_vc->width);
        }
    }
    if (!missing.empty()) {
        net->error = "the node model has no port " + missing;
        model->destroy(node.instance);
        return -1;
    }
    if (nic) {
        node.nic = int(net->nics.size());
        net->nics.push_back(std::move(nic));
    }
    net->nodes.push_back(std::move(made));
    net->next.push_back(NEVER);
    *node.csr_w_en = *node.csr_r_en = 0;
    model->reset(node.instance, 1);
    net->quiet(node);
    model->reset(node.instance, 0);
    return int(net->nodes.size()) - 1;
}

int bp_connect(bp_net* net, int from, int from_port, int to, int to_port, uint64_t delay) {
    Node& source = *net->nodes[size_t(from)];
    Node& target = *net->nodes[size_t(to)];
    if (source.out[from_port].to >= 0 || target.in[to_port]) {
        net->error = "the face is connected already";
        return -1;
    }
    Face& face = source.out[from_port];
    face.to = to;
    face.to_port = to_port;
    face.delay = delay;
    target.in[to_port] = std::make_unique<Wire>();
    target.inputs = std::max(target.inputs, uint32_t(to_port) + 1);
    return 0;
}

void bp_csr_write(bp_net* net, int index, uint32_t addr, uint32_t value) {
    Node& node = *net->nodes[size_t(index)];
    *node.csr_addr = addr;
    *node.csr_w_data = value;
    *node.csr_w_en = 1;
    net->quiet(node);
    *node.csr_w_en = 0;
    net->wake(index);  // a setting may have changed when the node is due
}

uint32_t bp_csr_read(bp_net* net, int index, uint32_t addr) {
    Node& node = *net->nodes[size_t(index)];
    *node.csr_addr = addr;
    *node.csr_r_en = 1;
    net->quiet(node);
    *node.csr_r_en = 0;
    for (int k = 0; k < 3; ++k) net->quiet(node);
    return *node.csr_r_data;
}

void bp_settle(bp_net* net, int index) {
    Node& node = *net->nodes[size_t(index)];
    while (!*node.idle) net->quiet(node);
}

void bp_send(bp_net* net, int index, uint32_t vc, const uint8_t* head, uint32_t head_length, uint32_t key,
             uint64_t offset, uint32_t length, int checksum_start, int checksum_at, uint32_t uu, int notify) {
    Node& node = *net->nodes[size_t(index)];
    Nic& nic = *net->nics[size_t(node.nic)];
    Pdu pdu;
    pdu.length = head_length + length;
    pdu.uu = uint8_t(uu);
    pdu.notify = notify != 0;
    if (!net->spare.empty()) {
        pdu.octets.swap(net->spare.back());
        net->spare.pop_back();
    }
    pdu.octets.resize((size_t(pdu.length) + 47) / 48 * 48);
    std::memcpy(pdu.octets.data(), head, head_length);
    bp::pattern_fill(pdu.octets.data() + head_length, key, offset, length);
    if (checksum_at >= 0) {
        const uint32_t octets = pdu.length - uint32_t(checksum_start);
        uint32_t sum = ~bp::internet_sum(pdu.octets.data() + checksum_start, octets) & 0xFFFF;
        // Octets 6 and 7 of a transport header are UDP's checksum, where zero says that there is none (RFC 768).
        if (sum == 0 && checksum_at - checksum_start == 6) sum = 0xFFFF;
        pdu.octets[size_t(checksum_at)] = uint8_t(sum >> 8);
        pdu.octets[size_t(checksum_at) + 1] = uint8_t(sum);
    }
    for (bp::Capture* capture : nic.captures) capture->sdu(net->now, pdu.octets.data(), pdu.length);
    net->enqueue(nic, vc, std::move(pdu));
    net->wake(index);
}

int bp_run(bp_net* net, uint64_t until, int slice) {
    net->events.clear();
    for (auto& octets : net->received)
        if (net->spare.size() < 256) net->spare.push_back(std::move(octets));
    net->received.clear();
    const size_t count = net->next.size();
    uint64_t left = slice ? uint64_t(slice) * 1000 : NEVER;
    for (;;) {
        size_t first = 0;
        uint64_t tick = NEVER;
        for (size_t k = 0; k < count; ++k)
            if (net->next[k] < tick) {
                tick = net->next[k];
                first = k;
            }
        if (!net->events.empty() && tick > net->now) return int(net->events.size());
        if (tick > until) {
            net->now = until;
            return 0;
        }
        net->now = tick;
        net->step(first, tick);
        if (--left == 0 && net->events.empty()) return 0;
    }
}

void bp_ledger_vc(bp_net* net, int source, uint32_t vc, const bp_hop* hops, int count) {
    if (net->ledger.empty()) net->ledger.nodes(net->nodes.size());
    const int index = net->ledger.add(reinterpret_cast<const bp::Ledger::Hop*>(hops), size_t(count));
    for (int k = 0; k < count; ++k)
        if (hops[k].kind == bp::Ledger::SONET) net->nodes[size_t(hops[k].node)]->line = true;
    net->nics[size_t(net->nodes[size_t(source)]->nic)]->tx[vc].ledger = index;
    net->nics[size_t(net->nodes[size_t(hops[count - 1].node)]->nic)]->rx[vc].ledger = index;
}

int bp_ledger(bp_net* net, int index, bp_account* account, bp_loss* losses, int most) {
    net->ledger.look_after(net->now);
    const bp::Ledger::Counts counts = net->ledger.counts(index);
    *account = {counts.sent, counts.delivered, net->ledger.ends(index), 0, 0, net->ledger.astray(index)};
    net->ledger.each_hop(index, [&](const bp::Ledger::Hop& hop) {
        const Node& node = *net->nodes[size_t(hop.node)];
        if (hop.port < 0) {
            account->ends_there += net->nics[size_t(node.nic)]->tx[hop.number].queue.size();
            return;
        }
        const Wire& wire = *node.in[hop.port];
        for (uint64_t k = 0; k < wire.size(); ++k)
            account->ends_there += good_of(wire.at(k), hop.key, hop.mask) && bp::CellHead::last(wire.at(k).word[12]);
        if (hop.kind == bp::Ledger::SWITCH)
            account->queued += bp_csr_read(net, hop.node, 0x30000 + hop.number) - net->sent(hop.node, hop.number);
        if (hop.kind == bp::Ledger::SONET)
            account->ends_there += net->ledger.ends_inside(hop.node, hop.port, hop.key, hop.mask);
    });
    int count = 0;
    for (const auto& [cause, pdus] : counts.lost) {
        if (count == most) break;
        losses[count++] = {cause.first, cause.second, pdus};
    }
    return count;
}

uint64_t bp_ledger_seen(bp_net* net, int index, uint32_t what) { return net->ledger.seen_at(index, what); }
uint64_t bp_ledger_records(bp_net* net) { return net->ledger.records(); }

const bp_event* bp_events(bp_net* net) { return net->events.data(); }
uint64_t bp_now(bp_net* net) { return net->now; }

int bp_check(bp_net* net, uint32_t handle, uint32_t start, uint32_t key, uint64_t offset, uint32_t length) {
    const auto& octets = net->received[handle];
    return size_t(start) + length <= octets.size() && bp::pattern_equal(octets.data() + start, key, offset, length);
}

uint32_t bp_checksum(bp_net* net, uint32_t handle, uint32_t start, uint32_t length) {
    return bp::internet_sum(net->received[handle].data() + start, length);
}

const uint8_t* bp_sdu(bp_net* net, uint32_t handle) { return net->received[handle].data(); }

void bp_source(bp_net* net, int index, uint32_t vc, uint32_t length, uint32_t key) {
    Nic& nic = *net->nics[size_t(net->nodes[size_t(index)]->nic)];
    nic.tx[vc].source_length = length;
    nic.tx[vc].source_key = key;
    net->load(nic, vc);
    net->wake(index);
}

void bp_sink(bp_net* net, int index, uint32_t vc, uint32_t key, uint32_t reply_vc, uint32_t reply_length,
             uint32_t every) {
    RxVc& rx = net->nics[size_t(net->nodes[size_t(index)]->nic)]->rx[vc];
    rx.sink = true;
    rx.sink_key = key;
    rx.reply_vc = reply_vc;
    rx.reply_length = reply_length;
    rx.every = every;
}

void bp_sink_counts(bp_net* net, int index, uint32_t vc, uint64_t* good, uint64_t* bad) {
    const RxVc& rx = net->nics[size_t(net->nodes[size_t(index)]->nic)]->rx[vc];
    *good = rx.good;
    *bad = rx.bad;
}

void bp_stats(bp_net* net, int index, bp_node_stats* stats) {
    Node& node = *net->nodes[size_t(index)];
    *stats = node.stats;
    for (auto& wire : node.in)
        if (wire) stats->in_flight += wire->size();
}

uint64_t bp_wire_most(bp_net* net, int index, int port) { return net->nodes[size_t(index)]->in[port]->most(); }

void bp_timing(bp_net* net, int on) { net->timing = on != 0; }

uint64_t bp_backlog(bp_net* net, int index, uint32_t vc) {
    return net->nics[size_t(net->nodes[size_t(index)]->nic)]->tx[vc].queue.size();
}

uint64_t bp_cells_due(bp_net* net, int index, uint32_t vc) {
    return net->nics[size_t(net->nodes[size_t(index)]->nic)]->tx[vc].cells;
}

int bp_capture(bp_net* net, const char* path, uint32_t link) {
    net->captures.push_back(std::make_unique<bp::Capture>(path, link));
    return int(net->captures.size()) - 1;
}

void bp_capture_host(bp_net* net, int capture, int index) {
    net->nics[size_t(net->nodes[size_t(index)]->nic)]->captures.push_back(net->captures[size_t(capture)].get());
}

void bp_capture_input(bp_net* net, int capture, int index, int port, int back) {
    Node& node = *net->nodes[size_t(index)];
    node.taps.push_back({port, back != 0, net->captures[size_t(capture)].get()});
    node.tapped = true;
}

int bp_capture_end(bp_net* net, int capture) { return net->captures[size_t(capture)]->close(); }

void bp_trace(bp_net* net, int from, int from_port, int on) {
    net->nodes[size_t(from)]->out[from_port].traced = on != 0;
}

uint64_t bp_digest(bp_net* net, int from, int from_port) {
    return net->nodes[size_t(from)]->out[from_port].digest;
}

}  // extern "C"
