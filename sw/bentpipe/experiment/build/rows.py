"""Rows of profiles that the event loop writes itself, so that a row costs no step of Python.

:class:`RowFeed` computes the register writes of many rows at once and gives them to the event loop, which makes each
before its tick. Only registers that a row changes are written. :class:`~.overrides.Overrides` takes up later what has
become of the passed rows.

Rows are fed if each key concerns registers of its own: error ratios, outages, delays and rates of lines of cells. All
profiles of an experiment are fed or none, since their rows may write the same keys.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bentpipe.experiment.build.changes import ways
from bentpipe.experiment.resolve.specs import PER_WAY, WAY_ENDS, Experiment, ProfileSpec
from bentpipe_hdl.ticks import RATIO, cell_period, ps_to_ticks

if TYPE_CHECKING:
    import numpy as np

    from bentpipe_sim.network import Network
    from bentpipe_sim.nodes import Link, Switch

__all__ = ["PassedRow", "RowFeed"]

_MOST: Final = 4096
"""Rows that are computed ahead at once, unless the run goes on for more of them before it stops."""
_UNSET, _UNKNOWN = -1, -2
"""Instead of a register's value: the row does not write it; nobody knows what it has."""


class PassedRow(NamedTuple):
    """A row that holds: the profile's index, the row's number counted on over all rounds, its time."""

    profile: int
    number: int
    at_ps: int


@dataclass(frozen=True)
class _Target:
    """Registers of a node that a column of a profile writes.

    Members
    -------
    node : int
    places : tuple of (int, int)
        Address and words of each register.
    values : Callable
        What they become by a value of the column, in the same order; None: unknown, and not written.
    present : Callable
        What they are now.
    """

    node: int
    places: tuple[tuple[int, int], ...]
    values: Callable[[Any], Sequence[int | None]]
    present: Callable[[], Sequence[int | None]]


class RowFeed:
    """The feed of profiles' rows to the event loop, as register writes.

    Parameters
    ----------
    experiment : Experiment
    network : Network
        It runs.
    shorter_ps : Mapping
        By how much the delay of a line is less than its rows say, by name.
    """

    def __init__(self, experiment: Experiment, network: Network, shorter_ps: Mapping[str, int]) -> None:
        self._experiment, self._profiles, self._network = experiment, experiment.profiles, network
        self._shorter_ps = shorter_ps
        self._found_targets: list[list[list[_Target]] | None] = []
        self._next = [0] * len(self._profiles)
        self._until = self._limit = -1
        self._forget()

    @classmethod
    def of(
        cls, experiment: Experiment, network: Network | None, shorter_ps: Mapping[str, int] | None = None
    ) -> RowFeed | None:
        """Return the feed of an experiment's profiles; None: there is none, or rows need more than register writes."""
        if network is None or not network.makes_writes or experiment.splits or not experiment.profiles:
            return None
        made = cls(experiment, network, shorter_ps or {})
        return None if None in made._targets else made

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without rows fed ahead: a resumed run feeds those that are not passed again."""
        state = self.__dict__ | {"_next": self._first_not_passed()}
        for name in ("_given", "_ticks", "_writes", "_values", "_horizon"):
            del state[name]
        return state | {"_found_targets": []}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget()

    @property
    def _targets(self) -> list[list[list[_Target]] | None]:
        """Return the targets of each column of each profile; None for a column that writes more than registers."""
        if not self._found_targets:
            finder = _Targets(self._experiment, self._network, self._shorter_ps)
            self._found_targets = [finder.of_profile(profile) for profile in self._profiles]
        return self._found_targets

    def feed(self, until_ps: int, limit_ps: int) -> None:
        """Give the event loop all rows that hold from ``until_ps`` on or before, and some more; none that holds after
        the instant ``limit_ps``. Rows of earlier calls that were not passed stay."""
        self._until, self._limit = until_ps, limit_ps
        limit = ps_to_ticks(limit_ps + 1)
        until = min(ps_to_ticks(until_ps + 1), limit)
        if self._horizon >= until:
            return
        rows: list[tuple[int, PassedRow]] = []
        for tick, row in self._coming():
            if tick > limit or (tick > until and len(rows) >= _MOST):
                break
            rows.append((tick, row))
            self._next[row.profile] = row.number + 1
        else:
            tick = limit + 1
        self._horizon = min(tick - 1, limit)
        if rows:
            self._give(rows)

    def passed(self) -> list[PassedRow]:
        """Take the rows that hold by now, and return them in their order."""
        if not self._given:
            return []
        end = bisect_right(self._ticks, self._network.loop.made())
        found = self._given[:end]
        del self._given[:end], self._ticks[:end]
        return found

    def renew(self) -> None:
        """Compute the rows that are not passed again, on top of registers as they are now; :meth:`passed` was called
        before the change."""
        self._next = self._first_not_passed()
        self._forget()
        self._network.loop.schedule(self._network.loop.ffi.NULL, 0)
        if self._until >= 0 or self._limit >= 0:
            self.feed(self._until, self._limit)

    def _forget(self) -> None:
        self._given: list[PassedRow] = []
        self._ticks: list[int] = []
        self._writes: np.ndarray | None = None
        self._values: dict[tuple[int, int], int] | None = None
        self._horizon = -1

    def _first_not_passed(self) -> list[int]:
        found = [*self._next]
        for row in reversed(self._given):
            found[row.profile] = row.number
        return found

    def _coming(self) -> Iterator[tuple[int, PassedRow]]:
        """Yield the remaining rows with their ticks: by tick, then in the order of the profiles, then by number."""

        def rows(index: int, profile: ProfileSpec, first: int) -> Iterator[tuple[int, PassedRow]]:
            ps, ticks = RATIO
            length = len(profile.times_ps)
            for turn in count(first // length):
                if turn and profile.period_ps is None:
                    return
                later = turn * (profile.period_ps or 0)
                for number in range(max(first, turn * length), (turn + 1) * length):
                    at_ps = profile.times_ps[number - turn * length] + later
                    yield -(-at_ps * ticks // ps), PassedRow(index, number, at_ps)  # as of first_tick

        each = [rows(index, profile, self._next[index]) for index, profile in enumerate(self._profiles)]
        return each[0] if len(each) == 1 else heapq.merge(*each, key=lambda row: (row[0], row[1].profile))

    def _give(self, rows: Sequence[tuple[int, PassedRow]]) -> None:
        import numpy as np

        columns, words, table = self._table([row for _, row in rows])
        # What a row does not write is as in the row before; the first is what is there now
        set_at = np.where(table != _UNSET, np.arange(len(table))[:, None], 0)
        filled = table[np.maximum.accumulate(set_at, axis=0), np.arange(table.shape[1])]
        self._values = dict(zip(columns, map(int, filled[-1]), strict=True))
        row, column = np.nonzero((filled[1:] != filled[:-1]) & (filled[1:] >= 0))
        repeats = np.array(words)[column]
        value = filled[row + 1, column]
        row, column, value = (np.repeat(each, repeats) for each in (row, column, value))
        upper = np.zeros(len(row), dtype=bool)  # the second word of an entry of two
        ends = np.cumsum(repeats)
        upper[ends[repeats == 2] - 1] = True
        made = np.zeros(len(row), dtype=_WRITE)
        places = np.array(columns, dtype=np.int64).reshape(-1, 2)
        made["tick"] = np.array([tick for tick, _ in rows], dtype=np.uint64)[row]
        made["node"], made["addr"] = places[column, 0], places[column, 1] + upper
        made["value"] = np.where(upper, value >> 32, value & 0xFFFFFFFF)
        loop = self._network.loop
        if self._writes is not None:
            made = np.concatenate((self._writes[self._writes["tick"] > loop.made()], made))
        self._writes = made
        self._given += [row for _, row in rows]
        self._ticks += [tick for tick, _ in rows]
        loop.schedule(loop.ffi.from_buffer("bp_scheduled_write[]", made), len(made))

    def _table(self, rows: Sequence[PassedRow]) -> tuple[list[tuple[int, int]], list[int], np.ndarray]:
        """Return node and address of all registers, the words of each, and their values: those of now, and a row for
        each."""
        import numpy as np

        known = self._values or {}
        order: dict[tuple[int, int], int] = {}
        words, first = [], []
        for target in (target for columns in self._targets for column in columns or () for target in column):
            present = target.present() if not known else ()
            for place, (addr, size) in enumerate(target.places):
                key = (target.node, addr)
                if key not in order:
                    order[key] = len(order)
                    words.append(size)
                    now = known[key] if known else present[place]
                    first.append(_UNKNOWN if now is None else now)
        table = np.full((len(rows) + 1, len(order)), _UNSET, dtype=np.int64)
        table[0] = first
        for index, (profile, columns) in enumerate(zip(self._profiles, self._targets, strict=True)):
            here = [place for place, row in enumerate(rows, 1) if row.profile == index]
            length = len(profile.times_ps)
            at = [rows[place - 1].number % length for place in here]
            for (_, _, values), targets in zip(profile.members or (), columns or (), strict=True):
                given = [values[row] for row in at]
                distinct = {*given} - {None}
                by_function: dict[Any, dict[Any, Sequence[int | None]]] = {}
                for target in targets:
                    made = by_function.get(target.values)
                    if made is None:
                        made = by_function[target.values] = {value: target.values(value) for value in distinct}
                    for place, (addr, _) in enumerate(target.places):
                        by_value: dict[Any, Any] = {
                            value: _UNKNOWN if found[place] is None else found[place] for value, found in made.items()
                        }
                        by_value[None] = _UNSET
                        table[here, order[target.node, addr]] = [by_value[value] for value in given]
        return [*order], words, table


class _Targets:
    """The targets of profiles' columns."""

    def __init__(self, experiment: Experiment, network: Network, shorter_ps: Mapping[str, int]) -> None:
        self._lines, self._shorter_ps = experiment.network.lines, shorter_ps
        self._nodes: Mapping[str, Any] = {node.name: node for node in network.nodes}

    def of_profile(self, profile: ProfileSpec) -> list[list[_Target]] | None:
        """Return the targets of each column; None: one writes more than registers of its own."""
        found = []
        for number, member, _ in profile.members or ():
            made = (
                self._rate(number, profile.direction)
                if member == "rate"
                else self._line(number, member, profile.direction)
            )
            if made is None:
                return None
            found.append(made)
        return found or None

    def _line(self, number: int, member: str, direction: str) -> list[_Target] | None:
        line, end = self._lines[number], WAY_ENDS[direction]
        names = ways(line)
        if line.framing is not None or (len(names) == 1 and end is not None):
            return None
        found: list[_Target] = []
        for each in (0, 1) if end is None or member not in PER_WAY else (end,):
            if each < len(names):
                link: Link = self._nodes[f"{line.name}.{names[each]}"]
                registers = link.registers_of(member)
                if registers is None:
                    return None
                less = self._shorter_ps.get(line.name, 0) if member == "delay_ps" else 0
                found.append(_of_link(link, member, registers, less, found[0] if found else None))
        return found

    def _rate(self, number: int, direction: str) -> list[_Target] | None:
        found: list[_Target] = []
        ends, way = self._lines[number].ends, WAY_ENDS[direction]
        for end in dict.fromkeys(ends if way is None else ends[way : way + 1]):
            switch: Switch = self._nodes[end.switch]
            if not switch.rates_alone(end.port):
                return None
            found.append(_of_port(switch, end.port, found[0] if found else None))
        return found


def _of_link(
    link: Link, member: str, registers: Sequence[tuple[str, int, int]], less: int, like: _Target | None
) -> _Target:
    """Return the target of a column that writes to a link.

    ``less`` is by how much the settings are less than the rows. ``like`` is the target of the line's other direction,
    whose values are computed once for both.
    """
    names = [name for name, _, _ in registers]

    def made(value: Any) -> Sequence[int | None]:
        found = link.driver.values_of(member, value - less if less else value) or {}
        return [found[name] for name in names]

    places = tuple((addr, words) for _, addr, words in registers)
    values = like.values if like is not None and like.places == places else made
    return _Target(
        link.index,
        places,
        values,
        lambda: values(getattr(link.settings, member) + less if less else getattr(link.settings, member)),
    )


def _of_port(switch: Switch, port: int, like: _Target | None) -> _Target:
    period = switch.driver.csr.map["period"]
    values: Callable[[Any], Sequence[int | None]] = _Periods(switch.lines[port].clock_ppm)
    if like is not None and like.values == values:
        values = like.values
    place = (period.addr + port * period.words, period.words)
    return _Target(switch.index, (place,), values, lambda: [switch.periods[port]])


@dataclass(frozen=True)
class _Periods:
    """The period of a port by its rate and clock."""

    clock_ppm: float

    def __call__(self, rate_bps: int) -> list[int | None]:
        return [cell_period(rate_bps, self.clock_ppm)]


_WRITE: Final = [("tick", "<u8"), ("node", "<u4"), ("addr", "<u4"), ("value", "<u4"), ("unused", "<u4")]
"""As ``bp_scheduled_write`` in ``csrc/network.h``."""
