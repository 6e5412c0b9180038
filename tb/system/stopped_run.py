"""``bentpipe`` with a run that stops itself: it saves its state every 50 ms of simulated time, and sends itself a
signal at the first of these steps that is not before a time.

Usage: stopped_run.py SIGNAL MILLISECONDS ARGUMENT...
"""

import os
import signal
import sys

import bentpipe.experiment.run.run
from bentpipe.cli import main
from bentpipe.progress import Progress

number, moments = signal.Signals[sys.argv[1]], [int(sys.argv[2]) * 10**9]


class Stopping(Progress):
    def update(self, now_ps, done=0.0):
        super().update(now_ps, done)
        if moments and now_ps >= moments[0]:
            moments.clear()
            os.kill(os.getpid(), number)


bentpipe.experiment.run.run.Progress = Stopping
bentpipe.experiment.run.run._SAVE_S = bentpipe.experiment.run.run._KEEP_SHARE = 0
sys.exit(main(sys.argv[3:]))
