"""Cores of bentpipe in a LiteX SoC: AAL5 both ways, and a SONET terminal. It needs the package ``litex``.

Each core is exported as Verilog into a folder, which the SoC's platform then builds with the rest. Streams are
endpoints of ``litex.soc.interconnect.stream``; a cell is a packet of 13 words (:class:`CELL`). Counters are CSRs of
LiteX. The terminal's registers are a slave of the Wishbone bus. Start with :class:`Aal5` and :class:`SonetTerminal`;
``examples/litex_soc.py`` is a whole SoC.
"""

# pyright: reportMissingImports=false, reportMissingTypeStubs=false, reportAttributeAccessIssue=false
# (Migen has no types, and LiteX is not in every environment)

from __future__ import annotations

from pathlib import Path
from typing import Any

from litex.gen import LiteXModule
from litex.soc.integration.soc import SoCRegion
from litex.soc.interconnect import stream, wishbone
from litex.soc.interconnect.csr import CSRField, CSRStatus, CSRStorage
from litex.soc.interconnect.csr_eventmanager import EventManager, EventSourceLevel
from migen import Cat, ClockSignal, If, Instance, ResetSignal, Signal

from bentpipe_hdl.adapters import Adapted
from bentpipe_hdl.amaranth_private import PortDirection, ports
from bentpipe_hdl.cores import CORES
from bentpipe_sim.digests import digest
from bentpipe_sim.verilated import source

__all__ = ["CELL", "PDU_IN", "PDU_OUT", "Aal5", "CoreInstance", "PduCsr", "SonetTerminal"]

CELL = stream.EndpointDescription([("data", 32)], [("dest", 16), ("error", 1)])
"""Cells: the header, ``gfc<<28 | vpi<<20 | vci<<4 | pti<<1 | clp``, then 12 words with their first octet lowest."""

PDU_IN = stream.EndpointDescription([("data", 32), ("keep", 4)], [("header", 32), ("user", 17)])
"""PDUs to be sent; ``header`` is that of their cells, ``user`` UU, CPI (``cpi << 8``), and bit 16 to abort."""

PDU_OUT = stream.EndpointDescription(
    [("data", 32), ("keep", 4)], [("vc", 12), ("length", 16), ("uu", 8), ("cpi", 8), ("status", 3), ("efci", 1)]
)
"""PDUs received, with padding and trailer; words of different VCs interleave. All but ``vc`` belongs to the last word;
the first ``length`` octets are the PDU, if ``status`` is 0."""

_STREAM = (("tvalid", "valid"), ("tready", "ready"), ("tdata", "data"), ("tlast", "last"))


class CoreInstance(LiteXModule):
    """A core's Verilog as an instance.

    Parameters
    ----------
    platform
        LiteX's, which gets the Verilog.
    name : str
        As of ``bentpipe rtl --list``.
    folder : path
        Where the Verilog is written.
    **parameters : int
        The core's.

    Members
    -------
    ports : dict of str to Signal
        The core's ports by their names in Verilog.
    """

    def __init__(self, platform: Any, name: str, folder: str | Path = "build/bentpipe", **parameters: int) -> None:
        component = CORES[name].make(**parameters)
        if "csr" in component.signature.members:
            component = Adapted(component, bus="wishbone")
        # Cores with other parameters are other modules
        module = f"bentpipe_{name.replace('-', '_')}_{digest(name, str(sorted(parameters.items())))[:8]}"
        file = Path(folder).resolve() / f"{module}.v"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(source(component, module))
        platform.add_source(str(file))
        self.ports: dict[str, Any] = {}
        connected = {"i_clk": ClockSignal("sys"), "i_rst": ResetSignal("sys")}
        for port, (value, way) in ports(component).items():
            if len(value):
                self.ports[port] = Signal(len(value), name=port)
                connected[f"{'i' if way is PortDirection.Input else 'o'}_{port}"] = self.ports[port]
        self.specials += Instance(module, **connected)

    def sink(self, name: str, endpoint: Any, **fields: str) -> None:
        """Give the endpoint's words to the core's stream ``name``; ``fields`` are further ports of it."""
        for port, field in (*_STREAM, *fields.items()):
            there, signal = getattr(endpoint, field), self.ports[f"{name}_{port}"]
            self.comb += there.eq(signal) if field == "ready" else signal.eq(there)

    def source(self, name: str, endpoint: Any, **fields: str) -> None:
        """Give the words of the core's stream ``name`` to the endpoint."""
        for port, field in (*_STREAM, *fields.items()):
            there, signal = getattr(endpoint, field), self.ports[f"{name}_{port}"]
            self.comb += signal.eq(there) if field == "ready" else there.eq(signal)

    def counters(self, **texts: str) -> None:
        """Make a CSR of each of these ports, with its description."""
        for name, text in texts.items():
            status = CSRStatus(32, name=name, description=text)
            setattr(self, f"csr_{name}", status)
            self.comb += status.status.eq(self.ports[name])


class Aal5(LiteXModule):
    """AAL5: PDUs to cells, and cells to PDUs.

    Parameters
    ----------
    platform, folder
        As of :class:`CoreInstance`.
    vcs : int
        VCs that are reassembled, a power of two.

    Members
    -------
    sink : Endpoint(PDU_IN), source : Endpoint(PDU_OUT)
        PDUs to be sent, and received.
    cells_source : Endpoint(CELL), cells_sink : Endpoint(CELL)
        Cells sent, and received; ``dest`` of the latter is the VC's number.
    """

    def __init__(self, platform: Any, vcs: int = 16, folder: str | Path = "build/bentpipe") -> None:
        self.sink, self.source = stream.Endpoint(PDU_IN), stream.Endpoint(PDU_OUT)
        self.cells_sink, self.cells_source = stream.Endpoint(CELL), stream.Endpoint(CELL)
        self.segmenter = tx = CoreInstance(platform, "aal5-segmenter", folder)
        self.reassembler = rx = CoreInstance(platform, "aal5-reassembler", folder, vcs=vcs)
        tx.sink("i", self.sink, tkeep="keep", tdest="header", tuser="user")
        tx.source("o", self.cells_source)
        rx.sink("i", self.cells_sink, tdest="dest", tuser="error")
        rx.source("o", self.source, tkeep="keep", tid="vc")
        fields = [getattr(self.source, name) for name in ("length", "uu", "cpi", "status", "efci")]
        self.comb += Cat(*fields).eq(rx.ports["o_tuser"])
        tx.counters(aborted="PDUs aborted, and packets without an octet.")
        rx.counters(
            oam="OAM and RM cells dropped.",
            hec="Cells dropped for their header's error.",
            over="Cells dropped beyond their PDU's limit.",
            dropped="Packets dropped that are no cells.",
        )


class SonetTerminal(LiteXModule):
    """One end of a SONET line with cells.

    Parameters
    ----------
    platform, folder
        As of :class:`CoreInstance`.
    n, octets : int
        STS-3c (3) or STS-12c (12), and octets a clock of the line.

    Members
    -------
    sink, source : Endpoint(CELL)
        Cells to be sent, and received; ``error`` marks a header that could not be corrected.
    line_out, line_in : Signal(8 * octets), signal, enable : Signal
        The line, as of ``bentpipe rtl sonet-terminal --guide``.
    bus : wishbone.Interface
        Its registers (``--registers``), addressed by words: ``add_to`` makes them a region of a SoC.
    ev : EventManager
        ``alarm``: an alarm has changed whose bit is set in ``interrupt_mask``.
    """

    SIZE = 1 << 22
    """Octets of the registers' region."""

    def __init__(self, platform: Any, n: int = 3, octets: int = 1, folder: str | Path = "build/bentpipe") -> None:
        self.sink, self.source = stream.Endpoint(CELL), stream.Endpoint(CELL)
        self.bus = wishbone.Interface(data_width=32, adr_width=32, addressing="word")
        self.core = core = CoreInstance(platform, "sonet-terminal", folder, n=n, octets=octets)
        self.line_out, self.line_in = core.ports["line_out"], core.ports["line_in"]
        self.signal, self.enable = Signal(reset=1), Signal(reset=1)
        core.sink("i", self.sink)
        core.source("o", self.source, tuser="error")
        self.comb += [core.ports["signal"].eq(self.signal), core.ports["enable"].eq(self.enable)]
        for name in ("adr", "dat_w", "sel", "we", "cyc", "stb"):
            self.comb += core.ports[f"csr_{name}"].eq(getattr(self.bus, name))
        for name in ("dat_r", "ack", "err"):
            self.comb += getattr(self.bus, name).eq(core.ports[f"csr_{name}"])
        core.counters(
            dropped="Packets dropped that are no cells.", lost="Received cells dropped while ``source`` waited."
        )
        self.ev = EventManager()
        self.ev.alarm = EventSourceLevel(description="An alarm has changed.")
        self.ev.finalize()
        self.comb += self.ev.alarm.trigger.eq(core.ports["irq"])

    def add_to(self, soc: Any, name: str, origin: int | None = None) -> None:
        """Make the registers a region ``name`` of the SoC's bus, at ``origin`` or where LiteX finds room."""
        soc.bus.add_slave(name, self.bus, SoCRegion(origin=origin, size=self.SIZE, mode="rw", cached=False))


class PduCsr(LiteXModule):
    """Lets a CPU send and receive PDUs a word at a time: for tests, and for signalling.

    Members
    -------
    source : Endpoint(PDU_IN), sink : Endpoint(PDU_OUT)
        To and from :class:`Aal5`.
    tx_header, tx_user, tx_word, tx_free
        CSRs: header and UU of the PDU; a write of ``tx_control`` sends ``tx_word``; words that have room.
    rx_word, rx_state, rx_end, rx_next
        CSRs: the word that waits, what it is, the PDU's end with its last word; a write of ``rx_next`` takes it.
    """

    def __init__(self, depth: int = 512) -> None:
        self.source, self.sink = stream.Endpoint(PDU_IN), stream.Endpoint(PDU_OUT)
        self.tx_header = CSRStorage(32, description="Header of the PDU's cells.")
        self.tx_user = CSRStorage(17, description="UU, CPI, and bit 16 to abort.")
        self.tx_word = CSRStorage(32, description="Four octets, the first lowest.")
        fields = [CSRField("keep", size=4, description="Octets that count."), CSRField("last", size=1)]
        self.tx_control = CSRStorage(fields=fields, description="A write sends tx_word.")
        self.tx_free = CSRStatus(16, description="Words that have room.")
        self.rx_word = CSRStatus(32, description="The word that waits.")
        self.rx_state = CSRStatus(
            fields=[
                CSRField("valid", size=1, description="A word waits."),
                CSRField("last", size=1, description="It is its VC's last."),
                CSRField("keep", size=4, description="Its octets."),
                CSRField("vc", size=12, offset=8, description="Its VC."),
            ]
        )
        self.rx_end = CSRStatus(
            fields=[CSRField("length", size=16), CSRField("uu", size=8), CSRField("status", size=3, offset=24)],
            description="The PDU's end, with its last word.",
        )
        self.rx_next = CSRStorage(1, description="A write takes the word.")
        self.tx_fifo = tx = stream.SyncFIFO(PDU_IN, depth, buffered=True)
        self.rx_fifo = rx = stream.SyncFIFO(PDU_OUT, depth, buffered=True)
        came, state = rx.source, self.rx_state.fields
        self.comb += [
            tx.source.connect(self.source),
            self.sink.connect(rx.sink),
            tx.sink.valid.eq(self.tx_control.re),
            tx.sink.data.eq(self.tx_word.storage),
            tx.sink.keep.eq(self.tx_control.fields.keep),
            tx.sink.last.eq(self.tx_control.fields.last),
            tx.sink.header.eq(self.tx_header.storage),
            tx.sink.user.eq(self.tx_user.storage),
            self.tx_free.status.eq(depth - tx.level),
            self.rx_word.status.eq(came.data),
            state.valid.eq(came.valid),
            state.last.eq(came.last),
            state.keep.eq(came.keep),
            state.vc.eq(came.vc),
            If(came.last, *(getattr(self.rx_end.fields, name).eq(getattr(came, name)) for name in _END)),
            came.ready.eq(self.rx_next.re),
        ]


_END = ("length", "uu", "status")
