"""Credit cells and probes, octet by octet, and what the two ends of a line count (docs/traffic-management.md,
Credits)."""

from __future__ import annotations

from dataclasses import dataclass

from models.crc import crc10

__all__ = ["CREDIT", "PROBE", "Message", "Receiver", "Sender", "payload", "read"]

CREDIT, PROBE = 0, 1
PROTOCOL = 0xA2
MODULUS = 1 << 32


@dataclass(frozen=True)
class Message:
    """The count in such a cell: cells freed (credit cell) or sent (probe), modulo 2**32."""

    kind: int
    count: int


def payload(kind: int, count: int) -> bytes:
    """The 48 octets: protocol identifier, message type, two octets of 0, the count (most significant octet first), 38
    octets of 6A hex, six bits of 0 and the CRC-10."""
    octets = bytes([PROTOCOL, kind, 0, 0]) + (count % MODULUS).to_bytes(4, "big") + b"\x6a" * 38
    return octets + crc10(octets + b"\0\0").to_bytes(2, "big")


def read(octets: bytes) -> Message | None:
    """Return the message in a payload; None if it is damaged or of another protocol."""
    if crc10(octets) != int.from_bytes(octets[46:], "big") & 0x3FF:
        return None
    if octets[0] != PROTOCOL or octets[1] > PROBE or octets[2:4] != b"\0\0":
        return None
    return Message(octets[1], int.from_bytes(octets[4:8], "big"))


class Sender:
    """The end of a line that a VC's cells go into.

    Members
    -------
    sent, freed : int
        Modulo 2**32.
    """

    def __init__(self, share: int) -> None:
        self.share, self.sent, self.freed = share, 0, 0

    @property
    def may_send(self) -> bool:
        return (self.sent - self.freed) % MODULUS < self.share

    def told(self, count: int) -> None:
        """A credit cell: believed if the count is between the last one and the cells sent."""
        if (count - self.freed) % MODULUS <= (self.sent - self.freed) % MODULUS:
            self.freed = count % MODULUS


class Receiver:
    """The end of a line with the VC's places."""

    def __init__(self) -> None:
        self.accepted, self.left, self.lost = 0, 0, 0

    def probed(self, sent: int) -> None:
        """A probe: what was sent before it and not accepted is lost."""
        self.lost = (sent - self.accepted) % MODULUS

    @property
    def freed(self) -> int:
        return (self.left + self.lost) % MODULUS
