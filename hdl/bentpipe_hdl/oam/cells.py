"""OAM cells of fault management, octet by octet (I.610 clause 10): to and from the 48 octets of their payload.

======== ============================================================================
octets   are
======== ============================================================================
0        OAM type (upper four bits: fault management, 0001) and function type
1 to 45  what the function has to say; what is unused is 6A hex
46, 47   six bits of 0, and the CRC-10
======== ============================================================================
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from bentpipe_hdl.crc10_octets import crc10, crc10_is_right

__all__ = [
    "AIS",
    "ALL_POINTS",
    "CONTINUITY_CHECK",
    "END_POINT",
    "END_PTI",
    "END_VCI",
    "FAULT_MANAGEMENT",
    "LOCATION_OCTETS",
    "LOOPBACK",
    "NOT_LOOPED",
    "NO_LOCATION",
    "PAYLOAD_OCTETS",
    "RDI",
    "SEGMENT_PTI",
    "SEGMENT_VCI",
    "UNUSED",
    "Ais",
    "ContinuityCheck",
    "Loopback",
    "OamCell",
    "OamError",
    "Rdi",
    "location_of",
    "location_of_node",
    "pack",
    "unpack",
]

SEGMENT_PTI: Final = 0b100
"""PTI of an F5 cell of a segment of a VC connection (I.361 clause 2.2.4)."""

END_PTI: Final = 0b101
"""PTI of an end-to-end F5 cell (I.361 clause 2.2.4)."""

SEGMENT_VCI: Final = 3
"""VCI of an F4 cell of a segment of a VP connection, whose VPI it has (I.361 clause 2.2.3)."""

END_VCI: Final = 4
"""VCI of an end-to-end F4 cell (I.361 clause 2.2.3)."""

PAYLOAD_OCTETS: Final = 48

LOCATION_OCTETS: Final = 16
"""Octets of a defect location, a loopback location ID or a source ID."""

UNUSED: Final = 0x6A
"""Value of unused octets (clause 10.1)."""

FAULT_MANAGEMENT: Final = 0b0001
"""The OAM type (clause 10.1, table 4)."""

AIS: Final = 0b0000
RDI: Final = 0b0001
CONTINUITY_CHECK: Final = 0b0100
LOOPBACK: Final = 0b1000
"""The function types of fault management."""

NO_LOCATION: Final = bytes([UNUSED]) * LOCATION_OCTETS
"""Defect location of a cell that gives none."""

END_POINT: Final = b"\xff" * LOCATION_OCTETS
"""As a loopback location ID: the end point of the connection, or of the segment. As a source ID: it is not told."""

ALL_POINTS: Final = bytes(LOCATION_OCTETS)
"""As a loopback location ID, in cells of a segment: each connecting point of it, and its end point."""

NOT_LOOPED: Final = bytes([UNUSED]) * LOCATION_OCTETS
"""As a loopback location ID: nowhere."""


def location_of(given: str) -> bytes:
    """Return the 16 octets of an ID: 32 hexadecimal digits, or a text, with zeros behind it.

    Raises
    ------
    ValueError
        It is too long, or one of those that mean something else.
    """
    if len(given) == 2 * LOCATION_OCTETS and set(given) <= set("0123456789abcdefABCDEF"):
        octets = bytes.fromhex(given)
    else:
        octets = given.encode()
    if len(octets) > LOCATION_OCTETS:
        raise ValueError(f"a location ID has {LOCATION_OCTETS} octets, and {given!r} has {len(octets)}")
    octets = octets.ljust(LOCATION_OCTETS, b"\0")
    if octets in (END_POINT, ALL_POINTS, NOT_LOOPED):
        raise ValueError(f"{given!r} is no location ID of a node: it means something else")
    return octets


def location_of_node(name: str) -> bytes:
    """Return the 16 octets of the ID of a node with no other than its name; where that is too long, eight octets of it,
    and eight of its SHA-256."""
    octets = name.encode()
    if len(octets) > LOCATION_OCTETS:
        return octets[:8] + hashlib.sha256(octets).digest()[:8]
    return location_of(name) if name else NOT_LOOPED


class OamError(ValueError):
    """A payload is not a valid cell of fault management; the text is one line."""


@dataclass(frozen=True)
class _Defect:
    """A defect that is told downstream (AIS) or upstream (RDI).

    Members
    -------
    defect_type : int
        0 to 255; 6A hex: not told.
    defect_location : bytes
        16 octets.
    """

    defect_type: int = UNUSED
    defect_location: bytes = NO_LOCATION

    def _content(self) -> bytes:
        return _octet("defect type", self.defect_type) + _location("defect location", self.defect_location)


@dataclass(frozen=True)
class Ais(_Defect):
    """Alarm indication signal: the connection is interrupted before here (clause 10.2.1)."""

    FUNCTION: ClassVar[int] = AIS


@dataclass(frozen=True)
class Rdi(_Defect):
    """Remote defect indication: the far end does not receive (clause 10.2.1)."""

    FUNCTION: ClassVar[int] = RDI


@dataclass(frozen=True)
class ContinuityCheck:
    """The connection is there, if only idle (clause 10.2.2)."""

    FUNCTION: ClassVar[int] = CONTINUITY_CHECK

    def _content(self) -> bytes:
        return b""


@dataclass(frozen=True)
class Loopback:
    """A cell that is to be sent back, or was (clause 10.2.3).

    Members
    -------
    to_be_looped : bool
        The loopback indication: 1 until it is sent back.
    tag : int
        The correlation tag, 32 bits: by it the source knows it again.
    location : bytes
        16 octets: where it is to be sent back. :data:`END_POINT`, :data:`ALL_POINTS`, :data:`NOT_LOOPED`, or the ID of
        a connecting point.
    source : bytes
        16 octets: who sent it.
    """

    FUNCTION: ClassVar[int] = LOOPBACK

    to_be_looped: bool = True
    tag: int = 0
    location: bytes = END_POINT
    source: bytes = END_POINT

    def looped(self) -> Loopback:
        """Return the cell as it is sent back, with the loopback indication cleared (clause 10.2.3)."""
        return replace(self, to_be_looped=False)

    def _content(self) -> bytes:
        if not 0 <= self.tag < 1 << 32:
            raise ValueError(f"a correlation tag has 32 bits, and {self.tag!r} is none")
        return b"".join(
            (
                bytes([self.to_be_looped]),
                self.tag.to_bytes(4, "big"),
                _location("loopback location ID", self.location),
                _location("source ID", self.source),
            )
        )


OamCell = Ais | Rdi | ContinuityCheck | Loopback


def pack(cell: OamCell) -> bytes:
    """Return the 48 octets of a cell's payload.

    Raises
    ------
    ValueError
        Some member has not the octets that it should.
    """
    body = bytes([FAULT_MANAGEMENT << 4 | cell.FUNCTION]) + cell._content()
    octets = body.ljust(PAYLOAD_OCTETS - 2, bytes([UNUSED])) + bytes(2)
    return octets[: PAYLOAD_OCTETS - 2] + crc10(octets).to_bytes(2, "big")


def unpack(payload: bytes) -> OamCell:
    """Decode a payload of 48 octets. Reserved bits and unused octets are ignored (clause 10.1).

    Raises
    ------
    OamError
        It is damaged, or is not one of the cells of fault management that this module knows.
    """
    if len(payload) != PAYLOAD_OCTETS:
        raise OamError(f"a payload has {PAYLOAD_OCTETS} octets, and this has {len(payload)}")
    if not crc10_is_right(payload):
        raise OamError(f"the CRC-10 of an OAM cell is {crc10(payload):#05x}, and it says another one")
    kind, function = payload[0] >> 4, payload[0] & 0xF
    if kind != FAULT_MANAGEMENT:
        raise OamError(f"OAM type {kind:04b} is not fault management")
    if function == AIS:
        return Ais(payload[1], payload[2:18])
    if function == RDI:
        return Rdi(payload[1], payload[2:18])
    if function == CONTINUITY_CHECK:
        return ContinuityCheck()
    if function == LOOPBACK:
        tag = int.from_bytes(payload[2:6], "big")
        return Loopback(bool(payload[1] & 1), tag, payload[6:22], payload[22:38])
    raise OamError(f"fault management has no function type {function:04b}")


def _octet(what: str, value: int) -> bytes:
    if not 0 <= value <= 255:
        raise ValueError(f"a {what} is an octet, and {value!r} is none")
    return bytes([value])


def _location(what: str, octets: bytes) -> bytes:
    if len(octets) != LOCATION_OCTETS:
        raise ValueError(f"a {what} has {LOCATION_OCTETS} octets, and {octets!r} has {len(octets)}")
    return octets
