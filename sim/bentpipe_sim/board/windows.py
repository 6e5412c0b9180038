"""The address map of a board: its own registers, its nodes, its host ports.

An address has 28 bits: 8 of a window, 20 of a register in it. Window 0 is the board's own, 1 to 127 are nodes, and the
host port of the NIC in window ``k`` is window ``128 + k``.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Self

from bentpipe_hdl.registers import Field, Register, RegisterMap
from bentpipe_sim.build import Shape

__all__ = [
    "ALL_GIVEN", "BOARD_VCS", "CELL", "DDR3_CELLS", "DONE", "ENDED", "FRAME_COUNTERS", "HOST_PORT", "MOST_VLANS",
    "NO_FACE", "RECORD_WORDS", "SDRAM_CELLS", "VLAN_COUNTERS", "WINDOW_BITS", "Plan", "board_registers",
    "description_address", "host_port_registers", "ports_of",
]  # fmt: skip

WINDOW_BITS: Final = 20
HOST_PORT: Final = 128
"""Windows from a NIC's to that of its host port."""

BOARD_VCS: Final = 16
"""The fewest VCs that a board's node is built for. So few rows are memories of LUTs. With 64 VCs an interface has 18
block memories more, and networks were not routable."""

SDRAM_CELLS: Final = 1 << 19
"""Cells for which the SDRAM of a board has room, in records of 64 octets: a chip of 256 Mbit."""

DDR3_CELLS: Final = 1 << 23
"""The same for a DDR3 memory of 4 Gbit."""

MOST_VLANS: Final = 16
"""VLANs of an interface, at most: each one has buffers of its own."""

NO_FACE: Final = 0
"""In the patch panel: nothing comes in."""

CELL: Final = 1
"""A record of a host port: 48 octets of a PDU. With patterns its head has the cells withheld before it."""
ENDED: Final = 2
"""A PDU has ended, well or not."""
DONE: Final = 3
"""The last cell of a PDU has been chosen for the line."""
RECORD_WORDS: Final = {CELL: 13, ENDED: 3, DONE: 3}

ALL_GIVEN: Final = 255
"""Number of cells of a PDU in the memory of a host port: all."""

FRAME_COUNTERS: Final = {
    "tagged": "received frames with a VLAN tag, of a permitted length and with the right FCS",
    "wrong_fcs": "received frames with a wrong FCS",
    "runt": "received frames of less than 60 octets without the FCS",
    "giant": "received frames of more than 1518 octets without the FCS",
    "no_vlan": "received frames with a tag whose VLAN no interface has",
    "no_buffer": "received frames that found the receive buffer full",
    "no_own_room": "received frames without a tag that the board's own Ethernet had no room for",
}
"""Counters of the Ethernet line of a board that carries VLANs."""

VLAN_COUNTERS: Final = {
    "frames_in": "frames accepted from Ethernet",
    "full_in": "frames from Ethernet without room",
    "frames_out": "frames for Ethernet",
    "full_out": "PDUs without room on their way to Ethernet",
    "bad_out": "PDUs with errors, or without an Ethernet frame of up to 1514 octets",
}
"""Counters of each VLAN of an interface."""


@dataclass(frozen=True)
class Plan:
    """The plan from which a board is built.

    Members
    -------
    nodes : tuple of Shape
        Nodes, from window 1 on.
    wires : tuple of int
        Capacity in cells of the wire behind each port, a power of two: all ports of the first node, of the second …
        0: there is no wire, and the port leads nowhere.
    tx_words, rx_words : int
        Words of each host port's memory for PDUs to be sent, and for received ones. Powers of two.
    frame_words : int
        Words of the longest frame.
    sdram : tuple of int
        Ports, counted as for `wires`, whose wire is in the board's SDRAM, or in its DDR3 memory.
    ddr3 : bool
        The memory of these wires is DDR3, which software starts.
    vlans : int
        VLANs of each interface, for traffic from Ethernet and to it. 0: the board carries none.
    patterns : bool
        Each host port continues the payload pattern of PDUs to be sent, and withholds received cells that continue it.
    sources : bool
        With `patterns`: each host port has a source and a sink of SDUs of its own, and time may have a pace.
    gateware : str
        Digest of the RTL of the board, from :func:`~bentpipe_sim.board.gateware.gateware`; "" if unknown. It does not
        count when plans are compared.
    """

    nodes: tuple[Shape, ...]
    wires: tuple[int, ...]
    tx_words: int = 4096
    rx_words: int = 4096
    frame_words: int = 512
    sdram: tuple[int, ...] = ()
    vlans: int = 0
    patterns: bool = False
    sources: bool = False
    ddr3: bool = False
    gateware: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if len(self.nodes) >= HOST_PORT:
            raise ValueError(f"a board has {HOST_PORT - 1} nodes at most, not {len(self.nodes)}")
        if len(self.wires) != self.faces or self.faces > 255:
            raise ValueError(f"{self.faces} faces, of at most 255, have a wire each, and there are {len(self.wires)}")
        for face in self.sdram:
            if not 0 <= face < self.faces or self.sdram.count(face) > 1:
                raise ValueError(f"faces in the SDRAM are from 0 to {self.faces - 1}, each once, not {face}")
            if not self.wires[face]:
                raise ValueError(f"face {face} is in the SDRAM and has no wire")
        if self.sources and not self.patterns:
            raise ValueError("sources need patterns")
        if self.ddr3 and not self.sdram:
            raise ValueError("a plan with DDR3 has a wire in it")
        kind, room = ("a DDR3 memory", DDR3_CELLS) if self.ddr3 else ("an SDRAM", SDRAM_CELLS)
        if len(self.sdram) * self.sdram_cells > room:
            raise ValueError(f"{kind} holds {room} cells, not {len(self.sdram)} x {self.sdram_cells}")
        if not 0 <= self.vlans <= MOST_VLANS:
            raise ValueError(f"vlans must be 0 to {MOST_VLANS}, not {self.vlans}")

    @cached_property
    def bases(self) -> tuple[int, ...]:
        """The number of each node's first face."""
        found, base = [], 0
        for shape in self.nodes:
            found.append(base)
            base += ports_of(shape)
        return tuple(found)

    def wires_of(self, index: int) -> tuple[int, ...]:
        """Return the cells that the wires behind a node's faces hold."""
        return self.wires[self.bases[index] :][: ports_of(self.nodes[index])]

    @property
    def is_paced(self) -> bool:
        """Time may have a pace: there is traffic that no list makes."""
        return bool(self.vlans) or self.sources

    @property
    def sdram_cells(self) -> int:
        """Cells of each wire for which the SDRAM or the DDR3 memory has room."""
        return max((self.wires[face] for face in self.sdram), default=0)

    @property
    def faces(self) -> int:
        """Number of faces, each an input and an output."""
        return sum(map(ports_of, self.nodes))

    def to_json(self) -> str:
        """Return the plan as JSON, as the board's description has it."""
        nodes = [[shape.kind, dict(shape.parameters)] for shape in self.nodes]
        rest: dict[str, Any] = {name: getattr(self, name) for name in ("tx_words", "rx_words", "frame_words")}
        if self.sdram:
            rest["sdram"] = self.sdram
        if self.vlans:
            rest["vlans"] = self.vlans
        if self.patterns:
            rest["patterns"] = True
        if self.sources:
            rest["sources"] = True
        if self.ddr3:
            rest["ddr3"] = True
        if self.gateware:
            rest["gateware"] = self.gateware
        return json.dumps({"nodes": nodes, "wires": self.wires, **rest}, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the plan of a description; ValueError: it is none."""
        try:
            found: dict[str, Any] = json.loads(text)
            nodes = tuple(Shape.of(kind, **parameters) for kind, parameters in found.pop("nodes"))
            wires, sdram = tuple(found.pop("wires")), tuple(found.pop("sdram", ()))
            return cls(nodes, wires, sdram=sdram, **found)
        except (KeyError, TypeError) as error:
            raise ValueError(f"no description of a board: {error}") from None

    @cached_property
    def description(self) -> tuple[int, ...]:
        """The description as words, behind the number of its octets."""
        octets = self.to_json().encode()
        padded = octets + b" " * (-len(octets) % 4)
        return (len(octets), *struct.unpack(f"<{len(padded) // 4}I", padded))


def ports_of(shape: Shape) -> int:
    """Return the number of a node's ports."""
    return {"nic": 1, "link": 1, "sonet": 2}.get(shape.kind) or dict(shape.parameters)["ports"]


def description_address(words: int) -> int:
    """Return the address at which a board's description of so many words begins."""
    return 1 << max(12, (words - 1).bit_length())


def board_registers(plan: Plan) -> RegisterMap:
    """Return the board's own registers."""
    faces, words = plan.faces, len(plan.description)
    description = Register(
        "description",
        description_address(words),
        "description as octets of JSON, after their number",
        "ro",
        count=words,
        reset=None,
    )
    registers = (
        *_TIME,
        *(_PACE if plan.is_paced else ()),
        *_paths(max(1, faces)),
        *(_FRAMES if plan.vlans else ()),
        *(_DDR3 if plan.ddr3 else ()),
        description,
    )
    return RegisterMap("board", "BPBD", 3, {"faces": faces, "description": words}, registers)


_TIME: Final = (
    Register(
        "reset",
        0x0000,
        "reset of the nodes and everything between them, as after power-up",
        "wo",
        width=1,
        on_write="resets them, for 16 clocks",
    ),
    Register(
        "state",
        0x0001,
        "state of the board",
        "ro",
        reset=None,
        width=4,
        fields=(
            Field("running", 0, text="a run is in progress"),
            Field("event", 1, text="a host port has a record of a PDU that ended"),
            Field("idle", 2, text="no node works before its due tick"),
            Field("free", 3, text="time runs freely, without a run; 0 on a board without VLANs"),
        ),
    ),
    Register("clocks", 0x0002, "clocks of a tick, 40 and more", width=8, reset=40, unit="clocks"),
    Register("skips", 0x0003, "1: idle ticks are skipped", width=1, reset=1),
    Register("halts", 0x0004, "1: a run stops at each event", width=1, reset=1),
    Register("scratch", 0x0006, "value for tests of the line"),
    Register("dropped", 0x0005, "frames damaged, or without a place", "ro", width=16, reset=None),
)
_PACE: Final = (
    Register(
        "pace", 0x0008, "ticks of real time a clock, 32 fraction bits; 0: stepped time", unit="2^-32 ticks a clock"
    ),
    Register(
        "free",
        0x0009,
        "free-running time",
        "wo",
        width=1,
        on_write="1: time runs freely, at the pace; 0: it stops after the present tick",
    ),
    Register(
        "lag",
        0x000A,
        "ticks of real time that have passed and are neither begun nor skipped; saturates",
        "ro",
        reset=None,
        unit="ticks",
    ),
    Register(
        "greatest_lag", 0x000B, "greatest lag since the pace was written; saturates", "ro", reset=None, unit="ticks"
    ),
    Register(
        "late_ticks",
        0x000C,
        "ticks begun with a lag of 1 or more since the pace was written; saturates",
        "ro",
        reset=None,
        unit="ticks",
    ),
)
_FRAMES: Final = tuple(
    Register(name, 0x0010 + k, f"{text}; wraps", "ro", reset=None, unit="frames")
    for k, (name, text) in enumerate(FRAME_COUNTERS.items())
)

_DDR3: Final = (
    Register(
        "memory_level", 0x0020, "values read from the memory's controller that wait, 0 or 1", "ro", width=1, reset=None
    ),
    Register("memory_value", 0x0021, "next of these values; each read removes it", "ro", reset=None),
    Register("memory_address", 0x0022, "register of the memory's controller that is written next", width=14),
    Register("memory_write", 0x0023, "value for this register", "wo", on_write="writes it"),
    Register(
        "memory_read",
        0x0024,
        "register of the memory's controller that is read",
        "wo",
        width=14,
        on_write="reads it; the value waits in `memory_value`",
    ),
    Register(
        "memory_wait",
        0x0025,
        "clocks of the memory",
        "wo",
        on_write="the next access waits for so many clocks",
        unit="clocks",
    ),
    Register(
        "memory_state",
        0x0026,
        "state of the way to the memory",
        "ro",
        width=2,
        reset=None,
        fields=(
            Field("ready", 0, text="the memory's clock is there"),
            Field("lost", 1, text="an access found no room since power-up; 17 may wait"),
        ),
    ),
)


def _paths(faces: int) -> tuple[Register, ...]:
    """Return the registers of the patch panel and of the wires."""
    return (
        Register("patch", 0x0100, "output connected to each input, plus 1; 0: none", width=8, count=faces),
        Register(
            "wire",
            0x0200,
            "settings of the wire behind each output",
            count=faces,
            fields=(
                Field("delay", 0, 31, "delay after a cell was sent", "ticks"),
                Field("sends", 31, text="1: cells leave at the line's clock; 0: in the given tick"),
            ),
        ),
        Register("check", 0x0300, "signature of an output's cells and ticks", "ro", count=faces, reset=None),
        Register(
            "faults",
            0x0400,
            "counts of each wire",
            "ro",
            count=faces,
            reset=None,
            fields=(
                Field("lost", 0, 16, "cells that found the wire full; wraps", "cells"),
                Field("late", 16, 16, "cells that could not arrive in their tick; wraps", "cells"),
            ),
        ),
    )


def host_port_registers(plan: Plan) -> RegisterMap:
    """Return the registers of a host port."""
    return RegisterMap(
        "host port",
        "BPHP",
        1,
        {"tx_words": plan.tx_words, "rx_words": plan.rx_words},
        (
            Register("place", 0x0000, "words before the next PDU's first word in `tx`", width=16, unit="words"),
            Register(
                "post",
                0x0001,
                "PDU to be sent",
                "wo",
                on_write="queues the PDU; 16 may wait",
                fields=(Field("length", 0, 16, "octets of the SDU", "octets"), Field("vc", 16, 12), Field("waits", 28)),
            ),
            Register("uu", 0x0002, "CPCS-UU of the next PDU", width=8),
            Register("level", 0x0004, "words of records that wait", "ro", width=16, reset=None, unit="words"),
            Register("record", 0x0005, "next word of the records; each read removes it", "ro", reset=None),
            Register(
                "lost",
                0x0006,
                "words of records, or posts, for which there was no place; wraps",
                "ro",
                width=16,
                reset=None,
            ),
            *(_PATTERNS if plan.patterns else ()),
            *(_SOURCES if plan.sources else ()),
            *_vlans(plan.vlans),
            Register(
                "tx", 0x10000, "PDUs to be sent, first octet lowest; to be read between runs", count=plan.tx_words
            ),
        ),
    )


_PATTERNS: Final = (
    Register(
        "rest",
        0x0003,
        "octets of the next PDU behind those in `tx`",
        width=11,
        reset=ALL_GIVEN,
        fields=(
            Field("cells", 0, 8, f"cells in `tx`, 1 to 254; the others continue the payload pattern. {ALL_GIVEN}: all"),
            Field("place", 8, 3, "place of each cell's first octet in its word of the pattern", "octets"),
        ),
    ),
    Register(
        "withheld",
        0x0007,
        "received cells that continued the payload pattern and have no record; wraps",
        "ro",
        reset=None,
        unit="cells",
    ),
)


_SOURCES: Final = (
    Register(
        "source",
        0x0008,
        "source of SDUs: each is as posted with the present `place`, `uu` and `rest`, and follows the one before",
        width=29,
        fields=(
            Field("length", 0, 16, "octets of each SDU", "octets"),
            Field("vc", 16, 12, "VC; nothing else may be sent on it"),
            Field("on", 28, 1, "1: the source sends"),
        ),
    ),
    Register(
        "sink",
        0x0009,
        "sink of SDUs, which have no records",
        width=21,
        fields=(
            Field("vc", 0, 12, "VC"),
            Field("cells", 12, 8, "first cells of each SDU that do not continue the pattern", "cells"),
            Field("on", 20, 1, "1: the sink takes them"),
        ),
    ),
    Register("sent", 0x000A, "SDUs of the source whose last cell was sent; wraps", "ro", reset=None, unit="SDUs"),
    Register(
        "verified",
        0x000B,
        "SDUs at the sink, well received, whose cells from `cells` on continue the pattern; wraps",
        "ro",
        reset=None,
        unit="SDUs",
    ),
    Register("unverified", 0x000C, "other SDUs that ended at the sink; wraps", "ro", reset=None, unit="SDUs"),
)


def _vlans(count: int) -> tuple[Register, ...]:
    """Return the registers of an interface's VLANs."""
    if not count:
        return ()
    vc = "number of the VC"
    return (
        Register(
            "vlan",
            0x0100,
            "VLAN of Ethernet and its VCs",
            count=count,
            fields=(
                Field("vid", 0, 12, "VLAN identifier, 1 to 4094; 0: none"),
                Field("tx", 12, 10, f"{vc} that takes its frames"),
                Field("rx", 22, 10, f"{vc} whose PDUs are its frames"),
            ),
        ),
        *(
            Register(name, 0x0120 + 0x20 * k, f"{text}; wraps", "ro", count=count, reset=None)
            for k, (name, text) in enumerate(VLAN_COUNTERS.items())
        ),
        Register("no_vlan", 0x0200, "PDUs from VCs of no VLAN; wraps", "ro", reset=None, unit="PDUs"),
    )
