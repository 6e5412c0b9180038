"""FTP: the dialogue's round trips, disks that limit, what the client reports."""

from __future__ import annotations

import pytest

from bentpipe.apps.ftp import COMMANDS, GREETING, Ftp
from bentpipe.hosts.flow import FlowReport
from bentpipe.tcp.config import TcpConfig
from models.pair import Pair

MS = 10**9
S = 10**12
RTT = 40 * MS


def transfer(session: Ftp, tcp: TcpConfig | None = None, rate_bps: int | None = None) -> tuple[Pair, FlowReport]:
    pair = Pair(delay_ps=RTT // 2, rate_bps=rate_bps, keep_log=True)
    flow = pair.flow(tcp or TcpConfig(ack_policy="immediate"), app=session)
    report = flow.report(pair.engine.run(100 * S))
    assert report.finished and report.error == "" and report.bad_octets == 0
    return pair, report


def file(size: int = 10_000, block: int = 8192, read_bps: int = 0, write_bps: int = 0, put: bool = False) -> Ftp:
    return Ftp(size, block, read_bps, write_bps, put)


@pytest.mark.parametrize("policy", ["immediate", "bsd"])
@pytest.mark.parametrize("put", [False, True])
def test_the_dialogue_takes_its_round_trips(put: bool, policy: str) -> None:
    """From the client's connection on: the greeting, then one round trip each for four commands. No end waits for a
    delayed ACK before it answers."""
    _, report = transfer(file(put=put), TcpConfig(ack_policy=policy))
    assert report.facts["ftp_mode"] == ("put" if put else "get")
    assert report.facts["ftp_login_ps"] == RTT + 4 * RTT


@pytest.mark.parametrize("put", [False, True])
def test_the_dialogue_has_its_octets(put: bool) -> None:
    pair, report = transfer(file(put=put))
    client, server = (0, 1) if put else (1, 0)
    sent = {0: 0, 1: 0}
    for _, nic, _, head in pair.network.log or []:
        ports = int.from_bytes(head[28:30], "big"), int.from_bytes(head[30:32], "big")
        if 21 in ports:
            sent[nic] += int.from_bytes(head[10:12], "big") - 20 - (head[40] >> 4) * 4
        else:
            assert 20 in ports
    assert sent[client] == sum(len(command) for command, _ in COMMANDS)
    assert sent[server] == len(GREETING) + sum(len(r) for _, r in COMMANDS) + len("226 Transfer complete.\r\n")
    assert report.octets_delivered == 10_000


@pytest.mark.parametrize("put", [False, True])
def test_the_server_opens_the_data_connection_from_port_20(put: bool) -> None:
    pair, _ = transfer(file(put=put))
    server = 1 if put else 0
    opened = [
        (nic, int.from_bytes(head[28:30], "big"), int.from_bytes(head[30:32], "big"))
        for _, nic, _, head in pair.network.log or []
        if head[41] == 0x02
    ]
    (control, data) = opened
    assert control[0] == 1 - server and control[2] == 21
    assert data[0] == server and data[1] == 20


def test_a_get_takes_what_the_client_reports() -> None:
    """At 1 Mb/s: from the announcement, which comes after the data connection's ACK, to the end of 5000 octets and the
    FIN, each with 48 octets of headers."""
    _, report = transfer(file(5000), rate_bps=1_000_000)
    assert report.facts["ftp_seconds"] == pytest.approx(8 * (5048 + 48) / 10**6)
    assert report.facts["ftp_kbytes_per_s"] == pytest.approx(5000 / 1024 / report.facts["ftp_seconds"])
    assert report.facts["ftp_session_ps"] > report.facts["ftp_login_ps"] + 3 * RTT


@pytest.mark.parametrize("put", [False, True])
@pytest.mark.parametrize(("read", "write"), [(4_000_000, 0), (0, 4_000_000), (4_000_000, 8_000_000)])
def test_the_slower_disk_decides(put: bool, read: int, write: int) -> None:
    """1 MB at 4 Mb/s are 2 s."""
    tcp = TcpConfig(ack_policy="immediate", send_buffer=65536, receive_buffer=65536)
    _, report = transfer(file(1_000_000, 8192, read, write, put), tcp, 100_000_000)
    elapsed = (report.end_ps - report.start_ps) / S
    assert report.octets_delivered == 1_000_000
    if not put:
        assert report.facts["ftp_seconds"] == pytest.approx(2, abs=0.15)
    else:  # the client's time ends with its last write: what the sink has yet to read is not in it
        assert 2 - 2 * 65536 * 8 / 4e6 - 0.15 < report.facts["ftp_seconds"] < 2.15
    assert elapsed == pytest.approx(2, abs=0.35)


def test_the_window_decides_where_disks_don_t() -> None:
    """At least a round trip a window; at most two, as the reader opens the window by two segments at a time."""
    tcp = TcpConfig(ack_policy="immediate", send_buffer=32768, receive_buffer=32768, round_buffers=False)
    _, report = transfer(file(1_000_000), tcp)
    windows = 1_000_000 / 32768 * 0.04
    assert windows < report.facts["ftp_seconds"] < 2 * windows


@pytest.mark.parametrize("block", [1, 999, 10_000, 10_001])
def test_any_block_size_delivers_the_file(block: int) -> None:
    _, report = transfer(file(10_000, block))
    assert report.octets_delivered == 10_000


def test_settings_out_of_range() -> None:
    with pytest.raises(ValueError, match="size_octets must be at least 1"):
        file(0)
    with pytest.raises(ValueError, match="block_octets must be at least 1"):
        file(1, 0)
    with pytest.raises(ValueError, match="disk rates must not be negative"):
        file(1, 1, -1)


def test_two_transfers_between_the_same_hosts() -> None:
    pair = Pair(delay_ps=MS)
    flows = [
        pair.engine.add_tcp_flow(name, pair.source, pair.sink, 0, 0, TcpConfig(), app=file(put=put))
        for name, put in (("a", False), ("b", True), ("c", False))
    ]
    now = pair.engine.run(100 * S)
    assert [flow.report(now).octets_delivered for flow in flows] == [10_000] * 3
    assert all(flow.report(now).finished for flow in flows)
