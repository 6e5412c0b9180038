"""A stream from one clock domain to another: an asynchronous FIFO.

The pointers of Amaranth's FIFO cross as Gray codes through two registers. This is right if the delays of a pointer's
bits differ by less than a period of the pointer's own clock. nextpnr reports paths between clocks and does not
constrain them. So a build compares the slowest of them with the period of the faster clock. The output of the LUT
memory has no such path: its word was written a clock of the reader or more before it is read.
"""

from amaranth.hdl import Cat, Module
from amaranth.lib import wiring
from amaranth.lib.fifo import AsyncFIFOBuffered
from amaranth.lib.wiring import In, Out

__all__ = ["Crossing"]

_WORDS = 17
"""16 in the memory, which a LUT memory has anyway, and one behind it. A word in each clock of the slower domain needs 8
if the clocks are equal, and 4 if one is half of the other."""


class Crossing(wiring.Component):
    """A stream whose ends are in two clock domains.

    A word passes in each clock of the slower domain. The output is registered. Both domains must be reset at once, or
    neither; a reset of the input's domain empties the FIFO.

    Parameters
    ----------
    signature : Signature
        Of the stream: ``valid``, ``ready``, and members that are valid with ``valid``.
    i_domain, o_domain : str

    Members
    -------
    i, o : In(signature), Out(signature)
    """

    def __init__(self, signature, *, i_domain, o_domain):
        self._domains = {"w_domain": i_domain, "r_domain": o_domain}
        super().__init__({"i": In(signature), "o": Out(signature)})

    def elaborate(self, platform):
        m = Module()
        came, goes = (
            Cat(getattr(stream, name) for name in stream.signature.members if name not in ("valid", "ready"))
            for stream in (self.i, self.o)
        )
        m.submodules.fifo = fifo = AsyncFIFOBuffered(width=len(came), depth=_WORDS, **self._domains)
        m.d.comb += [
            fifo.w_data.eq(came),
            fifo.w_en.eq(self.i.valid),
            self.i.ready.eq(fifo.w_rdy),
            goes.eq(fifo.r_data),
            self.o.valid.eq(fifo.r_rdy),
            fifo.r_en.eq(self.o.ready),
        ]
        return m
