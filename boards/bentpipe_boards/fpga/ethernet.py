"""Ethernet of a board: LiteEth's core behind its PHY. LiteEth writes the core as Verilog when a bitstream is built.

The core has a clock of its own, :data:`DOMAIN`. It is slower than the board's, as the line needs no more and the paths
within LiteEth are long. :class:`UdpCore` has a :class:`~bentpipe_boards.crossing.Crossing` for each stream.
"""

from __future__ import annotations

import ipaddress
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from amaranth.hdl import ClockSignal, Const, Instance, Module, Signal
from amaranth.lib import io, wiring
from amaranth.lib.wiring import In, Out

from bentpipe_boards.crossing import Crossing
from bentpipe_boards.datagrams import DatagramSignature
from bentpipe_boards.fpga.errors import FpgaError
from bentpipe_boards.fpga.generated import generated
from bentpipe_boards.fpga.manifest import LINE_MHZ
from bentpipe_boards.fpga.pll import Dividers
from bentpipe_boards.frames import MacSignature
from bentpipe_sim.board.pipe import UDP_PORT

__all__ = [
    "DEFAULT_IP", "DOMAIN", "FRAME_PORTS", "Ethernet", "Rgmii", "UdpCore", "core_by", "core_hz",
    "join_core", "join_pins", "liteeth",
]  # fmt: skip

DEFAULT_IP: Final = "192.168.1.50"
DOMAIN: Final = "ethernet"
"""The clock domain of LiteEth's core."""
_LEAST_HZ: Final = 35_000_000
"""A word of 32 bits a clock is more than the line's 31.25 million words a second, so that a frame has no gap."""
_CORE_HZ: Final = 37_500_000
"""The clock of LiteEth's core, at least. It is a fifth more than the line needs: the frames' gaps within LiteEth, and
those of the crossings, are a few words each."""
FRAME_PORTS: Final = {"line_in": True, "line_out": False, "own_in": False, "own_out": True}
"""Streams of frames between LiteEth's MAC and its protocols; true: they leave the core."""
_RESET_S: Final = 0.02
"""The PHY is held in reset for twice as long as its data sheet asks for (KSZ9031RNX: 10 ms)."""
_REMEDY: Final = "pip install 'bentpipe[litex]', or build without Ethernet: --ip none"
_MULTICAST_MAC: Final = 1 << 40


@dataclass(frozen=True)
class Ethernet:
    """The addresses of a board.

    Members
    -------
    ip : str
    mac : int
        By default one from the range that LiteX uses.
    port : int
        For UDP.

    Raises
    ------
    FpgaError
        An address is none of a host.
    """

    ip: str
    mac: int = 0x10E2D5000000
    port: int = UDP_PORT

    def __post_init__(self) -> None:
        try:
            address = ipaddress.IPv4Address(self.ip)
        except ValueError:
            raise FpgaError(f"an IP address is four numbers, such as 192.168.1.50, not {self.ip!r}") from None
        # LiteEth sends to each address that ends in 255 as a broadcast, and so cannot have one itself
        if address.is_multicast or address.is_unspecified or address.is_reserved or address.packed[3] in (0, 255):
            raise FpgaError(f"{self.ip} is no address that a board can have")
        if not 0 < self.mac < 1 << 48 or self.mac & _MULTICAST_MAC:
            raise FpgaError(f"{self.mac:#x} is no MAC address of one station")

    @classmethod
    def of(cls, ip: str, mac: str | None) -> Ethernet:
        """Return the addresses that are written like this.

        Raises
        ------
        FpgaError
            One cannot be read.
        """
        if mac is None:
            return cls(ip)
        if not re.fullmatch(r"[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}", mac):
            raise FpgaError(f"a MAC address is six octets, such as 10:e2:d5:00:00:01, not {mac!r}")
        return cls(ip, int(mac.replace(":", ""), 16))

    def __str__(self) -> str:
        return f"{self.ip}, UDP port {self.port}, MAC {self.mac.to_bytes(6, 'big').hex(':')}"


@dataclass(frozen=True)
class Rgmii:
    """The PHY of a board.

    Members
    -------
    resource : str
        Of Amaranth's platform, with the pins of amaranth-boards.
    rx_delay_s, tx_delay_s : float
        What the FPGA delays; the PHY or the board does the rest of RGMII's 2 ns.
    """

    resource: str
    rx_delay_s: float
    tx_delay_s: float


def core_by(by: Dividers, clock_hz: int) -> int:
    """Return the divider of the PLL for LiteEth's core, if the board's clock is ``clock_hz``.

    Raises
    ------
    FpgaError
        The board's clock is too slow for the line.
    """
    if clock_hz < _LEAST_HZ:
        raise FpgaError(f"Ethernet needs a clock of {_LEAST_HZ / 1e6:g} MHz or more, not {clock_hz / 1e6:g}")
    return by.other_by(clock_hz, _CORE_HZ)


def core_hz(by: Dividers, clock_hz: int) -> int:
    """Return the clock that LiteEth's core then has, in whole Hz; errors as for :func:`core_by`."""
    return clock_hz * by.output_by // core_by(by, clock_hz)


def liteeth(ethernet: Ethernet, rgmii: Rgmii, clock_hz: int, folder: Path, *, vlans: bool = False) -> str:
    """Return LiteEth's core as Verilog: the module ``bentpipe_ethernet``. It is written into the folder first.

    Its clock is ``clock_hz``. With ``vlans`` the frames between the MAC and the protocols above it are ports of the
    core.

    Raises
    ------
    ToolError
        LiteEth is not there, or fails.
    """
    settings = {
        "clock_hz": clock_hz, "ip": ethernet.ip, "mac": ethernet.mac, "port": ethernet.port,
        "rx_delay_s": rgmii.rx_delay_s, "tx_delay_s": rgmii.tx_delay_s, "vlans": vlans,
    }  # fmt: skip
    return generated("liteeth", settings, folder / "ethernet.v", _REMEDY)


class UdpCore(wiring.Component):
    """LiteEth's core: ARP, ICMP echo, and UDP on one port, behind RGMII.

    The core is in the clock domain :data:`DOMAIN`, and the streams are in ``sync``.

    Parameters
    ----------
    clock_hz : int
        Of :data:`DOMAIN`.
    reset_s : float
        Time for which the PHY is held in reset.
    vlans : bool
        The frames between the MAC and the protocols above it go through :data:`FRAME_PORTS`.

    Members
    -------
    received, sent : Out(DatagramSignature), In(DatagramSignature)
    line_in, line_out, own_in, own_out : Out, In, In, Out(MacSignature)
        With ``vlans``: frames of the MAC, and those of the protocols.
    rx_clk, rx_ctl, rx_data : In(1), In(1), In(4)
    tx_clk, tx_ctl, tx_data : Out(1), Out(1), Out(4)
    phy_rst_n : Out(1)
        Pins of the PHY.
    """

    def __init__(self, *, clock_hz: int, reset_s: float = _RESET_S, vlans: bool = False):
        self._reset_clocks, self._vlans = math.ceil(clock_hz * reset_s), vlans
        frames = {name: (Out if leaves else In)(MacSignature()) for name, leaves in FRAME_PORTS.items()}
        super().__init__(
            {
                "received": Out(DatagramSignature()),
                "sent": In(DatagramSignature()),
                "rx_clk": In(1),
                "rx_ctl": In(1),
                "rx_data": In(4),
                "tx_clk": Out(1),
                "tx_ctl": Out(1),
                "tx_data": Out(4),
                "phy_rst_n": Out(1),
                **(frames if vlans else {}),
            }
        )

    def elaborate(self, platform):
        m = Module()
        # LiteEth holds the PHY in reset while it is itself, and for 256 clocks more
        waited, reset = Signal(range(self._reset_clocks + 1)), Signal(init=1)
        with m.If(waited != self._reset_clocks):
            m.d[DOMAIN] += waited.eq(waited + 1)
        with m.Else():
            m.d[DOMAIN] += reset.eq(0)
        ports = {
            "i_clk": ClockSignal(DOMAIN), "i_rst": reset, "o_rgmii_rst_n": self.phy_rst_n,
            "i_rgmii_clocks_rx": self.rx_clk, "o_rgmii_clocks_tx": self.tx_clk,
            "i_rgmii_rx_ctl": self.rx_ctl, "i_rgmii_rx_data": self.rx_data,
            "o_rgmii_tx_ctl": self.tx_ctl, "o_rgmii_tx_data": self.tx_data,
        }  # fmt: skip
        streams = {"received": (True, DatagramSignature()), "sent": (False, DatagramSignature())}
        if self._vlans:
            streams |= {name: (leaves, MacSignature()) for name, leaves in FRAME_PORTS.items()}
        for stream, (leaves, signature) in streams.items():
            domains = (DOMAIN, "sync") if leaves else ("sync", DOMAIN)
            m.submodules[stream] = crossing = Crossing(signature, i_domain=domains[0], o_domain=domains[1])
            outer, inner = (crossing.o, crossing.i) if leaves else (crossing.i, crossing.o)
            wiring.connect(m, wiring.flipped(getattr(self, stream)), outer)
            for name in signature.members:
                way = "o" if leaves ^ (name == "ready") else "i"
                ports[f"{way}_{stream}_{name}"] = getattr(inner, name)
        m.submodules.core = Instance("bentpipe_ethernet", **ports)
        return m


def join_core(m: Module, core: UdpCore, serial: wiring.Component) -> None:
    """Join a core and a board: its datagrams, and its frames if the plan has VLANs."""
    wiring.connect(m, core.received, serial.received)
    wiring.connect(m, serial.sent, core.sent)
    for name in FRAME_PORTS:
        if name in core.signature.members:
            wiring.connect(m, getattr(core, name), getattr(serial, name))


def join_pins(m: Module, platform, rgmii: Rgmii, core: UdpCore) -> None:
    """Join a core and the pins of a board. The PHY's management is not used: its pins hold their straps' setting."""
    pins = platform.request(rgmii.resource, 0, dir="-")
    platform.add_clock_constraint(pins.rx_clk.io, LINE_MHZ * 1e6)  # of the port: yosys 0.70 renames the net behind it
    ins = {"rx_clk": core.rx_clk, "rx_ctrl": core.rx_ctl, "rx_data": core.rx_data}
    # The pin is the reset, inverted by amaranth-boards' PinsN
    outs = {
        "tx_clk": core.tx_clk, "tx_ctrl": core.tx_ctl, "tx_data": core.tx_data, "rst": ~core.phy_rst_n,
        "mdc": Const(0),
    }  # fmt: skip
    for name, signal in ins.items():
        m.submodules[f"rgmii_{name}"] = buffer = io.Buffer("i", getattr(pins, name))
        m.d.comb += signal.eq(buffer.i)
    for name, signal in outs.items():
        m.submodules[f"rgmii_{name}"] = buffer = io.Buffer("o", getattr(pins, name))
        m.d.comb += buffer.o.eq(signal)
    m.submodules.rgmii_mdio = io.Buffer("io", pins.mdio)  # it drives nothing; its pull-up is on the board
