"""OAM cells of fault management, as I.610 clause 10 lays them out; written as a table of fields, bit by bit."""

from __future__ import annotations

from models.crc import crc10

__all__ = ["FIELDS", "fields", "octets"]

_CONTENT = {
    "ais": [("defect_type", 8), ("defect_location", 128), ("unused", 224)],
    "rdi": [("defect_type", 8), ("defect_location", 128), ("unused", 224)],
    "cc": [("unused", 360)],
    "loopback": [
        ("zero", 7), ("indication", 1), ("tag", 32), ("location", 128), ("source", 128), ("unused", 64),
    ],
}  # fmt: skip

_FUNCTIONS = {"ais": 0b0000, "rdi": 0b0001, "cc": 0b0100, "loopback": 0b1000}

FIELDS = {
    name: [("oam_type", 4), ("function", 4), *message, ("reserved", 6), ("crc", 10)]
    for name, message in _CONTENT.items()
}
"""For each function: its fields with their bits, in the order of transmission."""

_DEFAULTS = {
    "oam_type": 0b0001, "zero": 0, "reserved": 0, "defect_type": 0x6A, "indication": 1, "tag": 0,
    "location": (1 << 128) - 1, "source": (1 << 128) - 1,
}  # fmt: skip


def octets(name: str, **given: int) -> bytes:
    """A payload with this function; fields that aren't given have what is the default, the CRC is right."""
    number = 0
    for field, bits in FIELDS[name]:
        default = _DEFAULTS.get(field, int("6a" * (bits // 8) or "0", 16))
        if field == "function":
            default = _FUNCTIONS[name]
        if field == "crc":
            default = crc10((number << 10).to_bytes(48, "big"))
        number = number << bits | given.get(field, default)
    return number.to_bytes(48, "big")


def fields(payload: bytes) -> tuple[str, dict[str, int]] | None:
    """The function and all fields of a payload; None if it is damaged or says nothing that is known."""
    if crc10(payload) != int.from_bytes(payload[46:], "big") & 0x3FF:
        return None
    for name, function in _FUNCTIONS.items():
        if payload[0] == 0b0001 << 4 | function:
            found, bits = {}, "".join(f"{octet:08b}" for octet in payload)
            for field, width in FIELDS[name]:
                found[field], bits = int(bits[:width], 2), bits[width:]
            return name, found
    return None
