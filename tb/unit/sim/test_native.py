"""The native engine against Amaranth's simulator: random designs, and the functions that take the place of gates."""

import random
import subprocess
from dataclasses import dataclass

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from bentpipe_hdl.aal5.crc32 import CrcTables
from bentpipe_sim.build import build_model
from bentpipe_sim.native.netlist import NetlistError
from bentpipe_sim.native.node import generate
from bentpipe_sim.tools import CSRC, compiler
from models.lockstep import side_by_side
from models.random_design import RandomShape, stimulus


@pytest.mark.parametrize("seed", range(6))
def test_a_random_design_does_what_amaranth_says(seed):
    shape, rng = RandomShape(seed), random.Random(seed)
    seen = side_by_side(shape, 400, lambda clock, before: stimulus(rng), build_model(shape, "native"))
    assert len({values["seen"] for values in seen}) > 100


class Crc(wiring.Component):
    octets: In(384)
    start: In(32)
    crc: Out(32)

    def elaborate(self, platform):
        m = Module()
        tables = CrcTables()
        m.d.sync += self.crc.eq(tables.cell(m, self.octets, self.start, "x"))
        tables.add_to(m)
        return m


@dataclass(frozen=True)
class CrcShape:
    kind: str = "crc"

    def component(self):
        return Crc()


def test_the_crc_of_a_cell_is_that_of_its_gates():
    text = generate(Crc(), "crc").text
    assert "crc32_cell(" in text and "[256]" not in text
    rng = random.Random(1)
    inputs = [0, 1, 1 << 383, (1 << 384) - 1, *(1 << rng.randrange(384) for _ in range(50))]
    inputs += [rng.getrandbits(384) for _ in range(200)]
    cells = [{"octets": octets, "start": rng.choice([0, rng.getrandbits(32)])} for octets in inputs]
    side_by_side(CrcShape(), len(inputs), lambda clock, before: cells[clock], build_model(CrcShape()))


def test_the_crc_by_tables_is_that_by_multiplication(tmp_path):
    """The gates are held against one of them, which this processor takes."""
    (tmp_path / "crc.cpp").write_text(
        '#include "crc32.hpp"\n#include <cstdio>\n'
        "int main() { uint64_t x = 88172645463325252ull; int bad = 0; for (int k = 0; k < 20000; ++k) { W<6> a;"
        "for (auto& w : a.w) { x ^= x << 13; x ^= x >> 7; x ^= x << 17; w = x; }"
        "bad += crc32::by_tables(a, k) != crc32_cell(a, k); } return bad != 0; }"
    )
    program = str(tmp_path / "crc")
    subprocess.run(
        [compiler(), "-std=gnu++17", "-O1", f"-I{CSRC}", str(tmp_path / "crc.cpp"), "-o", program], check=True
    )
    assert subprocess.run([program]).returncode == 0


def refused(make, **members):
    class Refused(wiring.Component):
        def __init__(self):
            super().__init__(members)

        def elaborate(self, platform):
            m = Module()
            make(m, self)
            return m

    with pytest.raises(NetlistError) as error:
        generate(Refused(), "refused")
    return str(error.value)


def test_what_it_can_not_do_it_refuses_by_name():
    def through(m, self):
        m.d.comb += self.y.eq(self.x + 1)

    assert "an output depends on input x" in refused(through, x=In(4), y=Out(5))

    def divided(m, self):
        m.d.sync += self.y.eq(self.x.as_signed() // self.z.as_signed())

    assert "operation s//" in refused(divided, x=In(4), z=In(4), y=Out(4))
