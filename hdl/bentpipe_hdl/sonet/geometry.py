"""The shape of an STS-Nc frame cut into words."""

from dataclasses import dataclass

__all__ = ["LAST_POINTER", "Geometry"]

LAST_POINTER = 782
"""The largest pointer offset: 9 rows of 87 units of N bytes."""


@dataclass(frozen=True)
class Geometry:
    """An STS-Nc frame of 9 rows and 90 N columns, ``width`` bytes a clock.

    Parameters
    ----------
    n : int
        3 or 12; 48 has the same shape and is used to measure synthesis.
    width : int
        Bytes a clock: either 3N, so that a row's transport overhead is one word, or a divisor of N/3, so that
        the path overhead with its fixed stuff is a number of whole words; 8 at most.
    """

    n: int
    width: int

    def __post_init__(self):
        if self.n not in (3, 12, 48):
            raise ValueError(f"n must be 3, 12 or 48, not {self.n!r}")
        if self.width != 3 * self.n and (not 1 <= self.width <= 8 or (self.n // 3) % self.width):
            raise ValueError(
                f"width must be {3 * self.n} or a divisor of {self.n // 3} up to 8 bytes for n = {self.n}, "
                f"not {self.width!r}"
            )

    @property
    def wide(self) -> bool:
        """A row's transport overhead is one word."""
        return self.width == 3 * self.n

    @property
    def toh_bytes(self) -> int:
        return 3 * self.n

    @property
    def toh_words(self) -> int:
        """Words of transport overhead a row."""
        return 3 * self.n // self.width

    @property
    def row_words(self) -> int:
        return 90 * self.n // self.width

    @property
    def frame_words(self) -> int:
        return 9 * self.row_words

    @property
    def spe_words(self) -> int:
        """Words of SPE a row."""
        return 87 * self.n // self.width

    @property
    def poh_words(self) -> int:
        """Words at the start of an SPE's row that hold path overhead or fixed stuff."""
        return 1 if self.wide else self.n // 3 // self.width

    @property
    def stuff_bytes(self) -> int:
        """Path overhead and fixed stuff, in bytes a row."""
        return self.n // 3

    @property
    def words_per_unit(self) -> int:
        """Words of a pointer unit of N bytes; 0 if a word is longer."""
        return self.n // self.width

    @property
    def words_per_second(self) -> int:
        return 8000 * self.frame_words
