"""Policing: the policer between the look-up and admission."""

from amaranth.hdl import Cat, Mux

from ..policer import POLICED, Policer
from .base import Plugin

__all__ = ["Police"]


class Police(Plugin):
    options = ("police",)
    vc_fields = (POLICED,)

    def check(self, m, cell):
        csr, own = cell.build.csr, cell.own
        policer = m.submodules.policer = Policer(cell.build.slot, vcs=cell.build.vcs)
        m.d.comb += [
            Cat(policer.rate_index, policer.rate, policer.rate_en).eq(Cat(csr.table("police_rate"))),
            Cat(policer.limit_index, policer.limit, policer.limit_en).eq(Cat(csr.table("police_limit"))),
            policer.now.eq(cell.now),
            policer.arrives.eq(cell.arrives if own is None else cell.arrives & ~own),
            policer.vc.eq(cell.vc),
            policer.clp.eq(cell.header.clp),
            policer.user.eq(~cell.header.pti[2]),
            policer.last.eq(cell.header.pti[0]),
            policer.state.eq(cell.state.policed),
            policer.seen.eq(cell.passes if own is None else cell.passes & ~own),
            policer.clearing.eq(cell.context.clearing),
            policer.clear.eq(cell.context.clear),
        ]
        csr.counts("upc_tagged", policer.tagged_index, policer.tagged)
        objects, clp, state = policer.discard, policer.new_clp, policer.new_state
        if own is not None:  # such a cell comes in behind the policer
            objects = objects & ~own
            clp, state = Mux(own, cell.header.clp, clp), Mux(own, cell.state.policed, state)
        cell.clp = clp
        cell.refuse(objects, "discard_held", reason="upc", keeps=POLICED, state=state)
