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
        for (size_t k = 0; k <= threads; ++k) found.first.push_back(begin_of(k, threads, k ? found.first.back() : 0));
        if (threads == 1) {
            for (const auto& each : dependences_) found.turn[each.part] = found.turn[each.on] = ENOUGH;
            return found;
        }
        std::vector<uint64_t> turn(count(), ANY);  // of a group, by its first part
        const std::vector<size_t> group = connected();
        std::vector<std::vector<Step>> steps = steps_of(group, found.first);
        for (size_t k = 0; k < count(); ++k)
            if (const uint64_t most = of_round(steps[k]); most != ANY) turn[k] = std::max<uint64_t>(1, most - most / 4);
        for (size_t k = 0; k < count(); ++k) found.turn[k] = turn[group[k]];
        return found;
    }

  private:
    size_t count() const { return before_.size() - 1; }

    // A dependence in a group of connected parts, which have numbers of their own there; `waits`: for the round before.
    struct Step {
        uint32_t part, on;
        uint64_t ahead;
        bool waits;
    };

    // Where a thread's parts begin so that those before it have their share of all nodes, about. Those of the one before begin at
    // `last`; each has one part if there are so many.
    size_t begin_of(size_t thread, size_t threads, size_t last) const {
        const uint64_t share = before_.back() * thread / threads;
        size_t k = size_t(std::lower_bound(before_.begin(), before_.end(), share) - before_.begin());
        if (k && share - before_[k - 1] < before_[k] - share) --k;
        if (threads > count() || !thread) return k;
        return std::clamp(k, last + 1, count() - (threads - thread));
    }

    std::vector<std::vector<Step>> steps_of(const std::vector<size_t>& group, const std::vector<size_t>& first) const {
        std::vector<size_t> thread(count());
        for (size_t k = 0; k + 1 < first.size(); ++k) std::fill(thread.begin() + first[k], thread.begin() + first[k + 1], k);
        std::vector<uint32_t> number(count()), size(count());
        for (size_t k = 0; k < count(); ++k) number[k] = size[group[k]]++;
        std::vector<std::vector<Step>> found(count());
        for (const auto& [part, on, ahead] : dependences_)
            found[group[part]].push_back({number[part], number[on], ahead, thread[part] != thread[on] || on > part});
        // A pass over them gets on along all that do not wait, then.
        for (auto& steps : found)
            std::sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) { return a.part < b.part; });
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

    // Ticks by which a round of a group gets on.
    static uint64_t of_round(const std::vector<Step>& steps) {
        uint64_t low = 0, high = 1;  // possible; not possible
        for (const Step& step : steps) high += step.ahead;
        if (possible(high, steps)) return ANY;  // there is no circle
        while (high - low > 1) (possible((low + high) / 2, steps) ? low : high) = (low + high) / 2;
        return low;
    }

    // Whether a round may get on by so many ticks: no circle has less for it (Bellman and Ford). Where one has, the steps by which
    // parts were reached last soon have a circle, too.
    static bool possible(uint64_t ticks, const std::vector<Step>& steps) {
        uint32_t parts = 0;
        for (const Step& step : steps) parts = std::max({parts, step.part + 1, step.on + 1});
        std::vector<int64_t> least(parts);
        std::vector<uint32_t> reached_from(parts, NONE);
        for (;;) {
            bool changed = false;
            for (const auto& [part, on, ahead, waits] : steps) {
                const int64_t reached = least[on] + int64_t(ahead) - (waits ? int64_t(ticks) : 0);
                if (reached >= least[part]) continue;
                least[part] = reached;
                reached_from[part] = on;
                changed = true;
            }
            if (!changed) return true;
            if (has_circle(reached_from)) return false;
        }
    }

    static bool has_circle(const std::vector<uint32_t>& from) {
        std::vector<uint32_t> seen(from.size(), NONE);  // by the walk that began at which part
        for (uint32_t k = 0; k < from.size(); ++k) {
            uint32_t at = k;
            while (at != NONE && seen[at] == NONE) {
                seen[at] = k;
                at = from[at];
            }
            if (at != NONE && seen[at] == k) return true;
        }
        return false;
    }

    static constexpr uint32_t NONE = UINT32_MAX;
    std::vector<uint64_t> before_{0};  // nodes of all parts before each one
    std::vector<bp_dependence> dependences_;
};

}  // namespace bp
