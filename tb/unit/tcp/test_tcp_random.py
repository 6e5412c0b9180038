"""Random lives of two connections on a bad line (short; ``make soak`` has thousands)."""

from __future__ import annotations

from models.tcp_story import tell


def test_random_lives() -> None:
    """No negative length or window, nothing beyond the peer's right edge; all arrives, or somebody knows that not."""
    stories = [tell(seed) for seed in range(20)]
    assert any(story.crashed for story in stories) and any(story.aborted for story in stories)
    assert sum(sum(story.written) for story in stories) > 10_000
