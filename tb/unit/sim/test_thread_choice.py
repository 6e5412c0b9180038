"""The choice between one thread and several costs little on each machine, beside the better way."""

import subprocess

import pytest

from benches.programs import program_of

PROGRAM = """
#include "thread_choice.hpp"
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
using namespace bp;
// The time of 2000 stretches in that of one thread, after the first 100; one thread takes 1 for each.
int main(int, char** arguments) {
    const std::string machine = arguments[1];
    std::mt19937_64 rng(std::strtoull(arguments[2], nullptr, 0));
    std::uniform_real_distribution<double> any(0, 1);
    ThreadChoice choice(2);
    double spent = 0;
    for (int k = 0; k < 2100; ++k) {
        const size_t threads = choice.next();
        double took = 0;
        if (machine == "quiet") took = threads == 1 ? 1 : 0.5;
        if (machine == "slow") took = threads == 1 ? 1 : 1.5;
        if (machine == "even") took = (threads == 1 ? 1 : 0.97) * (0.9 + 0.2 * any(rng));
        // A thread loses its core now and then, and two wait for each other.
        if (machine == "busy") took = 0.5 + (any(rng) < 0.5) * (threads == 1 ? 1 : 8);
        if (machine == "changes") took = threads == 1 ? 1 : k / 500 % 2 ? 3 : 0.5;
        choice.took(took * 1e-6);
        if (k >= 100) spent += took;
    }
    std::printf("%f\\n", spent / 2000);
}
"""


@pytest.mark.parametrize(
    ("machine", "most"),
    [("quiet", 0.55), ("slow", 1.05), ("even", 1.01), ("busy", 1.1), ("changes", 0.8)],
)
def test_what_the_choice_costs(machine: str, most: float) -> None:
    program = program_of("thread_choice", PROGRAM)
    found = [float(subprocess.check_output([program, machine, str(seed)])) for seed in range(20)]
    assert sum(found) / len(found) <= most
    assert max(found) <= most + 0.15
