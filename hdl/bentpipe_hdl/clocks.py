"""From which clock of a tick each value of a narrow node is there, worked out over the whole node."""

from amaranth.hdl import Fragment, Value

from .amaranth_private import SignalDict, SignalSet, assignments, memory_reads, memory_writes, used
from .cell import CLOCKS_A_TICK

__all__ = ["ClockError", "Clocks"]

LONGEST = 64
"""Clocks of a chain. Beyond, registers of the chain feed themselves."""


class ClockError(ValueError):
    """A value is used before it is there, or something is used twice in a clock."""


class Clocks:
    """What is known of a node's clocks while it is built, and the check of the whole.

    A signal is there from clock 0 on, unless what it is made of is later: a register that follows its input from a
    clock after that, a register that :meth:`holds` from where it says. What a register or a memory takes otherwise
    has to be there in the clock of the strobe under which it is taken; without a strobe, in every clock.
    """

    def __init__(self):
        self._strobes = SignalDict()  # signals that are high in a known clock at the earliest
        self._held = SignalDict()  # registers that hold from a known clock on
        self._following = SignalSet()
        self._needs: list[tuple[Value, int, str]] = []
        self._writes: list[tuple[Value, int, str, dict[int, str], bool]] = []

    def strobe(self, signal, clock):
        """``signal`` is high in this clock of a tick at the earliest; what is taken while it is, is taken then."""
        self._strobes[signal] = clock

    def holds(self, register, clock):
        """``register`` has the tick's value from this clock on."""
        self._held[Value.cast(register)] = clock

    def follows(self, register):
        """``register`` takes its input in every clock."""
        self._following.add(Value.cast(register))

    def needs(self, value, clock, what):
        """``value`` has to be there in this clock."""
        self._needs.append((Value.cast(value), clock, what))

    def writes(self, en, later, name, reads, apart):
        """A memory is written so many clocks after ``en``: before the next tick's first of ``reads`` (destinations by
        clock), and if they are ``apart``, in none of their clocks."""
        self._writes.append((Value.cast(en), later, name, reads, apart))

    def check(self, fragment: Fragment) -> None:
        """Raise ClockError if a value is used too early anywhere in the fragment."""
        self._sources = SignalDict()  # of a signal that is combinational or follows: what it is made of
        taken: list[tuple[str, SignalSet]] = []  # what registers and memories take
        for domain, targets, sources, conditions in assignments(fragment):
            for signal in targets:
                if signal in self._following and conditions:
                    raise ClockError(f"{signal.name} settles only under a condition")
                if domain == "comb" or signal in self._following:
                    self._sources[signal] = self._sources.get(signal, SignalSet()) | sources
                elif signal not in self._held:
                    taken.append((signal.name, sources))
        for domain, data, address in memory_reads(fragment):
            for signal in data:
                self._sources[signal] = address
                if domain != "comb":
                    self._following.add(signal)
        taken.extend(memory_writes(fragment))
        self._settle()
        for value, clock, what in self._needs:
            self._demand(used(value), clock, what)
        for name, sources in taken:
            self._demand(sources, self._strobe_of(sources, 0), f"what {name} takes")
        for en, later, name, reads, apart in self._writes:
            strobe = self._strobe_of(used(en), None)
            written = (strobe or 0) + later
            for clock, to in reads.items():
                if apart and (strobe is None or (written - clock) % CLOCKS_A_TICK == 0):
                    raise ClockError(f"clock {clock}: {name} is read for {to} when it may be written")
                if clock + CLOCKS_A_TICK <= written:
                    raise ClockError(f"clock {clock}: {name} is read for {to} before the last tick's write is done")

    def _settle(self):
        """Work out from when each signal is there, and under which strobe."""
        self._from, self._under = SignalDict(), SignalDict()
        for signal, clock in self._strobes.items():
            self._under[signal] = clock
        for signal, clock in self._held.items():
            self._from[signal] = clock
        uses = SignalDict()
        for signal, sources in self._sources.items():
            for source in sources:
                uses.setdefault(source, SignalSet()).add(signal)
        waiting = list(self._sources)
        while waiting:
            signal = waiting.pop()
            sources = self._sources[signal]
            clock = max((self._from.get(s, 0) for s in sources), default=0)
            clock = self._held.get(signal, clock + (signal in self._following))
            under = None
            if signal not in self._following:
                under = self._strobe_of(sources, None)
            under = self._strobes.get(signal, under)
            if clock > LONGEST:
                raise ClockError(f"{signal.name} follows itself")
            if (clock, under) != (self._from.get(signal, 0), self._under.get(signal)):
                self._from[signal] = clock
                if under is not None:
                    self._under[signal] = under
                waiting += uses.get(signal, ())

    def _strobe_of(self, sources, default):
        return min((self._under[s] for s in sources if s in self._under), default=default)

    def _demand(self, sources, clock, what):
        for signal in sources:
            if self._from.get(signal, 0) > clock:
                raise ClockError(
                    f"clock {clock}: {what} needs {signal.name}, which is there from clock {self._from[signal]} on"
                )
