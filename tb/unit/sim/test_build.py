"""Builds: nothing twice, nothing half-written, one clear line when a tool or the cache is broken."""

import gc
import importlib.util
import os
import platform
import re
import shutil
import signal
import stat
import subprocess
import sys
import sysconfig
import threading
from pathlib import Path

import pytest

from bentpipe_sim import tools
from bentpipe_sim.bindings import build_bindings
from bentpipe_sim.build import Shape, build_all, build_loop, build_model
from bentpipe_sim.cache import Cache
from bentpipe_sim.digests import cache_folder
from bentpipe_sim.errors import CacheError, ToolError
from bentpipe_sim.native import library
from bentpipe_sim.network import Network

SMALL = Shape.of("link")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("BENTPIPE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A cache with all that tests here use, copied from the one that all tests share: the event loop alone takes 18 s
    of processor time to compile."""
    folder = tmp_path_factory.mktemp("made") / "cache"
    folder.mkdir()
    get, names = Cache.get, []

    def noted(self, name):
        names.append(name)
        return get(self, name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Cache, "get", noted)
        build_all([SMALL, Shape.of("nic")])
        build_bindings(build_loop())
    for name in names:
        for file in (name, f"{name}.sha256"):
            shutil.copy2(cache_folder() / file, folder)
    return folder


@pytest.fixture
def warm(made, cache):
    """A copy of that cache."""
    return Path(shutil.copytree(made, cache))


def _tool(folder, name, text):
    folder.mkdir(exist_ok=True)
    file = folder / name
    file.write_text("#!/bin/sh\n" + text)
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return file


@pytest.mark.parametrize(("version", "gccs"), [("g++ (Debian) 12.2.0", True), ("Apple clang version 15.0.0", False)])
def test_clang_is_given_no_flags_of_gcc(tmp_path, monkeypatch, version, gccs):
    given = []
    monkeypatch.setattr(library, "compiler_version", lambda: version)
    monkeypatch.setattr(library, "run", lambda command, what: given.extend(command))
    library.compiled("", tmp_path, "nothing")
    assert ("-fno-code-hoisting" in given, "--param" in given) == (gccs, gccs)
    assert "-O2" in given and str(tmp_path / "node.cpp") in given


def test_a_second_build_runs_no_tool(warm, monkeypatch):
    (first,) = warm.glob("link-*.so")
    (loop,) = warm.glob("network-*.so")

    def none(*_, **__):
        raise AssertionError("a tool ran")

    monkeypatch.setattr(tools, "call", none)
    monkeypatch.setattr("bentpipe_sim.native.node.generate", none)
    assert build_model(SMALL) == first
    assert build_loop() == loop


def _compiler(folder, version):
    """One that is quick: what it makes is the name of its version, a thousand times."""
    text = f'if [ "$1" = --version ]; then echo {version}; exit; fi\nwhile [ "$1" != -o ]; do shift; done\n'
    return str(_tool(folder, version, f'{text}for i in $(seq 1000); do echo {version}; done > "$2"\n'))


@pytest.fixture
def quick(tmp_path, monkeypatch):
    monkeypatch.setenv("CXX", _compiler(tmp_path / "bin", "first"))


def cut(file):
    file.write_bytes(file.read_bytes()[:-10])


def empty(file):
    file.write_bytes(b"")


def other(file):
    file.write_bytes(file.read_bytes().swapcase())


OWN = """
from dataclasses import dataclass
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

class Adder(wiring.Component):
    a: In(8)
    sum: Out(8)
    def elaborate(self, platform):
        m = Module()
        m.d.sync += self.sum.eq(self.a + 1)
        return m

@dataclass(frozen=True)
class AdderShape:
    kind: str = "adder"
    def component(self):
        return Adder()
"""


def test_a_component_of_ones_own_that_changed_is_another(cache, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # of the same second and length it would be taken for the new
    models = []
    for added in ("1", "2"):
        (tmp_path / "own.py").write_text(OWN.replace("+ 1", f"+ {added}"))
        specification = importlib.util.spec_from_file_location("own", tmp_path / "own.py")
        own = importlib.util.module_from_spec(specification)
        sys.modules["own"] = own
        specification.loader.exec_module(own)
        models.append(build_model(own.AdderShape()))
        del sys.modules["own"]
    assert models[0] != models[1]


@pytest.mark.parametrize("pattern", ["network-*.so", "network-*.sha256", "index-*.json", "index-*.sha256"])
@pytest.mark.parametrize("damage", [cut, empty, other, os.unlink])
def test_what_is_damaged_is_made_again(cache, quick, damage, pattern):
    loop = build_loop()
    (file,) = cache.glob(pattern)
    damage(file)
    assert build_loop() == loop
    assert loop.read_text() == "first\n" * 1000


def test_a_build_prints_nothing(warm, capfd):
    (bindings,) = warm.glob("bindings-*.so")
    bindings.unlink()
    assert build_bindings(build_loop()) == bindings and bindings.exists()
    assert capfd.readouterr() == ("", "")


def test_a_damaged_model_is_made_again(warm):
    model = build_model(SMALL)
    size = model.stat().st_size
    cut(model)
    assert build_model(SMALL) == model
    assert model.stat().st_size == size


def test_a_warm_cache_needs_no_tool(warm, monkeypatch):
    first, loop = build_model(SMALL), build_loop()
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", "")
    assert build_all([SMALL]) == {SMALL: first}
    assert build_loop() == loop
    empty(first)
    with pytest.raises(ToolError, match=re.escape("C++17 compiler is missing: install g++")):
        build_model(SMALL)


@pytest.fixture
def calls(warm):
    """The event loop's functions through libffi and through an extension module, told apart by how they look."""

    def network():
        network = Network(seed=1)
        network.add_nic("a")
        network.start()
        assert network.loop.now() == 0 and network.loop.ffi.string(network.loop.error()) == b""
        return "built-in" if "built-in" in repr(network.loop.now) else "libffi"

    return network


@pytest.mark.parametrize("lacks", ["Python.h", "compiler"])
def test_without_an_extension_module_the_loop_is_called_all_the_same(calls, monkeypatch, tmp_path, lacks):
    assert calls() == "built-in"
    if lacks == "Python.h":
        paths = sysconfig.get_path
        monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path) if name == "include" else paths(name))
    else:
        for file in cache_folder().glob("bindings-*"):
            file.unlink()
        monkeypatch.delenv("CXX", raising=False)
        monkeypatch.setenv("PATH", "")
    assert calls() == "libffi"


def test_bindings_that_fail_to_compile_are_an_error(warm, monkeypatch, tmp_path):
    loop = build_loop()
    for file in warm.glob("bindings-*"):
        file.unlink()
    monkeypatch.setenv("CXX", str(_tool(tmp_path / "bin", "bad", 'echo "x.c:1: error: no good" >&2; exit 1\n')))
    with pytest.raises(ToolError, match=r"compiling the way to the event loop failed: x\.c:1: error: no good"):
        build_bindings(loop)


def test_another_compiler_makes_its_own(cache, tmp_path, monkeypatch, quick):
    first = build_loop()
    monkeypatch.setenv("CXX", _compiler(tmp_path / "bin", "second"))
    second = build_loop()
    assert second.read_text() == "second\n" * 1000
    monkeypatch.setenv("CXX", str(tmp_path / "bin" / "first"))
    monkeypatch.setattr(tools, "call", lambda *_, **__: pytest.fail("a tool ran"))
    assert build_loop() == first


def test_more_flags_for_the_compiler_make_another(cache, tmp_path, monkeypatch):
    text = 'if [ "$1" = --version ]; then echo 1; exit; fi\n' \
           'all="$*"\nwhile [ "$1" != -o ]; do shift; done\necho "$all" > "$2"\n'  # fmt: skip
    monkeypatch.setenv("CXX", str(_tool(tmp_path / "bin", "telling", text)))
    made = {}
    for flags in ("", "-O1 -g"):
        monkeypatch.setenv("BENTPIPE_CXXFLAGS", flags)
        made[flags] = (build_loop(), build_model(SMALL, "native"))
        for file in made[flags]:
            optimised = [word for word in file.read_text().split() if word.startswith(("-O", "-g"))]
            assert optimised[1:] == flags.split()
    assert not {*made[""]} & {*made["-O1 -g"]}


def test_an_error_ends_the_tools_that_run_beside(tmp_path):
    """It comes when one of two has begun another that never ends by itself, and others wait their turn."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with pytest.raises(ZeroDivisionError), tools.side_by_side() as pool:
        jobs = [pool.submit(tools.call, ["sh", "-c", f"echo begun > {fifo}; sleep 1000000; :"])]
        jobs += [pool.submit(tools.call, ["sleep", "1000000"]) for _ in range(3)]
        assert fifo.read_text() == "begun\n"
        raise ZeroDivisionError
    assert jobs[0].result()[0] == -signal.SIGKILL
    assert all(job.cancelled() or job.result()[0] == -signal.SIGKILL for job in jobs)
    assert tools.call(["true"])[0] == 0


def test_an_error_in_a_block_within_another_ends_all_until_the_outer_one_is_left():
    with pytest.raises(ZeroDivisionError), tools.side_by_side():
        with pytest.raises(ZeroDivisionError), tools.side_by_side():
            raise ZeroDivisionError
        assert tools.call(["sleep", "1000000"])[0] == -signal.SIGKILL
        raise ZeroDivisionError
    assert tools.call(["true"])[0] == 0


def test_garbage_is_searched_for_again_when_the_last_of_several_is_done():
    assert gc.isenabled()
    with pytest.raises(ZeroDivisionError), tools.uncollected():
        with tools.uncollected():
            assert not gc.isenabled()
        assert not gc.isenabled()
        raise ZeroDivisionError
    assert gc.isenabled()
    gc.disable()
    try:
        with tools.uncollected():
            pass
        assert not gc.isenabled()  # nobody had it done before
    finally:
        gc.enable()


@pytest.mark.skipif(
    platform.machine() != "x86_64" or not shutil.which("objdump") or "clang" in tools.compiler_version(),
    reason="reads what GCC makes for x86",
)
def test_the_loop_of_many_nodes_fetches_the_next_one_ahead():
    """A compiler may leave out what only fetches, which no result shows: then 120 nodes took a tenth longer."""
    command = ["objdump", "-d", "--no-show-raw-insn", build_loop()]
    listed = subprocess.run(command, capture_output=True, text=True, check=True)
    fetches = {}
    for name, text in re.findall(r"<(\S+)>:\n(.*?)\n\n", listed.stdout + "\n\n", re.DOTALL):
        if "Loop7advance" in name:
            fetches["TimingWheel" if "TimingWheel" in name else "SmallEventQueue"] = text.count("prefetch")
    assert fetches["TimingWheel"] > fetches["SmallEventQueue"]  # which has those of cells alone


def test_what_two_want_at_once_is_made_once(cache, monkeypatch):
    going_on, made, got, locked = threading.Event(), [], [], tools._locked

    def build(folder):
        made.append(folder)
        if len(made) == 1:
            second.start()
            going_on.wait()  # the second one waits, or builds too
        going_on.set()
        (folder / "file").write_text("made")
        return folder / "file"

    def watched(file):
        held = locked(file)
        if not held:
            going_on.set()
        return held

    monkeypatch.setattr(tools, "_locked", watched)
    second = threading.Thread(target=lambda: got.append(Cache().make("file", build)))
    got.append(Cache().make("file", build))
    second.join()
    assert len(made) == 1
    assert got == [cache / "file"] * 2
    assert {file.name for file in cache.iterdir()} == {"file", "file.sha256"}


def test_who_waits_for_another_gives_up_with_the_rest(tmp_path):
    def enter():
        with tools.alone(tmp_path / "taken"):
            return "in"

    with pytest.raises(ZeroDivisionError), tools.alone(tmp_path / "taken"), tools.side_by_side() as pool:
        job = pool.submit(enter)
        while not (job.running() or job.done()):
            pass
        raise ZeroDivisionError
    with pytest.raises(ToolError, match="given up while another process makes taken"):
        job.result()
    assert enter() == "in"


def test_force_empties_a_damaged_cache(cache, quick):
    build_loop().write_bytes(b"")
    Cache().clear()
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
    assert [file.name for file in cache.iterdir()] in ([], ["digests.json"])


def test_a_cache_that_cannot_be_made(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("BENTPIPE_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(CacheError, match=r"cannot be made .*set BENTPIPE_CACHE"):
        build_loop()


def test_cache_folder_by_environment(monkeypatch, tmp_path):
    monkeypatch.delenv("BENTPIPE_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "bentpipe"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == type(tmp_path)(os.path.expanduser("~/.cache/bentpipe"))
