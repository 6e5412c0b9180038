"""The costs of loading, laying out and starting large networks, and of starting the command."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

__all__ = ["GROWTHS", "MOST_GROWTH", "STARTS", "document", "measure", "started"]

T = TypeVar("T")

MOST_GROWTH: Final = 2.3
"""Times that twice the size may take."""

GROWTHS: Final = {
    "hosts": ("pairs of hosts, a flow each (two hosts, two switches and a line a pair)", (125, 250, 500)),
    "flows": ("flows between ten hosts", (1250, 2500, 5000)),
}
"""What grows: its title, and the sizes that are measured, each twice the one before."""

STARTS: Final = {
    "help": ("bentpipe list", ["list"]),
    "run": ("bentpipe run of 1 ms, --no-plots", ["run", "acts-1flow", "--duration", "1 ms", "--no-plots"]),
    "plots": ("bentpipe run of 1 ms", ["run", "acts-1flow", "--duration", "1 ms"]),
}
"""Commands of which the start is most of their time: title and arguments."""


class Built(NamedTuple):
    """CPU seconds of each step in one process, and the most memory that it held."""

    load_s: float
    layout_s: float
    start_s: float
    memory_mb: float

    @property
    def whole_s(self) -> float:
        return self.load_s + self.layout_s + self.start_s


def document(what: str, size: int) -> str:
    """Return an experiment's file in which one thing has this ``size``."""
    pairs, copies = (size, 1) if what == "hosts" else (5, size // 5)
    parts = [f'[experiment]\nid = "built"\ntitle = "{size} {what}"\nduration = "1 ms"\n']
    for k in range(pairs):
        parts.append(
            f"[network.switches.w{k}]\n[network.switches.e{k}]\n"
            f'[network.lines.l{k}]\nends = ["w{k}:3", "e{k}:3"]\ndelay = "1 ms"\n'
            f'[network.hosts.a{k}]\nport = "w{k}:0"\n[network.hosts.b{k}]\nport = "e{k}:0"\n'
        )
    parts.append('[hosts.tcp]\nvariant = "reno"\nwindow = "64 kB"\n')
    parts += [
        f'[[flow]]\nsource = "a{k}"\nsink = "b{k}"\nsize = "endless"\n{f"copies = {copies}" if copies > 1 else ""}\n'
        for k in range(pairs)
    ]
    return "\n".join(parts)


def measure(what: str, size: int) -> Built:
    """Build such a network in this process. Its shapes are compiled before, in networks of the same size."""
    from bentpipe.experiment.build.network import build_network
    from bentpipe.experiment.load import load
    from bentpipe_sim.build import build_all

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "built.toml")
        file.write_text(document(what, size), encoding="utf-8")
        experiment, load_s = _timed(lambda: load(str(file)))
        network, layout_s = _timed(lambda: build_network(experiment)[0])
        build_all(network.shapes())
        _, start_s = _timed(network.start)
    return Built(load_s, layout_s, start_s, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def _timed(work: Callable[[], T]) -> tuple[T, float]:
    before = time.process_time()
    return work(), time.process_time() - before


def started(arguments: list[str]) -> float:
    """Return the CPU seconds of a command in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        out = ["--out", str(Path(folder, "run"))] if arguments[0] == "run" else []
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-m", "bentpipe", *arguments, *out], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
