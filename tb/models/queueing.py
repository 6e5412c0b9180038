"""Queues in discrete time: what theory says of waits and losses.

A slot is the unit of time. Servers take cells one by one, in order of arrival, each for a fixed number of slots.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from itertools import product
from math import comb

import numpy as np

__all__ = [
    "batch_loss",
    "geo_d_1_k_found",
    "geo_d_1_k_late",
    "geo_d_1_k_loss",
    "geo_d_1_k_reach",
    "geo_d_1_k_wait",
    "geo_d_1_wait",
    "markov_d_1_k_loss",
    "md_1_k_loss",
    "mmpp_loss",
    "nd_d_1_k_loss",
    "nd_d_1_k_loss_by_enumeration",
    "nd_d_1_wait",
    "nd_d_1_wait_by_enumeration",
    "nd_d_1_work_above",
    "on_off_loss",
    "periodic_loss",
    "poisson_batch",
]


def geo_d_1_wait(load: float, service: int) -> float:
    """Mean wait of Geo/D/1: a cell in each slot with probability ``load``, whatever others have (Takagi, Queueing
    Analysis, vol. 3, 1.2; Bruneel and Kim, 1.1): the mean of S (S - 1) over 2 (1 - rho), times the rate."""
    rho = load * service
    assert rho < 1
    return load * service * (service - 1) / (2 * (1 - rho))


def _chain(load: float, service: int, places: int) -> np.ndarray:
    """From the wait that a cell would have to that of the next, in a Geo/D/1 queue with ``places`` beside that in
    service. A cell is lost that finds all places taken, which is when it would wait ``places`` services or more."""
    top = service * (places + 1)
    chain = np.zeros((top, top))
    for wait in range(top):
        after = wait + (service if wait < service * places else 0)
        for gap in range(1, after):
            chain[wait, after - gap] += load * (1 - load) ** (gap - 1)
        chain[wait, 0] += 1 - chain[wait].sum()
    return chain


def _waits(load: float, service: int, places: int) -> np.ndarray:
    """The stationary distribution of the wait that a cell would have."""
    chain = _chain(load, service, places)
    top = len(chain)
    states = np.vstack([chain.T - np.eye(top), np.ones(top)])
    found, *_ = np.linalg.lstsq(states, np.append(np.zeros(top), 1.0), rcond=None)
    return found


def geo_d_1_k_loss(load: float, service: int, places: int) -> float:
    """The probability that a cell is lost in Geo/D/1/K, where K counts the places beside that in service."""
    return float(_waits(load, service, places)[service * places :].sum())


def md_1_k_loss(rho: float, places: int) -> float:
    """The probability that a cell is lost in M/D/1/K with ``places`` beside that in service: the chain of cells that a
    departure leaves behind, and by flow balance 1 - 1 / (rho + that none is left) (Gross and Harris, Fundamentals of
    Queueing Theory, 5.1.7)."""
    there = [math.exp(-rho) * rho**k / math.factorial(k) for k in range(places + 1)]  # that come in a service
    chain = np.zeros((places + 1, places + 1))
    for left in range(places + 1):
        for k in range(places + 1 - max(left - 1, 0)):
            chain[left, max(left - 1, 0) + k] = there[k]
        chain[left, places] += 1 - chain[left].sum()
    states = np.vstack([chain.T - np.eye(places + 1), np.ones(places + 1)])
    found, *_ = np.linalg.lstsq(states, np.append(np.zeros(places + 1), 1.0), rcond=None)
    return float(1 - 1 / (rho + found[0]))


def geo_d_1_k_reach(load: float, service: int, places: int) -> list[float]:
    """The probability that 1, 2, ..., ``places`` cells or more are queued at once in a cycle, which begins with a cell
    that finds none queued (it would wait for less than a service) and goes on until the next such. With so many queued
    a cell finds one less."""
    chain, waits = _chain(load, service, places), _waits(load, service, places)
    first = waits[:service] / waits[:service].sum()
    found = [1.0]
    for level in range(1, places):  # found queued
        inside = slice(service, service * level)
        there = chain[:, service * level :].sum(axis=1)
        if level > 1:
            among = chain[inside, inside]
            hits = np.linalg.solve(np.eye(len(among)) - among, there[inside])
            there = there + chain[:, inside] @ hits
        found.append(float(first @ there[:service]))
    return found


def geo_d_1_k_late(load: float, service: int, places: int, wait: int) -> float:
    """Return the probability that a cell is not lost and waits for ``wait`` slots or longer in Geo/D/1/K."""
    return float(_waits(load, service, places)[wait : service * places].sum())


def geo_d_1_k_wait(load: float, service: int, places: int) -> float:
    """The mean wait of those that are not lost."""
    there = _waits(load, service, places)[: service * places]
    return float(there @ np.arange(len(there)) / there.sum())


def geo_d_1_k_found(load: float, service: int, places: int) -> float:
    """The mean number of cells that a cell finds waiting, of all that come: each of them stands for a service that it
    would wait, beside what is left of the one that goes on."""
    waits = _waits(load, service, places)
    return float(waits @ (np.arange(len(waits)) // service))


def nd_d_1_wait(sources: int, period: int, service: int, rounds: int = 0) -> float:
    """Mean wait of N*D/D/1: each source has a cell every ``period`` slots, in a slot that is any of them as likely.

    A cell waits for the most that the others, in any stretch of time that ends with its arrival, bring above what is
    served in it. Going back in time slot by slot, the number of the others' cells so far is a Markov chain: of those
    that are left, each is in the next slot with the same probability.

    Parameters
    ----------
    rounds : int
        The mean over so many periods from an empty queue on; 0: over all of a queue that has always been there. Only
        the first period differs: it has nothing to look back to beyond its beginning.
    """
    others, forever, first = sources - 1, 0.0, 0.0
    assert sources * service <= period
    for level in range(others * service):
        # The probability that no stretch so far brought more than the level, with so many cells in it; beside those
        # there are some in the cell's own slot that come behind it
        below = {behind: np.zeros(others + 1) for behind in range(others + 1)}
        for together in range(others + 1):
            share = _binomial(others, together, 1 / period) / (together + 1)
            for ahead in range(together + 1):
                if service * ahead <= level:
                    below[together - ahead][ahead] += share
        for slot in range(period):
            if slot:
                for behind, had in below.items():
                    after = np.zeros(others + 1)
                    for have in range(others + 1 - behind):
                        for new in range(others + 1 - behind - have):
                            if service * (have + new) - slot <= level:
                                after[have + new] += had[have] * _binomial(
                                    others - behind - have, new, 1 / (period - slot)
                                )
                    below[behind] = after
            first += (1 - sum(had.sum() for had in below.values())) / period
        forever += 1 - sum(had.sum() for had in below.values())
    return float(forever if not rounds else (first + (rounds - 1) * forever) / rounds)


@cache
def _binomial(count: int, hits: int, share: float) -> float:
    return comb(count, hits) * share**hits * (1 - share) ** (count - hits) if hits <= count else 0.0


def nd_d_1_wait_by_enumeration(sources: int, period: int, service: int, rounds: int) -> Fraction:
    """The same from every choice of slots, by serving the cells."""
    total, cells = Fraction(0), 0
    for phases in product(range(period), repeat=sources):
        free = 0
        for arrival in sorted(phase + period * r for phase in phases for r in range(rounds)):
            start = max(free, arrival)
            total += start - arrival
            free = start + service
            cells += 1
    return total / cells


def nd_d_1_k_loss(sources: int, period: int, service: int, places: int, through: int = 0) -> float:
    """The probability that a cell is lost in N*D/D/1/K over a period that begins with an empty queue: each source has a
    cell in one of ``period`` slots, each as likely. Of those of a slot one is taken a slot, the others come behind it;
    a cell is lost that finds all ``places`` beside that in service taken. It has its place until its service begins,
    and for ``through`` slots more. So a cell is lost that would wait for ``places`` services less ``through`` slots, or
    longer.

    Slot by slot, the cells that have not shown, those that wait to be taken and the work ahead are a Markov chain.
    """
    top, most = service * (places + 1), service * places - through
    states = np.zeros((sources + 1, sources + 1, top + 1))  # not shown, not taken, slots of work
    states[sources, 0, 0] = 1.0
    lost = 0.0
    for slot in range(period + sources):
        shown = np.zeros_like(states)
        for left in range(sources + 1):
            for new in range(left + 1 if slot < period else 1):
                share = _binomial(left, new, 1 / (period - slot)) if slot < period else 1.0
                shown[left - new, new:] += share * states[left, : sources + 1 - new]
        taken = np.zeros_like(states)
        taken[:, 0] += shown[:, 0]
        waiting = shown[:, 1:]
        lost += waiting[:, :, most:].sum()
        taken[:, :-1, most:] += waiting[:, :, most:]
        taken[:, :-1, service : service + most] += waiting[:, :, :most]
        states = np.zeros_like(taken)
        states[:, :, :-1] = taken[:, :, 1:]
        states[:, :, 0] += taken[:, :, 0]
    return float(lost / sources)


def nd_d_1_k_loss_by_enumeration(sources: int, period: int, service: int, places: int, through: int = 0) -> Fraction:
    """The same from every choice of slots, by serving the cells."""
    lost = 0
    for phases in product(range(period), repeat=sources):
        begins: list[int] = []
        taken = 0
        for phase in sorted(phases):
            taken = max(taken, phase)
            if sum(begin + through >= taken for begin in begins) >= places:
                lost += 1
            else:
                begins.append(max(taken, begins[-1] + service if begins else 0))
            taken += 1
    return Fraction(lost, sources * period**sources)


def _stationary(chain: np.ndarray) -> np.ndarray:
    """The stationary distribution of a Markov chain, by elimination without subtractions (Grassmann, Taksar and Heyman
    1985): small probabilities keep their digits."""
    chain = chain.copy()
    size = len(chain)
    for k in range(size - 1, 0, -1):
        chain[:k, k] /= chain[k, :k].sum()
        chain[:k, :k] += np.outer(chain[:k, k], chain[k, :k])
    found = np.zeros(size)
    found[0] = 1.0
    for k in range(1, size):
        found[k] = found[:k] @ chain[:k, k]
    return found / found.sum()


def markov_d_1_k_loss(loads: tuple[float, float], slots: tuple[float, float], service: int, places: int) -> float:
    """The share of cells that are lost where a chain of two states modulates the arrivals (a discrete MMPP/D/1/K).

    A slot has a cell with the load of the state, which lasts ``slots`` in the mean and changes behind a slot. A cell
    takes ``service`` slots; one is lost that would wait ``places`` services or more, as of :func:`geo_d_1_k_loss`. Slot
    by slot, state and wait are a Markov chain.
    """
    top = service * (places + 1)
    chain = np.zeros((2 * top, 2 * top))
    for state in (0, 1):
        for wait in range(top):
            taken = wait < service * places
            for comes, share in ((True, loads[state]), (False, 1 - loads[state])):
                after = max(wait + (service if comes and taken else 0) - 1, 0)
                for other in (0, 1):
                    changes = 1 / slots[state] if other != state else 1 - 1 / slots[state]
                    chain[state * top + wait, other * top + after] += share * changes
    found = _stationary(chain).reshape(2, top)
    arrivals = found * np.array(loads)[:, None]
    return float(arrivals[:, service * places :].sum() / arrivals.sum())


def poisson_batch(rate: float, most: int = 60) -> np.ndarray:
    """The probabilities of 0, 1, ... cells in a slot, Poisson distributed."""
    return np.array([math.exp(-rate + k * math.log(rate) - math.lgamma(k + 1)) for k in range(most)])


def batch_loss(batches: list[np.ndarray], changes: np.ndarray, places: int) -> float:
    """The share of cells that are lost in slots with a batch each: its cells come one by one, one is lost that finds
    ``places`` cells there, then one leaves (a D-BMAP/D/1/K).

    Parameters
    ----------
    batches : list of array
        The probabilities of 0, 1, ... cells, for each state.
    changes : array
        From a state to the next, behind the slot.
    """
    states = len(batches)
    chain = np.zeros((states * places, states * places)) if places > 1 else np.array(changes, dtype=float)
    lost = np.zeros((states, places))
    for state, batch in enumerate(batches):
        for queued in range(places):
            after = np.zeros(places)
            for count, share in enumerate(batch):
                after[max(min(queued + count, places) - 1, 0)] += share
                lost[state, queued] += share * max(queued + count - places, 0)
            if places > 1:
                row = np.outer(changes[state], after / after.sum()).ravel()
                chain[state * places + queued] = row
    found = _stationary(chain).reshape(states, places)
    means = np.array([batch @ np.arange(len(batch)) for batch in batches])
    return float((found * lost).sum() / (found.sum(axis=1) @ means))


def mmpp_loss(rates: tuple[float, float], changes: tuple[float, float], places: int) -> float:
    """:func:`batch_loss` of a D-MMPP of two states: Poisson batches with the rate of the state, which is left with the
    probability ``changes``."""
    one, two = changes
    return batch_loss([poisson_batch(rate) for rate in rates], np.array([[1 - one, one], [two, 1 - two]]), places)


def on_off_loss(sources: int, on: float, off: float, places: int) -> float:
    """:func:`batch_loss` of sources that have a cell in each slot while they are on, for ``on`` slots in the mean."""
    changes = np.zeros((sources + 1, sources + 1))
    for there in range(sources + 1):
        for stay in range(there + 1):
            for come in range(sources - there + 1):
                share = _binomial(there, stay, 1 - 1 / on) * _binomial(sources - there, come, 1 / off)
                changes[there, stay + come] += share
    return batch_loss([np.eye(sources + 1)[there] for there in range(sources + 1)], changes, places)


def periodic_loss(sources: int, period: int, places: int) -> float:
    """The share of cells that are lost in N*D/D/1/K in slots as of :func:`batch_loss`: each source has a cell every
    ``period`` slots, in a slot that is any of them as likely; the mean over these in the periodic steady state.

    A period leads from the queue at its beginning to that at its end, and for each choice of slots one queue leads to
    itself: so the sum over all queues, of those that come back to it, has each choice once."""
    lost, queued = 0.0, np.arange(places)
    for begin in range(places):
        states = np.zeros((sources + 1, places))  # sources that have not shown, queued
        losses = np.zeros_like(states)
        states[sources, begin] = 1.0
        for slot in range(period):
            after, more = np.zeros_like(states), np.zeros_like(states)
            for left in range(sources + 1):
                for new in range(left + 1):
                    share = _binomial(left, new, 1 / (period - slot))
                    if share:
                        there = states[left] * share
                        to = np.maximum(np.minimum(queued + new, places) - 1, 0)
                        np.add.at(after[left - new], to, there)
                        np.add.at(
                            more[left - new], to, losses[left] * share + there * np.maximum(queued + new - places, 0)
                        )
            states, losses = after, more
        lost += losses[0, begin]
    return lost / sources


def nd_d_1_work_above(sources: int, period: float, level: float) -> float:
    """The probability that there are more than ``level`` services of work in N*D/D/1 with any phases.

    Roberts, Mocci and Virtamo, Broadband Network Teletraffic, 1996.
    """
    return sum(
        comb(sources, n)
        * ((n - level) / period) ** n
        * (1 - (n - level) / period) ** (sources - n)
        * (period - sources + level)
        / (period - n + level)
        for n in range(math.floor(level) + 1, sources + 1)
    )
