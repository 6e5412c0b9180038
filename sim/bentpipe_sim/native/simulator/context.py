"""Contexts of testbenches and processes: Amaranth's contexts, and waiting for clocks without its triggers."""

# Amaranth's classes carry no types.
# pyright: reportAttributeAccessIssue=false, reportIncompatibleMethodOverride=false

from __future__ import annotations

import operator
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

from amaranth.hdl import Const, Shape, ShapeCastable, Value, ValueCastable, ValueLike

from bentpipe_hdl.amaranth_simulation import (
    AsyncProcess,
    BrokenTrigger,
    DomainReset,
    ProcessContext,
    SignalState,
    TestbenchContext,
    TickTrigger,
)

if TYPE_CHECKING:
    from .single_clock import SingleClock

__all__ = ["HIT", "RESET", "BenchContext", "Process", "Tick", "Waiter"]

_MOST = 5000
"""Expressions that are remembered; benches may make them anew for each use."""
HIT, RESET = (True, False), (True, True)
"""Results of a tick without samples."""


class Waiter:
    """A process that waits for a clock's edge: for one, for every one, for the last of so many, for one at which a
    condition holds."""

    __slots__ = ("condition", "count", "is_broken", "is_ended", "is_lasting", "process", "result", "tick", "was_reset")

    result: tuple[Any, ...]

    def __init__(self, tick: Tick, count: int = 1, condition: Any = None, is_lasting: bool = False):
        self.tick, self.process, self.count, self.is_lasting = tick, tick._process, count, is_lasting
        self.condition = condition
        self.is_broken = self.is_ended = self.was_reset = False

    def strike(self) -> bool:
        """Take the edge, before anything has changed. Return whether it continues to wait."""
        process, reset = self.process, self.tick.reset
        if process.waits_on is not self:
            self.is_broken = True
            return False
        in_reset = reset is not None and bool(reset.curr)
        if not in_reset:
            if self.condition is not None:
                if not self.condition():
                    return True
            elif self.count > 1:
                self.count -= 1
                return True
        self.was_reset = in_reset
        if self.tick.reads:
            self.result = (True, in_reset, *[read() for read in self.tick.reads])
        else:
            self.result = RESET if in_reset else HIT
        process.waits_on = None
        process.runnable = True
        return self.is_lasting

    def idle_clocks(self) -> int:
        """Return at how many edges from now on it only counts."""
        reset = self.tick.reset
        if self.condition or self.is_lasting or self.process.waits_on is not self:
            return 0
        return self.count - 1 if reset is None or (isinstance(reset, SignalState) and not reset.curr) else 0

    def __await__(self) -> Generator[Any, None, tuple[Any, ...]]:
        if self.is_broken:
            if self.is_ended:
                raise StopAsyncIteration
            self.is_ended = True
            raise BrokenTrigger
        engine = self.tick._engine
        if engine.direct_waiter is self:
            found = self.tick.passed(engine.single)
            if found is not None:
                return found
        yield self
        return self.result

    def initial_eligible(self) -> bool:
        return False


class _Ticks:
    """All edges from the first wait on (``async for``)."""

    def __init__(self, tick: Tick):
        self._tick = tick
        self._waiter: Waiter | None = None

    def __aiter__(self) -> _Ticks:
        return self

    def __anext__(self) -> Waiter:
        if self._waiter is None:
            self._waiter = self._tick.waiter(is_lasting=True)
        return self._waiter

    async def aclose(self) -> None:
        if self._waiter is not None:
            self._waiter.is_broken = self._waiter.is_ended = True


class Tick(TickTrigger):
    """The edge of a domain's clock that the design does not drive; the domain has no asynchronous reset.

    Members
    -------
    edge : Edge
    reset : slot or None
        The domain's reset.
    reads : list of function
        Read what is sampled.
    """

    def __init__(self, engine: Any, process: Any, *, domain: Any, sampled: tuple[Any, ...] = ()):
        super().__init__(engine, process, domain=domain, sampled=sampled)
        self.edge = engine.edge(domain.clk, int(domain.clk_edge == "pos"))
        self.reset = None if domain.rst is None else engine.slot(domain.rst)
        self.reads = [engine.reader(expr) for expr in sampled]
        self._sampling: dict[tuple[int, ...], Tick] = {}

    def sample(self, *exprs: ValueLike) -> Tick:
        key = tuple(map(id, exprs))
        found = self._sampling.get(key)
        if found is None:
            if len(self._sampling) > _MOST:
                self._sampling.clear()
            sampled: Any = (*self._sampled, *exprs)  # as long as they are kept here, no other has the same id()
            found = self._sampling[key] = Tick(self._engine, self._process, domain=self._domain, sampled=sampled)
        return found

    def waiter(self, count: int = 1, condition: Any = None, is_lasting: bool = False) -> Waiter:
        """Return a waiter for this edge, from now on."""
        self._engine.direct = self._engine.direct_waiter = None
        waiter = Waiter(self, count, condition, is_lasting)
        self.edge.waiters.append(waiter)
        return waiter

    def passed(self, single: SingleClock) -> tuple[Any, ...] | None:
        """Make the next edge of the clock, within the testbench. Return what was sampled; None: it is too late."""
        clock = single.clock
        at = clock.at + single.half
        if at >= single.horizon:
            return None
        reset, values = self.reset, None
        in_reset = reset is not None and reset.curr
        if self.reads:
            values = [read() for read in self.reads]
        clock.at = at + single.half
        single.timeline.now = at
        single.fire()
        single.compiled.stale = True
        if values is None:
            return RESET if in_reset else HIT
        return (True, bool(in_reset), *values)

    def __await__(self) -> Generator[Any, None, tuple[Any, ...]]:
        direct = self._engine.direct
        if direct is not None and direct.edge is self.edge:
            found = self.passed(direct)
            if found is not None:
                return found
        waiter = self.waiter()
        yield waiter
        return waiter.result

    def __aiter__(self) -> _Ticks:
        return _Ticks(self)

    async def until(self, condition: ValueLike) -> tuple[Any, ...]:
        if not isinstance(condition, ValueLike):
            raise TypeError(f"Condition must be a value-like object, not {condition!r}")
        if isinstance(condition, ValueCastable) and not isinstance(shape := condition.shape(), Shape):
            raise TypeError(f"The shape of a condition may only be `signed` or `unsigned`, not {shape!r}")
        read, direct = self._engine.reader(condition), self._engine.direct
        if direct is not None and direct.edge is self.edge:
            while True:
                is_met = read()
                found = self.passed(direct)
                if found is None:
                    break
                if found[1]:
                    raise DomainReset
                if is_met:
                    return found[2:]
        return await self._repeated(condition=read)

    async def repeat(self, count: int) -> tuple[Any, ...]:
        count = operator.index(count)
        if count <= 0:
            raise ValueError(f"Repeat count must be a positive integer, not {count!r}")
        direct, reset = self._engine.direct, self.reset
        is_steady = reset is None or (isinstance(reset, SignalState) and not reset.curr)
        if is_steady and direct is not None and direct.edge is self.edge and direct.repeat(count):
            found = self.passed(direct)
            assert found is not None
            return found[2:]
        return await self._repeated(count=count)

    async def _repeated(self, **how: Any) -> tuple[Any, ...]:
        waiter = self.waiter(**how)
        _, _, *values = await waiter
        if waiter.was_reset:
            raise DomainReset
        return tuple(values)


class _Ticking:
    """A context whose ``tick`` waits without a trigger where it can."""

    _engine: Any
    _process: Any
    _ticks: dict[Any, Any]
    _kind = Tick

    def tick(self, domain: Any = "sync", *, context: Any = None) -> TickTrigger:
        try:
            return self._ticks[domain if context is None else (domain, context)]
        except KeyError:
            pass
        found = super().tick(domain, context=context)  # type: ignore[misc]
        domain_found = found._domain
        if (domain_found.async_reset and domain_found.rst is not None) or self._engine.is_driven(domain_found.clk):
            return found
        made = self._kind(self._engine, self._process, domain=domain_found)
        self._ticks[domain if context is None else (domain, context)] = made
        return made


class _ProcessContext(_Ticking, ProcessContext):
    def __init__(self, *args: Any):
        super().__init__(*args)
        self._ticks: dict[Any, Any] = {}


class BenchContext(_Ticking, TestbenchContext):
    """The context of a testbench."""

    def __init__(self, *args: Any):
        super().__init__(*args)
        self._ticks: dict[Any, Any] = {}
        self._readers = self._engine.readers
        self._writers: dict[int, Callable[[Any], None]] = {}
        self._written: list[Any] = []  # as long as they are kept here, no other has the same id()

    def get(self, expr: Any) -> Any:
        try:
            read = self._readers[id(expr)]
        except KeyError:
            read = self._engine.reader(expr)
        return read()

    def set(self, expr: Any, value: Any) -> None:
        try:
            write = self._writers[id(expr)]
        except KeyError:
            if len(self._writers) > _MOST:
                self._writers.clear()
                self._written.clear()
            write = self.writer(expr)
            self._writers[id(expr)] = write
            self._written.append(expr)
        write(value)

    def writer(self, expr: Any) -> Callable[[Any], None]:
        """Return the function that sets an expression."""
        value, engine = Value.cast(expr), self._engine
        slot = engine.plain_input(value)
        shape = expr.shape() if isinstance(expr, ValueCastable) else None
        converted = shape.const if isinstance(shape, ShapeCastable) else None
        if slot is None:
            return lambda new: super(BenchContext, self).set(expr, new)
        mask, write, state, compiled = (1 << len(value)) - 1, engine.writer_of(slot), engine.state, engine.compiled
        sign = 1 << (len(value) - 1) if value.shape().signed and len(value) else 0

        def set_input(new: Any) -> None:
            if converted is not None:
                new = converted(new)
            if new.__class__ is not int:
                new = Const.cast(new).value
            new &= mask
            if sign:
                new = (new ^ sign) - sign
            if engine.is_eager or slot.wakers or state.pending:
                slot.update(new)
                engine.step_design()
            elif new != slot.curr:
                slot.curr = slot.next = new
                if write is not None:
                    write(new & mask)
                    compiled.stale = True

        return set_input


class Process(AsyncProcess):
    """A testbench or a process."""

    def __init__(
        self,
        design: Any,
        engine: Any,
        constructor: Any,
        kind: type[BenchContext] | None = None,
        *,
        background: bool = True,
    ):
        """Make a testbench whose context is of this ``kind``, or a process."""
        self.constructor, self.background, self._engine = constructor, background, engine
        self._is_testbench = kind is not None
        self.context = (kind or _ProcessContext)(design, engine, self)
        self.reset()

    def run(self) -> None:
        if self.first_await:
            super().run()
        else:
            try:
                self.waits_on = self.coroutine.send(None)
            except StopIteration:
                self.critical, self.waits_on, self.coroutine = False, None, None
        if self.coroutine is None and self._is_testbench:
            self._engine.living -= 1
