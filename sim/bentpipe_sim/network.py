"""A network of Verilated nodes, and the interface that hosts have to it."""

from __future__ import annotations

import itertools
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .accounts import Account, read_account
from .arrival_monitor import ArrivalMonitor
from .build import EngineName, build_all, chosen_engine
from .cell_streams import TestCellStream
from .errors import NetworkError, SimulationError
from .management import check_managed
from .nodes import Link, Nic, Node, Switch, checked
from .parts import chosen_threads, number_of, plan
from .pdus import Pdus
from .queue_monitor import QueueMonitor
from .tools import uncollected
from .topology import Topology

__all__ = ["Network", "Saved"]

CAPTURES = {"ip": 100, "pdus": 123, "cells": 197}
"""Kinds of captures and the link types of their files: RFC 1483 (at a host RAW, 101), SUNATM, ERF."""

INGRESS = 8
"""Cells that an input of a node holds while the node takes those of other inputs (``csrc/wire.hpp``)."""

_JITTER = 64
"""Ticks by which cells may come closer than their line's rate: what a switch's port makes up for."""


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


class Network(Topology, Pdus):
    """A network of nodes, wires and VCs; from the first ``send`` or ``run`` on, a :class:`~.interface.PduNetwork`.

    Parameters
    ----------
    seed : int
        Of all randomness: bit errors. The same seed and settings give the same cells at the same ticks.
    engine : str, optional
        "native" or "verilator", which is slower and gives the same cells at the same ticks; else ``$BENTPIPE_ENGINE``.
    threads : int, optional
        Threads that run the network in parts, where that is possible (:attr:`why_whole`); else ``$BENTPIPE_THREADS``,
        else as many as pay. The results do not depend on it.
    parts : int, optional
        Number of parts into which the network is cut; 1: it is not cut. As many as pay unless given.
    """

    is_alone: bool = False
    """Whether a board carries it with nothing beside: then there is no ledger of PDUs and cells."""
    board_ticks: bool = False
    """Whether nodes see what hosts do after a run in the next tick, as on a board by itself; set before the start.
    Otherwise an interface that did not work in the present tick sees it at once."""

    def __init__(
        self,
        seed: int = 1,
        *,
        engine: EngineName | None = None,
        threads: int | None = None,
        parts: int | None = None,
    ):
        Topology.__init__(self, seed)
        Pdus.__init__(self, self.loop, self._defects)
        self.engine: EngineName = engine or chosen_engine()
        self._models: tuple[str, ...] = ()
        self._captures: list[tuple[Path, str, Node, int]] = []
        self._monitor: QueueMonitor | None = None
        self.cut(threads, parts)
        self._places: dict[tuple[int, int, int], int] = {}
        self._streams: dict[int, TestCellStream] = {}  # by place
        self._arrivals: dict[int, ArrivalMonitor] = {}  # by place

    @property
    def makes_writes(self) -> bool:
        """The event loop makes register writes by itself (:class:`~bentpipe.experiment.build.rows.RowFeed`): no switch
        is told of outages."""
        return not any(isinstance(node, Switch) and node.manages for node in self.nodes)

    def check_buildable(self) -> None:
        """Check all that :meth:`start` refuses, without building anything.

        Raises
        ------
        NetworkError
            The network cannot be built; ``subject`` says what of it is at fault.
        """
        self._channels.check()
        check_managed(self._channels, self.paths)
        for node in self.nodes:
            if isinstance(node, Switch):
                node.check_rates()
            node.shape()

    def rehearse(self) -> None:
        """Check the same, and that all registers take their values; for a network that is not started afterwards."""
        self.check_buildable()
        for node in self.nodes:
            node.rehearse()

    @uncollected()
    def start(self) -> None:
        """Build the models that are missing, make the nodes, write their settings. ``send`` and ``run`` call it."""
        if self.loop.is_open:
            return
        self.check_buildable()
        self._lay()
        for node in self.nodes:
            self.loop.settle(node.index)
            node.driver.identify()
            node.configure()
        for stream in self._streams.values():
            stream.lay()
        for node in self.nodes:
            self._defects.look(node)
        for capture in self._captures:
            self._start_capture(*capture)

    def _lay(self) -> None:
        """Build the models that are missing; make the nodes, the wires between them, the paths of VCs."""
        shapes = [node.shape() for node in self.nodes]
        libraries = build_all(shapes, self.engine)
        self.loop.open()
        self.opened()
        if self.board_ticks:
            self.loop.act_after_runs()
        models = [libraries[shape] for shape in shapes]
        self._models = tuple(model.name for model in models)
        for node, model in zip(self.nodes, models, strict=True):
            if self.loop.add_node(str(model).encode()) != node.index:
                raise SimulationError(f"{node.name}: {self._error()}")
        for a, a_port, b, b_port, delay in self._wires:
            self.loop.connect(
                a.index,
                a_port,
                b.index,
                b_port,
                self._held(a, delay),
                self.sends(a, b),
                isinstance(a, Link) and a.merges,
            )
        for place, hops in enumerate(self._legs()):
            made = self.loop.ffi.new("bp_hop[]", [hop.row() for hop in hops])
            self.loop.ledger_vc(hops[0].node.index, hops[0].number, made, len(hops))
            if any(isinstance(hop.node, Switch) and hop.node.tags for hop in hops):
                self.loop.count_tagged(place)
        if self._monitor is not None:
            self._monitor.lay()
        for each in self._arrivals.values():
            each.lay()
        self._cut()

    def cut(self, threads: int | None = None, parts: int | None = None) -> None:
        """Run with so many threads and parts from now on, as of the constructor.

        Raises
        ------
        NetworkError
            It is no number of threads or parts.
        """
        self._threads, self._parts = number_of("threads", threads), number_of("parts", parts)
        if self.loop.is_open:
            self._cut()

    def _cut(self) -> None:
        wires = [
            (a, b, 0 if isinstance(a, Link) and a.merges else 1 + self._held(a, delay))
            for a, _, b, _, delay in self._wires
        ]
        captured = [[node, node.outputs[port][0]] for _, _, node, port in self._captures]
        threads, parts = plan(self.nodes, wires, captured, self._threads, self._parts)
        self.threads = self._threads or chosen_threads() or 1  # beside its hosts only where that is asked for
        if self.loop.cut(self.loop.ffi.new("uint32_t[]", parts), threads):
            raise SimulationError(f"the network cannot be cut: {self._error()}")

    @property
    def why_whole(self) -> str:
        """Why the last run was not in parts; empty: it was."""
        return self.loop.ffi.string(self.loop.why_whole()).decode()

    @property
    def parts_and_threads(self) -> tuple[int, int]:
        """The parts and threads of the last run; or two threads where hosts had one of their own."""
        return (1, 2 if self.ran_ahead else 1) if self.why_whole else (int(self.loop.parts()), int(self.loop.threads()))

    @staticmethod
    def _held(a: Node, delay: int) -> int:
        """Return the ticks that a wire from a node holds a cell; a link's own delay is included unless it changes."""
        return delay + (a.delay - 1 if isinstance(a, Link) and not a.moves else 0)

    def _error(self) -> str:
        return self.loop.ffi.string(self.loop.error()).decode()

    def monitor_queue(self, switch: Switch, port: int, late_from: int = 0) -> QueueMonitor:
        """Count the queue at a port of a switch, and as late the cells that wait ``late_from`` ticks or more there.

        A network has one such monitor.

        Raises
        ------
        NetworkError
            There is one already, or the network runs; when it starts, cells that leave by the port are made there.
        """
        if self.loop.is_open:
            raise NetworkError(f"{switch.name}: the network runs already, nothing can be added")
        if self._monitor is not None:
            raise NetworkError("the network has a queue monitor already")
        if not 0 <= port < switch.ports:
            raise NetworkError(f"{switch.name} has no port {port}")
        self._monitor = QueueMonitor(self.loop, switch, port, late_from)
        return self._monitor

    # Its state, between two runs

    @property
    def saves(self) -> bool:
        """Return whether the models of this engine give their state."""
        return self.engine == "native" and not self.board_ticks

    def save(self) -> Saved:
        """Return the state of a running network: nodes, wires, queues, ledger, captures. The run is not affected.

        Raises
        ------
        SimulationError
            Models of the engine verilator give no state.
        """
        if self.loop.save():
            raise SimulationError(f"the network's state cannot be saved: {self._error()}")
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
                    f"{node.name} is built differently than when the state was saved: {now}, not {then}"
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

    def take(self) -> tuple[int, bytes, tuple[tuple[int, int, int, bool], ...]]:
        """Return the state as :meth:`give` takes it; errors as for :meth:`save`."""
        return self._now_ps, self.save().octets, tuple(self._defects.due)

    def give(self, taken: tuple[int, bytes, tuple[tuple[int, int, int, bool], ...]]) -> None:
        """Restore a state that this running network had, without making anything again. The hosts are left to the
        caller."""
        if self.loop.restore(taken[1], len(taken[1])):
            raise SimulationError(self._error())
        self._now_ps = taken[0]
        self._defects.due[:] = taken[2]

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | self.members()

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
            self._cut()

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

    def end_captures(self) -> dict[Path, str]:
        """End the files of all captures; return those that could not be written whole, with the reason."""
        if not self.loop.is_open:
            return {}
        errors = {path: self.loop.capture_end(index) for index, (path, *_) in enumerate(self._captures)}
        return {path: os.strerror(error) for path, error in errors.items() if error}

    def close(self) -> None:
        """Close the nodes. The network cannot be used any more."""
        self.closed()
        self.loop.close()

    # The interface of the hosts

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

    def under_way(self, nic: int, vc: int, sink: int, key: int) -> int:
        if not self.loop.is_open:
            return 0
        return self.loop.under_way(self._ledger_place(nic, vc, sink), key)

    def _ledger_place(self, nic: int, vc: int, sink: int) -> int:
        """Return the place in the ledger of the VC with this index from one interface to another."""
        if not self._places:
            for place, hops in enumerate(self._legs()):
                self._places.setdefault((hops[0].node.index, hops[0].number, hops[-1].node.index), place)
        return self._places[nic, vc, sink]

    def add_test_cells(
        self, nic: int, vc: int, sink: int, *, block: tuple[int, int] | None = None, delay_class: int = 8
    ) -> TestCellStream:
        """Build ``nic`` and ``sink`` with a generator and an analyser of test cells, and return the stream between
        them.

        The stream is on a VC from one to the other, on which no host sends. It is called after the last VC was added.

        Parameters
        ----------
        block : tuple of int, optional
            Log2 of N, and M, of cell blocks (I.356); by default those for the VC's rate.
        delay_class : int
            Log2 of the width of a class of delays, in 10 ns.

        Raises
        ------
        NetworkError
            An interface has a generator or an analyser already, there is no such VC, or the network runs.
        """
        source, target = self.nodes[nic], self.nodes[sink]
        assert isinstance(source, Nic) and isinstance(target, Nic)
        if self.loop.is_open:
            raise NetworkError(f"{source.name}: the network runs already, nothing can be added")
        for stream in self._streams.values():
            if stream.source is source:
                raise NetworkError(f"{source.name} sends test cells on another VC already: it has one generator")
            if stream.sink is target:
                raise NetworkError(f"{target.name} receives test cells on another VC already: it has one analyser")
        place = self._ledger_place(nic, vc, sink)
        made = TestCellStream(self.loop, self.nodes, source, target, vc, place, block, delay_class)
        source.add_test_vc(vc)
        target.add_test_vc()
        self._streams[place] = made
        return made

    def watch_arrivals(
        self, nic: int, vc: int, sink: int, node: Node, *, pcr_bps: float, cdvt_ps: int = 0
    ) -> ArrivalMonitor:
        """Monitor a VC's cells, from the interface ``nic`` to ``sink``, where they arrive at a node; return the
        monitor.

        It measures 1-point CDV against a peak cell rate, and conformance to GCRA(1/PCR, CDVT). It is called after the
        last VC was added.

        Raises
        ------
        NetworkError
            The VC does not come to the node, or is monitored already; there is no such rate; or the network runs.
        """
        if self.loop.is_open:
            raise NetworkError(f"{node.name}: the network runs already, nothing can be added")
        place = self._ledger_place(nic, vc, sink)
        if place in self._arrivals:
            raise NetworkError(f"{node.name}: the VC is followed already, at {self._arrivals[place].hop.node.name}")
        hops = next(itertools.islice(self._legs(), place, None))
        hop = next((hop for hop in hops if hop.node is node and hop.port >= 0), None)
        if hop is None:
            raise NetworkError(f"{node.name}: the VC does not come to it")
        made = ArrivalMonitor(self.loop, hop, pcr_bps, cdvt_ps)
        checked(node.name, lambda: made.period)
        self._arrivals[place] = made
        return made

    def sdu(self, handle: int) -> bytes:
        events = self.loop.events()
        lengths = (events[k].length for k in range(handle + 1) if events[k].handle == handle)
        return bytes(self.loop.ffi.buffer(self.loop.sdu(handle), max(lengths)))

    # Looking in

    def sample(self) -> dict[str, int]:
        """Return the cells queued now in each switch (``SWITCH.queue``), and samples of ports with options.

        The latter are ``SWITCH:PORT.SERIES`` (:class:`~bentpipe_hdl.switch.options.Option`).
        """
        found: dict[str, int] = {}
        for node in self.nodes:
            if isinstance(node, Switch):
                found[f"{node.name}.queue"] = node.csr.occupancy
                for series, values in node.driver.sample().items():
                    found |= {f"{node.name}:{port}.{series}": value for port, value in values.items()}
        return found

    def counters(self) -> dict[str, dict[str, Any]]:
        """Return all counters of all nodes, by node's name; 32-bit counters of cells wrap."""
        stats = self.stats()
        found = {}
        for node in self.nodes:
            found[node.name] = node.counters()
            if isinstance(node, Switch):
                own = stats[node.name]
                found[node.name] |= {"ingress_most": own["ingress_most"], "drop_ingress": own["ingress_lost"]}
        return found

    def stats(self) -> dict[str, dict[str, int]]:
        """Return the event loop's counts for each node.

        They are: evaluations, cells in and out and in flight towards the node, the most cells that waited at one of its
        inputs, and cells that found no place there.
        """
        found = {}
        stats = self.loop.ffi.new("bp_node_stats *")
        for node in self.nodes:
            self.loop.stats(node.index, stats)
            found[node.name] = {field: int(getattr(stats, field)) for field, _ in self.loop.ffi.typeof(stats[0]).fields}
        return found

    def ledger(self) -> list[Account]:
        """Return the account of every PDU so far, one for each VC in the order of :meth:`add_vc`.

        A point-to-multipoint VC has one for each of its paths.
        """
        if not self.loop.is_open:
            self.start()
        for node in self.nodes:
            node.check_reports()
        found = [read_account(self.loop, self.nodes, place, hops) for place, hops in enumerate(self._legs())]
        for place, monitor in self._arrivals.items():
            found[place] = replace(found[place], arrivals=monitor.counts())
        return found

    def lost_pdus(self, place: int) -> int:
        """Return how many PDUs of the VC that was added as number ``place`` are known to be lost by now."""
        account = read_account(self.loop, self.nodes, place, next(itertools.islice(self._legs(), place, None)))
        return sum(pdus for (where, _), pdus in account.lost.items() if where)

    def record_losses(self, most: int) -> None:
        """Record each lost cell from now on, up to so many; the network runs, and no cell is under way."""
        self.loop.record_losses(most)

    def loss_records(self) -> tuple[bytes, int]:
        """Return the records so far, as octets of ``bp_loss_record``, and the number of lost cells without one."""
        left_out = self.loop.ffi.new("uint64_t *")
        count = self.loop.recorded_losses(left_out)
        size = count * self.loop.ffi.sizeof("bp_loss_record")
        records = self.loop.loss_records()
        return (bytes(self.loop.ffi.buffer(records, size)) if size else b""), int(left_out[0])

    def ports_by_place(self) -> dict[tuple[int, int], int]:
        """Return the port at which each path of a VC leaves each switch, by the places of both."""
        return {
            (place, hop.node.index): hop.node.vcs[hop.number].out_port
            for place, hops in enumerate(self._legs())
            for hop in hops
            if isinstance(hop.node, Switch) and not hop.root
        }

    @property
    def answers(self) -> bool:
        """Return whether counters can be read."""
        return True

    def verify(self) -> dict[str, Any] | None:
        """Compare a run, at its end, with another system that ran beside it; return how much was compared.

        None: there was no other system.
        """
        return None

    def trace(self) -> None:
        """Keep the digests of the cells that enter the wires from now on; called before cells are under way."""
        self.start()
        for node in self.nodes:
            for port in node.outputs:
                self.loop.trace(node.index, port, 1)

    def digests(self) -> dict[tuple[str, int], int]:
        """Return a digest of the cells that left each output with a line since :meth:`trace`, by its node's name and
        port.

        It is a hash of 64 bits over tick, header, payload and whether the header is marked as wrong. 0: no cell.
        """
        faces = [(node, port) for node in self.nodes for port in node.outputs]
        return {(n.name, port): self.loop.digest(n.index, port) for n, port in faces}

    def check_conservation(self) -> None:
        """Check the conservation of cells at every node and on all wires.

        For a node: cells in = cells out + dropped by reason + still queued. For all wires: cells in = cells out + under
        way. A wire never holds more than its delay and rate allow, and the places at the node's input.

        Raises
        ------
        NetworkError
            Cells were lost or duplicated, or waited where there is no place for them.
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
            held = delay + (a.longest + a.settings.spread if isinstance(a, Link) else 1)
            room = (held + _JITTER) * 65536 // a.spacing(a_port) + 2 + INGRESS
            room += 1  # the cell that is being sent, however slow the line is
            most = self.loop.wire_most(b.index, b_port)
            if most > room:
                raise NetworkError(
                    f"the wire from {a.name} to {b.name}: {most} cells at once, and its rate and delay take {room}"
                )
