"""Model of LiteDRAM behind its native port: commands wait, data come late, and refreshes hold both up."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

from bentpipe_boards.ddr3 import DATA_BITS, NativeSignature

WRITE_LATENCY, READ_LATENCY = 4, 17
REFRESH_CLOCKS, REFRESH_PERIOD = 40, 585
_QUEUE = 8


class NativeMemory(wiring.Component):
    """A memory that takes its time: a queue of commands, of which none, one, or one in two clocks is executed.

    Parameters
    ----------
    words : int
        Words of 128 bits, a power of two.
    stuck : int
        Bits of what is read that are always 0.

    Members
    -------
    native : In(NativeSignature)
    outside : Out(1)
        An address was beyond the memory.
    commands : Out(32)
    """

    def __init__(self, *, words: int, stuck: int = 0) -> None:
        self._words, self._stuck = words, stuck
        super().__init__({"native": In(NativeSignature()), "outside": Out(1), "commands": Out(32)})

    def elaborate(self, platform: Any) -> Module:
        m, native = Module(), self.native
        bits = self._words.bit_length() - 1
        m.submodules.queue = queue = SyncFIFO(width=1 + len(native.cmd_addr), depth=_QUEUE)
        noise, left = Signal(31, init=1), Signal(range(REFRESH_PERIOD))
        m.d.sync += [
            noise.eq(Cat(noise[27] ^ noise[30], noise)),
            left.eq(Mux(left == 0, REFRESH_PERIOD - 1, left - 1)),
        ]
        goes = Signal()
        m.d.comb += [
            native.cmd_ready.eq(queue.w_rdy & (noise[:2] != 0)),
            queue.w_data.eq(Cat(native.cmd_we, native.cmd_addr)),
            queue.w_en.eq(native.cmd_valid & native.cmd_ready),
            queue.r_en.eq((left > REFRESH_CLOCKS) & noise[4]),
            goes.eq(queue.r_en & queue.r_rdy),
        ]
        we, addr = queue.r_data[0], queue.r_data[1:]
        with m.If(goes):
            m.d.sync += [self.commands.eq(self.commands + 1), self.outside.eq(self.outside | addr[bits:].any())]

        # Reads and writes reach the words in the same clock, so in the order of their commands
        writes, reads = Signal(WRITE_LATENCY), Signal(READ_LATENCY)
        where = [Signal(bits, name=f"where{k}") for k in range(WRITE_LATENCY)]
        m.d.sync += [writes.eq(Cat(goes & we, writes)), reads.eq(Cat(goes & ~we, reads)), where[0].eq(addr)]
        m.d.sync += [later.eq(one) for one, later in pairwise(where)]
        m.submodules.words = words = memory.Memory(shape=DATA_BITS, depth=self._words, init=[])
        put, get = words.write_port(), words.read_port(domain="sync")
        m.d.comb += [
            native.wdata_ready.eq(writes[-1]),
            put.addr.eq(where[-1]),
            put.data.eq(native.wdata_data),
            put.en.eq(writes[-1]),
            get.addr.eq(where[-1]),
        ]
        came = get.data
        for k in range(READ_LATENCY - WRITE_LATENCY - 1):
            later = Signal(DATA_BITS, name=f"came{k}")
            m.d.sync += later.eq(came)
            came = later
        m.d.comb += [
            native.rdata_valid.eq(reads[-1]),
            native.rdata_data.eq(Mux(reads[-1], came & ~self._stuck, (1 << DATA_BITS) - 1)),
        ]
        self._registers(m)
        return m

    def _registers(self, m: Module) -> None:
        native = self.native
        m.submodules.registers = registers = memory.Memory(shape=32, depth=1 << 10, init=[])
        put, get = registers.write_port(), registers.read_port(domain="sync")
        m.d.comb += [
            put.addr.eq(native.csr_adr),
            put.data.eq(native.csr_dat_w),
            put.en.eq(native.csr_we),
            get.addr.eq(native.csr_adr),
            native.csr_dat_r.eq(get.data),
        ]
