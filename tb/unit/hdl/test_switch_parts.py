"""Parts of the switch by themselves, on both datapaths."""

import random
from functools import partial

import pytest
from amaranth.hdl import Fragment, Module, Signal
from amaranth.lib import data
from amaranth.sim import Simulator

from bentpipe_hdl.cell import CLOCKS_A_TICK, WIDE
from bentpipe_hdl.part_harness import PartHarness
from bentpipe_hdl.switch.core.admission import Admission, FullBuffer, Stage, Verdict
from bentpipe_hdl.switch.core.counters import Changes, Counters
from bentpipe_hdl.switch.core.port_rate_scheduler import COMMIT, PortRateScheduler
from bentpipe_hdl.switch.core.round_robin import RoundRobin
from bentpipe_hdl.switch.core.vc_table import DEPARTURE, VcField
from bentpipe_hdl.switch.options import OPTIONS
from bentpipe_hdl.switch.registers import REASON_BITS, REASONS
from bentpipe_hdl.switch.switch import Switch
from unit.hdl.bench import WIDTHS, run_part


class Ticks:
    """Lets ticks pass."""

    def __init__(self, ctx, node):
        self.ctx, self.node, self.now = ctx, node, 0

    async def tick(self, look=None, **strobes):
        """A tick. In the clock at whose end it commits, the part's ``strobes`` have these values (and 0 otherwise), and
        what ``look`` gives is returned."""
        ctx, node = self.ctx, self.node
        ctx.set(node.time.now, self.now)
        if hasattr(node, "now"):
            ctx.set(node.now, self.now)
        ctx.set(node.time.tick, 1)
        found = None
        for clock in range(1 if node.width == WIDE else CLOCKS_A_TICK):
            commits = node.width == WIDE or clock == COMMIT
            for name, value in strobes.items():
                ctx.set(getattr(node, name), value if commits else 0)
            if look and commits:
                await ctx.delay(1e-7)
                found = look()
            await ctx.tick()
            ctx.set(node.time.tick, 0)
        for name in strobes:
            ctx.set(getattr(node, name), 0)
        self.now += 1
        return found


def run(width, make, test):
    """Compiled if ``make`` is a class with its parameters, as it pays for long tests and where several share it; else
    in Amaranth's simulator."""
    if isinstance(make, partial):
        run_part(make, width, COMMIT, lambda ctx, node: test(ctx, node, Ticks(ctx, node)))
        return
    node = PartHarness(make, width=width, commit=COMMIT)

    async def bench(ctx):
        await test(ctx, node, Ticks(ctx, node))

    whole = Module()
    whole.submodules.node = node
    whole.d.sync += Signal(name="clocked").eq(1)  # a part may have no registers
    simulator = Simulator(whole)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


# Admission


class EveryOther(Stage):
    """Tags every other cell of a VC from two queued on, tells of congestion from three on, and drops from four on."""

    reason = "clp"
    fields = (VcField("odd", 1, "state"),)

    def decide(self, m, slot, cell):
        m.d.comb += cell.new_state.odd.eq(~cell.state.odd)
        return Verdict(cell.length >= 4, tag=(cell.length >= 2) & cell.state.odd, mark=cell.length >= 3)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_stage_drops_tags_and_tells_of_congestion_with_a_state_of_its_own(width):
    stages = FullBuffer(Signal(4, init=8)), EveryOther()
    state = data.StructLayout({field.name: field.shape for field in Admission.fields(stages)})

    async def test(ctx, part, ticks):
        ctx.set(part.arrives, 1)
        ctx.set(part.policy.limit, 6)
        for length, odd, clp, pti, expected in (
            (1, 1, 0, 0, (0, 0, 0, 0, 0, 0)),
            (2, 0, 0, 0, (0, 0, 0, 0, 0, 0)),
            (2, 1, 0, 0, (0, 0, 1, 0, 1, 0)),
            (2, 1, 1, 0, (0, 0, 1, 0, 0, 0)),  # it was tagged before
            (3, 1, 0, 0, (0, 0, 1, 0b010, 1, 1)),
            (3, 0, 0, 2, (0, 0, 0, 0b010, 0, 0)),  # it was marked before
            (3, 0, 0, 5, (0, 0, 0, 5, 0, 0)),  # of an OAM cell the bits mean something else
            (4, 0, 0, 1, (1, REASONS.index("clp"), 0, 0b011, 0, 1)),
            (6, 0, 0, 0, (1, REASONS.index("full"), 0, 0b010, 0, 1)),  # the first stage that objects gives the reason
        ):
            ctx.set(part.clp, clp)
            ctx.set(part.length, length)
            ctx.set(part.state.odd, odd)
            ctx.set(part.pti, pti)
            outputs = (
                part.drop, part.reason, part.new_clp, part.new_pti, part.tagged, part.marked, part.new_state.odd
            )  # fmt: skip
            found = await ticks.tick(lambda outputs=outputs: tuple(ctx.get(output) for output in outputs))
            drop, reason, *rest = expected
            assert found[:1] + found[2:] == (drop, *rest, 1 - odd)
            assert not drop or found[1] == reason

    run(width, lambda slot: Admission(slot, vcs=4, count_bits=4, state=state, stages=stages), test)


# Scheduler and port clocks


@pytest.mark.parametrize("width", WIDTHS)
def test_a_round_is_served_in_the_order_of_joining(width):
    async def test(ctx, part, ticks):
        served = []
        ctx.set(part.port, 1)
        ctx.set(part.rejoin_port, 1)
        ctx.set(part.join_port, 1)

        async def tick(join=None, **strobes):
            ctx.set(part.join_vc, join or 0)
            vc = await ticks.tick(lambda: ctx.get(part.vc), join=join is not None, **strobes)
            if strobes:
                served.append(vc)

        for vc in (3, 1, 2):
            await tick(vc)
        assert ctx.get(part.busy) == 0b10
        await tick(serve=1, rejoin=1)
        await tick(join=0, serve=1, rejoin=1)  # 0 goes before the one that joins again
        for _ in range(4):
            await tick(serve=1, rejoin=0)
        assert served == [3, 1, 2, 3, 0, 1]
        assert ctx.get(part.busy) == 0

    run(width, lambda slot: RoundRobin(slot, vcs=4, ports=2, at=DEPARTURE - 2), test)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_port_that_always_has_cells_keeps_its_period(width):
    async def test(ctx, part, ticks):
        ctx.set(part.period[0], round(2.5 * 65536))
        ctx.set(part.period[1], 4 * 65536)
        ctx.set(part.delay, 3)
        for p, busy in enumerate((0b01, 0b11)):  # one begins, then the other: no cell before three ticks from then on
            ctx.set(part.join_port, p)
            ctx.set(part.still_busy, busy)
            await ticks.tick(changes=1, begins=1 << p)
            ctx.set(part.busy, busy)
        sent = []
        for _ in range(40):
            now = ticks.now
            serves, port = await ticks.tick(lambda: (ctx.get(part.serve), ctx.get(part.port)), changes=1)
            if serves:
                sent.append((now, port))
        for p, period in enumerate((2.5, 4)):
            found = [now for now, port in sent if port == p]
            due = [int(3 + p + period * k) for k in range(len(found))]
            assert len(found) >= 37 // period
            assert all(0 <= now - tick <= 1 for now, tick in zip(found, due, strict=True))  # the other port's turn

    run(width, lambda slot: PortRateScheduler(slot, ports=2), test)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_port_that_begins_again_before_its_period_is_over_waits_for_it(width):
    async def test(ctx, part, ticks):
        ctx.set(part.period[0], 10 * 65536)
        ctx.set(part.delay, 1)
        sent = []
        ctx.set(part.still_busy, 1)
        await ticks.tick(changes=1, begins=1)
        ctx.set(part.busy, 1)
        ctx.set(part.still_busy, 0)
        assert await ticks.tick(lambda: ctx.get(part.serve), changes=1)  # in tick 1: the next may go in tick 11
        ctx.set(part.busy, 0)
        await ticks.tick()
        ctx.set(part.still_busy, 1)
        await ticks.tick(changes=1, begins=1)
        ctx.set(part.busy, 1)
        while not sent:
            if await ticks.tick(lambda: ctx.get(part.serve), changes=0):
                sent.append(ticks.now - 1)
        assert sent == [11]

    run(width, lambda slot: PortRateScheduler(slot, ports=1), test)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("periods", [(10, 2), (2, 10)])
def test_a_cell_at_a_new_rate_ends_behind_the_one_before(width, periods):
    """The port's period changes while it is idle and its cell is still being sent: the next one waits for the end."""

    async def test(ctx, part, ticks):
        sent = []
        ctx.set(part.delay, 1)
        for period in periods:
            ctx.set(part.period[0], period * 65536)
            ctx.set(part.still_busy, 1)
            await ticks.tick(changes=1, begins=1)
            ctx.set(part.busy, 1)
            ctx.set(part.still_busy, 0)
            while not await ticks.tick(lambda: ctx.get(part.serve), changes=1):
                pass
            sent.append((ticks.now - 1, ctx.get(part.end)))
            ctx.set(part.busy, 0)
        first, second = periods
        assert sent == [(1, 1 + first), (1 + first, 1 + first + second)]

    run(width, lambda slot: PortRateScheduler(slot, ports=1), test)


class Clocks:
    """Return the clocks of the switch's ports. Each may send at its ``next`` (ticks, 16 fraction bits) or later, and
    moves on by its period from there, 64 ticks back at most, when its cell ends. A port that begins does so after the
    delay, unless its next is later, and not 2**24 ticks.
    """

    def __init__(self, periods, delay):
        self.periods, self.delay = periods, delay
        self.next, self.busy, self.last = [0] * len(periods), set(), len(periods)
        self.end = 0

    def port(self, now):
        """Return which port sends: the first one behind the port that sent last."""
        ready = [p for p in sorted(self.busy) if self.next[p] >> 16 <= now]
        return min(ready, key=lambda p: (p <= self.last, p), default=None)

    def tick(self, now, port, begins, busy):
        if port is not None:
            base = self.next[port] if now - (self.next[port] >> 16) <= 64 else now - 64 << 16
            self.next[port], self.last = base + self.periods[port], port
            self.end = self.next[port] >> 16
        for p in begins:
            ahead = (self.next[p] >> 16) - now
            if ahead < self.delay or ahead >= 1 << 24:
                self.next[p] = now + self.delay << 16
        self.busy = busy

    def due(self):
        return min((self.next[p] >> 16 for p in self.busy), default=(1 << 48) - 1)


@pytest.mark.parametrize("width", WIDTHS)
def test_ports_take_turns_by_their_clocks_whatever_begins_and_ends(width):
    rng = random.Random(5)

    async def test(ctx, part, ticks):
        model = Clocks([rng.randrange(1 << 16, 9 << 16) for _ in range(4)], 3)
        ctx.set(part.delay, model.delay)
        for p, period in enumerate(model.periods):
            ctx.set(part.period[p], period)
        seen = set()
        for _ in range(1500):
            load = 0.1 if ticks.now % 300 < 200 else 0.6  # one or two busy ports, or all
            port = model.port(ticks.now)
            joined = {p for p in rng.sample(range(4), 1) if rng.random() < load}
            moved = {p for p in rng.sample(range(4), 1) if port is not None and rng.random() < load}
            kept = set(model.busy)
            if port not in moved and rng.random() > 0.6 * load + 0.3:
                kept.discard(port)
            begins, busy = (joined | moved) - kept, kept | joined | moved
            for name, ports in (("join_port", joined), ("rejoin_port", moved)):
                ctx.set(getattr(part, name), next(iter(ports), 0))
            ctx.set(part.busy, bits(model.busy))
            ctx.set(part.still_busy, bits(busy))
            found = await ticks.tick(
                lambda: (ctx.get(part.serve), ctx.get(part.port)),
                changes=port is not None or bool(joined), begins=bits(begins),
            )  # fmt: skip
            assert found == (1, port) if port is not None else not found[0], ticks.now - 1
            model.tick(ticks.now - 1, port, begins, busy)
            ctx.set(part.busy, bits(busy))
            if port is not None:
                assert ctx.get(part.end) == model.end
            if width == WIDE:
                assert ctx.get(part.due) == model.due()
            seen.add((port in begins, len(model.busy), len(begins)))
        assert {(True, 4, 2), (False, 1, 1), (False, 0, 0), (True, 2, 1)} <= seen

    run(width, partial(PortRateScheduler, ports=4), test)


def bits(ports):
    return sum(1 << p for p in ports)


# Counters


@pytest.mark.parametrize("width", WIDTHS)
def test_drops_are_counted_by_vc_and_reason(width):
    async def test(ctx, part, ticks):
        for vc, reason in ((1, 0), (1, 2), (3, 0), (1, 2)):
            ctx.set(part.vc, vc)
            ctx.set(part.reason, reason)
            await ticks.tick(lost=1)
        for port, bad in ((1, 0), (0, 1), (1, 0)):
            ctx.set(part.port, port)
            ctx.set(part.hec_error, bad)
            await ticks.tick(stray=1)
        found = {}
        for index in range(4 << REASON_BITS):
            ctx.set(part.dropped_index, index)
            await ctx.tick()
            found[divmod(index, 1 << REASON_BITS)] = ctx.get(part.dropped)
        assert {at: count for at, count in found.items() if count} == {(1, 0): 1, (1, 2): 2, (3, 0): 1}
        found = []
        for port in range(2):
            ctx.set(part.unknown_port, port)
            ctx.set(part.hec_port, port)
            await ctx.tick()
            found.append((ctx.get(part.unknown), ctx.get(part.hec)))
        assert found == [(0, 1), (2, 0)]

    run(width, lambda slot: Counters(slot, vcs=4, ports=2), test)


@pytest.mark.parametrize("width", WIDTHS)
def test_cells_tagged_and_marked_are_counted_by_vc_if_they_are_queued(width):
    async def test(ctx, part, ticks):
        for vc, queued, tagged, marked in ((1, 1, 1, 0), (1, 1, 1, 1), (3, 0, 1, 1), (1, 1, 0, 0), (2, 1, 0, 1)):
            ctx.set(part.vc, vc)
            ctx.set(part.tagged, tagged)
            ctx.set(part.marked, marked)
            await ticks.tick(queued=queued)
        found = []
        for vc in range(4):
            ctx.set(part.tagged_vc, vc)
            ctx.set(part.marked_vc, vc)
            await ctx.tick()
            found.append((ctx.get(part.tags), ctx.get(part.marks)))
        assert found == [(0, 0), (2, 1), (0, 1), (0, 0)]

    run(width, lambda slot: Changes(slot, vcs=4), test)


# Options


@pytest.mark.parametrize("width", WIDTHS)
def test_all_options_together_elaborate_with_the_most_ports(width):
    """In time that grows with the ports, not with a power of them."""
    Fragment.get(Switch(width=width, vcs=4, cells=4, ports=16, options=(1 << len(OPTIONS)) - 1), None)
