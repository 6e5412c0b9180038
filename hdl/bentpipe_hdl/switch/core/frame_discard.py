"""The discipline of AAL5 frames: what is dropped of a frame that lost a cell (partial packet discard)."""

from amaranth.lib import data

__all__ = ["FRAME", "follow_frame"]

FRAME = {"inside": 1, "refused": 1, "cut": 1}
"""Where a VC is in its frame: inside of one, of which all is dropped, or all but its last cell."""

Frame = data.StructLayout(FRAME)


def follow_frame(m, frame, new_frame, *, user, last, framed, refuses, cuts):
    """Update ``frame`` with a cell; ``new_frame`` keeps the old value unless it is assigned here.

    A first cell that is dropped takes its whole frame with it. After a later cell is dropped, the rest of the frame is
    dropped except the last cell, which is admitted like any other. If the last cell is dropped too, the following frame
    is dropped up to its last cell. So no receiver joins two halves of frames to one. Cells that are not ``framed`` do
    not affect each other.

    Parameters
    ----------
    m : Module
    frame, new_frame : data.View
        State with the members of ``FRAME``, before and after the cell.
    user, last, framed : Value
        The cell is part of a frame; it ends the frame; its VC discards by frames.
    refuses, cuts : Value
        The cell is dropped for its own sake: with the whole frame if it is the first, otherwise with the rest of the
        frame.
    """
    with m.If(user & (~framed | ~frame.inside)):
        m.d.comb += [new_frame.inside.eq(~last), new_frame.refused.eq(framed & refuses & ~last), new_frame.cut.eq(0)]
    with m.Elif(framed & last):
        lost = ~frame.refused & cuts
        m.d.comb += [new_frame.inside.eq(lost), new_frame.refused.eq(0), new_frame.cut.eq(lost)]
    with m.Elif(framed & ~frame.refused & cuts):
        m.d.comb += new_frame.cut.eq(1)
