"""The words of NetSpec: blocks, parameters, tests with their arguments. The reader and its manual use these tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = [
    "BLOCKS",
    "CONNECTIONS",
    "HOST_ARGUMENTS",
    "PARAMETERS",
    "PROTOCOLS",
    "TESTS",
    "Argument",
    "Test",
    "Word",
]


@dataclass(frozen=True, slots=True)
class Word:
    """A word and what it means; ``also`` are other spellings of it."""

    name: str
    text: str
    also: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Argument:
    """What a parameter or an argument takes.

    Members
    -------
    kind : str
        ``host``, ``size``, ``blocks`` (a size, size:count, or bounds of sizes), ``time``, ``times`` (a time, or
        bounds), ``rate``, ``count``, ``choice``, ``protocol``, ``test``.
    unit : str
        Of a number without one.
    """

    name: str
    kind: str
    text: str
    unit: str = ""
    also: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    required: bool = False


@dataclass(frozen=True, slots=True)
class Test:
    """A kind of traffic."""

    name: str
    text: str
    arguments: tuple[Argument, ...]


BLOCKS: Final = (
    Word("parallel", "everything in it starts together; it ends when the last has ended", ("experiment", "cluster")),
    Word("serial", "each starts when the one before has ended"),
)
CONNECTIONS: Final = (
    Word("connection", "one flow from the transmitting to the receiving host"),
    Word("test", "one end of a flow: its source or, with `type = sink`, its sink; without a sink the peer just reads"),
)

PARAMETERS: Final = (
    Argument("transmit", "host", "the host that sends, perhaps with `(xmtbuf = SIZE)`", also=("own", "xmt")),
    Argument("receive", "host", "the host that receives, perhaps with `(rcvbuf = SIZE)`", also=("peer", "rcv")),
    Argument("control", "host", "the controller's host; takes no part in the simulation"),
    Argument("xmtcntl", "host", "where the sender is controlled; takes no part in the simulation"),
    Argument("rcvcntl", "host", "where the receiver is controlled; takes no part in the simulation"),
    Argument("report", "host", "the host that reports; takes no part in the simulation", also=("rep",)),
    Argument("protocol", "protocol", "`tcp` (unless given) or `udp`, with arguments if need be"),
    Argument("xmtbuf", "size", "send buffer of the transmitting host's socket"),
    Argument("rcvbuf", "size", "receive buffer of the receiving host's socket"),
    Argument("window", "size", "both buffers"),
    Argument("test", "test", "the traffic; `full` unless given", also=("type",)),
    Argument("size", "size", "how much to send"),
    Argument("delay", "time", "how long to wait before the start", "s"),
    Argument("duration", "time", "when the source stops writing, counted from the connection", "s"),
)
"""Of a connection. In a block they hold for all connections in it that don't give their own; ``delay`` is the
block's."""

PROTOCOLS: Final = {
    "tcp": (
        Argument("window", "size", "both socket buffers"),
        Argument("xmtbuf", "size", "send buffer"),
        Argument("rcvbuf", "size", "receive buffer"),
        Argument(
            "variant",
            "choice",
            "congestion control; that of `[hosts.tcp]` unless given",
            choices=("tahoe", "reno", "newreno", "sack"),
        ),
    ),
    "udp": (
        Argument("datagram", "size", "octets of payload a datagram, at most; as many as fit the MTU unless given"),
    ),
}

HOST_ARGUMENTS: Final = {
    "transmit": (Argument("xmtbuf", "size", "send buffer"),),
    "receive": (Argument("rcvbuf", "size", "receive buffer"),),
}
"""What a host may have in parentheses."""

_SIZE: Final = Argument("size", "size", "how much to send")
_DURATION: Final = Argument("duration", "time", "as the parameter", "s")
_LATE: Final = Argument(
    "late", "choice", "blocks due while the socket is full: written in turn, or left out", choices=("queue", "skip")
)


def _blocks(text: str, kind: str = "blocks") -> Argument:
    return Argument("blocksize", kind, text, also=("messagesize",), required=True)


TESTS: Final = (
    Test(
        "full",
        "as fast as the socket takes it",
        (
            Argument("blocksize", "size", "octets a write: 65536, over UDP a datagram of 8192", also=("messagesize",)),
            _SIZE,
            _DURATION,
        ),
    ),
    Test(
        "cbr",
        "a block at fixed times; with bounds, random sizes or random times",
        (
            _blocks("octets a block; `SIZE:COUNT`: so many at once; `LOW..HIGH` or `uniform(min = LOW, max = HIGH)`"),
            Argument("period", "times", "from block to block; bounds likewise", "us", required=True),
            Argument("repeats", "count", "how many periods"),
            _LATE,
            _SIZE,
            _DURATION,
        ),
    ),
    Test(
        "random",
        "`cbr` by the name that fits bounds",
        (
            _blocks("as with `cbr`"),
            Argument("period", "times", "as with `cbr`", "us", also=("gap",), required=True),
            Argument("repeats", "count", "how many blocks"),
            _LATE,
            _SIZE,
            _DURATION,
        ),
    ),
    Test(
        "burst",
        "`cbr` that leaves late blocks out",
        (
            _blocks("as with `cbr`"),
            Argument("period", "times", "as with `cbr`", "us", required=True),
            Argument("repeats", "count", "how many periods"),
            _SIZE,
            _DURATION,
        ),
    ),
    Test(
        "burstq",
        "`cbr` that queues late blocks",
        (
            _blocks("as with `cbr`"),
            Argument("period", "times", "as with `cbr`", "us", required=True),
            Argument("repeats", "count", "how many periods"),
            _SIZE,
            _DURATION,
        ),
    ),
    Test(
        "onoff",
        "blocks at a rate while on, nothing while off",
        (
            _blocks("octets a block", "size"),
            Argument("rate", "rate", "while on", "b/s", required=True),
            Argument("on", "time", "how long on", "s", required=True),
            Argument("off", "time", "how long off", "s", required=True),
            Argument(
                "times",
                "choice",
                "how these are chosen: in the mean so long, or fixed",
                choices=("exponential", "fixed"),
            ),
            _LATE,
            _SIZE,
            _DURATION,
        ),
    ),
    Test(
        "ftp",
        "a file, by FTP; `size` is the file's",
        (
            Argument("mode", "choice", "the receiver fetches, or the transmitter stores", choices=("get", "put")),
            Argument("blocksize", "size", "octets read or written at once: 8192", also=("messagesize",)),
            Argument("diskread", "rate", "of the transmitting host's disk; no limit unless given", "b/s"),
            Argument("diskwrite", "rate", "of the receiving host's disk", "b/s"),
            _SIZE,
        ),
    ),
    Test(
        "sink",
        "reads what comes (in a `test` block only)",
        (Argument("blocksize", "size", "no effect", also=("messagesize",)), _DURATION),
    ),
)
