"""ATM cells and the faces of a node: cell streams, time, readiness.

A cell is a header of 32 bits (the HEC is made and checked where the line is) and 48 octets of payload. Two
datapath widths exist, with the same cells in the same order, the same drops and the same counters:

======= ================================================= =============================
width   a cell is                                         for
======= ================================================= =============================
416     header and payload together, one clock            simulation
32      13 words: the header, then 12 words of payload    an FPGA
======= ================================================= =============================

Time is counted in *ticks*. In a tick a node takes at most one cell and gives at most one. A tick is one clock
at 416 bits, and 13 clocks or more at 32.
"""

from functools import reduce
from operator import and_

from amaranth.hdl import Mux, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

__all__ = [
    "CLOCKS_A_TICK",
    "FRACTION_BITS",
    "NARROW",
    "NEVER",
    "TIME_BITS",
    "WIDE",
    "WORDS_A_CELL",
    "CellHeader",
    "CellSignature",
    "StatusSignature",
    "TimeSignature",
    "check_width",
    "comes",
    "due_tick",
    "earlier",
    "earliest",
]

WIDE = 416
"""Bits of the wide datapath: a whole cell without its HEC."""

NARROW = 32
"""Bits of the narrow datapath."""

WORDS_A_CELL = 13
"""Words of a cell on the narrow datapath."""

CLOCKS_A_TICK = 13
"""The fewest clocks that a tick may have on the narrow datapath."""

TIME_BITS = 48
"""Bits of a time in ticks: 1.5 years at 177 ns a tick."""

FRACTION_BITS = 16
"""Fraction bits of periods and due times: a rate is met to 0.5 ppm at OC-3c."""

NEVER = (1 << TIME_BITS) - 1
"""The due tick of a node that has nothing to do until a cell arrives."""


def comes(tick, now, most):
    """Return whether ``tick`` is in the future: 1 to ``most`` ticks after ``now``, modulo 2**48.

    Any other tick is past, however long ago.
    """
    return (tick - now - 1)[:TIME_BITS] < most


def due_tick(tick):
    """Return a tick as a node's due tick: one tick earlier if it equals ``NEVER``."""
    return Mux(tick == NEVER, NEVER - 1, tick)


def earlier(a, b):
    """Return the first of two due ticks, compared modulo half their range; either may be ``NEVER``."""
    return Mux(_is_earlier(a, b), a, b)


def earliest(first, *others):
    """Return the earliest of several due ticks.

    Each is compared with each at the same time. This path is shorter than a chain of comparisons, and needs more logic.
    """
    if not others:
        return first
    return Mux(reduce(and_, (_is_earlier(first, other) for other in others)), first, earliest(*others))


def _is_earlier(a, b):
    return (b == NEVER) | ((a != NEVER) & (a - b)[TIME_BITS - 1])


class CellHeader(data.Struct):
    """The ATM cell header without its HEC, as a number: ``gfc<<28 | vpi<<20 | vci<<4 | pti<<1 | clp``.

    At an NNI the four bits of ``gfc`` are the upper bits of a 12-bit VPI (I.361 clause 2.2).
    """

    clp: 1
    pti: 3
    vci: 16
    vpi: 8
    gfc: 4


def check_width(width):
    """Raise ValueError unless ``width`` is one of the two datapath widths."""
    if width not in (NARROW, WIDE):
        raise ValueError(f"width must be {NARROW} or {WIDE} bits, not {width!r}")


class CellSignature(wiring.Signature):
    """A stream of cells. There is no back-pressure: a line cannot be stopped, and a node takes a cell a tick.

    Parameters
    ----------
    width : int
        416 or 32.
    ports : int
        Ports that the stream serves; ``port`` tells whose cell it is (as the PHY address on UTOPIA level 2).

    Members
    -------
    valid : Out(1)
        A cell (416 bits) or a word of a cell (32 bits) is there. Only together with ``tick`` at 416 bits.
    port : Out(range(ports))
        With ``valid`` (32 bits: with ``soc``).
    hec_error : Out(1)
        The header check of the line found an error that it could not correct. The cell is to be counted and
        dropped. With ``valid`` (32 bits: with ``soc``).
    header : Out(CellHeader), payload : Out(384)
        At 416 bits. Octet ``k`` of the payload is in bits ``8k`` to ``8k+7``.
    soc : Out(1), word : Out(32)
        At 32 bits. ``soc`` marks the start of a cell, the header, which comes in the first or second clock of
        a tick; the payload follows in the next 12 clocks without a gap, first octet in the low bits.
    """

    def __init__(self, width, ports=1):
        check_width(width)
        self.width = width
        self.ports = ports
        members = {"valid": Out(1), "port": Out(range(ports)), "hec_error": Out(1)}
        if width == WIDE:
            members |= {"header": Out(CellHeader), "payload": Out(384)}
        else:
            members |= {"soc": Out(1), "word": Out(32)}
        super().__init__(members)


class TimeSignature(wiring.Signature):
    """Time, given to a node from outside: no node counts time itself.

    Members
    -------
    tick : Out(1)
        High in the first clock of a tick. While it stays low nothing happens but accesses to the CSRs.
    now : Out(48)
        The tick's number; constant during a tick.
    """

    def __init__(self):
        super().__init__({"tick": Out(1), "now": Out(unsigned(TIME_BITS))})


class StatusSignature(wiring.Signature):
    """The ports with which a node reports when it has work.

    Members
    -------
    idle : Out(1)
        No state changes before tick ``due`` unless a cell (or a PDU) arrives or a CSR is written.
    due : Out(48)
        The next tick at which the node has work of its own; ``NEVER`` if there is none.
    """

    def __init__(self):
        super().__init__({"idle": Out(1), "due": Out(unsigned(TIME_BITS))})


def node_members(width, ports):
    """Return the ports that every node has: ``i``, ``o``, ``time``, ``status`` (``csr`` is added by the node)."""
    return {
        "i": In(CellSignature(width, ports)),
        "o": Out(CellSignature(width, ports)),
        "time": In(TimeSignature()),
        "status": Out(StatusSignature()),
    }
