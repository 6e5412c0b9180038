"""The native engine against Amaranth's simulator: random designs, and the functions that take the place of gates."""

import random
import subprocess
from dataclasses import dataclass

import pytest
from amaranth.hdl import Cat, ClockDomain, ClockSignal, Const, Module, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from benches.programs import program_of
from bentpipe_hdl.aal5.crc32 import CrcTables
from bentpipe_hdl.functions import computed
from bentpipe_hdl.hec import hec
from bentpipe_hdl.sonet.delineation import syndrome_of
from bentpipe_hdl.sonet.scrambler import payload_delay, scramble_payload
from bentpipe_sim.build import build_model
from bentpipe_sim.native.netlist import NetlistError
from bentpipe_sim.native.node import generate
from models.lockstep import side_by_side
from models.random_design import RandomShape, stimulus
from soak.native import MUTATIONS, changed_text


@pytest.mark.parametrize("seed", range(6))
def test_a_random_design_does_what_amaranth_says(seed):
    shape, rng = RandomShape(seed), random.Random(seed)
    seen = side_by_side(shape, 400, lambda clock, before: stimulus(rng), build_model(shape, "native"))
    assert len({values["seen"] for values in seen}) > 100


@pytest.mark.parametrize(("module", "old", "new", "what"), MUTATIONS)
def test_what_the_soak_mutates_is_there(module, old, new, what):
    compile(changed_text(module, old, new), module, "exec")


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


def test_the_crc_by_tables_is_that_by_multiplication():
    """The gates are held against one of them, which this processor takes."""
    text = (
        '#include "crc32.hpp"\n#include <cstdio>\n'
        "int main() { uint64_t x = 88172645463325252ull; int bad = 0; for (int k = 0; k < 20000; ++k) { W<6> a;"
        "for (auto& w : a.w) { x ^= x << 13; x ^= x >> 7; x ^= x << 17; w = x; }"
        "bad += crc32::by_tables(a, k) != crc32_cell(a, k); } return bad != 0; }"
    )
    assert subprocess.run([program_of("crc", text)]).returncode == 0


def test_vectors_of_32_octets_make_the_same_pattern_and_sums():
    text = (
        '#include "pattern.hpp"\n#include <cstdio>\n#include <vector>\nusing namespace bp;\n'
        "int main() { uint64_t x = 88172645463325252ull; int bad = 0; for (int k = 0; k < 3000; ++k) {"
        "x ^= x << 13; x ^= x >> 7; x ^= x << 17; const uint64_t offset = x >> 20; const uint32_t key = x, length = k;"
        "std::vector<uint8_t> one(length + 40), two(length + 40); const unsigned skip = x % 32;"
        "avx2::pattern_fill(&one[skip], key, offset, length); generic::pattern_fill(&two[skip], key, offset, length);"
        "bad += one != two; const auto same = [&] {"
        "const bool equal = avx2::pattern_equal(&one[skip], key, offset, length);"
        "bad += equal != generic::pattern_equal(&one[skip], key, offset, length); return equal; };"
        "bad += !same(); if (length) { one[skip + x % length] ^= 1; bad += same(); }"
        "bad += avx2::halves_of(&one[skip], length) != generic::halves_of(&one[skip], length);"
        "uint32_t sum = 0; for (unsigned i = 0; i < length; ++i) sum += two[skip + i] << 8 * (i % 2);"
        "bad += sum_of(&two[skip], length) != folded(sum);"
        "} return bad != 0; }"
    )
    assert subprocess.run([program_of("pattern", text)]).returncode == 0


class Convergence(wiring.Component):
    """Return what a SONET line computes of a cell, twice over."""

    header: In(40)
    payload: In(384)
    before: In(48)
    hec: Out(16)
    syndrome: Out(16)
    sent: Out(768)
    opened: Out(768)

    def elaborate(self, platform):
        m = Module()
        found = [self.end(m, k) for k in range(2)]
        outs = (self.hec, self.syndrome, self.sent, self.opened)
        for out, values in zip(outs, zip(*found, strict=True), strict=True):
            m.d.sync += out.eq(Cat(values))
        return m

    def end(self, top, k):
        m = top.submodules[f"end{k}"] = Module()
        header, received = Signal(32), Signal(40)
        payload, before, coded, last = Signal(384), Signal(48), Signal(384), Signal(48)
        m.d.comb += [
            header.eq(self.header ^ k),
            received.eq(self.header ^ k),
            payload.eq(self.payload ^ k),
            before.eq(self.before ^ k),
            coded.eq(self.payload ^ k),
            last.eq(self.before ^ k),
        ]
        of_header, of_received, scrambled, opened = Signal(8), Signal(8), Signal(384), Signal(384)
        m.d.comb += [
            of_header.eq(hec(header)),
            of_received.eq(syndrome_of(received)),
            scrambled.eq(scramble_payload(m, before, payload)),
            opened.eq(coded ^ payload_delay(last, coded)),
        ]
        return (
            computed("header_hec", "x", of_header, header),
            computed("header_syndrome", "x", of_received, received),
            computed("scramble_cell", "x", scrambled, payload, before),
            computed("descramble_cell", "x", opened, coded, last),
        )


@dataclass(frozen=True)
class ConvergenceShape:
    kind: str = "convergence"

    def component(self):
        return Convergence()


def test_what_is_computed_of_a_cell_is_that_of_its_gates_in_equal_modules_too():
    text = generate(Convergence(), "convergence").text
    for name in ("header_hec", "header_syndrome", "scramble_cell", "descramble_cell"):
        assert text.count(f"{name}(") >= 2
    assert "parity(" not in text
    rng = random.Random(1)
    ports = {"header": 40, "payload": 384, "before": 48}
    cells = [{name: 1 << k % width for name, width in ports.items()} for k in range(400)]
    cells += [{name: rng.getrandbits(width) for name, width in ports.items()} for _ in range(200)]
    side_by_side(ConvergenceShape(), len(cells), lambda clock, before: cells[clock], build_model(ConvergenceShape()))


class Octets(wiring.Component):
    """Words that begin at an octet: of a register, of what is put together, beyond the end."""

    word: In(200)
    at: In(5)
    a: Out(100)
    b: Out(100)
    c: Out(70)
    d: Out(40)

    def elaborate(self, platform):
        m = Module()
        held = Signal(400)
        octet = Cat(Const(0, 3), self.at)
        m.d.sync += [
            held.eq(Cat(held[200:], self.word)),
            self.a.eq(held.bit_select(octet, 100)),
            self.b.eq(Cat(held[296:], self.word).bit_select(octet, 100)),
            self.c.eq(Cat(held[48:120], self.word[:9]).bit_select(octet, 70)),
            self.d.eq(held[:100].bit_select(octet, 40)),
        ]
        return m


@dataclass(frozen=True)
class OctetsShape:
    kind: str = "octets"

    def component(self):
        return Octets()


def test_words_that_begin_at_an_octet():
    assert "octets<" in generate(Octets(), "octets").text
    rng = random.Random(1)
    inputs = [{"word": rng.getrandbits(200), "at": k % 32} for k in range(300)]
    side_by_side(OctetsShape(), len(inputs), lambda clock, before: inputs[clock], build_model(OctetsShape()))


class Turned(wiring.Component):
    """Octets whose bits go the other way round, as a line sends them: of whole words, and from any bit to any other, of
    a register, of what is made of it and of a number of less than 64 bits."""

    word: In(200)
    small: In(40)
    all: Out(200)
    parts: Out(20 * 73)
    made: Out(100)
    few: Out(33)

    def elaborate(self, platform):
        m = Module()
        held, made = Signal(200), Signal(200)
        m.d.comb += made.eq(held ^ self.word)
        order, order_made, order_small = (
            Cat(value[8 * (k // 8) + 7 - k % 8] for k in range(len(value))) for value in (held, made, self.small)
        )
        m.d.sync += [
            held.eq(self.word),
            self.all.eq(order),
            self.parts.eq(Cat(order[k : k + 73] for k in range(40, 120, 4))),
            self.made.eq(order_made[19:119]),
            self.few.eq(order_small[5:38]),
        ]
        return m


@dataclass(frozen=True)
class TurnedShape:
    kind: str = "turned"

    def component(self):
        return Turned()


def test_octets_are_turned_as_a_whole_and_not_bit_by_bit():
    text = generate(Turned(), "turned").text
    assert "turned_bits<19, 64>(" in text and "turned_bits<5, 33>(s.small)" in text
    assert text.count(", 1>(") < 100  # of 1793 bits, those at words' ends
    rng = random.Random(1)
    inputs = [{"word": rng.getrandbits(200), "small": rng.getrandbits(40)} for _ in range(300)]
    side_by_side(TurnedShape(), len(inputs), lambda clock, before: inputs[clock], build_model(TurnedShape()))


class Carries(wiring.Component):
    """Sums and differences whose bits above their own somebody sees, or nobody."""

    a: In(40)
    b: In(40)
    go: In(1)
    before: Out(1)
    far: Out(1)
    put: Out(60)
    more: Out(48)
    kept: Out(40)
    signed_sum: Out(48)
    same: Out(1)

    def elaborate(self, platform):
        m = Module()
        difference, chosen, other, alone = (Signal(40, name=n) for n in ("difference", "chosen", "other", "alone"))
        m.d.comb += [
            difference.eq(self.a - self.b),
            chosen.eq(~self.a),
            other.eq(self.a + self.b),
            alone.eq(self.b - self.a),
        ]
        with m.If(self.go):
            m.d.comb += chosen.eq(self.b - 3)
        m.d.sync += [
            self.before.eq(difference[39]),
            self.far.eq(difference[24:] == 0),
            self.put.eq(Cat(Const(5, 20), other)),
            self.more.eq(chosen.as_unsigned() + 1),
            self.kept.eq(self.a + (chosen << 2)),
            self.signed_sum.eq(self.a + difference.as_signed()),
            self.same.eq(alone == self.b),
        ]
        return m


@dataclass(frozen=True)
class CarriesShape:
    kind: str = "carries"

    def component(self):
        return Carries()


def test_a_sum_has_its_carries_only_where_nobody_sees_them():
    text = generate(Carries(), "carries").text
    assert "= (uint64_t)s.a - s.b;" in text  # without a mask
    assert "= ((uint64_t)s.b - s.a) & 0xffffffffffull;" in text  # compared
    rng = random.Random(1)
    some = (0, 1, 2, (1 << 40) - 1, (1 << 40) - 2, 1 << 39, 1 << 24)
    inputs = [{"a": a, "b": b, "go": go} for a in some for b in some for go in (0, 1)]
    inputs += [{"a": rng.getrandbits(40), "b": rng.getrandbits(40), "go": k & 1} for k in range(200)]
    side_by_side(CarriesShape(), len(inputs), lambda clock, before: inputs[clock], build_model(CarriesShape()))


class Moves(wiring.Component):
    """Wide words that go from place to place as they are: an odd number of 64 bits, too."""

    word: In(384)
    odd: In(200)
    at: In(2)
    go: In(1)
    of_row: Out(384)
    of_odd: Out(200)
    sum: Out(16)

    def elaborate(self, platform):
        m = Module()
        m.submodules.rows = rows = memory.Memory(shape=384, depth=4, init=[])
        m.submodules.odds = odds = memory.Memory(shape=200, depth=4, init=[])
        chosen, masked = Signal(384), Signal(384)
        m.d.comb += [masked.eq(self.word & ((1 << 100) - 1)), chosen.eq(self.word)]
        for store, word, out in ((rows, self.word, self.of_row), (odds, self.odd, self.of_odd)):
            write, read = store.write_port(), store.read_port(domain="comb")
            m.d.comb += [write.addr.eq(self.at), write.data.eq(word), write.en.eq(self.go), read.addr.eq(self.at)]
            with m.If(~self.go):
                m.d.sync += out.eq(read.data)
        with m.If(self.go):
            m.d.comb += chosen.eq(masked)
        m.d.sync += self.sum.eq((chosen + self.odd)[300:316])
        return m


@dataclass(frozen=True)
class MovesShape:
    kind: str = "moves"

    def component(self):
        return Moves()


def test_wide_words_move_as_they_are():
    text = generate(Moves(), "moves").text
    assert "in_row<W<6>>" in text
    assert "in_row<W<4>>" in text
    assert "] = &s.word;" not in text
    assert " = &s.word;" in text  # what is chosen is where it was
    rng = random.Random(1)
    inputs = [
        {"word": rng.getrandbits(384), "odd": rng.getrandbits(200), "at": rng.randrange(4), "go": rng.getrandbits(1)}
        for _ in range(200)
    ]
    side_by_side(MovesShape(), len(inputs), lambda clock, before: inputs[clock], build_model(MovesShape()))


class Depths(wiring.Component):
    """A memory of each depth; rows beyond the last one are written and read, too. The sum of a word put together, of
    which no one sees the upper bits."""

    DEPTHS = range(1, 18)

    write: In(5)
    read: In(5)
    data: In(8)
    go: In(1)
    rows: Out(8 * len(DEPTHS))
    low: Out(8)

    def elaborate(self, platform):
        m = Module()
        for k, depth in enumerate(self.DEPTHS):
            m.submodules[f"rows{depth}"] = rows = memory.Memory(shape=8, depth=depth, init=range(depth))
            write, read = rows.write_port(), rows.read_port(domain="comb")
            m.d.comb += [write.addr.eq(self.write), write.data.eq(self.data), write.en.eq(self.go)]
            m.d.comb += read.addr.eq(self.read)
            m.d.sync += self.rows.word_select(k, 8).eq(read.data)
        m.d.sync += self.low.eq(Cat(self.data, self.data ^ self.write) + self.read)
        return m


@dataclass(frozen=True)
class DepthsShape:
    kind: str = "depths"

    def component(self):
        return Depths()


def test_memories_of_every_depth_have_no_rows_beyond_the_last():
    rng = random.Random(1)
    inputs = [
        {"write": rng.randrange(32), "read": rng.randrange(32), "data": rng.getrandbits(8), "go": rng.getrandbits(1)}
        for _ in range(600)
    ]
    side_by_side(DepthsShape(), len(inputs), lambda clock, before: inputs[clock], build_model(DepthsShape()))


@pytest.mark.parametrize(("attrs", "compared"), [({}, True), ({"bentpipe_bounded": 1}, False)])
def test_a_row_is_compared_unless_rtl_never_writes_beyond_the_last(attrs, compared):
    class Rows(wiring.Component):
        at: In(3)
        data: In(8)
        row: Out(8)

        def elaborate(self, platform):
            m = Module()
            m.submodules.rows = rows = memory.Memory(shape=8, depth=5, init=[], attrs=attrs)
            write, read = rows.write_port(), rows.read_port(domain="comb")
            m.d.comb += [write.en.eq(1), write.addr.eq(self.at), write.data.eq(self.data), read.addr.eq(self.data)]
            m.d.sync += self.row.eq(read.data)
            return m

    assert ("s.at < 0x5u" in generate(Rows(), "rows").text) == compared


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

    def other_domain(m, self):
        m.domains.fast = ClockDomain()
        counted = Signal(4)
        m.d.fast += counted.eq(counted + 1)
        m.d.sync += self.y.eq(counted)

    assert "counted has another clock" in refused(other_domain, y=Out(4))

    def made_clock(m, self):
        m.domains.slow = slow = ClockDomain(reset_less=True)
        half, counted = Signal(), Signal(4)
        m.d.comb += slow.clk.eq(half)
        m.d.sync += half.eq(~half)
        m.d.slow += counted.eq(counted + 1)
        m.d.sync += self.y.eq(counted)

    assert "counted has another clock" in refused(made_clock, y=Out(4))

    def other_writer(m, self):
        m.domains.fast = ClockDomain()
        m.submodules.rows = rows = memory.Memory(shape=4, depth=4, init=[])
        write, read = rows.write_port(domain="fast"), rows.read_port(domain="comb")
        m.d.comb += [write.en.eq(1), write.data.eq(self.x), read.addr.eq(self.x)]
        m.d.sync += self.y.eq(read.data)

    assert "the memory" in (message := refused(other_writer, x=In(4), y=Out(4))) and "another clock" in message

    def own_sync(m, self):
        m.domains.sync = ClockDomain()
        m.d.sync += self.y.eq(self.x)

    assert "y has another clock" in refused(own_sync, x=In(4), y=Out(4))

    def falling_domain(m):  # of the same clock
        m.domains.fall = fall = ClockDomain(clk_edge="neg", reset_less=True)
        m.d.comb += fall.clk.eq(ClockSignal("sync"))

    def falling(m, self):
        falling_domain(m)
        counted = Signal(4)
        m.d.fall += counted.eq(counted + 1)
        m.d.sync += self.y.eq(counted)

    assert "counted has another clock than the rising edge" in refused(falling, y=Out(4))

    def falling_writer(m, self):
        falling_domain(m)
        m.submodules.rows = rows = memory.Memory(shape=4, depth=4, init=[])
        write, read = rows.write_port(domain="fall"), rows.read_port(domain="comb")
        m.d.comb += [write.en.eq(1), write.data.eq(self.x), read.addr.eq(self.x)]
        m.d.sync += self.y.eq(read.data)

    assert "the memory" in (message := refused(falling_writer, x=In(4), y=Out(4))) and "the rising edge" in message

    def chained(m, self):
        chain = Signal(4)
        m.d.comb += chain[0].eq(self.x[0])
        for k in range(3):
            m.d.comb += chain[k + 1].eq(chain[k] ^ self.x[k + 1])
        m.d.sync += self.y.eq(chain + 1)

    assert "chain: a bit depends on itself or on another bit" in refused(chained, x=In(4), y=Out(4))
