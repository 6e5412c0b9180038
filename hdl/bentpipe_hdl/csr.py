"""Control and status registers: one bus a node, words of 32 bits, and the map that documents them.

A node's settings, tables and counters are all behind one bus. A write takes effect at the clock edge with
``w_en``; a read's data is there from the third clock after the one with ``r_en`` and stays. Values wider than
32 bits take two addresses: reading or writing the even one (low word) latches, the odd one (high word) completes.
"""

from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from bentpipe_hdl.steady import settled

__all__ = ["ADDR_BITS", "CsrMap", "CsrSignature", "Register"]

ADDR_BITS = 20


class CsrSignature(wiring.Signature):
    """Members
    -------
    addr : Out(20)
    w_en : Out(1)
    w_data : Out(32)
    r_en : Out(1)
    r_data : In(32)
    """

    def __init__(self):
        super().__init__(
            {
                "addr": Out(ADDR_BITS),
                "w_en": Out(1),
                "w_data": Out(32),
                "r_en": Out(1),
                "r_data": wiring.In(32),
            }
        )


@dataclass(frozen=True)
class Register:
    """An entry of a node's register map: ``count`` words from ``addr`` on, ``access`` is "rw", "ro" or "wo"."""

    name: str
    addr: int
    count: int
    access: str
    text: str


class CsrMap:
    """Builds a node's registers behind its bus.

    Parameters
    ----------
    m : Module
    bus : CsrSignature interface, as the node sees it
    settled : bool
        Its registers are settled (:mod:`bentpipe_hdl.steady`): for nodes that mark others, too.
    """

    def __init__(self, m: Module, bus, *, settled: bool = False):
        self._m, self._bus, self._settled = m, bus, settled
        self.registers: list[Register] = []
        self._strobes: list[Signal] = []
        self._low = Signal(32, name="csr_low")
        self._read = []
        self._reading = Signal(2, name="csr_reading")  # clocks until the data has to be there
        self._addr = Signal(ADDR_BITS, name="csr_addr")
        self._strobed = Signal(name="csr_strobed")  # a strobe may be high
        with m.If(bus.r_en):
            m.d.sync += self._addr.eq(bus.addr)
        with m.If(bus.w_en):
            m.d.sync += self._strobed.eq(1)
            with m.If(~bus.addr[0]):
                m.d.sync += self._low.eq(bus.w_data)
        with m.Elif(self._strobed):
            m.d.sync += self._strobed.eq(0)

    def _add(self, name, addr, count, access, text):
        for r in self.registers:
            if addr < r.addr + r.count and r.addr < addr + count and access[0] == r.access[0]:
                raise ValueError(f"CSR {name} at {addr:#06x} overlaps {r.name}")
        self.registers.append(Register(name, addr, count, access, text))

    def setting(self, name, addr, signal, text, limit=None):
        """A read-write register of up to 32 bits. A value above ``limit`` is taken as ``limit``."""
        self._add(name, addr, 1, "rw", text)
        with self.written(addr):
            self._m.d.sync += signal.eq(self._bus.w_data)
            if limit is not None:
                with self._m.If(self._bus.w_data > limit):
                    self._m.d.sync += signal.eq(limit)
        self._read.append((self._bus.addr == addr, signal))

    def wide_setting(self, name, addr, signal, text):
        """A write-only register of up to 64 bits at ``addr`` (even: low word) and ``addr + 1``."""
        self._add(name, addr, 2, "wo", text)
        with self.written(addr + 1):
            self._m.d.sync += signal.eq(Cat(self._low, self._bus.w_data))

    def status(self, name, addr, value, text):
        """A read-only word."""
        self._add(name, addr, 1, "ro", text)
        self._read.append((self._bus.addr == addr, value))

    @contextmanager
    def written(self, addr):
        """``with csr.written(addr):`` what happens when the register at ``addr`` is being written."""
        with self._m.If(self._bus.w_en), self._m.If(self._bus.addr == addr):
            yield

    def on_write(self, addr, strobe):
        """``strobe`` is high in the clock after a write to ``addr``, when the register has its new value."""
        with self._m.If(self._strobed):
            self._m.d.sync += strobe.eq(0)
        self._strobes.append(strobe)
        with self.written(addr):
            self._m.d.sync += strobe.eq(1)

    def table(self, name, addr, depth, width, text):
        """A write-only table. Returns ``(index, data, en)`` for a memory's write port. Up to 32 bits: a word an
        entry; up to 64: two."""
        words = 1 if width <= 32 else 2
        self._add(name, addr, depth * words, "wo", text)
        bits = (depth * words - 1).bit_length()
        if addr % (1 << bits):
            raise ValueError(f"CSR table {name} at {addr:#06x} is not aligned to its size")
        here = self._bus.w_en & (self._bus.addr[bits:] == addr >> bits)
        if words == 1:
            return self._bus.addr[:bits], self._bus.w_data[:width], here
        whole = Cat(self._low, self._bus.w_data)
        return self._bus.addr[1:bits], whole[:width], here & self._bus.addr[0]

    def counters(self, name, addr, depth, read, text):
        """A read-only table. ``read(index)`` is called once and gives the word at ``index``."""
        self._add(name, addr, depth, "ro", text)
        bits = max(1, (depth - 1).bit_length())
        if addr % (1 << bits):
            raise ValueError(f"CSR table {name} at {addr:#06x} is not aligned to its size")
        self._read.append((self._bus.addr[bits:] == addr >> bits, read(self._addr[:bits])))

    def finish(self):
        """Build the read path; call after the last register."""
        if self._settled:
            for signal in (self._reading, self._strobed, *self._strobes):
                settled(signal)
        m = self._m
        # Which register it is, is known with the address; they don't overlap.
        chosen = Signal(len(self._read), name="csr_chosen")
        data = [Mux(one, value, 0) for one, (_, value) in zip(chosen, self._read, strict=True)]
        with m.If(self._bus.r_en):
            m.d.sync += [chosen.eq(Cat(hit for hit, _ in self._read)), self._reading.eq(3)]
        with m.Elif(self._reading != 0):
            m.d.sync += self._reading.eq(self._reading - 1)
        with m.If(self._reading != 0):
            m.d.sync += self._bus.r_data.eq(_any_of(data))


def _any_of(values):
    """The OR of some words, as a tree."""
    values = values or [Const(0)]
    while len(values) > 1:
        values = [reduce(or_, values[k : k + 2]) for k in range(0, len(values), 2)]
    return values[0]
