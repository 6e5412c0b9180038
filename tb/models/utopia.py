"""UTOPIA level 2 with cell-level handshake (af-phy-0039.000 clause 4.2), from the standard: the ATM layer and a PHY, a
clock at a time.

Each side samples the bus before a clock's rising edge and gives what it drives behind it. The PHY checks the rules
that the ATM layer has to keep.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Generator, Mapping, Sequence

from models.hec import hec

__all__ = ["NULL", "AtmReceiver", "AtmSender", "PhyModel", "bus_words", "cell_of_bus", "odd_parity"]

NULL = 0x1F
Bus = Mapping[str, int]
Drive = dict[str, int]
Machine = Generator[Drive, Bus, None]


def odd_parity(value: int) -> int:
    """Return the bit with which the number of ones is odd."""
    return (value.bit_count() + 1) & 1


def bus_words(header: int, payload: bytes, bits: int) -> list[int]:
    """Return a cell as words of the bus: 53 octets, or 27 words with UDF1 and UDF2 in the third."""
    first = header.to_bytes(4, "big")
    if bits == 8:
        return [*first, hec(first), *payload]
    octets = first + bytes([hec(first), 0]) + payload
    return [int.from_bytes(octets[k : k + 2], "big") for k in range(0, 54, 2)]


def cell_of_bus(words: Sequence[int], bits: int) -> tuple[int, bytes]:
    """Return header and payload of a cell's words; the HEC must be right."""
    octets = b"".join(word.to_bytes(bits // 8, "big") for word in words)
    assert len(octets) == (53 if bits == 8 else 54), len(octets)
    assert octets[4] == hec(octets[:4])
    return int.from_bytes(octets[:4], "big"), octets[-48:]


class AtmSender:
    """The transmit side of an ATM layer.

    It polls PHYs at random, also while a cell is under way; stops within cells and selects the PHY anew; and sends
    cells to the same PHY without a gap where its status of the last clocks allows.

    Parameters
    ----------
    cells : dict of int to list of (header, payload)
        By PHY.
    pause : float
        Chance to stop before a word.
    faults : dict of (PHY, number) to (word, kind)
        What goes wrong with a cell at a word: ``parity``, or ``soc`` (it is cut there, and followed by another cell).
    """

    def __init__(self, bits, cells, rng: random.Random, *, pause=0.05, faults=None) -> None:
        self.bits, self._rng, self._pause, self._faults = bits, rng, pause, faults or {}
        self.waiting = {phy: deque(enumerate(each)) for phy, each in cells.items()}
        self.clav: dict[int, bool] = {}
        self._polled: int | None = None
        self.machine = self._run()
        self.drives = next(self.machine)

    def clock(self, bus: Bus) -> Drive:
        self.drives = self.machine.send(bus)
        return self.drives

    def _step(self, *, enb=1, data=0, soc=0, flip=0, select=None) -> Machine:
        """Drive the bus for a clock; poll with its address lines where they are not wanted for a selection."""
        before = self._polled
        if select is not None:
            address = select
        elif before is None and self.waiting:  # a null address between two others
            address = self._rng.choice([*self.waiting, NULL])
        else:
            address = NULL
        self._polled = address if address != NULL else None
        made = {"tx_addr": address, "tx_enb_n": enb, "tx_data": data, "tx_soc": soc, "tx_prty": odd_parity(data) ^ flip}
        bus = yield made
        # What is sampled now is the answer to the address before this one
        if self._asked is not None:
            self.clav[self._asked] = bool(bus["tx_clav"])
        self._asked = address if address != NULL else None

    _asked: int | None = None

    def _run(self) -> Machine:
        while True:
            ready = [phy for phy, each in self.waiting.items() if each and self.clav.get(phy)]
            if not ready:
                yield from self._step()
                continue
            phy = self._rng.choice(ready)
            self._polled = None
            if self._asked is not None:
                yield from self._step(select=NULL)
            yield from self._step(select=phy)
            while True:
                yield from self._cell(phy)
                # Without a gap only by a status that was given in the last clocks of the cell
                if not (self._late and self.waiting[phy] and self._rng.random() < 0.8):
                    break
            self.clav.pop(phy, None)
            yield from self._step()

    def _cell(self, phy: int) -> Machine:
        number, (header, payload) = self.waiting[phy].popleft()
        at, kind = self._faults.get((phy, number), (None, ""))
        words = bus_words(header, payload, self.bits)
        if kind == "soc":
            words = words[:at]
        self.clav.pop(phy, None)
        for k, word in enumerate(words):
            while k and self._rng.random() < self._pause:
                for _ in range(self._rng.randrange(3)):
                    yield from self._step()
                if self._asked is not None:
                    yield from self._step(select=NULL)
                yield from self._step(select=phy)
                self.clav.pop(phy, None)
            if k < len(words) - 4:  # not yet about the next cell
                self.clav.pop(phy, None)
            yield from self._step(enb=0, data=word, soc=int(k == 0), flip=int(kind == "parity" and k == at))
        self._late = self.clav.get(phy, False)

    _late = False

    @property
    def done(self) -> bool:
        return not any(self.waiting.values()) and self.drives["tx_enb_n"] == 1


class AtmReceiver:
    """The receive side of an ATM layer: it polls, selects a PHY that has a cell, and reads it, with pauses.

    Members
    -------
    cells : dict of int to list of (header, payload)
        By PHY.
    """

    def __init__(self, bits, phys: Sequence[int], rng: random.Random, *, pause=0.05) -> None:
        self.bits, self._phys, self._rng, self._pause = bits, phys, rng, pause
        self.cells: dict[int, list[tuple[int, bytes]]] = {phy: [] for phy in phys}
        self._words: list[int] = []
        self._reads = [False, False]
        self._oe = 0
        self.machine = self._run()
        self.drives = next(self.machine)

    def clock(self, bus: Bus) -> Drive:
        self.drives = self.machine.send(bus)
        return self.drives

    def _step(self, address=NULL, enb=1) -> Machine:
        self._bus = yield {"rx_addr": address, "rx_enb_n": enb}
        # Data in the clock after one with RxEnb* low: this sample is of what the clock before asked for
        if self._reads.pop(0):
            bus = self._bus
            assert bus["rx_oe"], "nobody drives the data"
            assert bus["rx_prty"] == odd_parity(bus["rx_data"])
            assert bus["rx_soc"] == (not self._words), f"RxSOC at word {len(self._words)}"
            self._words.append(bus["rx_data"])
        else:
            assert not self._bus["rx_oe"]
        self._reads.append(enb == 0)

    def _run(self) -> Machine:
        self._reads = [False]
        size = 53 if self.bits == 8 else 27
        while True:
            phy = self._rng.choice(self._phys)
            yield from self._step(phy)
            yield from self._step()
            if not self._bus["rx_clav"]:
                continue
            yield from self._step(phy)
            left = size
            while left:
                if left != size and self._rng.random() < self._pause:
                    for _ in range(self._rng.randrange(3)):
                        yield from self._step(self._rng.choice([NULL, *self._phys]))
                    yield from self._step(phy)
                yield from self._step(enb=0)
                left -= 1
            yield from self._step()
            self.cells[phy].append(cell_of_bus(self._words, self.bits))
            self._words = []


class PhyModel:
    """PHYs on a bus, which take and give cells at random times, and check the ATM layer.

    Members
    -------
    sent : dict of int to list of (header, payload)
        Cells that the ATM layer has sent, by PHY.
    """

    def __init__(self, bits, phys, rng: random.Random, give, *, busy=0.3, faults=None) -> None:
        self.bits, self.phys, self._rng, self._busy, self._faults = bits, [*phys], rng, busy, faults or {}
        self.size = 53 if bits == 8 else 27
        self.sent: dict[int, list[tuple[int, bytes]]] = {phy: [] for phy in self.phys}
        self.give = {phy: deque(enumerate(give.get(phy, ()))) for phy in self.phys}
        self._promised: dict[str, int | None] = {"tx": None, "rx": None}
        self._before = {"tx_addr": NULL, "tx_enb_n": 1, "rx_addr": NULL, "rx_enb_n": 1}
        self._chosen: dict[str, int | None] = {"tx": None, "rx": None}
        self._words: list[int] = []
        self._out: list[tuple[int, int, int]] = []
        self._offers: dict[str, set[int]] = {"tx": set(), "rx": set()}
        self.drives = {"tx_clav": 0, "rx_clav": 0, "rx_data": 0, "rx_soc": 0, "rx_prty": 0}

    def clock(self, bus: Bus) -> Drive:
        made = dict.fromkeys(self.drives, 0)
        for way in ("tx", "rx"):
            address, before = bus[f"{way}_addr"], self._before[f"{way}_addr"]
            off, was_off = bus[f"{way}_enb_n"], self._before[f"{way}_enb_n"]
            assert NULL in (address, before) or address == before, "no null address between two polls"
            if was_off and not off:
                self._chosen[way] = before
                assert before in self._offers[way], f"{way}: PHY {before} was selected without Clav"
                self._offers[way].discard(before)
            if address in self.phys:
                offers = address in self._offers[way] or self._rng.random() > self._busy
                if way == "rx" and not self.give[address]:
                    offers = False
                made[f"{way}_clav"] = int(offers)
                if offers:
                    self._offers[way].add(address)
            elif address == NULL:
                made[f"{way}_clav"] = self._rng.getrandbits(1)  # nobody drives it
        self._take(bus)
        self._read(bus, made)
        self._before = {name: bus[name] for name in self._before}
        self.drives = made
        return made

    def _take(self, bus: Bus) -> None:
        if bus["tx_enb_n"]:
            assert not self._words, "a cell was stopped"
            return
        phy = self._chosen["tx"]
        assert phy is not None and phy in self.phys
        assert bus["tx_prty"] == odd_parity(bus["tx_data"])
        assert bus["tx_soc"] == (not self._words)
        self._words.append(bus["tx_data"])
        if len(self._words) == self.size:
            self.sent[phy].append(cell_of_bus(self._words, self.bits))
            self._words = []

    def _read(self, bus: Bus, made: Drive) -> None:
        if bus["rx_enb_n"]:
            assert not self._out, "a cell was not read to its end"
            made.update(rx_data=self._rng.getrandbits(self.bits), rx_soc=self._rng.getrandbits(1))
            return
        phy = self._chosen["rx"]
        assert phy is not None
        if not self._out:
            number, (header, payload) = self.give[phy].popleft()
            words = bus_words(header, payload, self.bits)
            self._out = [(word, int(k == 0), odd_parity(word)) for k, word in enumerate(words)]
            for at, kind in [self._faults[phy, number]] if (phy, number) in self._faults else []:
                word, soc, parity = self._out[at]
                self._out[at] = (word, soc, 1 - parity) if kind == "parity" else (word, 1 - soc, parity)
        made["rx_data"], made["rx_soc"], made["rx_prty"] = self._out.pop(0)
