"""bentpipe: an ATM cell switch and link emulator in hardware, with the hosts in software.

``from bentpipe import load, run, sweep, read`` is bentpipe from Python (:mod:`bentpipe.api`), imported when it is asked
for.
"""

import sys
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bentpipe.api import Run, Sweep, UntilPrecise, load, read, run, sweep

__all__ = ["Run", "Sweep", "UntilPrecise", "load", "read", "run", "sweep"]


class _Hosts:
    """An import hook: it asks :mod:`bentpipe.compiled` for the form of the host side's modules, and imports it only
    for them."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        ours = ("bentpipe.tcp.", "bentpipe.ip.", "bentpipe.apps.", "bentpipe.hosts.", "bentpipe_sim.pdus", "hosts_")
        if name.startswith(ours):
            from bentpipe.compiled import find_spec

            return find_spec(name)
        return None


sys.meta_path.insert(0, _Hosts)


def __getattr__(name: str) -> Any:
    if name in __all__:
        from bentpipe import api

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
