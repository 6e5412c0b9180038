"""cocotb's test of ``examples/litex_soc.py``: a bus master sends PDUs by CSRs, and reads those that come back."""

import csv
import os
import random
from pathlib import Path
from typing import Any

from cocotb.triggers import Timer

import cocotb
from bentpipe_hdl.sonet.control import TERMINAL

HEADER = 5 << 20 | 77 << 4


class Master:
    """The SoC's bus, and its CSRs by name."""

    def __init__(self, dut: Any) -> None:
        self._dut = dut
        with Path(os.environ["BENTPIPE_CSR"]).open() as file:
            rows = [row for row in csv.reader(file) if row and not row[0].startswith("#")]
        self.csrs = {name: int(at, 0) for kind, name, at, *_ in rows if kind == "csr_register"}
        self.regions = {name: int(at, 0) for kind, name, at, *_ in rows if kind == "memory_region"}

    async def clock(self, count: int = 1) -> None:
        for _ in range(count):
            await Timer(25, "ns")
            self._dut.sys_clk.value = 1
            await Timer(25, "ns")
            self._dut.sys_clk.value = 0

    async def access(self, address: int, value: int | None = None, sel: int = 15) -> int | None:
        """Read or write a word at an address of octets; None: the bus gave an error."""
        dut = self._dut
        given = {"adr": address >> 2, "sel": sel, "we": int(value is not None), "cyc": 1, "stb": 1, "dat_w": value or 0}
        for name, one in given.items():
            getattr(dut, f"wishbone_{name}").value = one
        for _ in range(100):
            await Timer(1, "ns")
            ack, err, data = dut.wishbone_ack.value, dut.wishbone_err.value, dut.wishbone_dat_r.value
            await self.clock()
            if int(ack) or int(err):
                dut.wishbone_cyc.value = dut.wishbone_stb.value = 0
                await self.clock()
                return int(data) if int(ack) else None
        raise AssertionError(f"no answer at {address:#x}")

    async def read(self, name: str) -> int:
        value = await self.access(self.csrs[name])
        assert value is not None
        return value

    async def write(self, name: str, value: int) -> None:
        assert await self.access(self.csrs[name], value) is not None

    async def terminal(self, name: str, value: int | None = None) -> int | None:
        return await self.access(self.regions["sonet"] + 4 * TERMINAL[name].addr, value)


async def _send(bus: Master, pdu: bytes, uu: int) -> None:
    await bus.write("pdu_tx_header", HEADER)
    await bus.write("pdu_tx_user", uu)
    for at in range(0, len(pdu), 4):
        piece = pdu[at : at + 4]
        await bus.write("pdu_tx_word", int.from_bytes(piece, "little"))
        await bus.write("pdu_tx_control", (1 << len(piece)) - 1 | (at + 4 >= len(pdu)) << 4)


async def _receive(bus: Master) -> tuple[bytes, int, int]:
    """Return a PDU, its UU and its verdict."""
    octets = b""
    for _ in range(2000):
        state = await bus.read("pdu_rx_state")
        if not state & 1:
            continue
        if state >> 2 & 15:
            octets += (await bus.read("pdu_rx_word")).to_bytes(4, "little")
        end = await bus.read("pdu_rx_end")
        await bus.write("pdu_rx_next", 1)
        if state & 2:
            return octets[: end & 0xFFFF], end >> 16 & 255, end >> 24 & 7
    raise AssertionError("no PDU came")


@cocotb.test()
async def pdus_come_back(dut: Any) -> None:
    rng = random.Random(2)
    bus = Master(dut)
    dut.sys_clk.value = 0
    dut.sim_trace.value = 0
    for name in ("adr", "dat_w", "sel", "cyc", "stb", "we"):
        getattr(dut, f"wishbone_{name}").value = 0
    dut.sys_rst.value = 1
    await bus.clock(4)
    dut.sys_rst.value = 0
    await bus.clock(300)
    for _ in range(200):
        if not await bus.terminal("defects"):
            break
        await bus.clock(400)
    else:
        raise AssertionError("the line is not in service")
    await bus.terminal("latch", 1)
    pdus = [rng.randbytes(length) for length in (1, 40, 41, 300, 48)]
    for k, pdu in enumerate(pdus):
        await _send(bus, pdu, k)
    for k, pdu in enumerate(pdus):
        assert await _receive(bus) == (pdu, k, 0)
    await bus.terminal("latch", 1)
    await bus.clock(4)
    cells = sum((len(pdu) + 8 + 47) // 48 for pdu in pdus)
    assert await bus.terminal("count_tx_user") == cells
    assert await bus.terminal("count_rx_user") == cells
    assert await bus.terminal("count_b2") == 0
    # An aborted PDU, and the terminal's refusal of a write of some octets
    await _send(bus, b"abcdef", 1 << 16)
    assert (await _receive(bus))[2] == 5
    assert await bus.read("aal5_segmenter_aborted") == 1
    address = bus.regions["sonet"] + 4 * TERMINAL["c2_expected"].addr
    before = await bus.access(address)
    assert await bus.access(address, 0x55, sel=1) is None
    assert await bus.access(address) == before
    # A loss of signal, forced, is seen at the other end of the loop
    await bus.terminal("force", 1)
    await bus.clock(1000)
    assert await bus.terminal("defects")
