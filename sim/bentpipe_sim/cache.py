"""A cache of built files under one folder, each with its digest beside it.

Every file is written beside its place and renamed: no half-written file is left behind. A file that was changed or cut
short counts as missing, and is built again (:mod:`.digests`). If several processes want the same file, one builds it,
and the others wait for it.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from .digests import cache_folder, sha256_of
from .errors import CacheError, ToolError
from .tools import alone

__all__ = ["Cache"]


class Cache:
    """Files under :func:`cache_folder`, each with its digest beside it."""

    def __init__(self) -> None:
        self.folder = cache_folder()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CacheError(f"The cache folder {self.folder} cannot be made ({error.strerror}): "
                             "set BENTPIPE_CACHE to another") from None  # fmt: skip

    def get(self, name: str) -> Path | None:
        """Return a file of the cache; None if it is missing or damaged."""
        file = self.folder / name
        try:
            mark = (self.folder / (name + ".sha256")).read_bytes().strip()
            return file if sha256_of([file])[0].encode() == mark else None
        except OSError:
            return None

    def made(self, index: str) -> dict[str, str]:
        """Return the files of an index, by the tools that made them."""
        file = self.get(index)
        return {} if file is None else json.loads(file.read_bytes())["made"]

    def find(self, index: str, tools: Callable[[], str]) -> Path | None:
        """Return the file that these tools made, or else one that other tools made."""
        made = self.made(index)
        if not made:
            return None
        try:
            names = [made[tools()]]
        except KeyError:
            return None
        except ToolError:
            names = [*made.values()]
        return next((file for file in map(self.get, names) if file), None)

    def note(self, index: str, tools: str, name: str, what: str) -> None:
        """Write into the index that these tools made the file ``name``."""
        with tempfile.TemporaryDirectory(prefix="making-", dir=self.folder) as folder:
            entry = Path(folder) / "index.json"
            entry.write_text(json.dumps({"what": what, "made": {**self.made(index), tools: name}}) + "\n")
            self.put(entry, index)

    def put(self, made: Path, name: str) -> Path:
        file = self.folder / name
        mark = made.with_name(made.name + ".sha256")
        mark.write_text(hashlib.sha256(made.read_bytes()).hexdigest() + "\n")
        for path in (file, self.folder / (name + ".sha256")):
            path.unlink(missing_ok=True)
        os.replace(made, file)
        os.replace(mark, self.folder / (name + ".sha256"))
        return file

    def alone(self, name: str) -> AbstractContextManager[None]:
        """Return a context that keeps other threads and processes from making the file ``name``."""
        return alone(self.folder / f"making-{name}")

    def make(self, name: str, build: Callable[[Path], Path]) -> Path:
        """Return the file ``name``; ``build(folder)`` makes it unless it exists."""
        there = self.get(name)
        if there:
            return there
        with self.alone(name), tempfile.TemporaryDirectory(prefix="making-", dir=self.folder) as folder:
            return self.get(name) or self.put(build(Path(folder)), name)

    def clear(self) -> None:
        for pattern in (
            "*.so*",
            "*.o",
            "*.o.sha256",
            "verilated-*",
            "*.json*",
            "bench-*",
            "board-*",
            "hosts-*",
            "making-*",
        ):
            for file in self.folder.glob(pattern):
                if file.is_dir():
                    shutil.rmtree(file, ignore_errors=True)
                else:
                    file.unlink(missing_ok=True)
