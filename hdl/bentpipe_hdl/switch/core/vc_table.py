"""The state that a switch keeps of each VC, ordered by the part that writes it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from bentpipe_hdl.sim_hints import rarely_changes
from bentpipe_hdl.switch.registers import core_registers
from bentpipe_hdl.tick_schedule import TickSchedule

__all__ = ["ARRIVAL", "DEPARTURE", "LOOK", "Header", "Policy", "VcField", "VcTable"]

ARRIVAL = 7
"""Narrow: the clock in which the rows of the arriving cell's VC are read. They are there two clocks later."""

DEPARTURE = 6
"""Narrow: the clock in which those of the departing cell's VC are."""

LOOK = 3
"""Narrow: the clock in which those of a third VC are, where a part of the switch asks for them."""


_REGISTERS = {register.name: register for register in core_registers(vcs=2, cells=1, ports=1)}

Policy, Header = (
    data.StructLayout({field.name: field.width for field in _REGISTERS[name].fields})
    for name in ("vc_policy", "vc_header")
)
"""What a VC may take of the buffer, and its outgoing VPI and VCI: the entries of these tables, as they are declared."""


@dataclass(frozen=True)
class VcField:
    """A field that a part of the switch keeps for each VC.

    Members
    -------
    name : str
    shape : shape-castable
    written : "arrival", "departure" or "state"
        In which row it is: that which is written when a cell is queued, when one leaves, or with every cell that
        comes for the VC. A "state" is 0 again whenever the VC is torn down or set up; the others go on.
    starts_as_index : bool
        After reset it is the VC's own number, not 0.
    """

    name: str
    shape: Any
    written: str
    starts_as_index: bool = False


class VcTable(wiring.Component):
    """The rows of all VCs: read for the VC of the tick's arriving cell and for that of its departing cell, each written
    by one of the two, and set by software.

    After reset the rows are cleared for ``clears`` clocks, as are other tables whose owners follow ``clear``.

    Parameters
    ----------
    slot : TickSchedule
    vcs, ports : int
    clears : int
        Entries of the largest table that is cleared.
    fields : sequence of VcField
    lookup : bool
        There is a third VC whose rows are read.

    Members
    -------
    clearing, clear : Out
        The switch is clearing after reset, and the number that goes through all entries of a table meanwhile.
    policy_vc, policy, policy_en : In
        Software writes a VC's policy; with ``enabled`` 0, or with a port that is not there, this is its end.
    header_vc, header, header_en : In
        Software writes a VC's outgoing VPI and VCI.
    arrives, arriving : In
        A cell arrives in this tick (wide: the rows are 0 otherwise), and its VC.
    a_arrival, a_state, a_departure, a_policy : Out
        Rows of that VC, and its policy; narrow: from clock ``ARRIVAL + 2`` on.
    departs, departing : In, d_arrival, d_departure, d_policy, d_header : Out
        Likewise of the cell that leaves; narrow: from clock ``DEPARTURE + 2`` on.
    headed : In
        The VC whose header leaves.
    lookup, lookup_vc : In, l_arrival, l_departure, l_policy : Out
        With ``lookup``: likewise of a third VC; narrow: from clock ``LOOK + 2`` on.
    arrival, state, departure : In
        New rows of these VCs, to be written with ``arrival_en``, ``state_en``, ``departure_en``.
    arrival_of, departure_of : In, arrival_row, departure_row : Out
        Rows of any VC, for software; a clock later on the narrow datapath.
    """

    def __init__(
        self, slot: TickSchedule, *, vcs: int, ports: int, clears: int, fields: Sequence[VcField], lookup: bool = False
    ):
        self._slot, self._vcs, self._ports, self._has_lookup = slot, vcs, ports, lookup
        self._fields = tuple(fields)
        self.rows = {
            row: data.StructLayout({f.name: f.shape for f in fields if f.written == row})
            for row in ("arrival", "state", "departure")
        }
        arrival, state, departure = self.rows.values()
        vc = range(vcs)
        third = {
            "lookup": In(1),
            "lookup_vc": In(vc),
            "l_arrival": Out(arrival),
            "l_departure": Out(departure),
            "l_policy": Out(Policy),
        }
        super().__init__(
            {
                **(third if lookup else {}),
                "clearing": Out(1),
                "clear": Out(range(clears)),
                "policy_vc": In(vc),
                "policy": In(Policy),
                "policy_en": In(1),
                "header_vc": In(vc),
                "header": In(Header),
                "header_en": In(1),
                "arrives": In(1),
                "arriving": In(vc),
                "a_arrival": Out(arrival),
                "a_state": Out(state),
                "a_departure": Out(departure),
                "a_policy": Out(Policy),
                "departs": In(1),
                "departing": In(vc),
                "d_arrival": Out(arrival),
                "d_departure": Out(departure),
                "d_policy": Out(Policy),
                "headed": In(vc),
                "d_header": Out(Header),
                "arrival": In(arrival),
                "arrival_en": In(1),
                "state": In(state),
                "state_en": In(1),
                "departure": In(departure),
                "departure_en": In(1),
                "arrival_of": In(vc),
                "arrival_row": Out(arrival),
                "departure_of": In(vc),
                "departure_row": Out(departure),
            }
        )

    def elaborate(self, platform):
        m = Module()
        slot = self._slot.within(m)
        slot.with_commit(self.arrival_en, self.state_en, self.departure_en)
        count = rarely_changes(Signal(len(self.clear) + 1), 1 << len(self.clear))
        clearing, clear_vc = Signal(), self.clear[: len(self.arriving)]
        m.d.comb += [clearing.eq(~count[-1]), self.clearing.eq(clearing), self.clear.eq(count)]
        with m.If(clearing):
            m.d.sync += count.eq(count + 1)

        self.stores = rows = {
            row: slot.store(f"{row}_rows", layout, self._vcs, block=row != "state") for row, layout in self.rows.items()
        }
        self.policies = policies = slot.store("policies", Policy, self._vcs)
        headers = slot.store("headers", Header, self._vcs, block=True, whole=True)

        with slot.gate_when(self.arrives):
            for row, words in rows.items():
                m.d.comb += self._port(f"a_{row}").eq(words.read(self.arriving, at=ARRIVAL, to=f"arriving_{row}"))
            m.d.comb += self.a_policy.eq(policies.read(self.arriving, at=ARRIVAL, to="arriving_policy"))
        with slot.gate_when(self.departs):
            for row in ("arrival", "departure"):
                m.d.comb += self._port(f"d_{row}").eq(
                    rows[row].read(self.departing, at=DEPARTURE, to=f"departing_{row}")
                )
            m.d.comb += self.d_policy.eq(policies.read(self.departing, at=DEPARTURE, to="departing_policy"))
        m.d.comb += self.d_header.eq(headers.read(self.headed, at=DEPARTURE, to="departing_header"))
        if self._has_lookup:
            with slot.gate_when(self.lookup):
                for row in ("arrival", "departure"):
                    m.d.comb += self._port(f"l_{row}").eq(rows[row].read(self.lookup_vc, at=LOOK, to=f"lookup_{row}"))
                m.d.comb += self.l_policy.eq(policies.read(self.lookup_vc, at=LOOK, to="lookup_policy"))
        for row in ("arrival", "departure"):
            m.d.comb += self._port(f"{row}_row").eq(rows[row].peek(self._port(f"{row}_of")))

        # A VC is there when it is enabled with a port that is there; whatever it was, its state begins again
        policy, ends = Signal(Policy), Signal()
        m.d.comb += [policy.eq(self.policy), policy.enabled.eq(self.policy.enabled & (self.policy.port < self._ports))]
        m.d.comb += ends.eq(self.policy_en & ~policy.enabled)
        keeps = Signal()
        with m.If(self.state_en), m.If(~ends | (self.policy_vc != self.arriving)):
            m.d.comb += keeps.eq(1)

        written = {
            "arrival": (self.arriving, self.arrival, self.arrival_en),
            "state": (self.arriving, self.state, keeps),
            "departure": (self.departing, self.departure, self.departure_en),
        }
        for row, (vc, new, en) in written.items():
            first = Signal(self.rows[row], name=f"first_{row}")
            for field in self._fields:
                if field.written == row and field.starts_as_index:
                    m.d.comb += first[field.name].eq(clear_vc)
            rows[row].write(vc, new, en, clear=(clearing, clear_vc, first))
        rows["state"].write(self.policy_vc, 0, ends)
        policies.write(self.policy_vc, policy, self.policy_en, clear=(clearing, clear_vc, 0))
        headers.write(self.header_vc, self.header, self.header_en)
        return m

    def _port(self, name):
        return getattr(self, name)
