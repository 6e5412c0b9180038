"""The shorter bodies of a node, for clocks where marked registers are steady, do what the whole one does."""

import random
from dataclasses import dataclass

import pytest
from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from bentpipe_hdl.csr import CsrSignature
from bentpipe_hdl.sim_hints import rarely_changes, usually
from bentpipe_hdl.sonet.control import TERMINAL
from bentpipe_hdl.sonet.geometry import Geometry
from bentpipe_hdl.sonet.terminal import SonetTerminal
from bentpipe_sim.build import build_model
from bentpipe_sim.native.node import generate
from models.lockstep import side_by_side


class Machine(wiring.Component):
    """Everything that folding touches: strobes, a state, a count, wide registers, priorities, selections, a memory."""

    def __init__(self):
        super().__init__(
            {
                "csr": In(CsrSignature()),
                "go": In(1),
                "choice": In(3),
                "data": In(100),
                "count": Out(8),
                "total": Out(100),
                "stored": Out(20),
                "state": Out(2),
                "flags": Out(4),
            }
        )

    def elaborate(self, platform):
        m = Module()
        strobe, second = usually(Signal()), usually(Signal())
        state = rarely_changes(Signal(2, init=1), 3)
        left = rarely_changes(Signal(4, init=9))
        word = Signal(100)
        taken, any_, some = Signal(), Signal(), Signal(4)
        m.submodules.memory = memory = Memory(shape=20, depth=8, init=[])
        put, get = memory.write_port(), memory.read_port(domain="comb")
        m.d.comb += [
            put.addr.eq(self.choice),
            put.data.eq(self.data[:20] ^ Cat(strobe, state)),
            put.en.eq(self.go & (strobe | (state == 3))),
            get.addr.eq(self.choice),
            any_.eq(Cat(strobe, second).any() | (left != 0)),
            some.eq(Mux(strobe, self.data[:4], Cat(second, left[:3]))),
            self.state.eq(state),
        ]
        m.d.sync += [strobe.eq(0), self.flags.eq(some + left), self.stored.eq(get.data)]
        with m.If(self.go), m.If(self.choice == 2):
            m.d.sync += strobe.eq(1)
        with m.If(second):
            m.d.sync += [second.eq(0), word.eq(word ^ self.data)]
        with m.If(strobe):
            m.d.sync += [second.eq(self.data[0]), left.eq(self.data[:2])]
        with m.Elif(left != 0):
            m.d.sync += left.eq(left - 1)
        with m.Elif(self.choice == 5):
            m.d.comb += taken.eq(1)
            m.d.sync += word.eq(Mux(any_, ~word, word + 1))
        with m.Else():
            m.d.sync += self.count.eq(self.count + Mux(second, 3, 1))
        with m.Switch(state):
            with m.Case(3):
                with m.If(taken & self.go):
                    m.d.sync += [state.eq(0), self.total.eq(word.bit_select(self.choice, 90))]
                with m.If(self.csr.w_en):
                    m.d.sync += state.eq(self.csr.w_data[:2])
            with m.Case(0):
                m.d.sync += state.eq(Mux(self.go, 2, 1))
            with m.Default():
                m.d.sync += [state.eq(3), self.total.eq(self.total ^ word)]
        return m


@dataclass(frozen=True)
class MachineShape:
    kind: str = "machine"

    def component(self):
        return Machine()


@dataclass(frozen=True)
class LoopShape:
    kind: str = "sonet_terminal"

    def component(self):
        return SonetTerminal(Geometry(3, 9))


def test_a_machine_of_everything():
    rng = random.Random(1)

    def stimulus(clock, before):
        rare = rng.random() < (0.5 if clock % 400 < 100 else 0.02)
        return {
            "go": int(rare),
            "choice": rng.randrange(8),
            "data": rng.getrandbits(100),
            "csr_w_en": int(rng.random() < 0.02),
            "csr_w_data": rng.getrandbits(32),
        }

    seen = side_by_side(MachineShape(), 4000, stimulus, build_model(MachineShape()))
    assert {values["state"] for values in seen} == {0, 1, 2, 3}
    assert len({values["count"] for values in seen}) == 256
    assert len({values["total"] for values in seen}) > 20


def test_a_terminal_that_hears_itself():
    """Cells, a pointer movement, errors and a line that goes and comes."""
    rng = random.Random(2)

    def stimulus(clock, before):
        line = before["line_out"]
        if clock > 1300 and rng.random() < 0.02:
            line ^= 1 << rng.randrange(72)
        if 1600 < clock < 1650:
            line = 0
        values = {"line_in": line, "signal": 1, "enable": int(rng.random() < 0.95)}
        if not values["enable"]:
            values["line_in"] = line
        values |= {"tx_valid": int(rng.random() < 0.5), "tx_cell": rng.getrandbits(416), "csr_w_en": 0}
        if clock == 1000:
            values |= {"csr_w_en": 1, "csr_addr": TERMINAL["move"].addr, "csr_w_data": 1}
        return values

    seen = side_by_side(LoopShape(), 2600, stimulus, build_model(LoopShape()))
    assert sum(values["rx_valid"] for values in seen) > 20


def test_nodes_without_marks_have_one_body():
    class Plain(wiring.Component):
        x: In(4)
        y: Out(4)

        def elaborate(self, platform):
            m = Module()
            m.d.sync += self.y.eq(self.y + self.x)
            return m

    assert "static void" not in generate(Plain(), "plain").text.replace("static void whole_clock", "")
    text = generate(Machine(), "machine").text
    assert all(f"static void {name}_clock(" in text for name in ("steady", "settled", "whole"))


@pytest.mark.parametrize("value", [0, 3])
@pytest.mark.parametrize("mark", [usually, rarely_changes])
def test_a_register_that_leaves_its_value_ends_the_steady_clocks(mark, value):
    class Leaves(wiring.Component):
        x: In(2)
        y: Out(2)

        def elaborate(self, platform):
            m = Module()
            register = mark(Signal(2), value)
            m.d.sync += [register.eq(self.x), self.y.eq(register)]
            return m

    @dataclass(frozen=True)
    class Shape:
        kind: str = "leaves"

        def component(self):
            return Leaves()

    rng = random.Random(value)

    def stimulus(clock, before):
        return {"x": rng.choice([value, value, rng.randrange(4)])}

    seen = side_by_side(Shape(), 200, stimulus, build_model(Shape()))
    assert {values["y"] for values in seen} == {0, 1, 2, 3}
