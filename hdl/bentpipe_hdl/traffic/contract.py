"""Traffic contracts as software sees them: peak and sustained cell rate, burst, tolerance (I.371; TM 4.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final, Self

from pydantic import Field, model_validator

from bentpipe_hdl.settings import COUNT, IN_RUN, Rate, Settings, wrong
from bentpipe_hdl.ticks import cell_period, duration
from bentpipe_hdl.units import format_rate

__all__ = ["MOST_LIMIT", "BucketSize", "Burst", "ContractSettings", "bucket_sizes", "burst_problem"]

MOST_LIMIT: Final = (1 << 48) - 1
"""Limit of a bucket at most, in units of 2**-16 ticks: 760 s."""


Burst = Annotated[int, COUNT.within(1, 2**31 - 1).counting("cells")]
"""Cells of a burst."""


@dataclass(frozen=True)
class BucketSize:
    """A bucket GCRA(I, L): both in units of 2**-16 ticks."""

    increment: int
    limit: int


def bucket_sizes(
    pcr_bps: float, scr_bps: float | None = None, mbs: int | None = None, *, cdvt_ps: int = 0, clock_ppm: float = 0.0
) -> tuple[BucketSize, ...]:
    """Return the buckets of a contract: of the peak cell rate, and of the sustained one, if it has one.

    Their increments are 1/PCR and 1/SCR, their limits the tolerance and the burst tolerance (MBS - 1) (1/SCR - 1/PCR)
    with that : a burst of MBS cells at the peak cell rate conforms.

    Raises
    ------
    ValueError
        There is no such rate, or a limit is 760 s or more.
    """
    peak, tolerance = cell_period(pcr_bps, clock_ppm), duration(cdvt_ps)
    found = [BucketSize(peak, tolerance)]
    if scr_bps is not None:
        sustained = cell_period(scr_bps, clock_ppm)
        found.append(BucketSize(sustained, ((mbs or 1) - 1) * (sustained - peak) + tolerance))
    if found[-1].limit > MOST_LIMIT:
        raise ValueError(f"a burst of {mbs} cells at these rates lasts longer than the 760 s that can be told apart")
    return tuple(found)


def burst_problem(
    peak_bps: float | None, sustained_bps: float | None, burst: int | None, keys: tuple[str, str, str]
) -> tuple[str, str] | None:
    """Return the fault of a contract's rates and burst in combination, as ``(key, text)``; None if there is none.

    ``keys`` are what they are called: peak rate, sustained rate, burst. A ``peak_bps`` of None is not known yet."""
    _, sustained_key, burst_key = keys
    if sustained_bps is None:
        return (
            None if burst is None else (burst_key, f"a burst goes with a sustained rate: give {sustained_key!r}, too")
        )
    if burst is None:
        return sustained_key, f"a sustained rate goes with a burst: give {burst_key!r}, too"
    if peak_bps is not None and sustained_bps > peak_bps:
        return sustained_key, f"{format_rate(sustained_bps)} is above the peak rate of {format_rate(peak_bps)}"
    return None


class ContractSettings(Settings):
    """A VC's traffic contract: cells at the peak rate, and at most a burst above the sustained rate."""

    pcr_bps: Rate = Field(description="peak cell rate, bits of cells a second", json_schema_extra=IN_RUN)
    scr_bps: Rate | None = Field(default=None, description="sustained cell rate, with `mbs`", json_schema_extra=IN_RUN)
    mbs: Burst | None = Field(
        default=None,
        description="most consecutive cells at the peak rate (maximum burst size)",
        json_schema_extra=IN_RUN,
    )

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        if problem := burst_problem(self.pcr_bps, self.scr_bps, self.mbs, ("pcr", "scr", "mbs")):
            raise wrong(problem[1], problem[0])
        try:
            self.buckets()
        except ValueError as error:
            raise wrong(str(error), "pcr" if self.scr_bps is None else "scr") from None
        return self

    def buckets(self) -> tuple[BucketSize, ...]:
        """Return the contract's buckets as the hardware stores them."""
        return bucket_sizes(self.pcr_bps, self.scr_bps, self.mbs)
