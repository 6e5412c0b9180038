"""The load that a board carries in free-running time: ``cd tb; python -m boards.free_load`` (minutes).

Each row has a line of the interface, a delay of the link and a pace. Frames fill the line, in both VLANs.
"""

from __future__ import annotations

import random
import tempfile
from pathlib import Path
from typing import Final

from bentpipe_hdl.nic.control import NicLine
from bentpipe_sim.board.free import pace_of
from boards.free_board import BOARD_HZ, PLAN, VIDS, FreeBoard
from boards.rgmii import built

_US: Final = 10**6
_TICK_PS: Final = 176_950
_OCTETS: Final = 1514
_CELLS: Final = -(-(_OCTETS + 10 + 8) // 48)
"""Of a frame: with LLC and the trailer of AAL5."""
_LINE_OCTETS: Final = _OCTETS + 4 + 24
"""With tag, preamble, FCS and gap."""
_OC3, _OC12 = 149.76e6, 599.04e6
_FASTEST: Final = (1 << 32) - 1


def measure(library: Path, rate_bps: float, delay_ps: int, pace: int, clocks: int) -> str:
    """Return a row: clocks a cell, cells a second, lag."""
    board, rng = FreeBoard(library, NicLine(rate_bps), delay_ps), random.Random(1)
    board.free.start(pace)
    line, sent = board.line, 0

    def fill(until: int) -> None:
        nonlocal sent
        while line.clocks < until:
            if line.clocks * 5 // 3 > sent * _LINE_OCTETS:
                board.put(rng.randbytes(_OCTETS), VIDS[sent % 2])
                sent += 1
            line.clock(300)

    sent = line.clocks * 5 // 3 // _LINE_OCTETS
    fill(line.clocks + 40_000)
    before, begun = board.free.frames(), line.clocks
    fill(begun + clocks)
    after, passed = board.free.frames(), line.clocks - begun
    cells = _CELLS * (after["frames_out"] - before["frames_out"])
    lag = board.free.lag()
    board.network.close()
    return (
        f"{rate_bps / 1e6:7.2f} Mb/s  {delay_ps / _US:6.2f} us  {pace / (1 << 32):.3f} ticks a clock:"
        f" {passed / cells:6.1f} clocks a cell, {cells * BOARD_HZ / passed:9,.0f} cells/s at 75 MHz;"
        f" lag {lag.now}, at most {lag.greatest}, in {passed / BOARD_HZ * 1e3:.1f} ms"
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        library, real = built(PLAN, Path(folder), fast=True), pace_of(BOARD_HZ)
        rows = [
            (_OC3, 100 * _US, _FASTEST), (_OC12, 10 * _US, _FASTEST),
            (_OC3, 100 * _US, real), (250e6, 10 * _US, real),
        ]  # fmt: skip
        for row in rows:
            print(measure(library, *row, 1_500_000), flush=True)
        for ticks in range(16):
            print(measure(library, _OC3, 10 * _US + ticks * _TICK_PS, _FASTEST, 600_000), flush=True)


if __name__ == "__main__":
    main()
