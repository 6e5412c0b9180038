// The event loop: owns time, moves cells between nodes, evaluates a node only at ticks at which it has work.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "agenda.hpp"
#include "gauge.hpp"
#include "inbox.hpp"
#include "ledger.hpp"
#include "node.hpp"

namespace bp {

class Loop final : CellCounts {
  public:
    Inbox inbox;
    Ledger ledger{*this};

    uint64_t now() const { return now_; }
    Node& node(int index) { return *nodes_[size_t(index)]; }
    Nic& nic(int index) { return *node(index).nic; }

    int add(const char* path);  // its place; std::runtime_error: as of Node, or there are too many
    // `sends`: the node clocks a line, and a cell's own time on it counts. std::runtime_error: it is connected already, or never comes
    void connect(int from, int from_port, int to, int to_port, uint64_t delay, bool sends);
    void vc(int source, uint32_t number, const Ledger::Hop* hops, size_t count);
    // Of a port of a switch: one in a network. std::runtime_error: there is one already.
    void measure(int index, uint32_t port, std::vector<Gauge::Vc> vcs);
    Gauge& gauge() { return *gauge_; }

    void write(int index, uint32_t addr, uint32_t value);
    uint32_t read(int index, uint32_t addr) override { return node(index).read(addr); }
    // After a setting or a PDU, which may have changed when the node is due: long ago, it may say, for what it was not
    // set to do.
    void wake(int index);

    void record(int index);  // errors as of Node
    // A digest of the cells that leave a face; `crc`: of all faces, the CRC-32 that a board's wires have of them.
    void trace(int from, int from_port, bool on, bool crc);
    // The first tick in which a node sees what it is given now: a PDU, a register's value.
    uint64_t next_tick(int index) { return std::max(node(index).next_free(), now_ + after_); }
    // From now on all nodes see what they are given after a run in the tick after its last, as on a board.
    void act_after_runs() { acts_after_ = true; }
    void capture_input(int index, const Tap& tap);

    void archive(Archive& a);  // between two runs; errors as of Archive and Node

    void run(uint64_t until);  // this tick, or the end of the first tick with events

  private:
    // What every evaluation needs is made for networks of few nodes and of many (Few::Run, Many::Run).
    template <class Run, bool lines>
    uint64_t advance(uint64_t until);
    template <bool nic, class Run>
    void step(Node& node, bp_face& face, uint64_t tick, Run& run);
    static void count(bp_face& face, bool with_cell);
    template <class Run>
    void step_line(Node& node, bp_face& face, uint64_t tick, Run& run);
    template <class Run>
    void step_apart(Node& node, uint64_t tick, Run& run);
    template <bool plain, bool nic = false>
    void take(Node& node, bp_face& face, uint64_t tick);
    void take_in_turn(Node& node, uint64_t tick);
    void take_from_crowd(Node& node, uint64_t tick);
    template <bool plain>
    void take_from(Node& node, bp_face& face, uint32_t port, Flying* second, Node::Arrival next, uint64_t tick);
    template <class Run>
    void give(Node& node, Output& output, const bp_face& face, uint64_t tick, Run& run);
    template <class Run>
    void give_apart(Node& node, uint64_t tick, Run& run);
    void trace(uint64_t& digest, const bp_face& face, uint64_t tick) const;
    void trace(uint64_t& digest, const Flying& cell, uint64_t tick) const;
    static uint64_t arrival(const Output& output, const bp_face& face, uint64_t tick);
    template <class Run>
    void put(const Output& output, const bp_face& face, uint64_t tick, uint64_t arrives, Run& run);
    template <class Run>
    Flying& next_on(const Output& output, uint64_t arrives, uint64_t tick, Run& run);
    template <class Run>
    void hand_over(const Output& output, const bp_face& face, uint64_t tick, Run& run);
    static void take_back(Node& node);
    static bool lets_by(const Node& link, const bp_face& face);
    template <class Run>
    void go_by(const Output& before, const bp_face& face, uint64_t tick, Run& run);
    bool comes_later(const Node& link) const;
    void call_back(Node& link);
    static bool announce(Node& to, uint32_t port, uint64_t tick);
    static uint64_t key_of(const Flying* cell, uint32_t port);
    static uint32_t in_turn(const Node& node);
    static void wait(Node& node, uint64_t tick);
    void watch(Node& node, uint32_t port, uint64_t tick, const Flying& cell);
    void watch_out(const Node& node, const Output& output);
    void line_in(const Node& node, uint64_t tick);
    void line_out(const Node& node);
    template <class Run>
    void after_link(Node& link, bool came, uint64_t tick, Run& run);
    void tell(Node& node, bool gone);
    uint64_t on_wire(int index, int port, uint32_t key, uint32_t mask) override;
    void look_at_ways();
    static Output::Way way(const Node& node, const Output& output);

    std::vector<Node::Owner> nodes_;
    std::vector<Node*> links_;
    bp_face at_end_{};
    // The nodes', and behind them two more: the end of a run, and that a block of ticks begins (many.hpp)
    std::vector<bp_face*> faces_{&at_end_, &at_end_};
    bp_face* few_[Few::MOST + 1]{&at_end_};  // the same, near at hand
    Agenda agenda_;
    uint64_t now_ = 0;
    bool ways_known_ = false, lines_ = false, crc_ = false, acts_after_ = false;
    uint64_t after_ = 0;  // ticks from that in which a run ended to that in which what is given then is seen
    std::unique_ptr<Gauge> gauge_;
};

}  // namespace bp
