"""The event loop's library (``csrc``), and how Python calls it.

cffi makes an extension module of the two headers, and ``csrc/calls.c`` has the functions that hosts call for each PDU.
Where Python.h or a compiler is missing, or the system is not Linux, cffi calls the library through libffi instead: the
same functions, with more around each call.
"""

from __future__ import annotations

import importlib.metadata
import re
import sys
import sysconfig
from pathlib import Path
from typing import Any, Final

from cffi import FFI

from bentpipe_hdl.ticks import RATIO

from .cache import Cache
from .digests import digest, digest_of
from .errors import ToolError
from .tools import (
    CSRC,
    CXX_FLAGS,
    compiler,
    compiler_version,
    imported,
    more_flags,
    run,
    side_by_side,
)

__all__ = ["bind", "build_bindings", "build_loop", "functions"]

_HEADERS: Final = ("network.h", "attach.h")
_MODULE: Final = "_bentpipe_loop"
_CALLS: Final = "_bentpipe_calls"
_LOOP: Final = "loop.cpp"
_LOOP_FLAGS: Final = (*CXX_FLAGS, "-O3")
_FLAGS: Final = ("-x", "c", "-O1", "-fPIC", "-shared", "-w", f"-DBP_PS={RATIO[0]}", f"-DBP_TICKS={RATIO[1]}")


def bind() -> tuple[Any, Any, Any]:
    """Return cffi's ``ffi`` and library, and the module ``csrc/calls.c`` or None; missing parts are compiled."""
    loop = build_loop()
    module = build_bindings(loop)
    if module is None:
        ffi = FFI()
        ffi.cdef(_declarations())
        return ffi, ffi.dlopen(str(loop)), None
    bound = imported(_MODULE, module)
    return bound.ffi, bound.lib, imported(_CALLS, module)


def functions() -> list[str]:
    """Return the names of the library's functions that take a network, without ``bp_``."""
    return re.findall(r"\bbp_(\w+)\(bp_net\*[,)]", _declarations())


def build_loop() -> Path:
    """Return the shared library of the event loop."""
    cache = Cache()
    files = sorted(file for file in CSRC.iterdir() if file.suffix in (".cpp", ".hpp", ".h"))
    text = digest_of(files)
    index = f"index-{digest(text, *_LOOP_FLAGS)}.json"
    known = cache.find(index, compiler_version)
    if known:
        return known
    version = compiler_version()
    name = f"network-{digest(text, version, *_LOOP_FLAGS)}.so"

    def build(folder: Path) -> Path:
        rest, made = folder / "rest.cpp", folder / "network.so"
        sources = [file for file in files if file.suffix == ".cpp"]
        # But for the loop itself as one source: most of the time goes to what all of them include
        rest.write_text("".join(f'#include "{file.name}"\n' for file in sources if file.name != _LOOP))
        flags = [*_LOOP_FLAGS, *more_flags(), f"-I{CSRC}"]

        def compiled(source: Path) -> str:
            part = str(folder / f"{source.stem}.o")
            run([compiler(), *flags, "-c", str(source), "-o", part], "compiling the event loop")
            return part

        with side_by_side() as pool:
            parts = list(pool.map(compiled, (rest, CSRC / _LOOP)))
        run([compiler(), *flags, *parts, "-o", str(made), "-ldl", "-pthread"], "linking the event loop")
        return made

    loop = cache.make(name, build)
    cache.note(index, version, name, "event loop")
    return loop


def build_bindings(loop: Path) -> Path | None:
    """Return the extension module of a library, which is beside it; None if it cannot be made.

    Raises
    ------
    ToolError
        It cannot be compiled, although all is there.
    CacheError
    """
    include = sysconfig.get_path("include")
    if sys.platform != "linux" or not (Path(include) / "Python.h").is_file():
        return None
    cache = Cache()
    calls = CSRC / "calls.c"
    parts = (loop.name, importlib.metadata.version("cffi"), sys.version, include, calls.read_text(), *_FLAGS)
    index = f"index-{digest(*parts)}.json"
    known = cache.find(index, compiler_version)
    if known:
        return known
    try:
        version = compiler_version()
    except ToolError:
        return None
    name = f"bindings-{digest(version, *parts)}.so"

    def build(folder: Path) -> Path:
        source, made = folder / f"{_MODULE}.c", folder / f"{_MODULE}.so"
        ffi = FFI()
        ffi.cdef(_declarations())
        included = "".join(f'#include "{header}"\n' for header in _HEADERS)
        ffi.set_source(_MODULE, included, compiler_verbose=False)  # else it prints, where --json does
        ffi.emit_c_code(str(source))
        linked = [f"-L{loop.parent}", f"-l:{loop.name}", "-Wl,-rpath,$ORIGIN"]
        command = [
            compiler(),
            *_FLAGS,
            *more_flags(),
            f"-I{CSRC}",
            f"-I{include}",
            str(source),
            *("-x", "c"),  # g++ forgets it behind a file
            str(calls),
            "-o",
            str(made),
            *linked,
        ]
        run(command, "compiling the way to the event loop")
        return made

    module = cache.make(name, build)
    cache.note(index, version, name, "the way to the event loop")
    return module


def _declarations() -> str:
    """Return the headers as cffi reads them."""
    text = "".join((CSRC / name).read_text() for name in _HEADERS)
    header = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    skipped = ("#", 'extern "C"', "}\n")
    return "\n".join(line for line in header.splitlines() if not line.startswith(skipped) and line != "}")
