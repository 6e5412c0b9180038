"""The machine under a session: the processor time that its hypervisor gives to others."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

__all__ = ["stolen_s"]

_STOLEN: Final = 8
"""Field of the first line of ``/proc/stat`` (proc(5)): "cpu", user, nice, system, idle, iowait, irq, softirq, steal."""


def stolen_s(statistics: Path = Path("/proc/stat")) -> float:
    """Return the time (s) for which the hypervisor has kept processors from this machine since it started.

    It is the sum over all processors; 0 where the kernel does not report it.
    """
    try:
        fields = statistics.read_text().split("\n", 1)[0].split()
        return int(fields[_STOLEN]) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return 0.0
