"""Flags, states and limits of TCP as plain integers, so that compiled code compares machine words."""

from __future__ import annotations

from typing import Final

FIN: Final = 0x01
SYN: Final = 0x02
RST: Final = 0x04
PSH: Final = 0x08
ACK: Final = 0x10
URG: Final = 0x20

CLOSED: Final = 0
LISTEN: Final = 1
SYN_SENT: Final = 2
SYN_RECEIVED: Final = 3
ESTABLISHED: Final = 4
CLOSE_WAIT: Final = 5
FIN_WAIT_1: Final = 6
CLOSING: Final = 7
LAST_ACK: Final = 8
FIN_WAIT_2: Final = 9
TIME_WAIT: Final = 10

STATE_NAMES: Final = (
    "CLOSED",
    "LISTEN",
    "SYN_SENT",
    "SYN_RECEIVED",
    "ESTABLISHED",
    "CLOSE_WAIT",
    "FIN_WAIT_1",
    "CLOSING",
    "LAST_ACK",
    "FIN_WAIT_2",
    "TIME_WAIT",
)

MASK32: Final = 0xFFFFFFFF
MAX_WINDOW: Final = 65535
"""Largest value of the window field (TCP_MAXWIN)."""
MAX_WINDOW_SHIFT: Final = 14
"""Largest shift of RFC 1323 (TCP_MAX_WINSHIFT)."""
DUPACK_THRESHOLD: Final = 3
"""Duplicate ACKs that start a fast retransmission (tcprexmtthresh)."""
MAX_RETRANSMIT_SHIFT: Final = 12
"""Time-outs in a row before the connection is dropped (TCP_MAXRXTSHIFT)."""
PS_PER_S: Final = 1_000_000_000_000
FAST_TICK_PS: Final = 200_000_000_000
"""Period of BSD's fast timer, which sends the delayed ACKs (PR_FASTHZ = 5)."""
SLOW_TICK_PS: Final = 500_000_000_000
"""Period of BSD's slow timer, in whose ticks every other timer counts (PR_SLOWHZ = 2)."""
