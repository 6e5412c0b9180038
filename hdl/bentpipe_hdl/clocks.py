"""From which clock of a tick each value of a narrow node is there, worked out over the whole node."""

from typing import Any

from amaranth.hdl import Fragment, Signal, Value

from .amaranth_private import SignalDict, SignalSet, assignments, memory_reads, memory_writes, used
from .cell import CLOCKS_A_TICK

__all__ = ["ClockError", "Clocks"]

LONGEST = 64
"""Clocks of a chain. Beyond, registers of the chain feed themselves."""

FOREVER = 1 << 30
"""The last clock of a value that does not change before the next tick replaces it."""


class ClockError(ValueError):
    """A value is used before it is there, or something is used twice in a clock."""


class Clocks:
    """Record of the clocks from which a node's values are valid, kept while the node is built; it checks the whole
    node.

    A signal is valid from clock 0 on, unless a source of it is later. A register that follows its input is valid a
    clock after its input. A register that :meth:`holds` is valid from the clock given there. What any other register or
    memory takes must be valid in the clock of the strobe that enables it; without a strobe, in every clock.

    A register that the commit or a later strobe writes has the next tick's value after that strobe. So a value taken
    by a strobe after the commit must not depend on such a register: it has to be kept before
    (:meth:`TickSchedule.pipe`). A register that :meth:`holds` is exempt, unless it names its last clock.
    """

    def __init__(self):
        self._strobes = SignalDict()  # signals that are high in a known clock at the earliest
        self._held = SignalDict()  # registers that hold from a known clock on
        self._last = SignalDict()  # the last clock in which a signal has the tick's value
        self.commit = FOREVER
        self._following = SignalSet()
        self._needs: list[tuple[Value, int, str]] = []
        self._writes: list[tuple[Value, int, str, dict[int, str], bool]] = []

    def strobe(self, signal, clock):
        """Declare that ``signal`` is high in this clock of a tick at the earliest.

        Values that it enables are taken in that clock.
        """
        self._strobes[signal] = clock

    def holds(self, register, clock, until=FOREVER):
        """Declare that ``register`` has the tick's value from this clock on, up to clock ``until``."""
        self._held[Value.cast(register)] = clock
        self._last[Value.cast(register)] = until

    def follows(self, register):
        """Declare that ``register`` takes its input in every clock."""
        self._following.add(Value.cast(register))

    def needs(self, value, clock, what):
        """Demand that ``value`` is valid in this clock."""
        self._needs.append((Value.cast(value), clock, what))

    def writes(self, en, later, name, reads, apart):
        """Record a memory that is written ``later`` clocks after ``en``, for the check of the whole node.

        The write must come before the first clock of the next tick's ``reads`` (destinations by clock). With ``apart``
        it must not be in the clock of any read.
        """
        self._writes.append((Value.cast(en), later, name, reads, apart))

    def check(self, fragment: Fragment) -> None:
        """Raise ClockError if a value is used too early or too late anywhere in the fragment."""
        self._sources = SignalDict()  # of a signal that is combinational or follows: what it is made of
        taken: list[tuple[str, SignalSet]] = []  # what registers and memories take
        chosen: list[tuple[str, SignalSet]] = []  # what combinational signals are assigned
        updates: list[tuple[Signal, SignalSet]] = []  # what registers take that do not follow
        for domain, targets, sources, conditions in assignments(fragment):
            for signal in targets:
                if signal in self._following and conditions:
                    raise ClockError(f"{signal.name} follows its input only under a condition")
                if domain == "comb":
                    chosen.append((signal.name, sources))
                if domain == "comb" or signal in self._following:
                    self._sources[signal] = self._sources.get(signal, SignalSet()) | sources
                else:
                    updates.append((signal, sources))
                    if signal not in self._held:
                        taken.append((signal.name, sources))
        reads: list[tuple[Any, Signal]] = []
        for memory, domain, data, address in memory_reads(fragment):
            for signal in data:
                self._sources[signal] = address
                reads.append((memory, signal))
                if domain != "comb":
                    self._following.add(signal)
        writes = list(memory_writes(fragment))
        taken.extend((name, sources) for _, name, sources in writes)
        uses = self._uses()
        self._settle(uses)
        self._find_last_clocks(updates, reads, writes, uses)
        for value, clock, what in self._needs:
            self._demand(used(value), clock, what)
            self._demand_last(used(value), clock, what)
        for name, sources in taken:
            self._demand(sources, self._strobe_of(sources, 0), f"what {name} takes")
        for name, sources in (*taken, *chosen):
            self._demand_last(sources, self._strobe_of(sources, 0), f"what {name} takes")
        for en, later, name, reads, apart in self._writes:
            strobe = self._strobe_of(used(en), None)
            written = (strobe or 0) + later
            for clock, to in reads.items():
                if apart and (strobe is None or (written - clock) % CLOCKS_A_TICK == 0):
                    raise ClockError(f"clock {clock}: {name} is read for {to} when it may be written")
                if clock + CLOCKS_A_TICK <= written:
                    raise ClockError(f"clock {clock}: {name} is read for {to} before the last tick's write is done")

    def _uses(self):
        """Return the signals that are made of each signal."""
        uses = SignalDict()
        for signal, sources in self._sources.items():
            for source in sources:
                uses.setdefault(source, SignalSet()).add(signal)
        return uses

    def _settle(self, uses):
        """Work out from when each signal is there, and under which strobe."""
        self._from, self._under = SignalDict(), SignalDict()
        for signal, clock in self._strobes.items():
            self._under[signal] = clock
        for signal, clock in self._held.items():
            self._from[signal] = clock
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

    def _find_last_clocks(self, updates, reads, writes, uses):
        """Work out the last clock in which each signal has the tick's value: of a register that the commit or a later
        strobe writes, the strobe's clock; of what is read from a memory, likewise; of what is made of these, the same,
        and a clock more behind each register that follows. A signal under a strobe is high in one clock only, and has
        no last one."""
        self._origin = SignalDict()  # the register that changes
        waiting = [use for signal in self._last for use in uses.get(signal, ())]
        for signal, sources in updates:
            clock = self._strobe_of(sources, None)
            if clock is None or clock < self.commit or signal in self._held or signal in self._under:
                continue
            if clock < self._last.get(signal, FOREVER):
                self._last[signal] = clock
                waiting += uses.get(signal, ())
        changed = [(id(memory), self._strobe_of(sources, None)) for memory, _, sources in writes]
        for memory, signal in reads:
            clocks = [clock for other, clock in changed if other == id(memory) and clock is not None]
            clock = min((clock for clock in clocks if clock >= self.commit), default=FOREVER)
            clock += signal in self._following
            if signal not in self._held and clock < self._last.get(signal, FOREVER):
                self._last[signal] = clock
                waiting += uses.get(signal, ())
        while waiting:
            signal = waiting.pop()
            if signal in self._under or (signal in self._held and signal not in self._following):
                continue
            source = min(self._sources[signal], key=lambda s: self._last.get(s, FOREVER))
            last = self._last.get(source, FOREVER) + (signal in self._following)
            if last < self._last.get(signal, FOREVER):
                self._last[signal], self._origin[signal] = last, self._origin.get(source, source)
                waiting += uses.get(signal, ())

    def _demand_last(self, sources, clock, what):
        for signal in sources:
            if self._last.get(signal, FOREVER) < clock:
                origin = self._origin.get(signal, signal)
                raise ClockError(
                    f"clock {clock}: {what} needs {signal.name}, which has the tick's value up to clock "
                    f"{self._last[signal]} only, when {origin.name} changes"
                )

    def _strobe_of(self, sources, default):
        return min((self._under[s] for s in sources if s in self._under), default=default)

    def _demand(self, sources, clock, what):
        for signal in sources:
            if self._from.get(signal, 0) > clock:
                raise ClockError(
                    f"clock {clock}: {what} needs {signal.name}, which is valid from clock {self._from[signal]} on"
                )
