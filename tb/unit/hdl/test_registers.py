"""Registers as data: access by name, checks of a declaration, maps for other tools."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from amaranth.hdl import Elaboratable, Module, Signal
from amaranth.sim import Simulator

from bentpipe_hdl.csr import CsrMap, CsrSignature
from bentpipe_hdl.registers import Field, Register, RegisterMap, Registers
from bentpipe_hdl.switch.control import switch_registers


class Words(dict[int, int]):
    """A bus that is a memory."""

    def read(self, addr: int) -> int:
        return self.get(addr, 0)

    def write(self, addr: int, value: int) -> None:
        self[addr] = value


def made(*registers: Register, **windows: tuple[int, RegisterMap]) -> RegisterMap:
    return RegisterMap("part", "", 1, {}, registers, windows)


LIMIT = Field("limit", 0, 16)
PORT = Field("port", 32, 4)


def test_registers_by_name() -> None:
    words = Words()
    inner = made(Register("level", 2, "inside"))
    csr = Registers(
        words,
        made(
            Register("size", 1, "plain", width=8),
            Register("policy", 0x10, "with fields", "wo", 40, 4, fields=(LIMIT, PORT)),
            Register("count", 0x20, "counted", "ro", count=4),
            window=(0x100, inner),
        ),
    )
    csr.size = 200
    assert csr.size == words[1] == 200
    csr.policy[3] = {"limit": 7, "port": 9}
    assert (words[0x16], words[0x17]) == (7, 9)
    csr.policy[3].limit = 0xFFFF
    assert (words[0x16], words[0x17]) == (0xFFFF, 9), "the other field stays as it was written"
    assert csr.policy[3].port == 9
    words[0x21] = 5
    assert csr.count[1] == 5
    assert csr.count[:] == [0, 5, 0, 0]
    csr.window.level = 3
    assert words[0x102] == 3


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        (lambda csr: csr.sise, AttributeError, "part has no register 'sise'; it has size, policy, count"),
        (lambda csr: setattr(csr, "count", 1), AttributeError, "count is a table"),
        (lambda csr: csr.count.__setitem__(0, 1), AttributeError, "count can't be written"),
        (lambda csr: csr.count[4], IndexError, "count has entries 0 to 3, not 4"),
        (lambda csr: setattr(csr, "size", 256), ValueError, "size takes 0 to 255, not 256"),
        (lambda csr: csr.policy.__setitem__(0, {"port": 16}), ValueError, r"policy\.port takes 0 to 15, not 16"),
        (lambda csr: csr.policy[0].depth, AttributeError, "policy has no field 'depth'; it has limit, port"),
    ],
)
def test_wrong_access_is_refused(wrong, error, message) -> None:
    registers = made(
        Register("size", 1, "plain", width=8),
        Register("policy", 0x10, "with fields", "wo", 40, 4, fields=(LIMIT, PORT)),
        Register("count", 0x20, "counted", "ro", count=4),
    )
    words = Words()
    with pytest.raises(error, match=message):
        wrong(Registers(words, registers))
    assert not words


@pytest.mark.parametrize(
    ("registers", "message"),
    [
        (lambda: [Register("a", 4, "x"), Register("b", 2, "x", count=4)], "not aligned"),
        (lambda: [Register("a", 5, "x"), Register("b", 4, "x", count=4)], "a at 0x0005 overlaps b"),
        (lambda: [Register("a", 4, "x"), Register("a", 5, "x")], "two registers of part are called a"),
        (lambda: [Register("a", 4, "x", width=40)], "can be written only"),
        (lambda: [Register("a", 4, "x", width=4, reset=16)], "can't be 16 after reset"),
        (lambda: [Register("a", 4, "x", fields=(Field("f", 0, 4), Field("g", 3)))], "field g overlaps"),
        (lambda: [Register("a", 4, "x", "rx")], "access is one of rw, ro, wo"),
        (lambda: [Register("a", 1 << 20, "x")], "no place"),
        (lambda: [Register("a", 4, "x", reset=None)], "has a value after reset"),
    ],
)
def test_a_wrong_declaration_is_refused(registers, message) -> None:
    with pytest.raises(ValueError, match=message):
        made(*registers())


class Bare(Elaboratable):
    """A node with nothing but what its declaration says."""

    def __init__(self, registers: RegisterMap) -> None:
        self.registers, self.bus = registers, CsrSignature().flip().create()

    def elaborate(self, platform) -> Module:
        m = Module()
        CsrMap(m, self.bus, self.registers).finish()
        return m


def test_a_declared_setting_is_there_without_another_line() -> None:
    bare = Bare(made(Register("size", 7, "plain", width=8, reset=3)))
    sim, seen = Simulator(bare), []
    sim.add_clock(1e-6)

    async def access(ctx):
        bus = bare.bus
        for value in (None, 0x1FF):
            ctx.set(bus.addr, 7)
            if value is not None:
                ctx.set(bus.w_data, value)
                ctx.set(bus.w_en, 1)
                await ctx.tick()
                ctx.set(bus.w_en, 0)
            ctx.set(bus.r_en, 1)
            await ctx.tick()
            ctx.set(bus.r_en, 0)
            await ctx.tick().repeat(3)
            seen.append(ctx.get(bus.r_data))

    sim.add_testbench(access)
    sim.run()
    assert seen == [3, 0xFF]


def test_what_nothing_is_behind_is_refused() -> None:
    for register in (Register("count", 7, "counted", "ro"), Register("table", 8, "x", "wo", 40, 4)):
        with pytest.raises(ValueError, match=f"nothing is behind register {register.name} of part"):
            Bare(made(register)).elaborate(None)


def test_what_is_not_declared_or_taken_twice_is_refused() -> None:
    csr = CsrMap(Module(), CsrSignature().flip().create(), made(Register("size", 7, "x", width=8)))
    with pytest.raises(KeyError, match="part has no register 'sise'"):
        csr.register("sise")
    with pytest.raises(ValueError, match="8 bits, and 9 are behind it"):
        csr.register("size", Signal(9))
    with pytest.raises(ValueError, match="taken twice"):
        csr.register("size")


def test_the_maps_have_every_register_with_its_address() -> None:
    registers = switch_registers(vcs=8, cells=12, ports=3)
    data = json.loads(json.dumps(registers.to_json()))
    assert (data["magic"], data["shape"]) == ("BPSW", {"vcs": 8, "cells": 12, "ports": 3, "options": 0})
    by_name = {entry["name"]: entry for entry in data["registers"]}
    policy = registers["vc_policy"]
    assert by_name["vc_policy"]["address"] == policy.addr
    assert [(f["name"], f["low"]) for f in by_name["vc_policy"]["fields"]][:3] == [
        ("limit", 0),
        ("epd_threshold", 16),
        ("port", 32),
    ]
    rows = [line.split(",") for line in registers.to_csv(0x8000_0000).splitlines()]
    assert rows[0] == ["csr_base", "switch", "0x80000000", "", ""]
    assert ["csr_register", "switch_vc_policy", f"{0x8000_0000 + 4 * policy.addr:#010x}", "16", "rw"] in rows
    assert ["constant", "switch_cells", "12", "", ""] in rows
    assert sum(row[0] == "csr_register" for row in rows) == len(by_name) == len(registers.registers)


def test_the_declarations_need_no_amaranth() -> None:
    kinds = ", ".join(f"bentpipe_hdl.{kind}.control" for kind in ("switch", "nic", "link", "sonet"))
    message = subprocess.run(
        [sys.executable, "-c", f"import sys, {kinds}; print('amaranth' in sys.modules)"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert message.stdout == "False\n"


def test_a_whole_table_is_written_like_its_entries():
    table = Register("slots", 0x10, "slots", "wo", 64, count=4, fields=(Field("low", 0, 8), Field("valid", 63)))
    one, all_at_once = {}, {}

    class Bus:
        def __init__(self, kept):
            self.kept = kept

        def write(self, addr, value):
            self.kept[addr] = value

        def read(self, addr):
            raise AssertionError("nothing of it can be read")

    class BlockBus(Bus):
        def write_all(self, addr, words):
            self.kept.update(enumerate(words, addr))

    shape = RegisterMap("part", "", 1, {}, (table,))
    values = [1 << 63 | 5, 0, 255, 0]
    in_a_block = {}
    single, whole, block = (Registers(bus, shape, 0x100) for bus in (Bus(one), Bus(all_at_once), BlockBus(in_a_block)))
    for registers in (single, whole, block):
        registers.slots[1] = 7
    for index, value in enumerate(values):
        single.slots[index] = value
    whole.slots[:] = values
    block.slots[:] = values
    assert one == all_at_once == in_a_block and block.slots[:] == whole.slots[:] == single.slots[:] == values
    whole.slots[1].low = 3
    assert whole.slots[:] == [values[0], 3, 255, 0]
    for wrong in (values[:3], [*values, 0], [-1, 0, 0, 0], [1 << 64, 0, 0, 0]):
        with pytest.raises(ValueError, match="register slots"):
            whole.slots[:] = wrong
    with pytest.raises(IndexError, match=r"only \[:\] can be written"):
        whole.slots[1:3] = [0, 0]
    assert whole.slots[:] == [values[0], 3, 255, 0]
