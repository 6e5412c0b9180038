"""The payload pattern is the same in Python and in C++, at any offset and length."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bentpipe_sim.network import Network
from bentpipe_sim.pattern import pattern
from models.wire import fast_pattern

FEW, MANY = 1, 40  # of more than 64 VCs that send or receive, octets are made when their cells are sent (csrc/pdu.hpp)


@pytest.fixture(scope="module", params=[FEW, MANY])
def wire(request):
    """Two interfaces joined back to back, with so many VCs in use each way."""
    network = Network()
    a, b = network.add_nic("a"), network.add_nic("b")
    network.connect(a, b)
    network.connect(b, a)
    vcs = [(k, network.add_vc([(a, b)[k], (b, a)[k]], 0, 100 + n)) for n in range(request.param) for k in range(2)]
    network.start()
    for nic, vc in vcs:
        network.send(nic, vc, b"there")
    came = []
    for _ in range(100):
        came += network.run(network.now_ps + 10**9)
    assert len(came) == len(vcs)
    return network


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**40), st.integers(1, 300), st.binary(min_size=0, max_size=9))
def test_octets_on_the_wire_are_the_pattern(wire, key, offset, length, head):
    wire.send(0, 0, head, key=key, offset=offset, length=length)
    (event,) = wire.run(wire.now_ps + 10**9)
    assert wire.sdu(event.handle) == head + pattern(key, offset, length)
    assert wire.check(event.handle, len(head), key, offset, length)
    if length >= 8:  # fewer octets may be the same by chance
        assert not wire.check(event.handle, len(head), key, offset + 1, length)


@pytest.mark.parametrize("offset", [0, 1, 7, 2**63 - 401, 2**63 - 8, 2**63 - 1])
@pytest.mark.parametrize("octets", [0, 1, 40, 48, 60])
def test_the_first_and_the_last_octets_of_a_pattern(wire, offset, octets):
    """A pattern's last octet is 2**63 - 1 at least; a head may be larger than what is before it."""
    head, length = bytes(range(octets)), 400
    wire.send(0, 0, head, key=9, offset=offset, length=length)
    (event,) = wire.run(wire.now_ps + 10**9)
    assert wire.sdu(event.handle) == head + pattern(9, offset, length)


@given(st.integers(0, 40), st.integers(1, 200), st.data())
def test_one_wrong_octet_is_found(wire, offset, length, data):
    octets = bytearray(pattern(7, offset, length))
    place = data.draw(st.integers(0, length - 1))
    octets[place] ^= 1 << data.draw(st.integers(0, 7))
    wire.send(0, 0, bytes(octets))
    (event,) = wire.run(wire.now_ps + 10**9)
    assert not wire.check(event.handle, 0, 7, offset, length)


def test_no_check_beyond_the_sdu(wire):
    wire.send(0, 0, b"", key=1, length=48)
    (event,) = wire.run(wire.now_ps + 10**9)
    assert wire.check(event.handle, 0, 1, 0, 48)
    assert not wire.check(event.handle, 0, 1, 0, 1 << 20)


@given(st.binary(min_size=2, max_size=120), st.integers(0, 20), st.integers(0, 60), st.data())
def test_internet_checksum(wire, octets, offset, length, data):
    """RFC 1071, computed octet pair by octet pair; the field's content enters the sum."""
    at = data.draw(st.integers(0, len(octets) - 2))
    start = data.draw(st.integers(0, at))
    sdu = octets + pattern(3, offset, length)
    total = 0
    padded = sdu[start:] + b"\0"
    for k in range(0, len(sdu) - start, 2):
        total += padded[k] << 8 | padded[k + 1]
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    checksum = ~total & 0xFFFF
    if checksum == 0 and at - start == 6:  # UDP's
        checksum = 0xFFFF
    wire.send(0, 0, octets, 3, offset, length, checksum_start=start, checksum_at=at)
    (event,) = wire.run(wire.now_ps + 10**9)
    assert wire.sdu(event.handle) == sdu[:at] + checksum.to_bytes(2, "big") + sdu[at + 2 :]


@pytest.mark.parametrize(("place", "wanted"), [(6, b"\xff\xff"), (16, b"\0\0")])
def test_a_checksum_of_zero_is_all_ones_in_udp(wire, place, wanted):
    """RFC 768: a transmitted checksum of zero means that there is none. In TCP zero is as good as any."""
    head = b"head" + b"\xff\xff" + bytes(18)
    wire.send(0, 0, head, checksum_start=4, checksum_at=4 + place)
    (event,) = wire.run(wire.now_ps + 10**9)
    assert wire.sdu(event.handle)[4 + place : 6 + place] == wanted


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**40), st.integers(0, 300))
def test_the_wire_of_tests_has_the_same(key, offset, length):
    assert fast_pattern(key, offset, length) == pattern(key, offset, length)
