"""Where cells come in: the cell of a tick, for the rest of the switch."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..cell import CellHeader, CellSignature
from ..slot import Slot

__all__ = ["Ingress"]


class Ingress(wiring.Component):
    """Takes a tick's cell: at once on the wide datapath, from its header word on the narrow.

    Members
    -------
    i : In(CellSignature)
    enable : In
        While low, cells are lost.
    take : Out
        There is a cell in this tick; high when the tick's decision is made.
    header, port, hec_error : Out
        Of the tick's cell; on the narrow datapath from clock 2 on.
    """

    def __init__(self, slot: Slot, width, ports):
        self._slot = slot
        super().__init__(
            {
                "i": In(CellSignature(width, ports)),
                "enable": In(1),
                "take": Out(1),
                "header": Out(CellHeader),
                "port": Out(range(ports)),
                "hec_error": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        slot, i = self._slot.within(m), self.i
        if slot.wide:
            header, arrives = i.header, i.valid
        else:
            soc = i.valid & i.soc
            header = CellHeader(slot.hold(i.word, soc, "held_header"))
            arrives = Signal()
            with m.If(soc):
                m.d.sync += arrives.eq(1)
            with m.Elif(slot.commit):
                m.d.sync += arrives.eq(0)
        m.d.comb += [
            self.header.eq(header),
            self.port.eq(i.port if slot.wide else slot.hold(i.port, soc, "held_port")),
            self.hec_error.eq(i.hec_error if slot.wide else slot.hold(i.hec_error, soc, "held_hec_error")),
        ]
        with m.If(slot.commit), m.If(arrives & self.enable):
            m.d.comb += self.take.eq(1)
        return m
