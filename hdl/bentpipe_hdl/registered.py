"""Options of nodes are objects that exist once each: copies of nodes, and nodes read from a file, refer to them."""

from __future__ import annotations

from importlib import import_module
from typing import Any, ClassVar

__all__ = ["Registered"]


def _find(package: str, kind: str, name: str) -> Any:
    options = import_module(package).OPTIONS
    return next(option for option in options if (type(option).__qualname__, option.name) == (kind, name))


class Registered:
    """An option in ``OPTIONS`` of the package that has its folder. Copied or unpickled it is the same object, so that
    options may be compared and be keys.

    Members
    -------
    package : str
        The package whose ``OPTIONS`` lists it; "": that of its folder.
    """

    package: ClassVar[str] = ""

    def __reduce__(self) -> tuple[Any, ...]:
        package = self.package or type(self).__module__.rsplit(".", 2)[0]
        return _find, (package, type(self).__qualname__, self.name)  # type: ignore[attr-defined]
