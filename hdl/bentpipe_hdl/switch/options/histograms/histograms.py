"""Histograms of queues and delays, by VC and by port, in memories."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from bentpipe_hdl.cell import TIME_BITS
from bentpipe_hdl.switch.options.histograms.control import BIN_BITS, BINS, OCTAVE_BITS, SHIFT_BITS
from bentpipe_hdl.tick_schedule import TickSchedule

__all__ = ["Histograms", "Scale"]

Scale = data.StructLayout({"shift": SHIFT_BITS, "logarithmic": 1})
"""How values fall into bins."""

READ, WRITE = 4, 7
"""Narrow: the clocks of the tick after in which a count is read, and written."""


SUM_BITS = 64


class Histograms(wiring.Component):
    """Counts what the cells of a switch find and how long they stay: the queue of its VC and that of its port when a
    cell of a known VC comes, whether it is then queued or dropped and itself not counted; and the ticks from a cell's
    coming to its going, when it goes.

    Beside the bins there are, by port, the sums of all values that were counted, from which means are exact.

    A value without its lowest ``shift`` bits is the number of the bin. Or, ``logarithmic``, the bins below 4 are so,
    and from there on each doubling has four bins of equal width. The last bin has all that is beyond.

    Members
    -------
    clearing, clear : In
        After reset: entry ``clear`` of each table is to be cleared.
    queue_scale, delay_scale : In
        Of the queues, in cells, and of the delays, in ticks.
    now : In
    comes, a_vc, a_port, vc_cells, port_cells : In
        A cell of this VC, whose cells go to this port, comes now; what is queued of each.
    queued, tail : In
        It is queued in this place.
    goes, d_vc, d_port : In
        A cell goes now: its VC, and the port.
    head : In
        Its place. Narrow: valid from clock ``at`` on.
    vc_index, port_index : In
        Software reads: by ``vc << BIN_BITS | bin``, or by port.
    vc_queues, port_queues, vc_delays, port_delays : Out
        The counts there, which wrap at 2**32; two clocks later on the narrow datapath.
    queue_sums, delay_sums : Out
        By port, in cells and in ticks. They wrap at 2**64.
    pending : Out
        Narrow: something is still to be counted.
    """

    def __init__(self, slot: TickSchedule, *, vcs: int, ports: int, places: int, at: int):
        self._slot, self._vcs, self._ports, self._places, self._at = slot, vcs, ports, places, at
        self.clears = max(vcs, 1 << (ports - 1).bit_length()) << BIN_BITS
        vc, port, place = range(vcs), range(max(ports, 2)), range(places)
        super().__init__(
            {
                "clearing": In(1),
                "clear": In(range(self.clears)),
                "queue_scale": In(Scale),
                "delay_scale": In(Scale),
                "now": In(TIME_BITS),
                "comes": In(1),
                "a_vc": In(vc),
                "a_port": In(port),
                "vc_cells": In(16),
                "port_cells": In(16),
                "queued": In(1),
                "tail": In(place),
                "goes": In(1),
                "d_vc": In(vc),
                "d_port": In(port),
                "head": In(place),
                "vc_index": In(range(vcs << BIN_BITS)),
                "port_index": In(range(max(ports, 2) << BIN_BITS)),
                "vc_queues": Out(32),
                "port_queues": Out(32),
                "vc_delays": Out(32),
                "port_delays": Out(32),
                "queue_sums": Out(SUM_BITS).array(ports),
                "delay_sums": Out(SUM_BITS).array(ports),
                "pending": Out(1),
            }
        )

    def attach(self, m, csr, path):
        """Connect the registers, and the events that are counted."""
        arrival, departure = path.core.vc_table.a_arrival, path.core.vc_table.d_departure
        m.d.comb += [
            self.clearing.eq(path.core.vc_table.clearing),
            self.clear.eq(path.core.vc_table.clear),
            *(Value.cast(getattr(self, name)).eq(csr.register(name)) for name in ("queue_scale", "delay_scale")),
            self.now.eq(path.now),
            self.comes.eq(path.arriving.known_arrival),
            self.a_vc.eq(path.arriving.vc),
            self.a_port.eq(path.arriving.policy.port),
            self.vc_cells.eq(path.arriving.length),
            self.port_cells.eq(path.core.admission.port_cells),
            self.queued.eq(path.arriving.enqueue),
            self.tail.eq(arrival.tail),
            self.goes.eq(path.leaving.sends),
            self.d_vc.eq(path.leaving.vc),
            self.d_port.eq(path.leaving.port),
            self.head.eq(departure.head),
        ]
        for what in ("queue", "delay"):
            for of, index in (("vc", self.vc_index), ("port", self.port_index)):
                word = getattr(self, f"{of}_{what}s")
                csr.read_table(f"{of}_{what}_bins", lambda at, index=index, word=word: _found(m, index, at, word))
            sums = getattr(self, f"{what}_sums")
            csr.status(f"{what}_sum_low", *(total[:32] for total in sums))
            csr.status(f"{what}_sum_high", *(total[32:] for total in sums))

    def elaborate(self, platform):
        m = Module()
        slot = self._slot.within(m)
        slot.with_commit(self.comes, self.queued, self.goes)
        came = slot.store("came", TIME_BITS, self._places, block=True, apart=True)
        came.write(self.tail, self.now, self.queued)
        delay = Signal(TIME_BITS)
        with slot.gate_when(self.goes):
            m.d.comb += delay.eq(self.now - came.read(self.head, at=self._at, to="came_at"))

        # On the narrow datapath what is to be counted is taken with the commit, and counted in the next tick
        comes, a_vc, a_port, vc_cells, port_cells = self._taken(
            m, slot, self.comes, self.a_vc, self.a_port, self.vc_cells, self.port_cells
        )
        goes, d_vc, d_port, delay = self._taken(m, slot, self.goes, self.d_vc, self.d_port, slot.pipe(delay, "delay"))
        m.d.comb += self.pending.eq(0 if slot.wide else comes | goes)
        queue_bin = _bin(m, slot, "queue", comes, vc_cells, self.queue_scale)
        port_bin = _bin(m, slot, "port_queue", comes, port_cells, self.queue_scale)
        delay_bin = _bin(m, slot, "delay", goes, delay, self.delay_scale)
        self._count(m, slot, "vc_queues", self._vcs, comes, a_vc, queue_bin, self.vc_index)
        self._count(m, slot, "port_queues", self._ports, comes, a_port, port_bin, self.port_index)
        self._count(m, slot, "vc_delays", self._vcs, goes, d_vc, delay_bin, self.vc_index)
        self._count(m, slot, "port_delays", self._ports, goes, d_port, delay_bin, self.port_index)
        self._sum(m, slot, self.queue_sums, comes, a_port, port_cells)
        self._sum(m, slot, self.delay_sums, goes, d_port, delay)
        return m

    def _sum(self, m, slot, sums, strobe, which, value):
        now = strobe if slot.wide else strobe & slot.clock(WRITE)
        for k, total in enumerate(sums):
            with m.If(now), m.If(which == k):
                m.d.sync += total.eq(total + value)

    def _taken(self, m, slot, strobe, *values):
        if slot.wide:
            return strobe, *values
        there = Signal(name=f"{strobe.name}_before")
        taken = [Signal.like(value, name=f"{strobe.name}_{k}") for k, value in enumerate(values)]
        with m.If(slot.commit):
            m.d.sync += there.eq(strobe)
        with m.If(strobe):
            m.d.sync += [mine.eq(value) for mine, value in zip(taken, values, strict=True)]
        return there, *taken

    def _count(self, m, slot, name, entries, strobe, which, number, read):
        depth = max(entries, 2) << BIN_BITS
        store = slot.store(name, 32, depth, block=True)
        index, count = Signal(range(depth), name=f"{name}_at"), Signal(32, name=f"{name}_new")
        with slot.gate_when(strobe):
            m.d.comb += index.eq(Cat(number, which))
            m.d.comb += count.eq(store.read(index, at=READ, to=f"{name}_before") + 1)
        en = strobe if slot.wide else strobe & slot.clock(WRITE)
        store.write(index, count, en, clear=(self.clearing, self.clear[: len(index)], 0))
        readback = slot.pipe(
            store.peek(read), f"{name}_readback", since=0
        )  # the memory's blocks may be far from each other
        m.d.comb += getattr(self, name).eq(readback)


def _bin(m, slot, name, strobe, value, scale):
    """Return the number of the bin in which the value falls."""
    scaled = Signal.like(value, name=f"{name}_scaled")
    found = Signal(BIN_BITS, name=f"{name}_bin")
    with slot.gate_when(strobe):
        m.d.comb += scaled.eq(slot.pipe(value >> scale.shift, f"{name}_shifted"))
    linear = Mux(scaled[BIN_BITS:].any(), BINS - 1, scaled[:BIN_BITS])
    logarithmic = Signal(BIN_BITS, name=f"{name}_octave")
    with slot.gate_when(strobe):
        m.d.comb += logarithmic.eq(scaled[:BIN_BITS])
        for top in range(OCTAVE_BITS, len(scaled)):
            with m.If(scaled[top]):
                number = ((top - OCTAVE_BITS + 1) << OCTAVE_BITS) | scaled[top - OCTAVE_BITS : top]
                m.d.comb += logarithmic.eq(number if (top - OCTAVE_BITS + 1) << OCTAVE_BITS < BINS else BINS - 1)
    chosen = slot.pipe(Mux(scale.logarithmic, logarithmic, linear), f"{name}_of")
    with slot.gate_when(strobe):
        m.d.comb += found.eq(chosen)
    return found


def _found(m, index, at, word):
    """Return the word that a part reads at an index, which tables share."""
    m.d.comb += index.eq(at)
    return word
