"""The core's clock from the board's oscillator, by an ECP5's PLL."""

from dataclasses import dataclass
from typing import Final

from amaranth.hdl import Instance, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from bentpipe_boards.fpga.errors import FpgaError

__all__ = ["EARLY", "Dividers", "Pll", "dividers"]

_PFD_LEAST: Final = 8_000_000
_VCO_LEAST: Final = 400_000_000
_VCO: Final = 600_000_000
_VCO_MOST: Final = 800_000_000
"""Limits of the phase detector and the oscillator in Hz, from the ECP5 data sheet (FPGA-DS-02012, sysCLOCK PLL), and
the middle of the latter."""
EARLY: Final = 1 / 8
"""Lead of a memory's clock before its controller's, in periods."""


@dataclass(frozen=True)
class Dividers:
    """``output = reference / reference_by * feedback_by``; the oscillator runs at ``output * output_by``."""

    reference_by: int
    feedback_by: int
    output_by: int

    def other_by(self, output_hz: int, least_hz: int) -> int:
        """Return the divider of the slowest further output that has at least this frequency, if the first output has
        ``output_hz``."""
        return output_hz * self.output_by // least_hz


def dividers(reference_hz: int, output_hz: int) -> Dividers:
    """Return the dividers that give this frequency exactly, with the fastest phase detector.

    Raises
    ------
    FpgaError
        There are none.
    """
    by = round(_VCO / output_hz) if output_hz > 0 else 0
    if 1 <= by <= 128 and _VCO_LEAST <= output_hz * by <= _VCO_MOST:
        for reference_by in range(1, reference_hz // _PFD_LEAST + 1):
            feedback_by, rest = divmod(output_hz * reference_by, reference_hz)
            if not rest and 1 <= feedback_by <= 128:
                return Dividers(reference_by, feedback_by, by)
    raise FpgaError(f"no setting of the PLL makes {output_hz / 1e6:g} MHz of {reference_hz / 1e6:g} MHz")


def _phase(by: int) -> tuple[int, int]:
    """Return the phase of an output that leads one without phase by :data:`EARLY` of its period: whole periods of the
    oscillator, and eighths of one."""
    return divmod(8 * (by - 1) + round(8 * by * (1 - EARLY)), 8)


class Pll(wiring.Component):
    """An EHXPLLL whose first output is its feedback.

    Parameters
    ----------
    by : Dividers
    other_by : int
        Divider of the further output; 0: there is none.
    fast_by, slow_by : int
        Dividers of the outputs of a DDR3 memory; 0: there are none. With them there is no ``early`` one.

    Members
    -------
    reference : In(1)
    output, locked : Out(1)
    early : Out(1)
        The same clock, :data:`EARLY` of its period earlier.
    other : Out(1)
        The further output.
    fast, slow : Out(1)
        Those of a DDR3 memory.
    """

    reference: In(1)
    output: Out(1)
    early: Out(1)
    other: Out(1)
    fast: Out(1)
    slow: Out(1)
    locked: Out(1)

    def __init__(self, by: Dividers, other_by: int = 0, *, fast_by: int = 0, slow_by: int = 0):
        self.by, self.other_by, self.fast_by, self.slow_by = by, other_by, fast_by, slow_by
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        clock, early = Signal(), Signal()
        m.d.comb += self.output.eq(clock)
        if self.fast_by:
            m.d.comb += self.fast.eq(early)
            early_by, periods, eighths = self.fast_by, self.fast_by - 1, 0
        else:
            m.d.comb += self.early.eq(early)
            early_by, (periods, eighths) = self.by.output_by, _phase(self.by.output_by)
        further = {}
        if self.other_by:
            further = {
                "p_CLKOS2_ENABLE": "ENABLED", "p_CLKOS2_DIV": self.other_by, "p_CLKOS2_CPHASE": self.other_by - 1,
                "p_CLKOS2_FPHASE": 0, "o_CLKOS2": self.other,
            }  # fmt: skip
        if self.slow_by:
            further |= {
                "p_CLKOS3_ENABLE": "ENABLED", "p_CLKOS3_DIV": self.slow_by, "p_CLKOS3_CPHASE": self.slow_by - 1,
                "p_CLKOS3_FPHASE": 0, "o_CLKOS3": self.slow,
            }  # fmt: skip
        m.submodules.pll = Instance(
            "EHXPLLL",
            a_ICP_CURRENT="12", a_LPF_RESISTOR="8", a_MFG_ENABLE_FILTEROPAMP="1", a_MFG_GMCREF_SEL="2",
            p_PLLRST_ENA="DISABLED", p_INTFB_WAKE="DISABLED", p_STDBY_ENABLE="DISABLED",
            p_DPHASE_SOURCE="DISABLED", p_OUTDIVIDER_MUXA="DIVA", p_OUTDIVIDER_MUXB="DIVB",
            p_OUTDIVIDER_MUXC="DIVC", p_OUTDIVIDER_MUXD="DIVD",
            p_CLKI_DIV=self.by.reference_by, p_CLKFB_DIV=self.by.feedback_by, p_FEEDBK_PATH="CLKOP",
            p_CLKOP_ENABLE="ENABLED", p_CLKOP_DIV=self.by.output_by, p_CLKOP_CPHASE=self.by.output_by - 1,
            p_CLKOP_FPHASE=0,
            p_CLKOS_ENABLE="ENABLED", p_CLKOS_DIV=early_by, p_CLKOS_CPHASE=periods, p_CLKOS_FPHASE=eighths,
            i_RST=0, i_STDBY=0, i_CLKI=self.reference, i_CLKFB=clock, o_CLKOP=clock, o_CLKOS=early,
            i_PHASESEL0=0, i_PHASESEL1=0, i_PHASEDIR=1, i_PHASESTEP=1, i_PHASELOADREG=1, i_PLLWAKESYNC=0,
            i_ENCLKOP=0, o_LOCK=self.locked, **further,
        )  # fmt: skip
        return m
