"""Random disturbances of a SONET line, deframer beside model: ``python -m soak.lines`` (``make soak``).

A schedule is a run of frames with pointer movements, new pointers, garbage for a pointer, AIS, octets in error, framing
patterns in error, and octets that are lost or added. The deframer and the receiver of ``models.sonet`` get the same
octets. Both have to deliver the same cells, but for those around a loss of frame alignment, where a few may come from
one of them only; the states of the path, B3 and the defects that the signal label raises have to agree.
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

EDGE_CELLS, SLIP_FRAMES = 12, 5
"""So many cells at a loss or a find of the SPE may come from one receiver only: where delineation begins to search
depends on how far a word has come. Where octets are lost or added, one may find the frame a frame later, and the
pointer three after it."""

END = 1


@dataclass
class Schedule:
    """The octets of a line, the cells in it, and what was done to it, a word each."""

    octets: bytes
    sent: list[bytes]
    done: list[str] = field(default_factory=list)


def schedule(n: int, seed: int) -> Schedule:
    rng = random.Random(seed)
    framer = ModelFramer(n, pointer=rng.choice([0, 1, 2, 260, 520, 521, 522, 523, 780, 781, 782, rng.randrange(783)]))
    sent, done, frames = [], [], []
    kinds = rng.sample(["move", "ndf", "pointer", "ais", "octets", "pattern", "slip"], k=rng.choice([1, 2, 3, 7]))
    since, ais, slip = 9, 0, -1
    patterns, bad_patterns = 0, 0  # out of frame for fewer frames than LOF needs
    for k in range(QUIET + DISTURBED + AFTER):
        while len(framer.source.queue) < 15 * n:
            sent.append(
                (rng.randrange(32, 65536) << 4).to_bytes(4, "big") + len(sent).to_bytes(4, "big") + rng.randbytes(44)
            )
            framer.source.queue.append(sent[-1])
        disturbed = QUIET <= k < QUIET + DISTURBED
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
            else:
                frame[at:at] = rng.randbytes(octets)
            kinds = [other for other in kinds if other != "slip"] or ["move"]
        done.append(" ".join(filter(None, [str(k), kind, action, str(target) if action == "ndf" else ""])))
        frames.append(bytes(frame))
    return Schedule(b"".join(frames), sent, [what for what in done if " " in what])


def false_labels(labels: list[int | None]) -> bool:
    """Whether PLM-P or UNEQ-P is raised: 5 labels in a row that are not right."""
    run = 0
    for label in labels:
        run = 0 if label in (None, 0x13, 0x01) else run + 1
        if run == 5:
            return True
    return False


def compare(n: int, width: int, given: Schedule) -> list[str]:
    """What a deframer does otherwise than the model."""
    model = ModelReceiver(n)
    model.put(given.octets)
    line = NativeLine(n, width)
    size = 810 * n * 9
    line.receive(END, given.octets[:size])
    line.write(END, "changed", 0xFFFFFFFF)
    got = line.receive(END, given.octets[size : len(given.octets) // width * width])
    changed = line.read(END, "changed")
    raised = {alarm.name for k, alarm in enumerate(ALARMS) if changed >> k & 1}
    wrong = []
    known = set(given.sent)
    most = 15 * n * SLIP_FRAMES if any("slip" in what for what in given.done) else EDGE_CELLS
    ours = [cell for _, discarded, cell in got if not discarded]
    first = next((k for k, cell in enumerate(model.cells.cells) if ours and cell == ours[0]), 0)
    theirs = model.cells.cells[first:]
    edges = 2 + sum(a != b for a, b in zip(model.states, model.states[1:], strict=False)) + 2 * model.losses
    for tag, a, b, c, d in difflib.SequenceMatcher(None, theirs, ours, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        edges -= 1
        only = theirs[a:b] + ours[c:d]
        if edges < 0 or len(only) > most or any(cell not in known for cell in ours[c:d]):
            place = [int.from_bytes(cell[4:8], "big") for cell in only[:4]]
            wrong.append(f"{b - a} cells of the model's are others, {d - c} here, from {place} of {len(given.sent)}")
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
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--schedules", type=int, default=200, help="of each N (200)")
    parser.add_argument("--first", type=int, default=0, help="seed of the first one (0)")
    asked = parser.parse_args()
    failed = 0
    for n in (3, 12):
        for seed in range(asked.first, asked.first + asked.schedules):
            given = schedule(n, seed)
            for shape in SHAPES:
                if shape[0] == n and (wrong := compare(*shape, given)):
                    failed += 1
                    print(f"STS-{n}c, {shape[1]} octets a word, schedule {seed}: {'; '.join(wrong)}\n  {given.done}")
    print(f"{asked.schedules} schedules each of STS-3c and STS-12c, {failed} with differences")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
