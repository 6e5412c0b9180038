"""The host's end of the protocol: a list goes out, its answer comes back, whatever happens to octets on the way."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

from bentpipe_sim.board.errors import BoardError
from bentpipe_sim.board.pipe import Pipe
from bentpipe_sim.board.protocol import (
    ANSWER,
    BUSY,
    LIST,
    MALFORMED,
    OPEN,
    OPENED,
    OVERFLOW,
    READ,
    REFUSED,
    RUN,
    STOPPED,
    TAKE,
    WRITE,
    FrameReader,
    framed,
    head,
)  # fmt: skip

__all__ = ["GIVE_UP_S", "Client", "Items"]

AGAIN_S: Final = 0.15
"""Without an answer a frame is sent again."""
STALE_S: Final = 0.6
"""So long after a frame was first sent, a refusal may still be meant for an earlier one, or for another program's."""
GIVE_UP_S: Final = 1.8
"""Without any sign of life a board is given up."""


class Items:
    """A list that is being written.

    Members
    -------
    words : list of int
    """

    def __init__(self) -> None:
        self.words: list[int] = []
        self.answers = 1  # words, with the flags; of TAKE the most
        self._reads: list[tuple[int, int]] = []  # kind and count

    def __len__(self) -> int:
        return len(self.words)

    def write(self, addr: int, values: Sequence[int]) -> None:
        """Write words from an address on."""
        self.words += (WRITE << 24 | len(values), addr, *values)

    def read(self, addr: int, count: int = 1) -> None:
        """Read words from an address on."""
        self._ask(READ, addr, count, count)

    def take(self, addr: int, most: int) -> None:
        """Take words out of a FIFO whose level is at an address."""
        self._ask(TAKE, addr, most, most + 1)

    def run(self, until: int) -> None:
        """Add an item that runs to the end of tick ``until``."""
        self.words += (RUN << 24, until & 0xFFFFFFFF, until >> 32)
        self._reads.append((RUN, 0))
        self.answers += 2

    def _ask(self, kind: int, addr: int, count: int, answers: int) -> None:
        self.words += (kind << 24 | count, addr)
        self._reads.append((kind, count))
        self.answers += answers

    def parse(self, words: Sequence[int]) -> list[tuple[int, ...]]:
        """Return the answer of each item except WRITE.

        A RUN gives (next tick, stopped), or ``()`` after one that stopped.
        """
        if not words or words[0]:
            flags = words[0] if words else MALFORMED
            what = "has no room for an answer" if flags & OVERFLOW else "does not understand a list"
            raise BoardError(f"the board {what} (flags {flags:#x}): its gateware is another than this software is for")
        at, found, stopped = 1, [], False
        for kind, count in self._reads:
            if kind == RUN and stopped:
                found.append(())
                continue
            if kind == TAKE:
                count, at = (words[at] if at < len(words) else 0), at + 1
            size = 2 if kind == RUN else count
            part = tuple(words[at : at + size])
            if len(part) < size:
                raise BoardError("the board's answer is too short for its list")
            at += size
            if kind == RUN:
                stopped = bool(part[1] & STOPPED)
                part = part[0] | (part[1] & 0xFFFF) << 32, int(stopped)
            found.append(part)
        if at != len(words):
            raise BoardError("the board's answer is too long for its list")
        return found


class Client:
    """One session with a board.

    Parameters
    ----------
    pipe : Pipe
    number : int, optional
        Of the session, 1 to 65535; drawn if not given.
    patience : float
        A factor on all times that it waits: a simulated board is slower than a serial line.

    Members
    -------
    trips, repeats : int
        Lists done; frames that were sent again.
    octets_out, octets_in : int
    is_lost : bool
        The board was given up: it did not answer, refused, or its line has gone.
    most_s : float or None
        A list that takes longer is given up; None: it may take for ever, as long as the board says that it works.

    Raises
    ------
    BoardError
        Nobody answers.
    """

    def __init__(self, pipe: Pipe, number: int | None = None, *, patience: float = 1.0) -> None:
        self._patience = patience
        self.most_s: float | None = None
        self._pipe, self._reader = pipe, FrameReader()
        self._sequence = 0
        self.trips = self.repeats = self.octets_out = self.octets_in = 0
        self.is_lost = False
        for _ in range(4):
            self._session = number or random.randrange(1, 1 << 16)
            found = self._exchange([head(self._session, 0, OPEN)], OPENED)
            if found[0] >> 8 & 0xFF == 0:
                return
        raise BoardError("the board does not begin a session: another program uses it")

    def do(self, items: Items) -> list[tuple[int, ...]]:
        """Execute a list of items, and return the answers, as :meth:`Items.parse` has them.

        Raises
        ------
        BoardError
            There is no answer for two seconds, another program has taken the board, or it was reset.
        """
        self._sequence = (self._sequence + 1) & 0xFF
        try:
            frame = self._exchange([head(self._session, self._sequence, LIST), *items.words], ANSWER)
        except BoardError:
            self.is_lost = True
            raise
        self.trips += 1
        return items.parse(frame[1:])

    def _exchange(self, words: Sequence[int], wanted: int) -> Sequence[int]:
        """Send a frame, repeatedly until its answer arrives; return the answer."""
        pipe, octets = self._pipe, framed(words)
        answer = words[0] >> 8 << 8 | wanted
        self._send(octets)
        begun = alive = pipe.now()
        again = alive + AGAIN_S * self._patience
        while True:
            came = pipe.receive(min(again, alive + GIVE_UP_S * self._patience))
            self.octets_in += len(came)
            for frame in self._reader.feed(came):
                kind, whose = frame[0] & 0xFF, frame[0] >> 16
                if frame[0] == answer or (kind == wanted == OPENED and whose == self._session):
                    return frame
                if kind == BUSY and whose == self._session:
                    alive = pipe.now()
                    again = alive + AGAIN_S * self._patience
                if kind == REFUSED and wanted == ANSWER and pipe.now() > begun + STALE_S * self._patience:
                    raise BoardError(self._refused(frame[0]))
            now = pipe.now()
            if self.most_s is not None and now >= begun + self.most_s * self._patience:
                raise BoardError(f"the board has worked on a list for {now - begun:.1f} s, and does not end")
            if now >= alive + GIVE_UP_S * self._patience:
                raise BoardError(
                    f"the board has not answered for {now - alive:.1f} s: no power, another line, or no bentpipe"
                )
            if now >= again:
                again = now + AGAIN_S * self._patience
                self.repeats += 1
                self._send(octets)

    def _refused(self, frame: int) -> str:
        """Return the reason why a board refuses."""
        session = frame >> 16
        if session == 0:
            return "the board was reset: what it was told before is lost"
        if session != self._session:
            return "another program has opened the board"
        return "the board is out of step: its list before was another one"

    def _send(self, octets: bytes) -> None:
        self._pipe.send(octets)
        self.octets_out += len(octets)

    def close(self) -> None:
        """Close the line."""
        self._pipe.close()
