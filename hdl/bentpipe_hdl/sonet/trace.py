"""Trace messages in J0 and J1: 1, 16 or 64 bytes, repeated (GR-253 clause 3.3, G.707 clause 9.2.2)."""

from amaranth.hdl import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import enum, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from bentpipe_hdl.sim_hints import usually

__all__ = ["TRACE_MESSAGES", "TraceForm", "TraceReceiver", "TraceSender", "trace_message"]

TRACE_MESSAGES = 3
"""Messages in a row that differ from the expected one to declare a mismatch, and that agree to clear it."""


class TraceForm(enum.Enum, shape=unsigned(2)):
    """Length of a trace message."""

    BYTE = 0
    SHORT = 1  # 16 bytes, the first with its top bit set and a CRC-7
    LONG = 2  # 64 bytes, the last two CR and LF


def trace_message(text, length):
    """Return the bytes of a trace message: with CRC-7 in front (16 bytes) or with CR and LF at the end (64 bytes).

    Raises
    ------
    ValueError
        If ``length`` is neither 16 nor 64 or the text is too long or not ASCII.
    """
    room = {16: 15, 64: 62}.get(length)
    if room is None:
        raise ValueError(f"length must be 16 or 64, not {length!r}")
    if len(text) > room or not text.isascii():
        raise ValueError(f"text must be at most {room} ASCII characters, not {text!r}")
    body = text.encode().ljust(room, b" " if length == 16 else b"\0")
    if length == 64:
        return body + b"\r\n"
    crc = 0  # x^7 + x^3 + 1 over the whole message, its own bits being 0
    for byte in b"\x80" + body:
        for bit in range(7, -1, -1):
            top = crc >> 6 ^ byte >> bit & 1
            crc = (crc << 1) & 0x7F ^ (0x09 if top else 0)
    return bytes([0x80 | crc]) + body


def _is_last(index, form):
    """Return whether the byte at ``index`` is the last one of its message, or after it."""
    short = index[:4].all() | index[4:].any()
    return Mux(form == TraceForm.LONG, index.all(), (form != TraceForm.SHORT) | short)


class TraceSender(wiring.Component):
    """The sender of a trace message, byte by byte.

    Members
    -------
    form : In(TraceForm)
    sent : In(1)
        ``byte`` has been used; the next one is there in the clock after the next.
    byte : Out(8)
    address : In(6), data : In(8), write : In(1)
        The message's memory.
    """

    form: In(TraceForm)
    sent: In(1)
    byte: Out(8)
    address: In(6)
    data: In(8)
    write: In(1)

    def __init__(self, first=0):
        self._first = first
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = memory = Memory(shape=unsigned(8), depth=64, init=[self._first])
        index = Signal(6)
        get = memory.read_port(domain="comb")
        put = memory.write_port()
        byte = Signal(8, init=self._first)
        stale = usually(Signal())
        m.d.comb += [
            get.addr.eq(index),
            put.addr.eq(self.address),
            put.data.eq(self.data),
            put.en.eq(self.write),
            self.byte.eq(byte),
        ]
        m.d.sync += stale.eq(self.sent | self.write)
        with m.If(self.sent):
            m.d.sync += index.eq(Mux(_is_last(index, self.form), 0, index + 1))
        with m.If(stale):
            m.d.sync += byte.eq(get.data)
        return m


class TraceReceiver(wiring.Component):
    """The receiver of trace messages: it finds their start and compares them with an expected one.

    Members
    -------
    form : In(TraceForm)
    strobe : In(1), byte : In(8)
        A received byte; at least two clocks from one to the next.
    clear : In(1)
        There is no trace (a defect of the section or path): no mismatch.
    mismatch : Out(1)
        From the end of the third message in a row that differs, to that of the third that agrees; 5 clocks after it.
    address : In(6), data : In(8), write : In(1)
        The expected message's memory.
    """

    form: In(TraceForm)
    strobe: In(1)
    byte: In(8)
    clear: In(1)
    mismatch: Out(1)
    address: In(6)
    data: In(8)
    write: In(1)

    def __init__(self, first=0):
        self._first = first
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = memory = Memory(shape=unsigned(8), depth=64, init=[self._first])
        get = memory.read_port(domain="comb")
        put = memory.write_port()
        # A byte's way: it is kept; its place in the message is found; it is compared; the message so far is judged; a
        # message that ends counts.
        at = usually(Signal(4))
        byte = Signal(8)
        index = Signal(6)  # of the byte that came last
        ends, wrong, differs = Signal(), Signal(), Signal()
        was_cr, was_end = Signal(), Signal()
        count = Signal(range(TRACE_MESSAGES))
        m.d.comb += [
            get.addr.eq(index),
            put.addr.eq(self.address),
            put.data.eq(self.data),
            put.en.eq(self.write),
        ]
        with m.If(self.strobe):
            m.d.sync += byte.eq(self.byte)
        with m.If(self.strobe | (at != 0)):
            m.d.sync += at.eq(Cat(self.strobe, at))
            with m.If(at[0]):
                m.d.sync += [
                    index.eq(index + 1),
                    was_cr.eq(byte == 0x0D),
                    was_end.eq(was_cr & (byte == 0x0A) & (self.form == TraceForm.LONG)),
                ]
                with m.If(_is_last(index, self.form) | was_end | ((self.form == TraceForm.SHORT) & byte[7])):
                    m.d.sync += index.eq(0)
            with m.If(at[1]):
                m.d.sync += [wrong.eq(get.data != byte), ends.eq(_is_last(index, self.form))]
            with m.If(at[2]):
                m.d.sync += differs.eq(wrong | (differs & (index != 0)))
            with m.If(at[3] & ends):
                with m.If(differs == self.mismatch):
                    m.d.sync += count.eq(0)
                with m.Elif(count == TRACE_MESSAGES - 1):
                    m.d.sync += [self.mismatch.eq(differs), count.eq(0)]
                with m.Else():
                    m.d.sync += count.eq(count + 1)
        with m.If(self.clear):
            m.d.sync += [self.mismatch.eq(0), count.eq(0)]
        return m
