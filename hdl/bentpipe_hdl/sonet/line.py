"""A SONET line: two ends back to back, and what may happen to the bytes between them."""

from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from bentpipe_hdl.csr import CsrSignature
from bentpipe_hdl.sonet.terminal import SonetTerminal

__all__ = ["LineErrors", "SonetLine"]


class LineErrors(wiring.Component):
    """Inverts bits of a line and takes its signal away. Latency 1 clock.

    Random errors come at most once a word, at a bit that is drawn, too: the rate is exact, and two errors in one
    word are left out (at a bit error ratio of 1e-4 and 72 bits, 0.4 % of the errors).

    Parameters
    ----------
    width : int
        Bytes a clock.
    seed : int
        Not 0.

    Members
    -------
    enable : In(1)
        The word clock.
    i, o : In, Out(8 * width)
        The line.
    rate : In(32)
        Probability of an error in a word, in 2**-32: bit error ratio times ``8 * width``.
    burst : In(16), burst_start : In(1)
        The next ``burst`` words are inverted.
    flip : In(range(8 * width)), flip_start : In(1)
        One bit of the next word is inverted, counted from the first transmitted one.
    loss : In(32), loss_start : In(1)
        Zeros for so many words.
    errors : Out(32)
        Bits inverted one by one; wraps.
    """

    def __init__(self, width, seed=1):
        if not 0 < seed < 1 << 64:
            raise ValueError(f"seed must be 1 to 2**64 - 1, not {seed!r}")
        self._width, self._seed = width, seed
        bits = 8 * width
        super().__init__(
            {
                "enable": In(1, init=1),
                "i": In(bits),
                "o": Out(bits),
                "rate": In(32),
                "burst": In(16),
                "burst_start": In(1),
                "flip": In(range(bits)),
                "flip_start": In(1),
                "loss": In(32),
                "loss_start": In(1),
                "errors": Out(32),
            }
        )

    def elaborate(self, platform):
        m = Module()
        width = self._width
        bits = 8 * width
        noise = Signal(64, init=self._seed)
        burst, loss = Signal(16), Signal(32)
        flipping = Signal()
        place = Signal(range(bits))

        # Starts are remembered until the word clock.
        with m.If(self.burst_start):
            m.d.sync += burst.eq(self.burst)
        with m.If(self.loss_start):
            m.d.sync += loss.eq(self.loss)
        with m.If(self.flip_start):
            m.d.sync += [flipping.eq(1), place.eq(self.flip)]

        with m.If(self.enable):
            m.d.sync += self.o.eq(self.i)
            with m.If(self.rate != 0):
                # xorshift, 64 bits: the top half decides, the bottom half says where
                a, b, c = Signal(64), Signal(64), Signal(64)
                m.d.comb += [
                    a.eq(noise ^ (noise << 13)),
                    b.eq(a ^ (a >> 7)),
                    c.eq(b ^ (b << 17)),
                ]
                m.d.sync += noise.eq(c)
                with m.If(noise[32:] < self.rate):
                    where = Signal(range(bits))
                    m.d.comb += where.eq((noise[:16] * bits) >> 16)
                    m.d.sync += [self.o.eq(self.i ^ (Const(1, bits) << where)[:bits]), self.errors.eq(self.errors + 1)]
            with m.If(flipping & ~self.flip_start):
                # bit 7 of a byte is the first
                at = Cat(~place[:3], place[3:])
                m.d.sync += [
                    self.o.eq(self.i ^ (Const(1, bits) << at)[:bits]),
                    flipping.eq(0),
                    self.errors.eq(self.errors + 1),
                ]
            with m.If((burst != 0) & ~self.burst_start):
                m.d.sync += [self.o.eq(~self.i), burst.eq(burst - 1)]
            with m.If((loss != 0) & ~self.loss_start):
                m.d.sync += [self.o.eq(0), loss.eq(loss - 1)]
        return m


class SonetLine(wiring.Component):
    """Two terminals and the line between them, in both directions.

    A clock offset between the ends is the terminals' ``drift``: it moves pointers, and idle cells take up the rest.

    Parameters
    ----------
    geometry : Geometry
    seed : int
        Of the errors; the two directions differ.

    Members
    -------
    enable : In(1)
        The line's word clock.
    a, b
        The ends: ``tx_cell``, ``tx_valid``, ``tx_ready``, ``rx_cell``, ``rx_valid``, ``rx_hec_error``,
        ``rx_corrected``, ``csr``, ``irq`` as in :class:`SonetTerminal`, with ``a_`` and ``b_`` in front.
    a_to_b, b_to_a
        Errors, as in :class:`LineErrors`, with ``ab_`` and ``ba_`` in front.
    """

    _ENDS = ("tx_cell", "tx_valid", "tx_ready", "rx_cell", "rx_valid", "rx_hec_error", "rx_corrected", "irq")
    _ERRORS = ("rate", "burst", "burst_start", "flip", "flip_start", "loss", "loss_start", "errors")

    def __init__(self, geometry, seed=1):
        self._terminals = {name: SonetTerminal(geometry) for name in "ab"}
        self._errors = {
            "ab": LineErrors(geometry.width, seed),
            "ba": LineErrors(geometry.width, seed + 0x9E3779B97F4A7C15),
        }
        members = {"enable": In(1, init=1)}
        for name, part in self._terminals.items():
            members |= {f"{name}_{k}": part.signature.members[k] for k in self._ENDS}
            members[f"{name}_csr"] = In(CsrSignature())
        for name, part in self._errors.items():
            members |= {f"{name}_{k}": part.signature.members[k] for k in self._ERRORS}
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        for group, names in ((self._terminals, self._ENDS), (self._errors, self._ERRORS)):
            for name, part in group.items():
                m.submodules[name] = part
                m.d.comb += part.enable.eq(self.enable)
                for k in names:
                    mine, its = getattr(self, f"{name}_{k}"), getattr(part, k)
                    m.d.comb += its.eq(mine) if part.signature.members[k].flow == In else mine.eq(its)
        a, b = self._terminals["a"], self._terminals["b"]
        ab, ba = self._errors["ab"], self._errors["ba"]
        wiring.connect(m, a.csr, wiring.flipped(self.a_csr))
        wiring.connect(m, b.csr, wiring.flipped(self.b_csr))
        m.d.comb += [ab.i.eq(a.line_out), b.line_in.eq(ab.o), ba.i.eq(b.line_out), a.line_in.eq(ba.o)]
        return m
