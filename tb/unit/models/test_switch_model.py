"""The switch model: look-up, limits, frame discard, round robin."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bentpipe_sim.interface import PduStatus
from models.aal5 import Reassembly, segment
from models.cell import Cell, Header, Interface
from models.switch import Drop, Frame, Switch, Vc

MID, LAST, OAM = 0, 1, 5


def one_vc(capacity=100, *, epd_at=1 << 30, clp_at=1 << 30, **policy):
    return Switch([Vc(0, 0, 32, 1, 0, 64, **policy)], ports=2, capacity=capacity, epd_threshold=epd_at,
                  clp_threshold=clp_at)  # fmt: skip


def feed(switch, ptis, clp=0, vci=32):
    """Give cells by PTI; return '.' for an accepted one, else the first letter of the reason."""
    out = ""
    for pti in ptis:
        accepted, reason = switch.arrive(0, Header(0, vci, pti, clp))
        out += "." if accepted else reason.value[0]
    return out


def test_unknown_vc_and_bad_hec_are_counted_at_their_port():
    switch = one_vc()
    assert switch.arrive(0, Header(0, 33)) == (False, Drop.UNKNOWN)
    assert switch.arrive(1, Header(0, 32)) == (False, Drop.UNKNOWN)
    assert switch.arrive(0, Header(0, 32), hec_error=True) == (False, Drop.HEC)
    assert switch.port_drops[0] == {Drop.UNKNOWN: 1, Drop.HEC: 1}
    assert switch.port_drops[1] == {Drop.UNKNOWN: 1}
    assert switch.occupancy == 0


def test_headers_are_translated_between_uni_and_nni():
    vc = Vc(0, 5, 32, 1, 0xABC, 77)
    switch = Switch([vc], ports=2, capacity=10, nni=frozenset({1}))
    switch.arrive(0, Header(5, 32, 3, 1, gfc=7), cell="payload")
    header, index, cell = switch.depart(1)
    assert header == Header(0xABC, 77, 3, 1, interface=Interface.NNI)
    assert (index, cell) == (0, "payload")
    assert switch.depart(1) is None


def test_a_vc_used_twice_is_refused():
    with pytest.raises(ValueError, match="VCI 32 is used twice"):
        Switch([Vc(0, 0, 32, 1, 0, 64), Vc(0, 0, 32, 1, 0, 65)], ports=2, capacity=10)


def test_tail_drop_drops_cell_by_cell():
    switch = one_vc(2)
    assert feed(switch, [MID, MID, MID]) == "..f"
    switch.depart(1)
    assert feed(switch, [MID, LAST]) == ".f"
    assert switch.vcs[0].frame is Frame.FIRST


def test_high_water_stays():
    switch = one_vc(9)
    feed(switch, [MID] * 5)
    for _ in range(5):
        switch.depart(1)
    feed(switch, [MID])
    assert (switch.high_water, switch.occupancy) == (5, 1)


def test_limit_of_a_vc():
    switch = Switch([Vc(0, 0, 32, 1, 0, 64, limit=2), Vc(0, 0, 33, 1, 0, 65)], ports=2, capacity=5)
    assert feed(switch, [MID] * 3) == "..f"
    assert feed(switch, [MID] * 4, vci=33) == "...f"


def test_ppd_drops_the_rest_but_keeps_the_last_cell():
    switch = one_vc(2, ppd=True)
    assert feed(switch, [MID, MID, MID]) == "..f"
    switch.depart(1)
    assert feed(switch, [MID, MID, LAST, MID]) == "pp.f"


def test_ppd_with_its_last_cell_lost_discards_the_next_frame_up_to_its_last():
    switch = one_vc(2, ppd=True)
    assert feed(switch, [MID, MID, LAST]) == "..f"
    switch.depart(1)
    switch.depart(1)
    assert feed(switch, [MID, MID, LAST]) == "pp."
    assert feed(switch, [MID]) == "."


def test_a_corpse_waits_until_a_last_cell_gets_through():
    switch = one_vc(2, ppd=True)
    assert feed(switch, [MID, MID, MID, LAST, MID, LAST]) == "..ffpf"
    switch.depart(1)
    assert feed(switch, [LAST, MID]) == ".f"


def test_a_frame_whose_first_cell_finds_no_room_is_refused_whole():
    switch = one_vc(1, ppd=True)
    assert feed(switch, [LAST]) == "."
    assert feed(switch, [MID]) == "f"
    switch.depart(1)
    assert feed(switch, [MID, LAST, LAST]) == "pp."


def test_epd_refuses_new_frames_at_the_threshold_and_only_new_ones():
    switch = one_vc(100, epd=True, ppd=True, epd_at=3)
    assert feed(switch, [MID] * 5 + [LAST]) == "......"
    assert feed(switch, [MID, MID, LAST]) == "eee"
    for _ in range(3):
        switch.depart(1)
    assert feed(switch, [LAST]) == "e"
    switch.depart(1)
    assert feed(switch, [MID, LAST]) == ".."


def test_epd_without_ppd_drops_single_cells_of_a_frame_at_a_full_buffer():
    switch = one_vc(1, epd=True)
    assert feed(switch, [MID, MID]) == ".f"
    switch.depart(1)
    assert feed(switch, [LAST, LAST]) == ".f"
    # The dropped cell was a frame of its own, so that the next one is a first cell and EPD's business.
    switch.capacity, switch.epd_threshold = 2, 1
    assert feed(switch, [MID, LAST]) == "ee"


def test_epd_threshold_of_a_vc_looks_at_its_own_queue():
    vcs = [Vc(0, 0, 32, 1, 0, 64, epd=True, epd_threshold=2), Vc(0, 0, 33, 1, 0, 65)]
    switch = Switch(vcs, ports=2, capacity=100)
    assert feed(switch, [MID] * 9, vci=33) == "." * 9
    assert feed(switch, [LAST, LAST, LAST]) == "..e"


def test_oam_cells_touch_no_frame_state():
    switch = one_vc(100, epd=True, ppd=True, epd_at=1)
    assert feed(switch, [OAM, MID, OAM, LAST]) == ".e.e"
    assert switch.vcs[0].frame is Frame.FIRST
    full = one_vc(2, ppd=True)
    assert feed(full, [MID, OAM, OAM]) == "..f"
    assert full.vcs[0].frame is Frame.PASSING


def test_clp_threshold():
    switch = one_vc(100, clp_at=1)
    assert feed(switch, [MID], clp=1) + feed(switch, [MID], clp=1) + feed(switch, [MID]) == ".c."
    frames = one_vc(100, clp_at=1, ppd=True)
    assert feed(frames, [MID, MID, LAST], clp=1) == "..."
    assert feed(frames, [MID, LAST], clp=1) == "cc"
    assert feed(frames, [MID, LAST]) == ".."


def test_round_robin_over_the_vcs_of_a_port():
    vcs = [Vc(0, 0, 32 + k, 1, 0, 64 + k) for k in range(3)]
    switch = Switch(vcs, ports=2, capacity=100)
    for vci in (33, 32, 32, 33, 33, 34):
        feed(switch, [MID], vci=vci)
    assert [switch.depart(1)[1] for _ in range(6)] == [1, 0, 2, 1, 0, 1]


POLICIES = [{}, {"ppd": True}, {"ppd": True, "epd": True}, {"epd": True}]


SEEDS = st.integers(0, 2**32)
"""Of random numbers: to draw each number from Hypothesis takes 15 times as long."""


def drive(draw, policy, steps, capacity=6):
    """Random frames of three VCs through a small buffer; the switch and the cells that came out."""
    vcs = [Vc(0, 0, 32 + k, 1, 0, 64 + k, limit=5, **policy) for k in range(3)]
    switch = Switch(vcs, ports=2, capacity=capacity, epd_threshold=3)
    waiting = [[] for _ in vcs]
    came_out = []
    arrived = 0
    for step in range(steps):
        k = draw.randrange(3)
        if not waiting[k]:
            waiting[k] = segment(Header(0, 32 + k), bytes([step & 255]) * draw.randrange(1, 200))
        cell = waiting[k].pop(0)
        switch.arrive(0, cell.header, cell=cell)
        arrived += 1
        if draw.random() < 0.7 and (left := switch.depart(1)):
            header, index, original = left
            came_out.append((index, Cell(header, original.payload)))
        switch.check_conservation()
    assert arrived == sum(vc.accepted + vc.drops.total() for vc in vcs)
    assert switch.high_water <= capacity
    while left := switch.depart(1):
        came_out.append((left[1], Cell(left[0], left[2].payload)))
    return switch, came_out


@pytest.mark.parametrize("policy", POLICIES, ids=["tail", "ppd", "epd+ppd", "epd"])
@given(seed=SEEDS)
def test_cells_are_conserved_and_in_order(policy, seed):
    switch, came_out = drive(random.Random(seed), policy, 80)
    assert len(came_out) == sum(vc.accepted for vc in switch.vcs)


@pytest.mark.parametrize("policy", POLICIES[1:3], ids=["ppd", "epd+ppd"])
@given(seed=SEEDS)
def test_partial_packet_discard_never_joins_two_good_frames(policy, seed):
    """Whole and cut PDUs leave; a cut one never damages a good one, so every verdict but OK is that of a frame which
    lost cells itself.
    """
    switch, came_out = drive(random.Random(seed), policy, 120)
    for index, vc in enumerate(switch.vcs):
        reassembly = Reassembly()
        results = [r for i, cell in came_out if i == index and (r := reassembly.receive(cell))]
        assert all(r.status in (PduStatus.OK, PduStatus.LENGTH, PduStatus.CRC, PduStatus.LOST_LAST) for r in results)
        if not vc.drops:
            assert all(r.status is PduStatus.OK for r in results)
        # Octets of one frame are equal here: an OK PDU that mixes frames would show it.
        assert all(len(set(r.sdu)) == 1 for r in results if r.status is PduStatus.OK)
        # As many frames end as had their last cell accepted: no frame hangs on to another.
        lost_by_discard = sum(r.status is not PduStatus.OK for r in results)
        assert lost_by_discard <= vc.drops[Drop.FULL] + vc.drops[Drop.PPD]
