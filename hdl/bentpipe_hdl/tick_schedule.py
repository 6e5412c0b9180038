"""The schedule inside a tick, written once for both datapath widths.

The control of a node is written once: a chain of look-ups, a decision, and a commit that writes every register and
memory. On the wide datapath a tick is one clock: look-ups are combinational reads, and the commit is the tick's clock
edge. On the narrow datapath a tick has 13 clocks or more: inputs are held in registers, memories are read through
registers, the chain settles clock by clock, and one strobe late in the tick commits. A tick's work ends before the next
tick starts, so nothing needs forwarding, and both widths take the same decisions.

**The clock from which a value is valid** is computed. A register that is written in commits is valid from clock 0 of a
tick. A value made of several others is valid from the last of their clocks on. :meth:`TickSchedule.pipe` adds a clock,
and a read of a memory names the clock that takes its address. :meth:`TickSchedule.checked` computes this for a whole
node, and the last clock of each value that the commit replaces. Elaboration raises an error if a value is used before
it is valid or after the commit that replaces it, or if one port of a memory is read twice in a clock.
"""

from contextlib import nullcontext

from amaranth.hdl import Cat, Fragment, Mux, Signal, Value
from amaranth.lib import memory

from .cell import CLOCKS_A_TICK, WIDE
from .clocks import ClockError, Clocks

__all__ = ["ClockError", "Store", "TickSchedule"]

FACTOR_BITS = 18
"""Width of the factors of a device's multiplier."""

SHALLOW = 32
"""Rows up to which synthesis chooses between memories of LUTs and block memories by their cost. An ECP5 has one block
memory for 400 LUTs; networks on a board run out of block memories first."""


class Store:
    """A memory with combinational reads on the wide datapath and registered ones on the narrow.

    Up to two writers may write in the same tick, to different addresses. On the wide datapath each has a port;
    on the narrow one the second write is held until the first writer leaves the port free.
    """

    def __init__(self, slot, name, shape, depth, init, block, apart, whole, bounded):
        self._slot, self._m, self._name = slot, slot.m, name
        attrs = ({"ram_style": "block"} if block and depth > SHALLOW else {}) | ({"no_rw_check": 1} if apart else {})
        attrs |= {"bentpipe_whole": 1} if whole else {}
        attrs |= {"bentpipe_bounded": 1} if bounded else {}
        self._memory = memory.Memory(shape=shape, depth=depth, init=init, attrs=attrs)
        self._shape, self._apart = shape, apart
        self._port = self._busy = None
        self._shared, self._reads = None, {}
        slot.m.submodules[name] = self._memory

    def read(self, addr, *, at=None, to=None):
        """Return the data at ``addr``: in the same clock (wide), or later (narrow).

        Parameters
        ----------
        addr : Value
        at : int, optional
            Narrow: the clock of the tick in which the address is taken. The data is valid from the second clock after
            it to the end of the tick. Reads with ``at`` share a port, each in a clock of its own. Without ``at`` the
            read has a port to itself and follows its address, a clock later.
        to : str
            With ``at``: the name of the register that holds the data.

        Raises
        ------
        ClockError
            Another read has the port in that clock.
        """
        m, slot = self._m, self._slot
        if slot.wide or at is None:
            to_addr, data = self._read_port()
            m.d.comb += to_addr.eq(addr)
            return data
        if at in self._reads:
            raise ClockError(f"clock {at}: {self._name} is read for {self._reads[at]} and for {to}")
        self._reads[at] = to
        if self._shared is None:
            self._shared = self._read_port()
        to_addr, data = self._shared
        held = Signal(self._shape, name=to)
        with m.If(slot.clock(at)):
            m.d.comb += to_addr.eq(addr)
        with m.If(slot.clock(at + 1)):
            m.d.sync += held.eq(data)
        slot.clocks.needs(addr, at, f"the address at which {self._name} is read for {to}")
        slot.clocks.holds(held, at + 2)
        return held

    def _read_port(self):
        """Return ``(addr, data)`` of another port."""
        if self._slot.wide or not self._apart:
            port = self._memory.read_port(domain="comb" if self._slot.wide else "sync")
            return port.addr, port.data
        # Amaranth's registered port has the old data in such a clock, which costs a multiplexer behind a block memory
        port = self._memory.read_port(domain="comb")
        data = Signal(self._shape, name=f"{self._name}_data", reset_less=True)
        self._m.d.sync += data.eq(port.data)
        self._slot.clocks.follows(data)
        return port.addr, data

    def peek(self, addr):
        """Return the data at ``addr`` for a user outside the tick's chain, such as the reader of a register.

        The read may be at any time, through a port of its own: in the same clock (wide), or the next one (narrow).
        """
        data = self.read(addr)
        self._slot.clocks.holds(data, 0)
        return data

    def write(self, addr, value, en, clear=None, others=()):
        """Write ``value`` to ``addr`` at the end of a clock in which ``en`` is high.

        ``clear`` is ``(clearing, addr, value)``: another write that goes through the same port, at other times; so are
        ``others``.
        """
        others = [*others, *([] if clear is None else [clear])]
        m = self._m
        if self._slot.wide or self._port is None:
            port = self._memory.write_port()
            with m.If(en):
                m.d.comb += [port.addr.eq(addr), port.data.eq(value), port.en.eq(1)]
            for other, at, data in others:
                with m.If(other):
                    m.d.comb += [port.addr.eq(at), port.data.eq(data), port.en.eq(1)]
            self._port = port
            self._busy = en if not others else Cat(en, (other for other, _, _ in others)).any()
            self._slot.clocks.writes(en, 0, self._name, self._reads, self._apart)
        else:
            self._slot.clocks.writes(en, 1, self._name, self._reads, self._apart)
            held_en = Signal(name=f"{self._name}_held_en")
            held_addr = Signal.like(self._port.addr, name=f"{self._name}_held_addr")
            held_data = Signal(self._shape, name=f"{self._name}_held_data")
            with m.If(en):
                m.d.sync += [held_en.eq(1), held_addr.eq(addr), held_data.eq(value)]
            with m.Elif(~self._busy):
                m.d.sync += held_en.eq(0)
            with m.If(held_en & ~self._busy):
                m.d.comb += [
                    self._port.addr.eq(held_addr),
                    self._port.data.eq(held_data),
                    self._port.en.eq(1),
                ]


class TickSchedule:
    """The clocks of a tick.

    Parameters
    ----------
    m : Module
    time : TimeSignature interface
    width : int
        Datapath width.
    commit : int
        The clock of a tick (counted from 0 at the ``tick`` strobe) at which the narrow datapath commits.

    Attributes
    ----------
    wide : bool
    commit : Value
        High in the clock whose edge ends the tick's decision.
    m : Module
        Where what it is asked for is built.
    """

    def __init__(self, m, time, width, commit=9):
        self.m = m
        self.wide = width == WIDE
        self.clocks = Clocks()
        if self.wide:
            self.commit = time.tick
        else:
            # One is high in each clock of a tick, and none in the rest of a longer one
            self._strobes = [time.tick, *(Signal(name=f"clock{k}") for k in range(1, CLOCKS_A_TICK))]
            for k, strobe in enumerate(self._strobes):
                self.clocks.strobe(strobe, k)
                if k:
                    m.d.sync += strobe.eq(self._strobes[k - 1])
            self._commit, self.commit = commit, self.clock(commit)
            self.clocks.commit = commit

    def clock(self, k):
        """Return a strobe that is high in clock ``k`` of a tick, 0 to 12. Narrow only."""
        return self._strobes[k]

    def with_commit(self, *strobes):
        """Declare strobes that are high in the commit's clock alone: values that they enable are taken then."""
        if not self.wide:
            for strobe in strobes:
                self.clocks.strobe(strobe, self._commit)

    def later(self, strobe, name):
        """Return a ``strobe`` of the commit a clock later (narrow), or the strobe itself (wide)."""
        later = self.pipe(strobe, name)
        if not self.wide:
            self.clocks.strobe(later, self._commit + 1)
        return later

    def within(self, m):
        """Return the same slot for a part of the node that builds its own module."""
        part = object.__new__(TickSchedule)
        part.__dict__.update(self.__dict__, m=m)
        return part

    def checked(self, m):
        """Return the node's module, for its ``elaborate``, after the check that every value is valid when it is used.

        Raises
        ------
        ClockError
            One is used before it is there, or after the commit has replaced it.
        """
        if self.wide:
            return m
        fragment = Fragment.get(m, None)
        self.clocks.check(fragment)
        return fragment

    def store(self, name, shape, depth, init=(), *, block=False, apart=False, whole=False, bounded=False):
        """Make a :class:`Store`.

        Parameters
        ----------
        name : str
        shape : ShapeLike
        depth : int
            Rows.
        init : sequence
        block : bool
            It is in block memories if it has more than :data:`SHALLOW` rows.
        apart : bool
            No address is written in a clock in which it is read. Elaboration raises an error if the clocks of the reads
            differ from that.
        whole : bool
            Its rows mostly move as a whole; the native engine does not split them.
        bounded : bool
            No row beyond the last one is ever written (proved in ``tb/formal``), so the native engine need not compare.
        """
        return Store(self, name, shape, depth, init, block, apart, whole, bounded)

    def hold(self, value, strobe, name, since=2):
        """Return ``value`` as in the last clock with ``strobe``, from the next clock on (narrow), or ``value`` (wide).

        ``since`` is the clock from which it is valid: 2 for a value that arrives with a cell's header.
        """
        if self.wide:
            return value
        held = Signal.like(value, name=name)
        with self.m.If(strobe):
            self.m.d.sync += held.eq(value)
        self.clocks.holds(held, since)
        return held

    def gate_when(self, strobe):
        """Make a context (``with slot.gate_when(strobe):``) whose assigned values are used only while ``strobe`` is
        high.

        On the wide datapath they are 0 otherwise, so that a clock without the strobe does none of their work. On the
        narrow one they are always assigned, as their stages need the clocks before the strobe.
        """
        return self.m.If(strobe) if self.wide else nullcontext()

    def time_share(self, name, values):
        """Share logic between several values, one after the other (narrow).

        ``values`` are by clock: each is selected in its clock, the first also in all other clocks. The result for each
        has to be kept in time (:meth:`keep`).
        """
        shared = Signal.like(next(iter(values.values())), name=name)
        for k, (clock, value) in enumerate(values.items()):
            with self.m.If(self.clock(clock)) if k else nullcontext():
                self.m.d.comb += shared.eq(value)
            self.clocks.needs(value, clock, f"{name} in its turn")
        self.clocks.holds(shared, 0)
        return shared

    def keep(self, value, at, name):
        """Return ``value`` as it is in clock ``at``, held to the end of the tick (narrow)."""
        kept = Signal.like(value, name=name)
        with self.m.If(self.clock(at)):
            self.m.d.sync += kept.eq(value)
        self.clocks.needs(value, at, f"what is kept as {name}")
        self.clocks.holds(kept, at + 1)
        return kept

    def product(self, a, b, name, *, plus=None, since=None):
        """Return ``a * b + plus``, of which ``b`` is unsigned.

        Narrow: it is valid a clock later, as a sum of products that are each made by a multiplier of the device and
        held. The sum often needs to be settled itself. ``since`` is as for :meth:`pipe`, for the held products.
        """
        if self.wide:
            return a * b if plus is None else a * b + plus
        a, b = Value.cast(a), Value.cast(b)
        if a.shape().signed:
            plus = (0 if plus is None else plus) - (Mux(a[-1], b, 0) << len(a) - 1)
            a = a[:-1]
        rows = [] if plus is None else [self.pipe(plus, f"{name}_plus", since)]
        for i in range(0, len(a), FACTOR_BITS):
            for k in range(0, len(b), FACTOR_BITS):
                piece = a[i : i + FACTOR_BITS] * b[k : k + FACTOR_BITS]
                rows.append(self.pipe(piece, f"{name}_piece{i}_{k}", since) << i + k)
        while len(rows) > 1:  # of adders as few as can be behind each other
            rows = [*(x + y for x, y in zip(rows[::2], rows[1::2], strict=False)), *rows[len(rows) & ~1 :]]
        return rows[0]

    def pipe(self, value, name, since=None):
        """Return the value a pipeline stage later: from a register on the narrow datapath, unchanged on the wide one.

        ``since`` is the clock from which the value is valid, if that is earlier than computed. It is 0 for values that
        only commits write.
        """
        if self.wide:
            return value
        staged = Signal.like(value, name=name)
        self.m.d.sync += staged.eq(value)
        self.clocks.follows(staged)
        if since is not None:
            self.clocks.holds(staged, since)
        return staged
