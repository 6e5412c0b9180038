"""Runs inside cocotb: the link. Started by test_link.py."""

import math
import os
import random
from functools import partial

import cocotb
from bentpipe_hdl.bit_errors import scale_of
from bentpipe_hdl.link.control import link_registers
from cocotb_nodes.environment import Arrival, Environment, gaps
from models.cell import Cell, Header
from models.registers import addresses, written

DELAY_CELLS = int(os.environ.get("BENTPIPE_DELAY_CELLS", "0"))
LINK = link_registers()
COUNTERS = addresses(LINK, "cells", "errored", "corrected", "rejected", "error_bits", "lost")
DELAY, ERRORS = addresses(LINK, "delay", "error_enable")


def random_cells(rng, count, bad=0.0):
    return [
        Arrival(Cell(Header.unpack(rng.randbytes(4)), rng.randbytes(48)), 0, rng.random() < bad) for _ in range(count)
    ]


async def started(dut, seed=1):
    environment = Environment(dut, seed)
    await environment.start()
    return environment


async def errors_on(environment, rate, seed, first=300):
    mantissa, shift = scale_of(rate)

    def write(csr):
        csr.error_mantissa, csr.error_shift = mantissa, shift
        csr.gap, csr.seed = first, seed
        csr.error_enable = 1

    await environment.write(written(LINK, write))


def _set_gap(gap, csr):
    csr.gap = gap


async def send(environment, cells, pause, delay):
    """Send cells while counters are read and the delay is written again; what came out."""
    environment.source.pause = pause
    environment.source.queue.extend(cells)
    running = True
    watch = cocotb.start_soon(environment.watch(COUNTERS, [(DELAY, delay), (DELAY, delay)], lambda: running))
    await environment.ticks_until(lambda: not environment.source.queue, 100 * len(cells))
    await environment.ticks(delay + 4)
    running = False
    assert await watch > 0
    return environment.sink.cells


@cocotb.test()
async def delay_is_exact(dut):
    """A cell of tick T is decided on in tick T + DELAY - 1; one that finds the delay memory full is lost."""
    environment = await started(dut)
    rng = random.Random(1)
    for delay in (2, 3, 7, 60, 150) if DELAY_CELLS else (1,):
        await environment.reset()
        await environment.write([(DELAY, delay)])
        came_out = await send(environment, random_cells(rng, 300, bad=0.05), gaps(rng), delay)
        expected, held, lost = [], [], 0
        for tick, arrival in environment.source.sent:
            held = [due for due in held if due >= tick]
            if DELAY_CELLS and len(held) == DELAY_CELLS:
                lost += 1
                continue
            held.append(tick + delay - 1)
            expected.append((held[-1], int(arrival.cell.header), arrival.cell.payload, arrival.hec_error))
        assert [(out.tick, out.header, out.payload, out.hec_error) for out in came_out] == expected
        assert (lost > 10) == (delay > 100)
        bad = sum(arrival.hec_error for _, arrival in environment.source.sent)
        assert await environment.read_all(COUNTERS) == [300, 0, 0, bad, 0, lost]


@cocotb.test()
async def errors_have_the_asked_rate(dut):
    """Within four standard deviations: inverted bits, hit cells, their places, headers corrected and dropped."""
    environment = await started(dut)
    rng = random.Random(2)
    count = 2000 if environment.wide else 700  # the same part behind either datapath
    for rate in (1e-3, 2e-4):
        await environment.reset()
        await environment.write([(DELAY, 2)])
        await errors_on(environment, rate, seed=rng.getrandbits(64))
        came_out = await send(environment, random_cells(rng, count), gaps(rng), 2)
        sent = [arrival.cell for _, arrival in environment.source.sent]
        cells, errored, corrected, rejected, bits, lost = await environment.read_all(COUNTERS)
        assert (cells, lost, len(came_out)) == (count, 0, count)

        def near(got, trials, chance, what):
            mean = trials * chance
            assert abs(got - mean) <= 4 * (mean * (1 - chance)) ** 0.5, f"{what}: {got}, not about {mean:.0f}"

        near(bits, 424 * count, rate, "bits")
        near(errored, count, 1 - (1 - rate) ** 424, "cells")
        near(corrected + rejected, count, 1 - (1 - rate) ** 40, "headers")
        places = []
        for cell, out in zip(sent, came_out, strict=True):
            flips = int.from_bytes(cell.payload, "big") ^ int.from_bytes(out.payload, "big")
            places += [383 - k for k in range(384) if flips >> k & 1]
            assert out.hec_error or out.header == int(cell.header), "a header that passed is right"
        near(len(places), 384 * count, rate, "bits of the payload")
        assert bits > len(places), "header and HEC are hit"
        for part in range(8):
            near(sum(place // 48 == part for place in places), 48 * count, rate, f"payload, eighth {part}")
        for bit in range(8):
            near(sum(place % 8 == bit for place in places), 48 * count, rate, f"bit {bit} of the octets")
        assert rejected == sum(out.hec_error for out in came_out)
        # Single errors that follow a good header are corrected: all but those of a hit header behind a hit one.
        single = 40 * rate * (1 - rate) ** 39
        near(corrected, count, single * (1 - rate) ** 40, "corrected headers")


def gaps_of(seed, rate):
    """Good bits before each error: geometric, from the upper 48 bits of Marsaglia's xorshift64 (13, 7, 17)."""
    while True:
        seed ^= seed << 13 & (1 << 64) - 1
        seed ^= seed >> 7
        seed ^= seed << 17 & (1 << 64) - 1
        yield int(math.log((seed >> 16) / 2**48) / math.log1p(-rate))


@cocotb.test()
async def errors_are_where_the_generator_has_them(dut):
    """Each bit error of the payload, in bits of cells from the first; by one bit off at most where a logarithm is
    rounded, and hardly ever so."""
    environment = await started(dut)
    rng = random.Random(7)
    rate, seed, first = 1e-3, rng.getrandbits(64), 300
    await environment.write([(DELAY, 2)])
    await errors_on(environment, rate, seed, first)
    came_out = await send(environment, random_cells(rng, 1201 if environment.wide else 501), gaps(rng), 2)
    hit = set()
    for n, ((_, arrival), out) in enumerate(zip(environment.source.sent, came_out, strict=True), -1):  # not the first
        flips = int.from_bytes(arrival.cell.payload, "big") ^ int.from_bytes(out.payload, "big")
        hit |= {424 * n + 423 - k for k in range(384) if flips >> k & 1}
    place, exact, other = first, 0, 0
    for gap in gaps_of(seed, rate):
        if place >= 424 * (len(came_out) - 1) - 1:
            break
        if place % 424 >= 41:  # not in, or at the edge of, header and HEC
            found = next((at for at in (place, place - 1, place + 1) if at in hit), None)
            assert found is not None, f"no error at bit {place}"
            exact, other = exact + (found == place), other + (found != place)
            hit.remove(found)
            place = found
        place += 1 + gap
    assert exact > (400 if environment.wide else 150) and other < exact / 50
    assert len(hit) <= 5, "errors that the generator does not have"  # at the edge of the header


@cocotb.test()
async def errors_depend_on_the_seed_alone(dut):
    """Neither gaps between cells nor the length of ticks move an error; another seed has others."""
    environment = await started(dut)
    results = []
    for seed, pause in ((77, lambda tick: False), (77, gaps(random.Random(3))), (78, lambda tick: False)):
        await environment.reset()
        await environment.write([(DELAY, 2)])
        await errors_on(environment, 1e-3, seed)
        came_out = await send(environment, random_cells(random.Random(4), 300), pause, 2)
        results.append([(out.header, out.payload, out.hec_error) for out in came_out])
    assert results[0] == results[1] != results[2]


@cocotb.test()
async def header_check_behind_errors(dut):
    """A whole run of errors against the receiver's automaton: an error at every place of header and HEC, cells apart
    and back to back; GAP is written while cells flow."""
    from models.hec import Outcome, Receiver

    environment = await started(dut)
    rng = random.Random(5)
    never = (1 << 56) - 1
    await environment.write([(DELAY, 2)])
    await errors_on(environment, 1e-12, 1, first=never)
    receiver, expected = Receiver(), []
    places = [*range(40)] * 2
    rng.shuffle(places)
    environment.source.queue.extend(first := random_cells(rng, 1))  # it passes unhurt
    await environment.ticks(3)
    outcome, header = receiver.receive(first[0].cell.octets()[:5])
    expected.append((False, header[:4], first[0].cell.payload))
    for place in places:
        clean = rng.choice((0, 0, 1, 2))
        await environment.write(written(LINK, partial(_set_gap, 424 * clean + place)))
        environment.source.queue.extend(cells := random_cells(rng, clean + 1))
        await environment.ticks(clean + 3)
        for k, arrival in enumerate(cells):
            line = bytearray(arrival.cell.octets()[:5])
            if k == clean:
                line[place // 8] ^= 0x80 >> place % 8
            outcome, header = receiver.receive(bytes(line))
            expected.append(
                (outcome is Outcome.DISCARDED, outcome is Outcome.DISCARDED or header[:4], arrival.cell.payload)
            )
    await environment.ticks(4)
    got = [
        (out.hec_error, out.hec_error or out.header.to_bytes(4, "big"), out.payload) for out in environment.sink.cells
    ]
    assert got == expected
    corrected, rejected = (receiver.counts[outcome] for outcome in (Outcome.CORRECTED, Outcome.DISCARDED))
    assert corrected > 10 < rejected
    assert await environment.read_all(COUNTERS) == [len(expected), 80, corrected, rejected, 80, 0]


@cocotb.test()
async def reset_forgets_what_was_under_way(dut):
    """Reset at many places of cells that are being hit: afterwards settings and counters are those of the beginning,
    and no old cell or error shows."""
    environment = await started(dut)
    rng = random.Random(6)
    for _ in range(12):
        await environment.write([(DELAY, 5)])
        await errors_on(environment, 1e-3, rng.getrandbits(64) | 1, first=rng.randrange(424))
        environment.source.queue.extend(random_cells(rng, 40))
        environment.running = True
        clocks = iter(range(rng.randrange(20, 60 if environment.wide else 300)))
        await environment.until(lambda clocks=clocks: next(clocks, None) is None)
        await environment.reset()
        assert await environment.read_all([DELAY, ERRORS, *COUNTERS]) == [1, 0] + [0] * 6
        await environment.write([(DELAY, 2)])
        cells = random_cells(rng, 8)
        came_out = await send(environment, cells * 4, lambda tick: False, 2)
        assert len(came_out) == 4 * len(cells)
        for k, (out, arrival) in enumerate(zip(came_out, cells * 4, strict=True)):
            assert (out.header, out.payload) == (int(arrival.cell.header), arrival.cell.payload), f"cell {k}"
