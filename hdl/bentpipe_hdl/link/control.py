"""The link as software sees it: its registers, its settings, its driver."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from bentpipe_hdl.bit_errors import ErrorStart, scale_of
from bentpipe_hdl.driver import Balance, Driver
from bentpipe_hdl.link.options import OPTIONS, shape_of
from bentpipe_hdl.link.options.faults.control import LOSS_ONE, BurstSettings
from bentpipe_hdl.link.options.losses.control import ENTRIES, VCS, ListedLosses, Losses
from bentpipe_hdl.link.options.variation.control import ReorderSettings, VariationSettings, table_of
from bentpipe_hdl.link.registers import CORE_REGISTERS, GONE
from bentpipe_hdl.registers import Bus, RegisterMap
from bentpipe_hdl.settings import BER, CELLS, IN_RUN, NUMBER, SHARE, TIME, Pattern, Settings, wrong
from bentpipe_hdl.ticks import round_ticks

__all__ = [
    "ENTRIES", "GONE", "LOSS_ONE", "VCS", "BurstSettings", "LinkDriver", "LinkSettings", "Losses", "link_registers",
]  # fmt: skip

_MISINSERTED = NUMBER.within(0.0, 5000.0, name="rate")


class LinkSettings(Settings):
    """One direction of a line.

    ``SIMPLE`` are members that one register or some have alone, with one value for both directions of a line.
    """

    SIMPLE: ClassVar = ("duplicate", "misinsert", "lose", "lose_of")

    delay_ps: Annotated[int, TIME.within(0, "1 s")] = Field(
        default=0, description="propagation delay", json_schema_extra=IN_RUN
    )
    order: Literal["kept", "merged"] = Field(
        default="kept",
        description="order of cells when the delay shrinks in a run: kept (they wait for those before), or merged "
        "(they overtake)",
    )
    ber: Annotated[float, BER] = Field(default=0.0, description="bit error ratio", json_schema_extra=IN_RUN)
    variation: VariationSettings | None = Field(
        default=None, description="additional random delay of each cell, as `variation = { … }`"
    )
    reorder: ReorderSettings | None = Field(
        default=None, description='cells that overtake others, as `reorder = { … }`; with `order = "merged"`'
    )
    duplicate: Annotated[float, SHARE] = Field(
        default=0.0, description="share of the cells that are duplicated", json_schema_extra=IN_RUN
    )
    misinsert: Annotated[float, _MISINSERTED] = Field(
        default=0.0, description="misinserted cells a second", json_schema_extra=IN_RUN
    )
    misinsert_vc: Annotated[str, Pattern(r"\d{1,4}/\d{1,5}", "give VPI/VCI as in '0/40', not {given!r}")] | None = (
        Field(default=None, description="VPI/VCI of misinserted cells; default: those of the last cell")
    )
    lose: Annotated[int, CELLS.within(0, 2**31)] = Field(
        default=0, description="number of cells lost of each `lose_of` cells, the first ones", json_schema_extra=IN_RUN
    )
    lose_of: Annotated[int, CELLS.within(1, 2**31)] = Field(
        default=1000,
        description="number of cells after which the pattern of `lose` begins again",
        json_schema_extra=IN_RUN,
    )
    outage: bool = Field(default=False, description="outage: every cell is lost", json_schema_extra=IN_RUN)
    bursts: BurstSettings | None = Field(default=None, description="errors in bursts, as `bursts = { … }`")

    @model_validator(mode="after")
    def _numbers(self) -> Self:
        vpi, _, vci = (self.misinsert_vc or "0/0").partition("/")
        if int(vpi) > 4095 or int(vci) > 65535:
            raise wrong(f"{self.misinsert_vc}: VPIs go up to 4095, VCIs up to 65535", "misinsert_vc")
        return self

    @property
    def varies(self) -> bool:
        """They ask for a link with delay variation."""
        return self.variation is not None or self.reorder is not None

    @property
    def makes(self) -> bool:
        """They ask for cells that nobody has sent."""
        return self.duplicate > 0 or self.misinsert > 0

    @property
    def spread(self) -> int:
        """Ticks by which a cell may be later than the delay says."""
        return 0 if self.variation is None else max(low + rise for low, rise in table_of(self))

    @property
    def faults(self) -> bool:
        """They ask for a link with outages and bursts."""
        return self.outage or self.bursts is not None

    @property
    def ticks(self) -> int:
        """The delay in ticks, one at least."""
        return delay_ticks(self.delay_ps)


def delay_ticks(delay_ps: int) -> int:
    """Return a delay in ticks, one at least."""
    return max(1, round_ticks(delay_ps))


def _of_ber(ber: float) -> dict[str, int | None]:
    """Return the registers of a bit error ratio."""
    mantissa, shift = scale_of(ber) if ber else (None, None)
    return {"error_mantissa": mantissa, "error_shift": shift, "error_enable": int(ber > 0)}


@cache
def link_registers(**shape: int) -> RegisterMap:
    """Return the registers of a link.

    Parameters
    ----------
    **shape : int
        Parts of the shape, by the names of options (:data:`~bentpipe_hdl.link.options.OPTIONS`).

    Raises
    ------
    TypeError
        The shape has no such part.
    ValueError
        A part has another value than it may have.
    """
    options = shape_of(shape)
    reported = [option for option in OPTIONS if option.name and (option.everywhere or option in options)]
    return RegisterMap(
        "link", "BPLK", 3, {option.name: options.get(option, 0) for option in reported},
        (*CORE_REGISTERS, *(register for option in options for register in option.registers())),
    )  # fmt: skip


class LinkDriver(Driver):
    """The software side of a link with such parts of its shape."""

    kind = "link"

    def __init__(self, bus: Bus, **shape: int):
        super().__init__(bus, link_registers(**shape))
        self.options = tuple(shape_of(shape))

    def configure(
        self, settings: LinkSettings, start: ErrorStart, losses: Mapping[tuple[int, int], Losses] | None = None
    ) -> None:
        """Write all settings of a link that was reset: where its errors start, and what it loses, by VPI and VCI.

        Raises
        ------
        ValueError
            There are losses for more than ``VCS`` VCs, or more numbers and ends of lists than ``ENTRIES``.
        """
        csr = self.csr
        ListedLosses.write(csr, losses or {})
        csr.seed = start.state
        for option in self.options:
            option.seed(csr, start)
        self.apply(settings)
        if settings.ber:
            csr.gap = start.gap(settings.ber)
        for option in self.options:
            option.begin(csr, settings, start)

    def space(self, period: int) -> None:
        """Write the distance of cells that wait for each other, in 2**-16 ticks, of a link whose delay changes."""
        for option in self.options:
            option.space(self.csr, period)

    def apply(self, settings: LinkSettings) -> None:
        """Write the settings but where the errors start.

        Raises
        ------
        ValueError
            The link is built without an option that they ask for.
        """
        csr = self.csr
        early = 0 if settings.reorder is None else round_ticks(settings.reorder.by_ps)
        csr.delay = max(1, settings.ticks - early)
        for name, value in _of_ber(settings.ber).items():
            if value is not None:
                setattr(csr, name, value)
        for option in OPTIONS:
            if option in self.options:
                option.apply(csr, settings)
            else:
                option.refuse(settings)

    def values_of(self, member: str, value: Any) -> Mapping[str, int | None] | None:
        if member == "ber":
            return _of_ber(value)
        if member == "delay_ps" and not self.csr.map.shape.get("variation"):
            return {"delay": delay_ticks(value)}
        found = (option.values_of(member, value) for option in self.options)
        return next((values for values in found if values is not None), None)

    def counters(self) -> dict[str, Any]:
        csr = self.csr
        names = ("cells", "errored", "corrected", "rejected", "error_bits")
        found: dict[str, Any] = {name: getattr(csr, name) for name in names}
        found |= {"drop_lost": csr.lost}
        for option in self.options:
            found |= option.counters(csr)
        return found

    def account(self, cells_in: int, cells_out: int) -> Iterator[Balance]:
        now = self.counters()
        yield Balance("cells in = counted", cells_in, now["cells"])
        gone = sum(count for name, count in now.items() if name.startswith("drop_"))
        made = sum(count for name, count in now.items() if name.startswith("made_"))
        yield Balance("cells in + made = cells out + lost", cells_in + made, cells_out + gone)

    def ledger_counts(self) -> Iterator[tuple[str, int, int]]:
        now = self.counters()
        lost, made = (sum(n for name, n in now.items() if name.startswith(kind)) for kind in ("drop_", "made_"))
        for number, (what, count) in enumerate((("with bit errors", now["errored"]), ("lost", lost), ("made", made))):
            yield f"cells {what} = reported to the ledger", number, count
