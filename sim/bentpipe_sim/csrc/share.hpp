// Which parts a thread has, and how far a part goes in one turn.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "network.h"

namespace bp {

struct Share {
    std::vector<size_t> first;   // of each thread its first part, then the number of parts: a thread's parts stand side by side
    std::vector<uint64_t> turn;  // of each part the ticks that it is given in a turn at most
};

class Sharing {
  public:
    static constexpr uint64_t ANY = UINT64_MAX / 4;
    // On one thread the cells of a turn are to be in the second cache still when they are taken: 1,000 of each OC-3c line are 80 KB
    // (2.8 ms). From another core's cache they come more slowly than from memory that both share, so several threads have no such
    // bound.
    static constexpr uint64_t ENOUGH = 16'000;

    // `nodes`: of each part.
    Sharing(const std::vector<uint64_t>& nodes, std::vector<bp_dependence> dependences) : dependences_(std::move(dependences)) {
        for (uint64_t count : nodes) before_.push_back(before_.back() + count);
    }

    // All threads have about as many nodes.
    //
    // In rounds each thread gives each of its parts a turn. A part may go on as far as those before it have come, and the delay of the
    // wire: those of its own thread with lower numbers in this round, all others in the round before. So around a circle of parts a
    // round gets on by the delays of its wires, divided by how many of its steps wait for a round. The least of all circles is what
    // parts that are connected can do in a round at most. If they did it, each thread would wait for the others in each round, as all
    // of them have just as much time for it. With three quarters a thread may be late by a third of a round before another one waits.
    Share among(size_t threads) const {
        Share found{{}, std::vector<uint64_t>(count(), ANY)};
        for (size_t k = 0; k <= threads; ++k) found.first.push_back(nearest(k, threads));
        if (threads == 1) {
            for (const auto& each : dependences_) found.turn[each.part] = found.turn[each.on] = ENOUGH;
            return found;
        }
        const std::vector<bool> waits = waits_with(found.first);
        const std::vector<size_t> group = connected();
        for (size_t k = 0; k < count(); ++k) {
            if (group[k] != k) {  // a part with a lower number is in it
                found.turn[k] = found.turn[group[k]];
                continue;
            }
            std::vector<size_t> inside;
            for (size_t d = 0; d < dependences_.size(); ++d)
                if (group[dependences_[d].part] == k) inside.push_back(d);
            const uint64_t most = of_round(inside, waits);
            if (most != ANY) found.turn[k] = std::max<uint64_t>(1, most - most / 4);
        }
        return found;
    }

  private:
    size_t count() const { return before_.size() - 1; }

    // Where a thread's parts begin so that those before it have their share of all nodes, about.
    size_t nearest(size_t thread, size_t threads) const {
        const uint64_t share = before_.back() * thread / threads;
        const size_t k = size_t(std::lower_bound(before_.begin(), before_.end(), share) - before_.begin());
        return k && share - before_[k - 1] < before_[k] - share ? k - 1 : k;
    }

    // Of each dependence whether a part waits for the round before.
    std::vector<bool> waits_with(const std::vector<size_t>& first) const {
        std::vector<size_t> thread(count());
        for (size_t k = 0; k + 1 < first.size(); ++k) std::fill(thread.begin() + first[k], thread.begin() + first[k + 1], k);
        std::vector<bool> found;
        for (const auto& each : dependences_) found.push_back(thread[each.part] != thread[each.on] || each.on > each.part);
        return found;
    }

    // Of each part the first one with which it is connected, through any number of wires.
    std::vector<size_t> connected() const {
        std::vector<size_t> group(count());
        for (size_t k = 0; k < count(); ++k) group[k] = k;
        const auto first_of = [&](size_t k) {
            while (group[k] != k) k = group[k] = group[group[k]];
            return k;
        };
        for (const auto& each : dependences_) {
            const size_t one = first_of(each.part), other = first_of(each.on);
            group[std::max(one, other)] = std::min(one, other);
        }
        for (size_t k = 0; k < count(); ++k) group[k] = first_of(k);
        return group;
    }

    uint64_t of_round(const std::vector<size_t>& inside, const std::vector<bool>& waits) const {
        uint64_t low = 0, high = 1;  // possible; not possible
        for (size_t d : inside) high += dependences_[d].ahead;
        if (possible(high, inside, waits)) return ANY;  // there is no circle
        while (high - low > 1) (possible((low + high) / 2, inside, waits) ? low : high) = (low + high) / 2;
        return low;
    }

    // Whether a round may get on by so many ticks: no circle has less for it (Bellman and Ford).
    bool possible(uint64_t ticks, const std::vector<size_t>& inside, const std::vector<bool>& waits) const {
        std::vector<int64_t> least(count());
        for (size_t k = 0; k <= count(); ++k) {
            bool changed = false;
            for (size_t d : inside) {
                const auto& [part, on, ahead] = dependences_[d];
                const int64_t reached = least[on] + int64_t(ahead) - (waits[d] ? int64_t(ticks) : 0);
                if (reached >= least[part]) continue;
                least[part] = reached;
                changed = true;
            }
            if (!changed) return true;
        }
        return false;
    }

    std::vector<uint64_t> before_{0};  // nodes of all parts before each one
    std::vector<bp_dependence> dependences_;
};

}  // namespace bp
