"""Which node is next: the first tick, and of several nodes that have it the first node, whatever their number."""

import subprocess

from bentpipe_sim.tools import CSRC, compiler

PROGRAM = """
#include "agenda.hpp"
#include <cstdio>
#include <memory>
#include <random>
using namespace bp;
static std::mt19937_64 rng(1);

// Runs of some length, between which work is set; in each node's turn it has other work, and others have theirs sooner.
template <class Run>
const char* check(size_t size, uint64_t span) {
    auto own = std::make_unique<Agenda>();
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
        Agenda& agenda = *own;
        for (int k = 0; k < 3; ++k) set(rng() % size, behind(now));
        for (size_t node = 0; node < size; ++node)
            if (agenda.due(tickets[node]) != ticks[node]) return "due";
        std::vector<bool> due(size);
        agenda.each_until(now + 1, [&](uint32_t node) { due[node] = true; });
        for (size_t node = 0; node < size; ++node)
            if (due[node] != (ticks[node] <= now + 1)) return "each_until";
        uint64_t stop = std::min(runs % 5 ? now + rng() % 300 : behind(now), NEVER - 1);
        Run run = agenda.run<Run>(stop);
        for (int turns = 0;; ++turns) {
            const uint64_t tick = run.tick();
            const size_t node = run.node();
            const size_t first = size_t(std::min_element(ticks.begin(), ticks.end()) - ticks.begin());
            if (node >= size) {
                if (!run.ends(node)) {
                    run.turn();
                    continue;
                }
                if (tick != stop || ticks[first] <= stop) return "end";
                run.leave(tick);
                break;
            }
            run.take();
            if (!run.due(tickets[node], tick)) continue;
            if (node != first || tick != ticks[first] || tick > stop) return "first";
            for (int others = int(rng() % 3); others; --others) {
                const size_t other = rng() % size;
                const uint64_t sooner = rng() % 4 ? tick + 1 : std::max(behind(tick), tick + 1);
                if (other == node) continue;
                run.sooner(tickets[other], sooner, tick);
                ticks[other] = std::min(ticks[other], sooner);
            }
            if (rng() % 50 == 0 || turns > 60) run.stop(stop = tick);
            ticks[node] = std::min(std::max(behind(tick), tick + 1), NEVER);
            run.taken(tickets[node], ticks[node], tick);
        }
        now = stop;
        if (runs % 50 == 49) {  // out, and into another
            Archive out;
            agenda.archive(out);
            const auto octets = out.taken();
            Archive in(octets.data(), octets.size());
            auto other = std::make_unique<Agenda>();
            std::vector<Ticket> others(size);
            for (Ticket& its : others) other->add(its);
            other->set(others[rng() % size], rng() % 100);
            other->run<Run>(0).leave(0);
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
            for (int times = 0; times < (size < 1000 ? 6 : 1); ++times) {
                const char* wrong = size > Few::MOST ? check<Many::Run>(size, span) : check<Few::Run>(size, span);
                if (wrong) return std::printf("%s: %zu nodes, %llu ticks\\n", wrong, size, (unsigned long long)span), 1;
            }
    Agenda idle;  // nothing is due until time ends
    std::vector<Ticket> tickets(Few::MOST + 1);
    for (Ticket& its : tickets) idle.add(its);
    Many::Run run = idle.run<Many::Run>(NEVER);
    if (run.tick() != NEVER || !run.ends(run.node())) return std::puts("end of time"), 1;
    return 0;
}
"""


def test_the_next_node_is_that_which_is_due_first(tmp_path):
    (tmp_path / "agenda.cpp").write_text(PROGRAM)
    program = str(tmp_path / "agenda")
    source = str(tmp_path / "agenda.cpp")
    subprocess.run([compiler(), "-std=gnu++17", "-O2", f"-I{CSRC}", source, "-o", program], check=True)
    done = subprocess.run([program], capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("", 0)
