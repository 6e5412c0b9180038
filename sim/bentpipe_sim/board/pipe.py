"""Octets to a board and back: what a client needs of a line, and lines that have it."""

from __future__ import annotations

import array
import fcntl
import os
import select
import socket
import termios
import time
import tty
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

from bentpipe_sim.board.errors import BoardError

__all__ = ["BAUD", "DATAGRAM_OCTETS", "UDP_PORT", "Pipe", "SerialPipe", "UdpPipe"]

BAUD: Final = 3_000_000
"""Baud rate of serial lines to boards: the highest of common USB bridges."""
UDP_PORT: Final = 10053
"""UDP port of boards."""
DATAGRAM_OCTETS: Final = 1472
"""Payload of the longest datagram that Ethernet carries in one frame: 1,500 octets less the heads of IPv4 and UDP."""
_SERIAL_WORDS: Final = 32
"""More than Linux' ``struct serial_struct`` has."""
_FLAGS: Final = 4
"""The word of its flags."""
_LOW_LATENCY: Final = 1 << 13
"""``ASYNC_LOW_LATENCY``: an FTDI chip gives what came after 1 ms, not after 16."""


TAKES_S: Final = 2.0
"""A line that takes no more octets for so long is given up."""


class Pipe(Protocol):
    """A line to a board, and the clock by which the client waits."""

    def now(self) -> float:
        """Return the present time in seconds."""
        ...

    def send(self, octets: bytes) -> None:
        """Send octets on the line; some may be lost or damaged.

        Raises
        ------
        BoardError
            The line has gone away.
        """
        ...

    def receive(self, until: float) -> bytes:
        """Return received octets as soon as there are any, and no octets if none have arrived by this time."""
        ...

    def close(self) -> None:
        """Close the line."""
        ...


class SerialPipe:
    """A serial port, or a pseudo-terminal, by its device.

    Parameters
    ----------
    device : Path
    baud : int
    patience : float
        A factor on the time in which the line has to take octets.
    """

    def __init__(self, device: Path, baud: int = BAUD, *, patience: float = 1.0) -> None:
        self._device, self._takes_s = device, TAKES_S * patience
        try:
            self._fd = os.open(device, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        except OSError as error:
            hint = "; add yourself to the group that owns it" if isinstance(error, PermissionError) else ""
            raise BoardError(f"{device} cannot be opened ({error.strerror}){hint}") from None
        speed = getattr(termios, f"B{baud}", None)
        try:
            if speed is None:
                raise BoardError(f"{device}: {baud} baud is no rate of this system's serial lines")
            tty.setraw(self._fd)
            settings = termios.tcgetattr(self._fd)
            settings[4] = settings[5] = speed
            settings[2] |= termios.CLOCAL | termios.CREAD
            termios.tcsetattr(self._fd, termios.TCSANOW, settings)
            termios.tcflush(self._fd, termios.TCIFLUSH)
            _ask_for_low_latency(self._fd)
        except termios.error:
            os.close(self._fd)
            raise BoardError(f"{device} is no serial port") from None
        except BoardError:
            os.close(self._fd)
            raise

    def now(self) -> float:
        return time.monotonic()

    def send(self, octets: bytes) -> None:
        rest = memoryview(octets)
        end = self.now() + self._takes_s
        while rest:
            if self.now() > end:
                raise BoardError(f"{self._device} takes no octets")
            try:
                select.select([], [self._fd], [], 0.1)
                rest = rest[os.write(self._fd, rest) :]
                end = self.now() + self._takes_s
            except BlockingIOError:
                continue
            except OSError as error:
                raise self._gone(error) from None

    def receive(self, until: float) -> bytes:
        try:
            if not select.select([self._fd], [], [], max(0.0, until - self.now()))[0]:
                return b""
            found = os.read(self._fd, 1 << 16)
        except BlockingIOError:
            return b""
        except OSError as error:
            raise self._gone(error) from None
        if not found:
            raise BoardError(f"{self._device} is gone: the cable, or the simulated board")
        return found

    def _gone(self, error: OSError) -> BoardError:
        return BoardError(f"{self._device} is gone ({error.strerror})")

    def close(self) -> None:
        os.close(self._fd)


class UdpPipe:
    """Datagrams of UDP to a board, and those that it sends. Frames go on over their borders.

    Parameters
    ----------
    address : str
        Host name, or IPv4 address.
    port : int
    """

    def __init__(self, address: str, port: int = UDP_PORT) -> None:
        self._name = f"{address}, UDP port {port}"
        try:
            place = socket.getaddrinfo(address, port, socket.AF_INET, socket.SOCK_DGRAM)[0][4]
        except (OSError, UnicodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is no name of a host"
            raise BoardError(f"the address of {address!r} is unknown ({reason})") from None
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            self._socket.setblocking(False)
            self._socket.connect(place)  # so the system drops what others send, and reports a refusal
        except OSError as error:
            self._socket.close()
            raise self._failed(error) from None

    def now(self) -> float:
        return time.monotonic()

    def send(self, octets: bytes) -> None:
        for at in range(0, len(octets), DATAGRAM_OCTETS):
            try:
                self._socket.send(octets[at : at + DATAGRAM_OCTETS])
            except BlockingIOError:  # it is lost, and sent again like any other lost one
                return
            except OSError as error:
                raise self._failed(error) from None

    def receive(self, until: float) -> bytes:
        try:
            if not select.select([self._socket], [], [], max(0.0, until - self.now()))[0]:
                return b""
            return self._socket.recv(1 << 16)
        except BlockingIOError:
            return b""
        except OSError as error:
            raise self._failed(error) from None

    def _failed(self, error: OSError) -> BoardError:
        if isinstance(error, ConnectionRefusedError):
            return BoardError(f"{self._name}: is refused: the host is there, but no board is behind this port")
        return BoardError(f"{self._name}: cannot be reached ({error.strerror}): check the address and the cable")

    def close(self) -> None:
        self._socket.close()


def _ask_for_low_latency(fd: int) -> None:
    """Ask the driver of a serial line for low latency, where the system and the driver support it; a pseudo-terminal
    does not."""
    words = array.array("i", [0] * _SERIAL_WORDS)
    with suppress(OSError, AttributeError):  # other systems have no such requests
        fcntl.ioctl(fd, termios.TIOCGSERIAL, words)
        words[_FLAGS] |= _LOW_LATENCY
        fcntl.ioctl(fd, termios.TIOCSSERIAL, words)
