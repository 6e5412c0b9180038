"""A capsule of the whole catalogue, reproduced by a stranger: ``python -m soak.capsules`` (``make soak``).

The catalogue runs here, and its runs are packed. A clone of the last commit in an empty folder, with an empty home,
installs bentpipe and reproduces the capsule: each run has to be reproduced. Then a file of the capsule is changed, and
``bentpipe reproduce`` has to name it. Runs are shortened (``--quick``) without ``--whole``.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
TAMPERED = "published.json"


def run(words: Sequence[str | Path], folder: Path, environment: Mapping[str, str] | None = None) -> tuple[int, str]:
    """Run a program and return its exit code and output; the output is printed, too."""
    done = subprocess.run(
        [str(word) for word in words],
        cwd=folder,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    print(done.stdout[-4000:], flush=True)
    return done.returncode, done.stdout


def stranger(folder: Path) -> tuple[Path, dict[str, str]]:
    """Return the program of a new clone of the last commit, and an environment with an empty home."""
    home = folder / "home"
    home.mkdir()
    kept = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "UV_", "SSL_"))}
    environment = {**kept, "HOME": str(home), "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
    clone = folder / "clone"
    for words in (("git", "clone", "--quiet", ROOT, clone), ("make", "-C", clone, ".venv/.runtime")):
        code, _ = run(words, folder, environment)
        if code:
            raise SystemExit(f"{' '.join(map(str, words))}: exit code {code}")
    return clone / ".venv" / "bin" / "bentpipe", environment


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--whole", action="store_true", help="runs of full length, twice half an hour to an hour")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ours = Path(sys.executable).with_name("bentpipe")
        quick = () if given.whole else ("--quick",)
        code, _ = run((ours, "catalogue", "run", *quick), folder)
        print(f"catalogue run: exit code {code}", flush=True)
        code, _ = run((ours, "capsule", "catalogue", "--out", "capsule"), folder)
        if code:
            return code
        program, environment = stranger(folder)
        code, text = run((program, "reproduce", folder / "capsule"), folder, environment)
        print(f"reproduce in a new clone: exit code {code}; not reproduced:", flush=True)
        print("\n".join(line for line in text.splitlines() if ": reproduced:" not in line), flush=True)
        changed = folder / "changed"
        shutil.copytree(folder / "capsule", changed)
        (changed / TAMPERED).write_text((changed / TAMPERED).read_text() + "\n")
        found, text = run((program, "reproduce", changed), folder, environment)
        named = found == 1 and TAMPERED in text
        print(f"{TAMPERED} changed: exit code {found}, {'named' if named else 'NOT NAMED'}")
    return int(bool(code) or not named)


if __name__ == "__main__":
    sys.exit(main())
