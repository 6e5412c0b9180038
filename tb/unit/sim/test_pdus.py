"""Tests of the border between a network and its hosts: times, and PDUs as records."""

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import bentpipe  # noqa: F401 - first, so that the border has the form of BENTPIPE_HOSTS
from bentpipe_hdl.ticks import ps_to_ticks, ticks_to_ps
from bentpipe_sim.errors import SimulationError
from bentpipe_sim.interface import PduEvent
from bentpipe_sim.network import Network

EVENT = "<QIIHHIII128sI4x"
POST = "<IIIIQiiIHH"
END_PS = ticks_to_ps((1 << 48) - 1)


class Library:
    """Stands for the event loop: notes what it is called with, and has these events."""

    def __init__(self, events: bytes = b"") -> None:
        self.octets = events
        self.until: list[int] = []
        self.sent: list[bytes] = []
        self.network, self.library, self.ffi, self.is_open = None, self, self, True
        self.calls = None

    def bp_run(self, network: None, until: int) -> int:
        self.until.append(until)
        return len(self.octets) // struct.calcsize(EVENT)

    def bp_send(self, network: None, post: bytes) -> None:
        self.sent.append(post)

    def bp_run_ahead(self, network: None, until: int, limit: int, reaction: int) -> int:
        raise AssertionError("no network runs ahead here")

    bp_send_at = bp_run_ahead

    def bp_check(self, network: None, *what: int) -> int:
        return 0

    bp_checksum = bp_check

    def events(self) -> None: ...

    def buffer(self, events: None, size: int) -> bytes:
        return self.octets[:size]


def network(events: bytes = b"") -> tuple[Any, Library]:
    made: Any = Network()
    library = Library(events)
    made.loop = made._loop = library
    made.opened()
    return made, library


@given(st.integers(0, END_PS - 1))
def test_it_runs_to_the_last_tick_that_begins_before_a_time(until_ps: int) -> None:
    made, library = network()
    assert made.run(until_ps) == []
    assert (library.until, made.now_ps) == ([ps_to_ticks(until_ps)], until_ps)


@pytest.mark.parametrize("until_ps", [END_PS, END_PS + 1, 1 << 80])
def test_time_ends(until_ps: int) -> None:
    with pytest.raises(SimulationError, match="simulated time ends"):
        network()[0].run(until_ps)


WORDS = st.integers(0, (1 << 32) - 1)
EVENTS = st.tuples(
    st.integers(0, (1 << 48) - 1), WORDS, st.integers(0, 65535), st.integers(0, 65), st.integers(0, 1),
    st.integers(0, 65535), WORDS, st.binary(max_size=128), WORDS,
)  # fmt: skip


@given(st.lists(EVENTS, min_size=1, max_size=3))
def test_events(given_: list[tuple[int, int, int, int, int, int, int, bytes, int]]) -> None:
    rows = [struct.pack(EVENT, *row[:7], len(row[7]), row[7], row[8]) for row in given_]
    made, _ = network(b"".join(rows))
    assert made.run(1) == [
        PduEvent(ticks_to_ps(tick), nic, vc, status, length, head, handle, bool(congested), total)
        for tick, nic, vc, status, congested, length, handle, head, total in given_
    ]
    assert made.now_ps == ticks_to_ps(given_[-1][0])


@given(
    st.integers(0, 65535), st.integers(0, 4095), st.binary(max_size=64), WORDS, st.integers(0, (1 << 60) - 1),
    st.integers(1, 65000), st.integers(-1, 60), st.integers(-1, 60), st.integers(0, 255), st.booleans(),
)  # fmt: skip
def test_a_pdu_to_send(
    nic: int, vc: int, head: bytes, key: int, offset: int, length: int, start: int, at: int, uu: int, told: bool
) -> None:
    made, library = network()
    if told:
        made.report_sent(nic)
    if at >= 0 and not 0 <= start <= at <= len(head) - 2:
        with pytest.raises(SimulationError, match="checksum"):
            made.send(nic, vc, head, key, offset, length, start, at, uu)
        at = -1
    made.send(nic, vc, head, key, offset, length, start, at, uu)
    assert library.sent == [struct.pack(POST, nic, vc, key, length, offset, start, at, len(head), uu, told) + head]


@pytest.mark.parametrize("length", [0, 65536])
def test_an_sdu_has_1_to_65535_octets(length: int) -> None:
    with pytest.raises(SimulationError, match=f"an SDU has 1 to 65535 octets, not {length}"):
        network()[0].send(0, 0, b"", length=length)


@pytest.mark.parametrize(
    "what",
    [{"key": 1 << 32}, {"key": -1}, {"uu": 256}, {"uu": -1}, {"length": -1}, {"offset": -1}, {"offset": 1 << 63}],
)
def test_what_a_record_has_no_place_for_is_refused(what: dict[str, int]) -> None:
    made, library = network()
    with pytest.raises(SimulationError, match="SDU pattern: key"):
        made.send(0, 0, b"head", **what)
    assert not library.sent


def two_interfaces(by_module: bool) -> tuple[Any, int]:
    """Return a started network of two connected interfaces, and the VC from the first to the second."""
    made: Any = Network(seed=1)
    first, second = made.add_nic("first"), made.add_nic("second")
    made.connect(first, second)
    made.connect(second, first)
    vc = made.add_vc([first, second], 0, 32)
    made.start()
    if not by_module:
        made.loop.calls = None
        made.opened()
    return made, vc


@pytest.mark.parametrize("day", [0, 120])
def test_the_module_of_calls_does_as_the_library_does(day: int) -> None:
    found = []
    for by_module in (True, False):
        made, vc = two_interfaces(by_module)
        made.report_sent(0)
        made.run(day * 86400 * 10**12 + 1)  # from the 107th day on a time has more than 63 bits
        events = []
        for length in (1, 41, 9000, 65000):
            made.send(0, vc, b"head" + bytes(8), 7, 3, length, 0, 4, 5)
            for _ in range(2):
                events += made.run(made.now_ps + 10**11)
            handle = events[-1].handle
            assert made.check(handle, 12, 7, 3, length) is True
            assert made.check(handle, 12, 7, 11, length) is False
            assert made.check(handle, 13, 7, 3, length) is False  # it ends behind the SDU
        found.append((events, made.now_ps))
        assert [event.length for event in events] == [13, 13, 53, 53, 9012, 9012, 65012, 65012]
        made.close()
    assert found[0] == found[1]


def test_the_module_of_calls_refuses_wrong_arguments() -> None:
    made, _ = two_interfaces(True)
    calls, address = made.loop.calls, made.loop.address
    for call in (
        lambda: calls.run(address, 1),
        lambda: calls.run(address, 1, list),
        lambda: calls.run("network", 1, PduEvent),
        lambda: calls.send(address, "text"),
        lambda: calls.check(address, 0, 0, 0, 0),
    ):
        with pytest.raises(TypeError):
            call()
    for what in ((1 << 32, 0, 0, 0, 1), (0, 0, 0, -1, 1)):
        with pytest.raises(OverflowError):
            calls.check(address, *what)
    made.close()


def test_a_closed_network_says_so() -> None:
    made, _ = network()
    made.closed()
    for call in (lambda: made.run(1), lambda: made.send(0, 0, b"x"), lambda: made.check(0, 0, 0, 0, 1)):
        with pytest.raises(SimulationError, match="closed"):
            call()
