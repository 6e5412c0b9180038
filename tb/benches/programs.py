"""Small C++ programs that test the event loop's own headers: compiled once, kept with the compiled nodes."""

from __future__ import annotations

from pathlib import Path

from bentpipe_sim.cache import Cache
from bentpipe_sim.digests import digest, digest_of
from bentpipe_sim.tools import CSRC, compiler, compiler_version, run

__all__ = ["program_of"]

FLAGS = ("-std=gnu++17", "-O1")


def program_of(name: str, text: str, *sources: Path, flags: tuple[str, ...] = ()) -> Path:
    """Return the program of this C++ text and further sources, in the cache by all that decides what it is."""
    headers = sorted(CSRC.glob("*.h*"))
    made_of = digest(text, digest_of([*headers, *sources]), compiler_version(), *FLAGS, *flags)

    def make(folder: Path) -> Path:
        source = folder / f"{name}.cpp"
        source.write_text(text)
        names = map(str, [source, *sources])
        run([compiler(), *FLAGS, *flags, f"-I{CSRC}", *names, "-o", str(folder / "program")], f"compiling {name}")
        return folder / "program"

    return Cache().make(f"bench-program-{name}-{made_of}", make)
