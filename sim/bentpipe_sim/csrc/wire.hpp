// A wire to a node's input: cells in order of arrival, the first of them those that have arrived and wait at the input.
#pragma once
#include <algorithm>
#include <cstdint>

#include "cell.hpp"
#include "ring.hpp"

namespace bp {

constexpr uint64_t NEVER = (1ull << 48) - 1;  // a tick: nodes know 48 bits of them, and call it never, too

class alignas(64) Wire : public Ring<CellInFlight> {
  public:
    static constexpr uint64_t PLACES = 8;  // for cells that wait while the node takes those of other inputs

    bool connected = false;  // it comes from a node's output

    // The next cell, to be filled in. There is room for as many as there ever were.
    CellInFlight& push_back() {
        if (__builtin_expect(size() >= most_, 0)) at_most(size() + 1);
        return push_back_within();
    }

    CellInFlight& push_front() {
        at_most(size() + 1);
        return Ring::push_front();
    }

    uint64_t most() const { return most_; }  // that there ever were at once
    void had_one() { at_most(1); }           // a cell came and went
    // The second cell, or none.
    CellInFlight* second() const { return size() > 1 ? behind(&front()) : nullptr; }
    void pop_front() { Ring::pop_front(); }
    void pop_front(CellInFlight* second) { Ring::pop_front(second); }
    // Into the cache, from a long delay line: the one after that behind the first.
    void fetch_ahead() const { __builtin_prefetch(&front() + 2); }

    // Cells that have arrived by this tick: as many as there are places, and one more, which is in none.
    uint64_t waiting(uint64_t tick) const {
        uint64_t count = 0;
        while (count <= PLACES && count < size() && (*this)[count].tick <= tick) ++count;
        return count;
    }

    // Cells with a good header of this VPI/VCI; with `last`, only those that end a PDU.
    uint64_t count(uint32_t key, uint32_t mask, bool last = false) const {
        uint64_t found = 0;
        for (uint64_t k = 0; k < size(); ++k)
            found += (*this)[k].good(key, mask) && (!last || CellHead::last((*this)[k].header));
        return found;
    }
    void archive(Archive& a) {
        Ring::archive(a);
        uint64_t most = most_;
        a(most);
        most_ = 0;
        at_most(most);
    }

  private:
    [[gnu::noinline]] void at_most(uint64_t count) {
        most_ = std::max(most_, count);
        make_room(most_);
    }

    uint64_t most_ = 0;
};

}  // namespace bp
