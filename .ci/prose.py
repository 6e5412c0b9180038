"""Check the language of pages, messages and docstrings: ``python .ci/prose.py`` (part of ``make lint``).

Rules, with the reason in CONTRIBUTING ("Language"):

- Pages: no idiom of ``IDIOMS``, as each has a plain word; no sentence of more than 25 words, numbers not counted.
- Messages (help texts, errors, remarks, verdicts: the string literals of ``PACKAGES``), and descriptions of the
  catalogue: the same.
- Docstrings of ``PACKAGES``: the first line is a sentence. That of a function begins with a verb of ``VERBS``. In
  ``TESTS`` the first line is a sentence or names the thing, as tests state what holds.

``prose.txt`` lists how many breaches each page, and the messages of each package, may have; docstrings have none. The
numbers may not grow. ``--update`` writes lower numbers, never higher ones. ``--show NAME`` prints the breaches of a
page or of a Python file.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
LISTED = Path(__file__).with_name("prose.txt")
MOST_WORDS = 25
PACKAGES = ("sw/bentpipe", "sim/bentpipe_sim", "hdl/bentpipe_hdl", "boards/bentpipe_boards")
TESTS = "tb"

IDIOMS = {
    r"has (?:its|their) turn": "is next, is served",
    r"what (?:comes|came|became) of it": "the result",
    r"what is there(?! (?:a|an|any|no)\b)": "the existing one",
    r"is gone on with": "continues",
    r"goes? on (?:with|there|where)": "continues",
    r"(?:that|which) (?:is|are) there\b(?! (?:a|an|any|no)\b)": "existing",
    r"is there (?:from|already)": "exists",
    r"hold(?:s|ing)? .{1,30} against (?:each other|another)": "compare",
    r"held against": "compared with",
    r"gives what it has": "provides only its own",
    r"in which nothing (?:is|comes)": "idle",
    r"not so\b": "not",
    r"otherwise than": "different from",
    r"so (?:much|many) less": "less by that amount",
    r"as (?:much|many) as that": "the same amount",
    r"nothing (?:of|in) (?:it|them) (?:is|are) then": "(say it directly)",
    r"\b(?:it|this) is said\b": "is reported",
    r"isn't said": "is not set",
    r"\bsays so\b": "reports it",
    r"for that,": "therefore",
    r"of (?:its|their) own accord": "by itself",
    r"by hand of": "by",
    r"is another (?:one )?now": "has changed",
    r"takes? root\b": "needs root",
    r"(?:does|do|can)(?:n't| not|'t) go (?:with|through)": "cannot be combined with, cannot use",
    r"the wrong way round": "in the wrong order",
    r"round in a circle": "in a circle: a file extends itself",
    r"\bis too much\b": "is not expected",
    r"by want of|for want of": "without enough",
    r"\bbegun anew\b|\banew\b": "again",
}
"""Pattern of an idiom: what to write instead."""


def paragraphs(text: str) -> Iterator[str]:
    """Yield the prose of a page: paragraphs, list items and table cells, without code, targets of links and HTML."""
    text = re.sub(r"^(```|~~~|:::).*?^\1", "\n\n", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"`[^`]*`", "X", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"<br ?/?>", "|", text)
    text = re.sub(r"<[^>]+>", " ", text)
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*:|#]|\d+\.)\s)", text):
        for part in block.split("|") if block.lstrip().startswith("|") else [block]:
            yield " ".join(part.split())


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a page; a colon, a semicolon and a dash do not end one."""
    for paragraph in paragraphs(text):
        yield from re.split(r"(?<=[.!?])\s+(?=[A-Z\d\"'(*])", paragraph)


def breaches(text: str) -> list[str]:
    """Return a line for each breach of a rule in a page."""
    found = []
    for sentence in sentences(text):
        count = len(re.findall(r"[\w'-]*[^\W\d_][\w'-]*", sentence))
        if count > MOST_WORDS:
            found.append(f"{count} words: {sentence}")
        for idiom, better in IDIOMS.items():
            if match := re.search(idiom, sentence, re.IGNORECASE):
                found.append(f"{match.group()!r}, better {better!r}: {sentence}")
    return found


FRAGMENT = re.compile(r"(?:What|Whether|Which|Who|Whose|How|Where|When|That|Those|Its|Their|His|Of|As|And|Or)\b")
"""First words of a docstring that is no sentence."""

VERBS = frozenset(
    """
    Abort Accept Acknowledge Add Advance Allocate Announce Answer Append Apply Ask Assert Assign Attach Await
    Back Begin Bind Break Bring Build Call Cancel Change Check Choose Claim Clean Clear Close Collect Combine
    Compare Compile Compute Concatenate Configure Connect Continue Convert Count Cut Decide Declare Decode Defer
    Delay Demand Disable Discard Do Draw Drive Drop Dump Enable Encode End Enter Estimate Evaluate Execute
    Export Extend Fail Find Fire Flip Forget Format Freeze Generate Give Go Group Grow Handle Hash Hit Hold
    Ignore Import Initialise Insert Invert Issue Join Keep Kill Lay Leave Let Limit Listen Load Log Look Make Map
    Mark Measure Merge Monitor Move Negate Normalise Note Notify Offer Open Order Pace Parse Pass Pause Perform
    Permute Pick Pickle Place Plan Plot Poll Prepare Print Process Prove Put Queue Raise Read Receive Record
    Recover Reduce Refuse Reject Release Remove Render Repeat Replace Replay Reply Report Request Reserve Reset
    Restart Restore Retransmit Retry Return Reverse Rotate Round Route Run Sample Save Scale Scan Seed Send Serve Set
    Share Shift Show Simplify Simulate Skip Sleep Spawn Split Start Stop Subtract Sum Sweep Switch Take Test
    Toggle Transform Translate Transmit Trim Truncate Try Turn Unpack Update Use Validate Wait Wake Work Wrap
    Write Yield
    """.split()  # noqa: SIM905 - a list would be a column of 200 lines
)
"""First words of the docstring of a function: verbs in the imperative; a new one is added here."""

CODE = re.compile(r"::|;\s*$|;\n|[{]\s*\n|#include|\bconst\b.*=|<\w+ [\w-]+=|\\[a-z(]|default-src|\+-{3}|read_rtlil")
"""Texts that are C++, HTML, Verilog, scripts, drawings or patterns."""


def _text(node: ast.AST) -> str | None:
    """Return a string literal as it is read, with X for each value that is filled in."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else "X" for part in node.values)
    return None


def _documented(tree: ast.Module) -> Iterator[tuple[ast.AST, ast.Expr]]:
    """Yield what has a docstring, and each text that stands alone as a statement."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else ():
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                yield node if statement is body[0] else statement, statement


def messages(source: str) -> list[str]:
    """Return the breaches in the texts of a Python file: string literals that read as prose, not docstrings."""
    tree = ast.parse(source)
    inner = {id(statement.value) for _, statement in _documented(tree)}
    found = []
    for node in ast.walk(tree):  # a node comes before its parts
        text = _text(node)
        if text is None or id(node) in inner:
            continue
        inner.update(id(part) for part in ast.walk(node))
        if len(text.split()) > 2 and not CODE.search(text):
            found += [f"{getattr(node, 'lineno', 0)}: {each}" for each in breaches(text)]
    return found


def docstrings(source: str, *, is_test: bool = False) -> list[str]:
    """Return the docstrings of a Python file whose first line is no sentence."""
    found = []
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    for node, statement in _documented(ast.parse(source)):
        if not isinstance(node, (ast.Module, ast.ClassDef, *functions)) or not (text := ast.get_docstring(node)):
            continue
        first = " ".join(text.split("\n\n")[0].split())
        noun = any("property" in ast.unparse(each) for each in getattr(node, "decorator_list", ()))
        word = first.split()[0].rstrip(",.:;")
        if FRAGMENT.match(first) or not re.search(r"[.?!:]['\")`]*(?:\s|$)", first):
            found.append(f"{statement.lineno}: no sentence: {first}")
        elif not is_test and isinstance(node, functions) and not noun and word not in VERBS:
            found.append(f"{statement.lineno}: begins with no verb in the imperative: {first}")
    return found


def pages() -> dict[str, str]:
    """Return the pages under the rules by path; ``coverage.md`` is written by ``make coverage``."""
    paths = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("**/*.md"))]
    made = ROOT / "docs/_generated", ROOT / "docs/cores"
    kept = [path for path in paths if path.parent not in made and path.name != "coverage.md"]
    return {str(path.relative_to(ROOT)): path.read_text() for path in kept}


def counts() -> dict[str, int]:
    """Return the number of breaches of each page, and of messages and docstrings of each package."""
    found = Counter({name: len(breaches(text)) for name, text in pages().items()})
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            source, folder = path.read_text(), path.parent.relative_to(ROOT)
            found[f"messages:{folder}"] += len(messages(source))
            found[f"docstrings:{folder}"] += len(docstrings(source))
    for path in sorted((ROOT / TESTS).rglob("*.py")):
        found[f"docstrings:{path.parent.relative_to(ROOT)}"] += len(docstrings(path.read_text(), is_test=True))
    found["descriptions:sw/bentpipe/catalogue"] = len(descriptions())
    return dict(found)


def descriptions() -> list[str]:
    """Return the breaches in the descriptions of the catalogue's experiments."""
    found = []
    for path in sorted((ROOT / "sw/bentpipe/catalogue").glob("*.toml")):
        about = tomllib.loads(path.read_text()).get("experiment", {})
        found += [f"{path.name}: {each}" for each in breaches(about.get("description", ""))]
    return found


def listed() -> dict[str, int]:
    """Return the number of breaches that each page and package may have."""
    rows = [line.split() for line in LISTED.read_text().splitlines() if line and not line.startswith("#")]
    return {name: int(count) for count, name in rows}


def _show(name: str) -> list[str]:
    """Return the breaches of a page, of a Python file, or of a package's ``messages:`` or ``docstrings:``."""
    rule, _, folder = name.rpartition(":")
    if rule == "descriptions":
        return descriptions()
    if rule in ("messages", "docstrings"):
        is_test = Path(folder).parts[0] == TESTS
        files = {path.relative_to(ROOT): path.read_text() for path in sorted((ROOT / folder).glob("*.py"))}
        return [
            f"{path}:{each}"
            for path, text in files.items()
            for each in (messages(text) if rule == "messages" else docstrings(text, is_test=is_test))
        ]
    text = (ROOT / name).read_text()
    if not name.endswith(".py"):
        return breaches(text)
    is_test = Path(name).parts[0] == TESTS
    return [*([] if is_test else messages(text)), *docstrings(text, is_test=is_test)]


def main() -> int:
    """Print what breaks a rule beyond what is listed; return 1 if anything does."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--show", metavar="NAME", help="print the breaches of a page, a Python file or a listed name")
    parser.add_argument("--update", action="store_true", help="write the numbers of pages and packages that got better")
    given = parser.parse_args()
    if given.show:
        try:
            print("\n".join(_show(given.show)))
        except (OSError, UnicodeDecodeError) as error:
            parser.error(f"{given.show}: {getattr(error, 'strerror', None) or 'not a text file'}")
        return 0
    now = counts()
    known = listed() if LISTED.exists() else dict(now)
    worse = {name: count for name, count in now.items() if count > known.get(name, 0)}
    for name, count in worse.items():
        print(f"{name}: {count} breaches, {known.get(name, 0)} before: python .ci/prose.py --show {name}")
    if given.update:
        kept = {name: min(count, known.get(name, 0)) for name, count in now.items()}
        rows = "".join(f"{count:4} {name}\n" for name, count in sorted(kept.items()) if count)
        LISTED.write_text(
            "# breaches of the rules of prose.py that a page or package may have; the numbers only shrink\n" + rows
        )
    return int(bool(worse))


if __name__ == "__main__":
    sys.exit(main())
