"""A board over UDP: sockets of this machine, a board in software, and the driver as it is."""

from __future__ import annotations

import json
import os
import select
import socket
from collections.abc import Iterator

import pytest

from benches.udp_board import UdpBoard
from bentpipe.cli import main
from bentpipe_sim.board.board import Board
from bentpipe_sim.board.client import GIVE_UP_S, Client, Items
from bentpipe_sim.board.errors import BoardError
from bentpipe_sim.board.lockstep import LockstepNetwork
from bentpipe_sim.board.pipe import UDP_PORT, UdpPipe
from bentpipe_sim.board.target import TARGET, check_target, is_hardware, make_network, open_target
from bentpipe_sim.board.windows import Plan, board_registers
from bentpipe_sim.build import Shape
from bentpipe_sim.network import Network
from boards.networks import NETWORKS, play

TINY = Plan((Shape.of("link"),), (16,), tx_words=16, rx_words=128)
HERE = "127.0.0.1"


class _Pipe(UdpPipe):
    """A real socket, and a clock that stands while there is something to do."""

    def __init__(self, board: UdpBoard) -> None:
        self.board, self.time = board, 0.0
        super().__init__(HERE, board.port)

    def now(self) -> float:
        return self.time

    def receive(self, until: float) -> bytes:
        self.board.pump()
        if select.select([self._socket], [], [], 0)[0]:
            return super().receive(until)
        self.time = max(self.time, until)
        return b""


@pytest.fixture
def tiny() -> Iterator[UdpBoard]:
    board = UdpBoard(TINY)
    yield board
    board.close()


@pytest.mark.parametrize("spoilt", [0.0, 0.1])
def test_a_network_is_the_same_on_a_board_over_udp(spoilt: float) -> None:
    boards: list[UdpBoard] = []
    pipes: list[_Pipe] = []

    def attach(plan: Plan) -> Board:
        boards.append(UdpBoard(plan, spoilt=spoilt))
        pipes.append(_Pipe(boards[0]))
        return Board(Client(pipes[0]))

    network, plain = LockstepNetwork(attach, seed=3), Network(seed=3)
    try:
        events = play(network, NETWORKS["overrun"](network), pdus=6)
        verified = network.verify()
        assert verified["pdus"] == verified["ended"] == len(events) > 6
        assert events == play(plain, NETWORKS["overrun"](plain), pdus=6)
        client = network.board.client
        assert client.octets_out > 1472 and client.octets_in > 1472
        assert (client.repeats > 5 and boards[0].faults > 20) == bool(spoilt)
    finally:
        network.close()
        plain.close()
        boards[0].close()


def test_frames_longer_than_a_datagram_pass_both_ways(tiny: UdpBoard) -> None:
    client = Client(_Pipe(tiny))
    try:
        scratch = board_registers(TINY)["scratch"].addr
        items = Items()
        for value in range(1, 165):  # 3 words each: more than 1,472 octets
            items.write(scratch, [0x01010101 * value])
        items.read(scratch)
        assert client.do(items) == [(0x01010101 * 164,)]
        items = Items()
        for _ in range(200):
            items.read(scratch, 2)
        assert [words[0] for words in client.do(items)] == [0x01010101 * 164] * 200
        assert client.octets_in > 1600 and client.repeats == 0
    finally:
        client.close()


def test_a_second_client_ends_the_session_of_the_first(tiny: UdpBoard) -> None:
    first, second = Client(_Pipe(tiny), 5), Client(_Pipe(tiny), 6)
    scratch = board_registers(TINY)["scratch"].addr
    try:
        items = Items()
        items.write(scratch, [7])
        with pytest.raises(BoardError, match="another program has opened the board"):
            first.do(items)
        items = Items()
        items.read(scratch)
        assert second.do(items) == [(0,)], "what the first one wanted is not done"
        assert Client(first._pipe, 8).do(items) == [(0,)], "it may open the board again"
    finally:
        first.close()
        second.close()


def test_a_board_that_answers_nothing_is_given_up(tiny: UdpBoard) -> None:
    client = Client(_Pipe(tiny))
    tiny.spoilt = 1.0
    tiny._random.choice = lambda kinds: "lost"  # type: ignore[method-assign]
    assert isinstance(client._pipe, _Pipe)
    begun = client._pipe.time
    with pytest.raises(BoardError, match=r"has not answered for 1\.8 s"):
        client.do(Items())
    assert client._pipe.time - begun <= GIVE_UP_S + 0.2
    client.close()


def _unused() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind((HERE, 0))
        return free.getsockname()[1]


def test_a_host_that_is_no_board_refuses() -> None:
    pipe = UdpPipe(HERE, _unused())
    with pytest.raises(BoardError, match=rf"^{HERE}, UDP port \d+: is refused: the host is there, but no board"):
        Client(pipe)
    pipe.close()


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("a" * 70, "the address of 'a+' is unknown"),
        ("255.255.255.255", r"255.255.255.255, UDP port 10053: cannot be reached \(Permission denied\): check the"),
        ("::1", "the address of '::1' is unknown"),
    ],
)
def test_an_address_without_a_host_is_named(address: str, message: str) -> None:
    with pytest.raises(BoardError, match=message):
        UdpPipe(address)


def test_a_name_without_an_address_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(BoardError, match=r"the address of 'moon' is unknown \(Name or service not known\)"):
        UdpPipe("moon")


def test_no_route_is_named(tiny: UdpBoard, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = _Pipe(tiny)

    class Unreachable:
        def send(self, octets: bytes) -> int:
            raise OSError(113, os.strerror(113))

        def close(self) -> None:
            pass

    pipe._socket.close()
    pipe._socket = Unreachable()  # type: ignore[assignment]
    with pytest.raises(BoardError, match=rf"{HERE}, UDP port \d+: cannot be reached \(No route to host\): check"):
        Client(pipe)


@pytest.mark.parametrize("name", ["board:udp:", "board:udp::5", "board:udp:a:", "board:udp:a:0", "board:udp:a:65536",
                                  "board:udp:a:b", "board:udp:fe80::1"])  # fmt: skip
def test_what_is_no_udp_target_is_refused(name: str) -> None:
    with pytest.raises(BoardError, match="board:udp: needs an IPv4 address or a host name, and a port"):
        check_target(name)


def test_a_udp_target_is_hardware_with_a_port_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_hardware("board:udp:192.168.1.50") and is_hardware("board:udp:board.example:7")
    assert is_hardware("board:/dev/ttyUSB0") and not is_hardware("board:model") and not is_hardware("board:sim")
    made = []
    monkeypatch.setattr("bentpipe_sim.board.target.UdpPipe", lambda *place: made.append(place))
    open_target("board:udp:192.168.1.50", TINY)
    open_target("board:udp:192.168.1.50:7", TINY)
    assert made == [("192.168.1.50", UDP_PORT), ("192.168.1.50", 7)]


def test_commands_take_the_target(
    tiny: UdpBoard, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    target = f"board:udp:{HERE}:{tiny.port}"
    with tiny.serving():
        assert main(["board", "regs", "--target", target, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["board_magic"] == int.from_bytes(b"BPBD", "big")
        assert main(["board", "info", target]) == 0
        assert f"{target}: a bentpipe board with 1 x link" in capsys.readouterr().out
        assert main(["board", "selftest", "--target", target]) == 0
        assert "passed" in capsys.readouterr().err
        monkeypatch.setenv(TARGET, target)
        network = make_network(3)
        try:
            with pytest.raises(BoardError, match="flash or rebuild"):
                play(network, NETWORKS["overrun"](network), pdus=1)
        finally:
            network.close()
    assert main(["board", "regs", "--target", "board:udp:"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
