"""Models from outside of bentpipe: installed from a wheel, named in a file, changed between two runs, wrong ones.

What loads a plugin is a process of its own: a plugin stays until the process ends.
"""

import contextlib
import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from hatchling.build import build_wheel

from bentpipe.cli import main

MODELS = {"bursty": "application", "timid": "growth", "thin": "switch-option"}

EXPERIMENT = """
[experiment]
id = "own"
title = "three models of one's own"
duration = "60 ms"
[network.switches.lan]
policy = "tail"
thin = 40
[network.hosts]
a = { port = "lan:0" }
b = { port = "lan:1" }
[hosts.tcp]
growth = "timid"
timid_round_trips = 2
[[flow]]
name = "bulk"
source = "a"
sink = "b"
[[flow]]
name = "blocks"
source = "a"
sink = "b"
app = "bursty"
protocol = "udp"
block = "500 B"
gap = "1 ms"
"""

PLUGINS = "[plugins]\n" + "".join(f'{name} = "{name}.py"\n' for name in MODELS)

COMMANDS = """
import contextlib, io, json, sys
from bentpipe.cli import main
for words in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(words)
    print(json.dumps([code, out.getvalue(), err.getvalue()]))
"""


def commands(folder, *asked, path=""):
    """Return exit code, output and errors of commands in one process."""
    python_path = os.pathsep.join(filter(None, [path, os.environ.get("PYTHONPATH", "")]))
    done = subprocess.run(
        [sys.executable, "-c", COMMANDS, json.dumps(asked)],
        cwd=folder, env={**os.environ, "PYTHONPATH": python_path}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The three models that ``bentpipe new`` writes, in a folder of their own."""
    made = tmp_path_factory.mktemp("models")
    with contextlib.chdir(made):
        for name, kind in MODELS.items():
            assert main(["new", "--plugin", kind, name]) == 0
            (made / name / f"{name}.py").rename(made / f"{name}.py")
    (made / "own.toml").write_text(PLUGINS + EXPERIMENT)
    return made


@pytest.fixture(scope="module")
def site(folder):
    """Return the folder in which a wheel of the three is installed."""
    texts = [(folder / name / "pyproject.toml").read_text() for name in MODELS]
    entries = [text[text.index("[project.entry-points") : text.index("[tool.hatch")] for text in texts]
    modules = ", ".join(f'"{name}.py"' for name in MODELS)
    head = re.sub('name = ".*"', 'name = "own-models"', texts[0][: texts[0].index("[project.entry-points")])
    whole = [head, *entries, f"[tool.hatch.build.targets.wheel]\ninclude = [{modules}]\n"]
    (folder / "pyproject.toml").write_text("".join(whole))
    with contextlib.chdir(folder):
        wheel = build_wheel("dist")
    with zipfile.ZipFile(folder / "dist" / wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def test_models_installed_from_a_wheel_are_as_those_of_bentpipe(folder, site):
    (folder / "installed.toml").write_text(EXPERIMENT)
    checked, ran, apps, tcp, keys, wrong, shown = commands(
        folder,
        ["check", "installed.toml"],
        ["run", "installed.toml", "--out", "installed", "--no-plots"],
        ["help", "apps"],
        ["help", "tcp"],
        ["schema"],
        ["run", "installed.toml", "--set", "hosts.tcp.timid_round_trips=0"],
        ["registers", "switch", "--shape", "options=thin"],
        path=str(site),
    )
    assert checked[:2] == [0, "installed.toml: OK; switches 1, hosts 2, flows 2; simulates at most 60 ms\n"]
    assert ran[0] == 0 and "reno, timid" in ran[1] and "bursty" in ran[1]
    assert "blocks of one size at random times" in apps[1]
    assert "`timid_round_trips`" in tcp[1]
    assert json.loads(keys[1])["$defs"]["SwitchTable"]["properties"]["thin"]["maximum"] == 65535
    assert wrong[0] == 2 and "--set hosts.tcp.timid_round_trips: 0 is out of range 1..1000" in wrong[2]
    assert "thin_every" in shown[1]
    summary = json.loads((folder / "installed" / "result.json").read_text())
    (plugin,) = summary["plugins"]
    assert (plugin["name"], plugin["version"], len(plugin["sha256"])) == ("own-models", "0.1", 64)
    for vc in summary["ledger"]:
        sent, lost = (summary["metrics"].get(f"{vc['vc']}.cells_{what}") for what in ("sent", "lost"))
        assert sent is None or lost == sent // 40
    assert "Bursty" not in (folder / "installed" / "report.html").read_text()


def test_models_of_a_file_go_through_runs_sweeps_and_resumption(folder):
    stopped = Path(__file__).with_name("stopped_run.py")
    plain = ["own.toml", "--no-plots", "--out"]
    whole, swept = commands(
        folder,
        ["run", *plain, "whole"],
        ["sweep", *plain, "swept", "--seeds", "1,2", "--workers", "1", "--metric", "cell_loss_ratio"],
    )
    assert (whole[0], swept[0]) == (0, 0), (whole, swept)
    seed_1 = next((folder / "swept" / "runs").glob("*seed=1*/result.json"), None) or min(
        (folder / "swept" / "runs").glob("*/result.json")
    )
    interrupted = subprocess.run(
        [sys.executable, str(stopped), "SIGTERM", "30", "run", *plain, "broken"], cwd=folder, check=False
    )
    assert interrupted.returncode == 128 + 15
    model = folder / "timid.py"
    text = model.read_text()
    model.write_text(text + "# another one\n")
    ((code, _, message),) = commands(folder, ["resume", "broken"])
    assert code == 2 and "was made with another plugin timid" in message and message.count("\n") == 1
    model.write_text(text)
    ((code, _, message),) = commands(folder, ["resume", "broken"])
    assert (code, message) == (0, "")
    read = [
        json.loads(path.read_text()) for path in (*(folder / n / "result.json" for n in ("whole", "broken")), seed_1)
    ]
    for other in read[1:]:
        assert (other["flows"], other["metrics"]) == (read[0]["flows"], read[0]["metrics"])
    assert [plugin["name"] for plugin in read[0]["plugins"]] == [*MODELS]


FAULTS = {
    "syntax": ("def f(:\n", "my.py:1: SyntaxError: invalid syntax"),
    "an error": ("\n1 / 0\n", "my.py:2: ZeroDivisionError: division by zero"),
    "a missing package": ("import there_is_none\n", "my.py:1: ModuleNotFoundError: No module named 'there_is_none'"),
    "nothing": ("", "my.py: declares nothing: it needs an APPLICATION, a REGISTRATION or OPTIONS"),
    "no declaration": ("APPLICATION = 3\n", "my.py: APPLICATION is no ApplicationSpec but int"),
    "a growth without its base class": (
        "from bentpipe.tcp.settings import Registration\nclass Mine: pass\n"
        "REGISTRATION = Registration('mine', 2026, Mine, '')\n",
        "my.py: growth 'mine': Mine is not derived from bentpipe.tcp.growth.base.Growth",
    ),
    "an option without its base class": (
        "class Mine: pass\nOPTIONS = (Mine(),)\n",
        "my.py: OPTIONS: Mine is not derived from bentpipe_hdl.switch.options.Option",
    ),
    "a name that is taken": (
        "from bentpipe.apps.ping import APPLICATION\n",
        "my.py: there is an application 'ping' already",
    ),
    "a growth's name that is taken": (
        "from bentpipe.tcp.growth.cubic import REGISTRATION\n",
        "my.py: there is a growth 'cubic' already",
    ),
    "a setting of another's name": (
        "from bentpipe.tcp.growth.reno import Reno\nfrom bentpipe.tcp.settings import Registration\n"
        "from bentpipe.declarations import FLAG, Setting\n"
        "REGISTRATION = Registration('mine', 2026, Reno, '', (Setting('other_x', FLAG, True, ''),))\n",
        "my.py: growth 'mine': the name of its setting 'other_x' must begin with 'mine_'",
    ),
    "a default out of range": (
        "from bentpipe.tcp.growth.reno import Reno\nfrom bentpipe.tcp.settings import Registration\n"
        "from bentpipe.declarations import Setting\nfrom bentpipe_hdl.units import COUNT\n"
        "REGISTRATION = Registration('mine', 2026, Reno, '', (Setting('mine_x', COUNT.within(1, 4), 9, ''),))\n",
        "my.py: growth 'mine': the default of 'mine_x' is wrong: mine_x must be 1..4, not 9",
    ),
    "a key of all flows": (
        "from bentpipe.apps.settings import ApplicationSpec, AppSetting\nfrom bentpipe_hdl.units import COUNT\n"
        "APPLICATION = ApplicationSpec('mine', '', (AppSetting('vc', COUNT, 1, ''),), lambda given: None)\n",
        "my.py: application 'mine': its setting 'vc' is a key of all flows",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_plugin_with_a_fault_is_one_line(name, tmp_path, capsys, monkeypatch):
    text, line = FAULTS[name]
    monkeypatch.chdir(tmp_path)
    Path("my.py").write_text(text)
    Path("own.toml").write_text('[plugins]\nmy = "my.py"\n' + EXPERIMENT)
    assert main(["check", "own.toml"]) == 2
    (message,) = capsys.readouterr().out.splitlines()
    assert message == f"own.toml:2: plugins.my: {line}"
    assert main(["help", "apps", "--plugin", "my.py"]) == 2
    assert capsys.readouterr().err == f"bentpipe: {line}\n"


OPTION = """
from bentpipe_hdl.registers import Register
from bentpipe_hdl.settings import Settings
from bentpipe_hdl.switch.options import Option
from bentpipe_hdl.switch.options.queue_limit.plugin import Limit
from pydantic import Field
class Mine(Option):
    name = "mine"
    def wanted(self, setup): return False
    def hardware(self): return Limit
    def registers(self, *, vcs, cells, ports): return (Register("mine", {addr}, "", "rw", 8),)
    def configure(self, csr, setup): pass
{more}
class Limit(Limit): options = ("mine",)
OPTIONS = (Mine(),)
"""


@pytest.mark.parametrize(
    ("addr", "more", "message"),
    [
        ("0x0110", "", "register mine at 0x0110 overlaps queue_limit"),
        ("0x0800", "class T(Settings):\n  rate_bps: int = Field(default=1, description='x')\nMine.port_settings = T",
         "there is a key 'rate' already"),
        ("0x0800", "class T(Settings):\n  mine: int = Field(description='x')\nMine.vc_settings = T",
         "the key 'mine' has no default, and files without it must stay valid"),
    ],
)  # fmt: skip
def test_an_option_that_collides_with_another_is_one_line(addr, more, message, tmp_path, capsys):
    (tmp_path / "my.py").write_text(OPTION.format(addr=addr, more=more))
    assert main(["help", "apps", "--plugin", str(tmp_path / "my.py")]) == 2
    assert capsys.readouterr().err == f"bentpipe: {tmp_path}/my.py: option 'mine': {message}\n"


def test_a_file_that_is_no_plugin_is_one_line(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("own.toml").write_text(EXPERIMENT)
    for what, message in (("my.py", "my.py: no such file"), ("own.toml", "own.toml: is no Python file")):
        assert main(["check", "own.toml", "--plugin", what]) == 2
        assert capsys.readouterr().err == f"bentpipe: {message}, so it is no plugin\n"
    assert main(["new", "--plugin", "growth", "Not-A-Name"]) == 2
    assert "the name of a model has small letters" in capsys.readouterr().err
