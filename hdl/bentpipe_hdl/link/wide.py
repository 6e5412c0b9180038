"""The wide datapath of a link: a cell, its errors and its header check in one clock."""

from amaranth.hdl import Cat, Const, Signal

from bentpipe_hdl.cell import NEVER, CellHeader
from bentpipe_hdl.hec import error_syndrome
from bentpipe_hdl.link.datapath import CELL_BITS, ERRORS_A_CELL, Datapath
from bentpipe_hdl.link.errors import PROCESS
from bentpipe_hdl.link.gap import Gap, inject, xorshift
from bentpipe_hdl.sim_hints import branch_first

__all__ = ["WideDatapath"]


class WideDatapath(Datapath):
    """At 416 bits. Further member ``damaged``: the payload with its errors."""

    def damage(self):
        link, m, slot, s = self.link, self.m, self.slot, self.errors
        self.comes = link.i.valid
        self.taken = taken = Signal(name="taken")
        self.sent_header, self.sent_hec_error = CellHeader(link.i.header), link.i.hec_error
        with m.If(slot.commit), m.If(link.i.valid):
            m.d.comb += taken.eq(1)
        hit = Signal()
        enable, gap, state, mantissa, shift = (s.now(m, slot, name, taken) for name in PROCESS)
        with m.If(taken), m.If(enable), m.If(~s.fresh), m.If(gap < CELL_BITS):
            m.d.comb += hit.eq(1)
        branch_first(hit, 0)
        first_bit = Const(1 << (CELL_BITS - 1), CELL_BITS)  # bit 423 - k is bit k of the line's order
        with m.If(hit):  # the work of a cell with errors
            flips, count, gap_after, state_after = inject(
                m, CELL_BITS, ERRORS_A_CELL, gap=gap, state=state, mantissa=mantissa, shift=shift,
                one=lambda place: first_bit >> place, draws=hit, flips=Const(0, CELL_BITS), count=Const(0, 4),
            )  # fmt: skip
        with m.If(taken), m.If(enable), m.If(~s.fresh):
            with m.If(hit):
                m.d.sync += s.error_bits.eq(s.error_bits + count)
            for p in s.chosen(m):
                with m.If(hit):
                    m.d.sync += [p.gap.eq(gap_after), p.state.eq(state_after)]
                with m.Else():
                    m.d.sync += p.gap.eq(gap - CELL_BITS)
        for p in s.processes:
            m.submodules[f"first_{p.prefix}gap"] = unit = Gap()
            m.d.comb += [unit.mantissa.eq(p.mantissa), unit.shift.eq(p.shift)]
            with m.If(s.fresh), m.If(taken):
                m.d.sync += [s.fresh.eq(0), p.redraw.eq(0)]
                with m.If(p.redraw):
                    m.d.comb += unit.state.eq(xorshift(p.state))
                    m.d.sync += [p.gap.eq(unit.gap), p.state.eq(unit.state)]

        # Header and HEC come first on the line, with their upper bits first
        header_flips, hec_flips = flips[392:424], flips[384:392]
        header = Signal(CellHeader)
        m.d.comb += header.eq(link.i.header)
        syndrome = error_syndrome(Cat(hec_flips, header_flips))
        self.header = self.check(hit, header_flips, syndrome, header, link.i.hec_error)
        self.damaged = damaged = Signal(384, name="damaged")
        m.d.comb += damaged.eq(link.i.payload ^ Cat(flips[376 - 8 * k : 384 - 8 * k] for k in range(48)))

    def send(self, gone, memory_of_cells, lost, works):
        link, m = self.link, self.m
        m.d.sync += link.o.valid.eq(0)
        if memory_of_cells is not None:
            return ~works, memory_of_cells.wide(self, gone, lost)
        with m.If(self.taken):
            m.d.sync += [
                link.o.valid.eq(~gone),
                link.o.hec_error.eq(self.bad),
                link.o.header.eq(self.header),
                link.o.payload.eq(link.i.payload),
            ]
            with m.If(self.hit):
                m.d.sync += link.o.payload.eq(self.damaged)
        if self.offer is not None:
            with m.If(self.offer.leaves):
                m.d.sync += [
                    link.o.valid.eq(1),
                    link.o.hec_error.eq(self.offer.bad),
                    link.o.header.eq(self.offer.header),
                    link.o.payload.eq(self.offer.payload),
                ]
        return ~works, NEVER
