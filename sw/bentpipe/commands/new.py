"""``bentpipe new``: an experiment of one's own, on top of one of the catalogue."""

from __future__ import annotations

import argparse
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from bentpipe.commands.command import Command, write_file
from bentpipe.errors import BentpipeError

__all__ = ["COMMAND"]

_TABLES: Final = ("network.switches", "network.lines", "network.hosts")


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help="file to write, for example my-study.toml")
    parser.add_argument(
        "--from",
        dest="base",
        metavar="ID|FILE",
        default="acts-3flows",
        help="experiment to extend (default: acts-3flows)",
    )
    parser.add_argument("--whole", action="store_true", help="copy that experiment's file instead of extending it")
    parser.add_argument("--force", action="store_true", help="overwrite an existing file")


def _run(given: argparse.Namespace) -> int:
    from bentpipe.experiment.document.catalogue import EXTENDS, find, read_document, read_extended
    from bentpipe.experiment.load import load_cases

    file: Path = given.file
    if file.suffix != ".toml":
        raise BentpipeError(f"{file}: the name of an experiment's file ends in .toml")
    if file.exists() and not given.force:
        raise BentpipeError(f"{file}: already exists; give another name, or --force to replace it")
    base = find(given.base)
    load_cases(given.base)  # one that is wrong is nothing to begin with
    own = re.sub(r"[^a-z0-9]+", "-", file.stem.lower()).strip("-")
    if not own:
        raise BentpipeError(f"{file}: a name needs a letter or a digit")
    if given.whole:
        document, text = read_document(base)
        beside = document.get(EXTENDS)
        if beside is not None and (base.parent / beside).is_file() and base.parent.resolve() != file.parent.resolve():
            raise BentpipeError(f"{given.base}: extends {beside}, which is beside it: copy both, or do not use --whole")
    else:
        name = given.base if base.stem == given.base else str(base.resolve())
        text = "".join(f"{line}\n" for line in _extending(name, own, read_extended(base)[0]))
    write_file(file, text)
    name = shlex.quote(str(file))
    print(f"{file}: written. Change it, then: bentpipe check {name}; bentpipe run {name}")
    return 0


def _extending(base: str, own: str, document: dict[str, Any]) -> Iterator[str]:
    """Lines of a file that extends an experiment: what it changes is to be uncommented."""
    yield f"# Unset keys are inherited from {base}: `bentpipe show {base}`."
    yield "# Remove the # before each key that you change; `bentpipe help keys` lists the keys."
    yield f"extends = {json.dumps(base)}"
    yield ""
    yield "[experiment]"
    yield f"id = {json.dumps(own)}"
    yield f"title = {json.dumps(document['experiment']['title'] + ', changed')}"
    for key in ("duration", "quick", "seed"):
        if key in document["experiment"]:
            yield f"# {key} = {_toml(document['experiment'][key])}"
    for above in _TABLES:
        inner: Any = document
        for part in above.split("."):
            inner = inner.get(part, {})
        for name, table in inner.items():
            yield from _commented(f"[{above}.{name}]", table)
    hosts = document.get("hosts", {})
    yield from _commented("[hosts]", hosts)
    yield from _commented("[hosts.tcp]", hosts.get("tcp", {}))
    yield from _commented("[record]", document.get("record", {}))
    for flow in document.get("flow", ())[:3]:
        yield from _commented("# [[flow]]  # this line, too; flows replace those of the base: give all of them", flow)


def _commented(heading: str, table: dict[str, Any]) -> Iterator[str]:
    """Yield a table with its keys as comments; a table without keys changes nothing, an array of tables would."""
    lines = [f"# {key} = {_toml(value)}" for key, value in table.items() if not isinstance(value, dict)]
    if lines:
        yield ""
        yield heading
        yield from lines


def _toml(value: Any) -> str:
    """Return a value as TOML; texts, numbers, flags and lists of them look as in JSON."""
    if isinstance(value, list) and any(isinstance(one, dict) for one in value):
        return "[…]"
    return json.dumps(value, ensure_ascii=False)


COMMAND = Command("new", "Create an experiment file that extends one of the catalogue.", _run, _arguments)
