"""The tests of ``tb/unit/hdl`` in cocotb: the same stimuli and models, on Amaranth's own Verilog in Verilator.

There a test gives its bench to ``run``, which simulates it in Amaranth's simulator. Here ``run`` only takes the bench,
which cocotb then drives: inputs change at the clock's falling edge, outputs are read there.
"""

import importlib
import json
import os

from amaranth.hdl import Value
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge

import cocotb
from benches.build import _ports
from unit.hdl.bench import Bench

ENVIRONMENT = "BENTPIPE_UNIT_TEST"


class _Taken(Exception):
    """Ends a test where it would simulate."""


def taken(module, function, parameters):
    """The node, the bench and the seed that a test of ``tb/unit/hdl`` gives to ``run`` first."""

    def run(node, bench, seed=1):
        raise _Taken(node, bench, seed)

    loaded = importlib.import_module(module)
    original, loaded.run = loaded.run, run
    try:
        getattr(loaded, function)(**parameters)
    except _Taken as found:
        return found.args
    finally:
        loaded.run = original
    raise AssertionError(f"{function} simulates nothing")


class Context:
    """What the bench needs of Amaranth's simulator."""

    def __init__(self, dut, node):
        ports = _ports(node)
        self._clk = dut.clk
        self._handles = {id(value): getattr(dut, name) for name, (value, _) in ports.items() if len(value)}
        self._inputs = [
            getattr(dut, name) for name, (value, way) in ports.items() if way.name == "Input" and len(value)
        ]

    async def start(self, dut):
        for handle in self._inputs:
            handle.value = 0
        dut.rst.value = 1
        Clock(dut.clk, 2, "ns", impl="gpi").start()
        await FallingEdge(dut.clk)
        await FallingEdge(dut.clk)
        dut.rst.value = 0

    def get(self, value):
        handle = self._handles.get(id(Value.cast(value)))
        return 0 if handle is None else int(handle.value)  # a port of one node has no bits

    def set(self, value, number):
        handle = self._handles.get(id(Value.cast(value)))
        if handle is not None:
            handle.value = int(number)

    async def tick(self):
        await FallingEdge(self._clk)


@cocotb.test()
async def unit_test(dut):
    node, bench, seed = taken(*json.loads(os.environ[ENVIRONMENT]))
    context = Context(dut, node)
    await context.start(dut)
    await bench(Bench(context, node, seed))
