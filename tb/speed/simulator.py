"""Measure how much faster the native simulator is than Amaranth's, by processor time, in turns.

``python -m speed.simulator``, in ``tb``: for each design microseconds a clock of a bench that sets some inputs, without
and with reading all outputs; of the C++ alone, nanoseconds.
"""

import random
import time
from ctypes import c_uint64

import amaranth.sim
from amaranth.hdl import Value

from bentpipe_hdl.amaranth_private import PortDirection, ports
from bentpipe_hdl.cell import NARROW
from bentpipe_hdl.nodes import Link, Nic, Switch
from bentpipe_sim.native import Simulator

DESIGNS = {
    "Link, 32 bits": lambda: Link(width=NARROW),
    "Switch, 32 bits": lambda: Switch(width=NARROW, vcs=8, cells=64, ports=4),
    "Nic, 32 bits": lambda: Nic(width=NARROW, vcs=8),
}
CLOCKS = {amaranth.sim.Simulator: 300, Simulator: 6000}


def measured(kind, make, reads):
    """Processor time of a clock, in seconds."""
    design, rng = make(), random.Random(1)
    values = [(Value.cast(value), way) for value, way in ports(design).values() if len(value)]
    inputs = [value for value, way in values if way is PortDirection.Input]
    outputs = [value for value, way in values if way is PortDirection.Output]
    rows = [
        [(value, rng.getrandbits(len(value))) for value in rng.sample(inputs, min(4, len(inputs)))] for _ in range(99)
    ]
    clocks, taken = CLOCKS[kind], []

    async def bench(ctx):
        begin = time.process_time()
        for k in range(clocks):
            for value, number in rows[k % 99]:
                ctx.set(value, number)
            await ctx.tick()
            if reads:
                for value in outputs:
                    ctx.get(value)
        taken.append((time.process_time() - begin) / clocks)

    simulator = kind(design)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return taken[0]


def alone(make, clocks=200_000):
    """A clock of the C++ alone, inputs as they are."""
    engine = Simulator(make())._engine
    run = engine.compiled.model.clocks(1)
    begin = time.process_time()
    run(engine.compiled.address, c_uint64(clocks))
    return (time.process_time() - begin) / clocks


def main():
    for name, make in DESIGNS.items():
        parts = []
        for reads in (False, True):
            times = [[measured(kind, make, reads) for kind in CLOCKS] for _ in range(3)]
            one, other = (min(each) for each in zip(*times, strict=True))
            parts.append(f"{one * 1e6:.0f} / {other * 1e6:.2f} us: {one / other:.0f} x")
            if not reads:
                amaranths = one
        native = min(alone(make) for _ in range(3))
        print(
            f"{name}: sets {parts[0]}; outputs {parts[1]}; C++ {native * 1e9:.1f} ns: {amaranths / native:.0f} x",
            flush=True,
        )


if __name__ == "__main__":
    main()
