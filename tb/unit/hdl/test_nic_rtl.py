"""The NIC in RTL: AAL5 both ways against the model, pacing against GCRA; on both datapaths."""

import random
from collections import defaultdict

import pytest

from bentpipe_hdl.cell import NARROW, WIDE
from bentpipe_hdl.lookup import lookup_table
from bentpipe_hdl.nodes.nic import Nic
from bentpipe_sim.interface import PduStatus
from models.aal5 import Reassembler, cells_of, segment
from models.cell import Cell, Header
from models.gcra import VirtualScheduling
from unit.hdl.bench import WIDTHS, Arrival, run

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
                self.chunks[vc].append((get(nic.rx_index), get(nic.rx_payload).to_bytes(48, "little")))
            else:
                self.words.append(get(nic.rx_word).to_bytes(4, "little"))
                if len(self.words) == 12:
                    self.chunks[vc].append((get(nic.rx_index), b"".join(self.words)))
                    self.words = []
        if get(nic.rx_last):
            assert not self.words
            chunks = self.chunks.pop(vc, [])
            assert [index for index, _ in chunks] == list(range(len(chunks)))
            status = PduStatus(get(nic.rx_status.as_value() if hasattr(nic.rx_status, "as_value") else nic.rx_status))
            fields = (get(nic.rx_length), get(nic.rx_uu), get(nic.rx_cpi))
            self.received.append((vc, status, *fields, b"".join(octets for _, octets in chunks)))


def vpi_vci(vc):
    return 16 * vc, 32 + vc


async def configure(bench, *, line=1.0, periods=(0,) * VCS, tolerance=0, max_sdu=MAX_SDU):
    await bench.reset()
    await bench.write_wide(0x0010, round(line * 65536))
    await bench.write(0x0012, tolerance)
    for vc in range(VCS):
        vpi, vci = vpi_vci(vc)
        await bench.write(0x10000 + vc, int(Header(vpi, vci)))
        await bench.write_wide(0x20000 + 2 * vc, round((periods[vc] or line) * 65536))
        await bench.write(0x40000 + vc, cells_of(max_sdu))
    for write in lookup_table(VCS, {(0, *vpi_vci(vc)): vc for vc in range(VCS)}).writes():
        await bench.write(*write)


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
    the same verdicts in the same order as the model's, and the octets of every good PDU."""
    rng = random.Random(seed)
    numbers = {vpi_vci(vc): vc for vc in range(VCS)}

    async def test(bench):
        await configure(bench)
        host = Host(bench)
        model = Reassembler({vpi_vci(vc): MAX_SDU for vc in range(VCS)})
        expected = []
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
                ended = model.receive(cell)
                if ended:
                    expected.append((numbers[ended[0]], ended[1]))
            await bench.tick(Arrival(cell, hec_error=bad))
        await bench.ticks(4)
        got = host.received
        assert [(vc, status) for vc, status, *_ in got] == [(vc, r.status) for vc, r in expected]
        for (_, status, length, uu, cpi, octets), (_, result) in zip(got, expected, strict=True):
            if status is PduStatus.OK:
                assert (length, uu, cpi, octets[:length]) == (len(result.sdu), result.uu, result.cpi, result.sdu)
            if status is PduStatus.OVERLENGTH:
                assert len(octets) == 48 * cells_of(MAX_SDU)
        assert {r.status for _, r in expected} == set(PduStatus) - {PduStatus.SENT}
        for vc in range(VCS):
            counted = [await bench.read(0x60000 + 8 * vc + k) for k in range(6)]
            assert counted == [sum(v == vc and r.status == k for v, r in expected) for k in range(6)]
        assert [await bench.read(addr) for addr in (0x80, 0x81, 0x82)] == [
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
            assert await bench.read(0x30000 + vc) == len(expected[vc])

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
        assert await bench.read(0x14) == 2
        assert len(bench.came_out) == cells_of(200)

    run(small(width), test)
