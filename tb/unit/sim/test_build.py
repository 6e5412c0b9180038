"""Builds: nothing twice, nothing half-written, one clear line when a tool or the cache is broken."""

import os
import re
import stat

import pytest

from bentpipe_sim import build
from bentpipe_sim.build import Shape, build_loop, build_model
from bentpipe_sim.errors import CacheError, ToolError

SMALL = Shape.of("link")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("BENTPIPE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def _tool(folder, name, text):
    folder.mkdir(exist_ok=True)
    file = folder / name
    file.write_text("#!/bin/sh\n" + text)
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return file


def test_a_second_build_runs_no_tool(cache, monkeypatch):
    first = build_model(SMALL)
    loop = build_loop()

    def none(*_, **__):
        raise AssertionError("a tool ran")

    monkeypatch.setattr(build, "_run", none)
    monkeypatch.setattr("bentpipe_sim.schedule.schedule", none)
    assert build_model(SMALL) == first
    assert build_loop() == loop


def test_a_damaged_model_is_named(cache):
    model = build_model(SMALL)
    with model.open("r+b") as file:
        file.seek(1000)
        file.write(b"damage")
    with pytest.raises(CacheError, match=rf"{model.name} is damaged.*bentpipe build --force"):
        build_model(SMALL)


def test_a_model_without_its_digest_is_damaged(cache):
    loop = build_loop()
    loop.with_name(loop.name + ".sha256").unlink()
    with pytest.raises(CacheError, match="damaged"):
        build_loop()


def test_force_empties_a_damaged_cache(cache):
    build_loop().write_bytes(b"")
    build._Cache().clear()
    assert build_loop().stat().st_size > 1000


def test_no_compiler(cache, monkeypatch):
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(cache / "nothing"))
    with pytest.raises(ToolError, match=re.escape("C++17 compiler is missing: install g++")):
        build_loop()


def test_the_compiler_named_is_missing(cache, monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(ToolError, match="no-such-compiler"):
        build_loop()


def test_a_compiler_that_fails_leaves_nothing(cache, tmp_path, monkeypatch):
    failing = _tool(tmp_path / "bin", "failing-g++", 'echo "whole.cpp:1: error: out of ideas" >&2; exit 1\n')
    monkeypatch.setenv("CXX", str(failing))
    with pytest.raises(ToolError, match=r"compiling the event loop failed: whole.cpp:1: error: out of ideas"):
        build_loop()
    assert list(cache.iterdir()) == []


def test_a_cache_that_cannot_be_made(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("BENTPIPE_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(CacheError, match=r"cannot be made .*set BENTPIPE_CACHE"):
        build_loop()


def test_cache_folder_by_environment(monkeypatch, tmp_path):
    monkeypatch.delenv("BENTPIPE_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert build.cache_folder() == tmp_path / "bentpipe"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert build.cache_folder() == type(tmp_path)(os.path.expanduser("~/.cache/bentpipe"))
