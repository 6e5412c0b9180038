"""Files of packets and of video frames: when, how long, and of packets on which VC."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from struct import error as struct_error
from struct import unpack_from
from typing import Final, final

__all__ = ["FRAME_FORMATS", "Packet", "digest", "find", "frames", "packets", "problem_of"]

_PS_PER_S: Final = 10**12

FRAME_FORMATS: Final[dict[str, tuple[int, int, int]]] = {
    "octets": (0, 1, 1),
    "bits": (0, 1, 8),
    "verbose": (3, 4, 1),
    "evalvid": (2, 5, 1),
}
"""Formats of video traces: the column of the size, columns at least, what the size is divided by."""

_PCAP: Final = {
    b"\xa1\xb2\xc3\xd4": (">", 10**6),
    b"\xd4\xc3\xb2\xa1": ("<", 10**6),
    b"\xa1\xb2\x3c\x4d": (">", 10**3),
    b"\x4d\x3c\xb2\xa1": ("<", 10**3),
}
"""Byte order, and unit of time in ps, by the first octets of a file."""
_PCAPNG: Final = b"\x0a\x0d\x0d\x0a"
_HEADERS: Final = {1: 14, 100: 8, 101: 0, 113: 16, 123: 4, 228: 0, 229: 0}
"""Octets before the IP packet by link type: Ethernet, RFC 1483 with LLC/SNAP, IP, Linux "any", SunATM, IPv4, IPv6."""
_SUNATM: Final = 123
_SUNATM_LLC: Final = 2


@final
@dataclass(frozen=True)
class Packet:
    """One packet: its time (ps), its octets, and its VC ("": not known)."""

    time_ps: int
    octets: int
    vc: str


def find(name: str, folder: Path | None) -> Path:
    """Return the path of a file; it is relative to the experiment's folder."""
    return Path(name) if folder is None else folder / name


def problem_of(name: str, folder: Path | None, read: Callable[[Path], object]) -> tuple[str, str] | None:
    """Return the fault of the file of a setting ``file``: it cannot be read, or ``read`` refuses its contents."""
    try:
        read(find(name, folder))
    except ValueError as error:
        return "file", str(error)
    except OSError as error:
        return "file", f"{name}: {error.strerror or error}"
    return None


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def packets(path: Path, vc: str) -> list[Packet]:
    """Return the packets of a CSV file with columns ``time`` (s), ``size`` and optionally ``vc``, or of a capture.

    A capture is a pcap or pcapng file. Times count from the first packet of any VC; the packets are in order of time.

    Parameters
    ----------
    vc : str
        Only packets of this VC; "": all.

    Raises
    ------
    ValueError
        The file is invalid; the text names the line or the fault.
    OSError
    """
    content = path.read_bytes()
    if content[:4] in _PCAP:
        found = _pcap(content, path.name)
    elif content[:4] == _PCAPNG:
        found = _pcapng(content, path.name)
    else:
        found = _csv(content, path.name)
    if not found:
        raise ValueError(f"{path.name}: has no packet")
    begin = min(packet.time_ps for packet in found)
    own = [packet for packet in found if not vc or packet.vc == vc]
    if not own:
        known = sorted({packet.vc for packet in found if packet.vc})
        what = f"; it has {', '.join(known[:8])}" if known else "; it names no VCs"
        raise ValueError(f"{path.name}: has no packet of VC {vc!r}{what}")
    moved = [Packet(packet.time_ps - begin, packet.octets, packet.vc) for packet in own]
    return sorted(moved, key=lambda packet: packet.time_ps)


def _text(content: bytes, name: str) -> list[str]:
    try:
        return content.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise ValueError(f"{name}: neither a capture (pcap, pcapng) nor UTF-8 text") from None


def _csv(content: bytes, name: str) -> list[Packet]:
    lines = _text(content, name)
    head = [word.strip().lower() for word in lines[0].split(",")] if lines else []
    if "time" not in head or "size" not in head:
        raise ValueError(f"{name}:1: expected a line with the columns 'time', 'size' and maybe 'vc'")
    time, size, vc = head.index("time"), head.index("size"), head.index("vc") if "vc" in head else -1
    found = []
    for number, line in enumerate(lines[1:], 2):
        words = [word.strip() for word in line.split(",")]
        if words == [""]:
            continue
        if len(words) != len(head):
            raise ValueError(f"{name}:{number}: has {len(words)} columns, and the first line {len(head)}")
        time_ps = _number(words[time], f"{name}:{number}: time", 10**5) * _PS_PER_S
        octets = _number(words[size], f"{name}:{number}: size", 65535)
        found.append(Packet(round(time_ps), int(octets), words[vc] if vc >= 0 else ""))
    return found


def _number(text: str, place: str, most: float) -> float:
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{place}: {text!r} is no number") from None
    if not 0.0 <= value <= most:
        raise ValueError(f"{place}: {text} is out of range 0..{most:g}")
    return value


def _packet(link: int, time_ps: int, octets: int, data: bytes, name: str) -> Packet:
    """Return a packet of a capture, without what is before its IP header."""
    if link not in _HEADERS:
        known = ", ".join(str(each) for each in _HEADERS)
        raise ValueError(f"{name}: link type {link} is not among those that can be read: {known}")
    header, vc = _HEADERS[link], ""
    if link == _SUNATM and len(data) >= 4:
        vc = f"{data[1]}/{data[2] * 256 + data[3]}"
        header += 8 if data[0] & 15 == _SUNATM_LLC else 0
    return Packet(time_ps, max(0, octets - header), vc)


def _pcap(content: bytes, name: str) -> list[Packet]:
    order, unit = _PCAP[content[:4]]
    if len(content) < 24:
        raise ValueError(f"{name}: ends within its header")
    (link,) = unpack_from(f"{order}I", content, 20)
    found, at = [], 24
    while at < len(content):
        if at + 16 > len(content):
            raise ValueError(f"{name}: ends within a packet, at octet {at}")
        seconds, part, kept, octets = unpack_from(f"{order}IIII", content, at)
        if at + 16 + kept > len(content):
            raise ValueError(f"{name}: ends within a packet, at octet {at}")
        data = content[at + 16 : at + 16 + min(kept, 4)]
        found.append(_packet(link & 0xFFFF, seconds * _PS_PER_S + part * unit, octets, data, name))
        at += 16 + kept
    return found


def _pcapng(content: bytes, name: str) -> list[Packet]:
    found: list[Packet] = []
    faces: list[tuple[int, int]] = []  # of each interface its link type, and units of time a second
    order, at = "<", 0
    while at < len(content):
        try:
            if content[at : at + 4] == _PCAPNG:
                order = "<" if content[at + 8 : at + 12] == b"\x4d\x3c\x2b\x1a" else ">"
                faces = []
            kind, length = unpack_from(f"{order}II", content, at)
            if length < 12 or length % 4 or at + length > len(content):
                raise ValueError(f"{name}: ends within a block, or has a wrong length, at octet {at}")
            if kind == 1:
                (link,) = unpack_from(f"{order}H", content, at + 8)
                faces.append((link, _resolution(content[at + 16 : at + length - 4], order)))
            elif kind == 6:
                face, high, low, _, octets = unpack_from(f"{order}IIIII", content, at + 8)
                if face >= len(faces):
                    raise ValueError(f"{name}: a packet at octet {at} is of an interface that is not there")
                link, units = faces[face]
                time_ps = ((high << 32) + low) * _PS_PER_S // units
                found.append(_packet(link, time_ps, octets, content[at + 28 : at + 32], name))
        except struct_error:
            raise ValueError(f"{name}: ends within a block, at octet {at}") from None
        at += length
    return found


def _resolution(options: bytes, order: str) -> int:
    """Return the units of time a second, by option 9 of an interface."""
    at = 0
    while at + 4 <= len(options):
        kind, length = unpack_from(f"{order}HH", options, at)
        if kind == 0:
            break
        if kind == 9 and length == 1 and at + 4 < len(options):
            power = options[at + 4]
            return 1 << (power & 127) if power & 128 else 10 ** min(power, 30)
        at += 4 + length + -length % 4
    return 10**6


def frames(path: Path, form: str) -> list[int]:
    """Return the octets of a video's frames, in the file's order; `#` begins a comment. Errors are as for
    :func:`packets`."""
    column, columns, divided = FRAME_FORMATS[form]
    found = []
    for number, line in enumerate(_text(path.read_bytes(), path.name), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        if len(words) < columns:
            raise ValueError(f"{path.name}:{number}: has {len(words)} columns, and format {form!r} {columns} at least")
        found.append(int(_number(words[column], f"{path.name}:{number}: size", 1e9)) // divided)
    if not any(found):
        raise ValueError(f"{path.name}: has no frame with an octet")
    return found
