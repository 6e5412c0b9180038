"""Control and status registers in RTL: one bus a node, words of 32 bits, decoded as the node's declaration says.

A node's settings, tables and counters are all behind one bus. A write takes effect at the clock edge with
``w_en``; a read's data is there from the fourth clock after the one with ``r_en`` and stays. Values wider than
32 bits take two addresses: writing the even one (low word) latches, the odd one (high word) completes.
"""

from contextlib import contextmanager
from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from bentpipe_hdl.registers import ADDR_BITS, Register, RegisterMap
from bentpipe_hdl.sim_hints import rarely_changes

__all__ = ["CsrMap", "CsrSignature"]


class CsrSignature(wiring.Signature):
    """The register bus of a node, as its initiator sees it.

    Members
    -------
    addr : Out(20)
        Address of a word, with ``w_en`` or ``r_en``.
    w_en : Out(1)
        Write, for one clock; the register has the value behind its edge.
    w_data : Out(32)
        Data to be written.
    r_en : Out(1)
        Read, for one clock.
    r_data : In(32)
        Data read, from the fourth clock after that with ``r_en`` on; it stays.
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


class CsrMap:
    """The registers of a node's declaration behind its bus. Parts of the node take theirs by name.

    A register that no part has taken when the map is finished is a plain register, if it can be written and has up to
    32 bits. Otherwise that is an error: nothing would be behind it.

    Parameters
    ----------
    m : Module
    bus : CsrSignature interface, as the node sees it
    registers : RegisterMap
        Without its windows, which are the node's own affair.

    Raises
    ------
    KeyError
        A part asks for a register that is not declared.
    ValueError
        It asks for one twice, or for something else than is declared.
    """

    def __init__(self, m: Module, bus, registers: RegisterMap):
        self._m, self._bus = m, bus
        self._map = registers
        self._taken: set[str] = set()
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
        if registers.magic:
            for name in ("magic", "version"):
                self.status(name, Const(registers[name].reset, 32))
            if registers.shape:
                self.status("shape", *(Const(value, 32) for value in registers.shape.values()))

    def _take(self, name: str, *, table: bool | None = None, write: bool | None = None) -> Register:
        register = self._map[name]
        what = f"register {name} of {self._map.kind}"
        if name in self._taken:
            raise ValueError(f"{what} is taken twice")
        if table is not None and table != (register.count is not None):
            raise ValueError(f"{what} is declared as {'one register' if table else 'a table'}")
        if write is not None and write != (register.access != "ro"):
            raise ValueError(f"{what} is declared as {register.access}")
        self._taken.add(name)
        return register

    def register(self, name, signal=None):
        """Make a register that keeps what is written, and return its signal.

        The signal is ``signal``, with the declared value after reset, or a new one. A written value above the declared
        ``most`` is stored as ``most``.
        """
        register = self._take(name, table=False, write=True)
        return self._stored(register, 0, name, signal)

    def registers(self, name):
        """Make a table whose entries are registers, and return a signal for each entry."""
        register = self._take(name, table=True, write=True)
        return [self._stored(register, k, f"{name}{k}") for k in range(register.count)]

    def _stored(self, register, index, name, signal=None):
        if signal is None:
            signal = Signal(register.width, init=register.reset, name=name)
        elif len(signal) != register.width:
            raise ValueError(f"register {name} is declared with {register.width} bits, and {len(signal)} are behind it")
        addr = register.addr + index * register.words
        whole = self._bus.w_data if register.words == 1 else Cat(self._low, self._bus.w_data)
        with self._at(addr + register.words - 1):
            self._m.d.sync += signal.eq(whole)
            if register.most is not None:
                with self._m.If(whole > register.most):
                    self._m.d.sync += signal.eq(register.most)
        if register.access == "rw":
            self._read.append((self._bus.addr == addr, signal))
        return signal

    def status(self, name, *values):
        """Make a word that software reads, or a table of such words. The node implements what a write does
        (:meth:`written`)."""
        register = self._take(name, write=None if self._map[name].on_write else False)
        if len(values) != (register.count or 1):
            raise ValueError(f"register {name} is declared with {register.count or 1} entries, not {len(values)}")
        for k, value in enumerate(values):
            if register.width < 32 and len(Cat(value)) > register.width:
                raise ValueError(f"register {name} is declared with {register.width} bits, not {len(Cat(value))}")
            self._read.append((self._bus.addr == register.addr + k, value))

    @contextmanager
    def _at(self, addr):
        with self._m.If(self._bus.w_en), self._m.If(self._bus.addr == addr):
            yield

    @contextmanager
    def written(self, name):
        """Make a context (``with csr.written(name):``) for statements in the clock in which the register's last word
        is written."""
        register = self._map[name]
        if register.access == "wo" and register.on_write:
            self._taken.add(name)  # nothing is kept
        with self._at(register.addr + register.words - 1):
            yield

    def on_write(self, name, strobe):
        """Drive ``strobe`` high in the clock after a write of this register, when it has its new value."""
        with self._m.If(self._strobed):
            self._m.d.sync += strobe.eq(0)
        self._strobes.append(strobe)
        with self.written(name):
            self._m.d.sync += strobe.eq(1)

    def write_port(self, name):
        """Make a table that software writes, and return ``(index, data, en)`` for the write port of its memory."""
        register = self._take(name, table=True, write=True)
        bits = register.index_bits
        here = self._bus.w_en & self._in_table(register, bits)
        if register.words == 1:
            return self._bus.addr[:bits], self._bus.w_data[: register.width], here
        whole = Cat(self._low, self._bus.w_data)
        return self._bus.addr[1:bits], whole[: register.width], here & self._bus.addr[0]

    def read_back(self, name, read):
        """Let software read a table that it writes; ``read`` is as for :meth:`read_table`."""
        register = self._map[name]
        bits = max(1, register.index_bits)
        self._read.append((self._in_table(register, bits), read(self._addr[:bits])))

    def _in_table(self, register, bits):
        here = self._bus.addr[bits:] == register.addr >> bits
        return here if register.size == 1 << bits else here & (self._bus.addr[:bits] < register.size)

    def read_table(self, name, read):
        """Make a table that software reads; ``read(index)`` is called once and returns the word at ``index``."""
        self._take(name, table=True, write=False)
        self.read_back(name, read)

    def read_port(self, name, index, value):
        """Make a table that software reads through a part's ports: ``value`` is the word at the driven ``index``."""

        def read(at):
            self._m.d.comb += index.eq(at)
            return value

        self.read_table(name, read)

    def finish(self):
        """Build the read path, and the plain registers that no part has taken; call after the last register."""
        for register in self._map.registers:
            if register.name not in self._taken:
                if register.access == "ro" or register.words > 1 or register.on_write:
                    raise ValueError(f"nothing is behind register {register.name} of {self._map.kind}")
                (self.register if register.count is None else self.registers)(register.name)
        for signal in (self._reading, self._strobed, *self._strobes):
            rarely_changes(signal)
        m = self._m
        # Which register it is, is known with the address; they do not overlap.
        chosen = Signal(len(self._read), name="csr_chosen")
        data = [Mux(one, value, 0) for one, (_, value) in zip(chosen, self._read, strict=True)]
        with m.If(self._bus.r_en):
            m.d.sync += [chosen.eq(Cat(hit for hit, _ in self._read)), self._reading.eq(3)]
        with m.Elif(self._reading != 0):
            m.d.sync += self._reading.eq(self._reading - 1)
        with m.If(self._reading != 0):
            m.d.sync += self._bus.r_data.eq(_any_of(data))


def _any_of(values):
    """Return the OR of some words, as a tree."""
    values = values or [Const(0)]
    while len(values) > 1:
        values = [reduce(or_, values[k : k + 2]) for k in range(0, len(values), 2)]
    return values[0]
