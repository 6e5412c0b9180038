"""Digests of files are kept, and made anew for what has changed: read once, right always."""

from __future__ import annotations

import hashlib
import json
import os
import time
from pathlib import Path

import pytest

from bentpipe_sim import digests
from bentpipe_sim.digests import digest_of, sha256_of


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


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '{"PATH": 1}',
        '{"PATH": [1, 2]}',
        '{"x": 1}',
        '{"x": [1, 2, 3, 4, 5, "6"]}',
        "\udcff",
    ],
)
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


def test_a_file_that_changes_while_it_is_read_is_not_remembered(
    tmp_path: Path, reads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a"
    file.write_text("old")
    read = Path.read_bytes

    def replaced(self: Path) -> bytes:
        found = read(self)
        if self.name == "a":
            self.write_text("new, and longer")
        return found

    monkeypatch.setattr(Path, "read_bytes", replaced)
    assert sha256_of([file]) == [hashlib.sha256(b"old").hexdigest()]
    assert sha256_of([file]) == [hashlib.sha256(b"new, and longer").hexdigest()]


def test_a_path_through_a_link_is_that_of_the_system(tmp_path: Path, reads: list[str]) -> None:
    """For a link to another folder, ``link/..`` is the folder in which that one is."""
    (tmp_path / "there" / "folder").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "there" / "folder")
    (tmp_path / "a").write_text("here")
    (tmp_path / "there" / "a").write_text("there")
    names = [tmp_path / "link" / ".." / "a", tmp_path / "a"]
    for _ in range(2):
        assert sha256_of(names) == [hashlib.sha256(text).hexdigest() for text in (b"there", b"here")]
        next_process()
    assert reads == ["a", "a"]


def test_names_are_of_the_folder_of_the_moment(
    tmp_path: Path, reads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a").write_text(name)
        monkeypatch.chdir(tmp_path / name)
        assert sha256_of([Path("a")]) == [hashlib.sha256(name.encode()).hexdigest()]
