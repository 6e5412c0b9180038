"""Tests that all that the documentation names exists: commands and options, experiments, files, modules."""

import argparse
import importlib.util
import pkgutil
import re
import shlex
from functools import cache
from pathlib import Path
from unittest.mock import patch

import pytest

from bentpipe.cli import main
from bentpipe.commands.parser import parse, parser
from bentpipe.experiment.document.catalogue import catalogue, networks

ROOT = Path(__file__).parents[2]
PAGES = {
    str(page.relative_to(ROOT)): page.read_text()
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
}


def consoles(text):
    """The lines of a page's consoles, those that end with a backslash joined."""
    for block in re.findall(r"^```(?:console)?\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        yield from block.replace("\\\n", " ").splitlines()


def quoted(text):
    """Return the texts between backquotes in a page."""
    outside = re.sub(r"^(```|:::).*?^\1", "", text, flags=re.MULTILINE | re.DOTALL)
    return [" ".join(each.split()) for each in re.findall(r"`([^`]+)`", outside)]


def shown(line):
    """The command of ``bentpipe`` in a line of a console, without a remark."""
    line = re.sub(r'^eval "\$\((.*?)\)"', r"\1", line.removeprefix("$ "))
    return [re.sub(r"\s+#.*", "", line)] if re.match("bentpipe [a-z]", line) else []


COMMANDS = sorted(
    {each for text in PAGES.values() for line in consoles(text) for each in shown(line)}
    | {each for text in PAGES.values() for each in quoted(text) if re.match(r"bentpipe [a-z]+ (?!…)", each)}
)


@pytest.fixture(scope="module", autouse=True)
def one_parser():
    """Making it takes longer than parsing."""
    with patch("bentpipe.commands.parser.parser", cache(parser)):
        yield


def words(command):
    """Return the arguments of a command, up to those of the shell or another program."""
    found = ["1" if word == "N" else word for word in shlex.split(command)[1:]]
    end = next((n for n, word in enumerate(found) if word in ("|", ">", ";", "&&", "--")), len(found))
    return found[:end]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_is_one_that_is_understood(command):
    given = vars(parse(words(command)))
    names = [given.get("name"), given.get("base"), *(given.get("experiments") or ())]
    message = [name for name in names if isinstance(name, str) and re.fullmatch(r"[a-z][\w-]*", name)]
    assert not {*message} - {*catalogue()}


def all_options(made):
    for action in made._actions:
        yield from action.option_strings
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from all_options(below)


OPTIONS = {*all_options(parser())}
ELSEWHERE = re.compile(r"-O\d|-[fm]|-netdev|-4$|--$|-vv$|--no-compile$")
"""Of compilers, pip and other programs."""


def test_each_option_is_one_of_a_command():
    """Each option belongs to a command, or to one of the project's own programs, whose files name it."""
    programs = [
        ROOT / ".ci/prose.py",
        *(ROOT / "tb").glob("*/__main__.py"),
        *(ROOT / "tb/soak").glob("*.py"),
        *(ROOT / "sw/bentpipe/bench").glob("*.py"),
    ]
    others = "".join(file.read_text() for file in programs)
    unknown = [
        f"{page}: {each}"
        for page, text in PAGES.items()
        for each in quoted(text)
        if each.startswith("-") and not ELSEWHERE.match(each)
        for option in re.findall(r"(?:^| )(--?[a-z][a-z-]*)", each)
        if option not in OPTIONS and f'"{option}"' not in others
    ]
    assert unknown == []


def test_what_looks_like_an_experiment_is_one():
    known = {*catalogue()} | {name.removeprefix("networks/") for name in networks()}
    families = "|".join(sorted({name.partition("-")[0] for name in catalogue()}))
    unknown = [
        f"{page}: {each}"
        for page, text in PAGES.items()
        for each in quoted(text)
        if re.fullmatch(rf"(?:{families})-[\w-]+", each) and each not in known
    ]
    assert unknown == []


TREES = (
    "",
    "hdl",
    "sim",
    "sw",
    "sw/bentpipe",
    "sw/bentpipe/tcp",
    "hdl/bentpipe_hdl",
    "hdl/bentpipe_hdl/switch",
    "sim/bentpipe_sim",
)
FILE = re.compile(r"(?:python )?((?:[\w.-]+/)+[\w.*-]+(?:\.(?:py|md|cpp|hpp|h|cc|toml|tcl|lock|ns))?)(?:::(\w+))?")
NOT_OURS = re.compile(r"runs/|out/|[A-Z]+/|\w*b/s$")
"""Folders of runs, rates, quotients."""


def missing(each):
    """Return the file, or the test in it, that is missing."""
    found = FILE.fullmatch(each)
    if not found or NOT_OURS.match(each) or "NAME" in each:
        return None
    path, name = found.groups()
    files = [file for tree in TREES for file in (ROOT / tree).glob(path)]
    if not files:
        return each
    return each if name and f"def {name}(" not in files[0].read_text() else None


def test_each_file_is_there():
    assert [f"{page}: {each}" for page, text in PAGES.items() for each in quoted(text) if missing(each)] == []


def test_each_link_to_a_file_leads_somewhere():
    pages = [ROOT / "CHANGELOG.md", ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]
    links = [(page, link) for page in pages for link in re.findall(r"\]\(([^)\s#:]+)(?:#[\w-]*)?\)", page.read_text())]
    dead = [f"{page.name}: {link}" for page, link in links if not (page.parent / link).exists()]
    assert [each for each in dead if "_generated/" not in each] == []


MODULES = sorted(
    {
        found
        for text in PAGES.values()
        for each in quoted(text)
        for found in re.findall(r"^(bentpipe(?:_hdl|_sim|_boards)?(?:\.\w+)+)$|^python -m ([\w.]+)", each)
        for found in found
        if found
    }
)


@pytest.mark.parametrize("name", MODULES)
def test_a_module_is_there(name):
    try:
        assert importlib.util.find_spec(name) or pkgutil.resolve_name(name)
    except ModuleNotFoundError:
        pkgutil.resolve_name(name)


@pytest.fixture
def messages(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    import messages

    return messages


def test_an_error_that_a_command_prints_is_in_the_manual(messages, capsys, tmp_path):
    """Parts of its line without names and numbers are found on the page of error messages."""
    page = messages.errors()
    for words in (["run", "nosuch"], ["compare", str(tmp_path)], ["new", str(tmp_path / "a.txt")], ["help", "nosuch"]):
        assert main(words) == 2
        line = " ".join(capsys.readouterr().err.split()).removeprefix("bentpipe: ")
        known = [
            each for each in re.findall(r"^- `(.*)`$", page, re.MULTILINE) if len(re.findall("[a-z]{2,}", each)) > 1
        ]
        patterns = [re.escape(each).replace("…", ".*") for each in known]
        assert any(re.fullmatch(pattern, line) for pattern in patterns), line


def test_messages_are_found_with_what_is_filled_in(messages):
    source = (
        'raise BentpipeError(f"{path}: damaged" + f": {why}" if a else "b")\nraise ConfigProblem("a.b", "needs a unit")'
    )
    assert list(messages.messages(source)) == ["…: damaged: …", "needs a unit"]


def test_every_page_leads_to_a_next_one():
    pages = {page.name: page.read_text() for page in (ROOT / "docs").glob("*.md")}
    without = {name for name, text in pages.items() if not re.search(r"^Next: .*\]\(|^Next: .*`", text, re.MULTILINE)}
    assert without <= {"index.md", "coverage.md"}  # the start page; made by another program


@pytest.mark.parametrize(
    ("page", "command"),
    [
        ("cell-loss.md", "bentpipe export clr"),
        ("start-lab.md", "bentpipe shell acts-1flow -- ping"),
        ("start-fpga.md", "bentpipe rtl switch"),
    ],
)
def test_each_goal_is_at_most_four_pages_from_the_readme(page, command):
    """Count the README as the first page: a study of cell loss, a ping through the satellite, a core as Verilog."""
    near, pages = {ROOT / "README.md"}, 1
    while ROOT / "docs" / page not in near:
        pages += 1
        assert pages <= 4
        near |= {
            (each.parent / link).resolve()
            for each in near
            for link in re.findall(r"\]\(([^)\s#:]+\.md)", each.read_text())
            if (each.parent / link).exists()
        }
    assert command in (ROOT / "docs" / page).read_text()


def test_every_picture_has_a_text_for_those_who_do_not_see_it():
    pictures = [(page, text) for page, whole in PAGES.items() for text in re.findall(r"!\[(.*?)\]\(", whole)]
    assert len(pictures) > 2 and [each for each in pictures if len(each[1].split()) < 6] == []
