"""Policing as software sees it: usage parameter control of VCs (I.371; TM 4.1 clause 5.3)."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, model_validator

from bentpipe_hdl import registers as reg
from bentpipe_hdl.registers import Register, Registers
from bentpipe_hdl.settings import IN_RUN, TIME, wrong
from bentpipe_hdl.switch.options.base import Option, Setup
from bentpipe_hdl.traffic.contract import BucketSize, ContractSettings, bucket_sizes

__all__ = ["OPTIONS", "Police", "PoliceSettings"]

Action = Literal["discard", "tag"]

_OF_SCR: Final = ("scr_cells", "scr_action")


class PoliceSettings(ContractSettings):
    """The contract that a VC is held to, where it comes into a switch."""

    cdvt_ps: Annotated[int, TIME.within(0, "1 s")] = Field(
        description="cell delay variation tolerance: time by which a cell may be early", json_schema_extra=IN_RUN
    )
    pcr_action: Action = Field(
        default="discard",
        description="action for cells above the peak rate: discard, or tag with CLP = 1 if they have CLP = 0",
        json_schema_extra=IN_RUN,
    )
    scr_cells: Literal["clp0+1", "clp0"] = Field(
        default="clp0+1",
        description="cells that the sustained rate counts: all, or those with CLP = 0",
        json_schema_extra=IN_RUN,
    )
    scr_action: Action = Field(
        default="discard",
        description="action for cells above the sustained rate and its burst",
        json_schema_extra=IN_RUN,
    )
    packets: bool = Field(
        default=False,
        description="discard of the rest of an AAL5 frame after a discarded cell",
        json_schema_extra=IN_RUN,
    )
    at: str | None = Field(default=None, description="switch that polices; default: the first on the VC's path")

    @model_validator(mode="after")
    def _of_scr(self) -> Self:
        for key in _OF_SCR:
            if self.scr_bps is None and key in self.model_fields_set:
                raise wrong("there is no sustained rate that it could be of: give 'scr' and 'mbs', too", key)
        return self

    def buckets(self) -> tuple[BucketSize, ...]:
        return bucket_sizes(self.pcr_bps, self.scr_bps, self.mbs, cdvt_ps=self.cdvt_ps)

    def flags(self) -> tuple[dict[str, int], dict[str, int]]:
        """Return each bucket's cells and action, as the hardware has them."""
        both = {"packets": int(self.packets)}
        return (
            {"tag": int(self.pcr_action == "tag"), **both},
            {"tag": int(self.scr_action == "tag"), "clp0": int(self.scr_cells == "clp0"), **both},
        )


class Police(Option):
    """VCs are held to contracts: cells that do not conform are discarded or tagged."""

    name = "police"
    bit = 5
    tags_cells = True

    def wanted(self, setup: Setup) -> bool:
        return any(vc.settings.police for vc in setup.vcs)

    def registers(self, *, vcs: int, cells: int, ports: int) -> tuple[Register, ...]:
        del cells, ports
        return (
            Register(
                "police_limit", 0x70000, "limit L of bucket ``index % 2`` of VC ``index // 2``", "wo", 48, 2 * vcs,
                "ticks / 2**16",
            ),
            Register(
                "police_rate", 0x74000, "contract of bucket ``index % 2`` of VC ``index // 2``", "wo", 44, 2 * vcs,
                fields=(
                    reg.Field("increment", 0, 40, "increment I", "ticks / 2**16"),
                    reg.Field("enabled", 40, text="the bucket exists"),
                    reg.Field("tag", 41, text="the bucket tags cells with CLP=0 instead of discarding them"),
                    reg.Field("clp0", 42, text="the bucket applies only to cells that arrive with CLP=0"),
                    reg.Field("packets", 43, text="the rest of a frame is discarded after a discarded cell"),
                ),
            ),
            Register("upc_tagged", 0x78000, "cells tagged by policing, by VC", "ro", count=vcs, unit="cells"),
        )  # fmt: skip

    def configure(self, csr: Registers, setup: Setup) -> None:
        for index, vc in enumerate(setup.vcs):
            given = vc.settings.police
            entries = [] if given is None else [*zip(given.buckets(), given.flags(), strict=False)]
            for k in range(2):
                place = 2 * index + k
                if k >= len(entries):
                    csr.police_rate[place] = 0
                    continue
                size, flags = entries[k]
                csr.police_limit[place] = size.limit
                csr.police_rate[place] = {"increment": size.increment, "enabled": 1, **flags}

    def counters(self, csr: Registers, setup: Setup) -> dict[str, Any]:
        return {"upc_tagged": csr.upc_tagged[: len(setup.vcs)]}


OPTIONS: Final = (Police(),)
