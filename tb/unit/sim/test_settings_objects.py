"""Nodes and VCs take settings objects; the calls of 0.1, with keyword arguments, make the same and warn."""

from __future__ import annotations

import warnings
from contextlib import suppress
from typing import Any

import pytest

from bentpipe_hdl.link.control import LinkSettings
from bentpipe_hdl.nic.control import NicLine, NicSettings, PacingSettings
from bentpipe_hdl.sonet.control import SonetSettings
from bentpipe_hdl.switch.control import PortSettings, SwitchPort, SwitchSettings, VcSettings
from bentpipe_sim.errors import NetworkError
from bentpipe_sim.network import Network

RATE = 40_704_000


def state(node: Any) -> tuple[Any, ...]:
    return node.settings, getattr(node, "line", None), getattr(node, "lines", None)


@pytest.mark.parametrize(
    ("call", "new", "old"),
    [
        ("add_nic", ((NicSettings(oam=True),), {"line": NicLine(RATE, -3.0, nni=True)}),
         ((RATE,), {"clock_ppm": -3.0, "nni": True, "oam": True})),
        ("add_nic", ((), {"line": NicLine(RATE)}), ((), {"rate_bps": RATE})),
        ("add_switch",
         ((SwitchSettings(buffer_cells=9),),
          {"ports": [SwitchPort(RATE, 1.0), SwitchPort(RATE, 2.0, nni=True, settings=PortSettings(queue_limit=4))]}),
         (([RATE, RATE],),
          {"port_clock_ppm": (1.0, 2.0), "nni_ports": [1], "port_settings": {1: PortSettings(queue_limit=4)},
           "buffer_cells": 9})),
        ("add_link", ((LinkSettings(delay_ps=5, ber=1e-6),), {}), ((), {"delay_ps": 5, "ber": 1e-6})),
        ("add_sonet_line", ((SonetSettings(sts=12),), {}), ((), {"sts": 12})),
    ],
)  # fmt: skip
def test_both_calls_make_the_same_node(call: str, new: Any, old: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one = getattr(Network(), call)("n", *new[0], **new[1])
    with pytest.warns(DeprecationWarning, match=f"{call}: settings as keyword arguments go in 0.3") as told:
        other = getattr(Network(), call)("n", *old[0], **old[1])
    assert state(one) == state(other)
    assert {warning.filename for warning in told} == {__file__}


def pair() -> tuple[Network, list[Any]]:
    network = Network()
    nodes = [network.add_nic("a"), network.add_switch("s"), network.add_nic("b")]
    network.connect(nodes[0], (nodes[1], 0))
    network.connect((nodes[1], 1), nodes[2])
    return network, nodes


def test_both_calls_make_the_same_vc() -> None:
    pacing = PacingSettings(cell_rate_bps=20_000_000, sustained_rate_bps=3_000_000, burst=20)
    given, other = VcSettings(policy="tail", limit=5), VcSettings(limit=7)
    (one, new), (two, old) = pair(), pair()
    one.add_vc(new, 0, 32, given, pacing=pacing)
    with pytest.warns(DeprecationWarning, match=r"add_vc: .* (Vc|Pacing)Settings object"):
        two.add_vc(old, 0, 32, policy="tail", limit=5, **pacing.members())
    assert (new[0].sends, new[1].vcs) == (old[0].sends, old[1].vcs)
    one.change_vc(0, other)
    with pytest.warns(DeprecationWarning, match="change_vc: "):
        two.change_vc(0, limit=7)
    assert (new[0].sends, new[1].vcs) == (old[0].sends, old[1].vcs)


def test_an_object_and_keyword_arguments_do_not_go_together() -> None:
    with pytest.raises(NetworkError, match="link n: give a LinkSettings object or keyword arguments, not both"):
        Network().add_link("n", LinkSettings(), ber=1e-6)


def test_the_object_is_not_validated_again() -> None:
    """A model that holds what validation would refuse comes through: whoever made it has validated it."""
    network = Network()
    settings = LinkSettings.of_read({"delay_ps": -5})
    link = network.add_link("n", settings)
    assert link.settings is settings
    link.change(LinkSettings.of_read({"delay_ps": -7}))
    assert link.settings.delay_ps == -7
    with suppress(NetworkError):
        link.change(delay_ps=-9)
    assert link.settings.delay_ps == -7


def test_a_node_takes_its_own_kind_of_settings_only() -> None:
    with pytest.raises(NetworkError, match="its settings are LinkSettings, not NicSettings"):
        Network().add_link("n").change(NicSettings())
