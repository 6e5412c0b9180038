"""Theory of a line with a good and a bad state (Gilbert, BSTJ 39, 1960; Elliott, BSTJ 42, 1963): mean values, and the
error of a long measurement.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["Z99", "GilbertElliott"]

Z99 = 2.5758
"""99 % of a normal distribution are within so many standard deviations."""


@dataclass(frozen=True)
class GilbertElliott:
    """A Markov chain of two states, a step a cell (or tick).

    Members
    -------
    good, bad : float
        Mean steps in each state, 1 and more.
    good_loss, bad_loss : float
        Probability that a cell is lost in each.
    """

    good: float
    bad: float
    good_loss: float = 0.0
    bad_loss: float = 0.0

    @property
    def share(self) -> float:
        """Return the share of the steps in the bad state."""
        return self.bad / (self.good + self.bad)

    @property
    def memory(self) -> float:
        """The chain's second eigenvalue: what is left of the state after a step."""
        return 1 - 1 / self.good - 1 / self.bad

    @property
    def loss(self) -> float:
        """Share of all cells."""
        return (1 - self.share) * self.good_loss + self.share * self.bad_loss

    def both(self, apart: int) -> float:
        """Probability that two cells so many steps ``apart`` are both lost."""
        product = self.share * (1 - self.share)
        return self.loss**2 + product * (self.bad_loss - self.good_loss) ** 2 * self.memory**apart

    def share_error(self, steps: int) -> float:
        """Half of the 99 % interval of the share in the bad state, measured over so many steps."""
        product = self.share * (1 - self.share)
        return Z99 * math.sqrt(product * (1 + self.memory) / (1 - self.memory) / steps)

    def loss_error(self, cells: int) -> float:
        """The same of the loss: that of the states, and that of each cell in its state."""
        product = self.share * (1 - self.share) * (self.bad_loss - self.good_loss) ** 2
        apart = 2 * product * self.memory / (1 - self.memory)
        return Z99 * math.sqrt((self.loss * (1 - self.loss) + apart) / cells)

    @staticmethod
    def length_error(mean: float, states: int) -> float:
        """The same of the mean of so many geometric lengths."""
        return Z99 * math.sqrt(mean * (mean - 1) / states)
