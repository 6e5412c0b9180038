"""SHA-256 of files. A file is read only if it has changed since its digest was made.

The start of a run asks for the digests of a thousand sources and models: to read and hash them takes a tenth of its
time. So digests are kept in the cache (``digests.json``), each with its file's size, inode and times of change. The
time of an inode's change cannot be set by a program, and a file that has just been written is not remembered. What is
not seen: a write through mapped memory, to a page that was written to before; and a disk that gives other octets.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Self

__all__ = ["cache_folder", "digest", "digest_of", "sha256_of"]

_NAME: Final = "digests.json"
_ROW: Final = 6
"""Size, device, inode, both times, digest."""
_RECENT_NS: Final = 3 * 10**9
"""A file changed so little ago might be changed again within the resolution of its times, which is 2 s at most."""


def cache_folder() -> Path:
    """Return the cache's folder: ``$BENTPIPE_CACHE``, else ``$XDG_CACHE_HOME/bentpipe``, else ``~/.cache/bentpipe``."""
    named = os.environ.get("BENTPIPE_CACHE")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bentpipe"


def digest(*parts: str | bytes) -> str:
    """Return a hash of these parts, in hexadecimal."""
    total = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        total.update(len(data).to_bytes(8, "little") + data)
    return total.hexdigest()[:32]


def digest_of(files: Iterable[Path]) -> str:
    """Return a hash of files' names and contents."""
    files = list(files)
    return digest(*(part for file, one in zip(files, sha256_of(files), strict=True) for part in (file.name, one)))


def sha256_of(files: Iterable[Path]) -> list[str]:
    """Return the SHA-256 of each file, in hexadecimal.

    Raises
    ------
    OSError
        A file cannot be read.
    """
    with _lock, _memory_of(cache_folder()) as memory:
        return [memory.get(file) for file in files]


class _Memory:
    """The digests that are kept in a folder, by the path of their file."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / _NAME
        self._known: dict[str, list[Any]] = {}
        self._is_new = False
        with suppress(OSError, ValueError, RecursionError):
            read = json.loads(self._file.read_bytes())
            if isinstance(read, dict):
                self._known = {path: row for path, row in read.items() if os.path.isabs(path) and _is_row(row)}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_new:
            self._is_new = False
            self._keep()

    def get(self, file: Path) -> str:
        path = os.path.join(os.getcwd(), file)  # as it is: what is before ".." may be a link
        mark = _mark(path)
        row = self._known.get(path)
        if row is not None and row[:-1] == mark:
            return row[-1]
        made = hashlib.sha256(Path(path).read_bytes()).hexdigest()
        if max(mark[-2:]) < time.time_ns() - _RECENT_NS and _mark(path) == mark:
            self._known[path] = [*mark, made]
            self._is_new = True
        return made

    def _keep(self) -> None:
        """Write what is known of files that are still there. If that fails, the next process makes it again."""
        with suppress(OSError):
            current = {path: row for path, row in self._known.items() if os.path.exists(path)}
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix="making-", dir=self._file.parent) as folder:
                made = Path(folder, _NAME)
                made.write_text(json.dumps(current, separators=(",", ":")))
                made.replace(self._file)


def _mark(path: str) -> list[int]:
    about = os.stat(path)
    return [about.st_size, about.st_dev, about.st_ino, about.st_mtime_ns, about.st_ctime_ns]


def _is_row(row: Any) -> bool:
    return isinstance(row, list) and len(row) == _ROW and isinstance(row[-1], str)


_lock = threading.Lock()
_memories: dict[Path, _Memory] = {}


def _memory_of(folder: Path) -> _Memory:
    if folder not in _memories:
        _memories[folder] = _Memory(folder)
    return _memories[folder]
