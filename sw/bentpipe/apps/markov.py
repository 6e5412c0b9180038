"""Single cells in slots at random, with a probability that a Markov chain of two states modulates.

One source with loads 1 and 0 is a Markov-modulated on-off source. Several together are a Markov-modulated arrival
process with one state more than there are sources (a discrete MMPP, where the loads are small).
"""

from __future__ import annotations

from typing import Final, final

from bentpipe.apps.app import Fact
from bentpipe.apps.blocks import LATE_BLOCKS
from bentpipe.apps.draws import RandomStream
from bentpipe.apps.settings import ApplicationSpec, AppSetting, Column, FlowRequest, Problem, Report
from bentpipe.apps.slot_source import SlotSource, one_cell
from bentpipe.declarations import REQUIRED
from bentpipe_hdl.units import COUNT, RATE, SHARE

__all__ = ["APPLICATION", "Markov"]

_SLOTS: Final = COUNT.within(1, 10**9)


@final
class Markov(SlotSource):
    """A cell in each slot with the probability of the present state, which may change behind the slot.

    Parameters
    ----------
    loads : tuple of float
        The probability that a slot has a cell, in the first state and in the second.
    slots : tuple of int
        How long a state lasts in the mean, in slots (geometrically distributed). The first state is drawn as it is in
        the long run.
    """

    def __init__(
        self,
        rate_bps: int,
        loads: tuple[float, float],
        slots: tuple[int, int],
        draws: RandomStream,
        size_octets: int | None = None,
        duration_ps: int = 0,
    ) -> None:
        super().__init__("markov", rate_bps, size_octets, duration_ps)
        if not all(0.0 <= load <= 1.0 for load in loads) or max(loads) == 0.0:
            raise ValueError(f"loads must be from 0 to 1, one of them above 0, not {loads!r}")
        if min(slots) < 1:
            raise ValueError(f"slots must be at least 1, not {slots!r}")
        self.loads = loads
        self.slots = slots
        self.draws = draws
        self.state = 0
        self.changes = 0

    def begin(self, now_ps: int) -> int:
        first, second = self.slots
        self.state = int(self.draws.share() * (first + second) >= first)
        self.slot = self.first_slot(now_ps)
        self._to_cell()
        return self.slot_ps()

    def after(self, due_ps: int) -> int:
        self._pass()
        self._to_cell()
        return self.slot_ps()

    def _pass(self) -> None:
        """Pass to the next slot."""
        self.slot += 1
        if self.draws.share() * self.slots[self.state] < 1.0:
            self.state = 1 - self.state
            self.changes += 1

    def _to_cell(self) -> None:
        """Move to the first slot from the present one on that has a cell."""
        while True:
            load = self.loads[self.state]
            if load and (load == 1.0 or self.draws.share() < load):
                return
            if load:
                self._pass()
            else:  # as many slots at once as the state lasts
                self.slot += self.draws.geometric(self.slots[self.state])
                self.state = 1 - self.state
                self.changes += 1

    def facts(self, now_ps: int) -> dict[str, Fact]:
        facts = super().facts(now_ps)
        facts["state_changes"] = self.changes
        return facts


def _check(given: FlowRequest) -> Problem:
    if not given.values["load"] and not given.values["other_load"]:
        return "load", "with two loads of 0 nothing is ever sent"
    return one_cell("markov", given)


def _make(given: FlowRequest) -> Markov:
    v = given.values
    draws = RandomStream(given.seed, given.number)
    loads, slots = (v["load"], v["other_load"]), (v["slots"], v["other_slots"])
    return Markov(v["rate"], loads, slots, draws, given.size, given.duration_ps)


APPLICATION: Final = ApplicationSpec(
    "markov",
    "datagrams of one cell in slots of a line, at random with one of two loads by turns (Markov-modulated)",
    (
        AppSetting("rate", RATE, REQUIRED, "of the line whose cell times are the slots"),
        AppSetting("load", SHARE, 1.0, "the probability that a slot has a cell, in the first state"),
        AppSetting("slots", _SLOTS, REQUIRED, "how long the first state lasts in the mean"),
        AppSetting("other_load", SHARE, 0.0, "the probability in the second state"),
        AppSetting("other_slots", _SLOTS, REQUIRED, "how long the second state lasts in the mean"),
    ),
    _make,
    _check,
    protocols=("udp",),
    report=Report(
        LATE_BLOCKS.title,
        (*LATE_BLOCKS.columns, Column("state_changes", "", "changes of the state")),
        LATE_BLOCKS.shown_with,
    ),
)
