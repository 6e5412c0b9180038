"""Cell header and HEC: vectors of the standard, every single and double bit error."""

import json
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.cell import Cell, Header, Interface, Pti
from models.hec import SINGLE_BIT, Mode, Outcome, Receiver, hec, syndrome

HEC = json.loads((Path(__file__).parents[2] / "vectors" / "hec.json").read_text())

headers = st.builds(
    Header,
    vpi=st.integers(0, 255),
    vci=st.integers(0, 65535),
    pti=st.integers(0, 7),
    clp=st.integers(0, 1),
    gfc=st.integers(0, 15),
)


def with_errors(octets, *bits):
    word = int.from_bytes(octets, "big")
    for bit in bits:
        word ^= 1 << (39 - bit)
    return word.to_bytes(5, "big")


@pytest.mark.parametrize("vector", HEC["vectors"], ids=lambda v: v["header"])
def test_hec_vectors(vector):
    header = bytes.fromhex(vector["header"])
    assert f"{hec(header):02x}" == vector["hec"]
    assert syndrome(bytes.fromhex(vector["cell_header"])) == 0


def test_single_bit_syndromes_are_the_published_ones():
    listed = [int(s, 16) for s in HEC["single_bit_syndromes_bit0_is_first_transmitted"]]
    assert {s: bit for bit, s in enumerate(listed)} == SINGLE_BIT


@pytest.mark.parametrize("header", ["00000001", "00000640", "ffffffff"])
def test_every_single_bit_error_is_corrected_in_correction_mode_only(header):
    good = bytes.fromhex(header) + bytes([hec(bytes.fromhex(header))])
    for bit in range(40):
        receiver = Receiver()
        assert receiver.receive(with_errors(good, bit)) == (Outcome.CORRECTED, good)
        assert receiver.mode is Mode.DETECTION
        assert receiver.receive(with_errors(good, bit))[0] is Outcome.DISCARDED
        assert receiver.mode is Mode.DETECTION
        assert receiver.receive(good) == (Outcome.GOOD, good)
        assert receiver.mode is Mode.CORRECTION


def test_every_double_bit_error_is_discarded():
    good = bytes.fromhex("00000642e2")
    pairs = list(combinations(range(40), 2))
    assert len(pairs) == HEC["double_bit_patterns"]
    for pair in pairs:
        receiver = Receiver()
        assert receiver.receive(with_errors(good, *pair))[0] is Outcome.DISCARDED
        assert receiver.mode is Mode.DETECTION


@given(st.lists(st.sampled_from(["good", "single", "double"]), max_size=60))
def test_receiver_counts_every_header_once(errors):
    good = bytes.fromhex("00000642e2")
    receiver = Receiver()
    for error in errors:
        receiver.receive(with_errors(good, *{"good": (), "single": (7,), "double": (7, 21)}[error]))
    assert receiver.counts[Outcome.GOOD] == errors.count("good")
    assert sum(receiver.counts.values()) == len(errors)
    clean = [e for e, before in zip(errors, ["good", *errors], strict=False) if before == "good"]
    assert receiver.counts[Outcome.CORRECTED] == clean.count("single")


def test_header_layout_of_uni_and_nni():
    assert Header(vpi=0, vci=100, pti=1).pack().hex() == "00000642"
    assert Header(vpi=0xAB, vci=0x1234, pti=5, clp=1, gfc=0xC).pack().hex() == "cab1234b"
    assert Header(vpi=0xCAB, vci=0x1234, pti=5, clp=1, interface=Interface.NNI).pack().hex() == "cab1234b"
    assert Header.unpack(bytes.fromhex("cab1234b"), Interface.NNI).vpi == 0xCAB


@given(headers)
def test_header_survives_packing(header):
    assert Header.unpack(header.pack()) == header
    word = header.gfc << 28 | header.vpi << 20 | header.vci << 4 | header.pti << 1 | header.clp
    assert int(header) == word


@given(headers, st.integers(0, 4095), st.integers(0, 65535))
def test_translation_keeps_pti_and_clp(header, vpi, vci):
    changed = header.to(vpi, vci, Interface.NNI)
    assert (changed.vpi, changed.vci) == (vpi, vci)
    assert (changed.pti, changed.clp, changed.gfc) == (header.pti, header.clp, 0)


def test_gfc_is_local_to_one_uni():
    assert Header(1, 2, gfc=9).to(3, 4) == Header(3, 4, gfc=0)


@pytest.mark.parametrize("pti", Pti)
def test_only_user_cells_end_a_frame(pti):
    header = Header(0, 100, pti)
    assert header.user == (pti in (0, 1, 2, 3))
    assert header.last == (pti in (1, 3))


@pytest.mark.parametrize("fields", [{"vpi": 256}, {"vci": 65536}, {"pti": 8}, {"clp": 2}, {"gfc": 16}, {"vci": -1}])
def test_values_beyond_a_field_are_refused(fields):
    with pytest.raises(ValueError, match=f"{next(iter(fields))} must fit"):
        Header(**fields)


def test_nni_header_has_no_gfc():
    Header(vpi=4095, interface=Interface.NNI)
    with pytest.raises(ValueError, match="gfc"):
        Header(gfc=1, interface=Interface.NNI)


def test_cell_on_the_line():
    cell = Cell(Header(0, 100, 1), bytes(range(48)))
    assert cell.octets()[:6].hex() == "00000642e200"
    assert Cell.unpack(cell.octets()) == cell
    with pytest.raises(ValueError, match="48 octets"):
        Cell(Header(), b"")
