"""The cell that arrives with a tick, for the tick's decisions."""

from amaranth.hdl import Signal

from .cell import CellHeader

__all__ = ["Arrival"]


class Arrival:
    """The cell that arrives in a tick, as a node's decisions use it.

    The narrow datapath keeps the header: it arrives in the first or second clock of the tick, and may be used from
    clock 2 on.

    Parameters
    ----------
    m : Module
    slot : TickSchedule
    i : CellSignature interface

    Attributes
    ----------
    there : Value
        A cell has arrived in this tick.
    header : CellHeader
    port, hec_error : Value
    """

    def __init__(self, m, slot, i):
        if slot.wide:
            self.there, self.header, self.port, self.hec_error = i.valid, i.header, i.port, i.hec_error
            return
        starts, there = i.valid & i.soc, Signal(name="arrived")
        self.there = there
        self.header = CellHeader(slot.hold(i.word, starts, "held_header"))
        self.port = slot.hold(i.port, starts, "held_port")
        self.hec_error = slot.hold(i.hec_error, starts, "held_hec_error")
        with m.If(starts):
            m.d.sync += there.eq(1)
        with m.Elif(slot.commit):
            m.d.sync += there.eq(0)
        slot.clocks.holds(there, 2, until=slot.clocks.commit)
