// A monitor of the queue at one port of a switch. It counts cells as they arrive, are dropped and leave, and those that leave after a
// long wait. It reports an event at a level of the queue.
#pragma once
#include <algorithm>
#include <cstdint>
#include <deque>
#include <stdexcept>
#include <vector>

#include "archive.hpp"
#include "cell.hpp"
#include "inbox.hpp"

namespace bp {

class QueueMonitor {
  public:
    static constexpr uint16_t LEVEL = 64, EMPTY = 65;  // an event's status

    // Cells of a VC that leave by the port: where they come in, as which; the VC's number there; as which they leave.
    struct Vc {
        uint32_t port, key, mask, number, out_key, out_mask;
        std::deque<uint64_t> came = {};  // ticks at which the cells now in the switch came, if waits are counted
    };
    // A cycle begins with a cell that finds none queued, and ends when none is left.
    struct Counts {
        uint64_t queue = 0, came = 0, lost = 0, cycles = 0;
        uint64_t most = 0;  // queued since it was armed or the cycle began
        uint64_t late = 0;  // cells that left after waiting for `late_from` ticks or more
    };
    bool armed() const { return arm_.level || arm_.empty; }

    // late_from = 0: no waits are counted.
    QueueMonitor(uint32_t node, uint32_t port, std::vector<Vc> vcs, uint64_t late_from, Inbox& inbox)
        : node_(node), port_(port), vcs_(std::move(vcs)), late_from_(late_from), inbox_(inbox), heights_(1) {}

    uint32_t node() const { return node_; }
    const Counts& counts() const { return counts_; }
    // By the greatest number of queued cells: the cycles with it that ended since it was cleared.
    const std::vector<uint64_t>& heights() const { return heights_; }
    void clear_heights() { heights_.assign(1, 0); }

    // Tell when so many are queued or more (0: never), or, with `empty`, when none is any more: the first of both.
    void arm(uint64_t level, bool empty) {
        arm_ = {level, empty};
        counts_.most = counts_.queue;
    }

    // In a tick: a cell that comes, one that leaves, one that is dropped. What came is dropped in its tick or is queued.
    void comes(uint32_t port, uint64_t tick, const CellInFlight& cell) {
        for (Vc& vc : vcs_) {
            if (vc.port != port || !cell.good(vc.key, vc.mask)) continue;
            ++counts_.came;
            ++change_;
            if (late_from_) vc.came.push_back(tick);
            return;
        }
    }
    void leaves(uint32_t port, uint64_t tick, uint32_t header) {
        if (port != port_) return;
        --change_;
        if (!late_from_) return;
        for (Vc& vc : vcs_) {
            if (!CellHead::names(header, vc.out_key, vc.out_mask) || vc.came.empty()) continue;
            counts_.late += tick - vc.came.front() >= late_from_;
            vc.came.pop_front();
            return;
        }
    }
    void drops(uint32_t number) {
        for (Vc& vc : vcs_) {
            if (vc.number != number) continue;
            ++counts_.lost;
            --change_;
            if (!vc.came.empty()) vc.came.pop_back();
            return;
        }
    }
    // The tick is over.
    void look(uint64_t tick) {
        if (!change_) return;
        const uint64_t before = counts_.queue;
        counts_.queue += uint64_t(change_);
        change_ = 0;
        if (!before) {
            ++counts_.cycles;
            counts_.most = 0;
        }
        counts_.most = std::max(counts_.most, counts_.queue);
        if (arm_.level && counts_.queue >= arm_.level) {
            arm_ = {};
            inbox_.tell(tick, int(node_), port_, LEVEL, 0u);
        }
        if (counts_.queue) return;
        heights_.resize(std::max<size_t>(heights_.size(), counts_.most + 1));
        ++heights_[counts_.most];
        if (arm_.empty) {
            arm_ = {};
            inbox_.tell(tick, int(node_), port_, EMPTY, 0u);
        }
    }

    void archive(Archive& a) {  // between two ticks nothing changes
        a(counts_, arm_, heights_);
        for (Vc& vc : vcs_) a(vc.came);
    }

  private:
    uint32_t node_, port_;
    std::vector<Vc> vcs_;
    uint64_t late_from_;
    Inbox& inbox_;
    Counts counts_;
    int64_t change_ = 0;  // in this tick
    struct {
        uint64_t level = 0;
        uint64_t empty = 0;
    } arm_;
    std::vector<uint64_t> heights_;
};

}  // namespace bp
