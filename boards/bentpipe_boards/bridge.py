"""A stream of octets to the register bus: frames, lists, runs, answers.

What a frame is, and what a list may ask for, is in :mod:`bentpipe_sim.board.protocol`.
"""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from bentpipe_boards.octets import FrameReceiver, FrameSender
from bentpipe_hdl.cell import TIME_BITS
from bentpipe_sim.board.protocol import (
    ANSWER,
    BUSY,
    LIST,
    MALFORMED,
    OPEN,
    OPENED,
    OVERFLOW,
    READ,
    REFUSED,
    RUN,
    STOPPED,
    TAKE,
    WRITE,
)

__all__ = ["BUS_ADDR_BITS", "READ_CLOCKS", "Bridge", "BusSignature", "RunSignature"]

BUS_ADDR_BITS = 28
"""Bits of an address: 8 of a window, 20 of a register in it."""

READ_CLOCKS = 8
"""Clocks from the one with ``r_en`` until ``r_data`` is there; the next access comes after it."""


class BusSignature(wiring.Signature):
    """The register bus of a board, as its master drives it. Members as for :class:`~bentpipe_hdl.csr.CsrSignature`."""

    def __init__(self):
        super().__init__(
            {"addr": Out(BUS_ADDR_BITS), "w_en": Out(1), "w_data": Out(32), "r_en": Out(1), "r_data": In(32)}
        )


class RunSignature(wiring.Signature):
    """The interface to the control of time: a request to run, and its progress.

    Members
    -------
    start : Out(1), until : Out(48)
        Request to run to the end of tick ``until``, which is valid with ``start``.
    stop : Out(1)
        Request to end the run after the present tick.
    running : In(1)
        High from the clock after ``start`` until the run is over.
    stopped : In(1), following : In(48)
        Valid when the run is over: it was stopped before ``until``; the next tick.
    """

    def __init__(self):
        super().__init__(
            {
                "start": Out(1),
                "until": Out(TIME_BITS),
                "stop": Out(1),
                "running": In(1),
                "stopped": In(1),
                "following": In(TIME_BITS),
            }
        )


WAITS = {
    "READ OP": "OP", "FETCH": "FETCHED", "FETCHED": "FIRST", "READ WORD": "WRITE", "READ HIGH": "START",
    "STARTED": "BEGUN", "BEGUN": "RUNNING",
}  # fmt: skip
"""States of a clock that wait for a memory or for the run, and what follows each."""


class Bridge(wiring.Component):
    """The bridge: it executes the lists of received frames, and answers.

    A frame is done only when all of it has come and its CRC is right. While a list is being done, the next frame is
    received into a second place. The same one again (the host has waited too long) is answered by ``BUSY``; any other
    ends a run that goes on, and is done next. A frame that is damaged, too long or comes while both places are full is
    dropped and counted.

    Parameters
    ----------
    words : int
        Words of the longest request and of the longest answer, with head and CRC; a power of two from 16 on.

    Members
    -------
    rx, rx_valid : In(8), In(1)
        Octets that come; there is no back-pressure.
    tx, tx_valid, tx_ready : Out(8), Out(1), In(1)
        Octets that go.
    bus : Out(BusSignature)
    run : Out(RunSignature)
    dropped : Out(16)
        Frames that were dropped; wraps.
    busy : Out(1)
        There is something to do besides receiving.
    open : Out(1)
        A client has opened a session.
    holds, still : In(1), Out(1)
        Nothing is to begin; nothing is being done, and no octet goes.
    """

    def __init__(self, *, words=512):
        if words not in [1 << k for k in range(4, 17)]:
            raise ValueError(f"words must be a power of two from 16 to 65536, not {words!r}")
        self.words = words
        super().__init__(
            {
                "rx": In(8),
                "rx_valid": In(1),
                "tx": Out(8),
                "tx_valid": Out(1),
                "tx_ready": In(1),
                "bus": Out(BusSignature()),
                "run": Out(RunSignature()),
                "dropped": Out(16),
                "busy": Out(1),
                "open": Out(1),
                "holds": In(1),
                "still": Out(1),
            }
        )

    def _frames(self, m):
        """Make what receives frames and what sends them."""
        m.submodules.receiver = receiver = FrameReceiver(words=self.words)
        m.submodules.sender = sender = FrameSender(words=self.words)
        m.d.comb += [receiver.rx.eq(self.rx), receiver.rx_valid.eq(self.rx_valid)]
        m.d.comb += [self.tx.eq(sender.tx), self.tx_valid.eq(sender.tx_valid), sender.tx_ready.eq(self.tx_ready)]
        return receiver, sender

    def elaborate(self, platform):
        m = Module()
        receiver, sender = self._frames(m)
        m.submodules.requests = requests = memory.Memory(shape=32, depth=2 * self.words, init=[])
        m.submodules.answers = answers = memory.Memory(shape=32, depth=self.words, init=[])
        put, get = requests.write_port(), requests.read_port(domain="sync")
        answer, reread = answers.write_port(), answers.read_port(domain="sync")
        m.d.comb += [reread.addr.eq(sender.index), sender.word.eq(reread.data)]

        bits = (self.words - 1).bit_length()
        bank, at, end, room_at = Signal(), Signal(bits), Signal(bits), Signal(bits + 1)
        session, sequence, has_answer, given = Signal(16), Signal(8), Signal(), Signal(bits + 1)
        flags, stopped = Signal(2), Signal()
        works, sends, waits = Signal(), Signal(), Signal()  # a list is being done; an answer goes; a frame waits
        wait_head, wait_end = Signal(32), Signal(bits)

        # A frame that arrives while a list is being done goes to a second buffer
        m.d.comb += [
            put.addr.eq(Cat(receiver.index, ~bank)),
            put.data.eq(receiver.word),
            put.en.eq(receiver.word_valid & ~waits),
        ]
        doing = Signal(32)
        again = Signal()
        m.d.comb += [
            doing.eq(Cat(Const(LIST, 8), sequence, session)),
            again.eq((works | sends) & (receiver.head == doing)),
        ]
        asks_busy = Signal()
        torn = Signal()  # a word of the frame found no place
        with m.If(receiver.word_valid & (waits | (receiver.index == 0))):
            m.d.sync += torn.eq(waits)
        with m.If(receiver.bad | (receiver.good & (waits | torn))):
            m.d.sync += self.dropped.eq(self.dropped + 1)
        with m.If(receiver.good & ~waits & ~torn):
            with m.If(again), m.If(works):
                m.d.sync += asks_busy.eq(1)
            with m.Else():
                m.d.sync += [waits.eq(1), wait_head.eq(receiver.head), wait_end.eq(receiver.length - 1)]
        m.d.comb += self.run.stop.eq(waits)

        # What goes: a head alone, or the answer that is kept
        m.d.comb += [sender.count.eq(given)]
        head, kind = Signal(32), Signal(8)
        m.d.comb += [sender.head.eq(head), sender.whole.eq(kind == ANSWER), head.eq(Cat(kind, sequence, session))]
        with m.If(asks_busy & ~sender.busy & works):
            m.d.comb += [kind.eq(BUSY), sender.start.eq(1)]
            m.d.sync += asks_busy.eq(0)

        item, op, count, addr, place = Signal(32), Signal(8), Signal(16), Signal(BUS_ADDR_BITS), Signal(16)
        asked = Signal(32)  # the word at `at`, from the second clock after its change on
        m.d.comb += [get.addr.eq(Cat(at, bank))]
        m.d.sync += asked.eq(get.data)
        m.d.sync += [self.bus.w_en.eq(0), self.bus.r_en.eq(0), self.run.start.eq(0), self.open.eq(session != 0)]
        m.d.comb += [self.bus.addr.eq(addr), self.bus.w_data.eq(item)]
        timer = Signal(range(READ_CLOCKS + 1))
        word, gives = Signal(32), Signal()
        full = Signal()
        m.d.comb += [
            full.eq(room_at[bits] | (room_at == self.words - 2)),
            answer.addr.eq(room_at),
            answer.data.eq(word),
        ]
        m.d.comb += answer.en.eq(gives & ~full)
        with m.If(gives):
            m.d.sync += [room_at.eq(room_at + 1), flags.eq(flags | Mux(full, OVERFLOW, 0))]
            with m.If(full):
                m.d.sync += room_at.eq(room_at)
        left, room = Signal(bits + 1), Signal(bits + 1)
        m.d.sync += [left.eq(self.words - 2 - room_at), room.eq(Mux(left == 0, 0, left - 1))]
        with m.If(self.bus.w_en):
            m.d.sync += addr.eq(addr + 1)
        skips = Signal()
        m.d.comb += skips.eq(stopped & ((op == WRITE) | (op == RUN)))

        with m.FSM() as fsm:
            m.d.comb += self.busy.eq(~fsm.ongoing("IDLE") | waits | sender.busy | receiver.good)
            m.d.comb += self.still.eq(fsm.ongoing("IDLE") & ~sender.busy)
            with m.State("IDLE"), m.If(waits & ~self.holds):
                # the place in which it is; the other one is free again
                m.d.sync += [bank.eq(~bank), end.eq(wait_end), waits.eq(0), at.eq(1), asks_busy.eq(0)]
                same = wait_head[16:] == session
                with m.If(wait_head[:8] == OPEN):
                    m.next = "OPENED"
                    with m.If(~same):
                        m.d.sync += [session.eq(wait_head[16:]), sequence.eq(0), has_answer.eq(0)]
                with m.Elif(
                    (wait_head[:8] == LIST) & same & (session != 0) & (wait_head[8:16] == sequence) & has_answer
                ):
                    m.next = "SEND"
                with m.Elif((wait_head[:8] == LIST) & same & (session != 0) & (wait_head[8:16] == (sequence + 1)[:8])):
                    m.d.sync += [
                        sequence.eq(sequence + 1), room_at.eq(1), flags.eq(0), stopped.eq(0), works.eq(1),
                        has_answer.eq(1),
                    ]  # fmt: skip
                    m.next = "ITEM"
                with m.Else():
                    m.next = "REFUSE"
            with m.State("OPENED"), m.If(~sender.busy):
                m.d.comb += [kind.eq(OPENED), sender.start.eq(1)]
                m.next = "IDLE"
            with m.State("REFUSE"), m.If(~sender.busy):
                m.d.comb += [kind.eq(REFUSED), sender.start.eq(1)]
                m.next = "IDLE"
            with m.State("SEND"):
                m.d.sync += sends.eq(1)
                with m.If(~sender.busy):
                    m.d.comb += [kind.eq(ANSWER), sender.start.eq(1)]
                    m.next = "SENT"
            with m.State("SENT"), m.If(~sender.busy):
                m.d.sync += sends.eq(0)
                m.next = "IDLE"
            with m.State("ITEM"):
                m.next = "READ OP"
                with m.If(at == end):
                    m.d.comb += [word.eq(flags)]
                    m.next = "FLAGS"
            with m.State("FLAGS"):  # in front of what the items have answered
                m.d.comb += [answer.addr.eq(0), answer.data.eq(flags), answer.en.eq(1)]
                m.d.sync += [given.eq(room_at), works.eq(0), sends.eq(1)]
                m.next = "SEND"
            with m.State("OP"):
                m.d.sync += [op.eq(asked[24:]), count.eq(asked), at.eq(at + 1)]
                m.next = "FETCH"
                with m.If((at == end - 1) | (asked[24:] < WRITE) | (asked[24:] > RUN)):
                    m.d.sync += flags.eq(flags | MALFORMED)
                    m.next = "FLAGS"
            with m.State("FIRST"):
                m.d.sync += [addr.eq(asked), self.run.until[:32].eq(asked), at.eq(at + 1), place.eq(0)]
                with m.Switch(op):
                    with m.Case(WRITE):
                        m.next = "WRITES"
                    with m.Case(READ):
                        m.next = "READS"
                    with m.Case(TAKE):
                        m.next = "LEVEL"
                    with m.Case(RUN):
                        m.next = "UNTIL"
            with m.State("WRITES"):
                m.next = "READ WORD"
                with m.If(place == count):
                    m.next = "ITEM"
                with m.Elif(at == end):
                    m.d.sync += flags.eq(flags | MALFORMED)
                    m.next = "FLAGS"
            with m.State("WRITE"):
                m.d.sync += [item.eq(asked), self.bus.w_en.eq(~skips), at.eq(at + 1), place.eq(place + 1)]
                m.next = "WRITES"
            with m.State("READS"):
                with m.If(place == count):
                    m.next = "ITEM"
                with m.Else():
                    m.d.sync += [self.bus.r_en.eq(1), timer.eq(READ_CLOCKS), place.eq(place + 1)]
                    m.next = "READ"
            with m.State("READ"):
                m.d.sync += timer.eq(timer - 1)
                with m.If(timer == 0):
                    m.d.comb += [word.eq(self.bus.r_data), gives.eq(1)]
                    m.next = "READS"
                    with m.If(op == READ):
                        m.d.sync += addr.eq(addr + 1)
            with m.State("LEVEL"):
                m.d.sync += [self.bus.r_en.eq(1), timer.eq(READ_CLOCKS)]
                m.next = "TAKE"
            with m.State("TAKE"):
                m.d.sync += timer.eq(timer - 1)
                with m.If(timer == 0):
                    m.d.sync += count.eq(Mux(self.bus.r_data < count, self.bus.r_data, count))
                    m.next = "TAKEN"
            with m.State("TAKEN"):
                m.d.comb += [word.eq(Mux(count < room, count, room)), gives.eq(1)]
                m.d.sync += [count.eq(word), addr.eq(addr + 1)]
                m.next = "READS"
            with m.State("UNTIL"):
                with m.If(at == end):
                    m.d.sync += flags.eq(flags | MALFORMED)
                    m.next = "FLAGS"
                with m.Else():
                    m.next = "READ HIGH"
            with m.State("START"):
                m.d.sync += [self.run.until[32:].eq(asked), at.eq(at + 1)]
                m.next = "ITEM"
                with m.If(~skips):
                    m.d.sync += self.run.start.eq(1)
                    m.next = "STARTED"
            with m.State("RUNNING"), m.If(~self.run.running):
                m.d.comb += [word.eq(self.run.following[:32]), gives.eq(1)]
                m.d.sync += stopped.eq(self.run.stopped)
                m.next = "RAN"
            with m.State("RAN"):
                m.d.comb += [word.eq(self.run.following[32:] | Mux(stopped, STOPPED, 0)), gives.eq(1)]
                m.next = "ITEM"
            for state, following in WAITS.items():
                with m.State(state):
                    m.next = following
        return m
