// A monitor of the cells of a VC where they arrive at a node: 1-point cell delay variation (I.356) against a peak cell rate, and
// the cells that GCRA(T, tau) finds not conforming (I.371).
#pragma once
#include <algorithm>
#include <cstdint>

#include "archive.hpp"
#include "cell.hpp"

namespace bp {

class ArrivalMonitor {
  public:
    // The port where the cells arrive, and their VC there. `period` and `limit` are T and tau; they and all times are in 2^-16 ticks.
    struct Place {
        uint32_t port, key, mask;
        uint64_t period, limit;
    };
    // `most` and `least` are of y = c - a: c is when the reference clock expects a cell, a is when it arrives.
    struct Counts {
        uint64_t cells = 0, nonconforming = 0;
        int64_t most = 0, least = 0;
    };

    explicit ArrivalMonitor(const Place& place) : place_(place) {}

    const Counts& counts() const { return counts_; }

    void comes(uint32_t port, uint64_t tick, const CellInFlight& cell) {
        if (port != place_.port || !cell.good(place_.key, place_.mask)) return;
        const int64_t now = int64_t(tick << 16), period = int64_t(place_.period);
        if (!counts_.cells++) expected_ = conforming_ = now;
        const int64_t early = expected_ - now;
        counts_.most = std::max(counts_.most, early);
        counts_.least = std::min(counts_.least, early);
        expected_ = std::max(expected_, now) + period;
        if (conforming_ - now > int64_t(place_.limit)) ++counts_.nonconforming;
        else conforming_ = std::max(conforming_, now) + period;
    }

    void archive(Archive& a) { a(counts_, expected_, conforming_); }

  private:
    Place place_;
    Counts counts_;
    int64_t expected_ = 0;    // c of the next cell
    int64_t conforming_ = 0;  // TAT of GCRA, which does not count cells that do not conform
};

}  // namespace bp
