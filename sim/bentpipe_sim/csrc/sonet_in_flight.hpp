// The cells in flight in one direction of a SONET line: those that entered and have not left. The line does not report them, so
// each cell that leaves is compared with those that entered.
#pragma once
#include <cstdint>

#include "cell.hpp"
#include "ring.hpp"

namespace bp {

class SonetInFlight {
  public:
    struct Inside {
        Payload payload;
        uint32_t header;
        uint64_t tick;
        bool is(uint32_t other, const Payload& octets) const {
            return header == other && payload == octets;
        }
    };

    bool empty() const { return cells_.empty(); }
    uint64_t size() const { return cells_.size(); }
    const Inside& first() const { return cells_.front(); }
    void pop() { cells_.pop_front(); }

    void push(uint64_t tick, uint32_t header, const Payload& payload) {
        Inside& cell = cells_.push_back();
        cell.payload = payload;
        cell.header = header;
        cell.tick = tick;
    }

    // Returns whether the first cell has been in for too long to come out.
    bool overdue(uint64_t tick) const { return !empty() && first().tick + TICKS < tick; }

    // Cells of a VC; with `last`, only those that end a PDU.
    uint64_t count(uint32_t key, uint32_t mask, bool last = false) const {
        uint64_t found = 0;
        for (uint64_t k = 0; k < size(); ++k)
            found += CellHead::names(cells_[k].header, key, mask) && (!last || CellHead::last(cells_[k].header));
        return found;
    }

    // The first cell of a VC; size() if there is none.
    uint64_t find(uint32_t key, uint32_t mask) const {
        uint64_t k = 0;
        while (k < size() && !CellHead::names(cells_[k].header, key, mask)) ++k;
        return k;
    }

    // The cell that differs from this in the fewest bits, and in few; size() if there is none.
    uint64_t nearest(uint32_t header, const Payload& payload) const {
        uint64_t found = size();
        int least = 416 / 4;
        for (uint64_t k = 0; k < size(); ++k) {
            int bits = __builtin_popcount(cells_[k].header ^ header);
            for (int w = 0; w < 6; ++w) bits += __builtin_popcountll(cells_[k].payload.w[w] ^ payload.w[w]);
            if (bits < least) {
                least = bits;
                found = k;
            }
        }
        return found;
    }
    void archive(Archive& a) { a(cells_); }

  private:
    static constexpr uint64_t TICKS = 1413;  // two frames: 16 cells wait for half of one, half a frame is under way
    Ring<Inside> cells_;
};

}  // namespace bp
