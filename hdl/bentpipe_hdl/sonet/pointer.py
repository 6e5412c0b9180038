"""Pointer generation and interpretation (GR-253 clause 5.1, G.783 annex C)."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, unsigned
from amaranth.lib import enum, wiring
from amaranth.lib.wiring import In, Out

from bentpipe_hdl.sonet.bip import ones
from bentpipe_hdl.sonet.geometry import LAST_POINTER
from bentpipe_hdl.steady import settled

__all__ = ["D_BITS", "I_BITS", "PointerGenerator", "PointerInterpreter", "PointerState"]

I_BITS = 0x2AA
D_BITS = 0x155
ENABLED = (0b1001, 0b0001, 0b1101, 0b1011, 0b1000)
DISABLED = (0b0110, 0b1110, 0b0010, 0b0100, 0b0111)


def _plus_one(pointer):
    return Mux(pointer == LAST_POINTER, 0, pointer + 1)


def _minus_one(pointer):
    return Mux(pointer == 0, LAST_POINTER, pointer - 1)


class PointerGenerator(wiring.Component):
    """Decides once a frame what H1 and H2 say.

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
        Requests; with ``step``, remembered by whoever asks until ``moved``.
    jump : In(1), target : In(10)
        Request for a new offset with NDF.
    word : Out(16)
        H1 and H2, without the ss bits.
    free : Out(1)
        A request is served at the next ``step``.
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
                "free": Out(1),
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
        up, down = Signal(), Signal()
        m.d.comb += [
            self.free.eq(quiet == 3),
            up.eq(self.increment | (~whole[27] & (whole[24:27] != 0))),
            down.eq(self.decrement | (whole[27] & (whole[24:27] != 7))),
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
            with m.If(~self.free):
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
            with m.Elif(up & ~down):
                m.d.sync += [
                    self.word.eq(Cat(self.active ^ I_BITS, Const(0b011000, 6))),
                    self.active.eq(_plus_one(self.active)),
                    self.positive.eq(1),
                    quiet.eq(0),
                ]
                with m.If(~self.increment):
                    m.d.sync += debt.eq(whole - (1 << 24))
            with m.Elif(down & ~up):
                m.d.sync += [
                    self.word.eq(Cat(self.active ^ D_BITS, Const(0b011000, 6))),
                    self.active.eq(_minus_one(self.active)),
                    self.negative.eq(1),
                    quiet.eq(0),
                ]
                with m.If(~self.decrement):
                    m.d.sync += debt.eq(whole + (1 << 24))
        return m


class PointerState(enum.Enum, shape=unsigned(2)):
    """States of the interpreter."""

    NORM = 0
    LOP = 1
    AIS = 2


class PointerInterpreter(wiring.Component):
    """Follows H1 and H2 of each frame.

    Members
    -------
    strobe : In(1), word : In(16)
        H1 (high byte) and H2 of a frame.
    positive, negative : Out(1)
        With ``strobe``, combinational: the unit after H3 is stuff; H3 holds a unit of the SPE.
    jump : Out(1)
        With ``strobe``, combinational: a new offset is taken from this frame on, by NDF or after three equal words.
    flagged : Out(1)
        With ``strobe``, combinational: an NDF.
    active : Out(10)
        The offset, from the clock after ``strobe``.
    state : Out(PointerState)
    """

    strobe: In(1)
    word: In(16)
    positive: Out(1)
    negative: Out(1)
    jump: Out(1)
    flagged: Out(1)
    active: Out(10, init=522)
    state: Out(PointerState)

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
        disabled, enabled, in_range, same = Signal(), Signal(), Signal(), Signal()
        majority_i, majority_d = Signal(), Signal()
        inverted = Signal(10)
        ais, norm, flag, inc, dec, bad, other = (
            Signal(name=name) for name in ("ais", "norm", "flag", "inc", "dec", "bad", "other")
        )
        third = Signal()
        settled(self.state.as_value(), PointerState.NORM.value)
        with m.If(self.strobe):
            m.d.comb += [
                ais.eq(self.word == 0xFFFF),
                disabled.eq(Cat(ndf == code for code in DISABLED).any()),
                enabled.eq(Cat(ndf == code for code in ENABLED).any()),
                in_range.eq(offset <= LAST_POINTER),
                same.eq(offset == self.active),
                inverted.eq(offset ^ self.active),
                majority_i.eq(ones(inverted[1::2]) >= 3),
                majority_d.eq(ones(inverted[0::2]) >= 3),
                norm.eq(disabled & same),
                flag.eq(enabled & in_range),
                inc.eq(disabled & ~same & majority_i & ~majority_d & (recent == 0)),
                dec.eq(disabled & ~same & ~majority_i & majority_d & (recent == 0)),
                bad.eq(~ais & ~norm & ~flag & ~inc & ~dec),
                other.eq(disabled & in_range & (~same | (self.state != PointerState.NORM))),
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

            with m.If(third):
                m.d.comb += self.jump.eq(1)
                m.d.sync += [
                    self.active.eq(offset),
                    self.state.eq(PointerState.NORM),
                    bad_count.eq(0),
                    flag_count.eq(0),
                    equal.eq(0),
                ]
            with m.Elif(ais & (ais_count == 2)):
                m.d.sync += self.state.eq(PointerState.AIS)
            with m.Elif(self.state == PointerState.NORM):
                with m.If((bad & (bad_count == 7)) | (flag & (flag_count == 7))):
                    m.d.sync += self.state.eq(PointerState.LOP)
                with m.Elif(inc):
                    m.d.comb += self.positive.eq(1)
                    m.d.sync += [self.active.eq(_plus_one(self.active)), recent.eq(3)]
                with m.Elif(dec):
                    m.d.comb += self.negative.eq(1)
                    m.d.sync += [self.active.eq(_minus_one(self.active)), recent.eq(3)]
                with m.Elif(flag):
                    m.d.comb += [self.jump.eq(1), self.flagged.eq(1)]
                    m.d.sync += [self.active.eq(offset), recent.eq(3)]
            with m.Elif(flag & (self.state == PointerState.AIS)):
                m.d.comb += [self.jump.eq(1), self.flagged.eq(1)]
                m.d.sync += [self.active.eq(offset), self.state.eq(PointerState.NORM), recent.eq(3)]
        return m
