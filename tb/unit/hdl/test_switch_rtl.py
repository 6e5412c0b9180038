"""The switch in RTL against the cell-level model and the rules of its docstring, on both datapaths."""

import dataclasses
import random
from fractions import Fraction
from itertools import pairwise

import pytest

from bentpipe_hdl.cell import NARROW, WIDE
from bentpipe_hdl.lookup_table import lookup_table
from bentpipe_hdl.switch.options import options_word
from bentpipe_hdl.switch.options.vp.control import paths_of
from bentpipe_hdl.switch.registers import REASON_BITS
from bentpipe_hdl.switch.switch import Switch
from models.aal5 import segment
from models.cell import Cell, Header, Interface
from models.gcra import VirtualScheduling
from models.policer import Bucket, Policer
from models.switch import Drop, Vc
from models.switch import Switch as Model
from unit.hdl.bench import WIDTHS, Arrival
from unit.hdl.bench import run_compiled as run

REASONS = (
    Drop.FULL, Drop.EPD, Drop.PPD, Drop.CLP, Drop.RESERVE, Drop.LIMIT, Drop.RED, Drop.UPC, Drop.FAIR, Drop.COPIES,
)  # fmt: skip
NONE = 0xFFFF


def small(width, cells=12, ports=3, vcs=8, options=0):
    return Switch(width=width, vcs=vcs, cells=cells, ports=ports, options=options)


async def configure(bench, model, periods, delay=1):
    """Write the model's settings to the switch; periods in ticks."""
    await bench.reset()
    await bench.set("capacity", model.capacity)
    await bench.set("user_capacity", min(model.user_capacity, NONE))
    await bench.set("epd_threshold", min(model.epd_threshold, NONE))
    await bench.set("clp_threshold", min(model.clp_threshold, NONE))
    await bench.set("processing_delay", delay)
    await bench.set("nni", sum(1 << port for port in model.nni))
    for port, period in enumerate(periods):
        await bench.set("period", round(period * 65536), port)
    for index, vc in enumerate(model.vcs):
        await write_policy(bench, index, vc)
        await bench.set("vc_header", vc.out_vpi << 16 | (0 if vc.vpc else vc.out_vci), index)
    await write_lookups(bench, model)


async def write_lookups(bench, model):
    vcs = bench.node.vcs
    came = [(index, vc) for index, vc in enumerate(model.vcs) if vc.in_port >= 0]
    entries = {(vc.in_port, vc.in_vpi, vc.in_vci): index for index, vc in came if not vc.vpc}
    await bench.apply(lookup_table(vcs, entries).write)
    if any(vc.vpc for vc in model.vcs):
        paths = {(vc.in_port, vc.in_vpi, 0): index for index, vc in came if vc.vpc}
        await bench.apply(lambda csr: lookup_table(paths_of(vcs), paths, vcs=vcs).write(csr, "vp_lookup"))


async def write_policy(bench, index, vc, *, enabled=True):
    own = vc.epd_threshold is not None
    word = min(vc.limit, NONE) | (vc.epd_threshold or 0) << 16 | vc.out_port << 32
    word |= vc.ppd << 36 | vc.epd << 37 | own << 38 | enabled << 39
    await bench.set("vc_policy", word, index)


async def compare_counters(bench, model, high_water):
    found, expected = {}, {}
    for port, drops in enumerate(model.port_drops):
        for k, reason in enumerate((Drop.UNKNOWN, Drop.HEC)):
            found[f"{reason.value} {port}"] = await bench.get(("unknown", "hec")[k], port)
            expected[f"{reason.value} {port}"] = drops[reason]
    for index, vc in enumerate(model.vcs):
        found[f"accepted {index}"] = await bench.get("accepted", index)
        expected[f"accepted {index}"] = vc.accepted
        found[f"departed {index}"] = await bench.get("departed", index)
        expected[f"departed {index}"] = vc.sent
        for k, reason in enumerate(REASONS):
            found[f"{reason.value} {index}"] = await bench.get("dropped", (index << REASON_BITS) + k)
            expected[f"{reason.value} {index}"] = vc.drops[reason]
    found["occupancy"], expected["occupancy"] = await bench.get("occupancy"), model.occupancy
    found["high water"], expected["high water"] = await bench.get("high_water"), high_water
    assert found == expected


class Judge:
    """Gives the model what the switch gets, and compares what leaves."""

    def __init__(self, bench, model):
        self.bench, self.model = bench, model
        self.left = 0
        self.waiting = []
        self.changes = []
        self.high_water = 0  # at the end of a tick: a cell that leaves makes room for one that comes
        self.told: list[tuple[int, int, int]] = []  # VC, reason and cells accepted before of each cell told as dropped
        self.dropped: list[tuple[int, int, int]] = []  # the same by the model
        bench.after_clock = self._listen

    def _listen(self):
        ctx, node = self.bench.ctx, self.bench.node
        if ctx.get(node.drop):
            self.told.append(tuple(ctx.get(port) for port in (node.drop_vc, node.drop_reason, node.drop_accepted)))

    async def tick(self, arrival=None):
        """One tick: the arrival is admitted first, then a cell may leave."""
        tick = self.bench.now
        self.waiting.append((tick, arrival))
        await self.bench.tick(arrival)
        # On the narrow datapath a departure is known a tick and some words later.
        self.settle(tick if self.bench.wide else tick - 3)

    async def change(self, index, **policy):
        """Change a VC's policy from the next tick on."""
        vc = self.model.vcs[index]
        self.changes.append((self.bench.now, vc, policy))
        await write_policy(self.bench, index, dataclasses.replace(vc, **policy))

    async def finish(self):
        for _ in range(4):
            await self.tick()
        self.model.check_conservation()

    def settle(self, until):
        while self.waiting and self.waiting[0][0] <= until:
            tick, arrival = self.waiting.pop(0)
            while self.changes and self.changes[0][0] <= tick:
                _, vc, policy = self.changes.pop(0)
                for name, value in policy.items():
                    setattr(vc, name, value)
            self.model.now = tick
            departures = [d for d in self.bench.came_out[self.left :] if d.tick == tick]
            assert len(departures) <= 1
            # A cell leaves in the tick after it came at the earliest: it is not among those of which one is chosen now
            levels = [self.model.scheduler.level(departure.port) for departure in departures]
            before = [dict(vc.drops) for vc in self.model.vcs]
            if arrival:
                self.model.arrive(arrival.port, arrival.cell.header, arrival.hec_error, arrival.cell)
            if arrival or self.model.copy():
                for index, vc in enumerate(self.model.vcs):
                    for k, reason in enumerate(REASONS):
                        if vc.drops[reason] != before[index].get(reason, 0):
                            self.dropped.append((index, k, vc.accepted))
            for departure, level in zip(departures, levels, strict=True):
                self.left += 1
                expected = self.model.depart(departure.port, level)
                assert expected, f"tick {tick}: a cell came out of port {departure.port}, whose queues are empty"
                header, index, cell = expected
                interface = self.model.interface(departure.port)
                assert departure.as_header(interface) == header, f"tick {tick}, VC {index}"
                assert departure.payload == cell.payload, f"tick {tick}, VC {index}"
                assert not departure.hec_error
            self.model.tick()
            self.high_water = max(self.high_water, self.model.occupancy)


def random_vcs(rng):
    vcs = []
    for k in range(8):
        policy = [(0, 0), (1, 0), (1, 0), (1, 0), (1, 1), (1, 1), (1, 1), (0, 1)][k]
        own = rng.choice([None, rng.randrange(1, 5)])
        vcs.append(
            Vc(k % 3, 16 * (k // 3), 32 + k, rng.randrange(3), rng.randrange(256), rng.randrange(65536),
               limit=rng.choice([2, 3, 6, NONE]), ppd=bool(policy[0]), epd=bool(policy[1]), epd_threshold=own)
        )  # fmt: skip
    return vcs


def random_cell(rng, model, frames):
    """A cell of the model's VCs, of no VC, or with a bad HEC; of user cells the next one of the VC's frame."""
    draw = rng.random()
    if draw < 0.04:
        return Arrival(Cell(Header(9, 99, 1), bytes(48)), rng.randrange(3))
    k = rng.choice([k for k, vc in enumerate(model.vcs) if vc.in_port >= 0])
    vc = model.vcs[k]
    interface = model.interface(vc.in_port)
    if draw < 0.12:
        header = Header(vc.in_vpi, vc.in_vci, rng.randrange(4, 8), rng.getrandbits(1), interface=interface)
        return Arrival(Cell(header, rng.randbytes(48)), vc.in_port)
    if not frames[k]:
        header = Header(vc.in_vpi, vc.in_vci, rng.choice([0, 2]), int(rng.random() < 0.2), interface=interface)
        frames[k] = segment(header, rng.randbytes(rng.choice([1, 40, 41, 100, 300])))
    return Arrival(frames[k].pop(0), vc.in_port, rng.random() < 0.03)


def random_traffic(width, seed, model, rng, *, options=0, prepare=None):
    """Random cells into a switch and the model, which agree on all that leaves, drops and counters."""

    async def test(bench):
        await configure(bench, model, [2.5, 4, 3.25])
        if prepare:
            await prepare(bench)
        judge = Judge(bench, model)
        frames = [[] for _ in range(8)]
        busy = True
        for step in range(600 if width == WIDE else 250):
            if step % 100 == 99:
                busy = not busy
            await judge.tick(random_cell(rng, model, frames) if rng.random() < (0.95 if busy else 0.4) else None)
        await judge.finish()
        if bench.wide:  # on the narrow datapath a cell may be on its way out
            await compare_counters(bench, model, judge.high_water)
        for _ in range(400 if model.copies else 80):
            await judge.tick()
        await judge.finish()
        assert model.occupancy == 0
        await compare_counters(bench, model, judge.high_water)
        assert judge.told == judge.dropped

    run(small(width, options=options), test, seed)
    return sum((vc.drops for vc in model.vcs), start=type(model.vcs[0].drops)())


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_random_traffic(width, seed):
    """Frames of eight VCs with all policies into a small buffer, OAM cells, unknown VCs and bad HECs between
    them: the same cells leave in the same order, every drop is told with its place, and every counter agrees."""
    rng = random.Random(seed)
    model = Model(
        random_vcs(rng), ports=3, capacity=rng.choice([9, 12]), user_capacity=(30, 8)[seed], epd_threshold=6,
        clp_threshold=(8, 6)[seed], nni=frozenset({2}),
    )  # fmt: skip
    seen = random_traffic(width, seed, model, rng)
    expected = set(REASONS[:5]) - ({Drop.RESERVE} if model.user_capacity > model.capacity else set())
    assert set(seen) >= expected, "the traffic did not provoke every reason"


@pytest.mark.parametrize("width", WIDTHS)
def test_random_traffic_of_policed_vcs(width):
    """The same with contracts for all VCs but one: policing comes before all else, and what it discards neither the
    buffer nor its frames see; what it tags has CLP=1 for the buffer as well."""
    rng = random.Random(f"policed {width}")
    vcs = random_vcs(rng)
    for k, vc in enumerate(vcs[1:]):
        sizes = [(Fraction(rng.randrange(5 << 16, 12 << 16), 65536), rng.randrange(60)) for _ in range(1 + k % 2)]
        buckets = [
            Bucket(VirtualScheduling(*size), clp0=rng.random() < 0.3, action=("tag", "discard")[k % 2])
            for size in sizes
        ]
        vc.policer = Policer(buckets, packets=k % 4 < 2)
    model = Model(vcs, ports=3, capacity=9, epd_threshold=6, clp_threshold=5, nni=frozenset({2}))

    async def prepare(bench):
        for index, vc in enumerate(vcs[1:], 1):
            for k, bucket in enumerate(vc.policer.buckets):
                await bench.set("police_limit", int(bucket.gcra.limit * 65536), 2 * index + k)
                flags = {
                    "tag": int(bucket.action == "tag"),
                    "clp0": int(bucket.clp0),
                    "packets": int(vc.policer.packets),
                }
                entry = {"increment": int(bucket.gcra.increment * 65536), "enabled": 1, **flags}
                await bench.set("police_rate", entry, 2 * index + k)

    seen = random_traffic(width, 1, model, rng, options=options_word(["police"]), prepare=prepare)
    assert set(seen) >= {Drop.UPC, Drop.CLP}
    assert sum(vc.policer.counts["tagged"] for vc in vcs[1:]) > 5


def through(width, test, *, period=4.0, delay=1, capacity=12):
    """Run ``test`` with a switch that has one VC from port 0 to port 1."""
    model = Model([Vc(0, 0, 32, 1, 1, 64)], ports=3, capacity=capacity)

    async def whole(bench):
        await configure(bench, model, [period] * 3, delay)
        await test(bench)

    run(small(width, cells=capacity), whole)


CELL = Arrival(Cell(Header(0, 32), bytes(range(48))))


@pytest.mark.parametrize("width", WIDTHS)
def test_rate_of_a_saturated_port(width):
    async def test(bench):
        for _ in range(120):
            await bench.tick(CELL)
        await bench.ticks(3)
        ticks = [d.tick for d in bench.came_out if d.tick < 103]
        # Period 3.75: cell k leaves at the first tick at or after 3.75 k, counted from the first one's due time.
        gaps = [b - a for a, b in pairwise(ticks)]
        assert set(gaps) == {3, 4}
        for k, tick in enumerate(ticks):
            assert abs(tick - ticks[0] - 3.75 * k) < 1, (k, tick)

    through(width, test, period=3.75)


@pytest.mark.parametrize("delay", [1, 2, 17])
@pytest.mark.parametrize("width", WIDTHS)
def test_processing_delay_of_an_idle_switch(width, delay):
    async def test(bench):
        await bench.ticks(3)
        arrived = bench.now
        await bench.tick(CELL)
        await bench.ticks(delay + 3)
        assert [d.tick - arrived for d in bench.came_out] == [delay]

    through(width, test, delay=delay)


@pytest.mark.parametrize("width", WIDTHS)
def test_idle_switch_may_be_skipped(width):
    """While the switch is idle with a cell due later, the ticks until then may be left out."""
    model = Model([Vc(0, 0, 32, 1, 1, 64)], ports=3, capacity=12)
    results = []
    for skips in (False, True):

        async def test(bench, skips=skips):
            await configure(bench, model, [30.5] * 3, 5)
            for _ in range(3):
                await bench.tick(CELL)
            while bench.now < 120:
                ctx, status = bench.ctx, bench.node.status
                if skips and ctx.get(status.idle) and ctx.get(status.due) > bench.now:
                    bench.skip(min(ctx.get(status.due), 120) - bench.now)
                await bench.tick()
            results.append(list(bench.came_out))

        run(small(width), test)
    assert results[0] == results[1]
    assert len(results[0]) == 3


@pytest.mark.parametrize("width", WIDTHS)
def test_high_water_starts_anew_when_written(width):
    async def test(bench):
        for _ in range(6):
            await bench.tick(CELL)
        await bench.ticks(60)
        before = await bench.get("high_water")
        await bench.write(7, 0)
        assert before > 0 == await bench.get("high_water")

    through(width, test)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_vpi_vci_that_the_look_up_does_not_have_is_an_unknown_vc(width):
    async def test(bench):
        for header in (Header(0, 33), Header(1, 32), Header(0, 32 + 16)):
            await bench.tick(Arrival(Cell(header, bytes(48))))
        await bench.tick(Arrival(CELL.cell, port=1))
        await bench.ticks(8)
        assert bench.came_out == []
        assert [await bench.get("unknown"), await bench.get("unknown", 1)] == [3, 1]

    through(width, test)


def test_nni_vpi_has_12_bits():
    model = Model([Vc(0, 0xABC, 32, 1, 0xDEF, 64)], ports=3, capacity=12, nni=frozenset({0, 1}))

    async def test(bench):
        await configure(bench, model, [1] * 3)
        await bench.tick(Arrival(Cell(Header(0xABC, 32, 1, interface=Interface.NNI), bytes(48))))
        await bench.tick(Arrival(Cell(Header(0xBC, 32, 1, interface=Interface.NNI), bytes(48))))
        await bench.ticks(4)
        (departure,) = bench.came_out
        assert departure.as_header(Interface.NNI) == Header(0xDEF, 64, 1, interface=Interface.NNI)

    run(small(WIDE), test)


@pytest.mark.parametrize(
    ("parameter", "value"),
    [("width", 64), ("vcs", 3), ("vcs", 8192), ("cells", 0), ("cells", 65536), ("ports", 17)],
)
def test_impossible_shapes(parameter, value):
    with pytest.raises(ValueError, match=f"{parameter} must be .* not {value}"):
        Switch(**{parameter: value})
