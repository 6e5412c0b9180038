"""The options of a switch: mechanisms that it is built with where its settings ask for them, and else without."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from bentpipe_hdl.switch.options.base import Fault, Option, Setup
from bentpipe_hdl.switch.options.copies import Copies
from bentpipe_hdl.switch.options.credits import Credits
from bentpipe_hdl.switch.options.discard import Efci, FairShare, Minimum, PortEpd
from bentpipe_hdl.switch.options.frames import Frames
from bentpipe_hdl.switch.options.histograms import Histograms
from bentpipe_hdl.switch.options.oam import Oam
from bentpipe_hdl.switch.options.police import Police
from bentpipe_hdl.switch.options.reactive import Reactive
from bentpipe_hdl.switch.options.red import QueueLimit, Red
from bentpipe_hdl.switch.options.scheduling import Fifo, Shares, VirtualClocks
from bentpipe_hdl.switch.options.shape import Shape
from bentpipe_hdl.switch.options.vp import VirtualPaths
from bentpipe_hdl.words import nearest

__all__ = ["OPTIONS", "Fault", "Option", "Setup", "options_of", "options_word"]

OPTIONS: Final[tuple[Option, ...]] = (
    Reactive(), QueueLimit(), Red(), Fifo(), Shares(), Police(), PortEpd(), FairShare(), Minimum(), Efci(),
    Histograms(), VirtualClocks(), Credits(), Frames(), Shape(), VirtualPaths(), Oam(), Copies(),
)  # fmt: skip
"""All there are; an option's place is its bit in a switch's shape."""


def options_word(names: Iterable[str]) -> int:
    """The shape's word for these options.

    Raises
    ------
    ValueError
        There is no such option.
    """
    known = {option.name: 1 << k for k, option in enumerate(OPTIONS)}
    word = 0
    for name in names:
        if name not in known:
            raise ValueError(f"a switch has no option {name!r}{nearest(name, known)}")
        word |= known[name]
    return word


def options_of(word: int) -> tuple[Option, ...]:
    """The options of a shape's word.

    Raises
    ------
    ValueError
        There are not so many.
    """
    if not 0 <= word < 1 << len(OPTIONS):
        raise ValueError(f"options must be from 0 to {(1 << len(OPTIONS)) - 1}, a bit for each, not {word!r}")
    return tuple(option for k, option in enumerate(OPTIONS) if word >> k & 1)
