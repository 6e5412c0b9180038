"""The loss ledger against what an observer of all wires makes of each PDU's fate."""

from __future__ import annotations

import random
import subprocess
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

import pytest
from scapy.utils import RawPcapReader

from benches.programs import program_of
from bentpipe_hdl.link.control import LinkSettings
from bentpipe_hdl.sonet.control import SonetSettings
from bentpipe_hdl.switch.control import SwitchSettings, VcSettings
from bentpipe_sim.errors import NetworkError
from bentpipe_sim.network import Network
from bentpipe_sim.nodes import Link, Nic, Node, Switch
from bentpipe_sim.tools import CSRC
from models.aal5 import Reassembly, segment
from models.cell import Cell, Header
from models.lines import switch_ports
from models.switch import Drop, Vc
from models.switch import Switch as Model

MS = 10**9
VPI = 7
"""Of the virtual path from the first switch of a chain to its last one, if there is one."""

TICK_NS = 53e9 / 299_520_000
REASONS = {Drop.FULL: "full", Drop.EPD: "EPD", Drop.PPD: "PPD", Drop.CLP: "CLP", Drop.RESERVE: "reserve"}
Face = tuple[Node, int]


@dataclass(frozen=True)
class Seen:
    """A cell on a wire, as the node behind it takes it."""

    tick: int
    header: int
    payload: bytes
    bad: bool

    @property
    def vc(self) -> tuple[int, int]:
        return self.header >> 20 & 0xFF, self.header >> 4 & 0xFFFF


@dataclass
class Way:
    """A VC of the test: its place in the ledger, what it carries, and along which nodes."""

    path: list[Node]
    vci: int
    index: int
    policy: str
    limit: int
    own_epd: int | None
    clp: bool
    sdus: list[bytes]
    in_path: bool

    def vc(self, wire: int) -> tuple[int, int]:
        """VPI and VCI on the wire behind this node of its path."""
        return (VPI if self.in_path and 1 <= wire < len(self.path) - 2 else 0), self.vci


class Observed:
    """A network whose wires are all recorded."""

    def __init__(self, folder: Path, seed: int, ber: float, switches: int, *, path: bool = False) -> None:
        self.folder, self.random = folder, random.Random(seed)
        rng = self.random
        self.network = network = Network(seed=seed)
        # A switch's cells are seen as they leave its buffer, not as they end on the line: the model needs that order
        network.sends = lambda a, b: isinstance(a, Nic)
        self.hosts: list[list[Nic]] = []
        self.chain: list[Switch] = []
        self.links: dict[tuple[int, int], Link] = {}
        for k in range(switches):
            cells = rng.randrange(60, 200)
            thresholds = {"epd_threshold": cells * 2 // 3, "clp_threshold": cells // 2, "oam_reserve": cells // 8}
            rate = 80_000_000 // k if path and 0 < k < switches - 1 else 149_760_000
            switch = network.add_switch(
                f"s{k}",
                SwitchSettings(buffer_cells=cells, **thresholds),
                ports=switch_ports((149_760_000,) * 2 + (rate,) * 2),
            )
            self.chain.append(switch)
            self.hosts.append([network.add_nic(f"h{k}{i}") for i in range(2)])
            for port, nic in enumerate(self.hosts[k]):
                network.connect(nic, (switch, port))
                network.connect((switch, port), nic)
        for k in range(switches - 1):
            for a, b in ((k, k + 1), (k + 1, k)):
                link = network.add_link(f"l{a}{b}", LinkSettings(delay_ps=rng.randrange(3 * MS), ber=ber))
                network.connect((self.chain[a], 3 if b > a else 2), link)
                network.connect(link, (self.chain[b], 2 if b > a else 3))
                self.links[a, b] = link
        self.ways: list[Way] = []
        self.path_limit = rng.choice([10, 20]) if path else 0
        if path:
            links = (
                [self.links[k, k + 1] for k in range(switches - 1)],
                [self.links[k + 1, k] for k in range(switches - 1)],
            )
            for nodes in (self._chained(links[0], 1), self._chained(links[1][::-1], -1)):
                network.add_vp(nodes, VPI, VcSettings(limit=self.path_limit))
        for k in range(6):
            a, b = (0, switches - 1) if k < 3 else rng.sample(range(switches), 2)
            self._add_way(a, b, 32 + k)
        losses = rng.sample(range(1, 25), 4)
        first = self.links[0, 1]
        first.lose(*self.ways[0].vc(1), cells=losses)
        first.lose(*self.ways[1].vc(1), pdus=losses)
        self.faces: list[Face] = [(nic, 0) for pair in self.hosts for nic in pair]
        self.faces += [(node, port) for node in self.chain for port in (2, 3) if port in node.outputs]
        for face in self.faces:
            network.capture(self._file(face), "cells", face)

    def _chained(self, links: list[Link], step: int) -> list[Node]:
        switches = self.chain[::step]
        return [switches[0], *(node for pair in zip(links, switches[1:], strict=True) for node in pair)]

    def _add_way(self, a: int, b: int, vci: int) -> None:
        rng = self.random
        path: list[Node] = [rng.choice(self.hosts[a]), self.chain[a]]
        while a != b:
            step = 1 if b > a else -1
            path += [self.links[a, a + step], self.chain[a + step]]
            a += step
        path.append(rng.choice(self.hosts[b]))
        policy, limit = rng.choice(["tail", "ppd", "epd"]), rng.choice([40, 90, 1000])
        own = rng.choice([None, 30])
        index = self.network.add_vc(
            path, 0, vci, VcSettings(policy=policy, limit=limit, epd_threshold=own), max_sdu=2000
        )
        sdus = [bytes([vci, n]) + rng.randbytes(rng.choice([20, 400, 900, 1800, 1800])) for n in range(50)]
        in_path = bool(self.path_limit) and all(switch in path for switch in self.chain)
        self.ways.append(Way(path, vci, index, policy, limit, own, vci % 3 == 0, sdus, in_path))

    def _file(self, face: Face) -> Path:
        return self.folder / f"{face[0].name}-{face[1]}"

    def run(self) -> dict[int, list[int]]:
        """Send all; the numbers of the PDUs of each VC that arrived whole."""
        network = self.network
        network.start()
        for way in self.ways:
            if way.clp:
                way.path[0].csr.tx_header[way.index] = {"vci": way.vci, "clp": 1}
        arrived = defaultdict(list)
        at, events = 0, []
        for n in range(50):
            for way in self.ways:
                network.send(way.path[0].index, way.index, way.sdus[n])
            at += self.random.randrange(MS // 2)
            while network.now_ps < at:
                events += network.run(at)
        while network.now_ps < at + 60 * MS:
            events += network.run(at + 60 * MS)
        network.check_conservation()
        network.end_captures()
        for event in events:
            if event.status == 0:
                vci, number = event.head[:2]
                assert self.ways[vci - 32].path[-1].index == event.nic
                arrived[vci].append(number)
        return arrived

    def wires(self) -> dict[tuple[Face, Face], list[Seen]]:
        """The cells of each wire, by the output and the input that it joins."""
        found: dict[tuple[Face, Face], list[Seen]] = {}
        for node, port in self.faces:
            forth = ((node, port), node.outputs[port])
            back = (node.inputs[port], (node, port))
            with RawPcapReader(str(self._file((node, port)))) as reader:
                for octets, meta in reader:
                    record = bytes(octets)
                    tick = round((meta.sec * 10**9 + meta.usec) / TICK_NS)
                    header, payload = int.from_bytes(record[16:20], "big"), record[20:68]
                    wire = back if record[9] & 1 else forth
                    found.setdefault(wire, []).append(Seen(tick, header, payload, bool(record[9] & 16)))
        return found

    def reasons(self, switch: Switch, wires: dict[tuple[Face, Face], list[Seen]]) -> dict[tuple[int, bytes], str]:
        """Why the switch dropped cells, by tick and payload: a model of it gets what came in and gives what left."""
        vcs = []
        if self.path_limit and switch in self.chain[1:-1]:
            vcs = [Vc(a, VPI, 0, b, VPI, 0, limit=self.path_limit, vpc=True) for a, b in ((2, 3), (3, 2))]
        for way in self.ways:
            if switch not in way.path or (way.in_path and switch in self.chain[1:-1]):
                continue
            k = way.path.index(switch)
            into = next(port for port, (node, _) in switch.inputs.items() if node is way.path[k - 1])
            out = next(port for port, (node, _) in switch.outputs.items() if node is way.path[k + 1])
            ppd, epd = {"tail": (False, False), "ppd": (True, False), "epd": (True, True)}[way.policy]
            own = way.own_epd
            numbers = *way.vc(k - 1), out, *way.vc(k)
            vcs.append(Vc(into, *numbers, limit=way.limit, ppd=ppd, epd=epd, epd_threshold=own))
        settings = switch.settings
        model = Model(
            vcs,
            ports=4,
            capacity=settings.buffer_cells,
            user_capacity=settings.buffer_cells - settings.oam_reserve,
            epd_threshold=settings.epd_cells,
            clp_threshold=settings.clp_threshold,
        )
        happens: list[tuple[int, int, int, Seen]] = []
        for (source, sink), cells in wires.items():
            if sink[0] is switch:
                happens += [(cell.tick, 0, sink[1], cell) for cell in cells]
            if source[0] is switch:
                happens += [(cell.tick - 1, 1, source[1], cell) for cell in cells]
        found = {}
        for tick, leaves, port, cell in sorted(happens, key=lambda each: each[:3]):
            if leaves:
                gone = model.depart(port)
                assert gone and gone[2] == cell.payload
                continue
            _, reason = model.arrive(port, Header.unpack(cell.header.to_bytes(4, "big")), cell.bad, cell.payload)
            if reason in REASONS:
                found[tick, cell.payload] = REASONS[reason]
        assert model.occupancy == 0
        return found


def bits(a: Seen, b: Seen) -> int:
    """Bits in which two cells differ."""
    difference = int.from_bytes(a.payload, "big") ^ int.from_bytes(b.payload, "big")
    return difference.bit_count() + (a.header ^ b.header).bit_count()


def fates(observed: Observed) -> list[tuple[list[int], Counter[tuple[str, str]]]]:
    """For each VC the numbers of the PDUs delivered, and all others by where and why, from the wires alone."""
    wires = observed.wires()
    reasons = {switch.name: observed.reasons(switch, wires) for switch in observed.chain}
    result = []
    for way in observed.ways:
        header = Header(vci=way.vci, clp=int(way.clp))
        expected = [(n, cell.payload) for n, sdu in enumerate(way.sdus) for cell in segment(header, sdu)]
        ends = Counter(n for n, _ in expected)
        first: dict[int, tuple[int, int, str, str]] = {}

        def lost(number: int, tick: int, node: Node, why: str, first=first) -> None:
            first[number] = min(first.get(number, (1 << 62, 0, "", "")), (tick, node.index, node.name, why))

        def wire(k: int, way: Way = way) -> list[Seen]:
            a, b = way.path[k], way.path[k + 1]
            faces = next((a, port) for port, (node, _) in a.outputs.items() if node is b)
            return wires.get((faces, a.outputs[faces[1]]), [])

        start = [cell for cell in wire(0) if cell.vc == way.vc(0)]
        assert [cell.payload for cell in start] == [payload for _, payload in expected]
        here = [(cell, n) for cell, (n, _) in zip(start, expected, strict=True)]
        for k, node in enumerate(way.path[1:-1], 1):
            after = {cell.payload: cell for cell in wire(k)}
            there: list[tuple[Seen, int]] = []
            before = {cell.payload for cell, _ in here}
            others = {cell.payload for w, cells in wires.items() if w[1][0] is node for cell in cells}
            changed = [cell for payload, cell in after.items() if payload not in others]
            for cell, n in here:
                out = after.get(cell.payload)
                if out is None and isinstance(node, Switch):
                    lost(n, cell.tick, node, reasons[node.name][cell.tick, cell.payload])
                    continue
                if out is None:
                    out = min(changed, key=lambda other, cell=cell: bits(cell, other), default=None)
                    if out is None or bits(cell, out) > 60:
                        lost(n, cell.tick, node, "listed loss")
                        continue
                assert isinstance(node, Switch) or cell.tick < out.tick
                if out.bad:
                    lost(n, cell.tick, node, "header error (HEC)")
                    continue
                if out.vc != way.vc(k):
                    lost(n, cell.tick, node, "header error (unnoticed)")
                    continue
                if out.payload != cell.payload:
                    lost(n, cell.tick, node, "bit error")
                there.append((out, n))
            assert len(before) == len(here)
            here = there
        reassembly, rows, delivered, verdicts = Reassembly(2000), Counter(), [], {}
        last = dict(Counter(n for _, n in here))
        come = Counter()
        for cell, n in here:
            come[n] += 1
            ended = reassembly.receive(Cell(Header.unpack(cell.header.to_bytes(4, "big")), cell.payload))
            if ended is None:
                continue
            assert come[n] == last[n]
            if ended.status == 0:
                assert ended.sdu == way.sdus[n] and ends[n] == come[n]
                delivered.append(n)
            else:
                verdicts[n] = ended.status.name.lower().replace("_", " ").replace("crc", "CRC")
        for n in set(range(len(way.sdus))) - set(delivered):
            name, why = first[n][2:] if n in first else (way.path[-1].name, f"joined ({verdicts[n]})")
            rows[name, why.replace("joined (overlength)", "overlength")] += 1
        result.append((delivered, rows))
    return result


@pytest.mark.parametrize(
    ("seed", "ber", "switches", "path"),
    [
        (1, 1e-6, 2, False), (2, 1e-5, 3, False), (3, 1e-4, 3, False), (4, 1e-3, 2, False),
        (5, 1e-6, 3, True), (6, 1e-4, 4, True), (7, 1e-3, 4, True),
    ],
)  # fmt: skip
def test_each_row_is_what_the_wires_say(tmp_path: Path, seed: int, ber: float, switches: int, path: bool) -> None:
    """Random networks with all policies, bit errors and listed losses, some with a virtual path: for each VC, who was
    delivered and every row."""
    observed = Observed(tmp_path, seed, ber, switches, path=path)
    arrived = observed.run()
    accounts = observed.network.ledger()
    for way, account, (delivered, rows) in zip(observed.ways, accounts, fates(observed), strict=True):
        assert arrived[way.vci] == delivered
        assert account.sent == len(way.sdus)
        assert account.delivered == len(delivered)
        assert account.lost == dict(rows), way
        assert sum(account.lost.values()) == account.sent - account.delivered
        cells = account.cells
        assert cells.sent == sum(len(segment(Header(vci=way.vci), sdu)) for sdu in way.sdus)
        assert cells.received == cells.sent - sum(cells.lost.values())
    assert observed.network.loop.ledger_records() < (
        250 if path else 20
    )  # tail drop loses ends: runs wait for the next
    if path:
        inside, ways = {s.name for s in observed.chain[1:-1]}, zip(observed.ways, accounts, strict=True)
        places = Counter(where for way, account in ways if way.in_path for where, _ in account.lost)
        assert inside <= {*places}, "each switch of the path drops cells"


def pair(line: str = "cells", ber: float = 0.0) -> tuple[Network, Nic, Nic, int]:
    """Two NICs with a switch between them, and a VC; the second is behind a link or a SONET line."""
    network = Network(seed=5)
    a, b, switch = network.add_nic("a"), network.add_nic("b"), network.add_switch("s", SwitchSettings(buffer_cells=400))
    network.connect(a, (switch, 0))
    network.connect((switch, 0), a)
    if line == "sonet":
        node = network.add_sonet_line("line", SonetSettings(ber=(ber, ber)))
        network.connect((switch, 1), (node, 0))
        network.connect((node, 0), (switch, 1))
        network.connect((node, 1), b)
        network.connect(b, (node, 1))
    else:
        node = network.add_link("line", LinkSettings(delay_ps=MS, ber=ber))
        network.connect((switch, 1), node)
        network.connect(node, b)
    vc = network.add_vc([a, switch, node, b], 0, 100)
    network.start()
    return network, a, b, vc


def delivered_by(network: Network, nic: Nic, end: int) -> int:
    """PDUs delivered to a NIC up to a time, as it reports them."""
    count = 0
    while network.now_ps < end:
        count += sum(event.nic == nic.index and event.status == 0 for event in network.run(end))
    return count


def test_under_way_at_the_end_is_a_row() -> None:
    """PDUs in the NIC, in the switch and on the line are not lost; later they are delivered."""
    network, a, b, vc = pair()
    for k in range(20):
        network.send(a.index, vc, bytes([k]) * 2000, key=k % 4)
    count = delivered_by(network, b, int(1.5 * MS))
    (account,) = network.ledger()
    assert 0 < count < 20 and account.lost == {("", "under way"): 20 - count}
    streams = [network.under_way(a.index, vc, b.index, key) for key in range(5)]  # they came in order
    assert streams == [sum(k % 4 == key for k in range(count, 20)) for key in range(5)]
    count += delivered_by(network, b, 10 * MS)
    (account,) = network.ledger()
    assert (count, account.delivered, account.lost) == (20, 20, {})
    assert network.under_way(a.index, vc, b.index, 0) == 0


@pytest.mark.parametrize("what", ["random", "signal"])
def test_losses_of_a_sonet_line(what: str) -> None:
    """Bit errors, and the line dark for 2 ms: the line is where all was lost, but for PDUs that the switch refused."""
    network, a, b, vc = pair("sonet", 1e-5 if what == "random" else 0.0)
    line = network.nodes[3]
    count = 0
    for k in range(200):
        network.send(a.index, vc, bytes([k]) * 2000)
        if what == "signal" and k == 100:
            line.driver.lose_signal(0, 4320)
        count += delivered_by(network, b, network.now_ps + MS // 5)
    count += delivered_by(network, b, network.now_ps + 10 * MS)
    (account,) = network.ledger()
    assert account.delivered == count < 200 == account.sent
    assert sum(account.lost.values()) == 200 - count
    assert {where for where, _ in account.lost} == {"line"}
    expected = {"bit error"} if what == "random" else {"cells lost on the line"}
    assert expected <= {why for _, why in account.lost}


def test_drops_that_the_ledger_did_not_get_are_an_error() -> None:
    network, a, b, vc = pair()
    for _ in range(30):
        network.send(a.index, vc, bytes(2000))
    delivered_by(network, b, 10 * MS)
    network.ledger()
    switch = network.nodes[2]
    real = switch._seen
    switch._seen = lambda what: real(what) + (what == 1)
    with pytest.raises(NetworkError, match=r"s: cells got lost or doubled: cells of VC 0 dropped \("):
        network.ledger()


def test_pdus_that_vanish_are_an_error() -> None:
    """The sink forgets the VC in mid-run: nothing says results PDUs, so the run can't be trusted."""
    network, a, b, vc = pair()
    network.send(a.index, vc, bytes(2000))
    for entry in range(len(b.csr.lookup)):
        b.csr.lookup[entry] = 0
    delivered_by(network, b, 10 * MS)
    with pytest.raises(NetworkError, match="expects the ends of 1 PDUs, and 0 are on their way"):
        network.ledger()


@pytest.fixture(scope="module")
def alone() -> Path:
    """The ledger in a program of its own."""
    return program_of("ledger", Path(__file__).with_name("ledger.cpp").read_text(), CSRC / "ledger.cpp")


@pytest.mark.parametrize("often", [0, 0.002, 0.02])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("path", [0, 1])
def test_everything_at_once_and_counters_that_wrap(alone: Path, seed: int, often: float, path: int) -> None:
    """Cells dropped, hit, led astray into other VCs and lost again there, ends of PDUs made and unmade: each PDU
    fares as its cells say, across the wrap of 32 bits, or in a virtual path, and what is kept does not grow."""
    most = 1000 if seed else 100_000  # records of lost cells
    done = subprocess.run([alone, str(seed), str(often), str(path), str(most)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert int(done.stdout.split("; ")[1].split()[0]) < 10
