"""Cells of 416 bits as packets."""

from __future__ import annotations

import random

import pytest

from benches.streams import Io, Node, PacketSink, octets_of, play
from bentpipe_hdl.cores.packets import WideToPackets


class _Cells:
    """Cells in these clocks."""

    def __init__(self, cells: dict[int, int]) -> None:
        self._cells, self.clock = cells, 0

    def drive(self, io: Io) -> None:
        cell = self._cells.get(self.clock)
        io.set("valid", int(cell is not None))
        if cell is not None:
            io.set("cell", cell)
            io.set("hec_error", cell & 1)
        self.clock += 1

    def sample(self, io: Io) -> None:
        pass


@pytest.mark.parametrize(
    ("spacing", "takes", "left"), [(13, 0.0, [0, 1, 2, 3]), (13, 1.0, [0, 1, 2, 3, 4, 5]), (7, 1.0, [0, 2, 4])]
)
def test_cells_without_room_are_lost_whole_and_counted(spacing: int, takes: float, left: list[int]) -> None:
    rng = random.Random(spacing)
    cells = [rng.getrandbits(416) for _ in range(6)]
    given, sink, lost = (
        _Cells({spacing * k: cell for k, cell in enumerate(cells)}),
        PacketSink("o", rng, takes, ["tuser"]),
        [0],
    )

    def each(io: Io, clock: int) -> None:
        lost[0] = io.get("lost")
        if clock == 120:
            sink.rate = 1.0

    play(
        Node(WideToPackets),
        [given, sink],
        lambda: given.clock > 120 and len(sink.packets) == len(left),
        each=each,
    )
    assert lost[0] == 6 - len(left)
    for packet, k in zip(sink.packets, left, strict=True):
        assert packet[0]["tdata"] == cells[k] >> 384
        assert octets_of(packet[1:]) == (cells[k] & (1 << 384) - 1).to_bytes(48, "little")
        assert packet[0]["tuser"] == cells[k] & 1
