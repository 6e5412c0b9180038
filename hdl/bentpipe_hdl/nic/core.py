"""The parts that every network interface has, put together. They know no option: what one adds comes as arguments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, Self

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import wiring

from bentpipe_hdl.aal5.crc32 import CrcTables
from bentpipe_hdl.aal5.reassembler import COUNTERS, Reassembler
from bentpipe_hdl.aal5.segmenter import Segmenter
from bentpipe_hdl.arrival import Arrival
from bentpipe_hdl.csr import CsrMap
from bentpipe_hdl.lookup import Lookup
from bentpipe_hdl.sim_hints import branch_first, rarely_changes
from bentpipe_hdl.tick_schedule import TickSchedule
from bentpipe_hdl.traffic.pacer import Pacer

__all__ = ["NicCore"]


@dataclass
class NicCore:
    """The parts of an interface, by name, and what plugins take from its two directions.

    Members
    -------
    m, slot, csr
        The interface's.
    nic : Nic
    pacer, segmenter, reassembler : wiring.Component
    clearing, clear : Signal
        Tables are being cleared after reset, and the number that goes through their entries.
    last : Value
        With a cell that is sent: it is the last one of what the VC sends. Plugins may replace it.
    own_post : Value, optional
        The post that the pacer is given is a plugin's, not the host's.
    post, post_vc, post_fits, fetch : Value
        What the pacer is given of a post, and what the host is told of a fetch. Plugins may replace these.
    ends : Value
        With a cell that is sent: the VC has nothing more to send. Plugins may replace it.
    arrival : Arrival
    arrives : Value
        A cell arrives in this tick; these two are there once cells are received.
    """

    m: Module
    slot: TickSchedule
    csr: CsrMap
    nic: Any
    pacer: Any
    segmenter: Any
    reassembler: Any
    clearing: Signal
    clear: Signal
    last: Value
    post: Value
    post_vc: Value
    post_fits: Value
    fetch: Value
    own_post: Any = None
    ends: Any = None
    arrival: Any = None
    arrives: Any = None

    @classmethod
    def of(
        cls, m: Module, slot: TickSchedule, csr: CsrMap, nic: Any, arguments: Mapping[str, Mapping[str, Any]]
    ) -> Self:
        """Make the parts of an interface, with further ``arguments`` for some."""
        vcs, tables = nic.vcs, CrcTables() if slot.wide else None
        m.submodules.pacer = pacer = Pacer(slot, vcs=vcs, **arguments.get("pacer", {}))
        m.submodules.segmenter = tx = Segmenter(
            slot, width=nic.width, vcs=vcs, tables=tables, **arguments.get("segmenter", {})
        )
        m.submodules.reassembler = rx = Reassembler(slot, width=nic.width, vcs=vcs, tables=tables)
        if tables:
            tables.add_to(m)
        clear_bits = (vcs - 1).bit_length() + 4  # clearing after reset: 8 * vcs clocks
        clear = rarely_changes(Signal(clear_bits, name="clear"), 1 << (clear_bits - 1))
        clearing = Signal(name="clearing")
        m.d.comb += clearing.eq(~clear[-1])
        with m.If(clearing):
            m.d.sync += clear.eq(clear + 1)
        for part in (pacer, tx, rx):
            wiring.connect(m, wiring.flipped(nic.time), part.time)
            m.d.comb += [part.clearing.eq(clearing), part.clear.eq(clear)]
        posts = (nic.post_valid, nic.post_vc, nic.post_length != 0)
        return cls(m, slot, csr, nic, pacer, tx, rx, clearing, clear, tx.last, *posts, pacer.fetch)

    def transmit(self, plugins: list[Any]) -> None:
        """Connect the host's posts, the pacer, the segmenter and the line."""
        m, csr, nic, pacer, tx = self.m, self.csr, self.nic, self.pacer, self.segmenter
        for plugin in plugins:
            plugin.posts(m, csr, self)
        self.ends = self.last
        m.d.comb += [
            pacer.tolerance.eq(csr.register("tolerance")),
            Cat(pacer.period_index, pacer.period, pacer.period_en).eq(Cat(csr.write_port("tx_period"))),
            Cat(tx.header_index, tx.header, tx.header_en).eq(Cat(csr.write_port("tx_header"))),
            pacer.set_up_vc.eq(tx.header_index),
            pacer.set_up.eq(tx.header_en),
            pacer.post.eq(self.post),
            pacer.post_vc.eq(self.post_vc),
            pacer.post_fits.eq(self.post_fits),
            pacer.last.eq(self.last),
            tx.vc.eq(pacer.vc),
            tx.sends.eq(pacer.sends),
            tx.changes.eq(pacer.changes),
            tx.length.eq(nic.post_length),
            tx.uu.eq(nic.post_uu),
            tx.cpi.eq(nic.post_cpi),
            nic.o_end.eq(pacer.end),
            nic.fetch.eq(self.fetch),
            nic.fetch_vc.eq(pacer.fetch_vc),
            nic.done.eq(tx.done),
            nic.done_vc.eq(tx.done_vc),
        ]
        if not any(plugin.drives_line for plugin in plugins):
            m.d.comb += pacer.line_period.eq(csr.register("line_period"))
        for plugin in plugins:
            plugin.transmit(m, csr, self)
        self._posts()
        wiring.connect(m, tx.o, wiring.flipped(nic.o))
        if self.slot.wide:
            m.d.comb += tx.block.eq(nic.block)
        else:
            m.d.comb += [tx.word.eq(nic.word), nic.word_next.eq(tx.word_next)]
        csr.read_port("tx_cells", tx.count_index, tx.count)
        branch_first(pacer.sends, 0)
        branch_first(tx.last, 2, seldom=1)

    def of_host(self, posts: Any) -> Any:
        """Return whether a post is the host's, given that ``posts`` is true."""
        return posts if self.own_post is None else posts & ~self.own_post

    def _posts(self) -> None:
        """Take a posted PDU at the end of a tick, and count it if it is refused."""
        m, pacer, refused = self.m, self.pacer, Signal(32, name="refused")
        m.d.sync += self.nic.post_taken.eq(0)
        with m.If(self.slot.commit), m.If(self.of_host(pacer.posts)):
            m.d.sync += self.nic.post_taken.eq(1)
            with m.If(~pacer.accepts):
                m.d.sync += refused.eq(refused + 1)
        self.csr.status("tx_refused", refused)

    def receive(self, plugins: list[Any]) -> None:
        """Connect the look-up of cells that arrive, and the reassembler."""
        m, slot, csr, nic, rx = self.m, self.slot, self.csr, self.nic, self.reassembler
        wiring.connect(m, wiring.flipped(nic.i), rx.i)
        arrival = self.arrival = Arrival(m, slot, nic.i)
        lookup = Lookup(m, slot, csr, vcs=nic.vcs, ports=1, nni=csr.register("nni"))
        self.arrives = arrives = arrival.there & ~self.clearing
        with slot.gate_when(arrives):
            known, vc = lookup.find(arrival.header, Signal(0))
            m.d.comb += [rx.known.eq(slot.pipe(known, "rx_found")), rx.vc.eq(slot.pipe(vc, "rx_found_vc"))]
        for plugin in plugins:
            plugin.receive(m, csr, self)
        elsewhere = [plugin.takes for plugin in plugins if plugin.takes is not None]
        m.d.comb += [
            rx.arrives.eq(reduce(lambda left, takes: left & ~takes, elsewhere, arrives)),
            rx.header.eq(arrival.header),
            rx.bad.eq(arrival.hec_error),
            rx.timeout.eq(csr.register("rx_timeout")),
            Cat(rx.limit_index, rx.limit, rx.limit_en).eq(Cat(csr.write_port("rx_limit"))),
        ]
        for name in rx.o.signature.members:
            m.d.comb += getattr(nic, f"rx_{name}").eq(getattr(rx.o, name))
        for name in COUNTERS:
            csr.status(f"rx_{name}", getattr(rx, name))
        csr.read_port("rx_cells", rx.cells_index, rx.cells)
        csr.read_port("rx_pdus", rx.pdus_index, rx.pdus)
