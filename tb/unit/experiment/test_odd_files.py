"""Files that nobody writes by hand: each gets one line with its place, and no internal error."""

import io
import sys

import pytest

from bentpipe.cli import main
from bentpipe.errors import BentpipeError, ConfigError
from bentpipe.experiment.load import load, load_cases
from unit.experiment.test_parse import TEXT

HEAD = TEXT[: TEXT.index("[[published]]")]
CASE = '[[case]]\nname = "a"\nset = {}\n'
PUBLISHED = '[[published]]\nquantity = "throughput"\nmeasured = 1\n'
EXPECT = '[[expect]]\nmetric = "goodput"\nmin = 1\n'


@pytest.fixture
def refused(tmp_path):
    """Return the error for a file with this text."""

    def refused(text):
        (tmp_path / "odd.toml").write_text(text)
        with pytest.raises(BentpipeError) as caught:
            load_cases(str(tmp_path / "odd.toml"))
        return [str(caught.value), *caught.value.more]

    return refused


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{CASE}{PUBLISHED}case = true\n", "published.0.case: expected a text, not a truth value"),
        (f"{CASE}{PUBLISHED}metric = 5\n", "published.0.metric: expected a text, not a whole number"),
        (f"{CASE}{EXPECT}case = 5\n", "expect.0.case: expected a text, not a whole number"),
    ],
)
def test_a_case_that_is_no_text(refused, text, message):
    (line,) = refused(HEAD + text)
    assert line.startswith("odd.toml:") and message.partition(",")[0] in line


@pytest.mark.parametrize("key", ["published", "expect"])
def test_a_table_that_is_none(refused, key):
    assert any(f"{key}: expected" in line for line in refused(f"{key} = 5\n{HEAD}{CASE}"))


@pytest.mark.parametrize(
    "deep",
    [
        f"x = {'[' * 5000}{']' * 5000}",
        f"x = {'{a = ' * 150}1{'}' * 150}",
        f"{'a.' * 5000}a = 1",
        f"[{'a.' * 5000}a]",
    ],
)
def test_a_document_has_a_greatest_depth(refused, deep):
    (line,) = refused(f'# "[[[" \n{HEAD}\n{deep}\n')
    assert line == f"odd.toml:{HEAD.count(chr(10)) + 3}: more than 100 tables and lists inside each other"


def test_a_key_has_a_greatest_depth(tmp_path):
    (tmp_path / "odd.toml").write_text(HEAD)
    with pytest.raises(BentpipeError, match=r"^--set a\.a.*…: a key has 100 parts at most \(in odd\.toml\)$"):
        load(str(tmp_path / "odd.toml"), [f"{'a.' * 5000}a=1"])
    with pytest.raises(ConfigError, match=r"^--set experiment\.title: expected"):
        load(str(tmp_path / "odd.toml"), ["experiment.title=5"])
    assert load(str(tmp_path / "odd.toml"), [f"experiment.title={'[' * 5000}"]).title == "[" * 5000


def test_deep_blocks_of_a_script_are_read(refused):
    script = "\n".join(["serial {"] * 900 + ["}"] * 900)
    (line,) = refused(f"{HEAD}[traffic]\nnetspec = '''\n{script}\n'''\n")
    assert line.endswith("this serial has no connection in it")


def test_the_name_of_what_a_file_extends_is_too_long(refused):
    (line,) = refused(f'\nextends = "{"a" * 300}"\n{HEAD}')
    assert line == f"odd.toml:2: extends: {'a' * 300}: File name too long"


def test_a_terminal_without_the_characters(tmp_path, monkeypatch):
    """With PYTHONIOENCODING=latin-1, characters that it lacks become question marks."""
    (tmp_path / "odd.toml").write_text(HEAD.replace("Two hosts", "Täst ą zwei"), encoding="utf-8")
    out = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    monkeypatch.setattr(sys, "stdout", out)
    assert main(["show", str(tmp_path / "odd.toml")]) == 0
    out.flush()
    assert "Täst ? zwei" in out.buffer.getvalue().decode("latin-1")


def test_data_for_machines_is_whole_on_any_terminal(tmp_path, monkeypatch):
    (tmp_path / "odd.toml").write_text(HEAD.replace('"anna"', '"ąnna"').replace(".anna", '."ąnna"'), encoding="utf-8")
    out = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    monkeypatch.setattr(sys, "stdout", out)
    assert main(["check", "--json", f"{tmp_path}/ą.toml"]) == 2
    out.flush()
    assert r"\u0105.toml" in out.buffer.getvalue().decode("latin-1")


REACTIVE = '\nreactive = { floor = "20 kb/s", initial = "50 kb/s", ceiling = "10 Mb/s", low = 2000, high = 6000 }\n'
EVENT = '[[event]]\nat = "1 s"\nset = { "network.lines.wan.reactive.floor" = "1 Mb/s" }\n'


def test_an_event_moves_the_floor_above_what_the_port_began_with(tmp_path):
    file = tmp_path / "two.toml"
    file.write_text(HEAD.replace("ber = [1e-9, 0]", f"ber = [1e-9, 0]{REACTIVE}") + EVENT)
    (event,) = load(str(file)).events
    settings = event.network.switches[0].ports[3].settings.reactive
    assert (settings.floor_bps, settings.start_bps) == (1_000_000, 1_000_000)


def test_a_port_begins_between_floor_and_ceiling(refused):
    message = refused(HEAD.replace("ber = [1e-9, 0]", REACTIVE.replace("50 kb/s", "10 kb/s")))
    what = "network.lines.wan.reactive.initial: switch west, port 3: 10 kb/s is not between floor and ceiling"
    assert message == [f"odd.toml:19: {what}"]
