"""Random disturbances of a SONET line, deframer beside model: ``python -m soak.lines`` (``make soak``).

A schedule is a run of frames with pointer movements, new pointers, garbage for a pointer, AIS, octets in error, framing
patterns in error, and octets that are lost or added. The deframer and the receiver of ``models.sonet`` get the same
octets. Both have to deliver the same cells, but for a few where cell delineation is found again (``compare``); the
states of the path, the counts of B3 and of the pointer, and the defects that the signal label raises have to agree.
"""

from __future__ import annotations

import argparse
import difflib
import random
import sys
from dataclasses import dataclass, field

from bentpipe_hdl.sonet.tables import ALARMS
from models.sonet.frame import ModelFramer, ModelReceiver
from models.sonet.native import NativeLine
from models.sonet.pointer import LAST

SHAPES = ((3, 9), (3, 1), (12, 36), (12, 4))
QUIET, DISTURBED, AFTER = 10, 40, 40
"""Frames before the disturbances, with them, and after them."""

EDGE_CELLS = 6
"""Where cell delineation is found again, so many cells may come from one receiver only. I.432.1 does not say from
which octet on HUNT searches after a header that PRESYNC refuted. A false header is in one of five cells, and costs one
receiver a cell or two more than the other."""

LATE_WORDS, LATE_FRAMES = 3, 5
"""Where a few octets are added, the next framing pattern begins while the fourth bad one is judged. The model finds it;
a deframer, which searches from a word or two later on, may take the one after it. Both end SEF with two good ones in a
row. If the pointer moves in between, it takes three frames more until the offset is known, and one until J1."""

UNDER_WAY = 8
"""Words from a cell's last octet to the cell, at most: the last cells do not come out of a deframer."""

END = 1


@dataclass
class Schedule:
    """The octets of a line, the cells in it, and what was done to it, a word each. Of each frame: how many cells had
    begun before its end, and the offset that was sent. ``slips``: octets lost (negative) or added, by the frame."""

    octets: bytes
    sent: list[bytes]
    done: list[str] = field(default_factory=list)
    begun: list[int] = field(default_factory=list)
    pointers: list[int] = field(default_factory=list)
    slips: dict[int, int] = field(default_factory=dict)

    def cells(self, first: int, last: int) -> range:
        """Numbers of the cells of which octets are in these frames."""
        before = self.begun[first - 1] if first > 0 else 0
        return range(max(0, before - 1), self.begun[min(last, len(self.begun) - 1)])


def schedule(n: int, seed: int, disturbed_frames: int = DISTURBED, after: int = AFTER) -> Schedule:
    rng = random.Random(seed)
    framer = ModelFramer(n, pointer=rng.choice([0, 1, 2, 260, 520, 521, 522, 523, 780, 781, 782, rng.randrange(783)]))
    sent, done, frames, begun, pointers, slips = [], [], [], [], [], {}
    kinds = rng.sample(["move", "ndf", "pointer", "ais", "octets", "pattern", "slip"], k=rng.choice([1, 2, 3, 7]))
    since, ais, slip = 9, 0, -1
    patterns, bad_patterns = 0, 0  # out of frame for fewer frames than LOF needs, those after a slip included
    for k in range(QUIET + disturbed_frames + after):
        while len(framer.source.queue) < 15 * n:
            sent.append(
                (rng.randrange(32, 65536) << 4).to_bytes(4, "big") + len(sent).to_bytes(4, "big") + rng.randbytes(44)
            )
            framer.source.queue.append(sent[-1])
        disturbed = QUIET <= k < QUIET + disturbed_frames
        action, target, words, path_ais = "", 0, None, False
        kind = rng.choice(kinds) if disturbed and rng.random() < 0.35 else ""
        if kind == "move" and since > 3:
            action = rng.choice(["inc", "dec"])
        if kind == "ndf":
            near = framer.pointer + rng.choice([-88, -87, -86, -2, -1, 0, 1, 2, 3, 86, 87, 88])
            action, target = (
                "ndf",
                rng.choice(
                    [near % (LAST + 1), rng.choice([0, 1, 2, 521, 522, 780, 781, 782]), rng.randrange(LAST + 1)]
                ),
            )
        since = 1 if action else since + 1
        if kind == "pointer":
            words = {rng.randrange(n): rng.choice([rng.getrandbits(16), 0xFFFF, 0x93FF, 0x6000 | rng.randrange(783)])}
        if kind == "ais":
            ais = rng.choice([1, 2, 3, 5, 9])
        path_ais, ais = ais > 0, max(0, ais - 1)
        frame = bytearray(framer.frame(action, target, path_ais=path_ais, words=words))
        begun.append(len(sent) - len(framer.source.queue))
        pointers.append(framer.pointer)
        if kind == "octets":
            at, length = rng.randrange(len(frame)), rng.choice([1, 2, 9, 60, 300, 3000])
            for i in range(at, min(len(frame), at + length)):
                frame[i] ^= rng.randrange(1, 256) if rng.random() < 0.5 else 0
        if kind == "pattern" and not bad_patterns and patterns < 2 and k > slip + 10:
            bad_patterns = rng.choice([1, 3, 4, 5, 6, 8])
            patterns += 1
        if bad_patterns:
            bad_patterns -= 1
            frame[:n] = bytes(octet ^ 0xFF for octet in frame[:n])
        if kind == "slip":
            slip, bad_patterns = k, 0
            at, octets = rng.randrange(len(frame)), rng.choice([1, 2, 3, 5, 8, 9, 27, 100])
            if rng.random() < 0.5:
                del frame[at : at + octets]
                slips[k] = -octets
            else:
                slips[k] = octets
                frame[at:at] = rng.randbytes(octets)
            kind = f"slip {slips[k]:+}"
            kinds = [other for other in kinds if other != "slip"] or ["move"]
        done.append(" ".join(filter(None, [str(k), kind, action, str(target) if action == "ndf" else ""])))
        frames.append(bytes(frame))
    return Schedule(b"".join(frames), sent, [what for what in done if " " in what], begun, pointers, slips)


def false_labels(labels: list[int | None]) -> bool:
    """Return whether PLM-P or UNEQ-P is raised: 5 wrong labels in a row."""
    run = 0
    for label in labels:
        run = 0 if label in (None, 0x13, 0x01) else run + 1
        if run == 5:
            return True
    return False


def permitted(
    n: int, width: int, model: ModelReceiver, given: Schedule, numbers: list[int | None]
) -> tuple[set[int], set[int]]:
    """Cells that one receiver may have and the other not, and those of them that may be wrong.

    ``numbers`` are those of the model's cells, None for a wrong one. Cells may differ where the model left SYNC, and
    those that were under way in a deframer when SEF began: it does not deliver them. They may be wrong where the model
    took a false offset (a single NDF with a valid offset has to be believed) or octets slipped.
    """
    differ, wrong = set(), set()
    for at in model.cells.lapses:
        before = next((number for number in reversed(numbers[:at]) if number is not None), 0)
        after = next((number for number in numbers[at:] if number is not None), before)
        differ.update(range(before - UNDER_WAY * width // 53, after + EDGE_CELLS))
    for place, offset in model.places:
        k = round(place / (810 * n))
        if offset is not None and offset != given.pointers[min(k, len(given.pointers) - 1)]:
            cells = given.cells(k, k + 1)
            wrong.update(range(cells.start, cells.stop + EDGE_CELLS))
    for slip, octets in given.slips.items():
        wrong.update(given.cells(slip, slip + 5))
        if 0 < octets <= LATE_WORDS * width:
            differ.update(given.cells(slip, slip + 5 + LATE_FRAMES))
    return differ | wrong, wrong


def received(n: int, given: Schedule) -> ModelReceiver:
    model = ModelReceiver(n)
    model.put(given.octets)
    return model


def compare(n: int, width: int, given: Schedule, model: ModelReceiver) -> list[str]:
    """Return the differences of a deframer and the model that got the same octets."""
    line = NativeLine(n, width)
    size = 810 * n * 9
    line.receive(END, given.octets[:size])
    line.write(END, "changed", 0xFFFFFFFF)
    line.write(END, "latch", 0)
    got = line.receive(END, given.octets[size : len(given.octets) // width * width])
    changed = line.read(END, "changed")
    raised = {alarm.name for k, alarm in enumerate(ALARMS) if changed >> k & 1}
    ours = [cell for _, discarded, cell in got if not discarded]
    wrong = differences(n, width, model, given, ours)
    if ("plm_p" in raised or "uneq_p" in raised) and not false_labels(model.labels):
        wrong.append("PLM-P or UNEQ-P")
    for name, seen in (("ais_p", "AIS" in model.states[9:]), ("lop_p", "LOP" in model.states[9:])):
        if (name in raised) != seen:
            wrong.append(f"{name}: {name in raised}, model {seen}")
    if ("sef" in raised) != (model.losses > 0):
        wrong.append(f"sef: {'sef' in raised}, model {model.losses}")
    extra = raised - {"sef", "ais_p", "lop_p", "plm_p", "uneq_p", "ocd", "lcd", "rdi_p"}
    if extra:
        wrong.append(f"defects {sorted(extra)}")
    if line.defects(END):
        wrong.append(f"defects stay: {line.defects(END)}")
    counted = line.latched(END)
    if counted["sef"] != model.losses:
        wrong.append(f"SEF {counted['sef']} times, model {model.losses}")
    if not given.slips:
        expected = {"b3": sum(model.b3_errors), "positive": model.moves[1], "negative": model.moves[-1]}
        wrong += [
            f"{name} {counted[name]}, model {count}" for name, count in expected.items() if counted[name] != count
        ]
    return wrong


def differences(n: int, width: int, model: ModelReceiver, given: Schedule, ours: list[bytes]) -> list[str]:
    """Return the cells from the first one on that a deframer delivered."""
    number = {cell: k for k, cell in enumerate(given.sent)}
    numbers = [number.get(cell) for cell in model.cells.cells]
    first = next((k for k, cell in enumerate(model.cells.cells) if ours and cell == ours[0]), 0)
    theirs = model.cells.cells[first:]
    differ, may_be_wrong = permitted(n, width, model, given, numbers)
    found = []
    for tag, a, b, c, d in difflib.SequenceMatcher(None, theirs, ours, autojunk=False).get_opcodes():
        if tag == "equal" or (b == len(theirs) and c == d and b - a <= 1 + UNDER_WAY * width // 53):
            continue
        before = next((number[cell] for cell in reversed(theirs[:a]) if cell in number), 0)
        wrong = [cell for cell in theirs[a:b] + ours[c:d] if cell not in number]
        known = [number[cell] for cell in theirs[a:b] + ours[c:d] if cell in number]
        if (wrong and before + 1 not in may_be_wrong) or not differ.issuperset(known):
            found.append(f"{b - a} cells of the model's are others, {d - c} here, after {before}: {known[:4]}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--schedules", type=int, default=200, help="of each N (200)")
    parser.add_argument("--first", type=int, default=0, help="seed of the first one (0)")
    asked = parser.parse_args()
    failed = 0
    for n in (3, 12):
        for seed in range(asked.first, asked.first + asked.schedules):
            given = schedule(n, seed)
            model = received(n, given)
            for shape in SHAPES:
                if shape[0] == n and (wrong := compare(*shape, given, model)):
                    failed += 1
                    print(f"STS-{n}c, {shape[1]} octets a word, schedule {seed}: {'; '.join(wrong)}\n  {given.done}")
    print(f"{asked.schedules} schedules each of STS-3c and STS-12c, {failed} with differences")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
