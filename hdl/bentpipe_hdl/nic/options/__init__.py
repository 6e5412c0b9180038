"""The options of a network interface: mechanisms that it is built with where settings ask for them, and else without.

A folder an option, found by being here: ``control`` is what software sees of it, without Amaranth, ``plugin`` its
hardware, and the rest parts of that. Start at :mod:`.base` and :mod:`.plugin`.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import Final

from bentpipe_hdl.nic.options.base import NicOption

__all__ = ["OPTIONS", "NicOption", "options_of"]

_folders: Final = (found.name for found in iter_modules(__path__) if found.ispkg)

OPTIONS: Final[tuple[NicOption, ...]] = tuple(
    sorted((import_module(f"{__name__}.{name}.control").OPTION for name in _folders), key=lambda option: option.place)
)
"""All that there are, in the order of the shape."""


def options_of(shape: Mapping[str, int]) -> tuple[NicOption, ...]:
    """Return the options that a shape has.

    Raises
    ------
    TypeError
        The shape has a part that is no option.
    ValueError
        A part is neither 0 nor 1.
    """
    known = {option.name for option in OPTIONS}
    for name, value in shape.items():
        if name not in known:
            raise TypeError(f"a nic has no option {name!r}; it has {', '.join(option.name for option in OPTIONS)}")
        if value not in (0, 1):
            raise ValueError(f"{name} must be 0 or 1, not {value!r}")
    return tuple(option for option in OPTIONS if shape.get(option.name))
