"""The command ``bentpipe``, also as ``python -m bentpipe``."""

import gc
import signal
import sys

__all__ = ["main"]


def main() -> int:
    """Run the command that the arguments name; returns the exit code."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # Until the command minds signals itself: a Ctrl-C ends it without the traceback of half an import.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from bentpipe.cli import main as command

    code = command()
    gc.freeze()  # The interpreter would search all objects for cycles before it ends: 70 ms of a run's 560
    return code


if __name__ == "__main__":
    sys.exit(main())
