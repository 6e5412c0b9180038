"""Look-ups of headers: from (port, VPI, VCI), or from (port, VPI), to the index of a VC, by two hash functions.

Which they are, and where software puts the entries: :mod:`bentpipe_hdl.lookup_table`.
"""

from amaranth.hdl import Cat, Const, Mux, Signal, unsigned
from amaranth.lib import data

from .lookup_table import KEY_BITS, slot_bits

__all__ = ["Lookup"]


class Lookup:
    """Two memories, each read at one place for a header: any set of ``entries`` VPI/VCI of all ports fits.

    Place ``s`` of memory ``k`` is for keys (port<<28 | VPI<<16 | VCI) with ``key * LOOKUP_MULTIPLIERk`` modulo
    2**32 having ``s`` in its upper bits (:func:`lookup_table`). Writing table or multipliers touches no other state of
    a VC.

    Parameters
    ----------
    m : Module
    slot : TickSchedule
    csr : CsrMap
        With the registers of :func:`~bentpipe_hdl.lookup_table.lookup_registers`.
    vcs : int
        Number of VCs.
    ports : int
    nni : Value
        A bit a port: its cells have NNI headers (12 bits of VPI, no GFC).
    name : str
        Of its registers.
    entries : int, optional
        That it has place for, as many as VCs unless given; each memory has twice as many slots.
    paths : bool
        It looks at port and VPI alone: the VCI of its keys is 0, whatever the cell's.

    Members
    -------
    key : Signal
        Of the header that is looked up; without the VCI where it looks at paths.
    """

    def __init__(self, m, slot, csr, *, vcs, ports, nni, name="lookup", entries=None, paths=False):
        self._m, self._slot, self._name, self._paths = m, slot, name, paths
        self._nni = nni
        self._bits = slot_bits(entries or vcs)
        port_bits = (ports - 1).bit_length()
        self._layout = data.StructLayout(
            {"key": unsigned((12 if paths else 28) + port_bits), "valid": 1, "vc": range(vcs)}
        )
        index, word, en = csr.write_port(name)
        packed = Signal(self._layout, name=f"{name}_entry")
        m.d.comb += [packed.key.eq(word[16:] if paths else word), packed.vc.eq(word[32:]), packed.valid.eq(word[63])]
        self._tables, self._multipliers = [], csr.registers(f"{name}_multiplier")
        for k in range(2):
            table = slot.store(f"{name}{k}", self._layout, 1 << self._bits)
            table.write(index[: self._bits], packed, en & (index[self._bits] == k))
            self._tables.append(table)

    def find(self, header, port):
        """Return ``(known, vc)`` of a header that arrived on ``port``; on the narrow datapath four clocks later."""
        m, name = self._m, self._name
        nni = self._nni.bit_select(port, 1)
        low = Cat(*(() if self._paths else (header.vci,)), header.vpi)
        key, way = Signal(self._layout["key"].shape, name=f"{name}_key"), Signal(len(low) + 4, name=f"{name}_way")
        m.d.comb += [way.eq(Mux(nni, Cat(low, header.gfc), low)), key.eq(Cat(way, port))]
        self.key = key
        hits = []
        for k, (table, multiplier) in enumerate(zip(self._tables, self._multipliers, strict=True)):
            product = self._product(key, multiplier, f"{name}_product{k}")
            at = self._slot.pipe(product[KEY_BITS - self._bits : KEY_BITS], f"{name}_at{k}")
            entry = Signal(self._layout, name=f"{name}_hit{k}")
            m.d.comb += entry.eq(self._slot.pipe(table.read(at), f"{name}_entry{k}"))
            hits.append((Cat(entry.key, entry.valid) == Cat(key, Const(1)), entry.vc))
        (first, vc), (second, other) = hits
        found, found_vc = Signal(name=f"{name}_found"), Signal.like(vc, name=f"{name}_vc")
        with m.If(first):
            m.d.comb += [found.eq(1), found_vc.eq(vc)]
        with m.Else():
            m.d.comb += [found.eq(second), found_vc.eq(other)]
        return found, found_vc

    def _product(self, key, multiplier, name):
        """Return the product modulo 2**32; on the narrow datapath a clock later, of halves that each fit a multiplier
        of an FPGA."""
        half = KEY_BITS // 2
        if self._paths:  # the key's lower half is 0
            return self._slot.pipe((key * multiplier[:half])[:half], name) << half
        if self._slot.wide:
            return key * multiplier
        factors = (key[:half], multiplier[:half]), (key[:half], multiplier[half:]), (key[half:], multiplier[:half])
        low, *cross = (self._slot.pipe((a * b)[:KEY_BITS], f"{name}_{k}") for k, (a, b) in enumerate(factors))
        return low + ((cross[0] + cross[1])[:half] << half)
