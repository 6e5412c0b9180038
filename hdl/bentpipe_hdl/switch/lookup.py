"""VPI/VCI look-up: from (port, VPI, VCI) to the index of a VC."""

from amaranth.hdl import Cat, Mux, Signal, unsigned
from amaranth.lib import data

__all__ = ["Lookup", "lookup_slot"]


def lookup_slot(port, vpi, vci, *, slot_bits=8):
    """The table slot of a VC: ``port`` above the exclusive or of the low bits of VPI and VCI (in Python, for
    whoever fills the table). Two VCs of a port with the same slot exclude each other."""
    mask = (1 << slot_bits) - 1
    return port << slot_bits | ((vpi ^ vci) & mask)


class Lookup:
    """A direct-mapped table with the whole VPI and VCI as its tag: any VPI/VCI can be used, and two VCs of a port
    collide only if the exclusive or of their low bits agrees.

    Parameters
    ----------
    m : Module
    slot : Slot
    csr : CsrMap
        Gets the table at ``addr``: ``valid<<63 | vc<<32 | vpi<<16 | vci`` a slot.
    vcs : int
        Number of VCs.
    ports : int
    nni : Value
        A bit a port: its cells have NNI headers (12 bits of VPI, no GFC).
    slot_bits : int
        A port has ``2**slot_bits`` slots.
    """

    def __init__(self, m, slot, csr, *, addr, vcs, ports, nni, slot_bits=8):
        self._nni = nni
        self._m = m
        self._slot_bits = slot_bits
        self._layout = data.StructLayout({"vci": 16, "vpi": unsigned(12), "vc": range(vcs), "valid": 1})
        depth = ports << slot_bits
        index, word, en = csr.table(
            "LOOKUP", addr, depth, 64, "VPI/VCI look-up, a slot an entry: valid<<63 | vc<<32 | vpi<<16 | vci"
        )
        self._table = slot.store("lookup", self._layout, depth)
        packed = Signal(self._layout, name="lookup_entry")
        m.d.comb += [
            packed.vci.eq(word[:16]),
            packed.vpi.eq(word[16:28]),
            packed.vc.eq(word[32:]),
            packed.valid.eq(word[63]),
        ]
        self._table.write(index, packed, en)

    def find(self, header, port):
        """``(known, vc)`` of a header that came in on ``port``."""
        vpi = Signal(12, name="lookup_vpi")
        nni = self._nni.bit_select(port, 1)
        self._m.d.comb += vpi.eq(Cat(header.vpi, Mux(nni, header.gfc, 0)))
        low = self._slot_bits
        entry = Signal(self._layout, name="lookup_hit")
        self._m.d.comb += entry.eq(self._table.read(Cat(header.vci[:low] ^ vpi[:low], port)))
        known = entry.valid & (entry.vpi == vpi) & (entry.vci == header.vci)
        return known, entry.vc
