"""The cores of the check that are no nodes, each with traffic at random."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from benches.streams import Io, PacketSink, PacketSource, Ports, cell_words, pdu_beats, play
from bentpipe_hdl.adapters import Adapted
from bentpipe_hdl.cores import CORES
from bentpipe_hdl.lookup_table import lookup_table
from bentpipe_hdl.registers import RegisterMap
from models.aal5 import segment
from models.cell import Header
from models.registers import written
from models.sonet.frame import ModelFramer
from models.sonet.tc import CellSource
from models.utopia import AtmReceiver, AtmSender, PhyModel

__all__ = ["CORE_NODES", "CoreNode"]

Ends = Sequence[Any]


@dataclass(frozen=True)
class CoreNode:
    """A core of the check: its parameters, and the ends that give it traffic for so many clocks.

    Its outputs change once in ``busy`` clocks.
    """

    name: str
    ends: Callable[[random.Random, int], Ends]
    parameters: dict[str, int] = field(default_factory=dict)
    bus: str = ""
    busy: int = 8

    def component(self) -> Any:
        core = CORES[self.name].make(**self.parameters)
        return Adapted(core, bus=self.bus) if self.bus else core

    def play(self, recorder: Any, rng: random.Random, clocks: int, seed: int) -> None:
        del seed
        count = iter(range(clocks + 1))
        play(Ports(recorder), self.ends(rng, clocks), lambda: next(count) == clocks, most=clocks + 1)


class _Random:
    """Inputs that change at random: by name the bits, and the share of clocks in which they do."""

    def __init__(self, rng: random.Random, **inputs: tuple[int, float]) -> None:
        self._rng, self._inputs = rng, inputs

    def drive(self, io: Io) -> None:
        for name, (bits, rate) in self._inputs.items():
            if self._rng.random() < rate:
                io.set(name, self._rng.getrandbits(bits))

    def sample(self, io: Io) -> None:
        pass


def _registers(name: str, **parameters: int) -> RegisterMap:
    """Return the registers of a core that is not elaborated."""
    core = CORES[name].make(**parameters)
    core._MustUse__silence = True  # Amaranth would warn of it
    return core.registers


class _Csr:
    """A node's bus of registers: writes in the first clocks, reads of any register behind them."""

    def __init__(self, rng: random.Random, registers: RegisterMap, change: Callable[[Any], None]) -> None:
        self._rng, self._writes = rng, list(written(registers, change))
        self._addresses = [each.addr for each in registers.registers if each.access != "wo"] or [0]
        self._left = 10

    def drive(self, io: Io) -> None:
        self._left -= 1
        io.set("csr_w_en", 0)
        io.set("csr_r_en", 0)
        if self._left:
            return
        if self._writes:
            addr, value = self._writes.pop(0)
            io.set("csr_addr", addr)
            io.set("csr_w_data", value)
            io.set("csr_w_en", 1)
            self._left = 1
        else:
            io.set("csr_addr", self._rng.choice(self._addresses))
            io.set("csr_r_en", 1)
            self._left = self._rng.randrange(4, 60)

    def sample(self, io: Io) -> None:
        pass


class _Model:
    """A model at a bus."""

    def __init__(self, model: Any, outputs: Sequence[str], **fixed: int) -> None:
        self._model, self._outputs, self._fixed = model, outputs, fixed

    def drive(self, io: Io) -> None:
        for name, value in (self._model.drives | self._fixed).items():
            io.set(name, value)

    def sample(self, io: Io) -> None:
        self._model.clock({name: io.get(name) for name in self._outputs} | self._model.drives)


class _Line:
    """A line's octets from a framer's model, which nothing answers."""

    def __init__(self, rng: random.Random, clocks: int, name: str, octets: int = 1) -> None:
        cells = [rng.randbytes(52) for _ in range(clocks // 40)]
        framer, line = ModelFramer(3 if octets == 1 else 12, CellSource(cells)), b""
        while len(line) < octets * clocks:
            line += framer.frame()
        self._octets, self._words, self._name, self._at = octets, line[3 * 810 - 9 :] + line, name, 0

    def drive(self, io: Io) -> None:
        io.set(self._name, int.from_bytes(self._words[self._at : self._at + self._octets], "little"))
        self._at += self._octets

    def sample(self, io: Io) -> None:
        pass


def _cells(rng: random.Random, clocks: int, rate: float, **fields: int) -> PacketSource:
    """Cells of random fields, some of them no cells."""
    source = PacketSource("i", rng, rate)
    for _ in range(clocks // 13):
        words = cell_words(rng.getrandbits(32), rng.randbytes(48))[: rng.choice([13] * 20 + [12, 3])]
        marks = {name: rng.getrandbits(bits) for name, bits in fields.items()}
        source.put([{"tdata": word, **marks} for word in words])
    return source


def _segmenter(rng: random.Random, clocks: int) -> Ends:
    source = PacketSource("i", rng, 0.9)
    for _ in range(clocks // 20):
        aborts = int(rng.random() < 0.1)
        source.put(pdu_beats(rng.getrandbits(32), rng.randbytes(rng.choice([1, 40, 41, 150])), 1, 2, aborts))
    return source, PacketSink("o", rng, 0.8)


def _reassembler(rng: random.Random, clocks: int) -> Ends:
    source = PacketSource("i", rng, 0.95)
    waiting: list[list[Any]] = [[] for _ in range(4)]
    for _ in range(clocks // 13):
        vc = rng.randrange(4)
        waiting[vc] = waiting[vc] or segment(Header(0, 32 + vc), rng.randbytes(rng.choice([1, 41, 300])), 3, 4)
        cell, error = waiting[vc].pop(0), int(rng.random() < 0.05)
        payload = cell.payload if rng.random() < 0.95 else rng.randbytes(48)
        source.put([{"tdata": w, "tdest": vc, "tuser": error} for w in cell_words(int(cell.header), payload)])
    return source, PacketSink("o", rng, 0.9)


def _terminal(octets: int) -> Callable[[random.Random, int], Ends]:
    def ends(rng: random.Random, clocks: int) -> Ends:
        rates = {"enable": (1, 0.1), "signal": (1, 0.001)} if octets == 1 else {"signal": (1, 0.0005)}
        line = _Line(rng, clocks, "line_in", octets)
        csr = _Random(rng, csr_cyc=(1, 0.3), csr_stb=(1, 0.3), csr_adr=(7, 0.1), csr_sel=(4, 0.0), csr_we=(1, 0.02))
        return line, _Random(rng, **rates), csr, _cells(rng, clocks, 0.9), PacketSink("o", rng, 0.9)

    return ends


def _framer(rng: random.Random, clocks: int) -> Ends:
    strobes = dict.fromkeys(("increment", "decrement", "jump"), (1, 0.001))
    more = {"j0": (8, 0.1), "overhead": (194, 0.01), "rei_l": (8, 0.1), "target": (9, 0.1), "faults": (10, 0.0002)}
    return _Random(rng, **more, **strobes, drift=(20, 0.01)), _cells(rng, clocks, 0.9)


def _deframer(rng: random.Random, clocks: int) -> Ends:
    return _Line(rng, clocks, "line"), _Random(rng, signal=(1, 0.0002)), PacketSink("o", rng, 0.9)


def _gcra(rng: random.Random, clocks: int) -> Ends:
    del clocks

    def change(csr: Any) -> None:
        for k in range(16):
            csr.police_limit[k] = rng.randrange(200 << 16)
            csr.police_rate[k] = {"increment": rng.randrange(1 << 16, 20 << 16), "enabled": 1, "tag": k >> 1 & 1}

    registers = _registers("gcra", vcs=8)
    request = _Random(rng, valid=(1, 0.4), vc=(3, 0.5), clp=(1, 0.5), user=(1, 0.5), last=(1, 0.5), now=(9, 0.3))
    return _Csr(rng, registers, change), request


def _lookup(rng: random.Random, clocks: int) -> Ends:
    del clocks
    entries = {(port, vpi, 32): 2 * port + vpi for port in range(4) for vpi in range(2)}
    registers = _registers("lookup", vcs=8, ports=4)

    class Headers:
        def drive(self, io: Io) -> None:
            io.set("valid", int(rng.random() < 0.3))
            io.set("port", rng.randrange(4))
            io.set("header", rng.choice([0, 1, 1, 2]) << 20 | rng.choice([32, 32, 33]) << 4 | rng.getrandbits(4))

        def sample(self, io: Io) -> None:
            pass

    return _Csr(rng, registers, lookup_table(8, entries).write), Headers()


_ATM_OUT = ("tx_addr", "tx_data", "tx_soc", "tx_prty", "tx_enb_n", "rx_addr", "rx_enb_n")
_PHY_OUT = ("tx_clav", "rx_clav", "rx_data", "rx_soc", "rx_prty", "rx_oe")


def _atm(bits: int) -> Callable[[random.Random, int], Ends]:
    def ends(rng: random.Random, clocks: int) -> Ends:
        give = {phy: [(rng.getrandbits(32), rng.randbytes(48)) for _ in range(clocks // 30)] for phy in range(3)}
        model = PhyModel(bits, range(3), rng, give)
        return _Model(model, _ATM_OUT), _cells(rng, clocks, 0.9, tdest=2), PacketSink("o", rng, 0.8)

    return ends


def _phy(bits: int) -> Callable[[random.Random, int], Ends]:
    def ends(rng: random.Random, clocks: int) -> Ends:
        cells = {5: [(rng.getrandbits(32), rng.randbytes(48)) for _ in range(clocks // 30)]}
        sender, receiver = AtmSender(bits, cells, rng), AtmReceiver(bits, [5], rng)
        tx, rx = _Model(sender, _PHY_OUT, address=5), _Model(receiver, _PHY_OUT)
        return tx, rx, _cells(rng, clocks, 0.9), PacketSink("o", rng, 0.8)

    return ends


CORE_NODES: dict[str, CoreNode] = {
    "aal5-segmenter": CoreNode("aal5-segmenter", _segmenter),
    "aal5-reassembler": CoreNode("aal5-reassembler", _reassembler, {"vcs": 4, "limit": 9}),
    "sonet-terminal": CoreNode("sonet-terminal", _terminal(1), bus="wishbone"),
    "sonet-terminal-12c": CoreNode("sonet-terminal", _terminal(4), {"n": 12, "octets": 4}, bus="wishbone"),
    "sonet-framer": CoreNode("sonet-framer", _framer),
    "sonet-deframer": CoreNode("sonet-deframer", _deframer, busy=100),
    "hec": CoreNode("hec", lambda rng, _: (_Random(rng, tx_header=(32, 0.5), rx_valid=(1, 0.5), rx_octets=(40, 0.5)),)),
    "gcra": CoreNode("gcra", _gcra, {"vcs": 8}),
    "gcra-416": CoreNode("gcra", _gcra, {"vcs": 8, "width": 416}),
    "lookup": CoreNode("lookup", _lookup, {"vcs": 8, "ports": 4}),
    "lookup-416": CoreNode("lookup", _lookup, {"vcs": 8, "ports": 4, "width": 416}),
    **{f"utopia-atm-{bits}": CoreNode("utopia-atm", _atm(bits), {"bits": bits, "phys": 3}) for bits in (8, 16)},
    **{f"utopia-phy-{bits}": CoreNode("utopia-phy", _phy(bits), {"bits": bits}) for bits in (8, 16)},
}
