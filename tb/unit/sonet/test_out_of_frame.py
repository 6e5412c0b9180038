"""A whole end on octets of a line: framing that is lost, pointers that jump, and both in one."""

import random

import pytest

from bentpipe_hdl.sonet.tables import ALARMS
from models.sonet.frame import ModelFramer, ModelReceiver
from models.sonet.native import NativeLine
from models.sonet.pointer import LAST
from soak import lines

SHAPES = [(3, 9), (12, 36), (3, 1), (12, 4)]
FRAMING = 2
LABELS = [("sent_c2", 0x16, 0x13, "plm_p"), ("sent_k2", 7, 0, "ais_l")]
"""An octet, a value of it that is a defect, its usual value, the defect."""

A, B = 0, 1
SETTLE = 9
"""Frames until an end is in service."""


def sequence(line, cells):
    """The numbers of the cells received; each is as it was sent."""
    numbers = [int.from_bytes(cell[4:8], "little") for _, _, cell in cells]
    assert not any(discarded for _, discarded, _ in cells)
    assert all(line.cell(number) == cell for number, (_, _, cell) in zip(numbers, cells, strict=True))
    return numbers


def in_order(numbers):
    return numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def alarms(line, end):
    """Return the alarms that came or went since the last call."""
    line.run(words=2)
    changed = line.read(end, "changed")
    line.write(end, "changed", changed)
    return {alarm.name for k, alarm in enumerate(ALARMS) if changed >> k & 1}


@pytest.mark.parametrize(("n", "width"), SHAPES)
def test_out_of_frame_gives_no_wrong_cell_and_no_defect_of_payload_octets(n, width):
    """A1 in error, all else right: no octet of payload is taken for overhead or for a part of another cell."""
    line = NativeLine(n, width)
    line.load(A, 0.7)
    line.run(frames=60)
    for end in (A, B):
        alarms(line, end)
    line.latched(B)
    for frames in (4, 5, 7, 12, 23):
        line.clear(B)
        line.write(A, "force", FRAMING)
        line.run(frames=frames)
        line.write(A, "force", 0)
        line.run(frames=30)
        counts = line.counts(B)
        assert counts["cells"] > 0
        wrong = [counts[name] for name in ("payload_bad", "header_bad", "alien", "repeated", "discarded")]
        assert wrong == [0] * 5, f"{frames} frames"
        assert alarms(line, B) == {"sef", "ocd"}
    assert alarms(line, A) == set()
    latched = line.latched(B)
    assert latched["sef"] == 5
    assert latched["b3"] == latched["rei_p"] == latched["b2"] == 0


@pytest.mark.parametrize(("n", "width"), SHAPES[::2])
@pytest.mark.parametrize(
    ("register", "value", "usual", "defect"), [("sent_c2", 0x16, 0x13, "plm_p"), ("sent_k2", 7, 0, "ais_l")]
)
def test_frames_before_sef_do_not_count_towards_a_defect(n, width, register, value, usual, defect):
    """Frames that SEF hides are no frames in a row: a defect needs as many after it as without any before."""

    def needed(earlier):
        """Frames with the value after the framing errors until the defect is declared; ``earlier``: with them, too."""
        for after in range(12):
            line = NativeLine(n, width)
            line.run(frames=20)
            alarms(line, B)
            line.write(A, register, value if earlier else usual)
            line.write(A, "force", FRAMING)
            line.run(frames=8)
            assert defect not in alarms(line, B)
            line.write(A, "force", 0)
            line.write(A, register, value)
            line.run(frames=after)
            line.write(A, register, usual)
            line.run(frames=6)
            if defect in alarms(line, B):
                return after
        raise AssertionError("never declared")

    assert needed(True) == needed(False)


@pytest.mark.parametrize(("n", "width"), SHAPES)
@pytest.mark.parametrize("move", [1, 2, 4 | 100 << 16])
def test_pointer_that_moves_while_out_of_frame(n, width, move):
    """The place of the SPE has to be read again: the old place would give cells with an octet of path overhead."""
    line = NativeLine(n, width)
    line.load(A, 1.0)
    line.run(frames=40)
    line.clear(B)
    for end in (A, B):
        alarms(line, end)
    line.latched(B)
    for wait in range(8):  # the movement is before, in and after the frames that are not read
        line.write(A, "force", FRAMING)
        line.run(frames=wait)
        line.write(A, "move", move)
        line.run(frames=5 - wait if wait < 5 else 0)
        line.write(A, "force", 0)
        line.run(frames=26)  # what is out of frame would add up to LOF
    counts = line.counts(B)
    assert counts["cells"] > 500
    assert counts["payload_bad"] == counts["header_bad"] == counts["alien"] == counts["repeated"] == 0
    assert not alarms(line, B) - {"sef", "ocd"}
    assert line.latched(B)["b3"] == 0


@pytest.mark.parametrize(("n", "width"), SHAPES)
def test_pointer_that_moves_during_a_loss_of_signal(n, width):
    """20 us of zeros: all ones stand in for the pointers of two frames, in which it may have moved."""
    line = NativeLine(n, width)
    line.load(A, 1.0)
    line.run(frames=40)
    frame = line.geometry.frame_words
    line.run(words=-line.now % frame)
    line.clear(B)
    for wait in range(4):
        line.write(A, "move", 1)
        line.run(frames=wait, words=frame // 20)
        line.channel(B, zeros=(line.now, line.now + frame // 5))
        line.run(frames=8, words=-line.now % frame)
    counts = line.counts(B)
    assert counts["cells"] > 200
    assert counts["header_bad"] == counts["alien"] == counts["repeated"] == 0
    assert counts["payload_bad"] <= 4  # of the cell at the zeros' beginning


def jumps(start):
    """Distances of every residue of 3 and around a row of 87 units, and a new pointer that is the old one."""
    pointer, found = start, []
    for step in (-1, 1, 2, 0, 3, 86, 87, 88, -88, -86, -2, 391, 0):
        pointer = (pointer + step) % (LAST + 1)
        found.append(pointer)
    return [*found, 0, LAST, 0, 1, 2, 520, 522, 522]


@pytest.fixture(scope="module")
def sent():
    """Octets of a framer whose pointer jumps, of a shape, and the end that sent them."""
    made = {}

    def of(n, width):
        if (n, width) not in made:
            line = NativeLine(n, width)
            line.load(A, 1.0)
            octets = line.send(A, SETTLE)
            for k, target in enumerate(jumps(522)):
                if k % 4 == 3:  # from then on a unit more or less is held across words
                    line.write(A, "move", 1 if k % 8 == 3 else 2)
                    octets += line.send(A, 4)
                    line.write(A, "move", 1 if k % 8 == 3 else 2)
                    octets += line.send(A, 4)
                line.write(A, "move", 4 | target << 16)
                octets += line.send(A, 4)
            made[n, width] = octets + line.send(A, 2)
        return made[n, width]

    return of


@pytest.mark.parametrize(("n", "width"), SHAPES)
def test_a_new_pointer_loses_no_cell(sent, n, width):
    """From the framer into the model, and into the deframer: cells in order, and B3 right."""
    octets, line = sent(n, width), NativeLine(n, width)
    numbers = sequence(line, line.receive(B, octets))
    assert in_order(numbers)
    line.run(words=2)
    latched = line.latched(B)
    assert (latched["ndf"], latched["b3"], latched["discarded"]) == (len(jumps(522)), 0, 0)
    if width == 9:  # the model takes its time, and the other width's octets are the same
        model = ModelReceiver(n)
        model.put(octets)
        cells = [int.from_bytes(cell[4:8], "little") for cell in model.cells.cells]
        assert in_order(cells)
        assert set(numbers) <= set(cells)
        assert len(model.b3_errors) > 3 * len(jumps(522))
        assert not any(model.b3_errors)


@pytest.mark.parametrize("widths", [(9, 1), (36, 4)])
def test_a_new_pointer_is_sent_alike_at_both_widths(sent, widths):
    """SPEs are cut at the same places and have the same overhead, B3 included; the payload comes at other times."""
    n = 3 if widths[0] == 9 else 12
    counts = []
    for width in widths:
        line = NativeLine(n, width)
        cells = len(line.receive(B, sent(n, width)))
        counts.append(cells)
    assert abs(counts[0] - counts[1]) <= 9  # until delineation


@pytest.mark.parametrize(("n", "width"), SHAPES[::2])
def test_new_pointers_in_every_frame_from_the_model(n, width):
    """Eight in a row would be LOP-P; SPEs of a unit or two, and rows of two or three of them in one word."""
    rng = random.Random(5)
    framer = ModelFramer(n, pointer=LAST - 87)
    line = NativeLine(n, width)
    framer.source.queue = [line.cell(number) for number in range(2000)]
    octets = b"".join(framer.frame() for _ in range(SETTLE))
    for targets in ([LAST, 0], [1, 2, 3, 3, 4], [260, 261, 262, 174], [rng.randrange(LAST + 1) for _ in range(6)]):
        octets += b"".join(framer.frame("ndf", target) for target in targets)
        octets += b"".join(framer.frame() for _ in range(3))
    numbers = sequence(line, line.receive(B, octets))
    assert in_order(numbers)
    assert len(numbers) > 15 * n * 25
    assert line.latched(B)["b3"] == 0


@pytest.mark.parametrize("seed", [8, 45, 80, 107])
def test_disturbances_of_every_kind_at_once(seed):
    """A few of the schedules of ``soak.lines``: the same cells, states and counts as the model, at both widths."""
    given = lines.schedule(3, seed, disturbed_frames=16, after=20)
    model = lines.received(3, given)
    assert not [wrong for width in (9, 1) for wrong in lines.compare(3, width, given, model)]
