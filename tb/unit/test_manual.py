"""Extraction of the manual's blocks for ``make docs-check``."""

import re

import pytest

from manual import blocks as manual
from manual.__main__ import _console, _toml

PAGE = """# A page

```console
$ first --set a=b \\
    --more          # a remark
output
# second

$ third
```

```toml
[record]
losses = true
```

```text
$ no command
```
"""


def test_commands_are_joined_and_numbered(monkeypatch):
    monkeypatch.setitem(manual.PAGES, "it.md", PAGE)
    found = [(block.line, block.language, block.text) for block in manual.blocks("it.md")]
    assert found == [
        (4, "console", "$ first --set a=b --more          # a remark"),
        (7, "console", "# second"),
        (9, "console", "$ third"),
        (13, "toml", "[record]\nlosses = true\n"),
    ]


def test_every_mark_fits_a_block_and_has_a_kind():
    every = [f"{block.page}: {block.text}" for page in manual.PAGES for block in manual.blocks(page)]
    assert [mark.pattern for mark in manual.MARKS if not any(re.search(mark.pattern, each) for each in every)] == []
    assert {mark.kind for mark in manual.MARKS} <= {"skip", "long", "fails", "part"}
    assert all(mark.reason for mark in manual.MARKS)


def block(language, text):
    return manual.Block("it.md", 1, language, text)


def test_a_command_that_fails_is_found(tmp_path):
    assert _console(block("console", "$ true    # a remark"), tmp_path, 0) is None
    assert _console(block("console", "$ echo lost >&2; exit 2"), tmp_path, 0) == "exit code 2\nlost"
    assert _console(block("console", "$ exit 2"), tmp_path, 2) is None


@pytest.mark.parametrize(("text", "wrong"), [("[record]\nlosses = true", None), ("[record]\nloses = true", "loses")])
def test_an_unknown_key_in_a_part_of_a_file_is_found(tmp_path, text, wrong):
    found = _toml(block("toml", text), tmp_path)
    assert found is None if wrong is None else wrong in found
