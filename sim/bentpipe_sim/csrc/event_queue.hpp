// The event queue: when each node is to be evaluated next. Of nodes that are due in the same tick the one that was added first
// comes first. Up to 8 nodes are in a SmallEventQueue, more in a TimingWheel; a run uses the queue through the cursor of either.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "archive.hpp"
#include "small_event_queue.hpp"
#include "event_key.hpp"
#include "timing_wheel.hpp"

namespace bp {

class EventQueue {
  public:
    EventQueue() = default;
    EventQueue(const EventQueue&) = delete;  // nodes are known by where their tickets are

    // Add a node without an event. std::runtime_error: there are too many nodes.
    void add(Ticket& ticket) {
        if (tickets_.size() == Key::MOST_NODES) throw std::runtime_error("a network has 16382 nodes at most");
        if (tickets_.size() == SmallEventQueue::MOST)
            for (Ticket* each : tickets_) each->due = small_.due(*each);
        ticket.node = uint16_t(tickets_.size());
        tickets_.push_back(&ticket);
        if (is_small()) small_.add(ticket);
        else ticket.due = NEVER;
    }
    // Number these nodes anew; each is due in its tick, none before `now`.
    void refill(const std::vector<Ticket*>& tickets, const std::vector<uint64_t>& due, uint64_t now) {
        tickets_ = tickets;
        for (size_t k = 0; k < tickets.size(); ++k) {
            tickets[k]->node = uint16_t(k);
            if (!is_small()) {
                tickets[k]->due = due[k];
                continue;
            }
            small_.add(*tickets[k]);
            small_.set(*tickets[k], due[k]);
        }
        wheel_.forget(now);
    }
    bool is_small() const { return tickets_.size() <= SmallEventQueue::MOST; }

    // Only between runs, and not before the end of the last one.
    void set(Ticket& ticket, uint64_t tick) { is_small() ? small_.set(ticket, tick) : wheel_.set(ticket, tick); }
    uint64_t due(const Ticket& ticket) const { return is_small() ? small_.due(ticket) : ticket.due; }
    template <class Cursor>
    Cursor cursor(uint64_t until) {
        if constexpr (std::is_same_v<Cursor, SmallEventQueue::Cursor>) return {small_, tickets_.size(), until};
        else return {wheel_, until};
    }

    void archive(Archive& a) {
        if (a.gives()) wheel_.forget();
        for (Ticket* ticket : tickets_) {
            uint64_t tick = std::min(due(*ticket), NEVER);
            a(tick);
            if (!a.gives()) continue;
            if (is_small()) small_.set(*ticket, tick);
            else ticket->due = tick;
        }
    }

  private:
    std::vector<Ticket*> tickets_;
    SmallEventQueue small_;
    TimingWheel wheel_{tickets_};
};

}  // namespace bp
