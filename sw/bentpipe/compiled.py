"""The host side as machine code: mypyc compiles TCP, IP, applications, host engine, and what of a network handles their
PDUs, from their own source.

Plain Python is the reference; the compiled form does the same, bit for bit, in a third of the time. It lies in the
cache of the models (``hosts-HASH-COMPILER``), named by the hash of the sources, mypy's version, Python's ABI and
flags, and by the compiler: a form of other sources is never found, and where there is no compiler, that of any will do.
``bentpipe run``, ``build`` and ``bench`` make it where it is missing, as a folder written beside its place and renamed.
A finder in ``sys.meta_path`` gives each of these modules, all of them in one form; which one is decided once a process,
when the first is imported:

``BENTPIPE_HOSTS`` unset or ``auto``
    compiled if it is in the cache, else plain
``plain``
    plain
``compiled``
    compiled; made if it is missing, and an error if it cannot be
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
import sys
import sysconfig
import tempfile
import threading
from collections.abc import Callable
from functools import cache
from importlib.machinery import ModuleSpec
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final, TypeVar

__all__ = ["bare", "build", "describe", "find_spec", "prepare", "why_plain"]

T = TypeVar("T")

PACKAGES: Final = ("tcp", "tcp.growth", "tcp.recovery", "ip", "apps", "hosts")
INTERPRETED: Final = frozenset(
    {
        "bentpipe.apps.registry",
        "bentpipe.apps.settings",
        "bentpipe.hosts.bench",
        "bentpipe.hosts.config",
        "bentpipe.hosts.profiles",
        "bentpipe.tcp.config",
    }
)
"""Modules of these packages that mypyc does not get: nothing of them runs for each segment."""
BORDER: Final = "bentpipe_sim.pdus"
"""The network's side of their border. Hosts do not import it, so that it does not matter whether it was imported before
:mod:`bentpipe`, and so is plain."""
_BESIDE: Final = ("bentpipe.declarations", "bentpipe.errors", "bentpipe_sim.interface", "bentpipe_sim.pattern")
"""What the compiled modules import and mypyc reads for its types."""
_PACKAGE: Final = "bentpipe/__init__.py"
_UNITS: Final = 4
"""Files that the C of a library is compiled as, two at a time."""
_FLAGS: Final = ("-O1", "-fwrapv", "-fPIC", "-DNDEBUG", "-w")
"""-O2 takes twice as long to compile and gains nothing (``python -m bentpipe.hosts.bench``)."""
_MODES: Final = ("auto", "plain", "compiled")


class _NotMade(Exception):
    """Why there is no compiled form: one line."""


def _mode() -> str:
    mode = os.environ.get("BENTPIPE_HOSTS") or "auto"
    if mode not in _MODES:
        from bentpipe.errors import BentpipeError

        raise BentpipeError(f"BENTPIPE_HOSTS is {mode!r}; it can be {', '.join(_MODES)}")
    return mode


@cache
def _modules() -> tuple[str, ...]:
    """Return the names of the modules that are compiled."""
    root = Path(__file__).parent
    folders = {package: root / package.replace(".", "/") for package in PACKAGES}
    names = (f"bentpipe.{p}.{file.stem}" for p, folder in folders.items() for file in sorted(folder.glob("*.py")))
    return (*(name for name in names if name not in INTERPRETED and not name.endswith(".__init__")), BORDER)


@cache
def _sources() -> dict[str, Path]:
    """Return every file that mypyc reads, by its path for mypyc."""
    import bentpipe_sim

    roots = {"bentpipe": Path(__file__).parent, "bentpipe_sim": Path(str(bentpipe_sim.__file__)).parent}
    names = ["bentpipe.__init__", "bentpipe_sim.__init__", *(f"bentpipe.{package}.__init__" for package in PACKAGES)]
    names += [*_modules(), *sorted(INTERPRETED), *_BESIDE]
    paths = [name.replace(".", "/") + ".py" for name in names]
    return {path: roots[path.split("/")[0]] / path.split("/", 1)[1] for path in paths}


@cache
def _digests() -> dict[str, str]:
    """Return the SHA-256 of each of these files, as it is when first asked for. The package itself is no more than its
    name here."""
    from bentpipe_sim.digests import sha256_of

    found = dict(zip(_sources(), sha256_of(_sources().values()), strict=True))
    return {**found, _PACKAGE: hashlib.sha256().hexdigest()}


def _content(path: str) -> bytes:
    """Return what mypyc gets of a file: that of which the digest was made."""
    content = b"" if path == _PACKAGE else _sources()[path].read_bytes()
    if hashlib.sha256(content).hexdigest() != _digests()[path]:
        raise _NotMade(f"{_sources()[path]} was changed meanwhile; start again")
    return content


def _compiler() -> str:
    from bentpipe_sim.errors import ToolError
    from bentpipe_sim.tools import compiler

    try:
        return compiler()
    except ToolError as error:
        raise _NotMade(str(error)) from None


def _stem() -> str:
    """Return the begin of the names of all forms that fit these sources."""
    try:
        mypy = version("mypy")
    except PackageNotFoundError:
        raise _NotMade("mypy is missing (pip install 'mypy[mypyc]')") from None
    parts = [mypy, sys.version, str(sysconfig.get_config_var("EXT_SUFFIX")), *_FLAGS]
    total = hashlib.sha256(repr(parts).encode())
    for path, one in _digests().items():
        total.update(f"\0{path}\0{one}".encode())
    return f"hosts-{total.hexdigest()[:32]}"


def _name() -> str:
    """Return the name of the form that this compiler makes."""
    cxx = Path(str(shutil.which(_compiler()))).resolve()
    about = cxx.stat()
    return f"{_stem()}-{hashlib.sha256(repr((cxx, about.st_size, about.st_mtime_ns)).encode()).hexdigest()[:8]}"


def _whole(folder: Path) -> dict[str, Path] | None:
    """Return the files of a compiled form by module; None if it is not there, or damaged."""
    from bentpipe_sim.digests import sha256_of

    try:
        entries = json.loads((folder / "modules.json").read_text())
        if sha256_of(folder / file for file, _ in entries.values()) != [digest for _, digest in entries.values()]:
            return None
    except (OSError, ValueError, TypeError, AttributeError):
        return None
    return {module: folder / file for module, (file, _) in entries.items()}


def _find() -> dict[str, Path] | None:
    from bentpipe_sim.digests import cache_folder

    folder = cache_folder()
    try:
        return _whole(folder / _name())
    except _NotMade:
        found = filter(None, map(_whole, sorted(folder.glob(f"{_stem()}-*"))))
        form = next(found, None)
        if form is None:
            raise
        return form


def build() -> Path:
    """Make the compiled form, unless it is in the cache; its folder.

    Raises
    ------
    BentpipeError
        Something is missing or failed.
    """
    try:
        return _build()
    except _NotMade as why:
        from bentpipe.errors import BentpipeError

        raise BentpipeError(f"The hosts can't be compiled: {why}") from None


def _build() -> Path:
    from bentpipe_sim.digests import cache_folder
    from bentpipe_sim.tools import alone

    cache = cache_folder()
    name = _name()
    if _whole(cache / name) is not None:
        return cache / name
    if not (Path(sysconfig.get_path("include")) / "Python.h").is_file():
        raise _NotMade("Python.h is missing (Debian, Ubuntu: apt install python3-dev)")
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with alone(cache / f"{name}.lock"), tempfile.TemporaryDirectory(prefix="making-", dir=cache) as made:
            if _whole(cache / name) is not None:  # another process has made it meanwhile
                return cache / name
            out = Path(made) / name
            _compile(Path(made), out, name.replace("-", "_"))
            _place(out, cache / name)
    except OSError as error:
        raise _NotMade(f"{error.filename or cache}: {error.strerror or error}") from None
    if _whole(cache / name) is None:
        raise _NotMade(f"{cache / name} can't be read back")
    return cache / name


def _place(made: Path, place: Path) -> None:
    """Put a whole folder in its place; if another process was faster, its folder stays."""
    try:
        made.rename(place)
    except OSError:
        if _whole(place) is None:  # damaged
            place.rename(made.with_suffix(".damaged"))
            made.rename(place)


def _compile(work: Path, out: Path, group: str) -> None:
    """Run mypyc and the C compiler on a copy of the sources; the modules and ``modules.json`` go to ``out``."""
    for path in _sources():
        file = work / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(_content(path))
    files = [name.replace(".", "/") + ".py" for name in _modules()]
    environment = {k: v for k, v in os.environ.items() if k not in ("MYPYPATH", "PYTHONPATH", "MYPY_CONFIG_FILE_DIR")}
    _call([sys.executable, "-P", __file__, group, *files], "mypyc", cwd=work, env=environment)
    libraries = json.loads((work / "extensions.json").read_text())
    out.mkdir()
    compile_c = [_compiler(), "-x", "c", *_FLAGS, f"-I{sysconfig.get_path('include')}"]
    platinclude = sysconfig.get_path("platinclude")
    if platinclude != sysconfig.get_path("include"):
        compile_c.append(f"-I{platinclude}")

    def compile_one(job: tuple[str, list[str], str]) -> None:
        source, include, made = job
        _call([*compile_c, *(f"-I{i}" for i in include), "-c", source, "-o", made], f"compiling {source}", cwd=work)

    jobs = []
    objects: dict[str, list[str]] = {}
    for library in libraries:
        for source in _units(work, library["name"], library["sources"]):
            made = f"{len(jobs)}.o"
            jobs.append((source, library["include_dirs"], made))
            objects.setdefault(library["name"], []).append(made)
    jobs.sort(key=lambda job: -(work / job[0]).stat().st_size)
    entries = {}
    link = [_compiler(), "-shared", *(("-undefined", "dynamic_lookup") if sys.platform == "darwin" else ())]
    from bentpipe_sim.tools import side_by_side

    with side_by_side() as pool:
        for done in [pool.submit(compile_one, job) for job in jobs]:
            done.result()
        for name, made in objects.items():
            file = name + str(sysconfig.get_config_var("EXT_SUFFIX"))
            _call([*link, *made, "-o", str(out / file)], f"linking {name}", cwd=work)
            entries[name] = (file, hashlib.sha256((out / file).read_bytes()).hexdigest())
    (out / "modules.json").write_text(json.dumps(entries, indent=1) + "\n")


def _units(work: Path, name: str, sources: list[str]) -> list[str]:
    """Return the same sources in a few files of about the same size.

    A third of the time would be spent on the headers with which each file begins. mypyc puts all sources into one file
    if it is not asked for several, so no two names are alike.
    """
    if len(sources) <= _UNITS:
        return sources
    parts: list[list[str]] = [[] for _ in range(_UNITS)]
    sizes = [0] * _UNITS
    for source in sorted(sources, key=lambda each: -(work / each).stat().st_size):
        least = sizes.index(min(sizes))
        parts[least].append(source)
        sizes[least] += (work / source).stat().st_size
    units = [f"{name}.{k}.c" for k in range(_UNITS)]
    for unit, part in zip(units, parts, strict=True):
        (work / unit).write_text("".join(f'#include "{source}"\n' for source in part))
    return units


def _call(command: list[str], what: str, **options: Any) -> None:
    from bentpipe_sim.tools import call

    code, out, err = call(command, **options)
    if code:
        lines = [line.strip() for line in (out + err).splitlines() if line.strip()]
        errors = [line for line in lines if "error" in line.lower()] or lines[-1:] or ["no message"]
        raise _NotMade(f"{what} failed: {errors[0]}")


class _Finder:
    """The finder of the host side's modules, all compiled or all plain.

    Members
    -------
    form : dict or None
        The compiled files by module; None: plain.
    reason : str
        Why they are plain; empty if they were chosen to be.
    found : dict or None
        The compiled files that :func:`prepare` has found; None: not looked for, or not there.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._decided = False
        self.form: dict[str, Path] | None = None
        self.reason = ""
        self.found: dict[str, Path] | None = None

    def find_spec(self, name: str) -> ModuleSpec | None:
        if not self._decided and name not in _modules():
            return None
        self.decide()
        file = self.form.get(name) if self.form else None
        return None if file is None else importlib.util.spec_from_file_location(name, file)

    def decide(self) -> None:
        """Choose the form of the hosts, compiled or plain, once."""
        with self._lock:
            if self._decided:
                return
            mode = _mode()
            if mode != "plain":
                try:
                    self.form = self.found or _find()
                    if self.form is None:
                        self.reason = "not compiled yet"
                except _NotMade as why:
                    self.reason = str(why)
            if mode == "compiled" and self.form is None:
                self.form, self.reason = _whole(build()), ""
            self._decided = True


_finder: Final = _Finder()


def find_spec(name: str) -> ModuleSpec | None:
    """Return where a module of the host side is in its compiled form; None: the plain one. Asked at each import."""
    return _finder.find_spec(name)


def prepare(show_progress: bool = False) -> str | None:
    """Make the compiled form if it may be used and is missing. Before a module of the host side is imported.

    Returns
    -------
    str or None
        Why the hosts are going to be plain although nobody asked for that; "" if they will be compiled; None if plain
        was asked for.
    """
    if _mode() == "plain":
        return None
    try:
        _finder.found = _find()
        if _finder.found is None:
            from bentpipe.progress import waiting

            with waiting("Compiling the hosts, once; takes some 15 seconds", show_progress):
                _build()
    except _NotMade as why:
        if _mode() == "compiled":
            build()
        return str(why)
    return ""


def bare(kind: type[T]) -> T:
    """Return an instance of a class without any of its members: ``__init__`` is not called.

    The caller gives it all of them.
    """
    if not hasattr(kind, "__mypyc_attrs__"):
        return object.__new__(kind)
    return _maker()(kind)


@cache
def _maker() -> Callable[[type[Any]], Any]:
    import ctypes

    assert _finder.form is not None
    (group,) = (file for module, file in _finder.form.items() if module.endswith("__mypyc"))
    try:
        make = ctypes.PyDLL(str(group)).CPy_SetupObject
    except AttributeError:
        from bentpipe.errors import BentpipeError

        raise BentpipeError(f"mypyc {version('mypy')} gives no way to make objects: set BENTPIPE_HOSTS=plain") from None
    make.argtypes, make.restype = [ctypes.py_object], ctypes.py_object
    return make


def describe() -> str:
    """Return the form that this process uses: ``plain Python``, or ``compiled with mypy`` and its version."""
    _finder.decide()
    return f"compiled with mypy {version('mypy')}" if _finder.form else "plain Python"


def why_plain() -> str:
    """Return the reason why this process does not use the compiled form; "" if it does, or if plain was asked for."""
    _finder.decide()
    return _finder.reason


def _generate(group: str, files: list[str]) -> None:
    """Generate C of these files, and ``extensions.json`` for the compiler; runs in a process of its own."""
    from mypyc.build import mypycify

    options = ["--config-file=", "--cache-dir=/dev/null", "--no-site-packages", "--ignore-missing-imports"]
    extensions = mypycify([*options, *files], opt_level="1", multi_file=True, group_name=group, target_dir="c")
    listed = [{"name": e.name, "sources": e.sources, "include_dirs": e.include_dirs} for e in extensions]
    Path("extensions.json").write_text(json.dumps(listed))


if __name__ == "__main__":
    _generate(sys.argv[1], sys.argv[2:])
