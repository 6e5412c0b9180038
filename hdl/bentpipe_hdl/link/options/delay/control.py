"""The delay memory as software sees it: the delay itself is a setting of every link."""

from __future__ import annotations

from typing import Final

from bentpipe_hdl.link.options.base import LinkOption

__all__ = ["OPTION"]


class DelayMemory(LinkOption):
    """A memory of so many cells."""

    name = "delay_cells"
    place = 1
    values = (0, *(1 << k for k in range(1, 17)))
    range = "0 or a power of two from 2 to 65536"


OPTION: Final = DelayMemory()
