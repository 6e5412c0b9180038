"""The plans of boards' bitstreams, by name."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from bentpipe_sim.board.windows import BOARD_VCS, Plan
from bentpipe_sim.build import Shape

__all__ = ["PLANS"]

_NIC: Final = Shape.of("nic", vcs=BOARD_VCS)
_LINK: Final = Shape.of("link")
_FAR: Final = Plan((_LINK, _NIC), (1 << 17, 1 << 17), tx_words=2048, rx_words=1024, sdram=(0, 1))


def _lan(nics: int, cells: int, links: int) -> Plan:
    nodes = (Shape.of("switch", cells=cells, ports=4, vcs=BOARD_VCS), *[_LINK] * links, *[_NIC] * nics)
    return Plan(nodes, (32,) * (4 + links + nics), tx_words=2048, rx_words=1024)


PLANS: Final = {
    "line": Plan((_LINK, _NIC), (64, 64), tx_words=2048, rx_words=1024),
    "far": _FAR,
    "far-ddr3": replace(_FAR, ddr3=True),
    "star": Plan(
        (Shape.of("switch", cells=512, ports=2, vcs=BOARD_VCS), _NIC, _NIC), (32,) * 4, tx_words=2048, rx_words=1024
    ),
    "pair": _lan(2, 512, 2),
    "lan": _lan(3, 2048, 2),
}
"""By name:

line
    one interface and one link, patched to a loop
far
    the same with wires for 371 ms at OC-3c, in the SDRAM of a board
far-ddr3
    the same, in the DDR3 memory of a board
star
    two interfaces and a switch of 512 cells with two ports
pair
    two interfaces, two links, a switch of 512 cells
lan
    three interfaces, two links, a switch of 2048 cells
"""
