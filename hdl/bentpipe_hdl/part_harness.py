"""A part of a node by itself: for its tests and proofs, and to see what it costs on an FPGA."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from .cell import TimeSignature
from .tick_schedule import TickSchedule

__all__ = ["PartHarness"]


class PartHarness(wiring.Component):
    """A part that shares its node's slot, with a slot of its own.

    Parameters
    ----------
    make : callable
        ``make(slot)`` makes the part.
    width : int
        Datapath, 416 or 32 bits.
    commit : int
        As for :class:`~.tick_schedule.TickSchedule`.

    Members
    -------
    time : In
    others : as of the part
    """

    def __init__(self, make, *, width, commit):
        self.width, self.commit = width, commit
        self._m, self._time = Module(), TimeSignature().create()
        self._slot = TickSchedule(self._m, self._time, width, commit=commit)
        self.part = make(self._slot)
        members = {name: member for name, member in self.part.signature.members.items() if name != "time"}
        super().__init__({"time": In(TimeSignature()), **members})

    def elaborate(self, platform):
        m = self._m
        m.d.comb += [self._time.tick.eq(self.time.tick), self._time.now.eq(self.time.now)]
        m.submodules.part = self.part
        for path, member, value in self.part.signature.flatten(self.part):
            mine = self
            for name in path:
                mine = mine[name] if isinstance(name, int) else getattr(mine, name)
            m.d.comb += value.eq(mine) if member.flow is In else mine.eq(value)
        return self._slot.checked(m)
