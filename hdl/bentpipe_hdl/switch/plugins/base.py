"""What an option is to a switch's hardware: a plugin, which hooks into named joints of the cell path.

A switch is a core and plugins. The core is the way of a cell: look-up, rows of VCs, admission, buffer, scheduler, port
clocks, egress. Where an option may have a say, the way has a joint: an object with the values as they are there, which
plugins see, one behind the other, and may replace. No core part names an option.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from amaranth.hdl import Module, Signal, Value

from ...csr import CsrMap
from ...slot import Slot
from ..admission import Stage
from ..context import VcField
from ..control import REASON_BITS, REASONS
from ..tick import Tick

__all__ = ["ArrivingCell", "Build", "LeavingCell", "Plugin"]


@dataclass(frozen=True)
class Build:
    """What every part of a switch is built with.

    Members
    -------
    m : Module
    slot : Slot
    csr : CsrMap
    width, vcs, ports : int
    count_bits : int
        Of counts of cells.
    places : int
        Of the payload memory.
    settings : Mapping
        The core's settings that plugins look at, too, by name.
    plugins : Mapping
        The switch's plugins by option: one may ask for what another gives.
    """

    m: Module
    slot: Slot
    csr: CsrMap
    width: int
    vcs: int
    ports: int
    count_bits: int
    places: int
    settings: Mapping[str, Value]
    plugins: Mapping[str, "Plugin"]


@dataclass
class ArrivingCell:
    """The cell of the tick, from the look-up to admission. Plugins may replace what is below the line.

    Members
    -------
    build : Build
    now : Value
    context, admission, buffer : wiring.Component
    header : CellHeader
    port : Value
    take : Signal
        A cell comes with the commit.
    known : Signal
        It is of a known VC.
    vc : Signal
    seen : Signal
        With the commit: it comes, is of a known VC, and is to be queued or dropped here.
    in_path : Signal
        It is of no VC, but of a virtual path.
    inside : Value or None
        It was made in the switch; None: none is.

    found, found_vc : Value
        The look-ups' answer (chain).
    arrives : Value
        A cell comes, and no plugin before has taken it or objected to it.
    passes : Value
        Likewise in the commit: ``seen``.
    clp : Value
    pti, queued_pti : Value
        As stages see it, and as it is queued.
    own : Value or None
        It is an OAM cell of the switch's own; None: it makes none.
    """

    build: Build
    now: Value
    context: Any
    admission: Any
    buffer: Any
    header: Any
    port: Value
    take: Signal
    known: Signal
    vc: Signal
    seen: Signal
    in_path: Signal
    inside: Value | None
    found: Value
    found_vc: Value
    arrives: Value
    passes: Value
    clp: Value
    pti: Value
    queued_pti: Value
    own: Value | None = None
    _objections: list[tuple[Value, Value, int, str, Value]] = field(default_factory=list)

    @property
    def state(self) -> Any:
        """What plugins keep of the cell's VC (``vc_fields`` written as "state")."""
        return self.context.a_state

    def refuse(self, objects: Value, held: str, *, reason: str, keeps: VcField, state: Value) -> None:
        """Object to the cell: those behind don't see it, no state of the VC changes but ``keeps``, which becomes
        ``state``. ``held``: the name of the bit as it settles."""
        settled = self.build.slot.settle(objects, held)
        self.arrives, self.passes = self.arrives & ~objects, self.passes & ~settled
        self._objections.append((objects, settled, REASONS.index(reason), keeps.name, state))

    def verdict(self, m: Module, drop: Value, reason: Value, state: Any) -> tuple[Value, Value, Any]:
        """What is dropped, why, and what becomes of the VC's state, by admission and those before it."""
        if not self._objections:
            return drop, reason, state
        why, after = Signal(REASON_BITS, name="reason"), Signal(self.context.rows["state"], name="state")
        m.d.comb += [why.eq(reason), after.eq(state)]
        for _, settled, *_ in self._objections:
            drop = drop | settled
        for objects, _, index, keeps, new in reversed(self._objections):  # the first that objects has the last word
            with m.If(objects):
                m.d.comb += [why.eq(index), after.eq(self.state)]
            m.d.comb += after[keeps].eq(new)
        return drop, why, after


@dataclass
class LeavingCell:
    """The turn of a port, from the scheduler to egress. Plugins may replace what is below the line.

    Members
    -------
    build : Build
    scheduler, context, buffer : wiring.Component
    port, serve : Value
        With the commit: it is this port's turn.
    gone : Signal
        The VC is torn down.
    more : Signal
        It has further cells.
    goes_on_at : Signal
        The port of its next turn.

    vc, header_vc : Value
        Whose rows are read, and whose header leaves.
    message : Value or None
        What leaves is a cell that a plugin makes, not one of the buffer; None: never.
    dequeue : Value
        A cell leaves the buffer.
    asks : Value
        The scheduler's ``serve``.
    stays : Value
        No cell goes out in this turn: the port's clock stays.
    rejoin : Value
        The VC joins its round again.
    join, join_vc, join_port : Value
        What joins a round.
    rounds : component
        Whose ``busy``, ``changes``, ``begins``, ``still_busy`` the port clocks follow.
    begins : Value
        Of these.
    clock_join_port, clock_rejoin_port : Value
        Where a port's clock may begin.
    plain : bool
        It begins only where a VC joins that had no cells.
    clp, pti, vci : Value
        Of the header as it leaves.
    """

    build: Build
    scheduler: Any
    context: Any
    buffer: Any
    port: Value
    serve: Value
    gone: Signal
    more: Signal
    goes_on_at: Signal
    vc: Value
    header_vc: Value
    message: Value | None
    dequeue: Value
    asks: Value
    stays: Value
    rejoin: Value
    join: Value
    join_vc: Value
    join_port: Value
    rounds: Any
    begins: Value
    clock_join_port: Value
    clock_rejoin_port: Value
    plain: bool
    clp: Value
    pti: Value
    vci: Value


class Plugin:
    """The hardware of one option, or of several that share it. A hook does nothing unless it is overridden; they are
    called in this order.

    Members
    -------
    options : tuple of str
        Names of the options whose hardware it is (:data:`..options.OPTIONS`).
    vc_fields : tuple of VcField
        State that it keeps for each VC.
    cell_fields : Mapping
        What is kept with each cell in the buffer, shapes by names.
    core : Mapping
        What parts of the core are built with for it: keywords by part.
    offer : OfferSignature interface or None
        Cells of its own, which come in through the :class:`~..inlet.Inlet`; there after :meth:`build`.
    gate : component or None
        It may stall ports: has ``stalled``, ``still_stalled``, ``changes`` and ``due``, as of
        :class:`~..port_clock.PortClock`.
    due : Value or None
        The first tick in which it has work of its own.
    clears : int
        Entries of its largest table that is cleared after reset.
    """

    options: tuple[str, ...]
    vc_fields: tuple[VcField, ...] = ()
    cell_fields: Mapping[str, Any] = {}
    core: Mapping[str, Mapping[str, Any]] = {}
    offer: Any = None
    gate: Any = None
    due: Value | None = None
    clears: int = 0

    def __init__(self, given: frozenset[str]):
        """``given``: all options of the switch."""
        self.given = given

    def build(self, with_: Build) -> None:
        """Make the plugin's components. The core's are not there yet."""

    def stages(self) -> Iterator[tuple[int, Stage]]:
        """Admission stages, each with its rank: :class:`..admission.Rank`."""
        return iter(())

    def scheduler(self, with_: Build) -> Any:
        """Instead of :class:`~..scheduler.RoundRobin`; or None."""
        return None

    def shared_places(self) -> Any:
        """What counts shared places of the buffer, for the stage that asks whether there is one; or None."""
        return None

    def find(self, m: Module, cell: ArrivingCell) -> None:
        """Whose cell is it? Behind the look-up."""

    def claim(self, m: Module, cell: ArrivingCell) -> None:
        """Does the cell end here? Then it is neither queued nor dropped."""

    def check(self, m: Module, cell: ArrivingCell) -> None:
        """Before admission: object to the cell, change its CLP bit."""

    def tell(self, m: Module, cell: ArrivingCell, lost: Value, outputs: Any) -> Value:
        """Something is told of the cell to whoever watches (``outputs``): ``lost``, or more."""
        return lost

    def depart(self, m: Module, cell: LeavingCell) -> None:
        """Which cell leaves, as what, and does its VC go on?"""

    def periods(self) -> Any:
        """Periods of the ports instead of those that software has set; or None."""
        return None

    def attach(self, m: Module, csr: CsrMap, tick: Tick) -> None:
        """The cell path is whole: take from it (``tick``), and from the registers, what is left to connect."""

    def works(self) -> Iterator[Value]:
        """Bits that keep the switch from being idle."""
        return iter(())

    def urgent(self) -> Iterator[Value]:
        """Bits with which the next tick is wanted, whatever ``due`` says."""
        return iter(())
