"""cocotb's test of ``examples/aal5_over_sonet.v``: the line is looped back with a shift of some bits, PDUs come out as
they went in."""

import random
from collections import deque
from typing import Any

from cocotb.triggers import Timer

import cocotb
from benches.streams import PacketSink, PacketSource, octets_of, pdu_beats
from bentpipe_hdl.sonet.control import TERMINAL

HEADER = 5 << 20 | 77 << 4


class Dut:
    """The ports of cocotb's handle, and a clock a call."""

    def __init__(self, dut: Any) -> None:
        self._dut = dut

    def get(self, name: str) -> int:
        return int(getattr(self._dut, name).value)

    def set(self, name: str, value: int) -> None:
        getattr(self._dut, name).value = value

    async def clock(self, ends: Any) -> None:
        for end in ends:
            end.drive(self)
        await Timer(25, "ns")
        for end in ends:
            end.sample(self)
        self.set("clk", 1)
        await Timer(25, "ns")
        self.set("clk", 0)


class Loop:
    """The line, so many bits late."""

    def __init__(self, bits: int) -> None:
        self._line = deque([0] * bits)

    def drive(self, io: Dut) -> None:
        io.set("line_in", sum(self._line.popleft() << k for k in range(7, -1, -1)))

    def sample(self, io: Dut) -> None:
        octet = io.get("line_out")
        self._line.extend(octet >> k & 1 for k in range(7, -1, -1))


async def read(io: Dut, name: str, ends: Any) -> int:
    """Return a register of the terminal, by AXI4-Lite."""
    io.set("csr_araddr", 4 * TERMINAL[name].addr)
    io.set("csr_arvalid", 1)
    while True:
        ready = io.get("csr_arready")
        await io.clock(ends)
        if ready:
            break
    io.set("csr_arvalid", 0)
    while not io.get("csr_rvalid"):
        await io.clock(ends)
    value = io.get("csr_rdata")
    await io.clock(ends)
    return value


@cocotb.test()
async def pdus_come_back(dut: Any) -> None:
    rng = random.Random(1)
    io = Dut(dut)
    source = PacketSource("tx", rng, 0.6)
    sink = PacketSink("rx", rng, 0.5, ["tkeep", "tuser"])
    ends = [Loop(8 + rng.randrange(8)), source, sink]
    for name in ("clk", "tx_tvalid", "csr_arvalid", "rx_tready", "csr_araddr", "line_in"):
        io.set(name, 0)
    io.set("csr_rready", 1)
    io.set("rst", 1)
    await io.clock([])
    io.set("rst", 0)
    clocks = 0
    while await read(io, "defects", ends):
        for _ in range(200):
            await io.clock(ends)
        clocks += 200
        assert clocks < 30 * 2430, "the line is not in service"
    sent = [rng.randbytes(rng.choice([1, 40, 41, 100, 333])) for _ in range(12)]
    for pdu in sent:
        source.put([{name if name != "tdest" else "header": value for name, value in beat.items() if name != "tuser"}
                    for beat in pdu_beats(HEADER, pdu)])  # fmt: skip
    for _ in range(3 * 2430):
        await io.clock(ends)
        if len(sink.packets) == len(sent):
            break
    assert [packet[-1]["tuser"] >> 32 & 7 for packet in sink.packets] == [0] * len(sent)
    assert [octets_of(packet)[: packet[-1]["tuser"] & 0xFFFF] for packet in sink.packets] == sent
    for _ in range(2430):  # counters are latched by a write, which this design lacks: no alarm has come
        await io.clock(ends)
    assert await read(io, "defects", ends) == 0
