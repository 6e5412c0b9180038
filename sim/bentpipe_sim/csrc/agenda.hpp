// When each node is to be evaluated next: a tree in which each place has the earlier of the two below it, so that which node
// is first costs a step for each doubling of their number.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "archive.hpp"
#include "wire.hpp"

namespace bp {

class Agenda {
  public:
    static constexpr size_t MOST = size_t(1) << 16;  // nodes

    size_t size() const { return count_; }
    void add() {  // one more node, which has no work
        if (count_ == leaves_) {
            std::vector<uint64_t> before(keys_.begin() + std::ptrdiff_t(leaves_), keys_.end());
            leaves_ *= 2;
            keys_.assign(2 * leaves_, NONE);
            for (size_t k = 0; k < before.size(); ++k) put(k, before[k]);
        }
        set(uint32_t(count_++), NEVER);
    }

    // Of those that are first the one that was added first.
    uint64_t tick() const { return keys_[1] >> BITS; }
    uint32_t node() const { return uint32_t(keys_[1] & (MOST - 1)); }

    uint64_t tick_of(uint32_t node) const { return keys_[leaves_ + node] >> BITS; }
    void set(uint32_t node, uint64_t tick) { put(node, std::min(tick, NEVER) << BITS | node); }

    void archive(Archive& a) {
        for (uint32_t node = 0; node < count_; ++node) {
            uint64_t tick = tick_of(node);
            a(tick);
            set(node, tick);
        }
    }

  private:
    static constexpr unsigned BITS = 16;  // of a node's number, below its tick
    static constexpr uint64_t NONE = ~0ull;

    void put(size_t node, uint64_t key) {
        uint64_t* const keys = keys_.data();
        for (size_t at = leaves_ + node; keys[at] = key, at > 1; at >>= 1) key = std::min(key, keys[at ^ 1]);
    }

    size_t count_ = 0, leaves_ = 1;
    std::vector<uint64_t> keys_ = {NONE, NONE};  // the first place is 1, below k are 2 k and 2 k + 1, then the nodes
};

}  // namespace bp
