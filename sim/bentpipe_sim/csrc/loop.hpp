// The event loop: owns time, moves cells between nodes, evaluates a node only at ticks at which it has work.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "inbox.hpp"
#include "ledger.hpp"
#include "node.hpp"

namespace bp {

class Loop final : CellCounts {
  public:
    Inbox inbox;
    Ledger ledger{*this};
    bool timing = false;  // of evaluations, in nanoseconds

    uint64_t now() const { return now_; }
    Node& node(int index) { return *nodes_[size_t(index)]; }
    Nic& nic(int index) { return *node(index).nic; }

    int add(const char* path);  // its place; errors as of Node
    void connect(int from, int from_port, int to, int to_port, uint64_t delay);  // std::runtime_error: it is already
    void vc(int source, uint32_t number, const Ledger::Hop* hops, size_t count);

    void write(int index, uint32_t addr, uint32_t value);
    uint32_t read(int index, uint32_t addr) override { return node(index).read(addr); }
    // After a setting or a PDU, which may have changed when the node is due: long ago, it may say, for what it was not
    // set to do.
    void wake(int index);

    void archive(Archive& a);  // between two runs; errors as of Archive and Node

    // Until this tick, or the end of the first tick with events; at most so many evaluations, if not 0.
    void run(uint64_t until, uint64_t most);

  private:
    uint64_t next_of(const Node& node) const;
    void step(size_t index, uint64_t tick);
    void take(Node& node, size_t index, uint64_t tick);
    void give(Node& node, size_t index, uint64_t tick);
    void wait(Node& node, uint64_t tick);
    void tap(Node& node, int port, uint64_t tick, const Flying& cell);
    void tell(Node& node, int index, bool gone);
    uint64_t on_wire(int index, int port, uint32_t key, uint32_t mask) override;

    std::vector<std::unique_ptr<Node>> nodes_;
    std::vector<uint64_t> next_;  // a node's next tick with work, beside each other for the search
    uint64_t now_ = 0;
};

}  // namespace bp
