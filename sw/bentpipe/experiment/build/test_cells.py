"""Test cells in an experiment: the VC of a flow, from generator to analyser."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bentpipe.experiment.resolve.specs import FlowSpec
from bentpipe_hdl.test_cells.cells import STAMP_PS

if TYPE_CHECKING:
    from bentpipe.hosts.host import Host
    from bentpipe_sim.cell_streams import TestCellStream
    from bentpipe_sim.network import Network

__all__ = ["add_stream"]


def add_stream(network: Network, flow: FlowSpec, hosts: tuple[Host, Host], vc: int) -> TestCellStream:
    """Build the interfaces of the flow's hosts with test cells on a VC; return the stream.

    Raises
    ------
    NetworkError
        An interface has test cells on another VC.
    """
    block, limit, width = (flow.settings[name] for name in ("block", "block_limit", "delay_class"))
    source, sink = hosts
    return network.add_test_cells(
        source.interface.nic,
        vc,
        sink.interface.nic,
        block=None if block is None else (block.bit_length() - 1, block // 32 if limit is None else limit),
        delay_class=(-(-width // STAMP_PS) - 1).bit_length(),
    )
