"""Setting up a VC initialises all its state, whatever it was used for before."""

from amaranth.hdl import Signal

__all__ = ["SETUP_BITS", "SetUps"]

SETUP_BITS = 2


class SetUps:
    """Numbers of set-ups: a VC's present one, and in the VC's state the one for which that was written.

    Software sets a VC up by writing a table, at any time, while the state of any VC may be about to be written. So
    a set-up doesn't touch the state: it gives the VC another number. State whose number is not the VC's is of before,
    and counts for nothing. A new number differs from the last one and from that in the state, so that state that is
    still on its way to memory is of before as well.

    Parameters
    ----------
    m : Module
    slot : Slot
    name : str
    vcs : int
    index, en : Value
        The VC that is set up, in the clock in which its table is written.
    kept : callable
        ``kept(index)`` reads the number in the state of a VC.
    """

    def __init__(self, m, slot, name, vcs, index, en, kept):
        self._numbers = slot.store(f"{name}_setups", SETUP_BITS, vcs)
        old, number = Signal(SETUP_BITS, name=f"{name}_setup_old"), Signal(SETUP_BITS, name=f"{name}_setup")
        m.d.comb += [old.eq(self._numbers.read(index)), number.eq(old + 1)]
        with m.If(kept(index) == (old + 1)[:SETUP_BITS]):
            m.d.comb += number.eq(old + 2)
        # On the narrow datapath the two have been read a clock later
        self._numbers.write(slot.settle(index, f"{name}_setup_vc"), number, slot.settle(en, f"{name}_setup_written"))

    def read(self, vc):
        """The present number of ``vc``: for comparison with that in its state, and to be written there."""
        return self._numbers.read(vc)
