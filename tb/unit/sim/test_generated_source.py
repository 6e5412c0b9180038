"""The native engine generates the same C++ as when its hashes were kept: a change of it has to be explained."""

import pytest

from digests.sources import SHAPES, kept, known_hash


def test_every_shape_has_a_kept_hash():
    assert list(kept()) == list(SHAPES)


@pytest.mark.parametrize("name", SHAPES)
def test_the_generated_source_is_the_kept_one(name):
    assert known_hash(SHAPES[name]) == kept()[name], "explain it in the commit: python -m digests.sources --keep"
