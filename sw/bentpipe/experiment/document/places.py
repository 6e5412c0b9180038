"""The line numbers of the keys in a TOML document, which ``tomllib`` does not report.

The document has been read by ``tomllib`` before, so it is valid.
"""

from __future__ import annotations

import re
import tomllib
from typing import Any, Final

__all__ = ["bracket_line", "lines"]

_SPACE: Final = re.compile(r"(?:\s|#[^\n]*)*")
_KEY: Final = re.compile(r"""(?:"(?:\\.|[^"\\])*"|'[^']*'|[\w-]+)(?:\s*\.\s*(?:"(?:\\.|[^"\\])*"|'[^']*'|[\w-]+))*""")
_SCALAR: Final = re.compile(
    r'''"""(?:\\.|[^\\])*?"{3,5}|\'\'\'.*?'{3,5}|"(?:\\.|[^"\\])*"|'[^']*'|[^,\]}#\n]+''', re.DOTALL
)


_TOKEN: Final = re.compile(
    r'''"""(?:\\.|[^\\])*?"{3,5}|\'\'\'.*?'{3,5}|"(?:\\.|[^"\\\n])*"|'[^'\n]*'|#[^\n]*|[\[\]{}\n]''', re.DOTALL
)


def bracket_line(text: str, depth: int) -> int | None:
    """Return the first line on which more than so many brackets are open; None if there is none."""
    line, is_open = 1, 0
    for token in _TOKEN.finditer(text):
        is_open += (token[0] in "[{") - (token[0] in "]}")
        if is_open > depth:
            return line
        line += token[0].count("\n")
    return None


def lines(text: str) -> dict[str, int]:
    """Return the line (from 1) of every key and table by its dotted path; entries of arrays are numbers from 0."""
    reader = _Reader(text)
    reader.document()
    return reader.found


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.found: dict[str, int] = {}
        self._counts: dict[str, int] = {}
        self._counted = (0, 1)

    def document(self) -> None:
        section = ""
        while self._next():
            if self._take("[["):
                section = self._header(self._key(), True)
                self._next()
                self._take("]]")
            elif self._take("["):
                section = self._header(self._key(), False)
                self._next()
                self._take("]")
            else:
                self._pair(section)

    def _next(self) -> str:
        """Return the next significant character; empty at the end."""
        found = _SPACE.match(self.text, self.at)
        self.at = found.end() if found else self.at
        return self.text[self.at : self.at + 1]

    def _take(self, token: str) -> bool:
        if self.text.startswith(token, self.at):
            self.at += len(token)
            return True
        return False

    def _line(self) -> int:
        before, line = self._counted
        self._counted = (self.at, line + self.text.count("\n", before, self.at))
        return self._counted[1]

    def _note(self, path: str) -> str:
        self.found.setdefault(path, self._line())
        return path

    def _key(self) -> list[str]:
        """Return the parts of the next key; the place is at its end afterwards."""
        self._next()
        self._line()
        found = _KEY.match(self.text, self.at)
        assert found is not None
        parts = []
        value: Any = tomllib.loads(f"{found[0]} = 0")
        while isinstance(value, dict):
            ((part, value),) = value.items()
            parts.append(part)
        self.at = found.end()
        return parts

    def _header(self, parts: list[str], array: bool) -> str:
        path = ""
        for index, part in enumerate(parts, 1):
            path = self._note(f"{path}.{part}" if path else part)
            if array and index == len(parts):
                self._counts[path] = self._counts.get(path, -1) + 1
            if path in self._counts:
                path = self._note(f"{path}.{self._counts[path]}")
        return path

    def _pair(self, above: str) -> None:
        path = above
        for part in self._key():
            path = self._note(f"{path}.{part}" if path else part)
        self._next()
        self._take("=")
        self._value(path)

    def _value(self, path: str) -> None:
        first = self._next()
        if first == "[":
            self.at += 1
            index = 0
            while self._next() != "]":
                self._value(self._note(f"{path}.{index}"))
                index += 1
                self._next()
                self._take(",")
            self.at += 1
        elif first == "{":
            self.at += 1
            while self._next() != "}":
                self._pair(path)
                self._next()
                self._take(",")
            self.at += 1
        else:
            found = _SCALAR.match(self.text, self.at)
            assert found is not None
            self.at = found.end()
