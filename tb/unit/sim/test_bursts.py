"""Bursts of errors on a line of the Verilated network: against the theory of Gilbert and Elliott."""

import math

import pytest

from bentpipe_hdl.link.control import BurstSettings, LinkSettings
from bentpipe_hdl.ticks import TICK_PS
from bentpipe_sim.network import Network
from models.gilbert import Z99, GilbertElliott

MS = 10**9
CELL_PS = 16 * TICK_PS


def measured(cells, seed=1, **bursts):
    """Return the fate of so many cells, back to back at OC-3c, each a PDU: for each whether it arrived; the link's
    counters; the ledger's causes.
    """
    network = Network(seed=seed)
    a, b = network.add_nic("a"), network.add_nic("b")
    link = network.add_link("line", LinkSettings(bursts=BurstSettings(**bursts)))
    network.connect(a, link)
    network.connect(link, b)
    network.connect(b, a)
    vc = network.add_vc([a, link, b], 0, 40)
    came = [False] * cells
    for number in range(cells):
        network.send(a.index, vc, number.to_bytes(4, "big"))
    end = round((cells + 10) * CELL_PS)
    while network.now_ps < end:
        for event in network.run(end):
            if event.nic == b.index and event.status == 0:
                came[int.from_bytes(event.head, "big")] = True
    network.check_conservation()
    (account,) = network.ledger()
    return came, link.counters(), account.lost


def as_settings(model, ticks=False):
    lengths = {"good": model.good, "bad": model.bad}
    if ticks:
        return {f"{name}_ps": round(mean * TICK_PS) for name, mean in lengths.items()}
    return {f"{name}_cells": float(mean) for name, mean in lengths.items()}


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_losses_in_bursts_of_cells(seed):
    """Lengths of the bad state, time in it, losses, and how often two cells near each other are lost."""
    model, cells = GilbertElliott(80.0, 12.5, 0.01, 0.6), 40_000
    came, counts, lost = measured(cells, seed, loss=model.bad_loss, good_loss=model.good_loss, **as_settings(model))
    states = counts["bad_states"]
    assert counts["bad_cells"] / states == pytest.approx(model.bad, abs=model.length_error(model.bad, states))
    assert counts["bad_cells"] / cells == pytest.approx(model.share, abs=model.share_error(cells))
    gone = [not each for each in came]
    assert sum(gone) == counts["drop_burst"] == lost["line", "lost in a burst"]
    assert sum(gone) / cells == pytest.approx(model.loss, abs=model.loss_error(cells))
    for apart in (1, 5, 20):
        pairs = sum(a and b for a, b in zip(gone, gone[apart:], strict=False)) / cells
        # each burst of losses counts once, whatever the number of pairs in it
        error = Z99 * math.sqrt(model.both(apart) * model.bad / cells)
        assert pairs == pytest.approx(model.both(apart), abs=error), apart


def test_states_that_last_a_time_do_not_wait_for_cells():
    model, cells = GilbertElliott(2000.0, 320.0, 0.0, 1.0), 40_000
    came, counts, _ = measured(cells, loss=1.0, **as_settings(model, ticks=True))
    ticks = 16 * cells
    cycle = model.good + model.bad
    assert counts["bad_states"] == pytest.approx(ticks / cycle, abs=Z99 * math.sqrt(ticks / cycle))
    assert came.count(False) / cells == pytest.approx(model.share, abs=model.share_error(ticks))
    assert came.count(False) == counts["bad_cells"]


def test_bit_errors_of_the_bad_state():
    """Only there, at its ratio: the good state has none."""
    cells = 40_000
    _, counts, lost = measured(cells, ber=5e-4, good_cells=60.0, bad_cells=20.0)
    bits = 424 * counts["bad_cells"]
    assert counts["error_bits"] / bits == pytest.approx(5e-4, abs=Z99 * math.sqrt(5e-4 / bits))
    assert counts["errored"] <= counts["bad_cells"]
    assert lost["line", "bit error"] > 0
