"""A flow of test cells: interfaces make and analyse them, and hosts have no part in it."""

from __future__ import annotations

from typing import Final, final

from bentpipe.apps.app import Fact
from bentpipe.apps.test_cells import TestCells
from bentpipe.hosts.flow_base import ApplicationFlow, CellFlowReport, FlowContext, HostFlowEndpoints, HostSite
from bentpipe_sim.interface import CellStream

__all__ = ["TestCellFlow"]

_LOOK_PS: Final = 100_000_000
"""From one look whether the last cells have come to the next one."""

_LAST_PS: Final = 5_000_000_000_000
"""Cells that have not come then do not come any more."""


@final
class TestCellFlow(ApplicationFlow):
    """Test cells from ``source`` to ``sink``.

    It ends when the generator has stopped and no cell is under way.
    """

    def __init__(
        self,
        name: str,
        context: FlowContext,
        sites: tuple[HostSite, HostSite],
        application: TestCells,
        stream: CellStream,
        start_ps: int,
    ) -> None:
        super().__init__(name, context, sites, application, start_ps)
        self.cells = application
        self.stream = stream
        self.stop_ps: int = -1
        self.end_ps: int = -1
        self.listen(HostFlowEndpoints(self))

    def fire(self, now: int) -> None:
        """Start or stop the flow, or check whether it is over."""
        if not self.started:
            self.started = True
            self.stream.start(self.cells.count)
            if self.cells.duration_ps:
                self.stop_ps = now + self.cells.duration_ps
                self.scheduler.at(self.stop_ps, self)
            elif self.cells.count:
                self.scheduler.at(now + self.stream.time_of(self.cells.count), self)
            return
        if now == self.stop_ps:
            self.stream.stop()
        if not self.stream.is_over() and (self.stop_ps < 0 or now < self.stop_ps + _LAST_PS):
            self.scheduler.at(now + _LOOK_PS, self)
        elif not self.finished:
            self.end_ps = now
            self.finish(now)

    def report(self, end_ps: int) -> CellFlowReport:
        """Return the report as of ``end_ps``, the end of the run."""
        until = self.end_ps if self.end_ps >= 0 else end_ps
        facts: dict[str, Fact] = {}
        for name, value in self.stream.figures(until - self.start_ps if self.started else 0).items():
            facts[name] = value
        return CellFlowReport(
            name=self.name,
            protocol="atm",
            app=self.application.kind,
            source=self.sites[0].host.name,
            sink=self.sites[1].host.name,
            finished=self.finished,
            start_ps=self.start_ps,
            end_ps=until,
            facts=facts,
        )
