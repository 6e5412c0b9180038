"""A network of Verilated nodes, and the interface that hosts have to it."""

from __future__ import annotations

import itertools
import os
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from bentpipe_hdl.link.control import LinkSettings
from bentpipe_hdl.nic.control import NicLine, NicReceive, NicSend, NicSettings
from bentpipe_hdl.plcp import FramesName
from bentpipe_hdl.sonet.control import SonetSettings
from bentpipe_hdl.switch.control import PortSettings, SwitchPort, SwitchSettings, SwitchVc, VcSettings
from bentpipe_hdl.ticks import ps_to_ticks, round_ticks, ticks_to_ps

from .accounts import Account, read_account
from .build import EngineName, Shape, build_all, build_model, chosen_engine
from .channels import Channel, Channels, Hop, LedgerHop, Leg, Stop, VirtualPath, faces_of, paths_of
from .defects import Defects
from .errors import NetworkError, SimulationError
from .gauge import Gauge
from .interface import PduEvent
from .loop import Loop
from .management import check_managed, manage, manage_path
from .nodes import Link, Nic, Node, SonetLine, Switch, checked, made, size_of

__all__ = ["Network", "Saved"]

N = TypeVar("N", bound=Node)

CAPTURES = {"ip": 100, "pdus": 123, "cells": 197}
"""Kinds of captures and the link types of their files: RFC 1483 (at a host RAW, 101), SUNATM, ERF."""

_EVENT = struct.Struct("<QIIHHIII128sI4x")
"""``bp_event`` of ``csrc/network.h``."""
_POST = struct.Struct("<IIIIQiiIHH")
"""``bp_post``."""

INGRESS = 8
"""Cells that an input of a node holds while the node takes those of other inputs (``csrc/wire.hpp``)."""

_JITTER = 64
"""Ticks by which cells may come closer than their line's rate: what a switch's port makes up for."""

_END_PS = ticks_to_ps((1 << 48) - 1)
"""The event loop's ticks don't wrap; a node takes the last one for never."""


@dataclass(frozen=True)
class Saved:
    """The state of a network.

    Members
    -------
    models : tuple of str
        The names of the nodes' libraries, in which the hashes of their sources are: only the same take it.
    captures : tuple of int
        How long the captures' files were.
    octets : bytes
        Of the event loop.
    """

    models: tuple[str, ...]
    captures: tuple[int, ...]
    octets: bytes


class Network:
    """Nodes, wires and VCs; then, from the first ``send`` or ``run`` on, a :class:`~.interface.PduNetwork`.

    Parameters
    ----------
    seed : int
        Of all randomness: bit errors. The same seed and settings give the same cells at the same ticks.
    engine : str, optional
        "native" or "verilator", which is slower and gives the same cells at the same ticks; else ``$BENTPIPE_ENGINE``.
    """

    def __init__(self, seed: int = 1, *, engine: EngineName | None = None):
        self.seed = seed
        self.engine: EngineName = engine or chosen_engine()
        self.nodes: list[Node] = []
        self.loop = Loop()
        self._models: tuple[str, ...] = ()
        self._now_ps = 0
        self._running = False
        self._block: Any = b""
        """Where the event loop has its events."""
        self._reporting: set[int] = set()
        self._wires: list[tuple[Node, int, Node, int, int]] = []
        self._captures: list[tuple[Path, str, Node, int]] = []
        self._channels = Channels()
        self._gauge: Gauge | None = None
        self.paths: list[VirtualPath] = []
        self._defects = Defects(self.loop, self.nodes, self._wires)

    # Building

    def add_nic(
        self,
        name: str,
        rate_bps: float = 149_760_000,
        *,
        clock_ppm: float = 0.0,
        nni: bool = False,
        frames: FramesName | None = None,
        **settings: Any,
    ) -> Nic:
        """A host's interface with a line of ``rate_bps`` (bits of cells a second). Its clock, from which line and VCs
        take their rates, is ``clock_ppm`` fast, -1000 to 1000. With ``frames`` each cell goes in a slot of the line's.

        ``settings``: as of :class:`~bentpipe_hdl.nic.control.NicSettings`.
        """
        made_of = made(f"NIC {name}", NicSettings, settings)
        return self._add(Nic, name, NicLine(rate_bps, clock_ppm, nni, frames), made_of)

    def add_switch(
        self,
        name: str,
        port_rates_bps: Sequence[float] = (149_760_000,) * 4,
        *,
        port_clock_ppm: Sequence[float] | None = None,
        nni_ports: Sequence[int] = (),
        port_settings: Mapping[int, PortSettings] | None = None,
        **settings: Any,
    ) -> Switch:
        """A switch module: a port for each rate (bits of cells a second), one buffer for all. The clock of each port is
        ``port_clock_ppm`` fast, -1000 to 1000; None: all are exact. ``port_settings``: what some ports have besides.

        ``settings``: as of :class:`~bentpipe_hdl.switch.control.SwitchSettings`.
        """
        clocks = (0.0,) * len(port_rates_bps) if port_clock_ppm is None else tuple(port_clock_ppm)
        if len(clocks) != len(port_rates_bps):
            raise NetworkError(f"switch {name}: port_clock_ppm has a value for each of {len(port_rates_bps)} ports")
        own = port_settings or {}
        for port in own:
            if not 0 <= port < len(port_rates_bps):
                raise NetworkError(f"switch {name}: settings of port {port}, and its ports are 0..{len(clocks) - 1}")
        lines = [
            SwitchPort(rate, clock, port in nni_ports, own.get(port, PortSettings()))
            for port, (rate, clock) in enumerate(zip(port_rates_bps, clocks, strict=True))
        ]
        return self._add(Switch, name, lines, made(f"switch {name}", SwitchSettings, settings), self.seed)

    def add_link(self, name: str, **settings: Any) -> Link:
        """One direction of a line, with at least a tick of delay; ``settings`` as of
        :class:`~bentpipe_hdl.link.control.LinkSettings`."""
        return self._add(Link, name, made(f"link {name}", LinkSettings, settings), self.seed)

    def add_sonet_line(self, name: str, **settings: Any) -> SonetLine:
        """A SONET line both ways; its ports are 0 and 1. ``settings`` as of
        :class:`~bentpipe_hdl.sonet.control.SonetSettings`."""
        return self._add(SonetLine, name, made(f"SONET line {name}", SonetSettings, settings), self.seed)

    def _add(self, kind: Callable[..., N], name: str, *made_of: Any) -> N:
        if self.loop.is_open:
            raise NetworkError(f"{name}: the network runs already, nothing can be added")
        if any(other.name == name for other in self.nodes):
            raise NetworkError(f"two nodes are called {name}")
        node = kind(self.loop, len(self.nodes), name, *made_of)
        node.changed = self._defects.look
        self.nodes.append(node)
        return node

    def connect(self, source: Node | tuple[Node, int], sink: Node | tuple[Node, int], delay_ps: int = 0) -> None:
        """A wire from a node's output to a node's input; a face of a switch is ``(switch, port)``.

        A link's own delay comes on top.
        """
        (a, a_port), (b, b_port) = (face if isinstance(face, tuple) else (face, 0) for face in (source, sink))
        for node, port in ((a, a_port), (b, b_port)):
            if not 0 <= port < node.ports:
                raise NetworkError(f"{node.name} has no port {port}")
        if a_port in a.outputs:
            raise NetworkError(f"output {a_port} of {a.name} is connected twice")
        if b_port in b.inputs:
            raise NetworkError(f"input {b_port} of {b.name} is connected twice")
        a.outputs[a_port] = (b, b_port)
        b.inputs[b_port] = (a, a_port)
        self._wires.append((a, a_port, b, b_port, round_ticks(delay_ps)))

    def add_vc(
        self,
        path: Sequence[Node],
        vpi: int,
        vci: int,
        *,
        cell_rate_bps: float | None = None,
        sustained_rate_bps: float | None = None,
        burst: int | None = None,
        max_sdu: int = 65535,
        branches: Sequence[Sequence[Node]] = (),
        **settings: Any,
    ) -> int:
        """A VC in one direction along ``path``, from a NIC through switches and links to a NIC; through the virtual
        paths that are there (:meth:`add_vp`) and are parts of it.

        A point-to-multipoint one (UNI 3.1 clause 5.6) has further paths, its ``branches``, from the same NIC: the
        switch at which a path leaves those before it copies each cell for it.

        Parameters
        ----------
        vpi, vci : int
            The same on every line (0..255, with NNI lines 0..4095; 32..65535), but for the VPI in virtual paths, which
            is theirs.
        cell_rate_bps : float, optional
            The source paces the VC at this rate of cells; None: the rate of its line.
        sustained_rate_bps, burst : float, int, optional
            In the long run at this one, with so many cells at most in a row at the first.
        max_sdu : int
            Octets of the largest SDU that the sinks take.
        branches : sequence of paths
        settings
            What the switches give it, as of :class:`~bentpipe_hdl.switch.control.VcSettings`.

        Returns
        -------
        int
            The VC's index at all its NICs.

        Raises
        ------
        NetworkError
            A path is not connected, the VPI/VCI are out of range or used already, or something else of the above.
        """
        source, sink = path[0], path[-1]
        what = f"VC {vpi}/{vci} from {source.name} to {sink.name}"
        if self.loop.is_open:
            raise NetworkError(f"{what}: the network runs already, nothing can be added")
        paths = [path, *branches]
        if not isinstance(source, Nic) or any(not isinstance(each[-1], Nic) or len(each) < 2 for each in paths):
            raise NetworkError(f"{what}: a VC goes from a NIC to a NIC")
        if len({id(each[-1]) for each in paths}) < len(paths) or any(each[0] is not source for each in paths):
            raise NetworkError(f"{what}: its branches begin at {source.name}, each to another NIC")
        given = made(what, VcSettings, settings)
        if not 0 <= vpi < 4096 or not 32 <= vci < 65536:
            raise NetworkError(f"{what}: VPI from 0 to 4095 (255 at a UNI), VCI from 32 to 65535")
        if not 1 <= max_sdu <= 65535:
            raise NetworkError(f"{what}: an SDU has 1 to 65535 octets, not {max_sdu}")
        pacing = checked(what, lambda: source.line.paced(cell_rate_bps, sustained_rate_bps, burst))
        sinks = [each[-1] for each in paths if isinstance(each[-1], Nic)]
        used = {k for nic in (source, *sinks) for k in (*nic.sends, *nic.receives)}
        index = next(k for k in itertools.count() if k not in used)
        for nic in (source, *sinks):
            size_of(nic.name, index + 1)
        laid = _Laid(self, what, vpi, vci, index)
        for each in paths:
            laid.lay(each)
        for leg, nic in zip(laid.legs, sinks, strict=True):
            came = leg.stops[-1].vpi
            if any(other.vci == vci and other.vpi == came for other in nic.receives.values()):
                raise NetworkError(f"{what}: VPI/VCI {came}/{vci} is used twice at port 0 of {nic.name}")
        for switch in given.named_switches():
            if switch not in [hop.switch.name for hop in laid.hops if not hop.in_path and hop.come >= 0]:
                raise NetworkError(f"{what}: it doesn't pass a switch {switch!r}")
        channel = Channel(laid.legs, index, laid.hops[: laid.own], laid.hops[laid.own :], vpi, vci, given)
        for (hop, own), (before, after) in zip(channel.own_hops(), laid.vpis, strict=True):
            hop.switch.vcs.append(SwitchVc(hop.come, before, vci, hop.go, after, vci, own))
        for switch, root, number in laid.chained:
            switch.vcs[root] = replace(switch.vcs[root], leaf=number)
        source.sends[index] = NicSend(laid.legs[0].stops[0].vpi, vci, *pacing)
        for leg, nic in zip(laid.legs, sinks, strict=True):
            nic.receives[index] = NicReceive(leg.stops[-1].vpi, vci, max_sdu)
        self._channels.lay(channel)
        manage(channel)
        return index

    def check_vpi(self, what: str, switch: Switch, port: int, vpi: int) -> None:
        """The port's lines have this VPI."""
        if vpi > 255 and not switch.lines[port].nni:
            raise NetworkError(f"{what}: VPI {vpi} needs NNI lines, port {port} of {switch.name} is a UNI")

    def check_free(self, what: str, switch: Switch, port: int, vpi: int, vci: int | None) -> None:
        """Nothing at a port has this VPI/VCI, or VPI."""
        for other in switch.vcs:
            if (other.in_port, other.in_vpi) != (port, vpi):
                continue
            if other.vpc:
                raise NetworkError(f"{what}: VPI {vpi} is that of a virtual path at port {port} of {switch.name}")
            if vci is None:
                raise NetworkError(
                    f"{what}: VPI {vpi} is used by VC {vpi}/{other.in_vci} at port {port} of {switch.name}"
                )
            if other.in_vci == vci:
                raise NetworkError(f"{what}: VPI/VCI {vpi}/{vci} is used twice at port {port} of {switch.name}")

    def add_vp(self, path: Sequence[Node], vpi: int, **settings: Any) -> int:
        """A virtual path in one direction: VCs that are added from now on and have it as a part of their own path go
        through it. The switches between its ends look at its VPI only; to them it is what a VC is elsewhere.

        Parameters
        ----------
        path : Sequence of Node
            From a switch or NIC, over links and at least one switch, to a switch or NIC; each once.
        vpi : int
            The same on every line (0..255, with NNI lines 0..4095).
        settings
            What the switches between its ends give it, as of :class:`~bentpipe_hdl.switch.control.VcSettings`; nothing
            that goes by frames, and no credits.

        Returns
        -------
        int
            Its number, for :meth:`change_vp`.

        Raises
        ------
        NetworkError
            The path is not connected or passes no switch, the VPI is out of range or used already.
        """
        ends = path[0], path[-1]
        what = f"virtual path {vpi} from {ends[0].name} to {ends[1].name}"
        if self.loop.is_open:
            raise NetworkError(f"{what}: the network runs already, nothing can be added")
        given = made(what, VcSettings, settings)
        if not 0 <= vpi < 4096:
            raise NetworkError(f"{what}: VPI from 0 to 4095 (255 at a UNI)")
        if not all(isinstance(end, (Nic, Switch)) for end in ends) or len({id(node) for node in path}) < len(path):
            raise NetworkError(
                f"{what}: a virtual path goes from a switch or NIC to another one, and passes a node once"
            )
        faces, hops = faces_of(what, path), []
        for node, (come, go) in zip(path[1:-1], faces[1:-1], strict=True):
            if isinstance(node, Switch):
                hops.append(Hop(node, come, go, len(node.vcs), in_path=True))
                for port in (come, go):
                    self.check_vpi(what, node, port, vpi)
                self.check_free(what, node, come, vpi, None)
                size_of(node.name, len(node.vcs) + 1)
        if not hops:
            raise NetworkError(f"{what}: there is no switch between its ends")
        for switch in given.named_switches():
            if switch not in [hop.switch.name for hop in hops]:
                raise NetworkError(f"{what}: it doesn't pass a switch {switch!r}")
        for k, hop in enumerate(hops):
            own = given.of_switch(hop.switch.name, first=k == 0)
            hop.switch.vcs.append(SwitchVc(hop.come, vpi, 0, hop.go, vpi, 0, own, vpc=True))
        self.paths.append(VirtualPath(path, vpi, given, hops, faces[0][1], faces[-1][0]))
        manage_path(self.paths)
        return len(self.paths) - 1

    def change_vp(self, number: int, **settings: Any) -> None:
        """From its next cell at each switch on a virtual path has these settings, as of :meth:`add_vp`, instead of all
        that it had.

        Raises
        ------
        NetworkError
            A setting is not one.
        """
        vp = self.paths[number]
        given = made(vp.what, VcSettings, settings)
        for k, hop in enumerate(vp.hops):
            hop.switch.change_vc(hop.number, given.of_switch(hop.switch.name, first=k == 0))

    def other_way(self, number: int) -> int | None:
        """The VC that is the other way of one, by their numbers in the order in which they were added."""
        back = self._channels[number].back
        return None if back is None else next(k for k, each in enumerate(self._channels) if each is back)

    def change_vc(
        self,
        number: int,
        *,
        cell_rate_bps: float | None = None,
        sustained_rate_bps: float | None = None,
        burst: int | None = None,
        **settings: Any,
    ) -> None:
        """From its next cell at each node on a VC has these settings, as of :meth:`add_vc`, instead of all that it had.

        Parameters
        ----------
        number : int
            Of the VC, in the order in which they were added, from 0 on.

        Raises
        ------
        NetworkError
            A setting or the rate is not one.
        """
        channel = self._channels[number]
        given = made(channel.what, VcSettings, settings)
        source = channel.path[0]
        assert isinstance(source, Nic)
        source.change_send(channel.index, cell_rate_bps, sustained_rate_bps, burst)
        for hop, own in replace(channel, settings=given).own_hops():
            hop.switch.change_vc(hop.number, own)

    def shapes(self) -> list[Shape]:
        """The shapes of this network's nodes, each once."""
        return list(dict.fromkeys(node.shape() for node in self.nodes))

    def start(self) -> None:
        """Build the models that are missing, make the nodes, write their settings. ``send`` and ``run`` call it."""
        if self.loop.is_open:
            return
        self._channels.check()
        check_managed(self._channels, self.paths)
        for node in self.nodes:
            if isinstance(node, Switch):
                node.check_rates()
        self._lay()
        for node in self.nodes:
            self.loop.settle(node.index)
            node.driver.identify()
            node.configure()
        for node in self.nodes:
            self._defects.look(node)
        for capture in self._captures:
            self._start_capture(*capture)
        self._running = True

    def _lay(self) -> None:
        """Build the models that are missing; make the nodes, the wires between them, the paths of VCs."""
        build_all(self.shapes(), self.engine)
        self.loop.open()
        models = [build_model(node.shape(), self.engine) for node in self.nodes]
        self._models = tuple(model.name for model in models)
        for node, model in zip(self.nodes, models, strict=True):
            if self.loop.add_node(str(model).encode()) != node.index:
                raise SimulationError(f"{node.name}: {self._error()}")
        for a, a_port, b, b_port, delay in self._wires:
            held = delay + (a.delay - 1 if isinstance(a, Link) else 0)
            self.loop.connect(a.index, a_port, b.index, b_port, held)
        for hops in self._legs():
            made = self.loop.ffi.new("bp_hop[]", [hop.row() for hop in hops])
            self.loop.ledger_vc(hops[0].node.index, hops[0].number, made, len(hops))
        if self._gauge is not None:
            self._gauge.lay()

    def _error(self) -> str:
        return self.loop.ffi.string(self.loop.error()).decode()

    def gauge(self, switch: Switch, port: int) -> Gauge:
        """Count the queue at a port of a switch; one of a network.

        Raises
        ------
        NetworkError
            There is one already, or the network runs; when it starts, cells that leave by the port are made there.
        """
        if self.loop.is_open:
            raise NetworkError(f"{switch.name}: the network runs already, nothing can be added")
        if self._gauge is not None:
            raise NetworkError("the network has a gauge already")
        if not 0 <= port < switch.ports:
            raise NetworkError(f"{switch.name} has no port {port}")
        self._gauge = Gauge(self.loop, switch, port)
        return self._gauge

    # Its state, between two runs

    @property
    def saves(self) -> bool:
        """Its engine's models give their state."""
        return self.engine == "native"

    def save(self) -> Saved:
        """The state of a network that runs: of nodes, wires, queues, ledger, captures. It goes on as if nothing were.

        Raises
        ------
        SimulationError
            Models of the engine verilator give no state.
        """
        if self.loop.save():
            raise SimulationError(f"the network's state can't be saved: {self._error()}")
        length = self.loop.ffi.new("uint64_t *")
        octets = self.loop.saved(length)
        captures = tuple(self.loop.capture_length(index) for index in range(len(self._captures)))
        return Saved(self._models, captures, bytes(self.loop.ffi.buffer(octets, length[0])))

    def restore(self, saved: Saved, captures: Path | None = None) -> None:
        """Start a network that came out of a pickle, which has everything but that, from this state on.

        Parameters
        ----------
        saved : Saved
            What :meth:`save` gave when the network went into the pickle.
        captures : Path, optional
            The folder in which the captures' files are now; they are written on from where they were.

        Raises
        ------
        SimulationError
            The state is of nodes that were built otherwise, or a capture is shorter than it was.
        """
        self._lay()
        for node, now, then in zip(self.nodes, self._models, saved.models, strict=True):
            if now != then:
                raise SimulationError(
                    f"{node.name} is built otherwise than when the state was saved: {now}, not {then}"
                )
        if captures is not None:
            self._captures = [(captures / path.name, kind, node, port) for path, kind, node, port in self._captures]
        for capture, length in zip(self._captures, saved.captures, strict=True):
            path = capture[0]
            if not path.is_file() or path.stat().st_size < length:
                raise SimulationError(f"{path} has not the {length} octets that it had when the state was saved")
            self._start_capture(*capture, length)
        if self.loop.restore(saved.octets, len(saved.octets)):
            raise SimulationError(self._error())
        self._running = True

    def take(self) -> tuple[int, bytes]:
        """The state as :meth:`give` takes it; errors as of :meth:`save`."""
        return self._now_ps, self.save().octets

    def give(self, taken: tuple[int, bytes]) -> None:
        """Have a state again that this network had, while it runs: nothing is made anew. The hosts are the caller's."""
        if self.loop.restore(taken[1], len(taken[1])):
            raise SimulationError(self._error())
        self._now_ps = taken[0]

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_block": b"", "_running": False}

    def capture(self, path: Path, kind: str, face: Node | tuple[Node, int]) -> None:
        """Write a pcap file of what passes a face, both ways, from now on, with nanoseconds of simulated time.

        Parameters
        ----------
        path : Path
            Written as the simulation goes; whole after :meth:`end_captures`.
        kind : "ip", "pdus" or "cells"
            ``ip``: at a NIC, the IP packets that the host hands over and gets (link type RAW); at a port of a switch,
            those of the PDUs on its line (RFC 1483). ``pdus``: the line's AAL5 PDUs with VPI, VCI and direction
            (SUNATM). ``cells``: every cell of the line with its header (ERF, type ATM). PDUs with a wrong CRC or length
            are in ``cells`` only.
        face : Node or (Switch, int)
            A NIC, or a switch and its port. What leaves it is seen at the next node's input, what comes, at its own;
            a PDU with its last cell.

        Raises
        ------
        NetworkError
            The face has no line.
        """
        node, port = face if isinstance(face, tuple) else (face, 0)
        if kind not in CAPTURES:
            raise NetworkError(f"a capture is one of {', '.join(CAPTURES)}, not {kind}")
        if port not in node.outputs or port not in node.inputs:
            raise NetworkError(f"{node.name} has no line at port {port} to capture")
        self._captures.append((path, kind, node, port))
        if self.loop.is_open:
            self._start_capture(path, kind, node, port)

    def _start_capture(self, path: Path, kind: str, node: Node, port: int, length: int = 0) -> None:
        """Begin a file, or go on behind so many octets of it."""
        host = isinstance(node, Nic) and kind == "ip"
        index = self.loop.capture(str(path).encode(), 101 if host else CAPTURES[kind], length)
        if host:
            self.loop.capture_host(index, node.index)
            return
        after, after_port = node.outputs[port]
        self.loop.capture_input(index, after.index, after_port, 0)
        self.loop.capture_input(index, node.index, port, 1)

    def end_captures(self) -> None:
        """End the files of all captures.

        Raises
        ------
        SimulationError
            One couldn't be written.
        """
        if not self.loop.is_open:
            return
        for index, (path, *_) in enumerate(self._captures):
            error = self.loop.capture_end(index)
            if error:
                raise SimulationError(f"{path} can't be written: {os.strerror(error)}")

    def close(self) -> None:
        """Let go of the nodes. The network cannot be used any more."""
        self.loop.close()

    # The interface of the hosts

    @property
    def now_ps(self) -> int:
        return self._now_ps

    def send(
        self,
        nic: int,
        vc: int,
        head: bytes,
        key: int = 0,
        offset: int = 0,
        length: int = 0,
        checksum_start: int = -1,
        checksum_at: int = -1,
        uu: int = 0,
    ) -> None:
        if not self._running:
            self.start()
        size = len(head) + length
        if not 1 <= size <= 65535:
            raise SimulationError(f"an SDU has 1 to 65535 octets, not {size}")
        told = nic in self._reporting
        self.loop.send(
            _POST.pack(nic, vc, key, length, offset, checksum_start, checksum_at, len(head), uu, told) + head
        )

    def send_cell(self, nic: int, vc: int, pti: int, payload: bytes) -> None:
        if not self.loop.is_open:
            self.start()
        if len(payload) != 48 or not 0 <= pti < 8:
            raise SimulationError(f"a cell has 48 octets, not {len(payload)}, and a PTI of 3 bits, not {pti}")
        if not self.loop.send_cell(nic, vc, pti, payload):
            raise SimulationError(f"NIC {self.nodes[nic].name} is built without single cells")

    def user_cells(self, nic: int, vc: int) -> tuple[int, int]:
        node = self.nodes[nic]
        assert isinstance(node, Nic)
        received = node.csr.rx_cells[vc] if vc in node.receives else 0
        return self.loop.user_cells_sent(nic, vc), received

    def report_sent(self, nic: int) -> None:
        """From now on ``run`` returns an event ``SENT`` for every PDU of this NIC whose last cell leaves."""
        self._reporting.add(nic)

    def run(self, until_ps: int) -> list[PduEvent]:
        if not self._running:
            self.start()
        if until_ps >= _END_PS:
            raise SimulationError(f"simulated time ends after 1.5 years: {until_ps} ps are more")
        count = self._defects.run(ps_to_ticks(until_ps))
        if not count:
            self._now_ps = max(until_ps, self._now_ps)
            return []
        size = count * _EVENT.size
        if size > len(self._block):
            self._block = self.loop.ffi.buffer(self.loop.events(), size)
        events = []
        for at in range(0, size, _EVENT.size):
            tick, nic, vc, status, congested, length, handle, head_length, head, total = _EVENT.unpack_from(
                self._block, at
            )
            events.append(
                PduEvent(ticks_to_ps(tick), nic, vc, status, length, head[:head_length], handle, bool(congested), total)
            )
        self._now_ps = events[-1].time_ps
        return events

    def check(self, handle: int, start: int, key: int, offset: int, length: int) -> bool:
        return bool(self.loop.check(handle, start, key, offset, length))

    def checksum(self, handle: int, start: int, length: int) -> int:
        return self.loop.checksum(handle, start, length)

    def sdu(self, handle: int) -> bytes:
        events = self.loop.events()
        lengths = (events[k].length for k in range(handle + 1) if events[k].handle == handle)
        return bytes(self.loop.ffi.buffer(self.loop.sdu(handle), max(lengths)))

    # Looking in

    def sample(self) -> dict[str, int]:
        """Cells queued now in each switch, ``SWITCH.queue``, and what ports with options tell, ``SWITCH:PORT.SERIES``
        (:class:`~bentpipe_hdl.switch.options.Option`)."""
        found: dict[str, int] = {}
        for node in self.nodes:
            if isinstance(node, Switch):
                found[f"{node.name}.queue"] = node.csr.occupancy
                for series, values in node.driver.sample().items():
                    found |= {f"{node.name}:{port}.{series}": value for port, value in values.items()}
        return found

    def counters(self) -> dict[str, dict[str, Any]]:
        """All counters of all nodes, by node's name; 32-bit counters of cells wrap."""
        stats = self.stats()
        found = {}
        for node in self.nodes:
            found[node.name] = node.counters()
            if isinstance(node, Switch):
                own = stats[node.name]
                found[node.name] |= {"ingress_most": own["ingress_most"], "drop_ingress": own["ingress_lost"]}
        return found

    def stats(self) -> dict[str, dict[str, int]]:
        """What the event loop counted: evaluations, cells in and out and in flight towards a node, nanoseconds, most
        cells that waited at one of its inputs, cells that found no place there."""
        found = {}
        stats = self.loop.ffi.new("bp_node_stats *")
        for node in self.nodes:
            self.loop.stats(node.index, stats)
            found[node.name] = {field: int(getattr(stats, field)) for field, _ in self.loop.ffi.typeof(stats[0]).fields}
        return found

    def ledger(self) -> list[Account]:
        """What became of every PDU so far, an account for each VC, in the order of :meth:`add_vc`; of a
        point-to-multipoint VC one for each of its paths.

        Raises
        ------
        NetworkError
            The rows of a VC don't sum up to sent minus delivered, or a loss has no cause, or a count of the hardware
            differs.
        """
        if not self.loop.is_open:
            self.start()
        for node in self.nodes:
            node.check_told()
        return [read_account(self.loop, self.nodes, place, hops) for place, hops in enumerate(self._legs())]

    def _legs(self) -> Iterator[list[LedgerHop]]:
        """All paths of all VCs."""
        return itertools.chain.from_iterable(map(Channel.ledger_hops, self._channels))

    def trace(self) -> None:
        """From now on keep the digests of what enters the wires: before cells are under way."""
        self.start()
        for node in self.nodes:
            for port in node.outputs:
                self.loop.trace(node.index, port, 1)

    def digests(self) -> dict[tuple[str, int], int]:
        """Since :meth:`trace`, 64 bits of hash over the cells that left each output with a line, by its node's name and
        port: tick, header, payload and whether the header is marked as wrong. 0: no cell."""
        faces = [(node, port) for node in self.nodes for port in node.outputs]
        return {(n.name, port): self.loop.digest(n.index, port) for n, port in faces}

    def check_conservation(self) -> None:
        """For every node: cells in = cells out + dropped by reason + still queued; for all wires: what went in came out
        or is still under way, never more of it than the wire's delay and rate and the places at the node's input take.

        Raises
        ------
        NetworkError
            Some cells got lost or doubled, or waited where there is no place for them.
        """
        stats = self.stats()
        for node in self.nodes:
            lost = stats[node.name]["ingress_lost"]
            if lost:
                raise NetworkError(f"{node.name}: {lost} cells found the {INGRESS} places of an input full")
            node.check(stats[node.name]["cells_in"], stats[node.name]["cells_out"])
        out = sum(each["cells_out"] for each in stats.values())
        came = sum(each["cells_in"] + each["in_flight"] for each in stats.values())
        if out != came:
            raise NetworkError(f"the wires: {out} cells went in, {came} came out or are under way")
        for a, a_port, b, b_port, delay in self._wires:
            held = delay + (a.delay if isinstance(a, Link) else 1)
            room = (held + _JITTER) * 65536 // a.spacing(a_port) + 2 + INGRESS
            most = self.loop.wire_most(b.index, b_port)
            if most > room:
                raise NetworkError(
                    f"the wire from {a.name} to {b.name}: {most} cells at once, and its rate and delay take {room}"
                )


class _Laid:
    """The paths of a VC while they are laid: what it will have at each switch, before anything is changed there.

    Members
    -------
    legs : list of Leg
    hops : list of Hop
        The switches of the first path, ``own`` of them; then those of the others, from where they part.
    vpis : list of (int, int)
        At each of these that is in no virtual path: before it and behind it.
    chained : list of (Switch, int, int)
        Indices of a VC there, and of that which gets a copy of its cells.
    """

    def __init__(self, network: Network, what: str, vpi: int, vci: int, index: int):
        self._network, self._what, self._vpi, self._vci, self._index = network, what, vpi, vci, index
        self.legs: list[Leg] = []
        self.hops: list[Hop] = []
        self.own: int = 0
        self.vpis: list[tuple[int, int]] = []
        self.chained: list[tuple[Switch, int, int]] = []

    def lay(self, path: Sequence[Node]) -> None:
        """Add a path; it is one with another as long as both pass the same nodes with the same VPIs."""
        faces = faces_of(self._what, path)
        vpis, inside = [self._vpi] * len(path), {}  # on the way to each node; hops of virtual paths
        through = paths_of(self._what, path, self._network.paths)
        for k, vp in through.items():
            vpis[k + 1 : k + len(vp.path)] = [vp.vpi] * (len(vp.path) - 1)
            switches = (at for at in range(k + 1, k + len(vp.path) - 1) if isinstance(path[at], Switch))
            inside |= dict(zip(switches, vp.hops, strict=True))
        vpis[0] = vpis[1]
        common = [leg.common(path, vpis) for leg in self.legs]
        parts = max(common, default=0) - 1  # the last place in common
        stops: list[Stop] = []
        if self.legs:
            stops = self.legs[common.index(parts + 1)].upto(parts) if parts > 0 else []
            if not stops or not isinstance(stops[-1].node, Switch) or stops[-1].in_path:
                where = path[max(parts, 0)].name
                raise NetworkError(f"{self._what}: its paths part at {where}, where it can't be copied")
        for k, (node, (come, go)) in enumerate(zip(path, faces, strict=True)):
            if k < parts:
                continue
            came, number = -1 if k == parts else come, self._index
            if k in inside:
                self.hops.append(inside[k])
                number = inside[k].number
            elif isinstance(node, Switch):
                parent = next((vp.end for at, vp in through.items() if k == at + len(vp.path) - 1), None)
                number = self._pass(Hop(node, came, go, 0, parent=parent), vpis[k], vpis[k + 1])
                if came < 0:
                    self._chain(node, stops[-1].number, number)
            stops.append(Stop(k, node, came, number, vpis[k], k in inside))
        self.legs.append(Leg(path, stops))
        self.own = self.own or len(self.hops)

    def _pass(self, given: Hop, before: int, after: int) -> int:
        """The VC's index at a switch that looks at it."""
        switch, come, go = given.switch, given.come, given.go
        number = len(switch.vcs) + sum(hop.switch is switch and not hop.in_path for hop in self.hops)
        for port, vpi in ((come, before), (go, after)):
            if port >= 0:
                self._network.check_vpi(self._what, switch, port, vpi)
        if come >= 0:
            self._network.check_free(self._what, switch, come, before, self._vci)
            own = (hop.come for hop in self.hops if hop.switch is switch and not hop.in_path)
            if self.legs and come in own:
                raise NetworkError(f"{self._what}: its paths part before {switch.name}, and meet again there")
        size_of(switch.name, number + 1)
        self.hops.append(given._replace(number=number))
        self.vpis.append((before, after))
        return number

    def _chain(self, switch: Switch, root: int, number: int) -> None:
        """A VC is the last one to get a copy of the root's cells."""
        for there, before, after in self.chained:
            root = after if there is switch and before == root else root
        self.chained.append((switch, root, number))
