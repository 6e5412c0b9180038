"""The slack that real time needs, taken from the delay of the attached hosts' paths.

Simulated time is behind the clock, so that what came has been read when its tick comes, and a packet leaves some time
after its simulated time, so that it is there when it is to leave. Both together are the lag. The lines of the path are
shorter by as much: what a packet takes from its arrival to when it leaves is what the experiment says.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from bentpipe.errors import BentpipeError
from bentpipe.experiment.resolve.specs import EventSpec, Experiment, HostSpec, LineSpec, NetworkSpec, VcSpec
from bentpipe_hdl.units import format_time

__all__ = ["Slack", "shortened", "take_slack"]

_Spec = TypeVar("_Spec", LineSpec, HostSpec)

LEAST_PS: Final = 2 * 10**9
"""The lag of a path that has nothing to give."""

_KEPT_PS: Final = 10**6
"""What stays of a line's delay at least: a link has one tick and more."""


@dataclass(frozen=True)
class Slack:
    """The slack of a session: how far simulated time is behind the clock, and the delays that provide it. Times are
    picoseconds.

    Members
    -------
    computing_ps : int
        Simulated time behind the clock.
    lag_ps : int
        Time from a packet's simulated departure to its real one: for computing, and the rest for release.
    taken_ps : int
        Delay taken from the attached hosts' paths, one way.
    lines : dict of str to int
        Delay taken from each line; a host's line by its name.
    longer : dict of str to int
        Delay added to simulated hosts, so that their own paths stay as they are.
    shorter_vcs : tuple of str
        VCs of simulated hosts that pass a shortened line and are not compensated.
    delays_ps : dict of str to int
        The propagation delay of each attached VC in the experiment.
    """

    computing_ps: int
    lag_ps: int
    taken_ps: int
    lines: dict[str, int]
    longer: dict[str, int]
    shorter_vcs: tuple[str, ...]
    delays_ps: dict[str, int]

    @property
    def excess_ps(self) -> int:
        """Time by which each packet takes longer than the experiment says, in ps."""
        return self.lag_ps - self.taken_ps

    def text(self) -> str:
        """Return the slack as a sentence."""
        if not self.lines:
            return (
                f"the paths have no delay to use as slack: each packet takes {format_time(self.excess_ps)} "
                "more than configured"
            )
        where = ", ".join(self.lines)
        text = f"{format_time(self.taken_ps)} of the delay of {where} are used as slack"
        if self.excess_ps:
            text += f", {format_time(self.excess_ps)} more are missing, and delay each packet by as much"
        return text


def take_slack(
    experiment: Experiment, attached: Sequence[str], vcs: Sequence[int], computing_ps: int, release_ps: int
) -> tuple[Experiment, Slack]:
    """Return the experiment with shorter lines, and the slack that they provide.

    Parameters
    ----------
    attached : Sequence[str]
        Hosts.
    vcs : Sequence[int]
        The VCs between them, indices into ``Experiment.vcs``.
    computing_ps, release_ps : int
        The slack that is wanted.

    Raises
    ------
    BentpipeError
        An event leaves a line with less delay than the slack takes.
    """
    network, wanted = experiment.network, computing_ps + release_ps
    paths = [experiment.vcs[vc] for vc in vcs]
    delays = {vc.name: _delay(network, vc) for vc in paths}
    own = min(host.delay_ps for host in network.hosts if host.name in attached)
    least = _least_delays(experiment)
    common = [line for line in network.lines if not line.looped and all(_passes(network, vc, line) for vc in paths)]
    line = max(common, key=lambda each: least[each.name], default=None)
    from_hosts = min(wanted, 2 * max(own - _KEPT_PS, 0))
    from_line = min(wanted, max(least[line.name] - _KEPT_PS, 0)) if line else 0
    taken = max(from_hosts, from_line) // 2000 * 2000
    if taken < LEAST_PS // 2:  # not worth it
        taken = 0
    lag = max(taken, min(wanted, LEAST_PS))
    lines: dict[str, int] = {}
    longer: dict[str, int] = {}
    shorter: tuple[str, ...] = ()
    if taken and from_hosts >= from_line:
        lines = dict.fromkeys(attached, taken // 2)
    elif taken and line is not None:
        lines = {line.name: taken}
        inside = [vc for k, vc in enumerate(experiment.vcs) if k not in vcs]
        passing = [vc for vc in inside if _passes(network, vc, line)]
        if len(passing) == len(inside):
            longer = {host.name: taken // 2 for host in network.hosts if host.name not in attached}
        else:
            shorter = tuple(vc.name for vc in passing)
    slack = Slack(computing_ps * lag // wanted // 1000 * 1000, lag, taken, lines, longer, shorter, delays)
    return shortened(experiment, slack), slack


def _least_delays(experiment: Experiment) -> dict[str, int]:
    """Return the least delay that each line ever has, one way."""
    extremes = (extreme for profile in experiment.profiles for extreme in profile.extremes)
    networks = (experiment.network, *(change.network for change in (*experiment.events, *extremes)))
    found: dict[str, int] = {}
    for line in (line for network in networks for line in network.lines):
        found[line.name] = min(line.delay_ps, found.get(line.name, line.delay_ps))
    return found


def _lines(network: NetworkSpec, vc: VcSpec) -> Iterator[LineSpec]:
    """Yield the lines between switches that a VC passes."""
    for here, after in itertools.pairwise(vc.path[1:-1]):
        ends = {here, after}
        yield next(line for line in network.lines if {end.switch for end in line.ends} == ends)


def _passes(network: NetworkSpec, vc: VcSpec, line: LineSpec) -> bool:
    return [each.name for each in _lines(network, vc)].count(line.name) == 1


def _delay(network: NetworkSpec, vc: VcSpec) -> int:
    """Return the propagation delay from host to host (ps)."""
    own = sum(host.delay_ps for host in network.hosts if host.name in (vc.path[0], vc.path[-1]))
    return own + sum(line.delay_ps for line in _lines(network, vc))


def shortened(experiment: Experiment, slack: Slack) -> Experiment:
    """Return the experiment, its events and profiles, with paths that are shorter by the slack; errors as of
    :func:`take_slack`."""

    def changed(network: NetworkSpec) -> NetworkSpec:
        def line(each: LineSpec) -> LineSpec:
            return _with_delay(each, each.delay_ps - slack.lines.get(each.name, 0))

        def host(each: HostSpec) -> HostSpec:
            return _with_delay(each, each.delay_ps - slack.lines.get(each.name, 0) + slack.longer.get(each.name, 0))

        return dataclasses.replace(
            network, lines=tuple(map(line, network.lines)), hosts=tuple(map(host, network.hosts))
        )

    def of_events(events: tuple[EventSpec, ...]) -> tuple[EventSpec, ...]:
        return tuple(dataclasses.replace(event, network=changed(event.network)) for event in events)

    profiles = tuple(dataclasses.replace(each, extremes=of_events(each.extremes)) for each in experiment.profiles)
    events = of_events(experiment.events)
    return dataclasses.replace(experiment, network=changed(experiment.network), events=events, profiles=profiles)


def _with_delay(spec: _Spec, delay_ps: int) -> _Spec:
    if delay_ps == spec.delay_ps:
        return spec
    if delay_ps < 0:
        raise BentpipeError(f"{spec.name}: its delay can't be less than the session's slack")
    return spec.with_delay(delay_ps)
