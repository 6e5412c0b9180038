"""Near misses are told what was meant, and what a command writes or prints to be changed can be changed."""

import re
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from bentpipe.api import Run
from bentpipe.attach.settings import whole_key
from bentpipe.cli import main
from bentpipe.errors import BentpipeError, ConfigError
from bentpipe.experiment.load import load
from unit.experiment.test_parse import TEXT

HEAD = TEXT[: TEXT.index("[[published]]")]


@pytest.fixture
def message(tmp_path):
    def message(text):
        (tmp_path / "near.toml").write_text(text)
        with pytest.raises(ConfigError) as caught:
            load(str(tmp_path / "near.toml"))
        return [str(caught.value), *caught.value.more]

    return message


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ('size = "1 MB"', 'transport = "tcp"', "flow.0.transport: unknown key; did you mean 'protocol'?"),
        ("epd_threshold = 7000", 'policy = "red"', "policy: unknown value 'red'; RED is a setting of ports: give "),
        (
            "= 7000",
            '= "90%"',
            "a whole number of cells, or a share of the buffer as 0.9, not '90%'",
        ),
    ],
)
def test_what_was_meant(message, old, new, what):
    assert what in message(HEAD.replace(old, new))[0]


def test_what_is_known_is_listed_once(message):
    first, second = message(HEAD.replace("[[flow]]\n", "[[flow]]\nxyzzy = 1\n"))
    assert "; known: app, " in first and second.endswith(": flow.1.xyzzy: unknown key")


@pytest.mark.parametrize("name", ["wan", "van"])
def test_a_key_that_begins_with_a_line(tmp_path, name):
    (tmp_path / "near.toml").write_text(HEAD)
    with pytest.raises(
        BentpipeError, match=rf"^--set {name}\.ber: unknown key; did you mean 'network\.lines\.wan\.ber'\?"
    ):
        load(str(tmp_path / "near.toml"), [f"{name}.ber=0"])


def test_a_session_names_lines_switches_and_hosts(tmp_path):
    (tmp_path / "near.toml").write_text(HEAD)
    experiment = load(str(tmp_path / "near.toml"))
    with pytest.raises(BentpipeError, match=r"no line, switch or host 'nosuch'; known: anna, bert, east, wan, west$"):
        whole_key("nosuch.ber=0", experiment)
    assert whole_key("wan.ber=0", experiment) == "network.lines.wan.ber=0"
    assert whole_key("hosts.mtu=9", experiment) == "hosts.mtu=9"


def test_each_key_of_a_new_file_can_be_changed_by_itself(tmp_path, capsys):
    file = tmp_path / "own.toml"
    assert main(["new", str(file), "--from", "acts-1flow"]) == 0
    load(str(file))
    lines = file.read_text().splitlines()
    first_flow = next(number for number, line in enumerate(lines) if "[[flow]]" in line)
    keys = [number for number, line in enumerate(lines[:first_flow]) if re.match(r"# \w+ = ", line)]
    assert len(keys) > 15
    for number in keys:
        file.write_text("\n".join([*lines[:number], lines[number].removeprefix("# "), *lines[number + 1 :]]))
        load(str(file))


@pytest.mark.parametrize("number", ["0", "many", "1025"])
def test_a_number_of_workers(capsys, number):
    assert main(["sweep", "acts-1flow", "--workers", number]) == 2
    assert f"argument --workers: expected 1 to 1024, not '{number}'" in capsys.readouterr().err


def test_options_of_all_commands_stand_before_the_command_too(capsys, caplog):
    assert main(["-v", "check", "lan-1flow"]) == 0
    assert "lan-1flow: OK" in capsys.readouterr().out


def test_no_option_is_near_to_itself(capsys):
    assert main(["check", "lan-1flow", "--jsn"]) == 2
    assert "there is no option --jsn; did you mean --json?" in capsys.readouterr().err
    assert main(["run", "lan-1flow", "-x"]) == 2
    assert "there is no option -x; see bentpipe run --help" in capsys.readouterr().err


def test_a_run_is_shown_in_a_line():
    summary = {"id": "lan-1flow", "status": "done", "time": {"simulated_s": 2.5}, "seed": 3, "flows": ["x" * 10**6]}
    assert repr(Run(summary, None, None)) == "<Run of lan-1flow: done, 2.5 s, seed 3>"


@pytest.mark.parametrize(("options", "plots"), [([], None), (["--no-plots"], False)])
@pytest.mark.parametrize("cases", [True, False])
def test_a_run_is_gone_on_with_without_plots(monkeypatch, options, plots, cases):
    given = []

    def resumed(folder, *, plots, **_):
        given.append(plots)
        return SimpleNamespace(summary={})

    monkeypatch.setattr(
        "bentpipe.results.folder.RunFolder.resume", lambda path: nullcontext(SimpleNamespace(path=path))
    )
    monkeypatch.setattr("bentpipe.results.folder.is_cases", lambda _: cases)
    for name in ("resume", "resume_cases"):
        monkeypatch.setattr(f"bentpipe.experiment.run.perform.{name}", resumed)
    for name in ("print_one", "print_all", "conclude"):
        monkeypatch.setattr(f"bentpipe.commands.resume.{name}", lambda *_: 0)
    monkeypatch.setenv("BENTPIPE_ENGINE", "native")
    assert main(["resume", "out", *options]) == 0
    assert given == [plots]
