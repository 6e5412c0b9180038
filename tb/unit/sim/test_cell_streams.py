"""Test cells in networks: analyser, ledger and all accounts, beside other cells of the VC and of others."""

import pytest

from bentpipe_hdl.link.control import LinkSettings
from bentpipe_hdl.nic.control import NicSettings, PacingSettings
from bentpipe_hdl.switch.control import SwitchPort, SwitchSettings, VcSettings
from bentpipe_hdl.ticks import ticks_to_ps
from bentpipe_sim.errors import NetworkError
from bentpipe_sim.network import Network

MS = 10**9
TAIL = VcSettings(policy="tail")


def chain(*, vc=TAIL, rate_bps=100_000_000, oam=False, buffer_cells=12, **link):
    """Two interfaces that send to a third one over a switch and a line; test cells from the first."""
    network = Network(seed=5)
    settings = NicSettings(oam=oam)
    a, b, c = (network.add_nic(name, settings) for name in "abc")
    switch = network.add_switch("s", SwitchSettings(buffer_cells=buffer_cells), ports=[SwitchPort()] * 4)
    line = network.add_link("line", LinkSettings(**link))
    for ends in ((a, (switch, 0)), (b, (switch, 1)), ((switch, 2), line), (line, c)):
        network.connect(*ends)
    for ends in ((c, (switch, 2)), ((switch, 0), a), ((switch, 1), b)):
        network.connect(*ends)
    vcs = [
        network.add_vc([a, switch, line, c], 0, 40, vc, pacing=PacingSettings(cell_rate_bps=rate_bps)),
        network.add_vc([b, switch, line, c], 0, 41),
    ]
    network.add_vc([c, switch, a], 0, 40, vc)
    return network, (a, b, c), vcs


def finished(network, stream, end_ps):
    while network.now_ps < end_ps:
        network.run(end_ps)
    stream.stop()
    end_ps += 30 * MS
    while network.now_ps < end_ps:
        network.run(end_ps)
    assert stream.is_over()
    network.check_conservation()
    network.ledger()
    return stream.analysis(), stream.truth()


def test_losses_and_errors_as_in_the_ledger_which_forgets_what_is_past():
    """Thousands of losses in a buffer, and errors in payloads and headers: what is kept of them is bounded."""
    network, (a, b, c), (vc, other) = chain(delay_ps=10 * MS, ber=3e-4)
    stream = network.add_test_cells(a.index, vc, c.index, block=(7, 4))
    network.start()
    network.loop.source(b.index, other, 9180, 7)
    network.loop.sink(c.index, other, 7, 0, 0, 0)
    stream.start()
    found, truth = finished(network, stream, 160 * MS)
    lost = sum(truth.lost.values())
    assert truth.sent > 30_000 and lost > 2_000 and truth.errored > 2_000
    assert {where for where, _ in truth.lost} == {"s", "line"}
    assert found.received == truth.received
    assert found.errored == truth.errored
    assert found.misinserted == truth.misinserted == 0
    assert 0 <= lost - found.lost < 30  # those behind the last cell in order
    assert found.secbs > 50
    assert network.loop.ledger_records() < 3500


def test_beside_oam_cells_of_the_vc_and_credits():
    """Single cells between test cells are none of these; a VC with credits loses none."""
    network, (a, b, c), (vc, other) = chain(vc=VcSettings(credits=8), oam=True, buffer_cells=64, delay_ps=MS)
    stream = network.add_test_cells(a.index, vc, c.index)
    network.start()
    network.loop.source(b.index, other, 4000, 7)
    network.loop.sink(c.index, other, 7, 0, 0, 0)
    stream.start(3000)
    for n in range(60):
        network.send_cell(a.index, vc, 5, n.to_bytes(48, "big"))
        end_ps = network.now_ps + MS // 3
        while network.now_ps < end_ps:
            network.run(end_ps)
    found, truth = finished(network, stream, 200 * MS)
    assert (found.in_order, found.lost, found.errored, found.misinserted) == (3000, 0, 0, 0)
    assert a.csr.tx_cells[vc] == 3060
    assert not truth.lost
    assert c.driver.counters()["oam_cells"] == 60


def test_delay_of_an_empty_network_and_a_start_at_any_time():
    network, (a, _, c), (vc, _) = chain(delay_ps=5 * MS, rate_bps=10_000_000)
    stream = network.add_test_cells(a.index, vc, c.index, delay_class=0)
    network.start()
    network.run(3 * MS)
    stream.start(50)
    found, truth = finished(network, stream, 20 * MS)
    assert found.in_order == truth.received == truth.sent == 50
    assert found.delay_max_ps - found.delay_min_ps <= ticks_to_ps(2)
    assert found.quantile_ps(0.5) <= found.delay_max_ps
    assert stream.blocks == (10, 32)  # 23,585 cells a second


def test_what_is_refused():
    network, (a, b, c), (vc, other) = chain()
    network.add_test_cells(a.index, vc, c.index)
    with pytest.raises(NetworkError, match="a sends test cells on another VC already: it has one generator"):
        network.add_test_cells(a.index, vc, c.index)
    with pytest.raises(NetworkError, match="c receives test cells on another VC already: it has one analyser"):
        network.add_test_cells(b.index, other, c.index)
    network.start()
    with pytest.raises(NetworkError, match="runs already"):
        network.add_test_cells(b.index, other, a.index)
