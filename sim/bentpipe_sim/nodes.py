"""The nodes of a network, as its builder and its users see them: what each is made from, its lines, its driver.

What a node's settings are and how they become registers is its driver's affair (``bentpipe_hdl.*.control``); here is
where it stands in the network.
"""

from __future__ import annotations

import copy
import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from bentpipe_hdl.bit_errors import ErrorStart
from bentpipe_hdl.driver import Driver
from bentpipe_hdl.link.control import ENTRIES, VCS, LinkDriver, LinkSettings, Losses
from bentpipe_hdl.link.options import OPTIONS
from bentpipe_hdl.nic.control import NicDriver, NicLine, NicReceive, NicSend, NicSettings
from bentpipe_hdl.registers import Bus, Registers
from bentpipe_hdl.settings import Settings, fixed_changes
from bentpipe_hdl.sonet.control import SonetDriver, SonetSettings
from bentpipe_hdl.switch.control import (
    PortSettings,
    SwitchDriver,
    SwitchPort,
    SwitchSettings,
    SwitchVc,
    VcSettings,
    options_for,
)
from bentpipe_hdl.switch.options import Setup, options_of
from bentpipe_hdl.ticks import MOST_VCS, TICKS_A_SECOND, cell_period, round_ticks

from .build import Shape
from .errors import NetworkError, Subject
from .loop import Loop

__all__ = ["KINDS", "Link", "Nic", "Node", "SonetLine", "Switch", "checked", "made", "size_of"]

KINDS = ("nic", "switch", "link", "sonet")
"""Kinds of nodes in the event loop's ledger."""

_SIZES = (64, 256, 1024, MOST_VCS)
"""Numbers of VCs that nodes are built for: few shapes, so that few are compiled."""

S = TypeVar("S", bound=Settings)
V = TypeVar("V")


def checked(what: str, find: Callable[[], V], subject: Subject | None = None) -> V:
    """Return the result of ``find``, with its ValueErrors as NetworkErrors.

    Raises
    ------
    NetworkError
        It raises ValueError: that, with ``what`` before it.
    """
    with _named(what, subject):
        return find()


@contextmanager
def _named(what: str, subject: Subject | None = None) -> Iterator[None]:
    """Turn a ValueError inside the context into a NetworkError whose text begins with ``what``."""
    try:
        yield
    except ValidationError as error:
        lines = "; ".join(map(_line, error.errors(include_url=False)))
        raise NetworkError(f"{what}: {lines}", subject) from None
    except ValueError as error:
        raise NetworkError(f"{what}: {error}", subject) from None


class _Nowhere:
    """A bus with nothing behind it: what is written is forgotten."""

    def write(self, addr: int, value: int) -> None:
        del addr, value

    def write_all(self, addr: int, words: list[int]) -> None:
        del addr, words

    def read(self, addr: int) -> int:
        raise ValueError(f"nothing can be read from address {addr:#x}: there is no node")


def _line(error: ErrorDetails) -> str:
    key = error.get("ctx", {}).get("key")
    return ": ".join(map(str, (*error["loc"], *([key] if key else []), error["msg"])))


def made(what: str, model: type[S], settings: Mapping[str, Any]) -> S:
    """Return the settings as a model; the text of a NetworkError names the fault."""
    return checked(what, lambda: model(**settings))


def size_of(what: str, vcs: int, least: int = 0) -> int:
    """Return the number of VCs that a node with ``vcs`` is built for; ``least`` or more, if that is given."""
    for size in (least, *_SIZES) if least else _SIZES:
        if vcs <= size:
            return size
    raise NetworkError(f"{what}: {vcs} VCs are more than {_SIZES[-1]}", Subject(what))


class Node:
    """A node of a network: its name, its index in the event loop, its lines, its driver. It is the driver's bus."""

    kind = ""
    ports: int = 1
    settings: Any
    """The node's model."""
    least_vcs: int = 0
    """It may be built for so few VCs; 0: for the fewest that nodes of a simulation have."""

    def __init__(self, loop: Loop, index: int, name: str):
        self.loop, self.index, self.name = loop, index, name
        self.changed: Callable[[Node], None] = lambda _: None
        self.inputs: dict[int, tuple[Node, int]] = {}
        self.outputs: dict[int, tuple[Node, int]] = {}

    def shape(self) -> Shape:
        """Return the shape with which the node is built."""
        raise NotImplementedError

    @cached_property
    def driver(self) -> Driver:
        """Return the node's driver; nothing is added to the network after that."""
        raise NotImplementedError

    @property
    def csr(self) -> Registers:
        """Return the registers by name, in a running network."""
        return self.driver.csr

    def spacing(self, port: int) -> int:
        """Return the least long-run distance of cells that leave ``port``, in units of 2**-16 ticks."""
        raise NotImplementedError

    def configure(self) -> None:
        """Write the settings to the registers."""
        self._configure(self.driver)

    def rehearse(self) -> None:
        """Compute what :meth:`configure` would write, before the node is built, and write it nowhere.

        Raises
        ------
        NetworkError
            There is no node of its shape, or a register does not take its value.
        """
        with _named(f"{self.kind} {self.name}", Subject(self.name)):
            self._configure(self._make_driver(_Nowhere()))

    def _make_driver(self, bus: Bus) -> Any:
        """Return the driver of a node of this shape behind a bus."""
        raise NotImplementedError

    def _configure(self, driver: Any) -> None:
        """Write the settings to the registers of a node that was reset."""
        self._apply(driver)

    def change(self, settings: Settings | None = None, *, written: bool = False, **members: Any) -> None:
        """Change to these settings, or change these members; in a running network from the next tick on.

        ``written``: the event loop has written the registers already.

        Raises
        ------
        NetworkError
            There is no such setting, it is out of range, or it cannot be changed in a running network.
        """
        model, what = type(self.settings), f"{self.kind} {self.name}"
        new = settings or self.settings
        if type(new) is not model:
            raise NetworkError(f"{what}: its settings are {model.__name__}, not {type(new).__name__}")
        if members:
            new = made(what, model, new.members() | members)
        if self.loop.is_open:
            for key in fixed_changes(self.settings, new):
                raise NetworkError(f"{what}: {key} can't be changed in a running network")
        with self._changing(written=written):
            self.settings = new

    def registers_of(self, member: str) -> tuple[tuple[str, int, int], ...] | None:
        """Return the registers that a member of the settings has alone: name, address and words of each; None: it also
        has others, or each change of it concerns other nodes."""
        del member
        return None

    def outages(self) -> dict[int, bool]:
        """Return whether each direction of a line is interrupted, by the output at its end; other nodes return
        nothing."""
        return {}

    def note(self) -> None:
        """Add the present settings to those for which the node is built; used before the network is started."""

    @contextmanager
    def _changing(self, ports: bool = False, written: bool = False) -> Iterator[None]:
        """Change the node's settings inside the context.

        In a running network the registers that differ afterwards are then written. An error restores the settings.

        Parameters
        ----------
        ports : bool
            Only registers of a switch's port rates differ.
        written : bool
            The registers have been written already.
        """
        before = copy.copy(self)
        try:
            yield
            if self.loop.is_open and not ports:
                self._check_built()
        except NetworkError:
            self.__dict__.update(before.__dict__)
            raise
        if self.loop.is_open:
            if written:
                self.driver.adopt(self._apply_ports if ports else self._apply)
            elif ports:
                self.driver.change(before._apply_ports, self._apply_ports)
            else:
                self.driver.change(before._apply, self._apply)
            self.changed(self)

    def _check_built(self) -> None:
        """Raise NetworkError if it is not built for what it has become."""

    def _built_without(self, what: str) -> NetworkError:
        kind = self.kind.upper() if self.kind == "nic" else self.kind
        where = "a setting that needs it has to be there at the start, or in an [[event]]"
        return NetworkError(f"{kind} {self.name} is built without {what}: {where}")

    def _apply(self, driver: Any) -> None:
        """Write what may be written again in a run."""
        raise NotImplementedError

    def _apply_ports(self, driver: Any) -> None:
        """Write the rates of a switch's ports."""
        raise NotImplementedError

    def counters(self) -> dict[str, Any]:
        """Return the node's counters: a number, or a list with one a VC or port. ``drop_REASON`` are cells dropped."""
        return self.driver.counters()

    def check(self, cells_in: int, cells_out: int) -> None:
        """Raise NetworkError unless cells in = cells out + dropped + still queued, modulo 2**32."""
        for balance in self.driver.account(cells_in, cells_out):
            self._expect(balance.what, balance.left, balance.right)

    def check_reports(self) -> None:
        """Raise NetworkError unless the ledger has all cells that the node counted as dropped or errored."""
        for what, at, count in self.driver.ledger_counts():
            self._expect(what, count, self._seen(at))

    def _seen(self, at: int) -> int:
        return self.loop.ledger_seen(self.index, at)

    def write(self, addr: int, value: int) -> None:
        self.loop.csr_write(self.index, addr, value)

    def write_all(self, addr: int, words: list[int]) -> None:
        self.loop.csr_write_all(self.index, addr, words, len(words))

    def read(self, addr: int) -> int:
        return self.loop.csr_read(self.index, addr)

    def _expect(self, what: str, left: int, right: int) -> None:
        if (left - right) % (1 << 32):
            raise NetworkError(f"{self.name}: cells got lost or doubled: {what} ({left} and {right})")


class Nic(Node):
    """A host's interface."""

    kind = "nic"

    def __init__(self, loop: Loop, index: int, name: str, line: NicLine, settings: NicSettings):
        super().__init__(loop, index, name)
        self.line, self.settings = line, settings
        self.period = checked(f"NIC {name}", line.period, Subject(name, key="frames" if line.frames else ""))
        self.sends: dict[int, NicSend] = {}
        self.receives: dict[int, NicReceive] = {}
        self.seed = 1
        self._impaired = False  # it has done something to whole PDUs
        self._has_test_cells = False
        self._test_vcs: set[int] = set()  # on which it sends test cells
        self._will_sustain = False  # a VC will have a sustained rate in a run
        self._free = 0
        self._coming: set[tuple[int, int]] = set()  # VPI and VCI of the first of those that are received

    def first_free(self) -> int:
        """Return the least index that no VC uses."""
        while self._free in self.sends or self._free in self.receives:
            self._free += 1
        return self._free

    def receives_on(self, vpi: int, vci: int) -> bool:
        """Return whether a VC with these numbers ends here."""
        for receive in itertools.islice(self.receives.values(), len(self._coming), None):
            self._coming.add((receive.vpi, receive.vci))
        return (vpi, vci) in self._coming

    def shape(self) -> Shape:
        return Shape.of("nic", **self._shape)

    @property
    def _sustains(self) -> bool:
        """A VC has a sustained rate."""
        return any(send.sustained for send in self.sends.values())

    @cached_property
    def _shape(self) -> dict[str, int]:
        shape = {"vcs": self.size}
        if self._sustains or self._will_sustain:
            shape["sustained"] = 1
        if any(send.credits for send in self.sends.values()):
            shape["credits"] = 1
        if self.line.frames:
            shape["frames"] = 1
        if self.settings.oam:
            shape["oam"] = 1
        if self._has_test_cells:
            shape["test_cells"] = 1
        return shape

    def add_test_vc(self, vc: int | None = None) -> None:
        """Build the interface with test cells, which it sends on a VC; None: which it receives."""
        self._has_test_cells = True
        if vc is not None:
            self._test_vcs.add(vc)
        self.__dict__.pop("_shape", None)

    @property
    def size(self) -> int:
        """The number of VCs each way that it is built for."""
        return size_of(self.name, max([*self.sends, *self.receives, 0]) + 1, self.least_vcs)

    @cached_property
    def driver(self) -> NicDriver:
        return self._make_driver(self)

    def _make_driver(self, bus: Bus) -> NicDriver:
        return NicDriver(bus, **self._shape)

    def spacing(self, port: int) -> int:
        return self.period

    def _apply(self, driver: Any) -> None:
        driver.configure(self.settings, self.line, self.sends, self.receives)

    def configure(self) -> None:
        super().configure()
        self._impair()

    def change(self, settings: Settings | None = None, *, written: bool = False, **members: Any) -> None:
        super().change(settings, written=written, **members)
        if self.loop.is_open:
            self._impair()

    def _impair(self) -> None:
        """Set in the event loop how whole PDUs are lost, duplicated and reordered."""
        own = self.settings
        if not own.impairs and not self._impaired:
            return
        self._impaired = True
        shares = itertools.accumulate((own.lose_frames, own.duplicate_frames, own.reorder_frames))
        limits = [round(share * (1 << 31)) for share in shares]
        start = ErrorStart(self.seed, f"{self.name}/frames").state
        self.loop.impair_frames(self.index, *limits, max(1, round_ticks(own.reorder_wait_ps)), start)

    def frames(self, vc: int) -> dict[str, int]:
        """Return the interface's impairments of a VC's PDUs: lost, duplicated, reordered, and waiting for the next
        PDU."""
        names = ("lost", "duplicated", "reordered", "held")
        return {name: self.loop.frames(self.index, vc, what) for what, name in enumerate(names)}

    def note(self) -> None:
        self._will_sustain |= self._sustains

    def _check_built(self) -> None:
        if self._sustains and not self._shape.get("sustained"):
            raise self._built_without("sustained rates")

    def change_send(
        self, index: int, cell_rate_bps: float | None, sustained_rate_bps: float | None = None, burst: int | None = None
    ) -> None:
        """Pace a VC at other rates of cells, from its next cell on.

        None: the rate of its line, and no sustained rate.
        """
        send = self.sends[index]
        what = f"NIC {self.name}, VC {send.vpi}/{send.vci}"
        period, sustained = checked(what, lambda: self.line.paced(cell_rate_bps, sustained_rate_bps, burst))
        with self._changing():
            self.sends = self.sends | {index: replace(send, period=period, sustained=sustained)}

    def check(self, cells_in: int, cells_out: int) -> None:
        super().check(cells_in, cells_out)
        for vc, sent in zip(self.sends, self.counters()["tx_cells"], strict=True):
            if vc in self._test_vcs:
                continue  # it makes their cells itself
            left = (self.loop.cells_due(self.index, vc) - sent) % (1 << 32)
            if bool(left) != bool(self.loop.backlog(self.index, vc)):
                raise NetworkError(f"{self.name}: VC {vc} has {left} cells neither sent nor queued")


class Switch(Node):
    """A switch module."""

    kind = "switch"

    def __init__(
        self, loop: Loop, index: int, name: str, lines: Sequence[SwitchPort], settings: SwitchSettings, seed: int
    ):
        super().__init__(loop, index, name)
        if not 1 <= len(lines) <= 16:
            raise NetworkError(f"switch {name}: from 1 to 16 ports, not {len(lines)}")
        self.lines, self.settings, self.seed = tuple(lines), settings, f"{seed}/{name}"
        self.periods = [
            checked(f"switch {name}, port {p}", lambda line=line: line.shortest_period) for p, line in enumerate(lines)
        ]
        self.fastest = list(self.periods)  # that they ever had
        self.ports = len(lines)
        self.vcs: list[SwitchVc] = []
        self._more_options = 0  # that it will need in a run
        self._indexed = 0
        self._vcis: defaultdict[tuple[int, int], set[int | None]] = defaultdict(set)

    def vcis_at(self, port: int, vpi: int) -> set[int | None]:
        """Return the VCIs of VCs that enter at a port with this VPI; None in the set stands for a virtual path."""
        for vc in self.vcs[self._indexed :]:
            self._vcis[vc.in_port, vc.in_vpi].add(None if vc.vpc else vc.in_vci)
        self._indexed = len(self.vcs)
        return self._vcis[port, vpi]

    def shape(self) -> Shape:
        return Shape.of("switch", **self._shape)

    @property
    def _options(self) -> int:
        """Return the options that the present settings need, as a word of bits."""
        setup = Setup(self.settings, self.lines, self.vcs, name=self.name)
        options = options_for(setup)
        for option in options_of(options):
            for fault in option.check(setup):
                subject = Subject(self.name, fault.port, fault.vc, key=fault.key)
                raise NetworkError(f"switch {self.name}: {fault}", subject)
        return options

    @cached_property
    def _shape(self) -> dict[str, int]:
        options = self._options | self._more_options
        shape = {"vcs": self.size, "cells": self.settings.buffer_cells, "ports": self.ports}
        return shape | {"options": options} if options else shape

    @cached_property
    def driver(self) -> SwitchDriver:
        return self._make_driver(self)

    def _make_driver(self, bus: Bus) -> SwitchDriver:
        return SwitchDriver(bus, **self._shape)

    def spacing(self, port: int) -> int:
        return self.fastest[port]

    def check_rates(self) -> None:
        """Refuse lines that together bring or take more than a cell a tick, which is what a switch moves.

        Raises
        ------
        NetworkError
            They do.
        """
        coming = [node.spacing(port) for node, port in self.inputs.values()]
        going = [self.periods[port] for port in self.outputs]
        for periods, verb in ((coming, "bring"), (going, "take")):
            near = sum(65536 / period for period in periods) > 1 - 1e-9  # fractions take ten times as long
            if near and sum(Fraction(65536, period) for period in periods) > 1:
                asked = sum(TICKS_A_SECOND * 424 * 65536 / period for period in periods) / 1e6
                raise NetworkError(
                    f"switch {self.name}: its lines {verb} up to {asked:.2f} Mb/s of cells together. It moves "
                    f"{TICKS_A_SECOND * 424 / 1e6:.2f} Mb/s (a cell per tick): give it fewer lines, or slower ones",
                    Subject(self.name, key="ports"),
                )

    @property
    def size(self) -> int:
        """The number of VCs that it is built for."""
        return size_of(self.name, Setup(self.settings, self.lines, self.vcs).entries, self.least_vcs)

    def _apply(self, driver: Any) -> None:
        driver.configure(self.settings, self.lines, self.vcs, self.seed, self.name)

    def _apply_ports(self, driver: Any) -> None:
        driver.configure_ports(self.lines)

    @property
    def tags(self) -> bool:
        """It may set cells' CLP bits."""
        return any(option.tags_cells for option in options_of(self._shape.get("options", 0)))

    @property
    def manages(self) -> bool:
        """It knows OAM."""
        return any(option.name == "oam" for option in options_of(self._shape.get("options", 0)))

    def note(self) -> None:
        self._more_options |= self._options

    def _check_built(self) -> None:
        if more := self._options & ~self._shape.get("options", 0):
            raise self._built_without(", ".join(option.name for option in options_of(more)))

    def rates_alone(self, port: int) -> bool:
        """Return whether a port's rate is its period and concerns no option."""
        return not self._shape.get("options", 0) and self.lines[port].settings.reactive is None

    def change_port(self, port: int, rate_bps: float, settings: PortSettings, *, written: bool = False) -> None:
        """Change a port's rate (bits of cells a second) and settings, from its next cell on.

        ``written``: the event loop has written its period already.

        Raises
        ------
        NetworkError
            There is no such rate, or all lines together would carry more than the switch moves.
        """
        line = replace(self.lines[port], rate_bps=rate_bps, settings=settings)
        period = checked(f"switch {self.name}, port {port}", lambda: line.shortest_period)
        rate_alone = settings == self.lines[port].settings and not self._shape.get("options", 0)
        with self._changing(ports=rate_alone, written=written):
            self.lines = (*self.lines[:port], line, *self.lines[port + 1 :])
            self.periods = [*self.periods[:port], period, *self.periods[port + 1 :]]
            self.fastest = [*map(min, self.fastest, self.periods)]
            self.check_rates()
            after = self.outputs[port][0] if port in self.outputs else self
            while isinstance(after, Link):
                after = after.outputs[0][0]
            if isinstance(after, Switch):
                after.check_rates()

    def change_vc(self, index: int, settings: VcSettings) -> None:
        """Change the settings of a VC, from its next cell on; its credits cannot change."""
        if settings.credits != self.vcs[index].settings.credits:
            raise NetworkError(f"switch {self.name}, VC {index}: its credits do not change in a run")
        with self._changing():
            self.vcs = [*self.vcs[:index], replace(self.vcs[index], settings=settings), *self.vcs[index + 1 :]]


class Link(Node):
    """One direction of a line."""

    kind = "link"

    def __init__(self, loop: Loop, index: int, name: str, settings: LinkSettings, seed: int):
        super().__init__(loop, index, name)
        self.settings, self.seed = settings, seed
        self.losses: dict[tuple[int, int], Losses] = {}
        self._becomes_faulty = False  # in a run
        self._more: set[str] = set()  # options that it will need in a run
        self._makes = settings.makes
        self._moves = False  # the delay changes in a run
        self.longest = settings.ticks
        self._built_delay = self.longest

    @property
    def delay(self) -> int:
        """In ticks."""
        return self.settings.ticks

    @property
    def moves(self) -> bool:
        """It is built for a delay that changes: it tells itself in which tick each cell arrives."""
        return bool(self._shape.get("path"))

    def shape(self) -> Shape:
        return Shape.of("link", **self._shape)

    @cached_property
    def _shape(self) -> dict[str, int]:
        shape = {"faults": 1} if self.settings.faults or self._becomes_faulty else {}
        if self.settings.varies:
            shape |= {"path": 1, "variation": 1}
        for option in OPTIONS:
            if option.wanted(self.settings) or option.name in self._more:
                shape |= {option.name: 1, **dict.fromkeys(option.needs, 1)}
        return shape | {"path": 1} if self._will_move else shape

    @property
    def merges(self) -> bool:
        """Cells may overtake others on it."""
        return self.settings.order == "merged"

    @property
    def _will_move(self) -> bool:
        return self._moves or self.settings.order != "kept"

    def note(self) -> None:
        self._becomes_faulty |= self.settings.faults
        self._more |= {option.name for option in OPTIONS if option.wanted(self.settings)}
        self._makes |= self.settings.makes
        self._moves |= self.delay != self._built_delay
        self.longest = max(self.longest, self.delay)

    def may_move(self, may: bool = True) -> None:
        """Build the link of a network that is not started for a delay that changes in a run, or without that."""
        self._moves = may

    def may_fail(self) -> None:
        """Build the link of a network that is not started with outages and bursts, for a run in which they may come."""
        self._becomes_faulty = True

    def may_impair(self) -> None:
        """Build the link of a network that is not started with all options that settings may ask for in a run."""
        self._more |= {option.name for option in OPTIONS if option.title}

    def _check_built(self) -> None:
        for option in OPTIONS:
            if option.wanted(self.settings) and not self._shape.get(option.name):
                raise self._built_without(option.title)
        if self.settings.makes and not self._makes:
            self._makes = True
            after = self.outputs[0][0]
            if isinstance(after, Switch):
                after.check_rates()
        if self.settings.faults and not self._shape.get("faults"):
            raise self._built_without("outages and bursts")
        if not self.moves and (self.delay != self._built_delay or self.settings.order != "kept"):
            raise self._built_without("a delay that changes")
        self.longest = max(self.longest, self.delay)

    def outages(self) -> dict[int, bool]:
        return {0: self.settings.outage}

    def registers_of(self, member: str) -> tuple[tuple[str, int, int], ...] | None:
        names = self.driver.values_of(member, getattr(self.settings, member, 0))
        if names is None:
            return None
        registers = self.driver.csr.map
        return tuple((name, registers[name].addr, registers[name].words) for name in names)

    @cached_property
    def driver(self) -> LinkDriver:
        return self._make_driver(self)

    def _make_driver(self, bus: Bus) -> LinkDriver:
        return LinkDriver(bus, **self._shape)

    def spacing(self, port: int) -> int:
        if not self.inputs:
            raise NetworkError(f"nothing leads into link {self.name}")
        node, before = self.inputs[0]
        period = node.spacing(before)
        return max(1 << 16, period >> 1) if self.settings.order == "merged" or self._makes else period  # two paths

    def lose(self, vpi: int, vci: int, *, pdus: Iterable[int] = (), cells: Iterable[int] = ()) -> None:
        """Take out these PDUs or these user cells of a VC, counted from 1 on; once for a VC.

        Raises
        ------
        NetworkError
            Both kinds are given or neither, a number is not positive, or it is more than the link can keep.
        """
        what = f"link {self.name}, losses of VC {vpi}/{vci}"
        by_pdu, by_cell = sorted(set(pdus)), sorted(set(cells))
        if bool(by_pdu) == bool(by_cell):
            raise NetworkError(f"{what}: give the numbers of PDUs or of cells")
        numbers = by_pdu or by_cell
        if not 1 <= numbers[0] <= numbers[-1] < 1 << 32:
            raise NetworkError(f"{what}: numbers start at 1, not {numbers[0]}")
        if (vpi, vci) in self.losses:
            raise NetworkError(f"{what}: given twice")
        self.losses[vpi, vci] = Losses(bool(by_pdu), tuple(numbers))
        entries = sum(len(kept.numbers) + 1 for kept in self.losses.values())
        if len(self.losses) > VCS or entries > ENTRIES:
            raise NetworkError(f"{what}: a link has losses for {VCS} VCs, {ENTRIES} numbers and ends of lists in all")

    def _configure(self, driver: LinkDriver) -> None:
        driver.configure(self.settings, ErrorStart(self.seed, self.name), self.losses)
        if self.inputs:
            node, before = self.inputs[0]
            driver.space(node.spacing(before))

    def _apply(self, driver: Any) -> None:
        driver.apply(self.settings)


class SonetLine(Node):
    """A line with its SONET framing, both ways; port 0 is its one end, port 1 the other."""

    kind = "sonet"
    ports = 2

    def __init__(self, loop: Loop, index: int, name: str, settings: SonetSettings, seed: int):
        super().__init__(loop, index, name)
        self.settings, self.seed = settings, seed

    def shape(self) -> Shape:
        return Shape.of("sonet", sts=self.settings.sts)

    def outages(self) -> dict[int, bool]:
        return {1 - end: outage for end, outage in enumerate(self.settings.outage)}

    @cached_property
    def driver(self) -> SonetDriver:
        return self._make_driver(self)

    def _make_driver(self, bus: Bus) -> SonetDriver:
        return SonetDriver(bus, sts=self.settings.sts)

    def spacing(self, port: int) -> int:
        return cell_period(49_920_000 * self.settings.sts)

    def _configure(self, driver: SonetDriver) -> None:
        starts = [ErrorStart(self.seed, f"{self.name}/{way}") for way in range(2)]
        driver.configure(self.settings, starts)

    def _apply(self, driver: Any) -> None:
        driver.apply(self.settings)

    def check(self, cells_in: int, cells_out: int) -> None:
        """Check the node's account, and that no cell was lost or made without an error on the line.

        The second check ends with the receiver's first defect that stops cells.
        """
        super().check(cells_in, cells_out)
        for wonder in self.driver.wonders():
            raise NetworkError(f"{self.name}: {wonder}")
