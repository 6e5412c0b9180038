"""The parts of a NIC alone, on both datapaths: tournament, line's clock, pacer, segmenter, reassembler, timer."""

import random
from collections import defaultdict
from functools import partial

import pytest

from benches.simulator import Simulator
from bentpipe_hdl.aal5.reassembler import Reassembler
from bentpipe_hdl.aal5.segmenter import Segmenter
from bentpipe_hdl.aal5.timer import ReassemblyTimer
from bentpipe_hdl.cell import NEVER, WIDE
from bentpipe_hdl.part_harness import PartHarness
from bentpipe_hdl.traffic.pacer import LineClock, Pacer
from bentpipe_hdl.traffic.tournament import KEY_BITS, Tournament
from bentpipe_sim.interface import PduStatus
from models import aal5
from models.cell import Header
from models.gcra import VirtualScheduling
from unit.hdl.bench import WIDTHS, run_part

COMMIT = 11


class Part:
    """A part in the simulator. ``tick`` lets a tick pass: ``early`` is called when inputs of the tick's start have
    settled, ``late`` with its commit (narrow: in clocks 2 and 11)."""

    def __init__(self, ctx, node):
        self.ctx, self.node, self.now = ctx, node, 100
        self.wide = node.width == WIDE
        self.after_clock = lambda: None
        self.clock_inputs = lambda clock: None

    def get(self, name):
        value = getattr(self.node, name)
        return self.ctx.get(value.as_value() if hasattr(value, "as_value") else value)

    def set(self, **values):
        for name, value in values.items():
            signal = getattr(self.node, name)
            self.ctx.set(signal.as_value() if hasattr(signal, "as_value") else signal, value)

    async def clock(self):
        await self.ctx.tick()
        self.after_clock()

    async def clear(self, entries):
        self.set(clearing=1)
        for k in range(entries):
            self.set(clear=k)
            await self.clock()
        self.set(clearing=0)

    async def tick(self, early=lambda: None, late=lambda: None):
        set_time = self.node.time
        self.ctx.set(set_time.now, self.now)
        for clock in range(1 if self.wide else 13):
            self.ctx.set(set_time.tick, clock == 0)
            self.clock_inputs(clock)
            if self.wide or clock in (2, COMMIT):
                await self.ctx.delay(1e-8)
                if self.wide or clock == 2:
                    early()
                    await self.ctx.delay(1e-8)
                if self.wide or clock == COMMIT:
                    late()
            await self.clock()
        self.ctx.set(set_time.tick, 0)
        self.now += 1


def run(make, width, test):
    """Compiled if ``make`` is a class with its parameters, as it pays where several tests share it; else in Amaranth's
    simulator."""
    if isinstance(make, partial):
        run_part(make, width, COMMIT, lambda ctx, node: test(Part(ctx, node)))
        return
    node = PartHarness(make, width=width, commit=COMMIT)

    async def bench(ctx):
        await test(Part(ctx, node))

    simulator = Simulator(node)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


# The tournament


def fights(width, vcs, changes):
    """The root after each change: (valid, VC, key)."""
    roots = []

    async def test(part):
        await part.clear(2 * vcs)
        for vc, valid, key in changes:
            part.set(vc=vc, valid=valid, key=key, change=1)
            await part.tick(late=lambda: roots.append(root(part)))
            part.set(change=0)

    def root(part):
        value = part.get("root")
        return value >> KEY_BITS + bits, value >> KEY_BITS & (1 << bits) - 1, value & (1 << KEY_BITS) - 1

    bits = (vcs - 1).bit_length()
    run(lambda slot: Tournament(slot, vcs=vcs), width, test)
    return roots


@pytest.mark.parametrize("vcs", [2, 4, 64, 128, 256, 1024])
def test_the_least_key_wins_and_ties_end_alike(vcs):
    """Keys around the end of their range, many of them equal; VCs come, move and leave. Up to 64 VCs play a level a
    clock, 128 and 256 two."""
    rng = random.Random(vcs)
    keys, changes, least = {}, [], []
    base = (1 << KEY_BITS) - 40
    for _ in range(150):
        vc = rng.randrange(vcs)
        key = base + rng.randrange(20)
        if vc in keys and rng.random() < 0.4:
            del keys[vc]
            changes.append((vc, 0, key % (1 << KEY_BITS)))
        else:
            keys[vc] = key
            changes.append((vc, 1, key % (1 << KEY_BITS)))
        least.append(dict(keys))
        base += rng.randrange(3)
    wide, narrow = (fights(width, vcs, changes) for width in WIDTHS)
    for (valid, vc, key), there in zip(wide, least, strict=True):
        assert valid == bool(there)
        if there:
            first = min(there.values())
            assert key == first % (1 << KEY_BITS)
            assert there[vc] == first
    assert [r if r[0] else (0,) for r in narrow] == [r if r[0] else (0,) for r in wide]


# The line's clock


@pytest.mark.parametrize("width", WIDTHS)
def test_a_line_takes_a_cell_a_period(width):
    """A line of 2.75 ticks a cell that always has one to send, and one that pauses."""
    period = 2.75

    async def test(part):
        part.set(period=int(period * 65536), starts=1)
        await part.tick()
        part.set(starts=0)
        sent, told, ends = [], [], []

        def early():
            wants = not 140 <= part.now < 160
            part.set(sends=part.get("free") and wants)
            if part.get("free") and wants:
                sent.append(part.now)

        while part.now < 200:
            await part.tick(early, lambda: told.append((part.now, part.get("soonest"))))
            ends += [part.get("end")] * (len(sent) - len(ends))
        gcra = VirtualScheduling(period, 0.999)  # a cell goes in the tick in which it is due
        assert all(gcra.conforms(tick) for tick in sent)
        assert len([tick for tick in sent if tick < 140]) == pytest.approx(39 / period, abs=1)
        assert 160 in sent
        before = [tick for tick in sent if tick < 140]  # back to back: the next begins as one ends
        assert ends[: len(before) - 1] == before[1:]
        assert ends[sent.index(160)] == 160 + int(period)
        for now, soonest in told:
            following = min((tick for tick in sent if tick > now), default=None)
            if following and not 137 <= now < 160:
                assert soonest == following
            assert soonest > now

    run(LineClock, width, test)


# The pacer


def paced(width, *, vcs=4, line=1.5, periods=(3.5, 5.25, 1.5, 40), tolerance=2, ticks=400, seed=1):
    """``(tick, VC)`` of the cells that are sent, and what was posted: PDUs of random lengths, as they come."""
    sent, log = [], []

    async def test(part):
        rng = random.Random(seed)
        await part.clear(2 * vcs)
        part.set(line_period=int(line * 65536), tolerance=tolerance)
        for vc, period in enumerate(periods):
            part.set(period_index=vc, period=int(period * 65536), period_en=1)
            await part.clock()
        part.set(period_en=0)
        left, offered = {}, None
        while part.now < 100 + ticks:
            idle = [vc for vc in range(vcs) if vc not in left]
            if offered is None and idle and rng.random() < 0.3:
                offered = rng.choice(idle), rng.randrange(1, 12)
            part.set(post=offered is not None, post_fits=1, post_vc=offered[0] if offered else rng.randrange(vcs))

            def early():
                part.set(last=part.get("sends") and left[part.get("vc")] == 1)

            def late():
                nonlocal offered
                vc = part.get("vc")
                assert not (part.get("sends") and part.get("posts"))
                if part.get("sends"):
                    sent.append((part.now, vc))
                    left[vc] -= 1
                    if not left[vc]:
                        del left[vc]
                elif part.get("posts"):
                    assert part.get("accepts")
                    assert vc == offered[0]
                    left[vc], offered = offered[1], None
                    log.append((part.now, vc))

            await part.tick(early, late)
            log.append(part.get("due"))

    run(lambda slot: Pacer(slot, vcs=vcs), width, test)
    return sent, log


def test_cells_conform_to_their_rates_at_both_widths_alike():
    periods = (3.5, 5.25, 1.5, 40)
    wide, narrow = (paced(width, periods=periods) for width in WIDTHS)
    assert wide == narrow
    sent, _ = wide
    assert len(sent) > 150
    for vc, period in enumerate(periods):
        ticks = [tick for tick, number in sent if number == vc]
        gcra = VirtualScheduling(period, 2 + 1)
        assert ticks
        assert all(gcra.conforms(tick) for tick in ticks), vc
    line = VirtualScheduling(1.5, 0.999)
    assert all(line.conforms(tick) for tick, _ in sent)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_post_for_a_busy_vc_is_not_accepted(width):
    async def test(part):
        await part.clear(8)
        part.set(line_period=20 << 16, post=1, post_vc=1, post_fits=1)
        seen = []
        for fits in (0, 1, 1):
            part.set(post_fits=fits)
            await part.tick(late=lambda: seen.append((part.get("posts"), part.get("accepts"))))
        assert seen[:2] == [(1, 0), (1, 1)]
        assert seen[2] in ((1, 0), (0, 0))  # its first cell may be sent in this tick
        assert part.get("due") != NEVER

    run(lambda slot: Pacer(slot, vcs=4), width, test)


# The segmenter


@pytest.mark.parametrize("width", WIDTHS)
def test_pdus_become_the_cells_of_the_model(width):
    vcs = 4
    headers = [int(Header(vc, 40 + vc)) for vc in range(vcs)]

    async def test(part):
        rng = random.Random(5)
        await part.clear(vcs)
        for vc in range(vcs):
            part.set(header_index=vc, header=headers[vc], header_en=1)
            await part.clock()
        part.set(header_en=0)
        left, expected, supply, cells, words = {}, defaultdict(list), [], defaultdict(list), []
        count, told, wanted = defaultdict(int), [], []

        def listen():
            o, get = part.node.o, part.ctx.get
            if part.wide:
                if get(o.valid) and part.now != heard[-1]:
                    heard.append(part.now)
                    header = get(o.header.as_value())
                    cells[header & ~0xE].append((header, get(o.payload).to_bytes(48, "little")))
                return
            if words and len(words) == 13:
                header = words.pop(0)
                cells[header & ~0xE].append((header, b"".join(word.to_bytes(4, "little") for word in words)))
                words.clear()
            if get(o.valid):
                words.append(get(o.word))

        heard = [0]
        taking = False

        def feed(clock):
            nonlocal taking
            if not part.wide:
                if taking:
                    supply.pop(0)
                taking = bool(part.ctx.get(part.node.word_next))
                part.set(word=supply[0] if supply else rng.getrandbits(32))

        part.clock_inputs, part.after_clock = feed, listen
        for _ in range(260):
            vc = rng.randrange(vcs)
            part.set(vc=vc, sends=0, changes=0)
            sends = vc in left and rng.random() < 0.8
            if sends:
                octets, at = left[vc]
                block = octets[at : at + 48]
                block += rng.randbytes(48 - len(block))
                last = at + 48 >= len(octets) + 8
                wanted.append(last)
                left[vc] = octets, at + 48
                if last:
                    del left[vc]
                count[vc] += 1
                part.set(sends=1, changes=1)
                if part.wide:
                    part.set(block=int.from_bytes(block, "little"))
                else:
                    supply += [int.from_bytes(block[k : k + 4], "little") for k in range(0, 48, 4)]
            elif vc not in left and rng.random() < 0.8:
                octets, uu, cpi = rng.randbytes(rng.choice([1, 39, 40, 41, 47, 48, 49, 150])), 3, rng.randrange(256)
                left[vc] = octets, 0
                expected[headers[vc]] += aal5.segment(Header(vc, 40 + vc), octets, uu, cpi)
                part.set(changes=1, length=len(octets), uu=uu, cpi=cpi)
            await part.tick(late=lambda sends=sends: told.append(part.get("last")) if sends else None)
            part.set(sends=0, changes=0)
        for _ in range(2):
            await part.tick()
        assert told == wanted
        for vc in range(vcs):
            sent = cells[headers[vc]]
            assert len(sent) > 10
            assert sent == [(int(cell.header), cell.payload) for cell in expected[headers[vc]]][: len(sent)]
            assert len(sent) == count[vc]
            part.set(count_index=vc)
            await part.clock()
            assert part.get("count") == count[vc]

    run(lambda slot: Segmenter(slot, width=width, vcs=vcs), width, test)


# The reassembler


@pytest.mark.parametrize("width", WIDTHS)
def test_cells_become_the_pdus_of_the_model(width):
    vcs, limit = 4, 5
    names = [(vc, 40 + vc) for vc in range(vcs)]

    async def test(part):
        rng = random.Random(6)
        await part.clear(8 * vcs)
        for vc in range(vcs):
            part.set(limit_index=vc, limit=limit, limit_en=1)
            await part.clock()
        part.set(limit_en=0)
        model = aal5.Reassembler(dict.fromkeys(names, 48 * limit - 8))
        expected, got = [], []

        def listen():
            o, get = part.node.o, part.ctx.get
            if get(o.last):
                got.append((get(o.vc), PduStatus(get(o.status).value), get(o.length)))

        part.after_clock = listen
        waiting = defaultdict(list)
        for _ in range(350):
            vc = rng.randrange(vcs)
            if not waiting[vc]:
                cells = aal5.segment(Header(*names[vc]), rng.randbytes(rng.choice([1, 40, 88, 150, 300])), 1, 2)
                if rng.random() < 0.2:
                    del cells[rng.randrange(len(cells))]
                waiting[vc] = cells
                continue
            cell = waiting[vc].pop(0)
            ended = model.receive(cell)
            if ended:
                expected.append((vc, ended[1].status))
            i, ctx = part.node.i, part.ctx
            data = [int(cell.header), *(int.from_bytes(cell.payload[k : k + 4], "little") for k in range(0, 48, 4))]

            def words(clock, i=i, ctx=ctx, cell=cell, data=data):
                ctx.set(i.valid, 1)
                if part.wide:
                    ctx.set(i.header.as_value(), int(cell.header))
                    ctx.set(i.payload, int.from_bytes(cell.payload, "little"))
                else:
                    ctx.set(i.soc, clock == 0)
                    ctx.set(i.word, data[clock])

            part.clock_inputs = words
            part.set(arrives=1, header=int(cell.header), known=1, vc=vc, bad=0)
            await part.tick()
            part.clock_inputs = lambda clock: None
            ctx.set(i.valid, 0)
            part.set(arrives=0)
            if rng.random() < 0.2:
                await part.tick()
        await part.tick()
        await part.tick()
        assert [entry[:2] for entry in got] == expected
        assert len({status for _, status in expected}) >= 4
        for vc in range(vcs):
            for verdict in range(6):
                part.set(pdus_index=vc << 3 | verdict)
                await part.clock()
                assert part.get("pdus") == sum(entry == (vc, verdict) for entry in expected)

    run(lambda slot: Reassembler(slot, width=width, vcs=vcs), width, test)


# The reassembly timer


@pytest.mark.parametrize("arrives", [0, 1])
@pytest.mark.parametrize("width", WIDTHS)
def test_the_timer_visits_while_a_pdu_is_open_and_gives_it_up_in_a_tick_without_a_cell(width, arrives):
    """A PDU of VC 2, begun at tick 100, with a time-out of 64 ticks: four VCs are visited in turn, every 4 ticks."""

    async def test(part):
        part.set(timeout=64)
        for _ in range(0 if part.wide else 2):  # registers on the narrow datapath
            await part.clock()
        assert part.get("due") == NEVER
        part.set(vc=2, tick=100, current=1)
        part.clock_inputs = lambda clock: part.set(begins=clock == 0, opens=clock == 0)
        await part.tick()
        part.clock_inputs = lambda clock: None
        part.set(begins=0, opens=0)
        visited, given_up = [], []

        def look():
            if part.get("visits"):
                visited.append((part.now, part.get("visited")))
            if part.get("gives_up"):
                given_up.append((part.now, part.get("visited"), part.get("expires")))

        while part.now < 200 and not given_up:
            part.set(open=part.get("visited") == 2, arrives=arrives and part.now < 178)
            await part.tick(late=look)
        assert given_up == [(178 if arrives else 176, 2, 1)]
        assert visited[: len(range(104, 176, 4))] == [(104 + 4 * k, k % 4) for k in range(18)]
        await part.tick()
        assert part.get("due") == NEVER

    run(lambda slot: ReassemblyTimer(slot, vcs=4), width, test)
