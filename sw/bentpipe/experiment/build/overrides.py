"""Overrides: the list of values that events, profiles and requests put on top of the file while a run goes on.

An entry writes exactly its keys, and the last writer of a key wins. Runs, sessions with attached hosts and their replay
share this list. :class:`Overrides` holds it and brings the network to each new state; :class:`Timeline` gives the
entries that the file itself plans, in the order of their times.

An entry that writes only line settings which no other part depends on is applied to the specs directly
(:mod:`bentpipe.experiment.resolve.line_writes`). Every other entry has the whole document read again.
"""

from __future__ import annotations

import logging
from array import array
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from operator import itemgetter
from typing import Any, Final, NamedTuple

from bentpipe.errors import BentpipeError, ConfigError, one_line
from bentpipe.experiment.build.rows import PassedRow, RowFeed
from bentpipe.experiment.document.assign import SHORTHANDS, Assignment, assigned
from bentpipe.experiment.document.changes import Change, changes_between
from bentpipe.experiment.document.source import Source
from bentpipe.experiment.resolve.line_writes import LineWriter
from bentpipe.experiment.resolve.parse import parse_experiment
from bentpipe.experiment.resolve.specs import EventSpec, Experiment, LineWrite, NetworkSpec, ProfileSpec, VcSpec
from bentpipe.results.schema import Writes
from bentpipe_hdl.ticks import first_tick, ticks_to_ps
from bentpipe_hdl.units import format_time
from bentpipe_sim.errors import SimulationError

__all__ = ["Overrides", "PlannedEvent", "ProfileRow", "Rates", "Resolved", "Timeline", "last_ps_before"]

_NAME: Final = "changes"
"""The name of the document that a request is read from, in messages; taken off again."""
_MOST_RATES: Final = 200
"""Entries of :class:`Rates` that profiles make at most."""

_log = logging.getLogger(__name__)


def last_ps_before(at_ps: int) -> int:
    """Return the last picosecond before the first tick at a time or later; -1 for the run's beginning."""
    return ticks_to_ps(first_tick(at_ps)) - 1


class ProfileRow(NamedTuple):
    """A row of a profile that is due at ``at_ps``; ``number`` counts on when the profile repeats."""

    profile: ProfileSpec
    number: int
    at_ps: int


class PlannedEvent(NamedTuple):
    """An event of the file, and how many entries it was read on top of."""

    event: EventSpec
    basis: int


class Timeline:
    """The planned entries of an experiment in the order of their times; without its profiles if the event loop makes
    their rows (``fed``). Where several hold from one tick on, rows of
    profiles come first, in the order of the file, and then events: an event has the last word."""

    def __init__(self, experiment: Experiment, fed: bool = False) -> None:
        self._events = [PlannedEvent(event, basis) for basis, event in enumerate(experiment.events)][::-1]
        self._profiles = () if fed else experiment.profiles
        self._rows = [0] * len(self._profiles)
        self._next = self._first()

    @property
    def before_ps(self) -> int | None:
        """The last picosecond before the next entry holds; None: there is no other."""
        return None if self._next is None else self._next[0]

    def pop(self) -> ProfileRow | PlannedEvent:
        """Take the next entry off the timeline and return it."""
        assert self._next is not None
        _, number, entry = self._next
        if number < len(self._profiles):
            self._rows[number] += 1
        else:
            self._events.pop()
        self._next = self._first()
        return entry

    def _first(self) -> tuple[int, int, ProfileRow | PlannedEvent] | None:
        found: list[tuple[int, int, ProfileRow | PlannedEvent]] = []
        for number, (profile, row) in enumerate(zip(self._profiles, self._rows, strict=True)):
            at_ps = profile.at_ps(row)
            if at_ps is not None:
                found.append((last_ps_before(at_ps), number, ProfileRow(profile, row, at_ps)))
        if self._events:
            found.append((self._events[-1].event.before_ps, len(self._profiles), self._events[-1]))
        return min(found, key=lambda each: each[:2], default=None)


@dataclass(frozen=True, slots=True)
class Resolved:
    """Values that were read and found right, with the network that they make of the state ``basis``."""

    values: dict[str, Any]
    event: EventSpec
    basis: int


class Rates:
    """The rates of switches' ports and of paced VCs, in b/s of cells, from each time on at which one changed.

    A load-reactive port has its ceiling. Changes by profiles are averaged over spans of ``span_ps``, so that their
    number stays small: the mean over any whole number of spans is exact.
    """

    def __init__(self, network: NetworkSpec, vcs: Sequence[VcSpec], span_ps: int) -> None:
        self._span_ps = span_ps
        self._found: list[dict[str, Any]] = []
        self._start: int | None = None  # of the span that is averaged
        self._sums: dict[tuple[str, int], tuple[int, int]] = {}  # of ports that changed in it: until when, rate * time
        self._last: tuple[NetworkSpec, Sequence[VcSpec]] = (network, vcs)
        self._ports = _ports(network)
        self._put(0, self._ports, [vc.pacing.cell_rate_bps for vc in vcs])

    def note(self, at_ps: int, network: NetworkSpec, vcs: Sequence[VcSpec], averaged: bool = False) -> None:
        """Note the network from a time on; ``averaged``: a profile changed it."""
        before, self._last = self._last, (network, vcs)
        if before[0].switches is network.switches and before[1] is vcs:
            return
        ports = _ports(network)
        if averaged:
            for name, rates in ports.items():
                for port, rate_bps in enumerate(rates):
                    self.note_port(at_ps, name, port, rate_bps)
            return
        self._close(at_ps)
        self._ports = ports
        self._put(at_ps, ports, [vc.pacing.cell_rate_bps for vc in vcs])

    def note_port(self, at_ps: int, switch: str, port: int, rate_bps: int) -> None:
        """Note the rate that a profile gives a port from a time on."""
        before = self._ports[switch][port]
        if rate_bps == before:
            return
        if self._start is None or at_ps - self._start >= self._span_ps:
            self._close(at_ps)
            self._start = at_ps
        since, total = self._sums.get((switch, port), (self._start, 0))
        self._sums[switch, port] = at_ps, total + before * (at_ps - since)
        self._ports[switch][port] = rate_bps

    def are(self, network: NetworkSpec, vcs: Sequence[VcSpec]) -> None:
        """Take a network for the last one: :meth:`note_port` told of its ports."""
        self._last = network, vcs

    def rows(self, now_ps: int) -> list[dict[str, Any]]:
        """Return all rates so far."""
        if self._start is None:
            return self._found
        closed = Rates.__new__(Rates)
        closed.__dict__.update(self.__dict__ | {"_found": [*map(dict, self._found)], "_sums": dict(self._sums)})
        closed._close(now_ps)
        return closed._found

    def _close(self, at_ps: int) -> None:
        """End the span; what holds at its end begins a new entry."""
        if self._start is None:
            return
        start, sums, self._start, self._sums = self._start, self._sums, None, {}
        if at_ps > start:

            def mean(key: tuple[str, int], rate_bps: int) -> float:
                since, total = sums.get(key, (start, 0))
                return (total + rate_bps * (at_ps - since)) / (at_ps - start)

            means = {
                name: [mean((name, port), rate_bps) for port, rate_bps in enumerate(rates)]
                for name, rates in self._ports.items()
            }
            self._put(start, means, self._found[-1]["vcs"])
        self._put(at_ps, self._ports, self._found[-1]["vcs"])

    def _put(self, at_ps: int, ports: Mapping[str, Sequence[float]], vcs: Sequence[int | None]) -> None:
        found, rates = self._found, {"ports": {name: [*row] for name, row in ports.items()}, "vcs": vcs}
        if found and found[-1]["at_s"] == at_ps / 10**12:  # of changes at one time the last counts
            found[-1] |= rates
        elif not found or rates != {key: found[-1][key] for key in rates}:
            found.append({"at_s": at_ps / 10**12, **rates})


def _ports(network: NetworkSpec) -> dict[str, list[int]]:
    return {
        switch.name: [
            port.rate_bps if port.settings.reactive is None else port.settings.reactive.cell_ceiling_bps
            for port in switch.ports
        ]
        for switch in network.switches
    }


class Overrides:
    """The file and the list of overrides on top of it.

    Parameters
    ----------
    experiment : Experiment
        As it was read.
    change : Callable
        Brings the running network to a state.
    adjusted : Callable, optional
        What an experiment becomes after it was read: that of a session has shorter lines.
    feed : RowFeed, optional
        Has the event loop make the rows of the profiles; then none of them is an entry of the timeline.
    adopt : Callable, optional
        With ``feed``: takes a state for that of the network.
    lenient : bool
        A planned entry that the network refuses is left out with a warning; otherwise it is an error.

    Members
    -------
    now : EventSpec
        The network as it is.
    count : int
        Entries so far. It is the last to change, as other threads read it first: see :meth:`resolve`.
    events : list[EventSpec]
        Entries of events and requests, each with what it changed and its source.
    rates : Rates
    """

    def __init__(
        self,
        experiment: Experiment,
        change: Callable[[EventSpec], None],
        *,
        adjusted: Callable[[Experiment], Experiment] | None = None,
        feed: RowFeed | None = None,
        adopt: Callable[[EventSpec], None] | None = None,
        lenient: bool = False,
    ) -> None:
        self._experiment, self._change, self._lenient = experiment, change, lenient
        self._feed, self._adopt = feed, adopt
        self._adjusted = adjusted or _same
        first = self._adjusted(experiment)
        self.now = EventSpec(0, (), first.network, first.vcs)
        self._first, self._vcs = first.network, first.vcs
        document = {key: value for key, value in experiment.document.items() if key not in ("event", "profile")}
        self._file = document
        self._base: tuple[dict[str, Any], dict[str, Any]] = (document, {})
        self._source = Source(_NAME, folder=experiment.folder)
        pairs = enumerate(zip(experiment.network.lines, first.network.lines, strict=True))
        self._shorter_ps = {number: read.delay_ps - made.delay_ps for number, (read, made) in pairs}
        self._lines = LineWriter(document, first.network, self._shorter_ps)
        self.count = 0
        self.events: list[EventSpec] = []
        self.rates = Rates(first.network, first.vcs, max(1, experiment.duration_ps // _MOST_RATES))
        self._order: list[tuple[int, EventSpec]] = []
        self._log_of_rows: dict[str, tuple[ProfileSpec, array[int], array[int]]] = {}

    # What somebody asks for

    def resolve(self, values: Mapping[str, Any]) -> Resolved:
        """Read values on top of what there is, and change nothing; any thread may do it.

        Raises
        ------
        BentpipeError
            A key is none, or cannot be changed in a run; a value is out of range.
        """
        basis, values = self.count, {SHORTHANDS.get(key, key): value for key, value in values.items()}
        if all(key.rpartition(".")[2] != "rate" for key in values):  # which others hang on
            with suppress(ValueError):  # of which reading the document says more
                event = self._on_lines(values)
                if event is not None:
                    return Resolved(values, event, basis)
        document, late = self._base
        document = {**_with(document, dict(late)), "event": [{"at": "0 s", "set": values}]}
        try:
            made = parse_experiment(document, self._source, seed=self._experiment.seed)
        except ConfigError as error:  # it knows the values as those of an event
            raise BentpipeError(str(error).removeprefix(f"{_NAME}: event.0.set: ")) from None
        (event,) = self._adjusted(made).events
        return Resolved(values, event, basis)

    def write(self, at_ps: int, source: str, resolved: Resolved) -> EventSpec:
        """Write values that hold from now on; return the change.

        Values that were resolved on top of another state are resolved again.

        Raises
        ------
        BentpipeError, SimulationError
            With them the experiment is invalid, or the network refuses them; then nothing changes.
        """
        self.absorb()
        event = resolved.event
        if resolved.basis != self.count:
            event = self._on_lines(resolved.values) or self.resolve(resolved.values).event
        return self._enter(replace(event, at_ps=at_ps, source=source), resolved.values)

    def reset(self, at_ps: int) -> EventSpec:
        """Reset everything to the values with which the run began; return the change.

        If the network refuses a value, the error is as for :meth:`write`.
        """
        self.absorb()
        first = EventSpec(at_ps, tuple(changes_between(self.document(), self._file, {})), self._first, self._vcs)
        event = replace(first, source="reset")
        self._to(event)
        self._base = (self._file, {})
        self.count += 1
        self.rates.note(at_ps, event.network, event.vcs)
        event = replace(event, settings=tuple((change.key, change.new) for change in event.changes))
        self.events.append(event)
        self._order.append((self.count, event))
        return event

    def document(self) -> dict[str, Any]:
        """Return the document with all overrides in it."""
        return _with(*self._base)

    # What the file plans

    @property
    def fed(self) -> bool:
        """The event loop makes the rows of the profiles."""
        return self._feed is not None

    def feed(self, until_ps: int, limit_ps: int) -> None:
        """Let the event loop make rows before time passes up to ``until_ps``; none of them holds after ``limit_ps``."""
        if self._feed is not None:
            self._feed.feed(until_ps, limit_ps)

    def absorb(self) -> None:
        """Take up what has become of rows that the event loop has made."""
        rows = [] if self._feed is None else self._feed.passed()
        if not rows:
            return
        assert self._adopt is not None
        network = self._lines.applied(self.now.network, self._last_writes(rows))
        assert network is not None
        self._log_rows(rows)
        self._adopt(EventSpec(rows[-1].at_ps, (), network, self.now.vcs))
        self.now = EventSpec(rows[-1].at_ps, (), network, self.now.vcs)
        self._base = (self._base[0], self._base[1] | self._last_values(rows, network))
        self.count += len(rows)
        self.rates.are(network, self.now.vcs)

    def _last_rows(self, rows: Sequence[PassedRow]) -> list[tuple[ProfileSpec, int, int]]:
        """Return the last row with a value of each column of each profile, in the order of the rows: profile, row,
        column."""
        profiles, found = self._experiment.profiles, []
        left = {row.profile: {*range(len(profiles[row.profile].keys))} for row in rows}
        open_columns = sum(map(len, left.values()))
        for index, number, _ in reversed(rows):
            profile = profiles[index]
            row = number % len(profile.times_ps)
            for column in [each for each in left[index] if profile.columns[each][row] is not None]:
                left[index].discard(column)
                found.append((profile, row, column))
                open_columns -= 1
            if not open_columns:
                break
        return found[::-1]

    def _last_writes(self, rows: Sequence[PassedRow]) -> list[LineWrite]:
        return [profile.write(row, column) for profile, row, column in self._last_rows(rows)]

    def _last_values(self, rows: Sequence[PassedRow], network: NetworkSpec) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for profile, row, column in self._last_rows(rows):
            key = profile.keys[column]
            found[key] = profile.values(row, network, self._shorter_ps)[key]
        return found

    def _log_rows(self, rows: Sequence[PassedRow]) -> None:
        profiles = self._experiment.profiles
        faces = [profile.rated(self._first) for profile in profiles]
        logs = [self._log_of_rows.setdefault(each.name, (each, array("q"), array("q"))) for each in profiles]
        note = self.rates.note_port
        for order, (index, number, at_ps) in enumerate(rows, self.count + 1):
            profile, numbers, orders = logs[index]
            numbers.append(number)
            orders.append(order)
            for column, ends in faces[index]:
                rate_bps = column[number % len(profile.times_ps)]
                if rate_bps is not None:
                    for switch, port in ends:
                        note(at_ps, switch, port, rate_bps)

    def enter(self, entry: ProfileRow | PlannedEvent) -> EventSpec | None:
        """Enter a planned entry, which holds from now on; return its change, or None for a profile's row."""
        try:
            if isinstance(entry, ProfileRow):
                self._row(entry)
                return None
            self.absorb()
            event = entry.event
            values = {SHORTHANDS.get(key, key): value for key, value in event.settings}
            if entry.basis != self.count:
                made = self._on_lines(values) or self.resolve(values).event
                event = replace(made, at_ps=event.at_ps, source=event.source)
            return self._enter(event, values)
        except (BentpipeError, SimulationError) as error:
            if not self._lenient:
                raise
            at = format_time(entry.event.at_ps if isinstance(entry, PlannedEvent) else entry.at_ps)
            _log.warning("%s: left out, as the network does not take it: %s", at, one_line(error))
            return None

    def _enter(self, event: EventSpec, values: Mapping[str, Any]) -> EventSpec:
        settings = tuple(values.items())
        event = replace(event, network=_as_framed(event.network, self._first), settings=settings)
        self._to(event)
        self._base = (_with(*self._base, values), {})
        self.count += 1
        self.rates.note(event.at_ps, event.network, event.vcs)
        self.events.append(event)
        self._order.append((self.count, event))
        return event

    def _row(self, entry: ProfileRow) -> None:
        profile = entry.profile
        row = entry.number % len(profile.times_ps)
        values = profile.values(row, self.now.network, self._shorter_ps)
        writes = profile.writes(row)
        network = None if writes is None else self._lines.applied(self.now.network, writes)
        if network is None:
            event = replace(self.resolve(values).event, at_ps=entry.at_ps)
            network = _as_framed(event.network, self._first)
            event = replace(event, network=network)
        else:
            event = EventSpec(entry.at_ps, (), network, self.now.vcs)
        self._to(event)
        late = self._base[1]
        self._base = (self._base[0], late | values)
        self.count += 1
        self.rates.note(entry.at_ps, network, event.vcs, averaged=True)
        _, numbers, orders = self._log_of_rows.setdefault(profile.name, (profile, array("q"), array("q")))
        numbers.append(entry.number)
        orders.append(self.count)

    def _on_lines(self, values: Mapping[str, Any]) -> EventSpec | None:
        """Return the state that these values make of the present one; None unless all of them are values of lines."""
        writes = self._lines.writes(values)
        network = None if writes is None else self._lines.applied(self.now.network, writes)
        if network is None:
            return None
        document = self.document()
        changes = []
        for key, value in values.items():
            old = value_at(document, key)
            if old != value:
                changes.append(Change(key, old, value))
        return EventSpec(0, tuple(changes), network, self.now.vcs)

    def _to(self, event: EventSpec) -> None:
        try:
            self._change(event)
        except SimulationError:
            self._change(self.now)  # as it was
            raise
        finally:
            if self._feed is not None:
                self._feed.renew()
        self.now = event

    # What became of them

    def writes(self) -> Writes:
        """Return every write of a key so far, in the order in which they were made."""
        self.absorb()
        found: list[tuple[int, int, str, str, Any]] = []
        for order, event in self._order:
            found += [(event.at_ps, order, event.source, key, value) for key, value in event.settings]
        for profile, numbers, orders in self._log_of_rows.values():
            times, period, source = profile.times_ps, profile.period_ps or 0, profile.source
            columns = [*zip(profile.keys, profile.columns, strict=True)]
            for number, order in zip(numbers, orders, strict=True):
                turn, row = divmod(number, len(times))
                at_ps = times[row] + turn * period
                for key, column in columns:
                    value = column[row]
                    if value is not None:
                        found.append((at_ps, order, source, key, value))
        found.sort(key=itemgetter(1))
        return [(at_ps, source, key, value) for at_ps, _, source, key, value in found]

    def rates_until(self, now_ps: int) -> list[dict[str, Any]]:
        """Return the rates up to now, as for :class:`Rates`."""
        self.absorb()
        return self.rates.rows(now_ps)

    def summary(self) -> list[dict[str, Any]]:
        """Return the entries of events and requests as ``result.json`` has them."""
        return [
            {
                "at_s": event.at_ps / 10**12,
                "tick": event.tick,
                "source": event.source,
                "changes": [asdict(change) for change in event.changes],
            }
            for event in self.events
        ]


def _same(experiment: Experiment) -> Experiment:
    return experiment


def value_at(document: Mapping[str, Any], key: str) -> Any:
    """Return the value of a document at a dotted key; None if there is none."""
    here: Any = document
    for part in key.split("."):
        if isinstance(here, list) and part.isdecimal() and int(part) < len(here):
            here = here[int(part)]
        elif isinstance(here, Mapping) and part in here:
            here = here[part]
        else:
            return None
    return here


def _with(document: dict[str, Any], late: Mapping[str, Any], values: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return a copy of a document with values in it."""
    given = [Assignment(_NAME, key, value) for key, value in (*late.items(), *(values or {}).items())]
    return assigned(document, given, _NAME)[0]


def _as_framed(network: NetworkSpec, first: NetworkSpec) -> NetworkSpec:
    """Return the network with lines of cells wherever the run was built with them instead of SONET lines."""
    if all(bool(new.framing) == bool(old.framing) for new, old in zip(network.lines, first.lines, strict=True)):
        return network
    lines = (new if old.framing else new.of_cells() for new, old in zip(network.lines, first.lines, strict=True))
    return replace(network, lines=tuple(lines))
