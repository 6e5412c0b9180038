"""Waves: what a VCD of a node shows is what passed it in a run that nothing was recorded of, tick by tick."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

import pytest
from vcd.reader import TokenKind, tokenize

from bentpipe_hdl.link.control import LinkSettings
from bentpipe_hdl.sonet.control import SonetSettings
from bentpipe_hdl.ticks import TICKS_A_SECOND, ticks_to_ps
from bentpipe_sim.errors import SimulationError
from bentpipe_sim.network import Network
from bentpipe_sim.wave.recorder import Recorder
from bentpipe_sim.wave.replay import replay
from unit.sim.test_captures import records
from unit.sim.test_network import MS, satellite

BEGIN, END = 4 * MS, 4 * MS + MS // 16
ERF = 197


@dataclass
class Edge:
    """A rising edge of ``clk``: its time, values of all signals by path just before it and just after."""

    time_ps: int
    before: dict[tuple[str, ...], int]
    after: dict[tuple[str, ...], int]


def edges(path) -> Iterator[Edge]:
    names: dict[str, list[tuple[str, ...]]] = {}
    scope: list[str] = []
    now: dict[tuple[str, ...], int] = {}
    before, time, begun = {}, 0, False
    clk = ("node", "clk")

    def edge():
        if begun and now[clk] and not before[clk]:
            yield Edge(time, before, dict(now))

    with path.open("rb") as file:
        for token in tokenize(file):
            if token.kind is TokenKind.SCOPE:
                scope.append(token.scope.ident)
            elif token.kind is TokenKind.UPSCOPE:
                scope.pop()
            elif token.kind is TokenKind.VAR:
                names.setdefault(token.var.id_code, []).append((*scope, token.var.reference.lstrip("\\")))
            elif token.kind is TokenKind.CHANGE_TIME:
                assert token.time_change >= time
                yield from edge()
                begun, before, time = clk in now, dict(now), token.time_change
            elif token.kind in (TokenKind.CHANGE_SCALAR, TokenKind.CHANGE_VECTOR):
                change = token.scalar_change if token.kind is TokenKind.CHANGE_SCALAR else token.vector_change
                for name in names[change.id_code]:
                    now[name] = int(change.value, 2) if isinstance(change.value, str) else change.value
        yield from edge()


def fed(**options):
    network, nics, vcs = satellite(ber=1e-5, **options)
    for k in range(40):
        network.send(nics[0].index, vcs[0], b"first", key=1, offset=1000 * k, length=4000)
        network.send(nics[2].index, vcs[1], b"second", key=2, offset=500 * k, length=1500 + 17 * k)
    return network


def go(network: Network, until_ps: int):
    while network.now_ps < until_ps:
        network.run(until_ps)


@cache
def recorded(name: str):
    network = fed()
    go(network, BEGIN)
    node = next(node for node in network.nodes if node.name == name)
    recorder = Recorder(network.loop, node.index, node.shape(), network.loop.now() + 1)
    go(network, (BEGIN + END) // 2)
    network.sample()
    network.counters()  # accesses to registers, between two ticks
    go(network, END)
    return recorder.taken()


@pytest.fixture(scope="module")
def wave(tmp_path_factory):
    """The wave of a recorded node; that it is replayed says that its outputs and its state are those of the run."""

    @cache
    def made(name: str):
        file = tmp_path_factory.mktemp("wave") / f"{name}.vcd"
        replay(recorded(name), "node", file, "a test")
        return file

    return made


def captured(name: str, folder):
    """The cells that a node took and gave, by a run of its own: tick, port, header, payload."""
    network = fed(start=False)
    node = next(node for node in network.nodes if node.name == name)
    network.start()
    faces = [port for port in node.inputs if port in node.outputs]
    for port in faces:
        network.capture(folder / f"{name}-{port}", "cells", (node, port))
    go(network, END + MS)
    network.end_captures()
    came, went = [], []
    for port in faces:
        for record in records(folder / f"{name}-{port}", ERF):
            (time,) = struct.unpack("<Q", record.octets[:8])
            header = int.from_bytes(record.octets[16:20], "big")
            tick = round(time / 2**32 * TICKS_A_SECOND)
            (came if record.octets[9] & 1 else went).append((tick, port, header, record.octets[20:]))
    return sorted(came), sorted(went)


def cells(path):
    """The cells that came, in their ticks, and those that went, in the ticks in which their last bits leave."""
    came, went = [], []
    for edge in edges(path):
        tick = edge.before["node", "ports", "time_now"]
        if not edge.before["node", "ports", "time_tick"]:
            continue
        assert edge.time_ps == ticks_to_ps(tick)
        for found, way, values in ((came, "i", edge.before), (went, "o", edge.after)):
            if values["node", "ports", f"{way}_valid"]:
                port, header, payload = (
                    values.get(("node", "ports", f"{way}_{what}"), 0) for what in ("port", "header", "payload")
                )  # a NIC has no ports
                at = max(values["node", "ports", "o_end"], tick + 1) if way == "o" else tick
                found.append((at, port, header, payload))
    return came, went


@pytest.mark.parametrize("name", ["west", "a"])
def test_its_cells_are_those_of_a_run_that_was_captured(name, wave, tmp_path):
    taken = recorded(name)
    came, went = cells(wave(name))
    ours, others = captured(name, tmp_path)

    def known(found, first, last):
        return [
            (tick, port, header, int.from_bytes(payload, "little"))
            for tick, port, header, payload in found
            if first <= tick <= last
        ]

    assert sorted(came) == known(ours, taken.begin, taken.end)
    assert (came or name == "a") and len(went) > 20
    # Seen where the next node takes them, as they end, 16 ticks after their start: or a tick later, where another line
    # brought one at once.
    later = known(others, taken.begin + 1, taken.end + 20)
    assert all({(tick, *cell), (tick + 1, *cell)} & {*later} for tick, *cell in went)
    assert {cell[1:] for cell in known(others, taken.begin + 20, taken.end + 1)} <= {cell[1:] for cell in went}


@pytest.mark.parametrize("name", ["a", "out"])
def test_each_tick_has_an_edge(name, wave):
    taken = recorded(name)
    found = [edge for edge in edges(wave(name)) if edge.before["node", "ports", "time_tick"]]
    ticks = [edge.before["node", "ports", "time_now"] for edge in found]
    assert ticks == [*range(taken.begin, taken.end + 1)] and len(ticks) == 353


def test_a_node_of_sonet(tmp_path):
    network = Network(seed=3)
    a, b = (network.add_nic(name) for name in "ab")
    line = network.add_sonet_line("line", SonetSettings(ber=(2e-6, 2e-6)))
    for end, nic in enumerate((a, b)):
        network.connect(nic, (line, end))
        network.connect((line, end), nic)
    vc = network.add_vc([a, line, b], 0, 100)
    network.start()
    for k in range(20):
        network.send(a.index, vc, b"head", key=1, offset=4000 * k, length=4000)
    go(network, MS // 5)
    recorder = Recorder(network.loop, line.index, line.shape(), network.loop.now() + 1)
    go(network, MS // 5 + MS // 500)
    replay(recorder.taken(), "node", tmp_path / "wave.vcd", "a test")
    assert any(edge.after["node", "ports", "o_valid"] for edge in edges(tmp_path / "wave.vcd"))


@pytest.mark.parametrize("what", ["o_header", "a bit of its state"])
def test_what_the_rtl_would_not_do_is_found(what, tmp_path):
    taken = recorded("out")
    clocks = list(taken.clocks)
    if what in clocks[0].ports:
        clocks[9] = replace(clocks[9], ports=clocks[9].ports | {what: clocks[9].ports[what] ^ 1})
        taken = replace(taken, clocks=clocks)
    else:
        octets = bytearray(taken.before)
        octets[next(k for k in range(2000, len(octets)) if octets[k])] ^= 1
        taken = replace(taken, before=bytes(octets))
    with pytest.raises(SimulationError, match="please report this"):
        replay(taken, "node", tmp_path / "wave.vcd", "a test")
    assert not (tmp_path / "wave.vcd").exists()


def test_a_memory_has_the_rows_that_change(wave):
    found = list(edges(wave("west")))
    names = set(found[0].before)
    assert {("node", "admission", "policy"), ("node", "buffer", "head")} <= names
    rows = {name for name in names if name[-1].startswith("payloads[")}
    assert 3 < len(rows) < 512
    for row in rows:
        values = [edge.after[row] for edge in found]
        assert values[0] != values[-1] or len(set(values)) > 1


def test_a_node_is_recorded_once():
    network = Network(seed=1, engine="native")
    node = network.add_link("line", LinkSettings(delay_ps=MS))
    nics = [network.add_nic(name) for name in "ab"]
    network.connect(nics[0], node)
    network.connect(node, nics[1])
    network.start()
    recorder = Recorder(network.loop, node.index, node.shape(), 0)
    with pytest.raises(SimulationError, match=r"^the node is recorded already$"):
        Recorder(network.loop, node.index, node.shape(), 0)
    network.run(MS)
    assert recorder.taken()
