"""Pointer generation and interpretation (GR-253 clause 5.1, G.783 annex A, EN 300 417-1-1 annex B)."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, unsigned
from amaranth.lib import enum, wiring
from amaranth.lib.wiring import In, Out

from bentpipe_hdl.sim_hints import rarely_changes
from bentpipe_hdl.sonet.bip import ones
from bentpipe_hdl.sonet.geometry import LAST_POINTER

__all__ = [
    "D_BITS",
    "I_BITS",
    "ConcatenationIndicator",
    "PathState",
    "PointerGenerator",
    "PointerInterpreter",
    "PointerState",
]

I_BITS = 0x2AA
D_BITS = 0x155
ENABLED = (0b1001, 0b0001, 0b1101, 0b1011, 0b1000)
DISABLED = (0b0110, 0b1110, 0b0010, 0b0100, 0b0111)


def _plus_one(pointer):
    return Mux(pointer == LAST_POINTER, 0, pointer + 1)


def _minus_one(pointer):
    return Mux(pointer == 0, LAST_POINTER, pointer - 1)


class PointerGenerator(wiring.Component):
    """The pointer generator: it decides once a frame on H1 and H2.

    Movements are spaced by three frames without one, whatever is asked for. The path's clock may differ from the
    line's: ``drift`` is added once a frame, and each whole unit of the sum asks for a movement.

    Parameters
    ----------
    pointer : int
        The offset after reset.

    Members
    -------
    prepare : In(1)
        The drift is added up: a clock or more before each ``step``.
    step : In(1)
        Decide; the outputs hold from the next clock on until the next ``step``.
    drift : In(signed 24)
        Units of N bytes a frame that the path is slower than the line, in 2**-24: 1 ppm is 783e-6 units a frame.
    increment, decrement : In(1)
        Requests; they go before those of the drift, and are remembered by whoever asks until ``served``.
    jump : In(1), target : In(10)
        Request for a new offset with NDF; it goes before the others.
    word : Out(16)
        H1 and H2, without the ss bits.
    served : Out(1)
        With ``step``, combinational: the requests of this clock are served.
    positive, negative, jumping : Out(1)
        What this frame does.
    active : Out(10)
        The offset that holds from this frame's H3 on.
    """

    def __init__(self, pointer=522):
        if not 0 <= pointer <= LAST_POINTER:
            raise ValueError(f"pointer must be 0 to {LAST_POINTER}, not {pointer!r}")
        self._pointer = pointer
        super().__init__(
            {
                "prepare": In(1),
                "step": In(1),
                "drift": In(24),
                "increment": In(1),
                "decrement": In(1),
                "jump": In(1),
                "target": In(10),
                "word": Out(16, init=0x6000 | pointer),
                "served": Out(1),
                "positive": Out(1),
                "negative": Out(1),
                "jumping": Out(1),
                "active": Out(10, init=pointer),
            }
        )

    def elaborate(self, platform):
        m = Module()
        quiet = Signal(2, init=3)  # frames without a movement, up to 3
        debt = Signal(28)  # two's complement, 2**-24 units
        whole = Signal(28)
        asked, up, down = Signal(), Signal(), Signal()
        m.d.comb += [
            self.served.eq(self.step & (quiet == 3)),
            asked.eq(self.increment | self.decrement),
            up.eq(Mux(asked, self.increment, ~whole[27] & (whole[24:27] != 0))),
            down.eq(Mux(asked, ~self.increment, whole[27] & (whole[24:27] != 7))),
        ]
        with m.If(self.prepare):
            m.d.sync += whole.eq(debt + self.drift.as_signed())
        with m.If(self.step):
            m.d.sync += [
                self.word.eq(Cat(self.active, Const(0b011000, 6))),
                self.positive.eq(0),
                self.negative.eq(0),
                self.jumping.eq(0),
                debt.eq(whole),
            ]
            with m.If(quiet != 3):
                m.d.sync += quiet.eq(quiet + 1)
                # what cannot be moved in time piles up, but not over its sign
                with m.If((whole[24:28] == 7) | (whole[24:28] == 8)):
                    m.d.sync += debt.eq(debt)
            with m.Elif(self.jump):
                m.d.sync += [
                    self.word.eq(Cat(self.target, Const(0b100100, 6))),
                    self.active.eq(self.target),
                    self.jumping.eq(1),
                    quiet.eq(0),
                ]
            with m.Elif(up):
                m.d.sync += [
                    self.word.eq(Cat(self.active ^ I_BITS, Const(0b011000, 6))),
                    self.active.eq(_plus_one(self.active)),
                    self.positive.eq(1),
                    quiet.eq(0),
                ]
                with m.If(~asked):
                    m.d.sync += debt.eq(whole - (1 << 24))
            with m.Elif(down):
                m.d.sync += [
                    self.word.eq(Cat(self.active ^ D_BITS, Const(0b011000, 6))),
                    self.active.eq(_minus_one(self.active)),
                    self.negative.eq(1),
                    quiet.eq(0),
                ]
                with m.If(~asked):
                    m.d.sync += debt.eq(whole + (1 << 24))
        return m


class PointerState(enum.Enum, shape=unsigned(2)):
    """States of a pointer interpreter, of a concatenation indicator (CONC, LOPC, AISC) and of a path."""

    NORM = 0
    LOP = 1
    AIS = 2


class PointerInterpreter(wiring.Component):
    """The pointer interpreter: it follows H1 and H2 of each frame, those of the first STS-1.

    It begins in LOP. The offset is known in NORM only: in LOP and AIS any offset in range is a new one.

    Members
    -------
    strobe : In(1), word : In(16)
        H1 (high byte) and H2 of a frame.
    missed : In(1)
        H1 and H2 of a frame were not received: with ``strobe`` all ones stand in for them, without it nothing does, and
        runs of words start over. Pointer movements may have been among what was missed.
    confirmed : Out(1)
        Combinational: ``sure`` from the next clock on.
    sure : Out(1)
        The offset was taken from a word, or repeated by one, since the last time that words were missed.
    positive, negative : Out(1)
        With ``strobe``, combinational: the unit after H3 is stuff; H3 holds a unit of the SPE.
    jump : Out(1)
        With ``strobe``, combinational: a new offset is taken from this frame on, by NDF or after three equal words.
    flagged : Out(1)
        With ``strobe``, combinational: an NDF.
    active : Out(10)
        The offset, from the clock after ``strobe``.
    following : Out(PointerState)
        With ``strobe``, combinational: ``state`` from the next clock on.
    state : Out(PointerState)
    """

    strobe: In(1)
    word: In(16)
    missed: In(1)
    confirmed: Out(1)
    sure: Out(1)
    positive: Out(1)
    negative: Out(1)
    jump: Out(1)
    flagged: Out(1)
    active: Out(10, init=522)
    following: Out(PointerState)
    state: Out(PointerState, init=PointerState.LOP)

    def __init__(self):
        self.recent = Signal(2)  # frames that must pass before the next movement
        self.equal = Signal(2)  # how often `candidate` has come in a row
        self.candidate = Signal(10)
        self.bad_count, self.flag_count, self.ais_count = Signal(3), Signal(3), Signal(2)
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        recent, equal, candidate = self.recent, self.equal, self.candidate
        bad_count, flag_count, ais_count = self.bad_count, self.flag_count, self.ais_count
        offset = self.word[:10]
        ndf = self.word[12:]
        in_norm, disabled, enabled, in_range, same = Signal(), Signal(), Signal(), Signal(), Signal()
        majority_i, majority_d = Signal(), Signal()
        inverted = Signal(10)
        ais, norm, flag, inc, dec, bad, other = (
            Signal(name=name) for name in ("ais", "norm", "flag", "inc", "dec", "bad", "other")
        )
        third = Signal()
        rarely_changes(self.state.as_value(), PointerState.NORM.value)
        rarely_changes(self.sure, 1)
        m.d.comb += [self.following.eq(self.state), self.confirmed.eq(self.sure & ~self.missed)]
        with m.If(self.strobe & (norm | self.jump)):
            m.d.comb += self.confirmed.eq(1)
        with m.If(self.strobe | self.missed):
            m.d.sync += self.sure.eq(self.confirmed)
        with m.If(self.strobe):
            m.d.comb += [
                in_norm.eq(self.state == PointerState.NORM),
                ais.eq(self.word == 0xFFFF),
                disabled.eq(Cat(ndf == code for code in DISABLED).any()),
                enabled.eq(Cat(ndf == code for code in ENABLED).any()),
                in_range.eq(offset <= LAST_POINTER),
                same.eq(offset == self.active),
                inverted.eq(offset ^ self.active),
                majority_i.eq(ones(inverted[1::2]) >= 3),
                majority_d.eq(ones(inverted[0::2]) >= 3),
                norm.eq(in_norm & disabled & same),
                flag.eq(enabled & in_range),
                inc.eq(in_norm & disabled & ~same & majority_i & ~majority_d & (recent == 0)),
                dec.eq(in_norm & disabled & ~same & ~majority_i & majority_d & (recent == 0)),
                bad.eq(~ais & ~norm & ~flag & ~inc & ~dec),
                other.eq(disabled & in_range & ~norm),
                third.eq(other & (equal == 2) & (offset == candidate)),
            ]
            with m.If(recent != 0):
                m.d.sync += recent.eq(recent - 1)

            m.d.sync += equal.eq(0)
            with m.If(other):
                m.d.sync += [candidate.eq(offset), equal.eq(1)]
                with m.If((offset == candidate) & (equal != 0)):
                    m.d.sync += equal.eq(equal + 1)

            m.d.sync += [bad_count.eq(0), flag_count.eq(0), ais_count.eq(0)]
            with m.If(bad):
                m.d.sync += bad_count.eq(Mux(bad_count == 7, 7, bad_count + 1))
            with m.If(flag):
                m.d.sync += flag_count.eq(Mux(flag_count == 7, 7, flag_count + 1))
            with m.If(ais):
                m.d.sync += ais_count.eq(Mux(ais_count == 2, 2, ais_count + 1))

            m.d.sync += self.state.eq(self.following)
            with m.If(third):
                m.d.comb += [self.jump.eq(1), self.following.eq(PointerState.NORM)]
                m.d.sync += [
                    self.active.eq(offset),
                    bad_count.eq(0),
                    flag_count.eq(0),
                    equal.eq(0),
                ]
            with m.Elif(ais & (ais_count == 2)):
                m.d.comb += self.following.eq(PointerState.AIS)
            with m.Elif((bad & (bad_count == 7)) | (flag & (flag_count == 7) & in_norm)):
                m.d.comb += self.following.eq(PointerState.LOP)
            with m.Elif(inc):
                m.d.comb += self.positive.eq(1)
                m.d.sync += [self.active.eq(_plus_one(self.active)), recent.eq(3)]
            with m.Elif(dec):
                m.d.comb += self.negative.eq(1)
                m.d.sync += [self.active.eq(_minus_one(self.active)), recent.eq(3)]
            with m.Elif(flag & (self.state != PointerState.LOP)):
                m.d.comb += [self.jump.eq(1), self.flagged.eq(1), self.following.eq(PointerState.NORM)]
                m.d.sync += [self.active.eq(offset), recent.eq(3)]
        with m.If(self.missed):
            m.d.sync += recent.eq(0)
            with m.If(~self.strobe):
                m.d.sync += [equal.eq(0), bad_count.eq(0), flag_count.eq(0), ais_count.eq(0)]
        return m


class ConcatenationIndicator(wiring.Component):
    """The interpreter of concatenation indicators: H1 and H2 of all STS-1 but the first in an STS-Nc, 1001xx11
    11111111.

    The states are CONC (NORM), LOPC and AISC. It begins in LOPC; 3 indications in a row lead to CONC, 3 words of all
    ones to AISC, 8 words that are neither from CONC and from AISC to LOPC.

    Members
    -------
    strobe : In(1), conc : In(1), ais : In(1)
        The frame's word is the indication; it is all ones (:meth:`classify`).
    missed : In(1)
        Without ``strobe``: a frame's word was not received, runs of words start over.
    following : Out(PointerState)
        With ``strobe``, combinational: ``state`` from the next clock on.
    state : Out(PointerState)
    """

    strobe: In(1)
    conc: In(1)
    ais: In(1)
    missed: In(1)
    following: Out(PointerState)
    state: Out(PointerState, init=PointerState.LOP)

    def __init__(self):
        self.count = Signal(3)  # words of the last one's kind in a row, before that of this clock
        self.last_conc, self.last_ais = Signal(), Signal()
        super().__init__()

    @staticmethod
    def classify(h1, h2):
        """Return ``(conc, ais)`` of two bytes, as values."""
        ones = h2.all() & h1[:2].all()
        return ones & (h1[4:] == 0b1001), ones & h1[2:].all()

    def elaborate(self, platform):
        m = Module()
        again, run = Signal(), Signal(3)
        rarely_changes(self.state.as_value(), PointerState.NORM.value)
        m.d.comb += self.following.eq(self.state)
        with m.If(self.strobe):
            m.d.comb += [
                again.eq((self.conc == self.last_conc) & (self.ais == self.last_ais)),
                run.eq(Mux(again, self.count, 0)),
            ]
            m.d.sync += [
                self.last_conc.eq(self.conc),
                self.last_ais.eq(self.ais),
                self.count.eq(Mux(run == 7, 7, run + 1)),
                self.state.eq(self.following),
            ]
            with m.If(self.conc):
                with m.If(run >= 2):
                    m.d.comb += self.following.eq(PointerState.NORM)
            with m.Elif(self.ais):
                with m.If(run >= 2):
                    m.d.comb += self.following.eq(PointerState.AIS)
            with m.Elif(run == 7):
                m.d.comb += self.following.eq(PointerState.LOP)
        with m.Elif(self.missed):
            m.d.sync += self.count.eq(0)
        return m


class PathState(wiring.Component):
    """The state of an STS-Nc path: NORM if its pointer is in NORM and all N - 1 concatenation indicators are in CONC,
    AIS if all N are in AIS or AISC, and LOP in any other case.

    Members
    -------
    strobe : In(1), states : In(PointerState) * N
        The pointer's and the indicators' states after this frame.
    state : Out(PointerState)
        From the clock after ``strobe``.
    """

    def __init__(self, n):
        self._n = n
        super().__init__(
            {
                "strobe": In(1),
                "states": In(PointerState).array(n),
                "state": Out(PointerState, init=PointerState.LOP),
            }
        )

    def elaborate(self, platform):
        m = Module()
        rarely_changes(self.state.as_value(), PointerState.NORM.value)
        with m.If(self.strobe):
            m.d.sync += self.state.eq(PointerState.LOP)
            for state in (PointerState.NORM, PointerState.AIS):
                with m.If(Cat(each == state for each in self.states).all()):
                    m.d.sync += self.state.eq(state)
        return m
