"""The host engine: processor time, interface queue, faults, reports."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from bentpipe.apps.cbr import Cbr
from bentpipe.apps.ttcp import Ttcp
from bentpipe.errors import ExperimentFailed
from bentpipe.hosts.config import HostConfig, host_costs
from bentpipe.hosts.engine import Engine
from bentpipe.hosts.flow import Flow
from bentpipe.hosts.profiles import load_profiles, profile
from bentpipe.ip.codec import TcpPath
from bentpipe.tcp.config import TcpConfig
from bentpipe.tcp.constants import ESTABLISHED, SYN
from bentpipe.tcp.segment import Segment
from bentpipe_sim.interface import PduEvent, PduStatus
from models.pair import Pair
from models.wire import WireNetwork

US = 10**6
MS = 10**9
OC3C_SDU_BPS = 149_760_000 * 48 // 53


def aal5_overhead(pair: Pair) -> None:
    """Full segments fill 192 cells."""
    pair.forth.overhead = 192 * 48 - 9188


def steady_bps(pair: Pair, *flows: Flow) -> float:
    """Return the rate of all flows together in the third second."""
    pair.engine.run(2 * 10**12)
    before = sum(flow.report(pair.engine.now_ps).octets_delivered for flow in flows)
    pair.engine.run(3 * 10**12)
    return 8.0 * (sum(flow.report(pair.engine.now_ps).octets_delivered for flow in flows) - before)


def test_best_rate_of_oc3c() -> None:
    """134.513 Mb/s: 9140 octets in 192 cells."""
    pair = Pair(rate_bps=OC3C_SDU_BPS, delay_ps=50 * US)
    aal5_overhead(pair)
    flow = pair.flow(TcpConfig(send_buffer=800_000, receive_buffer=800_000))
    assert steady_bps(pair, flow) / 1e6 == pytest.approx(134.513, abs=0.08)


@pytest.mark.parametrize(("send", "receive", "side"), [(800, 0, "source"), (0, 800, "sink")])
def test_processor_limits_the_rate(send: int, receive: int, side: str) -> None:
    """800 us a segment at one end: 9140 octets each 800 us, less the ACKs' share."""
    slow = HostConfig(name=side, send_cost_ps=send * US, receive_cost_ps=receive * US)
    pair = Pair(delay_ps=MS, **{side: slow})
    flow = pair.flow(TcpConfig(send_buffer=800_000, receive_buffer=800_000))
    assert steady_bps(pair, flow) == pytest.approx(9140 * 8 / 800e-6, rel=0.01)


def test_without_a_handshake_data_is_the_first_thing_on_the_way() -> None:
    """The options count all the same, and the first round trip that is measured is that of data."""
    pair = Pair(delay_ps=100 * MS)
    config = TcpConfig(variant="sack", receive_buffer=200_000, handshake=False)
    flow = pair.flow(config)
    pair.engine.run(10**9)
    assert [flow.source.connection.state, flow.sink.connection.state] == [ESTABLISHED, ESTABLISHED]
    assert (flow.source.connection.sender.statistics.data_segments_sent, flow.sink.connection.segments_received) == (
        1,
        0,
    )
    assert flow.source.connection.sender.rto.current == 12  # as of a connection that knows of no round trip
    assert flow.source.connection.receiver.sacks
    assert flow.source.connection.sender.snd_shift > 0
    pair.engine.run(10**12)
    report = flow.report(pair.engine.now_ps)
    assert report.rtt_min_ps >= 200 * MS
    assert report.retransmits == report.timeouts == 0
    assert report.octets_delivered > 9140


def test_acks_cost_as_much_as_data() -> None:
    """550 us both ways at the sink: one and a half segments' time for each segment of data."""
    pair = Pair(delay_ps=MS, sink=HostConfig(name="sink", profile="sparc-10"))
    flow = pair.flow(TcpConfig(send_buffer=800_000, receive_buffer=800_000))
    assert steady_bps(pair, flow) == pytest.approx(9140 * 8 / (1.5 * 550e-6), rel=0.01)
    sink = flow.sink.connection
    assert (
        0
        <= pair.sink.processor.busy_ps - 550 * US * (sink.sender.statistics.segments_sent + sink.segments_received)
        <= 550 * US
    )


def test_connections_share_the_processor() -> None:
    pair = Pair(delay_ps=MS, sink=HostConfig(name="sink", receive_cost_ps=800 * US))
    tcp = TcpConfig(send_buffer=100_000, receive_buffer=100_000)
    first, second = pair.flow(tcp), pair.flow(tcp)
    assert steady_bps(pair, first, second) == pytest.approx(9140 * 8 / 800e-6, rel=0.01)
    rates = [flow.report(pair.engine.now_ps).goodput_bps for flow in (first, second)]
    assert rates[0] == pytest.approx(rates[1], rel=0.1)


def test_segment_waits_for_the_processor() -> None:
    """A SYN costs its sender 300 us, its receiver 200 us: the answer leaves after 300 + 1000 + 200 + 100 us."""
    pair = Pair(
        delay_ps=MS,
        source=HostConfig(name="source", send_cost_ps=300 * US),
        sink=HostConfig(name="sink", send_cost_ps=100 * US, receive_cost_ps=200 * US),
        keep_log=True,
    )
    pair.run(pair.flow(TcpConfig(), 1), 0.01)
    assert [time for time, *_ in pair.network.log or []][:2] == [300 * US, 1600 * US]


def gaps_between_segments(spread: float, seed: int = 1, segments: int = 2000) -> list[int]:
    """The times between the segments of a source that takes 800 us for one."""
    source = HostConfig(name="source", send_cost_ps=800 * US, cost_spread=spread, seed=seed)
    pair = Pair(source=source, keep_log=True)
    pair.run(pair.flow(TcpConfig(initial_cwnd=2 * segments, variant="reno"), segments * 9140), 10)
    times = [time for time, nic, *_ in pair.network.log or [] if nic == pair.source.interface.nic]
    return [b - a for a, b in pairwise(times[2:])]


def test_cost_spread_is_even_and_within_its_share() -> None:
    gaps = gaps_between_segments(0.05)
    assert len(gaps) > 1900
    assert min(gaps) >= 760 * US and max(gaps) <= 840 * US + 1
    assert np.mean(gaps) == pytest.approx(800 * US, rel=0.003)
    assert np.std(gaps) == pytest.approx(40 * US / 3**0.5, rel=0.05)
    assert abs(np.corrcoef(gaps[1:], gaps[:-1])[0, 1]) < 0.1


def test_cost_spread_follows_the_seed() -> None:
    assert (
        gaps_between_segments(0.05, segments=50)
        == gaps_between_segments(0.05, segments=50)
        != gaps_between_segments(0.05, seed=2, segments=50)
    )
    assert set(gaps_between_segments(0.0, segments=50)) == {800 * US}


def test_hosts_draw_their_own_costs() -> None:
    one = HostConfig(name="source", send_cost_ps=100 * US, cost_spread=0.5)
    other = HostConfig(name="sink", send_cost_ps=100 * US, cost_spread=0.5)
    pair = Pair(source=one, sink=other, keep_log=True)
    pair.run(pair.flow(TcpConfig(), 1), 0.01)
    (syn, *_), (answer, *_), *_ = pair.network.log or []
    assert 50 * US <= syn <= 150 * US and 50 * US <= answer - syn <= 150 * US and answer - syn != syn


def gaps_of_an_interrupted_source(**clock: Any) -> list[int]:
    """The times between the segments of a source that takes 800 us for one, beside its clock."""
    source = HostConfig(name="source", send_cost_ps=800 * US, receive_cost_ps=0, **clock)
    pair = Pair(source=source, keep_log=True)
    pair.run(pair.flow(TcpConfig(initial_cwnd=2000), 1000 * 9140), 10)
    times = [time for time, nic, *_ in pair.network.log or [] if nic == pair.source.interface.nic]
    return [b - a for a, b in pairwise(times[2:])]


def test_clock_interrupts_take_the_processor() -> None:
    """At 1000 Hz, 100 us each: a segment of 800 us takes as much longer as interrupts come while it is worked on."""
    gaps = gaps_of_an_interrupted_source(clock_hz=1000, clock_cost_ps=100 * US)
    assert set(gaps) == {800 * US, 900 * US}
    assert np.mean(gaps) == pytest.approx(800 * US / (1 - 0.1), rel=0.001)
    assert set(gaps_of_an_interrupted_source(clock_hz=1000)) == {800 * US}
    assert set(gaps_of_an_interrupted_source(clock_cost_ps=100 * US)) == {800 * US}
    assert set(gaps_of_an_interrupted_source(profile="dec-3000-axp", clock_hz=0)) == {800 * US}
    assert set(gaps_of_an_interrupted_source(profile="dec-3000-axp", clock_cost_ps=0)) == {800 * US}
    axp = gaps_of_an_interrupted_source(profile="dec-3000-axp")
    assert np.mean(axp) == pytest.approx(800 * US / (1 - 1024 * 15e-6), rel=0.001)


@pytest.mark.parametrize(
    "wrong", [{"clock_hz": -1}, {"clock_hz": 0.1}, {"clock_cost_ps": -1}, {"clock_tolerance_ppm": 1001}]
)
def test_clock_out_of_range(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(wrong))}\\n .* is (neither|out of range)"):
        HostConfig(name="a", **wrong)


@pytest.mark.parametrize("spread", [-0.1, 1.01])
def test_cost_spread_out_of_range(spread: float) -> None:
    with pytest.raises(ValueError, match=r"cost_spread\n  is a share of the cost"):
        HostConfig(name="a", cost_spread=spread)


def test_full_interface_queue_drops_and_quenches() -> None:
    pair = Pair(rate_bps=10_000_000, delay_ps=MS, source=HostConfig(name="source", interface_queue=10))
    flow = pair.flow(TcpConfig(send_buffer=400_000, receive_buffer=400_000), 2_000_000)
    report = pair.run(flow, 60)
    assert report.finished and report.bad_octets == 0
    assert pair.source.interface.drops == report.quenches > 0
    assert list(pair.source.interface.refused.values()) == [report.quenches]
    assert report.retransmits >= report.quenches


def test_interface_queue_needs_a_network_that_reports() -> None:
    pair = Pair(rate_bps=10_000_000, delay_ps=MS, source=HostConfig(name="source", interface_queue=10))
    flow = pair.flow(TcpConfig(send_buffer=400_000, receive_buffer=400_000), 2_000_000)
    pair.network.reports_sent = False
    with pytest.raises(ExperimentFailed, match="doesn't report PDUs as sent"):
        pair.run(flow, 600)


def test_interface_queue_without_limit() -> None:
    pair = Pair(rate_bps=10_000_000, delay_ps=MS)
    report = pair.run(pair.flow(TcpConfig(send_buffer=400_000, receive_buffer=400_000), 2_000_000), 60)
    assert (report.finished, report.quenches, report.retransmits) == (True, 0, 0)


def test_full_input_queue_drops_what_arrives() -> None:
    """Segments come every 0.7 ms and cost 2 ms: three wait, further ones are lost and sent again."""
    sink = HostConfig(name="sink", receive_cost_ps=2 * MS, input_queue=3)
    pair = Pair(rate_bps=100_000_000, delay_ps=MS, sink=sink)
    report = pair.run(pair.flow(TcpConfig(send_buffer=100_000, receive_buffer=100_000), 1_000_000), 60)
    assert report.finished and report.bad_octets == 0
    assert 0 < sum(pair.sink.overrun.values()) <= report.retransmits
    assert [*pair.sink.overrun] == [pair.forth_vc]


def test_damaged_payload_is_dropped_by_the_checksum() -> None:
    pair = Pair(rate_bps=10_000_000, delay_ps=MS)

    def damage(number: int, octets: bytearray) -> None:
        if number in (5, 9):
            octets[-1] ^= 1

    pair.forth.mangle = damage
    report = pair.run(pair.flow(TcpConfig(send_buffer=50_000, receive_buffer=50_000), 300_000), 60)
    assert (report.finished, report.bad_octets, pair.sink.checksum_errors) == (True, 0, 2)
    assert list(pair.sink.damaged.values()) == [2]


def test_wrong_octets_that_pass_the_checksum_are_counted() -> None:
    """Two words exchanged: the checksum can't see it, the pattern does."""
    pair = Pair(rate_bps=10_000_000, delay_ps=MS)

    def damage(number: int, octets: bytearray) -> None:
        if number == 5:
            octets[100:102], octets[102:104] = octets[102:104], octets[100:102]

    pair.forth.mangle = damage
    report = pair.run(pair.flow(TcpConfig(send_buffer=50_000, receive_buffer=50_000), 300_000), 60)
    assert report.finished and pair.sink.checksum_errors == 0
    assert 2 <= report.bad_octets <= 4


def test_pdu_errors_are_counted_by_status() -> None:
    pair = Pair()
    for status in (PduStatus.CRC, PduStatus.CRC, PduStatus.LOST_LAST):
        pair.sink.event(PduEvent(0, 1, 0, status, 0, b"", 0))
    assert pair.sink.pdu_errors[PduStatus.CRC] == 2
    assert pair.sink.pdu_errors[PduStatus.LOST_LAST] == 1


@pytest.mark.parametrize("addresses", [(0xC0000201, 0x0A000001), (0x0A000001, 0xC0000201), (0x80000000, 0xFFFFFFFE)])
@pytest.mark.parametrize("protocol", ["tcp", "udp"])
def test_hosts_have_any_address(protocol: str, addresses: tuple[int, int]) -> None:
    """128.0.0.0 and more, too, which are negative as signed numbers of 32 bits."""
    pair = Pair(delay_ps=MS)
    pair.source.address, pair.sink.address = addresses
    if protocol == "tcp":
        flow: Any = pair.flow(TcpConfig(), 50_000)
    else:
        app = Cbr(1000, MS, size_octets=50_000)
        flow = pair.engine.add_udp_flow("flow", pair.source, pair.sink, pair.forth_vc, app)
    report = flow.report(pair.engine.run(10**12))
    assert (report.finished, report.octets_delivered, report.bad_octets) == (True, 50_000, 0)
    for host in (pair.source, pair.sink):
        assert (host.header_errors, host.checksum_errors, host.no_connection) == (0, 0, 0)


def test_unknown_connection_is_reset() -> None:
    pair = Pair(delay_ps=MS, keep_log=True)
    flow = pair.flow(TcpConfig(), 1)
    path = TcpPath(pair.source.address, pair.sink.address, 1, 2)
    pair.network.send(0, 0, path.encode(Segment(77, 0, SYN, 100, 0, 0, None), 1), 0, 0, 0, 28, 44)
    pair.run(flow, 1)
    assert pair.sink.no_connection == 1
    resets = [head for _, nic, _, head in pair.network.log or [] if nic == 1 and head[41] == 0x14]
    assert len(resets) == 1
    assert int.from_bytes(resets[0][36:40], "big") == 78
    assert pair.source.no_connection == 1  # the reset, in turn, of no connection: not answered


def test_report_of_an_endless_flow() -> None:
    pair = Pair(rate_bps=10_000_000, delay_ps=MS)
    flow = pair.flow(TcpConfig(send_buffer=50_000, receive_buffer=50_000), None, start_ps=10**12)
    report = pair.run(flow, 3)
    assert (report.finished, report.state, report.start_ps, report.end_ps) == (False, "ESTABLISHED", 10**12, 3 * 10**12)
    assert report.goodput_bps == report.octets_delivered * 8 / 2
    assert 8.5e6 < report.goodput_bps < 10e6
    assert 0 <= report.octets_delivered - report.octets_acknowledged < 50_000
    assert 2 * MS < report.rtt_min_ps < report.rtt_mean_ps < report.rtt_max_ps


def test_goodput_ends_with_the_last_octet() -> None:
    """From connect to the last octet read: three crossings for one segment, without the closing."""
    pair = Pair(delay_ps=100 * MS)
    report = pair.run(pair.flow(TcpConfig(), 1000), 100)
    assert (report.finished, report.end_ps) == (True, 300 * MS)
    assert report.goodput_bps == pytest.approx(1000 * 8 / 0.3)


def test_goodput_counts_the_time_until_a_broken_connection_is_given_up() -> None:
    """From the tenth segment on nothing comes through."""
    pair = Pair(delay_ps=MS)
    pair.forth.drop = set(range(10, 1000))
    report = pair.run(pair.flow(TcpConfig(timers="ideal", rto_max_ps=10**12)), 1000)
    assert report.error == "timed out" and report.octets_delivered > 0
    assert 10**12 < report.end_ps == pair.engine.now_ps
    assert report.goodput_bps == pytest.approx(report.octets_delivered * 8e12 / report.end_ps)


def test_run_stops_when_all_flows_have_finished() -> None:
    pair = Pair(delay_ps=MS)
    pair.flow(TcpConfig(), 10_000)
    last = pair.flow(TcpConfig(), 10_000, start_ps=2 * 10**12)
    assert pair.run(last, 100).finished
    assert 2 * 10**12 < pair.engine.now_ps < 3 * 10**12


def test_progress_and_clean_stop() -> None:
    pair = Pair(rate_bps=10_000_000, delay_ps=MS)
    flow = pair.flow(TcpConfig())
    seen: list[int] = []

    def progress(now: int) -> bool:
        seen.append(now)
        return len(seen) < 5

    assert pair.engine.run(10**13, progress) == seen[-1]
    assert len(seen) == 5 and all(b - a >= 50 * MS for a, b in pairwise(seen))
    before = flow.report(seen[-1]).octets_delivered
    pair.engine.run(seen[-1] + 10**12)  # and it can go on
    assert flow.report(pair.engine.now_ps).octets_delivered > before


def test_run_in_pieces_is_the_same_as_in_one() -> None:
    def run(pieces: int) -> object:
        pair = Pair(rate_bps=10_000_000, delay_ps=MS, seed=2)
        pair.forth.loss = 0.02
        flow = pair.flow(TcpConfig(send_buffer=50_000, receive_buffer=50_000))
        for piece in range(1, pieces + 1):
            pair.engine.run(piece * 6 * 10**12 // pieces)
        return flow.report(pair.engine.now_ps)

    assert run(1) == run(7)


def test_recorder_series() -> None:
    pair = Pair(rate_bps=10_000_000, delay_ps=MS)
    pair.forth.drop_data = {20}
    report = pair.run(pair.flow(TcpConfig(send_buffer=100_000, receive_buffer=100_000), 500_000), 60)
    samples = pair.recorder.samples
    assert set(samples) == {"flow1.cwnd", "flow1.ssthresh", "flow1.una", "flow1.rtt"}
    assert [value for _, value in samples["flow1.una"]] == sorted(value for _, value in samples["flow1.una"])
    assert samples["flow1.una"][-1][1] == 500_001  # the FIN counts
    round_trips = [value for _, value in samples["flow1.rtt"]]
    assert (len(round_trips), min(round_trips), max(round_trips)) == (
        report.rtt_count,
        report.rtt_min_ps,
        report.rtt_max_ps,
    )
    kinds = [kind for _, _, kind, _ in pair.recorder.events]
    assert kinds.count("fast_retransmit") == report.fast_retransmits == 1
    assert kinds.count("retransmit") == report.retransmits == 1
    assert next(value for _, _, kind, value in pair.recorder.events if kind == "retransmit") == 20 * 9140


def test_ticks_of_hosts_are_apart() -> None:
    network = WireNetwork()
    engine = Engine(network)
    for index in range(6):
        engine.add_host(HostConfig(name=f"h{index}"), network.add_nic())
    due = [time for time, _ in engine.scheduler.pending()]
    assert len(set(due)) == 12
    same = WireNetwork()
    engine = Engine(same)
    for index in range(6):
        engine.add_host(HostConfig(name=f"h{index}", timer_phase_ps=0), same.add_nic())
    assert len({time for time, _ in engine.scheduler.pending()}) == 2


def test_profiles() -> None:
    profiles = load_profiles()
    assert profile("dec-alpha-3000-700").send_us == 62
    assert all(entry.source and entry.send_us > 0 and entry.receive_us > 0 for entry in profiles.values())
    assert host_costs(HostConfig(name="a", profile="sparc-5")) == (700 * US, 700 * US)
    assert host_costs(HostConfig(name="a", profile="sparc-5", send_cost_ps=1)) == (1, 700 * US)
    assert host_costs(HostConfig(name="a")) == (0, 0)
    assert profile("dec-alpha-3000-700").clock_hz == 1024 and profile("dec-alpha-3000-700").clock_cost_ps == 15 * US
    assert all(e.clock_hz in (100, 1024) and e.clock_us > 0 and e.clock_ppm > 0 for e in profiles.values())


@pytest.mark.parametrize("name", ["sparc-10-51", "dec-alpha-3000-400"])
def test_derived_profiles_give_their_published_limits(name: str) -> None:
    published = profile(name)
    for side, limit in (("source", published.send_limit_mbps), ("sink", published.receive_limit_mbps)):
        pair = Pair(delay_ps=MS, **{side: HostConfig(name=side, profile=name)})
        flow = pair.flow(TcpConfig(send_buffer=800_000, receive_buffer=800_000))
        assert steady_bps(pair, flow) / 1e6 == pytest.approx(limit, rel=0.01)


def test_errors_name_the_value() -> None:
    with pytest.raises(ValueError, match="did you mean sparc-5"):
        profile("sparc5")
    with pytest.raises(ValueError, match="variant must be one of tahoe, reno, newreno, sack, not 'cubic'"):
        TcpConfig(variant="cubic")
    with pytest.raises(ValueError, match="mss 9140 needs an MTU of 9180, the interface has 1500"):
        TcpConfig(mss=9140).segment_size(1500)
    with pytest.raises(ValueError, match=r"receive_buffer must be 1\.\."):
        TcpConfig(receive_buffer=0)
    with pytest.raises(ValueError, match="size_octets"):
        Ttcp(0)
    with pytest.raises(ValueError, match=r"mtu\n  10 is out of range 104\.\.65527"):
        HostConfig(name="h", mtu=10)
    pair = Pair()
    with pytest.raises(ValueError, match="interface 0 already belongs to host source"):
        pair.engine.add_host(HostConfig(name="x"), 0)
    with pytest.raises(ValueError, match="same host"):
        pair.engine.add_tcp_flow("f", pair.source, pair.source, 0, 0, TcpConfig())


def test_defaults_are_the_testbeds() -> None:
    config = TcpConfig()
    assert (config.variant, config.segment_size(9180), config.timestamps, config.timers) == ("reno", 9140, False, "bsd")
    assert config.window_scale and config.receive_buffer == 10 * 1024 * 1024
