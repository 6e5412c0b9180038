"""The self-test of a board: its line, what it says that it is, registers, memories, time, and each node's traffic.

A check begins with parts that are known to be good, and adds one: so what it finds wrong has that part's name.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from bentpipe_hdl.kinds import registers_of
from bentpipe_hdl.link.control import LinkSettings
from bentpipe_hdl.registers import Register, RegisterMap
from bentpipe_hdl.switch.control import SwitchPort, SwitchSettings
from bentpipe_hdl.ticks import ticks_to_ps
from bentpipe_sim.board.board import Board, Ended
from bentpipe_sim.board.client import Client, Items
from bentpipe_sim.board.gateware import outdated
from bentpipe_sim.board.lockstep import LockstepNetwork
from bentpipe_sim.board.pipe import Pipe
from bentpipe_sim.board.selftest_pattern import PatternTest
from bentpipe_sim.board.windows import HOST_PORT, WINDOW_BITS, Plan, board_registers, host_port_registers, ports_of
from bentpipe_sim.build import Shape
from bentpipe_sim.errors import SimulationError
from bentpipe_sim.interface import PduStatus
from bentpipe_sim.nodes import Nic, Node

__all__ = ["Check", "SelfTest"]

_ECHOES: Final = 32
_LIST_S: Final = 20.0
"""No list of the test takes longer."""
_STRETCH: Final = 1000
"""Ticks that are run for the clock."""
_ONES: Final = 0xFFFFFFFF
_PATTERNS: Final = (0, _ONES, 0x55555555, 0xAAAAAAAA)
_BACKGROUNDS: Final = (0, 0x55555555)
"""Backgrounds of the March test; each is overwritten with its complement."""
_STEP_PS: Final = 5 * 10**9
_STEPS: Final = 40
_ENDS: Final = range(PduStatus.OK, PduStatus.TIMEOUT + 1)
"""Statuses of a received PDU."""
_RARE_BER: Final = 2e-5
"""Bit error rate at which some PDUs have errors, and some do not."""
_LONG_CELLS: Final = 400
"""Cells on their way in a wire in memory; both of its ends hold fewer than ten."""
_CELL_TICKS: Final = 16
"""Ticks from cell to cell, at most."""
_RECORD_OCTETS, _ROW_OCTETS = 64, 8 * 2048
"""Octets of a cell in memory, and of the rows of one number in all banks."""
_SLOW_BPS: Final = 20_000_000
"""Rate of the port at which a switch's buffer fills."""


@dataclass(frozen=True)
class Check:
    """The result of the check of a part.

    Members
    -------
    part, what : str
    detail : str
        How much was tested, or the fault, or the reason why it was left out.
    passed : bool or None
        None: left out.
    """

    part: str
    what: str
    detail: str
    passed: bool | None = True


class _Fault(Exception):
    """A check has found something."""


class _Held:
    """A line that stays open when a session ends."""

    def __init__(self, pipe: Pipe) -> None:
        self.now, self.send, self.receive = pipe.now, pipe.send, pipe.receive

    def close(self) -> None:
        """Do nothing: the next session uses the line."""


class _Alone(LockstepNetwork):
    """A network of nodes that have their windows. ``ended`` are the PDUs that ended on the board."""

    def __init__(self, attach: Callable[[Plan], Board], windows: Sequence[int]) -> None:
        super().__init__(attach)
        self._windows = windows
        self.ended: list[Ended] = []

    def _compare(self, ended: Ended) -> None:
        super()._compare(ended)
        self.ended.append(ended)

    def _placed(self, plan: Plan, board: Board) -> dict[int, int]:
        for index, window in enumerate(self._windows):
            if plan.nodes[index] != board.plan.nodes[window - 1]:
                raise _LeftOutError(f"{board.plan.nodes[window - 1]} is of a shape that this test does not make")
            wires = zip(plan.wires_of(index), board.plan.wires_of(window - 1), strict=True)
            if any(need and not has for need, has in wires):
                raise _LeftOutError("no wire is behind it")
        return dict(enumerate(self._windows))


class _LeftOutError(SimulationError):
    """There is no test for this."""


class SelfTest:
    """All checks of a board.

    Parameters
    ----------
    pipe : Pipe
        It stays open.
    patience : float
        Of :class:`~bentpipe_sim.board.client.Client`.
    expected : Plan, optional
        What the board should be.
    """

    def __init__(self, pipe: Pipe, patience: float = 1.0, expected: Plan | None = None) -> None:
        self._pipe, self._patience, self._expected = pipe, patience, expected
        self._known: Plan | None = None
        self._good: dict[str, list[int]] = {}  # windows of nodes that carry traffic as they should, by kind

    @property
    def plan(self) -> Plan | None:
        """The board's description, if it could be read."""
        return self._known

    def run(self) -> Iterator[Check]:
        """Yield the checks, one after the other; a failed check on which all later ones depend is the last."""
        yield (line := self._check("line", "frames", self._line))
        if not line.passed:
            return
        yield (known := self._check("board", "identification", self._identification))
        if not known.passed:
            return
        if self._expected is not None:
            yield (build := self._check("board", "build", self._build))
            if not build.passed:
                return
        plan = self._board.plan
        nodes = list(enumerate(plan.nodes, 1))
        for window, shape in list(nodes):
            done = self._check(_name(window, shape), "identification", lambda w=window, s=shape: self._node(w, s))
            yield done
            if not done.passed:  # there is nothing to test it by
                nodes.remove((window, shape))
        yield self._check("board", "registers", lambda: self._registers(0, board_registers(plan)))
        for window, shape in nodes:
            yield self._check(
                _name(window, shape), "registers", lambda w=window, s=shape: self._registers(w, _map_of(s))
            )
        for window, shape in nodes:
            if shape.kind == "nic":
                yield self._check(f"host port of {_name(window, shape)}", "memory tx", lambda w=window: self._march(w))
        yield (clock := self._check("clock", "ticks", self._clock))
        if plan.ddr3:
            for what, check in (("start", self._memory_start), ("lines", self._memory_lines)):
                yield (memory := self._check("DDR3 memory", what, check))
                if not memory.passed:
                    return  # no network is started without it
        if clock.passed:
            yield from self._traffic(nodes)
            yield from self._long_wires(nodes)

    def _long_wires(self, nodes: Sequence[tuple[int, Shape]]) -> Iterator[Check]:
        """Check the wires in the board's memory, behind interfaces and links."""
        plan = self._board.plan
        for window, shape in nodes:
            if shape.kind in ("nic", "link") and plan.bases[window - 1] in plan.sdram:
                yield self._check(_name(window, shape), "long wire", lambda w=window, s=shape: self._long_wire(w, s))

    def _traffic(self, nodes: Sequence[tuple[int, Shape]]) -> Iterator[Check]:
        checks = {"nic": self._nic, "link": self._link, "switch": self._switch}
        for kind in checks:
            for window, shape in nodes:
                if shape.kind != kind:
                    continue
                for port in range(ports_of(shape)):
                    what = f"traffic, port {port}" if kind == "switch" else "traffic"
                    done = self._check(
                        _name(window, shape), what, lambda w=window, s=shape, p=port: checks[s.kind](w, s, p)
                    )
                    yield done
                    if done.passed:
                        self._good.setdefault(kind, []).append(window)
                if kind == "link":
                    yield self._check(_name(window, shape), "bit errors", lambda w=window, s=shape: self._errors(w, s))
                if self._board.plan.patterns and window in self._good.get(kind, ()):
                    yield from self._patterns(kind, window, shape)
        for window, shape in nodes:
            if shape.kind not in checks:
                yield Check(_name(window, shape), "traffic", f"there is no test of {shape.kind}s", None)

    def _check(self, part: str, what: str, check: Callable[[], str]) -> Check:
        try:
            return Check(part, what, check())
        except _LeftOutError as why:
            return Check(part, what, str(why), None)
        except (_Fault, SimulationError) as fault:
            return Check(part, what, str(fault), False)

    def _client(self) -> Client:
        client = Client(_Held(self._pipe), patience=self._patience)
        client.most_s = _LIST_S
        return client

    # Line, board, registers

    def _line(self) -> str:
        client = self._client()
        self._client_of_board = client
        magic = board_registers(Plan((), ()))["magic"]
        found = set()
        for _ in range(_ECHOES):
            items = Items()
            items.read(magic.addr)
            found.add(client.do(items)[0][0])
        if len(found) > 1:
            raise _Fault(f"one register is read as {', '.join(f'{word:#010x}' for word in sorted(found))}")
        if client.repeats * 10 > _ECHOES:
            raise _Fault(f"{client.repeats} frames had to be sent again for {_ECHOES} answers: noise, or a bad cable")
        return f"{_ECHOES} answers"

    def _identification(self) -> str:
        self._board = Board(self._client(), starts_memory=False)
        self._known = self._board.plan
        return f"{len(self._known.nodes)} nodes"

    def _build(self) -> str:
        has, wanted = self._board.plan, self._expected
        assert wanted is not None
        if has != replace(wanted, patterns=has.patterns, sources=has.sources):
            raise _Fault(f"the board has {_listed(has.nodes)}; this is for {_listed(wanted.nodes)}: flash or rebuild")
        old = outdated(has.gateware)
        return f"as expected, but it {old}" if old else "as expected"

    def _node(self, window: int, shape: Shape) -> str:
        registers, bus = _map_of(shape), self._board.window(window)
        for name in ("magic", "version"):
            found, wanted = bus.read(registers[name].addr), registers[name].reset
            if found != wanted:
                raise _Fault(f"{name} in window {window} is {found:#010x}, not {wanted:#010x}: it is another node")
        first = registers["shape"].addr
        for k, (name, wanted) in enumerate(registers.shape.items()):
            if (found := bus.read(first + k)) != wanted:
                raise _Fault(f"it is built with {name} {found}, not {wanted}")
        return f"window {window}"

    def _registers(self, window: int, registers: RegisterMap) -> str:
        """Write each pattern to every register that can be read and written, then different values to all at once."""
        base = window << WINDOW_BITS
        words = [
            (register, register.addr + k)
            for register in registers.registers
            if register.access == "rw" and not register.on_write and register.size <= 256
            for k in range(register.size)
        ]
        numbered = [(addr * 0x9E3779B1) & _ONES for _, addr in words]
        try:
            for values in (*([pattern] * len(words) for pattern in _PATTERNS), numbered):
                self._written_and_read(base, words, values)
        finally:
            for register, addr in words:
                self._board.write(base | addr, [register.reset or 0])
        return f"{len(words)} words, {len(_PATTERNS) + 1} patterns"

    def _written_and_read(self, base: int, words: Sequence[tuple[Register, int]], values: Sequence[int]) -> None:
        board = self._board
        wanted = [_taken(register, value) for (register, _), value in zip(words, values, strict=True)]
        for (_, addr), value in zip(words, wanted, strict=True):
            board.write(base | addr, [value])
        found = board.read([base | addr for _, addr in words])
        for (register, addr), value, word in zip(words, wanted, found, strict=True):
            if value != word:
                what = register.name + (f"[{addr - register.addr}]" if register.count is not None else "")
                raise _Fault(f"{what}: {_bits(value, word)}")

    # Memories

    def _march(self, window: int) -> str:
        """Test the words of PDUs to be sent by March C-; return a line with what was tested.

        The march is: up write; up read, write, twice; down likewise; read.
        """
        board = self._board
        register = host_port_registers(board.plan)["tx"]
        base, count = HOST_PORT + window << WINDOW_BITS | register.addr, board.plan.tx_words
        for zero in _BACKGROUNDS:
            one = zero ^ _ONES
            for down, read, write in (
                (False, None, zero), (False, zero, one), (False, one, zero), (True, zero, one), (True, one, zero),
                (True, zero, None),
            ):  # fmt: skip
                self._element(base, count, down, read, write)
        return f"{count} words, March C-, {len(_BACKGROUNDS)} backgrounds"

    def _element(self, base: int, count: int, down: bool, read: int | None, write: int | None) -> None:
        order = range(count - 1, -1, -1) if down else range(count)
        client, most = self._board.client, self._board.plan.frame_words - 16
        items, asked = Items(), list[int]()

        def done() -> None:
            for place, (word,) in zip(asked, client.do(items), strict=True):
                if word != read:
                    raise _Fault(f"word {place}: {_bits(read or 0, word)}")

        for place in order:
            if len(items) + 5 > most or items.answers + 1 > most:
                done()
                items, asked = Items(), []
            if read is not None:
                items.read(base + place)
                asked.append(place)
            if write is not None:
                items.write(base + place, [write])
        done()

    def _memory_start(self) -> str:
        found = self._board.open_memory().start()
        self._board.check_memory()
        texts = (f"bitslip {one.bitslip}, delay {one.delay}, {one.passed} pass" for one in found)
        return "; ".join(f"byte {byte}: {text}" for byte, text in enumerate(texts))

    def _memory_lines(self) -> str:
        plan = self._board.plan
        words = len(plan.sdram) * plan.sdram_cells * _RECORD_OCTETS
        return self._board.open_memory().check(max(2, -(-words // _ROW_OCTETS)))

    # Time

    def _clock(self) -> str:
        board = self._board
        registers = board.csr
        registers.skips = 0
        first = board.next_tick
        items = Items()
        items.run(first + _STRETCH - 1)
        board.read([registers.map["magic"].addr])  # what waits to be written goes first
        begun = self._pipe.now()
        following, _ = board.client.do(items)[0]
        took = self._pipe.now() - begun
        registers.skips = 1
        if following != first + _STRETCH:
            raise _Fault(f"{_STRETCH} ticks were asked for, and {following - first} passed: the core's clock")
        board.next_tick = following
        return f"{_STRETCH} ticks, {took * 1000:.0f} ms"

    # Traffic

    def _nic(self, window: int, shape: Shape, port: int) -> str:
        """Return an interface whose cells come back to it: the wire behind it, its tables, the host port's records."""
        del shape, port
        with self._network([window]) as network:
            nic = network.add_nic("nic")
            network.connect(nic, nic, delay_ps=_ticks(8))
            return self._play(network, nic, [network.add_vc([nic, nic], 0, 100 + k) for k in range(2)])

    def _link(self, window: int, shape: Shape, port: int) -> str:
        del shape, port
        with self._network([self._nic_window(), window]) as network:
            nic, link = network.add_nic("nic"), network.add_link("link", LinkSettings(delay_ps=_ticks(64)))
            network.connect(nic, link)
            network.connect(link, nic)
            return self._play(network, nic, [network.add_vc([nic, link, nic], 0, 100)])

    def _long_wire(self, window: int, shape: Shape) -> str:
        """Send PDUs with so many cells on their way that the memory holds most of them."""
        plan = self._board.plan
        cells = min(_LONG_CELLS, plan.wires_of(window - 1)[0] // 2)
        delay_ps = _ticks(cells * _CELL_TICKS)
        windows = [window] if shape.kind == "nic" else [self._nic_window(), window]
        with self._network(windows) as network:
            nic = network.add_nic("nic")
            if shape.kind == "nic":
                network.connect(nic, nic, delay_ps=delay_ps)
                return self._play(network, nic, [network.add_vc([nic, nic], 0, 100)], cells=cells)
            link = network.add_link("link", LinkSettings(delay_ps=_ticks(64)))
            network.connect(nic, link)
            network.connect(link, nic, delay_ps=delay_ps)
            return self._play(network, nic, [network.add_vc([nic, link, nic], 0, 100)], cells=cells)

    def _errors(self, window: int, shape: Shape) -> str:
        """Check the error generator and the receivers' checks: the same PDUs are bad as natively, and at least one
        is."""
        del shape
        with self._network([self._nic_window(), window]) as network:
            settings = LinkSettings(delay_ps=_ticks(64), ber=2e-4)
            nic, link = network.add_nic("nic"), network.add_link("link", settings)
            network.connect(nic, link)
            network.connect(link, nic)
            return self._play(network, nic, [network.add_vc([nic, link, nic], 0, 100)], errors=True)

    def _switch(self, window: int, shape: Shape, port: int) -> str:
        """Send cells through a port to the next one with a wire, which is slow, so that the buffer fills; return a line
        with the result."""
        parameters = dict(shape.parameters)
        ports, cells = parameters["ports"], parameters["cells"]
        wires = self._board.plan.wires_of(window - 1)
        out = next((k for k in ((port + 1 + j) % ports for j in range(ports)) if wires[k]), None)
        if out is None:
            raise _LeftOutError("no port of it has a wire")
        with self._network([self._nic_window(), window]) as network:
            lines = [SwitchPort(rate_bps=_SLOW_BPS) if k == out else SwitchPort() for k in range(ports)]
            nic = network.add_nic("nic")
            switch = network.add_switch("switch", SwitchSettings(buffer_cells=cells), ports=lines)
            network.connect(nic, (switch, port))
            network.connect((switch, out), nic)
            vc = network.add_vc([nic, switch, nic], 0, 100)
            fills = cells if port == 0 else 0  # once is enough: the ports share it
            return self._play(network, nic, [vc], cells=fills)

    def _patterns(self, kind: str, window: int, shape: Shape) -> Iterator[Check]:
        """Yield the checks of an interface's checker and generator, or of both over a link."""
        tests: dict[str, tuple[tuple[str, Callable[[PatternTest], str], float], ...]] = {
            "nic": (("pattern checker", PatternTest.checker, 0), ("pattern generator", PatternTest.generator, 0)),
            "link": (("pattern", PatternTest.generator, 0), ("pattern with bit errors", PatternTest.errors, _RARE_BER)),
        }
        for what, test, ber in tests.get(kind, ()):
            done = self._check(_name(window, shape), what, lambda t=test, b=ber: self._pattern(kind, window, t, b))
            yield done
            if not done.passed:
                break

    def _pattern(self, kind: str, window: int, test: Callable[[PatternTest], str], ber: float) -> str:
        is_link = kind == "link"
        with self._network([self._nic_window(), window] if is_link else [window]) as network:
            nic = network.add_nic("nic")
            path: list[Node] = [nic, nic]
            if is_link:
                link = network.add_link("link", LinkSettings(delay_ps=_ticks(64), ber=ber))
                path = [nic, link, nic]
                network.connect(nic, link)
                network.connect(link, nic)
            else:
                network.connect(nic, nic, delay_ps=_ticks(8))
            vc = network.add_vc(path, 0, 100)
            return test(PatternTest(network, nic, vc, self._board.plan.tx_words))

    def _nic_window(self) -> int:
        if "nic" not in self._good:
            raise _LeftOutError("no interface has passed, and it needs one")
        return self._good["nic"][0]

    @contextlib.contextmanager
    def _network(self, windows: Sequence[int]) -> Iterator[_Alone]:
        network = _Alone(lambda plan: Board(self._client()), windows)
        try:
            yield network
        finally:
            network.close()

    def _play(self, network: _Alone, nic: Nic, vcs: Sequence[int], *, cells: int = 0, errors: bool = False) -> str:
        """Send PDUs of zeros, of ones, and of random octets; return a line with the result.

        All that arrives must be the same as natively.
        """
        generator = random.Random(1)
        largest = 4 * self._board.plan.tx_words // 4 // 48 * 48 - 8  # of the memory a quarter
        fills = max(cells * 48 // 40, 3 * 48 * 48)
        pdus = 0
        for octet in (b"\xff", b"\0", b""):
            sent = 0
            while sent < (fills if octet else 48 * 48):
                size = min(largest, 1500)
                octets = octet * size if octet else generator.randbytes(size)
                network.send(nic.index, vcs[pdus % len(vcs)], octets)
                sent, pdus = sent + size, pdus + 1
        last = 0
        seen = bad = 0
        while seen < pdus and last < _STEPS:
            last += 1
            for event in network.run(last * _STEP_PS):
                if event.status in _ENDS:
                    seen, bad = seen + 1, bad + (event.status != 0)
        verified = network.verify()
        if not seen:
            raise _Fault("no PDU came")
        if errors and not bad:
            raise _Fault("an error was asked for, and none came")
        found = f", {bad} with errors" if bad else ""
        return f"{verified['pdus']} PDUs to the tick{found}, {verified['counters']} counters"


def _map_of(shape: Shape) -> RegisterMap:
    return registers_of(shape.kind, **dict(shape.parameters))


def _name(window: int, shape: Shape) -> str:
    return f"{shape.kind} in window {window}"


def _listed(nodes: Sequence[Shape]) -> str:
    return ", ".join(map(str, nodes)) or "no nodes"


def _taken(register: Register, value: int) -> int:
    value &= (1 << register.width) - 1
    return value if register.most is None else min(value, register.most)


def _bits(wanted: int, found: int) -> str:
    """Return which bits of a word are wrong."""
    wrong = wanted ^ found
    bits = [k for k in range(32) if wrong >> k & 1]
    if len(bits) > 4:
        return f"{wanted:#010x} was written, {found:#010x} is read"
    return f"{'bit' if len(bits) == 1 else 'bits'} {', '.join(map(str, bits))} of {wanted:#010x} read as {found:#010x}"


def _ticks(count: int) -> int:
    return ticks_to_ps(count)
