"""The rules of language that ``make lint`` checks: each one finds what it is for, and nothing else."""

import importlib.util
from pathlib import Path

import pytest

from bentpipe.commands.parser import parser

SOURCE = Path(__file__).parents[2] / ".ci" / "prose.py"


@pytest.fixture(scope="module")
def prose():
    spec = importlib.util.spec_from_file_location("prose", SOURCE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_sentence_of_more_than_25_words_is_found(prose):
    assert prose.breaches("word " * 24 + "end.") == []
    assert len(prose.breaches("word " * 25 + "end.")) == 1
    assert prose.breaches("word " * 20 + "end. " + "Word " * 20 + "end.") == []
    assert prose.breaches("word " * 20 + "end. 64 " + "words " * 20 + "end.") == []


def test_code_links_and_tables_count_as_they_are_read(prose):
    assert prose.breaches("```\n" + "word " * 40 + "\n```\n") == []
    assert prose.breaches("`" + "word " * 40 + "` is one word.") == []
    assert prose.breaches("See [the page](https://example.org/" + "a-" * 40 + "b).") == []
    assert prose.breaches("| " + "word " * 20 + "| " + "word " * 20 + "|\n") == []
    assert prose.breaches("The rates are " + "82.5, 0.97 ± 0.1, " * 20 + "Mb/s.") == []
    assert prose.breaches("- " + "word " * 20 + "\n- " + "word " * 20) == []


@pytest.mark.parametrize(
    "text",
    [
        "A folder that is there is kept.",
        "The run goes on with the next one.",
        "Hold runs against each other.",
        "The verdict says so.",
        "A path gives what it has.",
        "The file is there already.",
        "Credits don't go through a virtual path.",
    ],
)
def test_an_idiom_is_found(prose, text):
    assert len(prose.breaches(text)) == 1


def test_plain_sentences_pass(prose):
    assert prose.breaches("An existing folder is kept. That there is an error is no idiom.") == []


def test_a_fragment_is_found_and_tests_may_state_what_holds(prose):
    assert len(prose.docstrings('"""What all tests share."""', is_test=True)) == 1
    stated = 'def test():\n    """Losses are the same for all leaves."""'
    assert prose.docstrings(stated, is_test=True) == [] and len(prose.docstrings(stated)) == 1


LONG = "word " * 26


@pytest.mark.parametrize(
    "source",
    [
        f'parser.add_argument("--x", help="{LONG}")',
        f'raise BentpipeError(f"{{path}}: {LONG}")',
        'raise BentpipeError(f"{path}: is there already; give another name")',
        f'def remarks():\n    yield ("{LONG[:60]}"\n        f"{LONG[60:]}{{1}}")',
    ],
)
def test_messages_of_a_program_are_found(prose, source):
    assert len(prose.messages(source)) == 1


@pytest.mark.parametrize(
    "source",
    [
        f'"""{LONG}"""\ndef f():\n    """{LONG}"""',
        f'X = 1\n"""{LONG}"""',
        f'TEMPLATE = "struct Node {{\\n{LONG};\\n}}"',
        'raise BentpipeError(f"{path}: already exists; give another name")',
    ],
)
def test_docstrings_and_generated_code_are_no_messages(prose, source):
    assert prose.messages(source) == []


@pytest.mark.parametrize(
    "source",
    [
        'def f():\n    """The rate of a line."""',
        'def f():\n    """What the run has."""',
        'def f():\n    """Return the rate"""',
        'def f():\n    """Rates of a line, by their names."""',
        'def f():\n    """Returns the rate of a line."""',
        'async def f():\n    """`rate` is in b/s."""',
        'class A:\n    """What a node has."""',
        '"""Whether a run is done."""',
    ],
)
def test_a_docstring_that_is_no_sentence_is_found(prose, source):
    assert len(prose.docstrings(source)) == 1


@pytest.mark.parametrize(
    "source",
    [
        'def f():\n    """Return the rate of a line.\n\n    What follows is free.\n    """',
        '@property\ndef f():\n    """The rate of a line."""',
        '@functools.cached_property\ndef f():\n    """Rates of a line."""',
        'def f():\n    """Return: the end of a call."""',
        'class A:\n    """A node with its state."""',
        "def f():\n    pass",
    ],
)
def test_docstrings_that_are_sentences_pass(prose, source):
    assert prose.docstrings(source) == []


def texts_of(made):
    yield from (made.description or "", made.epilog or "")
    for action in made._actions:
        yield action.help or ""
        for below in action.choices.values() if isinstance(action.choices, dict) else ():
            yield from texts_of(below)


def test_the_help_of_every_command_keeps_the_rules(prose):
    texts = list(texts_of(parser()))
    assert len(texts) > 200
    assert [each for text in texts for each in prose.breaches(text)] == []


def test_a_page_that_gets_worse_fails(prose, tmp_path, monkeypatch, capsys):
    listed = tmp_path / "prose.txt"
    listed.write_text("1 README.md\n")
    monkeypatch.setattr(prose, "LISTED", listed)
    monkeypatch.setattr("sys.argv", ["prose.py"])
    monkeypatch.setattr(prose, "PACKAGES", ())
    monkeypatch.setattr(prose, "descriptions", list)
    monkeypatch.setattr(prose, "pages", lambda: {"README.md": "A folder that is there. The verdict says so."})
    assert prose.main() == 1
    assert "README.md: 2 breaches, 1 before" in capsys.readouterr().out
    monkeypatch.setattr(prose, "pages", lambda: {"README.md": "The verdict says so."})
    assert prose.main() == 0


@pytest.mark.parametrize(("name", "reason"), [("nosuch.md", "No such file"), (".", "Is a directory")])
def test_a_page_that_cannot_be_read_is_one_line(prose, name, reason, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["prose.py", "--show", name])
    with pytest.raises(SystemExit) as ended:
        prose.main()
    assert ended.value.code == 2 and reason in capsys.readouterr().err
