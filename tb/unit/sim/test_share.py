"""Threads share parts evenly, and a turn leaves each thread some time before it waits for another one."""

from __future__ import annotations

import itertools
import random
import subprocess
from collections.abc import Iterator
from fractions import Fraction

import pytest

from benches.programs import program_of

PROGRAM = """
#include "share.hpp"
#include <cstdio>
using namespace bp;
// From stdin: threads, the number of parts, of each its nodes, the number of dependences, each as part, on, ahead.
int main() {
    unsigned long threads, count;
    if (std::scanf("%lu %lu", &threads, &count) != 2) return 1;
    std::vector<uint64_t> nodes(count);
    for (auto& each : nodes) if (std::scanf("%lu", &each) != 1) return 1;
    if (std::scanf("%lu", &count) != 1) return 1;
    std::vector<bp_dependence> dependences(count);
    for (auto& each : dependences) if (std::scanf("%u %u %lu", &each.part, &each.on, &each.ahead) != 3) return 1;
    const Share found = Sharing(nodes, dependences).among(threads);
    for (size_t each : found.first) std::printf("%zu ", each);
    std::printf("\\n");
    for (uint64_t each : found.turn) std::printf("%ld ", each == Sharing::ANY ? -1L : long(each));
}
"""

Dependence = tuple[int, int, int]


def shared(threads: int, nodes: list[int], dependences: list[Dependence]) -> tuple[list[int], list[int]]:
    numbers = [threads, len(nodes), *nodes, len(dependences), *itertools.chain(*dependences)]
    program = program_of("share", PROGRAM)
    text = subprocess.run([program], input=" ".join(map(str, numbers)), text=True, capture_output=True, check=True)
    first, turn = text.stdout.split("\n")
    return list(map(int, first.split())), list(map(int, turn.split()))


def circles(dependences: list[Dependence], count: int) -> Iterator[list[Dependence]]:
    """Yield each circle that passes no part twice, from its part with the lowest number on."""

    def follow(path: list[Dependence], first: int) -> Iterator[list[Dependence]]:
        for each in dependences:
            part, on, _ = each
            if on != (path[-1][0] if path else first):
                continue
            if part == first:
                yield [*path, each]
            elif part > first and part not in {step[0] for step in path}:
                yield from follow([*path, each], first)

    for first in range(count):
        yield from follow([], first)


def turns_of(first: list[int], dependences: list[Dependence], count: int) -> list[int]:
    """Return the turns by a look at each circle: three quarters of what a round can get on by."""
    thread = [max(t for t in range(len(first) - 1) if first[t] <= part) for part in range(count)]
    group = list(range(count))
    for _ in range(count):
        for part, on, _ in dependences:
            group[part] = group[on] = min(group[part], group[on])
    rounds: dict[int, Fraction] = {}
    for circle in circles(dependences, count):
        waits = sum(thread[part] != thread[on] or on > part for part, on, _ in circle)
        pace = Fraction(sum(ahead for *_, ahead in circle), waits)
        key = group[circle[0][0]]
        rounds[key] = min(pace, rounds.get(key, pace))
    whole = {key: int(pace) for key, pace in rounds.items()}
    return [max(1, whole[g] - whole[g] // 4) if g in whole else -1 for g in group]


@pytest.mark.parametrize("seed", range(40))
def test_turns_on_random_networks(seed: int) -> None:
    rng = random.Random(seed)
    count, threads = rng.randint(2, 6), rng.randint(2, 4)
    pairs = [pair for pair in itertools.permutations(range(count), 2) if rng.random() < 0.3]
    dependences = [(part, on, rng.choice((1, 7, 29, 227, 5652, 113_030))) for part, on in pairs]
    first, turn = shared(threads, [1] * count, dependences)
    assert turn == turns_of(first, dependences, count)


def test_turns_of_a_ring() -> None:
    """Sixteen parts have wires of 227 ticks, and two of them lead to the other thread: a round gets on by 1,816."""
    ring = [(k, (k - 1) % 16, 227) for k in range(16)]
    first, turn = shared(2, [8] * 7 + [4] + [8] * 7 + [4], ring)
    assert first == [0, 8, 16]
    assert turn == [1362] * 16
    assert shared(1, [8] * 16, ring) == ([0, 16], [16_000] * 16)
    assert shared(2, [6] * 20, []) == ([0, 10, 20], [-1] * 20)


@pytest.mark.parametrize("seed", range(10))
def test_shares_have_about_as_many_nodes(seed: int) -> None:
    """A border lies as near to its place as parts allow, and each thread has one if there are so many."""
    rng = random.Random(seed)
    nodes = [rng.randint(1, 9) for _ in range(rng.randint(2, 30))]
    before = list(itertools.accumulate(nodes, initial=0))
    for threads in (2, 3, 5, 16):
        first, _ = shared(threads, nodes, [])
        assert first == sorted(first) and (first[0], first[-1]) == (0, len(nodes))
        each_has_one = len(nodes) >= threads
        for thread, (last, border) in enumerate(itertools.pairwise(first), 1):
            place = before[-1] * thread // threads
            free = before[last + 1 : len(nodes) - threads + thread + 1] if each_has_one else before
            assert abs(before[border] - place) == min(abs(each - place) for each in free)
        assert len(nodes) < threads or len(set(first)) == threads + 1


def test_each_thread_has_a_part() -> None:
    assert shared(4, [100, 1, 1, 1], [])[0] == [0, 1, 2, 3, 4]
    assert shared(4, [1, 1, 1, 100], [])[0] == [0, 1, 2, 3, 4]
    assert shared(3, [8, 8], [])[0][-1] == 2


def test_many_parts_take_no_time() -> None:
    """A ring of 12,500 parts: with passes over all parts for each of them it would take minutes."""
    ring = [(k, (k - 1) % 12_500, 227) for k in range(12_500)]
    assert shared(16, [8] * 12_500, ring)[1] == [133_008] * 12_500
