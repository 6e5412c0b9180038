"""Transmission convergence: cells into the payload of an SPE and back (I.432.1 clause 4.3 and 7.3)."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, unsigned
from amaranth.lib import enum, wiring
from amaranth.lib.wiring import In, Out

from bentpipe_hdl.functions import computed
from bentpipe_hdl.hec import COSET, SYNDROMES, HecReceiver, hec
from bentpipe_hdl.sonet.scrambler import payload_delay, scramble_payload
from bentpipe_hdl.steady import settled

__all__ = ["ALPHA", "DELTA", "CellDemapper", "CellMapper", "Delineation", "State", "syndrome_of"]

ALPHA = 7
"""Consecutive bad headers that lead from SYNC to HUNT."""

DELTA = 6
"""Consecutive good headers that lead from PRESYNC to SYNC."""

CELL = 53


def _syndrome_masks():
    """For each bit of the syndrome, the bits that count in a 40-bit header with its first byte in the low bits."""
    masks = []
    for k in range(8):
        bits = [i for i in range(40) if SYNDROMES[i] >> k & 1]  # bit 0: last of the HEC
        masks.append(sum(1 << (8 * (4 - i // 8) + i % 8) for i in bits))
    return masks


_MASKS = _syndrome_masks()


def syndrome_of(header):
    """The syndrome of a header of 40 bits, first byte in the low bits."""
    return Cat((header & mask).xor() for mask in _MASKS) ^ COSET


def _swap32(value):
    return Cat(value[24:32], value[16:24], value[8:16], value[0:8])


IDLE = Const((1 << 384) | int("6a" * 48, 16), 416)


class CellMapper(wiring.Component):
    """Serialises cells into words of payload, with HEC and payload scrambler; sends an idle cell where none waits.

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
        g = self._geometry
        width = g.width

        # Cells wait in one slot, or in two where a cell lasts for less than two clocks.
        depth = 2 if 2 * width > CELL else 1
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
        if g.wide:
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
                    pair.eq(Cat(pair[424:], _swap32(header), check ^ self.hec_mask, payload)),
                    history.eq(payload[-48:]),
                ]
        else:
            ahead = Signal(424, init=second)
            with m.If(load):
                m.d.sync += ahead.eq(Cat(_swap32(cell[384:]), Const(0, 8), cell[:384]))
        if not g.wide:  # the cell is not needed for some clocks: a part of it in each
            steps = Signal(4)
            with m.If(load | (steps != 0)):
                m.d.sync += steps.eq(Cat(load, steps))
            header, payload = ahead[:32], ahead[40:]
            with m.If(steps[0]):
                m.d.sync += ahead[32:40].eq(hec(_swap32(header)) ^ self.hec_mask)
            for k in range(4):
                before = payload[96 * k - 48 : 96 * k] if k else history
                part = scramble_payload(m, before, payload[96 * k : 96 * (k + 1)], f"scrambled{k}")
                with m.If(steps[k]):
                    m.d.sync += payload[96 * k : 96 * (k + 1)].eq(part)
            with m.If(steps[3]):
                m.d.sync += history.eq(part[-48:])

        if g.wide:
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
        else:
            # A shift register of which `left` bytes are still to be sent, and a few words ahead of the reader, so
            # that no wide register hangs on `pull`.
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
        return m

    @staticmethod
    def _idle_cells(count):
        """The first cells after the scrambler's all-zeros state, if idle, as numbers of 53 bytes."""
        sent, cells = [0] * 6, []
        for _ in range(count):
            for _ in range(48):
                sent.append(0x6A ^ (sent[-6] & 7) << 5 ^ sent[-5] >> 3)
            cells.append(int.from_bytes(bytes([0, 0, 0, 1, 0x52, *sent[-48:]]), "little"))
        return cells


class State(enum.Enum, shape=unsigned(2)):
    """States of cell delineation (I.432.1 figure 5)."""

    HUNT = 0
    PRESYNC = 1
    SYNC = 2


class Delineation(wiring.Component):
    """The two automata of the receiver: cell delineation, and the modes of the HEC (:class:`~..hec.HecReceiver`).

    One header a clock. ``accept`` and the other verdicts are combinational and belong to this clock's header.

    Members
    -------
    found : In(1)
        A good header was found in HUNT.
    check : In(1), syndrome : In(8)
        A header at a cell boundary, and its syndrome.
    lost : In(1)
        Go to HUNT: there is no payload.
    state : Out(State)
    accept, correct, discard : Out(1)
        In SYNC: the cell counts; it does, after correction; it is dropped.
    flip : Out(40)
        With ``correct``: the header bit to invert (bit 0: last bit of the HEC).
    """

    found: In(1)
    check: In(1)
    syndrome: In(8)
    lost: In(1)
    state: Out(State)
    accept: Out(1)
    correct: Out(1)
    discard: Out(1)
    flip: Out(40)

    def __init__(self):
        self.count = Signal(range(max(ALPHA, DELTA)))
        self.receiver = HecReceiver()
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        count = self.count
        m.submodules.receiver = receiver = self.receiver
        good = Signal()
        m.d.comb += [
            good.eq(self.syndrome == 0),
            receiver.syndrome.eq(self.syndrome),
            self.accept.eq(receiver.accept),
            self.correct.eq(receiver.correct),
            self.discard.eq(receiver.discard),
            self.flip.eq(receiver.flip),
        ]
        with m.If(self.found), m.If(self.state == State.HUNT):
            m.d.sync += [self.state.eq(State.PRESYNC), count.eq(0)]
        with m.If(self.check):
            with m.Switch(self.state):
                with m.Case(State.PRESYNC):
                    m.d.sync += count.eq(count + 1)
                    with m.If(~good):
                        m.d.sync += self.state.eq(State.HUNT)
                    with m.Elif(count == DELTA - 1):
                        m.d.comb += receiver.start.eq(1)
                        m.d.sync += [self.state.eq(State.SYNC), count.eq(0)]
                with m.Case(State.SYNC):
                    m.d.comb += receiver.check.eq(1)
                    m.d.sync += count.eq(0)
                    with m.If(~good):
                        m.d.sync += count.eq(count + 1)
                        with m.If(count == ALPHA - 1):
                            m.d.sync += [self.state.eq(State.HUNT), count.eq(0)]
        with m.If(self.lost):
            m.d.sync += [self.state.eq(State.HUNT), count.eq(0)]
        return m


class CellDemapper(wiring.Component):
    """Finds the cells in words of payload, checks and corrects headers, descrambles, drops idle and unassigned cells.

    HUNT tests every byte position. A cell comes out 2 clocks (wide) or 7 clocks (narrow) after the word with its last
    byte.

    Parameters
    ----------
    geometry : Geometry

    Members
    -------
    word : In(8 * width), push : In(1), short : In(2)
        Payload, first byte in the low bits; the lowest ``short * stuff_bytes`` bytes are none (wide words only).
    lost : In(1)
        There is no payload: go to HUNT.
    cell : Out(416), valid : Out(1)
        A user cell, or a discarded one.
    hec_error : Out(1), corrected : Out(1)
        With ``valid``: the header has an uncorrectable error; it had a bit error.
    idle : Out(1)
        Strobe for an idle or unassigned cell (VPI and VCI are 0).
    state : Out(State)
    """

    def __init__(self, geometry):
        self._geometry = geometry
        super().__init__(
            {
                "word": In(8 * geometry.width),
                "push": In(1),
                "short": In(2),
                "lost": In(1),
                "cell": Out(416),
                "valid": Out(1),
                "hec_error": Out(1),
                "corrected": Out(1),
                "idle": Out(1),
                "state": Out(State),
            }
        )

    def elaborate(self, platform):
        m = Module()
        g = self._geometry
        width = g.width
        size = CELL - 1 + width
        m.submodules.automaton = automaton = Delineation()
        settled(automaton.state.as_value(), State.SYNC.value)
        for signal in (self.hec_error, self.corrected):
            settled(signal)
        m.d.comb += [self.state.eq(automaton.state), automaton.lost.eq(self.lost)]
        word, push, short = self.word, self.push, self.short
        if not g.wide:
            word, push = Signal(8 * width), Signal()
            m.d.sync += [word.eq(self.word), push.eq(self.push)]
        hunting = automaton.state == State.HUNT

        window = Signal(8 * size)  # the newest byte on top
        have = Signal(range(CELL))  # bytes of the cell that has begun
        total = Signal(range(CELL + width))
        count = Signal(range(width + 1))
        syndrome = Signal(8)
        checking = Signal()  # `window` (wide) or `cell` (narrow) has a cell
        complete = Signal()  # `window` has one from byte `place` on
        place = Signal(range(width))

        def take(used):  # the top bytes of the word
            m.d.comb += count.eq(used)
            m.d.sync += window.eq(Cat(window[8 * used :], word[8 * (width - used) :]))

        m.d.sync += complete.eq(0)
        m.d.comb += count.eq(0)
        with m.If(push):
            if g.wide:
                with m.Switch(short):
                    for k in range(1, 4):
                        with m.Case(k):
                            take(width - k * g.stuff_bytes)
                    with m.Default():
                        take(width)
            else:
                take(width)
            m.d.comb += total.eq(have + count)
            with m.If(~hunting):
                m.d.sync += have.eq(total)
                with m.If(total >= CELL):
                    rest = Signal(range(width))
                    m.d.comb += rest.eq(total - CELL)
                    m.d.sync += [have.eq(rest), complete.eq(1), place.eq(width - 1 - rest)]
        if g.wide:
            whole, body = Signal(40), Signal(384)
            m.d.comb += [
                checking.eq(complete),
                whole.eq(window.bit_select(Cat(Const(0, 3), place), 40)),
                body.eq(window.bit_select(Cat(Const(0, 3), place + 5), 384)),
                syndrome.eq(syndrome_of(whole)),
            ]
            computed("header_syndrome", "received", syndrome, whole)
        else:
            taken = Signal()
            cell = Signal(424)
            whole, body = cell[:40], cell[40:]
            m.d.sync += [taken.eq(complete), checking.eq(taken)]
            with m.If(complete):
                m.d.sync += cell.eq(window.bit_select(Cat(Const(0, 3), place), 424) if width > 1 else window)
            with m.If(taken):
                m.d.sync += syndrome.eq(syndrome_of(whole))

        # HUNT: headers that end in the bytes of the last word; the oldest good one wins.
        fresh = settled(Signal(range(width + 1)))
        since = Signal(range(width + 1))
        hits = settled(Signal(width))
        skip = settled(Signal())  # the cell whose header was found is not its own confirmation
        with m.If(hunting):
            m.d.sync += hits.eq(0)
            m.d.sync += [fresh.eq(count), since.eq(count)]
            for i in range(width):  # i bytes after the header's last one
                at = size - 5 - i
                header = window[8 * at : 8 * (at + 5)]
                with m.If(fresh > i):
                    m.d.sync += hits[i].eq(syndrome_of(header) == 0)
            with m.If(hits.any()):
                start = Signal(range(5 + 3 * width))
                later = Signal(range(width))
                for i in range(width):
                    with m.If(hits[i]):
                        m.d.comb += later.eq(i)
                m.d.comb += start.eq(5 + later + since + count)
                m.d.sync += have.eq(start)
                for k in range(1, (5 + 3 * width - 1) // CELL + 1):
                    with m.If(start >= CELL * k):
                        m.d.sync += have.eq(start - CELL * k)
                m.d.sync += [fresh.eq(0), hits.eq(0), skip.eq(1)]
                m.d.comb += automaton.found.eq(~self.lost)
        with m.Else():
            m.d.sync += fresh.eq(0)

        m.d.comb += automaton.syndrome.eq(syndrome)
        with m.If(checking), m.If(~skip):
            m.d.comb += automaton.check.eq(1)
        with m.If(self.valid):
            m.d.sync += [self.valid.eq(0), self.hec_error.eq(0), self.corrected.eq(0)]
        m.d.sync += self.idle.eq(0)
        before = Signal(48)
        header = Signal(32)
        empty = Signal()
        verdicts = [automaton.accept, automaton.correct, automaton.discard, automaton.flip]
        give = Signal()
        with m.If(checking), m.If(~hunting):
            m.d.comb += give.eq(1)
            m.d.sync += skip.eq(0)
        if not g.wide:  # a clock later; the cell stays for more than that
            late = [Signal(len(value), name=f"late{k}") for k, value in enumerate(verdicts)]
            with m.If(give):
                m.d.sync += [a.eq(b) for a, b in zip(late, verdicts, strict=True)]
            verdicts = late
            late_give, last_give = Signal(), Signal()
            m.d.sync += [late_give.eq(give), last_give.eq(late_give)]
            give = last_give
        accept, correct, discard, flip = verdicts
        right = _swap32(whole[:32]) ^ Mux(correct, flip[8:], 0)
        if not g.wide:  # one more for the header
            with m.If(late_give):
                m.d.sync += [header.eq(right), empty.eq(right[4:28] == 0)]
        last, plain = Signal(48), Signal(384)
        m.d.comb += [last.eq(before), plain.eq(body ^ payload_delay(last, body))]
        if g.wide:
            computed("descramble_cell", "received", plain, body, last)
        with m.If(give):
            m.d.sync += before.eq(body[-48:])
            if g.wide:
                m.d.comb += header.eq(_swap32(whole[:32]))
                with m.If(correct):
                    m.d.comb += header.eq(_swap32(whole[:32]) ^ flip[8:])
                m.d.comb += empty.eq(header[4:28] == 0)  # VPI and VCI of a UNI
            with m.If(accept & empty):
                m.d.sync += self.idle.eq(1)
            with m.Elif(accept | discard):
                m.d.sync += [
                    self.cell.eq(Cat(plain, header)),
                    self.valid.eq(1),
                    self.hec_error.eq(discard),
                    self.corrected.eq(correct),
                ]
        return m
