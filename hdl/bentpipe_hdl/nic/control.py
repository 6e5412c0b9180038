"""The network interface as software sees it: its registers, its settings, its driver."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Final, Self

from pydantic import Field, model_validator

from bentpipe_hdl import registers as reg
from bentpipe_hdl.driver import Balance, Driver
from bentpipe_hdl.lookup_table import lookup_registers, lookup_table
from bentpipe_hdl.nic.options import OPTIONS, options_of
from bentpipe_hdl.plcp import SLOT_RATE_BPS, FramesName, frame_problem
from bentpipe_hdl.registers import Bus, Register, RegisterMap, check_vcs
from bentpipe_hdl.settings import IN_RUN, SHARE, TIME, Rate, Settings, wrong
from bentpipe_hdl.ticks import cell_period, round_ticks
from bentpipe_hdl.traffic.contract import BucketSize, Burst, bucket_sizes, burst_problem

__all__ = [
    "PACING_KEYS",
    "VERDICTS",
    "NicDriver",
    "NicLine",
    "NicReceive",
    "NicSend",
    "NicSettings",
    "PacingSettings",
    "nic_registers",
]

VERDICTS = ("ok", "crc", "length", "lost_last", "overlength", "abort", "timeout")
"""How the reassembly of a PDU ended, in the order of the counters."""


class NicSettings(Settings):
    """A host's interface."""

    reassembly_timeout_ps: Annotated[int, TIME.within(0, "380 s")] = Field(
        default=0,
        description="time from a PDU's first cell after which it is given up if its last cell has not arrived; 0: none",
    )
    credit_resync_ps: Annotated[int, TIME.within("10 us", "100 s")] = Field(
        default=10**9,
        description="longest time before a VC with unaccounted cells asks its switch for its credits",
    )
    oam: bool = Field(
        default=False,
        description="end point of its VCs' OAM flows F5 (I.610): it returns loopback cells, and has AIS and RDI states",
    )
    lose_frames: Annotated[float, SHARE] = Field(
        default=0.0, description="share of its PDUs that are lost before they are sent", json_schema_extra=IN_RUN
    )
    duplicate_frames: Annotated[float, SHARE] = Field(
        default=0.0, description="share of its PDUs that are sent twice", json_schema_extra=IN_RUN
    )
    reorder_frames: Annotated[float, SHARE] = Field(
        default=0.0, description="share of its PDUs that the next PDU of their VC overtakes", json_schema_extra=IN_RUN
    )
    reorder_wait_ps: Annotated[int, TIME.within("1 us", "10 s")] = Field(
        default=10**10,
        description="longest time that a PDU waits to be overtaken",
        json_schema_extra=IN_RUN,
    )

    @model_validator(mode="after")
    def _one_fate(self) -> Self:
        if self.lose_frames + self.duplicate_frames + self.reorder_frames > 1:
            raise wrong("the shares of lost, duplicated and reordered PDUs are at most 1 together", "lose_frames")
        return self

    @property
    def impairs(self) -> bool:
        """They do something to whole PDUs."""
        return self.lose_frames + self.duplicate_frames + self.reorder_frames > 0


PACING_KEYS: Final = ("cell_rate", "sustained_rate", "burst")


class PacingSettings(Settings):
    """The pacing of a VC at its interface."""

    cell_rate_bps: Rate | None = Field(
        default=None,
        description="cell rate of the pacing at the source; default: the line's rate",
        json_schema_extra=IN_RUN,
    )
    sustained_rate_bps: Rate | None = Field(
        default=None,
        description="cell rate of the pacing in the long run, with `burst`; then `cell_rate` is that of a burst",
        json_schema_extra=IN_RUN,
    )
    burst: Burst | None = Field(
        default=None, description="number of consecutive cells at `cell_rate`", json_schema_extra=IN_RUN
    )

    @model_validator(mode="after")
    def _paced(self) -> Self:
        if problem := burst_problem(self.cell_rate_bps, self.sustained_rate_bps, self.burst, PACING_KEYS):
            raise wrong(problem[1], problem[0])
        return self


@dataclass(frozen=True)
class NicLine:
    """An interface's line: its rate in bits of cells a second, by a clock so many ppm too fast; whether it's an NNI;
    the frames in which it has slots for cells, if it has some."""

    rate_bps: float = 149_760_000
    clock_ppm: float = 0.0
    nni: bool = False
    frames: FramesName | None = None

    def period(self, rate_bps: float | None = None) -> int:
        """Return the period of cells at the line's rate, or at another rate by the same clock.

        It is in units of 2**-16 ticks; in frames it is the length of a slot.

        Raises
        ------
        ValueError
            There is no such rate, or it cannot be combined with the frames.
        """
        if problem := frame_problem(self.frames, self.rate_bps):
            raise ValueError(problem)
        return cell_period(self.peak_bps if rate_bps is None else rate_bps, self.clock_ppm)

    @property
    def peak_bps(self) -> float:
        """The rate at which cells may follow each other."""
        return SLOT_RATE_BPS if self.frames else self.rate_bps

    def paced(
        self, rate_bps: float | None = None, sustained_bps: float | None = None, burst: int | None = None
    ) -> tuple[int, BucketSize | None]:
        """Return the period of a VC, and the bucket of its sustained rate, if it has one, by the same clock.

        Raises
        ------
        ValueError
            There is no such rate, or rates and burst do not go together.
        """
        peak = self.peak_bps if rate_bps is None else rate_bps
        if problem := burst_problem(peak, sustained_bps, burst, PACING_KEYS):
            raise ValueError(problem[1])
        first, *more = bucket_sizes(peak, sustained_bps, burst, clock_ppm=self.clock_ppm)
        return first.increment, more[0] if more else None


@dataclass(frozen=True)
class NicSend:
    """A VC on which an interface sends: VPI, VCI, ticks a cell in units of 2**-16; a sustained rate's bucket, if it has
    one; places that it has in its switch (0: any number), and the index of the VC the other way, on which the interface
    receives."""

    vpi: int
    vci: int
    period: int
    sustained: BucketSize | None = None
    credits: int = 0
    back: int | None = None


@dataclass(frozen=True)
class NicReceive:
    """A VC on which an interface receives: VPI, VCI, octets of the largest SDU."""

    vpi: int
    vci: int
    max_sdu: int

    @property
    def cells(self) -> int:
        """Return the number of cells of the largest PDU."""
        return (self.max_sdu + 8 + 47) // 48


@cache
def nic_registers(*, vcs: int = 64, **options: int) -> RegisterMap:
    """Return the registers of a NIC with so many VCs each way, and with options (1 each) or without (0).

    Raises
    ------
    TypeError
        There is no such option.
    ValueError
        VCs are no power of two from 2 to 4096; an option is neither 0 nor 1.
    """
    check_vcs(vcs)
    given = options_of(options)
    replaced = {name for option in given for name in option.replaces}
    more = {option.name: int(option in given) for option in OPTIONS if option in given or option.always_in_shape}
    registers = (*_core_registers(vcs), *(register for option in given for register in option.registers(vcs=vcs)))
    return RegisterMap(
        "nic", "BPNC", 3, {"vcs": vcs, **more}, tuple(each for each in registers if each.name not in replaced)
    )


def _core_registers(vcs: int) -> tuple[Register, ...]:
    """Return the registers of an interface without options."""
    return (
        Register("nni", 0x0005, "NNI headers on the line", width=1),
        Register(
            "line_period", 0x0010, "period of the line's cells", "wo", 40, unit="ticks / 2**16", reset=1 << 16
        ),
        Register("tolerance", 0x0012, "CDVT: time that a paced VC may catch up", width=24, unit="ticks"),
        Register("tx_refused", 0x0014, "PDUs refused: VC busy, or length 0", "ro"),
        Register("rx_timeout", 0x0016, "reassembly time-out of a PDU, 0: none", unit="ticks", most=1 << 31),
        *lookup_registers(vcs),
        Register("rx_unknown", 0x0080, "cells of unknown VCs", "ro", unit="cells"),
        Register("rx_hec", 0x0081, "cells with a bad HEC", "ro", unit="cells"),
        Register("rx_oam", 0x0082, "cells of OAM and RM, which do not belong to AAL5", "ro", unit="cells"),
        Register("rx_over", 0x0083, "cells beyond the limit of their PDU", "ro", unit="cells"),
        Register(
            "tx_header", 0x10000, "header of a VC's cells; writing it sets the VC up", "wo", count=vcs,
            fields=(reg.Field("clp", 0), reg.Field("vci", 4, 16), reg.Field("vpi", 20, 8), reg.Field("gfc", 28, 4)),
        ),
        Register("tx_period", 0x20000, "period of a VC's cells (PCR)", "wo", 40, vcs, "ticks / 2**16"),
        Register("tx_cells", 0x30000, "cells sent, by VC", "ro", count=vcs, unit="cells"),
        Register("rx_limit", 0x40000, "cells of a VC's longest PDU; writing it sets the VC up", "wo", 11, vcs, "cells"),
        Register("rx_cells", 0x50000, "cells taken to a PDU, by VC", "ro", count=vcs, unit="cells"),
        Register("rx_pdus", 0x60000, f"PDUs by VC and verdict: {', '.join(VERDICTS)}", "ro", count=8 * vcs),
    )  # fmt: skip


class NicDriver(Driver):
    """The software side of a NIC with so many VCs each way, with options (1 each) or without (0)."""

    kind = "nic"

    def __init__(self, bus: Bus, *, vcs: int, **options: int):
        super().__init__(bus, nic_registers(vcs=vcs, **options))
        self.options = options_of(options)
        self._sends: Mapping[int, NicSend] = {}
        self._receives: Mapping[int, NicReceive] = {}

    def configure(
        self, settings: NicSettings, line: NicLine, sends: Mapping[int, NicSend], receives: Mapping[int, NicReceive]
    ) -> None:
        """Write all settings of a NIC that was reset; VCs by their index."""
        csr, period, timeout = self.csr, line.period(), settings.reassembly_timeout_ps
        self._sends, self._receives = sends, receives
        if not any("line_period" in option.replaces for option in self.options):
            csr.line_period = period
        csr.tolerance = period + 0xFFFF >> 16
        csr.nni = int(line.nni)
        csr.rx_timeout = max(1, round_ticks(timeout)) if timeout else 0
        for index, send in sends.items():
            csr.tx_header[index] = {"vpi": send.vpi & 0xFF, "gfc": send.vpi >> 8, "vci": send.vci}
            csr.tx_period[index] = send.period
        for index, receive in receives.items():
            csr.rx_limit[index] = receive.cells
        entries = {(0, receive.vpi, receive.vci): index for index, receive in receives.items()}
        lookup_table(csr.map.shape["vcs"], entries).write(csr)
        for option in self.options:
            option.configure(csr, settings, line, sends)

    def received(self, index: int) -> int:
        """Return the number of PDUs received whole on a VC."""
        return self.csr.rx_pdus[8 * index + VERDICTS.index("ok")]

    def vc_counters(self, number: int) -> tuple[int, int]:
        return 0, self.csr.map["tx_cells"].addr + number

    def counters(self) -> dict[str, Any]:
        csr = self.csr
        return {
            "tx_cells": [csr.tx_cells[vc] for vc in self._sends],
            "tx_refused": csr.tx_refused,
            "rx_cells": [csr.rx_cells[vc] for vc in self._receives],
            "drop_unknown": csr.rx_unknown,
            "drop_hec": csr.rx_hec,
            "drop_oam": csr.rx_oam,
            "drop_overlength": csr.rx_over,
            **{f"pdus_{name}": [csr.rx_pdus[8 * vc + k] for vc in self._receives] for k, name in enumerate(VERDICTS)},
            **{name: value for option in self.options for name, value in option.counters(csr, self._sends).items()},
        }

    def account(self, cells_in: int, cells_out: int) -> Iterator[Balance]:
        now = self.counters()
        drops = sum(value for name, value in now.items() if name.startswith("drop_"))
        taken = sum(option.taken(now) for option in self.options)
        made = sum(option.made(now) for option in self.options)
        yield Balance("cells in = taken + dropped", cells_in, sum(now["rx_cells"]) + drops + taken)
        yield Balance("cells sent = cells out", sum(now["tx_cells"]) + made, cells_out)
