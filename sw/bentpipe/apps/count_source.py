"""The common part of sources that draw the number of blocks of an interval."""

from __future__ import annotations

from mypy_extensions import mypyc_attr

from bentpipe.apps.blocks import BlockSource, positive

__all__ = ["CountSource"]


@mypyc_attr(allow_interpreted_subclasses=True)
class CountSource(BlockSource):
    """In each interval as many blocks as were drawn for it, evenly spread.

    Of ``n`` blocks, block ``k`` from 0 on is due ``(k + 1/2) / n`` of the interval behind its beginning.

    Parameters
    ----------
    block_octets : int
    interval_ps : int
    """

    def __init__(
        self, kind: str, block_octets: int, interval_ps: int, size_octets: int | None = None, duration_ps: int = 0
    ) -> None:
        super().__init__(kind, size_octets, duration_ps, False)
        positive("block_octets", block_octets)
        positive("interval_ps", interval_ps)
        self.block_octets = block_octets
        self.interval_ps = interval_ps
        self.base_ps = 0  # when the present interval began
        self.count = 0  # its blocks
        self.nth = 0  # of these, that which is due

    def count_of_next(self) -> int:
        """Return the number of blocks in the interval that begins."""
        raise NotImplementedError

    def begin(self, now_ps: int) -> int:
        self.base_ps = now_ps - self.interval_ps
        return self._next_interval()

    def after(self, due_ps: int) -> int:
        self.nth += 1
        return self._due_at() if self.nth < self.count else self._next_interval()

    def _next_interval(self) -> int:
        self.nth = self.count = 0
        while self.count == 0:
            self.base_ps += self.interval_ps
            self.count = self.count_of_next()
        return self._due_at()

    def _due_at(self) -> int:
        return self.base_ps + (2 * self.nth + 1) * self.interval_ps // (2 * self.count)

    def draw(self) -> int:
        return self.block_octets
