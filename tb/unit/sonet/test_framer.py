"""The framer's bytes against the vectors and the model."""

import hashlib
import json
import random
from functools import partial
from pathlib import Path

import pytest

from bentpipe_hdl.sonet.framer import Framer
from bentpipe_hdl.sonet.geometry import Geometry
from models.sonet.frame import ModelReceiver
from unit.hdl.bench import run_component

VECTORS = Path(__file__).parents[2] / "vectors"
WIDE = [(3, 9), (12, 36)]


def run(make, width, frames, words, each_frame=None, cells=()):
    """Lines of ``frames`` frames of a framer; ``each_frame(ctx, framer, k)`` is called at the start of each."""
    out = bytearray()
    waiting = [int.from_bytes(c[4:], "little") | int.from_bytes(c[:4], "big") << 384 for c in cells]

    async def bench(ctx, framer):
        ctx.set(framer.overhead.c2, 0x13)
        ctx.set(framer.rdi_p, 0)
        for k in range(frames * words):
            if k % words == 0 and each_frame:
                each_frame(ctx, framer, k // words)
            if ctx.get(framer.ready):
                ctx.set(framer.valid, bool(waiting))
                if waiting:
                    ctx.set(framer.cell, waiting.pop(0))
            else:
                ctx.set(framer.valid, 0)
            await ctx.tick()
            out.extend(ctx.get(framer.line).to_bytes(width, "little"))

    run_component(make, bench)
    return bytes(out)


@pytest.mark.parametrize(("n", "width"), [*WIDE, (3, 1), (12, 4)])
def test_frames_agree_with_the_vectors(n, width):
    g = Geometry(n, width)
    count = 3 if g.wide else 2
    out = run(partial(Framer, g), width, count, g.frame_words)
    entry = json.loads((VECTORS / "sonet_frames.json").read_text())["frames"][0 if n == 3 else 1]
    for k, expected in enumerate(entry["frames"][:count]):
        frame = out[810 * n * k : 810 * n * (k + 1)]
        assert frame[:48].hex() == expected["first_48_bytes_scrambled"]
        assert hashlib.sha256(frame).hexdigest() == expected["sha256_scrambled"]


def user_cells(rng, count):
    """Cells with random payload and a number in front."""
    return [
        (rng.randrange(32, 65536) << 4).to_bytes(4, "big") + i.to_bytes(4, "big") + rng.randbytes(44)
        for i in range(count)
    ]


@pytest.mark.parametrize(("n", "width", "first"), [(3, 9, 522), (3, 9, 781), (12, 36, 1), (3, 1, 0), (12, 4, 781)])
def test_the_model_receives_cells_across_pointer_movements(n, width, first):
    g = Geometry(n, width)
    rng = random.Random(n * width)
    make = partial(Framer, g, pointer=first)
    frames = {1: 10, 4: 18}.get(width, 22)
    cells = user_cells(rng, 3 * 44 * n)

    def each(ctx, framer, k):
        # requests stay, from when the receiver knows the pointer: the generator spaces them by three frames
        up = k < 13 if first != 1 else k >= 13
        ctx.set(framer.increment, k >= 4 and up)
        ctx.set(framer.decrement, k >= 4 and not up)

    out = run(make, width, frames, g.frame_words, each, cells)
    receiver = ModelReceiver(n)
    receiver.put(out)
    kinds = [f.indication for f in receiver.frames]
    assert (
        "".join({"inc": "+", "dec": "-", "norm": ".", "new": "n"}[kind] for kind in kinds)
        == (
            "nnn.+...+...+...-...-...",
            "nnn.-...-...-...+...+...",
        )[first == 1][:frames]
    )
    assert sum(f.b1_errors + f.b2_errors for f in receiver.frames) == 0
    assert not any(receiver.b3_errors)
    got = receiver.cells.cells
    assert receiver.cells.bad == 0
    assert len(got) > (100 if width > 1 else 60)
    assert got == cells[len(cells) - len(got) :] or got == cells[cells.index(got[0]) :][: len(got)]


@pytest.mark.parametrize(("width", "target"), [(9, 100), (1, 100), (1, 782)])
def test_new_pointer_with_ndf(width, target):
    g = Geometry(3, width)
    make = partial(Framer, g)
    frames = 12 if width > 1 else 7

    def each(ctx, framer, k):
        ctx.set(framer.jump, k == 4)
        ctx.set(framer.target, target)

    out = run(make, width, frames, g.frame_words, each)
    receiver = ModelReceiver(3)
    receiver.put(out)
    assert [f.indication for f in receiver.frames] == ["new"] * 3 + ["norm", "ndf"] + ["norm"] * (frames - 5)
    assert sum(f.b1_errors + f.b2_errors for f in receiver.frames) == 0
    assert receiver.path_state.pointer.active == target
    assert not any(receiver.b3_errors)
    assert receiver.cells.state == "SYNC"
    assert all(path[2] == 0x13 for path in receiver.path)


@pytest.mark.parametrize(("n", "width"), [(3, 3), (12, 3), (48, 16), (12, 0)])
def test_widths_that_do_not_fit_are_refused(n, width):
    with pytest.raises(ValueError, match=f"not {width}"):
        Geometry(n, width)
