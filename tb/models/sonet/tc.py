"""Transmission convergence of cells (I.432.1): HEC, x^43+1 scrambler, delineation, header automaton."""

from dataclasses import dataclass, field

from models.hec import Outcome, Receiver, hec

IDLE = bytes([0, 0, 0, 1]) + b"\x6a" * 48
"""An idle cell without its HEC."""


class Scrambler43:
    """y[n] = x[n] ^ y[n-43], over payload octets only. The state's top bit is the oldest."""

    def __init__(self, state=0):
        self.state = state

    def scramble(self, octets: bytes) -> bytes:
        return self._run(octets, False)

    def descramble(self, octets: bytes) -> bytes:
        return self._run(octets, True)

    def _run(self, octets, receive):
        n = 8 * len(octets)
        x = int.from_bytes(octets, "big")
        out = 0
        history = self.state
        if receive:
            whole = history << n | x
            out = x ^ (whole >> 43)
            out &= (1 << n) - 1
            self.state = whole & (1 << 43) - 1
        else:
            done = 0
            while done < n:
                take = min(43, n - done)
                piece = x >> (n - done - take) & (1 << take) - 1
                piece ^= history >> (43 - take)
                history = (history << take | piece) & (1 << 43) - 1
                out = out << take | piece
                done += take
            self.state = history
        return out.to_bytes(len(octets), "big")


class CellSource:
    """Octets of a stream of cells: queued cells (52 octets: header, payload), idle cells in between."""

    def __init__(self, cells=()):
        self.queue = list(cells)
        self.scrambler = Scrambler43()
        self._left = b""
        self.idle_cells = 0

    def take(self, count: int) -> bytes:
        while len(self._left) < count:
            if self.queue:
                cell = self.queue.pop(0)
            else:
                cell = IDLE
                self.idle_cells += 1
            header = cell[:4]
            self._left += header + bytes([hec(header)]) + self.scrambler.scramble(cell[4:])
        out, self._left = self._left[:count], self._left[count:]
        return out


@dataclass
class CellSink:
    """Delineates octets into cells: alpha 7, delta 6, correction and detection modes.

    ``cells`` are user cells of 52 octets, ``bad`` the number of discarded headers in SYNC, ``lapses`` how many of
    ``cells`` there were each time that SYNC was left.
    """

    alpha: int = 7
    delta: int = 6
    cells: list = field(default_factory=list)
    state: str = "HUNT"
    corrected: int = 0
    bad: int = 0
    idle: int = 0
    user: int = 0
    lapses: list[int] = field(default_factory=list)

    def __post_init__(self):
        self._buffer = bytearray()
        self._count = 0
        self._header = Receiver()
        self._scrambler = Scrambler43()

    def lose(self):
        """There is no payload: cells are searched for anew."""
        if self.state == "SYNC":
            self.lapses.append(len(self.cells))
        self.state = "HUNT"
        self._buffer.clear()

    def put(self, octets: bytes):
        buffer = self._buffer
        buffer += octets
        while True:
            if self.state == "HUNT":
                if len(buffer) < 5:
                    return
                if hec(bytes(buffer[:4])) != buffer[4]:
                    del buffer[0]
                    continue
                if len(buffer) < 53:
                    return
                self.state, self._count = "PRESYNC", 0
                self._scrambler.descramble(bytes(buffer[5:53]))
                del buffer[:53]
            if len(buffer) < 53:
                return
            cell = bytes(buffer[:53])
            good = hec(cell[:4]) == cell[4]
            if self.state == "PRESYNC" and not good:
                self.state = "HUNT"
                del buffer[0]
                continue
            del buffer[:53]
            payload = self._scrambler.descramble(cell[5:])
            if self.state == "PRESYNC":
                self._count += 1
                if self._count == self.delta:
                    self.state, self._count, self._header = "SYNC", 0, Receiver()
                continue
            self._count = 0 if good else self._count + 1
            outcome, header = self._header.receive(cell[:5])
            if outcome is Outcome.DISCARDED:
                self.bad += 1
            else:
                self.corrected += outcome is Outcome.CORRECTED
                self._deliver(header[:4], payload)
            if self._count == self.alpha:
                self.state = "HUNT"
                self.lapses.append(len(self.cells))

    def _deliver(self, header, payload):
        number = int.from_bytes(header, "big")
        if number & 0x0FFFFFF0 == 0:  # VPI 0, VCI 0: idle (CLP 1) or unassigned (CLP 0)
            self.idle += 1
        else:
            self.user += 1
            self.cells.append(header + payload)
