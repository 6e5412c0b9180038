"""The two scramblers: 1+x^6+x^7 over the frame (GR-253 5.1.3) and x^43+1 over the cells' payload (I.432.1 4.3.4)."""

from functools import reduce
from operator import xor

from amaranth.hdl import Cat, Const, Module, Signal, unsigned
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

__all__ = ["FrameKey", "frame_key_parity", "payload_delay", "scramble_payload"]

_PERIOD = 127


def key_bytes(count):
    """Return the first ``count`` bytes of the key stream, from the all-ones preset."""
    register, out = 0x7F, []
    for _ in range(count):
        byte = 0
        for _ in range(8):
            byte = byte << 1 | register >> 6
            register = (register << 1) & 0x7F | (register >> 6 ^ register >> 5) & 1
        out.append(byte)
    return out


def frame_key_parity(geometry):
    """Return the BIP-8 that the key adds to a whole frame."""
    return reduce(xor, key_bytes(810 * geometry.n - geometry.toh_bytes))


class FrameKey(wiring.Component):
    """The key of the frame-synchronous scrambler, one word a clock.

    Narrow words step the seven-bit register; wide ones read the key from a table, because it repeats after 127
    words of any length.

    Parameters
    ----------
    geometry : Geometry

    Members
    -------
    preset : In(1)
        The next clock's word is the first one to be scrambled.
    key : Out(8 * width)
        Registered state and a comb table: to be added to this clock's word.
    """

    def __init__(self, geometry):
        self._width = geometry.width
        self._table = geometry.wide
        super().__init__({"preset": In(1), "key": Out(8 * geometry.width)})

    def elaborate(self, platform):
        m = Module()
        width = self._width
        if self._table:
            words = key_bytes(_PERIOD * width)
            init = [int.from_bytes(bytes(words[i * width : (i + 1) * width]), "little") for i in range(_PERIOD)]
            m.submodules.table = table = Memory(shape=unsigned(8 * width), depth=_PERIOD, init=init)
            port = table.read_port(domain="comb")
            index = Signal(7)
            m.d.comb += [port.addr.eq(index), self.key.eq(port.data)]
            with m.If(self.preset | (index == _PERIOD - 1)):
                m.d.sync += index.eq(0)
            with m.Else():
                m.d.sync += index.eq(index + 1)
            return m
        state = Signal(7, init=0x7F)
        terms = [frozenset([i]) for i in range(7)]
        bits = []
        for _ in range(8 * width):
            bits.append(terms[6])
            terms = [terms[6] ^ terms[5], *terms[:6]]

        def value(term):
            return reduce(xor, [state[i] for i in sorted(term)], Const(0, 1))

        # bit 7 of byte 0 leaves the register first
        m.d.comb += self.key.eq(Cat(value(bits[8 * (i // 8) + 7 - i % 8]) for i in range(8 * width)))
        m.d.sync += state.eq(Cat(value(t) for t in terms))
        with m.If(self.preset):
            m.d.sync += state.eq(0x7F)
        return m


def payload_delay(before, data):
    """Return the bits of ``data`` delayed by 43 in the order of transmission.

    The first of them are from ``before`` (48 bits): the six bytes sent before ``data``, the last of them in the high
    bits.
    """
    size = len(data) // 8
    whole = Cat(before, data)[: 8 * (size + 6)]
    low = Const(int.from_bytes(b"\x07" * size, "little"), 8 * size)
    top = Const(int.from_bytes(b"\xf8" * size, "little"), 8 * size)
    six, five = whole[: 8 * size], whole[8 : 8 * (size + 1)]
    return Cat(Const(0, 5), (six & low)[: 8 * size - 5]) | ((five & top) >> 3)


def _delay_block(before, bits):
    """Return the next ``bits`` (40 at most) of the delayed stream, from the six bytes before."""
    size = bits // 8
    six, five = before[:bits], before[8 : 8 + bits]
    low = Const(int.from_bytes(b"\x07" * size, "little"), bits)
    top = Const(int.from_bytes(b"\xf8" * size, "little"), bits)
    return Cat(Const(0, 5), (six & low)[: bits - 5]) | ((five & top) >> 3)


def scramble_payload(m, before, payload, name="scrambled"):
    """Return the x^43+1 scrambled form of a payload or a part of it.

    It is made in blocks of five octets, as 40 bits are within the delay. ``before`` is as for :func:`payload_delay`.
    The result is as long as ``payload``.
    """
    history, out = before, []
    for start in range(0, len(payload), 40):
        stop = min(len(payload), start + 40)
        block = Signal(stop - start, name=f"{name}_{start}")
        m.d.comb += block.eq(payload[start:stop] ^ _delay_block(history, stop - start))
        out.append(block)
        history = Cat(history, block)[-48:]
    return Cat(*out)
