"""The host's side of a NIC on a board: memories for PDUs and records, or Ethernet frames of VLANs."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, memory, wiring
from amaranth.lib.fifo import SyncFIFO, SyncFIFOBuffered
from amaranth.lib.wiring import In, Out

from bentpipe_boards.frames import MacSignature, NicSide, SduSignature, VlanPort
from bentpipe_boards.pattern import CellRecords, PatternChecker, PatternGenerator
from bentpipe_hdl.cell import TIME_BITS
from bentpipe_hdl.csr import CsrMap, CsrSignature
from bentpipe_sim.board.windows import ALL_GIVEN, CELL, DONE, ENDED, VLAN_COUNTERS, host_port_registers

__all__ = ["HostPort"]

_POSTS = 16
_MARGIN = 64
"""Words that a tick can add to the records."""
REST = data.StructLayout({"cells": 8, "place": 3})
"""The octets of a PDU behind those in `tx`: cells that are given, and the place of the first octet of each cell."""
_SOURCE = data.StructLayout({"length": 16, "vc": 12, "on": 1})
_SINK = data.StructLayout({"vc": 12, "cells": 8, "on": 1})
_STROBES = frozenset(("post_taken", "fetch", "word_next", "done", "rx_valid", "rx_last"))


class HostPort(wiring.Component):
    """The host port: it gives a NIC the PDUs that software has written, and keeps received ones as records.

    ====== ========================= ====================================================================
    record head                      then
    ====== ========================= ====================================================================
    CELL   ``kind << 28 | vc``       12 words of payload; a VC's cells arrive in order, from its PDU's first on
    ENDED  and ``status << 16``,     tick, low word; its upper bits, and ``length << 16``
           ``efci << 20``
    DONE   as of CELL                tick, low word; its upper bits
    ====== ========================= ====================================================================

    With patterns in the plan, cells behind those in `tx` continue the payload pattern
    (:mod:`~bentpipe_boards.pattern`). Received cells that continue it are withheld. The next CELL of their VC has
    ``place << 24 | count << 12`` in its head: so many cells before this one are the continuation of the octets before
    them, at this place. An SDU's first and last cells are never withheld.

    Parameters
    ----------
    nic : Nic
        At 32 bits; its host's side is driven here. Single cells (OAM) are not.
    plan : Plan

    Members
    -------
    csr : In(CsrSignature)
    now : In(48)
    event : Out(1)
        A record of an end waits, or the records' memory is nearly full.
    waits : Out(1)
        A PDU waits for the NIC.
    carries : In(1)
        With VLANs in the plan: the NIC has PDUs from Ethernet and for it, and none from here. It is constant between
        resets.
    sdus, frames : In(SduSignature), Out(MacSignature)
        With VLANs, as for :class:`~bentpipe_boards.frames.VlanPort`.
    """

    def __init__(self, nic, plan):
        self._node, self.registers = nic, host_port_registers(plan)
        self._tx_words, self._rx_words, self._vlans = plan.tx_words, plan.rx_words, plan.vlans
        self._patterns, self._sources = plan.patterns, plan.sources
        members = {"csr": In(CsrSignature()), "now": In(TIME_BITS), "event": Out(1), "waits": Out(1)}
        if plan.vlans:
            members |= {"carries": In(1), "sdus": In(SduSignature()), "frames": Out(MacSignature())}
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        csr = CsrMap(m, self.csr, self.registers)
        self._nic = self._node
        if self._vlans:
            self._nic = NicSide(self._node.vcs).create(path=("records",))
            self._waits, self._event = Signal(), Signal()
            self._join(m, csr)
        else:
            self._waits, self._event = self.waits, self.event
        if self._sources:
            self._source, self._sink = Signal(_SOURCE), Signal(_SINK)
            m.d.comb += [
                Value.cast(self._source).eq(csr.register("source")),
                Value.cast(self._sink).eq(csr.register("sink")),
            ]
        missed_post = self._send(m, csr)
        missed_word = self._receive(m, csr)
        lost = Signal(16)
        with m.If(missed_post | missed_word):
            m.d.sync += lost.eq(lost + 1)
        csr.status("lost", lost)
        csr.finish()
        return m

    def _join(self, m, csr):
        """Join the NIC with this port's memories and with the VLANs' port, one of which has it."""
        nic, carries, own = self._node, self.carries, self._nic
        m.submodules.vlans = port = VlanPort(vcs=nic.vcs, vlans=self._vlans)
        wiring.connect(m, wiring.flipped(self.sdus), port.sdus)
        wiring.connect(m, port.frames, wiring.flipped(self.frames))
        for name, member in own.signature.members.items():
            there = Value.cast(getattr(nic, name))
            ours, theirs = getattr(own, name), getattr(port.nic, name)
            if member.flow is Out:
                m.d.comb += there.eq(Mux(carries, theirs, ours))
            elif name in _STROBES:
                m.d.comb += [ours.eq(there & ~carries), theirs.eq(there & carries)]
            else:
                m.d.comb += [ours.eq(there), theirs.eq(there)]
        for setting, value in zip(port.vlan, csr.registers("vlan"), strict=True):
            m.d.comb += setting.eq(value)
        for name in VLAN_COUNTERS:
            csr.status(name, *getattr(port, f"count_{name}"))
        csr.status("no_vlan", port.count_no_vlan)
        m.d.comb += [
            self.waits.eq(Mux(carries, port.waits, self._waits)),
            self.event.eq(self._event & ~carries),
        ]

    def _send(self, m, csr):
        nic, vc_bits, tx_bits = self._nic, len(self._nic.post_vc), (self._tx_words - 1).bit_length()
        m.submodules.tx = tx = memory.Memory(shape=32, depth=self._tx_words, init=[])
        put, get = tx.write_port(), tx.read_port(domain="sync")
        m.d.comb += Cat(put.addr, put.data, put.en).eq(Cat(csr.write_port("tx")))
        looked = Signal(tx_bits)

        def look(index):
            m.d.comb += looked.eq(index)
            return get.data

        csr.read_back("tx", look)
        place, uu = csr.register("place"), csr.register("uu")
        rest = [csr.register("rest")] if self._patterns else []
        widths = tx_bits + 16 + 8 + vc_bits + sum(map(len, rest))
        m.submodules.posts = posts = SyncFIFO(width=widths, depth=_POSTS)
        with csr.written("post"):
            m.d.comb += posts.w_en.eq(1)
        post = self._posted(m, csr, posts) if self._sources else self.csr.w_data
        m.d.comb += posts.w_data.eq(Cat(place[:tx_bits], post[:16], uu, post[16:][:vc_bits], *rest))
        first = Signal(tx_bits)
        posted, state = list(map(Signal.like, rest)), list(map(Signal.like, rest))
        m.d.comb += [
            Cat(first, nic.post_length, nic.post_uu, nic.post_vc, *posted).eq(posts.r_data),
            nic.post_valid.eq(posts.r_rdy),
            nic.post_cpi.eq(0),
            posts.r_en.eq(nic.post_taken),
            self._waits.eq(posts.r_rdy),
        ]
        # Where the next cell of each VC's PDU begins; with patterns also how many more are given
        entry = tx_bits + sum(map(len, rest))
        m.submodules.places = places = memory.Memory(shape=entry, depth=self._node.vcs, init=[])
        put_place, get_place = places.write_port(), places.read_port(domain="comb")
        # Two cells' words, one being sent and one fetched
        m.submodules.cells = cells = memory.Memory(shape=32, depth=32, init=[])
        put_word, get_word = cells.write_port(), cells.read_port(domain="comb")
        left, at, vc = Signal(4), Signal(tx_bits), Signal(vc_bits)
        came, filled, sent = Signal(), Signal(5), Signal(5)
        m.d.sync += [came.eq(left != 0), nic.word.eq(get_word.data)]
        word, came, following = self._payload(m, get.data, came, left, vc, state)
        m.d.comb += [
            get.addr.eq(Mux(left != 0, at, looked)),
            put_word.addr.eq(filled),
            put_word.data.eq(word),
            put_word.en.eq(came),
            get_word.addr.eq((sent + nic.word_next)[:5]),
            get_place.addr.eq(nic.fetch_vc),
        ]
        with m.If(came):
            m.d.sync += filled.eq(filled + 1)
        with m.If(nic.word_next):
            m.d.sync += sent.eq(sent + 1)
        with m.If(nic.fetch):  # a PDU may be taken, and its first cell fetched, in one clock
            begins = nic.post_taken & (nic.post_vc == nic.fetch_vc)
            now = Mux(begins, Cat(first, *posted), get_place.data) if rest else Mux(begins, first, get_place.data)
            m.d.sync += [left.eq(12), vc.eq(nic.fetch_vc), Cat(at, *state).eq(now)]
        with m.Elif(left != 0):
            m.d.sync += [left.eq(left - 1), at.eq(at + 1)]
        with m.If(nic.post_taken):
            m.d.comb += [put_place.addr.eq(nic.post_vc), put_place.data.eq(Cat(first, *posted)), put_place.en.eq(1)]
        with m.Elif(left == 1):
            after = Cat((at + 1)[:tx_bits], *following) if rest else at + 1
            m.d.comb += [put_place.addr.eq(vc), put_place.data.eq(after), put_place.en.eq(1)]
        return posts.w_en & ~posts.w_rdy

    def _posted(self, m, csr, posts):
        """Return the value of the register `post` that is posted: the host's, or that of the source."""
        nic, source = self._nic, self._source
        flies, sent, fires, post = Signal(), Signal(32), Signal(), Signal(32)
        m.d.comb += post.eq(self.csr.w_data)
        with m.If(source.on & ~flies & posts.w_rdy & ~self.csr.w_en):
            m.d.comb += [fires.eq(1), posts.w_en.eq(1), post.eq(Cat(source.length, source.vc))]
            m.d.sync += flies.eq(1)
        self._own_done = Signal()
        m.d.comb += self._own_done.eq(nic.done & flies & (nic.done_vc == source.vc))
        with m.If(self._own_done):
            m.d.sync += [flies.eq(0), sent.eq(sent + 1)]
        csr.status("sent", sent)
        return post

    def _sunk(self, m, csr, checker):
        """Count the SDUs that end at the sink; return whether the cell that has been checked is one of theirs, and
        whether the SDU that ends is."""
        nic, sink = self._nic, self._sink
        ends, good, index = Signal(), Signal(), Signal(11)
        verified, unverified = Signal(32), Signal(32)
        last = nic.rx_last & sink.on & (nic.rx_vc == sink.vc)
        with m.If(last & nic.rx_valid):
            m.d.sync += [ends.eq(1), good.eq(Value.cast(nic.rx_status) == 0), index.eq(self._node.rx_index)]
        with m.If(checker.done):
            m.d.sync += ends.eq(0)
        whole = Signal()
        m.d.comb += whole.eq(good & ((checker.count + sink.cells)[:12] == index))
        with m.If(ends & checker.done & whole):
            m.d.sync += verified.eq(verified + 1)
        with m.If((ends & checker.done & ~whole) | (last & ~nic.rx_valid)):
            m.d.sync += unverified.eq(unverified + 1)
        csr.status("verified", verified)
        csr.status("unverified", unverified)
        return sink.on & (checker.done_vc == sink.vc), last

    def _payload(self, m, given, came, left, vc, state):
        """Return the words of a cell, whether there is one in this clock, and the state of the VC behind the cell.

        Without patterns they are the given words.
        """
        if not self._patterns:
            return given, came, state
        rest = Signal(REST, name="rest")
        m.d.comb += rest.eq(state[0])
        m.submodules.generator = generator = PatternGenerator(vcs=self._node.vcs)
        m.d.comb += [
            generator.begin.eq(left == 12),
            generator.vc.eq(vc),
            generator.place.eq(rest.place),
            generator.given.eq(rest.cells != 0),
            generator.given_word.eq(given),
        ]
        ends = (rest.cells == 0) | (rest.cells == ALL_GIVEN)
        return generator.word, generator.word_valid, [Cat(Mux(ends, rest.cells, rest.cells - 1)[:8], rest.place)]

    def _receive(self, m, csr):
        nic = self._nic
        word, puts = Signal(32), Signal()
        if self._patterns:
            m.submodules.records = records = CellRecords(words=self._rx_words)
            m.d.comb += [records.word.eq(word), records.put.eq(puts)]
        else:
            m.submodules.records = records = SyncFIFOBuffered(width=32, depth=self._rx_words)
            m.d.comb += [records.w_data.eq(word), records.w_en.eq(puts)]
        # A cell's words go behind its head, a clock later than they come
        came, late, place = Signal(32), Signal(), Signal(4)
        m.d.sync += [came.eq(nic.rx_word), late.eq(nic.rx_valid)]
        with m.If(nic.rx_valid):
            m.d.sync += place.eq(Mux(place == 11, 0, place + 1))
        head, status = nic.rx_valid & (place == 0), Value.cast(nic.rx_status)
        ended, done, tick, whose = Signal(2), Signal(2), Signal(TIME_BITS), Signal(32)
        done_vc, done_tick = Signal(12), Signal(TIME_BITS)
        length = Signal(16)
        ends, sends, going = nic.rx_last, nic.done, None
        if self._patterns:
            going, ends, sends = self._checked(m, csr, head, records)
        with m.If(head):
            if self._patterns:
                m.d.comb += records.begin.eq(1)
            else:
                m.d.comb += [word.eq(Cat(nic.rx_vc, Const(0, 28 - len(nic.rx_vc)), Const(CELL, 4))), puts.eq(1)]
        with m.Elif(late):
            m.d.comb += [word.eq(came), puts.eq(1)]
        if going is not None:
            with m.Elif(going):
                pass  # a cell is not complete before it has been checked
        with m.Elif(ended != 0):
            m.d.sync += ended.eq(ended + 1)
            m.d.comb += puts.eq(1)
            with m.Switch(ended):
                with m.Case(1):
                    m.d.comb += word.eq(whose)
                with m.Case(2):
                    m.d.comb += word.eq(tick[:32])
                with m.Case(3):
                    m.d.comb += word.eq(Cat(tick[32:], length))
        with m.Elif(done != 0):
            m.d.sync += done.eq(done + 1)
            m.d.comb += puts.eq(1)
            with m.Switch(done):
                with m.Case(1):
                    m.d.comb += word.eq(Cat(done_vc, Const(0, 16), Const(DONE, 4)))
                with m.Case(2):
                    m.d.comb += word.eq(done_tick[:32])
                with m.Case(3):
                    m.d.comb += word.eq(done_tick[32:])
        with m.If(ends):
            m.d.sync += [
                ended.eq(1),
                whose.eq(
                    Cat(nic.rx_vc, Const(0, 16 - len(nic.rx_vc)), status, Const(0, 4 - len(status)),
                        nic.rx_efci, Const(0, 7), Const(ENDED, 4))
                ),
                tick.eq(self.now),
                length.eq(nic.rx_length),
            ]  # fmt: skip
        with m.If(sends):
            m.d.sync += [done.eq(1), done_vc.eq(nic.done_vc), done_tick.eq(self.now)]
        self._report(m, csr, records, ends | sends, (ended == 0, done == 0))
        return records.lost if self._patterns else records.w_en & ~records.w_rdy

    def _report(self, m, csr, records, happens, rest):
        """Stop the board for records of ends, or for space, and give the records to the bus."""
        ends, full = Signal(), Signal()
        with m.If(happens):
            m.d.sync += ends.eq(1)
        with m.Elif((records.level == 0) & rest[0] & rest[1]):
            m.d.sync += ends.eq(0)
        m.d.sync += [full.eq(records.level > self._rx_words - _MARGIN), self._event.eq(ends | full)]
        csr.status("level", records.level)
        csr.status("record", records.r_data)
        # The word has been read when the next one comes
        reads = Signal(6)
        asked = self.csr.r_en & (self.csr.addr == self.registers["record"].addr)
        m.d.sync += reads.eq(Cat(asked, reads))
        m.d.comb += records.r_en.eq(reads[5])

    def _checked(self, m, csr, head, records):
        """Keep or withdraw each received cell when it has been checked.

        Returns
        -------
        tuple
            A cell is being checked; an SDU has ended, or has been sent, that has a record.
        """
        nic = self._nic
        m.submodules.checker = checker = PatternChecker(vcs=self._node.vcs)
        going, withheld = Signal(), Signal(32, name="withheld")
        m.d.comb += [
            checker.valid.eq(nic.rx_valid),
            checker.word.eq(nic.rx_word),
            checker.vc.eq(nic.rx_vc),
            checker.first.eq(self._node.rx_index == 0),
            checker.last.eq(nic.rx_last),
            records.end.eq(checker.done),
        ]
        ends, sends, sunk = nic.rx_last, nic.done, Const(0, 1)
        if self._sources:
            sunk, last = self._sunk(m, csr, checker)
            ends, sends = ends & ~last, sends & ~self._own_done
        m.d.comb += records.keeps.eq(~checker.withheld & ~sunk)
        vc = Cat(checker.done_vc, Const(0, 12 - len(checker.done_vc)))
        m.d.comb += records.head.eq(Cat(vc, checker.count, Const(0, 1), checker.place, Const(0, 1), Const(CELL, 4)))
        with m.If(head):
            m.d.sync += going.eq(1)
        with m.Elif(checker.done):
            m.d.sync += [going.eq(0), withheld.eq(withheld + checker.withheld)]
        csr.status("withheld", withheld)
        return going, ends, sends
