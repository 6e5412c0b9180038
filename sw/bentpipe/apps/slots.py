"""Single cells in slots: at random, or every so many slots. The sources of queueing theory."""

from __future__ import annotations

import math
from typing import Final, final

from bentpipe.apps.blocks import LATE_BLOCKS
from bentpipe.apps.draws import RandomStream
from bentpipe.apps.settings import TIMES, ApplicationSpec, AppSetting, FlowRequest, Problem
from bentpipe.apps.slot_source import SlotSource, one_cell
from bentpipe.declarations import REQUIRED
from bentpipe_hdl.units import RATE, SHARE

__all__ = ["APPLICATION", "Slots"]


@final
class Slots(SlotSource):
    """Cells in slots of a line, each slot with the same probability, or every so many slots.

    Parameters
    ----------
    rate_bps : int
        Of the line: a slot is a cell's time.
    load : float
        The probability that a slot has a cell, whatever others have (geometric gaps); 0: there is a period.
    period : int
        Slots from one cell to the next, the first being one of the first ``period`` slots, each as likely.
    rounds : int
        After so many periods nothing is sent for one, and there is a new phase; 0: the phase stays. Sources of the same
        period do so in the same slots.
    """

    def __init__(
        self,
        rate_bps: int,
        load: float,
        period: int,
        rounds: int,
        draws: RandomStream,
        size_octets: int | None = None,
        duration_ps: int = 0,
    ) -> None:
        super().__init__("slots", rate_bps, size_octets, duration_ps)
        if not 0.0 <= load <= 1.0 or (load == 0.0) == (period == 0) or period < 0:
            raise ValueError("give a load above 0 and up to 1, or a period of a slot and more")
        self.period = period
        self.rounds = rounds
        self.draws = draws
        self.empty = math.log1p(-load) if 0.0 < load < 1.0 else 0.0  # the logarithm of the probability of an empty slot
        self.base = 0  # the slot with which the present phase began
        self.sent = 0  # cells with it

    def _gap(self) -> int:
        if self.empty == 0.0:
            return 1
        return 1 + int(math.log(1.0 - self.draws.share()) / self.empty)

    def begin(self, now_ps: int) -> int:
        first = self.first_slot(now_ps)
        if self.period:
            self.base = -(-first // self.period) * self.period
            self.slot = self.base + self.draws.uniform(0, self.period - 1)
            self.sent = 1
        else:
            self.slot = first - 1 + self._gap()
        return self.slot_ps()

    def after(self, due_ps: int) -> int:
        if not self.period:
            self.slot += self._gap()
        elif self.rounds and self.sent == self.rounds:
            self.base += (self.rounds + 1) * self.period
            self.slot = self.base + self.draws.uniform(0, self.period - 1)
            self.sent = 1
        else:
            self.slot += self.period
            self.sent += 1
        return self.slot_ps()

    def again(self, now_ps: int) -> int:
        """Draw the next slot again, given the slots that have passed; return the time at which it is due (ps).

        A phase that a cell has already shown stays; then the result is 0.
        """
        first = self.slot_behind(now_ps)
        if not self.period:
            self.slot = first - 1 + self._gap()
        elif self.sent == 1:
            self.slot = self.draws.uniform(max(first, self.base), self.base + self.period - 1)
        else:
            return 0
        self.due_ps = self.slot_ps()
        return self.end_ps if self.end_ps and self.due_ps >= self.end_ps else self.due_ps


def _check(given: FlowRequest) -> Problem:
    load, period, rounds = (given.values[name] for name in ("load", "period", "rounds"))
    problem = one_cell("slots", given)
    if problem:
        return problem
    if load is None and period is None:
        return "", "slots needs 'load' or 'period'"
    if load is not None and period is not None:
        return "load", "give either 'load' or 'period'"
    if load == 0:
        return "load", "a load of 0 sends nothing; give a load above 0"
    if rounds is not None and period is None:
        return "rounds", "goes with 'period'"
    return None


def _make(given: FlowRequest) -> Slots:
    v = given.values
    draws = RandomStream(given.seed, given.number)
    return Slots(v["rate"], v["load"] or 0.0, v["period"] or 0, v["rounds"] or 0, draws, given.size, given.duration_ps)


APPLICATION: Final = ApplicationSpec(
    "slots",
    "datagrams of one cell in slots of a line: at random, or every so many slots",
    (
        AppSetting("rate", RATE, REQUIRED, "cell rate of the line whose cell times are the slots"),
        AppSetting("load", SHARE, None, "probability that a slot has a cell; give this or the period"),
        AppSetting("period", TIMES, None, "number of slots between cells; the phase is drawn"),
        AppSetting(
            "rounds",
            TIMES,
            None,
            "number of periods after which one is skipped and the slots are drawn again; default: never",
        ),
    ),
    _make,
    _check,
    protocols=("udp",),
    report=LATE_BLOCKS,
)
