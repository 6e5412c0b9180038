"""The topology of a network: its nodes, their wires, its VCs and virtual paths."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from bentpipe_hdl.link.control import LinkSettings
from bentpipe_hdl.nic.control import NicLine, NicReceive, NicSend, NicSettings, PacingSettings
from bentpipe_hdl.sonet.control import SonetSettings
from bentpipe_hdl.switch.control import SwitchPort, SwitchSettings, SwitchVc, VcSettings
from bentpipe_hdl.ticks import round_ticks

from .build import Shape
from .channels import Channel, Channels, Hop, LedgerHop, Leg, Stop, VirtualPath, faces_of, paths_of
from .defects import Defects
from .errors import NetworkError, Subject
from .loop import Loop
from .management import manage, manage_path
from .nodes import Link, Nic, Node, SonetLine, Switch, checked, size_of
from .old_calls import old_nic, old_settings, old_switch, old_vc

__all__ = ["Topology"]

N = TypeVar("N", bound=Node)


class Topology:
    """The parts of a network. Once it runs no part is added; VCs and virtual paths may change their settings."""

    least_vcs: int = 0
    """VCs for which each node is built at least."""
    loop_kind: type[Loop] = Loop
    """What carries the cells, once the network runs."""

    def __init__(self, seed: int):
        self.seed = seed
        self.nodes: list[Node] = []
        self._names: set[str] = set()
        self.loop = self.loop_kind()
        self.paths: list[VirtualPath] = []
        self._wires: list[tuple[Node, int, Node, int, int]] = []
        self._channels = Channels()
        self._defects = Defects(self.loop, self.nodes, self._wires)

    def add_nic(
        self, name: str, settings: NicSettings | float | None = None, *, line: NicLine | None = None, **old: Any
    ) -> Nic:
        """Add a host's interface with a line, by default OC-3c with an exact clock.

        The rates of its VCs are by the line's clock, too. With frames each cell is sent in a slot of the line's.
        """
        if old or not isinstance(settings, NicSettings | None):
            settings, line = old_nic(name, settings, old)
        nic = self._add(Nic, name, line or NicLine(), settings or NicSettings())
        nic.seed = self.seed
        return nic

    def add_switch(
        self,
        name: str,
        settings: SwitchSettings | Sequence[float] | None = None,
        *,
        ports: Sequence[SwitchPort] = (SwitchPort(),) * 4,
        **old: Any,
    ) -> Switch:
        """Add a switch module with these ports, and one buffer for all."""
        if old or not isinstance(settings, SwitchSettings | None):
            settings, ports = old_switch(name, settings, old)
        for number, port in enumerate(ports):
            if port.settings.reactive is not None:
                subject = Subject(name, number, key="reactive.initial")
                checked(f"switch {name}, port {number}", port.settings.reactive.check_start, subject)
        return self._add(Switch, name, ports, settings or SwitchSettings(), self.seed)

    def add_link(self, name: str, settings: LinkSettings | None = None, **old: Any) -> Link:
        """Add one direction of a line, with at least a tick of delay."""
        given = old_settings("add_link", f"link {name}", LinkSettings, settings, old)
        return self._add(Link, name, given, self.seed)

    def add_sonet_line(self, name: str, settings: SonetSettings | None = None, **old: Any) -> SonetLine:
        """Add a SONET line with both directions; its ports are 0 and 1."""
        given = old_settings("add_sonet_line", f"SONET line {name}", SonetSettings, settings, old)
        return self._add(SonetLine, name, given, self.seed)

    def _add(self, kind: Callable[..., N], name: str, *made_of: Any) -> N:
        if self.loop.is_open:
            raise NetworkError(f"{name}: the network runs already, nothing can be added")
        if name in self._names:
            raise NetworkError(f"two nodes are called {name}")
        node = kind(self.loop, len(self.nodes), name, *made_of)
        node.changed, node.least_vcs = self._defects.look, self.least_vcs
        self.nodes.append(node)
        self._names.add(name)
        return node

    def connect(self, source: Node | tuple[Node, int], sink: Node | tuple[Node, int], delay_ps: int = 0) -> None:
        """Connect a node's output to a node's input by a wire; a port of a switch is ``(switch, port)``.

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

    def sends(self, a: Node, b: Node) -> bool:
        """Return whether a clock of ``a`` decides when cells from ``a`` arrive at ``b``: after their last bit is sent.

        A link has no clock. The frames of a SONET line carry the octets, so their time is counted there. A link whose
        delay changes gives the time of arrival with each cell.
        """
        if isinstance(a, Link) and a.moves:
            return True
        while isinstance(b, Link) and 0 in b.outputs:
            b, _ = b.outputs[0]
        return isinstance(a, (Nic, Switch)) and not isinstance(b, SonetLine)

    def add_vc(
        self,
        path: Sequence[Node],
        vpi: int,
        vci: int,
        settings: VcSettings | None = None,
        *,
        pacing: PacingSettings | None = None,
        max_sdu: int = 65535,
        branches: Sequence[Sequence[Node]] = (),
        **old: Any,
    ) -> int:
        """Return a VC in one direction along ``path``, from a NIC through switches and links to a NIC; through the
        virtual paths that are there (:meth:`add_vp`) and are parts of it.

        A point-to-multipoint one (UNI 3.1 clause 5.6) has further paths, its ``branches``, from the same NIC: the
        switch at which a path leaves those before it copies each cell for it.

        Parameters
        ----------
        vpi, vci : int
            The same on every line (0..255, with NNI lines 0..4095; 32..65535), except for the VPI in virtual paths,
            which is theirs.
        settings : VcSettings, optional
            What the switches give it.
        pacing : PacingSettings, optional
            How the source paces it; at the rate of its line unless given.
        max_sdu : int
            Octets of the largest SDU that the sinks take.
        branches : sequence of paths

        Returns
        -------
        int
            The VC's index at all its NICs.

        Raises
        ------
        NetworkError
            A path is not connected or passes a line twice with one VPI, the VPI/VCI are out of range or used already,
            or something else of the above.
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
        rates, given = old_vc("add_vc", what, settings, pacing, old)
        if not 0 <= vpi < 4096 or not 32 <= vci < 65536:
            raise NetworkError(f"{what}: VPI from 0 to 4095 (255 at a UNI), VCI from 32 to 65535")
        if not 1 <= max_sdu <= 65535:
            raise NetworkError(f"{what}: an SDU has 1 to 65535 octets, not {max_sdu}")
        paced = checked(what, lambda: source.line.paced(*rates))
        sinks = [each[-1] for each in paths if isinstance(each[-1], Nic)]
        index = max(nic.first_free() for nic in (source, *sinks))
        while any(index in nic.sends or index in nic.receives for nic in (source, *sinks)):
            index += 1
        for nic in (source, *sinks):
            size_of(nic.name, index + 1)
        laid = _Laid(self, what, vpi, vci, index)
        for each in paths:
            laid.lay(each)
        for leg, nic in zip(laid.legs, sinks, strict=True):
            came = leg.stops[-1].vpi
            if nic.receives_on(came, vci):
                raise NetworkError(f"{what}: VPI/VCI {came}/{vci} is used twice at port 0 of {nic.name}")
        for switch in given.named_switches():
            if switch not in [hop.switch.name for hop in laid.hops if not hop.in_path and hop.come >= 0]:
                raise NetworkError(f"{what}: it doesn't pass a switch {switch!r}")
        channel = Channel(laid.legs, index, laid.hops[: laid.own], laid.hops[laid.own :], vpi, vci, given)
        for (hop, own), (before, after) in zip(channel.own_hops(), laid.vpis, strict=True):
            hop.switch.vcs.append(SwitchVc(hop.come, before, vci, hop.go, after, vci, own))
        for switch, root, number in laid.chained:
            switch.vcs[root] = replace(switch.vcs[root], leaf=number)
        source.sends[index] = NicSend(laid.legs[0].stops[0].vpi, vci, *paced)
        for leg, nic in zip(laid.legs, sinks, strict=True):
            nic.receives[index] = NicReceive(leg.stops[-1].vpi, vci, max_sdu)
        self._channels.lay(channel)
        manage(channel)
        return index

    def check_vpi(self, what: str, switch: Switch, port: int, vpi: int) -> None:
        """Raise NetworkError if the port's lines cannot carry this VPI."""
        if vpi > 255 and not switch.lines[port].nni:
            raise NetworkError(f"{what}: VPI {vpi} needs NNI lines, port {port} of {switch.name} is a UNI")

    def check_free(self, what: str, switch: Switch, port: int, vpi: int, vci: int | None) -> None:
        """Raise NetworkError if this VPI/VCI, or VPI, is in use at a port."""
        known = switch.vcis_at(port, vpi)
        if None in known:
            raise NetworkError(f"{what}: VPI {vpi} is that of a virtual path at port {port} of {switch.name}")
        if vci is None and known:
            other = next(iter(known))
            raise NetworkError(f"{what}: VPI {vpi} is used by VC {vpi}/{other} at port {port} of {switch.name}")
        if vci in known:
            raise NetworkError(f"{what}: VPI/VCI {vpi}/{vci} is used twice at port {port} of {switch.name}")

    def add_vp(self, path: Sequence[Node], vpi: int, settings: VcSettings | None = None, **old: Any) -> int:
        """Add a virtual path in one direction.

        VCs that are added from now on and contain its path go through it. The switches between its ends look at its VPI
        only; they treat it as a VC.

        Parameters
        ----------
        path : Sequence of Node
            From a switch or NIC, over links and at least one switch, to a switch or NIC; each once.
        vpi : int
            The same on every line (0..255, with NNI lines 0..4095).
        settings : VcSettings, optional
            Settings of the path at the switches between its ends; none that needs frames, and no credits.

        Returns
        -------
        int
            Its number, for :meth:`change_vp`.

        Raises
        ------
        NetworkError
            The path is not connected or passes no switch, or the VPI is out of range or in use.
        """
        ends = path[0], path[-1]
        what = f"virtual path {vpi} from {ends[0].name} to {ends[1].name}"
        if self.loop.is_open:
            raise NetworkError(f"{what}: the network runs already, nothing can be added")
        given = old_settings("add_vp", what, VcSettings, settings, old)
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

    def change_vp(self, number: int, settings: VcSettings | None = None, **old: Any) -> None:
        """Replace all settings of a virtual path, as for :meth:`add_vp`, from its next cell at each switch on.

        Raises
        ------
        NetworkError
            A setting is invalid.
        """
        vp = self.paths[number]
        given = old_settings("change_vp", vp.what, VcSettings, settings, old)
        for k, hop in enumerate(vp.hops):
            hop.switch.change_vc(hop.number, given.of_switch(hop.switch.name, first=k == 0))

    def other_way(self, number: int) -> int | None:
        """Return the VC in the opposite direction of one, by their numbers in the order in which they were added."""
        back = self._channels[number].back
        return None if back is None else back.number

    def change_vc(
        self,
        number: int,
        settings: VcSettings | None = None,
        *,
        pacing: PacingSettings | None = None,
        **old: Any,
    ) -> None:
        """Replace all settings of a VC, as for :meth:`add_vc`, from its next cell at each node on.

        Parameters
        ----------
        number : int
            Number of the VC, in the order in which they were added, from 0 on.

        Raises
        ------
        NetworkError
            A setting or the rate is invalid.
        """
        channel = self._channels[number]
        rates, given = old_vc("change_vc", channel.what, settings, pacing, old)
        source = channel.path[0]
        assert isinstance(source, Nic)
        source.change_send(channel.index, *rates)
        for hop, own in replace(channel, settings=given).own_hops():
            hop.switch.change_vc(hop.number, own)

    def owner_of(self, node: str, number: int) -> Subject:
        """Return the VC or virtual path with this index at a switch; an empty subject if it is still being added."""
        for place, channel in enumerate(self._channels):
            for hop in (*channel.hops, *channel.branches):
                if hop.switch.name == node and hop.number == number and not hop.in_path:
                    return Subject(channel=place)
        for place, path in enumerate(self.paths):
            ends = path.path[-1].name == node and path.end == number
            if ends or any(hop.switch.name == node and hop.number == number for hop in path.hops):
                return Subject(path=place)
        return Subject()

    def shapes(self) -> list[Shape]:
        """Return the shapes of this network's nodes, each once."""
        return list(dict.fromkeys(node.shape() for node in self.nodes))

    def _legs(self) -> Iterator[list[LedgerHop]]:
        """Yield all paths of all VCs."""
        credited = {
            node
            for node in self.nodes
            if isinstance(node, Switch) and any(vc.credits_in or vc.credits_out for vc in node.vcs)
        }
        return itertools.chain.from_iterable(channel.ledger_hops(credited) for channel in self._channels)


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

    def __init__(self, topology: Topology, what: str, vpi: int, vci: int, index: int):
        self._topology, self._what, self._vpi, self._vci, self._index = topology, what, vpi, vci, index
        self.legs: list[Leg] = []
        self.hops: list[Hop] = []
        self.own: int = 0
        self.vpis: list[tuple[int, int]] = []
        self.chained: list[tuple[Switch, int, int]] = []

    def lay(self, path: Sequence[Node]) -> None:
        """Add a path; it is one with another as long as both pass the same nodes with the same VPIs."""
        faces = faces_of(self._what, path)
        vpis, inside = [self._vpi] * len(path), {}  # on the way to each node; hops of virtual paths
        through = paths_of(self._what, path, self._topology.paths)
        for k, vp in through.items():
            vpis[k + 1 : k + len(vp.path)] = [vp.vpi] * (len(vp.path) - 1)
            switches = (at for at in range(k + 1, k + len(vp.path) - 1) if isinstance(path[at], Switch))
            inside |= dict(zip(switches, vp.hops, strict=True))
        vpis[0] = vpis[1]
        self._check_lines(path, faces, vpis)
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

    def _check_lines(self, path: Sequence[Node], faces: Sequence[tuple[int, int]], vpis: Sequence[int]) -> None:
        """Raise NetworkError if the path passes a line twice with one VPI: nothing could tell its cells apart there."""
        passed: set[tuple[Node, int, int]] = set()
        for k, (node, (_, go)) in enumerate(zip(path[:-1], faces, strict=False)):
            line = node, go, vpis[k + 1]
            if line in passed:
                raise NetworkError(
                    f"{self._what}: its path passes the line from {node.name} to {path[k + 1].name} twice, "
                    f"both times as VPI/VCI {vpis[k + 1]}/{self._vci}"
                )
            passed.add(line)

    def _pass(self, given: Hop, before: int, after: int) -> int:
        """Add the VC to a switch that looks at it, and return its index there."""
        switch, come, go = given.switch, given.come, given.go
        number = len(switch.vcs) + sum(hop.switch is switch and not hop.in_path for hop in self.hops)
        for port, vpi in ((come, before), (go, after)):
            if port >= 0:
                self._topology.check_vpi(self._what, switch, port, vpi)
        if come >= 0:
            self._topology.check_free(self._what, switch, come, before, self._vci)
            own = (hop.come for hop in self.hops if hop.switch is switch and not hop.in_path)
            if self.legs and come in own:
                raise NetworkError(f"{self._what}: its paths part before {switch.name}, and meet again there")
        size_of(switch.name, number + 1)
        self.hops.append(given._replace(number=number))
        self.vpis.append((before, after))
        return number

    def _chain(self, switch: Switch, root: int, number: int) -> None:
        """Append a VC to the chain of VCs that get a copy of the root's cells."""
        for there, before, after in self.chained:
            root = after if there is switch and before == root else root
        self.chained.append((switch, root, number))
