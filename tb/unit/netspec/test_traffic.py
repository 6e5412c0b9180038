"""The traffic of an experiment: flows with applications, scripts in it and beside it, their channels, what is wrong."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from bentpipe.apps.draws import Distribution
from bentpipe.apps.registry import APPLICATIONS, make
from bentpipe.apps.settings import BOUNDS, DRAWN, FlowRequest
from bentpipe.cli import main
from bentpipe.errors import ConfigError
from bentpipe.experiment.document.source import Source
from bentpipe.experiment.load import load
from bentpipe.experiment.resolve.parse import parse_experiment
from bentpipe.experiment.resolve.specs import Experiment, GroupSpec
from bentpipe.netspec.language import PROTOCOLS
from bentpipe.results.tables import flow_tables
from bentpipe.tcp.recovery import VARIANTS

MS = 10**9
S = 10**12
HEAD = """
[experiment]
id = "x"
title = "X"
duration = "1 s"

[network.switches.west]
ports = 4

[network.hosts.a]
port = "west:0"
mtu = 1500

[network.hosts.b]
port = "west:1"

[network.hosts.c]
port = "west:2"
interface_queue = 50

[hosts.tcp]
window = "64 KiB"
"""


FIRST = len(HEAD.splitlines()) + 3
"""The line of a script's first line in an experiment."""


def read(text: str, folder: Path | None = None) -> Experiment:
    return parse_experiment(tomllib.loads(HEAD + text), Source("x.toml", HEAD + text, folder=folder))


def script(text: str) -> Experiment:
    return read(f'[traffic]\nnetspec = """\n{text}"""\n')


def test_connections_between_two_hosts_share_a_channel_each_way() -> None:
    e = script("""parallel {
        connection { own = a; peer = b; xmtbuf = 1000 }
        connection { own = a; peer = b; protocol = tcp(variant = sack) }
        connection { own = b; peer = a }
        connection { own = c; peer = a; protocol = udp; test = cbr(messagesize = 100, period = 1000) }
    }""")
    ways = [(vc.path[0], vc.path[-1]) for vc in e.vcs]
    assert ways == [("a", "b"), ("b", "a"), ("c", "a"), ("a", "c")]
    assert [(f.vc, f.return_vc) for f in e.flows] == [(0, 1), (0, 1), (1, 0), (2, 3)]
    assert len({vc.vci for vc in e.vcs}) == 4
    first, second, _, last = e.flows
    assert first.tcp is not None and (first.tcp.send_buffer, first.tcp.receive_buffer) == (1000, 65536)
    assert second.tcp is not None and second.tcp.send_buffer == 65536
    assert (first.tcp.variant, second.tcp.variant) == ("reno", "sack")
    assert (last.protocol, last.tcp) == ("udp", None)
    assert e.schedule == GroupSpec(False, 0, (0, 1, 2, 3))


def test_channels_laid_by_hand_are_taken() -> None:
    e = read("""
[[vc]]
name = "mine"
from = "a"
to = "b"
vci = 77
[traffic]
cell_rate = "10 Mb/s"
netspec = "connection { own = a peer = b }"
""")
    assert [(vc.name, vc.vci, vc.pacing.cell_rate_bps) for vc in e.vcs] == [("mine", 77, None), ("b-a", 32, 10_000_000)]


def test_flows_and_a_script_together() -> None:
    e = read("""
[[flow]]
source = "a"
sink = "b"
[traffic]
netspec = '''serial { own = a connection s1 { peer = b size = 1 kB } connection s2 { peer = c size = 2kB delay = 5 }}'''
""")
    assert [f.name for f in e.flows] == ["flow1", "s1", "s2"]
    assert e.schedule == GroupSpec(True, 0, (1, 2))
    assert [f.start_ps for f in e.flows] == [0, 0, 5 * S]


def test_a_script_beside_the_experiment(tmp_path: Path) -> None:
    (tmp_path / "s.ns").write_text("connection { own = a peer = b }\n")
    e = read('[traffic]\nnetspec = "s.ns"\n', tmp_path)
    assert len(e.flows) == 1 and e.netspec.startswith("connection")
    (tmp_path / "x.toml").write_text(HEAD + '[traffic]\nnetspec = "s.ns"\n')
    assert load(str(tmp_path / "x.toml")).flows == e.flows


def test_a_script_of_the_command_line_is_looked_for_where_one_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.ns").write_text("connection mine { own = alpha1 peer = alpha3 }\n")
    monkeypatch.chdir(tmp_path)
    assert [f.name for f in load("netspec-cbr", ["traffic.netspec=mine.ns"]).flows] == ["mine"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("connection { own = a; peer = d }", "0:23: there is no host 'd'; known: a, b, c"),
        ("connection { own = a; peer = a }", "0:23: sends to itself, 'a'"),
        ("connection { own = a; peer = b\ntest = ftp }", "1:8: ftp needs the size of the file"),
        ("connection { own = a; peer = b\nprotocol = udp }", "0:1: full blast over UDP is limited"),
        (
            "connection { own = c; peer = b\nprotocol = udp(datagram = 9153) test = cbr(messagesize=30,period=1) }",
            r"1:\d+: a datagram of 9153 octets does not fit the MTU of 9180: at most 9152",
        ),
        (
            "connection { own = a; peer = b protocol = udp\ntest = burst(messagesize=23,period=1) }",
            "1:8: over UDP a block has 24 octets and more",
        ),
        ("connection { own = a; peer = b size = 3 protocol = udp\ntest = ftp }", "1:8: ftp runs over tcp only"),
        (
            "parallel {\nconnection x { own=a peer=b }\nparallel { connection y { own=a } } }",
            "2:12: the parameter",
        ),
    ],
)
def test_errors_have_the_experiments_lines(text: str, message: str) -> None:
    line, _, rest = message.partition(":")
    with pytest.raises(ConfigError, match=f"^x.toml:{FIRST + int(line)}:{rest}") as caught:
        script(text)
    assert caught.value.detail.endswith("^")


def test_errors_of_files(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=rf"x.toml:{FIRST - 1}: traffic.netspec: .*none.ns: No such file"):
        read('[traffic]\nnetspec = "none.ns"\n', tmp_path)
    (tmp_path / "s.ns").write_bytes(b"\xff")
    with pytest.raises(ConfigError, match=r"s.ns: not UTF-8 text"):
        read('[traffic]\nnetspec = "s.ns"\n', tmp_path)
    (tmp_path / "s.ns").write_text("\nconnection { }\n")
    with pytest.raises(ConfigError, match=r"^s.ns:2:1: the parameter 'transmit' is missing"):
        read('[traffic]\nnetspec = "s.ns"\n', tmp_path)
    with pytest.raises(ConfigError, match="there is no flow"):
        read("")
    with pytest.raises(ConfigError, match="unknown key; did you mean 'netspec'"):
        read('[traffic]\nnetspek = "x"\n')


def test_applications_of_flows() -> None:
    e = read("""
[[flow]]
source = "a"
sink = "b"
app = "cbr"
block = "10 kB"
rate = "8 Mb/s"
late = "skip"
duration = "3 s"
[[flow]]
source = "c"
sink = "b"
app = "random"
protocol = "udp"
datagram = 1000
block = ["1 kB", "2 kB"]
gap = ["1 ms", "3 ms"]
[[flow]]
source = "a"
sink = "b"
app = "onoff"
block = 1000
rate = "1 Mb/s"
on = "1 s"
off = "2 s"
[[flow]]
source = "a"
sink = "b"
app = "ftp"
size = "1 MB"
disk_write = "8 Mb/s"
""")
    cbr, random, onoff, ftp = e.flows
    assert cbr.settings == {"block": 10_000, "period": None, "rate": 8_000_000, "count": 1, "late": "skip"}
    assert (cbr.duration_ps, cbr.size) == (3 * S, None)
    assert random.settings == {"block": (1000, 2000), "gap": (MS, 3 * MS), "late": "queue"}
    assert (random.protocol, random.datagram, random.tcp) == ("udp", 1000, None)
    assert onoff.settings["times"] == "exponential"
    assert ftp.settings == {"mode": "get", "block": 8192, "disk_read": None, "disk_write": 8_000_000}


def test_what_is_drawn() -> None:
    (web,) = read("""
[[flow]]
source = "a"
sink = "b"
app = "http"
response = { distribution = "pareto", min = "2 kB", shape = 1.2, most = "1 MB" }
think = ["10 ms", "30 ms"]
""").flows
    assert web.settings["response"] == Distribution("pareto", 2000, 1.2, 10**6)
    assert web.settings["think"] == Distribution("uniform", 10 * MS, 30.0 * MS)
    assert (web.settings["request"], web.settings["users"]) == (None, 1)
    (expected_text,) = script("""connection { own = a; peer = b
        test = http(itemsize = pareto(min = 2 kB, shape = 1.2, most = 1 MB), think = 10 ms..30 ms) }""").flows
    assert expected_text.settings == web.settings


def test_ping_brings_its_protocol() -> None:
    (toml, first, second) = read("""
[[flow]]
source = "a"
sink = "b"
app = "ping"
[traffic]
netspec = "parallel { own = a; peer = b; window = 1 kB; connection p { test = ping(repeats = 3) } connection t { } }"
""").flows
    assert [flow.protocol for flow in (toml, first, second)] == ["udp", "udp", "tcp"]
    assert first.settings["count"] == 3


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ('app = "cbr"', "the key 'block' is missing"),
        ('app = "cbr"\nblock = 1000', "cbr needs 'period' or 'rate'"),
        ('app = "cbr"\nblock = 1000\nperiod = "1 ms"\nrate = "1 Mb/s"', "flow.0.rate: give either 'period' or 'rate'"),
        ('app = "cbr"\nblock = 1000\ngap = "1 ms"', "flow.0.gap: cbr has no such setting"),
        ("write = 0", "flow.0.write: 0 is out of range"),
        (
            'block = "1 kB"',
            "flow.0.block: ttcp has no such setting; did you mean|flow.0.block: ttcp has no such setting; known",
        ),
        ('app = "cbrr"', "unknown value 'cbrr'; did you mean 'cbr'"),
        ('app = "random"\nblock = [3, 2]\ngap = 1', "flow.0.block: lower bound above upper bound"),
        ('app = "random"\nblock = [3, 2, 1]\ngap = 1', "flow.0.block: give one value, or a list"),
        ('app = "random"\nblock = 0\ngap = 1', "flow.0.block: 0 is out of range"),
        ('app = "ftp"', "ftp needs the size of the file"),
        ('app = "ftp"\nsize = 10\nprotocol = "udp"', "flow.0.protocol: ftp runs over tcp only"),
        ('protocol = "udp"', "full blast over UDP is limited by the interface queue only"),
        ("datagram = 100", 'flow.0.datagram: requires protocol = "tcp"|flow.0.datagram: requires protocol = "udp"'),
        (
            'protocol = "udp"\napp = "cbr"\nblock = 100\nperiod = 1\ndatagram = 1473',
            "does not fit the MTU of 1500: at most 1472",
        ),
        ('protocol = "udp"\napp = "cbr"\nblock = 100\nperiod = 1\ntcp = { nagle = false }', "flow.0.tcp: requires"),
        ("late = 3", "flow.0.late: ttcp has no such setting"),
        ('app = "http"', "the key 'response' is missing"),
        (
            'app = "http"\nresponse = { distribution = "pareto", min = 9 }',
            "flow.0.response: pareto needs min and shape",
        ),
        ('app = "http"\nresponse = "1 kB"\nsize = 5', "flow.0.size: http has no such setting"),
        ('app = "ping"\nprotocol = "tcp"', "flow.0.protocol: ping runs over udp only"),
        ('app = "ping"\ninterval = "1 ps"', "flow.0.interval: '1 ps' is out of range"),
        ('app = "cbr"\nblock = 9\nperiod = "999 ns"', "flow.0.period: '999 ns' is out of range"),
        ('app = "ping"\noctets = 1473', "flow.0.octets: a request of 1473 octets does not fit into one datagram"),
    ],
)
def test_what_is_wrong_with_a_flow(keys: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read(f'[[flow]]\nsource = "a"\nsink = "b"\n{keys}\n')


def test_the_table_names_what_the_applications_take(tmp_path: Path) -> None:
    (variant,) = (a for a in PROTOCOLS["tcp"] if a.name == "variant")
    assert variant.choices == tuple(VARIANTS)
    forms = {"": 100, BOUNDS: (100, 100), DRAWN: Distribution("constant", 100)}
    for kind in APPLICATIONS.values():
        values = {s.name: s.choices[0] if s.choices else forms[s.form] for s in kind.settings}
        if kind.name == "slots":  # a load, or a period
            values |= {"load": 0.5, "period": None, "rounds": None}
        if kind.name == "markov":  # probabilities
            values |= {"load": 0.5, "other_load": 0.0}
        if kind.name == "mpareto":  # half of the range
            values |= {"hurst": 0.8}
        if "file" in values:
            (tmp_path / "x").write_text("time,size\n0,100\n" if kind.name == "trace" else "100\n")
            values |= {"file": "x", "of_vc": None}
        given = FlowRequest(kind.protocols[0], values, 1, folder=tmp_path)
        assert make(kind.name, given).kind == kind.name


def test_check_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "s.ns"
    path.write_text("parallel {\n    connection { own = a; peer = b }\n    connection { own = a; pier = b }\n}\n")
    assert main(["netspec", "check", str(path)]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == f"bentpipe: {path}:3:27: unknown parameter 'pier'; did you mean 'peer'?"
    assert lines[1:] == ["    " + "    connection { own = a; pier = b }", "    " + " " * 26 + "^"]
    path.write_text(path.read_text().replace("pier", "peer"))
    assert main(["netspec", "check", str(path)]) == 0
    assert capsys.readouterr().out == f"{path}: 2 connections (2 ttcp) between 2 hosts: a, b\n"
    assert main(["netspec", "check", "--json", str(path)]) == 0
    assert [m["transmit"] for m in json.loads(capsys.readouterr().out)["members"]] == ["a", "a"]


def test_tables_tell_transports_late_blocks_and_ftp() -> None:
    common = {"source": "a", "sink": "b", "octets_delivered": 10**6, "goodput_bps": 1e6}
    udp = {
        "protocol": "udp", "datagrams_sent": 10, "datagrams_received": 7, "datagrams_lost": 2, "datagrams_under_way": 1,
        "datagrams_reordered": 0, "datagrams_refused": 3,
        "delay_mean_ps": 2 * MS, "delay_max_ps": 3 * MS,
    }  # fmt: skip
    late = {"blocks_written": 5, "blocks_late": 3, "blocks_skipped": 0, "late_max_ps": MS, "blocked_ps": 2 * MS}
    flows = [
        {"name": "t", "protocol": "tcp", "app": "ttcp", "variant": "sack", "segments_sent": 7, **common},
        {"name": "u", "app": "cbr", **udp, **late, **common},
        {"name": "f", "protocol": "tcp", "app": "ftp", "ftp_mode": "get", "ftp_seconds": 2.0, "ftp_kbytes_per_s": 5.0,
         "ftp_login_ps": MS, **common},
    ]  # fmt: skip
    tables = {title: rows for title, _, rows in flow_tables(flows)}
    assert list(tables) == ["TCP flows", "UDP flows", "Late blocks", "FTP, as the client reports it"]
    assert tables["TCP flows"][0] == ["t (a to b)", "sack", "1.0 MB", "1.000", "7", "0", "0", "0"]
    assert tables["UDP flows"] == [
        ["u (a to b)", "cbr", "1.0 MB", "1.000", "10", "7", "2", "1", "0", "3", "2.000 ms (3.000 ms)"]
    ]
    assert tables["Late blocks"] == [["u", "cbr", "5", "3", "1.000 ms", "0", "2.000 ms"]]
    assert tables["FTP, as the client reports it"] == [["f", "ftp get", "2.000", "5.000", "1.000 ms"]]
    assert all(len(columns) == len(row) for _, columns, rows in flow_tables(flows) for row in rows)
    assert [title for title, _, _ in flow_tables(flows[:1])] == ["Flows"]


def test_hosts_have_addresses_by_which_scripts_name_them() -> None:
    named = HEAD.replace('"west:0"', '"west:0"\naddress = "10.0.0.1"').replace(
        '"west:1"', '"west:1"\naddress = "10.0.0.2"'
    )
    text = '\n[traffic]\nnetspec = "connection { xmt = 10.0.0.1; rcv = 10.0.0.%s; size = 1; }"\n'

    def flows(head: str, last: str) -> Experiment:
        return parse_experiment(tomllib.loads(head + text % last), Source("x.toml", head + text % last))

    (flow,) = flows(named, "2").flows
    assert (flow.source, flow.sink) == ("a", "b")
    with pytest.raises(ConfigError, match=r"there is no host '10.0.0.3'; did you mean '10.0.0.[12]'"):
        flows(named, "3")
    with pytest.raises(ConfigError, match=r"network.hosts.b.address: is the address of 'a', too"):
        flows(named.replace("10.0.0.2", "10.0.0.1"), "1")
