"""Cells of a wire come out in the order in which they went in, however many there are and whatever is taken out."""

import subprocess

from benches.programs import program_of

PROGRAM = """
#include "wire.hpp"
#include <cstdio>
#include <deque>
#include <random>
using namespace bp;
int main() {
    std::mt19937_64 rng(1);
    const uint64_t spans[] = {2, 5, 9, 70};
    for (uint64_t span : spans) {
        Wire wire;
        std::deque<uint64_t> ticks;
        uint64_t most = 0;
        for (uint64_t step = 0; step < 20000; ++step) {
            const uint64_t what = rng() % 16;
            if (what < 8 && ticks.size() < span) {
                wire.push_back().tick = step;
                ticks.push_back(step);
            } else if (what < 13 && !ticks.empty()) {
                wire.pop_front();
                ticks.pop_front();
            } else if (what == 13 && !ticks.empty()) {
                wire.pop_back();
                ticks.pop_back();
            } else if (what == 14 && ticks.size() > 1) {
                const uint64_t k = rng() % ticks.size();
                wire.erase(k);
                ticks.erase(ticks.begin() + long(k));
            } else if (what == 15) {
                Archive out;
                out(wire);
                const std::vector<uint8_t> octets = out.taken();
                Archive in(octets.data(), octets.size());
                Wire other;
                for (uint64_t k = rng() % 7; k; --k) other.push_back();
                in(other);
                for (uint64_t k = 0; k < ticks.size(); ++k)
                    if (other[k].tick != ticks[k]) return 5;
                if (other.size() != ticks.size() || other.most() != wire.most()) return 6;
            }
            most = std::max<uint64_t>(most, ticks.size());
            if (wire.size() != ticks.size() || wire.empty() != ticks.empty() || wire.most() != most) return 1;
            for (uint64_t k = 0; k < ticks.size(); ++k)
                if (wire[k].tick != ticks[k]) return std::printf("step %d\\n", int(step)), 2;
            if (!ticks.empty() && (wire.front().tick != ticks.front() || wire.back().tick != ticks.back())) return 3;
            const CellInFlight* second = wire.second();
            if (ticks.size() > 1 ? second->tick != ticks[1] : second != nullptr) return 4;
        }
    }
    return 0;
}
"""


def test_cells_keep_their_order():
    program = program_of("ring", PROGRAM, flags=("-fsanitize=address,undefined",))
    assert subprocess.run([program]).returncode == 0
