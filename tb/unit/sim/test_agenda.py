"""Which node is next: the first tick, and of several nodes that have it the first node, whatever their number."""

import subprocess

from bentpipe_sim.tools import CSRC, compiler

PROGRAM = """
#include "agenda.hpp"
#include <cstdio>
#include <random>
using namespace bp;
int main() {
    std::mt19937_64 rng(1);
    const size_t sizes[] = {1, 2, 7, 8, 9, 63, 64, 65, 128, 129, 300, 513, 1025};
    const uint64_t spans[] = {3, 1000, NEVER};
    for (size_t size : sizes)
        for (uint64_t span : spans) {
            Agenda agenda;
            for (size_t k = 0; k < size; ++k) agenda.add();
            std::vector<uint64_t> ticks(size, NEVER);
            uint64_t end = NEVER;
            for (int step = 0; step < 3000; ++step) {
                size_t first = 0;
                for (size_t k = 0; k < size; ++k)
                    if (ticks[k] < ticks[first]) first = k;
                if (step % 7 == 2) {
                    end = std::min(rng() % (2 * span), NEVER);
                    if (size > 8) agenda.stop<false>(end);
                    else agenda.stop<true>(end);
                    if (agenda.stops() != end) return 3;
                }
                const uint64_t key = agenda.first;
                const bool none = ticks[first] == NEVER, ends = end < ticks[first];
                const bool is = Agenda::tick(key) == ticks[first] && Agenda::node(key) == first;
                const bool is_end = Agenda::tick(key) == end && Agenda::node(key) == size;
                if (!(ends ? is_end : none ? Agenda::tick(key) >= NEVER : is))
                    return std::printf("%zu nodes, step %d\\n", size, step), 1;
                const size_t node = step % 3 ? first : rng() % size;
                if (step % 5 == 1) {
                    const uint64_t tick = std::min(rng() % (2 * span), NEVER);
                    ticks[node] = std::min(ticks[node], tick);
                    if (size > 8) agenda.set_sooner<false>(agenda.ticket(uint32_t(node)), tick, agenda.first);
                    else agenda.set_sooner<true>(agenda.ticket(uint32_t(node)), tick, agenda.first);
                    continue;
                }
                if (step % 11 == 3 && !none && !ends) {
                    agenda.first = size > 8 ? agenda.take<false>(key) : agenda.take<true>(key);
                    ticks[first] = NEVER;
                    if (step % 3) continue;
                    ticks[first] = std::min(rng() % (2 * span), NEVER);
                    if (size > 8) agenda.set_taken<false>(agenda.ticket(uint32_t(first)), ticks[first], agenda.first);
                    else agenda.set_taken<true>(agenda.ticket(uint32_t(first)), ticks[first], agenda.first);
                    continue;
                }
                ticks[node] = step % 17 ? ticks[node] % span + rng() % span : NEVER;
                if (ticks[node] > NEVER) ticks[node] = NEVER;
                agenda.set(agenda.ticket(uint32_t(node)), ticks[node]);
                if (Agenda::tick_of(agenda.ticket(uint32_t(node))) != ticks[node]) return 2;
            }
        }
    return 0;
}
"""


def test_the_next_node_is_that_which_is_due_first(tmp_path):
    (tmp_path / "agenda.cpp").write_text(PROGRAM)
    program = str(tmp_path / "agenda")
    source = str(tmp_path / "agenda.cpp")
    subprocess.run([compiler(), "-std=gnu++17", "-O1", f"-I{CSRC}", source, "-o", program], check=True)
    assert subprocess.run([program]).returncode == 0
