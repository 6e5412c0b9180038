"""What passes between the parts of a switch in a tick."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Signal, Value

from ..slot import Slot

__all__ = ["Tick"]


@dataclass
class Tick:
    """The parts that every switch has, and what is known of the cell that comes and of that which leaves.

    A part that a switch has only where its options ask for it takes from here, and from the registers, what it needs:
    its method ``attach(m, csr, tick)``. From which clock of a narrow tick each value is there, its owner says.

    Members
    -------
    slot : Slot
    now : Value
    buffer, context, scheduler, admission, port_clock, egress : wiring.Component
    queues : PortQueues | None
        Where an option needs them.
    periods : sequence of Value
        Of the ports, as software has set them.
    i : CellSignature interface
        Cells as they come, those of the switch's own among them.
    there : Value
        A cell comes in this tick.
    known : Signal
        It is of a known VC.
    take : Signal
        It comes, with the commit.
    seen : Signal
        And it is of a known VC.
    comes : Value
        And the policer lets it pass.
    enqueue : Signal
        And it is queued.
    begins : Signal
        And its VC had no cells queued.
    header : CellHeader
    vc : Signal
    policy : data.View
        Its VC's.
    in_path : Signal
        It is of no VC, but of a virtual path; never, if none pass. What is made here is taken as such.
    length : Signal
        Cells queued of its VC, before it.
    empty : Value
        None are.
    serve, port : Value
        With the commit: it is the turn of this port.
    dequeue : Value
        A cell leaves the buffer.
    sends : Signal
        And goes out.
    d_vc : Value
        The VC whose turn it is.
    gone : Signal
        It is torn down.
    stays : Value
        No cell goes out in this turn.
    more : Signal
        It has further cells queued.
    goes_on_at : Signal
        The port of its next turn.
    """

    slot: Slot
    now: Value
    buffer: Any
    context: Any
    scheduler: Any
    admission: Any
    port_clock: Any
    egress: Any
    queues: Any
    periods: Sequence[Value]
    i: Any
    there: Value
    known: Signal
    take: Signal
    seen: Signal
    comes: Value
    enqueue: Signal
    begins: Signal
    header: Any
    vc: Signal
    policy: Any
    in_path: Signal
    length: Signal
    empty: Value
    serve: Value
    port: Value
    dequeue: Value
    sends: Signal
    d_vc: Value
    gone: Signal
    stays: Value
    more: Signal
    goes_on_at: Signal
