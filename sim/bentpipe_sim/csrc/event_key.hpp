// An event key: a tick, and below it the number of the node that is due then. The smallest key is the next event.
#pragma once
#include <cstdint>
#include <cstring>

#include "model.h"
#include "wire.hpp"

namespace bp {

// A key has the bits of a positive, normal floating-point number. The order is the same, and the smaller of two is one
// instruction (minsd).
struct Key {
    static constexpr unsigned BITS = 14;
    static constexpr uint64_t LEAST = 1ull << 52, NONE = 0x7FE0000000000000ull;
    // The two numbers after those of all nodes stand for the end of a run and the start of a block of ticks (timing_wheel.hpp).
    static constexpr size_t MOST_NODES = (size_t(1) << BITS) - 2;

    static uint64_t of(uint64_t tick, uint64_t node) { return (tick << BITS) + LEAST + node; }
    static uint64_t tick(uint64_t key) { return (key - LEAST) >> BITS; }
    static uint32_t node(uint64_t key) { return uint32_t(key & ((1u << BITS) - 1)); }

    static double number(uint64_t key) {
        double number;
        std::memcpy(&number, &key, sizeof number);
        return number;
    }
    static uint64_t bits(double number) {
        uint64_t key;
        std::memcpy(&key, &number, sizeof key);
        return key;
    }
};
static_assert(sizeof(double) == 8 && (NEVER << Key::BITS) + Key::LEAST < Key::NONE, "keys are normal numbers");

// A node's entry in the event queue. It is stored among the node's ports (bp_ports).
using Ticket = bp_ticket;

}  // namespace bp
