"""bentpipe: an ATM cell switch and link emulator in hardware, with the hosts in software."""

import sys
from importlib.machinery import ModuleSpec
from typing import Any


class _Hosts:
    """Asks :mod:`bentpipe.compiled` which form the modules of the host side have; imports it only for them."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name.startswith(("bentpipe.tcp.", "bentpipe.ip.", "bentpipe.apps.", "bentpipe.hosts.", "hosts_")):
            from bentpipe.compiled import find_spec

            return find_spec(name)
        return None


sys.meta_path.insert(0, _Hosts)
