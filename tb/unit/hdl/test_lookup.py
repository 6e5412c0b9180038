"""The look-up: any set of VCs up to the node's number of them fits, and the RTL finds what a dictionary would."""

import random
from itertools import product

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from hypothesis import given
from hypothesis import strategies as st

from bentpipe_hdl.cell import CellHeader, TimeSignature
from bentpipe_hdl.csr import CsrMap, CsrSignature
from bentpipe_hdl.lookup import Lookup
from bentpipe_hdl.lookup_table import lookup_registers, lookup_table
from bentpipe_hdl.registers import RegisterMap
from bentpipe_hdl.tick_schedule import TickSchedule
from models.cell import Header, Interface
from unit.hdl.bench import WIDTHS, Bench, run

PORTS = st.integers(0, 15)
VPIS = st.integers(0, 4095)
VCIS = st.integers(0, 65535)


def found(vcs, placement):
    """Return the contents of the two memories: (port, VPI, VCI) to VC, each entry where its hash functions lead."""
    bits = vcs.bit_length()
    assert len(placement.words) == 2 << bits
    entries = {}
    for at, word in enumerate(placement.words):
        if not word:
            continue
        key = word & 0xFFFFFFFF
        memory, slot = divmod(at, 1 << bits)
        assert slot == key * placement.multipliers[memory] % 2**32 >> 32 - bits
        name = key >> 28, key >> 16 & 0xFFF, key & 0xFFFF
        assert word >> 63 and name not in entries
        entries[name] = word >> 32 & 0x7FFFFFFF
    return entries


def check(vcs, keys):
    entries = {key: index for index, key in enumerate(keys)}
    assert len(entries) == len(keys)
    assert found(vcs, lookup_table(vcs, entries)) == entries


@given(st.sampled_from([2, 4, 16, 64, 256]), st.data())
def test_any_set_fits(vcs, data):
    keys = st.tuples(PORTS, VPIS, VCIS)
    check(vcs, data.draw(st.lists(keys, unique=True, max_size=vcs)))


@given(
    st.sampled_from([4, 16, 64, 256]), st.sets(st.integers(0, 31), min_size=8, max_size=8), st.integers(0, 2**32 - 1)
)
def test_every_number_of_some_bits_fits(vcs, bits, rest):
    """Sets as regular as can be: all values of some bits of the key, the others alike."""
    places = sorted(bits)[: vcs.bit_length() - 1]
    keys = [sum((k >> j & 1) << bit for j, bit in enumerate(places)) ^ rest for k in range(vcs)]
    check(vcs, [(key >> 28, key >> 16 & 0xFFF, key & 0xFFFF) for key in keys])


SETS = {
    "one port, VCIs in a row": lambda n: [(0, 0, 32 + k) for k in range(n)],
    "VPI xor VCI alike": lambda n: [(0, k % 4096, k % 4096 ^ 0x21) for k in range(n)],
    "low bits alike": lambda n: [(0, 0, 65536 // n * k) for k in range(n)],
    "VPIs": lambda n: [(0, k % 4096, 32) for k in range(n)],
    "ports and VCIs": lambda n: [(k % 16, 0, 32 + k // 16) for k in range(n)],
    "a grid": lambda n: [(k % 4 * 4, k // 4 % 4 << 10, k // 16 << 4) for k in range(n)],
    "all bits high up": lambda n: [(p, v << 4, 0) for p, v in product(range(16), range(256))][:n],
}


@pytest.mark.parametrize("keys", SETS.values(), ids=list(SETS))
@pytest.mark.parametrize("vcs", [2, 64, 1024, 4096])
def test_as_many_keys_as_vcs(vcs, keys):
    check(vcs, keys(vcs))


PATHS = {
    "one port, VPIs in a row": lambda n: [(0, k, 0) for k in range(n)],
    "the last VPIs": lambda n: [(15, 4095 - k, 0) for k in range(n)],
    "low bits alike": lambda n: [(3, 4096 // n * k, 0) for k in range(n)],
    "ports and VPIs": lambda n: [(k % 16, k // 16, 0) for k in range(n)],
    "a grid": lambda n: [(k % 4 * 4, k // 4 % 4 << 10 | k // 16 << 4, 0) for k in range(n)],
}


@pytest.mark.parametrize("keys", PATHS.values(), ids=list(PATHS))
@pytest.mark.parametrize("paths", [2, 64, 256])
def test_as_many_paths_as_there_are_places(paths, keys):
    """Keys without a VCI: half of their bits are 0."""
    check(paths, keys(paths))


@given(st.sampled_from([2, 16, 64, 256]), st.data())
def test_any_set_of_paths_fits(paths, data):
    keys = st.tuples(PORTS, VPIS, st.just(0))
    check(paths, data.draw(st.lists(keys, unique=True, max_size=paths)))


def test_0_32_and_1_33_at_one_port():
    check(2, [(0, 0, 32), (0, 1, 33)])


def test_multipliers_that_do_not_place_a_set_are_followed_by_others(monkeypatch):
    """One and one send all of these to one slot of each memory."""
    draws = iter([1, 1, 1, 1, 0x9E3779B1, 0x85EBCA6B])
    monkeypatch.setattr("random.Random.getrandbits", lambda self, bits: next(draws))
    check(4, [(0, 0, k) for k in range(4)])
    assert list(draws) == []


def test_the_same_entries_have_the_same_places():
    entries = {(0, 0, 32 + k): k for k in range(64)}
    assert lookup_table(64, entries) == lookup_table(64, entries)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({(0, 0, k): 0 for k in range(5)}, "5 look-up entries are more than the 4 that it has place for"),
        ({(16, 0, 0): 0}, "out of range: 16, 0, 0, 0"),
        ({(0, 4096, 0): 0}, "out of range: 0, 4096, 0, 0"),
        ({(0, 0, 65536): 0}, "out of range: 0, 0, 65536, 0"),
        ({(0, 0, 32): 4}, "out of range: 0, 0, 32, 4"),
    ],
)
def test_what_does_not_fit_is_refused(entries, message):
    with pytest.raises(ValueError, match=message):
        lookup_table(4, entries)


class Node(wiring.Component):
    """A look-up alone: the header is there from the tick's first clock on, the answer when the tick ends."""

    def __init__(self, width, vcs, ports, paths=0):
        self.width, self.vcs, self.ports, self.paths = width, vcs, ports, paths
        self.registers = RegisterMap("lookup", "", 1, {}, lookup_registers(paths or vcs, paths=bool(paths)))
        super().__init__(
            {
                "time": In(TimeSignature()),
                "csr": In(CsrSignature()),
                "header": In(CellHeader),
                "port": In(range(max(ports, 2))),
                "nni": In(ports),
                "known": Out(1),
                "vc": Out(range(vcs)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        slot = TickSchedule(m, self.time, self.width)
        csr = CsrMap(m, self.csr, self.registers)
        of_paths = {"name": "vp_lookup", "entries": self.paths, "paths": True} if self.paths else {}
        table = Lookup(m, slot, csr, vcs=self.vcs, ports=self.ports, nni=self.nni, **of_paths)
        known, vc = table.find(self.header, self.port[: (self.ports - 1).bit_length()])
        csr.finish()
        m.d.comb += [self.known.eq(known), self.vc.eq(vc)]
        return m


class LookupBench(Bench):
    async def find(self, port, vpi, vci, interface=Interface.NNI):
        """The VC, or None; four clocks after the header (the narrow datapath has no more)."""
        ctx, node = self.ctx, self.node
        ctx.set(node.header.as_value(), int(Header(vpi, vci, interface=interface)))
        ctx.set(node.port, port)
        for _ in range(0 if self.wide else 4):
            await self._clock()
        await ctx.delay(0)
        return ctx.get(node.vc) if ctx.get(node.known) else None

    async def fill(self, placement):
        name = "vp_lookup" if self.node.paths else "lookup"
        await self.apply(lambda csr: placement.write(csr, name))


def drive(node, test):
    async def bench(bench):
        bench.__class__ = LookupBench
        bench.ctx.set(node.nni, (1 << node.ports) - 1)
        await test(bench)

    run(node, bench)


@pytest.mark.parametrize(("vcs", "ports"), [(2, 1), (16, 4), (64, 16)])
@pytest.mark.parametrize("width", WIDTHS)
def test_rtl_against_a_dictionary(width, vcs, ports):
    rng = random.Random(f"{vcs} {ports}")
    numbers = (0, 1, 2, 33, 0x800, 0xFFF), (0, 32, 33, 40, 0x8000, 0xFFFF)

    async def test(bench):
        for _ in range(3):  # another set in the same memories
            keys = rng.sample(list(product(range(ports), *numbers)), vcs)
            entries = dict(zip(keys, rng.sample(range(vcs), vcs), strict=True))
            await bench.fill(lookup_table(vcs, entries))
            probes = [*keys, *product(range(ports), *numbers)]
            for key in rng.sample(probes, min(len(probes), 150)):
                assert await bench.find(*key) == entries.get(key), key

    drive(Node(width, vcs, ports), test)


@pytest.mark.parametrize(("vcs", "paths", "ports"), [(16, 4, 4), (64, 8, 16), (8, 8, 1)])
@pytest.mark.parametrize("width", WIDTHS)
def test_rtl_of_paths_against_a_dictionary(width, vcs, paths, ports):
    """Fewer places than VCs; whatever the VCI is."""
    rng = random.Random(f"{vcs} {paths}")
    vpis = 0, 1, 2, 33, 0x800, 0xFFF

    async def test(bench):
        for _ in range(3):
            every = list(product(range(ports), vpis))
            keys = rng.sample(every, min(paths, len(every)))
            entries = {(*key, 0): rng.randrange(vcs) for key in keys}
            await bench.fill(lookup_table(paths, entries, vcs=vcs))
            for key in [*keys, *rng.sample(every, min(len(every), 20))]:
                assert await bench.find(*key, rng.choice([0, 3, 65535])) == entries.get((*key, 0)), key

    drive(Node(width, vcs, ports, paths), test)


@pytest.mark.parametrize("width", WIDTHS)
def test_gfc_is_no_part_of_a_vpi_at_a_uni(width):
    async def test(bench):
        await bench.fill(lookup_table(2, {(0, 5, 32): 1}))
        assert await bench.find(0, 0xA05, 32) is None
        bench.ctx.set(bench.node.nni, 0)
        assert await bench.find(0, 0xA05, 32) == 1

    drive(Node(width, 2, 1), test)


@pytest.mark.parametrize("width", WIDTHS)
def test_an_entry_that_moves_is_never_absent(width):
    """From its place in either memory to the one in the other, register by register."""
    key = 0, 7, 77
    number = 7 << 16 | 77

    async def test(bench):
        placement = lookup_table(4, {key: 3})
        await bench.fill(placement)
        slots = [number * multiplier % 2**32 >> 32 - 3 for multiplier in placement.multipliers]
        (at,) = (k for k, word in enumerate(placement.words) if word)
        word = placement.words[at]
        places = [slots[0], 8 + slots[1]]
        assert at in places
        places.remove(at)
        for new, old in ((places[0], at), (at, places[0])):
            for place_, value in ((new, word), (old, 0)):
                for half in range(2):
                    table = bench.node.registers["lookup"].addr
                    await bench.write(table + 2 * place_ + half, value >> 32 * half & 0xFFFFFFFF)
                    assert await bench.find(*key) == 3

    drive(Node(width, 4, 1), test)
