"""Captures of a run: pcap files of what hosts and lines carry, as Wireshark, tcpdump and scapy read them."""

from __future__ import annotations

import os
import struct
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["KINDS", "CaptureSpec", "cut_to_whole_records"]

KINDS: Final = ("ip", "pdus", "cells")


@dataclass(frozen=True, slots=True)
class CaptureSpec:
    """The kind and place of a capture.

    Members
    -------
    kind : str
        ``"ip"``, ``"pdus"`` or ``"cells"``, as for :meth:`bentpipe_sim.network.Network.capture`.
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


def cut_to_whole_records(path: Path) -> bool:
    """Cut off an incomplete record, as after the process was killed; return False if that leaves no pcap file."""
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
