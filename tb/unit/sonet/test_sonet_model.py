"""The SONET model against published vectors, and its two ends against each other."""

import hashlib
import json
import random
from pathlib import Path

import pytest

from models.sonet.frame import ModelFramer, ModelReceiver, bip8, key_stream, scramble_frame
from models.sonet.pointer import classify
from models.sonet.tc import IDLE, Scrambler43

VECTORS = Path(__file__).parents[2] / "vectors"


def load(name):
    return json.loads((VECTORS / f"{name}.json").read_text())


@pytest.mark.parametrize("index", [0, 1])
def test_frames_agree_with_the_vectors(index):
    entry = load("sonet_frames")["frames"][index]
    n = (3, 12)[index]
    framer = ModelFramer(n)
    for expected in entry["frames"]:
        scrambled = framer.frame()
        assert scrambled[:48].hex() == expected["first_48_bytes_scrambled"]
        assert hashlib.sha256(scrambled).hexdigest() == expected["sha256_scrambled"]
        clear = scramble_frame(scrambled, n)
        assert hashlib.sha256(clear).hexdigest() == expected["sha256_unscrambled"]


def test_key_stream():
    vector = load("sonet_scrambler")
    assert key_stream(127).hex() == vector["prbs_first_127_bytes"]
    assert f"{key_stream(2421)[-1]:02x}" == vector["prbs_last_byte_sts3"]
    assert f"{key_stream(9684)[-1]:02x}" == vector["prbs_last_byte_sts12"]


def test_bip8():
    for example in load("sonet_frames")["bip8_examples"]:
        assert f"{bip8(bytes.fromhex(example['data'])):02x}" == example["bip8"]


def test_pointer_words():
    names = {"norm_point": "norm", "inc_ind": "inc", "dec_ind": "dec", "NDF_enable": "ndf", "AIS_ind": "ais"}
    for v in load("pointer")["vectors"]:
        expected = names.get(v["result"], "new" if v["result"].startswith("new") else "invalid")
        assert classify(int(v["h1h2"], 16), v["active"], v.get("recent_adj", False)) == expected, v["name"]


def test_cell_scrambler():
    for v in load("cell_scrambler")["vectors"]:
        scrambler = Scrambler43(int(v["initial_state_43bit"], 16))
        receiver = Scrambler43(int(v["initial_state_43bit"], 16))
        for i, cell in enumerate(v["tx_cells"]):
            sent = bytes.fromhex(cell)[5:]
            clear = receiver.descramble(sent)
            if i < 3:
                assert clear == IDLE[4:]
            assert scrambler.scramble(clear) == sent


@pytest.mark.parametrize("n", [3, 12])
def test_both_ends_with_pointer_movements(n):
    rng = random.Random(n)
    cells = [bytes([0, 0, 6, 0x40]) + rng.randbytes(48) for _ in range(150 * n)]
    framer, receiver = ModelFramer(n, pointer=780), ModelReceiver(n)
    stream = b""
    for k in range(30):
        if k == 12:
            framer.source.queue = list(cells)  # the receiver is in SYNC by now
        stream += framer.frame("" if k < 4 or k % 4 != 1 else "inc" if k < 19 else "dec")
    offset = 3
    total = int.from_bytes(b"\x55" + stream, "big") << offset
    receiver.put(total.to_bytes(len(stream) + 2, "big"))
    assert sum(f.b1_errors + f.b2_errors for f in receiver.frames) == 0
    assert receiver.b3_errors and not any(receiver.b3_errors)
    assert [f.indication for f in receiver.frames if f.indication != "norm"].count("inc") == 4
    assert len(receiver.cells.cells) > 100
    assert receiver.cells.cells == cells[: len(receiver.cells.cells)]
    assert receiver.cells.bad == 0
