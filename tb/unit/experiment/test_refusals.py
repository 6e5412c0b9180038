"""Tests that `check` refuses what a run would refuse, with file, line and key. Every refusal in the code that builds a
network is walked.

The sites are found in the sources: where an error of the network is raised, and where an option of a switch finds a
fault. Each of them has a file here that reaches it, or stands in ``UNREACHED`` with the reason why no file does.
"""

import ast
import re
from pathlib import Path

import pytest

import bentpipe_hdl.switch.options
import bentpipe_sim
from bentpipe.cli import main
from bentpipe.errors import ConfigError
from bentpipe.experiment.load import load

BASE = """
[experiment]
id = "refused"
title = "A file that can't run"
duration = "1 s"

[network.switches.west]
ports = 4
{west}

[network.switches.east]
ports = 4
{east}

[network.lines.wan]
ends = ["west:3", "east:3"]
{wan}

[network.hosts.anna]
port = "west:0"
{anna}

[network.hosts.bert]
port = "east:0"

[network.hosts.carl]
port = "east:1"

[[flow]]
source = "anna"
sink = "bert"
{flow}

{more}
"""

FORTH = '[[vc]]\nname = "forth"\nfrom = "anna"\nto = "bert"\nvci = 100\n'
BACK = '[[vc]]\nname = "back"\nfrom = "bert"\nto = "anna"\nvci = 100\n'
MANY = '[[vc]]\nname = "v{0}"\nfrom = "anna"\nto = "bert"\nvci = {0}\n'
VP = '[network.vps.trunk]\npath = ["anna", "west", "east"]\nvpi = 5\n'

TO_CARL = FORTH.replace("bert", "carl")
VC_TO_TWO = '[[vc]]\nname = "two"\nfrom = "anna"\nto = ["bert", "carl"]\nvci = 200\n'
LOOP = '[network.lines.loop]\nends = ["west:2", "west:2"]\n'
SPLITTING = '[splitting]\nport = "west:3"\n'
SLOTS = 'protocol = "udp"\napp = "slots"\nrate = "OC-3c"\nload = 0.4\ndatagram = 4'
REACTIVE = 'reactive = { floor = "1 Mb/s", ceiling = "40 Mb/s", low = 10, high = 20 }\n'


def vcs(forth="", back=""):
    return f"{FORTH}{forth}\n{BACK}{back}\n"


def parts(**given):
    return given


CASES = {
    "network.switches.west.vc_minimum": parts(west="vc_minimum = 5000"),
    "vc.0.minimum": parts(more=vcs("minimum = 9000")),
    "network.switches.west.credits.share": parts(west="buffer_cells = 16\ncredits = { share = 10 }"),
    "vc.1.credits": parts(west="buffer_cells = 16", more=vcs("credits = 9", "credits = 10")),
    "vc.0.credits": parts(west="buffer_cells = 20", more=vcs("credits = 10", "credits = 10")),
    "vc.0.credits: batch": parts(more=vcs("credits = 4", "credits = 10")),
    "network.switches.west.credits.share: batch": parts(west="credits = { share = 4 }"),
    "network.switches.west.scheduler": parts(west='scheduler = "fifo"\ncredits = { share = 10 }'),
    "network.lines.wan.scheduler: credits": parts(west="credits = { share = 10 }", wan='scheduler = "fifo"'),
    "network.lines.wan.efci_threshold": parts(wan="efci_threshold = 30000"),
    "network.lines.wan.back.epd_threshold": parts(wan="back = { epd_threshold = 30000 }"),
    "network.hosts.anna.epd_threshold": parts(anna="epd_threshold = 30000"),
    "vc.0.epd_threshold": parts(west='policy = "fba"', east='policy = "fba"', more=vcs("epd_threshold = 10")),
    "network.lines.wan.frames": parts(wan='frames = "plcp"'),
    "network.lines.wan.frames: reactive": parts(wan=f'rate = "DS-3"\nframes = "plcp"\n{REACTIVE}'),
    "network.hosts.anna.frames": parts(anna='frames = "plcp"'),
    "network.switches.west.histograms": parts(west="histograms = {}", flow="copies = 130"),
    "network.switches.west.oam": parts(west="oam = {}", flow="copies = 520"),
    "network.switches.west.oam: credits": parts(west="oam = {}\ncredits = { share = 10 }"),
    "network.lines.wan.reactive.high": parts(wan=REACTIVE.replace("20 }", '70000, counted = "cells" }')),
    "network.lines.wan.queue_limit: credits": parts(wan="queue_limit = 5", more=vcs("credits = 10", "credits = 10")),
    "network.lines.wan.queue_limit": parts(west='policy = "tail"', east='policy = "tail"', wan="queue_limit = 5"),
    "network.lines.wan.scheduler": parts(west='scheduler = "virtual-clock"', wan='scheduler = "fifo"'),
    "vc.0.priority": parts(west='scheduler = "virtual-clock"', more=vcs("priority = 1")),
    "vc.0.service_rate": parts(west='scheduler = "virtual-clock"', more=vcs('service_rate = "150 Mb/s"')),
    "vc.2.service_rate": parts(
        west='scheduler = "virtual-clock"',
        more=vcs('service_rate = "100 Mb/s"')
        + FORTH.replace("forth", "third").replace("100", "101")
        + 'service_rate = "90 Mb/s"',
    ),
    "vc.0.shape": parts(west='scheduler = "weighted"', more=vcs('shape = { pcr = "1 Mb/s" }')),
    "vc.0.shape: credits": parts(west="credits = { share = 10 }", more=vcs('shape = { pcr = "1 Mb/s" }')),
    "network.vps.p128.path": parts(
        more="".join(f'[network.vps.p{k}]\npath = ["carl", "east", "west"]\nvpi = {k + 1}\n' for k in range(129))
    ),
    "network.vps.trunk.path": parts(
        more=VP.replace("anna", "carl").replace('"west", "east"', '"east", "west"')
        + vcs("credits = 10", "credits = 10")
    ),
    "vc.0.credits: path": parts(more=VP + vcs("credits = 10", "credits = 10")),
    "vc.0.credits: loop": parts(
        more=LOOP
        + FORTH.replace('from = "anna"\nto = "bert"', 'path = ["anna", "west", "west", "east", "bert"]')
        + "credits = 10"
    ),
    "vc.0.credits: fast": parts(anna='rate = "1 Gb/s"', more=vcs("credits = 10", "credits = 10")),
    "network.switches.west.credits.share: fast": parts(anna='rate = "1 Gb/s"', west="credits = { share = 10 }"),
    "vc.0.credits: back": parts(more=TO_CARL + "credits = 10"),
    "vc.0.credits: several": parts(more=f"{VC_TO_TWO}credits = 10"),
    "network.switches.west.credits.share: several": parts(west="credits = { share = 10 }", more=VC_TO_TWO),
    "vc.0.oam": parts(more=TO_CARL + "oam = { ends = true }"),
    "vc.1.oam": parts(more=vcs("oam = { ends = true }", "oam = { ends = true, alarms = false }")),
    "vc.0": parts(more='[network.vps.trunk]\npath = ["anna", "west", "east", "bert"]\nvpi = 5\n' + VC_TO_TWO),
    "network.hosts.anna": parts(
        anna='line = "sonet"', more='[network.lines.anna]\nends = ["west:2", "east:2"]\nline = "sonet"'
    ),
    "loss.0": parts(more=f'[[loss]]\nline = "wan"\nvc = "flow1"\ncells = {[*range(1, 258)]}'),
    "splitting.port: OAM": parts(west="oam = {}", flow=SLOTS, more=SPLITTING),
    "splitting.port: copies": parts(flow=SLOTS, more=SPLITTING.replace("west:3", "east:0") + VC_TO_TWO),
    "splitting.port: credits": parts(west="credits = { share = 10 }", flow=SLOTS, more=SPLITTING),
    "splitting": parts(more=SPLITTING),
    "event.0.set": parts(
        west='scheduler = "virtual-clock"',
        more=vcs('service_rate = "1 Mb/s"') + '[[event]]\nat = "1 ms"\nset = { "vc.0.service_rate" = "150 Mb/s" }\n',
    ),
}
"""The key at fault (and which of its faults), and what is put into the base."""


UNREACHED = {
    "the network runs already": "an experiment adds nothing to a network that runs",
    "its settings are": "the builder gives each node settings of its own kind",
    "has no port": "read_network refuses it",
    "is connected twice": "read_network refuses it",
    "twice, both times as VPI/VCI": "given_path and Routes pass a node once",
    "a VC goes from a NIC to a NIC": "given_path and Routes lead from host to host",
    "its branches begin at": "shortest paths begin at the source, and Channels.paths refuses a host named twice",
    "an SDU has 1 to 65535 octets": "an MTU has its range",
    "VPI from 0 to 4095": "VPI and VCI have their ranges",
    "needs NNI lines": "a VPI has the range of a UNI",
    "is used twice at": "Channels refuses it",
    "is that of a virtual path at": "Channels refuses it",
    "is used by VC": "virtual paths are added before VCs",
    "doesn't pass a switch": "Channels and read_paths refuse it",
    "a virtual path goes from a switch or NIC": "read_paths refuses it",
    "there is no switch between its ends": "read_paths refuses it",
    "and meet again there": "the shortest paths from one host are a tree",
    "is a NIC and cannot carry a VC on": "given_path and read_paths refuse it",
    "is not connected to": "given_path and read_paths refuse it",
    "it would go through": "vps_of refuses it",
    "OAM works with one sink only": "Channels refuses it",
    "there is no virtual path the other way": "an experiment's virtual paths go both ways",
    "which does not support F4 flows": "read_paths refuses it",
    "VCs are more than": "Channels refuses it",
    "can't be changed in a running network": "an event with such a key is refused when it is read",
    "cells got lost or doubled": "is of a run",
    "is built without": "a network is built for all its events",
    "cells neither sent nor queued": "is of a run",
    "from 1 to 16 ports": "ports have their range",
    "give it fewer lines, or slower ones": "read_network refuses it",
    "its credits do not change in a run": "an event with such a key is refused when it is read",
    "nothing leads into link": "the builder connects both ends",
    "give the numbers of PDUs or of cells": "a loss with both or neither is refused when it is read",
    "numbers start at 1": "the numbers have their range",
    "given twice": "two losses of one VC on a line are refused when they are read",
    "cells are queued, and": "is of a run",
    "has credits: these are for one": "the network refuses it when the VC is laid",
    "interleave in it": "read_paths refuses it",
    "which something else has there": "Channels refuses it",
}
"""Parts of refusals that no file reaches, and why."""

SIM, OPTIONS = (Path(package.__path__[0]) for package in (bentpipe_sim, bentpipe_hdl.switch.options))
MODULES = ("topology", "channels", "management", "nodes", "queue_monitor")
LOOKED_AT = [*(SIM / f"{name}.py" for name in MODULES), *sorted(OPTIONS.rglob("*.py"))]
FOUND_BY = ("NetworkError", "Fault", "_fault", "_credits_fault")


def template(node, known):
    """Return a text as a pattern; values that are filled in may be anything."""
    match node:
        case ast.Constant():
            return re.escape(str(node.value))
        case ast.JoinedStr():
            return "".join(template(part, known) for part in node.values)
        case ast.FormattedValue(value=inner):
            return template(inner, known)
        case ast.Name(id=name):
            return known.get(name, ".*")
    return ".*"


def refusals(path):
    """The lines that a module raises or finds, as patterns; those that only pass on another's line are none."""
    for function in (each for each in ast.walk(ast.parse(path.read_text())) if isinstance(each, ast.FunctionDef)):
        known = {}
        for node in sorted(
            (each for each in ast.walk(function) if hasattr(each, "lineno")), key=lambda n: (n.lineno, n.col_offset)
        ):
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.JoinedStr() | ast.Constant()):
                    known[name] = template(node.value, dict(known))
                case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[what, *_]) if name in FOUND_BY:
                    pattern = template(what, known)
                    if re.search("[a-z]", pattern):
                        yield pattern


def text_of(given):
    return BASE.format(**dict.fromkeys(("west", "east", "wan", "anna", "flow", "more"), "") | given)


@pytest.fixture(scope="module")
def message(tmp_path_factory):
    """Return the error for each file, by its name."""
    found = {}
    for name, given in CASES.items():
        file = tmp_path_factory.mktemp("files") / "refused.toml"
        file.write_text(text_of(given))
        with pytest.raises(ConfigError) as caught:
            load(str(file))
        found[name] = str(caught.value)
    return found


@pytest.mark.parametrize("name", CASES)
def test_a_refusal_names_file_line_and_key(message, name):
    text, key = text_of(CASES[name]).splitlines(), name.partition(":")[0]
    found = re.match(rf"refused\.toml:(\d+): {re.escape(key)}: ", message[name])
    assert found, message[name]
    words = [part for part in key.split(".") if not part.isdigit()]
    assert any(word in text[int(found[1]) - 1] for word in words[-2:])


def test_each_refusal_that_a_file_can_reach_has_a_file_that_reaches_it(message):
    """A new refusal needs a file above, or a reason below."""
    patterns = [pattern for path in LOOKED_AT for pattern in refusals(path)]
    assert len(patterns) > 60
    missing = [
        pattern
        for pattern in patterns
        if not any(re.search(pattern, line) for line in message.values())
        and not any(re.escape(part) in pattern for part in UNREACHED)
    ]
    assert not missing
    for part in UNREACHED:
        assert any(re.escape(part) in pattern for pattern in patterns), part


def test_check_refuses_what_run_refuses(tmp_path, capsys):
    file = tmp_path / "refused.toml"
    file.write_text(text_of(CASES["network.switches.west.vc_minimum"]))
    assert main(["check", str(file)]) == 2
    line = capsys.readouterr().out.strip()
    assert main(["run", str(file), "--out", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err == f"bentpipe: {line}\n"
    assert main(["sweep", str(file), "--seeds", "1-2", "--out", str(tmp_path / "out")]) == 2
    assert line in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_what_the_command_line_gives_is_named_as_such(tmp_path):
    file = tmp_path / "refused.toml"
    file.write_text(text_of({}))
    with pytest.raises(ConfigError, match=r"^--set network\.switches\.west\.vc_minimum: switch west: the minima"):
        load(str(file), ["network.switches.west.vc_minimum=5000"])


def test_too_many_copies_are_refused_before_they_are_made(tmp_path, monkeypatch):
    """None of 100,000 flows is read: that would take minutes."""
    monkeypatch.setattr("bentpipe.experiment.resolve.flows._Reader.read", lambda *_: pytest.fail("a copy is read"))
    file = tmp_path / "many.toml"
    flows = "".join(f'[[flow]]\nname = "f{k}"\nsource = "anna"\nsink = "bert"\ncopies = 1000\n' for k in range(100))
    file.write_text(text_of({}).partition("[[flow]]")[0] + flows)
    with pytest.raises(
        ConfigError, match=r"^many\.toml:\d+: flow\.2\.copies: anna has 200000 VCs, a node has 4096 at most"
    ):
        load(str(file))
