"""Load-reactive ports in a network: rates, stalls, what is queued for a port."""

from fractions import Fraction

import pytest

from bentpipe_hdl.nic.control import NicLine, PacingSettings
from bentpipe_hdl.switch.control import PortSettings, SwitchSettings
from bentpipe_hdl.switch.options.reactive.control import ReactiveSettings
from bentpipe_sim.errors import NetworkError
from bentpipe_sim.network import Network
from models.lines import switch_ports
from unit.hdl.test_rate_controller import RATES

OC12 = 599_040_000
S = 10**12
FIXED = {"low": 0, "high": 0, "up_bps": 0, "down_bps": 0}


def network(cell_rate_bps=None, clock_ppm=0.0, **reactive):
    """One VC through a switch whose port 1 is load-reactive."""
    given = PortSettings(reactive=ReactiveSettings(**reactive))
    made = Network()
    switch = made.add_switch(
        "s",
        SwitchSettings(policy="tail"),
        ports=switch_ports([OC12] * 2, clocks_ppm=[0, clock_ppm], settings={1: given}),
    )
    source, sink = (made.add_nic(name, line=NicLine(OC12)) for name in ("source", "sink"))
    for port, nic in enumerate((source, sink)):
        made.connect(nic, (switch, port))
        made.connect((switch, port), nic)
    vc = made.add_vc([source, switch, sink], 0, 32, pacing=PacingSettings(cell_rate_bps=cell_rate_bps))
    return made, switch, source, vc


def measured(kbps, cells):
    """A port at this capacity that always has cells, until so many have left.

    Returns
    -------
    tuple
        Simulated ps, and by how many ps the last cell of a PDU was ever off.
    """
    rate = min(OC12, 1010 * kbps)
    made, switch, source, vc = network(cell_rate_bps=rate, floor_bps=1000 * kbps, ceiling_bps=OC12, **FIXED)
    made.run(10**9)
    assert switch.csr.rate_capacity[1] == kbps
    a_pdu = max(1, min(1000, cells // 20))
    first, count, sent, off, last = 0, 0, 0, 0.0, 0
    while count * a_pdu < cells:
        while sent < count + 8:
            made.send(source.index, vc, b"", key=1, length=48 * a_pdu - 8)
            sent += 1
        for event in made.run(made.now_ps + 10 * S):
            count += 1
            last = event.time_ps
            first = last if count == 2 else first
            if count > 2:
                off = max(off, float(abs(last - first - Fraction((count - 2) * a_pdu * 424 * S, 1000 * kbps))))
    made.check_conservation()
    return last - first, off


@pytest.mark.parametrize("kbps", RATES)
def test_the_capacity_is_met_to_1e_6(kbps):
    """At 20 rates from 1 kb/s to 599.04 Mb/s the time is never off by more than two ticks.

    Over ten minutes, or 400,000 cells if that is less. (``soak.reactive`` takes ten minutes for all.)"""
    passed, off = measured(kbps, min(400_000, 600 * 1000 * kbps // 424))
    assert off <= 2 * 176_950
    assert off / passed < 2e-6


def test_a_stalled_port_opens_when_its_queue_is_above_high_and_stalls_again_when_it_is_below_low():
    made, switch, source, vc = network(
        floor_bps=0,
        ceiling_bps=OC12,
        low=2,
        high=4,
        counted="packets",
        up_bps=10**8,
        down_bps=10**9,
        interval_ps=S // 10,
    )
    for _ in range(4):
        made.send(source.index, vc, b"", key=1, length=1000)
    assert made.run(S) == []
    assert (switch.csr.port_cells[1], switch.csr.port_frames[1], switch.csr.rate_capacity[1]) == (88 - 4, 4, 0)
    made.send(source.index, vc, b"", key=1, length=1000)
    events = []
    while made.now_ps < 2 * S:
        events += made.run(2 * S)
    assert len(events) == 5
    assert (switch.csr.port_cells[1], switch.csr.rate_capacity[1]) == (0, 0)
    made.check_conservation()


def test_floor_and_ceiling_changed_in_a_run_hold_from_the_next_look_on():
    made, switch, _, _ = network(floor_bps=5000, ceiling_bps=OC12, initial_bps=9000, interval_ps=S // 10, **FIXED)
    made.run(S // 20)
    assert switch.csr.rate_capacity[1] == 9
    own = ReactiveSettings(floor_bps=2000, ceiling_bps=4000, interval_ps=S // 10, **FIXED)
    switch.change_port(1, OC12, PortSettings(reactive=own))
    made.run(S // 11)
    assert switch.csr.rate_capacity[1] == 9
    made.run(S // 9)
    assert switch.csr.rate_capacity[1] == 4
    switch.change_port(1, OC12, PortSettings(reactive=own.model_copy(update={"floor_bps": 3000, "ceiling_bps": 3000})))
    made.run(S // 4)
    assert switch.csr.rate_capacity[1] == 3


def test_a_stalled_port_that_opens_sends_at_once():
    """At the look that finds its queue above high, and the four ticks that this takes."""
    made, _, source, vc = network(
        floor_bps=0, ceiling_bps=OC12, low=1, high=2, counted="cells", up_bps=10**8, interval_ps=S // 10
    )
    made.send(source.index, vc, b"", key=1, length=40)
    made.run(S // 2 + 10**9)
    for _ in range(2):
        made.send(source.index, vc, b"", key=1, length=40)
    (event,) = made.run(S)
    looks = S * 6 // 10
    assert looks < event.time_ps < looks + 20 * 10**6
    assert made.stats()["s"]["evaluations"] < 50  # while it is stalled it is left alone but for looks


def test_a_cell_on_its_way_takes_its_old_time_also_if_the_port_is_idle_when_its_capacity_grows():
    """42.4 ms at 10 kb/s. After 10 ms the port has 100 Mb/s, after 15 ms there is another cell for it, which begins as
    the first one ends."""
    made, switch, source, vc = network(floor_bps=10_000, ceiling_bps=10_000, **FIXED)
    made.run(10**9)
    made.send(source.index, vc, b"", key=1, length=40)
    assert made.run(10**10) == []
    switch.csr.rate_ceiling[1] = switch.csr.rate_initial[1] = switch.csr.rate_floor[1] = 100_000
    switch.csr.rate_control[1] = {"enabled": 1}
    made.run(15 * 10**9)
    assert switch.csr.rate_capacity[1] == 100_000
    made.send(source.index, vc, b"", key=1, length=40)
    (first,) = made.run(S)
    (second,) = made.run(S)
    begins = 10**9 + 424 * S / OC12 + switch.settings.processing_delay_ps
    assert first.time_ps == pytest.approx(begins + 424 * S / 10_000, abs=5 * 176_950)
    assert second.time_ps - first.time_ps == pytest.approx(424 * S / 100_000_000, abs=2 * 176_950)


def test_a_clock_that_is_off_is_so_for_a_reactive_port():
    """100 ppm fast: as much more than its capacity."""
    made, _, source, vc = network(clock_ppm=100, floor_bps=10**7, ceiling_bps=10**7, **FIXED)
    for _ in range(2):
        made.send(source.index, vc, b"", key=1, length=48 * 1000 - 8)
    ends = []
    while made.now_ps < S:
        ends += [event.time_ps for event in made.run(S)]
    assert (ends[1] - ends[0]) * 10_001_000 / (1000 * 424 * S) == pytest.approx(1, abs=1e-5)


def test_the_ceiling_counts_in_what_a_switch_moves():
    made = Network()
    given = PortSettings(reactive=ReactiveSettings(floor_bps=1000, ceiling_bps=2_000_000_000, low=1, high=1))
    switch = made.add_switch("s", ports=switch_ports([1_000_000] * 2, settings={0: given}))
    nics = [made.add_nic(f"n{k}", line=NicLine(10**9)) for k in range(2)]
    for port, nic in enumerate(nics):
        made.connect(nic, (switch, port))
        made.connect((switch, port), nic)
    made.start()
    made = Network()
    switch = made.add_switch("s", ports=switch_ports([500_000_000] * 2, settings={0: given}))
    nics = [made.add_nic(f"n{k}", line=NicLine(10**9)) for k in range(2)]
    for port, nic in enumerate(nics):
        made.connect(nic, (switch, port))
        made.connect((switch, port), nic)
    with pytest.raises(NetworkError, match=r"its lines take up to 2500\.01 Mb/s"):
        made.start()


def test_a_threshold_that_the_hardware_does_not_have_is_refused():
    given = PortSettings(
        reactive=ReactiveSettings(floor_bps=1000, ceiling_bps=2000, low=1, high=70_000, counted="cells")
    )
    made = Network()
    made.add_switch("s", ports=switch_ports(settings={0: given}))
    with pytest.raises(NetworkError, match="switch s: port 0: a threshold of 70000 cells is more than 65535 cells"):
        made.start()
