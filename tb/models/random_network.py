"""Random networks, random things done with them, and their accounts at every stop.

:func:`build` draws a network of one of the :data:`KINDS`: topology, settings, VCs, virtual paths, point-to-multipoint
VCs. :func:`play` sends PDUs and OAM cells over it, changes settings while it runs, and checks the accounts of cells and
PDUs at every stop. All nodes of a kind have the same few shapes, whatever is drawn, so that few nodes are compiled.

What is drawn depends on kind and seed alone, and neither on the engine nor on how often the run is disturbed: by stops,
saves and copies, which must change nothing.
"""

from __future__ import annotations

import itertools
import pickle
import random
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from bentpipe_hdl.link.control import BurstSettings, LinkSettings
from bentpipe_hdl.nic.control import NicLine, NicSettings, PacingSettings
from bentpipe_hdl.sonet.control import SonetSettings
from bentpipe_hdl.switch.control import PortSettings, SwitchSettings, VcSettings
from bentpipe_hdl.switch.options import options_word
from bentpipe_hdl.switch.options.histograms.control import HistogramSettings
from bentpipe_hdl.switch.options.oam.control import OamSettings, OamSwitchSettings
from bentpipe_hdl.switch.options.police.control import PoliceSettings
from bentpipe_hdl.switch.options.reactive.control import ReactiveSettings
from bentpipe_hdl.switch.options.red.control import RedSettings
from bentpipe_hdl.switch.options.shape.control import ShapeSettings
from bentpipe_hdl.ticks import ticks_to_ps
from bentpipe_sim.errors import NetworkError
from bentpipe_sim.network import Network
from bentpipe_sim.nodes import Link, Nic, Node, SonetLine, Switch
from models.lines import switch_ports

from .oam import octets

__all__ = ["KINDS", "Kind", "Outcome", "build", "play"]

US, MS = 10**6, 10**9
OC3 = 149_760_000
DS3 = 40_704_000
LENGTHS = (1, 40, 300, 1500, 9180)

_RED = RedSettings(low=1.0, high=4.0, weight=0.3)
_FRAMEWISE = ("red", "queue_limit", "port_epd", "fair", "minimum", "efci", "police", "histograms")


@dataclass(frozen=True)
class Kind:
    """The options of a network's switches, interfaces and lines."""

    options: tuple[str, ...] = ()
    cells: int = 150
    ports: int = 4
    scheduler: str = "round-robin"
    manages: bool = False
    sonet: bool = False
    credits: bool = False


KINDS = {
    "plain": Kind(cells=512),
    "sonet": Kind(cells=512, sonet=True),
    "all": Kind((*_FRAMEWISE, "reactive", "fifo", "shares", "vp", "oam", "copies"), ports=6, manages=True),
    "clocks": Kind(
        (*_FRAMEWISE, "reactive", "virtual-clock", "vp", "oam", "copies"), scheduler="virtual-clock", manages=True
    ),
    "shaped": Kind((*_FRAMEWISE, "reactive", "shape", "vp", "oam", "copies"), manages=True),
    "frames": Kind((*_FRAMEWISE, "frames", "fifo", "shares", "vp", "oam", "copies"), manages=True),
    "credits": Kind(("credits", "shares", "histograms", "efci", "minimum"), cells=600, credits=True),
}  # fmt: skip


@dataclass
class Outcome:
    """The results of a network: received PDUs, digests of all wires, counters, accounts of PDUs, and the number of
    looks at it.
    """

    events: list[Any]
    digests: dict[tuple[str, int], int]
    counters: dict[str, dict[str, Any]]
    ledger: list[Any]
    checks: int = field(compare=False)


@dataclass
class Drawn:
    """A network with what is to be known about it to use it: VCs as ``(NIC, VC)``, virtual paths, lines."""

    network: Network
    kind: Kind
    vcs: list[tuple[int, int]]
    vc_settings: list[dict[str, Any]]
    vps: list[dict[str, Any]]


def build(kind: str | Kind, seed: int | str, **how: Any) -> Drawn:
    """Draw a network; one that the network itself refuses is drawn again. ``how`` it is run: engine, threads, parts."""
    drawn_kind = KINDS[kind] if isinstance(kind, str) else kind
    name = f"{kind} {seed}" if isinstance(kind, str) else str(seed)
    for number in itertools.count():
        made = _Maker(drawn_kind, random.Random(f"{name} {number}"), how).make()
        if made is not None:
            return made
    raise AssertionError


class _Maker:
    """Draws one network."""

    def __init__(self, kind: Kind, rng: random.Random, how: dict[str, Any]) -> None:
        self.kind, self.rng = kind, rng
        self.network = Network(seed=rng.randrange(1000), **how)
        self.free: dict[str, list[int]] = {}
        self.switches: list[Switch] = []
        self.nics: list[Nic] = []

    def make(self) -> Drawn | None:
        rng, network = self.rng, self.network
        count = rng.randint(1, 3)
        for k in range(count):
            self.switches.append(self._switch(f"s{k}"))
            self.free[f"s{k}"] = list(range(self.kind.ports))
        edges = [(rng.randrange(k), k) for k in range(1, count)]
        if count > 1 and rng.random() < 0.4:  # two lines in parallel, or a ring
            one, other = rng.sample(range(count), 2)
            edges.append((one, other))
        for a, b in edges:
            if self.free[f"s{a}"] and self.free[f"s{b}"]:
                self._join((self.switches[a], self._port(a)), (self.switches[b], self._port(b)))
        for k in range(count):
            for _ in range(rng.randint(1, max(1, len(self.free[f"s{k}"]) - 1))):
                if self.free[f"s{k}"]:
                    self._host(k)
        if len(self.nics) < 2 and self.free["s0"]:
            self._host(0)
        vps, vcs, settings = self._paths(), [], []
        for number in range(rng.randint(2, 8)):
            for index, given in self._vc(number):
                vcs.append(index)
                settings.append(given)
        try:
            network.start()
        except NetworkError:
            network.close()
            return None
        return Drawn(network, self.kind, vcs, settings, vps) if vcs else None

    def _port(self, k: int) -> int:
        return self.free[f"s{k}"].pop(self.rng.randrange(len(self.free[f"s{k}"])))

    # ---- nodes ----

    def _switch(self, name: str) -> Switch:
        rng, kind = self.rng, self.kind
        has = set(kind.options)
        given: dict[str, Any] = {"buffer_cells": kind.cells, "scheduler": kind.scheduler}
        given["processing_delay_ps"] = rng.choice([0, 2 * US, 5 * US])
        if kind.credits:
            given["credits"] = {"share": rng.choice([8, 24]), "batch": rng.choice([1, 8]), "resync_ps": MS}
        else:
            given["policy"] = rng.choice(["ppd", "epd", *(["selective", "fba"] if "fair" in has else [])])
            given["epd_threshold"] = rng.choice([0.5, 0.9, 60])
            given["vc_limit"] = rng.choice([0, 0, 50])
            given["clp_threshold"] = rng.choice([0, 40])
            given["oam_reserve"] = rng.choice([0, 10])
        if "minimum" in has and not kind.credits:
            given["vc_minimum"] = rng.choice([0, 1, 3])
        if "efci" in has:
            given["efci_threshold"] = rng.choice([0, 40])
        if "histograms" in has:
            given["histograms"] = HistogramSettings(bins=rng.choice(["logarithmic", "linear"]))
        if kind.manages:
            given["oam"] = OamSwitchSettings(scan_ps=rng.choice([100 * US, MS]))
        ports = [self._port_settings(k) for k in range(kind.ports)]
        rates = [DS3 if p.frames else rng.choice([OC3, OC3, 20_000_000, 5_000_000]) for p in ports]
        made = self.network.add_switch(
            name, SwitchSettings(**given), ports=switch_ports(rates, settings=dict(enumerate(ports)))
        )
        made._more_options = options_word(kind.options)
        return made

    def _port_settings(self, k: int) -> PortSettings:
        rng, has = self.rng, set(self.kind.options)
        by_frames = k >= 2  # virtual paths leave by the others
        reactive = frames = None
        if "reactive" in has and rng.random() < 0.3:
            low, high = sorted(rng.choices(range(60), k=2))
            floor = rng.choice([0, 1_000_000])
            reactive = ReactiveSettings(
                floor_bps=floor, ceiling_bps=rng.choice([20_000_000, OC3]), low=low, high=high, up_bps=10**7,
                down_bps=10**7, counted=rng.choice(["cells", "packets"]), interval_ps=rng.choice([20 * US, MS // 4]),
                average=rng.choice([1.0, 0.3]),
            )  # fmt: skip
        if "frames" in has and rng.random() < 0.5:
            frames = "plcp"
        return PortSettings(
            reactive=reactive,
            frames=frames,
            queue_limit=rng.choice([1, 4]) if by_frames and "queue_limit" in has and rng.random() < 0.3 else None,
            red=_RED if by_frames and "red" in has and rng.random() < 0.3 else None,
            scheduler=rng.choice([None, "fifo", "weighted"]) if "fifo" in has else None,
            epd_threshold=rng.choice([None, 30]) if "port_epd" in has else None,
            efci_threshold=rng.choice([None, 5]) if "efci" in has else None,
        )  # fmt: skip

    def _host(self, k: int) -> None:
        rng, kind = self.rng, self.kind
        timeout = rng.choice([0, 2 * MS])
        nic = self.network.add_nic(
            f"n{len(self.nics)}",
            NicSettings(reassembly_timeout_ps=timeout, oam=kind.manages),
            line=NicLine(rng.choice([OC3, 30_000_000])),
        )
        nic._will_sustain = kind.manages
        self.nics.append(nic)
        self._join(nic, (self.switches[k], self._port(k)))

    def _join(self, one: Any, other: Any) -> None:
        rng, network = self.rng, self.network
        if self.kind.sonet and rng.random() < 0.5:
            line = network.add_sonet_line(f"l{len(network.nodes)}", SonetSettings(ber=(rng.choice([0, 1e-6]), 0)))
            for face, port in ((one, 0), (other, 1)):
                network.connect(face, (line, port))
                network.connect((line, port), face)
            return
        for a, b in ((one, other), (other, one)):
            if rng.random() < 0.4:
                network.connect(a, b, rng.choice([0, 0, 20 * US]))
                continue
            link = network.add_link(f"l{len(network.nodes)}", LinkSettings(**self._line()))
            link._becomes_faulty = bool(self.kind.options)
            network.connect(a, link)
            network.connect(link, b)

    def _line(self) -> dict[str, Any]:
        rng = self.rng
        found: dict[str, Any] = {"delay_ps": rng.choice([0, 10 * US, MS // 3]), "ber": rng.choice([0, 0, 1e-5, 1e-3])}
        if self.kind.options and rng.random() < 0.3:
            found["bursts"] = _bursts(rng)
        return found

    # ---- VCs ----

    def _route(self, source: Node, sink: Node, first: tuple[Node, ...] = ()) -> list[Node] | None:
        """A path that is drawn, over no node twice; ``first`` are taken where there is a choice."""
        ways = [(source, [source])]
        seen = {id(source)}
        while ways:
            node, path = ways.pop(0)
            if node is sink:
                return path
            if isinstance(node, Nic) and node is not source:
                continue
            after = [there for there, _ in node.outputs.values() if id(there) not in seen]
            if isinstance(node, SonetLine):  # to its other end
                come = next(port for port, (there, _) in node.inputs.items() if there is path[-2])
                after = [node.outputs[1 - come][0]]
            after.sort(key=lambda each: each not in first)
            for each in after:
                if id(each) not in seen:
                    seen.add(id(each))
                    ways.append((each, [*path, each]))
        return None

    def _paths(self) -> list[dict[str, Any]]:
        """Virtual paths from interface to interface, each way."""
        found: list[dict[str, Any]] = []
        if "vp" not in self.kind.options:
            return found
        for number in range(self.rng.choice([0, 1, 2])):
            a, b = self.rng.sample(self.nics, 2)
            for one, other in ((a, b), (b, a)):
                path = self._route(one, other)
                if path is None or any(self._leaves_by_frames(x, y) for x, y in itertools.pairwise(path)):
                    continue
                given: dict[str, Any] = {"limit": self.rng.choice([0, 30])}
                try:
                    self.network.add_vp(path, 9 + number, VcSettings(**given))
                except NetworkError:
                    continue
                found.append(given)
        return found

    def _leaves_by_frames(self, node: Node, after: Node) -> bool:
        if not isinstance(node, Switch):
            return False
        ports = [port for port, (there, _) in node.outputs.items() if there is after]
        return any(node.lines[port].settings.red or node.lines[port].settings.queue_limit for port in ports)

    def _vc(self, number: int) -> list[tuple[tuple[int, int], dict[str, Any]]]:
        """A VC and the one the other way; or a point-to-multipoint one."""
        rng, kind, network = self.rng, self.kind, self.network
        a, b = rng.sample(self.nics, 2)
        found = []
        several = "copies" in kind.options and len(self.nics) > 2 and rng.random() < 0.3
        for one, other in ((a, b),) if several else ((a, b), (b, a)):
            path = self._route(one, other)
            assert path is not None
            given = self.settings(several)
            branches = []
            if several:
                given.pop("oam", None)
                others = [nic for nic in self.nics if nic not in (one, other)]
                for leaf in rng.sample(others, rng.randint(1, min(2, len(others)))):
                    branch = self._route(one, leaf, tuple(path))
                    assert branch is not None
                    branches.append(branch)
            pacing = {} if rng.random() < 0.6 else {"cell_rate_bps": rng.choice([2_000_000, 20_000_000])}
            if kind.manages and rng.random() < 0.2:
                pacing = {"cell_rate_bps": 20_000_000, "sustained_rate_bps": 3_000_000, "burst": 20}
            try:
                index = network.add_vc(
                    path, number % 3, 100 + number, VcSettings(**given), pacing=PacingSettings(**pacing),
                    max_sdu=rng.choice([65535, 65535, 1000]), branches=branches,
                )  # fmt: skip
            except NetworkError:
                continue
            for node in path:
                if isinstance(node, Link) and rng.random() < 0.1:
                    node.lose(number % 3, 100 + number, pdus=rng.sample(range(1, 9), 2))
            found.append(((one.index, index), given))
        return found

    def settings(self, several: bool = False) -> dict[str, Any]:
        return _vc_settings(self.kind, self.rng, several)


def _bursts(rng: random.Random) -> BurstSettings:
    if rng.random() < 0.5:
        return BurstSettings(good_ps=MS, bad_ps=50 * US, ber=1e-3, loss=rng.choice([0.0, 0.5]))
    return BurstSettings(good_cells=100, bad_cells=5, loss=0.5)


def _vc_settings(kind: Kind, rng: random.Random, several: bool = False) -> dict[str, Any]:
    """Return the settings of the switches for a VC; the same are written when they change in a run."""
    if kind.credits:
        return {"weight": rng.randrange(1, 4), "efci_threshold": rng.choice([None, 3])}
    has = set(kind.options)
    given: dict[str, Any] = {
        "policy": rng.choice([None, "ppd", "epd"]),
        "limit": rng.choice([0, 20, 80]),
        "epd_threshold": rng.choice([None, 20]),
    }
    if "shares" in has:
        given |= {"weight": rng.randrange(1, 4), "priority": rng.randrange(2)}
    if "virtual-clock" in has:
        given["service_rate_bps"] = rng.choice([None, 100_000])
    if "efci" in has:
        given["efci_threshold"] = rng.choice([None, 3])
    if "police" in has and rng.random() < 0.3:
        given["police"] = PoliceSettings(
            pcr_bps=10_000_000, cdvt_ps=MS // 10, pcr_action=rng.choice(["discard", "tag"]), packets=rng.random() < 0.5
        )
    if "shape" in has and rng.random() < 0.4:
        given["shape"] = ShapeSettings(pcr_bps=rng.choice([500_000, 5_000_000]), cdvt_ps=rng.choice([0, MS // 10]))
    if kind.manages and not several and rng.random() < 0.7:
        given["oam"] = OamSettings(ends=rng.random() < 0.5)
    return given


class _Player:
    """Uses a network, and looks at its accounts at every stop."""

    def __init__(self, drawn: Drawn, rng: random.Random, disturbing: random.Random | None) -> None:
        self.drawn, self.network, self.rng, self.disturbing = drawn, drawn.network, rng, disturbing
        self.events: list[Any] = []
        self.checks = self.offset = 0

    def play(self, steps: int) -> Outcome:
        network = self.network
        network.trace()
        for _ in range(steps):
            for _ in range(self.rng.choice([0, 1, 1, 2])):
                self.act()
            length = self.rng.choice([ticks_to_ps(self.rng.randint(1, 60)), self.rng.randrange(300 * US), MS])
            self.go(self.network.now_ps + length)
        self.go(self.network.now_ps + 40 * MS)
        network = self.network
        found = Outcome(self.events, network.digests(), network.counters(), network.ledger(), self.checks)
        network.close()
        return found

    def check(self) -> None:
        self.network.check_conservation()
        self.network.ledger()
        self.checks += 1

    def go(self, until_ps: int) -> None:
        if self.disturbing is not None:
            while self.disturbing.random() < 0.5 and self.network.now_ps < until_ps:
                self.run(min(until_ps, self.network.now_ps + ticks_to_ps(self.disturbing.randint(1, 40))))
                self.disturb()
        self.run(until_ps)
        self.check()

    def run(self, until_ps: int) -> None:
        while self.network.now_ps < until_ps:
            for event in self.network.run(until_ps):
                whole = self.network.sdu(event.handle) if event.status == 0 else b""
                self.events.append(
                    (event.time_ps, event.nic, event.vc, event.status, event.length, event.congested, whole)
                )

    def disturb(self) -> None:
        """Something that must change nothing."""
        rng, network = self.disturbing, self.network
        assert rng is not None
        what = rng.randrange(4)
        if what < 2:
            self.check()
        elif what == 2 and network.saves:
            saved = network.save()
            copy = pickle.loads(pickle.dumps(network))
            copy.restore(saved)
            network.close()
            self.network = copy
        elif what == 3 and network.saves:  # on, and back again
            taken, events = network.take(), len(self.events)
            self.run(network.now_ps + rng.randrange(100 * US))
            del self.events[events:]
            network.give(taken)

    # ---- what is done ----

    def act(self) -> None:
        actions = [self.send] * 6 + [
            self.change_line,
            self.change_switch,
            self.change_port,
            self.change_vc,
            self.change_pacing,
        ]
        if self.drawn.kind.manages:
            actions += [self.send_oam] * 3 + [self.ask_for_loopback] * 2
        with suppress(NetworkError):  # what is drawn may not go together
            self.rng.choice(actions)()

    def nodes(self, kind: type[Any]) -> list[Any]:
        return [node for node in self.network.nodes if isinstance(node, kind)]

    def send(self) -> None:
        for _ in range(self.rng.choice([1, 2, 10])):
            nic, vc = self.rng.choice(self.drawn.vcs)
            length = self.rng.choice(LENGTHS)
            self.network.send(nic, vc, b"head", key=vc + 1, offset=self.offset, length=length)
            self.offset += length

    def send_oam(self) -> None:
        nic, vc = self.rng.choice(self.drawn.vcs)
        payload = octets(self.rng.choice(["ais", "rdi", "cc", "loopback"]))
        if self.rng.random() < 0.3:
            payload = bytes(48)
        self.network.send_cell(nic, vc, self.rng.choice([4, 5]), payload)

    def ask_for_loopback(self) -> None:
        switch = self.rng.choice(self.nodes(Switch))
        vc, segment = self.rng.randrange(64), self.rng.randrange(2)
        if vc < len(switch.vcs):
            switch.csr.oam_request = {"vc": vc, "segment": segment, "path": int(switch.vcs[vc].vpc)}

    def change_line(self) -> None:
        rng = self.rng
        ber, outage, bursts, which = rng.choice([0, 1e-5, 1e-3]), rng.random() < 0.3, _bursts(rng), rng.random()
        links = self.nodes(Link)
        if not links:
            return
        link = links[int(which * len(links))]
        if not self.drawn.kind.options:
            link.change(ber=ber)
        else:
            link.change(ber=ber, outage=outage, **({"bursts": bursts} if link.settings.bursts else {}))

    def change_switch(self) -> None:
        rng, has = self.rng, set(self.drawn.kind.options)
        given: dict[str, Any] = {"epd_threshold": rng.choice([0.5, 0.9, 60]), "clp_threshold": rng.choice([0, 40])}
        given |= {"oam_reserve": rng.choice([0, 10]), "vc_limit": rng.choice([0, 50])}
        if "efci" in has:
            given["efci_threshold"] = rng.choice([0, 40])
        if self.drawn.kind.credits:
            given = {"efci_threshold": given["efci_threshold"]}
        rng.choice(self.nodes(Switch)).change(**given)

    def change_port(self) -> None:
        rng = self.rng
        rate, which, port = rng.choice([OC3, 20_000_000, 5_000_000]), rng.random(), rng.randrange(self.drawn.kind.ports)
        switches = self.nodes(Switch)
        switch = switches[int(which * len(switches))]
        settings = switch.lines[port].settings
        if settings.frames is None:
            switch.change_port(port, rate, settings)

    def change_vc(self) -> None:
        number = self.rng.randrange(len(self.drawn.vcs))
        before = self.drawn.vc_settings[number]
        given = _vc_settings(self.drawn.kind, self.rng)
        # What stays as it is in a run: whether there is a contract, the ends of OAM flows
        for key in ("police", "shape", "oam"):
            given.pop(key, None)
            if key in before:
                given[key] = before[key]
        self.network.change_vc(number, VcSettings(**given))
        self.drawn.vc_settings[number] = given

    def change_pacing(self) -> None:
        nic, vc = self.rng.choice(self.drawn.vcs)
        rate = self.rng.choice([None, 1_000_000, 20_000_000])
        self.nodes(Nic)[[node.index for node in self.nodes(Nic)].index(nic)].change_send(vc, rate)


def play(kind: str, seed: int, *, steps: int = 30, engine: Any = None, disturbed: bool = True) -> Outcome:
    """Draw a network and use it.

    Parameters
    ----------
    kind, seed : str, int
        Of which one of the :data:`KINDS`, and what is drawn.
    steps : int
        Stops at which something is done.
    engine : str, optional
    disturbed : bool
        Stop more often, save, go on with a copy, go on and back.

    Raises
    ------
    NetworkError
        An account doesn't hold.
    """
    drawn = build(kind, seed, engine=engine)
    disturbing = random.Random(f"disturb {kind} {seed}") if disturbed else None
    return _Player(drawn, random.Random(f"play {kind} {seed}"), disturbing).play(steps)
