"""Runs that are stopped at moments and resumed, beside runs that aren't."""

import json
import signal
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

import bentpipe.experiment.run.run as runs
from bentpipe.experiment.run.perform import resume
from bentpipe.experiment.run.run import run_experiment
from bentpipe.progress import Progress
from bentpipe.results.folder import RunFolder


@contextmanager
def stopped_at(at_ps, run=1):
    """Inside, a signal comes once, at the first step of a run (the first or another) that is not before ``at_ps``."""
    left = [at_ps]
    begun = []

    class Stopping(Progress):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            begun.append(self)

        def update(self, now_ps, done=0.0):
            super().update(now_ps, done)
            if left and len(begun) == run and now_ps >= left[0]:
                left.clear()
                signal.raise_signal(signal.SIGTERM)

    with patch.object(runs, "Progress", Stopping):
        yield


def uninterrupted(experiment, path):
    """Run it in one go; what there is in the end."""
    with RunFolder.claim(path) as folder:
        folder.finish(run_experiment(experiment, folder=folder))
    return outcome(path)


def interrupted(experiment, path, moments):
    """Run it, stopped at each of these moments (ps) and resumed; what there is in the end, and how often it stopped."""
    stops = 0
    with ExitStack() as held, stopped_at(moments[0]):
        folder = held.enter_context(RunFolder.claim(path))
        result = run_experiment(experiment, folder=folder)
        folder.finish(result)
    for at_ps in (*moments[1:], 1 << 62):
        if result.summary["status"] != "interrupted":
            break
        stops += 1
        with ExitStack() as held, stopped_at(at_ps), no_report():
            result = resume(held.enter_context(RunFolder.resume(path)))
    return outcome(path), stops


def no_report():
    """Inside, no plots are drawn."""
    return patch.object(RunFolder, "draw")


def outcome(path):
    """All of a run folder but the times that it took, and the report; large files as they are."""
    found = {}
    for file in sorted(path.iterdir()):
        if file.name == "result.json":
            summary = json.loads(file.read_text())
            for name in ("wall_s", "wall_per_simulated", "started", "resumed_s", "parts"):
                del summary["time"][name]
            found[file.name] = summary
        elif file.suffix in (".parquet", ".pcap"):
            found[file.name] = file.read_bytes()
        elif file.name == "run.state":
            found[file.name] = True
    return found
