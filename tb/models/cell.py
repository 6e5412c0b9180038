"""The ATM cell and its header at the UNI and the NNI (I.361)."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from models.hec import hec

__all__ = ["PAYLOAD", "Cell", "Header", "Interface", "Pti"]

PAYLOAD = 48
"""Octets of a cell's payload."""


class Interface(enum.Enum):
    """At the UNI the header has 4 bits of GFC and 8 of VPI, at the NNI 12 bits of VPI."""

    UNI = "uni"
    NNI = "nni"


class Pti(enum.IntEnum):
    """Payload type. Bit 0 of a user cell is the ATM-user-to-ATM-user indication: AAL5's last cell."""

    USER = 0b000
    USER_LAST = 0b001
    USER_CONGESTED = 0b010
    USER_CONGESTED_LAST = 0b011
    OAM_SEGMENT = 0b100
    OAM_END_TO_END = 0b101
    RM = 0b110
    RESERVED = 0b111


@dataclass(frozen=True)
class Header:
    """A cell header without its HEC. At the NNI ``gfc`` is 0 and ``vpi`` has 12 bits."""

    vpi: int = 0
    vci: int = 0
    pti: int = 0
    clp: int = 0
    gfc: int = 0
    interface: Interface = Interface.UNI

    def __post_init__(self) -> None:
        vpi_bits = 8 if self.interface is Interface.UNI else 12
        gfc_bits = 4 if self.interface is Interface.UNI else 0
        for name, bits in (("gfc", gfc_bits), ("vpi", vpi_bits), ("vci", 16), ("pti", 3), ("clp", 1)):
            value = getattr(self, name)
            if not 0 <= value < 1 << bits:
                raise ValueError(f"{name} must fit {bits} bits at the {self.interface.name}, not {value}")

    def pack(self) -> bytes:
        """The four octets before the HEC."""
        top = self.gfc << 8 | self.vpi if self.interface is Interface.UNI else self.vpi
        return (top << 20 | self.vci << 4 | self.pti << 1 | self.clp).to_bytes(4, "big")

    @classmethod
    def unpack(cls, octets: bytes, interface: Interface = Interface.UNI) -> Header:
        """The header in four octets."""
        if len(octets) != 4:
            raise ValueError(f"a header has 4 octets before its HEC, not {len(octets)}")
        word = int.from_bytes(octets, "big")
        uni = interface is Interface.UNI
        return cls(
            vpi=word >> 20 & (0xFF if uni else 0xFFF),
            vci=word >> 4 & 0xFFFF,
            pti=word >> 1 & 7,
            clp=word & 1,
            gfc=word >> 28 if uni else 0,
            interface=interface,
        )

    def __int__(self) -> int:
        return int.from_bytes(self.pack(), "big")

    @property
    def hec(self) -> int:
        """The HEC octet that follows this header."""
        return hec(self.pack())

    @property
    def user(self) -> bool:
        """A cell of the user's data, not OAM or RM."""
        return self.pti < Pti.OAM_SEGMENT

    @property
    def last(self) -> bool:
        """The last cell of an AAL5 CPCS-PDU."""
        return self.user and bool(self.pti & 1)

    def to(self, vpi: int, vci: int, interface: Interface = Interface.UNI) -> Header:
        """Return this header on another VC, as a switch writes it. GFC is local to one UNI and not carried on."""
        return Header(vpi, vci, self.pti, self.clp, interface=interface)


@dataclass(frozen=True)
class Cell:
    """A header and 48 octets of payload."""

    header: Header
    payload: bytes

    def __post_init__(self) -> None:
        if len(self.payload) != PAYLOAD:
            raise ValueError(f"a cell's payload has {PAYLOAD} octets, not {len(self.payload)}")

    def octets(self) -> bytes:
        """The 53 octets on the line."""
        return self.header.pack() + bytes([self.header.hec]) + self.payload

    @classmethod
    def unpack(cls, octets: bytes, interface: Interface = Interface.UNI) -> Cell:
        """A cell from 53 octets. The HEC is the receiver's business and not looked at here."""
        if len(octets) != PAYLOAD + 5:
            raise ValueError(f"a cell has {PAYLOAD + 5} octets, not {len(octets)}")
        return cls(Header.unpack(octets[:4], interface), octets[5:])
