"""A switch or an interface without a VC, with an option that nothing asks for.

Its driver writes its registers and reads its counters all the same. A node may be built with more options than its
network uses.
"""

import pytest

from bentpipe_hdl.nic.control import NicDriver, NicLine, NicSettings
from bentpipe_hdl.nic.options import OPTIONS as NIC_OPTIONS
from bentpipe_hdl.registers import Recorder
from bentpipe_hdl.switch.control import SwitchDriver, SwitchPort, SwitchSettings
from bentpipe_hdl.switch.options import OPTIONS, options_word

VCS = 8
LINES = {"frames": NicLine(rate_bps=40_704_000, frames="plcp")}


class Silent(Recorder):
    """A bus whose registers are all 0."""

    def read(self, addr):
        del addr
        return 0


@pytest.mark.parametrize("ports", [0, 2])
@pytest.mark.parametrize("name", [option.name for option in OPTIONS])
def test_a_switch_with_an_option_needs_no_vc(name, ports):
    bus = Silent()
    driver = SwitchDriver(bus, vcs=VCS, cells=24, ports=2, options=options_word([name]))
    driver.configure(SwitchSettings(buffer_cells=24), [SwitchPort()] * ports, [])
    assert bus.writes
    assert driver.counters()["accepted"] == []


@pytest.mark.parametrize("name", [option.name for option in NIC_OPTIONS])
def test_an_interface_with_an_option_needs_no_vc(name):
    bus = Silent()
    driver = NicDriver(bus, vcs=VCS, **{name: 1})
    driver.configure(NicSettings(), LINES.get(name, NicLine()), {}, {})
    assert bus.writes
    assert driver.counters()["tx_cells"] == []
