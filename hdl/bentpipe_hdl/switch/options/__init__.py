"""The options of a switch: mechanisms that it is built with where its settings ask for them, and else without.

A folder an option (or a few that share their hardware), found by being here: ``control`` is what software sees of it,
without Amaranth, ``plugin`` its hardware, and the rest parts of that. Start at :mod:`.base` and :mod:`.plugin`. Options
from outside of bentpipe come by :func:`add`.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from pkgutil import iter_modules
from typing import Final
from zlib import crc32

from bentpipe_hdl.switch.options.base import Fault, Option, Setup
from bentpipe_hdl.words import nearest

__all__ = [
    "OPTIONS",
    "Fault",
    "Option",
    "Setup",
    "add",
    "options_of",
    "options_word",
    "passed_on",
    "sources_of",
    "take_passed",
]

_controls: Final = (
    import_module(f"{__name__}.{found.name}.control") for found in iter_modules(__path__) if found.ispkg
)

OPTIONS: Final[list[Option]] = sorted(
    (option for control in _controls for option in control.OPTIONS), key=lambda option: option.bit
)
"""All that there are, by their bits."""

_WORD_BITS: Final = 32
_PASSED: Final = "BENTPIPE_SWITCH_OPTIONS"
_added: Final[list[Option]] = []

_BY_NAME: Final = {option.name: option for option in OPTIONS}
_BY_BIT: Final = {option.bit: option for option in OPTIONS}
if len(_BY_BIT) != len(OPTIONS) or len(_BY_NAME) != len(OPTIONS):
    raise ImportError("two options of a switch have the same bit or the same name")


def add(option: Option) -> None:
    """Add an option from outside of bentpipe. Its bit follows from its name, so that it is the same in each process.

    Raises
    ------
    ValueError
        Its name is taken, or no bit is left.
    """
    if option.name in _BY_NAME:
        raise ValueError(f"there is an option {option.name!r} of switches already")
    first = crc32(option.name.encode())
    bits = ((first + k) % _WORD_BITS for k in range(_WORD_BITS))
    bit = next((bit for bit in bits if bit not in _BY_BIT), None)
    if bit is None:
        raise ValueError(f"a switch has {_WORD_BITS} options at most")
    option.bit = bit
    _BY_NAME[option.name] = _BY_BIT[bit] = option
    _added.append(option)
    OPTIONS.append(option)
    OPTIONS.sort(key=lambda option: option.bit)


def sources_of(options: Iterable[Option]) -> list[Path]:
    """Return the sources of those options that were added: a module, or all of a package."""
    found: set[Path] = set()
    for option in options:
        if option in _added:
            top = Path(str(sys.modules[type(option).__module__.partition(".")[0]].__file__))
            found.update(top.parent.rglob("*.py") if top.name == "__init__.py" else [top])
    return sorted(found)


def passed_on() -> dict[str, str]:
    """Return environment variables by which a process that calls :func:`take_passed` gets the same added options."""
    rows = []
    for option in _added:
        module = type(option).__module__
        rows.append((module, str(sys.modules[module.partition(".")[0]].__file__), type(option).__qualname__))
    return {_PASSED: json.dumps(rows)} if rows else {}


def take_passed() -> None:
    """Add the options that the process which started this one had added."""
    for module, file, kind in json.loads(os.environ.get(_PASSED) or "[]"):
        top = module.partition(".")[0]
        if find_spec(top) is None:
            spec = spec_from_file_location(top, file)
            assert spec is not None and spec.loader is not None
            sys.modules[top] = module_from_spec(spec)
            spec.loader.exec_module(sys.modules[top])
        add(getattr(import_module(module), kind)())


def options_word(names: Iterable[str]) -> int:
    """Return the shape's word for these options.

    Raises
    ------
    ValueError
        There is no such option.
    """
    word = 0
    for name in names:
        if name not in _BY_NAME:
            raise ValueError(f"a switch has no option {name!r}{nearest(name, _BY_NAME)}")
        word |= 1 << _BY_NAME[name].bit
    return word


def options_of(word: int) -> tuple[Option, ...]:
    """Return the options of a shape's word.

    Raises
    ------
    ValueError
        A bit is of no option.
    """
    known = sum(1 << bit for bit in _BY_BIT)
    if word < 0 or word & ~known:
        raise ValueError(f"options must be from 0 to {known}, a bit for each, not {word!r}")
    return tuple(option for option in OPTIONS if word >> option.bit & 1)
