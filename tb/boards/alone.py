"""The comparison of a run on a board by itself with a native run in the same ticks."""

from __future__ import annotations

from typing import Any, Final

__all__ = ["assert_same"]

_OF_THE_LOOP: Final = {"ingress_most", "drop_ingress"}
"""Counters that are the event loop's."""
_OF_THE_LEDGER: Final = {"datagrams_lost", "datagrams_under_way"}


def assert_same(alone: dict[str, Any], native: dict[str, Any]) -> None:
    """Assert that hosts did the same and nodes counted the same, and that nothing of the ledger is there.

    Both are the contents of ``result.json``.
    """
    for ours, theirs in zip(alone["flows"], native["flows"], strict=True):
        unknown = {name for name in ours if ours[name] is None and theirs[name] is not None}
        assert unknown <= _OF_THE_LEDGER
        assert ours == theirs | dict.fromkeys(unknown)
    for key in ("drops", "ports"):
        assert alone[key] == native[key]
    for node, counters in alone["counters"].items():
        own = native["counters"][node]
        assert counters == {name: own[name] for name in counters}
        assert set(own) - set(counters) <= _OF_THE_LOOP
    for name, figure in alone["metrics"].items():
        assert figure == native["metrics"][name], name
    assert alone["ledger"] is alone["losses"] is None
    missing = set(native["metrics"]) - set(alone["metrics"])
    assert "pdus_lost" in missing and "frame_loss_ratio" in missing
