"""Defects of line, path and cells from the received overhead, each with its count of frames (GR-253 clause 6.2.1)."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from bentpipe_hdl.sonet.tables import ALARMS

__all__ = ["Defects", "LineAlarms", "PathAlarms", "Persistence"]


Defects = data.StructLayout({alarm.name: 1 for alarm in ALARMS})
"""One bit a defect, the first of ``ALARMS`` lowest."""


class Persistence(wiring.Component):
    """A condition that must hold, or not hold, for ``frames`` frames in a row.

    Members
    -------
    strobe : In(1), condition : In(1)
    restart : In(1)
        Frames were missed: the count of frames in a row starts over.
    clear : In(1)
    defect : Out(1)
    """

    strobe: In(1)
    condition: In(1)
    restart: In(1)
    clear: In(1)
    defect: Out(1)

    def __init__(self, frames):
        self._frames = frames
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        count = Signal(range(self._frames))
        with m.If(self.strobe):
            with m.If(self.condition == self.defect):
                m.d.sync += count.eq(0)
            with m.Elif(count == self._frames - 1):
                m.d.sync += [self.defect.eq(self.condition), count.eq(0)]
            with m.Else():
                m.d.sync += count.eq(count + 1)
        with m.If(self.restart):
            m.d.sync += count.eq(0)
        with m.If(self.clear):
            m.d.sync += [self.defect.eq(0), count.eq(0)]
        return m


class LineAlarms(wiring.Component):
    """AIS-L and RDI-L from K2.

    Members
    -------
    strobe : In(1), k2 : In(8)
        Once a frame.
    restart : In(1)
        SEF: frames are missed.
    clear : In(1)
        LOS or LOF: the defects of the line cannot be told.
    ais_l, rdi_l : Out(1)
    """

    strobe: In(1)
    k2: In(8)
    restart: In(1)
    clear: In(1)
    ais_l: Out(1)
    rdi_l: Out(1)

    def elaborate(self, platform):
        m = Module()
        for name, code in (("ais_l", 0b111), ("rdi_l", 0b110)):
            m.submodules[name] = item = Persistence(5)
            m.d.comb += [
                item.strobe.eq(self.strobe),
                item.condition.eq(self.k2[:3] == code),
                item.restart.eq(self.restart),
                item.clear.eq(self.clear),
                getattr(self, name).eq(item.defect),
            ]
        return m


class PathAlarms(wiring.Component):
    """UNEQ-P, PLM-P and RDI-P from C2 and G1.

    Members
    -------
    c2_strobe : In(1), c2 : In(8), expected : In(8)
    g1_strobe : In(1), g1 : In(8)
    restart : In(1)
        SEF: frames are missed.
    clear : In(1)
        AIS-P or LOP-P.
    uneq_p, plm_p, rdi_p : Out(1)
    rdi_p_code : Out(3)
        The code of G1 that 10 frames agreed on.
    """

    c2_strobe: In(1)
    c2: In(8)
    expected: In(8)
    g1_strobe: In(1)
    g1: In(8)
    restart: In(1)
    clear: In(1)
    uneq_p: Out(1)
    plm_p: Out(1)
    rdi_p: Out(1)
    rdi_p_code: Out(3)

    def elaborate(self, platform):
        m = Module()
        empty, right = Signal(), Signal()
        m.d.comb += [empty.eq(self.c2 == 0), right.eq((self.c2 == self.expected) | (self.c2 == 1))]
        m.submodules.uneq = uneq = Persistence(5)
        m.submodules.plm = plm = Persistence(5)
        for item, condition in ((uneq, empty), (plm, ~empty & ~right)):
            m.d.comb += [
                item.strobe.eq(self.c2_strobe),
                item.condition.eq(condition),
                item.restart.eq(self.restart),
                item.clear.eq(self.clear),
            ]
        m.d.comb += [self.uneq_p.eq(uneq.defect), self.plm_p.eq(plm.defect)]

        code = self.g1[1:4]
        candidate = Signal(3)
        count = Signal(4)
        with m.If(self.g1_strobe):
            m.d.sync += candidate.eq(code)
            with m.If(code != candidate):
                m.d.sync += count.eq(1)
            with m.Elif(count == 9):
                m.d.sync += self.rdi_p_code.eq(code)
            with m.Else():
                m.d.sync += count.eq(count + 1)
        with m.If(self.restart):
            m.d.sync += count.eq(0)
        with m.If(self.clear):
            m.d.sync += [count.eq(0), self.rdi_p_code.eq(0)]
        # 000, 001 and 011 say that there is no defect
        m.d.comb += self.rdi_p.eq(self.rdi_p_code[2] | (self.rdi_p_code == 0b010))
        return m


class Hold(wiring.Component):
    """A pulse stretcher: it keeps a signal for at least ``frames`` frames.

    Members
    -------
    strobe : In(1), value : In(width)
    held : Out(width)
        ``value``, or for ``frames`` frames after it became 0 its last other value.
    """

    def __init__(self, width, frames):
        self._width, self._frames = width, frames
        super().__init__({"strobe": In(1), "value": In(width), "held": Out(width)})

    def elaborate(self, platform):
        m = Module()
        left = Signal(range(self._frames + 1))
        with m.If(self.value != 0):
            m.d.sync += [self.held.eq(self.value), left.eq(self._frames)]
            with m.If((left != 0) & (self.held == self.value)):
                m.d.sync += left.eq(Mux(self.strobe, left - (left != 1), left))
        with m.Elif(self.strobe):
            with m.If(left <= 1):
                m.d.sync += [self.held.eq(0), left.eq(0)]
            with m.Else():
                m.d.sync += left.eq(left - 1)
        return m
