"""Cell delineation alone: time to the first cell, header errors, the states."""

import random
from functools import partial

import pytest

from bentpipe_hdl.sonet.demapper import CellDemapper
from bentpipe_hdl.sonet.geometry import Geometry
from bentpipe_hdl.sonet.mapper import CellMapper
from models.sonet.tc import CellSink, CellSource
from unit.hdl.bench import run_component


def cells_of(rng, count):
    return [
        (rng.randrange(32, 65536) << 4).to_bytes(4, "big") + i.to_bytes(4, "big") + rng.randbytes(44)
        for i in range(count)
    ]


def demap(geometry, octets):
    """(octet position, cell, discarded, corrected) of what comes out."""
    out = []

    async def bench(ctx, dut):
        width = geometry.width
        padded = octets + bytes(8 * width)
        for k in range(0, len(padded) - width, width):
            ctx.set(dut.word, int.from_bytes(padded[k : k + width], "little"))
            ctx.set(dut.push, k < len(octets))
            await ctx.tick()
            if ctx.get(dut.valid):
                value = ctx.get(dut.cell)
                cell = (value >> 384).to_bytes(4, "big") + (value & (1 << 384) - 1).to_bytes(48, "little")
                out.append((k, cell, ctx.get(dut.hec_error), ctx.get(dut.corrected)))

    run_component(partial(CellDemapper, geometry), bench)
    return out


@pytest.mark.parametrize(("n", "width"), [(3, 9), (12, 36), (12, 4)])
def test_cells_within_12_cell_times_on_average(n, width):
    rng = random.Random(width)
    times = []
    for _ in range(16 if width > 4 else 5):
        stream = CellSource(cells_of(rng, 24)).take(24 * 53)[rng.randrange(1, 53) :]
        out = demap(Geometry(n, width), stream)
        assert out
        assert not any(bad for _, _, bad, _ in out)
        times.append(out[0][0] / 53)
    print(f"{width} bytes: first cell after {sum(times) / len(times):.2f} cell times, worst {max(times):.2f}")
    assert sum(times) / len(times) <= 12


@pytest.mark.parametrize(("n", "width"), [(3, 9), (12, 4)])
def test_header_errors_as_the_model_has_them(n, width):
    """All single errors one after another with good cells between, doubles, and runs up to the loss of SYNC."""
    rng = random.Random(7)
    sent = cells_of(rng, 240)
    octets = bytearray(CellSource(sent).take(240 * 53))
    at = 10
    for bit in range(40):
        octets[53 * at + bit // 8] ^= 0x80 >> bit % 8
        at += 2
    for _ in range(12):
        for bit in rng.sample(range(40), 2):
            octets[53 * at + bit // 8] ^= 0x80 >> bit % 8
        at += 2
    for run in (2, 6, 7):
        for _ in range(run):
            octets[53 * at + 1] ^= 0x42
            octets[53 * at + 2] ^= 0x81
            at += 1
        at += 15
    model = CellSink()
    model.put(bytes(octets))
    out = demap(Geometry(n, width), bytes(octets))
    good = [cell for _, cell, bad, _ in out if not bad]
    # after the loss of SYNC the search begins a few octets later than the model's: one cell less
    at = next(k for k, (a, b) in enumerate(zip(good, model.cells, strict=False)) if a != b)
    assert at > 120
    assert good[at:] == model.cells[at + 1 :]
    assert sum(corrected for *_, corrected in out) == model.corrected == 40
    assert sum(bad for _, _, bad, _ in out) == model.bad == 12 + 2 + 6 + 7


def test_idle_and_unassigned_cells_are_dropped():
    rng = random.Random(3)
    user = cells_of(rng, 6)
    odd = [bytes.fromhex(h) + bytes(48) for h in ("00000000", "00000001", "f0000006", "0000000a")]
    start = CellSource([]).take(0)
    source = CellSource([*cells_of(rng, 9), *odd, *user])
    out = demap(Geometry(3, 9), start + source.take(19 * 53))
    assert [cell for _, cell, _, _ in out][-6:] == user
    assert not set(odd) & {cell for _, cell, _, _ in out}


@pytest.mark.parametrize(("n", "width"), [(3, 1), (3, 9), (12, 4), (12, 36)])
def test_the_mapper_takes_cells_at_the_full_rate(n, width):
    """With cells always there no idle cell is sent but the first two; the bytes are the model's."""
    g = Geometry(n, width)
    rng = random.Random(5)
    sent = cells_of(rng, 60 if width > 1 else 6)
    idle = []
    out = bytearray()

    async def bench(ctx, dut):
        waiting = list(sent)
        warm = 0
        while waiting:
            if ctx.get(dut.ready):
                cell = waiting.pop(0)
                ctx.set(dut.cell, int.from_bytes(cell[4:], "little") | int.from_bytes(cell[:4], "big") << 384)
                ctx.set(dut.valid, 1)
            else:
                ctx.set(dut.valid, 0)
            pull = warm >= 4
            ctx.set(dut.pull, pull)
            if pull:
                out.extend(ctx.get(dut.word).to_bytes(width, "little"))
            await ctx.tick()
            warm += 1
            idle.append(ctx.get(dut.idle))

    run_component(partial(CellMapper, g), bench)
    assert sum(idle) == 0
    source = CellSource([])
    expected = source.take(106)  # two idle cells are ready after reset
    source.queue = list(sent)
    expected += source.take(len(out))
    assert bytes(out) == expected[: len(out)]
