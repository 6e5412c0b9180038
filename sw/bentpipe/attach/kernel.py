"""The functions of the Linux kernel in use: network namespaces, interfaces, packet sockets, TUN and TAP devices."""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from bentpipe.errors import BentpipeError

__all__ = [
    "CLONE_NEWNET",
    "CLONE_NEWNS",
    "CLONE_NEWUSER",
    "NAMESPACES",
    "enter",
    "fresh_namespace",
    "inside",
    "ip",
    "namespace_fd",
    "offloads_off",
    "offloads_on",
    "open_device",
    "packet_socket",
    "stamped",
    "unshare",
]

NAMESPACES: Final = Path("/run/netns")
"""Where ``ip netns`` has the names of network namespaces."""

CLONE_NEWNS: Final = 0x00020000
CLONE_NEWUSER: Final = 0x10000000
CLONE_NEWNET: Final = 0x40000000
_RCVBUF: Final = 32 << 20
_SO_RCVBUFFORCE: Final = 33
_SO_TIMESTAMPNS: Final = 35
_PACKET_AUXDATA: Final = 8
_PACKET_IGNORE_OUTGOING: Final = 23
_PACKET_ADD_MEMBERSHIP: Final = 1
_SOL_PACKET: Final = 263
_ETH_P_ALL: Final = 3
_TUNSETIFF: Final = 0x400454CA
_IFF_TUN, _IFF_TAP, _IFF_NO_PI, _IFF_TUN_EXCL = 1, 2, 0x1000, 0x8000
_SIOCETHTOOL: Final = 0x8946
_OFF: Final = {
    "tx checksums": 0x17, "rx checksums": 0x15, "scatter-gather": 0x19, "tso": 0x1F, "gso": 0x24, "gro": 0x2C,
}  # fmt: skip
"""Offloads, and the commands of ``linux/ethtool.h`` that set them, each behind the one that asks for it: a frame is to
come as it would be on a wire."""

_libc = ctypes.CDLL(None, use_errno=True)


def _called(what: str, result: int) -> None:
    if result:
        raise BentpipeError(f"{what}: {os.strerror(ctypes.get_errno())}")


def unshare(flags: int) -> None:
    """Put this thread into new namespaces."""
    _called("no new namespace", _libc.unshare(flags))


def enter(namespace: int) -> None:
    """Put this thread into a network namespace."""
    _called("a network namespace cannot be entered", _libc.setns(namespace, CLONE_NEWNET))


def namespace_fd(name: str = "") -> int:
    """Return a network namespace by its name; the present one without."""
    try:
        return os.open(NAMESPACES / name if name else "/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise BentpipeError(f"network namespace {name or 'of this process'}: {error.strerror}") from None


@contextmanager
def _back() -> Iterator[None]:
    here = namespace_fd()
    try:
        yield
    finally:
        enter(here)
        os.close(here)


@contextmanager
def inside(name: str) -> Iterator[None]:
    """Move this thread into a named network namespace, within the context."""
    with _back():
        there = namespace_fd(name)
        try:
            enter(there)
        finally:
            os.close(there)
        yield


@contextmanager
def fresh_namespace() -> Iterator[None]:
    """Move this thread into a new network namespace without a name, within the context.

    The namespace ends with the last socket in it.
    """
    with _back():
        unshare(CLONE_NEWNET)
        yield


def ip(*arguments: str) -> str:
    """Run ``ip``, and return its output.

    Raises
    ------
    BentpipeError
        It is not there, or did not work: what it says.
    """
    try:
        done = subprocess.run(["ip", *arguments], capture_output=True, text=True)
    except FileNotFoundError:
        raise BentpipeError("the program ip is missing; get it: apt-get install iproute2") from None
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        raise BentpipeError(f"ip {' '.join(arguments)}: {lines[-1] if lines else f'exit code {done.returncode}'}")
    return done.stdout


def offloads_off(interface: str) -> list[int]:
    """Switch off the kernel's offloads for batches of segments; return those that were on, for :func:`offloads_on`.

    An offload that the interface cannot change stays.
    """
    on = [command for command in _OFF.values() if _offload(interface, command - 1)]
    return [command for command in on if _offload(interface, command) is not None]


def offloads_on(interface: str, commands: Iterable[int]) -> None:
    """Switch these offloads on again, if the interface still exists."""
    for command in commands:
        _offload(interface, command, 1)


def _offload(interface: str, command: int, value: int = 0) -> int | None:
    """Return the value behind a command of ``linux/ethtool.h``; None where the command is not supported."""
    asked = ctypes.create_string_buffer(struct.pack("II", command, value))
    request = struct.pack("16sP16x", interface.encode(), ctypes.addressof(asked))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control, suppress(OSError):
        fcntl.ioctl(control, _SIOCETHTOOL, request)
        return struct.unpack_from("II", asked)[1]
    return None


def stamped(made: socket.socket) -> socket.socket:
    """Make the kernel time-stamp what a socket receives, with a large receive buffer."""
    made.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
    try:
        made.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _RCVBUF)
    except PermissionError:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RCVBUF)
    made.setblocking(False)
    return made


def packet_socket(interface: str, promiscuous: bool = False) -> socket.socket:
    """Return a socket that receives all frames arriving at an interface, and sends through it.

    Raises
    ------
    BentpipeError
        There is no such interface, or no right to.
    """
    try:
        made = stamped(socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0))
        made.setsockopt(_SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1)
        made.setsockopt(_SOL_PACKET, _PACKET_AUXDATA, 1)  # VLAN tags, which the kernel takes out of frames
        made.bind((interface, _ETH_P_ALL))
        if promiscuous:
            index = socket.if_nametoindex(interface)
            made.setsockopt(_SOL_PACKET, _PACKET_ADD_MEMBERSHIP, struct.pack("iHH8s", index, 1, 0, b""))
    except PermissionError:
        raise BentpipeError(f"interface {interface}: no right to its frames (CAP_NET_RAW); run it as root") from None
    except OSError as error:
        raise BentpipeError(f"interface {interface}: {error.strerror}") from None
    return made


def open_device(name: str, tap: bool) -> int:
    """Return a new TUN or TAP device, which is removed when its file descriptor is closed.

    Raises
    ------
    BentpipeError
        There is no /dev/net/tun, no right to, or an interface of that name.
    """
    kind = "TAP" if tap else "TUN"
    if name in (interface for _, interface in socket.if_nameindex()):
        raise BentpipeError(f"there is an interface {name} already; give the {kind} device another name")
    try:
        device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise BentpipeError(f"no {kind} device: /dev/net/tun: {error.strerror}") from None
    flags = (_IFF_TAP if tap else _IFF_TUN) | _IFF_NO_PI | _IFF_TUN_EXCL
    try:
        fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH22x", name.encode(), flags))
    except OSError as error:
        os.close(device)
        right = "; run it as root" if isinstance(error, PermissionError) else ""
        raise BentpipeError(f"{kind} device {name}: {error.strerror}{right}") from None
    return device
