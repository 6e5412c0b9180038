"""A TCP segment, with its payload as (stream offset, length)."""

from __future__ import annotations

from typing import Final, final

from bentpipe.tcp.constants import ACK, FIN, PSH, RST, SYN

__all__ = ["Options", "Segment"]


@final
class Options:
    """TCP options of one segment.

    Members
    -------
    mss : int
        Maximum segment size, 0 if absent.
    window_shift : int
        Window scale (RFC 1323), -1 if absent.
    sack_permitted : bool
    has_timestamp : bool
    ts_value, ts_echo : int
    blocks : list of (int, int)
        SACK blocks (RFC 2018), sequence numbers as on the wire, in the order of the option.
    """

    __slots__ = ("blocks", "has_timestamp", "mss", "sack_permitted", "ts_echo", "ts_value", "window_shift")

    def __init__(self) -> None:
        self.mss: int = 0
        self.window_shift: int = -1
        self.sack_permitted: bool = False
        self.has_timestamp: bool = False
        self.ts_value: int = 0
        self.ts_echo: int = 0
        self.blocks: list[tuple[int, int]] = []


@final
class Segment:
    """One segment. ``seq``, ``ack`` and ``window`` are as on the wire (32, 32 and 16 bits).

    ``offset`` is the stream offset of the first payload octet: the sender fills it in, the receiving
    connection works it out from ``seq``; it is negative for octets before the stream (probes).
    """

    __slots__ = ("ack", "flags", "length", "offset", "options", "seq", "window")

    def __init__(
        self,
        seq: int,
        ack: int,
        flags: int,
        window: int,
        length: int,
        offset: int,
        options: Options | None,
    ) -> None:
        self.seq = seq
        self.ack = ack
        self.flags = flags
        self.window = window
        self.length = length
        self.offset = offset
        self.options = options

    def __repr__(self) -> str:
        names = "".join(name for bit, name in _FLAG_NAMES if self.flags & bit)
        return f"<Segment {names or '-'} seq={self.seq} len={self.length} ack={self.ack} win={self.window}>"


_FLAG_NAMES: Final = ((SYN, "S"), (FIN, "F"), (RST, "R"), (PSH, "P"), (ACK, "."))
