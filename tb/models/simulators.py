"""The same bench in Amaranth's simulator and in the native one: what they give has to be the same."""

import amaranth.sim

from bentpipe_hdl.amaranth_simulation import memories, scopes
from bentpipe_sim.native import Simulator

BOTH = {"amaranth": amaranth.sim.Simulator, "native": Simulator}


def named(simulator):
    """All signals of a design, and all rows of its memories, by name."""
    found = {}
    for signal, name in scopes(simulator._design):
        if len(signal):
            found.setdefault(".".join(name), signal)
    for memory, name in memories(simulator._design):
        found |= {f"{'.'.join(name)}[{k}]": memory[k] for k in range(memory.depth)}
    return found


def unlike(one, other):
    """The first difference of two lists of dictionaries."""
    for k, (a, b) in enumerate(zip(one, other, strict=True)):
        for name in a:
            if a[name] != b[name]:
                return f"{k}: {name} {a[name]} {b[name]}"
    return None
