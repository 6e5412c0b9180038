"""LiteEth's UDP core as Verilog: ``python -m bentpipe_boards.fpga.liteeth_core FILE SETTINGS`` (JSON). It needs the
package ``liteeth``.

The core has ARP, ICMP echo, UDP on one port, and the MAC, behind the RGMII pins of an ECP5. Its streams are 32 bits
wide, as a core clock below 125 MHz cannot fill a line of 1 Gb/s by octets. Clock domains are ``sys``, which is the
clock of all streams, and those of the PHY; LiteEth has FIFOs between them.
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

from liteeth.common import convert_ip
from liteeth.core import LiteEthUDPIPCore
from liteeth.core.arp import LiteEthARP
from liteeth.core.icmp import LiteEthICMP
from liteeth.core.ip import LiteEthIP
from liteeth.core.udp import LiteEthUDP
from liteeth.mac.common import LiteEthMACCrossbar, LiteEthMACDepacketizer, LiteEthMACPacketizer
from liteeth.mac.core import LiteEthMACCore
from liteeth.phy.ecp5rgmii import LiteEthPHYRGMII
from litex.build.generic_platform import Pins, Subsignal
from litex.build.lattice import LatticePlatform
from litex.gen import LiteXModule
from migen import Case, ClockDomain, If, Replicate

__all__ = ["Ethernet", "Settings"]

_STREAM = (("valid", 1), ("ready", 1), ("last", 1), ("data", 32), ("ip_address", 32), ("port", 16), ("length", 16))
_FRAMES = (("valid", 1), ("ready", 1), ("last", 1), ("data", 32), ("last_be", 4), ("error", 1))
_LANES = 4
_IO = [
    ("clk", 0, Pins(1)),
    ("rst", 0, Pins(1)),
    ("rgmii_clocks", 0, Subsignal("tx", Pins(1)), Subsignal("rx", Pins(1))),
    (
        "rgmii", 0,
        *(Subsignal(name, Pins(width)) for name, width in (
            ("rst_n", 1), ("rx_ctl", 1), ("rx_data", 4), ("tx_ctl", 1), ("tx_data", 4),
        )),
    ),
    *((name, 0, *(Subsignal(part, Pins(width)) for part, width in _STREAM)) for name in ("received", "sent")),
    *(
        (name, 0, *(Subsignal(part, Pins(width)) for part, width in _FRAMES))
        for name in ("line_in", "line_out", "own_in", "own_out")
    ),
]  # fmt: skip


@dataclass(frozen=True)
class Settings:
    """Settings of the core.

    Members
    -------
    clock_hz : int
        Of ``clk``.
    ip, mac : str, int
    port : int
        UDP port that it listens on, and sends from.
    rx_delay_s, tx_delay_s : float
        Delays of RGMII that the PHY does not make.
    vlans : bool
        The frames between the MAC and the protocols are ports.
    """

    clock_hz: int
    ip: str
    mac: int
    port: int
    rx_delay_s: float
    tx_delay_s: float
    vlans: bool = False


class _OpenMac(LiteXModule):
    """LiteEth's MAC with its crossbar. The frames between the two are ports of the platform, so that some may go
    another way."""

    def __init__(self, platform: Any, phy: Any) -> None:
        self.core = LiteEthMACCore(phy, dw=32, with_sys_datapath=True, tx_cdc_buffered=True, rx_cdc_buffered=True)
        self.crossbar = LiteEthMACCrossbar(32)
        self.packetizer = LiteEthMACPacketizer(32)
        self.depacketizer = LiteEthMACDepacketizer(32)
        self.comb += [
            self.crossbar.master.source.connect(self.packetizer.sink),
            self.depacketizer.source.connect(self.crossbar.master.sink),
        ]
        for name, source in (("line_in", self.core.source), ("own_out", self.packetizer.source)):
            port = platform.request(name)
            self.comb += [getattr(port, part).eq(getattr(source, part)) for part in ("valid", "last", "data")]
            self.comb += [
                port.last_be.eq(source.last_be),
                port.error.eq(source.error != 0),
                source.ready.eq(port.ready),
            ]
        for name, sink in (("own_in", self.depacketizer.sink), ("line_out", self.core.sink)):
            port = platform.request(name)
            self.comb += [getattr(sink, part).eq(getattr(port, part)) for part in ("valid", "last", "data", "last_be")]
            self.comb += [sink.error.eq(Replicate(port.error, _LANES)), port.ready.eq(sink.ready)]


class _OpenCore(LiteXModule):
    """LiteEth's protocols as in its ``LiteEthUDPIPCore``, on an open MAC."""

    def __init__(self, platform: Any, phy: Any, settings: Settings) -> None:
        address, mac_address = convert_ip(settings.ip), settings.mac
        self.mac = mac = _OpenMac(platform, phy)
        self.arp = LiteEthARP(mac, mac_address, address, settings.clock_hz, entries=1, dw=32)
        self.ip = LiteEthIP(mac, mac_address, address, self.arp.table, dw=32)
        self.icmp = LiteEthICMP(self.ip, address, dw=32)
        self.udp = LiteEthUDP(self.ip, address, dw=32)


class Ethernet(LiteXModule):
    """The core, with its ports as pins of a LiteX platform.

    Parameters
    ----------
    platform
    settings : Settings
    """

    def __init__(self, platform: Any, settings: Settings) -> None:
        self.cd_sys = ClockDomain()
        self.comb += [self.cd_sys.clk.eq(platform.request("clk")), self.cd_sys.rst.eq(platform.request("rst"))]
        # The status of the link is in a register that nothing reads
        self.phy = LiteEthPHYRGMII(
            platform.request("rgmii_clocks"),
            platform.request("rgmii"),
            rx_delay=settings.rx_delay_s,
            tx_delay=settings.tx_delay_s,
            with_inband_status=False,
        )
        if settings.vlans:
            self.core = _OpenCore(platform, self.phy, settings)
        else:
            self.core = LiteEthUDPIPCore(
                self.phy,
                mac_address=settings.mac,
                ip_address=settings.ip,
                clk_freq=settings.clock_hz,
                dw=32,
                with_sys_datapath=True,
            )
        user = self.core.udp.crossbar.get_port(settings.port, dw=32)
        received, sent = platform.request("received"), platform.request("sent")
        source, sink = user.source, user.sink
        self.comb += [
            *(getattr(received, name).eq(getattr(source, name)) for name in ("valid", "last", "data", "ip_address")),
            received.port.eq(source.src_port),
            received.length.eq(source.length),
            source.ready.eq(received.ready),
            *(
                getattr(sink, name).eq(getattr(sent, name))
                for name in ("valid", "last", "data", "ip_address", "length")
            ),
            sink.dst_port.eq(sent.port),
            sink.src_port.eq(settings.port),
            sent.ready.eq(sink.ready),
            If(sent.last, Case(sent.length[:2], {k: sink.last_be.eq(1 << (k - 1) % 4) for k in range(4)})),
        ]


def main() -> int:
    file, settings = Path(sys.argv[1]), Settings(**json.loads(sys.argv[2]))
    platform = LatticePlatform("LFE5UM5G-85F-8BG554I", io=_IO, toolchain="trellis")
    core = Ethernet(platform, settings)
    text = str(platform.get_verilog(core, name="bentpipe_ethernet"))
    # Without the comments, in which the date is
    file.write_text(re.sub(r"^//.*\n", "", text, flags=re.MULTILINE))
    return 0


if __name__ == "__main__":
    sys.exit(main())
