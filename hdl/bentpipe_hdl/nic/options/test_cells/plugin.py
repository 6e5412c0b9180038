"""Test cells: a generator that posts a VC to the pacer, and an analyser that takes the cells of another."""

from amaranth.hdl import Cat, Mux, Signal
from amaranth.lib import wiring

from bentpipe_hdl.nic.options.plugin import NicPlugin
from bentpipe_hdl.nic.options.test_cells.control import CELL_COUNTERS, WORDS
from bentpipe_hdl.test_cells.analyser import EVENTS, TestCellAnalyser
from bentpipe_hdl.test_cells.generator import COUNT_BITS, TestCellGenerator, stamp_clock
from bentpipe_hdl.test_cells.receiver import TestCellReceiver

__all__ = ["PLUGIN"]


class TestCells(NicPlugin):
    arguments = {"segmenter": {"inserts": True}}  # noqa: RUF012

    def posts(self, m, csr, core):
        nic, pacer, slot = core.nic, core.pacer, core.slot
        made = self._generator = m.submodules.test_generator = TestCellGenerator(slot, width=nic.width, vcs=nic.vcs)
        self._stamp = stamp_clock(slot, nic.time.now)
        sets = csr.register("test_tx")
        with csr.written("test_tx"):
            m.d.comb += made.asked.eq(1)
        m.d.comb += [
            made.now.eq(nic.time.now),
            made.stamp.eq(self._stamp),
            made.of.eq(sets),
            made.run.eq(sets[12]),
            made.first.eq(csr.register("test_tx_first")),
            made.count.eq(csr.register("test_tx_count")),
            made.taken.eq(pacer.posts),
            made.accepted.eq(pacer.accepts),
            made.tick_vc.eq(pacer.vc),
            made.sends.eq(pacer.sends & ~self._single(core)),
        ]
        core.own_post = made.post
        core.post = core.post | made.post
        core.post_vc = Mux(made.post, made.vc, core.post_vc)
        core.post_fits = core.post_fits | made.post
        core.last = Mux(made.active, made.last, core.last)
        core.fetch = pacer.fetch & ~(made.running & (pacer.fetch_vc == made.vc) & ~self._fetches_single(core))

    @staticmethod
    def _single(core):
        """Return whether the tick's VC sends a single cell of the host."""
        return getattr(core.pacer, "single", 0)

    @staticmethod
    def _fetches_single(core):
        return getattr(core.pacer, "fetch_single", 0)

    def transmit(self, m, csr, core):
        made, tx = self._generator, core.segmenter
        m.d.comb += tx.insert.eq(made.active & ~self._single(core))
        if core.slot.wide:
            m.d.comb += tx.insert_block.eq(made.block)
        else:
            m.d.comb += [made.next.eq(tx.insert_next), tx.insert_word.eq(made.word)]

    def receive(self, m, csr, core):
        nic, rx, slot = core.nic, core.reassembler, core.slot
        m.submodules.test_receiver = came = TestCellReceiver(slot, width=nic.width)
        m.submodules.test_analyser = judge = self._analyser = TestCellAnalyser(slot, vcs=nic.vcs)
        wiring.connect(m, wiring.flipped(nic.i), came.i)
        sets, taking, received = csr.register("test_rx"), Signal(), Signal(COUNT_BITS, name="test_received")
        with csr.written("test_rx"):
            m.d.comb += judge.asked.eq(1)
        self.takes = (
            core.arrives & rx.known & ~core.arrival.hec_error & ~core.arrival.header.pti[2]
            & sets[12] & (rx.vc == sets[:12])
        )  # fmt: skip
        with m.If(slot.commit), m.If(self.takes):
            m.d.comb += taking.eq(1)
            m.d.sync += received.eq(received + 1)
        m.d.comb += [
            came.now.eq(self._stamp),
            came.takes.eq(taking),
            judge.now.eq(nic.time.now),
            judge.clearing.eq(core.clearing),
            judge.clear.eq(core.clear),
            judge.known.eq(sets[13]),
            judge.first.eq(csr.register("test_rx_first")),
            judge.size.eq(csr.register("test_block_size")),
            judge.limit.eq(csr.register("test_block_limit")),
            judge.class_width.eq(csr.register("test_class")),
            *(getattr(judge, name).eq(getattr(came, name)) for name in ("valid", "good", "number", "stamp", "came")),
        ]
        made = self._generator
        counters = {"sent": made.sent, "received": received}
        for name in CELL_COUNTERS:
            value = counters.get(name, getattr(judge, name, None))
            csr.status(f"test_{name}", *(value[32 * k : 32 * k + 32] for k in range(WORDS)))
        for name in (*EVENTS, "delay_min", "delay_max", "reference"):
            csr.status(f"test_{name}", getattr(judge, name))
        csr.status("test_state", Cat(made.running, made.post, judge.synced))
        csr.read_port("test_classes", judge.index, judge.cells)

    def due(self):
        yield self._generator.due
        yield self._analyser.due

    def busy(self):
        yield self._generator.busy
        yield self._analyser.busy


PLUGIN = TestCells
