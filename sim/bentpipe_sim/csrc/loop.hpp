// The event loop: it owns time, moves cells between nodes, and evaluates a node only at ticks at which it has work.
// docs/event-loop.md follows one cell through it.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "arrival_monitor.hpp"
#include "event_queue.hpp"
#include "inbox.hpp"
#include "ledger_feed.hpp"
#include "node.hpp"
#include "queue_monitor.hpp"

namespace bp {

struct ScheduledWrite {
    uint64_t tick;
    uint32_t node, addr, value, unused;
};

class Parts;

class Loop final : CellCounts {
  public:
    Inbox inbox;
    Ledger ledger{*this};
    LedgerFeed feed{ledger};

    Loop();
    explicit Loop(Ledger& entered);  // a part of another event loop's network, which has that ledger
    ~Loop();

    uint64_t now() const { return now_; }
    Node& node(int index) { return *nodes_[size_t(index)]; }
    Nic& nic(int index) { return *node(index).nic; }

    int add(const char* path);  // its place; std::runtime_error: as of Node, or there are too many
    // `merges`: cells overtake others, as far as their own time says so. `sends`: the node clocks a line, and a cell's own time on it counts. std::runtime_error: it is connected already, or never comes
    void connect(int from, int from_port, int to, int to_port, uint64_t delay, bool sends, bool merges);
    void vc(int source, uint32_t number, const Ledger::Hop* hops, size_t count);
    void count_tagged(int place);  // cells with CLP = 1 that come to the sink of a VC
    // Follow the queue of a switch's port. A network has one monitor at most. std::runtime_error: there is one already.
    void measure(int index, uint32_t port, std::vector<QueueMonitor::Vc> vcs, uint64_t late_from);
    QueueMonitor& monitor() { return *monitor_; }
    // Follow the cells of a VC where they arrive at a node; returns the monitor's number.
    int watch_arrivals(int index, const ArrivalMonitor::Place& place);
    const ArrivalMonitor& arrivals(int number) const { return *arrivals_[size_t(number)]; }

    void send(const uint8_t* post);  // a bp_post, and its head: a PDU for a NIC
    static size_t octets_of(const uint8_t* post);
    void write(int index, uint32_t addr, uint32_t value);
    // Register writes that the loop itself makes, in the order of their ticks, each before its tick; those that were not made yet are
    // replaced. The ticks up to `made` have had theirs.
    void schedule(const ScheduledWrite* writes, size_t count);
    uint64_t made() const { return made_; }
    uint32_t read(int index, uint32_t addr) override { return node(index).read(addr); }
    uint64_t tick(int index) override { return node(index).ports().time_now; }
    // Schedule the node again after a register access or a PDU, which may have changed when it is due. The node may name a tick in
    // the past: it is due now, then.
    void wake(int index);

    void record(int index);  // errors as of Node
    void impair(int index, const FrameImpairments& how);  // PDUs that a NIC is given from now on
    // A digest of the cells that leave a port; `crc`: of all ports, the CRC-32 that a board's wires have of them.
    void trace(int from, int from_port, bool on, bool signs);
    // The first tick in which a node sees what it is given now: a PDU, a register's value.
    uint64_t next_tick(int index) { return std::max(node(index).next_free(), now_ + after_); }
    // From now on all nodes see what they are given after a run in the tick after its last, as on a board.
    void act_after_runs() { acts_after_ = true; }
    void capture_input(int index, const Tap& tap);

    // True if a run may go past events before hosts have handled them (run_ahead.hpp): no event ends it for good, and what is given
    // after it is seen in its last tick.
    bool may_run_ahead() const { return !acts_after_ && !monitor_; }

    void archive(Archive& a);  // between two runs; errors as of Archive and Node

    void run(uint64_t until);  // this tick, or the end of the first tick with events

    // Run in parts from now on where that is possible (parts.hpp): of each node its part. std::runtime_error: a wire cannot be cut.
    void cut(const uint32_t* part_of, size_t threads);
    Parts* parts() { return parts_.get(); }

  private:
    friend class Parts;
    void run_in_stretches(uint64_t until);
    void run_to(uint64_t until);
    uint64_t held_until() const;
    void release_held();
    void find_impaired();
    void hold(std::vector<Node*> nodes);
    void begin(const std::vector<uint64_t>& due, uint64_t now);
    void advance_to(uint64_t until);
    void arrive(Node& to, uint32_t port, const CellInFlight& cell);
    size_t held() const { return node_ports_.size() - 2; }
    void make_writes();
    // The code that runs for each evaluation is compiled twice, for SmallEventQueue::Cursor and for TimingWheel::Cursor.
    template <class Cursor, bool lines>
    uint64_t advance(uint64_t until);
    template <bool nic, class Cursor>
    void step(Node& node, bp_ports& ports, uint64_t tick, Cursor& cursor);
    static void count(bp_ports& ports, bool with_cell);
    template <class Cursor>
    void step_sonet(Node& node, bp_ports& ports, uint64_t tick, Cursor& cursor);
    template <class Cursor>
    void step_slow(Node& node, uint64_t tick, Cursor& cursor);
    template <bool plain, bool nic = false>
    void take(Node& node, bp_ports& ports, uint64_t tick);
    void take_in_turn(Node& node, uint64_t tick);
    void take_contended(Node& node, uint64_t tick);
    template <bool plain>
    void take_from(Node& node, bp_ports& ports, uint32_t port, CellInFlight* second, Node::Arrival next, uint64_t tick);
    template <class Cursor>
    void give(Node& node, Output& output, const bp_ports& ports, uint64_t tick, Cursor& cursor);
    template <class Cursor>
    void give_general(Node& node, const Output& output, uint64_t tick, Cursor& cursor);
    template <class Cursor>
    void give_slow(Node& node, uint64_t tick, Cursor& cursor);
    void trace(uint64_t& digest, const bp_ports& ports, uint64_t tick) const;
    void trace(uint64_t& digest, const CellInFlight& cell, uint64_t tick) const;
    static uint64_t arrival(const Output& output, const bp_ports& ports, uint64_t tick);
    template <class Cursor>
    void enqueue(const Output& output, const bp_ports& ports, uint64_t tick, uint64_t arrives, Cursor& cursor);
    template <class Cursor>
    CellInFlight& next_on(const Output& output, uint64_t arrives, uint64_t tick, Cursor& cursor);
    template <class Cursor>
    void merge(const Output& output, const bp_ports& ports, uint64_t tick, Cursor& cursor);
    void check_order(Node& node, uint32_t port, const CellInFlight& cell);
    template <class Cursor>
    void deliver_direct(const Output& output, const bp_ports& ports, uint64_t tick, Cursor& cursor);
    static void undeliver(Node& node);
    void undeliver_all();
    static bool can_bypass(const Node& link, const bp_ports& ports);
    template <bool may_be_traced, class Cursor>
    void bypass(const Output& before, const bp_ports& ports, uint64_t tick, Cursor& cursor);
    bool arrives_later(const Node& link) const;
    void undo_bypass(Node& link);
    static bool announce(Node& to, uint32_t port, uint64_t tick);
    static uint64_t key_of(const CellInFlight* cell, uint32_t port);
    static uint32_t in_turn(const Node& node);
    static void wait(Node& node, uint64_t tick);
    void watch(Node& node, uint32_t port, uint64_t tick, const CellInFlight& cell);
    void watch_out(const Node& node, const Output& output);
    void line_in(const Node& node, uint64_t tick);
    void line_out(const Node& node);
    template <class Cursor>
    void after_link(Node& link, bool came, uint64_t tick, Cursor& cursor);
    void tell(Node& node, bool gone);
    void tell_extra(const Node& node);
    uint64_t on_wire(int index, int port, uint32_t key, uint32_t mask) override;
    void classify_outputs();
    static Output::Route route_of(const Node& node, const Output& output);

    std::vector<Node::Owner> nodes_;
    std::vector<Node*> links_;
    std::vector<Node*> impaired_;  // NICs that impair PDUs, or have done so
    bp_ports at_end_{};
    // By event number: the ports of all nodes, then two that stand for the end of a run and the start of a block of ticks
    std::vector<bp_ports*> node_ports_{&at_end_, &at_end_};
    bp_ports* small_node_ports_[SmallEventQueue::MOST + 1]{&at_end_};  // the same, without an indirection
    EventQueue queue_;
    std::vector<uint64_t> delivered_;  // of more than 8 nodes: a bit for each to which this run delivered a cell directly
    uint64_t now_ = 0;
    bool classified_ = false, lines_ = false, signs_ = false, acts_after_ = false;
    uint64_t after_ = 0;  // ticks from that in which a run ended to that in which what is given then is seen
    std::unique_ptr<QueueMonitor> monitor_;
    std::vector<std::unique_ptr<ArrivalMonitor>> arrivals_;
    std::vector<ScheduledWrite> writes_;
    size_t next_write_ = 0;
    uint64_t made_ = 0;
    std::unique_ptr<Parts> parts_;
};

}  // namespace bp
