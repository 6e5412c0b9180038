"""A recorded node once more, in Amaranth's simulator, with all its signals."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bentpipe_hdl.amaranth_private import Simulated, nir
from bentpipe_hdl.ticks import ticks_to_ps

from ..errors import SimulationError
from ..tools import uncollected
from .recorder import Clock, Recorded
from .state import Layout
from .vcd import Vcd

__all__ = ["replay"]

_IDLE = {"i_valid": 0, "csr_w_en": 0, "csr_r_en": 0, "post_valid": 0, "passed": 0, "time_tick": 1}
"""Inputs in a tick in which a node has nothing to do."""


def replay(
    recorded: Recorded, name: str, file: Path, comment: str, progress: Callable[[float], None] = lambda share: None
) -> None:
    """Write what a node did as a VCD.

    Parameters
    ----------
    recorded : Recorded
    name : str
        What the top module is called.
    file : Path
        Written anew; what is left of it when this fails is of no use.
    comment : str
        For the head of the file.
    progress : callable, optional
        Told now and then how much is done, 0 to 1.

    Raises
    ------
    SimulationError
        The RTL does not do what was recorded: one of the engines is wrong.
    OSError
        The file cannot be written.
    """
    with uncollected():
        node = _Replay(recorded, name)
    with Vcd(file, node.bench, comment) as out:
        node.run(out, progress)


class _Replay:
    def __init__(self, recorded: Recorded, name: str):
        self.recorded, self.name = recorded, name
        self.bench = Simulated(recorded.shape.component(), name)
        self.layout = Layout(self.bench.netlist)
        self.layout.check(recorded.before)
        self.inputs, self.outputs = (
            [name for name, (value, is_) in self.bench.ports.items() if is_.name == way and len(value)]
            for way in ("Input", "Output")
        )
        self.edge = 0  # when the last clock was
        # Signals that are registers, whole or parts of them, and memories, by their cells.
        self.registers = [(s, value) for s, value in self.bench.netlist.signals.items() if self._is_kept(value)]
        cells = [index for index, cell in enumerate(self.bench.netlist.cells) if isinstance(cell, nir.Memory)]
        self.memories = {
            cell: memory
            for cell, (memory, _) in zip(cells, self.bench.memories, strict=True)
            if cell in self.layout.memories
        }

    def _is_kept(self, value: Any) -> bool:
        return all(net < 2 or (net.is_cell and net.cell in self.layout.registers) for net in value)

    def run(self, out: Vcd, progress: Callable[[float], None]) -> None:
        recorded, bench = self.recorded, self.bench
        rows = {memory: self.layout.rows(recorded.before, cell, memory.depth) for cell, memory in self.memories.items()}
        held = dict.fromkeys(self.inputs, 0) | _IDLE | {"time_now": max(recorded.begin - 1, 0)}
        bench.begin(self._registers(recorded.before), rows, {name: held[name] for name in self.inputs})
        self.edge = ticks_to_ps(max(recorded.begin - 1, 0))
        out.begin(self.edge, rows)
        waiting = deque(recorded.clocks)
        for tick in range(recorded.begin - 1, recorded.end + 1):
            now: list[Clock | None] = []
            while waiting and waiting[0].tick <= tick:
                now.append(waiting.popleft())
            if tick >= recorded.begin and not any(each and each.ports["time_tick"] for each in now):
                now.insert(0, None)  # nothing to do: a clock all the same
            later = 1 if tick < recorded.begin else 0  # that tick's own clock is over
            for k, each in enumerate(now):
                held |= {name: each.ports[name] for name in self.inputs} if each else _IDLE | {"time_now": tick}
                self._clock(out, (k + later) / (len(now) + later), tick, held)
                if each:
                    self._compare(each)
                    if each is recorded.clocks[-1]:
                        self._compare_state(tick)
            if tick % 64 == 0:
                progress((tick - recorded.begin) / (recorded.end - recorded.begin + 1))
        out.end(ticks_to_ps(recorded.end + 1))

    def _clock(self, out: Vcd, share: float, tick: int, held: dict[str, int]) -> None:
        """Simulate one clock of a tick; its edge is at ``share`` of the tick.

        Its inputs are valid from half-way between the last edge and this one.
        """
        begin, end = ticks_to_ps(tick), ticks_to_ps(tick + 1)
        edge = max(begin + int((end - begin) * share), self.edge + 2)
        self.bench.give({name: held[name] for name in self.inputs})
        out.put((self.edge + edge) // 2)
        self.bench.clock()
        out.put(edge)
        self.edge = edge

    def _registers(self, octets: bytes) -> Iterator[tuple[Any, int]]:
        known: dict[int, int] = {}
        for signal, value in self.registers:
            found = 0
            for bit, net in enumerate(value):
                if net < 2:
                    found |= int(net) << bit
                    continue
                if net.cell not in known:
                    known[net.cell] = self.layout.register(octets, net.cell)
                found |= (known[net.cell] >> net.bit & 1) << bit
            yield signal, found

    def _compare(self, clock: Clock) -> None:
        for name in self.outputs:
            here = self.bench.get(self.bench.ports[name][0])
            if here != clock.ports[name]:
                raise SimulationError(
                    f"{self.name}: at tick {clock.tick} its RTL's {name} is {here:#x}, in the run it was "
                    f"{clock.ports[name]:#x}: please report this"
                )

    def _compare_state(self, tick: int) -> None:
        for signal, value in self._registers(self.recorded.after):
            here = self.bench.get(signal)
            if here != value:
                raise SimulationError(
                    f"{self.name}: after tick {tick} its RTL's register {signal.name} is {here:#x}, in the run it was "
                    f"{value:#x}: please report this"
                )
        for cell, memory in self.memories.items():
            for row, value in enumerate(self.layout.rows(self.recorded.after, cell, memory.depth)):
                if self.bench.row(memory, row) != value:
                    raise SimulationError(
                        f"{self.name}: after tick {tick} row {row} of its RTL's memory {memory.name} is another than "
                        f"it was in the run: please report this"
                    )
