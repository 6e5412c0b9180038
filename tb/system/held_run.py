"""``bentpipe`` on the stand-in for network and hosts, stopped at a point: it prints ``here`` and reads a line.

Usage: held_run.py POINT ARGUMENT... with the points ``build``, ``TIME`` (simulated, in ms), ``plots`` (drawn as a blank
in the end), ``none``, and several of them with ``+``. What there is is kept at every step. ``FSIZE`` in the environment
limits the octets of any file that is written (RLIMIT_FSIZE).
"""

import os
import resource
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import bentpipe.experiment.build.hosts
import bentpipe.experiment.run.run
import bentpipe.plots.cases
import bentpipe.plots.figures
from bentpipe.cli import main
from unit.experiment.fake import blank, fake_build

points = sys.argv[1].split("+")
bentpipe.experiment.run.run._KEEP_S = bentpipe.experiment.run.run._KEEP_SHARE = 0


def stop_at(point):
    if point in points:
        points.remove(point)
        print("here", flush=True)
        sys.stdin.readline()


def build(experiment, recorder):
    stop_at("build")
    built = fake_build(experiment, recorder)
    name = f"{experiment.case}:" if experiment.case else ""
    built.engine.at_step = lambda network: stop_at(f"{name}{network.now_ps // 10**9}")
    return built


def drawn(folder, result):
    stop_at("plots")
    blank(folder, result)


bentpipe.experiment.build.hosts.build = build
bentpipe.plots.figures.write_plots = bentpipe.plots.cases.write_cases_plot = drawn
if "FSIZE" in os.environ:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(os.environ["FSIZE"]),) * 2)
sys.exit(main(sys.argv[2:]))
