"""The link in RTL: errors at every place, the header check's automaton, delay; on both datapaths."""

import random

import pytest

from bentpipe_hdl.bit_errors import scale_of
from bentpipe_hdl.cell import NARROW, WIDE
from bentpipe_hdl.link.control import VCS, link_registers
from bentpipe_hdl.link.link import Link
from bentpipe_hdl.lookup_table import lookup_table
from models.cell import Cell, Header
from models.hec import Outcome, Receiver
from unit.hdl.bench import WIDTHS, Arrival
from unit.hdl.bench import run_compiled as run

NEVER = (1 << 56) - 1
ADDRESS = {register.name: register.addr for register in link_registers().registers}


async def errors_on(bench, rate, seed=12345):
    mantissa, shift = scale_of(rate)
    await bench.reset()
    await bench.set("error_mantissa", mantissa)
    await bench.set("error_shift", shift)
    await bench.set("gap", NEVER)
    await bench.set("seed", seed)
    await bench.set("error_enable", 1)
    await bench.tick(Arrival(random_cell(random.Random(seed))))  # it passes unhurt
    await bench.ticks(3)
    bench.came_out.clear()


def random_cell(rng):
    return Cell(Header.unpack(rng.randbytes(4)), rng.randbytes(48))


async def send(bench, cell, first_error=NEVER):
    """Send a cell with its ``first_error``th bit inverted, counted from the first on the line."""
    await bench.set("gap", first_error)
    before = len(bench.came_out)
    await bench.tick(Arrival(cell))
    while len(bench.came_out) == before:
        await bench.tick()
    return bench.came_out[-1]


def flipped(payload, bit):
    changed = bytearray(payload)
    changed[bit // 8] ^= 0x80 >> bit % 8
    return bytes(changed)


@pytest.mark.parametrize("width", WIDTHS)
def test_an_error_at_each_place_of_the_payload(width):
    rng = random.Random(1)

    async def test(bench):
        await errors_on(bench, 1e-12)
        places = [0, 1, 7, 8, 31, 32, 191, 192, 376, 383, *(rng.randrange(384) for _ in range(20))]
        for place in places:
            cell = random_cell(rng)
            out = await send(bench, cell, 40 + place)
            assert out.payload == flipped(cell.payload, place), place
            assert (out.header, out.hec_error) == (int(cell.header), False)
        assert await bench.get("cells") == 1 + len(places)
        assert await bench.get("errored") == await bench.get("error_bits") == len(places)

    run(Link(width=width), test)


@pytest.mark.parametrize("width", WIDTHS)
def test_cells_with_errors_are_told(width):
    """For one clock a cell, wherever its error is, and for no other cell."""
    rng = random.Random(3)

    async def test(bench):
        await errors_on(bench, 1e-12)
        told = []
        bench.after_clock = lambda: told.append(bench.now) if bench.ctx.get(bench.node.error) else None
        expected = []
        for _ in range(40):
            place = rng.choice([0, 39, 40, 423, 424, 500])
            if place < 424:
                expected.append(bench.now)
            await send(bench, random_cell(rng), place)
            await bench.tick()
        assert told == expected

    run(Link(width=width), test)


@pytest.mark.parametrize("width", WIDTHS)
def test_header_check_follows_the_automaton(width):
    """Every single-bit error of the header, at random in correction or in detection mode."""
    rng = random.Random(2)
    places = [*range(40), *(rng.randrange(40) for _ in range(20))]
    rng.shuffle(places)

    async def test(bench):
        await errors_on(bench, 1e-12)
        receiver = Receiver()
        for place in places:
            for error in [place] if rng.random() < 0.4 else [NEVER, place]:
                cell = random_cell(rng)
                out = await send(bench, cell, error)
                line = cell.octets()[:5]
                outcome, header = receiver.receive(line if error == NEVER else flipped(line, error))
                assert out.hec_error == (outcome is Outcome.DISCARDED), place
                if outcome is not Outcome.DISCARDED:
                    assert out.header.to_bytes(4, "big") == header[:4], place
                assert out.payload == cell.payload
        assert await bench.get("corrected") == receiver.counts[Outcome.CORRECTED]
        assert await bench.get("rejected") == receiver.counts[Outcome.DISCARDED]

    run(Link(width=width), test)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_cell_that_came_in_bad_stays_bad(width):
    async def test(bench):
        await errors_on(bench, 1e-12)
        await bench.tick(Arrival(random_cell(random.Random(3)), hec_error=True))
        await bench.ticks(3)
        assert [out.hec_error for out in bench.came_out] == [True]

    run(Link(width=width), test)


def test_both_datapaths_have_the_same_errors_at_the_rate():
    """At 1e-3, 200 cells have 85 errors, give or take 9; the same ones at 416 and at 32 bits."""
    results = []
    for width in WIDTHS:

        async def test(bench):
            await errors_on(bench, 1e-3)
            await bench.set("gap", 100)
            rng = random.Random(4)
            cells = [random_cell(rng) for _ in range(200)]
            for cell in cells:
                await bench.tick(Arrival(cell))
            await bench.ticks(3)
            bits = 0
            for cell, out in zip(cells, bench.came_out, strict=True):
                differing = int.from_bytes(cell.payload, "big") ^ int.from_bytes(out.payload, "big")
                bits += differing.bit_count()
            total = await bench.get("error_bits")
            assert abs(total - 85) < 45
            assert bits <= total <= bits + 30  # the rest is in headers and HECs
            results.append([(out.header, out.payload, out.hec_error) for out in bench.came_out])

        run(Link(width=width), test)
    assert results[0] == results[1]


def results(script, cells, seed):
    """Return the output at both widths when ``script[k]`` is written between cell ``k`` and the one behind it; on the
    narrow datapath at any clock while cell ``k`` is on its way.
    """
    found = []
    for width in WIDTHS:

        async def test(bench):
            rng = random.Random(seed)
            waiting = []

            def write():
                ready = waiting and rng.random() < 0.5
                bench.ctx.set(bench.node.csr.w_en, bool(ready))
                if ready:
                    addr, word = waiting.pop(0)
                    bench.ctx.set(bench.node.csr.addr, addr)
                    bench.ctx.set(bench.node.csr.w_data, word)

            await bench.reset()
            for k, cell in enumerate(cells):
                if bench.wide:
                    await bench.tick(Arrival(cell))
                    for addr, word in script.get(k, []):
                        await bench.write(addr, word)
                else:  # no write in the clock in which the tick starts: it would be early at 416 bits
                    waiting += script.get(k, [])
                    bench.after_clock = write
                    await bench.tick(Arrival(cell))
                    while waiting or bench.ctx.get(bench.node.csr.w_en):
                        await bench._clock()
                    bench.after_clock = lambda: None
                if rng.random() < 0.2:
                    await bench.tick()
            await bench.ticks(3)
            bits = await bench.get("error_bits")
            found.append(([(out.header, out.payload, out.hec_error) for out in bench.came_out], bits))

        run(Link(width=width), test)
    return found


def rate_writes(rate):
    mantissa, shift = scale_of(rate)
    return [(ADDRESS["error_mantissa"], mantissa), (ADDRESS["error_shift"], shift)]


def test_a_rate_changed_in_a_run_holds_from_the_next_cell_but_one():
    """From 1e-12 to 1e-3 with cells in flight: the gap of the old rate does not go on."""
    rng = random.Random(8)
    cells = [random_cell(rng) for _ in range(300)]
    start = [*rate_writes(1e-12), (ADDRESS["seed"], 99), (ADDRESS["seed"] + 1, 0), (ADDRESS["error_enable"], 1)]
    wide, narrow = results({0: start, 40: rate_writes(1e-3), 240: rate_writes(1e-12)}, cells, 1)
    assert wide == narrow
    came_out, bits = wide
    hit = [k for k, (cell, out) in enumerate(zip(cells, came_out, strict=True)) if cell.payload != out[1]]
    assert 42 <= hit[0] < 52
    assert 230 < hit[-1] <= 241
    assert abs(bits - 199 * 0.424) < 5 * (199 * 0.424) ** 0.5


@pytest.mark.parametrize("seed", range(6))
def test_any_writes_at_any_time_hit_the_same_bits_at_both_widths(seed):
    rng = random.Random(f"writes {seed}")
    cells = [random_cell(rng) for _ in range(150)]
    script = {}
    for k in range(0, 150, 1 if seed == 0 else 7):
        writes = [*rate_writes(rng.choice([1e-3, 1e-3, 1e-3, 1e-12])), (ADDRESS["error_enable"], rng.random() < 0.9)]
        writes += [
            (ADDRESS["gap"] + 1, 0),
            (ADDRESS["seed"] + 1, rng.getrandbits(32)),
        ]  # with the low words as they were written last
        writes += [(ADDRESS["gap"], rng.randrange(900)), (ADDRESS["seed"], rng.getrandbits(32))]
        script[k] = [(addr, int(word)) for addr, word in rng.sample(writes, rng.randrange(1, len(writes) + 1))]
    wide, narrow = results(script, cells, seed)
    assert wide == narrow
    assert wide[1] > 0


@pytest.mark.parametrize("often", [True, False])
@pytest.mark.parametrize("width", WIDTHS)
def test_delay_across_the_end_of_time(width, often):
    """The 48 bits of the time come to their end while cells wait: many, one due in the very last tick, or only one."""
    rng = random.Random(9)

    async def test(bench):
        bench.now = (1 << 48) - 19
        await bench.reset()
        await bench.set("delay", 12)
        sent = []
        for k in range(50):
            bench.now %= 1 << 48
            if k % 3 if often else k % 14 == 0:
                cell = random_cell(rng)
                sent.append(((bench.now + 11) % (1 << 48), cell.payload))
                await bench.tick(Arrival(cell))
            else:
                await bench.tick()
        for _ in range(14):
            await bench.tick()
        assert [(out.tick % (1 << 48), out.payload) for out in bench.came_out] == sent
        assert ({(1 << 48) - 1, 0} if often else {6}) <= {tick for tick, _ in sent}

    run(Link(width=width, delay_cells=16), test)


@pytest.mark.parametrize("delay", [2, 3, 9])
@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_delay(width, delay):
    """A cell of tick T leaves in tick T + DELAY, i.e. is decided on one tick before."""
    rng = random.Random(delay)

    async def test(bench):
        await bench.reset()
        await bench.set("delay", delay)
        sent = []
        for _ in range(60):
            cell = random_cell(rng) if rng.random() < 0.6 else None
            if cell:
                sent.append((bench.now + delay - 1, int(cell.header), cell.payload))
            await bench.tick(Arrival(cell) if cell else None)
        await bench.ticks(delay + 3)
        assert [(out.tick, out.header, out.payload) for out in bench.came_out] == sent

    run(Link(width=width, delay_cells=16), test)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_full_delay_memory_loses_the_cell_and_counts_it(width):
    rng = random.Random(5)

    async def test(bench):
        await bench.reset()
        await bench.set("delay", 30)
        cells = [random_cell(rng) for _ in range(7)]
        for cell in cells:
            await bench.tick(Arrival(cell))
        await bench.ticks(40)
        lost = await bench.get("lost")
        assert [out.payload for out in bench.came_out] == [cell.payload for cell in cells[:4]]
        assert lost == 3

    run(Link(width=width, delay_cells=4), test)


def lost_by_lists(cells, lists):
    """The cells that come through, by the lists alone: (vpi, vci) -> ("cells" or "pdus", numbers)."""
    through, cell_count, pdu_count = [], dict.fromkeys(lists, 0), dict.fromkeys(lists, 1)
    for arrival in cells:
        header = arrival.cell.header
        vc = (header.gfc << 8 | header.vpi, header.vci)
        if vc in lists and header.pti < 4 and not arrival.hec_error:
            unit, numbers = lists[vc]
            cell_count[vc] += 1
            number = cell_count[vc] if unit == "cells" else pdu_count[vc]
            pdu_count[vc] += header.pti & 1
            if number in numbers:
                continue
        through.append(arrival)
    return through


@pytest.mark.parametrize("delay_cells", [0, 16])
@pytest.mark.parametrize("width", WIDTHS)
def test_listed_losses(width, delay_cells):
    """Cells and PDUs of two VCs by their numbers; a third, OAM cells and bad headers do not count."""
    rng = random.Random(6)
    lists = {(0, 40): ("cells", [1, 2, 5, 9, 30]), (0x105, 41): ("pdus", [2, 3, 6])}
    arrivals = []
    for _ in range(200):
        vpi, vci = rng.choice([(0, 40), (0x105, 41), (0, 42), (0x105, 41)])
        header = Header(gfc=vpi >> 8, vpi=vpi & 0xFF, vci=vci, pti=rng.choice([0, 0, 1, 3, 5]), clp=rng.getrandbits(1))
        arrivals.append(Arrival(Cell(header, rng.randbytes(48)), hec_error=rng.random() < 0.2))

    async def test(bench):
        await bench.reset()
        await bench.set("delay", 3)
        at = 0
        await bench.apply(lookup_table(VCS, {(0, *vpi_vci): index for index, vpi_vci in enumerate(lists)}).write)
        for index, (unit, numbers) in enumerate(lists.values()):
            await bench.set("loss_vc", at | (unit == "pdus") << 8, index)
            await bench.write(bench.node.registers["losses"].addr + at, *numbers, 0)
            at += len(numbers) + 1
        await bench.set("loss_enable", 1)
        for arrival in arrivals:
            await bench.tick(arrival)
            if rng.random() < 0.2:
                await bench.tick()
        await bench.ticks(6)
        through = lost_by_lists(arrivals, lists)
        assert len(through) < len(arrivals) - 8
        assert [(o.header, o.payload) for o in bench.came_out] == [
            (int(a.cell.header), a.cell.payload) for a in through
        ]
        assert await bench.get("dropped") == len(arrivals) - len(through)
        assert await bench.get("cells") == len(arrivals)

    run(Link(width=width, delay_cells=delay_cells), test)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_listed_loss_moves_no_error(width):
    def results(lost):
        found = []

        async def test(bench):
            await errors_on(bench, 1e-3)
            await bench.set("gap", 100)
            await bench.apply(lookup_table(VCS, {(0, 0, 40): 0}).write)
            await bench.set("loss_vc", 0)
            await bench.write(bench.node.registers["losses"].addr, *lost, 0)
            await bench.set("loss_enable", 1)
            rng = random.Random(7)
            for _ in range(60):
                await bench.tick(Arrival(Cell(Header(vci=40), rng.randbytes(48))))
            await bench.ticks(3)
            found.extend((out.header, out.payload, out.hec_error) for out in bench.came_out)

        run(Link(width=width), test)
        return found

    assert results([3, 4, 50]) == [out for k, out in enumerate(results([]), 1) if k not in (3, 4, 50)]


@pytest.mark.parametrize(("parameter", "value"), [("width", 8), ("delay_cells", 3), ("delay_cells", 1 << 17)])
def test_impossible_shapes(parameter, value):
    with pytest.raises(ValueError, match=f"{parameter} must be .* not {value}"):
        Link(**{parameter: value})
