"""Runs behaviour scripts in the manner of packetdrill against one connection, without a network.

A script is a text file. ``#`` starts a comment. The first lines set the connection up::

    config variant=newreno mss=1000 receive_buffer=65535     fields of TcpConfig (mss: of the interface)
    connected win=20000 sack ts=5 wscale=2 mss=1000          or `connect`, `listen` in a timed line

``connected`` opens the connection actively at time 0 with a peer that answers at once with these options;
``accepted`` passively. Then each line is ``TIME COMMAND``, TIME in seconds from the start, or ``+`` and seconds
after the line before:

    1.5 > P. 1:1001(1000) ack 1 win 20000 <sack 1:2>         the connection must send this, now
    1.5 < . 1:1(0) ack 1001 win 20000 <ts 3 2>               the connection receives this
    1.5 write 5000 | read 100 | shutdown | close | abort | connect | listen
    1.5 is state=ESTABLISHED cwnd=2000 retransmits=1         attributes of the connection, or of a part of it, must have
                                                             these values (timers by the name of Timers)

Sequence numbers count from the initial ones. What follows the sequence range is optional, and checked only where
it is given. Whatever the connection sends must be announced: anything else is a failure. BSD's ticks come at
multiples of 0.2 and 0.5 s, before the script's lines of the same instant.
"""

from __future__ import annotations

import re
from operator import attrgetter
from pathlib import Path

from bentpipe.tcp.config import TcpConfig
from bentpipe.tcp.connection import Connection
from bentpipe.tcp.constants import ACK, FIN, MASK32, PSH, RST, STATE_NAMES, SYN
from bentpipe.tcp.segment import Options, Segment

__all__ = ["DrillError", "run_script"]

_US = 1_000_000
_FAST = 200_000 * _US
_SLOW = 500_000 * _US
_FLAGS = (("S", SYN), ("F", FIN), ("R", RST), ("P", PSH), (".", ACK))
_SEGMENT = re.compile(
    r"(?P<flags>[SFRP.]+) (?P<seq>-?\d+):(?P<end>-?\d+)\((?P<length>\d+)\)"
    r"(?: ack (?P<ack>-?\d+))?(?: win (?P<win>\d+))?(?: <(?P<options>[^>]*)>)?$"
)
_PEER_ISS = 0xFFFFF000
"""The peer's sequence numbers wrap early in most scripts."""


class DrillError(AssertionError):
    """A script's expectation wasn't met."""


class _Runner:
    def __init__(self, path: Path, iss: int) -> None:
        self.path = path
        self.iss = iss
        self.now = 0
        self.ticks = 0
        self.next_fast = _FAST
        self.next_slow = _SLOW
        self.sent: list[tuple[int, Segment]] = []
        self.line = 0
        self.settings: dict[str, object] = {}
        self.connection: Connection | None = None

    def fail(self, text: str) -> DrillError:
        return DrillError(f"{self.path.name}:{self.line}: {text}")

    # ---- script ----

    def run(self) -> None:
        for number, raw in enumerate(self.path.read_text(encoding="utf-8").splitlines(), 1):
            self.line = number
            text = raw.split("#")[0].strip()
            if not text:
                continue
            word, _, rest = text.partition(" ")
            if word == "config":
                self.configure(rest)
            elif word in ("connected", "accepted"):
                self.handshake(word == "connected", rest)
            else:
                self.timed(word, rest.strip())
        self.advance(self.now + 1_000 * _US)
        if self.sent:
            raise self.fail(f"unannounced at the end: {self.show(*self.sent[0])}")

    def configure(self, text: str) -> None:
        for item in text.split():
            name, value = item.split("=")
            self.settings[name] = (
                int(value) if value.lstrip("-").isdigit() else value == "yes" if value in ("yes", "no") else value
            )

    def make(self) -> Connection:
        settings = {
            "mss": 1000,
            "round_buffers": False,
            "window_scale": False,
            "receive_buffer": 20000,
            **self.settings,
        }
        config = TcpConfig(**settings)  # type: ignore[arg-type]
        self.connection = Connection(config, config.segment_size(9180), self.iss)
        return self.connection

    def handshake(self, active: bool, text: str) -> None:
        settings: dict[str, str] = {}
        for item in text.split():
            name, _, value = item.partition("=")
            settings[name] = value
        c = self.make()
        c.receiver.auto_read = settings.get("reader", "auto") == "auto"
        options = Options()
        options.mss = int(settings.get("mss", 1000))
        options.sack_permitted = "sack" in settings
        options.window_shift = int(settings.get("wscale", -1))
        if "ts" in settings:
            options.has_timestamp = True
            options.ts_value = int(settings["ts"])
        window = int(settings.get("win", 20000))
        final = Segment(
            (_PEER_ISS + 1) & MASK32, (self.iss + 1) & MASK32, ACK, window >> max(options.window_shift, 0), 0, 0, None
        )
        if active:
            c.open(0)
            syn = c.out.pop()
            assert syn.flags == SYN
            c.receive(Segment(_PEER_ISS, (self.iss + 1) & MASK32, SYN | ACK, min(window, 65535), 0, 0, options), 0)
            assert c.out.pop().flags == ACK
            c.receive(final, 0)  # with the scaled window
        else:
            c.listen()
            c.receive(Segment(_PEER_ISS, 0, SYN, min(window, 65535), 0, 0, options), 0)
            assert c.out.pop().flags == SYN | ACK
            c.receive(final, 0)
        if c.out or STATE_NAMES[c.state] != "ESTABLISHED":
            raise self.fail(f"the handshake failed: {c.out} {STATE_NAMES[c.state]}")

    def timed(self, time: str, text: str) -> None:
        at = round(float(time.lstrip("+")) * 1e6) * _US
        self.advance(self.now + at if time.startswith("+") else at)
        command, _, rest = text.partition(" ")
        rest = rest.strip()
        if command == ">":
            self.expect(rest)
            return
        if self.sent:
            raise self.fail(f"unannounced: {self.show(*self.sent[0])}")
        c = self.connection
        if command == "connect":
            c = c or self.make()
            c.open(self.now)
        elif command == "listen":
            (c or self.make()).listen()
        elif c is None:
            raise self.fail("no connection yet")
        elif command == "<":
            c.receive(self.segment(rest), self.now)
        elif command == "write":
            c.write(int(rest), self.now)
        elif command == "read":
            c.read(int(rest), self.now)
        elif command == "shutdown":
            c.shutdown(self.now)
        elif command == "close":
            c.close(self.now)
        elif command == "abort":
            c.abort(self.now)
        elif command == "is":
            self.compare(c, rest)
        else:
            raise self.fail(f"no such command: {command}")
        self.collect()

    def compare(self, c: Connection, text: str) -> None:
        for item in text.split():
            name, wanted = item.split("=")
            parts = (c, c.sender, c.receiver, c.timers, c.sender.rto, c.sender.growth, c.sender.statistics)
            first = name.split(".")[0]
            part = next((part for part in parts if hasattr(part, first)), c)
            value = STATE_NAMES[c.state] if name == "state" else attrgetter(name)(part)
            if str(value).replace(" ", "_") != wanted:
                raise self.fail(f"{name} is {value}, not {wanted}")

    # ---- time ----

    def advance(self, until: int) -> None:
        if until < self.now:
            raise self.fail("time runs backwards")
        c = self.connection
        while True:
            ideal = c is not None and c.ideal
            exact = c.next_timer() if c is not None else 0
            due = exact if ideal else min(self.next_fast, self.next_slow, exact or self.next_fast)
            if not due or due > until:
                break
            self.now = due = max(due, self.now)
            if c is not None and exact and exact <= due:
                c.expire(due)
            else:
                if due == self.next_fast:
                    self.next_fast += _FAST
                    if c is not None:
                        c.fast_tick(due)
                if due == self.next_slow:
                    self.next_slow += _SLOW
                    self.ticks += 1
                    if c is not None:
                        c.slow_tick(self.ticks, due)
            self.collect()
        self.now = until

    def collect(self) -> None:
        if self.connection is not None:
            self.sent += [(self.now, segment) for segment in self.connection.out]
            self.connection.out.clear()

    # ---- segments ----

    def segment(self, text: str) -> Segment:
        match = _SEGMENT.match(text)
        if not match:
            raise self.fail(f"not a segment: {text}")
        flags = sum(bit for name, bit in _FLAGS if name in match["flags"])
        options = None
        if match["options"] is not None:
            options = Options()
            for item in filter(None, match["options"].split(",")):
                kind, *values = item.split()
                if kind == "mss":
                    options.mss = int(values[0])
                elif kind == "wscale":
                    options.window_shift = int(values[0])
                elif kind == "sackOK":
                    options.sack_permitted = True
                elif kind == "ts":
                    options.has_timestamp = True
                    options.ts_value, options.ts_echo = int(values[0]), int(values[1])
                elif kind == "sack":
                    for value in values:
                        left, right = value.split(":")
                        options.blocks.append(((self.iss + int(left)) & MASK32, (self.iss + int(right)) & MASK32))
                else:
                    raise self.fail(f"no such option: {kind}")
        seq = (_PEER_ISS + int(match["seq"])) & MASK32
        ack = (self.iss + int(match["ack"])) & MASK32 if match["ack"] else 0
        return Segment(seq, ack, flags, int(match["win"] or 0), int(match["length"]), 0, options)

    def expect(self, text: str) -> None:
        match = _SEGMENT.match(text)
        if not match:
            raise self.fail(f"not a segment: {text}")
        if not self.sent:
            raise self.fail(f"nothing sent by {self.now / 1e12:.6f} s; expected {text}")
        time, segment = self.sent.pop(0)
        shown = self.show(time, segment)
        flags, sequence, *_ = shown.split(" ", 1)[1].split(" ")
        wanted = f"{match['seq']}:{match['end']}({match['length']})"
        good = (
            time == self.now
            and flags == match["flags"]
            and sequence == wanted
            and (match["ack"] is None or f" ack {match['ack']} " in shown)
            and (match["win"] is None or f" win {match['win']} " in shown)
            and (match["options"] is None or f"<{match['options']}>" in shown)
        )
        if not good:
            raise self.fail(f"expected at {self.now / 1e12:.6f} {text}, sent {shown}")

    def show(self, time: int, segment: Segment) -> str:
        flags = "".join(name for name, bit in _FLAGS if segment.flags & bit)
        seq = (segment.seq - self.iss) & MASK32
        if seq >= 1 << 31:
            seq -= 1 << 32
        ack = (segment.ack - _PEER_ISS) & MASK32 if segment.flags & ACK else 0
        items = []
        options = segment.options
        if options is not None:
            if options.mss:
                items.append(f"mss {options.mss}")
            if options.window_shift >= 0:
                items.append(f"wscale {options.window_shift}")
            if options.sack_permitted:
                items.append("sackOK")
            if options.has_timestamp:
                items.append(f"ts {options.ts_value} {options.ts_echo}")
            if options.blocks:
                blocks = (f"{(a - _PEER_ISS) & MASK32}:{(b - _PEER_ISS) & MASK32}" for a, b in options.blocks)
                items.append("sack " + " ".join(blocks))
        extra = bool(segment.flags & (SYN | FIN))
        return (
            f"{time / 1e12:.6f} {flags} {seq}:{seq + segment.length + extra}({segment.length}) "
            f"ack {ack} win {segment.window} <{','.join(items)}>"
        )


def run_script(path: Path, iss: int = 0) -> None:
    """Run a script; DrillError names the file and the line."""
    _Runner(path, iss).run()
