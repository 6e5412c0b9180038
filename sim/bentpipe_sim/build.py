"""Building of nodes: one shared library per shape and engine, kept in the cache.

An engine makes a source of a component and a library of the source: ``native`` C++ straight from Amaranth's netlist
(:mod:`bentpipe_sim.native`), ``verilator`` Amaranth's own Verilog (:mod:`bentpipe_sim.verilated`), the reference.

A model is named by the hash of its source, the flags and the tools' versions. A small index leads from the
hash of the sources and the shape to the models that each version of the tools has made of them, so that a second run
neither elaborates nor compiles anything; where there are no tools, what any version has made will do. They lie in
:mod:`bentpipe_sim.cache`.
"""

from __future__ import annotations

import importlib.metadata
import inspect
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from . import verilated
from .bindings import build_bindings, build_loop
from .cache import Cache
from .digests import digest, digest_of
from .errors import ToolError
from .native import library
from .tools import CSRC, side_by_side, uncollected

__all__ = [
    "DEFAULT_SHAPES",
    "EngineName",
    "Shape",
    "build_all",
    "build_loop",
    "build_model",
    "chosen_engine",
]

EngineName = Literal["native", "verilator"]
_ENGINES = {"native": library, "verilator": verilated}


def chosen_engine() -> EngineName:
    """Return the engine of ``$BENTPIPE_ENGINE``, else "native".

    Raises
    ------
    ToolError
        There is no such engine.
    """
    named = os.environ.get("BENTPIPE_ENGINE") or "native"
    for engine in get_args(EngineName):
        if named == engine:
            return engine
    raise ToolError(f"BENTPIPE_ENGINE is {named!r}, and the engines are {', '.join(get_args(EngineName))}")


@dataclass(frozen=True)
class Shape:
    """The shape of a node, which is fixed when it is built: its kind and the parameters of its component.

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

    def component(self, width: int | None = None) -> Any:
        """Return the node; ``width`` of its datapath is 32 or 416 bits, the wide one if not given."""
        from bentpipe_hdl import nodes
        from bentpipe_hdl.cell import WIDE

        classes = {"nic": nodes.Nic, "switch": nodes.Switch, "link": nodes.Link, "sonet": nodes.SonetLine}
        return classes[self.kind](width=width or WIDE, **dict(self.parameters))

    def __str__(self) -> str:
        inside = ", ".join(f"{name}={value}" for name, value in self.parameters)
        return f"{self.kind}({inside})"


DEFAULT_SHAPES = (
    Shape.of("nic", vcs=64),
    Shape.of("switch", vcs=64, cells=8192, ports=4),
    Shape.of("link"),
)
"""The shapes that the catalogue uses."""


def _rtl(engine: EngineName) -> str:
    """Return the digest of all that decides a model, except its shape and the tools."""
    import bentpipe_hdl

    rtl, here = Path(str(bentpipe_hdl.__file__)).parent, Path(__file__).parent
    makers = ["build.py", "tools.py", *_ENGINES[engine].MAKERS]
    return digest_of([*sorted(rtl.rglob("*.py")), *(here / name for name in makers)])


def _outside(shape: Shape) -> list[Path]:
    """Return the sources of a switch's options from plugins."""
    from bentpipe_hdl.switch.options import options_of, sources_of

    return sources_of(options_of(dict(shape.parameters).get("options", 0))) if shape.kind == "switch" else []


def build_model(shape: Shape, engine: EngineName | None = None) -> Path:
    """Return the shared library of a node; elaborated and compiled only if it is not in the cache.

    Raises
    ------
    ToolError, CacheError
    """
    engine = engine or chosen_engine()
    return _build_model(shape, engine, _rtl(engine))


def _build_model(shape: Shape, engine: EngineName, sources: str) -> Path:
    """Return the library as :func:`build_model` does; ``sources`` is the digest of :func:`_rtl`, which takes most
    time."""
    own = _outside(shape) if isinstance(shape, Shape) else [Path(inspect.getfile(type(shape)))]  # of tests
    sources = digest(sources, digest_of(own)) if own else sources
    cache, maker = Cache(), _ENGINES[engine]
    amaranth = importlib.metadata.version("amaranth")
    index = f"index-{digest(engine, sources, str(shape), amaranth)}.json"
    known = cache.find(index, maker.tools)
    if known:
        return known
    versions = maker.tools()
    with cache.alone(index):
        known = cache.find(index, maker.tools)
        if known:
            return known
        with uncollected():
            source = maker.source(shape.component(), shape.kind)
        headers = [(CSRC / name).read_bytes() for name in maker.HEADERS]
        name = f"{shape.kind}-{engine}-{digest(source, versions, *maker.FLAGS, *headers)}.so"
        model = cache.make(name, lambda folder: maker.compiled(source, folder, str(shape)))
        cache.note(index, versions, name, str(shape))
    return model


def build_all(
    shapes: Iterable[Shape] = DEFAULT_SHAPES,
    engine: EngineName | None = None,
    *,
    progress: Callable[[str], None] | None = None,
) -> dict[Shape, Path]:
    """Build the event loop and these shapes, two at a time; ``progress`` gets the name of each as it is done.

    Returns
    -------
    dict of Shape to Path
        The shared library of each shape.
    """
    engine = engine or chosen_engine()
    sources = _rtl(engine)
    libraries: dict[Shape, Path] = {}
    with side_by_side() as pool:
        loop = pool.submit(_loop)
        jobs = {shape: pool.submit(_build_model, shape, engine, sources) for shape in dict.fromkeys(shapes)}
        loop.result()
        if progress:
            progress("event loop")
        for shape, job in jobs.items():
            libraries[shape] = job.result()
            if progress:
                progress(str(shape))
    return libraries


def _loop() -> Path:
    loop = build_loop()
    build_bindings(loop)
    return loop
