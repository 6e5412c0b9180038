"""Networks whose run can be in parts: PDUs are made and checked by the event loop, so that no host ends a run.

:func:`play` runs a random network of ``models.random_network``, saturated from all sources, and returns what it has
done at each stop. Nothing of it may depend on parts and threads, nor on where the run was saved and resumed with
others.
"""

from __future__ import annotations

import pickle
import random
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from bentpipe_sim.errors import NetworkError
from bentpipe_sim.network import Network
from bentpipe_sim.nodes import Link, Nic

from .random_network import KINDS, LENGTHS, MS, US, Kind, build

__all__ = ["PARTED", "Way", "outcome", "play", "saturate"]

PARTED = {
    "plain": KINDS["plain"],
    "options": Kind(KINDS["all"].options, ports=6),  # built with OAM, but without OAM cells
}
"""Kinds of random networks that can be in parts."""


class Way(NamedTuple):
    """Settings with which a network is run."""

    threads: int = 1
    parts: int | None = 1


def saturate(network: Network, rng: random.Random) -> None:
    """Have every VC's source send PDUs of one length without end, and every sink check them; some sinks answer."""
    ways = {(hops[0].node.index, hops[0].number): hops[-1].node.index for hops in network._legs()}
    lengths = {way: rng.choice(LENGTHS[1:]) for way in ways}
    between = {(source, sink): vc for (source, vc), sink in ways.items()}
    for hops in network._legs():
        source, sink, vc = hops[0].node.index, hops[-1].node.index, hops[0].number
        answer = between.get((sink, source))
        every = rng.choice([0, 2]) if answer is not None else 0
        network.loop.sink(sink, vc, vc + 1, answer or 0, 40, every)
    for (source, vc), length in lengths.items():
        network.loop.source(source, vc, length, vc + 1)


def outcome(network: Network) -> tuple[Any, ...]:
    """Return all that can be read of a network; its accounts hold."""
    network.check_conservation()
    good = [
        (node.name, vc, *_sink_counts(network, node.index, vc))
        for node in network.nodes
        if isinstance(node, Nic)
        for vc in node.receives
    ]
    return network.digests(), network.counters(), network.ledger(), network.stats(), good


def _sink_counts(network: Network, nic: int, vc: int) -> tuple[int, int]:
    counts = network.loop.ffi.new("uint64_t[2]")
    network.loop.sink_counts(nic, vc, counts, counts + 1)
    return counts[0], counts[1]


def play(kind: str, seed: int, ways: Sequence[Way], steps: int = 8) -> tuple[list[tuple[Any, ...]], list[str]]:
    """Run a network, the first steps in the first of these ways and so on, with a save and a copy between them.

    Returns
    -------
    list
        What it has done at each step (:func:`outcome`).
    list of str
        Why each step was not in parts; empty: it was.
    """
    rng = random.Random(f"parts {kind} {seed}")
    network = build(PARTED[kind], f"parts {kind} {seed}", threads=ways[0].threads, parts=ways[0].parts).network
    saturate(network, rng)
    network.trace()
    found, why = [], []
    for step in range(steps):
        which = ways[step * len(ways) // steps]
        if which != ways[max(step - 1, 0) * len(ways) // steps]:
            network = _copy(network, which)
        network.run(network.now_ps + rng.choice([rng.randrange(300 * US), MS, 3 * MS]))
        found.append(outcome(network))
        why.append(network.why_whole)
        _change(network, rng)
    network.close()
    return found, why


def _copy(network: Network, way: Way) -> Network:
    saved = network.save()
    copy = pickle.loads(pickle.dumps(network))
    copy.cut(*way)
    copy.restore(saved)
    network.close()
    return copy


def _change(network: Network, rng: random.Random) -> None:
    """Some setting becomes another one, for a run that goes on."""
    links = [node for node in network.nodes if isinstance(node, Link)]
    ber, which = rng.choice([0, 1e-6, 1e-5, 1e-4]), rng.random()
    nics = [node for node in network.nodes if isinstance(node, Nic) and node.sends]
    nic, rate = rng.choice(nics), rng.choice([2_000_000, 20_000_000])
    with suppress(NetworkError):  # what is drawn may not go together
        if links and rng.random() < 0.5:
            links[int(which * len(links))].change(ber=ber)
        else:
            nic.change_send(rng.choice(sorted(nic.sends)), rate)
