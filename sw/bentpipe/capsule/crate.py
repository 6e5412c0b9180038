"""Writing a run capsule: an RO-Crate (https://w3id.org/ro/crate/1.1) of runs, as a folder or a zip file.

::

    ro-crate-metadata.json    what everything is, with the SHA-256 of each file
    README.md                 the command that rebuilds every figure
    capsule.json              each run: input, case, seed, time limit, result
    inputs/NAME.toml          the whole experiment of a run, settings included; files that it names are in inputs/files
    results/NAME/             result.json and flows.parquet of a run
    published.json            the verdict for each published figure
    environment/              versions of all packages, the machine, and the lock files of the source tree
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import zipfile
from collections.abc import Iterable, Mapping
from importlib.metadata import distributions
from pathlib import Path
from typing import Any, Final

import bentpipe
from bentpipe.capsule.toml import to_toml
from bentpipe.compare.rows import against_published
from bentpipe.compare.sides import Run, Side, read_side
from bentpipe.errors import BentpipeError
from bentpipe.experiment.document.catalogue import find
from bentpipe.experiment.run.run import versions
from bentpipe.results.folder import CATALOGUE
from bentpipe.sweeps.plan import code_version

__all__ = ["CAPSULE", "METADATA", "SCHEMA", "digest", "newest_catalogue", "verdict_of", "write_capsule"]

METADATA: Final = "ro-crate-metadata.json"
CAPSULE: Final = "capsule.json"
SCHEMA: Final = 1
"""Schema version of ``capsule.json``."""

_CRATE: Final = "https://w3id.org/ro/crate/1.1"
_LICENSE: Final = "https://spdx.org/licenses/BSD-2-Clause"
_RESULTS: Final = ("result.json", "flows.parquet")
_WHEN: Final = (1980, 1, 1, 0, 0, 0)
"""Time of each file in the zip file, so that the same capsule is the same bytes."""


def newest_catalogue(runs: Path) -> Path:
    """Return the folder of the last run of the catalogue.

    Raises
    ------
    BentpipeError
        There is none.
    """
    found = [path for path in runs.glob(f"{CATALOGUE}-*") if (path / "result.json").is_file()]
    if not found:
        raise BentpipeError(f"{runs} has no run of the catalogue: `bentpipe catalogue run` makes one")
    return max(found, key=lambda path: (path / "result.json").stat().st_mtime)


def write_capsule(folder: Path, out: Path) -> dict[str, Any]:
    """Write the capsule of all runs that are done in a folder; what ``capsule.json`` says.

    Parameters
    ----------
    folder : Path
        Of a run, of an experiment's cases, of a sweep or of the catalogue.
    out : Path
        A zip file, if its name ends with ``.zip``, else a folder; must not exist.

    Raises
    ------
    BentpipeError
        There is no run in the folder that can be done again, or a file that one needs is missing.
    """
    if out.exists():
        raise BentpipeError(f"{out}: already exists; give another --out")
    side = read_side([folder])
    work = out.with_name(f".{out.name}.part")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    try:
        about = _fill(side, work)
        if out.suffix == ".zip":
            packed = out.with_name(f".{out.name}.zip.part")
            _zip(work, packed)
            packed.replace(out)
        else:
            work.replace(out)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return about


def _fill(side: Side, work: Path) -> dict[str, Any]:
    runs, left = [], side.notes()
    for run in (run for group in side.groups for run in group.runs):
        reason = _not_repeatable(run.summary)
        if reason:
            left.append(f"{run.id}: left out, as {reason}.")
        else:
            runs.append(_put_run(run, f"{len(runs) + 1:04d}-{run.id}", work))
    if not runs:
        raise BentpipeError(f"{side.name}: has no run for a capsule{': ' if left else ''}{' '.join(left)}")
    _write_json(work / "published.json", [_published(row) for row in against_published(side)])
    _environment(work / "environment")
    about = {"schema": SCHEMA, "name": side.name, "version": code_version(), "runs": runs, "notes": left}
    _write_json(work / CAPSULE, about)
    (work / "README.md").write_text(_readme(about), encoding="utf-8")
    began = [run.summary["time"].get("started", "") for group in side.groups for run in group.runs]
    _write_json(work / METADATA, _metadata(work, about, max(began, default="")))
    return about


def _not_repeatable(summary: Mapping[str, Any]) -> str:
    """Return the reason why a run cannot be repeated; "" if it can."""
    if "attached" in summary:
        return "hosts outside took part in it"
    if (summary.get("board") or {}).get("alone"):
        return "it ran on a board by itself"
    if summary.get("board_ticks"):
        return "it ran with --board-ticks"
    if summary["status"] != "done":
        return f"it is {summary['status']}"
    return ""


def _put_run(run: Run, name: str, work: Path) -> dict[str, Any]:
    """Put a run's input and results in their places; return its entry."""
    summary = run.summary
    inputs, results = work / "inputs", work / "results" / name
    inputs.mkdir(exist_ok=True)
    results.mkdir(parents=True)
    document = _input(summary, inputs)
    (inputs / f"{name}.toml").write_text(to_toml(document), encoding="utf-8")
    for file in _RESULTS:
        if (run.folder / file).is_file():
            shutil.copy(run.folder / file, results)
    time = summary["time"]
    return {
        "name": name,
        "experiment": run.id,
        "case": run.case,
        "seed": run.seed,
        "limit_s": time["limit_s"],
        "engine": summary["versions"].get("engine", "native"),
        "input": f"inputs/{name}.toml",
        "result": f"results/{name}/result.json",
    }


def _input(summary: Mapping[str, Any], inputs: Path) -> dict[str, Any]:
    """Return the document of a run by itself: it has no cases, and the files that it names are beside it."""
    document = json.loads(json.dumps(summary["configuration"]))
    case = summary["case"]["name"] if summary.get("case") else ""
    for key in ("case", "axis", "open"):
        document.pop(key, None)
    for key in ("published", "expect") if case else ():
        if key in document:
            document[key] = [row for row in document[key] if row.get("case", "") == case]
    for row in document.get("expect", ()):  # which names a case only where there are some
        row.pop("case", None)
    script = document.get("traffic", {}).get("netspec", "")
    if script and "\n" not in script and "{" not in script:
        document["traffic"]["netspec"] = _beside(summary, script).read_text(encoding="utf-8-sig")
    for profile in document.get("profile", ()):
        file = _beside(summary, profile["file"])
        name = f"{hashlib.sha256(file.read_bytes()).hexdigest()[:12]}-{file.name}"
        (inputs / "files").mkdir(exist_ok=True)
        shutil.copy(file, inputs / "files" / name)
        profile["file"] = f"files/{name}"
    return document


def _beside(summary: Mapping[str, Any], name: str) -> Path:
    """Return a file that an experiment names."""
    path = find(summary["file"]).parent / name
    if not path.is_file():
        raise BentpipeError(f"{path}: is missing, and {summary['id']} needs it")
    return path


def verdict_of(error_percent: float | None) -> str:
    """Return the difference between ours and a published figure, in words."""
    if error_percent is None:
        return "not compared"
    if abs(error_percent) < 0.05:
        return "within 0.1 %"
    return f"{abs(error_percent):.1f} % {'above' if error_percent > 0 else 'below'}"


def _published(row: Mapping[str, Any]) -> dict[str, Any]:
    kept = ("experiment", "case", "quantity", "unit", "source", "measured", "predicted", "ours", "seeds", "kind")
    found = {key: row[key] for key in kept}
    return found | {"against": row["against"], "verdict": verdict_of(row["error_percent"])}


def _environment(folder: Path) -> None:
    """Write the versions of all packages, the machine, and the lock files where there is a source tree."""
    folder.mkdir()
    packages = sorted({(each.metadata["Name"] or "").lower() + "==" + each.version for each in distributions()})
    (folder / "packages.txt").write_text("\n".join(packages) + "\n", encoding="utf-8")
    machine = {
        "system": platform.system(),
        "release": platform.release(),
        "machine": platform.machine(),
        "processors": os.cpu_count(),
        "python": platform.python_version(),
        "versions": versions(),
    }
    _write_json(folder / "machine.json", machine)
    locks = Path(bentpipe.__file__).resolve().parents[2] / "requirements"
    for lock in sorted(locks.glob("*.lock")):
        shutil.copy(lock, folder)


def _readme(about: Mapping[str, Any]) -> str:
    return f"""# Run capsule: {about["name"]}

{len(about["runs"])} runs of bentpipe {about["version"]}, with their inputs, results and environment.
This command does all of them again and compares every figure:

    bentpipe reproduce CAPSULE

`published.json` has the verdict for each published figure, `environment/` the versions and the machine,
`{METADATA}` the SHA-256 of each file.
"""


def _metadata(work: Path, about: Mapping[str, Any], date: str) -> dict[str, Any]:
    """Return the RO-Crate's description: itself, the software, and each file."""
    files = [path for path in sorted(work.rglob("*")) if path.is_file()]
    parts = [{"@id": path.relative_to(work).as_posix()} for path in files]
    software = {
        "@id": "#bentpipe",
        "@type": "SoftwareApplication",
        "name": "bentpipe",
        "softwareVersion": about["version"],
        "license": {"@id": _LICENSE},
    }
    action = {
        "@id": "#runs",
        "@type": "CreateAction",
        "name": f"{len(about['runs'])} runs",
        "instrument": {"@id": "#bentpipe"},
        "object": [{"@id": run["input"]} for run in about["runs"]],
        "result": [{"@id": run["result"]} for run in about["runs"]],
    }
    root = {
        "@id": "./",
        "@type": "Dataset",
        "name": f"Runs of bentpipe: {about['name']}",
        "description": "Inputs, seeds, environment and results of runs; `bentpipe reproduce` does them again.",
        "datePublished": date,
        "license": {"@id": _LICENSE},
        "hasPart": parts,
        "mentions": [{"@id": "#runs"}],
    }
    head = {
        "@id": METADATA,
        "@type": "CreativeWork",
        "about": {"@id": "./"},
        "conformsTo": {"@id": _CRATE},
    }
    described = [
        {
            "@id": part["@id"],
            "@type": "File",
            "contentSize": str(path.stat().st_size),
            "sha256": digest(path.read_bytes()),
        }
        for part, path in zip(parts, files, strict=True)
    ]
    return {"@context": f"{_CRATE}/context", "@graph": [head, root, software, action, *described]}


def digest(content: bytes) -> str:
    """Return the SHA-256 of a file's content."""
    return hashlib.sha256(content).hexdigest()


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _zip(work: Path, out: Path) -> None:
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        for path in _in_order(work.rglob("*")):
            info = zipfile.ZipInfo(path.relative_to(work).as_posix(), _WHEN)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o644 << 16
            packed.writestr(info, path.read_bytes())


def _in_order(paths: Iterable[Path]) -> list[Path]:
    return sorted(path for path in paths if path.is_file())
