"""Policing: the policer between the look-up and admission."""

from amaranth.hdl import Cat, Mux

from bentpipe_hdl.switch.options.plugin import Order, Plugin
from bentpipe_hdl.switch.options.police.policer import POLICED, Policer

__all__ = ["PLUGIN"]


class Police(Plugin):
    options = ("police",)
    order = Order.CHECK
    vc_fields = (POLICED,)

    def check(self, m, cell):
        build, local, table = cell.core.build, cell.local, cell.core.vc_table
        csr = build.csr
        policer = m.submodules.policer = Policer(build.slot, vcs=build.vcs)
        m.d.comb += [
            Cat(policer.rate_index, policer.rate, policer.rate_en).eq(Cat(csr.write_port("police_rate"))),
            Cat(policer.limit_index, policer.limit, policer.limit_en).eq(Cat(csr.write_port("police_limit"))),
            policer.now.eq(cell.now),
            policer.arrives.eq(cell.admissible if local is None else cell.admissible & ~local),
            policer.vc.eq(cell.vc),
            policer.clp.eq(cell.header.clp),
            policer.user.eq(~cell.header.pti[2]),
            policer.last.eq(cell.header.pti[0]),
            policer.state.eq(cell.state.policed),
            policer.seen.eq(cell.passes if local is None else cell.passes & ~local),
            policer.clearing.eq(table.clearing),
            policer.clear.eq(table.clear),
        ]
        csr.read_port("upc_tagged", policer.tagged_index, policer.tagged)
        objects, clp, state = policer.discard, policer.new_clp, policer.new_state
        if local is not None:  # such a cell arrives behind the policer
            objects = objects & ~local
            clp, state = Mux(local, cell.header.clp, clp), Mux(local, cell.state.policed, state)
        cell.clp = clp
        cell.refuse(objects, "discard_held", reason="upc", keeps=POLICED, state=state)


PLUGIN = Police
