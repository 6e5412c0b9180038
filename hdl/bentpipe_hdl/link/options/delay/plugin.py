"""The delay memory: cells wait there until their delay is over."""

from amaranth.hdl import Cat, Mux, Signal
from amaranth.lib import data, memory

from bentpipe_hdl.cell import NEVER, TIME_BITS
from bentpipe_hdl.link.options.plugin import LinkPlugin

__all__ = ["PLUGIN"]


def _reached(due, now):
    """Return whether tick ``due`` is reached, if it is less than half the range of the time away."""
    return ~(now - due)[TIME_BITS - 1]


def _due_tick(there, due):
    """Return the due tick of a node: ``NEVER`` if no cell is held; one tick earlier if it equals ``NEVER``."""
    return Mux(there, Mux(due == NEVER, NEVER - 1, due), NEVER)


class Delay(LinkPlugin):
    def __init__(self, value):
        self._cells = value
        self.memory_of_cells = self

    def wide(self, path, gone, lost):
        """Hold cells; return the due tick."""
        link, m, slot, s, taken = path.link, path.m, path.slot, path.errors, path.taken
        entry = data.StructLayout({"payload": 384, "header": 32, "hec_error": 1, "due": TIME_BITS})
        cells = slot.store("delayed", entry, self._cells)
        bits = self._cells.bit_length() - 1
        read, write, due = Signal(bits + 1), Signal(bits + 1), Signal(TIME_BITS)
        used = Signal(bits + 1)
        m.d.comb += used.eq(write - read)
        puts, gives = Signal(), Signal()
        with m.If(taken), m.If(~gone):
            with m.If(used[-1]):
                m.d.sync += lost.eq(lost + 1)
            with m.Else():
                m.d.comb += puts.eq(1)
        with m.If(slot.commit), m.If((used != 0) & _reached(due, link.time.now)):
            m.d.comb += gives.eq(1)
        put = Signal(entry)
        m.d.comb += [
            put.payload.eq(Mux(path.hit, path.damaged, link.i.payload)),
            put.header.eq(path.header),
            put.hec_error.eq(path.bad),
            put.due.eq(link.time.now + s.delay - 1),
        ]
        cells.write(write[:bits], put, puts)
        head = Signal(entry)
        m.d.comb += head.eq(cells.read(read[:bits]))
        following = cells.read((read + 1)[:bits]).due
        with m.If(puts):
            m.d.sync += write.eq(write + 1)
            with m.If(used == 0):
                m.d.sync += due.eq(put.due)
        with m.If(gives):
            m.d.sync += [
                read.eq(read + 1),
                link.o.valid.eq(1),
                link.o.hec_error.eq(head.hec_error),
                link.o.header.eq(head.header),
                link.o.payload.eq(head.payload),
            ]
            with m.If(used > 1):
                m.d.sync += due.eq(following)
            with m.Elif(puts):
                m.d.sync += due.eq(put.due)
        return _due_tick(used != 0, due)

    def narrow(self, path, gone, lost, working):
        """Hold cells in a memory of words, 16 places a cell; the header and its due tick in a memory of their own.
        Return when the link is idle, and the due tick."""
        link, m, slot, s, taken, leaving = path.link, path.m, path.slot, path.errors, path.taken, path.leaving
        starts, count, step = leaving.starts, leaving.count, leaving.step
        bits = self._cells.bit_length() - 1
        words = memory.Memory(shape=32, depth=self._cells * 16, init=[])
        entry = data.StructLayout({"header": 32, "hec_error": 1, "due": TIME_BITS})
        heads = memory.Memory(shape=entry, depth=self._cells, init=[])
        m.submodules.delayed, m.submodules.delayed_heads = words, heads
        put, get = words.write_port(), words.read_port(domain="sync")
        put_head, get_head = heads.write_port(), heads.read_port(domain="sync")
        for port in (get, get_head):  # words follow each other whatever the clock of the tick
            slot.clocks.holds(port.data, 0)

        read, write, used = Signal(bits + 1), Signal(bits + 1), Signal(bits + 1)
        m.d.comb += used.eq(write - read)
        # Decided in the tick in which the cell arrived; its words come out of the first half in the next
        keeps, due = Signal(), Signal(TIME_BITS)
        with m.If(taken):
            m.d.sync += [keeps.eq(~used[-1] & ~gone), due.eq(link.time.now + s.delay - 1)]
            with m.If(used[-1] & ~gone):
                m.d.sync += lost.eq(lost + 1)
        m.d.comb += [
            put_head.addr.eq(write[:bits]),
            put_head.data.header.eq(leaving.header),
            put_head.data.hec_error.eq(leaving.bad),
            put_head.data.due.eq(due),
            put_head.en.eq(starts & keeps),
        ]
        with m.If(put_head.en):
            m.d.sync += write.eq(write + 1)
        place = Signal(bits)
        with m.If(put_head.en):
            m.d.sync += place.eq(write[:bits])
        m.d.comb += [put.addr.eq(Cat(step, place)), put.data.eq(leaving.word), put.en.eq((count != 0) & keeps)]

        m.d.comb += get_head.addr.eq(read[:bits])
        head, reached, known = Signal(entry), Signal(), Signal(4)  # all `known`: the two are of `read`
        m.d.sync += [
            head.eq(get_head.data),
            reached.eq(_reached(head.due, link.time.now)),
            known.eq(Cat(used != 0, known[:-1])),
        ]
        for register in (head, reached):
            slot.clocks.holds(register, 0)
        gives, chosen = Signal(), Signal()
        m.d.comb += gives.eq(slot.commit & known.all() & reached)
        out_header, out_bad, from_place = Signal(32), Signal(), Signal(bits)
        with m.If(gives):
            m.d.sync += [
                chosen.eq(1),
                read.eq(read + 1),
                known.eq(0),
                out_header.eq(head.header),
                out_bad.eq(head.hec_error),
                from_place.eq(read[:bits]),
            ]
        out_step, out_count, goes = Signal(4), Signal(4), Signal()
        m.d.comb += [
            goes.eq(link.time.tick & chosen),
            get.addr.eq(Cat(Mux(goes, 0, out_step), from_place)),
        ]
        m.d.sync += [link.o.valid.eq(0), link.o.soc.eq(0)]
        with m.If(goes):
            m.d.sync += [
                link.o.valid.eq(1), link.o.soc.eq(1), link.o.hec_error.eq(out_bad), link.o.word.eq(out_header),
                chosen.eq(0), out_count.eq(12), out_step.eq(1),
            ]  # fmt: skip
        with m.Elif(out_count != 0):
            m.d.sync += [
                link.o.valid.eq(1), link.o.word.eq(get.data), out_count.eq(out_count - 1), out_step.eq(out_step + 1),
            ]  # fmt: skip
        waits = known.all() & ~chosen & (out_count == 0)
        idle = ~working & ((used == 0) | waits) & ~chosen & (out_count == 0)
        return idle, _due_tick(used != 0, head.due)


PLUGIN = Delay
