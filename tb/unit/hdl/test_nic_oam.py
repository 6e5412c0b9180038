"""Single cells and OAM cells in the NIC, on both datapaths: between the cells of PDUs, and part of none (I.610)."""

import itertools
import random
from collections import defaultdict, deque

import pytest

from bentpipe_hdl.lookup_table import lookup_table
from bentpipe_hdl.nodes import Nic
from bentpipe_sim.interface import PduStatus
from models import credits
from models.aal5 import Reassembler, cells_of, segment
from models.cell import Cell, Header, Pti
from models.gcra import VirtualScheduling
from unit.hdl.bench import WIDTHS, Arrival
from unit.hdl.bench import run_compiled as run
from unit.hdl.test_nic_rtl import MAX_SDU, VCS, configure, vpi_vci

F5 = (Pti.OAM_SEGMENT, Pti.OAM_END_TO_END)


class Host:
    """Posts PDUs and single cells, one of each at a time for a VC; takes the OAM cells that come, unless it is slow."""

    def __init__(self, bench, seed=1):
        self.bench, self.random = bench, random.Random(seed)
        self.queues = defaultdict(deque)  # (VC, whether single) -> (octets, PTI); the first is with the NIC
        self.posts, self.fetched = deque(), defaultdict(int)
        self.offered = None
        self.supply, self.next_word = deque(), False
        self.finished = []  # (tick, VC, whether single)
        self.verdicts, self.oam = [], []
        self.slow = False
        bench.after_clock = self.after_clock

    def post(self, vc, octets, pti=None):
        """A PDU, or a single cell with this PTI."""
        key = vc, pti is not None
        self.queues[key].append((octets, pti or 0))
        if len(self.queues[key]) == 1:
            self.posts.append(key)

    @property
    def done(self):
        return not any(self.queues.values())

    def after_clock(self):
        get, put, nic = self.bench.ctx.get, self.bench.ctx.set, self.bench.node
        if get(nic.post_taken):
            self.offered = None
            put(nic.post_valid, 0)
        if get(nic.done):
            key = get(nic.done_vc), bool(get(nic.done_single))
            self.finished.append((self.bench.now, *key))
            self.queues[key].popleft()
            self.fetched[key] = 0
            if self.queues[key]:
                self.posts.append(key)
        if get(nic.fetch):
            key = get(nic.fetch_vc), bool(get(nic.fetch_single))
            octets, pti = self.queues[key][0]
            block = octets[self.fetched[key] : self.fetched[key] + 48].ljust(48, b"\x5a")
            self.fetched[key] += 48
            put(nic.cell_pti, pti if key[1] else self.random.getrandbits(3))
            if self.bench.wide:
                put(nic.block, int.from_bytes(block, "little"))
            else:
                self.supply += [int.from_bytes(block[k : k + 4], "little") for k in range(0, 48, 4)]
        if not self.bench.wide:
            if self.next_word:
                self.supply.popleft()
            self.next_word = bool(get(nic.word_next))
            put(nic.word, self.supply[0] if self.supply else self.random.getrandbits(32))
        if self.posts and not self.offered:
            self.offered = vc, single = self.posts.popleft()
            put(nic.post_valid, 1)
            put(nic.post_vc, vc)
            put(nic.post_single, single)
            put(nic.post_length, 0 if single else len(self.queues[vc, single][0][0]))
        if get(nic.rx_last):
            self.verdicts.append((get(nic.rx_vc), PduStatus(get(nic.rx_status).value)))
        put(nic.oam_take, 0)
        if get(nic.oam_full) and not self.slow:
            self.take()

    def take(self):
        get, put, nic = self.bench.ctx.get, self.bench.ctx.set, self.bench.node
        assert get(nic.oam_full)
        if self.bench.wide:
            octets = get(nic.oam_payload).to_bytes(48, "little")
        else:
            words = []
            for k in range(12):
                put(nic.oam_at, k)
                words.append(get(nic.oam_word).to_bytes(4, "little"))
            octets = b"".join(words)
        self.oam.append((get(nic.oam_vc), get(nic.oam_pti), get(nic.oam_tick), octets))
        put(nic.oam_take, 1)


def small(width, **more):
    return Nic(width=width, vcs=VCS, oam=1, **more)


def sent_by(bench, vc):
    """Return the cells of a VC that were sent: (tick, header, payload)."""
    return [(o.tick, o.as_header(), o.payload) for o in bench.came_out if o.as_header().vci == vpi_vci(vc)[1]]


async def until_done(bench, host, most):
    for _ in range(most):
        await bench.tick()
        if host.done:
            break
    await bench.ticks(4)
    assert host.done


@pytest.mark.parametrize("width", WIDTHS)
def test_single_cells_leave_pdus_as_they_are(width):
    """Both on four VCs, at random: a VC's user cells are the model's, its single cells what was posted, in order."""
    rng = random.Random(3)

    async def test(bench):
        await configure(bench, line=1.25, periods=(3, 4.5, 0, 0), tolerance=1)
        host = Host(bench)
        pdus, singles = defaultdict(list), defaultdict(list)
        for _ in range(60):
            vc = rng.randrange(VCS)
            if rng.random() < 0.35:
                sdu = rng.randbytes(rng.choice([1, 40, 41, 48, 89, 150, 400]))
                host.post(vc, sdu)
                pdus[vc] += segment(Header(*vpi_vci(vc)), sdu)
            else:
                cell = Cell(Header(*vpi_vci(vc), rng.choice(F5)), rng.randbytes(48))
                host.post(vc, cell.payload, cell.header.pti)
                singles[vc].append(cell)
            await bench.ticks(rng.randrange(8))
        await until_done(bench, host, 800)
        inside = 0
        for vc in range(VCS):
            out = [(header, payload) for _, header, payload in sent_by(bench, vc)]
            assert [Cell(*each) for each in out if each[0].user] == pdus[vc]
            assert [Cell(*each) for each in out if not each[0].user] == singles[vc]
            assert await bench.get("tx_cells", vc) == len(out)
            before = [Header(pti=1), *(header for header, _ in out)]
            inside += sum(not here.user and last.user and not last.last for last, here in itertools.pairwise(before))
        assert inside > 5, "single cells stood between those of a PDU"

    run(small(width), test)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_single_cell_is_the_next_of_its_vc_and_paced(width):
    """A VC of 6.5 ticks a cell with a long PDU: the cell comes after one that was fetched, at most; no cell is a whole
    tick early, none is missing."""

    async def test(bench):
        await configure(bench, line=1.5, periods=(6.5, 0, 0, 0))
        host = Host(bench)
        host.post(0, bytes(48 * 60))
        await bench.ticks(50)
        posted = []
        for k in range(12):
            posted.append(bench.now)
            host.post(0, bytes([k]) * 48, Pti.OAM_END_TO_END)
            await bench.ticks(17)
        ticks = [tick for tick, _, _ in sent_by(bench, 0)]
        gcra = VirtualScheduling(6.5, 1)
        assert all(gcra.conforms(tick) for tick in ticks)
        assert abs(len(ticks) - (bench.now - 1 - ticks[0]) / 6.5) <= 1
        singles = [(tick, payload[0]) for tick, header, payload in sent_by(bench, 0) if not header.user]
        for k, (tick, number) in enumerate(singles):
            assert number == k
            assert tick - posted[k] <= 2 * 6.5 + 1

    run(small(width), test)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_vc_takes_one_single_cell_at_a_time_beside_its_pdu(width):
    """A cell that is posted for a VC that has one already is refused and forgotten; either may be first."""

    async def test(bench):
        await configure(bench, line=1, periods=(40, 40, 0, 0))
        bench.after_clock = lambda: None
        nic, ctx = bench.node, bench.ctx

        async def post(vc, single):
            ctx.set(nic.post_vc, vc)
            ctx.set(nic.post_single, single)
            ctx.set(nic.post_length, 0 if single else 100)
            ctx.set(nic.post_valid, 1)
            taken = []

            def look():
                if ctx.get(nic.post_taken):
                    taken.append(True)
                    ctx.set(nic.post_valid, 0)

            bench.after_clock = look
            for _ in range(5):
                await bench.tick()
                if taken:
                    return
            raise AssertionError("never taken")

        ctx.set(nic.cell_pti, Pti.OAM_SEGMENT)
        for single in (0, 1, 0, 1):
            await post(0, single)
        assert await bench.get("tx_refused") == 2
        for single in (1, 0, 0, 1, 1):  # the first goes at once
            await post(1, single)
        assert await bench.get("tx_refused") == 4
        await bench.ticks(260)
        for vc, singles in ((0, 1), (1, 2)):
            kinds = [header.user for _, header, _ in sent_by(bench, vc)]
            assert kinds.count(True) == cells_of(100)
            assert kinds.count(False) == singles

    run(small(width), test)


@pytest.mark.parametrize("width", WIDTHS)
def test_oam_cells_go_to_the_host_and_pdus_are_as_without(width):
    """F5 cells back to back and between the cells of PDUs: each is given once with its tick; RM cells, bad HECs,
    unknown VCs and one that is torn down are counted as ever."""
    rng = random.Random(5)

    async def test(bench):
        await configure(bench)
        host = Host(bench)
        model = Reassembler({vpi_vci(vc): MAX_SDU for vc in range(VCS)})
        waiting, given, verdicts = defaultdict(list), [], []
        strays = dict.fromkeys(("rx_unknown", "rx_hec", "rx_oam"), 0)
        gone = set()
        for step in range(300):
            if step == 200:  # VC 3 is torn down
                gone.add(3)
                await bench.apply(lookup_table(VCS, {(0, *vpi_vci(vc)): vc for vc in range(3)}).write)
            vc = rng.randrange(VCS)
            vpi, vci = vpi_vci(vc)
            draw, bad = rng.random(), rng.random() < 0.05
            if draw < 0.45:
                cell = Cell(Header(vpi, vci, rng.choice(F5), rng.getrandbits(1)), rng.randbytes(48))
            elif draw < 0.55:
                cell = Cell(Header(vpi, vci, rng.choice([6, 7])), rng.randbytes(48))
            elif draw < 0.6:
                cell = Cell(Header(vpi + 1, vci, rng.choice(F5)), rng.randbytes(48))
            else:
                if not waiting[vc]:
                    waiting[vc] = segment(Header(vpi, vci), rng.randbytes(rng.choice([1, 41, 100, 190])))
                cell = waiting[vc].pop(0)
            header = cell.header
            if bad:
                strays["rx_hec"] += 1
            elif vc in gone or header.vpi != vpi:
                strays["rx_unknown"] += 1
            elif header.pti in F5:
                given.append((vc, header.pti, bench.now, cell.payload))
            elif not header.user:
                strays["rx_oam"] += 1
            elif ended := model.receive(cell):
                verdicts.append((vc, ended[1].status))
            await bench.tick(Arrival(cell, hec_error=bad))
        await bench.ticks(4)
        assert host.oam == given
        assert len(given) > 80
        assert host.verdicts == verdicts
        assert {name: await bench.get(name) for name in strays} == strays
        assert [await bench.get(name) for name in ("oam_taken", "oam_lost")] == [len(given), 0]

    run(small(width), test)


@pytest.mark.parametrize("width", WIDTHS)
def test_an_oam_cell_that_finds_the_place_full_is_lost_and_counted(width):
    async def test(bench):
        await configure(bench)
        host = Host(bench)
        host.slow = True
        cells = [Cell(Header(*vpi_vci(k % VCS), Pti.OAM_SEGMENT), bytes([k]) * 48) for k in range(6)]
        for k, cell in enumerate(cells):
            await bench.tick(Arrival(cell))
            if k in (2, 4):
                await bench.ticks(2)
                host.take()
                await bench.tick()
                bench.ctx.set(bench.node.oam_take, 0)
        await bench.ticks(2)
        host.take()
        assert [octets[0] for *_, octets in host.oam] == [0, 3, 5]
        assert [await bench.get(name) for name in ("oam_taken", "oam_lost")] == [3, 3]

    run(small(width), test)


@pytest.mark.parametrize("width", WIDTHS)
def test_single_cells_need_credit_and_are_sent_when_it_comes(width):
    """A VC with two places at its switch: a single cell takes one as any cell, and what waits goes on as places are
    freed, the single cell first."""

    async def test(bench):
        await configure(bench)
        await bench.set("tx_share", 2, 0)
        await bench.set("rx_back", {"vc": 0, "takes": 1}, 1)
        await bench.set("credit_last", 1)
        await bench.set("credit_step", 1000)
        host = Host(bench)
        host.post(0, bytes(200))
        await bench.ticks(12)
        host.post(0, b"\1" * 48, Pti.OAM_END_TO_END)
        await bench.ticks(20)
        assert [header.user for _, header, _ in sent_by(bench, 0)] == [True, True]
        for freed in (2, 4, 6):
            message = Cell(Header(*vpi_vci(1), Pti.RM), credits.payload(credits.CREDIT, freed))
            await bench.tick(Arrival(message))
            await bench.ticks(20)
        kinds = [header.user for _, header, _ in sent_by(bench, 0) if header.pti != Pti.RM]
        assert kinds == [True, True, False, True, True, True]
        assert host.done

    run(small(width, credits=1), test)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_single_cell_that_is_left_behind_a_pdus_last_one_waits_for_credit(width):
    """The last cell is fetched and takes the last place; the single one goes when one is freed."""

    async def test(bench):
        await configure(bench, line=8)
        await bench.set("tx_share", 2, 0)
        await bench.set("rx_back", {"vc": 0, "takes": 1}, 1)
        await bench.set("credit_last", 1)
        await bench.set("credit_step", 1000)
        host = Host(bench)
        host.post(0, bytes(60))
        await bench.ticks(4)
        host.post(0, b"\1" * 48, Pti.OAM_END_TO_END)
        await bench.ticks(40)
        assert [header.pti for _, header, _ in sent_by(bench, 0)] == [0, 1]
        await bench.tick(Arrival(Cell(Header(*vpi_vci(1), Pti.RM), credits.payload(credits.CREDIT, 1))))
        await bench.ticks(40)
        assert [header.pti for _, header, _ in sent_by(bench, 0)] == [0, 1, Pti.OAM_END_TO_END]
        assert host.done

    run(small(width, credits=1), test)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_vc_that_is_set_up_again_sends_single_cells_at_once(width):
    """It had a cell an hour of ticks ahead."""

    async def test(bench):
        await configure(bench, line=1, periods=(400, 0, 0, 0))
        host = Host(bench)
        host.post(0, bytes(48), Pti.OAM_SEGMENT)
        await bench.ticks(10)
        await bench.set("tx_header", int(Header(*vpi_vci(0))), 0)
        host.post(0, bytes(48), Pti.OAM_SEGMENT)
        await bench.ticks(10)
        assert len(sent_by(bench, 0)) == 2

    run(small(width), test)
