"""1-point CDV of a VC where its cells arrive: beside a formula over captured cells, and beside a policer."""

from random import Random

import pytest

from bentpipe.captures.test_cells import read_capture
from bentpipe_hdl.nic.control import NicSettings, PacingSettings
from bentpipe_hdl.switch.control import SwitchSettings, VcSettings
from bentpipe_hdl.ticks import RATIO, cell_period, duration
from bentpipe_sim.errors import NetworkError
from bentpipe_sim.network import Network
from models.gcra import VirtualScheduling, one_point_cdv

MS = 10**9
PCR_BPS = 20_000_000
UNIT_PS = RATIO[0] / RATIO[1] / 65536


def joined(police=None, oam=False):
    """Two interfaces that send to a third one over a switch: the first at 30 Mb/s, in bursts of 40 cells above 18."""
    network = Network(seed=3)
    a, b, c = (network.add_nic(name, NicSettings(oam=oam)) for name in "abc")
    switch = network.add_switch("west", SwitchSettings(buffer_cells=512))
    for port, nic in enumerate((a, b, c)):
        network.connect(nic, (switch, port))
        network.connect((switch, port), nic)
    paced = PacingSettings(cell_rate_bps=30_000_000, sustained_rate_bps=18_000_000, burst=40)
    settings = VcSettings(police=police and {"pcr_bps": PCR_BPS, **police})
    vcs = [network.add_vc([a, switch, c], 0, 100, settings, pacing=paced), network.add_vc([b, switch, c], 0, 101)]
    return network, (a, b, c), switch, vcs


def play(network, nics, vcs, until_ps=20 * MS, cells=False):
    """PDUs of random lengths at random times, and with ``cells`` single cells between them."""
    rng = Random(5)
    network.start()
    while network.now_ps < until_ps:
        for nic, vc in zip(nics, vcs, strict=False):
            if network.loop.backlog(nic.index, vc) < 3:
                network.send(nic.index, vc, b"", key=1, offset=0, length=rng.choice((40, 900, 3000)))
        if cells:
            network.send_cell(nics[0].index, vcs[0], 5, bytes(48))
        end = network.now_ps + rng.randrange(MS // 2)
        while network.now_ps < end:
            network.run(end)


def in_units(monitor):
    """Return the counts of the event loop, in units of 2**-16 ticks."""
    found = monitor.loop.ffi.new("bp_arrival_counts *")
    monitor.loop.arrivals(monitor._number, found)
    return found.cells, found.nonconforming, found.most, found.least


@pytest.mark.parametrize("place", ["west", "c"])
def test_all_is_as_the_formula_has_it_of_the_captured_cells(place, tmp_path):
    network, nics, switch, vcs = joined()
    node, face = (switch, nics[0]) if place == "west" else (nics[2], nics[2])
    cdvt_ps = 3 * MS // 1000
    monitor = network.watch_arrivals(nics[0].index, vcs[0], nics[2].index, node, pcr_bps=PCR_BPS, cdvt_ps=cdvt_ps)
    network.capture(tmp_path / "x.pcap", "cells", face)
    play(network, nics, vcs)
    network.end_captures()
    way = "out" if place == "west" else "in"
    ticks = [each.tick for each in read_capture(tmp_path / "x.pcap") if each.vci == 100 and each.way == way]
    times, period = [tick << 16 for tick in ticks], cell_period(PCR_BPS)
    cdv, gcra = one_point_cdv(times, period), VirtualScheduling(period, duration(cdvt_ps))
    assert len(times) > 400
    nonconforming = sum(not gcra.conforms(time) for time in times)
    assert in_units(monitor) == (len(times), nonconforming, max(cdv), min(cdv))
    assert nonconforming > 10 and max(cdv) > 0 > min(cdv)
    counts = monitor.counts()
    assert abs(counts.cdv_max_ps - max(cdv) * UNIT_PS) < 1 and abs(counts.cdv_min_ps - min(cdv) * UNIT_PS) < 1


def test_a_policer_passes_every_cell_if_and_only_if_the_greatest_cdv_is_within_its_tolerance():
    """To the unit of 2**-16 ticks; and its discarded cells are those counted, OAM cells among them."""

    def played(limit):
        near = int(limit * UNIT_PS)
        cdvt_ps = next(ps for ps in range(max(near - 3, 0), near + 4) if duration(ps) == limit)
        network, nics, switch, vcs = joined(police={"cdvt_ps": cdvt_ps}, oam=True)
        monitor = network.watch_arrivals(nics[0].index, vcs[0], nics[2].index, switch, pcr_bps=PCR_BPS, cdvt_ps=cdvt_ps)
        play(network, nics, vcs, cells=True)
        network.check_conservation()
        cells, nonconforming, most, _ = in_units(monitor)
        assert network.counters()["west"]["drop_upc"][0] == nonconforming
        return cells, nonconforming, most

    cells, nonconforming, most = played(1 << 34)
    assert cells > 400 and nonconforming == 0 and most > 65536
    assert played(most) == (cells, 0, most)
    for limit in (most - 1, most // 2, 0):
        again, nonconforming, still = played(limit)
        assert (again, still) == (cells, most) and nonconforming > 0


def test_a_state_has_it():
    network, nics, switch, vcs = joined()
    monitor = network.watch_arrivals(nics[0].index, vcs[0], nics[2].index, switch, pcr_bps=PCR_BPS)
    play(network, nics, vcs, 5 * MS)
    state, before = network.take(), in_units(monitor)
    ends = []
    for _ in range(2):
        network.run(network.now_ps + 2 * MS)
        ends.append(in_units(monitor))
        network.give(state)
        assert in_units(monitor) == before
    assert ends[0] == ends[1] != before


def test_what_cannot_be_followed_is_refused():
    network, nics, switch, vcs = joined()
    ends = nics[0].index, vcs[0], nics[2].index
    with pytest.raises(NetworkError, match="b: the VC does not come to it"):
        network.watch_arrivals(*ends, nics[1], pcr_bps=PCR_BPS)
    with pytest.raises(NetworkError, match=r"west: a rate must be 143 b/s or more"):
        network.watch_arrivals(*ends, switch, pcr_bps=100)
    network.watch_arrivals(*ends, switch, pcr_bps=PCR_BPS)
    with pytest.raises(NetworkError, match="c: the VC is followed already, at west"):
        network.watch_arrivals(*ends, nics[2], pcr_bps=PCR_BPS)
    network.start()
    with pytest.raises(NetworkError, match="runs already"):
        network.watch_arrivals(*ends, switch, pcr_bps=PCR_BPS)
