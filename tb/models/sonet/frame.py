"""A framer and a receiver of STS-Nc, N = 3 or 12, one frame at a time (GR-253, T1.105)."""

# pyright: reportArgumentType=false
# (octets come as bytes, bytearray or memoryview)

from dataclasses import dataclass, field
from functools import reduce
from operator import xor

from models.sonet.pointer import LAST, PathModel
from models.sonet.tc import CellSink, CellSource

ROWS = 9


def key_stream(count: int) -> bytes:
    """The first octets of 1+x^6+x^7 from the all-ones preset."""
    register, out = 0x7F, bytearray()
    for _ in range(count):
        octet = 0
        for _ in range(8):
            octet = octet << 1 | register >> 6
            register = (register << 1) & 0x7F | (register >> 6 ^ register >> 5) & 1
        out.append(octet)
    return bytes(out)


def scramble_frame(frame: bytes, n: int) -> bytes:
    """Frame-synchronous (de)scrambling: all but the first 3N octets."""
    key = bytes(3 * n) + key_stream(len(frame) - 3 * n)
    return (int.from_bytes(frame, "big") ^ int.from_bytes(key, "big")).to_bytes(len(frame), "big")


def bip8(octets: bytes) -> int:
    return reduce(xor, octets, 0)


def bip24n(frame: bytes, n: int) -> bytes:
    """The N octets of B2: everything but the section overhead."""
    covered = [frame[90 * n * r + (3 * n if r < 3 else 0) : 90 * n * (r + 1)] for r in range(ROWS)]
    whole = b"".join(covered)
    return bytes(bip8(whole[i::n]) for i in range(n))


def ones(a: bytes, b: bytes) -> int:
    return sum((x ^ y).bit_count() for x, y in zip(a, b, strict=True))


@dataclass
class Overhead:
    """The frame that a framer is to send, without the counts and parities that it computes."""

    j0: int = 0x01
    k1: int = 0
    k2: int = 0
    s1: int = 0
    m1: int = 0
    e1: int = 0
    f1: int = 0
    e2: int = 0
    dcc: bytes = bytes(12)
    j1: int = 0
    c2: int = 0x13
    g1: int = 0
    f2: int = 0
    h4: int = 0
    z3: int = 0
    z4: int = 0
    n1: int = 0
    ss: int = 0


class ModelFramer:
    """Gives scrambled frames. ``pointer`` may only change by the ``action`` of :meth:`frame`."""

    def __init__(self, n: int, source: CellSource | None = None, pointer: int = 522):
        self.n, self.pointer = n, pointer
        self.source = source or CellSource()
        self.overhead = Overhead()
        self._b1, self._b2, self._b3 = 0, bytes(n), 0
        # The SPE begins at the pointer; a frame begins in the SPE of the frame before.
        units_before_h3 = 3 * 87  # rows 1-3
        self._at = (87 * ROWS - pointer - units_before_h3) % (87 * ROWS) * n
        self._parity = 0
        self._jump: int | None = None  # where the next SPE begins, after a new pointer

    def _spe(self, count: int) -> bytes:
        n, o, out = self.n, self.overhead, bytearray()
        while len(out) < count:
            row, column = divmod(self._at, 87 * n)
            if column == 0:
                if row == 0:
                    self._b3, self._parity = self._parity, 0
                path = [o.j1, self._b3, o.c2, o.g1, o.f2, o.h4, o.z3, o.z4, o.n1][row]
                piece = bytes([path]) + bytes(n // 3 - 1)
            elif column < n // 3:
                piece = bytes(1)
            else:
                piece = self.source.take(min(count - len(out), 87 * n - column))
            piece = piece[: count - len(out)]
            out += piece
            self._parity ^= bip8(piece)
            self._at = (self._at + len(piece)) % (ROWS * 87 * n)
        return bytes(out)

    def frame(
        self,
        action: str = "",
        new_pointer: int = 0,
        line_ais=False,
        path_ais=False,
        words: dict[int, int] | None = None,
    ) -> bytes:
        """One frame. ``action``: "inc", "dec", "ndf" (to ``new_pointer``) or nothing. ``words``: what some STS-1,
        counted from 0, have in H1 and H2 instead."""
        n, o = self.n, self.overhead
        z = bytes(n - 1)
        word = 0x6000 | o.ss << 10 | self.pointer
        stuff, h3 = b"", bytes(n)
        if action == "inc":
            word ^= 0x2AA
        elif action == "dec":
            word ^= 0x155
        elif action == "ndf":
            word = 0x9000 | o.ss << 10 | new_pointer
        d = o.dcc
        out = bytearray()
        for row in range(ROWS):
            body = None
            if row == 0:
                toh = b"\xf6" * n + b"\x28" * n + bytes([o.j0]) + bytes(range(2, n + 1))
            elif row == 1:
                toh = bytes([self._b1]) + z + bytes([o.e1]) + z + bytes([o.f1]) + z
            elif row == 2:
                toh = b"".join(bytes([x]) + z for x in d[:3])
            elif row == 3:
                pointers = [word, *[0x93FF | o.ss << 10] * (n - 1)]
                for k, other in (words or {}).items():
                    pointers[k] = other
                if action == "ndf":
                    self.pointer = self._jump = new_pointer
                if action == "inc":
                    stuff = bytes(n)
                    self.pointer = 0 if self.pointer == LAST else self.pointer + 1
                if action == "dec":
                    h3 = self._spe(n)
                    self.pointer = LAST if self.pointer == 0 else self.pointer - 1
                toh = bytes(w >> 8 for w in pointers) + bytes(w & 0xFF for w in pointers) + h3
                if stuff:
                    body = stuff + self._spe(87 * n - len(stuff))
            elif row == 4:
                toh = self._b2 + bytes([o.k1]) + z + bytes([o.k2]) + z
            elif row < 8:
                toh = b"".join(bytes([x]) + z for x in d[3 * row - 12 : 3 * row - 9])
            else:
                m1 = bytearray(n)
                m1[2] = o.m1
                toh = bytes([o.s1]) + z + bytes(m1) + bytes([o.e2]) + z
            if self._jump is not None and body is None:
                body = self._across(self._jump - 87 * ((row - 3) % ROWS))
            out += toh + (body if body is not None else self._spe(87 * n))
        if path_ais or line_ais:
            self._all_ones(out, line_ais)
        frame = bytes(out)
        self._b2 = bip24n(frame, n)
        frame = scramble_frame(frame, n)
        self._b1 = bip8(frame)
        return frame

    def _across(self, start):
        """A row's SPE octets; if ``start`` lies in it, a new SPE begins there."""
        if not 0 <= start < 87:
            return self._spe(87 * self.n)
        head = self._spe(start * self.n)
        self._at, self._jump = 0, None
        return head + self._spe((87 - start) * self.n)

    def _all_ones(self, out, line):
        n = self.n
        for row in range(ROWS):
            a = 90 * n * row
            if (line and row >= 3) or row == 3:
                out[a : a + 3 * n] = b"\xff" * (3 * n)
            out[a + 3 * n : a + 90 * n] = b"\xff" * (87 * n)


@dataclass
class ReceivedFrame:
    """The findings of a receiver in one frame."""

    pointer_word: int = 0
    indication: str = ""
    b1_errors: int = 0
    b2_errors: int = 0
    toh: list = field(default_factory=list)


SEF_PATTERNS = 4
"""Framing patterns with errors in a row that lead out of frame."""


class ModelReceiver:
    """Takes line octets at any bit offset: finds the frame, descrambles, checks, interprets, delineates.

    It is in frame with the first pattern that it finds. After ``SEF_PATTERNS`` bad ones it searches again, and is in
    frame with the second good one; between these, overhead and payload are not read. ``labels`` are the C2 received,
    None where frames were missed; ``states`` the path's states; ``places``, for each frame that was read, its distance
    in octets from the first one given, and the offset of its SPE, None where that is not known.
    """

    def __init__(self, n: int):
        self.n = n
        self.path_state = PathModel(n)
        self.cells = CellSink()
        self.frames: list[ReceivedFrame] = []
        self.b3_errors: list[int] = []
        self.path: list[bytes] = []
        self.labels: list[int | None] = []
        self.states: list[str] = []
        self.places: list[tuple[int, int | None]] = []
        self.moves = {1: 0, -1: 0, 0: 0}  # frames with positive, negative and no stuff
        self.losses = 0  # of frame alignment
        self.payload = bytearray()
        self._raw = b""
        self._given = 0
        self._alignment = ""  # none yet, "frame", "lost", "check" (this frame), "check again" (the next one)
        self._shift = self._bad = 0
        self._b1 = self._b2 = None
        self._spe: bytearray | None = None
        self._spe_parity = None

    def put(self, octets: bytes):
        size = 810 * self.n
        self._raw += octets
        self._given += len(octets)
        while True:
            if self._alignment in ("", "lost") and not self._search():
                return
            needed = size + (self._shift > 0)
            if len(self._raw) < needed:
                return
            line = self._shifted(self._raw[:needed], self._shift)[:size]
            good = line[self.n - 3 : self.n + 3] == b"\xf6\xf6\xf6\x28\x28\x28"
            if self._alignment == "check again":
                self._alignment = "frame" if good else "lost"
            self._bad = 0 if good else self._bad + 1
            if self._alignment == "frame" and self._bad == SEF_PATTERNS:
                self._alignment = "lost"
                self.losses += 1
                self._lose()
            if self._alignment == "lost":
                self._b1 = None
                self._raw = self._raw[self.n - 2 :]  # a pattern may have begun already
                continue
            if self._alignment == "check":
                self._alignment = "check again"
                self._miss()
            else:
                self._frame(line)
            self._raw = self._raw[size:]

    @staticmethod
    def _shifted(octets, bits):
        return (int.from_bytes(octets, "big") << bits & (1 << 8 * len(octets)) - 1).to_bytes(len(octets), "big")

    def _search(self):
        """Find the first pattern, at any bit. The octets in front of it, from the frame's first A1 on, are made up."""
        lead = self.n - 3
        pattern = b"\xf6\xf6\xf6\x28\x28\x28"
        found = [(self._shifted(self._raw, k).find(pattern), k) for k in range(8)]
        places = [(place, k) for place, k in found if place >= 0]
        if not places:
            if self._alignment:
                self._raw = self._raw[-6:]
            return False
        place, self._shift = min(places)
        start = place - lead
        self._raw = b"\xf6" * -start + self._raw if start < 0 else self._raw[start:]
        self._alignment = "check" if self._alignment else "frame"
        self._bad = 0
        return True

    def _miss(self):
        self.path_state.miss()
        self.labels.append(None)
        self._b1 = None
        self._lose()

    def _lose(self):
        """The place of the SPE is not known."""
        self._spe = None
        self.cells.lose()

    def _frame(self, scrambled):
        n = self.n
        clear = scramble_frame(scrambled, n)
        rows = [clear[90 * n * r : 90 * n * (r + 1)] for r in range(ROWS)]
        result = ReceivedFrame(toh=[row[: 3 * n] for row in rows])
        if self._b1 is not None:
            result.b1_errors = ones(rows[1][:1], bytes([self._b1]))
            result.b2_errors = ones(rows[4][:n], self._b2)
        self._b1, self._b2 = bip8(scrambled), bip24n(clear, n)
        result.pointer_word = rows[3][0] << 8 | rows[3][n]
        for r, row in enumerate(rows):
            body, first = row[3 * n :], (r - 3) % ROWS * 87
            if r == 3:
                words = [row[k] << 8 | row[n + k] for k in range(n)]
                result.indication, move = self.path_state.step(words)
                self.states.append(self.path_state.state)
                self.moves[move] += 1
                placed = self.path_state.placed
                self.places.append((self._given - len(self._raw), self.path_state.pointer.active if placed else None))
                if not placed:
                    self._lose()
                if move > 0:
                    body, first = body[n:], 1
                if move < 0:
                    self._take(row[2 * n : 3 * n])
            at = (self.path_state.pointer.active - first) * n
            if self.path_state.placed and 0 <= at < len(body):
                self._take(body[:at])
                self._start()
                self._take(body[at:])
            else:
                self._take(body)
        self.frames.append(result)

    def _start(self):
        """J1 is next."""
        if self._spe is not None and len(self._spe) == ROWS * 87 * self.n:
            self._spe_parity = bip8(self._spe)
        else:
            self._spe_parity = None
        self._spe = bytearray()

    def _take(self, octets):
        if self._spe is None:
            return
        width = 87 * self.n
        for octet_at in range(0, len(octets)):
            at = len(self._spe)
            if at == ROWS * width:  # J1 fell into H3
                self._start()
                at = 0
            self._spe.append(octets[octet_at])
            row, column = divmod(at, width)
            if column >= self.n // 3:
                self.payload.append(octets[octet_at])
            elif column == 0 and row == 1 and self._spe_parity is not None:
                self.b3_errors.append((octets[octet_at] ^ self._spe_parity).bit_count())
            elif column == 0 and row == 2:
                self.labels.append(octets[octet_at])
            if at == ROWS * width - 1:
                self.path.append(bytes(self._spe[::width]))
        self.cells.put(bytes(self.payload))
        self.payload.clear()
