"""Credits in the switch, on both datapaths: which cells go, which wait, and what credit cells and probes say."""

import random

import pytest

from bentpipe_hdl.lookup_table import lookup_table
from bentpipe_hdl.nodes import Switch
from bentpipe_hdl.switch.options import options_word
from models.cell import Cell, Header
from models.crc import crc10
from models.credits import CREDIT, PROBE, Message, payload, read
from unit.hdl.bench import WIDTHS, Arrival
from unit.hdl.bench import run_compiled as run

VCS, PORTS, CELLS = 8, 3, 24
RM = 6

# VCs 2k and 2k + 1 are each other's way back: the even ones from port 0 to port 1, the odd ones from port 1 to port 0.


def switch(width):
    return Switch(width=width, vcs=VCS, cells=CELLS, ports=PORTS, options=options_word(["credits"]))


async def start(bench, *, vcs=2, share=0, returns=False, batch=4, step=1 << 30, limit=24, period=1):
    """Even VCs have a ``share`` of the next switch; if it ``returns``, their credits are given back here."""
    await bench.reset()

    def write(csr):
        csr.processing_delay, csr.credit_batch, csr.credit_step, csr.credit_last = 1, batch, step, vcs - 1
        for port in range(PORTS):
            csr.period[port] = period << 16
        for k in range(vcs):
            odd = k & 1
            csr.vc_credits[k] = {
                "share": 0 if odd else share,
                "back": k ^ 1,
                "back_port": odd,
                "returns": returns and not odd,
            }
            csr.vc_policy[k] = {"limit": limit, "port": 1 - odd, "enabled": 1}
            csr.vc_header[k] = {"vci": 200 + k}
        lookup_table(VCS, {(k & 1, 0, 100 + k): k for k in range(vcs)}).write(csr)

    await bench.apply(write)


def data(vc, mark=0):
    return Arrival(Cell(Header(0, 100 + vc), bytes([vc, mark]) * 24), vc & 1)


def message(vc, kind, count, octets=None):
    return Arrival(Cell(Header(0, 100 + vc, RM), octets or payload(kind, count)), vc & 1)


def out(bench):
    """``(port, VCI, what)`` of all cells that left: a message, or the mark of data."""
    found = []
    for cell in bench.came_out:
        header = cell.as_header()
        found.append((cell.port, header.vci, read(cell.payload) if header.pti == RM else cell.payload[1]))
    bench.came_out.clear()
    return found


def each(test):
    """The test on both datapaths, which do the same in the same ticks."""

    @pytest.mark.parametrize("width", WIDTHS)
    def both(width):
        run(switch(width), test)

    both.__name__ = test.__name__
    both.__doc__ = test.__doc__
    return both


@each
async def test_a_vc_sends_as_many_cells_as_it_has_places_for_and_others_go_on(bench):
    await start(bench, vcs=4, share=3)
    for k in range(5):
        await bench.tick(data(0, k))
        await bench.tick(data(1, k))
    await bench.ticks(20)
    left = out(bench)
    assert [mark for port, vci, mark in left if vci == 200] == [0, 1, 2]
    assert [mark for port, vci, mark in left if vci == 201] == [0, 1, 2, 3, 4]
    await bench.tick(data(2, 7))  # another VC of the same port
    await bench.ticks(5)
    assert out(bench) == [(1, 202, 7)]
    await bench.tick(message(1, CREDIT, 1))  # comes on the way back
    await bench.ticks(5)
    assert out(bench) == [(1, 200, 3)]
    await bench.tick(message(1, CREDIT, 4))
    await bench.ticks(5)
    assert out(bench) == [(1, 200, 4)]
    assert await bench.get("credit_freed") == 4
    assert await bench.get("credit_holds") == 2
    assert await bench.get("credit_came") == 2


@each
async def test_a_vc_that_is_held_when_its_queue_is_empty_joins_when_it_gets_credit(bench):
    """Credit and data come in one after the other, and the other way round."""
    await start(bench, share=1)
    await bench.tick(data(0, 0))
    await bench.ticks(5)
    await bench.tick(data(0, 1))
    await bench.tick(message(1, CREDIT, 1))
    await bench.ticks(5)
    await bench.tick(message(1, CREDIT, 2))
    await bench.tick(data(0, 2))
    await bench.ticks(5)
    await bench.tick(data(0, 3))
    await bench.ticks(3)
    await bench.tick(message(1, CREDIT, 3))
    await bench.tick(data(0, 4))
    await bench.ticks(5)
    assert [mark for *_, mark in out(bench)] == [0, 1, 2, 3]


@each
async def test_a_count_is_believed_between_the_last_one_and_the_cells_sent(bench):
    await start(bench, share=3)
    for k in range(8):
        await bench.tick(data(0, k))
    await bench.ticks(5)
    for count, freed in ((4, 0), (2, 2), (1, 2), (6, 2), ((1 << 32) - 1, 2), (5, 5), (0, 5), (5, 5), (8, 8)):
        await bench.tick(message(1, CREDIT, count))
        await bench.ticks(5)
        assert await bench.get("credit_freed") == freed
    assert [mark for *_, mark in out(bench)] == list(range(8))


@each
async def test_a_credit_cell_goes_back_after_each_batch(bench):
    await start(bench, returns=True, batch=3)
    for k in range(7):
        await bench.tick(data(0, k))
        await bench.ticks(2)
    await bench.ticks(10)
    left = out(bench)
    assert [mark for port, *_, mark in left if port == 1] == list(range(7))
    assert [cell for cell in left if cell[0] == 0] == [
        (0, 201, Message(CREDIT, 3)),
        (0, 201, Message(CREDIT, 6)),
    ]
    assert await bench.get("credit_given") == 2


@each
async def test_a_probe_is_answered_with_what_left_and_what_was_lost_before(bench):
    await start(bench, returns=True, batch=100)
    for k in range(5):
        await bench.tick(data(0, k))
    await bench.ticks(10)
    await bench.tick(message(0, PROBE, 9))  # four of nine didn't come
    await bench.ticks(5)
    await bench.tick(data(0, 5))
    await bench.tick(message(0, PROBE, 10))
    await bench.ticks(5)
    await bench.tick(message(0, PROBE, 8))  # a cell of another VC was taken for one of it
    await bench.ticks(5)
    left = [what for port, _, what in out(bench) if port == 0]
    assert [what.count for what in left] == [9, 10, 8]
    assert await bench.get("credit_lost") == 2


@each
async def test_queued_cells_are_not_freed(bench):
    await start(bench, returns=True, batch=100, period=50)
    for k in range(6):
        await bench.tick(data(0, k))
    await bench.tick(message(0, PROBE, 8))
    await bench.ticks(10)
    assert out(bench) == [(1, 200, 0), (0, 201, Message(CREDIT, 3))]


@each
async def test_outstanding_cells_are_probed_for_until_they_are_freed(bench):
    await start(bench, vcs=4, share=3, step=10)
    await bench.tick(data(0, 0))
    await bench.tick(data(0, 1))
    await bench.ticks(100)
    left = out(bench)
    probes = [cell for cell in left if isinstance(cell[2], Message)]
    assert len(probes) in (2, 3)  # of its four VCs one each ten ticks is visited, and two of forty
    assert set(probes) == {(1, 200, Message(PROBE, 2))}
    await bench.tick(message(1, CREDIT, 2))
    await bench.ticks(100)
    rest = out(bench)
    assert len(rest) <= 1
    await bench.ticks(200)
    assert out(bench) == []
    assert bench.ctx.get(bench.node.status.due) == (1 << 48) - 1


@each
async def test_what_can_t_be_read_counts_for_nothing(bench):
    """Every single bit error of a credit cell, and good RM cells of other protocols."""
    await start(bench, share=1)
    for k in range(2):
        await bench.tick(data(0, k))
    await bench.ticks(4)
    octets = int.from_bytes(payload(CREDIT, 1), "big")
    rng = random.Random(4)
    bits = rng.sample(range(384), 40)
    for bit in bits:
        await bench.tick(message(1, CREDIT, 0, (octets ^ 1 << bit).to_bytes(48, "big")))
    for first in (bytes([1]), bytes([0xA2, 2]), bytes([0xA2, 0, 1])):
        other = first + payload(CREDIT, 1)[len(first) : 46]
        await bench.tick(message(1, CREDIT, 0, other + crc10(other + b"\0\0").to_bytes(2, "big")))
    await bench.ticks(4)
    assert [mark for *_, mark in out(bench)] == [0]
    assert await bench.get("credit_bad") == len(bits) + 3
    assert await bench.get("credit_freed") == 0


@each
async def test_a_credit_cell_of_a_vc_that_brings_none_counts_for_nothing(bench):
    """Tables are 0 for VCs that nobody set up: the way back of VC 4 seems to be VC 0."""
    await start(bench, vcs=4, share=1)
    await bench.apply(lambda csr: csr.vc_credits.__setitem__(3, {"back": 0, "back_port": 0}))
    for k in range(2):
        await bench.tick(data(0, k))
    await bench.ticks(4)
    await bench.tick(message(3, CREDIT, 1))
    await bench.tick(message(0, PROBE, 5))
    await bench.ticks(4)
    assert out(bench) == [(1, 200, 0)]
    assert await bench.get("credit_bad") == 2
    assert await bench.get("credit_freed") == 0


@each
async def test_held_cells_of_a_vc_that_is_torn_down_leave_the_buffer(bench):
    await start(bench, share=1, step=10)
    for k in range(4):
        await bench.tick(data(0, k))
    await bench.ticks(30)
    out(bench)
    assert await bench.get("occupancy") == 3
    await bench.set("vc_policy", 0, 0)
    await bench.ticks(60)
    assert await bench.get("occupancy") == 0
    assert await bench.get("flushed") == 3


@each
async def test_more_news_than_a_port_has_places_for_are_left_out_and_counted(bench):
    """One is sent at once, 15 wait, and one more place is for answers and probes."""
    await start(bench, vcs=2, returns=True, batch=1, period=1)
    await bench.apply(lambda csr: csr.period.__setitem__(0, 40 << 16))
    for k in range(20):
        await bench.tick(data(0, k))
    await bench.ticks(5)
    await bench.tick(message(0, PROBE, 20))
    await bench.tick(message(0, PROBE, 20))
    await bench.ticks(5)
    assert await bench.get("credit_given") == 1
    assert await bench.get("credit_skipped") == 4 + 1
    await bench.ticks(700)
    told = [what.count for port, _, what in out(bench) if port == 0]
    assert told == [1] + 16 * [20]  # each says what is so when it leaves
