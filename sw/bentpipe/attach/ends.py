"""The ends at which hosts are attached: ``--a`` and ``--b``, read, opened, and removed when they are closed."""

from __future__ import annotations

import ipaddress
import os
import re
import socket
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any, Final

from bentpipe.attach import kernel
from bentpipe.errors import BentpipeError
from bentpipe_hdl.words import nearest
from bentpipe_sim.attached import Carries, Transport

__all__ = ["ETHERNET", "KINDS", "End", "Opened", "parse_end"]

ETHERNET: Final = 18
"""Octets of a frame beside the IP packet, at most: two addresses, a VLAN's tag, the type."""

_MOST_VID: Final = 4094
"""The VID 4095 is reserved (802.1Q table 9-2)."""

Addresses = Sequence[ipaddress.IPv4Interface | ipaddress.IPv6Interface]
"""Addresses of an end: IPv4, and IPv6 if wanted."""

_INTERFACE: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,14}")


@dataclass(frozen=True)
class Opened:
    """An end that is there.

    Members
    -------
    fd : int
    transport : Transport
    where : str
        For people.
    addresses : tuple of str
        Its IP addresses with the prefix, IPv4 first; empty: it has none from here.
    """

    fd: int
    transport: Transport
    where: str
    addresses: tuple[str, ...] = ()

    def row(self) -> dict[str, Any]:
        """Return the end as results and JSON lines have it."""
        return {"where": self.where, "address": self.address, "addresses": [*self.addresses]}

    @property
    def address(self) -> str:
        """Return the first of them; ``""``: there is none."""
        return self.addresses[0] if self.addresses else ""


@dataclass(frozen=True)
class End:
    """An end as an option names it.

    Members
    -------
    kind : str
        One of :data:`KINDS`.
    text : str
        The text after the colon, up to the first comma.
    vlans : tuple of (int, str)
        VLANs, each with the name of a VC from or to this end, or of another attached host; 0: frames without a tag.
        Empty: tags are not looked at.
    """

    kind: str
    text: str
    vlans: tuple[tuple[int, str], ...] = ()

    @property
    def carries(self) -> Carries:
        return KINDS[self.kind].carries

    def open(self, stack: ExitStack, mtu: int, addresses: Addresses) -> Opened:
        """Make it; ``stack`` closes it.

        Raises
        ------
        BentpipeError
            It cannot be: one line that says why.
        """
        return KINDS[self.kind].open(self.text, stack, mtu, addresses)

    def __str__(self) -> str:
        return ",".join([f"{self.kind}:{self.text}", *(f"{vid}={name}" for vid, name in self.vlans)])


def parse_end(text: str, option: str) -> End:
    """Return the end that an option names as ``KIND:TEXT`` or ``KIND:TEXT,VLAN=NAME,…``.

    Raises
    ------
    BentpipeError
    """
    whole, *tags = text.split(",")
    kind, colon, rest = whole.partition(":")
    if not colon or not rest:
        raise BentpipeError(f"{option} {text}: expected {', '.join(f'{name}:{k.form}' for name, k in KINDS.items())}")
    if kind not in KINDS:
        raise BentpipeError(f"{option} {text}: there is no end {kind!r}{nearest(kind, KINDS)}; {', '.join(KINDS)}")
    if KINDS[kind].form == "NAME" and not _INTERFACE.fullmatch(rest):
        raise BentpipeError(f"{option} {text}: a name has 1 to 15 letters, digits, '-', '_' and '.'")
    if tags and KINDS[kind].carries is not Carries.FRAMES:
        raise BentpipeError(f"{option} {text}: an end {kind!r} carries no Ethernet frames, so it has no VLANs")
    return End(kind, rest, tuple(_vlan(tag, f"{option} {text}") for tag in tags))


def _vlan(text: str, where: str) -> tuple[int, str]:
    vid, equals, name = text.partition("=")
    if not equals or not name or not re.fullmatch("[0-9]{1,4}", vid) or int(vid) > _MOST_VID:
        raise BentpipeError(
            f"{where}: {text!r}: expected VLAN=NAME: a VID of 1 to {_MOST_VID}, 0 for frames without a tag; "
            "and a VC or another attached host"
        )
    return int(vid), name


def _namespace(name: str, stack: ExitStack, mtu: int, addresses: Addresses) -> Opened:
    """Return a network namespace with an interface eth0; its other end is in a namespace without a name."""
    if (kernel.NAMESPACES / name).exists():
        raise BentpipeError(f"the network namespace {name} already exists; give another name, or: ip netns del {name}")
    try:
        kernel.ip("netns", "add", name)
    except BentpipeError as error:
        raise BentpipeError(f"network namespace {name}: {error}; run it as root, or use `bentpipe shell`") from None
    stack.callback(_quietly, kernel.ip, "netns", "del", name)
    with kernel.fresh_namespace():
        kernel.ip("link", "add", "end", "type", "veth", "peer", "name", "eth0", "netns", name)
        kernel.ip("link", "set", "end", "mtu", str(mtu), "addrgenmode", "none")
        kernel.offloads_off("end")
        kernel.ip("link", "set", "end", "up")
        made = stack.enter_context(kernel.packet_socket("end", promiscuous=True))
    with kernel.inside(name):
        kernel.offloads_off("eth0")
        kernel.ip("link", "set", "lo", "up")
        kernel.ip("link", "set", "eth0", "mtu", str(mtu))
        for address in addresses:
            more = ["nodad"] if address.version == 6 else []
            kernel.ip("address", "add", str(address), "dev", "eth0", *more)
        kernel.ip("link", "set", "eth0", "up")
    return Opened(made.fileno(), Transport.PACKET_SOCKET, f"network namespace {name}", tuple(map(str, addresses)))


def _quietly(call: Callable[..., object], *arguments: str) -> None:
    """Call a function and ignore its BentpipeError, as what it removes may be gone already."""
    with suppress(BentpipeError):
        call(*arguments)


def _device(tap: bool) -> Callable[[str, ExitStack, int, Addresses], Opened]:
    def opened(name: str, stack: ExitStack, mtu: int, _addresses: Addresses) -> Opened:
        device = kernel.open_device(name, tap)
        stack.callback(os.close, device)
        kernel.ip("link", "set", name, "mtu", str(mtu), "up")
        return Opened(device, Transport.DEVICE, f"{'TAP' if tap else 'TUN'} device {name}")

    return opened


def _interface(name: str, stack: ExitStack, _mtu: int, _addresses: Addresses) -> Opened:
    made = stack.enter_context(kernel.packet_socket(name, promiscuous=True))
    stack.callback(kernel.offloads_on, name, kernel.offloads_off(name))
    return Opened(made.fileno(), Transport.PACKET_SOCKET, f"interface {name}")


def _datagrams(text: str, stack: ExitStack, _mtu: int, _addresses: Addresses) -> Opened:
    """Open a UDP socket named as ``LOCAL-REMOTE``, each ``[HOST:]PORT``; without a host it is the loopback's."""
    local, dash, remote = text.rpartition("-")
    if not dash:
        raise BentpipeError(f"{text}: expected LOCAL-REMOTE, each [HOST:]PORT, as 10000-10001")
    ours, theirs = _port(local), _port(remote)
    made = kernel.stamped(stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)))
    try:
        made.bind(ours)
        made.connect(theirs)
    except OSError as error:
        raise BentpipeError(f"UDP port {ours[0]}:{ours[1]} to {theirs[0]}:{theirs[1]}: {error.strerror}") from None
    return Opened(made.fileno(), Transport.DATAGRAMS, f"UDP {ours[0]}:{ours[1]} to {theirs[0]}:{theirs[1]}")


def _port(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or not 1 <= int(port) <= 65535:
        raise BentpipeError(f"{text}: expected [HOST:]PORT with a port of 1 to 65535")
    try:
        return socket.gethostbyname(host or "127.0.0.1"), int(port)
    except OSError as error:
        raise BentpipeError(f"{host}: {error.strerror}") from None


@dataclass(frozen=True)
class _Kind:
    form: str
    carries: Carries
    what: str
    open: Callable[[str, ExitStack, int, Addresses], Opened]


KINDS: Final = {
    "ns": _Kind("NAME", Carries.FRAMES, "a network namespace, made and removed", _namespace),
    "tap": _Kind("NAME", Carries.FRAMES, "a TAP device, made and removed: Ethernet", _device(True)),
    "tun": _Kind("NAME", Carries.PACKETS, "a TUN device, made and removed: IP", _device(False)),
    "if": _Kind("NAME", Carries.FRAMES, "an existing interface: all its frames", _interface),
    "udp": _Kind("LOCAL-REMOTE", Carries.FRAMES, "Ethernet frames in UDP datagrams, as QEMU and GNS3 send", _datagrams),
    "cells-udp": _Kind("LOCAL-REMOTE", Carries.CELLS, "cells of 53 octets in UDP datagrams", _datagrams),
    "dynamips": _Kind("LOCAL-REMOTE", Carries.DYNAMIPS, "cells of dynamips' ATM, with its own CRC-32", _datagrams),
}
"""Kinds of ends."""
