"""The CRC models against published vectors and independent CRC libraries."""

import json
import zlib
from pathlib import Path

import pytest
from crccheck.crc import Crc8Itu, Crc10, Crc32Bzip2
from hypothesis import given
from hypothesis import strategies as st

from models.crc import crc10, crc10_bits, crc32_aal5, crc32_register, divide
from models.hec import hec

VECTORS = Path(__file__).parents[2] / "vectors"

REVERSED = bytes(int(f"{octet:08b}"[::-1], 2) for octet in range(256))


def test_crc32_check_value_and_residue():
    check = json.loads((VECTORS / "aal5.json").read_text())["check_123456789"]
    assert f"{crc32_aal5(b'123456789'):08x}" == check
    assert crc32_register(b"123456789" + crc32_aal5(b"123456789").to_bytes(4, "big")) == 0xC704DD7B


@given(st.binary(max_size=200))
def test_crc32_is_that_of_crccheck_and_of_zlib_with_reflected_bits(data):
    reflected = zlib.crc32(data.translate(REVERSED))
    assert crc32_aal5(data) == int(f"{reflected:032b}"[::-1], 2) == Crc32Bzip2.calc(data)


@given(st.binary(max_size=100))
def test_crc32_by_table_is_the_bitwise_division(data):
    bitwise = divide(data, width=32, polynomial=0x04C11DB7, register=0xFFFFFFFF)
    assert crc32_register(data) == bitwise


@given(st.binary(min_size=4, max_size=4))
def test_hec_is_that_of_crccheck(header):
    assert hec(header) == Crc8Itu.calc(header)


@pytest.mark.parametrize("vector", json.loads((VECTORS / "crc10.json").read_text())["vectors"])
def test_crc10_vectors(vector):
    assert crc10(bytes.fromhex(vector["payload48"])) == int(vector["crc10"], 16)


@given(st.binary(max_size=60))
def test_crc10_is_that_of_crccheck(data):
    bits = [octet >> bit & 1 for octet in data for bit in range(7, -1, -1)]
    assert crc10_bits(bits) == Crc10.calc(data)


@given(st.binary(min_size=46, max_size=46))
def test_crc10_leaves_no_remainder(body):
    """An OAM cell with its CRC-10 in place has remainder 0 over all 48 octets."""
    crc = crc10(body + bytes(2))
    bits = [octet >> bit & 1 for octet in body + crc.to_bytes(2, "big") for bit in range(7, -1, -1)]
    assert crc10_bits(bits) == 0
