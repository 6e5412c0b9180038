"""What happens inside a tick, for both datapath widths in one description.

The control of a node is written once: a chain of look-ups, a decision, and a commit that writes every register
and memory. On the wide datapath a tick is one clock: look-ups are combinational reads, and the commit is the
tick's clock edge. On the narrow datapath a tick has 13 clocks or more: inputs are held in registers, memories
have registered reads, the chain settles clock by clock, and one strobe late in the tick commits. Since a tick's
work ends before the next tick starts, nothing needs forwarding, and both widths take the same decisions.
"""

from contextlib import nullcontext

from amaranth.hdl import Mux, Signal
from amaranth.lib import memory

from .cell import WIDE

__all__ = ["Slot", "Store"]


class Store:
    """A memory with combinational reads on the wide datapath and registered ones on the narrow.

    Up to two writers may write in the same tick, to different addresses. On the wide datapath each has a port;
    on the narrow one the second write is held until the first writer leaves the port free.
    """

    def __init__(self, m, wide, name, shape, depth, init=()):
        self._m, self._wide, self._name = m, wide, name
        self._memory = memory.Memory(shape=shape, depth=depth, init=init)
        self._shape = shape
        self._port = self._busy = None
        m.submodules[name] = self._memory

    def read(self, addr):
        """Data at ``addr``: in the same clock (wide), in the next (narrow)."""
        port = self._memory.read_port(domain="comb" if self._wide else "sync")
        self._m.d.comb += port.addr.eq(addr)
        return port.data

    def write(self, addr, value, en, clear=None):
        """Write ``value`` to ``addr`` at the end of a clock in which ``en`` is high.

        ``clear`` is ``(clearing, addr, value)``: another write that goes through the same port, at other times.
        """
        m = self._m
        if self._wide or self._port is None:
            port = self._memory.write_port()
            with m.If(en):
                m.d.comb += [port.addr.eq(addr), port.data.eq(value), port.en.eq(1)]
            if clear is not None:
                with m.If(clear[0]):
                    m.d.comb += [port.addr.eq(clear[1]), port.data.eq(clear[2]), port.en.eq(1)]
            self._port = port
            self._busy = en if clear is None else en | clear[0]
        else:
            held_en = Signal(name=f"{self._name}_held_en")
            held_addr = Signal.like(self._port.addr, name=f"{self._name}_held_addr")
            held_data = Signal(self._shape, name=f"{self._name}_held_data")
            with m.If(en):
                m.d.sync += [held_en.eq(1), held_addr.eq(addr), held_data.eq(value)]
            with m.Elif(~self._busy):
                m.d.sync += held_en.eq(0)
            with m.If(held_en & ~self._busy):
                m.d.comb += [
                    self._port.addr.eq(held_addr),
                    self._port.data.eq(held_data),
                    self._port.en.eq(1),
                ]


class Slot:
    """The clocks of a tick.

    Parameters
    ----------
    m : Module
    time : TimeSignature interface
    width : int
        Datapath width.
    commit : int
        The clock of a tick (counted from 0 at the ``tick`` strobe) at which the narrow datapath commits.

    Attributes
    ----------
    wide : bool
    commit : Value
        High in the clock whose edge ends the tick's decision.
    phase : Signal(4)
        Narrow only: the clock's number in the tick, 15 from the sixteenth on.
    """

    def __init__(self, m, time, width, commit=9):
        self._m = m
        self.wide = width == WIDE
        if self.wide:
            self.commit = time.tick
        else:
            count = Signal(4, init=15, name="phase_count")
            self.phase = Signal(4, name="phase")
            m.d.comb += self.phase.eq(Mux(time.tick, 0, count))
            m.d.sync += count.eq(Mux(self.phase == 15, 15, self.phase + 1))
            self.commit = Signal(name="commit")
            m.d.comb += self.commit.eq(self.phase == commit)

    def store(self, name, shape, depth, init=()):
        """A :class:`Store` of this module."""
        return Store(self._m, self.wide, name, shape, depth, init)

    def hold(self, value, strobe, name):
        """``value`` as of the last clock with ``strobe``, from the next clock on (narrow); ``value`` (wide)."""
        if self.wide:
            return value
        held = Signal.like(value, name=name)
        with self._m.If(strobe):
            self._m.d.sync += held.eq(value)
        return held

    def only(self, strobe):
        """``with slot.only(strobe):`` what is assigned in it is wanted only while ``strobe`` is high. On the wide
        datapath it is 0 otherwise, so that a clock without the strobe does none of its work; on the narrow one it is
        always there, as its stages need the clocks before the strobe."""
        return self._m.If(strobe) if self.wide else nullcontext()

    def settle(self, value, name):
        """A stage of the chain: a register on the narrow datapath, nothing on the wide."""
        if self.wide:
            return value
        staged = Signal.like(value, name=name)
        self._m.d.sync += staged.eq(value)
        return staged
