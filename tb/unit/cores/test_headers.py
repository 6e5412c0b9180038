"""Header error control, look-up and GCRA as cores of their own, against the models."""

from __future__ import annotations

import json
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from benches.simulator import Simulator
from bentpipe_hdl.amaranth_private import ports
from bentpipe_hdl.cores.headers import GcraPolicer, HeaderErrorControl, HeaderLookup
from bentpipe_hdl.lookup_table import lookup_table
from bentpipe_hdl.registers import Recorder, Registers
from models.gcra import VirtualScheduling
from models.hec import Outcome, Receiver, hec

WIDTHS = (32, 416)
GCRA = json.loads((Path(__file__).parents[2] / "vectors" / "gcra.json").read_text())["vectors"]


class Component:
    """The ports of a component in a test bench of a simulator."""

    def __init__(self, ctx: Any, component: Any) -> None:
        self._ctx, self._ports = ctx, {name: value for name, (value, _) in ports(component).items()}

    def get(self, name: str) -> int:
        return self._ctx.get(self._ports[name])

    def set(self, name: str, value: int) -> None:
        self._ctx.set(self._ports[name], value)


def _run(component: Any, bench: Any) -> None:
    async def started(ctx: Any) -> None:
        await bench(ctx, Component(ctx, component))

    simulator = Simulator(component)
    simulator.add_clock(1e-6)
    simulator.add_testbench(started)
    simulator.run()


async def _write(ctx: Any, io: Component, component: Any, change: Any) -> None:
    recorder = Recorder()
    change(Registers(recorder, component.registers))
    for addr, value in recorder.writes:
        for name, given in (("addr", addr), ("w_data", value), ("w_en", 1)):
            io.set(f"csr_{name}", given)
        await ctx.tick()
    io.set("csr_w_en", 0)


async def _ask(ctx: Any, io: Component, answer: tuple[str, ...], **request: int) -> list[int]:
    """Give a request and return the answer; the number of clocks between is the last of the list."""
    for name, value in {**request, "valid": 1}.items():
        io.set(name, value)
    clocks = 0
    while not io.get("ready"):
        await ctx.tick()
    while not io.get("done"):
        await ctx.tick()
        clocks += 1
        io.set("valid", 0)
        for name in request:  # the request is kept
            io.set(name, 0)
    found = [io.get(name) for name in answer]
    await ctx.tick()
    io.set("valid", 0)
    return [*found, clocks]


def test_header_error_control() -> None:
    rng = random.Random(1)

    async def bench(ctx: Any, io: Component) -> None:
        model = Receiver()
        for _ in range(400):
            octets = rng.randbytes(4)
            io.set("tx_header", int.from_bytes(octets, "big"))
            assert io.get("tx_hec") == hec(octets)
            whole = int.from_bytes(octets + bytes([hec(octets)]), "big")
            for bit in rng.sample(range(40), rng.choice([0, 0, 1, 1, 2, 3])):
                whole ^= 1 << bit
            outcome, header = model.receive(whole.to_bytes(5, "big"))
            io.set("rx_octets", whole)
            io.set("rx_valid", 1)
            verdict = [io.get(f"rx_{name}") for name in ("accept", "corrected", "discard")]
            assert verdict == [outcome != Outcome.DISCARDED, outcome == Outcome.CORRECTED, outcome == Outcome.DISCARDED]
            if outcome != Outcome.DISCARDED:
                assert io.get("rx_header").to_bytes(4, "big") == header[:4]
            await ctx.tick()
            io.set("rx_valid", 0)
            if rng.random() < 0.3:
                await ctx.tick()

    _run(HeaderErrorControl(), bench)


@pytest.mark.parametrize("width", WIDTHS)
def test_lookup(width: int) -> None:
    rng = random.Random(2)
    dut = HeaderLookup(width=width, vcs=16, ports=4)
    keys = [(port, vpi, vci) for port in range(4) for vpi in (0, 1, 0xFFF) for vci in (32, 33, 0xFFFF)]
    entries = {key: vc for vc, key in enumerate(rng.sample(keys, 16))}

    async def bench(ctx: Any, io: Component) -> None:
        io.set("nni", 0b0011)
        await _write(ctx, io, dut, lookup_table(16, entries).write)
        for port, vpi, vci in keys * 2:
            header = vpi << 20 | vci << 4 | rng.getrandbits(4)
            if port > 1:  # UNI: the upper four bits are GFC
                header = header & 0x0FFFFFFF | rng.getrandbits(4) << 28
                vpi &= 0xFF
            known, vc, clocks = await _ask(ctx, io, ("known", "vc"), header=header, port=port)
            assert (vc if known else None) == entries.get((port, vpi, vci))
            assert clocks == (0 if width == 416 else 6)

    _run(dut, bench)


@pytest.mark.parametrize("width", WIDTHS)
def test_gcra(width: int) -> None:
    """Vectors, a VC each, one after the other; then cells of all VCs with tags."""
    rng = random.Random(3)
    dut = GcraPolicer(width=width, vcs=32)

    async def contract(ctx: Any, io: Component, vc: int, increment: Fraction, limit: Fraction, **flags: int) -> None:
        def change(csr: Registers) -> None:
            csr.police_limit[2 * vc] = int(limit * 65536)
            csr.police_rate[2 * vc] = {"increment": int(increment * 65536), "enabled": 1, **flags}

        await _write(ctx, io, dut, change)

    async def bench(ctx: Any, io: Component) -> None:
        await ctx.tick().repeat(32)
        for vc, vector in enumerate(GCRA[:12]):
            await contract(ctx, io, vc, Fraction(vector["I"]), Fraction(vector["L"]))
            for time, conforms in zip(vector["times"][:200], vector["conform"], strict=False):
                discard, clocks = await _ask(ctx, io, ("discard",), now=int(time), vc=vc, user=1)
                assert discard == 1 - conforms
                assert clocks == (0 if width == 416 else 11)
        models = {}
        for vc in range(20, 24):
            models[vc] = VirtualScheduling(Fraction(100 + vc), Fraction(30))
            await contract(ctx, io, vc, Fraction(100 + vc), Fraction(30), tag=1)
        now, tagged = 1 << 40, 0
        for _ in range(150):
            now += rng.randrange(60)
            vc = rng.choice([*models])
            conforms = models[vc].conforms(now)
            discard, clp, _ = await _ask(ctx, io, ("discard", "new_clp"), now=now, vc=vc, user=1)
            assert (discard, clp) == (0, int(not conforms))
            tagged += not conforms
        assert tagged > 20

    _run(dut, bench)


def test_wrong_parameters() -> None:
    for make, message in (
        (lambda: HeaderLookup(vcs=3), "vcs"),
        (lambda: HeaderLookup(ports=17), "ports must be 1 to 16, not 17"),
        (lambda: GcraPolicer(width=8), "width must be 32 or 416"),
    ):
        with pytest.raises(ValueError, match=message):
            make()
