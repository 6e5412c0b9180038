"""Policed VCs in a network: what keeps to its contract passes; what doesn't is counted and told, by one switch."""

import pytest
from pydantic import ValidationError

from bentpipe_hdl.link.control import LinkSettings
from bentpipe_hdl.nic.control import NicLine, PacingSettings
from bentpipe_hdl.switch.control import SwitchSettings, VcSettings
from bentpipe_hdl.ticks import TICK_PS
from bentpipe_sim.errors import NetworkError
from bentpipe_sim.network import Network
from models.lines import vc_settings

MS = 10**9
LINE_CELL_PS = round(16 * TICK_PS)
CONTRACT = {"pcr_bps": 20_000_000, "cdvt_ps": 2 * LINE_CELL_PS}
LOOSE = {**CONTRACT, "cdvt_ps": MS}
EXCESS = 4200 / 5 - 20_000_000 / 424 / 1000
"""Cells of 50 PDUs at 25 Mb/s that are above the loose contract: a fifth, less what its tolerance of 1 ms allows."""


def chain(*, cell_rate_bps, clock_ppm=0.0, **settings):
    """A NIC, two switches, a NIC; a VC with these settings, and one without any from another NIC."""
    network = Network(seed=1)
    a, b, c = (network.add_nic(name, line=NicLine(clock_ppm=clock_ppm)) for name in "abc")
    west, east = (network.add_switch(name, SwitchSettings(buffer_cells=512)) for name in ("west", "east"))
    link, back = (
        network.add_link("link", LinkSettings(delay_ps=MS)),
        network.add_link("back", LinkSettings(delay_ps=MS)),
    )
    for node, face in ((a, (west, 0)), (c, (west, 1)), (b, (east, 0))):
        network.connect(node, face)
        network.connect(face, node)
    network.connect((west, 3), link)
    network.connect(link, (east, 3))
    network.connect((east, 3), back)
    network.connect(back, (west, 3))
    policed = network.add_vc([a, west, link, east, b], 0, 100, **vc_settings(**settings, cell_rate_bps=cell_rate_bps))
    other = network.add_vc([c, west, link, east, b], 0, 101, pacing=PacingSettings(cell_rate_bps=30_000_000))
    network.start()
    return network, (a, c, b), (policed, other)


def run(network, nics, vcs, length=4000):
    """50 PDUs of each sender; the counters, and how many PDUs of each VC were received."""
    a, c, b = nics
    for k in range(50):
        network.send(a.index, vcs[0], b"first", key=1, offset=1000 * k, length=length)
        network.send(c.index, vcs[1], b"second", key=2, offset=500 * k, length=1500)
    while network.now_ps < 150 * MS:
        network.run(150 * MS)
    network.check_conservation()
    network.ledger()
    return network.counters(), [b.driver.received(vc) for vc in vcs]


def test_a_source_that_keeps_to_its_contract_loses_nothing():
    counters, received = run(*chain(cell_rate_bps=20_000_000, police=CONTRACT))
    assert sum(counters["west"]["drop_upc"]) == 0
    assert received == [50, 50]


def test_one_that_sends_more_loses_what_is_above_it_at_the_first_switch_alone():
    counters, received = run(*chain(cell_rate_bps=25_000_000, police=LOOSE))
    drops, others = counters["west"]["drop_upc"]
    assert others == 0
    assert drops == pytest.approx(EXCESS, abs=3)
    assert received == [2, 50]
    assert "upc_tagged" not in counters["east"]  # it isn't built with that


def test_another_switch_polices_if_it_is_named():
    counters, _ = run(*chain(cell_rate_bps=25_000_000, police={**LOOSE, "at": "east"}))
    assert sum(counters["east"]["drop_upc"]) > 700
    assert sum(counters["west"]["drop_upc"]) == 0


def test_tagged_cells_are_counted_and_go_on():
    network, nics, vcs = chain(cell_rate_bps=25_000_000, police={**LOOSE, "pcr_action": "tag"})
    counters, received = run(network, nics, vcs)
    assert [account.cells.tagged for account in network.ledger()] == [counters["west"]["upc_tagged"][0], 0]
    assert counters["west"]["upc_tagged"][0] == pytest.approx(EXCESS, abs=3)
    assert sum(counters["west"]["drop_upc"]) == 0
    assert received == [50, 50]


def test_a_discarded_frame_costs_no_other_with_packets():
    """Cells evenly spaced at 25 Mb/s would leave 19 frames whole; without it, all but the first two lose cells."""
    counters, received = run(*chain(cell_rate_bps=25_000_000, police={**LOOSE, "packets": True}))
    assert 18 <= received[0] <= 20
    assert 860 <= counters["west"]["drop_upc"][0] <= 880


def test_a_burst_of_mbs_cells_passes_and_no_cell_more():
    """PDUs of 84 cells at the line's rate into a contract of as large a burst, and into one that is a cell shorter."""
    for mbs, lost in ((84, 0), (83, 1)):
        police = {"pcr_bps": 149_760_000, "cdvt_ps": 2 * LINE_CELL_PS, "scr_bps": 1_000_000, "mbs": mbs}
        network, nics, vcs = chain(cell_rate_bps=None, police={**police, "cdvt_ps": 0})
        network.send(nics[0].index, vcs[0], b"burst", key=1, offset=0, length=4000)
        while network.now_ps < 20 * MS:
            network.run(20 * MS)
        network.check_conservation()
        assert network.counters()["west"]["drop_upc"][0] == lost


@pytest.mark.parametrize(("mbs", "lost"), [(30, False), (29, True)])
def test_a_shaped_source_keeps_to_its_contract_and_to_no_smaller_one(mbs, lost):
    pacing = {"cell_rate_bps": 20_000_000, "sustained_rate_bps": 2_000_000, "burst": 30}
    police = {**CONTRACT, "scr_bps": 2_000_000, "mbs": mbs}
    counters, received = run(*chain(**pacing, police=police), length=1000)
    assert received[1] == 50
    assert bool(counters["west"]["drop_upc"][0]) == lost


@pytest.mark.parametrize(("mbs", "lost"), [(30, False), (29, True)])
def test_a_vc_that_a_switch_shapes_keeps_to_its_contract_and_to_no_smaller_one(mbs, lost):
    """Cells that come as fast as the line pass so that the next switch discards none; with a burst of one cell less it
    discards some.
    """
    contract = {"pcr_bps": 20_000_000, "cdvt_ps": 4 * LINE_CELL_PS, "scr_bps": 2_000_000, "mbs": 30}
    police = {**contract, "cdvt_ps": 5 * LINE_CELL_PS, "mbs": mbs, "at": "east"}
    counters, received = run(*chain(cell_rate_bps=None, shape=contract, police=police), length=400)
    assert received[1] == 50
    assert sum(counters["west"]["drop_full"]) == 0
    assert bool(counters["east"]["drop_upc"][0]) == lost


def test_a_switch_shapes_at_round_robin_ports_alone():
    network = Network(seed=1)
    a, b = (network.add_nic(name) for name in "ab")
    switch = network.add_switch("west", SwitchSettings(scheduler="fifo"))
    for port, nic in enumerate((a, b)):
        network.connect(nic, (switch, port))
        network.connect((switch, port), nic)
    network.add_vc([a, switch, b], 0, 32, VcSettings(shape={"pcr_bps": 1_000_000}))
    with pytest.raises(NetworkError, match="a switch that shapes VCs has round-robin ports"):
        network.start()


def test_a_contract_changes_in_a_run():
    """Twice the burst, once the first has been used up."""
    police = {"pcr_bps": 149_760_000, "cdvt_ps": 0, "scr_bps": 1_000_000, "mbs": 20}
    network, nics, vcs = chain(cell_rate_bps=None, police=police)
    lost = []
    for mbs in (20, 40):
        network.change_vc(0, VcSettings(police={**police, "mbs": mbs}))
        network.send(nics[0].index, vcs[0], b"burst", key=1, offset=0, length=4000)
        until = network.now_ps + 30 * MS
        while network.now_ps < until:
            network.run(until)
        lost.append(network.counters()["west"]["drop_upc"][0])
    network.check_conservation()
    assert lost == [64, 64 + 44]


@pytest.mark.parametrize(
    ("police", "what"),
    [
        ({"scr_bps": 1_000_000}, "a sustained rate goes with a burst: give 'mbs', too"),
        ({"mbs": 5}, "a burst goes with a sustained rate: give 'scr', too"),
        ({"scr_bps": 30_000_000, "mbs": 5}, "30 Mb/s is above the peak rate of 20 Mb/s"),
        ({"scr_bps": 1_000_000, "mbs": 0}, "0 is out of range 1.."),
        ({"scr_bps": 200, "mbs": 10**9}, "a burst of 1000000000 cells at these rates lasts longer than the 760 s"),
        ({"scr_action": "tag"}, "there is no sustained rate that it could be of"),
        ({"pcr_bps": 0}, "0 is out of range|must be more than 0"),
        ({"pcr_bps": -5}, "-5 is out of range|must be more than 0"),
        ({"pcr_bps": 100}, "100 is out of range 143 b/s to 2396.16 Mb/s"),
        ({"at": "north"}, "it doesn't pass a switch 'north'"),
    ],
)
def test_contracts_that_are_none(police, what):
    with pytest.raises((NetworkError, ValidationError), match=what):
        chain(cell_rate_bps=None, police={**CONTRACT, **police})
