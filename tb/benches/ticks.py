"""Drives a compiled node tick by tick, at either width, and records all that it does.

What happens to the node is a script, the same for both widths: cells, settings and PDUs, each at its tick. How it
happens is up to the width and to chance: how many clocks a tick has, whether a cell's header comes in the first or
second clock, what is on lines that mean nothing, which idle ticks are left out, when counters are read.
"""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass, field

from benches.compiled import Compiled
from bentpipe_hdl.cell import CLOCKS_A_TICK, NEVER, WIDE

__all__ = ["SINGLE", "Cell", "Host", "Record", "Script", "Ticks", "play"]


SINGLE = -1
"""As a PDU's length: a single cell."""


VERDICT = ("report_own", "report_consumed", "drop_vc", "drop_accepted", "drop_pti", "drop")
"""Outputs of a switch about the cell of a tick, as far as it has them. ``drop_reason`` counts only with ``drop``."""


@dataclass(frozen=True)
class Cell:
    """A cell into or out of a node."""

    header: int
    payload: bytes
    port: int = 0
    hec_error: int = 0


@dataclass
class Script:
    """One action on a node.

    Members
    -------
    cells : tick -> cell that comes in
    writes : tick -> registers written before it, as (address, value); wide ones as two
    posts : (tick from which it is offered, VC, length, UU, CPI) of each PDU, in order
    reads : addresses of the counters that are compared at the end
    steps : tick -> addresses of the counters that are read before it
    settle : clocks without a tick that a node needs after its settings have been written
    end : the last tick
    """

    cells: dict[int, Cell] = field(default_factory=dict)
    writes: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    posts: list[tuple[int, int, int, int, int]] = field(default_factory=list)
    reads: list[int] = field(default_factory=list)
    steps: dict[int, list[int]] = field(default_factory=dict)
    settle: int = 0
    end: int = 0


class Host:
    """The host's side of a NIC: offers PDUs and single cells, gives octets when asked, takes what was received: an OAM
    cell some ticks after it came."""

    def __init__(self, node: Ticks, posts: list[tuple[int, int, int, int, int]]) -> None:
        self.node, self.posts = node, deque(posts)
        self.get = {name: port.get for name, port in node.ports.items()}
        self.set = {name: port.set for name, port in node.ports.items()}
        self.offered = False
        self.blocks: dict[int, random.Random] = {}
        self.supply: deque[int] = deque()
        self.words: list[bytes] = []
        self.log: list[tuple] = []
        """What the node said, with the tick where both widths have the same."""
        self.received: list[tuple] = []
        """What came in: octets, verdicts."""

    @property
    def due(self) -> int:
        """The tick from which there is a PDU to offer or an OAM cell to take."""
        return min(self.posts[0][0] if self.posts else NEVER, self._takes)

    @property
    def _takes(self) -> int:
        if "oam_full" not in self.get or not self.get["oam_full"]():
            return NEVER
        came = self.get["oam_tick"]()
        return came + 2 + 7 * came % 5

    def before(self) -> None:
        """At the start of a tick."""
        self.offered = self.offered or (bool(self.posts) and self.posts[0][0] <= self.node.now)
        if self.offered:
            _, vc, length, uu, cpi = self.posts[0]
            self.node.set("post_single", int(length == SINGLE))
            length = max(length, 0)
            for name, value in (("vc", vc), ("length", length), ("uu", uu), ("cpi", cpi)):
                self.set[f"post_{name}"](value)
        self.set["post_valid"](int(self.offered))
        if self._takes <= self.node.now:
            fields = (self.get[f"oam_{name}"]() for name in ("vc", "pti", "tick"))
            self.log.append((self.node.now, "oam", *fields, self._octets()))
            self.set["oam_take"](1)

    def _octets(self) -> bytes:
        """Return the OAM cell that waits."""
        if self.node.wide:
            return self.get["oam_payload"]().to_bytes(48, "little")
        words = []
        for k in range(12):
            self.set["oam_at"](k)
            self.node.compiled.settle()
            words.append(self.get["oam_word"]().to_bytes(4, "little"))
        return b"".join(words)

    def taking(self) -> bool:
        """Narrow, before a clock's edge: whether the node takes a word with it."""
        return bool(self.get["word_next"]())

    def after(self, took: bool) -> None:
        """After a clock."""
        now, get = self.node.now, self.get
        self.node.set("oam_take", 0)
        if get["post_taken"]():
            self.posts.popleft()
            self.offered = False
            self.set["post_valid"](0)
            self.log.append((now, "taken"))
        if get["done"]():
            self.log.append((now, *self._about("done")))
        if took:
            self.supply.popleft()
        if get["fetch"]():
            vc = get["fetch_vc"]()
            self.log.append((now, *self._about("fetch")))
            draw = self.blocks.setdefault(vc, random.Random(vc))
            octets = draw.randbytes(48)
            self.node.set("cell_pti", draw.randrange(8))
            if self.node.wide:
                self.set["block"](int.from_bytes(octets, "little"))
            else:
                self.supply.extend(int.from_bytes(octets[k : k + 4], "little") for k in range(0, 48, 4))
        if not self.node.wide:
            self.set["word"](self.supply[0] if self.supply else self.node.random.getrandbits(32))
        if get["rx_valid"]():
            if self.node.wide:
                self.received.append((get["rx_vc"](), get["rx_index"](), get["rx_payload"]().to_bytes(48, "little")))
            else:
                self.words.append(get["rx_word"]().to_bytes(4, "little"))
                if len(self.words) == 12:
                    self.received.append((get["rx_vc"](), get["rx_index"](), b"".join(self.words)))
                    self.words = []
        if get["rx_last"]():
            assert not self.words, "a verdict inside a cell"
            fields = tuple(get[f"rx_{name}"]() for name in ("vc", "status", "length", "uu", "cpi"))
            self.received.append(("end", *fields))

    def _about(self, what: str) -> tuple:
        single = bool(self.get.get(f"{what}_single", lambda: 0)())
        return (f"{what} single" if single else what), self.get[f"{what}_vc"]()


class Ticks:
    """A compiled node and its time."""

    def __init__(self, compiled: Compiled, width: int, seed: int) -> None:
        self.compiled, self.ports, self.wide = compiled, compiled.ports, width == WIDE
        self.random = random.Random(seed)
        self.now = 0
        self.came_out: list[tuple[int, Cell]] = []
        self.ends: list[int] = []  # of a node that clocks its line: when each cell's last bit has left
        self.verdicts: list[tuple[int | None, ...]] = []
        self.host: Host | None = None
        self._words: list[int] = []
        self._start: tuple[int, int, int] = (0, 0, 0)
        self._tail: int | None = None  # of a cell whose header came in a tick's second clock
        names = [name for name in VERDICT if name in self.ports]
        self._told = self.ports["report_valid" if "report_valid" in self.ports else "drop"].get if names else lambda: 0
        self._verdict = [self.ports[name].get for name in names]
        # What a narrow node has in every clock, without a call and a look-up for each
        self._drives = [self.ports[name].cell for name in ("time_tick", "i_valid", "i_soc", "i_word") if not self.wide]
        self._o_valid = self.ports["o_valid"].cell
        for _ in range(20000):
            compiled.settle()
            if self.get("status_idle"):
                break
            compiled.edge()

    def get(self, name: str) -> int:
        return self.ports[name].get()

    def set(self, name: str, value: int) -> None:
        if name in self.ports:
            self.ports[name].set(value)

    def clock(self) -> None:
        if self._tail is not None:
            self.set("i_valid", 1)
            self.set("i_soc", 0)
            self.set("i_word", self._tail)
        self.compiled.settle()
        if not self.wide:
            self._listen()
        took = self.host is not None and not self.wide and self.host.taking()
        self.compiled.edge()
        if self._told():
            verdict = [get() for get in self._verdict]
            self.verdicts.append((self.now, *verdict, self.get("drop_reason") if verdict[-1] else None))
        if self._tail is not None:
            self._tail = None
            self.set("i_valid", 0)
        if self.host:
            self.host.after(took)

    def write(self, addr: int, value: int) -> None:
        """Write a register, between two ticks."""
        self.set("csr_addr", addr)
        self.set("csr_w_data", value)
        self.set("csr_w_en", 1)
        self.clock()
        self.set("csr_w_en", 0)

    def read(self, addr: int) -> int:
        """Read a register, between two ticks."""
        self.set("csr_addr", addr)
        self.set("csr_r_en", 1)
        self.clock()
        self.set("csr_r_en", 0)
        for _ in range(3):
            self.clock()
        return self.get("csr_r_data")

    def idle_until(self) -> int:
        """The tick before which nothing is to happen, as the node has it; 0 if it is not idle."""
        if self._tail is not None:
            return 0
        self.compiled.settle()
        return self.get("status_due") if self.get("status_idle") else 0

    def tick(self, cell: Cell | None = None, peeks: list[int] | None = None) -> None:
        """Let one tick pass; ``peeks`` are counters that may be read in its course."""
        if self.host:
            self.host.before()
        self.set("time_now", self.now)
        if self.wide:
            self._wide_tick(cell)
        else:
            self._narrow_tick(cell, peeks)
        self.set("i_valid", 0)
        self.set("time_tick", 0)
        if peeks and self.random.random() < 0.02:
            self.read(self.random.choice(peeks))
        self.now += 1

    def _wide_tick(self, cell: Cell | None) -> None:
        self.set("time_tick", 1)
        self.set("i_valid", int(cell is not None))
        if cell:
            self.set("i_header", cell.header)
            self.set("i_payload", int.from_bytes(cell.payload, "little"))
            self.set("i_port", cell.port)
            self.set("i_hec_error", cell.hec_error)
        self.clock()
        if self.get("o_valid"):
            port = self.get("o_port") if "o_port" in self.ports else 0
            payload = self.get("o_payload").to_bytes(48, "little")
            bad = self.get("o_hec_error")
            self.came_out.append((self.now, Cell(self.get("o_header"), payload, port, bad)))
            self._note_end()
        self.set("time_tick", 0)
        self.set("i_valid", 0)
        for _ in range(self.random.choice((0, 0, 0, 1, 3))):
            self.clock()

    def _narrow_tick(self, cell: Cell | None, peeks: list[int] | None) -> None:
        draw = self.random
        clocks, first = CLOCKS_A_TICK + draw.choice((0, 0, 0, 0, 1, 2, 7)), 0
        words: list[int] = []
        if cell:
            first = 1 if self._tail is not None else int(draw.random() < 0.3)
            payload = cell.payload
            words = [cell.header, *(int.from_bytes(payload[k : k + 4], "little") for k in range(0, 48, 4))]
        peek = draw.randrange(clocks) if peeks and draw.random() < 0.05 else -1
        time_tick, i_valid, i_soc, i_word = self._drives
        for clock in range(clocks):
            place = clock - first
            here = 0 <= place < len(words)
            time_tick.value = clock == 0
            i_valid.value = here
            i_soc.value = here and place == 0
            i_word.value = words[place] if here else draw.getrandbits(32)
            if here and place == 0 and cell:
                self.set("i_port", cell.port)
                self.set("i_hec_error", cell.hec_error)
            elif place == 1:
                self.set("i_hec_error", draw.getrandbits(1))
            if peeks:
                self.set("csr_r_en", int(clock == peek))
                self.set("csr_addr", draw.choice(peeks))
            self.clock()
        self.set("csr_r_en", 0)
        if first and words and clocks == CLOCKS_A_TICK:  # the last word comes with the next clock, of whatever tick
            self._tail = words[-1]

    def _note_end(self) -> None:
        if "o_end" in self.ports:
            self.ends.append(self.get("o_end"))

    def _listen(self) -> None:
        if not self._o_valid.value:
            assert not self._words, "a gap in a cell"
            return
        if self.get("o_soc"):
            assert not self._words, "a cell that began inside another"
            port = self.get("o_port") if "o_port" in self.ports else 0
            self._start = (self.now - 1, port, self.get("o_hec_error"))
            self._note_end()
        else:
            assert self._words, "a word outside of a cell"
        self._words.append(self.get("o_word"))
        if len(self._words) == 13:
            tick, port, bad = self._start
            payload = b"".join(word.to_bytes(4, "little") for word in self._words[1:])
            self.came_out.append((tick, Cell(self._words[0], payload, port, bad)))
            self._words = []


@dataclass
class Record:
    """The record of a node in a script."""

    came_out: list[tuple[int, Cell]]
    ends: list[int]
    log: list[tuple]
    received: list[tuple]
    counters: dict[int, int]
    verdicts: list[tuple[int | None, ...]] = field(default_factory=list)
    """Of a switch: the tick, `VERDICT` of a cell that it dropped, made or took, and why it was dropped."""
    steps: dict[int, tuple[int, dict[int, int]]] = field(default_factory=dict)
    """By tick: how many cells had come out, and the counters."""


def play(script: Script, compiled: Compiled, width: int, seed: int) -> Record:
    """A node's record of a script. ``seed`` decides on everything that must not matter."""
    node = Ticks(compiled, width, seed)
    if "post_valid" in node.ports:
        node.host = Host(node, script.posts)
    happens = sorted({*script.cells, *script.writes, *script.steps, script.end})
    steps: dict[int, tuple[int, dict[int, int]]] = {}
    place = 0
    skipping = False
    while node.now <= script.end:
        while happens[place] < node.now:
            place += 1
        if node.random.random() < 0.02:
            skipping = not skipping
        if skipping:
            soonest = min(node.idle_until(), happens[place], node.host.due if node.host else NEVER)
            if not (node.host and node.host.offered):
                node.now = max(node.now, soonest)
        if node.now in script.steps:
            steps[node.now] = len(node.came_out), {addr: node.read(addr) for addr in script.steps[node.now]}
        if node.now in script.writes:
            for addr, value in script.writes[node.now]:
                node.write(addr, value)
            for _ in range(script.settle or node.random.randrange(3)):
                node.clock()
        node.tick(script.cells.get(node.now), script.reads)
    for _ in range(4):
        node.tick()
    host = node.host
    return Record(
        node.came_out,
        node.ends,
        host.log if host else [],
        host.received if host else [],
        {addr: node.read(addr) for addr in script.reads},
        node.verdicts,
        steps,
    )
