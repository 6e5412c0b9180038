"""DDR3 memory of a board: LiteDRAM's core behind its pins. LiteDRAM writes the core as Verilog when a bitstream is
built.

The core has a clock of its own, :data:`DOMAIN`, which its PHY makes of a clock twice as fast. :class:`Ddr3Memory` has a
:class:`~bentpipe_boards.crossing.Crossing` for each stream.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from amaranth.hdl import ClockDomain, ClockSignal, DomainRenamer, Instance, Module, ResetSignal, Signal
from amaranth.lib import io, wiring
from amaranth.lib.wiring import In, flipped

from bentpipe_boards.crossing import Crossing
from bentpipe_boards.ddr3 import STREAMS, Ddr3Port, Ddr3Signature
from bentpipe_boards.fpga.generated import generated
from bentpipe_boards.fpga.pll import Dividers
from bentpipe_boards.top import OctetTop
from bentpipe_sim.board.windows import Plan

__all__ = [
    "DOMAIN", "SIMULATED_HZ", "Ddr3Memory", "WithDdr3", "fast_by", "litedram", "memory_hz", "rows_of", "start_by",
    "start_hz",
]  # fmt: skip

DOMAIN: Final = "memory"
"""The clock domain of LiteDRAM's core."""
_MOST_HZ: Final = 75_000_000
"""The clock of LiteDRAM's core, at most: that of LiteX' own target for ECPIX-5. The chip's is twice as high."""
_START_HZ: Final = 25_000_000
"""The clock that starts the PHY, at least: about that of LiteX."""
SIMULATED_HZ: Final = 75_000_000
_RECORDS_A_ROW: Final = 8 * 1024 * 2 // 64
"""Records in the rows of one number in all banks: 8, of 1,024 halfwords."""
_OUTPUTS: Final = {
    "a": ("a", 15), "ba": ("ba", 3), "ras_n": ("ras", 1), "cas_n": ("cas", 1), "we_n": ("we", 1), "dm": ("dm", 2),
    "clk_p": ("clk", 1), "cke": ("clk_en", 1), "odt": ("odt", 1),
}  # fmt: skip
"""Outputs of the core: names of amaranth-boards, and widths."""
_INVERTED: Final = ("ras", "cas", "we")
"""Pins that amaranth-boards inverts; the core's outputs are low-active themselves."""


def fast_by(by: Dividers, clock_hz: int) -> int:
    """Return the divider of the PLL for the clock of the PHY, if the board's clock is ``clock_hz``."""
    return -(-clock_hz * by.output_by // (2 * _MOST_HZ))


def memory_hz(by: Dividers, clock_hz: int) -> int:
    """Return the clock that LiteDRAM's core then has, in whole Hz."""
    return clock_hz * by.output_by // fast_by(by, clock_hz) // 2


def start_by(by: Dividers, clock_hz: int) -> int:
    """Return the divider of the PLL for the clock that starts the PHY."""
    return by.other_by(clock_hz, _START_HZ)


def start_hz(by: Dividers, clock_hz: int) -> int:
    """Return the clock that starts the PHY, in whole Hz."""
    return clock_hz * by.output_by // start_by(by, clock_hz)


def litedram(clock_hz: int, folder: Path, *, rows: int = 0) -> str:
    """Return LiteDRAM's core as Verilog: the module ``bentpipe_ddr3``. It is written into the folder first.

    Its clock is ``clock_hz``. ``rows`` are those of each bank of LiteDRAM's model of a PHY and a chip; 0: the core has
    the PHY of an ECP5.

    Raises
    ------
    ToolError
        LiteDRAM is not there, or fails.
    """
    settings = {"clock_hz": clock_hz, "rows": rows}
    without = "" if rows else ", or take wires of block memory"
    return generated("litedram", settings, folder / "ddr3.v", f"pip install 'bentpipe[litex]'{without}")


class Ddr3Memory(wiring.Component):
    """LiteDRAM's core, a port for records before it, and the crossings from the core of a board.

    Parameters
    ----------
    platform, resource
        A platform and the name of its memory, whose pins the core has. None: the core has LiteDRAM's model.
    others : mapping of str to Value, optional
        Further ports of the core, as for an Instance.

    Members
    -------
    streams : In(Ddr3Signature)
        In ``sync``.
    fast_clk, start_clk, rst : In(1)
        Twice the core's clock, or that of the model; the clock that starts the PHY; the reset of both.
    """

    def __init__(self, platform: Any = None, resource: str = "", others: Mapping[str, Any] | None = None):
        self._platform, self._resource, self._others = platform, resource, others or {}
        super().__init__({"streams": In(Ddr3Signature()), "fast_clk": In(1), "start_clk": In(1), "rst": In(1)})

    def elaborate(self, platform):
        m = Module()
        m.domains += ClockDomain(DOMAIN, local=True)
        m.submodules.port = port = DomainRenamer(DOMAIN)(Ddr3Port())
        for name, (leaves, signature) in STREAMS.items():
            domains = ("sync", DOMAIN) if leaves else (DOMAIN, "sync")
            m.submodules[name] = crossing = Crossing(signature, i_domain=domains[0], o_domain=domains[1])
            outer, inner = flipped(getattr(self.streams, name)), getattr(port, name)
            begin, end = (outer, inner) if leaves else (inner, outer)
            wiring.connect(m, begin, crossing.i)
            wiring.connect(m, crossing.o, end)
        ports: dict[str, Any] = {
            "i_fast_clk": self.fast_clk, "i_rst": self.rst,
            "o_clk": ClockSignal(DOMAIN), "o_clk_rst": ResetSignal(DOMAIN),
        }  # fmt: skip
        for name, member in port.native.signature.members.items():
            way = "i" if member.flow.name == "Out" else "o"
            ports[f"{way}_native_{name}"] = getattr(port.native, name)
        if self._platform is not None:
            ports |= {"i_init_clk": self.start_clk, **self._pins(m)}
        m.submodules.core = Instance("bentpipe_ddr3", **ports, **self._others)
        return m

    def _pins(self, m):
        """Return the ports of the core for the pins. The core has the buffers of the data lines itself."""
        pins, ports = self._platform.request(self._resource, 0, dir="-"), {}
        for name, (pin, width) in _OUTPUTS.items():
            port = getattr(pins, pin)
            m.submodules[f"ddr3_{pin}"] = buffer = io.Buffer("o", ~port if pin in _INVERTED else port)
            ports[f"o_ddram_{name}"] = signal = Signal(width, name=f"ddram_{name}")
            m.d.comb += buffer.o.eq(signal)
        return ports | {"io_ddram_dq": pins.dq.io, "io_ddram_dqs_p": pins.dqs.p}


class WithDdr3(wiring.Component):
    """:class:`~bentpipe_boards.top.OctetTop` with LiteDRAM, and its model of a PHY and a chip, in the same clock.

    Parameters
    ----------
    plan : Plan
        Plan with wires in a DDR3 memory.
    """

    def __init__(self, plan):
        self._octets = OctetTop(plan)
        super().__init__({name: member for name, member in self._octets.signature.members.items() if name != "memory"})

    def elaborate(self, platform):
        m = Module()
        m.submodules.octets = octets = self._octets
        m.submodules.ddr3 = memory = Ddr3Memory()
        m.d.comb += [memory.fast_clk.eq(ClockSignal("sync")), memory.rst.eq(ResetSignal("sync"))]
        wiring.connect(m, octets.memory, memory.streams)
        for name in self.signature.members:
            ours, inner = getattr(self, name), getattr(octets, name)
            m.d.comb += inner.eq(ours) if name in ("rx", "rx_valid", "tx_ready") else ours.eq(inner)
        return m


def rows_of(plan: Plan) -> int:
    """Return the rows of each bank in which a plan's records lie, a power of two."""
    records = len(plan.sdram) * plan.sdram_cells
    return max(2, 1 << (-(-records // _RECORDS_A_ROW) - 1).bit_length())
