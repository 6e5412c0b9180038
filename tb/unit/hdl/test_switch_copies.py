"""Point-to-multipoint VCs through the switch, on both datapaths: against the model, and at the limits."""

import random
from fractions import Fraction

import pytest
from amaranth.hdl import ResetInserter, Signal
from amaranth.sim import Simulator

from bentpipe_hdl.switch.options import options_word
from bentpipe_hdl.switch.options.copies.replicator import CELLS
from bentpipe_hdl.switch.switch import Switch
from models.cell import Cell, Header
from models.copies import Copies
from models.gcra import VirtualScheduling
from models.policer import Bucket, Policer
from models.switch import Drop, Vc
from models.switch import Switch as Model
from unit.hdl.bench import WIDTHS, Arrival, Bench
from unit.hdl.bench import run_compiled as run
from unit.hdl.test_switch_rtl import (
    Judge,
    compare_counters,
    configure,
    random_traffic,
    random_vcs,
    small,
    write_policy,
)

CHAINS = {0: 5, 5: 6, 1: 7, 4: 4}
"""Two leaves, one, and a VC that is its own."""


def of_chains(rng, chains=CHAINS, **more):
    """The model of a switch whose last three VCs get copies alone."""
    vcs = random_vcs(rng)
    for vc in vcs[5:]:
        vc.in_port = -1
    return Model(vcs, ports=3, capacity=12, epd_threshold=6, nni=frozenset({2}), copies=Copies(8, CELLS), **more)


def writes(model, chains=CHAINS):
    async def prepare(bench):
        for vc, after in chains.items():
            model.copies.write(vc, after)
            await bench.set("vc_copies", after | 8, vc)
        model.copies.tick()
        await bench.tick()

    return prepare


@pytest.mark.parametrize("width", WIDTHS)
def test_random_traffic(width):
    """Frames of VCs with and without leaves with all policies into a small buffer: the same cells leave in the same
    order as in the model, each drop is for its reason, every counter agrees."""
    rng = random.Random("copies")
    model = of_chains(rng)
    seen = random_traffic(width, 1, model, rng, options=options_word(["copies"]), prepare=writes(model))
    assert set(seen) >= {Drop.FULL, Drop.PPD, Drop.COPIES}
    assert min(vc.sent for vc in model.vcs[5:]) > 5 and model.copies.endless


@pytest.mark.parametrize("width", WIDTHS)
def test_random_traffic_of_policed_roots(width):
    """The root's contract holds for all: what it discards isn't copied, what it tags is copied tagged."""
    rng = random.Random("policed copies")
    model = of_chains(rng, clp_threshold=5)
    for vc, action in ((0, "tag"), (1, "discard")):
        bucket = Bucket(VirtualScheduling(Fraction(rng.randrange(5 << 16, 12 << 16), 65536), 20), action=action)
        model.vcs[vc].policer = Policer([bucket], packets=True)

    async def prepare(bench):
        await writes(model)(bench)
        for index in (0, 1):
            bucket = model.vcs[index].policer.buckets[0]
            await bench.set("police_limit", int(bucket.gcra.limit * 65536), 2 * index)
            flags = {"tag": int(bucket.action == "tag"), "packets": 1}
            entry = {"increment": int(bucket.gcra.increment * 65536), "enabled": 1, **flags}
            await bench.set("police_rate", entry, 2 * index)

    seen = random_traffic(width, 2, model, rng, options=options_word(["copies", "police"]), prepare=prepare)
    assert set(seen) >= {Drop.UPC, Drop.COPIES, Drop.CLP}
    assert sum(model.vcs[leaf].drops[Drop.CLP] for leaf in (5, 6)), "no tagged copy met the threshold"


def simple(chains, ports=3):
    """Eight VCs without limits; those that nobody is chained to come in at ports of their own, with VCI 32 and on."""
    leaves = set(chains.values())
    vcs = [Vc(-1 if k in leaves else k % ports, 0, 32 + k, k % ports, 1, 64 + k, ppd=True) for k in range(8)]
    return Model(vcs, ports=ports, capacity=12, copies=Copies(8, CELLS))


def cell_of(model, k, number):
    vc = model.vcs[k]
    return Arrival(Cell(Header(0, vc.in_vci, pti=int(number % 5 == 4)), bytes([k, number]) * 24), vc.in_port)


@pytest.mark.parametrize("width", WIDTHS)
def test_sixteen_ports_that_leave_no_tick(width):
    """A chain of all VCs but one, and a cell in every tick: the root's are refused but for those that the FIFO has room
    for, and nobody else notices. When the ports fall silent, all that waited is copied."""
    chains = {k: k + 1 for k in range(6)}
    model = simple(chains, ports=16)
    node = Switch(width=width, vcs=8, cells=12, ports=16, options=options_word(["copies"]))

    async def test(bench):
        await configure(bench, model, [16] * 16)
        await writes(model, chains)(bench)
        judge = Judge(bench, model)
        for step in range(120):
            await judge.tick(cell_of(model, (0, 7)[step % 2], step // 2))
        await judge.finish()
        assert await bench.get("copies_waiting") == CELLS
        for _ in range(CELLS * 6 + 200):
            await judge.tick()
        await judge.finish()
        await compare_counters(bench, model, judge.high_water)
        assert await bench.get("injected") == await bench.get("copies_made") == model.copies.made == CELLS * 6

    run(node, test)
    assert model.vcs[0].drops[Drop.COPIES] == 60 - CELLS and not model.vcs[7].drops[Drop.COPIES]


@pytest.mark.parametrize("width", WIDTHS)
def test_reset_forgets_what_waits(width):
    model, node, reset = simple({0: 5}), small(width, options=options_word(["copies"])), Signal()

    async def test(ctx):
        bench = Bench(ctx, node)
        await configure(bench, model, [4] * 3)
        await writes(model, {0: 5})(bench)
        for k in range(10):
            await bench.tick(cell_of(model, 0, k))
        assert await bench.get("copies_waiting") == 10
        ctx.set(reset, 1)
        await ctx.tick()
        ctx.set(reset, 0)
        await configure(bench, model, [4] * 3)
        assert [await bench.get(f"copies_{name}") for name in ("waiting", "made", "endless")] == [0, 0, 0]
        bench.came_out.clear()
        bench.skip(1000)
        await bench.tick(cell_of(model, 0, 99))
        await bench.ticks(12)
        assert [departure.payload[1] for departure in bench.came_out] == [99]  # no chain, and nothing of before

    simulator = Simulator(ResetInserter(reset)(node))
    simulator.add_clock(1e-6)
    simulator.add_testbench(test)
    simulator.run()


@pytest.mark.parametrize("width", WIDTHS)
def test_a_copy_for_a_vc_that_has_ended_is_of_an_unknown_one(width):
    model = simple({0: 5, 5: 6})

    async def test(bench):
        await configure(bench, model, [4] * 3)
        await writes(model, {0: 5, 5: 6})(bench)
        await bench.tick(cell_of(model, 0, 1))
        await write_policy(bench, 5, model.vcs[5], enabled=False)
        await bench.ticks(12)
        assert [await bench.get("accepted", vc) for vc in (0, 5, 6)] == [1, 0, 1]
        assert [await bench.get("unknown", port) for port in range(3)] == [1, 0, 0]

    run(small(width, options=options_word(["copies"])), test)
