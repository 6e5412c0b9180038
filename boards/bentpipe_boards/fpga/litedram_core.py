"""LiteDRAM as Verilog: ``python -m bentpipe_boards.fpga.litedram_core FILE SETTINGS`` (JSON). It needs the package
``litedram``.

The core has LiteDRAM's controller with one native port, and its PHY for DDR3 on an ECP5, or LiteDRAM's model of a PHY
and a chip. No CPU is in it: its registers are a bus, and software on a computer starts the chip through them
(:mod:`bentpipe_sim.board.ddr3`). All ports but the chip's are in the clock domain of the output ``clk``.
"""

# pyright: reportMissingImports=false, reportMissingTypeStubs=false, reportAttributeAccessIssue=false
# (Migen has no types, and LiteX is not in every environment)

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from litedram.common import PhySettings, get_default_cl_cwl, get_sys_latency, get_sys_phase
from litedram.core import LiteDRAMCore
from litedram.modules import MT41K256M16
from litedram.phy import ECP5DDRPHY, dfi
from litedram.phy.model import SDRAMPHYModel
from litex.build.generic_platform import Pins, Subsignal
from litex.build.lattice import LatticePlatform
from litex.build.lattice.common import LatticeECP5Tristate
from litex.gen import LiteXModule
from litex.soc.interconnect import csr_bus
from litex.soc.interconnect.csr import CSR, CSRStatus, CSRStorage
from migen import Cat, ClockDomain, If, Instance, Replicate, Signal
from migen.fhdl.specials import Tristate
from migen.genlib.resetsync import AsyncResetSynchronizer

from bentpipe_boards.ddr3 import ADDR_BITS, CSR_BITS, DATA_BITS
from bentpipe_sim.board.ddr3 import BANKS, BITSLIPS, BYTES, DELAYS, REGISTERS

__all__ = ["Memory", "Settings", "addresses"]

_PHASES = 2
_NATIVE = {
    "cmd_valid": 1, "cmd_ready": 1, "cmd_we": 1, "cmd_addr": ADDR_BITS, "wdata_data": DATA_BITS, "wdata_ready": 1,
    "rdata_valid": 1, "rdata_data": DATA_BITS,
    "csr_adr": CSR_BITS, "csr_we": 1, "csr_re": 1, "csr_dat_w": 32, "csr_dat_r": 32,
}  # fmt: skip
_PINS = {
    "a": 15, "ba": 3, "ras_n": 1, "cas_n": 1, "we_n": 1, "dm": 2, "dq": 16, "dqs_p": 2, "clk_p": 1, "cke": 1, "odt": 1,
}  # fmt: skip
_SEEN = {"a": 15, "ba": 3, "cs_n": 1, "ras_n": 1, "cas_n": 1, "we_n": 1, "cke": 1, "odt": 1, "reset_n": 1}


def _port(name: str, parts: dict[str, int]) -> tuple[Any, ...]:
    return (name, 0, *(Subsignal(part, Pins(width)) for part, width in parts.items()))


_IO = [
    *((name, 0, Pins(1)) for name in ("fast_clk", "init_clk", "rst", "clk", "clk_rst")),
    _port("native", _NATIVE),
    _port("ddram", _PINS),
    *(_port(f"seen{phase}", _SEEN) for phase in range(_PHASES)),
]


@dataclass(frozen=True)
class Settings:
    """Settings of the core.

    Members
    -------
    clock_hz : int
        Clock of the controller; the chip's is twice as high.
    rows : int
        Rows of each bank of LiteDRAM's model of a PHY and a chip. Its clock is ``fast_clk``. 0: the PHY of an ECP5.
    """

    clock_hz: int
    rows: int = 0


class _Clocks(LiteXModule):
    """The clocks of the PHY. Its edge clock can be stopped, and the controller's clock is half of it."""

    def __init__(self, platform: Any) -> None:
        self.cd_init = ClockDomain()  # Migen takes the names from these lines
        self.cd_sys = ClockDomain()
        self.cd_sys2x = ClockDomain(reset_less=True)
        self.stop, self.reset = Signal(), Signal()
        rst = platform.request("rst")
        self.comb += self.cd_init.clk.eq(platform.request("init_clk"))
        self.specials += [
            Instance("ECLKSYNCB", i_ECLKI=platform.request("fast_clk"), i_STOP=self.stop, o_ECLKO=self.cd_sys2x.clk),
            Instance(
                "CLKDIVF", p_DIV="2.0", i_ALIGNWD=0, i_CLKI=self.cd_sys2x.clk, i_RST=self.reset, o_CDIVX=self.cd_sys.clk
            ),
            AsyncResetSynchronizer(self.cd_init, rst),
            AsyncResetSynchronizer(self.cd_sys, rst | self.reset),
        ]


class _ModelPhy(LiteXModule):
    """LiteDRAM's model of a PHY and a chip, with phases and latencies of the ECP5's PHY, and its registers.

    A byte is read rightly with some settings only, other ones for each byte.
    """

    def __init__(self, module: Any, settings: Settings) -> None:
        self._dly_sel = CSRStorage(BYTES)
        self._rdly_dq_rst = CSR()
        self._rdly_dq_inc = CSR()
        self._rdly_dq_bitslip_rst = CSR()
        self._rdly_dq_bitslip = CSR()
        self._burstdet_clr = CSR()
        self._burstdet_seen = CSRStatus(BYTES)
        cl, cwl = get_default_cl_cwl("DDR3", 1 / (_PHASES * settings.clock_hz))
        latencies = get_sys_latency(_PHASES, cl), get_sys_latency(_PHASES, cwl)
        self.settings = PhySettings(
            phytype="SDRAMPHYModel",
            memtype="DDR3",
            databits=16,
            dfi_databits=64,
            nphases=_PHASES,
            rdphase=get_sys_phase(_PHASES, latencies[0], cl),
            wrphase=get_sys_phase(_PHASES, latencies[1], cwl),
            cl=cl,
            cwl=cwl,
            read_latency=latencies[0] + 10,
            write_latency=latencies[1],
        )
        # The model keeps half as many bursts as its size is, as a clock has a whole burst here
        module.geom_settings.rowbits = settings.rows.bit_length() - 1
        self.model = SDRAMPHYModel(module=module, settings=self.settings, clk_freq=settings.clock_hz)
        self.dfi = dfi.Interface(module.geom_settings.addressbits, module.geom_settings.bankbits, 1, 64, _PHASES)
        wrong = Signal(BYTES)
        for byte in range(BYTES):
            slip, delay, selected = Signal(max=BITSLIPS), Signal(max=DELAYS), self._dly_sel.storage[byte]
            for strobe, value in (
                (self._rdly_dq_rst, delay.eq(0)),
                (self._rdly_dq_inc, delay.eq(delay + 1)),
                (self._rdly_dq_bitslip_rst, slip.eq(0)),
                (self._rdly_dq_bitslip, slip.eq(slip + 1)),
            ):
                self.sync += If(selected & strobe.re, value)
            self.comb += wrong[byte].eq((slip != 1 + byte) | (delay < 2 + byte) | (delay > 5 + byte))
        for mine, phase in zip(self.dfi.phases, self.model.dfi.phases, strict=True):
            for name, *_ in phase.layout:
                one, other = getattr(mine, name), getattr(phase, name)
                if name == "rddata":
                    self.comb += one.eq(other ^ Cat(*[Replicate(bit, 8) for bit in wrong] * 4))
                elif name == "rddata_valid":  # the model has it for the first phase only
                    self.comb += one.eq(self.model.dfi.phases[0].rddata_valid)
                else:
                    self.comb += other.eq(one)
        self.sync += [
            If(self.dfi.phases[0].rddata_valid, self._burstdet_seen.status.eq(self._burstdet_seen.status | ~wrong)),
            If(self._burstdet_clr.re, self._burstdet_seen.status.eq(0)),
        ]


class Memory(LiteXModule):
    """The core, with its ports as pins of a LiteX platform.

    Parameters
    ----------
    platform
    settings : Settings
    """

    def __init__(self, platform: Any, settings: Settings) -> None:
        module = MT41K256M16(settings.clock_hz, f"1:{_PHASES}")
        if settings.rows:
            self.cd_sys = ClockDomain()
            domain = self.cd_sys
            self.comb += [domain.clk.eq(platform.request("fast_clk")), domain.rst.eq(platform.request("rst"))]
            self.ddrphy = phy = _ModelPhy(module, settings)
        else:
            self.clocks = clocks = _Clocks(platform)
            domain = clocks.cd_sys
            self.ddrphy = phy = ECP5DDRPHY(platform.request("ddram"), sys_clk_freq=settings.clock_hz)
            self.comb += [clocks.stop.eq(phy.init.stop), clocks.reset.eq(phy.init.reset)]
        self.comb += [platform.request("clk").eq(domain.clk), platform.request("clk_rst").eq(domain.rst)]
        self.sdram = LiteDRAMCore(
            phy=phy,
            geom_settings=module.geom_settings,
            timing_settings=module.timing_settings,
            clk_freq=settings.clock_hz,
        )
        # Software starts the chip: until then it has no clock enable
        self.sdram.dfii._control.storage.reset = 0
        native = platform.request("native")
        self._port(native)
        self._registers(native)
        if settings.rows:
            for phase, seen in enumerate(self.sdram.dfii.master.phases):
                pads = platform.request(f"seen{phase}")
                names = {"a": "address", "ba": "bank"}
                self.comb += [getattr(pads, name).eq(getattr(seen, names.get(name, name))) for name in _SEEN]

    def _port(self, native: Any) -> None:
        port = self.sdram.crossbar.get_port()
        assert port.data_width == DATA_BITS and port.address_width <= ADDR_BITS
        self.comb += [
            port.cmd.valid.eq(native.cmd_valid),
            port.cmd.we.eq(native.cmd_we),
            port.cmd.addr.eq(native.cmd_addr),
            native.cmd_ready.eq(port.cmd.ready),
            port.wdata.valid.eq(1),
            port.wdata.we.eq((1 << DATA_BITS // 8) - 1),
            port.wdata.data.eq(native.wdata_data),
            native.wdata_ready.eq(port.wdata.ready),
            port.rdata.ready.eq(1),
            native.rdata_valid.eq(port.rdata.valid),
            native.rdata_data.eq(port.rdata.data),
        ]

    def _registers(self, native: Any) -> None:
        """Make the bus of the registers."""
        widths = {"data_width": 32, "address_width": CSR_BITS}
        bus = csr_bus.Interface(**widths)
        self.banks = banks = csr_bus.CSRBankArray(self, lambda name, memory: BANKS[name], **widths)
        self.interconnect = csr_bus.InterconnectShared([bus], banks.get_buses())
        self.comb += [
            *(getattr(bus, name).eq(getattr(native, f"csr_{name}")) for name in ("adr", "we", "re", "dat_w")),
            native.csr_dat_r.eq(bus.dat_r),
        ]


def addresses(core: Memory) -> dict[str, int]:
    """Return the addresses of the registers of a finished core, by the names that software has for them."""
    found = {}
    for _, _, page, bank in core.banks.banks:
        for at, csr in enumerate(bank.simple_csrs):
            # A register of one word has the number 0 behind its name, and so has the lower one of two words
            name = csr.name.removeprefix("dfii_")
            found[name if name.endswith("data0") else name.removesuffix("0")] = page * 0x200 + at
    return found


def main() -> int:
    file, settings = Path(sys.argv[1]), Settings(**json.loads(sys.argv[2]))
    platform = LatticePlatform("LFE5UM5G-85F-8BG554I", io=_IO, toolchain="trellis")
    core = Memory(platform, settings)
    overrides = {Tristate: LatticeECP5Tristate}
    text = str(platform.get_verilog(core, name="bentpipe_ddr3", special_overrides=overrides))
    if (made := addresses(core)) != REGISTERS:
        raise ValueError(f"this LiteDRAM has other registers than its driver: {made}")
    # Without the comments, in which the date is
    file.write_text(re.sub(r"^//.*\n", "", text, flags=re.MULTILINE))
    return 0


if __name__ == "__main__":
    sys.exit(main())
