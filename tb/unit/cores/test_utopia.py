"""UTOPIA level 2, both sides and both widths, against the model of the other side."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any, ClassVar

import pytest

from benches.streams import Io, Node, PacketSink, PacketSource, cell_words, octets_of, play
from bentpipe_hdl.cores.utopia import UtopiaAtm, UtopiaPhy
from models.utopia import AtmReceiver, AtmSender, PhyModel, cell_of_bus

Cells = list[tuple[int, bytes]]


def _cells(rng: random.Random, count: int) -> Cells:
    return [(rng.getrandbits(32), rng.randbytes(48)) for _ in range(count)]


def _put(source: PacketSource, cells: Iterable[tuple[int, bytes]], **more: int) -> None:
    for header, payload in cells:
        source.put([{"tdata": word, **more} for word in cell_words(header, payload)])


def _got(packet: list[dict[str, int]]) -> tuple[int, bytes]:
    assert len(packet) == 13
    return packet[0]["tdata"], octets_of(packet[1:])


class _End:
    """A model at the bus."""

    def __init__(self, model: Any, outputs: Iterable[str]) -> None:
        self.model, self._outputs = model, [*outputs]

    def drive(self, io: Io) -> None:
        for name, value in self.model.drives.items():
            io.set(name, value)

    def sample(self, io: Io) -> None:
        self.model.clock({name: io.get(name) for name in self._outputs} | self.model.drives)


ATM_OUT = ("tx_addr", "tx_data", "tx_soc", "tx_prty", "tx_enb_n", "rx_addr", "rx_enb_n")
PHY_OUT = ("tx_clav", "rx_clav", "rx_data", "rx_soc", "rx_prty", "rx_oe")


@pytest.mark.parametrize(("bits", "phys", "rates"), [(8, 3, (0.5, 0.4)), (8, 3, (1, 1)), (16, 31, (0.7, 0.3))])
def test_atm_side(bits: int, phys: int, rates: tuple[float, float]) -> None:
    rng = random.Random(f"{bits} {phys}")
    dut = Node(UtopiaAtm, bits=bits, phys=phys)
    to = {phy: _cells(rng, 24 // phys + 1) for phy in range(phys)}
    back = {phy: _cells(rng, 24 // phys + 2) for phy in range(phys)}
    # Faults in cells that others follow: at any word
    faults = {(phy, 0): (rng.randrange(27), rng.choice(["parity", "soc"])) for phy in range(0, phys, 2)}
    model = PhyModel(bits, range(phys), rng, back, faults=faults)
    source, sink = PacketSource("i", rng, rates[0]), PacketSink("o", rng, rates[1], ["tdest"])
    order = [phy for phy, cells in to.items() for _ in cells]
    rng.shuffle(order)
    left = {phy: iter(cells) for phy, cells in to.items()}
    for phy in order:
        _put(source, [next(left[phy])], tdest=phy)
    good = sum(map(len, back.values())) - len(faults)
    errors = [0]

    def each(io: Any, _clock: int) -> None:
        errors[0] = io.get("errors")
        assert io.get("dropped") == 0

    def done() -> bool:
        return len(sink.packets) == good and sum(map(len, model.sent.values())) == len(order)

    play(dut, [_End(model, ATM_OUT), source, sink], done, each=each, most=40_000)
    assert model.sent == to
    came: dict[int, Cells] = {phy: [] for phy in range(phys)}
    for packet in sink.packets:
        came[packet[0]["tdest"]].append(_got(packet))
    assert came == {phy: cells[1:] if (phy, 0) in faults else cells for phy, cells in back.items()}
    # A start within a cell cuts that, and the next one cuts what it began
    assert errors[0] == sum(1 + (kind == "soc" and at > 0) for at, kind in faults.values())


class _Shared:
    """The bus of several PHYs, of which one drives at most; ``3_i_tvalid`` is the stream of number 3."""

    OE: ClassVar = {
        "tx_clav": "tx_clav_oe",
        "rx_clav": "rx_clav_oe",
        "rx_data": "rx_oe",
        "rx_soc": "rx_oe",
        "rx_prty": "rx_oe",
    }

    def __init__(self, addresses: list[int], **parameters: int) -> None:
        self.phys = [Node(UtopiaPhy, **parameters) for _ in addresses]
        for phy, address in zip(self.phys, addresses, strict=True):
            phy.set("address", address)

    def settle(self) -> None:
        for phy in self.phys:
            phy.settle()

    def edge(self) -> None:
        for phy in self.phys:
            phy.edge()

    def get(self, name: str) -> int:
        if name[0].isdigit():
            number, _, name = name.partition("_")
            return self.phys[int(number)].get(name)
        if name not in self.OE:
            values = [phy.get(name) for phy in self.phys]
            return sum(values)
        driven = [phy.get(name) for phy in self.phys if phy.get(self.OE[name])]
        assert len(driven) <= 1
        return sum(driven)

    def set(self, name: str, value: int) -> None:
        if name[0].isdigit():
            number, _, name = name.partition("_")
            return self.phys[int(number)].set(name, value)
        for phy in self.phys:
            phy.set(name, value)
        return None


@pytest.mark.parametrize(
    ("bits", "addresses", "cells", "rate"),
    [(8, [0], 2, 1.0), (8, [4, 30, 9], 2, 0.15), (16, [1, 2], 2, 0.4)],
)
def test_phy_side(bits: int, addresses: list[int], cells: int, rate: float) -> None:
    rng = random.Random(f"{bits} {addresses}")
    bus = _Shared(addresses, bits=bits, cells=cells)
    to, back = ({address: _cells(rng, 20) for address in addresses} for _ in range(2))
    faults = {
        (a, n): (rng.randrange(1, 26), kind) for a in addresses for n, kind in ((3, "parity"), (9, "soc"), (10, "soc"))
    }
    sender = AtmSender(bits, to, rng, pause=rng.choice([0.0, 0.08]), faults=faults)
    receiver = AtmReceiver(bits, addresses, rng)
    sources = [PacketSource(f"{k}_i", rng, rate) for k in range(len(addresses))]
    sinks = [PacketSink(f"{k}_o", rng, rate) for k in range(len(addresses))]
    for source, address in zip(sources, addresses, strict=True):
        _put(source, back[address])
    good = {a: [cell for n, cell in enumerate(to[a]) if (a, n) not in faults] for a in addresses}
    errors = [0]

    def done() -> bool:
        took = all(len(sink.packets) == 17 for sink in sinks)
        return took and all(len(cells) == 20 for cells in receiver.cells.values())

    def each(io: Any, _clock: int) -> None:
        errors[0] = io.get("errors")

    ends = [_End(sender, PHY_OUT), _End(receiver, PHY_OUT), *sources, *sinks]
    play(bus, ends, done, each=each, most=60_000)
    assert [[_got(packet) for packet in sink.packets] for sink in sinks] == [*good.values()]
    assert receiver.cells == back
    assert errors[0] == 3 * len(addresses)


@pytest.mark.parametrize("bits", [8, 16])
def test_phy_alone_on_its_bus_gives_cells_back_to_back(bits: int) -> None:
    """With one PHY its address may stay on the bus, so that RxClav is its status in each clock."""
    rng = random.Random(bits)
    cells, size = _cells(rng, 2), 53 if bits == 8 else 27
    node, source = Node(UtopiaPhy, bits=bits, cells=2), PacketSource("i", rng)
    _put(source, cells)
    words: list[int] = []
    clav: list[int] = []

    def each(io: Any, clock: int) -> None:
        if io.get("rx_oe") and io.get("rx_soc") + len(words):
            words.append(io.get("rx_data"))
            assert io.get("rx_soc") == (len(words) % size == 1)
        clav.append(io.get("rx_clav"))
        io.set("rx_enb_n", int(clock < 60))

    node.set("rx_enb_n", 1)
    play(node, [source], lambda: len(words) == 2 * size, each=each)
    assert [cell_of_bus(words[k : k + size], bits) for k in range(0, 2 * size, size)] == cells
    first = len(clav) - 2 * size  # the clock of the first word
    assert clav[first:] == [1] * size + [0] * size  # another cell waits behind the first


def test_reset_within_cells() -> None:
    """After a reset, wherever in a cell, the PHY is as new."""
    rng = random.Random(5)
    bus = _Shared([3], bits=8, cells=2)
    for round_ in range(6):
        to, back = {3: _cells(rng, 8)}, _cells(rng, 8)
        sender, receiver = AtmSender(8, to, rng, pause=0.02), AtmReceiver(8, [3], rng)
        source, sink = PacketSource("0_i", rng, 0.9), PacketSink("0_o", rng, 0.9)
        _put(source, back)
        ends, stop = [_End(sender, PHY_OUT), _End(receiver, PHY_OUT), source, sink], rng.randrange(100, 500)

        def done(sink: Any = sink, receiver: Any = receiver) -> bool:
            return len(sink.packets) == 8 and len(receiver.cells[3]) == 8

        clocks = iter(range(10_000))
        last = round_ == 5
        play(bus, ends, done if last else lambda clocks=clocks, stop=stop: next(clocks) == stop)
        for got, given in (([_got(packet) for packet in sink.packets], to[3]), (receiver.cells[3], back)):
            assert got == given[: len(got)]
            assert len(got) == 8 or not last
        bus.set("rst", 1)
        bus.set("0_i_tvalid", 0)
        bus.set("tx_enb_n", 1)
        bus.set("rx_enb_n", 1)
        bus.edge()
        bus.set("rst", 0)
