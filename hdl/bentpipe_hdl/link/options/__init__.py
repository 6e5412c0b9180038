"""The options of a link: mechanisms that it is built with where settings ask for them, and else without.

A folder an option, found by being here: ``control`` is what software sees of it, without Amaranth, ``plugin`` its
hardware, and the rest parts of that. Start at :mod:`.base` and :mod:`.plugin`.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import Final

from bentpipe_hdl.link.options.base import LinkOption

__all__ = ["OPTIONS", "LinkOption", "shape_of"]

_folders: Final = (found.name for found in iter_modules(__path__) if found.ispkg)

OPTIONS: Final[tuple[LinkOption, ...]] = tuple(
    sorted((import_module(f"{__name__}.{name}.control").OPTION for name in _folders), key=lambda option: option.place)
)
"""All that there are, in the order of the shape."""


def shape_of(given: Mapping[str, int]) -> dict[LinkOption, int]:
    """Return the options of a link with such parts of its shape, each with the part's value (1 if it has none).

    Raises
    ------
    TypeError
        The shape has no such part.
    ValueError
        A part has another value than it may have, or does not go with another part.
    """
    parts = {option.name: option for option in OPTIONS if option.name}
    for name, value in given.items():
        if name not in parts:
            raise TypeError(f"the shape of a link has no {name!r}; it has {', '.join(parts)}")
        if value not in parts[name].values:
            raise ValueError(f"{name} must be {parts[name].range}, not {value!r}")
    for option in OPTIONS:
        for other in option.excludes if given.get(option.name) else ():
            if given.get(other):
                raise ValueError(f"a link has {option.name} or {other}, not both")
        for other in option.needs if given.get(option.name) else ():
            if not given.get(other):
                raise ValueError(f"a link with {option.name} has {other}, too")
    values = {option: given.get(option.name, 0) if option.name else 1 for option in OPTIONS}
    return {option: value for option, value in values.items() if value}
