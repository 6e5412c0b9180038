"""Cells of 416 bits as packets."""

from __future__ import annotations

import random
from collections import deque
from typing import Any

from benches.streams import Io, Node, PacketSink, octets_of, play
from bentpipe_hdl.cores.packets import WideToPackets


def test_cells_that_nobody_takes_are_counted() -> None:
    rng = random.Random(1)
    dut = Node(WideToPackets, cells=2)
    cells = [rng.getrandbits(416) for _ in range(6)]
    waiting, sink, lost = deque(cells), PacketSink("o", rng, 0.0, ["tuser"]), [0]

    class Cells:
        def drive(self, io: Io) -> None:
            self.now: Any = None
            if self.clock % 13 == 0 and waiting:
                self.now = waiting.popleft()
                io.set("cell", self.now)
                io.set("hec_error", len(waiting) & 1)
            io.set("valid", int(self.now is not None))
            self.clock += 1

        def sample(self, io: Io) -> None:
            lost[0] = io.get("lost")
            if not waiting and self.clock > 120:
                sink.rate = 1.0

        clock = 0

    play(dut, [Cells(), sink], lambda: len(sink.packets) == 2)
    assert lost[0] == 4
    for packet, cell, error in zip(sink.packets, cells, (1, 0), strict=False):
        assert packet[0]["tdata"] == cell >> 384
        assert octets_of(packet[1:]) == (cell & (1 << 384) - 1).to_bytes(48, "little")
        assert packet[0]["tuser"] == error
