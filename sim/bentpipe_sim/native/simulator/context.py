"""Contexts of testbenches and processes: Amaranth's contexts, and waiting for clocks without its triggers."""

# Amaranth's classes carry no types.
# pyright: reportAttributeAccessIssue=false, reportIncompatibleMethodOverride=false

from __future__ import annotations

import operator
from collections.abc import AsyncIterator, Callable, Generator
from typing import Any

from amaranth.hdl import Const, Shape, ShapeCastable, Value, ValueCastable, ValueLike

from bentpipe_hdl.amaranth_simulation import (
    AsyncProcess,
    BrokenTrigger,
    DomainReset,
    ProcessContext,
    TestbenchContext,
    TickTrigger,
)

__all__ = ["Process", "Waiter"]


class Waiter:
    """A process that waits for a clock's edge: for one, for every one, for the last of so many, for one at which a
    condition holds."""

    def __init__(self, tick: Tick, *, count: int = 1, condition: Any = None, is_lasting: bool = False):
        engine = tick._engine
        self.process, self.count, self.is_lasting = tick._process, count, is_lasting
        self.samples = [engine.reader(expr) for expr in tick._sampled]
        self.condition = None if condition is None else engine.reader(condition)
        reset = tick._domain.rst
        self.reset: Callable[[], int] | None = None if reset is None else engine.reader(reset)
        self.is_broken = self.was_reset = False
        self.is_repeating = count > 1 or condition is not None
        self.result: tuple[Any, ...] = ()

    def strike(self) -> bool:
        """Take the edge, before anything has changed. Return whether it continues to wait."""
        process = self.process
        if process.waits_on is not self:
            self.is_broken = True
            return False
        in_reset = self.reset is not None and bool(self.reset())
        if self.is_repeating and not in_reset:
            self.count -= 1
            if not self.condition() if self.condition else self.count:
                return True
        self.was_reset = in_reset
        self.result = (True, in_reset, *[read() for read in self.samples])
        process.waits_on = None
        process.runnable = True
        return self.is_lasting

    def __await__(self) -> Generator[Any, None, tuple[Any, ...]]:
        if self.is_broken:
            raise BrokenTrigger
        yield self
        return self.result

    def initial_eligible(self) -> bool:
        return False


class Tick(TickTrigger):
    """The edge of a domain's clock that the design does not drive; the domain has no asynchronous reset."""

    def sample(self, *exprs: ValueLike) -> Tick:
        sampled: Any = (*self._sampled, *exprs)
        return Tick(self._engine, self._process, domain=self._domain, sampled=sampled)

    def _waiter(self, **how: Any) -> Waiter:
        domain = self._domain
        waiter = Waiter(self, **how)
        self._engine.edge(domain.clk, int(domain.clk_edge == "pos")).waiters.append(waiter)
        return waiter

    def __await__(self) -> Generator[Any, None, tuple[Any, ...]]:
        waiter = self._waiter()
        yield waiter
        return waiter.result

    async def __aiter__(self) -> AsyncIterator[tuple[Any, ...]]:
        waiter = self._waiter(is_lasting=True)
        while True:
            yield await waiter

    async def until(self, condition: ValueLike) -> tuple[Any, ...]:
        if not isinstance(condition, ValueLike):
            raise TypeError(f"Condition must be a value-like object, not {condition!r}")
        if isinstance(condition, ValueCastable) and not isinstance(shape := condition.shape(), Shape):
            raise TypeError(f"The shape of a condition may only be `signed` or `unsigned`, not {shape!r}")
        return await self._repeated(condition=condition)

    async def repeat(self, count: int) -> tuple[Any, ...]:
        count = operator.index(count)
        if count <= 0:
            raise ValueError(f"Repeat count must be a positive integer, not {count!r}")
        return await self._repeated(count=count)

    async def _repeated(self, **how: Any) -> tuple[Any, ...]:
        waiter = self._waiter(**how)
        _, _, *values = await waiter
        if waiter.was_reset:
            raise DomainReset
        return tuple(values)


class _Ticking:
    """A context whose ``tick`` waits without a trigger where it can."""

    _engine: Any

    def tick(self, domain: Any = "sync", *, context: Any = None) -> TickTrigger:
        try:
            return Tick(self._engine, self._process, domain=self._ticks[domain, context])
        except KeyError:
            pass
        found = super().tick(domain, context=context)  # type: ignore[misc]
        domain_found = found._domain
        if (domain_found.async_reset and domain_found.rst is not None) or self._engine.is_driven(domain_found.clk):
            return found
        self._ticks[domain, context] = domain_found
        return Tick(self._engine, self._process, domain=domain_found)


class _ProcessContext(_Ticking, ProcessContext):
    def __init__(self, *args: Any):
        super().__init__(*args)
        self._ticks: dict[Any, Any] = {}


class _TestbenchContext(_Ticking, TestbenchContext):
    def __init__(self, *args: Any):
        super().__init__(*args)
        self._ticks: dict[Any, Any] = {}
        self._writers: dict[int, tuple[Callable[[Any], None], Any]] = {}

    def get(self, expr: Any) -> Any:
        try:
            return self._engine._readers[id(expr)][0]()
        except KeyError:
            return self._engine.reader(expr)()

    def set(self, expr: Any, value: Any) -> None:
        try:
            writer = self._writers[id(expr)][0]
        except KeyError:
            if len(self._writers) > 5000:  # expressions that are made anew for each use
                self._writers.clear()
            writer = self._writer(expr)
            self._writers[id(expr)] = writer, expr
        writer(value)

    def _writer(self, expr: Any) -> Callable[[Any], None]:
        value, engine = Value.cast(expr), self._engine
        slot = engine.plain_input(value)
        if slot is None or value.shape().signed:
            return lambda new: super(_TestbenchContext, self).set(expr, new)
        shape = expr.shape() if isinstance(expr, ValueCastable) else None
        converted = shape.const if isinstance(shape, ShapeCastable) else None
        mask, write, state = slot.mask, slot.write, engine.compiled

        def set_input(new: Any) -> None:
            if converted is not None:
                new = converted(new)
            if new.__class__ is not int:
                new = Const.cast(new).value
            new &= mask
            if engine.is_eager or slot.wakers or engine.state.pending:
                slot.update(new)
                engine.step_design()
            else:
                slot.curr = slot.next = new
                write(new)
                state.stale = True

        return set_input


class Process(AsyncProcess):
    """A testbench or a process."""

    def __init__(self, design: Any, engine: Any, constructor: Any, *, testbench: bool, background: bool):
        self.constructor, self.background = constructor, background
        self.context = (_TestbenchContext if testbench else _ProcessContext)(design, engine, self)
        self.reset()
