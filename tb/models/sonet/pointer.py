"""The pointer interpreter of GR-253 clause 5.1 / G.783 annex C, one H1H2 word a frame."""

ENABLED = (0b1001, 0b0001, 0b1101, 0b1011, 0b1000)
DISABLED = (0b0110, 0b1110, 0b0010, 0b0100, 0b0111)
I_BITS = (9, 7, 5, 3, 1)
D_BITS = (8, 6, 4, 2, 0)
LAST = 782


def classify(word: int, active: int, recent_adjustment: bool) -> str:
    """The indication of one word: norm, ndf, ais, inc, dec, new or invalid."""
    ndf, offset = word >> 12, word & 0x3FF
    if word == 0xFFFF:
        return "ais"
    if ndf in ENABLED:
        return "ndf" if offset <= LAST else "invalid"
    if ndf not in DISABLED:
        return "invalid"
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
    """The states NORM, LOP and AIS. ``move`` of ``step`` is +1 where this frame has positive stuff, -1 where H3
    carries data, else 0."""

    def __init__(self, active=522):
        self.active = active
        self.state = "NORM"
        self.since_adjustment = 99
        self.new_value, self.new_count = None, 0
        self.invalid = self.ndf = self.ais = 0

    def step(self, word: int) -> tuple[str, int]:
        kind = classify(word, self.active, self.since_adjustment < 3)
        offset, move = word & 0x3FF, 0
        self.since_adjustment += 1
        # three equal words with the NDF disabled: any word that is not the active one counts, also one that
        # reads as a justification
        candidate = word >> 12 in DISABLED and offset <= LAST
        differs = offset != self.active or self.state != "NORM"
        if candidate and differs:
            self.new_count = self.new_count + 1 if offset == self.new_value else 1
            self.new_value = offset
        else:
            self.new_value, self.new_count = None, 0
        self.ais = self.ais + 1 if kind == "ais" else 0
        self.ndf = self.ndf + 1 if kind == "ndf" else 0
        self.invalid = self.invalid + 1 if kind in ("new", "invalid") else 0
        if self.state == "NORM" and kind == "inc":
            self.active = 0 if self.active == LAST else self.active + 1
            self.since_adjustment, move = 0, 1
        elif self.state == "NORM" and kind == "dec":
            self.active = LAST if self.active == 0 else self.active - 1
            self.since_adjustment, move = 0, -1
        elif kind == "ndf" and self.state in ("NORM", "AIS") and self.ndf < 8:
            self.active, self.state = offset, "NORM"
            self.since_adjustment = 0
        if self.new_count == 3:
            self.active, self.state = offset, "NORM"
            self.invalid = self.ndf = 0
            self.new_value, self.new_count = None, 0
            return kind, 0
        if self.state == "NORM" and (self.invalid == 8 or self.ndf == 8):
            self.state = "LOP"
        if self.ais == 3:
            self.state = "AIS"
        return kind, move
