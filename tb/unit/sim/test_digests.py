"""Digests of files are kept, and made anew for what has changed: read once, right always."""

from __future__ import annotations

import hashlib
import json
import os
import time
from pathlib import Path

import pytest

from bentpipe_sim import digests
from bentpipe_sim.digests import answer_of, digest_of, sha256_of


@pytest.fixture
def reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of files that are read, with an empty cache, an hour after they were written."""
    found: list[str] = []
    real, now = Path.read_bytes, time.time_ns

    def read(self: Path) -> bytes:
        if self.name != "digests.json":
            found.append(self.name)
        return real(self)

    monkeypatch.setenv("BENTPIPE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(digests, "_memories", {})
    monkeypatch.setattr(Path, "read_bytes", read)
    monkeypatch.setattr(digests.time, "time_ns", lambda: now() + 3600 * 10**9)
    return found


def next_process() -> None:
    digests._memories.clear()


def test_a_file_is_read_once_by_all_processes(tmp_path: Path, reads: list[str]) -> None:
    files = [tmp_path / name for name in ("a", "b")]
    for file in files:
        file.write_text(file.name)
    for _ in range(3):
        assert sha256_of(files) == [hashlib.sha256(name).hexdigest() for name in (b"a", b"b")]
        next_process()
    assert reads == ["a", "b"]


def test_a_changed_file_is_read_again_whatever_its_time(tmp_path: Path, reads: list[str]) -> None:
    """It has the same size and its old time of modification, once in its place and once as another file."""
    file = tmp_path / "a"
    file.write_text("old")
    before = file.stat()
    (old,) = sha256_of([file])
    file.write_text("new")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert sha256_of([file]) == [hashlib.sha256(b"new").hexdigest()]
    other = tmp_path / "other"
    other.write_text("old")
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.replace(file)
    next_process()
    assert sha256_of([file]) == [old]
    assert reads == ["a", "a", "a"]


def test_what_was_just_written_is_not_remembered(
    tmp_path: Path, reads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a"
    file.write_text("old")
    monkeypatch.setattr(digests.time, "time_ns", lambda: file.stat().st_ctime_ns + 10**9)
    for _ in range(2):
        sha256_of([file])
    assert reads == ["a", "a"]
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"PATH": 1}', '{"PATH": [1, 2]}', "\udcff"])
def test_damaged_digests_count_as_none(text: str, tmp_path: Path, reads: list[str]) -> None:
    file = tmp_path / "a"
    file.write_text("a")
    (tmp_path / "cache").mkdir()
    damaged = tmp_path / "cache" / "digests.json"
    damaged.write_bytes(text.replace("PATH", str(file)).encode(errors="surrogateescape"))
    assert sha256_of([file]) == [hashlib.sha256(b"a").hexdigest()]
    assert list(json.loads(damaged.read_text())) == [str(file)]


def test_files_that_went_are_forgotten(tmp_path: Path, reads: list[str]) -> None:
    files = [tmp_path / name for name in ("a", "b")]
    for file in files:
        file.write_text(file.name)
    sha256_of(files[:1])
    files[0].unlink()
    sha256_of(files[1:])
    assert list(json.loads((tmp_path / "cache" / "digests.json").read_text())) == [str(files[1])]


def test_a_cache_that_cannot_be_written_costs_time_only(tmp_path: Path, reads: list[str]) -> None:
    (tmp_path / "cache").write_text("a file in the folder's place")
    file = tmp_path / "a"
    file.write_text("a")
    for _ in range(2):
        assert sha256_of([file]) == [hashlib.sha256(b"a").hexdigest()]
        next_process()
    assert reads == ["a", "a"]


def test_the_name_counts(tmp_path: Path, reads: list[str]) -> None:
    files = [tmp_path / name for name in ("a", "b")]
    for file in files:
        file.write_text("the same")
    assert digest_of(files[:1]) != digest_of(files[1:])
    with pytest.raises(FileNotFoundError):
        sha256_of([tmp_path / "c"])


def test_a_program_is_asked_once(tmp_path: Path, reads: list[str]) -> None:
    program = tmp_path / "a"
    program.write_text("1.0")
    asked: list[str] = []

    def ask() -> str:
        asked.append(program.read_text())
        return asked[-1]

    for _ in range(2):
        assert answer_of(program, "version of", ask) == "1.0"
        assert sha256_of([program]) == [hashlib.sha256(b"1.0").hexdigest()]
        next_process()
    program.write_text("2.0")
    assert answer_of(program, "version of", ask) == "2.0"
    assert asked == ["1.0", "2.0"]
