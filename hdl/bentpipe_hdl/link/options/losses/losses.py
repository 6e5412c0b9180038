"""Exact losses: named PDUs or cells of a VC that a link does not carry, so that a scenario can be repeated."""

from amaranth.hdl import Const, Module, Mux, Signal
from amaranth.lib import data

from bentpipe_hdl.cell import CellHeader
from bentpipe_hdl.csr import CsrMap
from bentpipe_hdl.link.options.losses.control import ENTRIES, VCS
from bentpipe_hdl.lookup import Lookup
from bentpipe_hdl.tick_schedule import TickSchedule

__all__ = ["Losses"]


class Losses:
    """Counts the user cells (PTI below 4, good HEC) or the PDUs of up to ``VCS`` VCs and takes out those listed.

    A VC of the table ``LOOKUP`` has a list in ``LOSSES``: ascending numbers from 1 on, then 0. Its ``LOSS_VC`` word
    tells where the list begins and whether cells or PDUs are counted; writing it starts the count again. A PDU ends
    with a cell whose PTI says so (I.363.5), a lost PDU loses all its cells. The VC is that of the header as it
    comes in: 12 bits of VPI, which at a UNI are GFC and VPI.

    Parameters
    ----------
    m, slot, csr
        The link's.
    """

    def __init__(self, m: Module, slot: TickSchedule, csr: CsrMap):
        self._m, self._slot = m, slot
        self.enable = csr.register("loss_enable")
        self.count = Signal(32, name="losses_count")
        csr.status("dropped", self.count)
        self._lookup = Lookup(m, slot, csr, vcs=VCS, ports=1, nni=Const(1, 1))
        place = (ENTRIES - 1).bit_length()
        self._layout = data.StructLayout({"at": place, "pdus": 1, "done": 32})
        self._states = slot.store("loss_states", self._layout, VCS)
        index, word, en = csr.write_port("loss_vc")
        fresh = Signal(self._layout, name="loss_fresh")
        m.d.comb += [fresh.at.eq(word), fresh.pdus.eq(word[place])]
        self._states.write(index, fresh, en)
        self._list = slot.store("losses", 32, ENTRIES)
        self._list.write(*csr.write_port("losses"))

    def decide(self, header: CellHeader, hec_error, taken) -> Signal:
        """Return whether the cell with this header is lost; kept at ``taken``."""
        m, slot = self._m, self._slot
        gone = Signal(name="gone")
        known, vc = Signal(name="loss_known"), Signal(range(VCS), name="loss_vc")
        with slot.gate_when(self.enable):
            found, found_vc = self._lookup.find(header, Const(0, 1))
            m.d.comb += [
                known.eq(slot.pipe(found & ~header.pti[2] & ~hec_error, "loss_known_held")),
                vc.eq(slot.pipe(found_vc, "loss_vc_held")),
            ]
        state, new = Signal(self._layout, name="loss_state"), Signal(self._layout, name="loss_new")
        number, hit, ends, counts = Signal(32), Signal(), Signal(), Signal()
        m.d.comb += [
            state.eq(self._states.read(vc, at=7, to="loss_state_held")),
            number.eq(state.done + 1),
            hit.eq(slot.pipe(self._list.read(state.at, at=9, to="loss_number") == number, "loss_hit")),
            ends.eq(~state.pdus | header.pti[0]),
            new.at.eq(state.at + hit),
            new.pdus.eq(state.pdus),
            new.done.eq(number),
        ]
        with m.If(taken), m.If(self.enable), m.If(known):
            m.d.comb += [gone.eq(hit), counts.eq(ends)]
            m.d.sync += self.count.eq(Mux(hit, self.count + 1, self.count))
        self._states.write(vc, new, counts)
        return gone
