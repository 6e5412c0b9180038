"""The records of lost cells of a network, as the table ``losses.parquet``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from bentpipe.experiment.resolve.specs import Experiment
from bentpipe.results.losses import loss_schema
from bentpipe_hdl.ticks import RATIO
from bentpipe_sim.accounts import LOSSES_OF_FRAMES, why_text

if TYPE_CHECKING:
    import pyarrow as pa

    from bentpipe_sim.network import Network

__all__ = ["read_losses"]

_RECORD: Final = [
    *((name, "<u8") for name in ("tick", "cell", "pdu", "offset")),
    *((name, "<i4") for name in ("place", "node")),
    *((name, "<u4") for name in ("position", "cells", "queue", "vc_queue")),
    *((name, "u1") for name in ("why", "tagged", "user")),
    ("unused", "u1", 5),
]
"""Fields of ``bp_loss_record`` in ``csrc/network.h``."""


def read_losses(experiment: Experiment, network: Network) -> tuple[pa.Table, int]:
    """Return the records so far, in the order of their times, and how many lost cells have none."""
    import numpy as np
    import pyarrow as pa

    octets, left_out = network.loss_records()
    found = np.frombuffer(octets, dtype=np.dtype(_RECORD))
    found = found[np.argsort(found["tick"], kind="stable")]
    nowhere, none = np.uint64(2**64 - 1), np.uint32(2**32 - 1)
    ps, ticks = RATIO

    def numbers(values: Any, missing: Any, plus: int = 0) -> pa.Array:
        return pa.array(values.astype(np.int64) + plus, pa.int64(), mask=missing)

    def names(values: Any, name: Any, missing: Any = None) -> pa.Array:
        known, index = np.unique(values, return_inverse=True)
        texts = [name(int(each)) for each in known]
        words = {text: k for k, text in enumerate(dict.fromkeys(texts))}  # several values may have one name
        index = np.array([words[text] for text in texts], dtype=np.int32)[index]
        return pa.DictionaryArray.from_arrays(
            pa.array(index, pa.int32(), mask=missing), pa.array([*words], pa.string())
        )

    hops = network.ports_by_place()
    at = found["place"].astype(np.int64) << 32 | found["node"]

    def port(key: int) -> str:
        out = hops.get((key >> 32, key & 0xFFFFFFFF))
        return "" if out is None else f"{network.nodes[key & 0xFFFFFFFF].name}:{out}"

    no_port = np.array([(int(key) >> 32, int(key) & 0xFFFFFFFF) not in hops for key in at], dtype=bool)
    unsettled = found["pdu"] == nowhere
    columns = {
        "time_ps": pa.array(-(-found["tick"].astype(np.int64) * ps // ticks), pa.int64()),
        "node": names(found["node"], lambda index: network.nodes[index].name),
        "port": names(at, port, no_port),
        "vc": names(found["place"], lambda index: experiment.vcs[index].name),
        "reason": names(found["why"], why_text),
        "dropped_as": names(found["why"], lambda why: "frame" if why_text(why) in LOSSES_OF_FRAMES else "cell"),
        "cell": numbers(found["cell"], found["cell"] == nowhere, 1),
        "pdu": numbers(found["pdu"], unsettled, 1),
        "position": numbers(found["position"], unsettled, 1),
        "pdu_cells": numbers(found["cells"], unsettled),
        "flow_offset": numbers(found["offset"], unsettled),
        "queue_cells": numbers(found["queue"], found["queue"] == none),
        "vc_queue_cells": numbers(found["vc_queue"], found["vc_queue"] == none),
        "clp": pa.array(found["tagged"].astype(np.int64), pa.int64()),
    }
    schema = loss_schema()
    return pa.table([columns[name] for name in schema.names], schema=schema), left_out
