"""Cells into the payload of an SPE (I.432.1 clause 4.3 and 7.3)."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from bentpipe_hdl.functions import computed
from bentpipe_hdl.hec import hec
from bentpipe_hdl.sonet.delineation import CELL, octets_reversed
from bentpipe_hdl.sonet.scrambler import scramble_payload

__all__ = ["CellMapper"]

IDLE = Const((1 << 384) | int("6a" * 48, 16), 416)


class CellMapper(wiring.Component):
    """The cell mapper: it serialises cells into words of payload, with HEC and payload scrambler, and sends idle cells.

    The cell after the one on the line is always prepared already, so a cell leaves one to two cell times after it was
    taken. Throughput is that of the payload: one cell in ``53 / width`` words.

    Parameters
    ----------
    geometry : Geometry

    Members
    -------
    cell : In(416), valid : In(1), ready : Out(1)
        A stream of cells: payload octet ``k`` in bits ``8k``, the header without HEC in the top 32 bits.
    pull : In(1)
        The word is used; in the next clock there is another one.
    short : In(2)
        With ``pull``: of the word's bytes the last ``short * stuff_bytes`` are not used (wide words only; 2 at most).
    word : Out(8 * width)
        First byte in the low bits; a function of registers.
    hec_mask : In(8)
        Added to the HEC of every cell that is prepared, to provoke errors.
    user, idle : Out(1)
        A strobe each for a user and an idle cell that begins.
    """

    def __init__(self, geometry):
        self._geometry = geometry
        super().__init__(
            {
                "cell": In(416),
                "valid": In(1),
                "ready": Out(1),
                "pull": In(1),
                "short": In(2),
                "word": Out(8 * geometry.width),
                "hec_mask": In(8),
                "user": Out(1),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()

        # Cells wait in one slot, or in two where a cell lasts for less than two clocks.
        depth = 2 if 2 * self._geometry.width > CELL else 1
        slots = [Signal(416, name=f"slot{k}") for k in range(depth)]
        waiting = Signal(range(depth + 1))
        left_over = Signal(range(depth + 1))
        taken = Signal(range(depth + 2))
        ready = Signal(init=1)
        load = Signal()
        full = waiting != 0
        m.d.comb += [
            self.ready.eq(ready),
            left_over.eq(waiting - (load & full)),
            taken.eq(left_over + (self.valid & ready)),
        ]
        with m.If(load | (self.valid & ready)):
            m.d.sync += [waiting.eq(taken), ready.eq(taken < depth)]
        with m.If(load):
            for k in range(depth - 1):
                m.d.sync += slots[k].eq(slots[k + 1])
        with m.If(self.valid & ready):
            for k in range(depth):
                with m.If(left_over == k):
                    m.d.sync += slots[k].eq(self.cell)

        # The next cell as it goes out, 53 bytes.
        first, second = self._idle_cells(2)  # what reset leaves ready
        history = Signal(48, init=second >> (424 - 48))
        cell = Signal(416)
        m.d.sync += [self.user.eq(0), self.idle.eq(0)]
        m.d.comb += cell.eq(Mux(full, slots[0], IDLE))
        with m.If(load):
            m.d.sync += [self.user.eq(full), self.idle.eq(~full)]
        (self._wide if self._geometry.wide else self._narrow)(m, load, cell, history, first, second)
        return m

    def _wide(self, m, load, cell, history, first, second):
        """Choose words of one number that holds the cell on the line and the next one."""
        g, width = self._geometry, self._geometry.width
        header, check = Signal(32), Signal(8)
        plain, before, payload = Signal(384), Signal(48), Signal(384)
        m.d.comb += [
            header.eq(cell[384:]),
            check.eq(hec(header)),
            plain.eq(cell[:384]),
            before.eq(history),
            payload.eq(scramble_payload(m, before, plain)),
        ]
        computed("header_hec", "sent", check, header)
        computed("scramble_cell", "sent", payload, plain, before)
        pair = Signal(2 * 424, init=first | second << 424)  # the cell on the line and the next one
        with m.If(load):
            m.d.sync += [
                pair.eq(Cat(pair[424:], octets_reversed(header), check ^ self.hec_mask, payload)),
                history.eq(payload[-48:]),
            ]
        at = Signal(range(CELL))
        after = Signal(range(CELL + width))
        m.d.comb += self.word.eq(pair.bit_select(Cat(Const(0, 3), at), 8 * width))
        m.d.comb += after.eq(at + width)
        with m.If(self.short[0]):
            m.d.comb += after.eq(at + (width - g.stuff_bytes))
        with m.If(self.short[1]):
            m.d.comb += after.eq(at + (width - 2 * g.stuff_bytes))
        with m.If(self.pull):
            m.d.sync += at.eq(after)
            with m.If(after >= CELL):
                m.d.comb += load.eq(1)
                m.d.sync += at.eq(after - CELL)

    def _narrow(self, m, load, cell, history, first, second):
        """Shift words out of a register that holds the cell on the line, followed by the next one; some words are
        made ahead."""
        ahead = self._ahead(m, load, cell, history, second)
        width = self._geometry.width
        # Of the shift register `left` bytes are still to be sent. No wide register hangs on `pull`.
        size = CELL + width - 1
        bits = 8 * width
        current = Signal(8 * size, init=first)
        left = Signal(range(size + 1), init=CELL)
        join = Signal()  # after this word the next cell is appended: fewer than `width` bytes are left
        ahead_words = [Signal(bits, name=f"ahead{k}") for k in range(4)]
        count = Signal(range(5))
        push = Signal()
        joined = Signal()
        m.d.comb += [self.word.eq(ahead_words[0]), push.eq(count <= 2), load.eq(joined)]
        m.d.sync += joined.eq(0)
        shifted = current[bits:]
        with m.If(push):
            m.d.sync += [current.eq(shifted), left.eq(left - width), join.eq(left < 3 * width)]
            with m.If(join):
                rest = Signal(range(width)) if width > 1 else Const(0, 1)
                if width > 1:
                    m.d.comb += rest.eq(left - width)
                m.d.sync += [left.eq(rest + CELL), join.eq(0), joined.eq(1)]
                with m.Switch(rest):
                    for k in range(width):
                        with m.Case(k):
                            m.d.sync += current.eq(Cat(shifted[: 8 * k], ahead))
        m.d.sync += count.eq(count + push - self.pull)
        # `pull` comes late: it only chooses
        stay = [Mux(push & (count == k), current[:bits], ahead_words[k]) for k in range(4)]
        move = [Mux(push & (count == k + 1), current[:bits], ahead_words[k + 1]) for k in range(3)]
        for k in range(3):
            m.d.sync += ahead_words[k].eq(Mux(self.pull, move[k], stay[k]))

    def _ahead(self, m, load, cell, history, second):
        """Return the next cell, which is needed only some clocks later: a part of it is scrambled in each of them."""
        ahead = Signal(424, init=second)
        with m.If(load):
            m.d.sync += ahead.eq(Cat(octets_reversed(cell[384:]), Const(0, 8), cell[:384]))
        steps = Signal(4)
        with m.If(load | (steps != 0)):
            m.d.sync += steps.eq(Cat(load, steps))
        header, payload = ahead[:32], ahead[40:]
        with m.If(steps[0]):
            m.d.sync += ahead[32:40].eq(hec(octets_reversed(header)) ^ self.hec_mask)
        for k in range(4):
            before = payload[96 * k - 48 : 96 * k] if k else history
            part = scramble_payload(m, before, payload[96 * k : 96 * (k + 1)], f"scrambled{k}")
            with m.If(steps[k]):
                m.d.sync += payload[96 * k : 96 * (k + 1)].eq(part)
        with m.If(steps[3]):
            m.d.sync += history.eq(part[-48:])
        return ahead

    @staticmethod
    def _idle_cells(count):
        """Return the first cells after the scrambler's all-zeros state, if idle, as numbers of 53 bytes."""
        sent, cells = [0] * 6, []
        for _ in range(count):
            for _ in range(48):
                sent.append(0x6A ^ (sent[-6] & 7) << 5 ^ sent[-5] >> 3)
            cells.append(int.from_bytes(bytes([0, 0, 0, 1, 0x52, *sent[-48:]]), "little"))
        return cells
