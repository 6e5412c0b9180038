"""Tests of the meaning of scripts: connections, their settings, their order; and the errors of scripts without a
meaning.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from bentpipe.apps.draws import Distribution
from bentpipe.errors import ConfigError
from bentpipe.netspec.language import PARAMETERS, PROTOCOLS, TESTS, Argument
from bentpipe.netspec.plan import Connection, FlowGroup, read_script
from bentpipe.netspec.syntax import Script

SCRIPTS = Path(__file__).parents[2] / "vectors" / "netspec"
US = 10**6
MS = 10**9
S = 10**12

PAPER = """
experiment {
    parallel {
        connection {
            control = c; transmit = a; receive = b; report = c;
            protocol = tcp;
            xmtbuf = 262144;
            rcvbuf = 131072;
            test = cbr(messagesize = 18600:1, period = 30000);
            delay = 2;
            duration = 10;
        }
        connection {
            control = c; transmit = b; receive = a; report = c;
            protocol = udp;
            test = cbr(messagesize = 18600:3, period = 30000);
        }
    }
}
"""
CLUSTER = """
cluster {
    test source {
        type = burst (blocksize=125000,period=10000, duration=10);
        protocol = tcp (window=1048576);
        own = a.atm:45000;
        peer = b.atm:45001;
    }
    test sink {
        type = sink (blocksize=125000, duration=10);
        protocol = tcp (window=262144);
        own = b.atm:45001;
        peer = a.atm:45000;
    }
}
"""


def plan(text: str) -> FlowGroup:
    return read_script(Script(text, "x.ns"))


def only(parameters: str) -> Connection:
    """The connection of these parameters."""
    (one,) = plan(f"connection {{ transmit = a; receive = b; {parameters} }}").connections()
    return one


def test_the_papers_form() -> None:
    first, second = plan(PAPER).connections()
    assert (first.name, first.transmit, first.receive, first.protocol) == ("flow1", "a", "b", "tcp")
    assert (first.send_buffer, first.receive_buffer) == (262144, 131072)
    assert (first.delay_ps, first.duration_ps, first.size) == (2 * S, 10 * S, None)
    assert first.app == "cbr"
    assert first.settings == {"block": 18600, "period": 30 * MS, "rate": None, "count": 1, "late": None}
    assert (second.transmit, second.protocol, second.settings["count"]) == ("b", "udp", 3)
    assert (second.delay_ps, second.duration_ps, second.send_buffer) == (0, None, None)


def test_the_form_of_netspec_2() -> None:
    """DaSilva et al. 1997, figure 9, with names for addresses."""
    given = """
        xmtcntl = a; rcvcntl = b;
        xmt = a.atm (xmtbuf = 52428);
        rcv = b (rcvbuf = 262144);
        rep = b;
        protocol = tcp;
        test = cbr(messagesize = 18600:1, period = 30000);
        delay = 0 s;
        duration = 10 s;
    """
    (one,) = plan(f"experiment {{ parallel {{ connection {{ {given} }} }} }}").connections()
    assert (one.transmit, one.receive, one.send_buffer, one.receive_buffer) == ("a", "b", 52428, 262144)
    assert (one.settings["block"], one.settings["period"], one.delay_ps, one.duration_ps) == (18600, 30 * MS, 0, 10 * S)


def test_the_ittc_form() -> None:
    (one,) = plan(CLUSTER).connections()
    assert (one.name, one.transmit, one.receive) == ("source", "a", "b")
    assert (one.send_buffer, one.receive_buffer, one.duration_ps) == (1048576, 262144, 10 * S)
    assert one.settings == {"block": 125000, "period": 10 * MS, "rate": None, "count": 1, "late": "skip"}


def test_a_test_without_a_sink_has_its_window_at_both_ends() -> None:
    (one,) = plan("cluster { test { type = full; protocol = tcp(window = 4096); own = a; peer = b } }").connections()
    assert (one.app, one.send_buffer, one.receive_buffer) == ("ttcp", 4096, 4096)


def test_blocks_nest() -> None:
    text = """serial {
        connection one { transmit = a; receive = b; duration = 1 }
        parallel {
            delay = 300 ms;
            connection two { transmit = a; receive = b; delay = 5 ms; duration = 1 }
            serial {
                connection three { transmit = a; receive = b; size = 1 kB }
                connection four { transmit = a; receive = b; size = 1 kB }
            }
        }
    }"""
    root = plan(text)
    one, inner = root.members
    assert root.serial and isinstance(one, Connection) and isinstance(inner, FlowGroup)
    assert (inner.serial, inner.delay_ps) == (False, 300 * MS)
    two, last = inner.members
    assert isinstance(two, Connection) and two.delay_ps == 5 * MS
    assert isinstance(last, FlowGroup) and last.serial
    assert [c.name for c in root.connections()] == ["one", "two", "three", "four"]


def test_names_differ() -> None:
    text = "serial { transmit = a; receive = b; size = 1; connection x { } connection x { } connection { } }"
    assert [c.name for c in plan(text).connections()] == ["x", "x-2", "flow3"]


def test_a_block_has_defaults_for_its_connections() -> None:
    text = """parallel {
        receive = b; duration = 2; xmtbuf = 1000; protocol = tcp; test = cbr(messagesize = 100, period = 50);
        connection { transmit = a }
        connection { transmit = a; duration = 3; xmtbuf = 2000 }
        parallel { duration = 4; test = full(blocksize = 7); connection { transmit = a; protocol = udp } }
    }"""
    first, second, third = plan(text).connections()
    assert [c.duration_ps for c in (first, second, third)] == [2 * S, 3 * S, 4 * S]
    assert [c.send_buffer for c in (first, second, third)] == [1000, 2000, None]
    assert [c.app for c in (first, second, third)] == ["cbr", "cbr", "ttcp"]
    assert third.settings == {"write": 7}


@pytest.mark.parametrize(
    ("test", "app", "settings"),
    [
        ("full", "ttcp", {"write": None}),
        ("full(blocksize = 32 KiB)", "ttcp", {"write": 32768}),
        ("random(messagesize = 1 kB..2 kB, period = 10 ms..20 ms)", "random",
         {"block": (1000, 2000), "gap": (10 * MS, 20 * MS), "late": None}),
        ("random(blocksize = uniform(min = 5, max = 9), gap = 3, late = skip)", "random",
         {"block": (5, 9), "gap": (3 * US, 3 * US), "late": "skip"}),
        ("burstq(blocksize = 5, period = uniform(max = 4, min = 2))", "random",
         {"block": (5, 5), "gap": (2 * US, 4 * US), "late": "queue"}),
        ("onoff(blocksize = 1 kB, rate = 2 Mb/s, on = 1, off = 500 ms, times = fixed)", "onoff",
         {"block": 1000, "rate": 2_000_000, "on": S, "off": 500 * MS, "times": "fixed", "late": None}),
        ("ftp(mode = put, size = 1 MB, diskread = 8e6)", "ftp",
         {"mode": "put", "block": None, "disk_read": 8_000_000, "disk_write": None}),
    ],
)  # fmt: skip
def test_tests(test: str, app: str, settings: dict[str, object]) -> None:
    one = only(f"test = {test};")
    assert (one.app, one.settings) == (app, settings)


def test_repeats_give_a_size() -> None:
    assert only("test = burst(blocksize = 100:2, period = 5, repeats = 7)").size == 1400


@pytest.mark.parametrize(
    ("text", "ps"),
    [("10", 10 * S), ("10 s", 10 * S), ("10ms", 10 * MS), ("0.5", S // 2), ("3 us", 3 * US), ("1 min", 60 * S)],
)
def test_units_of_time(text: str, ps: int) -> None:
    assert only(f"duration = {text}").duration_ps == ps


def test_every_word_of_the_tables_is_understood() -> None:
    """Examples made from the tables: nothing is documented that the reader doesn't take."""
    examples = {"host": "a", "size": "100", "time": "1", "rate": "8", "whole number": "2"}

    def example(argument: Argument) -> str:
        of = argument.setting.of if argument.setting else argument.kind
        return argument.choices[0] if argument.choices else examples[getattr(of, "name", of)]

    given = {"protocol": "tcp", "test": "full", "transmit": "a", "receive": "b"}
    for argument in PARAMETERS:
        for word in (argument.name, *argument.also):
            rest = {"transmit": "a", "receive": "b"}
            rest.pop(argument.name, None)
            text = " ".join(f"{key} = {value};" for key, value in rest.items())
            value = given.get(argument.name, examples.get(argument.kind))
            assert list(plan(f"connection {{ {text} {word} = {value}; }}").connections())
    for protocol, arguments in PROTOCOLS.items():
        for argument in arguments:
            only(f"protocol = {protocol}({argument.name} = {example(argument)})")
    for test in TESTS:
        if test.name == "sink":
            continue
        for argument in test.arguments:
            needed = [a for a in test.arguments if a.required and a is not argument]
            for word in (argument.name, *argument.also):
                parts = [f"{word} = {example(argument)}", *(f"{a.name} = {example(a)}" for a in needed)]
                only(f"test = {test.name}({', '.join(parts)})")


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        ("paralel { }", "1:1", "unknown block 'paralel'; did you mean 'parallel'?"),
        ("parallel { }", "1:1", "this parallel has no connection in it"),
        ("parallel { conection { } }", "1:12", "unknown block 'conection'; did you mean 'connection'?"),
        ("connection { recieve = b }", "1:14", "unknown parameter 'recieve'; did you mean 'receive'?"),
        ("connection { transmit = a }", "1:1", "the parameter 'receive' is missing"),
        ("connection { own = a; transmit = b }", "1:23", "'transmit' is given twice"),
        ("connection { own = 3 }", "1:20", "expected the name of a host"),
        ("connection { protocol = tpc }", "1:25", "unknown protocol 'tpc'; did you mean 'tcp'?"),
        ("connection { protocol = tcp(windw = 3) }", "1:29", "unknown argument of tcp 'windw'; did you mean 'window'?"),
        ("connection { test = cbr(period = 3) }", "1:21", "cbr needs blocksize or messagesize"),
        ("connection { test = crb(period = 3) }", "1:21", "unknown test 'crb'; did you mean 'cbr'?"),
        ("connection { test = full(blocksize = 3 ms) }", "1:38", "unknown unit of size 'ms'"),
        ("connection { duration = 3 kB }", "1:25", "unknown unit of time 'kB'"),
        ("connection { duration = 0 }", "1:25", "0  is out of range"),
        ("connection { test = random(blocksize = 9..3, period = 1) }", "1:40", "lower bound above upper bound"),
        ("connection { test = cbr(blocksize = gauss(mean = 3), period = 1) }", "1:37", "unknown distribution 'gauss'"),
        ("connection { test = cbr(blocksize = uniform(min = 3), period = 1) }", "1:37",
         "uniform has the arguments min and max"),
        ("connection { test = cbr(blocksize = 3, period = 1, late = maybe) }", "1:59",
         "unknown value; known: queue, skip"),
        ("connection { own = a peer = b test = random(blocksize = 1..2, period = 1, repeats = 3) }", "1:38",
         "'repeats' and bounds cannot be combined: give one of them"),
        ("connection { own = a peer = b protocol = udp xmtbuf = 3 }", "1:46", "'xmtbuf' requires protocol = tcp"),
        ("connection { own = a peer = b test = sink }", "1:38", "a connection has its sink by itself"),
        ("cluster { test { own = a peer = b type = sink } }", "1:11", "this sink has no source"),
        ("connection { parallel { } }", "1:14", "a connection has no blocks in it"),
        ("serial { connection { own = a peer = b } connection { own = a peer = b } }", "1:10", "never ends"),
    ],
)  # fmt: skip
def test_what_is_wrong(text: str, where: str, what: str) -> None:
    with pytest.raises(ConfigError) as caught:
        plan(text)
    assert str(caught.value).startswith(f"x.ns:{where}: {what}")


def test_a_host_may_be_named_by_its_address() -> None:
    (one,) = plan("connection { xmt = 204.235.72.224 (xmtbuf = 52428); rcv = 204.235.73.24:45000; }").connections()
    assert (one.transmit, one.receive, one.send_buffer) == ("204.235.72.224", "204.235.73.24", 52428)


@pytest.mark.parametrize(
    ("name", "app", "window", "settings"),
    [
        ("full", "ttcp", 524288, {"write": 65536}),
        ("burst", "cbr", 524288, {"block": 62500, "period": 5 * MS, "rate": None, "count": 1, "late": "skip"}),
        ("queued", "cbr", 524288, {"block": 62500, "period": 5 * MS, "rate": None, "count": 1, "late": "queue"}),
        (
            "ftp",
            "sessions",
            131072,
            {
                "block": Distribution("lognormal", 50_000, 2.0, least=16),
                "gap": Distribution("exponential", 50 * MS, least=500 * US),  # lambda is of microseconds
                "count": Distribution("exponential", 4, least=1),
                "late": "queue",
            },
        ),
    ],
)
def test_public_scripts_of_netspec_3(name: str, app: str, window: int, settings: dict[str, Any]) -> None:
    (one,) = plan((SCRIPTS / f"{name}.ns").read_text()).connections()
    assert (one.name, one.transmit, one.receive, one.app) == ("left", "left", "right", app)
    assert (one.send_buffer, one.receive_buffer, one.duration_ps) == (window, window, 5 * S)
    assert one.settings == settings


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("telnetPacketSize", Distribution("exponential", 2)),
        ("TelnetPacketSize(min = 1, max = 40)", Distribution("exponential", 2, most=40, least=1)),
        ("videoTeleConferenceFrameSize(scale = 500, shape = 3)", Distribution("gamma", 500, 3.0)),
        ("videoMPEGFrameSize(sceneLengthMean = 90)", Distribution("mpeg", 20_000, 90.0)),
        ("voiceSessionDuration(lambda = 0.0001)", Distribution("exponential", 10_000)),
        ("pareto(scale = 100, shape = 1.5)", Distribution("pareto", 100, 1.5)),
        ("exponential(lambda = 0.01)", Distribution("exponential", 100)),
    ],
)
def test_distributions_and_models_as_words(given: str, found: Distribution) -> None:
    assert only(f"test = burstq(blocksize = {given}, period = 10)").settings["block"] == found


def test_blocks_nest_to_any_depth() -> None:
    """Blocks that change nothing are none of the plan's; those by turns are, and have a bound that is said."""
    leaf = "connection { transmit = a; receive = b; size = 1 }"
    deep = plan("parallel { delay = 1 ms; " * 3000 + leaf + " }" * 3000)
    assert (deep.delay_ps, len(deep.members)) == (3000 * MS, 1)
    turns = plan(f"parallel {{ {leaf} serial {{ {leaf} " * 45 + leaf + " } }" * 45)
    assert len([*turns.connections()]) == 91
    with pytest.raises(ConfigError, match="more than 100 serial and parallel blocks by turns inside each other"):
        plan(f"parallel {{ {leaf} serial {{ {leaf} " * 60 + leaf + " } }" * 60)
    same = plan(f"parallel {{ {leaf} " * 500 + " }" * 500)
    assert len(same.members) == 500


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            "test = burstq(blocksize = ftpItemSze, period = 1)",
            "unknown distribution 'ftpItemSze'; did you mean 'ftpItem",
        ),
        (
            "test = burstq(blocksize = ftpNOfItems, period = 1)",
            "ftpNOfItems draws a whole number, and 'blocksize' is a",
        ),
        ("test = burstq(blocksize = exponential(lambda = 0), period = 1)", "lambda is a number above 0"),
        ("test = burstq(blocksize = exponential(mean = 1, lambda = 1), period = 1)", "'lambda' is given twice"),
        ("test = burstq(blocksize = gamma(scale = 1), period = 1)", "gamma needs scale and shape"),
        ("test = burstq(blocksize = 8:3, period = exponential(mean = 1))", "cannot be combined with a distribution"),
        ("test = burstq(blocksize = 8, period = exponential(mean = 1), repeats = 3)", "'repeats' with a distribution"),
    ],
)
def test_wrong_distributions(parameters: str, message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        only(parameters)
