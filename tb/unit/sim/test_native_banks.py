"""Registers that are picked by number: memories in the native engine, with the same values at every clock."""

import random
from dataclasses import dataclass

import pytest
from amaranth.hdl import Array, Cat, Module, ResetInserter, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from bentpipe_sim.build import build_model
from bentpipe_sim.native.banks import gather
from bentpipe_sim.native.netlist import read
from models.lockstep import side_by_side


class Picked(wiring.Component):
    """``kind`` says what is special about its registers."""

    def __init__(self, kind="plain"):
        self._kind = kind
        number = In(2)
        super().__init__(
            {
                **{"at": number, "other": number, "value": In(8), "clears": In(1)},
                **{"writes": In(1), "counts": In(1), "one": In(1), "swaps": In(1)},
                **{"whole": Out(8), "high": Out(5), "third": Out(8), "all": Out(32)},
            }
        )

    def elaborate(self, platform):
        m = Module()
        count = 3 if self._kind == "three" else 4
        self.bank = Array(Signal(8, name=f"bank{k}", init=k + 5, attrs=self._attrs(k)) for k in range(count))
        bank = self.bank
        with m.If(self.one):
            m.d.sync += bank[2][: 4 if self._kind == "parts" else 8].eq(self.value + 1)
        with m.If(self.writes):
            m.d.sync += bank[self.at].eq(self.value)
        with m.If(self.counts):
            m.d.sync += bank[self.other].eq(bank[self.at] + 1)
        with m.If(self.swaps):
            m.d.sync += bank[0].eq(bank[1])
        m.d.sync += [self.whole.eq(bank[self.at]), self.high.eq(bank[self.other][3:]), self.third.eq(bank[2])]
        m.d.sync += self.all.eq(Cat(*bank))
        return ResetInserter(self.clears)(m)

    def _attrs(self, k):
        return {"bentpipe_settled": 7} if self._kind == "marked" and k == 2 else {}


@dataclass(frozen=True)
class PickedBank:
    kind: str

    def component(self):
        return Picked(self.kind)


def banks(kind):
    netlist = read(Picked(kind), "picked")
    gather(netlist)
    return netlist


@pytest.mark.parametrize("kind", ["plain", "parts"])
def test_they_have_the_values_that_amaranth_says(kind):
    rng = random.Random(3)

    def stimulus(clock, before):
        strobes = {name: rng.random() < 0.5 for name in ("writes", "counts", "one", "swaps")}
        return {"at": rng.randrange(4), "other": rng.randrange(4), "value": rng.getrandbits(8),
                "clears": rng.random() < 0.05, **strobes}  # fmt: skip

    side_by_side(PickedBank(kind), 600, stimulus, build_model(PickedBank(kind), "native"))


def test_an_array_of_registers_is_a_memory_with_their_reset_values():
    netlist = banks("plain")
    memories = [cell.data for cell in netlist.cells if cell.op == "memory"]
    assert [(memory.depth, memory.init) for memory in memories] == [(4, (5, 6, 7, 8))]
    assert sorted(row for _, row in netlist.banked.values()) == [0, 1, 2, 3]


@pytest.mark.parametrize("kind", ["three", "marked", "parts"])
def test_what_an_index_can_miss_is_marked_or_written_in_parts_stays_registers(kind):
    assert banks(kind).banked == {}
