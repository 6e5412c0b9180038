// The event queue of up to 8 nodes: an array of event keys. The smallest key is the next event. The smallest key of all other
// nodes is computed before the current node is evaluated, so that the CPU can speculate on it. The end of a run has a key, too,
// after those of all nodes.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "event_key.hpp"

namespace bp {

class SmallEventQueue {
  public:
    static constexpr size_t MOST = 8;

    SmallEventQueue() { std::fill_n(keys_, MOST, Key::number(Key::NONE)); }
    void add(Ticket& ticket) {
        ticket.number = Key::of(0, ticket.node);
        set(ticket, NEVER);
    }
    void set(const Ticket& ticket, uint64_t tick) { keys_[ticket.node] = Key::number(key_in(ticket, tick)); }
    uint64_t due(const Ticket& ticket) const { return Key::tick(Key::bits(keys_[ticket.node])); }

    // The position of a run in the queue, which the compiler keeps in registers: the first key.
    class Cursor {
      public:
        uint64_t first;

        // The run ends at the end of this tick: the key of its end is after those of all nodes.
        Cursor(SmallEventQueue& queue, size_t nodes, uint64_t tick) : queue_(queue) {
            queue.nodes_ = nodes;
            stop(tick);
        }
        void stop(uint64_t tick) {
            queue_.stop_ = Key::number(Key::of(tick, queue_.nodes_));
            first = found(queue_.keys_);
        }
        void assign(const Cursor& other) { first = other.first; }
        // The asm makes the compiler (gcc 12) compute what follows from the first key here, at the start of a step. Otherwise it
        // computes half of it at the end of the step before, and again here.
        uint64_t tick() {
            asm("" : "+r"(first));
            return Key::tick(first);
        }
        size_t node() const { return Key::node(first); }
        bool ends(size_t node) const { return node == queue_.nodes_; }
        static bool due(const Ticket&, uint64_t) { return true; }

        // Take the first node out of the queue, to evaluate it. It has no event until reschedule().
        void pop() {
            double* keys = queue_.keys_;
            // Hides the address from the compiler (gcc 12). Otherwise it sometimes addresses the keys by %rbp, and a cell takes 13 %
            // longer on Zen: these CPUs seem to predict that such a load gives the same value as last time.
            asm("" : "+r"(keys));
            std::memcpy(&keys[node()], &Key::NONE, sizeof Key::NONE);
            first = found(keys);
        }
        void reschedule(const Ticket& ticket, uint64_t due, uint64_t) {  // put the popped node back
            const uint64_t key = key_in(ticket, due);
            std::memcpy(&queue_.keys_[ticket.node], &key, sizeof key);
            schedule_earlier(key);
        }
        void schedule_earlier(const Ticket& ticket, uint64_t tick, uint64_t) {  // only if it is due later
            double& kept = queue_.keys_[ticket.node];
            kept = lesser(Key::number(key_in(ticket, tick)), kept);
            schedule_earlier(key_in(ticket, tick));
        }
        void begin_block() {}
        void finish(uint64_t) {}

      private:
        static double lesser(double a, double b) { return a < b ? a : b; }
        // Two chains, which GCC puts into one register each; of a tree it copies registers, and a cell has 24 instructions more.
        static double of_four(const double* key) { return lesser(lesser(lesser(key[0], key[1]), key[2]), key[3]); }
        uint64_t found(const double* keys) const {
            static_assert(MOST == 8, "these are all");
            return Key::bits(lesser(lesser(of_four(keys), queue_.stop_), of_four(keys + 4)));
        }
        void schedule_earlier(uint64_t key) {
            if (key >= first) return;
            asm volatile("" : "+r"(key));  // forces a branch: the CPU predicts it, and `first` does not wait for the key
            first = key;
        }

        SmallEventQueue& queue_;
    };

  private:
    static uint64_t key_in(const Ticket& ticket, uint64_t tick) { return (tick << Key::BITS) + ticket.number; }

    alignas(64) double keys_[MOST];
    double stop_ = Key::number(Key::NONE);
    size_t nodes_ = 0;
};

}  // namespace bp
