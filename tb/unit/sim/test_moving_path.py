"""A line whose delay changes in a run: when each cell arrives, by the definition; saved and resumed; both engines."""

import pickle
from fractions import Fraction

import pytest

from bentpipe_hdl.link.control import LinkSettings
from bentpipe_hdl.link.options.variation.control import ReorderSettings, VariationSettings
from bentpipe_hdl.nic.control import NicLine
from bentpipe_hdl.ticks import ps_to_ticks, round_ticks
from bentpipe_sim.network import Network
from models.path import MovingPath

MS = 10**9
RATE = 33_920_000  # E3
CHANGES = ((300 * MS, 20 * MS), (600 * MS, 267 * MS))
END = 1200 * MS


def line_of(delay_ps, order="kept", engine=None, moves=True, **more):
    """Two interfaces and the line between them; the VC from one to the other."""
    network = Network(seed=1, engine=engine)
    a, b = (network.add_nic(name, line=NicLine(RATE)) for name in "ab")
    link = network.add_link("link", LinkSettings(delay_ps=delay_ps, order=order, **more))
    link.may_move(moves)
    network.connect(a, link)
    network.connect(link, b)
    vc = network.add_vc([a, link, b], 0, 32)
    return network, a, link, vc


def copy_of(network):
    saved, copy = network.save(), pickle.loads(pickle.dumps(network))
    copy.restore(saved)
    return copy, copy.nodes[2]


def arrivals(made, cells, changes=(), end=END, copied=False):
    """Post PDUs of a cell each, as many as fill the line; return when each arrives. A change is a time and a
    delay; if ``copied``, a copy of the network goes on behind each."""
    network, a, link, vc = made
    for number in range(cells):
        network.send(a.index, vc, number.to_bytes(4, "big") * 10)
    found = []

    def pass_time(network, until):
        while network.now_ps < until:
            found.extend((ps_to_ticks(event.time_ps), event.status, event.head) for event in network.run(until))

    for at_ps, delay_ps in changes:
        pass_time(network, at_ps)
        link.change(delay_ps=delay_ps)
        if copied:
            network, link = copy_of(network)
    pass_time(network, end)
    network.check_conservation()
    return found


@pytest.mark.parametrize("order", ["kept", "merged"])
def test_no_cell_is_lost_and_each_arrives_as_the_definition_says(order):
    """The line is full: from 267 to 20 ms, and back."""
    cells = 66_000
    still = arrivals(line_of(267 * MS, moves=False), cells)
    assert len(still) == cells
    made = line_of(267 * MS, order)
    found = arrivals(made, cells, CHANGES)
    model, wanted = MovingPath(order == "merged", Fraction(made[1].period, 65536)), []
    for tick, status, octets in still:
        sent = tick - round_ticks(267 * MS)
        delay = next((delay for at, delay in CHANGES[::-1] if sent > ps_to_ticks(at)), 267 * MS)
        wanted.append((model.send(sent, round_ticks(delay)), status, octets))
    wanted.sort(key=lambda cell: cell[0])  # of cells of one tick that comes first which was sent first
    assert found == [*one_a_tick(wanted)]
    counters = made[2].counters()
    assert (counters["held"], counters["overtook"]) == (model.held, model.overtook)
    assert max(counters["held"], counters["overtook"]) > 18_000
    (account,) = made[0].ledger()
    assert account.delivered == cells and not account.lost


def one_a_tick(cells):
    """The interface takes a cell a tick; another one that arrives then waits."""
    before = -1
    for tick, status, octets in cells:
        before = max(tick, before + 1)
        yield before, status, octets


def test_a_link_built_for_it_whose_delay_stays_is_as_any_other():
    network, *_ = still = line_of(3 * MS)
    assert arrivals(still, 3000, end=60 * MS) == arrivals(line_of(3 * MS, moves=False), 3000, end=60 * MS)
    assert network.nodes[2].counters()["held"] == 0


SHORT = ((8 * MS, MS), (16 * MS, 3 * MS), (20 * MS, 2 * MS))


@pytest.mark.parametrize("order", ["kept", "merged"])
def test_a_copy_goes_on_as_the_run_itself(order):
    """Saved where cells wait for others or overtake them, behind each change."""
    whole = arrivals(line_of(3 * MS, order), 3000, SHORT, 60 * MS)
    assert arrivals(line_of(3 * MS, order), 3000, SHORT, 60 * MS, copied=True) == whole


@pytest.mark.parametrize("order", ["kept", "merged"])
def test_both_engines_do_the_same(order):
    runs = [arrivals(line_of(3 * MS, order, engine), 1500, SHORT, 40 * MS) for engine in ("native", "verilator")]
    assert runs[0] == runs[1] and len(runs[0]) == 1500


VARIES = {
    "reordering": {"reorder": ReorderSettings(share=2e-3, by_ps=2 * MS)},
    "variation": {"variation": VariationSettings(distribution="normal", mean_ps=MS // 5, deviation_ps=MS // 10)},
}


@pytest.mark.parametrize("kind", VARIES)
def test_the_account_balances_at_every_moment_while_cells_of_pdus_overtake_each_other(kind):
    """PDUs of 42 cells: no cell is lost, and each PDU that does not come whole is one in disorder."""
    network, a, link, vc = line_of(20 * MS, "merged", **VARIES[kind])
    for number in range(100):
        network.send(a.index, vc, number.to_bytes(4, "big"), key=number + 1, length=1960)
    statuses = []
    while network.now_ps < 120 * MS:
        statuses += [event.status for event in network.run(network.now_ps + MS // 4)]
        network.check_conservation()
        (account,) = network.ledger()
        assert account.delivered == statuses.count(0)
    assert account.cells.received == 4200 and account.delivered < 100
    assert account.lost.get(("link", "cells out of order")) == sum(account.lost.values()) == 100 - account.delivered
    assert link.counters()["overtook"] > 3
