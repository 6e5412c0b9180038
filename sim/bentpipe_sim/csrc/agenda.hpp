// When each node is to be evaluated next: of nodes that are due in one tick that which was added first. A run of few nodes and
// of many keeps it in other forms.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "archive.hpp"
#include "few.hpp"
#include "key.hpp"
#include "many.hpp"

namespace bp {

class Agenda {
  public:
    Agenda() = default;
    Agenda(const Agenda&) = delete;  // nodes are known by where their tickets are

    // One more node, without work. std::runtime_error: there are too many.
    void add(Ticket& its) {
        if (tickets_.size() == Key::MOST_NODES) throw std::runtime_error("a network has 16382 nodes at most");
        if (tickets_.size() == Few::MOST)
            for (Ticket* each : tickets_) each->due = few_.due(*each);
        its.node = uint16_t(tickets_.size());
        tickets_.push_back(&its);
        if (few()) few_.add(its);
        else its.due = NEVER;
    }
    bool few() const { return tickets_.size() <= Few::MOST; }

    // Between runs, at a tick that is not before the last one's end: earlier ones are over.
    void set(Ticket& its, uint64_t tick) { few() ? few_.set(its, tick) : many_.set(its, tick); }
    uint64_t due(const Ticket& its) const { return few() ? few_.due(its) : its.due; }
    // The numbers of all nodes that are due by this tick.
    template <class Each>
    void each_until(uint64_t tick, Each each) const {
        for (const Ticket* its : tickets_)
            if (due(*its) <= tick) each(its->node);
    }
    template <class Run>
    Run run(uint64_t until) {
        if constexpr (std::is_same_v<Run, Few::Run>) return {few_, tickets_.size(), until};
        else return {many_, until};
    }

    void archive(Archive& a) {
        if (a.gives()) many_.forget();
        for (Ticket* its : tickets_) {
            uint64_t tick = std::min(due(*its), NEVER);
            a(tick);
            if (!a.gives()) continue;
            if (few()) few_.set(*its, tick);
            else its->due = tick;
        }
    }

  private:
    std::vector<Ticket*> tickets_;
    Few few_;
    Many many_{tickets_};
};

}  // namespace bp
