"""The loss ledger counts more than 2^32 cells of a VC whose interface makes them, from counters of 32 bits."""

import subprocess

from benches.programs import program_of
from bentpipe_sim.tools import CSRC

PROGRAM = """
#include "ledger.hpp"
#include <cstdio>
using namespace bp;

struct Counters final : CellCounts {
    uint64_t sent = 0, wire = 0;
    uint32_t read(int, uint32_t) override { return uint32_t(sent); }
    uint64_t on_wire(int, int, uint32_t, uint32_t) override { return wire; }
};

int main() {
    Counters counters;
    Ledger ledger(counters);
    const uint32_t key = 40, mask = 0xFFFFFF;
    const Ledger::Hop hops[] = {{Ledger::NIC, 0, -1, 3, key, mask, 0, 1, 0, 0},
                                {Ledger::LINK, 1, 0, 0, key, mask, 0, 0, 0, 0},
                                {Ledger::NIC, 2, 0, 5, key, mask, 0, 1, 0, 0}};
    ledger.nodes(3);
    ledger.add(hops, 3);
    ledger.without_pdus(0);
    uint64_t lost = 0;
    for (int step = 0; step < 40; ++step) {
        counters.sent += 1000000007;  // 4 * 10^10 in all
        counters.wire = 5;
        if (step % 3 == 2) {  // a link takes one out
            counters.wire = 0;
            Ledger::Change change{key << 4, key << 4, false, false, true, WHY_OUTAGE, 0, 0};
            if (ledger.read_counters(1, change)) ledger.changed(1, change);
            ++lost;
        }
        ledger.advance();
        if (step == 20) {
            Archive out;
            out(ledger);
            const auto octets = out.taken();
            Archive in(octets.data(), octets.size());
            in(ledger);
        }
        uint64_t counted = 0;
        for (const auto& [cause, cells] : ledger.causes(0).lost) counted += cells.all;
        if (ledger.sent(0) != counters.sent) return std::printf("step %d: sent\\n", step), 1;
        if (counted != lost) return std::printf("step %d: lost\\n", step), 2;
        std::printf("%llu %llu\\n", (unsigned long long)ledger.sent(0), (unsigned long long)ledger.received(0));
    }
    return 0;
}
"""


def test_a_vc_counts_past_32_bits():
    program = program_of("ledger-numbers", PROGRAM, CSRC / "ledger.cpp")
    done = subprocess.run([str(program)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    sent, received = map(int, done.stdout.splitlines()[-1].split())
    assert sent == 40 * 1_000_000_007 > 9 << 32
    assert received == sent - 13 - 2 * 5  # lost ones, and those on both wires
