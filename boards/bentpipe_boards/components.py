"""The components that `make synth` measures: nodes at 32 bits in the shapes that a board uses, and their parts."""

# Amaranth makes members and operators at run time:
# pyright: reportAttributeAccessIssue=false, reportGeneralTypeIssues=false

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Cat, ClockDomain, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from bentpipe_boards.bridge import Bridge
from bentpipe_boards.ddr3 import Ddr3Fifos, Ddr3Port
from bentpipe_boards.frames import LineReceiver, VlanPort
from bentpipe_boards.pattern import PatternChecker, PatternGenerator
from bentpipe_boards.sdram import SdramFifos, SdramTimes
from bentpipe_boards.ticks import Ticks
from bentpipe_boards.uart import Uart
from bentpipe_boards.wire import Inputs, LongWire, Wire
from bentpipe_hdl.aal5.crc32 import advance_cell, crc32_word
from bentpipe_hdl.aal5.reassembler import Reassembler
from bentpipe_hdl.aal5.segmenter import Segmenter
from bentpipe_hdl.cell import NARROW, CellHeader, TimeSignature
from bentpipe_hdl.csr import CsrMap, CsrSignature
from bentpipe_hdl.hec import HecReceiver
from bentpipe_hdl.link.gap import Gap, xorshift
from bentpipe_hdl.lookup import Lookup
from bentpipe_hdl.lookup_table import lookup_registers
from bentpipe_hdl.nodes import Link, Nic, Switch
from bentpipe_hdl.part_harness import PartHarness
from bentpipe_hdl.registers import RegisterMap
from bentpipe_hdl.sonet.deframer import Deframer
from bentpipe_hdl.sonet.framer import Framer
from bentpipe_hdl.sonet.geometry import Geometry
from bentpipe_hdl.sonet.terminal import SonetTerminal
from bentpipe_hdl.switch.core.port_rate_scheduler import COMMIT
from bentpipe_hdl.switch.core.round_robin import RoundRobin
from bentpipe_hdl.switch.core.vc_table import DEPARTURE
from bentpipe_hdl.switch.options import OPTIONS, options_word
from bentpipe_hdl.switch.options.copies.replicator import MulticastReplicator
from bentpipe_hdl.switch.options.credits.credits import Credits
from bentpipe_hdl.switch.options.frames.slot_timer import SlotTimer
from bentpipe_hdl.switch.options.histograms.histograms import Histograms
from bentpipe_hdl.switch.options.minimum.reserved_cells import ReservedCells
from bentpipe_hdl.switch.options.oam.oam import Oam
from bentpipe_hdl.switch.options.police.policer import Policer
from bentpipe_hdl.switch.options.reactive.rate_controller import RateController
from bentpipe_hdl.switch.options.red.early_detection import RandomEarlyDetection
from bentpipe_hdl.switch.options.shape.shaper import Shaper
from bentpipe_hdl.switch.options.virtual_clock.virtual_clock import VirtualClock
from bentpipe_hdl.switch.options.weighted_priority.control import PRIORITIES
from bentpipe_hdl.switch.options.weighted_priority.weighted_priority import WeightedPriorityScheduler
from bentpipe_hdl.tick_schedule import TickSchedule
from bentpipe_hdl.traffic.pacer import Pacer
from bentpipe_hdl.traffic.tournament import Tournament

__all__ = ["COMPONENTS", "Entry", "Harness"]


@dataclass(frozen=True)
class Entry:
    """A component to be measured: its name in the table, how it is made, the shape in words, the clock rate asked
    of place and route, which works no harder than that needs (by default OC-48's 77.76 MHz at 32 bits), and whether it
    is placed and routed at all."""

    name: str
    make: Callable[[], Any]
    shape: str
    node: bool = False
    target_mhz: float = 78
    placed: bool = True


class Harness(wiring.Component):
    """A component between registers: ``serial_in`` is shifted through all of its inputs, ``serial_out`` is the parity
    of all of its outputs, some clocks later."""

    def __init__(self, component: Any):
        self.component = component
        super().__init__({"clock": In(1), "serial_in": In(1), "serial_out": Out(1)})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.dut = self.component
        inputs, outputs = [], []
        for _, member, value in self.component.signature.flatten(self.component):
            value = value.as_value() if hasattr(value, "as_value") else value
            (inputs if member.flow is In else outputs).append(value)
        m.domains.io = io = ClockDomain("io", reset_less=True)
        m.domains.sync = sync = ClockDomain("sync")
        m.d.comb += [io.clk.eq(self.clock), sync.clk.eq(self.clock)]
        fed = Cat(*inputs, sync.rst)
        chain = Signal(len(fed))
        m.d.io += chain.eq(Cat(self.serial_in, chain[:-1]))
        m.d.comb += fed.eq(chain)
        taken = Cat(*outputs)
        level = Signal(len(taken), name="taken")
        m.d.io += level.eq(taken)
        while len(level) > 1:
            smaller = Signal(-(-len(level) // 4), name="parity")
            m.d.io += smaller.eq(Cat(level[k : k + 4].xor() for k in range(0, len(level), 4)))
            level = smaller
        m.d.comb += self.serial_out.eq(level)
        return m


class _Function(wiring.Component):
    """A pure function as a component."""

    def __init__(self, function: Callable[..., Any], inputs: dict[str, int], output: int):
        self._function, self._inputs = function, inputs
        super().__init__({**{name: In(bits) for name, bits in inputs.items()}, "result": Out(output)})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.d.comb += self.result.eq(self._function(*(getattr(self, name) for name in self._inputs)))
        return m


def _part(make: Callable[[TickSchedule], Any]) -> PartHarness:
    """Return a part of a NIC."""
    return PartHarness(make, width=NARROW, commit=11)


class _Lookup(wiring.Component):
    """The look-up on the narrow datapath, with its table behind a bus."""

    def __init__(self, vcs: int, ports: int):
        self._vcs, self._ports = vcs, ports
        super().__init__(
            {
                "time": In(TimeSignature()),
                "csr": In(CsrSignature()),
                "header": In(CellHeader),
                "port": In(range(ports)),
                "nni": In(ports),
                "known": Out(1),
                "vc": Out(range(vcs)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        slot = TickSchedule(m, self.time, NARROW)
        csr = CsrMap(m, self.csr, RegisterMap("lookup", "", 1, {}, lookup_registers(self._vcs)))
        lookup = Lookup(m, slot, csr, vcs=self._vcs, ports=self._ports, nni=self.nni)
        known, vc = lookup.find(self.header, self.port)
        csr.finish()
        m.d.comb += [self.known.eq(known), self.vc.eq(vc)]
        return m


STS3C, STS12C, STS48C = Geometry(3, 1), Geometry(12, 4), Geometry(48, 4)

LINE_CARD = 105
"""MHz: five times and more the word clock of 19.44 MHz."""

COMPONENTS = (
    Entry("nic", lambda: Nic(width=NARROW, vcs=64), "64 VCs", node=True),
    Entry("nic-1024", lambda: Nic(width=NARROW, vcs=1024), "1024 VCs", node=True),
    Entry("nic+sustained", lambda: Nic(width=NARROW, vcs=64, sustained=1), "64 VCs with sustained rates", node=True),
    Entry("nic+credits", lambda: Nic(width=NARROW, vcs=64, credits=1), "64 VCs that wait for credits", node=True),
    Entry("nic+test_cells", lambda: Nic(width=NARROW, vcs=64, test_cells=1), "64 VCs, test cells", node=True),
    Entry("nic+oam", lambda: Nic(width=NARROW, vcs=64, oam=1), "64 VCs, single cells and OAM cells", node=True),
    *(
        Entry(
            f"switch-{cells}",
            lambda cells=cells: Switch(width=NARROW, vcs=64, cells=cells, ports=4),
            f"64 VCs, 4 ports, {cells} cells",
            node=True,
        )
        for cells in (2048, 4096, 7680, 8192)
    ),
    Entry(
        "switch-8192-board",
        lambda: Switch(width=NARROW, vcs=16, cells=8192, ports=4),
        "16 VCs, as on boards, 4 ports, 8192 cells",
        node=True,
    ),
    Entry(
        "switch-2048-vcs",
        lambda: Switch(width=NARROW, vcs=2048, cells=2048, ports=4),
        "2048 VCs, 4 ports, 2048 cells",
        node=True,
    ),
    *(
        Entry(
            f"switch-2048+{option.name}",
            lambda name=option.name: Switch(width=NARROW, vcs=64, cells=2048, ports=4, options=options_word([name])),
            f"switch-2048 with option {option.name}",
            node=True,
        )
        for option in OPTIONS
    ),
    Entry(
        "switch-2048+all",
        lambda: Switch(width=NARROW, vcs=64, cells=2048, ports=4, options=(1 << len(OPTIONS)) - 1),
        "switch-2048 with all options; of the schedulers, virtual clock",
        node=True,
        placed=False,  # routing was given up, three quarters of it left after eight minutes
    ),
    Entry("link", lambda: Link(width=NARROW), "no delay memory", node=True),
    Entry("link-1024", lambda: Link(width=NARROW, delay_cells=1024), "delay memory of 1024 cells", node=True),
    Entry("link-faults", lambda: Link(width=NARROW, faults=1), "with outages and bursts of errors", node=True),
    Entry("board-bridge", lambda: Bridge(words=512), "frames of 512 words"),
    Entry("board-ticks", lambda: Ticks(paced=False), "stepped time"),
    Entry("board-pace", lambda: Ticks(paced=True), "stepped and paced time"),
    Entry("board-line", LineReceiver, "Ethernet line, 1024 words twice"),
    Entry("board-vlans", lambda: VlanPort(vcs=16, vlans=2), "2 VLANs of an interface"),
    Entry("board-generator", lambda: PatternGenerator(vcs=16), "payload of 16 VCs, 4 octets a clock"),
    Entry("board-checker", lambda: PatternChecker(vcs=16), "payload of 16 VCs, 4 octets a clock"),
    Entry("board-wire", lambda: Wire(cells=512), "512 cells on their way"),
    Entry("board-long-wire", lambda: LongWire(cells=1 << 17), "2**17 cells on their way, in an SDRAM"),
    Entry("board-sdram", lambda: SdramFifos(SdramTimes(50_000_000), fifos=2, records=1 << 17), "2 wires' memory"),
    Entry("board-ddr3", lambda: Ddr3Fifos(fifos=2, records=1 << 17), "2 wires' memory of DDR3, without LiteDRAM"),
    Entry("board-ddr3-port", Ddr3Port, "the same in LiteDRAM's clock"),
    Entry("board-inputs", lambda: Inputs(ports=4), "4 ports"),
    Entry("board-uart", lambda: Uart(divisor=25), "3 Mbaud at 75 MHz"),
    Entry("hec-receiver", HecReceiver, "a header a clock"),
    Entry("crc32-word", lambda: _Function(crc32_word, {"crc": 32, "word": 32}, 32), "4 octets a clock"),
    Entry("crc32-cell", lambda: _Function(advance_cell, {"crc": 32}, 32), "over a cell of zeros"),
    Entry("gap", lambda: Gap(pipelined=True), "a gap a clock"),
    Entry("xorshift", lambda: _Function(xorshift, {"state": 64}, 64), "64 bits a clock"),
    *(
        Entry(name, lambda vcs=vcs: _part(lambda slot: Tournament(slot, vcs=vcs)), f"{vcs} VCs")
        for name, vcs in (("tournament", 64), ("tournament-4096", 4096))
    ),
    Entry("pacer", lambda: _part(lambda slot: Pacer(slot, vcs=64)), "64 VCs"),
    Entry("segmenter", lambda: _part(lambda slot: Segmenter(slot, width=NARROW, vcs=64)), "64 VCs"),
    Entry("reassembler", lambda: _part(lambda slot: Reassembler(slot, width=NARROW, vcs=64)), "64 VCs"),
    Entry("lookup", lambda: _Lookup(64, 4), "64 VCs, 4 ports"),
    *(
        Entry(name, lambda make=make: PartHarness(make, width=NARROW, commit=COMMIT), f"64 VCs, 4 ports{shape}")
        for name, make, shape in (
            ("round-robin", lambda slot: RoundRobin(slot, vcs=64, ports=4, at=DEPARTURE - 2), ""),
            (
                "turns",
                lambda slot: WeightedPriorityScheduler(
                    slot, vcs=64, ports=4, at=DEPARTURE - 2, places=2112, weighted=True, priorities=PRIORITIES
                ),
                ", FIFO, weights and priorities, 2112 places",
            ),
            ("virtual-clock", lambda slot: VirtualClock(slot, vcs=64, ports=4), ""),
            ("rate-controller", lambda slot: RateController(slot, ports=4, count_bits=12), ", of reactive ports"),
            ("red", lambda slot: RandomEarlyDetection(slot, ports=4, count_bits=12), ", random early detection"),
            ("policer", lambda slot: Policer(slot, vcs=64), ""),
            ("shaper", lambda slot: Shaper(slot, vcs=64, ports=4), ""),
            ("minimum", lambda slot: ReservedCells(slot, vcs=64, count_bits=12), ", guaranteed cells"),
            ("frame-clock", lambda slot: SlotTimer(slot, ports=4), ", slots of frames"),
            ("credits", lambda slot: Credits(slot, width=NARROW, vcs=64, ports=4), ""),
            ("oam", lambda slot: Oam(slot, width=NARROW, vcs=64, ports=4), ""),
            ("copier", lambda slot: MulticastReplicator(slot, width=NARROW, vcs=64, ports=4), ""),
            (
                "histograms",
                lambda slot: Histograms(slot, vcs=64, ports=4, places=2112, at=DEPARTURE + 2),
                ", 2112 places",
            ),
        )
    ),
    Entry("sonet-framer-3", lambda: Framer(STS3C), "STS-3c, 8 bits", target_mhz=LINE_CARD),
    Entry("sonet-deframer-3", lambda: Deframer(STS3C), "STS-3c, 8 bits", target_mhz=LINE_CARD),
    Entry("sonet-terminal-3", lambda: SonetTerminal(STS3C), "STS-3c, 8 bits, both ways", target_mhz=LINE_CARD),
    Entry("sonet-terminal-12", lambda: SonetTerminal(STS12C), "STS-12c, 32 bits, both ways", target_mhz=LINE_CARD),
    Entry("sonet-terminal-48", lambda: SonetTerminal(STS48C), "STS-48c, 32 bits, both ways"),
)
"""In the order of the table."""
