// The agenda of few nodes: a row of keys, of which the least is next. While a node is evaluated, the first of all others is
// known: most often it is next, and the processor begins with it before it knows when the one is due again. The end of a run is
// one more to be next, behind all nodes.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "key.hpp"

namespace bp {

class Few {
  public:
    static constexpr size_t MOST = 8;

    Few() { std::fill_n(keys_, MOST, Key::number(Key::NONE)); }
    void add(Ticket& its) {
        its.number = Key::of(0, its.node);
        set(its, NEVER);
    }
    void set(const Ticket& its, uint64_t tick) { keys_[its.node] = Key::number(key_in(its, tick)); }
    uint64_t due(const Ticket& its) const { return Key::tick(Key::bits(keys_[its.node])); }

    // What a run keeps in registers: the first key.
    class Run {
      public:
        uint64_t first;

        // It ends at the end of this tick, with the key behind all nodes'.
        Run(Few& few, size_t nodes, uint64_t tick) : few_(few) {
            few.nodes_ = nodes;
            stop(tick);
        }
        void stop(uint64_t tick) {
            few_.stop_ = Key::number(Key::of(tick, few_.nodes_));
            first = found(few_.keys_);
        }
        void follow(const Run& apart) { first = apart.first; }
        uint64_t tick() const { return Key::tick(first); }
        size_t node() const { return Key::node(first); }
        bool ends(size_t node) const { return node == few_.nodes_; }
        static bool due(const Ticket&, uint64_t) { return true; }

        // The first node is evaluated now, and has no work until that is set.
        void take() {
            double* keys = few_.keys_;
            // Where they are the compiler is not to know. It took %rbp for it, else, now and then, and a cell 13 % longer on Zen
            // processors: it seems that these expect to load so what they loaded last time, and keys are set by other addresses.
            asm("" : "+r"(keys));
            std::memcpy(&keys[node()], &Key::NONE, sizeof Key::NONE);
            first = found(keys);
        }
        void taken(const Ticket& its, uint64_t due, uint64_t) {  // of the node that was taken: its work
            const uint64_t key = key_in(its, due);
            std::memcpy(&few_.keys_[its.node], &key, sizeof key);
            sooner(key);
        }
        void sooner(const Ticket& its, uint64_t tick, uint64_t) {  // than it is, else not
            double& kept = few_.keys_[its.node];
            kept = lesser(Key::number(key_in(its, tick)), kept);
            sooner(key_in(its, tick));
        }
        void turn() {}
        void leave(uint64_t) {}

      private:
        static double lesser(double a, double b) { return a < b ? a : b; }
        static double of_four(const double* key) { return lesser(lesser(key[0], key[1]), lesser(key[2], key[3])); }
        uint64_t found(const double* keys) const {
            static_assert(MOST == 8, "these are all");
            return Key::bits(lesser(of_four(keys), lesser(of_four(keys + 4), few_.stop_)));
        }
        void sooner(uint64_t key) {
            if (key >= first) return;
            asm volatile("" : "+r"(key));  // a branch, which is guessed: what is first doesn't wait for the key
            first = key;
        }

        Few& few_;
    };

  private:
    static uint64_t key_in(const Ticket& its, uint64_t tick) { return (tick << Key::BITS) + its.number; }

    alignas(64) double keys_[MOST];
    double stop_ = Key::number(Key::NONE);
    size_t nodes_ = 0;
};

}  // namespace bp
