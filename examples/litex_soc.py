"""A LiteX SoC with AAL5 and a SONET terminal, whose line is looped back.

Run it: ``python examples/litex_soc.py FOLDER`` writes ``top.v``, the cores' Verilog and ``csr.csv`` into the folder.
It has no CPU: the bus master is at the top's pads ``wishbone_*``, for a test bench. On a board, give the SoC a CPU or
a UARTBone, and connect ``line_out`` and ``line_in`` to a transceiver. It needs the package ``litex``.
"""

# pyright: reportMissingImports=false, reportMissingTypeStubs=false, reportAttributeAccessIssue=false

import argparse
from pathlib import Path

from litex.build.generic_platform import Pins
from litex.build.sim import SimPlatform
from litex.gen import LiteXModule
from litex.soc.integration.export import get_csr_csv
from litex.soc.integration.soc_core import SoCCore
from litex.soc.interconnect import wishbone
from migen import ClockDomain

from bentpipe_boards.litex_cores import Aal5, PduCsr, SonetTerminal

MASTER = {"adr": 30, "dat_w": 32, "dat_r": 32, "sel": 4, "cyc": 1, "stb": 1, "ack": 1, "we": 1, "err": 1}


class Platform(SimPlatform):
    """Pads for clock, reset and a bus master."""

    def __init__(self):
        pads = [("wishbone_" + name, 0, Pins(width)) for name, width in MASTER.items()]
        super().__init__("SIM", [("sys_clk", 0, Pins(1)), ("sys_rst", 0, Pins(1)), *pads])


class Clock(LiteXModule):
    """The clock and its reset, from pads."""

    def __init__(self, platform):
        self.cd_sys = ClockDomain()
        self.comb += [
            self.cd_sys.clk.eq(platform.request("sys_clk")),
            self.cd_sys.rst.eq(platform.request("sys_rst")),
        ]


class Soc(SoCCore):
    """PDUs by CSRs, through AAL5 and the terminal, over the line, and back."""

    def __init__(self, platform, folder):
        self.crg = Clock(platform)
        super().__init__(
            platform, int(19.44e6), cpu_type=None, with_uart=False, with_timer=False, integrated_sram_size=0
        )
        master = wishbone.Interface(data_width=32, adr_width=32, addressing="word")
        self.bus.add_master("pads", master)
        for name in MASTER:
            pad, signal = platform.request("wishbone_" + name), getattr(master, name)
            self.comb += pad.eq(signal) if name in ("dat_r", "ack", "err") else signal.eq(pad)

        self.pdu = PduCsr()
        self.aal5 = Aal5(platform, vcs=16, folder=folder)
        self.sonet = SonetTerminal(platform, n=3, folder=folder)
        self.sonet.add_to(self, "sonet", 0x30000000)
        self.comb += [
            self.pdu.source.connect(self.aal5.sink),
            self.aal5.source.connect(self.pdu.sink),
            self.aal5.cells_source.connect(self.sonet.sink),
            self.sonet.source.connect(self.aal5.cells_sink, omit={"dest"}),
            self.aal5.cells_sink.dest.eq(0),  # all cells are VC 0's; a look-up could stand here
        ]
        self.sync += self.sonet.line_in.eq(self.sonet.line_out)


def build(folder):
    """Write the SoC into a folder; return its Verilog files."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    platform = Platform()
    soc = Soc(platform, folder)
    made = platform.get_verilog(soc)
    for name, text in {"top.v": made.main_source, **made.data_files}.items():  # its write() has the data elsewhere
        (folder / name).write_text(text)
    (folder / "csr.csv").write_text(get_csr_csv(soc.csr_regions, soc.constants, soc.mem_regions))
    return [folder / "top.v", *(Path(file) for file, *_ in platform.sources)]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write a LiteX SoC with cores of bentpipe.")
    parser.add_argument("folder", type=Path)
    for file in build(parser.parse_args().folder):
        print(file)
