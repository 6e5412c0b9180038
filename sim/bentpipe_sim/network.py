"""A network of Verilated nodes, and the interface that hosts have to it."""

from __future__ import annotations

import hashlib
import itertools
import math
import os
import random
import re
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

from cffi import FFI

from bentpipe_hdl.link.control import link_registers
from bentpipe_hdl.nic.control import nic_registers
from bentpipe_hdl.registers import RegisterMap, Registers
from bentpipe_hdl.sonet.control import sonet_registers
from bentpipe_hdl.switch.control import switch_registers
from bentpipe_hdl.ticks import MOST_VCS, TICKS_A_SECOND, cell_period, ps_to_ticks, ticks_to_ps

from .build import CSRC, Shape, build_loop, build_model
from .errors import NetworkError, SimulationError
from .interface import PduEvent, PduStatus

__all__ = ["Account", "Link", "Network", "Nic", "Node", "SonetLine", "Switch"]

POLICIES = {"tail": (0, 0), "ppd": (1, 0), "epd": (1, 1)}
"""(ppd, epd) bits of a VC by the name of its policy."""

CAPTURES = {"ip": 100, "pdus": 123, "cells": 197}
"""Kinds of captures and the link types of their files: RFC 1483 (at a host RAW, 101), SUNATM, ERF."""

_SIZES = (64, 256, 1024, MOST_VCS)
"""Numbers of VCs that nodes are built for: few shapes, so that few are compiled."""

_KINDS = ("nic", "switch", "link", "sonet")
"""Kinds of nodes in the event loop's ledger."""

_UNDER_WAY, _UNEXPLAINED = "under way", "unexplained"
_WHY = {
    1: "full",
    2: "EPD",
    3: "PPD",
    4: "CLP",
    5: "listed loss",
    6: "bit error",
    7: "header error (HEC)",
    8: "header error (unnoticed)",
    9: "another VC's cell",
    10: "cells lost on the line",
    16 + PduStatus.CRC: "joined (CRC)",
    16 + PduStatus.LENGTH: "joined (length)",
    16 + PduStatus.LOST_LAST: "joined (lost last)",
    16 + PduStatus.OVERLENGTH: "overlength",
    16 + PduStatus.ABORT: "joined (abort)",
    16 + PduStatus.TIMEOUT: "reassembly timer",
    32: _UNEXPLAINED,
    33: _UNDER_WAY,
}
"""Reasons of the ledger, as of ``Why`` in ``csrc/ledger.hpp``; those of a NIC are 16 and the status."""

_EVENT = struct.Struct("<QIIIIII128s")
_WORD = 1 << 32

INGRESS = 8
"""Cells that an input of a node holds while the node takes those of other inputs (``network.cpp``)."""

_JITTER = 64
"""Ticks by which cells may come closer than their line's rate: what a switch's port makes up for."""

_END_PS = ticks_to_ps((1 << 48) - 1)
"""The event loop's ticks don't wrap; a node takes the last one for never."""


@dataclass(frozen=True)
class Account:
    """What became of a VC's PDUs.

    Members
    -------
    source, sink : str
        NICs.
    vc : int
        Its index at both.
    sent : int
        PDUs that the source's NIC was given.
    delivered : int
        Of these, received whole.
    lost : dict
        All others by where (name of a node) and why; those still under way as ("", "under way").
    """

    source: str
    sink: str
    vc: int
    sent: int
    delivered: int
    lost: dict[tuple[str, str], int]


class Node:
    """A node of a network: its name, its index in the event loop, its registers."""

    kind = ""
    ports: int = 1

    def __init__(self, network: Network, name: str):
        self.network, self.name = network, name
        self.index = len(network.nodes)
        self.inputs: dict[int, tuple[Node, int]] = {}
        self.outputs: dict[int, tuple[Node, int]] = {}

    def shape(self) -> Shape:
        raise NotImplementedError

    def registers(self) -> RegisterMap:
        """Its registers."""
        raise NotImplementedError

    @cached_property
    def csr(self) -> Registers:
        """Its registers by name; for a network that runs."""
        return Registers(self, self.registers())

    def spacing(self, port: int) -> int:
        """Ticks between two cells that leave ``port``, at the least and in the long run, in units of 2**-16."""
        raise NotImplementedError

    def configure(self) -> None:
        """Write the settings to the registers."""
        raise NotImplementedError

    def counters(self) -> dict[str, Any]:
        """The node's counters: a number, or a list with one a VC or port. ``drop_REASON`` are cells dropped."""
        raise NotImplementedError

    def check(self, cells_in: int, cells_out: int) -> None:
        """Raise NetworkError unless cells in = cells out + dropped + still queued, modulo 2**32."""
        raise NotImplementedError

    def check_told(self) -> None:
        """Raise NetworkError unless the ledger was told of all cells that the node has counted as dropped or hit."""

    def _seen(self, what: int) -> int:
        return self.network.lib.bp_ledger_seen(self.network.handle, self.index, what)

    def write(self, addr: int, value: int) -> None:
        self.network.lib.bp_csr_write(self.network.handle, self.index, addr, value)

    def write_wide(self, addr: int, value: int) -> None:
        self.write(addr, value & 0xFFFFFFFF)
        self.write(addr + 1, value >> 32)

    def read(self, addr: int) -> int:
        return self.network.lib.bp_csr_read(self.network.handle, self.index, addr)

    def write_lookup(self, vcs: int, entries: Mapping[tuple[int, int, int], int]) -> None:
        """Make the look-up of a node of ``vcs`` VCs find these, given by (port, VPI, VCI) and index."""
        from bentpipe_hdl.lookup_table import lookup_table

        lookup_table(vcs, entries).write(self.csr)

    def _expect(self, what: str, left: int, right: int) -> None:
        if (left - right) % _WORD:
            raise NetworkError(f"{self.name}: cells got lost or doubled: {what} ({left} and {right})")


class Nic(Node):
    """A host's interface. ``rate_bps`` is the cell rate of its line, in bits of 53-octet cells."""

    kind = "nic"

    def __init__(
        self, network: Network, name: str, rate_bps: float, nni: bool, clock_ppm: float, reassembly_timeout_ps: int
    ):
        super().__init__(network, name)
        self.period = _period(f"NIC {name}", rate_bps, clock_ppm)
        self.nni, self.clock_ppm = nni, clock_ppm
        self.timeout = max(1, round_ticks(reassembly_timeout_ps)) if reassembly_timeout_ps else 0
        if not 0 <= reassembly_timeout_ps <= ticks_to_ps(1 << 31):
            raise NetworkError(f"NIC {name}: a reassembly timer runs for at most 380 s, not {reassembly_timeout_ps} ps")
        self.sends: dict[int, dict[str, int]] = {}
        self.receives: dict[int, dict[str, int]] = {}

    def shape(self) -> Shape:
        return Shape.of("nic", vcs=self.size)

    def registers(self) -> RegisterMap:
        return nic_registers(vcs=self.size)

    @property
    def size(self) -> int:
        """The number of VCs each way that it is built for."""
        return _size(self.name, max([*self.sends, *self.receives, 0]) + 1)

    def spacing(self, port: int) -> int:
        return self.period

    def configure(self) -> None:
        self.write_wide(0x0010, self.period)
        self.write(0x0012, self.period + 0xFFFF >> 16)
        self.write(0x0005, int(self.nni))
        self.write(0x0016, self.timeout)
        for vc, spec in self.sends.items():
            self.write(0x10000 + vc, spec["vpi"] << 20 | spec["vci"] << 4)
            self.write_wide(0x20000 + 2 * vc, spec["period"])
        for vc, spec in self.receives.items():
            self.write(0x40000 + vc, spec["cells"])
        self.write_lookup(self.size, {(0, spec["vpi"], spec["vci"]): vc for vc, spec in self.receives.items()})

    def counters(self) -> dict[str, Any]:
        verdicts = ("ok", "crc", "length", "lost_last", "overlength", "abort", "timeout")
        found: dict[str, Any] = {
            "tx_cells": [self.read(0x30000 + vc) for vc in self.sends],
            "tx_refused": self.read(0x0014),
            "rx_cells": [self.read(0x50000 + vc) for vc in self.receives],
            "drop_unknown": self.read(0x0080),
            "drop_hec": self.read(0x0081),
            "drop_oam": self.read(0x0082),
            "drop_overlength": self.read(0x0083),
        }
        for k, verdict in enumerate(verdicts):
            found[f"pdus_{verdict}"] = [self.read(0x60000 + 8 * vc + k) for vc in self.receives]
        return found

    def check(self, cells_in: int, cells_out: int) -> None:
        now = self.counters()
        drops = sum(now[f"drop_{reason}"] for reason in ("unknown", "hec", "oam", "overlength"))
        self._expect("cells in = taken + dropped", cells_in, sum(now["rx_cells"]) + drops)
        self._expect("cells sent = cells out", sum(now["tx_cells"]), cells_out)
        lib, handle = self.network.lib, self.network.handle
        for vc, sent in zip(self.sends, now["tx_cells"], strict=True):
            left = (lib.bp_cells_due(handle, self.index, vc) - sent) % _WORD
            if bool(left) != bool(lib.bp_backlog(handle, self.index, vc)):
                raise NetworkError(f"{self.name}: VC {vc} has {left} cells of its PDUs neither sent nor queued")


class Switch(Node):
    """A switch module; parameters as of :meth:`Network.add_switch`."""

    kind = "switch"
    REASONS = ("full", "epd", "ppd", "clp")

    def __init__(self, network: Network, name: str, **settings: Any):
        super().__init__(network, name)
        rates, ppm = settings["port_rates_bps"], settings["port_clock_ppm"]
        self.periods = [
            _period(f"switch {name}, port {p}", rate, offset)
            for p, (rate, offset) in enumerate(zip(rates, ppm, strict=True))
        ]
        self.ports = len(self.periods)
        self.settings = settings
        self.vcs: list[dict[str, Any]] = []

    def shape(self) -> Shape:
        return Shape.of("switch", vcs=self.size, cells=self.settings["buffer_cells"], ports=self.ports)

    def registers(self) -> RegisterMap:
        return switch_registers(vcs=self.size, cells=self.settings["buffer_cells"], ports=self.ports)

    def spacing(self, port: int) -> int:
        return self.periods[port]

    def check_rates(self) -> None:
        """Refuse lines that together bring or take more than a cell a tick, which is what a switch moves.

        Raises
        ------
        NetworkError
            They do.
        """
        coming = [node.spacing(port) for node, port in self.inputs.values()]
        going = [self.periods[port] for port in self.outputs]
        for periods, verb in ((coming, "bring"), (going, "take")):
            if sum(Fraction(65536, period) for period in periods) > 1:
                asked = sum(TICKS_A_SECOND * 424 * 65536 / period for period in periods) / 1e6
                raise NetworkError(
                    f"switch {self.name}: its lines {verb} up to {asked:.2f} Mb/s of cells together, and it moves "
                    f"{TICKS_A_SECOND * 424 / 1e6:.2f} Mb/s (a cell a tick): give it fewer lines, or slower ones"
                )

    @property
    def size(self) -> int:
        """The number of VCs that it is built for."""
        return _size(self.name, len(self.vcs))

    def configure(self) -> None:
        cells, nni = self.settings["buffer_cells"], self.settings["nni_ports"]
        self.write(0x0001, cells)
        self.write(0x0002, _or(self.settings["epd_threshold"], cells))
        self.write(0x0003, _or(self.settings["clp_threshold"], cells))
        self.write(0x0004, max(1, round_ticks(self.settings["processing_delay_ps"])))
        self.write(0x0005, sum(1 << p for p in nni))
        for port, period in enumerate(self.periods):
            self.write_wide(0x0020 + 2 * port, period)
        for index, vc in enumerate(self.vcs):
            ppd, epd = POLICIES[vc["policy"]]
            own = vc["epd_threshold"] is not None
            word = (vc["limit"] or cells) | (vc["epd_threshold"] or 0) << 16 | vc["out_port"] << 32
            self.write_wide(0x10000 + 2 * index, word | ppd << 36 | epd << 37 | own << 38 | 1 << 39)
            self.write(0x20000 + index, vc["out_vpi"] << 16 | vc["out_vci"])
        entries = {(vc["in_port"], vc["vpi"], vc["vci"]): index for index, vc in enumerate(self.vcs)}
        self.write_lookup(self.size, entries)

    def counters(self) -> dict[str, Any]:
        vcs, ports = range(len(self.vcs)), range(self.ports)
        found: dict[str, Any] = {
            "occupancy": self.read(0x0006),
            "high_water": self.read(0x0007),
            "flushed": self.read(0x0008),
            "accepted": [self.read(0x30000 + vc) for vc in vcs],
            "departed": [self.read(0x40000 + vc) for vc in vcs],
            "drop_unknown": [self.read(0x0080 + p) for p in ports],
            "drop_hec": [self.read(0x0090 + p) for p in ports],
        }
        for k, reason in enumerate(self.REASONS):
            found[f"drop_{reason}"] = [self.read(0x50000 + 4 * vc + k) for vc in vcs]
        return found

    def check(self, cells_in: int, cells_out: int) -> None:
        now = self.counters()
        drops = sum(sum(now[f"drop_{reason}"]) for reason in (*self.REASONS, "unknown", "hec"))
        self._expect("cells in = queued + dropped", cells_in, sum(now["accepted"]) + drops)
        self._expect("queued = sent + still queued", sum(now["accepted"]), sum(now["departed"]) + now["occupancy"])
        self._expect("cells sent or flushed = cells out", sum(now["departed"]), cells_out + now["flushed"])

    def check_told(self) -> None:
        for vc in range(len(self.vcs)):
            for k, reason in enumerate(self.REASONS):
                at = 4 * vc + k
                self._expect(f"cells of VC {vc} told as dropped ({reason})", self.read(0x50000 + at), self._seen(at))


class Link(Node):
    """One direction of a line."""

    kind = "link"

    def __init__(self, network: Network, name: str, delay_ps: int, ber: float):
        super().__init__(network, name)
        if not 0 <= delay_ps <= 10**12:
            raise NetworkError(f"link {name}: a delay must be from 0 to 1 s, not {delay_ps} ps")
        _check_ber(f"link {name}", ber)
        self.delay, self.ber = max(1, round_ticks(delay_ps)), ber
        self.losses: dict[tuple[int, int], tuple[bool, list[int]]] = {}

    def shape(self) -> Shape:
        return Shape.of("link")

    def registers(self) -> RegisterMap:
        return link_registers()

    def spacing(self, port: int) -> int:
        if not self.inputs:
            raise NetworkError(f"nothing leads into link {self.name}")
        node, before = self.inputs[0]
        return node.spacing(before)

    def lose(self, vpi: int, vci: int, *, pdus: Iterable[int] = (), cells: Iterable[int] = ()) -> None:
        """Take out these PDUs or these user cells of a VC, counted from 1 on; once for a VC.

        Raises
        ------
        NetworkError
            Both kinds are given or neither, a number is not positive, or it is more than the link can keep.
        """
        from bentpipe_hdl.link.control import ENTRIES, VCS

        what = f"link {self.name}, losses of VC {vpi}/{vci}"
        by_pdu, by_cell = sorted(set(pdus)), sorted(set(cells))
        if bool(by_pdu) == bool(by_cell):
            raise NetworkError(f"{what}: give the numbers of PDUs or of cells")
        numbers = by_pdu or by_cell
        if not 1 <= numbers[0] <= numbers[-1] < _WORD:
            raise NetworkError(f"{what}: numbers start at 1, not {numbers[0]}")
        if (vpi, vci) in self.losses:
            raise NetworkError(f"{what}: given twice")
        self.losses[vpi, vci] = (bool(by_pdu), numbers)
        entries = sum(len(kept) + 1 for _, kept in self.losses.values())
        if len(self.losses) > VCS or entries > ENTRIES:
            raise NetworkError(f"{what}: a link has losses for {VCS} VCs, {ENTRIES} numbers and ends of lists in all")

    def _configure_losses(self) -> None:
        from bentpipe_hdl.link.control import VCS

        place = 0
        self.write_lookup(VCS, {(0, vpi, vci): index for index, (vpi, vci) in enumerate(self.losses)})
        for index, (by_pdu, numbers) in enumerate(self.losses.values()):
            self.write(0x10000 + index, place | by_pdu << 8)
            for number in (*numbers, 0):
                self.write(0x20000 + place, number)
                place += 1
        self.write(0x0005, int(bool(self.losses)))

    def configure(self) -> None:
        self.write(0x0001, self.delay)
        self._configure_losses()
        errors = _Errors(self.network.seed, self.name)
        self.write_wide(0x0012, errors.state)
        self._write_rate()
        if self.ber:
            self.write_wide(0x0010, errors.gap(self.ber))

    def _write_rate(self) -> None:
        if self.ber:
            mantissa, shift = _scale(self.ber)
            self.write(0x0003, mantissa)
            self.write(0x0004, shift)
        self.write(0x0002, int(self.ber > 0))

    def set_ber(self, ber: float) -> None:
        """From now on the line has this bit error ratio: 0, or from 1e-15 to 1e-3. In a running network the next cell
        passes unhurt, and behind it the gap to the next error is one of the new ratio.

        Raises
        ------
        NetworkError
            It is out of this range.
        """
        _check_ber(f"link {self.name}", ber)
        self.ber = ber
        if self.network.handle:
            self._write_rate()

    def counters(self) -> dict[str, Any]:
        names = ("cells", "errored", "corrected", "rejected", "error_bits", "drop_lost", "drop_listed")
        return {name: self.read(0x0080 + k) for k, name in enumerate(names)}

    def check(self, cells_in: int, cells_out: int) -> None:
        now = self.counters()
        self._expect("cells in = counted", cells_in, now["cells"])
        self._expect("cells in = cells out + lost", cells_in, cells_out + now["drop_lost"] + now["drop_listed"])

    def check_told(self) -> None:
        self._expect("cells told as hit", self.read(0x0081), self._seen(0))
        self._expect("cells told as gone", self.read(0x0085) + self.read(0x0086), self._seen(1))


class SonetLine(Node):
    """A line with its SONET framing, both ways; port 0 is its one end, port 1 the other."""

    kind = "sonet"
    ports = 2

    def __init__(self, network: Network, name: str, sts: int, ber: tuple[float, float], ppm: float):
        super().__init__(network, name)
        if sts not in (3, 12):
            raise NetworkError(f"SONET line {name}: STS-3c or STS-12c, not STS-{sts}c")
        for ratio in ber:
            _check_ber(f"SONET line {name}", ratio)
        if not -320 <= ppm <= 320:
            raise NetworkError(f"SONET line {name}: pointers follow offsets from -320 to 320 ppm, not {ppm:g}")
        self.sts, self.ber, self.ppm = sts, ber, ppm

    def shape(self) -> Shape:
        return Shape.of("sonet", sts=self.sts)

    def registers(self) -> RegisterMap:
        return sonet_registers(sts=self.sts)

    def spacing(self, port: int) -> int:
        return cell_period(49_920_000 * self.sts)

    def configure(self) -> None:
        from bentpipe_hdl.sonet.control import TERMINAL

        drift = round(self.ppm * 13136.56)
        for base, offset in ((0x1000, drift), (0x2000, -drift)):
            self.write(base + TERMINAL["drift"].addr, offset & 0xFFFFFF)
            self.write(base + TERMINAL["changed"].addr, 0xFFFFFFFF)
        for way, ratio in enumerate(self.ber):
            errors = _Errors(self.network.seed, f"{self.name}/{way}")
            self.write_wide(0x0106 + 0x80 * way, errors.state)
            self._write_rate(way)
            if ratio:
                self.write_wide(0x0104 + 0x80 * way, errors.gap(ratio))

    def _write_rate(self, way: int) -> None:
        base, ratio = 0x0100 + 0x80 * way, self.ber[way]
        if ratio:
            mantissa, shift = _scale(ratio)
            self.write(base + 1, mantissa)
            self.write(base + 2, shift)
        self.write(base, int(ratio > 0))

    def set_ber(self, way: int, ber: float) -> None:
        """From now on the line from end ``way`` has this bit error ratio: 0, or from 1e-15 to 1e-3. In a running
        network the next word passes unhurt, and behind it the gap to the next error is one of the new ratio.

        Raises
        ------
        NetworkError
            It is out of this range.
        """
        _check_ber(f"SONET line {self.name}", ber)
        self.ber = (ber, self.ber[1]) if way == 0 else (self.ber[0], ber)
        if self.network.handle:
            self._write_rate(way)

    def counters(self) -> dict[str, Any]:
        """``drop_line`` are cells lost between the ends, without those of the last half frame (62 us)."""
        names = ("queued", "sent", "landed", "received", "errored")
        found: dict[str, Any] = {
            name: [self.read(0x0080 + 2 * k), self.read(0x0081 + 2 * k)] for k, name in enumerate(names)
        }
        found |= {"drop_full": self.read(0x008A), "drop_hec": self.read(0x008B), "under_way": self.read(0x008C)}
        found["error_bits"] = [self.read(0x0110), self.read(0x0190)]
        found["hit_words"] = [self.read(0x0111), self.read(0x0191)]
        came = [(found["received"][1 - way] + found["errored"][1 - way]) for way in range(2)]
        found["drop_line"] = [max(0, _signed(found["landed"][way] - came[way])) for way in range(2)]
        return found

    def latch(self) -> None:
        """Both terminals copy their counters and clear them, at the line's next word (463 ns)."""
        from bentpipe_hdl.sonet.control import TERMINAL

        for base in (0x1000, 0x2000):
            self.write(base + TERMINAL["latch"].addr, 0)

    def terminal(self, end: int) -> dict[str, int]:
        """What the registers of an end (0 or 1) say, by name; the counters are those of the last :meth:`latch`."""
        from bentpipe_hdl.sonet.control import TERMINAL

        base = 0x1000 + 0x1000 * end
        return {r.name: self.read(base + r.addr) for r in TERMINAL.registers if r.access != "wo"}

    def lose_signal(self, way: int, words: int) -> None:
        """Zeros on the line from end ``way`` for so many words (2.16 million a second)."""
        self.write(0x010A + 0x80 * way, words)

    def burst(self, way: int, words: int) -> None:
        """All bits inverted on the line from end ``way`` for so many words, at most 65535."""
        self.write(0x0108 + 0x80 * way, words)

    def slip(self, way: int, bits: int) -> None:
        """From now on the line from end ``way`` is so many bits late, less than a word of 3N bytes."""
        self.write(0x010B + 0x80 * way, bits)

    def invert(self, way: int, bit: int) -> None:
        """Invert a bit of the frame, when it passes next, on the line from end ``way``; 0 is the first bit of A1.

        Raises
        ------
        NetworkError
            A frame has no such bit.
        """
        bits = 72 * self.sts // 3
        if not 0 <= bit < 270 * bits:
            raise NetworkError(f"{self.name}: a frame of STS-{self.sts}c has bits 0 to {270 * bits - 1}, not {bit}")
        word, place = divmod(bit, bits)
        self.write(0x0109 + 0x80 * way, word << 16 | place)

    def check(self, cells_in: int, cells_out: int) -> None:
        """The account of the node; and, as long as the receiver had no defect that stops cells: no cell is lost or made
        up without an error on the line."""
        from bentpipe_hdl.sonet.control import TERMINAL

        now = self.counters()
        waiting, sent, errored = sum(now["queued"]), sum(now["sent"]), sum(now["errored"])
        self._expect(
            "cells in = sent + waiting + dropped", cells_in, sent + waiting + now["drop_full"] + now["drop_hec"]
        )
        self._expect("cells received = cells out", sum(now["received"]) + errored, cells_out + now["under_way"])
        for way in range(2):
            far = 1 - way
            if self.read(0x1000 + 0x1000 * far + TERMINAL["changed"].addr) & _stopping():
                continue
            came, hits = now["received"][far] + now["errored"][far], now["hit_words"][way]
            lost, made = _signed(now["landed"][way] - came), _signed(came - now["sent"][way])
            for cells, what in ((lost, "lost"), (made, "made up")):
                if cells > hits:
                    way_text = f"from end {way} to {far} by {hits} words with errors and no defect"
                    raise NetworkError(f"{self.name}: {cells} cells {what} {way_text}")


def _stopping() -> int:
    """Defects while which cells don't arrive, as bits."""
    from bentpipe_hdl.sonet.tables import ALARMS

    names = ("los", "sef", "lof", "ais_l", "ais_p", "lop_p", "uneq_p", "ocd")
    return sum(1 << k for k, alarm in enumerate(ALARMS) if alarm.name in names)


def _signed(difference: int) -> int:
    """A difference of counters that wrap."""
    return (difference + _WORD // 2) % _WORD - _WORD // 2


class _Errors:
    """Where a line's random errors start, from a seed and a name; the same for any kind of line."""

    def __init__(self, seed: int, name: str):
        digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
        self._draw = random.Random(digest)
        self.state = int.from_bytes(digest[:8], "little") or 1

    def gap(self, rate: float) -> int:
        """Good bits before the first error."""
        return min(int(math.log(1.0 - self._draw.random()) / math.log1p(-rate)), (1 << 56) - 1)


def _scale(rate: float) -> tuple[int, int]:
    from bentpipe_hdl.bit_errors import scale_of

    return scale_of(rate)


def _check_ber(what: str, ber: float) -> None:
    if ber and not 1e-15 <= ber <= 1e-3:
        raise NetworkError(f"{what}: a bit error rate must be 0 or from 1e-15 to 1e-3, not {ber:g}")


class Network:
    """Nodes, wires and VCs; then, from the first ``send`` or ``run`` on, a :class:`~.interface.PduNetwork`.

    Parameters
    ----------
    seed : int
        Of all randomness: bit errors. The same seed and settings give the same cells at the same ticks.
    direct : bool
        Call the function that Verilator made of a node's clocked block itself; else its public interface. Same results.
    """

    def __init__(self, seed: int = 1, *, direct: bool = True):
        self.seed, self.direct = seed, direct
        self.nodes: list[Node] = []
        self.lib: Any = None
        self.handle: Any = None
        self._ffi: Any = None
        self._now_ps = 0
        self._reporting: set[int] = set()
        self._wires: list[tuple[Node, int, Node, int, int]] = []
        self._captures: list[tuple[Path, str, Node, int]] = []
        self._hops: list[list[tuple[Node, int, int, int, int]]] = []  # of each VC: node, port, number, key, mask

    # Building

    def add_nic(
        self,
        name: str,
        rate_bps: float = 149_760_000,
        *,
        nni: bool = False,
        clock_ppm: float = 0.0,
        reassembly_timeout_ps: int = 0,
    ) -> Nic:
        """A host's interface with a line of ``rate_bps`` (bits of cells a second). Its clock, from which line and VCs
        take their rates, is ``clock_ppm`` fast, -1000 to 1000.

        A PDU is given up ``reassembly_timeout_ps`` after its first cell if its last has not come; 0: never.
        """
        return self._add(Nic(self, name, rate_bps, nni, clock_ppm, reassembly_timeout_ps))

    def add_switch(
        self,
        name: str,
        port_rates_bps: Sequence[float] = (149_760_000,) * 4,
        buffer_cells: int = 8192,
        processing_delay_ps: int = 5_000_000,
        epd_threshold: int | None = None,
        clp_threshold: int | None = None,
        nni_ports: Sequence[int] = (),
        port_clock_ppm: Sequence[float] | None = None,
    ) -> Switch:
        """A switch module: a port for each rate (bits of cells a second), one buffer of ``buffer_cells`` for all.

        ``epd_threshold`` (for VCs without one of their own) and ``clp_threshold`` are cells in the buffer; None:
        its size. The clock of each port is ``port_clock_ppm`` fast, -1000 to 1000; None: all are exact.
        """
        if not 1 <= len(port_rates_bps) <= 16:
            raise NetworkError(f"switch {name}: from 1 to 16 ports, not {len(port_rates_bps)}")
        if not 1 <= buffer_cells <= 32768:
            raise NetworkError(f"switch {name}: a buffer has 1 to 32768 cells, not {buffer_cells}")
        for what, value in (("epd_threshold", epd_threshold), ("clp_threshold", clp_threshold)):
            if value is not None and not 0 <= value <= buffer_cells:
                raise NetworkError(f"switch {name}: {what} must be from 0 to {buffer_cells} cells, not {value}")
        settings = {
            "port_rates_bps": tuple(port_rates_bps),
            "buffer_cells": buffer_cells,
            "processing_delay_ps": processing_delay_ps,
            "epd_threshold": epd_threshold,
            "clp_threshold": clp_threshold,
            "nni_ports": tuple(nni_ports),
            "port_clock_ppm": (0.0,) * len(port_rates_bps) if port_clock_ppm is None else tuple(port_clock_ppm),
        }
        if len(settings["port_clock_ppm"]) != len(port_rates_bps):
            raise NetworkError(f"switch {name}: port_clock_ppm has a value for each of {len(port_rates_bps)} ports")
        return self._add(Switch(self, name, **settings))

    def add_link(self, name: str, delay_ps: int = 0, ber: float = 0.0) -> Link:
        """One direction of a line: ``delay_ps`` of propagation (at least a tick), independent bit errors at ``ber``."""
        return self._add(Link(self, name, delay_ps, ber))

    def add_sonet_line(
        self, name: str, sts: int = 3, ber: tuple[float, float] = (0.0, 0.0), ppm: float = 0.0
    ) -> SonetLine:
        """A SONET line both ways, STS-3c or STS-12c, without propagation delay; its ports are 0 and 1.

        ``ber``: independent bit errors from port 0 to 1, and back. ``ppm``: how much slower the payload's clock is at
        port 0 than the line's, and how much faster at port 1.
        """
        return self._add(SonetLine(self, name, sts, ber, ppm))

    def _add(self, node: Any) -> Any:
        if self.handle:
            raise NetworkError(f"{node.name}: the network runs already, nothing can be added")
        if any(other.name == node.name for other in self.nodes):
            raise NetworkError(f"two nodes are called {node.name}")
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
        policy: str = "epd",
        limit: int | None = None,
        epd_threshold: int | None = None,
        max_sdu: int = 65535,
    ) -> int:
        """A VC in one direction along ``path``, from a NIC through switches and links to a NIC.

        Parameters
        ----------
        vpi, vci : int
            The same on every line (0..255, with NNI lines 0..4095; 32..65535).
        cell_rate_bps : float, optional
            The source paces the VC at this rate of cells; None: the rate of its line.
        policy : "tail", "ppd" or "epd"
            What the switches do: tail drop; partial packet discard; both partial and early packet discard.
        limit : int, optional
            Most cells of the VC in a switch's buffer.
        epd_threshold : int, optional
            EPD by the VC's own queue, cells; None: by the switch's shared buffer and threshold.
        max_sdu : int
            Octets of the largest SDU that the sink takes.

        Returns
        -------
        int
            The VC's index at both NICs.

        Raises
        ------
        NetworkError
            The path is not connected, the VPI/VCI are out of range or used already, or something else of the above.
        """
        source, sink = path[0], path[-1]
        what = f"VC {vpi}/{vci} from {source.name} to {sink.name}"
        if self.handle:
            raise NetworkError(f"{what}: the network runs already, nothing can be added")
        if not isinstance(source, Nic) or not isinstance(sink, Nic) or len(path) < 2:
            raise NetworkError(f"{what}: a VC goes from a NIC to a NIC")
        if policy not in POLICIES:
            raise NetworkError(f"{what}: a policy is one of {', '.join(POLICIES)}, not {policy}")
        if not 0 <= vpi < 4096 or not 32 <= vci < 65536:
            raise NetworkError(f"{what}: VPI from 0 to 4095 (255 at a UNI), VCI from 32 to 65535")
        if not 1 <= max_sdu <= 65535:
            raise NetworkError(f"{what}: an SDU has 1 to 65535 octets, not {max_sdu}")
        period = source.period if cell_rate_bps is None else _period(what, cell_rate_bps, source.clock_ppm)
        hops: list[tuple[Switch, int, int]] = []
        arrives: int = 0
        faces = [-1]  # the port at which the VC comes into each node of the path
        for k, node in enumerate(path[:-1]):
            after = path[k + 1]
            ways = [(port, to) for port, to in node.outputs.items() if to[0] is after]
            if not ways:
                raise NetworkError(f"{what}: {node.name} is not connected to {after.name}")
            port, (_, next_port) = ways[0]
            if isinstance(node, Switch):
                hops.append((node, arrives, port))
            elif k and isinstance(node, Nic):
                raise NetworkError(f"{what}: {node.name} is a NIC and cannot carry a VC on")
            arrives = next_port
            faces.append(arrives)
        for switch, in_port, out_port in hops:
            for port in (in_port, out_port):
                if vpi > 255 and port not in switch.settings["nni_ports"]:
                    raise NetworkError(f"{what}: VPI {vpi} needs NNI lines, port {port} of {switch.name} is a UNI")
            if any((other["in_port"], other["vpi"], other["vci"]) == (in_port, vpi, vci) for other in switch.vcs):
                raise NetworkError(f"{what}: VPI/VCI {vpi}/{vci} is used twice at port {in_port} of {switch.name}")
            for what_limit, value in (("limit", limit), ("epd_threshold", epd_threshold)):
                if value is not None and not 0 <= value <= 65535:
                    raise NetworkError(f"{what}: {what_limit} must be from 0 to 65535 cells, not {value}")
            _size(switch.name, len(switch.vcs) + 1)
        if any((other["vpi"], other["vci"]) == (vpi, vci) for other in sink.receives.values()):
            raise NetworkError(f"{what}: VPI/VCI {vpi}/{vci} is used twice at port 0 of {sink.name}")
        index = next(k for k in itertools.count() if k not in source.sends and k not in sink.receives)
        for nic in (source, sink):
            _size(nic.name, index + 1)
        for switch, in_port, out_port in hops:
            switch.vcs.append(
                {
                    "in_port": in_port,
                    "vpi": vpi,
                    "vci": vci,
                    "out_port": out_port,
                    "out_vpi": vpi,
                    "out_vci": vci,
                    "policy": policy,
                    "limit": limit,
                    "epd_threshold": epd_threshold,
                }
            )
        self._hops.append(self._ledger_hops(path, faces, index, vpi << 16 | vci))
        source.sends[index] = {"vpi": vpi, "vci": vci, "period": period}
        sink.receives[index] = {"vpi": vpi, "vci": vci, "cells": (max_sdu + 8 + 47) // 48}
        return index

    @staticmethod
    def _ledger_hops(
        path: Sequence[Node], faces: Sequence[int], index: int, key: int
    ) -> list[tuple[Node, int, int, int, int]]:
        """A VC that was just added to its switches, as the ledger wants it: a line's headers are read as its next
        switch or NIC reads them."""
        hops = []
        nni = False
        for k in reversed(range(len(path))):
            node, port, number = path[k], faces[k], index
            if isinstance(node, Nic):
                nni = node.nni
            elif isinstance(node, Switch):
                nni = port in node.settings["nni_ports"]
                number = len(node.vcs) - sum(each is node for each in path[k:])
            hops.append((node, port, number, key, 0xFFFFFFF if nni else 0xFFFFFF))
        return hops[::-1]

    def shapes(self) -> list[Shape]:
        """The shapes of this network's nodes, each once."""
        return list(dict.fromkeys(node.shape() for node in self.nodes))

    def start(self) -> None:
        """Build the models that are missing, make the nodes, write their settings. ``send`` and ``run`` call it."""
        if self.handle:
            return
        from .build import build_all

        for node in self.nodes:
            if isinstance(node, Switch):
                node.check_rates()
        if self.direct:
            build_all(self.shapes())
        header = re.sub(r"/\*.*?\*/", "", (CSRC / "network.h").read_text(), flags=re.DOTALL)
        skipped = ("#", 'extern "C"', "}\n")
        lines = [line for line in header.splitlines() if not line.startswith(skipped) and line != "}"]
        self._ffi = FFI()
        self._ffi.cdef("\n".join(lines))
        self.lib = self._ffi.dlopen(str(build_loop()))
        self.handle = self._ffi.gc(self.lib.bp_new(), self.lib.bp_free)
        for node in self.nodes:
            model = build_model(node.shape(), direct=self.direct)
            if self.lib.bp_add_node(self.handle, str(model).encode(), isinstance(node, Nic)) != node.index:
                raise SimulationError(f"{node.name}: {self._ffi.string(self.lib.bp_error(self.handle)).decode()}")
            self.lib.bp_settle(self.handle, node.index)
            node.configure()
        for a, a_port, b, b_port, delay in self._wires:
            held = delay + (a.delay - 1 if isinstance(a, Link) else 0)
            self.lib.bp_connect(self.handle, a.index, a_port, b.index, b_port, held)
        for hops in self._hops:
            made = self._ffi.new("bp_hop[]", [(_KINDS.index(n.kind), n.index, *rest) for n, *rest in hops])
            self.lib.bp_ledger_vc(self.handle, hops[0][0].index, hops[0][2], made, len(hops))
        for path, kind, node, port in self._captures:
            self._start_capture(path, kind, node, port)

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
        if self.handle:
            self._start_capture(path, kind, node, port)

    def _start_capture(self, path: Path, kind: str, node: Node, port: int) -> None:
        host = isinstance(node, Nic) and kind == "ip"
        index = self.lib.bp_capture(self.handle, str(path).encode(), 101 if host else CAPTURES[kind])
        if host:
            self.lib.bp_capture_host(self.handle, index, node.index)
            return
        after, after_port = node.outputs[port]
        self.lib.bp_capture_input(self.handle, index, after.index, after_port, 0)
        self.lib.bp_capture_input(self.handle, index, node.index, port, 1)

    def end_captures(self) -> None:
        """End the files of all captures.

        Raises
        ------
        SimulationError
            One couldn't be written.
        """
        if self.handle is None:
            return
        for index, (path, *_) in enumerate(self._captures):
            error = self.lib.bp_capture_end(self.handle, index)
            if error:
                raise SimulationError(f"{path} can't be written: {os.strerror(error)}")

    def close(self) -> None:
        """Let go of the nodes. The network cannot be used any more."""
        if self.handle:
            self._ffi.release(self.handle)
            self.handle = None

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
        if self.handle is None:
            self.start()
        size = len(head) + length
        if not 1 <= size <= 65535:
            raise SimulationError(f"an SDU has 1 to 65535 octets, not {size}")
        self.lib.bp_send(
            self.handle,
            nic,
            vc,
            head,
            len(head),
            key,
            offset,
            length,
            checksum_start,
            checksum_at,
            uu,
            nic in self._reporting,
        )

    def report_sent(self, nic: int) -> None:
        """From now on ``run`` returns an event ``SENT`` for every PDU of this NIC whose last cell leaves."""
        self._reporting.add(nic)

    def run(self, until_ps: int) -> list[PduEvent]:
        if self.handle is None:
            self.start()
        if until_ps >= _END_PS:
            raise SimulationError(f"simulated time ends after 1.5 years: {until_ps} ps are more")
        count = self.lib.bp_run(self.handle, ps_to_ticks(until_ps), 0)
        if not count:
            self._now_ps = max(until_ps, self._now_ps)
            return []
        buffer = self._ffi.buffer(self.lib.bp_events(self.handle), count * _EVENT.size)
        events = []
        time_ps = self._now_ps
        for tick, nic, vc, status, length, handle, head_length, head in _EVENT.iter_unpack(buffer):
            time_ps = ticks_to_ps(tick)
            events.append(PduEvent(time_ps, nic, vc, status, length, head[:head_length], handle))
        self._now_ps = time_ps
        return events

    def check(self, handle: int, start: int, key: int, offset: int, length: int) -> bool:
        return bool(self.lib.bp_check(self.handle, handle, start, key, offset, length))

    def checksum(self, handle: int, start: int, length: int) -> int:
        return self.lib.bp_checksum(self.handle, handle, start, length)

    def sdu(self, handle: int) -> bytes:
        events = self.lib.bp_events(self.handle)
        lengths = (events[k].length for k in range(handle + 1) if events[k].handle == handle)
        return bytes(self._ffi.buffer(self.lib.bp_sdu(self.handle, handle), max(lengths)))

    # Looking in

    def sample(self) -> dict[str, int]:
        """Cells queued now in each switch, by name."""
        return {node.name: node.read(0x0006) for node in self.nodes if isinstance(node, Switch)}

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
        stats = self._ffi.new("bp_node_stats *")
        for node in self.nodes:
            self.lib.bp_stats(self.handle, node.index, stats)
            found[node.name] = {field: int(getattr(stats, field)) for field, _ in self._ffi.typeof(stats[0]).fields}
        return found

    def ledger(self) -> list[Account]:
        """What became of every PDU so far, an account for each VC, in the order of :meth:`add_vc`.

        Raises
        ------
        NetworkError
            The rows of a VC don't sum up to sent minus delivered, or a loss has no cause, or a count of the hardware
            differs.
        """
        if self.handle is None:
            self.start()
        for node in self.nodes:
            node.check_told()
        return [self._account(place, hops) for place, hops in enumerate(self._hops)]

    def _account(self, place: int, hops: list[tuple[Node, int, int, int, int]]) -> Account:
        totals, rows = self._ffi.new("bp_account *"), self._ffi.new("bp_loss[]", 256)
        count = self.lib.bp_ledger(self.handle, place, totals, rows, len(rows))
        source, sink, key = hops[0][0], hops[-1][0], hops[0][3]
        lines = [node.name for node, *_ in hops if isinstance(node, SonetLine)]
        what = f"the ledger of VC {key >> 16}/{key & 0xFFFF} from {source.name} to {sink.name}"
        lost: dict[tuple[str, str], int] = {}
        for row in rows[0:count]:
            where, why = self.nodes[row.node].name if row.node >= 0 else "", _WHY[row.why]
            if why == _UNEXPLAINED:
                if not lines:
                    raise NetworkError(f"{what}: {row.pdus} PDUs were not delivered, and nothing says why")
                where, why = ", ".join(lines), "SONET line"
            lost[where, why] = lost.get((where, why), 0) + row.pdus
        account = Account(source.name, sink.name, hops[0][2], totals.sent, totals.delivered, lost)
        missing = totals.sent - totals.delivered - sum(lost.values())
        if missing:
            raise NetworkError(f"{what}: {missing} PDUs are in no row, or in two (negative)")
        received = sink.read(0x60000 + 8 * hops[-1][2])
        if (totals.delivered - received) % _WORD:
            raise NetworkError(f"{what}: {totals.delivered} PDUs delivered, and the NIC has counted {received}")
        if lines:  # what garbage a line without its frame makes is anybody's guess
            return account
        if totals.astray or not 0 <= totals.ends - totals.ends_there <= totals.queued:
            raise NetworkError(
                f"{what}: it expects the ends of {totals.ends} PDUs, and {totals.ends_there} are on their way"
                f" besides {totals.queued} cells in switches"
            )
        return account

    def trace(self) -> None:
        """From now on keep the digests of what enters the wires: before cells are under way."""
        self.start()
        for node in self.nodes:
            for port in node.outputs:
                self.lib.bp_trace(self.handle, node.index, port, 1)

    def digests(self) -> dict[tuple[str, int], int]:
        """Since :meth:`trace`, 64 bits of hash over the cells that left each output with a line, by its node's name and
        port: tick, header, payload and whether the header is marked as wrong. 0: no cell."""
        faces = [(node, port) for node in self.nodes for port in node.outputs]
        return {(n.name, port): self.lib.bp_digest(self.handle, n.index, port) for n, port in faces}

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
            most = self.lib.bp_wire_most(self.handle, b.index, b_port)
            if most > room:
                raise NetworkError(
                    f"the wire from {a.name} to {b.name}: {most} cells at once, and its rate and delay take {room}"
                )


def round_ticks(ps: int) -> int:
    """A duration as the nearest number of ticks."""
    return ps_to_ticks(ps + 88475)


def _or(value: int | None, default: int) -> int:
    return default if value is None else value


def _period(what: str, rate_bps: float, clock_ppm: float) -> int:
    if not -1000 <= clock_ppm <= 1000:
        raise NetworkError(f"{what}: a clock is from 1000 ppm slow to 1000 ppm fast, not {clock_ppm:g} ppm")
    try:
        return cell_period(rate_bps * (1 + clock_ppm * 1e-6))
    except ValueError as error:
        raise NetworkError(f"{what}: {error}") from None


def _size(what: str, vcs: int) -> int:
    for size in _SIZES:
        if vcs <= size:
            return size
    raise NetworkError(f"{what}: {vcs} VCs are more than {_SIZES[-1]}")
