"""Schedulers in an experiment's file: what is refused, and what a switch is built with and told."""

from __future__ import annotations

from typing import Any

import pytest

from bentpipe.errors import ConfigError
from bentpipe.experiment.document.catalogue import find, read_document
from bentpipe.experiment.document.source import Source
from bentpipe.experiment.resolve.parse import parse_experiment
from bentpipe_hdl.registers import Recorder
from bentpipe_hdl.switch.control import (
    PortSettings,
    SwitchDriver,
    SwitchPort,
    SwitchSettings,
    SwitchVc,
    VcSettings,
    options_for,
)
from bentpipe_hdl.switch.options import Setup, options_of

LAN: dict[str, Any] = {"scheduler": "round-robin"}


def read(switch: dict[str, Any], vc: dict[str, Any]) -> None:
    document, text = read_document(find("theory-weighted"))
    document["network"]["switches"]["lan"] |= switch
    for each in document["vc"]:
        del each["weight"]
    document["vc"][0] |= vc
    parse_experiment(document, Source("x.toml", text))


@pytest.mark.parametrize(
    ("switch", "vc", "message"),
    [
        ({"scheduler": "fair"}, {}, "unknown value 'fair'.* known: fifo, round-robin, virtual-clock, weighted"),
        ({}, {"weight": 0}, "0 is out of range 1..255"),
        ({}, {"priority": 4}, "4 is out of range 0..3"),
        ({}, {"priority": -1}, "-1 is out of range 0..3"),
        ({"scheduler": "fifo"}, {"weight": 2}, 'vc.0.weight: no switch on its way .* scheduler = "weighted"'),
        ({}, {"service_rate": "1 Mb/s"}, 'vc.0.service_rate: no switch on its way .* scheduler = "virtual-clock"'),
        ({"scheduler": "virtual-clock"}, {"service_rate": "-1 Mb/s"}, "impossible rate '-1 Mb/s'"),
    ],
)
def test_what_makes_no_sense_is_refused(switch: dict[str, Any], vc: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read(switch, vc)


def setup(switch: str = "round-robin", ports: tuple[str | None, ...] = (None, None), **vc: Any) -> Setup:
    return Setup(
        SwitchSettings(scheduler=switch),
        [SwitchPort(100e6, settings=PortSettings(scheduler=port)) for port in ports],
        [SwitchVc(0, 0, 32, 1, 0, 64, VcSettings(**vc)), SwitchVc(0, 0, 33, 1, 0, 65, VcSettings(**vc))],
    )


@pytest.mark.parametrize(
    ("given", "options"),
    [
        (setup(), []),
        (setup("weighted"), []),
        (setup("weighted", weight=2), ["shares"]),
        (setup(weight=2), []),  # of another switch's ports
        (setup(ports=(None, "weighted"), weight=2), ["shares"]),
        (setup(priority=1), ["shares"]),
        (setup(ports=("fifo", None)), ["fifo"]),
        (setup("fifo", priority=3), ["fifo", "shares"]),
        (setup("virtual-clock"), ["virtual-clock"]),
    ],
)
def test_a_switch_is_built_with_what_its_settings_ask_for(given: Setup, options: list[str]) -> None:
    assert [option.name for option in options_of(options_for(given))] == options


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (setup(ports=("virtual-clock", None)), "virtual-clock is for all ports of a switch"),
        (setup("virtual-clock", ("fifo", None)), "virtual-clock is for all ports of a switch"),
        (setup("virtual-clock", priority=1), "virtual-clock knows no priorities"),
        (setup("virtual-clock", service_rate_bps=51_000_000), "100 Mb/s has VCs with service rates of 102 Mb/s"),
    ],
)
def test_what_a_virtual_clock_can_not_do_is_said(given: Setup, message: str) -> None:
    (line,) = (what for option in options_of(options_for(given)) for what in option.check(given))
    assert message in line


def test_weights_hold_only_where_ports_go_by_them() -> None:
    given = setup(ports=(None, "weighted"), weight=7, priority=2)
    for vc, expected in ((given.vcs, 7 | 2 << 8), ([SwitchVc(0, 0, 32, 0, 0, 64, given.vcs[0].settings)], 1 | 2 << 8)):
        bus = Recorder()
        driver = SwitchDriver(bus, vcs=2, cells=10, ports=2, options=options_for(given))
        driver.configure(given.settings, given.ports, vc)
        assert dict(bus.writes)[driver.csr.map["share"].addr] == expected
