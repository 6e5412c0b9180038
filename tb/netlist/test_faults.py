"""Faults in models and netlists that the comparison has to find."""

from __future__ import annotations

import copy
import random

import pytest

from netlist.nodes import CLOCKS, Different, netlist_of, played
from netlist.simulation import MODELS


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("bridge", "if (width_b == 36) out_a = old_b & 0x3FFFF;", "if (width_b == 36) out_a = old_b >> 18;"),
        ("bridge", "lsr ? sets : ce ? di : q", "ce ? (lsr ? sets : di) : q"),
        ("link", "if (enable) rows[address] = data;", "if (enable) rows[address ^ 1] = data;"),
        ("link", "static_cast<uint64_t>(x * y) & 0xFFFFFFFFF", "static_cast<uint64_t>(x * y) & 0xFFFFFFFFE"),
        ("link", "? cin : injects ? 0 : lut2(init, a, b)", "? cin : 0"),
    ],
    ids=["halves of a block memory", "reset behind enable", "row of a LUT memory", "bit of a product", "carry"],
)
def test_a_wrong_model_is_found(name: str, old: str, new: str) -> None:
    models = MODELS.read_text()
    assert models.count(old) == 1
    with pytest.raises(Different):
        played(name, CLOCKS, 1, models=models.replace(old, new))


def test_most_wrong_luts_are_found() -> None:
    """Some cannot be: traffic of 30,000 clocks has no pause of 0.1 s within a frame, for example."""
    luts = sorted(name for name, cell in netlist_of("bridge")["cells"].items() if cell["type"] == "LUT4")
    chosen = random.Random(1).sample(luts, 8)
    found = [name for name in chosen if _differs_with(name)]
    assert len(found) >= 5, f"of {chosen}"


def _differs_with(lut: str) -> bool:
    """Return whether the bridge with the opposite contents of a LUT is found to be wrong."""
    module = copy.deepcopy(netlist_of("bridge"))
    parameters = module["cells"][lut]["parameters"]
    parameters["INIT"] = "".join("10"[int(bit)] if bit in "01" else bit for bit in parameters["INIT"])
    try:
        played("bridge", CLOCKS, 1, module=module)
    except Different:
        return True
    return False
