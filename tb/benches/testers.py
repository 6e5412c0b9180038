"""Interfaces with test cells, each by itself: streams from a generator, and to an analyser beside its model."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from benches.stream import CELL, StreamedNode
from bentpipe_hdl.cell import WIDE
from bentpipe_hdl.lookup_table import lookup_table
from bentpipe_hdl.nic.control import nic_registers
from bentpipe_hdl.nic.options.test_cells.control import analyse, generate
from bentpipe_hdl.registers import Registers
from bentpipe_sim.build import Shape
from models.analyser import COUNTS, AnalyserModel
from models.impairments import Impairments, Truth, impair

__all__ = ["HEADER", "VCS", "Tester", "measure", "sent_in_chunks"]

VCS = 8
SHAPE = Shape.of("nic", vcs=VCS, test_cells=1)
REGISTERS = nic_registers(vcs=VCS, test_cells=1)
SENDS, RECEIVES, VCI = 3, 5, 77
HEADER = VCI << 4


class Tester(StreamedNode):
    """An interface that sends test cells on one VC and receives them on another, with the model of its analyser."""

    __test__ = False

    def __init__(self, width: int = WIDE, engine: str = "native", now: int = 0) -> None:
        super().__init__(SHAPE, width, engine, now)
        self.configure()

    def configure(self, period: int = 3 << 15) -> None:
        """After a reset."""
        self.csr = Registers(self, REGISTERS)
        self.csr.line_period, self.csr.tolerance = 1 << 16, 1
        self.csr.tx_header[SENDS], self.csr.tx_period[SENDS] = {"vci": VCI}, period
        lookup_table(VCS, {(0, 0, VCI): RECEIVES}).write(self.csr)
        self.model = AnalyserModel(classes=8 * VCS)

    def generate(self, **given: int) -> None:
        generate(self.csr, SENDS, **given)

    def analyse(self, size: int = 7, limit: int = 4, width: int = 8, first: int | None = 0) -> None:
        """Start the analyser and its model."""
        analyse(self.csr, RECEIVES, block=(size, limit), delay_class=width, first=first)
        self.model = replace(self.model, size=size, limit=limit, width=width, first=first)

    def receive(self, cells: np.ndarray) -> None:
        """The analyser and its model get these cells."""
        if not len(cells):
            return
        self.run(int(cells["tick"][-1]) + 1, cells)
        whole = (cells["hec_error"] == 0) & (cells["header"] == HEADER)
        octets = cells["payload"].tobytes()
        for k, (tick, good) in enumerate(zip(cells["tick"].tolist(), whole.tolist(), strict=True)):
            if good:
                self.model.cell(octets[48 * k : 48 * k + 48], tick)

    def counts(self) -> dict[str, int]:
        """Return the analyser's counts, by the names of the model."""
        self.run(self.now + 2)
        found = {name: getattr(self.csr, f"test_{name}") for name in COUNTS}
        return {name: each if isinstance(each, int) else each[1] << 32 | each[0] for name, each in found.items()}

    def check(self) -> dict[str, int]:
        """The analyser has counted what the model has; gives that."""
        counts, expected = self.counts(), self.model.result()
        assert counts == expected, {
            name: (counts[name], each) for name, each in expected.items() if counts[name] != each
        }
        assert self.csr.test_classes[:] == self.model.distribution()
        return counts


def sent_in_chunks(sender: Tester, cells: int, chunk: int = 60_000) -> Iterator[np.ndarray]:
    """Return so many cells as a generator sends them."""
    sender.generate(count=cells)
    while cells:
        out = sender.run(sender.now + chunk, most=chunk)
        cells -= len(out)
        yield out


def measure(cells: int, seed: int, what: Impairments = Impairments()) -> tuple[dict[str, int], Truth, float]:  # noqa: B008
    """So many cells of a generator through impairments to an analyser: what that has counted, what is true, and the CPU
    seconds of both nodes.

    Raises
    ------
    AssertionError
        The analyser is not as its model has it, or differs from the truth by more than the cancellations that have
        names.
    """
    rng, truth, last, nodes = np.random.default_rng(seed), Truth(), 0, 0.0
    sender, receiver = Tester(), Tester()
    receiver.analyse(width=4)
    for sent in sent_in_chunks(sender, cells):
        came, happened = impair(rng, sent, what, last)
        truth.add(happened)
        last = int(came["tick"][-1])
        begin = time.process_time()
        receiver.run(last + 1, came)
        nodes += time.process_time() - begin
        whole = (came["hec_error"] == 0) & (came["header"] == HEADER)
        octets = came["payload"].tobytes()
        for k in np.flatnonzero(whole).tolist():
            receiver.model.cell(octets[48 * k : 48 * k + 48], int(came["tick"][k]))
    counts = receiver.check()
    for name, expected in truth.seen().items():
        assert counts[name] == expected, f"{name}: {counts[name]} by the analyser, {expected} by {truth}"
    assert truth.sent == cells
    return counts, truth, nodes


assert CELL.itemsize == 64
