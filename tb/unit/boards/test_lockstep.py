"""Networks in lockstep with a board in software: the driver, the windows and the comparison, at speed."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from bentpipe_hdl.nic.control import NicSettings
from bentpipe_hdl.sonet.control import SonetSettings
from bentpipe_hdl.switch.control import SwitchPort
from bentpipe_sim.board.board import Board
from bentpipe_sim.board.client import Client
from bentpipe_sim.board.errors import BoardError, MismatchError
from bentpipe_sim.board.gateware import gateware
from bentpipe_sim.board.lockstep import LockstepNetwork
from bentpipe_sim.board.model import ModelBoard, ModelPipe
from bentpipe_sim.board.placement import checksummed, placed, plan_of
from bentpipe_sim.board.windows import Plan
from bentpipe_sim.build import Shape
from bentpipe_sim.network import Network
from boards.networks import NETWORKS, play


def _attach(plan: Plan) -> Board:
    return Board(Client(ModelPipe(plan)))


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_is_the_same_on_the_board(name: str) -> None:
    network = LockstepNetwork(_attach, seed=3)
    plain = Network(seed=3)
    try:
        events = play(network, NETWORKS[name](network), pdus=12)
        verified = network.verify()
        assert verified["pdus"] == verified["ended"] == len(events) > 12
        network.check_conservation()
        assert events == play(plain, NETWORKS[name](plain), pdus=12)  # a board beside it changes nothing
    finally:
        network.close()
        plain.close()


@pytest.mark.parametrize("name", ["bit errors", "credits"])
def test_only_heads_cross_a_board_with_patterns(name: str) -> None:
    crossed = []
    events: list[list[Any]] = []
    for patterns in (False, True):

        def attach(plan: Plan, patterns: bool = patterns) -> Board:
            return _attach(replace(plan, patterns=patterns))

        network = LockstepNetwork(attach, seed=3)
        try:
            events.append(play(network, NETWORKS[name](network), pdus=12))
            verified = network.verify()
            assert verified["pdus"] == verified["ended"] == len(events[-1]) > 12
            crossed.append((network.board.client.octets_out, network.board.client.octets_in))
        finally:
            network.close()
    assert events[0] == events[1]
    assert all(with_patterns < without / 2 for without, with_patterns in zip(*crossed, strict=True))


@pytest.mark.parametrize("size", range(1976, 2000, 4))
def test_a_list_with_a_run_fits_a_frame(size: int) -> None:
    """A board with short frames drops a frame that is a word too long."""
    network = LockstepNetwork(lambda plan: _attach(replace(plan, frame_words=512)), seed=3)
    try:
        nic = network.add_nic("nic")
        network.connect(nic, nic)
        vc = network.add_vc([nic, nic], 0, 100)
        for k in range(1, 4):
            network.send(nic.index, vc, b"x" * size)
            assert [event.length for event in network.run(k * 10**9)] == [size]
            assert network.verify()["pdus"] == k
    finally:
        network.close()


def test_a_board_with_patterns_says_so() -> None:
    plan = Plan((Shape.of("nic", vcs=16),), (64,))
    has = replace(plan, patterns=True)
    assert Plan.from_json(has.to_json()) == has != plan
    assert "patterns" not in plan.to_json()


def test_the_board_has_all_settings_when_the_network_has_begun() -> None:
    network = LockstepNetwork(_attach, seed=3)
    try:
        NETWORKS["bit errors"](network)
        network.start()
        written = 0
        for node in network.nodes:
            walked = node.csr.map.walk()
            addrs = [at for _, at, register in walked if register.access == "rw" and register.count is None]
            native = [network.loop.csr_read(node.index, at) for at in addrs]
            assert network.place.read(node.index, addrs) == native
            written += sum(map(bool, native))
        assert written > 10
    finally:
        network.close()


def _spoilt(spoil: Callable[[ModelBoard], None]) -> Callable[[Plan], Board]:
    def attach(plan: Plan) -> Board:
        pipe = ModelPipe(plan)
        spoil(pipe._board)
        return Board(Client(pipe))

    return attach


def _late(board: ModelBoard) -> None:
    lay = board._lay

    def laid() -> None:
        wire = next(addr for addr in range(0x200, 0x300) if board._table.words.get(addr, 0) & 0x7FFFFFFF)
        board._table.words[wire] += 1
        lay()

    board._lay = laid  # type: ignore[method-assign]


def _wrong_octet(board: ModelBoard) -> None:
    post = board._post

    def posted(node: int, port: Any, length: int, vc: int) -> None:
        port.tx[port.table.words[0] + 3] ^= 1 << 9
        post(node, port, length, vc)

    board._post = posted  # type: ignore[method-assign]


def _wrong_count(board: ModelBoard) -> None:
    """A checker that has withheld a cell more than it says."""
    board.plan = replace(board.plan, patterns=True)
    board._reset()
    record = board._record

    def recorded(event: Any) -> None:
        record(event)
        records = board._ports[event.nic].records
        for k, word in enumerate(records):
            if word >> 28 == 1 and word >> 12 & 0x7FF > 1:
                records[k] = word - (1 << 12)
                break

    board._record = recorded  # type: ignore[method-assign]


def _wrong_check(board: ModelBoard) -> None:
    read = board.read
    board.read = lambda addr: read(addr) ^ (addr == 0x301)  # type: ignore[method-assign]


@pytest.mark.parametrize(
    ("spoil", "what"),
    [
        (_late, "on the board"),
        (_wrong_octet, "on the board"),
        (_wrong_count, "on the board"),
        (_wrong_check, "output .*: the signature of its cells"),
    ],
)
def test_a_board_that_differs_is_noticed(spoil: Callable[[ModelBoard], None], what: str) -> None:
    network = LockstepNetwork(_spoilt(spoil), seed=3)
    try:
        with pytest.raises(MismatchError, match=what):
            play(network, NETWORKS["overrun"](network), pdus=3)
            network.verify()
    finally:
        network.close()


@pytest.mark.parametrize("is_old", [False, True])
def test_a_board_of_other_rtl_is_named_at_the_start_and_at_a_difference(
    is_old: bool, caplog: pytest.LogCaptureFixture
) -> None:
    told = f"the board has gateware 0123456789ab, this software's is {gateware()}: flash or rebuild"

    def attach(plan: Plan) -> Board:
        has = replace(plan, gateware="0123456789ab" if is_old else gateware())
        return _spoilt(_wrong_check)(has)

    network = LockstepNetwork(attach, seed=3)
    try:
        play(network, NETWORKS["overrun"](network), pdus=1)
        assert (f"{told} if the run differs" in caplog.text) == is_old
        with pytest.raises(MismatchError) as raised:
            network.verify()
        assert str(raised.value).endswith(f"; {told}") == is_old
    finally:
        network.close()


def test_a_counter_that_differs_is_named() -> None:
    network = LockstepNetwork(_attach, seed=3)
    try:
        play(network, NETWORKS["overrun"](network), pdus=3)
        read = network.board.read
        network.board.read = lambda addrs: [word + 1 for word in read(addrs)]  # type: ignore[method-assign]
        with pytest.raises(MismatchError, match=r"n0: tx_cells\[0\] is \d+ on the board and \d+ natively"):
            network._compare_counters(network.nodes[0])
    finally:
        network.close()


def test_counters_of_each_vc_are_compared() -> None:
    network = LockstepNetwork(_attach, seed=3)
    try:
        play(network, NETWORKS["overrun"](network), pdus=3)
        network.verify()
        for node in network.nodes:
            shown = [value if isinstance(value, list) else [value] for value in node.counters().values()]
            assert network._compare_counters(node) == sum(map(len, shown)), node.name
    finally:
        network.close()


def test_two_hosts_may_act_at_once() -> None:
    """One interface works in the tick in which both get a PDU, and sees it a tick later than the other one."""
    network = LockstepNetwork(_attach, seed=3)
    vcs = NETWORKS["overrun"](network)
    try:
        network.send(0, vcs[0], b"x" * 9000)
        for _ in range(40):
            network.run(network.now_ps + 1_000_003)
            seen = [network.loop.next_tick(nic) for nic in (0, 1)]
            for nic in (0, 1):
                network.send(nic, vcs[nic], b"y" * 100)
            if seen[0] > seen[1]:
                break
        else:
            pytest.fail("the first one's PDU was never seen later")
        while network.now_ps < 10**9:
            network.run(10**9)
        assert network.verify()["pdus"] > 2
    finally:
        network.close()


def test_a_board_without_a_node_of_the_shape_is_refused() -> None:
    network = Network()
    NETWORKS["overrun"](network)
    plan = plan_of(network)
    small = replace(plan, nodes=(*plan.nodes[:2], Shape.of("nic", vcs=256), *plan.nodes[3:]))
    with pytest.raises(BoardError, match=r"has no nic\(vcs=64\) left for n2; of nic it has nic\(vcs=256\)"):
        placed(plan, small, [node.name for node in network.nodes])


def test_nodes_are_placed_where_wires_are_long_enough() -> None:
    nics = (Shape.of("nic", vcs=16),) * 3
    board = Plan(nics, (64, 1024, 32))
    assert placed(Plan(nics, (32, 16, 512)), board, ["a", "b", "c"]) == {0: 3, 1: 1, 2: 2}
    with pytest.raises(BoardError, match=r"b: its wires need room for 2048 cells, and those of nic\(vcs=16\) on the"):
        placed(Plan(nics, (32, 2048, 16)), board, ["a", "b", "c"])
    with pytest.raises(BoardError, match=r"c: its wires need room for 64 cells, and .* have room for 32: flash or"):
        placed(Plan(nics, (64, 64, 64)), board, ["a", "b", "c"])


def test_ports_that_lead_nowhere_have_no_wire() -> None:
    network = Network()
    nic, switch = network.add_nic("nic"), network.add_switch("switch", ports=[SwitchPort()] * 4)
    network.connect(nic, (switch, 0))
    network.connect((switch, 3), nic)
    plan = plan_of(network)
    assert [cells > 0 for cells in plan.wires] == [True, False, False, False, True]
    other = replace(plan, wires=(*plan.wires[:4], 0))
    with pytest.raises(BoardError, match=r"switch: its port 3 leads somewhere, and that of switch\(.*\) on the"):
        placed(plan, other, ["nic", "switch"])


def test_wires_in_an_sdram_are_in_the_description() -> None:
    nodes = (Shape.of("link"), Shape.of("nic", vcs=16))
    plan = Plan(nodes, (1 << 17, 64), sdram=(0,))
    assert Plan.from_json(plan.to_json()) == plan != Plan(nodes, (1 << 17, 64))
    assert plan.sdram_cells == 1 << 17
    for faces, wrong in ((2,), 2), ((-1, 0), -1), ((1, 1), 1):
        with pytest.raises(ValueError, match=f"faces in the SDRAM are from 0 to 1, each once, not {wrong}$"):
            Plan(nodes, (64, 64), sdram=faces)
    with pytest.raises(ValueError, match="face 1 is in the SDRAM and has no wire"):
        Plan(nodes, (64, 0), sdram=(1,))
    with pytest.raises(ValueError, match="an SDRAM holds 524288 cells, not 2 x 524288"):
        Plan(nodes, (1 << 19, 64), sdram=(0, 1))
    large = Plan(nodes, (1 << 22, 64), sdram=(0, 1), ddr3=True)
    assert Plan.from_json(large.to_json()) == large
    assert "ddr3" not in plan.to_json()
    with pytest.raises(ValueError, match="a DDR3 memory holds 8388608 cells, not 2 x 8388608"):
        Plan(nodes, (1 << 23, 64), sdram=(0, 1), ddr3=True)
    with pytest.raises(ValueError, match="a plan with DDR3 has a wire in it"):
        Plan(nodes, (64, 64), ddr3=True)


def test_a_plan_is_what_its_description_says() -> None:
    plan = Plan((Shape.of("nic", vcs=64), Shape.of("switch", vcs=64, cells=64, ports=4)), (16, 32, 16, 16, 64))
    assert Plan.from_json(plan.to_json()) == plan
    assert plan.bases == (0, 1) and plan.faces == 5
    with pytest.raises(ValueError, match="no description of a board"):
        Plan.from_json('{"nodes": []}')
    with pytest.raises(ValueError, match="5 faces, of at most 255, have a wire each, and there are 1"):
        Plan(plan.nodes, (16,))


def test_networks_that_no_board_has_yet_are_refused() -> None:
    network = Network()
    network.add_nic("a", NicSettings(oam=True))
    with pytest.raises(BoardError, match="a: host ports of boards send and receive no OAM cells yet"):
        plan_of(network)
    network = Network()
    network.add_sonet_line("line", SonetSettings(sts=3))
    with pytest.raises(BoardError, match="line: boards have no SONET lines yet"):
        plan_of(network)


def test_checksums_are_those_of_the_native_network() -> None:
    rng, network = random.Random(1), Network()
    a, b = network.add_nic("a"), network.add_nic("b")
    network.connect(a, b)
    vc = network.add_vc([a, b], 0, 100)
    try:
        for _ in range(40):
            head = rng.randbytes(rng.randrange(20, 60))
            at = rng.choice((6, 10, 16))
            network.send(0, vc, head, 1, 0, 0, 0, at)
            until = network.now_ps + 10**9
            event = next(event for event in network.run(until))
            assert network.sdu(event.handle) == checksummed(head, 0, at)
        zero = bytes(20)
        assert checksummed(zero, 0, 6)[6:8] == b"\xff\xff"
    finally:
        network.close()
