"""The NIC in RTL: AAL5 both ways against the model, pacing against GCRA; on both datapaths."""

import itertools
import random
from collections import defaultdict
from dataclasses import replace
from fractions import Fraction

import pytest

from bentpipe_hdl.cell import NARROW, NEVER, WIDE
from bentpipe_hdl.lookup_table import lookup_table
from bentpipe_hdl.nodes import Nic
from bentpipe_hdl.plcp import frame_times
from bentpipe_sim.interface import PduStatus
from models.aal5 import Reassembler, cells_of, segment
from models.cell import Cell, Header
from models.gcra import VirtualScheduling
from models.plcp import slots
from unit.hdl.bench import WIDTHS, Arrival
from unit.hdl.bench import run_compiled as run

VCS = 4
MAX_SDU = 200


class Host:
    """The host's side of a NIC: posts PDUs, gives octets when asked, collects what was received."""

    def __init__(self, bench, seed=1):
        self.bench, self.random = bench, random.Random(seed)
        self.queues = defaultdict(list)  # VC -> PDUs not yet posted
        self.current = {}  # VC -> [octets, position]
        self.busy = set()
        self.offered = None
        self.chunks = defaultdict(list)  # VC -> (index, octets) of the PDU that comes in
        self.words = []
        self.received = []  # (VC, status, length, UU, CPI, octets by index)
        self.congested = []  # of each of those, whether its last cell had EFCI
        self.supply = []  # narrow: words of the block that goes out
        self.next_word = False
        bench.after_clock = self.after_clock

    def post(self, vc, octets, uu=0, cpi=0):
        self.queues[vc].append((octets, uu, cpi))

    @property
    def done(self):
        return not (any(self.queues.values()) or self.busy or self.offered)

    def after_clock(self):
        self._transmit()
        self._receive()

    def _transmit(self):
        get, put, nic = self.bench.ctx.get, self.bench.ctx.set, self.bench.node
        if get(nic.done):
            self.busy.remove(get(nic.done_vc))
        if get(nic.post_taken):
            vc, octets = self.offered
            self.current[vc] = [octets, 0]
            self.offered = None
            put(nic.post_valid, 0)
        if get(nic.fetch):
            state = self.current[get(nic.fetch_vc)]
            octets, position = state
            state[1] += 48
            block = octets[position : position + 48]
            block += self.random.randbytes(48 - len(block))  # beyond the end: whatever was there
            if self.bench.wide:
                put(nic.block, int.from_bytes(block, "little"))
            else:
                # In order behind what is left: the words of the cell before may still have to go.
                self.supply += [int.from_bytes(block[k : k + 4], "little") for k in range(0, 48, 4)]
        if not self.bench.wide:
            if self.next_word:
                self.supply.pop(0)
            self.next_word = bool(get(nic.word_next))
            put(nic.word, self.supply[0] if self.supply else self.random.getrandbits(32))
        ready = [vc for vc, queue in self.queues.items() if queue and vc not in self.busy]
        if ready and not self.offered:
            vc = self.random.choice(ready)
            octets, uu, cpi = self.queues[vc].pop(0)
            self.offered = vc, octets
            self.busy.add(vc)
            put(nic.post_valid, 1)
            put(nic.post_vc, vc)
            put(nic.post_length, len(octets))
            put(nic.post_uu, uu)
            put(nic.post_cpi, cpi)

    def _receive(self):
        get, nic = self.bench.ctx.get, self.bench.node
        vc = get(nic.rx_vc)
        if get(nic.rx_valid):
            if self.bench.wide:
                self._keep(vc, get(nic.rx_payload).to_bytes(48, "little"))
            else:
                self.words.append(get(nic.rx_word).to_bytes(4, "little"))
                if len(self.words) == 12:
                    self._keep(vc, b"".join(self.words))
                    self.words = []
        if get(nic.rx_last):
            assert not self.words
            chunks = self.chunks.pop(vc, [])
            assert [index for index, _ in chunks] == list(range(len(chunks)))
            status = PduStatus(get(nic.rx_status.as_value() if hasattr(nic.rx_status, "as_value") else nic.rx_status))
            fields = (get(nic.rx_length), get(nic.rx_uu), get(nic.rx_cpi))
            self.congested.append(bool(get(nic.rx_efci)))
            self.received.append((vc, status, *fields, b"".join(octets for _, octets in chunks)))

    def _keep(self, vc, octets):
        index = self.bench.ctx.get(self.bench.node.rx_index)
        if index == 0:  # in the place of what was there, of before the VC was set up
            self.chunks[vc] = []
        self.chunks[vc].append((index, octets))


def vpi_vci(vc):
    return 16 * vc, 32 + vc


async def configure(bench, *, line=1.0, periods=(0,) * VCS, tolerance=0, max_sdu=MAX_SDU):
    await bench.reset()
    await bench.set("line_period", round(line * 65536))
    await bench.set("tolerance", tolerance)
    for vc in range(VCS):
        vpi, vci = vpi_vci(vc)
        await bench.set("tx_header", int(Header(vpi, vci)), vc)
        await bench.set("tx_period", round((periods[vc] or line) * 65536), vc)
        await bench.set("rx_limit", cells_of(max_sdu), vc)
    await bench.apply(lookup_table(VCS, {(0, *vpi_vci(vc)): vc for vc in range(VCS)}).write)


def small(width):
    return Nic(width=width, vcs=VCS)


def damaged(cells, rng):
    """The cells of a PDU after a line that loses cells and flips bits."""
    fate = rng.random()
    if fate < 0.15:
        del cells[rng.randrange(len(cells))]
    elif fate < 0.3:
        del cells[-1]
    elif fate < 0.5:
        k = rng.randrange(len(cells))
        payload = bytearray(cells[k].payload)
        payload[rng.randrange(48)] ^= 1 << rng.randrange(8)
        cells[k] = Cell(cells[k].header, bytes(payload))
    return cells


@pytest.mark.parametrize(("width", "seed"), [(WIDE, 0), (WIDE, 1), (NARROW, 0)])
def test_reassembly(width, seed):
    """Interleaved PDUs of four VCs with every kind of damage, OAM cells, unknown VCs and bad HECs between them:
    the same verdicts in the same order as the model's, the octets of every good PDU, the EFCI of each last cell."""
    rng = random.Random(seed)
    numbers = {vpi_vci(vc): vc for vc in range(VCS)}

    async def test(bench):
        await configure(bench)
        host = Host(bench)
        model = Reassembler({vpi_vci(vc): MAX_SDU for vc in range(VCS)})
        expected, congested = [], []
        waiting = {vc: [] for vc in range(VCS)}
        strays = {"unknown": 0, "hec": 0, "oam": 0}
        for _ in range(500 if bench.wide else 260):
            draw = rng.random()
            vc = rng.randrange(VCS)
            vpi, vci = vpi_vci(vc)
            cell, bad = Cell(Header(vpi, vci, rng.randrange(4, 8)), rng.randbytes(48)), False
            if draw < 0.1:
                await bench.tick()
                continue
            if draw < 0.15:
                strays["oam"] += 1
            elif draw < 0.18:
                strays["unknown"] += 1
                cell = Cell(Header(vpi + 1, vci, rng.randrange(4)), rng.randbytes(48))
            elif draw < 0.21:
                strays["hec"] += 1
                bad = True
            else:
                if not waiting[vc]:
                    sdu = rng.randbytes(rng.choice([1, 40, 41, 88, 89, 150, 200, 250]))
                    if rng.random() < 0.12:
                        sdu = b""
                    header = Header(vpi, vci, rng.choice([0, 2]), rng.getrandbits(1))
                    waiting[vc] = damaged(segment(header, sdu, rng.randrange(256), rng.randrange(256)), rng)
                    if not waiting[vc]:
                        continue
                cell = waiting[vc].pop(0)
                cell = Cell(replace(cell.header, pti=cell.header.pti ^ rng.choice([0, 2])), cell.payload)
                ended = model.receive(cell)
                if ended:
                    expected.append((numbers[ended[0]], ended[1]))
                    congested.append(bool(cell.header.pti & 2))
            await bench.tick(Arrival(cell, hec_error=bad))
        await bench.ticks(4)
        got = host.received
        assert [(vc, status) for vc, status, *_ in got] == [(vc, r.status) for vc, r in expected]
        assert host.congested == congested
        for (_, status, length, uu, cpi, octets), (_, result) in zip(got, expected, strict=True):
            if status is PduStatus.OK:
                assert (length, uu, cpi, octets[:length]) == (len(result.sdu), result.uu, result.cpi, result.sdu)
            if status is PduStatus.OVERLENGTH:
                assert len(octets) == 48 * cells_of(MAX_SDU)
        assert {r.status for _, r in expected} == {status for status in PduStatus if status < PduStatus.TIMEOUT}
        for vc in range(VCS):
            counted = [await bench.get("rx_pdus", 8 * vc + k) for k in range(6)]
            assert counted == [sum(v == vc and r.status == k for v, r in expected) for k in range(6)]
        assert [await bench.get(name) for name in ("rx_unknown", "rx_hec", "rx_oam")] == [
            strays["unknown"],
            strays["hec"],
            strays["oam"],
        ]

    run(small(width), test, seed)


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_segmentation(width):
    """PDUs of four VCs at their own rates: each VC's cells are the model's, in order."""
    rng = random.Random(7)
    sizes = [1, 39, 40, 41, 44, 47, 48, 49, 88, 89, 96, 250]

    async def test(bench):
        await configure(bench, line=1.25, periods=(3, 4.5, 0, 0), tolerance=1)
        host = Host(bench)
        expected = {vc: [] for vc in range(VCS)}
        for _ in range(24):
            vc = rng.randrange(VCS)
            sdu, uu, cpi = rng.randbytes(rng.choice(sizes)), rng.randrange(256), rng.randrange(256)
            host.post(vc, sdu, uu, cpi)
            vpi, vci = vpi_vci(vc)
            expected[vc] += [(int(c.header), c.payload) for c in segment(Header(vpi, vci), sdu, uu, cpi)]
        for _ in range(600):
            await bench.tick()
            if host.done:
                break
        await bench.ticks(4)
        for vc in range(VCS):
            vci = vpi_vci(vc)[1]
            assert [(out.header, out.payload) for out in bench.came_out if out.as_header().vci == vci] == expected[
                vc
            ], f"VC {vc}"
            assert await bench.get("tx_cells", vc) == len(expected[vc])

    run(small(width), test)


@pytest.mark.parametrize("width", WIDTHS)
def test_pacing_conforms_and_reaches_its_rate(width):
    """A VC with period 3.5 ticks and one with 5.25, always with something to send, on a line with 1.5: no cell is
    early, and over 150 ticks none is missing."""
    periods = (3.5, 5.25, 0, 0)

    async def test(bench):
        await configure(bench, line=1.5, periods=periods, tolerance=2)
        host = Host(bench)
        for vc in (0, 1):
            host.post(vc, bytes(48 * 60))
        await bench.ticks(150)
        for vc in (0, 1):
            ticks = [out.tick for out in bench.came_out if out.as_header().vci == vpi_vci(vc)[1]]
            gcra = VirtualScheduling(periods[vc], 3)
            assert all(gcra.conforms(tick) for tick in ticks)
            assert abs(len(ticks) - (149 - ticks[0]) / periods[vc]) <= 2

    run(small(width), test)


@pytest.mark.parametrize("width", WIDTHS)
def test_vcs_without_a_rate_share_the_line(width):
    async def test(bench):
        await configure(bench, line=2)
        host = Host(bench)
        for vc in range(VCS):
            host.post(vc, bytes(48 * 40))
        await bench.ticks(120)
        # From when all have been posted.
        late = [out.as_header().vci for out in bench.came_out if 20 <= out.tick < 116]
        counts = [late.count(vpi_vci(vc)[1]) for vc in range(VCS)]
        assert counts == [12] * VCS

    run(small(width), test)


@pytest.mark.parametrize("width", WIDTHS)
def test_posts_that_cannot_be_taken_are_counted_and_forgotten(width):
    async def test(bench):
        await configure(bench, line=4)
        host = Host(bench)
        host.post(0, bytes(200))
        await bench.ticks(3)
        for vc, length in ((0, 50), (1, 0)):
            nic, ctx = bench.node, bench.ctx
            bench.after_clock = lambda: None
            ctx.set(nic.post_vc, vc)
            ctx.set(nic.post_length, length)
            ctx.set(nic.post_valid, 1)
            taken = []

            def look(taken=taken, ctx=ctx, nic=nic, host=host):
                if ctx.get(nic.post_taken):
                    taken.append(True)
                    ctx.set(nic.post_valid, 0)
                    host.offered = None
                elif not ctx.get(nic.post_valid):
                    host.after_clock()

            bench.after_clock = look
            for _ in range(5):
                await bench.tick()
                if taken:
                    break
            assert taken
        bench.after_clock = host.after_clock
        await bench.ticks(40)
        assert await bench.get("tx_refused") == 2
        assert len(bench.came_out) == cells_of(200)

    run(small(width), test)


# Set-up of a VC


def pdu(vc, octets, *, upto=None):
    """The cells of a PDU of a VC, or the first of them."""
    return segment(Header(*vpi_vci(vc)), octets)[:upto]


async def receive(bench, cells):
    for cell in cells:
        await bench.tick(Arrival(cell))


def statuses(host, vc=0):
    return [status for number, status, *_ in host.received if number == vc]


@pytest.mark.parametrize("begun", [bytes(100), bytes(4 * MAX_SDU)], ids=["half a PDU", "beyond its limit"])
@pytest.mark.parametrize("width", WIDTHS)
def test_a_receive_vc_that_is_set_up_again_has_no_past(width, begun):
    async def test(bench):
        await configure(bench)
        host = Host(bench)
        for vc in (0, 1):
            await receive(bench, pdu(vc, begun, upto=-1))
        await bench.ticks(2)
        for times in range(1, 6):
            for _ in range(times):
                await bench.set("rx_limit", cells_of(MAX_SDU))
            await receive(bench, [*pdu(0, b"new" * 30), *pdu(0, begun, upto=-1)])
            await bench.ticks(2)
        await receive(bench, pdu(1, begun)[-1:])
        await bench.ticks(2)
        assert statuses(host) == [PduStatus.OK] * 5
        assert statuses(host, 1) == [PduStatus.OK if len(begun) == 100 else PduStatus.OVERLENGTH]
        assert await bench.get("rx_pdus", 3) == 0

    run(small(width), test)


@pytest.mark.parametrize("clock", range(30))
def test_a_set_up_at_any_clock_of_a_tick_that_brings_a_cell(clock):
    """Narrow: the cell is being looked up, decided on, or on its way to the VC's state. Until it is decided on, it is
    of after the set-up and the PDU that follows has it in front; from then on it is forgotten."""

    async def test(bench):
        await configure(bench)
        host = Host(bench)
        seen = 0

        def after_clock():
            nonlocal seen
            host.after_clock()
            csr = bench.node.csr
            bench.ctx.set(csr.w_en, seen == clock)
            bench.ctx.set(csr.addr, bench.node.registers["rx_limit"].addr)
            bench.ctx.set(csr.w_data, cells_of(MAX_SDU))
            seen += 1

        bench.after_clock = after_clock
        await receive(bench, pdu(0, bytes(100), upto=1))
        await bench.ticks(3)
        assert seen > clock + 2
        bench.after_clock = host.after_clock
        await receive(bench, [*pdu(0, b"new" * 30), *pdu(0, b"next")])
        await bench.ticks(2)
        first, second = statuses(host)
        assert second is PduStatus.OK
        assert first is PduStatus.OK or (first is PduStatus.LOST_LAST and clock < 12)

    run(small(NARROW), test, seed=clock)


@pytest.mark.parametrize("width", WIDTHS)
def test_the_look_up_written_again_is_no_set_up(width):
    async def test(bench):
        await configure(bench)
        host = Host(bench)
        cells = pdu(0, bytes(150))
        await receive(bench, cells[:2])
        await bench.apply(lookup_table(VCS, {(0, *vpi_vci(vc)): vc for vc in range(VCS)}).write)
        await receive(bench, cells[2:])
        await bench.ticks(2)
        assert statuses(host) == [PduStatus.OK]

    run(small(width), test)


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("width", WIDTHS)
def test_a_transmit_vc_that_is_set_up_again_may_send_at_once(width, again):
    async def test(bench):
        await configure(bench, periods=(20, 0, 0, 0))
        host = Host(bench)
        host.post(0, b"one")
        await bench.ticks(5)
        if again:
            await bench.set("tx_header", int(Header(0, 99)))
        host.post(0, b"two")
        await bench.ticks(40)
        first, second = bench.came_out
        assert second.tick - first.tick < 9 if again else second.tick - first.tick == 20
        assert second.as_header().vci == (99 if again else 32)
        assert second.payload == segment(second.as_header(), b"two")[0].payload

    run(small(width), test)


# The reassembly timer


@pytest.mark.parametrize("width", WIDTHS)
def test_pdus_that_never_end_are_given_up_in_time(width):
    """The PDUs of two of four VCs stop, one of them beyond its limit. They end after the time-out, and at most a
    quarter of it later. The next cells of these VCs begin another PDU.
    """
    timeout = 160

    async def test(bench):
        await configure(bench)
        host = Host(bench)
        await bench.set("rx_timeout", timeout)
        await receive(bench, pdu(0, bytes(150), upto=2))
        await bench.ticks(30)
        began = bench.now
        await receive(bench, pdu(1, bytes(4 * MAX_SDU), upto=8))
        await bench.ticks(20)
        ends = {}
        while bench.now < began + 2 * timeout:
            cells = pdu(2, bytes(80)) if bench.now % 7 == 0 else []
            await receive(bench, cells)
            await bench.tick()
            for vc in (0, 1):
                if statuses(host, vc):
                    ends.setdefault(vc, bench.now)
        assert statuses(host) == statuses(host, 1) == [PduStatus.TIMEOUT]
        assert timeout <= ends[0] and ends[0] <= 1.25 * timeout + 5
        assert timeout <= ends[1] - began <= 1.25 * timeout + 5
        assert set(statuses(host, 2)) == {PduStatus.OK}
        assert [await bench.get("rx_pdus", 8 * vc + 6) for vc in range(VCS)] == [1, 1, 0, 0]
        await receive(bench, [*pdu(0, bytes(150))[2:], *pdu(0, b"next"), *pdu(1, b"next")])
        await bench.ticks(2)
        assert statuses(host)[1:] == [PduStatus.LENGTH, PduStatus.OK]
        assert statuses(host, 1)[1:] == [PduStatus.OK]

    run(small(width), test)


@pytest.mark.parametrize("width", WIDTHS)
def test_the_timer_starts_with_each_pdu_and_forgets_with_a_set_up(width):
    """PDUs one after another, each in less than the time-out; half a PDU of a VC that is set up then."""
    timeout = 80

    async def test(bench):
        await configure(bench)
        host = Host(bench)
        await bench.set("rx_timeout", timeout)
        await receive(bench, pdu(1, bytes(100), upto=1))
        await bench.set("rx_limit", cells_of(MAX_SDU), 1)
        for _ in range(6):
            for cell in pdu(0, bytes(100)):
                await bench.tick(Arrival(cell))
                await bench.ticks(20)
        assert statuses(host) == [PduStatus.OK] * 6
        assert statuses(host, 1) == []
        if bench.wide:  # nothing is open
            assert bench.ctx.get(bench.node.status.due) == NEVER

    run(small(width), test)


def test_nothing_is_due_without_the_timer_and_all_is_in_time_if_only_due_ticks_pass():
    """Wide: whoever skips the node until it is due gets the same verdicts."""

    async def skip_to_due(bench, until):
        while bench.now < until:
            due = bench.ctx.get(bench.node.status.due)
            bench.now = min(max(bench.now, due), until)
            await bench.tick()

    async def test(bench):
        await configure(bench)
        host = Host(bench)
        await receive(bench, pdu(0, bytes(150), upto=2))
        assert bench.ctx.get(bench.node.status.due) == NEVER
        await bench.set("rx_timeout", 100_000)
        await skip_to_due(bench, 99_000)
        assert host.received == []
        await skip_to_due(bench, 126_000)
        assert statuses(host) == [PduStatus.TIMEOUT]
        assert bench.ctx.get(bench.node.status.due) == NEVER

    run(small(WIDE), test)


# A post while a PDU is being sent


@pytest.mark.parametrize("line", [1, 1.5, 2])
@pytest.mark.parametrize("width", WIDTHS)
def test_a_post_waits_for_one_cell_at_most(width, line):
    async def test(bench):
        await configure(bench, line=line)
        host = Host(bench)
        host.post(0, bytes(48 * 60))
        await bench.ticks(10)
        for vc in (1, 2, 3):
            host.post(vc, bytes(48 * 5))
            before = bench.now
            while host.queues[vc] or host.offered:
                await bench.tick()
            assert bench.now - before <= 3
        await bench.ticks(160)
        assert host.done
        # At two ticks a cell and more a post costs the line nothing, below that a tick.
        ticks = sorted(out.tick for out in bench.came_out)
        assert len(ticks) == 61 + 3 * 6
        assert ticks[-1] - ticks[0] <= line * (len(ticks) - 1) + (3 if line < 2 else 0)

    run(small(width), test)


# The wrap of time


def across(start, width, traffic):
    """The node's cells and verdicts with a ``traffic(bench, host)`` that begins at a tick."""
    found = []

    async def test(bench):
        bench.now = start
        await configure(bench, line=1.5, periods=(7, 0, 20.25, 0), tolerance=3)
        await bench.set("rx_timeout", 200)
        host = Host(bench)
        await traffic(bench, host)
        assert host.done
        found.extend((out.tick - start, out.header, out.payload) for out in bench.came_out)
        found.extend(host.received)

    run(small(width), test)
    return found


@pytest.mark.parametrize("before", [1, 37, 150])
@pytest.mark.parametrize("width", WIDTHS)
def test_the_wrap_of_time_changes_nothing(width, before):
    async def traffic(bench, host):
        rng = random.Random(3)
        for _ in range(10):
            host.post(rng.randrange(VCS), rng.randbytes(rng.randrange(1, 150)))
        await receive(bench, pdu(1, bytes(150), upto=2))
        await bench.ticks(600)

    assert across(2**48 - before, width, traffic) == across(1000, width, traffic)


@pytest.mark.parametrize("silence", [2**47 - 100, 2**47 + 5, 2**48 - 2**26])
@pytest.mark.parametrize("width", WIDTHS)
def test_a_line_that_was_silent_for_long_is_free(width, silence):
    async def test(bench):
        bench.now = 1000
        await configure(bench, line=4)
        host = Host(bench)
        host.post(0, b"one")
        await bench.ticks(10)
        bench.skip(silence)
        start = bench.now
        host.post(1, b"two")
        await bench.ticks(10)
        assert [out.tick - start < 5 for out in bench.came_out] == [True, True]

    run(small(width), test)


def test_cells_go_in_the_slots_of_a_ds3_s_frames_at_both_widths():
    """PDUs of three VCs, back to back and with pauses, for a frame and a half: each cell in a slot, none left out."""
    found = []
    for width in WIDTHS:

        async def test(bench):
            rng = random.Random(3)
            await bench.reset()
            length, cycle = frame_times(0.0)
            await bench.set("line_slot", length)
            await bench.set("line_cycle", cycle)
            await bench.set("tolerance", 60)
            for vc in range(VCS):
                await bench.set("tx_header", int(Header(*vpi_vci(vc))), vc)
                await bench.set("tx_period", length, vc)
            host = Host(bench)
            host.post(0, rng.randbytes(400))
            await bench.ticks(700)
            host.post(1, rng.randbytes(90))
            await bench.ticks(150)
            host.post(2, rng.randbytes(20))
            await bench.ticks(300)
            found.append([(out.tick, out.header) for out in bench.came_out])

        run(Nic(width=width, vcs=VCS, frames=1), test)
    assert found[0] == found[1] and len(found[0]) == 13
    grid = [int(begin / Fraction(53, 299_520_000)) for begin, _ in itertools.islice(slots(), 40)]
    ticks = [tick for tick, _ in found[0]]
    assert set(ticks) <= set(grid)
    first = grid.index(ticks[0])
    assert ticks[:9] == grid[first : first + 9]
