"""A DS-3's frames on the Verilated network: interfaces and switches in step with the model's slots."""

import itertools
from fractions import Fraction

import pytest

from bentpipe_hdl.nic.control import NicLine
from bentpipe_sim.errors import NetworkError
from bentpipe_sim.network import Network
from models.plcp import PAYLOAD_BPS, slots

TICK = Fraction(53, 299_520_000)
MS = 10**9


def single_cells(count, gap_ps=0, **line):
    """Return when PDUs of one cell arrive, in ticks, that an interface sends at once, or so far apart."""
    network = Network()
    a, b = network.add_nic("a", line=NicLine(40_704_000, **line)), network.add_nic("b")
    network.connect(a, b)
    network.connect(b, a)
    vc = network.add_vc([a, b], 0, 40)
    came = []

    def until(end):
        while network.now_ps < end:
            came.extend(event.time_ps for event in network.run(end) if event.nic == b.index)

    for number in range(count):
        network.send(a.index, vc, number.to_bytes(4, "big"))
        until(network.now_ps + gap_ps)
    until(network.now_ps + count * 11_000_000)
    network.check_conservation()
    return [round(time / 10**12 / TICK) for time in came]


def ends(count):
    """The ticks in which slots end, and with them their cells."""
    row = 57 * 8 / PAYLOAD_BPS
    return [int((begin + row) / TICK) for begin, _ in itertools.islice(slots(), count)]


def test_an_interface_sends_in_the_slots_of_its_line():
    """Back to back for 40 frames: every slot from the second on, to the tick."""
    came = single_cells(480, frames="plcp")
    grid = ends(600)
    behind = came[0] - next(tick for tick in reversed(grid) if tick <= came[0])
    first = grid.index(came[0] - behind)
    assert behind <= 2 and first <= 2
    nibble = 4 / PAYLOAD_BPS / TICK
    off = [tick - behind - slot for tick, slot in zip(came, grid[first:], strict=False)]
    assert max(map(abs, off)) <= 1 + nibble and len(came) == 480


def test_an_idle_interface_waits_for_the_next_slot():
    """Cells so far apart that each finds the line idle: none leaves but with a slot."""
    came = single_cells(100, gap_ps=37_700_000, frames="plcp")
    grid = {end + d for end in ends(600) for d in (0, 1, 2)}
    assert len(came) == 100 and set(came) <= grid
    free = set(single_cells(100, gap_ps=37_700_000))
    assert not free <= grid


def test_frames_are_those_of_a_ds3():
    with pytest.raises(NetworkError, match=r'^NIC a: frames = "plcp" are those of a DS-3'):
        Network().add_nic("a", line=NicLine(149_760_000, frames="plcp"))
