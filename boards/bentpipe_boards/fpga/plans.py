"""The plans of boards' bitstreams, by name."""

from __future__ import annotations

from typing import Final

from bentpipe_sim.board.windows import BOARD_VCS, Plan
from bentpipe_sim.build import Shape

__all__ = ["PLANS"]

_NIC: Final = Shape.of("nic", vcs=BOARD_VCS)
_LINK: Final = Shape.of("link")


def _lan(nics: int, cells: int, links: int) -> Plan:
    nodes = (Shape.of("switch", cells=cells, ports=4, vcs=BOARD_VCS), *[_LINK] * links, *[_NIC] * nics)
    return Plan(nodes, (32,) * (4 + links + nics), tx_words=2048, rx_words=1024)


PLANS: Final = {
    "line": Plan((_LINK, _NIC), (64, 64), tx_words=2048, rx_words=1024),
    "star": Plan(
        (Shape.of("switch", cells=512, ports=2, vcs=BOARD_VCS), _NIC, _NIC), (32,) * 4, tx_words=2048, rx_words=1024
    ),
    "pair": _lan(2, 512, 2),
    "lan": _lan(3, 2048, 2),
}
"""By name:

line
    one interface and one link, patched to a loop
star
    two interfaces and a switch of 512 cells with two ports
pair
    two interfaces, two links, a switch of 512 cells
lan
    three interfaces, two links, a switch of 2048 cells
"""
