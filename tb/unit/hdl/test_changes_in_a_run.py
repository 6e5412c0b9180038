"""Drivers of nodes that work: only registers with another value are written, and all that may change is."""

import pytest

from bentpipe_hdl.link.control import BurstSettings, LinkDriver, LinkSettings
from bentpipe_hdl.registers import Recorder
from bentpipe_hdl.settings import in_run, quantity_of
from bentpipe_hdl.sonet.control import SonetDriver, SonetSettings
from bentpipe_hdl.switch.control import SwitchDriver, SwitchPort, SwitchSettings, SwitchVc, VcSettings, options_for
from bentpipe_hdl.switch.options import Setup

ALIKE = VcSettings()


def written(driver, before, after):
    """Return the writes of a change: names of registers, of a table with the place, and values."""
    driver.change(before, after)
    found = []
    for addr, value in driver._bus.writes:
        name, start, register = next(
            (name, start, each) for name, start, each in driver.csr.map.walk() if start <= addr < start + each.size
        )
        found.append((name if register.count is None else f"{name}[{(addr - start) // register.words}]", value))
    driver._bus.writes.clear()
    return found


def switch(settings, vcs=(ALIKE,), rate=149_760_000):
    ports = [SwitchPort(rate), SwitchPort()]
    made = [SwitchVc(0, 1, 40 + k, 1, 1, 40 + k, each) for k, each in enumerate(vcs)]
    return lambda driver: driver.configure(SwitchSettings(**settings), ports, made)


def test_a_threshold_is_written_alone():
    driver = SwitchDriver(Recorder(), vcs=4, cells=100, ports=2)
    size = {"buffer_cells": 100}
    assert written(driver, switch(size), switch(size | {"clp_threshold": 50})) == [("clp_threshold", 50)]
    assert written(driver, switch(size), switch(size)) == []


def test_what_takes_two_words_is_written_whole():
    driver = SwitchDriver(Recorder(), vcs=4, cells=100, ports=2)
    size = {"buffer_cells": 100}
    changes = written(driver, switch(size), switch(size, rate=149_760_000 / 2))
    assert changes == [("period[0]", 32 << 16), ("period[0]", 0)]
    changes = written(driver, switch(size, [ALIKE, ALIKE]), switch(size, [ALIKE, VcSettings(policy="tail")]))
    assert [name for name, _ in changes] == ["vc_policy[1]", "vc_policy[1]"]
    assert driver.csr.vc_policy[1].ppd == 0  # what can't be read is known as written
    assert driver.csr.vc_policy[1].limit == 100


OTHERS = {
    "delay_ps": 7_000_000_000,
    "ber": 1e-6,
    "outage": True,
    "duplicate": 0.25,
    "misinsert": 3.0,
    "lose": 2,
    "lose_of": 77,
    "policy": "tail",
    "epd_threshold": 70,
    "clp_threshold": 50,
    "oam_reserve": 3,
    "vc_limit": 20,
    "limit": 30,
    "fair_share": 1.5,
    "efci_threshold": 5,
}


NEEDS = {
    "fair_share": {"policy": "fba"},
    "weight": {"scheduler": "weighted"},
    "service_rate_bps": {"scheduler": "virtual-clock"},
}
"""What the switch has that a setting is of."""

BURSTS = {"good_cells": 5.0, "bad_cells": 6.0, "ber": 1e-5, "loss": 0.5, "good_loss": 0.5}


def another(model, name):
    """Another value of a setting than its default."""
    quantity = quantity_of(model.model_fields[name])
    return OTHERS[name] if name in OTHERS else type(quantity.low)((quantity.low + quantity.high) / 2)


def changed(needs, settings, vcs=(ALIKE,)):
    """Return the writes to a switch with the options that it ``needs`` when it gets these settings and VCs instead of
    the usual ones.
    """
    size = {"buffer_cells": 100} | needs
    ports = [SwitchPort(), SwitchPort()]
    setups = []
    for given, each in ((size, (ALIKE,)), (size | settings, vcs)):
        made = [SwitchVc(0, 1, 40 + k, 1, 1, 40 + k, of) for k, of in enumerate(each)]
        setups.append(Setup(SwitchSettings(**given), ports, made))
    options = options_for(setups[0]) | options_for(setups[1])
    driver = SwitchDriver(Recorder(), vcs=4, cells=100, ports=2, options=options)
    return written(driver, *(lambda d, s=s: d.configure(s.settings, s.ports, s.vcs) for s in setups))


@pytest.mark.parametrize("name", [name for name, field in SwitchSettings.model_fields.items() if in_run(field)])
def test_all_of_a_switch_that_may_change_is_written(name):
    assert changed(NEEDS.get(name, {}), {name: another(SwitchSettings, name)})


@pytest.mark.parametrize("name", [name for name, field in VcSettings.model_fields.items() if in_run(field)])
def test_all_of_a_vc_that_may_change_is_written(name):
    assert changed(NEEDS.get(name, {}), {}, [VcSettings(**{name: another(VcSettings, name)})])


@pytest.mark.parametrize("name", [name for name, field in LinkSettings.model_fields.items() if in_run(field)])
def test_all_of_a_link_that_may_change_is_written(name):
    driver = LinkDriver(Recorder(), faults=1, pattern=1, extra=1)
    before, after = LinkSettings(), LinkSettings(**{name: OTHERS[name]})
    assert written(driver, lambda d: d.apply(before), lambda d: d.apply(after))


@pytest.mark.parametrize("name", ["good_cells", "bad_cells", "ber", "loss", "good_loss"])
def test_all_of_bursts_that_may_change_is_written(name):
    driver, bursts = LinkDriver(Recorder(), faults=1), {"good_cells": 9.0, "bad_cells": 8.0}
    before, after = (LinkSettings(bursts=BurstSettings(**given)) for given in (bursts, bursts | {name: BURSTS[name]}))
    names = {name for name, _ in written(driver, lambda d: d.apply(before), lambda d: d.apply(after))}
    assert names and not {"length", "length_seed", "loss_seed", "bad_seed", "burst_enable"} & names


def test_the_seed_of_a_link_stays_when_its_ratio_changes():
    driver = LinkDriver(Recorder())
    before, after = LinkSettings(ber=1e-9), LinkSettings(ber=1e-6)
    names = [name for name, _ in written(driver, lambda d: d.apply(before), lambda d: d.apply(after))]
    assert names == ["error_mantissa", "error_shift"]


def test_one_way_of_a_sonet_line_is_written_alone():
    driver = SonetDriver(Recorder(), sts=3)
    before, after = SonetSettings(ber=(0, 1e-9)), SonetSettings(ber=(1e-6, 1e-9))
    names = [name for name, _ in written(driver, lambda d: d.apply(before), lambda d: d.apply(after))]
    assert names == ["mantissa_01", "shift_01", "random_01"]
