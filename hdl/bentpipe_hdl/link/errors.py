"""Processes of bit errors: the registers that set them, gaps drawn ahead, and which of two goes on."""

from contextlib import nullcontext

from amaranth.hdl import Cat, Mux, Signal
from amaranth.lib import memory

from bentpipe_hdl.bit_errors import GAP_BITS
from bentpipe_hdl.link.gap import Gap, xorshift

__all__ = ["PROCESS", "GapsAhead", "LinkErrors", "of_state"]

PROCESS = ("enable", "gap", "state", "mantissa", "shift")
"""What a process of bit errors has."""


def of_state(bad, pair):
    """Return the value of the state: of the only one, or of two."""
    return pair[0] if bad is None else Mux(bad, pair[1], pair[0])


class ErrorProcess:
    """A process of bit errors: the registers, and the state that software may write.

    Attributes
    ----------
    redraw : Signal
        The rate was written, after the gap.
    new_gap, gap_written, new_state, state_written : Signal
        On the narrow datapath, what was written: while a cell is being hit, ``gap`` and ``state`` are its own.
    """

    def __init__(self, prefix):
        self.prefix = prefix
        self.enable, self.redraw = Signal(name=f"{prefix}enable"), Signal(name=f"{prefix}redraw")
        self.mantissa, self.shift = Signal(24, name=f"{prefix}mantissa"), Signal(6, name=f"{prefix}shift")
        self.gap, self.state = Signal(GAP_BITS, name=f"{prefix}gap"), Signal(64, init=1, name=f"{prefix}state")
        self.new_gap, self.new_state = Signal(GAP_BITS, name=f"new_{prefix}gap"), Signal(64, name=f"new_{prefix}state")
        self.gap_written, self.state_written = Signal(name=f"{prefix}gap_new"), Signal(name=f"{prefix}state_new")

    def registers(self, m, csr, wide, fresh):
        rates = {f"{self.prefix}error_{name}": getattr(self, name) for name in ("enable", "mantissa", "shift")}
        gap, state = (self.gap, self.state) if wide else (self.new_gap, self.new_state)
        for name, signal in (*rates.items(), (f"{self.prefix}gap", gap), (f"{self.prefix}seed", state)):
            csr.register(name, signal)
        enable, *scale = rates
        for name in (enable, *scale, f"{self.prefix}seed"):
            with csr.written(name):
                m.d.sync += fresh.eq(1)
        for name in scale:
            with csr.written(name):
                m.d.sync += self.redraw.eq(1)
        with csr.written(f"{self.prefix}gap"):
            m.d.sync += [self.redraw.eq(0), self.gap_written.eq(0 if wide else 1)]
        with csr.written(f"{self.prefix}seed"):
            m.d.sync += self.state_written.eq(0 if wide else 1)


class GapsAhead:
    """Narrow: a process's gaps drawn ahead, as its settings were at the tick's start: state -> gap, some clocks later
    -> queue.

    Attributes
    ----------
    enable, redraw : Signal
    gap, next, used : Signal
        Good bits before the next error; behind it, the first in the queue; gaps there.
    fills : Value
        The queue is being filled.
    """

    DEPTH = 16

    def __init__(self, m, s, p):
        self._m, self._s, self._p = m, s, p
        p.ahead = self
        queue = memory.Memory(shape=GAP_BITS, depth=self.DEPTH, init=[])
        m.submodules[f"{p.prefix}gap_queue"] = queue
        push, pull = queue.write_port(), queue.read_port(domain="comb")
        self._head, self._tail = Signal(5, name=f"{p.prefix}head"), Signal(5, name=f"{p.prefix}tail")
        self.used = Signal(5, name=f"{p.prefix}used")
        m.submodules[f"{p.prefix}gap_unit"] = unit = Gap(pipelined=True)
        self._ahead = Signal(64, name=f"{p.prefix}ahead")  # from which gaps are drawn; p.state is that of those used
        self.enable, self.redraw = Signal(name=f"{p.prefix}enable_now"), Signal(name=f"{p.prefix}redraw_now")
        self._mantissa = Signal.like(p.mantissa, name=f"{p.prefix}mantissa_now")
        self._shift = Signal.like(p.shift, name=f"{p.prefix}shift_now")
        self._drawing = Signal(Gap.LATENCY, name=f"{p.prefix}drawing")
        draw = Signal(name=f"{p.prefix}draw")
        m.d.comb += [
            self.used.eq(self._tail - self._head),
            draw.eq(self.used < self.DEPTH - Gap.LATENCY - 1),
            unit.state.eq(self._ahead),
            unit.mantissa.eq(self._mantissa),
            unit.shift.eq(self._shift),
        ]
        with m.If(draw):
            m.d.sync += self._ahead.eq(xorshift(self._ahead))
        m.d.sync += self._drawing.eq(Cat(draw, self._drawing[:-1]))
        drawn = self._drawing[-1]
        m.d.comb += [push.addr.eq(self._tail[:4]), push.data.eq(unit.gap), push.en.eq(drawn)]
        m.d.comb += pull.addr.eq(self._head[:4])
        with m.If(drawn):
            m.d.sync += self._tail.eq(self._tail + 1)
        self.gap, self.next = p.gap, pull.data
        self.fills = draw | self._drawing.any()

    def use(self, gap):
        """Take the first gap of the queue; that before the next error is ``gap``."""
        p = self._p
        self._m.d.sync += [p.gap.eq(gap), self._head.eq(self._head + 1), p.state.eq(xorshift(p.state))]

    def begin(self):
        """Make settings written since the start of the last tick take effect from this tick on."""
        m, p = self._m, self._p
        state = Signal(64, name=f"{p.prefix}state_from_now")
        m.d.comb += state.eq(Mux(p.state_written, p.new_state, p.state))
        m.d.sync += [p.redraw.eq(0), p.gap_written.eq(0), p.state_written.eq(0), p.state.eq(state)]
        m.d.sync += self.redraw.eq(p.redraw | (self.redraw & ~p.gap_written))
        with m.If(p.gap_written):
            m.d.sync += p.gap.eq(p.new_gap)
        with m.If(self._s.fresh):
            m.d.sync += [self.enable.eq(p.enable), self._mantissa.eq(p.mantissa), self._shift.eq(p.shift)]
            m.d.sync += [self._ahead.eq(xorshift(state)), self._head.eq(0), self._tail.eq(0), self._drawing.eq(0)]


class LinkErrors:
    """The registers of a link.

    Attributes
    ----------
    processes : list of ErrorProcess
        Of bit errors: one, or one a state.
    bad : Signal or None
        Which of two goes on.
    fresh : Signal
        The errors' settings were written: the next cell is to pass unhurt.
    """

    def __init__(self, bad):
        self.bad = bad
        self.processes = [ErrorProcess(prefix) for prefix in ("", "bad_")[: 1 if bad is None else 2]]
        self.delay, self.error_bits, self.fresh = Signal(32, init=1), Signal(32), Signal()

    def now(self, m, slot, name, taken):
        """Return a member of the active process, valid while a cell is ``taken``."""
        values = [getattr(p, name) for p in self.processes]
        if self.bad is None:
            return values[0]
        chosen = Signal.like(values[0], name=f"{name}_chosen")
        with slot.gate_when(taken):
            m.d.comb += chosen.eq(of_state(self.bad, values))
        return chosen

    def chosen(self, m):
        """Yield each process, in a context that holds while that process is active."""
        for k, p in enumerate(self.processes):
            with nullcontext() if self.bad is None else m.If(self.bad == k):
                yield p

    def registers(self, m, csr, wide):
        csr.register("delay", self.delay)
        for p in self.processes:
            p.registers(m, csr, wide, self.fresh)
