"""Port guides: each port of each core is described, with its rules; and the latencies that they state hold."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from benches.streams import Io, Node, PacketSink, PacketSource, cell_words, pdu_beats, play
from bentpipe_hdl.adapters import Adapted
from bentpipe_hdl.amaranth_private import ports
from bentpipe_hdl.cores import CORES
from bentpipe_hdl.cores.aal5 import Aal5Reassembler, Aal5Segmenter
from bentpipe_hdl.cores.guide import RULES, guide
from bentpipe_hdl.cores.packets import CellStore
from bentpipe_hdl.cores.utopia import UtopiaAtm
from bentpipe_hdl.link.options import OPTIONS as LINK_OPTIONS
from bentpipe_hdl.nic.options import OPTIONS as NIC_OPTIONS
from bentpipe_hdl.nodes import Link, Nic, Switch
from bentpipe_hdl.switch.options import OPTIONS as SWITCH_OPTIONS

KEYWORDS = frozenset(
    """
    accept_on alias always assert assign assume automatic before begin bind bins binsof bit break buf bufif0
    byte case cell chandle checker class clocking cmos config const constraint context continue cover
    covergroup coverpoint cross deassign default defparam design disable dist do edge else end enum event
    eventually expect export extends extern final first_match for force foreach forever fork function generate
    genvar global highz0 if iff ifnone implements implies import incdir include initial inout input inside
    instance int integer interface intersect join large let liblist library local localparam logic longint
    macromodule matches medium modport module nand negedge new nexttime nmos nor not null or output package
    packed parameter pmos posedge primitive priority program property protected pull0 pulldown pure rand randc
    randcase real realtime ref reg reject_on release repeat restrict return rtran scalared sequence shortint
    signed small soft solve specify static string strong struct super supply0 sync_accept_on table tagged task
    this throughout time timeprecision timeunit tran tri trireg type typedef union unique unsigned until
    untyped use uwire var vectored virtual void wait wand weak while wildcard wire with within wor xnor xor
    """.split()  # noqa: SIM905  # a list would have a line for each
)
"""Words of IEEE 1364-2005 and 1800-2012 that a port cannot be called in another design, without those with digits."""

OTHERS: dict[str, Callable[[], Any]] = {
    "adapted": lambda: Adapted(Switch(width=32), bus="axi-lite", axi_stream=True),
    "wishbone": lambda: Adapted(CORES["sonet-terminal"].make(), bus="wishbone"),
    "nic with all options": lambda: Nic(vcs=16, **{each.name: 1 for each in NIC_OPTIONS if each.name}),
    "narrow nic with all options": lambda: Nic(width=32, vcs=16, **{o.name: 1 for o in NIC_OPTIONS if o.name}),
    "link with delay": lambda: Link(delay_cells=2),
    "link with other options": lambda: Link(**{o.name: 1 for o in LINK_OPTIONS if o.name not in ("", "delay_cells")}),
    **{f"switch with {o.name}": lambda o=o: Switch(vcs=16, options=1 << o.bit) for o in SWITCH_OPTIONS},
}


@pytest.mark.parametrize("name", [*CORES, *OTHERS])
def test_each_port_and_parameter_is_described(name: str) -> None:
    component = CORES[name].make() if name in CORES else OTHERS[name]()
    parameters = [f"{each} = {value}" for each, value in CORES[name].parameters.items()] if name in CORES else []
    made = guide(name, component, parameters)
    rows = {port.name: port for port in made.ports if port.direction}
    expected = {port: (len(value), way.name.lower()) for port, (value, way) in ports(component).items() if len(value)}
    assert {port: (row.width, row.direction) for port, row in rows.items()} == {
        **{"clk": (1, "input"), "rst": (1, "input")},
        **expected,
    }
    assert not [port for port, row in rows.items() if not row.meaning or row.meaning.startswith("Fields")]
    assert not [parameter for parameter, meaning in made.parameters if not meaning]
    assert not KEYWORDS & {*rows}
    assert not [rule for rule in RULES if not any(note.startswith(f"{rule}: ") for note in made.notes)]
    for text in (made.to_text(), made.to_markdown()):
        assert "As in" not in text
        assert ":class:" not in text
        assert all(port in text for port in rows)


class _Clocks:
    """In which clocks a handshake's first and last words are taken."""

    def __init__(self, name: str) -> None:
        self._name, self._clock, self.taken = name, 0, list[int]()

    def drive(self, io: Io) -> None:
        pass

    def sample(self, io: Io) -> None:
        if io.get(f"{self._name}_tvalid") and io.get(f"{self._name}_tready"):
            self.taken.append(self._clock)
        self._clock += 1


def _latency(component: Node, packets: list[list[dict[str, int]]], words: int) -> tuple[list[int], list[int]]:
    """Return in which clocks words went in and came out."""
    rng = random.Random(1)
    source, sink, went, came = PacketSource("i", rng), PacketSink("o", rng), _Clocks("i"), _Clocks("o")
    for packet in packets:
        source.put(packet)
    play(component, [source, sink, went, came], lambda: len(came.taken) == words)
    return went.taken, came.taken


def test_latencies_of_streams() -> None:
    cell = [{"tdata": word} for word in cell_words(32 << 4, bytes(48))]
    went, came = _latency(Node(CellStore, ports=4), [cell], 13)
    assert came[0] - went[12] == 1
    went, came = _latency(Node(Aal5Segmenter), [pdu_beats(0, bytes(480))], 13)
    assert came[0] - went[0] == 13
    # Once tables are cleared: the core's tick is under way when the cell comes, by words dropped before
    cells = [[*([[{"tdata": 0}]] * wait), cell] for wait in range(30, 43, 3)]
    found = [_latency(Node(Aal5Reassembler, vcs=4, limit=9), each, 12) for each in cells]
    assert {came[0] - went[-1] for went, came in found} <= {*range(18, 31)}


@pytest.mark.parametrize(("bits", "phys", "each"), [(8, 3, 57), (16, 31, 31)])
def test_latency_of_utopia(bits: int, phys: int, each: int) -> None:
    rng = random.Random(1)
    source, taken, words = PacketSource("i", rng), _Clocks("i"), list[int]()
    for _ in range(3):
        source.put([{"tdata": word} for word in cell_words(32 << 4, bytes(48))])

    def sees(io: Io, clock: int) -> None:
        io.set("tx_clav", 1)
        if io.get("tx_soc"):
            words.append(clock)

    play(Node(UtopiaAtm, bits=bits, phys=phys), [source, taken], lambda: len(words) == 3, each=sees)
    assert words[0] - taken.taken[12] == 5
    assert words[2] - words[1] == each
