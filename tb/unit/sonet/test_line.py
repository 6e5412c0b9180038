"""Two whole ends on a Verilated line: alarms at their frame counts, errors, losses, clock offsets."""

import math

import pytest
from amaranth.lib import data

from bentpipe_hdl.sonet.align import dark_bytes, los_words
from bentpipe_hdl.sonet.framer import FramerForce
from bentpipe_hdl.sonet.tables import ALARMS
from bentpipe_hdl.sonet.trace import trace_message
from bentpipe_sim import tools
from models.sonet.native import NativeLine, driver_name

WORDS = 270
A, B = 0, 1
FORCE = {name: 1 << k for k, (name, _) in enumerate(data.Layout.cast(FramerForce))}


@pytest.fixture(scope="module")
def shape():
    return 3, 9


@pytest.fixture
def line(shape):
    """Both ends in frame and in SYNC; the time is the middle of row 7 of a frame."""
    line = NativeLine(*shape)
    line.load(A, 0.8)
    line.load(B, 0.8)
    line.run(frames=45)
    line.run(words=195)
    assert line.defects(A) == line.defects(B) == set()
    for end in (A, B):
        line.clear(end)
        line.latched(end)
    return line


def history(line, end, name, frames):
    """In which of the next frames the defect stands at the end of the frame."""
    out = []
    for _ in range(frames):
        line.run(frames=1)
        out.append(name in line.defects(end))
    return out


def edges(line, name, cause, enter, leave, before=0):
    """The defect stands after ``enter`` frames with the cause and goes after ``leave`` without, not one earlier."""
    cause(False)
    if enter > 1:
        cause(True)
        assert not any(history(line, B, name, enter - 1)), f"{name} after {enter - 1} frames"
        cause(False)
        assert not any(history(line, B, name, 2 * enter)), f"{name} is not to remember"
    cause(True)
    assert history(line, B, name, enter + 1) == [False] * (enter - 1) + [True] * 2
    cause(False)
    assert history(line, B, name, leave + 1) == [True] * (leave - 1) + [False] * 2


def force(line, name):
    return lambda on: line.write(A, "force", FORCE[name] if on else 0)


def test_sef_after_4_bad_patterns_and_2_good_ones(line):
    edges(line, "sef", force(line, "framing"), 4, 2)


def test_lof_after_24_frames(line):
    on = force(line, "framing")
    on(True)
    assert history(line, B, "lof", 4 + 24) == [False] * (3 + 24) + [True]
    on(False)
    # in frame with the second good pattern
    assert history(line, B, "lof", 2 + 24) == [True] * (1 + 24) + [False]


def test_lof_adds_up_interrupted_sef(line):
    on = force(line, "framing")
    for _ in range(3):  # 3 x (4 - 1 + 2) frames out of frame, in frame for less than 3 ms
        on(True)
        assert not any(history(line, B, "lof", 9))
        on(False)
        assert not any(history(line, B, "lof", 12))
    on(True)
    # out of frame so far: from the 4th of 9 bad patterns to the first good one, three times
    so_far = 3 * (9 - 3 + 1)
    assert history(line, B, "lof", 4 + 24 - so_far) == [False] * (3 + 24 - so_far) + [True]


def test_ais_l_and_rdi_l_after_5_frames(line):
    edges(line, "ais_l", force(line, "ais_l"), 5, 5)
    line.run(frames=30)
    edges(line, "rdi_l", force(line, "rdi_l"), 5, 5)


def test_ais_p_after_3_frames(line):
    edges(line, "ais_p", force(line, "ais_p"), 3, 3)


def test_lop_p_after_8_ndf(line):
    edges(line, "lop_p", force(line, "pointer"), 8, 3)


def test_lop_p_after_8_wrong_concatenation_indications(line):
    """Three STS-1 with a pointer each are no STS-3c."""
    cause = force(line, "concatenation")
    edges(line, "lop_p", cause, 8, 3)
    cause(True)
    line.run(frames=9)
    line.clear(B)
    line.run(frames=10)
    assert line.counts(B)["cells"] == 0


@pytest.mark.parametrize("wait", range(0, 4 * WORDS, 83))
def test_no_pointer_request_is_lost(line, wait):
    """Two right behind each other, and one just after, wherever they fall; more than 16 are refused and counted."""
    line.run(words=wait)
    line.latched(A)
    for request in (1, 1, 2):
        line.write(A, "move", request)
        line.run(words=1)
    line.run(frames=13)
    moves = line.latched(A)
    assert (moves["sent_positive"], moves["sent_negative"]) == (2, 1)


def test_a_pointer_request_at_each_word_around_the_framers_decision(line):
    """The decision is made once a frame: a request in each of the words before and behind it."""
    for _ in range(WORDS):
        line.write(A, "move", 1)
        line.run(frames=4, words=1)
    assert line.latched(A)["sent_positive"] == WORDS
    assert line.read(A, "moves") == 0


def test_pointer_requests_beyond_16_are_refused_and_counted(line):
    for _ in range(20):
        line.write(A, "move", 2)
    assert line.read(A, "moves") == 16 | 4 << 16
    line.run(frames=4 * 17)
    assert line.latched(A)["sent_negative"] == 16
    assert line.read(A, "moves") == 4 << 16


@pytest.mark.parametrize(("c2", "name"), [(0x00, "uneq_p"), (0x16, "plm_p")])
def test_signal_label_after_5_frames(line, c2, name):
    edges(line, name, lambda on: line.write(A, "sent_c2", c2 if on else 0x13), 5, 5)
    line.write(A, "sent_c2", 0x01)  # equipped, not specific: right in any case
    line.run(frames=10)
    assert not line.defects(B) & {"uneq_p", "plm_p"}


def test_lcd_after_32_frames_of_ocd(line):
    def cause(on):
        line.write(A, "hec_mask", 0xFF if on else 0)

    line.run(words=100)  # to row 1: OCD comes before the frame's end
    cause(True)
    # OCD within a frame (7 cells), LCD 32 frames later
    assert history(line, B, "lcd", 33) == [False] * 31 + [True] * 2
    assert "ocd" in line.defects(B)
    cause(False)
    assert history(line, B, "lcd", 33) == [True] * 31 + [False] * 2
    assert line.latched(B)["ocd"] == 1


@pytest.mark.parametrize("cells", range(7, 11))
@pytest.mark.parametrize("start", range(0, 30, 7))
def test_a_short_ocd_is_seen_wherever_it_falls(cells, start):
    """7 to 10 bad headers of STS-12c: OCD comes and goes within a row."""
    line = NativeLine(12, 36)
    line.load(A, 0.8)
    line.run(frames=8)
    line.run(words=start)
    assert line.defects(B) == set()
    line.write(B, "changed", 0xFFFFFFFF)
    line.latched(B)
    line.write(A, "hec_mask", 0xFF)
    line.run(words=cells * 53 // 36)
    line.write(A, "hec_mask", 0)
    line.run(words=100)
    counts = line.latched(B)
    assert counts["discarded"] in ((6, 7) if cells < 9 else (7,))  # after 7, cells are looked for
    changed = {alarm.name for k, alarm in enumerate(ALARMS) if line.read(B, "changed") >> k & 1}
    assert (counts["ocd"], changed) == ((1, {"ocd"}) if counts["discarded"] >= 7 else (0, set()))
    assert line.defects(B) == set()


def test_los_after_20_us_of_zeros(line):
    words = los_words(line.geometry)
    line.channel(B, zeros=(line.now, line.now + words - 1))
    line.run(words=words + 20)
    assert "los" not in line.defects(B)
    line.run(frames=3)
    line.run(words=-line.now % WORDS)
    line.channel(B, zeros=(line.now, line.now + words))
    line.run(words=words + 4)
    assert "los" in line.defects(B)
    line.run(words=2 * 270 - words + 10)  # two framing patterns
    assert "los" not in line.defects(B)


@pytest.mark.parametrize("shift", [0, 1, 36, 71])
@pytest.mark.parametrize(("n", "width"), [(3, 9), (12, 36), (3, 1), (12, 4)])
def test_cells_stop_before_a_zero_is_in_one(n, width, shift):
    """Zeros that begin at any byte, with frames at any bit: the last cell comes within 1 us, and with wide words none
    has a zero in it."""
    line = NativeLine(n, width)
    line.load(A, 1.0)
    frame = line.geometry.frame_words
    shift = shift * width // 9
    line.channel(B, shift=shift)
    line.run(frames=45)
    line.clear(B)
    for k in range(300):
        line.run(words=-line.now % frame + frame * 9 // 20)  # zeros in rows 5 and 6: no pointer is taken from them
        start = (line.now + 2) * width + k % width
        line.channel(B, shift=shift, zero_bytes=(start, start + frame * width // 9))
        line.run(words=frame // 9)
        dark = (8 * (start + dark_bytes(line.geometry)) + shift - 1) // (8 * width)  # the word with the last of them
        assert line.counts(B)["last_cell"] <= dark + (1 if line.geometry.wide else 4), k
        line.run(words=frame * 2 // 9)
    c = line.counts(B)
    assert c["cells"] > 300
    assert c["header_bad"] == c["alien"] == c["repeated"] == 0
    if line.geometry.wide:
        assert c["payload_bad"] == 0
    assert line.seconds(dark_bytes(line.geometry) / width) < 1e-6


def test_far_end_is_told(line):
    line.write(A, "force", FORCE["ais_l"])
    line.run(frames=16)
    assert {"ais_l", "ais_p"} <= line.defects(B)
    assert {"rdi_l"} <= line.defects(A)
    assert "rdi_p" in line.defects(A)
    assert line.read(A, "state") >> 4 & 7 == 0b101
    line.write(A, "force", 0)
    line.run(frames=8)
    assert "rdi_l" in line.defects(A), "an RDI stays for 20 frames"
    line.run(frames=60)
    assert line.defects(A) == set()
    for c2, code in ((0x00, 0b110), (0x16, 0b010)):
        line.write(A, "sent_c2", c2)
        line.run(frames=40)
        assert line.read(A, "state") >> 4 & 7 == code
        line.write(A, "sent_c2", 0x13)
        line.run(frames=60)
    assert line.read(A, "state") >> 4 & 7 == 0b001


@pytest.mark.parametrize(("byte", "length", "form"), [(0, 16, 1), (1, 64, 2), (0, 64, 2)])
def test_trace_mismatch(line, byte, length, form):
    defect = "tim_p" if byte else "tim_s"
    message = trace_message("bentpipe line 7", length)
    line.trace(A, byte, message)
    line.trace(B, 2 + byte, message)
    line.write(A, "mode", 3 | form << 4 + 2 * byte)
    line.write(B, "mode", 3 | 4 << byte | form << 8 + 2 * byte)
    line.run(frames=6 * length)
    assert defect not in line.defects(B)
    line.trace(A, byte, trace_message("bentpipe line 8", length))
    line.run(frames=2 * length)
    assert defect not in line.defects(B)
    line.run(frames=3 * length)
    assert defect in line.defects(B)
    line.trace(A, byte, message)
    line.run(frames=6 * length)
    assert defect not in line.defects(B)


def test_errors_are_counted_at_both_ends(line):
    line.write(A, "force", FORCE["b1"])
    line.run(frames=3)
    line.write(A, "force", FORCE["b2"])
    line.run(frames=4)
    line.write(A, "force", FORCE["b3"])
    line.run(frames=5)
    line.write(A, "force", 0)
    line.run(frames=30)
    near, far = line.latched(B), line.latched(A)
    assert (near["b1"], near["b2"], near["b3"]) == (3 * 8, 4 * 24, 5 * 8)
    assert (far["rei_l"], far["rei_p"]) == (4 * 24, 5 * 8)


def test_one_bit_error_is_one_bit_in_each_parity(line):
    line.channel(B, ber=1e-7)
    line.run(frames=4000)
    line.channel(B)
    line.run(frames=3)
    n = line.counts(B)["errors"]
    got = line.latched(B)
    assert n > 0
    assert got["b1"] == n
    assert n * 0.7 <= got["b2"] <= n
    assert got["b3"] <= got["b2"]


@pytest.mark.parametrize("ppm", [20, -20, 100, -100, 319])
def test_clock_offset_loses_no_cell(line, ppm):
    for end in (A, B):
        line.load(end, 1.0)
    line.write(A, "drift", round(ppm * 783e-6 * 2**24))
    frames = 3000
    line.run(frames=frames)
    got = line.latched(B)
    sent = line.latched(A)
    moves = abs(ppm) * 783e-6 * frames
    more, fewer = ("positive", "negative") if ppm > 0 else ("negative", "positive")
    assert got[more] == pytest.approx(moves, abs=2)
    assert got[fewer] == got["new_pointer"] == got["b3"] == 0
    assert sent["sent_" + more] == pytest.approx(got[more], abs=1)
    for end in (A, B):
        c = line.counts(end)
        assert c["lost"] == c["repeated"] == c["alien"] == c["header_bad"] == c["payload_bad"] == 0
        assert c["cells"] > 120_000
    print(f"{ppm} ppm: {got[more]} movements in {frames} frames, no cell lost")


def test_recovery_from_a_loss_of_signal_of_1_ms(line):
    worst = 0
    for k in range(6):
        start = line.now + 37 * k + 1
        line.channel(B, zeros=(start, start + 8 * 270), shift=k)  # and comes back at another bit
        line.run(frames=9)
        line.clear(B)
        line.run(frames=40)  # in frame for 3 ms: LOF would add up
        c = line.counts(B)
        assert c["cells"] > 0
        assert c["alien"] == c["repeated"] == c["header_bad"] == c["payload_bad"] == 0
        worst = max(worst, c["first_cell"] - start - 8 * 270)
        assert line.defects(B) == set()
    print(f"first cell {line.seconds(worst) * 1e6:.0f} us after the signal at worst")
    assert worst < 7.5 * 270  # 2 for framing, 3 for the pointer, 1 to J1, delineation


def test_no_wrong_cell_over_losses_of_signal(line):
    for k in range(40):
        start = line.now + 5 + 7 * k
        line.channel(B, zeros=(start, start + 60 + 5 * k))
        line.run(frames=8)
    c = line.counts(B)
    # a cell may lose its tail to the signal's end, but its header is that of a cell that was sent
    assert c["alien"] == c["repeated"] == c["header_bad"] == 0
    assert c["payload_bad"] <= 40


@pytest.mark.parametrize("ber", [1e-3, 1e-4, 1e-5])
def test_header_errors_are_corrected_and_discarded_at_the_calculated_rate(line, ber):
    line.load(A, 1.0)
    frames = {1e-3: 300, 1e-4: 1500, 1e-5: 8000}[ber]
    line.channel(B, ber=ber)
    line.run(frames=frames)
    c = line.counts(B)
    latched = line.latched(B)
    seen = c["cells"] + c["discarded"]
    clean = (1 - ber) ** 40
    single = 40 * ber * (1 - ber) ** 39
    # two modes: an error leads to detection, the next good header back to correction
    correction = clean
    p_corrected = correction * single
    p_discarded = correction * (1 - clean - single) + (1 - correction) * (1 - clean)
    for name, p in (("corrected", p_corrected), ("discarded", p_discarded)):
        mean = p * seen
        assert abs(latched[name] - mean) <= 5 * math.sqrt(mean) + 2, f"{name}: {latched[name]}, calculated {mean:.1f}"
        print(f"BER {ber:g}: {name} {latched[name]}, calculated {mean:.1f} of {seen}")
    # wrong headers: three errors or more that look like one (or like none) while correcting
    several = 1 - sum(math.comb(40, k) * ber**k * (1 - ber) ** (40 - k) for k in range(3))
    assert c["header_bad"] + c["alien"] <= several * seen * 40 / 256 * 2 + 3
    print(f"BER {ber:g}: wrong headers {c['header_bad'] + c['alien']}, limit {several * seen * 41 / 256:.2f}")


def test_an_error_in_each_bit_of_the_hec_is_corrected(line):
    """The sender inverts one bit of the HEC for some cells: the first of them is corrected, those right behind it fall
    into detection mode. All 40 bits of a header are in test_tc and in the proofs."""
    for bit in range(8):
        before = line.counts(B)
        line.write(A, "hec_mask", 1 << bit)
        line.run(words=12)
        line.write(A, "hec_mask", 0)
        line.run(words=40)
        after = line.counts(B)
        assert after["corrected"] == before["corrected"] + 1, f"bit {bit}"
    line.run(frames=2)
    c = line.counts(B)
    assert c["lost"] == c["discarded"]
    assert c["alien"] == c["repeated"] == c["header_bad"] == c["payload_bad"] == 0


@pytest.mark.parametrize("shift", range(8))
def test_in_frame_within_two_good_frames_from_any_bit(shape, shift):
    line = NativeLine(*shape, seed=shift)
    line.load(A, 1.0)
    line.channel(B, zeros=(0, 100 + 31 * shift), shift=shift)
    line.run(words=100 + 31 * shift)
    line.run(words=-line.now % 270)
    line.run(frames=1, words=5)  # the second pattern
    assert line.read(B, "state") >> 31 == 1
    line.run(frames=6)  # the pointer leaves AIS-P after three frames
    c = line.counts(B)
    assert c["cells"] > 0
    assert c["alien"] == c["repeated"] == c["header_bad"] == c["discarded"] == 0


def test_a_driver_of_other_headers_is_not_taken_from_the_cache(tmp_path):
    for name in ("model.h", "wide.hpp"):
        (tmp_path / name).write_bytes((tools.CSRC / name).read_bytes())
    assert driver_name(tmp_path) == driver_name()
    for name in ("model.h", "wide.hpp"):
        (tmp_path / name).write_bytes((tools.CSRC / name).read_bytes() + b"// changed\n")
        assert driver_name(tmp_path) != driver_name()
        (tmp_path / name).write_bytes((tools.CSRC / name).read_bytes())
