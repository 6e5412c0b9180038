"""The words of NetSpec: blocks, parameters, tests with their arguments. The reader and its manual use these tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from bentpipe.apps import settings as apps
from bentpipe.apps.registry import APPLICATIONS, COMMON
from bentpipe.apps.settings import ApplicationSpec, AppSetting

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
    "add_tests",
]


@dataclass(frozen=True, slots=True)
class Word:
    """A word and what it means; ``also`` are other spellings of it."""

    name: str
    text: str
    also: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Argument:
    """A parameter or an argument of NetSpec, with its kind of value.

    Members
    -------
    kind : str
        ``host``, ``size``, ``time``, ``choice``, ``protocol``, ``test``; ``setting`` is a setting of an application.
    unit : str
        Unit of a number without one.
    setting : AppSetting or None
        Setting whose value it gives.
    """

    name: str
    kind: str
    text: str
    unit: str = ""
    also: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    required: bool = False
    setting: AppSetting | None = None


@dataclass(frozen=True, slots=True)
class Test:
    """A kind of traffic, and the application that makes it (None: nothing is sent)."""

    name: str
    text: str
    arguments: tuple[Argument, ...]
    kind: ApplicationSpec | None = None
    test: apps.Test | None = None


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
"""Arguments of a connection. In a block they apply to all its connections that do not give their own; ``delay`` is the
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


def _argument(setting: AppSetting) -> Argument:
    """Return an argument of a test, which becomes a setting of an application."""
    name, *also = setting.words()
    return Argument(
        name, "setting", setting.text, setting.unit, tuple(also), setting.choices, setting.required, setting
    )


def _test(kind: ApplicationSpec, test: apps.Test) -> Test:
    own = kind.settings if test.arguments is None else test.arguments
    common = [setting for setting in COMMON if setting.name in kind.takes]
    taken = tuple(_argument(setting) for setting in (*own, *common) if setting.name not in test.fixed)
    return Test(test.name, test.text, taken, kind, test)


TESTS: Final[list[Test]] = [
    *(_test(kind, test) for kind in APPLICATIONS.values() for test in kind.tests),
    Test(
        "sink",
        "reads what comes (in a `test` block only)",
        (
            Argument("blocksize", "size", "no effect", also=("messagesize",)),
            Argument("duration", "time", "as the parameter", "s"),
        ),
    ),
]
"""All kinds of traffic: those of the applications, and the sink."""


def add_tests(kind: ApplicationSpec) -> None:
    """Add the tests of an application from outside of bentpipe."""
    TESTS.extend(_test(kind, test) for test in kind.tests)
