"""The native engine: random designs against Amaranth's simulator, the catalogue against Verilator, mutations.

``python -m soak.native`` runs ``designs``, ``mutations`` and ``catalogue``, or the one that is named. Exit code 1: a
design or a run is different, or a mutation wasn't noticed.
"""

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from bentpipe.experiment.document.catalogue import catalogue
from bentpipe_sim import native
from bentpipe_sim.build import build_model
from digests import SETS, digests
from models.lockstep import side_by_side
from models.random_design import RandomShape, stimulus

CLOCKS = 600

MUTATIONS = (
    ("graph", "if bool(low) != wanted:", "if bool(low) == wanted:", "a constant in a condition, the other way round"),
    ("graph", "default, kept = value, []", "default, kept = value, kept", "what is overridden stays"),
    ("graph", "kept.append((condition, value))", "kept.insert(0, (condition, value))", "the earlier over the later"),
    ("design", "new, cut(before, b - low, high - b)", "new, cut(before, 0, high - b)", "a part's upper neighbours"),
    ("design", "found.append(cut(self.field(index, k, first, size), a - first, b - a))",
     "found.append(cut(self.field(index, k, first, size), 0, b - a))", "a part of a field from its lowest bit on"),
    ("guards", "return (value == known) == wanted", "return (value == known) != wanted",
     "a comparison decided wrongly"),
    ("guards", "holds = self.bit(node.args[at], context)\n            if holds is None:\n                return same",
     "holds = self.bit(node.args[at], context)\n            if holds is None:\n                continue",
     "a choice decided too early"),
    ("schedule", "contexts = []\n        for k, condition in enumerate(node.args):",
     "contexts = []\n        for k, condition in enumerate(node.args[:1]):", "only the first of a memory's writers"),
    ("schedule", "return sorted(found, key=lambda register: register.name)", "return []", "no copies of registers"),
    ("schedule", "update(k for k in own if context", "update(k for k in own[:1] if context",
     "a value read before its last assignment"),
    ("schedule", "return any(write[:3] == place and not distinct(write[3], item.args[0]) for write in writes)",
     "return False", "a memory's word read behind what writes it"),
    ("cpp", 'return text if fits or loose or width in (32, 64) else f"({text}) & {_mask(width)}"', "return text",
     "sums that keep their carries"),
    ("cpp", "self.found -= self.exact\n", "pass\n", "values that keep their carries where bits above are wanted"),
    ("cpp", 'text = f"((uint64_t)extend<{size}>({text}) & {_mask(size + again)})"',
     'text = f"((uint64_t){text} & {_mask(size + again)})"', "signed numbers without their signs"),
)  # fmt: skip
"""A module of the engine, what is in it, what is put in its place, and what that does."""


def designs(seeds) -> bool:
    for seed in seeds:
        rng, shape = random.Random(seed), RandomShape(seed)
        try:
            side_by_side(shape, CLOCKS, lambda clock, before, rng=rng: stimulus(rng), build_model(shape, "native"))
        except AssertionError as error:
            print(f"random design {seed} is different: {str(error).splitlines()[0]}", flush=True)
            return False
    print(f"{len(seeds)} random designs: the same as Amaranth's simulator")
    return True


def changed_text(module, old, new) -> str:
    """A module with a mutation; AssertionError: there is nothing to mutate."""
    text = (Path(native.__file__).parent / f"{module}.py").read_text()
    assert text.count(old) == 1, f"{module}.py has {old!r} {text.count(old)} times"
    return text.replace(old, new)


def mutated(module, old, new, folder) -> dict[str, str]:
    """The environment of a process with this mutation; AssertionError: there is nothing to mutate."""
    changed, package = changed_text(module, old, new), folder / "bentpipe_sim"
    shutil.copytree(Path(native.__file__).parents[1], package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "native" / f"{module}.py").write_text(changed)
    paths = [str(folder), os.environ.get("PYTHONPATH", ""), *sys.path]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), "BENTPIPE_CACHE": str(folder / "cache")}


def mutations() -> bool:
    missed = 0
    for module, old, new, what in MUTATIONS:
        with tempfile.TemporaryDirectory() as name:
            environment = mutated(module, old, new, Path(name))
            command = [sys.executable, "-m", "soak.native", "designs", "--seeds", "12"]
            done = subprocess.run(command, env=environment, capture_output=True, text=True)
        told = (done.stdout + done.stderr).strip().splitlines()[-1:]
        missed += done.returncode == 0
        print(f"{module}, {what}: {told[0][:100] if done.returncode else 'NOT NOTICED'}", flush=True)
    print(f"{len(MUTATIONS)} mutations of the engine, {missed} not noticed")
    return not missed


def both(experiment) -> list[tuple[dict, dict]]:
    """Return the digests of all wires and the counters of all nodes at the end, for each engine."""
    found = []
    for engine in ("native", "verilator"):
        os.environ["BENTPIPE_ENGINE"] = engine
        counters = {}
        wires = digests(experiment, lambda network: counters.update(all_counters(network)))  # noqa: B023
        found.append((wires, counters))
    del os.environ["BENTPIPE_ENGINE"]
    return found


def all_counters(network) -> dict[str, dict]:
    return {node.name: node.counters() for node in network.nodes}


def entries(names, of) -> bool:
    same = True
    for entry in names or catalogue():
        for name, experiment in SETS[of].runs(entry):
            native, reference = both(
                replace(experiment, splitting=None, rare_timeout=None)
            )  # trials begin from states: native alone
            same &= native == reference
            print(f"{name}: {'the same' if native == reference else 'DIFFERENT'}", flush=True)
    return same


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m soak.native")
    parser.add_argument("what", nargs="?", choices=("designs", "mutations", "catalogue"), help="default: all of them")
    parser.add_argument("--seeds", type=int, default=60, help="random designs")
    parser.add_argument("--entry", action="append", help="of the catalogue (default: all)")
    parser.add_argument("--set", choices=SETS, default="short", help="how long its entries run (default: short)")
    given = parser.parse_args()
    jobs = {
        "designs": lambda: designs(range(given.seeds)),
        "mutations": mutations,
        "catalogue": lambda: entries(given.entry, given.set),
    }
    results = [jobs[name]() for name in ([given.what] if given.what else jobs)]  # all, whatever the first ones say
    return int(not all(results))


if __name__ == "__main__":
    sys.exit(main())
