"""Waves of the native simulator: of every signal, field, state and row what Amaranth's simulator records."""

import io
import random

from amaranth.hdl import Module, Signal, Value, signed
from amaranth.lib import data, enum, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from models.random_circuit import RandomCircuit, stimulus
from models.simulators import BOTH


class Kind(enum.Enum, shape=2):
    IDLE = 0
    BUSY = 1
    DONE = 2


class Fields(wiring.Component):
    a: In(data.StructLayout({"kind": Kind, "n": signed(5), "list": data.ArrayLayout(3, 2)}))
    o: Out(8)

    def elaborate(self, platform):
        m = Module()
        held = Signal.like(self.a)
        m.d.sync += held.eq(self.a)
        m.d.comb += self.o.eq(held.n + 1)
        with m.FSM():
            with m.State("ONE"), m.If(self.a.n[0]):
                m.next = "TWO"
            with m.State("TWO"):
                m.next = "ONE"
        m.submodules.memory = memory = Memory(shape=held.shape(), depth=3, init=[])
        write = memory.write_port()
        m.d.comb += [write.addr.eq(held.n), write.data.eq(held), write.en.eq(1)]
        return m


def changes(text):
    """For each name the times at which it gets a value, with that."""
    names, scope, now, found = {}, [], 0, {}
    for line in text.splitlines():
        words = line.split()
        if line.startswith("$scope"):
            scope.append(words[2])
        elif line.startswith("$upscope"):
            scope.pop()
        elif line.startswith("$var"):
            names.setdefault(words[3], []).append(".".join([*scope, words[4].lstrip("\\")]))
        elif line.startswith("#"):
            now = int(line[1:])
        elif line[:1] in tuple("01bs"):
            value, code = (line[0], line[1:]) if line[0] in "01" else words
            if value[0] != "s":
                value = value.lstrip("b").lstrip("0") or "0"
            for name in names[code]:
                found.setdefault(name, {})[now] = value
    histories = {name: sorted(values.items()) for name, values in found.items()}
    return {
        name: [each for k, each in enumerate(history) if not k or history[k - 1][1] != each[1]]
        for name, history in histories.items()
    }


def wave(kind, design, drive):
    simulator, other, file = kind(design), Signal(5, name="outside"), io.StringIO()
    simulator.add_clock(1e-6)
    file.close = lambda: None  # what is in it is wanted

    async def bench(ctx):
        rng = random.Random(2)
        for k in range(30):
            drive(ctx, design, rng)
            ctx.set(other, k)
            await ctx.tick()

    simulator.add_testbench(bench)
    with simulator.write_vcd(file, traces=[other]):
        simulator.run()
    return changes(file.getvalue())


def test_fields_states_and_rows():
    def drive(ctx, design, rng):
        ctx.set(Value.cast(design.a), rng.getrandbits(13))

    one, other = (wave(kind, Fields(), drive) for kind in BOTH)
    assert other == one
    assert {"bench.top.fsm_state", "bench.top.a.list[1]", "bench.top.memory[2].kind", "bench.outside"} <= set(one)


def test_all_of_a_random_circuit():
    def drive(ctx, design, rng):
        for name, value in stimulus(rng).items():
            ctx.set(getattr(design, name), value)

    one, other = (wave(kind, RandomCircuit(8), drive) for kind in BOTH)
    assert other == one
    assert len(one) > 60
