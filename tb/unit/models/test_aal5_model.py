"""AAL5 model: published PDUs, and every error with the verdict that its cause asks for."""

import json
from hashlib import sha256
from pathlib import Path

import pytest
from crccheck.crc import Crc32Bzip2
from hypothesis import given
from hypothesis import strategies as st

from bentpipe_sim.interface import PduStatus
from models.aal5 import MAX_SDU, Reassembler, Reassembly, cells_of, cpcs_pdu, segment
from models.cell import Cell, Header

AAL5 = json.loads((Path(__file__).parents[2] / "vectors" / "aal5.json").read_text())
VC = Header(0, 100)
EXPECTED = {"crc_error": PduStatus.CRC, "abort": PduStatus.ABORT, "length_error": PduStatus.LENGTH}

sdus = st.binary(min_size=1, max_size=400)


def receive(cells, max_sdu=MAX_SDU):
    """The results that come out of a list of cells of one VC."""
    reassembly = Reassembly(max_sdu)
    return [result for cell in cells if (result := reassembly.receive(cell))]


def statuses(cells, max_sdu=MAX_SDU):
    return [result.status for result in receive(cells, max_sdu)]


@pytest.mark.parametrize("vector", [v for v in AAL5["vectors"] if v.get("sdu")], ids=lambda v: v["name"])
def test_segmentation_and_reassembly_of_the_vectors(vector):
    sdu = bytes.fromhex(vector["sdu"])
    cells = segment(Header(vector["vpi"], vector["vci"]), sdu, vector["uu"], vector["cpi"])
    assert len(cells) == vector["n_cells"] == cells_of(len(sdu))
    assert cells[-1].payload[-4:].hex() == vector["crc32"]
    assert [cell.octets().hex() for cell in cells] == vector["cells"]
    (result,) = receive(cells)
    assert (result.status, result.sdu, result.uu, result.cpi) == (
        PduStatus.OK,
        sdu,
        vector["uu"],
        vector["cpi"],
    )


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("payload bit flipped", PduStatus.CRC),
        ("first cell of 2 lost", PduStatus.LENGTH),
        ("end-of-PDU cell lost: two CPCS-PDUs merge", PduStatus.LOST_LAST),
        ("length=0 with valid CRC", PduStatus.ABORT),
        ("length 90 > 40, valid CRC, 1 cell", PduStatus.LENGTH),
        ("length 40 in 2 cells -> pad would be 48 (>47), valid CRC", PduStatus.LENGTH),
    ],
)
def test_error_vectors(name, status):
    (vector,) = [v for v in AAL5["error_vectors"] if v["name"] == name]
    assert statuses(Cell.unpack(bytes.fromhex(cell)) for cell in vector["cells"]) == [status]


@given(sdus, st.integers(0, 255), st.integers(0, 255))
def test_pdu_fills_its_cells(sdu, uu, cpi):
    pdu = cpcs_pdu(sdu, uu, cpi)
    assert len(pdu) % 48 == 0
    assert len(pdu) - len(sdu) - 8 in range(48)
    assert pdu[: len(sdu)] == sdu
    assert pdu[len(sdu) : -8] == bytes(len(pdu) - len(sdu) - 8)
    assert pdu[-8:-4] == bytes([uu, cpi]) + len(sdu).to_bytes(2, "big")
    assert int.from_bytes(pdu[-4:], "big") == Crc32Bzip2.calc(pdu[:-4])


def test_the_largest_sdu():
    """65535 octets: the vector lists the first and last cell and a digest of all."""
    vector = AAL5["vectors"][-1]
    sdu = bytes(k * 7 % 256 for k in range(vector["sdu_len"]))
    assert sha256(sdu).hexdigest() == vector["sha256_sdu"]
    cells = segment(VC, sdu)
    assert len(cells) == vector["n_cells"]
    assert cells[0].octets().hex() == vector["first_cell"]
    assert cells[-1].octets().hex() == vector["last_cell"]
    assert sha256(b"".join(cell.octets() for cell in cells)).hexdigest() == vector["sha256_all_cells"]


@pytest.mark.parametrize("length", [1, 40, 41, 88, 89, 9188])
def test_sizes_at_the_edges(length):
    sdu = bytes(k % 253 for k in range(length))
    (result,) = receive(segment(VC, sdu))
    assert (result.status, result.sdu, result.cells) == (PduStatus.OK, sdu, cells_of(length))


def test_sdu_beyond_the_length_field_is_refused():
    with pytest.raises(ValueError, match="65535"):
        cpcs_pdu(bytes(65536))


@given(st.lists(sdus, min_size=1, max_size=6), st.data())
def test_a_payload_bit_error_costs_one_pdu_only(pdus, data):
    cells = [segment(VC, sdu) for sdu in pdus]
    hit = data.draw(st.integers(0, len(pdus) - 1))
    which = data.draw(st.integers(0, len(cells[hit]) - 1))
    # Anywhere but in the length field, which would change the verdict.
    end = 42 if which == len(cells[hit]) - 1 else 48
    octet = data.draw(st.integers(0, end - 1))
    payload = bytearray(cells[hit][which].payload)
    payload[octet] ^= 1 << data.draw(st.integers(0, 7))
    cells[hit][which] = Cell(cells[hit][which].header, bytes(payload))
    expected = [PduStatus.OK] * len(pdus)
    expected[hit] = PduStatus.CRC
    assert statuses(cell for pdu in cells for cell in pdu) == expected


@given(st.binary(min_size=50, max_size=400), sdus, st.data())
def test_a_cell_lost_inside_is_length(first, second, data):
    cells = segment(VC, first)
    del cells[data.draw(st.integers(0, len(cells) - 2))]
    assert statuses(cells + segment(VC, second)) == [PduStatus.LENGTH, PduStatus.OK]


@given(sdus.filter(lambda s: len(s) > 40), sdus, sdus)
def test_a_lost_last_cell_joins_two_pdus(first, second, third):
    cells = segment(VC, first)[:-1] + segment(VC, second) + segment(VC, third)
    assert statuses(cells) == [PduStatus.LOST_LAST, PduStatus.OK]


@pytest.mark.parametrize(("length", "status"), [(40, PduStatus.CRC), (41, PduStatus.LOST_LAST)])
def test_a_length_of_0_is_believed_only_with_a_right_crc(length, status):
    cells = segment(VC, bytes(range(length)))
    cells[-1] = Cell(cells[-1].header, cells[-1].payload[:42] + bytes(2) + cells[-1].payload[44:])
    assert statuses(cells) == [status]


def test_overlength_gives_up_and_recovers():
    cells = segment(VC, bytes(100)) + segment(VC, bytes(80)) + segment(VC, bytes(88))
    assert statuses(cells, max_sdu=80) == [PduStatus.OVERLENGTH, PduStatus.OK, PduStatus.OK]
    assert statuses(segment(VC, bytes(89)), max_sdu=88) == [PduStatus.OVERLENGTH]


def test_oam_cells_inside_a_pdu_do_not_matter():
    cells = segment(VC, bytes(range(100)))
    oam = Cell(Header(0, 100, 5), bytes(48))
    assert statuses([cells[0], oam, cells[1], oam, *cells[2:]]) == [PduStatus.OK]


@given(st.lists(st.tuples(st.integers(0, 2), sdus), max_size=8), st.randoms(use_true_random=False))
def test_interleaved_vcs_do_not_disturb_each_other(pdus, random):
    waiting = {vc: [] for vc in range(3)}
    for vc, sdu in pdus:
        waiting[vc] += segment(Header(0, 32 + vc), sdu)
    reassembler = Reassembler({(0, 32 + vc): MAX_SDU for vc in range(3)})
    got = {vc: [] for vc in range(3)}
    while any(waiting.values()):
        vc = random.choice([vc for vc, cells in waiting.items() if cells])
        done = reassembler.receive(waiting[vc].pop(0))
        if done:
            got[done[0][1] - 32].append(done[1].sdu)
    assert got == {vc: [sdu for v, sdu in pdus if v == vc] for vc in range(3)}


def test_cells_of_unknown_vcs_are_counted():
    reassembler = Reassembler({(0, 32): 100})
    assert reassembler.receive(Cell(Header(0, 33, 1), bytes(48))) is None
    assert reassembler.unknown == 1
