"""A board in software behind a UDP socket, with datagrams that are lost, repeated and reordered at random."""

from __future__ import annotations

import random
import select
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from bentpipe_sim.board.model import BridgeModel, ModelBoard
from bentpipe_sim.board.windows import Plan

__all__ = ["UdpBoard"]

LONGEST = 1472


class UdpBoard:
    """Behave as a board: all datagrams are one stream of octets, and answers go to the client of the last one.

    ``spoilt`` is the share of datagrams, in each direction, to which something happens.
    """

    def __init__(self, plan: Plan, *, spoilt: float = 0.0, seed: int = 1) -> None:
        self.board = ModelBoard(plan)
        self.bridge = BridgeModel(self.board, plan.frame_words)
        self.spoilt, self.faults = spoilt, 0
        self._random = random.Random(seed)
        self._held: dict[str, bytes] = {}
        self._client: tuple[str, int] | None = None
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]

    def _passed(self, way: str, payload: bytes) -> list[bytes]:
        """Return the datagrams that arrive in place of one."""
        late = self._held.pop(way, None)
        found = [payload]
        if self._random.random() < self.spoilt:
            self.faults += 1
            kind = self._random.choice(("lost", "twice", "late"))
            found = {"lost": [], "twice": [payload, payload], "late": []}[kind]
            if kind == "late":
                self._held[way] = payload
        return found if late is None else [*found, late]

    def pump(self, wait_s: float = 0.0) -> None:
        """Serve what has come."""
        while select.select([self._socket], [], [], wait_s)[0]:
            payload, client = self._socket.recvfrom(1 << 16)
            assert len(payload) <= LONGEST
            if payload:
                self._client = client
            answers = b"".join(self.bridge.feed(each) for each in self._passed("in", payload))
            for end in self._ends(answers):
                for at in range(0, len(end), LONGEST):
                    for each in self._passed("out", end[at : at + LONGEST]):
                        assert self._client is not None
                        self._socket.sendto(each, self._client)
            wait_s = 0.0

    @staticmethod
    def _ends(octets: bytes) -> Iterator[bytes]:
        """Yield each frame with the zeros around it."""
        for part in octets.split(b"\0"):
            if part:
                yield b"\0" + part + b"\0"

    @contextmanager
    def serving(self) -> Iterator[UdpBoard]:
        """Serve in a thread of its own."""
        stops = threading.Event()

        def serve() -> None:
            while not stops.is_set():
                self.pump(0.05)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield self
        finally:
            stops.set()
            thread.join()

    def close(self) -> None:
        self._socket.close()
        self.board.close()
