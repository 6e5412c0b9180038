"""Lines of cells at LiteDRAM with its model of a PHY and a chip, in Verilator: two clocks, and a start by software."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from benches.build import CXX_FLAGS, OPTIONS, TOP, border
from benches.compiled import Compiled
from benches.record_lines import COUNTS, Line, Ticks
from bentpipe_boards.ddr3 import Ddr3Fifos
from bentpipe_boards.fpga.ddr3 import Ddr3Memory, litedram
from bentpipe_hdl.amaranth_private import ports
from bentpipe_sim.tools import compiler, run
from bentpipe_sim.verilated import cxx_options, runtime, verilate
from bentpipe_sim.verilog import verilog_of

CLOCK_HZ = 75_000_000
RECORDS_A_ROW = 256
_SEEN = {"a": 15, "ba": 3, **dict.fromkeys(("cs_n", "ras_n", "cas_n", "we_n", "cke", "odt", "reset_n"), 1)}
_PATIENCE = 40
"""Clocks between two looks at the values."""


class Lines(wiring.Component):
    """Two lines at a memory. The streams by which software starts it are ports."""

    def __init__(self, records: int) -> None:
        self._records = records
        counts = {f"{name}{k}": Out(32) for k in range(2) for name in COUNTS}
        seen = {f"seen{phase}_{name}": Out(width) for phase in range(2) for name, width in _SEEN.items()}
        asks = {"ask_valid": In(1), "ask_kind": In(2), "ask_addr": In(14), "ask_word": In(32), "ask_ready": Out(1)}
        values = {"value_valid": Out(1), "value_word": Out(32), "value_ready": In(1)}
        settings = {"memory_clk": In(1), "delay": In(32), "spacing": In(8), "runs": In(1), "ready": Out(1)}
        super().__init__(settings | asks | values | counts | seen)

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.fifos = fifos = Ddr3Fifos(fifos=2, records=self._records)
        others = {}
        for phase in range(2):
            for name in _SEEN:
                others[f"o_seen{phase}_{name}"] = getattr(self, f"seen{phase}_{name}")
        m.submodules.memory = memory = Ddr3Memory(others=others)
        m.submodules.time = time = Ticks(CLOCK_HZ)
        streams, reset = memory.streams, Signal(4, init=15)
        with m.If(reset != 0):
            m.d.sync += reset.eq(reset - 1)
        wiring.connect(m, fifos.request, streams.request)
        wiring.connect(m, streams.answer, fifos.answer)
        m.d.comb += [
            memory.fast_clk.eq(self.memory_clk), memory.rst.eq(reset != 0), self.ready.eq(fifos.ready),
            streams.ask.valid.eq(self.ask_valid), streams.ask.kind.eq(self.ask_kind),
            streams.ask.addr.eq(self.ask_addr), streams.ask.word.eq(self.ask_word),
            self.ask_ready.eq(streams.ask.ready), self.value_valid.eq(streams.value.valid),
            self.value_word.eq(streams.value.word), streams.value.ready.eq(self.value_ready),
        ]  # fmt: skip
        for k in range(2):
            line = Line(fifos.fifo[k], time, 0x9E3779B97F4A7C15 + k)
            m.submodules[f"line{k}"] = line
            m.d.comb += [line.delay.eq(self.delay), line.spacing.eq(self.spacing), line.runs.eq(self.runs)]
            m.d.comb += [getattr(self, f"{name}{k}").eq(getattr(line, name)) for name in COUNTS]
        return m


def built(records: int, folder: Path) -> Path:
    """Build the library of two lines of so many records each."""
    litedram(CLOCK_HZ, folder, rows=max(2, 2 * records // RECORDS_A_ROW))
    lines = Lines(records)
    (folder / "node.v").write_text(verilog_of(lines, TOP))
    included = verilate([folder / "node.v", folder / "ddr3.v"], folder / "verilated", "LiteDRAM", *OPTIONS)
    around = border({name: len(value) for name, (value, _) in ports(lines).items()})
    around += Path(__file__).with_name("ddr3.cpp").read_text()
    (folder / "whole.cpp").write_text(included + around)
    options = [*CXX_FLAGS, *cxx_options(), "-O2", f"-I{folder / 'verilated'}"]
    made = folder / "whole.so"
    command = [compiler(), *options, str(folder / "whole.cpp"), "-shared", "-Wl,-Bsymbolic", str(runtime())]
    run([*command, "-o", str(made)], "compiling LiteDRAM")
    return made


class Seen(ctypes.Structure):
    """A command that the chip sees, or with 0 a change of RESET#, ODT and CKE (from the highest bit)."""

    _fields_ = [
        ("clock", ctypes.c_double), ("control", ctypes.c_uint32), ("command", ctypes.c_uint32),
        ("bank", ctypes.c_uint32), ("address", ctypes.c_uint32),
    ]  # fmt: skip


class Bench:
    """Two lines, whose memory has ``ratio`` clocks for one of theirs. It is an
    :class:`~bentpipe_sim.board.ddr3.Access`."""

    def __init__(self, made: Path, ratio: float) -> None:
        self._library = library = ctypes.CDLL(str(made))
        library.bench_new.restype = library.bench_node.restype = ctypes.c_void_p
        library.bench_new.argtypes = [ctypes.c_double]
        library.bench_node.argtypes = [ctypes.c_void_p]
        library.bench_run.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_int]
        library.bench_seen.argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.POINTER(Seen))]
        library.bench_seen.restype = ctypes.c_uint64
        self._bench = library.bench_new(ratio)
        self.ports = Compiled.of(library, library.bench_node(self._bench))
        self.watches = True

    def run(self, clocks: float) -> None:
        """Run for so many clocks of the lines."""
        self._library.bench_run(self._bench, round(clocks), self.watches)

    def seen(self) -> list[Seen]:
        """Return what the chip has seen since the beginning."""
        found = ctypes.POINTER(Seen)()
        return found[: self._library.bench_seen(self._bench, ctypes.byref(found))]

    def counts(self, line: int) -> dict[str, int]:
        """Return the counts of a line."""
        return {name: self.ports[f"{name}{line}"].get() for name in COUNTS}

    def write_memory(self, kind: str, words: Sequence[int]) -> None:
        number = {"memory_address": 0, "memory_read": 1, "memory_wait": 2}[kind]
        assert self.ports["ask_ready"].get(), "an access is lost"
        self.ports["ask_kind"].set(number)
        self.ports["ask_addr"].set(words[0] & 0x3FFF)
        self.ports["ask_word"].set(words[-1])
        self.ports["ask_valid"].set(1)
        self.run(1)
        self.ports["ask_valid"].set(0)

    def take_memory(self, most: int) -> list[int]:
        found = []
        for _ in range(_PATIENCE * 8):
            if len(found) < most and self.ports["value_valid"].get():
                found.append(self.ports["value_word"].get())
                self.ports["value_ready"].set(1)
                self.run(1)
                self.ports["value_ready"].set(0)
            else:
                self.run(_PATIENCE)
            if len(found) == most:
                break
        return found
