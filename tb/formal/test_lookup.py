"""The look-up finds a VC where one of the two slots of its key has the key, and nowhere else: for any content of the
tables, any multipliers and any header."""

import pytest
from amaranth.hdl import Array, Cat, Const, Module, Mux
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from bentpipe_hdl.cell import WIDE, CellHeader, TimeSignature
from bentpipe_hdl.csr import CsrMap, CsrSignature
from bentpipe_hdl.lookup import Lookup
from bentpipe_hdl.lookup_table import KEY_BITS, lookup_registers, slot_bits
from bentpipe_hdl.registers import RegisterMap
from bentpipe_hdl.tick_schedule import TickSchedule
from formal.proof import Probe, Proof, Spec

VCS = 2
BITS = slot_bits(VCS)


class _Node(wiring.Component):
    time: In(TimeSignature())
    csr: In(CsrSignature())
    header: In(CellHeader)
    port: In(1)
    nni: In(2)
    known: Out(1)
    vc: Out(range(VCS))

    def __init__(self, paths):
        super().__init__()
        self._paths = paths

    def elaborate(self, platform):
        m = Module()
        csr = CsrMap(m, self.csr, RegisterMap("lookup", "", 1, {}, lookup_registers(VCS, paths=self._paths)))
        name = "vp_lookup" if self._paths else "lookup"
        slot = TickSchedule(m, self.time, WIDE)
        self.lookup = Lookup(m, slot, csr, vcs=VCS, ports=2, nni=self.nni, name=name, paths=self._paths)
        known, vc = self.lookup.find(self.header, self.port)
        csr.finish()
        m.d.comb += [self.known.eq(known), self.vc.eq(vc)]
        return m


def _proof(paths):
    node = _Node(paths)
    spec = Spec(Probe(node))
    header, nni = node.header, node.nni.bit_select(node.port, 1)
    vpi = Cat(header.vpi, Mux(nni, header.gfc, 0))
    # Products of keys that are made otherwise are hardly shown to be the same: that the key is this comes first
    key = node.lookup.key
    spec.condition("key", key == (Cat(vpi, node.port) if paths else Cat(header.vci, vpi, node.port)))
    whole = spec.value(Cat(Const(0, 16), key) if paths else key, "whole")  # which is hashed
    slots, keys = [], Const(0, 1)
    for k in range(2):
        entries = [node.lookup._tables[k].read(Const(place, BITS)) for place in range(1 << BITS)]
        place = spec.value((whole * node.lookup._multipliers[k])[KEY_BITS - BITS : KEY_BITS], f"place{k}")
        entry = Array(entry.as_value() for entry in entries)[place]
        slots.append(spec.value(entry, f"slot{k}"))
        for one in entries:
            keys = keys | (one.valid & (one.key == key))
    bits = len(key)
    hits = [spec.value(slot[bits] & (slot[:bits] == key), f"hit{k}") for k, slot in enumerate(slots)]
    vcs = [slot[bits + 1 :] for slot in slots]
    spec.condition("agree", ~(hits[0] & hits[1]) | (vcs[0] == vcs[1]))  # as while an entry moves
    spec.condition("found", node.known == hits[0] | hits[1])
    spec.condition("is_its_vc", *(~hit | (node.vc == vc) for hit, vc in zip(hits, vcs, strict=True)))
    spec.condition("found_anywhere", node.known == keys)
    spec.condition("known_vc", node.known)
    return Proof("vp_lookup" if paths else "lookup", spec)


@pytest.mark.parametrize("paths", [False, True])
def test_finds_a_vc_where_a_slot_of_its_key_has_it(paths):
    proof = _proof(paths)
    assert proof.possible("agree", "known_vc")
    assert proof.follows("key", given=[]) is None
    assert proof.follows("found", given=[]) is None
    assert proof.follows("is_its_vc", given=["agree"]) is None
    assert proof.follows("is_its_vc", given=[]) is not None
    assert proof.follows("found_anywhere", given=["agree"]) is not None  # elsewhere it is not looked for
