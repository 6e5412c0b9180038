"""The captures of a run: ``KIND:PLACE`` of ``record.pcap`` and ``--pcap``."""

from __future__ import annotations

from typing import Final

from bentpipe.captures import KINDS, CaptureSpec
from bentpipe.experiment.resolve.specs import NetworkSpec
from bentpipe_hdl.words import nearest

__all__ = ["parse_capture"]

_FORM: Final = "write KIND:PLACE, KIND of ip, pdus, cells, PLACE of HOST, LINE, LINE@SWITCH"


def parse_capture(text: str, network: NetworkSpec) -> CaptureSpec:
    """Parse ``KIND:HOST``, ``KIND:LINE`` (at the line's first end) or ``KIND:LINE@SWITCH``; without ``KIND:`` it is
    ``ip``.

    Raises
    ------
    ValueError
        There is no such kind, host, line or end.
    """
    kind, place = text.split(":", 1) if ":" in text else ("ip", text)
    if kind not in KINDS:
        raise ValueError(f"{text!r}: a capture kind is ip, pdus or cells, not {kind!r}{nearest(kind, KINDS)}")
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
