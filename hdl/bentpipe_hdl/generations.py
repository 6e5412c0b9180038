"""Generation numbers: setting up a VC initialises all its state, whatever it was used for before."""

from amaranth.hdl import Signal

__all__ = ["Generations"]

NUMBER_BITS = 4
"""Set-ups of a VC between two clocks of a cell that can be told apart: more than a bus can make."""


class Generations:
    """Numbers of set-ups: a VC's present one, and that of which the VC's state is.

    Software sets a VC up by writing a table, at any time, while the state of any VC may be about to be written. So a
    set-up does not touch the state: it gives the VC another number. State of another number than the VC's is of
    before, and counts for nothing. A new number differs from the last one and from that of the state, so that state
    that is still on its way to memory is of before as well.

    Parameters
    ----------
    slot : TickSchedule
    name : str
    vcs : int
    index, en : Value
        The VC that is set up, in the clock in which its table is written.
    """

    def __init__(self, slot, name, vcs, index, en):
        self._name, m = name, slot.m
        self._numbers = slot.store(f"{name}_numbers", NUMBER_BITS, vcs)
        self._seen = slot.store(f"{name}_seen", NUMBER_BITS, vcs)
        number, set_up, old = Signal(NUMBER_BITS, name=f"{name}_number"), index, self._numbers.peek(index)
        seen = self._seen.peek(index)
        if not slot.wide:  # the two have been read a clock later
            set_up, written = Signal.like(index, name=f"{name}_set_up"), Signal(name=f"{name}_written")
            m.d.sync += [set_up.eq(index), written.eq(en)]
            en = written
        m.d.comb += number.eq(old + 1)
        with m.If(seen == (old + 1)[:NUMBER_BITS]):
            m.d.comb += number.eq(old + 2)
        self._numbers.write(set_up, number, en)

    def look(self, vc, *, at, to):
        """Return ``(number, current)``: the number of ``vc``, and whether its state is from after its last set-up.

        ``at`` and ``to`` are as for :meth:`~.tick_schedule.Store.read`.
        """
        number = self._numbers.read(vc, at=at, to=f"{to}_number")
        return number, number == self._seen.read(vc, at=at, to=f"{to}_seen")

    def renew(self, vc, number, en):
        """Record that the state of ``vc`` belongs to the set-up with this ``number`` from now on."""
        self._seen.write(vc, number, en)
