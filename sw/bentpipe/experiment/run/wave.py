"""The activity of one node of an experiment in some ticks, as a VCD.

It applies :mod:`bentpipe_sim.wave` to an experiment's network.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bentpipe.errors import BentpipeError
from bentpipe.experiment.build.overrides import Overrides, Timeline
from bentpipe.progress import Progress, waiting
from bentpipe_hdl.ticks import first_tick, ps_to_ticks, ticks_to_ps
from bentpipe_hdl.units import format_time
from bentpipe_hdl.words import nearest

if TYPE_CHECKING:
    from bentpipe.experiment.resolve.specs import Experiment

__all__ = ["LONGEST_PS", "Wave", "write_wave"]

LONGEST_PS: Final = 10**10
"""A wave is of 10 ms at most, 56513 ticks: a minute or two, and some 100 MB."""


@dataclass(frozen=True)
class Wave:
    """A summary of what was written: the node, first and last tick, and cells in and out between them."""

    node: str
    kind: str
    first: int
    last: int
    cells_in: int
    cells_out: int


def write_wave(
    experiment: Experiment, name: str, at_ps: int, for_ps: int, file: Path, *, show_progress: bool = False
) -> Wave:
    """Run an experiment up to a time, write the activity of a node from then on, and return a summary.

    Parameters
    ----------
    experiment : Experiment
        Without cases, or one case.
    name : str
        Name of the node: a host, a switch, ``LINE.out`` or ``LINE.back``, ``LINE.line``.
    at_ps, for_ps : int
        Begin (the first tick at or after this time) and length: a tick at least, at most :data:`LONGEST_PS`.
    file : Path
        File that is written or replaced.
    show_progress : bool
        Show a bar on stderr.

    Raises
    ------
    BentpipeError
        There is no such node; the times are out of range; the run ends before; the file cannot be written.
    """
    first, last = first_tick(at_ps), ps_to_ticks(at_ps + for_ps - 1)
    if not 0 < for_ps <= LONGEST_PS:
        raise BentpipeError(f"--for {format_time(for_ps)}: the length must be more than 0 s and at most 10 ms")
    if last < first:
        raise BentpipeError(f"--for {format_time(for_ps)}: too short: no tick begins in it (a tick is 177 ns)")
    if at_ps < 0 or at_ps + for_ps > experiment.duration_ps:
        raise BentpipeError(
            f"--at {format_time(at_ps)} --for {format_time(for_ps)}: {experiment.id} ends at "
            f"{format_time(experiment.duration_ps)}"
        )
    os.environ["BENTPIPE_ENGINE"] = "native"  # whose state it begins with
    found = _Run(experiment, name, show_progress)
    part = file.with_name(file.name + ".part")
    try:
        part.touch()  # before the run, which may take long
        made = found.wave(first, last, part)
        part.replace(file)
        return made
    except OSError as error:
        raise BentpipeError(f"{file}: cannot be written: {error.strerror or error}") from None
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        found.close()


class _Run:
    def __init__(self, experiment: Experiment, name: str, show_progress: bool) -> None:
        from bentpipe.experiment.build.hosts import add_hosts
        from bentpipe.experiment.build.network import build_network
        from bentpipe.experiment.run.record import TraceRecorder

        self._experiment, self._show = experiment, show_progress
        self._network, nics, vcs = build_network(experiment)
        nodes = {node.name: node for node in self._network.nodes}
        if name not in nodes:
            raise BentpipeError(f"--node {name}: {experiment.id} has no such node{nearest(name, nodes)}")
        self._node: Any = nodes[name]
        recorder = TraceRecorder(experiment.record.interval_ps, ())
        with waiting("Preparing the nodes; the first time they are compiled, which takes a minute or two", self._show):
            self._built = add_hosts(experiment, recorder, self._network, nics, vcs)
        self._timeline = Timeline(experiment)
        self._overrides = Overrides(experiment, self._built.change)

    def close(self) -> None:
        self._network.close()

    def wave(self, first: int, last: int, file: Path) -> Wave:
        from bentpipe_sim.wave.recorder import Recorder
        from bentpipe_sim.wave.replay import replay

        node, experiment = self._node, self._experiment
        with Progress(ticks_to_ps(max(first, 1)), self._show) as bar:
            if first:
                self._go(ticks_to_ps(first - 1), bar)
            before = self._network.stats()[node.name]
            recorder = Recorder(self._network.loop, node.index, node.shape(), first)
            self._go(ticks_to_ps(last), bar)
        after = self._network.stats()[node.name]
        recorded = recorder.taken()
        words = f"bentpipe wave: {node.kind} {node.name} of {experiment.id}"
        if experiment.case:
            words += f", case {experiment.case}"
        words += f", seed {experiment.seed}; ticks {recorded.begin} to {recorded.end}, of 53/299520000 s"
        with waiting(f"Simulating the RTL of {node.name} for {last - first + 1} ticks", self._show):
            replay(recorded, re.sub(r"\W", "_", node.name), file, words)
        came, went = (after[key] - before[key] for key in ("cells_in", "cells_out"))
        return Wave(node.name, node.kind, recorded.begin, recorded.end, came, went)

    def _go(self, until_ps: int, bar: Progress) -> None:
        """Run to this time, with the experiment's events on the way."""

        def progress(now_ps: int) -> None:
            bar.update(now_ps)

        while True:
            planned = self._timeline.before_ps
            stop = until_ps if planned is None else min(planned, until_ps)
            now = self._built.engine.run(stop, progress)
            if now < stop:
                raise BentpipeError(
                    f"{self._experiment.id}: its flows end at {format_time(now)}, before the requested time"
                )
            if planned is None or planned > until_ps:
                return
            self._overrides.enter(self._timeline.pop())
