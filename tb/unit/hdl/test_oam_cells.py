"""OAM cells of fault management: their octets, against the layout of I.610 clause 10."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bentpipe_hdl.crc10_octets import crc10
from bentpipe_hdl.oam.cells import (
    ALL_POINTS,
    END_POINT,
    NO_LOCATION,
    Ais,
    ContinuityCheck,
    Loopback,
    OamError,
    Rdi,
    pack,
    unpack,
)
from models import crc
from models.oam import fields, octets

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "crc10.json").read_text())["vectors"]

ID = st.binary(min_size=16, max_size=16)


def number(location):
    return int.from_bytes(location, "big")


def test_the_vectors_are_loopback_cells():
    first, second = (unpack(bytes.fromhex(vector["payload48"])) for vector in VECTORS)
    assert first == Loopback(True, 0, location=ALL_POINTS, source=bytes(16))
    assert second == Loopback(True, 1, location=END_POINT, source=END_POINT)
    assert pack(second).hex() == VECTORS[1]["payload48"]


@given(st.binary(min_size=48, max_size=48))
def test_the_crc_is_that_of_the_model(payload):
    assert crc10(payload) == crc.crc10(payload)


@given(st.sampled_from([Ais, Rdi]), st.integers(0, 255), ID)
def test_a_defect_has_type_and_location(cell, kind, location):
    message = octets(cell.__name__.lower(), defect_type=kind, defect_location=number(location))
    assert pack(cell(kind, location)) == message
    assert unpack(message) == cell(kind, location)


def test_a_defect_need_not_say_what_and_where():
    assert pack(Ais())[1:46] == b"\x6a" * 45
    assert Ais().defect_location == NO_LOCATION


def test_a_continuity_check_says_nothing():
    assert pack(ContinuityCheck()) == octets("cc")
    assert unpack(octets("cc")) == ContinuityCheck()


@given(st.booleans(), st.integers(0, (1 << 32) - 1), ID, ID)
def test_a_loopback_cell(indication, tag, location, source):
    cell = Loopback(indication, tag, location, source)
    message = octets("loopback", indication=indication, tag=tag, location=number(location), source=number(source))
    assert pack(cell) == message
    assert unpack(message) == cell
    assert fields(pack(cell.looped()))[1]["indication"] == 0


def test_reserved_bits_and_unused_octets_are_not_looked_at():
    assert unpack(octets("loopback", zero=0x55, reserved=0x2A, unused=0, tag=7)) == Loopback(tag=7)


@given(st.integers(0, 383))
def test_a_bit_error_is_found(place):
    damaged = bytearray(pack(Loopback(tag=5)))
    damaged[place // 8] ^= 1 << place % 8
    with pytest.raises(OamError, match="CRC-10"):
        unpack(bytes(damaged))


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (octets("ais")[:-1], "48 octets"),
        (octets("cc", oam_type=0b0010), "OAM type 0010"),
        (octets("cc", function=0b0010), "function type 0010"),
    ],
)
def test_what_is_no_such_cell_is_told(payload, message):
    with pytest.raises(OamError, match=message):
        unpack(payload)


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        (Ais(256), "defect type is an octet"),
        (Rdi(0, b"here"), "defect location has 16 octets"),
        (Loopback(tag=1 << 32), "32 bits"),
        (Loopback(location=b""), "loopback location ID"),
        (Loopback(source=bytes(17)), "source ID"),
    ],
)
def test_what_does_not_fit_is_told(cell, message):
    with pytest.raises(ValueError, match=message):
        pack(cell)
