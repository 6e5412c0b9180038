"""Captures of a run: pcap files of what hosts and lines carry, as Wireshark, tcpdump and scapy read them."""

from __future__ import annotations

import os
import struct
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bentpipe_hdl.words import nearest

if TYPE_CHECKING:
    from bentpipe.experiment.schema import NetworkSpec

__all__ = ["KINDS", "CaptureSpec", "cut_to_whole_records", "parse_capture"]

KINDS: Final = ("ip", "pdus", "cells")
_FORM: Final = "write KIND:PLACE, KIND of ip, pdus, cells, PLACE of HOST, LINE, LINE@SWITCH"


@dataclass(frozen=True, slots=True)
class CaptureSpec:
    """What to capture, and where.

    Members
    -------
    kind : str
        ``"ip"``, ``"pdus"`` or ``"cells"``, as of :meth:`bentpipe_sim.network.Network.capture`.
    host : str
        At this host's interface; ``""`` for a line.
    switch, port : str, int
        At this end of a line.
    file : str
        Name of the file in the run folder.
    """

    kind: str
    host: str
    switch: str
    port: int
    file: str


def parse_capture(text: str, network: NetworkSpec) -> CaptureSpec:
    """``KIND:HOST``, ``KIND:LINE`` (at the line's first end) or ``KIND:LINE@SWITCH``; without ``KIND:`` it is ``ip``.

    Raises
    ------
    ValueError
        There is no such kind, host, line or end.
    """
    kind, place = text.split(":", 1) if ":" in text else ("ip", text)
    if kind not in KINDS:
        raise ValueError(f"{text!r}: a capture is ip, pdus or cells, not {kind!r}{nearest(kind, KINDS)}")
    name, at, switch = place.partition("@")
    file = f"{place.replace('@', '.')}.{kind}.pcap"
    hosts = [host.name for host in network.hosts]
    if name in hosts and not at:
        return CaptureSpec(kind, name, "", 0, file)
    lines = {line.name: line for line in network.lines}
    if name not in lines:
        raise ValueError(f"{text!r}: no host and no line {name!r}{nearest(name, [*hosts, *lines])} ({_FORM})")
    ends = {end.switch: end for end in lines[name].ends}
    if at and switch not in ends:
        raise ValueError(f"{text!r}: line {name} has its ends at {' and '.join(ends)}{nearest(switch, list(ends))}")
    end = ends[switch] if at else lines[name].ends[0]
    return CaptureSpec(kind, "", end.switch, end.port, file)


def cut_to_whole_records(path: Path) -> bool:
    """Cut off what was not written to its end, as when the process was killed; False if that leaves no pcap file."""
    with suppress(FileNotFoundError), path.open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        end = 24
        while end + 16 <= size:
            file.seek(end + 8)
            (length,) = struct.unpack("=I", file.read(4))
            if end + 16 + length > size:
                break
            end += 16 + length
        if end <= size:
            file.truncate(end)
            return True
    return False
