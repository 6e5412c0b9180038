"""``[rare_timeout]``: estimates beside the exact probability of a small chain, levels, arithmetic and refusals."""

from __future__ import annotations

import copy
import math
import random
import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from bentpipe.errors import BentpipeError
from bentpipe.experiment.load import load
from bentpipe.experiment.run.rare_timeouts import RareTimeouts
from bentpipe.results.rare_timeouts import Level, Outcome, Stage, probability, sum_up, timeout_figures
from bentpipe.results.tables import timeout_text

STEP_PS = 10**7
PLACES, STEPS, UP, FATAL = 6, 50, 0.3, 3
"""A queue of so many places gets a cell with this probability in each of so many steps, and loses one otherwise. A
transfer with so many losses has a time-out."""


def exact() -> float:
    """Return the probability of a time-out by the distribution of (queue, losses) step by step."""
    shares = {(0, 0): 1.0}
    for _ in range(STEPS):
        after: dict[tuple[int, int], float] = {}
        for (queue, lost), share in shares.items():
            if lost == FATAL:
                after[queue, lost] = after.get((queue, lost), 0.0) + share
                continue
            up = (queue, lost + 1) if queue == PLACES else (queue + 1, lost)
            for state, chance in ((up, UP), ((max(queue - 1, 0), lost), 1 - UP)):
                after[state] = after.get(state, 0.0) + share * chance
        shares = after
    return sum(share for (_, lost), share in shares.items() if lost == FATAL)


class Chain:
    """The chain, with all that the trials ask of a network with its hosts."""

    def __init__(self, seed: int) -> None:
        self.now_ps, self.queue, self.lost, self.most, self.level = 0, 0, 0, 0, 0
        self.ended: dict[int, int] = {}
        self.random = random.Random(seed)

    def run(self, until_ps: int) -> int:
        while self.now_ps < until_ps and not self.finished:
            self.now_ps += STEP_PS
            if self.random.random() >= UP:
                self.queue = max(self.queue - 1, 0)
            elif self.queue == PLACES:
                self.lost += 1
            else:
                self.queue += 1
            self.most = max(self.most, self.queue)
            if self.level and self.queue >= self.level:
                self.level = 0
                break
            if not self.queue:
                self.ended[self.most] = self.ended.get(self.most, 0) + 1
                self.most = 0
        return self.now_ps

    @property
    def finished(self) -> bool:
        return self.lost >= FATAL or self.now_ps >= STEPS * STEP_PS


class Branches:
    """Copies of the chain."""

    def __init__(self, chain: Chain) -> None:
        self._chain = chain

    @property
    def engine(self) -> Any:
        chain = self._chain
        report = SimpleNamespace(timeouts=int(chain.lost >= FATAL))
        flow = SimpleNamespace(name="transfer", finished=chain.finished, report=lambda _now: report)
        return SimpleNamespace(flows=[flow], now_ps=chain.now_ps, run=chain.run)

    @property
    def gauge(self) -> Any:
        def arm(level: int, _empty: bool) -> None:
            self._chain.level, self._chain.most = level, self._chain.queue

        def heights() -> list[int]:
            ended, self._chain.ended = self._chain.ended, {}
            return [ended.get(k, 0) for k in range(max(ended, default=0) + 1)]

        return SimpleNamespace(arm=arm, heights=heights)

    def counts(self) -> Any:
        return SimpleNamespace(queue=self._chain.queue, came=self._chain.now_ps // STEP_PS, most=self._chain.most)

    def lost_pdus(self, _vc: int) -> int:
        return self._chain.lost

    def take(self) -> Chain:
        return self._copy(self._chain)

    def give(self, moment: Chain, seed: str) -> None:
        self._chain = self._copy(moment)
        self._chain.random = random.Random(seed)

    def _copy(self, chain: Chain) -> Chain:
        made = copy.copy(chain)
        made.ended = dict(chain.ended)
        return made

    @contextmanager
    def kept(self) -> Iterator[None]:
        chain = self._chain
        yield
        self._chain = chain


def found(seed: int, stop_at: float = math.inf, steps: int = 2 * STEPS, **settings: Any) -> dict[str, Any]:
    table = {"flow": "transfer", "port": "lan:2", "levels": (), "losses": (1, 2), "step_ps": STEP_PS, "effort": 50}
    table |= {"repeats": 10, **settings}
    experiment: Any = SimpleNamespace(
        rare_timeout=SimpleNamespace(**table),
        seed=seed,
        duration_ps=steps * STEP_PS,
        full_ps=steps * STEP_PS,
        flows=[SimpleNamespace(name="transfer", vc=0)],
    )
    branches: Any = Branches(Chain(seed))
    done = 0.0

    def progress(share: float) -> None:
        nonlocal done
        done = share

    return RareTimeouts(experiment, branches, branches).split(lambda: 1 if done >= stop_at else None, progress)


@pytest.mark.parametrize("levels", [(), (3, 5), (6,)])
def test_estimates_have_the_exact_probability_as_their_mean(levels: tuple[int, ...]) -> None:
    estimates = [found(seed, levels=levels) for seed in range(10)]
    values = [each["probability"]["value"] for each in estimates]
    error = statistics.stdev(values) / math.sqrt(len(values))
    assert abs(statistics.fmean(values) - exact()) < 3.5 * error
    assert error < 0.2 * exact(), "the comparison says something"
    inside = [each["probability"]["low"] < exact() < each["probability"]["high"] for each in estimates]
    assert sum(inside) >= 8


def test_the_pilot_finds_rising_levels_and_the_last_ones_are_losses() -> None:
    rows = found(1)["levels"]
    assert [row["what"] for row in rows] == ["begin", *["queue"] * (len(rows) - 3), "lost", "lost"]
    queue = [row["level"] for row in rows if row["what"] == "queue"]
    assert queue == sorted(set(queue)) and queue[0] >= 1 and queue[-1] <= PLACES
    assert all(row["next"] > 0.05 for row in rows[:-1])


def test_a_seed_gives_one_estimate_and_another_another() -> None:
    assert found(3) == found(3)
    assert found(3)["probability"] != found(4)["probability"]


def test_a_stopped_estimate_has_the_batches_that_were_done() -> None:
    part, whole = found(5, stop_at=0.35), found(5)
    assert (part["batches_done"], part["batches"]) == (4, 10)
    assert part["trials"] == pytest.approx(0.4 * whole["trials"])
    nothing = found(5, stop_at=0.0)
    assert (nothing["batches_done"], nothing["probability"]["value"], nothing["levels"]) == (0, None, [])


def test_trials_that_end_before_their_transfer_are_told() -> None:
    assert found(5)["unfinished"] == 0 and "longer duration" not in timeout_text(found(5))
    short = found(5, steps=STEPS // 2)
    assert short["unfinished"] > 500
    assert f"{short['unfinished']:,} trials ended with the run" in timeout_text(short)


def stage(level: Level | None, reached: int, timeouts: int, ended: int) -> Stage:
    made = Stage(level)
    for outcome, count in ((Outcome.REACHED, reached), (Outcome.TIMEOUT, timeouts), (Outcome.ENDED, ended)):
        for _ in range(count):
            made.add(outcome)
    return made


def test_the_probability_adds_the_time_outs_of_each_level_with_its_weight() -> None:
    stages = [stage(None, 20, 1, 79), stage(Level("queue", 5), 50, 0, 50), stage(Level("lost", 1), 0, 30, 70)]
    assert probability(stages) == pytest.approx(0.01 + 0.2 * 0.5 * 0.3)
    empty = [stage(None, 0, 2, 98), Stage(Level("queue", 5)), Stage(Level("lost", 1))]
    assert probability(empty) == pytest.approx(0.02)
    summary = sum_up("transfer", "lan:2", [stages, empty] * 5, 10, 7, False)
    figures = timeout_figures(summary)
    assert figures["timeout_probability"] == summary["probability"]["value"]
    assert figures["timeout_probability_low"] < 0.03 < figures["timeout_probability_high"]  # type: ignore[operator]


def test_so_many_plain_transfers_have_the_same_error() -> None:
    """A share ``p`` of ``n`` independent transfers has the relative variance ``(1 - p) / (p n)``."""
    counts = (4, 6, 5, 5, 3, 7, 4, 6, 2, 8)
    batches = [[stage(None, 0, k, 100 - k)] for k in counts]
    summary = sum_up("transfer", "lan:2", batches, 10, 0, False)
    sigma = statistics.stdev(counts) / math.sqrt(10) / statistics.fmean(counts)
    assert summary["transfers_plain"] == pytest.approx(0.95 / 0.05 / sigma**2)


@pytest.mark.parametrize(
    ("settings", "expected_text"),
    [
        (["rare_timeout.flow=transfr"], "rare_timeout.flow: there is no flow 'transfr'; did you mean 'transfer'?"),
        (["rare_timeout.flow=bursts"], "rare_timeout.flow: flow bursts is no transfer: give a TCP flow with a size"),
        (["flow.0.size=endless"], "rare_timeout.flow: flow transfer is no transfer"),
        (["rare_timeout.port=lan:9"], "rare_timeout.port: lan has no port 9"),
        (["rare_timeout.port=wan:1"], "rare_timeout.port: there is no switch 'wan'"),
        (["rare_timeout.levels=[5,5]"], "rare_timeout.levels: must rise from one to the next"),
        (["rare_timeout.losses=[2,1]"], "rare_timeout.losses: must rise from one to the next"),
        (["rare_timeout.levels=[5,9000]"], "lan has a buffer of 800 cells, and never 9000 queued"),
        (["splitting.port=lan:2"], "rare_timeout: cannot be combined with [splitting]"),
        (["record.losses=true"], "record.losses: cannot be combined with [rare_timeout]"),
        (['record.pcap=["ip:sink"]'], "record.pcap: cannot be combined with [rare_timeout]"),
        (['network.line="sonet"'], 'rare_timeout: requires lines of cells: set line = "cell"'),
        (["flow.1.app=cbr"], ""),
    ],
)
def test_what_cannot_be_estimated_is_a_line(settings: list[str], expected_text: str) -> None:
    with pytest.raises(BentpipeError) as raised:
        load("rare-timeout", settings)
    assert expected_text in str(raised.value)
