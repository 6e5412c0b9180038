"""The engine of :class:`.simulator.Simulator`: what Amaranth's own does in Python, on a compiled design.

A point in time has the same steps as there: what was waited for is sampled, processes run, clocks' edges take effect,
what processes have written is committed; when nothing is left to do, the testbenches that were woken run, one after the
other. What is different: combinational values are worked out when something asks for them, so there are no glitches.
"""

# Amaranth's classes carry no types.
# pyright: reportAttributeAccessIssue=false, reportIncompatibleMethodOverride=false, reportOptionalMemberAccess=false

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from amaranth.hdl import ShapeCastable, Signal, Value, ValueCastable

from bentpipe_hdl.amaranth_simulation import (
    AsyncProcess,
    BaseEngine,
    Design,
    DriverConflict,
    EngineState,
    MemoryState,
    SignalState,
    Slice,
    TriggerState,
    combinational,
    eval_assign,
    eval_value,
    memories,
    netlist_of,
    run_wakers,
    signals_of,
)

from ..netlist import NetlistError
from .context import Process, Waiter
from .model import FAST, State, model_of
from .monitors import Monitors
from .quick import testbench_context
from .single_clock import SingleClock
from .source import masks_of

__all__ = ["Engine"]

_MOST = 5000
"""Expressions that are remembered; benches may make them anew for each use."""


class _Input(SignalState):
    """A signal that nothing in the design drives."""

    __slots__ = ("address", "mask", "size", "state", "write")

    def __init__(self, signal: Signal, pending: set[Any], state: State, piece: list[Any]):
        self.state, self.write, self.mask = state, state.whole(piece), (1 << len(signal)) - 1
        self.address, self.size = state.address_of(piece)[0], state.size_of(piece)
        super().__init__(signal, pending)

    def commit(self) -> bool:
        if self.curr == self.next:
            return False
        run_wakers(self.wakers, self.curr, self.next)
        self.curr = self.next
        self.write(self.curr & self.mask)
        self.state.stale = True
        return True


class _Driven:
    """A signal of the design, read where it is."""

    def __init__(self, signal: Signal, engine: Engine, read: Callable[[], int], write: Callable[[int], None] | None):
        self.signal, self.engine, self._read, self._write = signal, engine, read, write
        self.wakers: list[Any] = []
        self.last = 0
        self._new: int | None = None

    @property
    def is_comb(self) -> bool:
        return self.signal in self.engine.combinational

    @property
    def curr(self) -> int:
        return self._read()

    @property
    def next(self) -> int:
        return self._read() if self._new is None else self._new

    def add_waker(self, waker: Any) -> None:
        if not self.wakers:
            self.last = self.curr
            self.engine.watched.append(self)
            self.engine.is_eager = True
        self.wakers.append(waker)

    def update(self, value: int, mask: int = ~0) -> None:
        if self._write is None:
            raise DriverConflict(f"signal {self.signal.name} is no register by itself, and can't be written")
        self._new = (self.next & ~mask) | (value & mask)
        self.engine.state.pending.add(self)

    def commit(self) -> bool:
        new, self._new = self._new, None
        if new is None or new == self.curr:
            return False
        assert self._write is not None
        self._write(new & ((1 << len(self.signal)) - 1))
        self.engine.compiled.stale = True
        return True

    def notice(self) -> bool:
        """Wake the processes that wait for a change, if there was one; return whether there was."""
        value = self.curr
        if value == self.last:
            return False
        last, self.last = self.last, value
        run_wakers(self.wakers, last, value)
        return True

    def reset(self) -> None:
        self._new = None
        self.last = self.curr


class _Rows(MemoryState):
    """A memory of the design."""

    __slots__ = ("parts", "state")

    def __init__(self, memory: Any, pending: set[Any], state: State, parts: list[tuple[int, int, int]]):
        self.state = state
        self.parts = [(low, width, *state.model.places[place]) for low, width, place in parts]
        super().__init__(memory, pending)

    def reset(self) -> None:
        self.write_queue = {}

    def read(self, addr: int) -> int:
        if addr not in range(self.memory.depth):
            return 0
        value = 0
        for low, _, octet, size, step in self.parts:
            at = octet + addr * step
            value |= int.from_bytes(self.state.buffer.octets[at : at + size], "little") << low
        width = self.shape.width
        return value - (1 << width) if self.shape.signed and value >> (width - 1) else value

    @property
    def data(self) -> Any:
        return _Data(self)

    def commit(self) -> bool:
        run_wakers(self.wakers)
        for addr, value in self.write_queue.items():
            for low, width, octet, size, step in self.parts:
                at, part = octet + addr * step, value >> low & ((1 << width) - 1)
                self.state.buffer.octets[at : at + size] = part.to_bytes(size, "little")
        self.write_queue.clear()
        self.state.stale = True
        return True


class _Data:
    def __init__(self, rows: _Rows):
        self.rows = rows

    def __getitem__(self, addr: int) -> int:
        return self.rows.read(addr)


class _EngineState(EngineState):
    """The engine that Amaranth's triggers and evaluation of expressions work on."""

    def __init__(self, engine: Engine):
        self.engine = engine
        super().__init__()

    def get_signal(self, signal: Signal) -> int:
        try:
            return self.signals[signal]
        except KeyError:
            slot = self.engine.slot_of(signal)
            self.signals[signal] = len(self.slots)
            self.slots.append(slot)
            return len(self.slots) - 1

    def get_memory(self, memory: Any) -> int:
        try:
            return self.memories[memory]
        except KeyError:
            slot = self.engine.rows_of(memory)
            self.memories[memory] = len(self.slots)
            self.slots.append(slot)
            return len(self.slots) - 1


class Edge:
    """An edge of a signal that is a clock or an asynchronous reset: the clocks that it drives, what waits for it."""

    def __init__(self, engine: Engine, polarity: int, mask: int):
        self.engine, self.polarity, self.mask = engine, polarity, mask
        self.waiters: list[Waiter] = []

    def waker(self, _curr: int, new: int) -> bool:
        if new == self.polarity:
            self.engine.mask |= self.mask
            if self.waiters:
                self.engine.struck.append(self)
        return True

    def strike(self) -> None:
        waiters, self.waiters = self.waiters, []
        self.waiters += [waiter for waiter in waiters if waiter.strike()]


class _Derived:
    """An edge of a value that the design works out."""

    def __init__(self, edge: Edge, read: Callable[[], int]):
        self.edge, self.read = edge, read
        self.last = 0

    def notice(self) -> bool:
        value = self.read()
        if value == self.last:
            return False
        self.last = value
        return self.edge.waker(1 - value, value) and value == self.edge.polarity


class _Clock:
    """A clock that :meth:`Simulator.add_clock` makes."""

    __slots__ = ("at", "falling", "half", "phase", "rising", "slot", "write")

    def __init__(self, slot: Any, phase: int, period: int):
        self.slot, self.phase, self.half = slot, phase, period // 2
        self.write = slot.write if isinstance(slot, _Input) else lambda level: None
        self.at = phase
        self.rising: Edge | None = None
        self.falling: Edge | None = None

    def toggle(self) -> None:
        self.slot.update(int(not self.slot.curr))
        self.at += self.half


class Engine(BaseEngine):
    """Amaranth's interface of engines; see :class:`.simulator.Simulator`. ``now`` is in femtoseconds.

    Members
    -------
    direct : SingleClock or None
        The clock that the last testbench advances itself when it waits for one edge.
    direct_waiter : Waiter or None
        What the last testbench waits for again and again (``async for``), instead, and may advance itself.
    living : int
        Testbenches that have not ended.
    """

    state: Any = None
    __slots__ = ("direct", "is_eager")  # :mod:`.quick` looks at them where they are

    direct_waiter: Waiter | None = None
    living = 0

    def __init__(self, design: Design, toplevel: Any = None, optimization: str = FAST):
        self.design = design
        netlist = netlist_of(design)
        self._numbers = {id(signal): k for k, signal in enumerate(netlist.signals)}
        self._signals = list(netlist.signals)
        self._memories = {memory: k for k, (memory, _) in enumerate(memories(design))}
        shown = {self._numbers[id(s)] for s in _shown(toplevel) if id(s) in self._numbers}
        model = model_of(netlist, shown, optimization)
        self.compiled = State(model)
        self.state = _EngineState(self)
        self.direct: SingleClock | None = None
        self.is_eager = False  # whatever changes is looked at at once
        self.watched: list[_Driven] = []
        self.struck: list[Edge] = []
        self.mask = 0  # clocks whose edge is now
        self._functions: dict[int, Callable[[], None]] = {}
        self.active: set[TriggerState] = set()
        self._clocks: list[_Clock] = []
        self._due: list[_Clock] = []
        self._processes: list[AsyncProcess] = []
        self._testbenches: list[AsyncProcess] = []
        self._recorders: list[Any] = []
        self.single: SingleClock | None = None
        self._combinational: Any = None
        self.readers: dict[int, Callable[[], Any]] = {}  # by the id() of an expression
        self._read: list[Any] = []  # as long as they are kept here, no other has the same id()
        self._begin_edges()
        self.monitors = Monitors(netlist, self.compiled)
        self._is_always_eager = self.is_eager = bool(self._derived or self.monitors.are_combinational)

    @property
    def now(self) -> int:
        return self.state.timeline.now

    @property
    def combinational(self) -> Any:
        if self._combinational is None:
            self._combinational = combinational(self.design)
        return self._combinational

    # Signals

    def slot_of(self, signal: Signal) -> Any:
        """Return a new slot for a signal's value."""
        number, model = self._numbers.get(id(signal)), self.compiled.model
        if number is None:
            return SignalState(signal, self.state.pending)
        pieces = model.map.values[number]
        inputs = [piece for piece in pieces if piece[0] == "place" and self._is_input(piece)]
        if len(pieces) == 1 and inputs and pieces[0][2:] == [0, len(signal)] and signal not in self.combinational:
            return _Input(signal, self.state.pending, self.compiled, pieces[0])
        read, writer = self.compiled.reader(pieces), self.compiled.writer(pieces)
        return _Driven(signal, self, _with_sign(signal, read), writer)

    def number(self, signal: Signal) -> int | None:
        """Return a signal's place among those of the netlist."""
        return self._numbers.get(id(signal))

    def number_of_memory(self, memory: Any) -> int:
        return self._memories[memory]

    def _is_input(self, piece: list[Any]) -> bool:
        return piece[1] < self.compiled.model.map.inputs

    def rows_of(self, memory: Any) -> Any:
        number = self._memories.get(memory)
        if number is None:
            return MemoryState(memory, self.state.pending)
        return _Rows(memory, self.state.pending, self.compiled, self.compiled.model.map.words[number])

    def reader(self, expr: Any) -> Callable[[], Any]:
        """Return a function that returns a value's present contents, in the form of its shape."""
        found = self.readers.get(id(expr))
        if found is None:
            if len(self.readers) > _MOST:
                self.readers.clear()
                self._read.clear()
            found = self.readers[id(expr)] = self._reader(expr)
            self._read.append(expr)
        return found

    def _reader(self, expr: Any) -> Callable[[], Any]:
        value, shape = Value.cast(expr), None
        if isinstance(expr, ValueCastable):
            shape = expr.shape()
        raw = self._raw(value)
        if isinstance(shape, ShapeCastable):
            return lambda: shape.from_bits(raw())
        return raw

    def _raw(self, value: Value) -> Callable[[], int]:
        state = self.state
        if isinstance(value, Signal):
            slot = state.slots[state.get_signal(value)]
            return slot._read if isinstance(slot, _Driven) else lambda: slot.curr
        if isinstance(value, Slice) and isinstance(value.value, Signal):
            read, low, mask = self._raw(value.value), value.start, (1 << len(value)) - 1
            return lambda: read() >> low & mask
        return lambda: eval_value(state, value)

    def get_value(self, expr: Any) -> int:
        return self._raw(Value.cast(expr))()

    def set_value(self, expr: Any, value: int) -> None:
        eval_assign(self.state, Value.cast(expr), value)

    def slot(self, signal: Signal) -> Any:
        """Return the slot that holds a signal's value; there is one for each signal."""
        return self.state.slots[self.state.get_signal(signal)]

    def plain_input(self, value: Any) -> SignalState | None:
        """Return a signal that a testbench may write at once: an input of the design, or one that is not in it."""
        slot = self.slot(value) if isinstance(value, Signal) else None
        return slot if isinstance(slot, SignalState) else None

    def writer_of(self, slot: SignalState) -> Callable[[int], None] | None:
        """Return the function that writes an input's value; None: the design has no such input."""
        return slot.write if isinstance(slot, _Input) else None

    # Clocks

    def _begin_edges(self) -> None:
        self._edges: dict[tuple[Any, int], Edge] = {}
        self._derived: list[_Derived] = []
        compiled = self.compiled
        of_input = {
            repr(pieces): self._signals[k]
            for k, pieces in enumerate(compiled.model.map.values)
            if len(pieces) == 1 and pieces[0][0] == "place" and self._is_input(pieces[0])
            if self._signals[k] not in self.combinational
        }
        pieces_of = {
            repr(value): value for clk, _, reset in compiled.model.map.clocks for value in (clk, reset) if value
        }
        for (text, polarity), mask in masks_of(compiled.model.map.clocks).items():
            signal = of_input.get(text)
            if signal is not None:
                self.edge(signal, polarity).mask = mask
            elif pieces_of[text][0][0] != "constant":
                edge = Edge(self, polarity, mask)
                self._derived.append(_Derived(edge, compiled.reader(pieces_of[text])))
        self._begin_derived()

    def _begin_derived(self) -> None:
        for derived in self._derived:
            derived.last = derived.read()

    def edge(self, signal: Signal, polarity: int) -> Edge:
        """Return the edge of a signal that the design does not drive."""
        number = self.state.get_signal(signal)
        found = self._edges.get((number, polarity))
        if found is None:
            found = self._edges[number, polarity] = Edge(self, polarity, 0)
            self.state.slots[number].add_waker(found.waker)
        return found

    def is_driven(self, signal: Signal) -> bool:
        return isinstance(self.state.slots[self.state.get_signal(signal)], _Driven)

    def add_clock_process(self, clock: Signal, *, phase: int, period: int) -> None:
        if self.is_driven(clock):
            raise DriverConflict("Clock signal is already driven by combinational logic")
        slot = self.state.slots[self.state.get_signal(clock)]
        made = _Clock(slot, phase, period)
        made.rising, made.falling = self.edge(clock, 1), self.edge(clock, 0)
        self._clocks.append(made)

    def _fire(self, mask: int) -> None:
        """Make the edge of these clocks."""
        if self.monitors.clocked:
            self.monitors.check(mask)
        self.fire_of(mask)()
        self.compiled.stale = True

    def fire_of(self, mask: int) -> Callable[[], None]:
        """Return the function for an edge of these clocks."""
        function = self._functions.get(mask)
        if function is None:
            function = self._functions[mask] = partial(self.compiled.model.edge(mask), self.compiled.buffer.pointer)
        return function

    def addresses_of(self, mask: int) -> tuple[int, int]:
        """Return the addresses of that function and of its argument."""
        function = ctypes.cast(self.compiled.model.edge(mask), ctypes.c_void_p)
        return function.value or 0, self.compiled.address.value or 0

    def clocks_of(self, mask: int) -> Callable[[int], None]:
        """Return the function for so many edges of these clocks."""
        return partial(self.compiled.model.clocks(mask), self.compiled.address)

    # Processes

    def add_async_process(self, simulator: Any, process: Any) -> None:
        self._processes.append(Process(self.design, self, process))
        self._is_always_eager = self.is_eager = True

    def add_async_testbench(self, simulator: Any, process: Any, *, background: bool) -> None:
        kind = testbench_context(Engine, _Clock)
        self._testbenches.append(Process(self.design, self, process, kind, background=background))
        self.living += 1

    def last_testbench(self) -> Any:
        """Return the first testbench that has not ended."""
        return next(testbench for testbench in self._testbenches if testbench.coroutine is not None)

    def add_trigger_combination(self, combination: Any, *, oneshot: bool) -> TriggerState:
        return TriggerState(self, combination, self.active, oneshot=oneshot)

    def is_critical(self) -> bool:
        for process in self._testbenches:
            if process.critical:
                return True
        return any(process.critical for process in self._processes)

    # Time

    def step_design(self) -> None:
        """Take effect of all that has changed, until nothing changes any more."""
        self.direct = self.direct_waiter = None
        while True:
            struck, self.struck = self.struck, []
            for edge in struck:
                edge.strike()
            active = list(self.active)
            for trigger in active:
                trigger.run()
            self.active.clear()
            ran = False
            for process in self._processes:
                if process.runnable:
                    process.runnable = False
                    process.run()
                    ran = True
            mask, self.mask = self.mask, 0
            if mask:
                self._fire(mask)
            changed = self._commit()
            if self.is_eager:
                changed = self._notice() or changed
            if not (changed or mask or ran or self.struck or self.active):
                return

    def _commit(self) -> bool:
        changed = False
        pending = self.state.pending
        if pending:
            for slot in [*pending]:
                changed = slot.commit() or changed
            pending.clear()
        return changed

    def _notice(self) -> bool:
        changed = False
        for derived in self._derived:
            changed = derived.notice() or changed
        if self.watched:
            for slot in [*self.watched]:
                changed = slot.notice() or changed
            self.watched = [slot for slot in self.watched if slot.wakers]
            self.is_eager = self._is_always_eager or bool(self.watched)
        if self.monitors.are_combinational and not self.mask:
            self.monitors.check_combinational()
        return changed

    def run_testbenches(self) -> None:
        again = True
        while again:
            again = False
            for testbench in self._testbenches:
                if testbench.runnable:
                    testbench.runnable = False
                    testbench.run()
                    again = True

    def find_next(self) -> None:
        """Move time on to what happens next."""
        wakers = self.state.timeline.wakers
        times = [clock.at for clock in self._clocks]
        if wakers:
            times.append(min(wakers.values()))
        if not times:
            return
        soonest = min(times)
        self._due = [clock for clock in self._clocks if clock.at == soonest]
        for waker in [waker for waker, at in wakers.items() if at == soonest]:
            waker()
            del wakers[waker]
        self.state.timeline.now = soonest

    def advance(self) -> bool:
        for clock in self._due:
            clock.toggle()
        self._due = []
        self.step_design()
        self.run_testbenches()
        for recorder in self._recorders:
            recorder.sample(self.now)
        self.find_next()
        return self.is_critical()

    def run(self, deadline: int | None = None) -> None:
        """Run until nothing critical is left, or until a time."""
        while deadline is None or self.now < deadline:
            is_busy = self.is_eager or self._recorders or self.state.timeline.wakers or self.active
            if not is_busy and (self._run_single(deadline) or self._run_clocks(deadline)):
                return
            if not self.advance() and deadline is None:
                return

    def _run_single(self, deadline: int | None) -> bool:
        """Do the same in the faster way that there is for a single clock, as far as it goes.

        Return whether there is nothing more to do.
        """
        if len(self._clocks) != 1 or not self._due or any(testbench.runnable for testbench in self._testbenches):
            return False
        if self.single is None:
            self.single = SingleClock(self, self._clocks[0])
        return self.single.is_usable and self.single.run(deadline)

    def _run_clocks(self, deadline: int | None) -> bool:
        """Do the same as repeated calls of :meth:`advance`, as long as only clocks change.

        Return whether there is nothing more to do.
        """
        state, wakers, pending = self.compiled, self.state.timeline.wakers, self.state.pending
        if any(testbench.runnable for testbench in self._testbenches) or not self._due:
            return False  # at the beginning
        while not (self.is_eager or wakers or pending or self.active or self.struck or self.mask):
            if any(len(clock.slot.wakers) > 2 for clock in self._due):
                return False  # something else looks at a clock
            mask = 0
            for clock in self._due:
                slot = clock.slot
                level = int(not slot.curr)
                slot.curr = slot.next = level
                clock.write(level)
                clock.at += clock.half
                edge = clock.rising if level else clock.falling
                assert edge is not None
                mask |= edge.mask
                if edge.waiters:
                    self.struck.append(edge)
            state.stale = True
            if self.struck:
                struck, self.struck = self.struck, []
                for edge in struck:
                    edge.strike()
            if mask:
                self._fire(mask)
            self.run_testbenches()
            if pending:
                self.step_design()
                self.run_testbenches()
            self.find_next()
            if self.now >= deadline if deadline is not None else not self.is_critical():
                return True
        return False

    def reset(self) -> None:
        self.compiled.begin()
        self.mask, self._due, self.living = 0, [], len(self._testbenches)
        self.struck.clear()
        self.active.clear()
        for edge in self._edges.values():
            edge.waiters.clear()
        self.state.reset()
        self._begin_derived()
        self.monitors.reset()
        for clock in self._clocks:
            clock.at = clock.phase
        for process in (*self._processes, *self._testbenches):
            process.reset()

    # Waves

    @contextmanager
    def write_vcd(self, *, vcd_file: Any, gtkw_file: Any, traces: Any, fs_per_delta: int) -> Iterator[None]:
        from .vcd import Recorder

        if gtkw_file is not None:
            raise NetlistError("the native simulator writes no GTKWave save files")
        if fs_per_delta:
            raise NetlistError("the native simulator has no delta cycles: fs_per_delta has to be 0")
        recorder = Recorder(self, vcd_file, traces)
        self._recorders.append(recorder)
        try:
            yield
        finally:
            self._recorders.remove(recorder)
            recorder.close(self.now)


def _with_sign(signal: Signal, read: Callable[[], int]) -> Callable[[], int]:
    if not signal.shape().signed or not len(signal):
        return read
    half = 1 << (len(signal) - 1)
    return lambda: (read() ^ half) - half


def _shown(toplevel: Any) -> Iterator[Signal]:
    """Yield the signals that a top component shows: those of its interface, or else those that are its attributes."""
    signature = getattr(toplevel, "signature", None)
    values = []
    if signature is not None:
        values = [value for _, _, value in signature.flatten(toplevel)]
    elif toplevel is not None:
        values = [*getattr(toplevel, "__dict__", {}).values()]
    for value in values:
        if isinstance(value, Value | ValueCastable):
            yield from signals_of(value)
