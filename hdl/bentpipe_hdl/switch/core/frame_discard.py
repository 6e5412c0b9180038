"""The discipline of AAL5 frames: what is dropped of a frame that lost a cell (partial packet discard)."""

from amaranth.lib import data

__all__ = ["FRAME", "follow_frame"]

FRAME = {"inside": 1, "refused": 1, "cut": 1}
"""Where a VC is in its frame: inside of one, of which all is dropped, or all but its last cell."""

Frame = data.StructLayout(FRAME)


def follow_frame(m, frame, new_frame, *, user, last, framed, refuses, cuts):
    """What becomes of ``frame`` with a cell; ``new_frame`` is as it was unless assigned here.

    What is dropped as a frame's first cell takes the whole frame with it. Once a later one is dropped, the rest goes
    but the last cell, which takes its chance; if it is dropped, too, the following frame goes up to its last cell, so
    that no receiver joins two half frames to one. Cells that are not ``framed`` are on their own.

    Parameters
    ----------
    m : Module
    frame, new_frame : data.View
        With the members of ``FRAME``.
    user, last, framed : Value
        The cell: one of a frame, which ends it; frames count for its VC.
    refuses, cuts : Value
        It is dropped for what it finds itself: that takes its whole frame, if it is the first; the rest of it, if not.
    """
    with m.If(user & (~framed | ~frame.inside)):
        m.d.comb += [new_frame.inside.eq(~last), new_frame.refused.eq(framed & refuses & ~last), new_frame.cut.eq(0)]
    with m.Elif(framed & last):
        lost = ~frame.refused & cuts
        m.d.comb += [new_frame.inside.eq(lost), new_frame.refused.eq(0), new_frame.cut.eq(lost)]
    with m.Elif(framed & ~frame.refused & cuts):
        m.d.comb += new_frame.cut.eq(1)
