"""A host's end of a VC's OAM flows, against the cells and times of I.610 (models/oam.py)."""

from __future__ import annotations

import pytest

from bentpipe.hosts.oam import EndPoint, Looper, OamEnd
from bentpipe.hosts.scheduler import Scheduler
from models import oam

MS = 10**9
S = 10**12
SEGMENT, END = 4, 5
HERE, THERE = b"here".ljust(16, b"\0"), b"there".ljust(16, b"\0")
ALL_ONES, ALL_ZEROS = (1 << 128) - 1, 0


def number(location: bytes) -> int:
    return int.from_bytes(location, "big")


class Ledger(Looper):
    """Keeps what came back."""

    def __init__(self) -> None:
        super().__init__()
        self.times: list[tuple[int, int]] = []

    def returned(self, sent_ps: int, now_ps: int) -> None:
        self.times.append((sent_ps, now_ps))


def message(point: EndPoint) -> list[tuple[int, str]]:
    """PTI and function of what it has sent since the last call."""
    cells = [(pti, oam.fields(payload)) for pti, payload in point.out]
    point.out.clear()
    return [(pti, found[0] if found else "?") for pti, found in cells]


def live(point: EndPoint, now: int, until: int, sent: int = 0, received: int = 0) -> list[tuple[int, str]]:
    """Let time pass: when it sends what."""
    found = []
    while (due := point.next_ps()) and due <= until:
        assert due >= now
        now = due
        point.tick(now, sent, received)
        found += [(now, function) for _, function in message(point)]
    return found


def started(**given: object) -> EndPoint:
    point = EndPoint(HERE, **given)  # pyright: ignore[reportArgumentType]
    point.start(0)
    return point


@pytest.mark.parametrize(
    ("pti", "location", "answered"),
    [
        (END, ALL_ONES, True),
        (END, number(HERE), True),
        (END, number(THERE), False),
        (END, ALL_ZEROS, False),
        (SEGMENT, ALL_ONES, True),
        (SEGMENT, ALL_ZEROS, True),
        (SEGMENT, number(HERE), True),
        (SEGMENT, number(THERE), False),
    ],
)
def test_a_loopback_cell_goes_back_if_it_is_for_here(pti: int, location: int, answered: bool) -> None:
    """Once, in its flow, with the indication 0 and all else as it was, the CRC-10 right."""
    point = started()
    asked = {"tag": 0xDEADBEEF, "location": location, "source": number(THERE)}
    point.cell(pti, oam.octets("loopback", **asked), 7)
    cells = [(flow, oam.fields(payload)) for flow, payload in point.out]
    expected = oam.fields(oam.octets("loopback", indication=0, **asked))
    assert cells == ([(pti, expected)] if answered else [])
    assert (point.counts["looped"], point.counts["other"]) == (int(answered), int(not answered))


@pytest.mark.plain_hosts
def test_two_ends_do_not_loop() -> None:
    """A cell that has been sent back is not sent back again, whoever gets it, and if its location is all ones."""
    a, b = EndPoint(HERE), EndPoint(THERE)
    ledger = Ledger()
    a.loopback(b"\xff" * 16, END, ledger, 0)
    passed = 0
    for now in range(1, 50):
        for one, other in ((a, b), (b, a)):
            for pti, payload in one.out:
                passed += 1
                other.cell(pti, payload, now)
            one.out.clear()
    assert passed == 2
    assert ledger.times == [(0, 1)]
    for source in (HERE, THERE):
        a.cell(END, oam.octets("loopback", indication=0, source=number(source)), 99)
    assert a.out == [] and a.counts["other"] == 2


@pytest.mark.parametrize("function", ["loopback", "ais", "rdi", "cc"])
def test_a_damaged_cell_says_nothing(function: str) -> None:
    """Each of its 384 bits."""
    point = started()
    octets = int.from_bytes(oam.octets(function), "big")
    for bit in range(384):
        point.cell(END, (octets ^ 1 << bit).to_bytes(48, "big"), 5)
    assert point.out == [] and point.changes == []
    assert point.counts["bad"] == 384


def test_what_is_no_fault_management_that_is_known_says_nothing() -> None:
    point = started()
    for kind, function in ((1, 5), (2, 0), (8, 1), (15, 15)):
        point.cell(END, oam.octets("cc", oam_type=kind, function=function), 5)
    for pti, name in ((SEGMENT, "ais"), (SEGMENT, "rdi"), (SEGMENT, "cc")):  # of another flow
        point.cell(pti, oam.octets(name), 5)
    assert point.out == [] and point.changes == [] and point.counts["other"] == 7


def test_ais_state_tells_the_far_end_at_once_and_each_second_and_ends() -> None:
    """AIS cells a second apart at 10, 11 and 12 s: RDI from 10 s on, the state ends 2.5 s after the last."""
    point = started()
    sent = []
    for k in (10, 11, 12):
        sent += live(point, 0, k * S)
        point.cell(END, oam.octets("ais"), k * S)
        sent += [(k * S, function) for _, function in message(point)]
    sent += live(point, 12 * S, 30 * S)
    assert sent == [(k * S, "rdi") for k in (10, 11, 12, 13, 14)]
    assert point.changes == [(10 * S, "ais", True), (14 * S + S // 2, "ais", False)]
    assert not point.next_ps()


@pytest.mark.parametrize("what", ["user", "cc", "counted"])
def test_ais_state_ends_with_a_cell_that_comes_through(what: str) -> None:
    """A user's, which a PDU or the interface's counter tells of, or one of a continuity check."""
    point = started()
    point.cell(END, oam.octets("ais"), 10 * S)
    if what == "user":
        point.user(10 * S + MS)
    elif what == "cc":
        point.cell(END, oam.octets("cc"), 10 * S + MS)
    else:
        live(point, 10 * S, 10 * S + S // 2, received=1)
    assert not point.ais
    assert point.changes[-1][0] <= 10 * S + S // 2
    message(point)
    assert live(point, 10 * S + MS, 20 * S, received=int(what == "counted")) == []


class Counter:
    """An interface that counts user cells, and keeps what is sent."""

    def __init__(self) -> None:
        self.received = 0
        self.sent: list[tuple[int, bytes]] = []

    def user_cells(self, nic: int, vc: int) -> tuple[int, int]:
        return 0, self.received

    def send_cell(self, nic: int, vc: int, pti: int, payload: bytes) -> None:
        self.sent.append((pti, payload))


def test_user_cells_that_came_before_an_ais_cell_do_not_end_its_state() -> None:
    """They are in the middle of a PDU: only the counter tells of them, at the next look."""
    scheduler, counter = Scheduler(), Counter()
    end = OamEnd(scheduler, counter, 0, started(watches=True), 0, 1)
    for at, received in ((1300, 7), (2100, 8), (2600, 8)):
        while scheduler.due <= at * MS:
            scheduler.now = scheduler.due
            scheduler.fire()
        counter.received = received
        if at == 1300:
            end.cell(END, oam.octets("ais"), at * MS)
    assert end.point.changes == [(1300 * MS, "ais", True), (2300 * MS, "ais", False)]
    assert len(counter.sent) == 1, "RDI goes each second, and the state ends as the next is due"


def test_rdi_state_lasts_2_5_s_behind_the_last_cell_whatever_users_send() -> None:
    point = started()
    for k in (3, 4, 5):
        point.cell(END, oam.octets("rdi"), k * S)
        point.user(k * S + MS)
    live(point, 5 * S, 20 * S)
    assert point.changes == [(3 * S, "rdi", True), (7 * S + S // 2, "rdi", False)]
    assert message(point) == []


def test_a_source_sends_a_check_each_second_or_each_in_which_no_user_cell_went() -> None:
    always, idle = started(check="always"), started(check="idle")
    assert live(always, 0, 5 * S, sent=3) == [(k * S, "cc") for k in range(1, 6)]
    found = []
    for k, sent in enumerate((0, 0, 5, 5, 5, 9, 9), 1):
        found += live(idle, (k - 1) * S, k * S, sent=sent)
    assert [at // S for at, _ in found] == [2, 4, 5, 7]


@pytest.mark.parametrize("last_ms", [0, 1, 499, 500, 777])
def test_continuity_is_lost_3_5_s_behind_the_last_cell_give_or_take_half_a_second(last_ms: int) -> None:
    """User cells that only the interface's counter tells of; with the next check it is there again."""
    point = started(watches=True)
    last = 5 * S + last_ms * MS
    for k in range(11):
        live(point, max(k - 1, 0) * S // 2, k * S // 2)
        point.cell(END, oam.octets("cc"), k * S // 2)
    live(point, 5 * S, last)
    changes = live(point, last, 12 * S, received=1)
    ((at, state, begins),) = point.changes
    assert (state, begins) == ("loc", True)
    assert 3 * S <= at - last <= 4 * S
    assert changes[0] == (at, "rdi") and changes[1] == (at + S, "rdi")
    point.cell(END, oam.octets("cc"), 12 * S)
    assert not point.loc
    assert live(point, 12 * S, 15 * S, received=1) == []


@pytest.mark.plain_hosts
def test_a_loopback_cell_that_is_not_back_in_5_s_is_lost() -> None:
    point, ledger = started(), Ledger()
    for k in range(4):
        point.loopback(THERE, SEGMENT, ledger, k * S)
    cells = [payload for _, payload in point.out]
    tags = [oam.fields(payload)[1]["tag"] for payload in cells]  # pyright: ignore[reportOptionalSubscript]
    assert len(set(tags)) == 4
    answer = {"indication": 0, "location": number(THERE)}
    point.cell(SEGMENT, oam.octets("loopback", tag=tags[1], source=number(HERE), **answer), 6 * S)
    point.cell(SEGMENT, oam.octets("loopback", tag=tags[2], source=number(THERE), **answer), 6 * S)  # another's
    point.cell(SEGMENT, oam.octets("loopback", tag=tags[1], source=number(HERE), **answer), 6 * S)  # once more
    point.cell(SEGMENT, oam.octets("loopback", tag=tags[2], source=number(HERE), **answer), 7 * S + 1)  # late
    assert ledger.times == [(1 * S, 6 * S)]
    assert ledger.lost == 2 and point.waits_for(ledger)
    point.give_up(8 * S + 1)
    assert ledger.lost == 3 and not point.waits_for(ledger)
    assert (point.counts["returned"], point.counts["other"]) == (1, 3)


@pytest.mark.plain_hosts
def test_correlation_tags_wrap() -> None:
    point, ledger = started(), Ledger()
    point._tag = 0xFFFFFFFE
    for now in range(3):
        point.loopback(THERE, END, ledger, now)
    tags = [oam.fields(payload)[1]["tag"] for _, payload in point.out]  # pyright: ignore[reportOptionalSubscript]
    assert tags == [0xFFFFFFFF, 0, 1]
