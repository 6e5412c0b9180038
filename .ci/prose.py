"""Check the language of the documentation: ``python .ci/prose.py`` (part of ``make lint``).

Rules, with the reason in CONTRIBUTING ("Words"):

- No idiom of ``IDIOMS``: each has a plain word.
- No sentence of more than 25 words.

``prose.txt`` lists how many breaches each file had when the rules came. A file may not get worse. ``--update`` writes
lower numbers, never higher ones. ``--show FILE`` prints the breaches of a file.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
LISTED = Path(__file__).with_name("prose.txt")
MOST_WORDS = 25

IDIOMS = {
    r"has (?:its|their) turn": "is next, is served",
    r"what (?:comes|came) of it": "the result",
    r"what is there(?! (?:a|an|any|no)\b)": "the existing one",
    r"is gone on with": "continues",
    r"goes? on with": "continues",
    r"(?:that|which) (?:is|are) there\b(?! (?:a|an|any|no)\b)": "existing",
    r"is there from": "exists from",
    r"hold(?:s|ing)? .{1,30} against (?:each other|another)": "compare",
    r"gives what it has": "provides only its own",
    r"in which nothing (?:is|comes)": "idle",
    r"not so\b": "not",
    r"otherwise than": "different from",
    r"so (?:much|many) less": "less by that amount",
    r"as (?:much|many) as that": "the same amount",
    r"nothing (?:of|in) (?:it|them) (?:is|are) then": "(say it directly)",
    r"\b(?:it|this) is said\b": "is reported",
    r"\bsays so\b": "reports it",
    r"for that,": "therefore",
    r"of (?:its|their) own accord": "by itself",
    r"by hand of": "by",
}
"""Pattern of an idiom: what to write instead."""


def paragraphs(text: str) -> Iterator[str]:
    """Yield the prose of a page: paragraphs, list items and table cells, without code, targets of links and HTML."""
    text = re.sub(r"^(```|~~~|:::).*?^\1", "\n\n", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"`[^`]*`", "X", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"<[^>]+>", " ", text)
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*:|#]|\d+\.)\s)", text):
        for part in block.split("|") if block.lstrip().startswith("|") else [block]:
            yield " ".join(part.split())


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a page; a colon, a semicolon and a dash do not end one."""
    for paragraph in paragraphs(text):
        yield from re.split(r"(?<=[.!?])\s+(?=[A-Z\"'(])", paragraph)


def breaches(text: str) -> list[str]:
    """Return a line for each breach of a rule in a page."""
    found = []
    for sentence in sentences(text):
        count = len(re.findall(r"[\w'-]*\w", sentence))
        if count > MOST_WORDS:
            found.append(f"{count} words: {sentence}")
        for idiom, better in IDIOMS.items():
            if match := re.search(idiom, sentence, re.IGNORECASE):
                found.append(f"{match.group()!r}, better {better!r}: {sentence}")
    return found


def pages() -> dict[str, str]:
    """Return the pages under the rules by path; ``coverage.md`` is written by ``make coverage``."""
    paths = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("**/*.md"))]
    kept = [path for path in paths if "_generated" not in path.parts and path.name != "coverage.md"]
    return {str(path.relative_to(ROOT)): path.read_text() for path in kept}


def listed() -> dict[str, int]:
    """Return the number of breaches that each file may have."""
    rows = [line.split() for line in LISTED.read_text().splitlines() if line and not line.startswith("#")]
    return {name: int(count) for count, name in rows}


def main() -> int:
    """Print what breaks a rule beyond what is listed; 1 if anything does."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--show", metavar="FILE", help="print the breaches of this file")
    parser.add_argument("--update", action="store_true", help="write the numbers of files that got better")
    given = parser.parse_args()
    if given.show:
        try:
            text = (ROOT / given.show).read_text()
        except (OSError, UnicodeDecodeError) as error:
            parser.error(f"{given.show}: {getattr(error, 'strerror', None) or 'not a text file'}")
        print("\n".join(breaches(text)))
        return 0
    now = {name: len(breaches(text)) for name, text in pages().items()}
    known = listed() if LISTED.exists() else dict(now)
    worse = {name: count for name, count in now.items() if count > known.get(name, 0)}
    for name, count in worse.items():
        print(f"{name}: {count} breaches, {known.get(name, 0)} before: python .ci/prose.py --show {name}")
    if given.update:
        kept = {name: min(count, known.get(name, 0)) for name, count in now.items()}
        rows = "".join(f"{count:4} {name}\n" for name, count in sorted(kept.items()) if count)
        LISTED.write_text("# breaches of the rules of prose.py that a file may have; the numbers only shrink\n" + rows)
    return int(bool(worse))


if __name__ == "__main__":
    sys.exit(main())
