"""Load-reactive ports: hysteresis control of a port's capacity by what is queued for it."""

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from bentpipe_hdl.cell import NEVER, TIME_BITS, due_tick, earlier
from bentpipe_hdl.switch.core.port_rate_scheduler import PERIOD_BITS
from bentpipe_hdl.switch.options.reactive.control import CAPACITY_BITS, LEVEL_FRACTION
from bentpipe_hdl.tick_schedule import TickSchedule

__all__ = ["TAKES", "RateController"]

TAKES = 4
"""Ticks from a look at a queue to the new capacity."""

LEVEL_BITS, AVERAGE_FRACTION = 16, 16
"""Width of a queue length, in cells or frames, that is compared with the thresholds; fraction bits of its average."""

WEIGHT_BITS = 17


def _before(a, b):
    return (a - b)[TIME_BITS - 1]


class RateController(wiring.Component):
    """Sets the capacity of ports that are *reactive*, each at its own interval, one port at a time.

    A look at port ``p`` is due every ``interval`` ticks from when its control was written. What is queued goes into the
    average, ``average += (queued - average) * weight`` (with weight 1 it is the queue as it is). Above ``high``
    capacity becomes ``min(capacity + up, ceiling)``, below ``low`` it becomes ``max(capacity - down, floor)``, else it
    stays; and it is between floor and ceiling, whatever was set before. The look sees the queues as the tick begins;
    the capacity changes at the end of tick ``TAKES`` after it. Of several ports that are due the one with the lowest
    number is first, the next one when that has its capacity: so a look may be late by ``TAKES + 1`` ticks a port. An
    interval that is shorter than all of that makes looks rarer, not later and later. On the narrow datapath no look
    begins in a tick in which a control is written before the commit.

    **The first look.** When a port's control is written, its capacity is ``initial``, kept between floor and ceiling,
    and the port stalls until its first look has ended: only then its rate is known. A look that is under way at that
    port is given up.

    **Rates.** A cell takes ``cell / capacity`` ticks, exactly: the quotient is a period with 16 fraction bits, and what
    the division leaves is carried from cell to cell, so that the rate is the capacity to the last bit in the long run.
    With capacity 0 the port stalls. A cell that leaves takes the line for as long as the capacity says at that moment;
    a new one holds from the next cell on.

    On the narrow datapath the quotient is made bit by bit, a clock each, during those ticks.

    Members
    -------
    now : In
    period0 … : In
        Ports' periods where they are not reactive: ticks, 16 fraction bits.
    cell0 … : In
        Ticks that a cell takes at capacity 1, 16 fraction bits.
    low0, high0, up0, down0, floor0, ceiling0, initial0, interval0, weight0 … : In
        Thresholds in cells or frames with 8 fraction bits; capacities; ticks; 1 to 65536 as 2**-16.
    control_port, control, control_en : In
        Software writes a port's control: enabled, and whether frames count. Its capacity is then ``initial``, and it
        stalls until its first look has ended.
    cells0, frames0 … : In
        What is queued for each port.
    serve, port : In
        A cell leaves this port now, and takes its line.
    periods0 … : Out
        The port's period for a cell that leaves now, except for ``carry``, of the port that is served: 2**-16 ticks
        more.
    reactive, stalled : Out
        A bit a port.
    changes : Out
        Something of these becomes another now.
    still_stalled : Out
        With ``changes``: ``stalled`` after this tick.
    capacity0 … : Out
    due : Out
        When it has something to do, or ``NEVER``. Narrow: ``now`` while any port is reactive.
    """

    def __init__(self, slot: TickSchedule, *, ports: int, count_bits: int):
        self._slot, self._ports = slot, ports
        port = range(max(ports, 2))
        level = LEVEL_BITS + LEVEL_FRACTION
        super().__init__(
            {
                "now": In(TIME_BITS),
                "period": In(PERIOD_BITS).array(ports),
                "cell": In(PERIOD_BITS).array(ports),
                "low": In(level).array(ports),
                "high": In(level).array(ports),
                **{name: In(CAPACITY_BITS).array(ports) for name in ("up", "down", "floor", "ceiling", "initial")},
                "interval": In(30).array(ports),
                "weight": In(WEIGHT_BITS).array(ports),
                "control_port": In(port),
                "control": In(2),
                "control_en": In(1),
                "cells": In(count_bits).array(ports),
                "frames": In(count_bits).array(ports),
                "serve": In(1),
                "port": In(port),
                "periods": Out(PERIOD_BITS).array(ports),
                "carry": Out(1),
                "reactive": Out(ports),
                "stalled": Out(ports),
                "changes": Out(1),
                "still_stalled": Out(ports),
                "capacity": Out(CAPACITY_BITS).array(ports),
                "due": Out(TIME_BITS, init=NEVER),
            }
        )

    def attach(self, m, csr, path):
        """Connect the registers, the queues, and the ports as they are served."""
        index, control, written = csr.write_port("rate_control")
        m.d.comb += [
            self.now.eq(path.now),
            *(one.eq(period) for one, period in zip(self.period, path.core.periods, strict=True)),
            self.control_port.eq(index),
            self.control.eq(control),
            self.control_en.eq(written),
            *(one.eq(count) for one, count in zip(self.cells, path.core.port_queues.cells, strict=True)),
            *(one.eq(count) for one, count in zip(self.frames, path.core.port_queues.last_cells, strict=True)),
            self.serve.eq(path.leaving.serve & ~path.leaving.stays),
            self.port.eq(path.leaving.port),
            path.core.port_rate_scheduler.carry.eq(self.carry),
        ]
        for name in ("cell", "low", "high", "up", "down", "floor", "ceiling", "initial", "interval", "weight"):
            for one, setting in zip(getattr(self, name), csr.registers(f"rate_{name}"), strict=True):
                m.d.comb += one.eq(setting)
        csr.status("rate_capacity", *self.capacity)
        csr.status("port_cells", *path.core.port_queues.cells)
        csr.status("port_frames", *path.core.port_queues.last_cells)

    def elaborate(self, platform):
        m = Module()
        slot, ports, now = self._slot.within(m), self._ports, self.now
        slot.with_commit(self.serve)
        packets, restarts = Signal(ports), Signal(ports)
        looks = Array(Signal(TIME_BITS, name=f"next_look{p}") for p in range(ports))
        averages = Array(Signal(LEVEL_BITS + AVERAGE_FRACTION, name=f"average{p}") for p in range(ports))
        quotients = Array(Signal(PERIOD_BITS, name=f"quotient{p}") for p in range(ports))
        rests = Array(Signal(CAPACITY_BITS, name=f"rest{p}") for p in range(ports))
        carried = Array(Signal(CAPACITY_BITS, name=f"carried{p}") for p in range(ports))
        capacities = Array(self.capacity)
        for p in range(ports):
            m.d.comb += self.periods[p].eq(Mux(self.reactive[p] & ~self.stalled[p], quotients[p], self.period[p]))

        # A look at a port: `eval_port` and `eval_capacity` are of the evaluation under way
        busy, eval_port, done_at = Signal(), Signal.like(self.port), Signal(TIME_BITS)
        wanted, asked = Signal(ports), Signal()
        acts = Signal()
        m.d.comb += acts.eq(self.reactive.any() & ~_before(now, self.due))
        with slot.gate_when(acts):
            late = [slot.pipe(~_before(now, look), f"look_late{p}") for p, look in enumerate(looks)]
            for p in range(ports):
                m.d.comb += wanted[p].eq(self.reactive[p] & (restarts[p] | late[p]))
        first = Signal.like(self.port)
        for p in reversed(range(ports)):
            with m.If(wanted[p]):
                m.d.comb += first.eq(p)
        port = slot.pipe(first, "look_port")
        m.d.comb += asked.eq(slot.pipe(wanted.any() & ~busy, "look_asked"))
        starts = slot.pipe(restarts.bit_select(port, 1), "look_starts")

        def of(name):
            return slot.pipe(Array(getattr(self, name))[port], f"port_{name}")

        look, applies = Signal(), Signal()
        written = self._written(m, slot)
        with m.If(slot.commit):
            with m.If(asked & ~written):
                m.d.comb += look.eq(1)
            with m.If(busy & ~_before(now, done_at)), m.If(~(self.control_en & (self.control_port == eval_port))):
                m.d.comb += applies.eq(1)
        capacity, average, following = Signal(CAPACITY_BITS), Signal(LEVEL_BITS + AVERAGE_FRACTION), Signal(TIME_BITS)
        with slot.gate_when(asked):
            level = slot.pipe(Mux(packets.bit_select(port, 1), of("frames"), of("cells")), "level")
            before = slot.pipe(averages[port], "average_before")
            error = slot.pipe(Cat(Const(0, AVERAGE_FRACTION), level) - before, "error")
            change = slot.pipe(error * of("weight"), "change")
            now_average = slot.pipe((before + (change >> AVERAGE_FRACTION))[: len(average)], "average_now")
            shift = AVERAGE_FRACTION - LEVEL_FRACTION
            above = slot.pipe(now_average > (of("high") << shift), "above")
            below = slot.pipe(now_average < (of("low") << shift), "below")
            was, floor, ceiling = slot.pipe(capacities[port], "old_capacity"), of("floor"), of("ceiling")
            more, less = slot.pipe(was + of("up"), "more"), slot.pipe(was - of("down"), "less")
            wish = slot.pipe(Mux(starts, of("initial"), Mux(above, more, Mux(below, less, was))), "wish")
            new = slot.pipe(Mux(wish > ceiling, ceiling, Mux(wish < floor, floor, wish)), "new_capacity")
            interval = of("interval")
            then = slot.pipe((Mux(starts, now, slot.pipe(looks[port], "port_look")) + interval)[:TIME_BITS], "then")
            again = slot.pipe((now + interval)[:TIME_BITS], "again")
            m.d.comb += [
                capacity.eq(new),
                average.eq(Mux(starts, 0, now_average)),
                following.eq(Mux(slot.pipe(_before(now, then), "then_comes"), then, again)),
            ]
        eval_capacity = Signal(CAPACITY_BITS)
        with m.If(look):
            m.d.sync += [
                busy.eq(~(self.control_en & (self.control_port == port))),
                eval_port.eq(port),
                eval_capacity.eq(capacity),
                done_at.eq(now + TAKES),
                looks[port].eq(following),
                averages[port].eq(average),
            ]

        # The end of a look
        cell = of("cell")
        divide = self._divide if slot.wide else self._divide_by_bits
        quotient, rest = divide(m, look, applies, Array(self.cell)[eval_port] if slot.wide else cell, eval_capacity)
        with m.If(applies):
            m.d.sync += [
                busy.eq(0),
                capacities[eval_port].eq(eval_capacity),
                quotients[eval_port].eq(quotient),
                rests[eval_port].eq(rest),
                carried[eval_port].eq(0),
            ]

        # Control is written: the port begins again, and a look at it that is under way counts no more
        initial, least, most = (
            Array(getattr(self, name))[self.control_port] for name in ("initial", "floor", "ceiling")
        )
        with m.If(self.control_en):
            with m.If(self.control_port == eval_port), m.If(~look):
                m.d.sync += busy.eq(0)
            with m.If(self.control[0]):
                begins_with = Mux(initial > most, most, Mux(initial < least, least, initial))
                m.d.sync += capacities[self.control_port].eq(begins_with)

        # A cell leaves: what the division left over continues its port
        carries, counts = Signal(), Signal()
        with slot.gate_when(self.serve):
            m.d.comb += counts.eq(slot.pipe(self.reactive.bit_select(self.port, 1), "counts_held"))
            total = slot.pipe(carried[self.port] + rests[self.port], "carried_now")
            served_capacity = slot.pipe(capacities[self.port], "served_capacity")
            m.d.comb += carries.eq(slot.pipe((total >= served_capacity) & counts, "carries_held"))
        m.d.comb += self.carry.eq(carries)
        left = slot.pipe(Mux(carries, total - served_capacity, total)[:CAPACITY_BITS], "carried_on")
        with m.If(self.serve & counts), m.If(~applies | (eval_port != self.port)):
            m.d.sync += carried[self.port].eq(left)

        # What the ports are
        here, on, off = (Signal(ports, name=name) for name in ("here", "on", "off"))
        done, closes, opens = (Signal(ports, name=name) for name in ("looked_at", "closes", "opens"))
        reactive = Signal(ports)
        m.d.comb += [
            here.eq(1 << self.control_port),
            on.eq(Mux(self.control_en & self.control[0], here, 0)),
            off.eq(Mux(self.control_en & ~self.control[0], here, 0)),
            done.eq(Mux(look, 1 << port, 0)),
            closes.eq(Mux(applies & (eval_capacity == 0), 1 << eval_port, 0)),
            opens.eq(Mux(applies & (eval_capacity != 0), 1 << eval_port, 0)),
            reactive.eq((self.reactive & ~off) | on),
            self.still_stalled.eq(((self.stalled & ~opens) | closes | on) & reactive),
            self.changes.eq(applies | self.control_en),
        ]
        with m.If(look | self.changes):
            m.d.sync += [
                restarts.eq((restarts & ~done) | on),
                self.reactive.eq(reactive),
                self.stalled.eq(self.still_stalled),
            ]
        with m.If(self.control_en):
            m.d.sync += packets.bit_select(self.control_port, 1).eq(self.control[1])

        # When there is something to do
        if slot.wide:
            soonest = Const(NEVER, TIME_BITS)
            for p in range(ports):
                at = Mux(restarts[p], (now + 1)[:TIME_BITS], looks[p])
                sooner = Signal(TIME_BITS, name=f"soonest_look{p}")  # else each port would double the expression
                with slot.gate_when(acts):
                    m.d.comb += sooner.eq(Mux(self.reactive[p], earlier(due_tick(at), soonest), soonest))
                soonest = sooner
            with m.If(slot.commit & acts):
                m.d.sync += self.due.eq(soonest)
                with m.If(look):
                    m.d.sync += self.due.eq(due_tick((now + TAKES)[:TIME_BITS]))
                with m.Elif(busy & ~applies):
                    m.d.sync += self.due.eq(due_tick(done_at))
            with m.If(self.control_en):
                m.d.sync += self.due.eq(Mux(reactive.any(), due_tick(now), NEVER))
        else:
            m.d.comb += self.due.eq(Mux(self.reactive.any(), now, NEVER))
        return m

    def _written(self, m, slot):
        """Return whether a control was written in this tick (narrow).

        Then the looked-up values may be of another port.
        """
        written = Signal()
        if not slot.wide:
            with m.If(self.control_en):
                m.d.sync += written.eq(1)
            with m.Elif(slot.clock(0)):
                m.d.sync += written.eq(0)
        return written

    def _divide(self, m, look, applies, cell, capacity):
        """Return ``cell / capacity`` and the remainder, if they are to be kept."""
        del look
        quotient, rest = Signal(PERIOD_BITS), Signal(CAPACITY_BITS)
        with m.If(applies):
            m.d.comb += [quotient.eq(cell // capacity), rest.eq(cell % capacity)]
        return quotient, rest

    def _divide_by_bits(self, m, look, applies, cell, capacity):
        """Return the same as :meth:`_divide`, a bit of the quotient in each clock after a look: 40 of the 50
        available clocks."""
        del applies
        number, rest, left = Signal(PERIOD_BITS), Signal(CAPACITY_BITS), Signal(range(PERIOD_BITS + 1))
        shifted = Cat(number[-1], rest)
        fits = shifted >= capacity
        with m.If(look):
            m.d.sync += [number.eq(cell), rest.eq(0), left.eq(PERIOD_BITS)]
        with m.Elif(left != 0):
            m.d.sync += [
                number.eq(Cat(fits, number[:-1])),
                rest.eq(Mux(fits, shifted - capacity, shifted)),
                left.eq(left - 1),
            ]
        return number, rest
