"""Shaping at a switch's output as software sees it (I.371; TM 4.1)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final

from pydantic import Field

from bentpipe_hdl import registers as reg
from bentpipe_hdl.registers import Register, Registers
from bentpipe_hdl.settings import IN_RUN, TIME
from bentpipe_hdl.switch.options.base import Fault, Option, Setup
from bentpipe_hdl.switch.options.credits.control import Credits
from bentpipe_hdl.switch.options.frames.control import Frames
from bentpipe_hdl.switch.options.scheduling import scheduler_of
from bentpipe_hdl.traffic.contract import BucketSize, ContractSettings, bucket_sizes

__all__ = ["OPTIONS", "Shape", "ShapeSettings"]


class ShapeSettings(ContractSettings):
    """The contract to which a VC's cells are held back, where they leave a switch."""

    cdvt_ps: Annotated[int, TIME.within(0, "1 s")] = Field(
        default=0,
        description="time that a cell may be early to make up for a delay by other VCs",
        json_schema_extra=IN_RUN,
    )
    at: str | None = Field(default=None, description="switch that shapes; default: the first on the VC's path")

    def buckets(self) -> tuple[BucketSize, ...]:
        return bucket_sizes(self.pcr_bps, self.scr_bps, self.mbs, cdvt_ps=self.cdvt_ps)


class Shape(Option):
    """VCs whose cells leave no faster than a contract says."""

    name = "shape"
    bit = 14

    def wanted(self, setup: Setup) -> bool:
        return any(vc.settings.shape for vc in setup.vcs)

    def check(self, setup: Setup) -> Iterator[Fault]:
        others = {scheduler_of(setup, port) for port in range(len(setup.ports))} - {"round-robin"}
        if others or any(vc.settings.priority for vc in setup.vcs):
            what = "a switch that shapes VCs has round-robin ports, and no weights or priorities"
            yield Fault(what, "shape", vc=setup.vc_with("shape"))
        if Credits().wanted(setup) or Frames().wanted(setup):
            what = "a switch that shapes VCs has neither credits nor ports with frames"
            yield Fault(what, "shape", vc=setup.vc_with("shape"))

    def registers(self, *, vcs: int, cells: int, ports: int) -> tuple[Register, ...]:
        del cells, ports
        return (
            Register(
                "shape_limit", 0x90000, "limit L of bucket ``index % 2`` of VC ``index // 2``", "wo", 48, 2 * vcs,
                "ticks / 2**16",
            ),
            Register(
                "shape_rate", 0x94000, "bucket ``index % 2`` of VC ``index // 2``: peak rate, sustained rate", "wo", 41,
                2 * vcs,
                fields=(
                    reg.Field("increment", 0, 40, "increment I", "ticks / 2**16"),
                    reg.Field("enabled", 40, text="the bucket exists"),
                ),
            ),
        )  # fmt: skip

    def configure(self, csr: Registers, setup: Setup) -> None:
        for index, vc in enumerate(setup.vcs):
            given = vc.settings.shape
            sizes = () if given is None else given.buckets()
            for k in range(2):
                if k < len(sizes):
                    csr.shape_limit[2 * index + k] = sizes[k].limit
                    csr.shape_rate[2 * index + k] = {"increment": sizes[k].increment, "enabled": 1}
                else:
                    csr.shape_rate[2 * index + k] = 0


OPTIONS: Final = (Shape(),)
