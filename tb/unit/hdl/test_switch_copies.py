"""Point-to-multipoint VCs through the switch, on both datapaths: against the model, and at the limits."""

import random
from fractions import Fraction

import pytest

from bentpipe_hdl.switch.copier import CELLS
from bentpipe_hdl.switch.options import options_word
from models.copies import Copies
from models.gcra import VirtualScheduling
from models.policer import Bucket, Policer
from models.switch import Drop
from models.switch import Switch as Model
from unit.hdl.bench import WIDTHS
from unit.hdl.test_switch_rtl import random_traffic, random_vcs

CHAINS = {0: 5, 5: 6, 1: 7, 4: 4}
"""Two leaves, one, and a VC that is its own."""


def of_chains(rng, chains=CHAINS, **more):
    """The model of a switch whose last three VCs get copies alone."""
    vcs = random_vcs(rng)
    for vc in vcs[5:]:
        vc.in_port = -1
    return Model(vcs, ports=3, capacity=12, epd_threshold=6, nni=frozenset({2}), copies=Copies(8, CELLS), **more)


def writes(model, chains=CHAINS):
    async def prepare(bench):
        for vc, after in chains.items():
            model.copies.write(vc, after)
            await bench.set("vc_copies", after | 8, vc)
        model.copies.tick()
        await bench.tick()

    return prepare


@pytest.mark.parametrize("width", WIDTHS)
def test_random_traffic(width):
    """Frames of VCs with and without leaves with all policies into a small buffer: the same cells leave in the same
    order as in the model, each drop is for its reason, every counter agrees."""
    rng = random.Random("copies")
    model = of_chains(rng)
    seen = random_traffic(width, 1, model, rng, options=options_word(["copies"]), prepare=writes(model))
    assert set(seen) >= {Drop.FULL, Drop.PPD, Drop.COPIES}
    assert min(vc.sent for vc in model.vcs[5:]) > 5 and model.copies.endless


@pytest.mark.parametrize("width", WIDTHS)
def test_random_traffic_of_policed_roots(width):
    """The root's contract holds for all: what it discards isn't copied, what it tags is copied tagged."""
    rng = random.Random("policed copies")
    model = of_chains(rng, clp_threshold=5)
    for vc, action in ((0, "tag"), (1, "discard")):
        bucket = Bucket(VirtualScheduling(Fraction(rng.randrange(5 << 16, 12 << 16), 65536), 20), action=action)
        model.vcs[vc].policer = Policer([bucket], packets=True)

    async def prepare(bench):
        await writes(model)(bench)
        for index in (0, 1):
            bucket = model.vcs[index].policer.buckets[0]
            await bench.set("police_limit", int(bucket.gcra.limit * 65536), 2 * index)
            flags = {"tag": int(bucket.action == "tag"), "packets": 1}
            entry = {"increment": int(bucket.gcra.increment * 65536), "enabled": 1, **flags}
            await bench.set("police_rate", entry, 2 * index)

    seen = random_traffic(width, 2, model, rng, options=options_word(["copies", "police"]), prepare=prepare)
    assert set(seen) >= {Drop.UPC, Drop.COPIES, Drop.CLP}
    assert sum(model.vcs[leaf].drops[Drop.CLP] for leaf in (5, 6)), "no tagged copy met the threshold"
