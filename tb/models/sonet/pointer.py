"""The pointer interpreter and the concatenation indicators of GR-253 clause 5.1, G.783 annex A and EN 300 417-1-1
annex B, one frame a step."""

from collections.abc import Sequence

ENABLED = (0b1001, 0b0001, 0b1101, 0b1011, 0b1000)
DISABLED = (0b0110, 0b1110, 0b0010, 0b0100, 0b0111)
I_BITS = (9, 7, 5, 3, 1)
D_BITS = (8, 6, 4, 2, 0)
LAST = 782


def classify(word: int, active: int | None, recent_adjustment: bool) -> str:
    """The indication of one word: norm, ndf, ais, inc, dec, new or invalid; without an active offset any offset is
    new."""
    ndf, offset = word >> 12, word & 0x3FF
    if word == 0xFFFF:
        return "ais"
    if ndf in ENABLED:
        return "ndf" if offset <= LAST else "invalid"
    if ndf not in DISABLED:
        return "invalid"
    if active is not None:
        if offset == active:
            return "norm"
        inverted = offset ^ active
        i = sum(inverted >> b & 1 for b in I_BITS) >= 3
        d = sum(inverted >> b & 1 for b in D_BITS) >= 3
        if i != d:
            if recent_adjustment:
                return "invalid"
            return "inc" if i else "dec"
    return "new" if offset <= LAST else "invalid"


class PointerModel:
    """The states NORM, LOP and AIS; the active offset is defined in NORM only. ``move`` of ``step`` is +1 where this
    frame has positive stuff, -1 where H3 carries data, else 0. ``sure``: the offset was taken from a word, or repeated
    by one, since the last time that words were missed."""

    def __init__(self):
        self.active = 522
        self.state = "LOP"
        self.since_adjustment = 99
        self.new_value, self.new_count = None, 0
        self.invalid = self.ndf = self.ais = 0
        self.sure = False

    def miss(self):
        """A frame's word was not received: no words are in a row with it, and the offset may have moved."""
        self.since_adjustment = 99
        self.new_value, self.new_count = None, 0
        self.invalid = self.ndf = self.ais = 0
        self.sure = False

    def step(self, word: int) -> tuple[str, int]:
        kind = classify(word, self.active if self.state == "NORM" else None, self.since_adjustment < 3)
        offset, move = word & 0x3FF, 0
        self.since_adjustment += 1
        # three equal words with the NDF disabled: any word that is not the active one counts, also one that
        # reads as a justification
        if word >> 12 in DISABLED and offset <= LAST and kind != "norm":
            self.new_count = self.new_count + 1 if offset == self.new_value else 1
            self.new_value = offset
        else:
            self.new_value, self.new_count = None, 0
        self.ais = self.ais + 1 if kind == "ais" else 0
        self.ndf = self.ndf + 1 if kind == "ndf" else 0
        self.invalid = self.invalid + 1 if kind in ("new", "invalid") else 0
        self.sure |= kind == "norm"
        if self.new_count == 3:
            self.active, self.state, self.sure = offset, "NORM", True
            self.invalid = self.ndf = 0
            self.new_value, self.new_count = None, 0
        elif self.ais >= 3:
            self.state = "AIS"
        elif self.invalid >= 8 or (self.ndf >= 8 and self.state == "NORM"):
            self.state = "LOP"
        elif kind == "inc":
            self.active = 0 if self.active == LAST else self.active + 1
            self.since_adjustment, move = 0, 1
        elif kind == "dec":
            self.active = LAST if self.active == 0 else self.active - 1
            self.since_adjustment, move = 0, -1
        elif kind == "ndf" and self.state != "LOP":
            self.active, self.state, self.sure = offset, "NORM", True
            self.since_adjustment = 0
        return kind, move


ENTER = {"CONC": ("conc", 3), "AISC": ("ais", 3), "LOPC": ("invalid", 8)}
"""State of a concatenation indicator: what leads to it, and how often in a row."""


class ConcatenationModel:
    """The states CONC, LOPC and AISC of one of the STS-1 behind the first."""

    def __init__(self):
        self.state = "LOPC"
        self.run = ("", 0)

    def miss(self):
        self.run = ("", 0)

    def step(self, word: int):
        kind = "ais" if word == 0xFFFF else "conc" if word & 0xF3FF == 0x93FF else "invalid"
        self.run = (kind, self.run[1] + 1 if kind == self.run[0] else 1)
        for state, (of, frames) in ENTER.items():
            if kind == of and self.run[1] >= frames:
                self.state = state


class PathModel:
    """The pointer of an STS-Nc with its indicators: NORM if all are well, AIS if all are in AIS, else LOP."""

    def __init__(self, n: int):
        self.pointer = PointerModel()
        self.indicators = [ConcatenationModel() for _ in range(n - 1)]

    @property
    def state(self) -> str:
        others = {indicator.state for indicator in self.indicators}
        for state, other in (("NORM", "CONC"), ("AIS", "AISC")):
            if self.pointer.state == state and others == {other}:
                return state
        return "LOP"

    @property
    def placed(self) -> bool:
        """The place of the SPE is known."""
        return self.state == "NORM" and self.pointer.sure

    def miss(self):
        for each in (self.pointer, *self.indicators):
            each.miss()

    def step(self, words: Sequence[int]) -> tuple[str, int]:
        for indicator, word in zip(self.indicators, words[1:], strict=True):
            indicator.step(word)
        return self.pointer.step(words[0])
