"""The event loop's library (``csrc``) as Python sees it."""

from __future__ import annotations

from functools import partial
from typing import Any

from .bindings import bind, functions

__all__ = ["Loop"]


class Loop:
    """An event loop: from :meth:`open` to :meth:`close` it has the functions of ``csrc/network.h`` and
    ``csrc/attach.h``, without ``bp_`` and the network that they are for.

    Members
    -------
    ffi, library : Any
        Of cffi.
    calls : Any
        The module ``csrc/calls.c``; None without ``Python.h``.
    network : Any
        What the library's functions are for.
    address : int
        The same for the functions of ``calls``.
    """

    def __init__(self) -> None:
        self.ffi: Any = None
        self.library: Any = None
        self.calls: Any = None
        self.network: Any = None
        self.address: int = 0
        self._names: list[str] = []

    def __getattr__(self, name: str) -> Any:  # what is not there
        raise AttributeError(f"no function bp_{name}, or the event loop is not open")

    @property
    def is_open(self) -> bool:
        return self.network is not None

    def open(self) -> None:
        """Open the library, and compile it if it is missing."""
        self.ffi, self.library, self.calls = bind()
        self.network = self.ffi.gc(self.library.bp_new(), self.library.bp_free)
        self.address = int(self.ffi.cast("uintptr_t", self.network))
        self._names = functions()
        for name in self._names:
            setattr(self, name, partial(getattr(self.library, f"bp_{name}"), self.network))

    def divert(self, name: str, function: Any) -> None:
        """Call ``function`` instead of a function of the open event loop from now on; it may call that function."""
        assert name in self._names
        setattr(self, name, function)

    def __reduce__(self) -> tuple[type[Loop], tuple[()]]:
        """Pickle the loop as one that is not open."""
        return Loop, ()

    def close(self) -> None:
        """Close the nodes."""
        if self.network is not None:
            for name in self._names:
                delattr(self, name)
            self.ffi.release(self.network)
            self.network = None
