"""Tests of which node is next: the first tick, of several nodes that have it the first node, whatever their number."""

import subprocess

from benches.programs import program_of

PROGRAM = """
#include "event_queue.hpp"
#include <cstdio>
#include <memory>
#include <random>
using namespace bp;
static std::mt19937_64 rng(1);

// Runs of some length, between which work is set; in each node's turn it has other work, and others have theirs sooner.
template <class Cursor>
const char* check(size_t size, uint64_t span) {
    auto own = std::make_unique<EventQueue>();
    std::vector<Ticket> tickets(size);
    std::vector<uint64_t> ticks(size, NEVER);
    const auto behind = [&](uint64_t now) {  // near, by the span, or never
        switch (rng() % 8) {
            case 0: return NEVER;
            case 1: return std::min(now + rng() % span, NEVER);
            case 2: return std::min(now + (rng() % 3 + 63), NEVER);
            case 3: return std::min((now | 63) + 1 + rng() % 2 * 4095, NEVER);
            default: return std::min(now + rng() % 20, NEVER);
        }
    };
    const auto set = [&](size_t node, uint64_t tick) { own->set(tickets[node], ticks[node] = tick); };
    for (size_t node = 0; node < size; ++node) {
        own->add(tickets[node]);
        if (node % 3 == 0) set(node, behind(0));  // before others are there
    }
    uint64_t now = 0;
    for (int runs = 0; runs < 150 && now < NEVER && (size < 1000 || runs < 52); ++runs) {
        EventQueue& queue = *own;
        for (int k = 0; k < 3; ++k) set(rng() % size, behind(now));
        for (size_t node = 0; node < size; ++node)
            if (queue.due(tickets[node]) != ticks[node]) return "due";
        uint64_t stop = std::min(runs % 5 ? now + rng() % 300 : behind(now), NEVER - 1);
        Cursor cursor = queue.cursor<Cursor>(stop);
        for (int turns = 0;; ++turns) {
            const uint64_t tick = cursor.tick();
            const size_t node = cursor.node();
            const size_t first = size_t(std::min_element(ticks.begin(), ticks.end()) - ticks.begin());
            if (node >= size) {
                if (!cursor.ends(node)) {
                    cursor.begin_block();
                    continue;
                }
                if (tick != stop || ticks[first] <= stop) return "end";
                cursor.finish(tick);
                break;
            }
            cursor.pop();
            if (!cursor.due(tickets[node], tick)) continue;
            if (node != first || tick != ticks[first] || tick > stop) return "first";
            for (int others = int(rng() % 3); others; --others) {
                const size_t other = rng() % size;
                const uint64_t sooner = rng() % 4 ? tick + 1 : std::max(behind(tick), tick + 1);
                if (other == node) continue;
                cursor.schedule_earlier(tickets[other], sooner, tick);
                ticks[other] = std::min(ticks[other], sooner);
            }
            if (rng() % 50 == 0 || turns > 60) cursor.stop(stop = tick);
            ticks[node] = std::min(std::max(behind(tick), tick + 1), NEVER);
            cursor.reschedule(tickets[node], ticks[node], tick);
        }
        now = stop;
        if (runs % 50 == 49) {  // out, and into another
            Archive out;
            queue.archive(out);
            const auto octets = out.taken();
            Archive in(octets.data(), octets.size());
            auto other = std::make_unique<EventQueue>();
            std::vector<Ticket> others(size);
            for (Ticket& ticket : others) other->add(ticket);
            other->set(others[rng() % size], rng() % 100);
            other->cursor<Cursor>(0).finish(0);
            other->archive(in);
            own.swap(other);
            tickets.swap(others);
        }
    }
    return nullptr;
}

int main() {
    for (size_t size : {1, 2, 7, 8, 9, 63, 64, 65, 128, 129, 300, 512, 513, 4097, 8200})
        for (uint64_t span : {uint64_t(3), uint64_t(100), uint64_t(5000), uint64_t(1000000), NEVER})
            for (int times = 0; times < (size < 1000 ? 3 : 1); ++times) {
                const char* wrong = size > SmallEventQueue::MOST ? check<TimingWheel::Cursor>(size, span)
                                                                 : check<SmallEventQueue::Cursor>(size, span);
                if (wrong) return std::printf("%s: %zu nodes, %llu ticks\\n", wrong, size, (unsigned long long)span), 1;
            }
    EventQueue idle;  // nothing is due until time ends
    std::vector<Ticket> tickets(SmallEventQueue::MOST + 1);
    for (Ticket& ticket : tickets) idle.add(ticket);
    TimingWheel::Cursor cursor = idle.cursor<TimingWheel::Cursor>(NEVER);
    if (cursor.tick() != NEVER || !cursor.ends(cursor.node())) return std::puts("end of time"), 1;
    return 0;
}
"""


def test_the_next_node_is_that_which_is_due_first():
    program = program_of("event-queue", PROGRAM, flags=("-O3",))  # runs in half the time of -O1
    done = subprocess.run([program], capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("", 0)
