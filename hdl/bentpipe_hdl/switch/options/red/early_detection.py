"""Random early detection on frames: the average of what is queued for a port, and which frames it refuses."""

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

from bentpipe_hdl.cell import TIME_BITS
from bentpipe_hdl.link.gap import xorshift
from bentpipe_hdl.switch.core.admission import Stage, Verdict
from bentpipe_hdl.switch.options.queue_limit.stage import QueueLimit
from bentpipe_hdl.switch.options.red.control import (
    DECAY_FRACTION,
    LEVEL_FRACTION,
    PROBABILITY_BITS,
    RATE_FRACTION,
    TOTAL_FRACTION,
)
from bentpipe_hdl.tick_schedule import TickSchedule

__all__ = ["EarlyDetection", "RandomEarlyDetection"]

COUNT_BITS = 16
"""Width of the number of frames queued for a port."""

AVERAGE_FRACTION = 20
AVERAGE_BITS = COUNT_BITS + AVERAGE_FRACTION

SINCE_BITS = 24
"""Width of the count of frames since the last refused one; the count saturates."""

IDLE_BITS = 32
"""Width of the idle time of a port in ticks, up to 12 minutes; the time saturates."""

TOTAL_BITS = 48
"""Width of a sum of averages."""

ONE = 1 << PROBABILITY_BITS

_STEP = 256

_POWERS = [round(ONE * 2 ** (-i / _STEP)) for i in range(_STEP + 1)]
"""Powers of 1/2, between which is interpolated: to 1e-6 of them."""

PORT = 9
"""Narrow: the clock from which the port of the cell that arrives is there."""

DECAYED = 8
"""Narrow: the clock from which an average after an idle time is there."""

Levels = data.StructLayout({"low": 32, "high": 32})
Weights = data.StructLayout({"keep": PROBABILITY_BITS, "slope": PROBABILITY_BITS + 1})
Idle = data.StructLayout({"rate": 32, "decay": 32})
"""A port's thresholds, 16 fraction bits; what the average keeps of itself, and the rise of ``p`` a frame; packets a
tick, and how often a packet halves the average: :func:`~.options.red.red_words`."""


class EarlyDetection(Stage):
    """The stage that refuses frames for it; ``limit`` is the stage that does for the port's limit, if there is one."""

    reason = "red"

    def __init__(self, detection: "RandomEarlyDetection", limit: QueueLimit | None = None):
        self._detection, self._limit = detection, limit

    def decide(self, m, slot, cell):
        detection = self._detection
        m.d.comb += detection.first.eq(cell.starts)
        if self._limit is not None:
            m.d.comb += detection.limited.eq(self._limit.refuses)
        return Verdict(cell.starts & detection.drop)


class RandomEarlyDetection(wiring.Component):
    """Random early detection (Floyd and Jacobson 1993), as ns-2 has it, for the ports that have it: the average of the
    frames that are queued for a port, and whether a frame that begins now is to be refused.

    **The average.** With every frame that begins, ``average += weight * (frames - average)``, before it is judged. If
    the port was idle, with no cell queued, so many packets of a typical time as fit into that time count too, as if
    each had found the queue empty: ``average *= (1 - weight) ** m``, with ``m = floor(idle * rate)``. Nothing happens
    while the port is idle: the power is made when a frame ends it. What the port was idle for counts from its last
    cell's departure, or from the last frame that began with the port idle; idle time that ends with another cell than a
    frame's first does not count.

    **The verdict.** Below ``low``, or with fewer than two frames queued, no frame is refused, and the average is below
    its range. From ``high`` on each is. Between them the first frame passes after the average was below; each further
    one is refused with a probability that makes the numbers of frames between two refused ones uniform: with ``p =
    slope * (average - low)`` and ``count`` frames since the last refused one (this one included), ``p / (2 - count *
    p)``, and 0 while ``count * p`` is below 1 (``waits``); or ``p / (1 - count * p)`` (not); 1 where there is no
    such probability. A frame that the limit of the queue refuses begins ``count`` anew, too.

    The average has 20 fraction bits, rounded to the nearest. It is within ``(2**-21 + spread * 2**-25) / weight`` of
    the exact one, with ``spread`` the largest difference of queue and average.

    On the narrow datapath the verdicts on the frame that may come next are made during a tick, before its port is
    known: for the port to which the last cell arrived, and for that from which the last one left. Settings that are
    written while frames are queued there hold from the port's next cell on.

    Parameters
    ----------
    slot : TickSchedule
    ports, count_bits : int
        Ports, and bits of the counts of what is queued for each, 16 at most.

    Members
    -------
    now : In
    enabled, waits : In
        A bit a port.
    levels_port, levels, levels_en; weights_port, weights, weights_en; idle_port, idle, idle_en : In
        Software writes a port's settings,
    seed_port, seed, seed_en : In
        and the state of its generator (not 0).
    cells0 …, frames0 … : In
        What is queued for each port.
    port : In
        That of the cell which comes. Narrow: from clock 9 on.
    comes, first, limited : In
        The cell is judged now; it is the first of a frame; the limit of its port's queue refuses it.
    enqueue, dequeue, out_port : In
        It is queued now; a cell leaves that was queued for this port.
    drop : Out
        A frame that begins with the cell is to be refused. Wide: only with ``comes`` and ``first``.
    average0, average1 … : Out
        With 20 fraction bits.
    judged0, refused0, total0 … : Out
        Frames that found a cell queued for the port, those of them that were refused, modulo 2**32; and the sum of the
        averages with which they were judged, with 8 fraction bits, modulo 2**48.
    """

    def __init__(self, slot: TickSchedule, *, ports: int, count_bits: int = COUNT_BITS):
        self._slot, self._ports = slot, ports
        port = range(max(ports, 2))
        super().__init__(
            {
                "now": In(TIME_BITS),
                "enabled": In(ports),
                "waits": In(ports),
                "levels_port": In(port),
                "levels": In(Levels),
                "levels_en": In(1),
                "weights_port": In(port),
                "weights": In(Weights),
                "weights_en": In(1),
                "idle_port": In(port),
                "idle": In(Idle),
                "idle_en": In(1),
                "seed_port": In(port),
                "seed": In(64),
                "seed_en": In(1),
                "cells": In(count_bits).array(ports),
                "frames": In(count_bits).array(ports),
                "port": In(port),
                "comes": In(1),
                "first": In(1),
                "limited": In(1),
                "enqueue": In(1),
                "dequeue": In(1),
                "out_port": In(port),
                "drop": Out(1),
                "average": Out(AVERAGE_BITS).array(ports),
                "judged": Out(32).array(ports),
                "refused": Out(32).array(ports),
                "total": Out(TOTAL_BITS).array(ports),
            }
        )

    def attach(self, m, csr, path):
        """Connect the registers, the queues, arrivals and departures."""
        m.d.comb += [
            self.now.eq(path.now),
            *(one.eq(count) for one, count in zip(self.cells, path.core.port_queues.cells, strict=True)),
            *(one.eq(count) for one, count in zip(self.frames, path.core.port_queues.last_cells, strict=True)),
            self.port.eq(path.arriving.policy.port),
            self.comes.eq(path.arriving.passes),
            self.enqueue.eq(path.arriving.enqueue),
            self.dequeue.eq(path.leaving.dequeue),
            self.out_port.eq(path.core.buffer.next_port),
        ]
        m.d.comb += [self.enabled.eq(csr.register("red_enabled")), self.waits.eq(csr.register("red_waits"))]
        for name in ("levels", "weights", "idle"):
            index, word, written = csr.write_port(f"red_{name}")
            m.d.comb += [
                getattr(self, f"{name}_port").eq(index),
                Value.cast(getattr(self, name)).eq(word),
                getattr(self, f"{name}_en").eq(written),
            ]
        index, word, written = csr.write_port("red_seed")
        m.d.comb += [self.seed_port.eq(index), self.seed.eq(word), self.seed_en.eq(written)]
        csr.status("red_average", *(average[AVERAGE_FRACTION - LEVEL_FRACTION :] for average in self.average))
        csr.status("red_judged", *self.judged)
        csr.status("red_refused", *self.refused)
        csr.status("red_total", *(total[:32] for total in self.total))
        csr.status("red_total_high", *(total[32:] for total in self.total))

    def elaborate(self, platform):
        m = Module()
        slot, ports = self._slot.within(m), self._ports
        slot.with_commit(self.comes, self.enqueue, self.dequeue)
        self._averages = Array(self.average)
        # Frames since the last one that was refused, that which comes included
        self._counts = Array(Signal(SINCE_BITS, init=1, name=f"count{p}") for p in range(ports))
        self._inside = Signal(ports)  # the average was above the lower threshold when the last frame began
        rows = max(ports, 2)
        self._levels = slot.store("levels", Levels, rows)
        self._weights = slot.store("weights", Weights, rows)
        self._idles = slot.store("idles", Idle, rows)
        self._draws = slot.store("draws", 64, rows)
        self._since = slot.store("since", TIME_BITS, rows)  # when the port's last cell left
        self._levels.write(self.levels_port, self.levels, self.levels_en)
        self._weights.write(self.weights_port, self.weights, self.weights_en)
        self._idles.write(self.idle_port, self.idle, self.idle_en)

        counts = Signal()  # a frame begins at a port with RED
        with m.If(self.comes), m.If(self.first):
            m.d.comb += counts.eq(self.enabled.bit_select(self.port, 1))
        slot.with_commit(counts)
        (self._wide if slot.wide else self._narrow)(m, slot, counts)
        return m

    # What both datapaths do

    def _judged(self, m, counts, *, above, over, hit, average, draw, idle, keeps):
        """Decide whether a frame that begins is refused, and update count and average.

        The average does not change if ``keeps``.
        """
        port, limited = self.port, self.limited
        inside = Signal()
        refused = Signal()
        m.d.comb += [
            inside.eq(self._inside.bit_select(port, 1)),
            refused.eq(self.enabled.bit_select(port, 1) & above & (over | (inside & hit))),
            self.drop.eq(refused),
        ]
        here = Signal(self._ports)
        count = self._counts[port]
        with m.If(counts):
            m.d.comb += here.eq(1 << port)
            with m.If(refused | limited):
                m.d.sync += count.eq(1)
            with m.Elif(above & ~inside):
                m.d.sync += count.eq(2)
            with m.Elif(~count.all()):
                m.d.sync += count.eq(count + 1)
            with m.If(above):
                with m.If(~over):
                    m.d.sync += self._inside.eq(self._inside | here)
            with m.Else():
                m.d.sync += self._inside.eq(self._inside & ~here)
            with m.If(~keeps):
                m.d.sync += self._averages[port].eq(average)
            with m.If(~idle):
                judged, total = Array(self.judged)[port], Array(self.total)[port]
                m.d.sync += [
                    judged.eq(judged + 1),
                    total.eq(total + average[AVERAGE_FRACTION - TOTAL_FRACTION :]),
                ]
                with m.If(refused):
                    m.d.sync += Array(self.refused)[port].eq(Array(self.refused)[port] + 1)
        self._draws.write(port, xorshift(draw), counts)
        self._draws.write(self.seed_port, self.seed, self.seed_en)

    def _idle_since(self, m, counts, idle):
        """Record the start of a port's idle time, as its last cell leaves; a frame that ends the idle time restarts
        it."""
        left = Signal()
        with m.If(self.dequeue):
            m.d.comb += left.eq(Array(self.cells)[self.out_port] == 1)
        arrives = Signal()
        with m.If(left), m.If(self.enqueue):
            m.d.comb += arrives.eq(self.port == self.out_port)
        self._since.write(self.out_port, self.now, left & ~arrives)
        self._since.write(self.port, self.now, counts & idle)

    def _elapsed(self, since):
        """Return the time in ticks since then, limited to the width of the result."""
        elapsed = (self.now - since)[:TIME_BITS]
        return Mux(elapsed[IDLE_BITS:].any(), Const(-1, IDLE_BITS), elapsed[:IDLE_BITS])

    def _decayed(self, m, slot, average, elapsed, settings):
        """Return the average after an idle time and the frame that ends it, ``DECAYED`` clocks later (narrow)."""
        packets = slot.product(elapsed, settings.rate, "idle_packets", since=0)[RATE_FRACTION:][:IDLE_BITS]
        packets = slot.pipe((packets + 1)[:IDLE_BITS], "idle_packets_and_one")
        decay = settings.decay
        halvings = Signal(IDLE_BITS + len(decay))
        m.d.comb += halvings.eq(slot.product(packets, decay, "halvings"))
        fraction = halvings[:DECAY_FRACTION]
        low_bits = DECAY_FRACTION - 8
        layout = data.StructLayout({"power": PROBABILITY_BITS + 1, "fall": 16})
        init = [{"power": _POWERS[i], "fall": _POWERS[i] - _POWERS[i + 1]} for i in range(_STEP)]
        m.submodules.powers = powers = memory.Memory(shape=layout, depth=_STEP, init=init)
        read = powers.read_port(domain="comb")
        m.d.comb += read.addr.eq(fraction[low_bits:])
        # Twice: the first may become the register of a block memory's address
        entry = slot.pipe(slot.pipe(read.data, "power_read"), "power_entry")
        entry = data.View(layout, entry)
        halvings = slot.pipe(halvings, "halvings_held")
        fall = slot.pipe((entry.fall * halvings[:low_bits]) >> low_bits, "power_fall")
        power = Signal(PROBABILITY_BITS + 1)
        m.d.comb += power.eq(slot.pipe(entry.power, "power_above") - fall)
        product = slot.pipe(slot.product(average, power, "decayed"), "decayed_held")
        shift, none = halvings[DECAY_FRACTION : DECAY_FRACTION + 6], halvings[DECAY_FRACTION + 6 :].any()
        half = 1 << (PROBABILITY_BITS - 1)
        decayed, shifted = Signal(AVERAGE_BITS), slot.pipe(product >> shift, "decayed_shifted")
        with m.If(~none):
            m.d.comb += decayed.eq((shifted + half) >> PROBABILITY_BITS)
        return decayed

    @staticmethod
    def _difference(average, frames):
        return (average - Cat(Const(0, AVERAGE_FRACTION), frames)).as_signed()

    @staticmethod
    def _and_half(frames):
        """Return what ``(average - frames) * keep`` is added to: the new average, with as many fraction bits more as
        ``keep`` has, and a half."""
        return Cat(Const(1 << (PROBABILITY_BITS - 1), AVERAGE_FRACTION + PROBABILITY_BITS), frames)

    @staticmethod
    def _rounded(moved):
        return moved[PROBABILITY_BITS : PROBABILITY_BITS + AVERAGE_BITS]

    @staticmethod
    def _in_frames(level):
        """Return a threshold in the format of the average."""
        return Cat(Const(0, AVERAGE_FRACTION - LEVEL_FRACTION), level)

    @staticmethod
    def _spread(share, waits):
        """Return three values made of ``share``, which is ``count * p``.

        They are: the frame is certainly refused; the frame may be refused; and the divisor of ``p``.
        """
        sure = Mux(waits, share >= 2 * ONE, share >= ONE)
        may = ~waits | (share >= ONE)
        return sure, may, (Mux(waits, 2 * ONE, ONE) - share)[: PROBABILITY_BITS + 2]

    # The wide datapath: all at once, when a frame begins

    def _wide(self, m, slot, counts):
        port = self.port
        frames, idle, average = Signal(COUNT_BITS), Signal(), Signal(AVERAGE_BITS)
        above, over, hit = Signal(), Signal(), Signal()
        before, difference = Signal(AVERAGE_BITS), Signal(signed(AVERAGE_BITS + 1))
        levels, weights, settings, draw = Signal(Levels), Signal(Weights), Signal(Idle), Signal(64)
        with m.If(counts):
            m.d.comb += [
                frames.eq(Array(self.frames)[port]),
                idle.eq(Array(self.cells)[port] == 0),
                weights.eq(self._weights.read(port)),
                before.eq(self._averages[port]),
                levels.eq(self._levels.read(port)),
                draw.eq(self._draws.read(port)),
            ]
            with m.If(idle):
                elapsed = Signal(IDLE_BITS)
                m.d.comb += [
                    elapsed.eq(self._elapsed(self._since.read(port))),
                    settings.eq(self._idles.read(port)),
                    average.eq(self._decayed(m, slot, before, elapsed, settings)),
                ]
            with m.Else():
                m.d.comb += difference.eq(self._difference(before, frames))
                m.d.comb += average.eq(self._rounded(difference * weights.keep + self._and_half(frames)))
            low = self._in_frames(levels.low)
            with m.If((frames > 1) & (average >= low)):
                m.d.comb += above.eq(1)
                m.d.comb += over.eq(average >= self._in_frames(levels.high))
                with m.If(~over):
                    p, share, rest = Signal(PROBABILITY_BITS + 1), Signal(SINCE_BITS + PROBABILITY_BITS + 1), Signal(26)
                    sure, may = Signal(), Signal()
                    sure_, may_, rest_ = self._spread(share, self.waits.bit_select(port, 1))
                    m.d.comb += [
                        p.eq(((average - low)[:AVERAGE_BITS] * weights.slope) >> AVERAGE_FRACTION),
                        share.eq(self._counts[port] * p),
                        sure.eq(sure_),
                        may.eq(may_),
                        rest.eq(rest_),
                        hit.eq(sure | (may & (draw[-PROBABILITY_BITS:] * rest < p << PROBABILITY_BITS))),
                    ]
        self._judged(m, counts, above=above, over=over, hit=hit, average=average, draw=draw, idle=idle, keeps=Const(0))
        self._idle_since(m, counts, idle)

    # The narrow datapath: in turns, for the port to which a cell arrived last and that from which one left last

    def _narrow(self, m, slot, counts):
        came, left = Signal.like(self.port), Signal.like(self.port)
        with m.If(self.comes):
            m.d.sync += came.eq(self.port)
        with m.If(self.dequeue):
            m.d.sync += left.eq(self.out_port)

        def turn(name, clock):
            return slot.time_share(name, {clock: came, clock + 1: left})

        def kept(name, shape, value, clock, since=PORT):
            """Return the value of each port, as it was when the port had its turn in ``clock`` or the one after."""
            registers = Array(Signal(shape, name=f"{name}{p}") for p in range(self._ports))
            for at, whose in ((clock, came), (clock + 1, left)):
                with m.If(slot.clock(at)):
                    m.d.sync += registers[whose].eq(value)
                slot.clocks.needs(value, clock, name)
            for register in registers:
                slot.clocks.holds(register, since)
            return registers

        # A frame that ends an idle time: the average is made in the next tick. Its port has one frame at most until
        # then, and no verdict needs it
        owed, elapsed, late, settings = Signal(), Signal(IDLE_BITS), Signal(IDLE_BITS), Signal(Idle)
        idle = slot.pipe(Array(self.cells)[self.port] == 0, "idle_held")
        m.d.comb += late.eq(self._elapsed(self._since.read(self.port, at=PORT, to="idle_since")))
        idle_settings = self._idles.read(self.port, at=PORT, to="idle_settings")
        with m.If(counts):
            m.d.sync += [owed.eq(idle), elapsed.eq(late), settings.eq(idle_settings)]
        before = slot.pipe(self._averages[came], "average_before")
        decayed = self._decayed(m, slot, before, elapsed, settings)
        with m.If(slot.clock(DECAYED + 1) & owed):
            m.d.sync += self._averages[came].eq(decayed)

        # The next average, and how far it is above the lower threshold
        port = turn("port_now", 0)
        weights = data.View(Weights, self._weights.read(port))
        difference = slot.pipe(self._difference(self._averages[port], Array(self.frames)[port]), "difference")
        of_idle = slot.pipe(self._difference(decayed, Array(self.frames)[came]), "difference_of_idle")
        difference = slot.time_share("difference_now", {1: difference, DECAYED + 1: of_idle})
        frames, after = slot.pipe(Array(self.frames)[port], "frames_now"), 2
        base = self._and_half(frames)
        average = self._rounded(slot.product(difference, weights.keep, "next", plus=base))
        averages = kept("next_average", AVERAGE_BITS, average, after, DECAYED + 3)
        with m.If(slot.clock(DECAYED + 2) & owed):
            m.d.sync += [owed.eq(0), averages[came].eq(average)]
        levels = data.View(Levels, self._levels.read(port))
        base = base - Cat(Const(0, PROBABILITY_BITS), self._in_frames(levels.low))
        gap = slot.product(difference, weights.keep, "gap", plus=base)[PROBABILITY_BITS:]
        gap = slot.pipe(gap[: AVERAGE_BITS + 1], "gap")

        # The verdict with it
        several = slot.pipe(slot.pipe(frames > 1, "several_now"), "several_then")
        above = kept("above", 1, several & ~gap[AVERAGE_BITS], after + 1)
        high = slot.pipe(slot.pipe(self._in_frames(levels.high), "high_now"), "high_then")
        over = kept("over", 1, slot.pipe(average, "average_held") >= high, after + 1)
        slope = slot.pipe(slot.pipe(weights.slope, "slope_now"), "slope_then")
        p = slot.product(gap[:AVERAGE_BITS], slope, "rise") >> AVERAGE_FRACTION
        p = slot.pipe(p[: PROBABILITY_BITS + 1], "p")
        count = slot.pipe(self._counts[turn("port_counted", after + 2)], "count_now")
        share = slot.product(count, p, "share")
        waits = slot.pipe(self.waits.bit_select(turn("port_waits", after + 3), 1), "waits_now")
        rest = slot.pipe(self._spread(share, waits)[2], "rest")
        share, waits = slot.pipe(share, "share_held"), slot.pipe(waits, "waits_then")
        sure, may, _ = self._spread(share, waits)
        sure, may = slot.pipe(sure, "sure"), slot.pipe(may, "may")
        for k in range(3):
            p = slot.pipe(p, f"p{k}")
        draw = slot.time_share(
            "draw", {after + 5: self._draws.read(came, at=0, to="draw_of_came"),
                     after + 6: self._draws.read(left, at=1, to="draw_of_left")}
        )  # fmt: skip
        drawn = slot.product(draw[-PROBABILITY_BITS:], rest, "drawn")
        hit = kept("hit", 1, sure | (may & (drawn < p << PROBABILITY_BITS)), after + 6, PORT + 1)

        draw = self._draws.read(self.port, at=PORT, to="draw_used")
        at_port = self.port
        self._judged(
            m, counts, above=above[at_port], over=over[at_port], hit=hit[at_port], average=averages[at_port], draw=draw,
            idle=idle, keeps=idle,
        )  # fmt: skip
        self._idle_since(m, counts, idle)
