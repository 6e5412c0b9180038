"""Runs inside cocotb: the NIC. Started by test_nic.py."""

import random
from collections import Counter
from fractions import Fraction
from itertools import pairwise

import cocotb
from bentpipe_hdl.lookup_table import lookup_table
from bentpipe_hdl.nic.control import nic_registers
from bentpipe_sim.interface import PduStatus
from cocotb_nodes.environment import Arrival, Environment, Pdu, gaps
from models.aal5 import MAX_SDU, Reassembler, cells_of, cpcs_pdu, segment
from models.cell import Cell, Header
from models.crc import crc32_aal5
from models.gcra import VirtualScheduling
from models.registers import addresses, written

VCS = 64
NIC = nic_registers(vcs=VCS)
AT = {register.name: register.addr for register in NIC.registers}
COUNTERS = ("tx_refused", "rx_unknown", "rx_hec", "rx_oam", "rx_over", "tx_cells", "rx_cells", "rx_pdus")
CORNERS = [1, 2, 39, 40, 41, 44, 47, 48, 49, 87, 88, 89, 95, 96, 97, 136, 137]
VERDICTS = [status for status in PduStatus if status < PduStatus.TIMEOUT]


def vpi_vci(vc):
    vpi = vc * 7 % 256
    return vpi, vpi ^ vc | vc + 4 << 8


def header_of(vc):
    return Header(*vpi_vci(vc), clp=vc & 1, gfc=vc % 16)


def settings(line=1, tolerance=0, periods=None, max_sdu=None):
    """The registers of the NIC: every table whole, so that nothing of an earlier test is left."""

    def write(csr):
        csr.line_period, csr.tolerance, csr.nni = int(line * 65536), tolerance, 0
        for vc in range(VCS):
            csr.tx_header[vc] = int(header_of(vc))
            csr.rx_limit[vc] = cells_of((max_sdu or {}).get(vc, MAX_SDU))
            csr.tx_period[vc] = int((periods or {}).get(vc, line) * 65536)
        lookup_table(VCS, {(0, *vpi_vci(vc)): vc for vc in range(VCS)}).write(csr)

    return written(NIC, write)


async def started(dut, **values):
    environment = Environment(dut)
    await environment.start()
    await environment.write(settings(**values))
    return environment


def check_segmentation(environment, pdus):
    """Every VC's cells are those of its PDUs, in order."""
    expected = {vc: [] for vc in range(VCS)}
    for pdu in pdus:
        cells = segment(header_of(pdu.vc), pdu.octets, pdu.uu, pdu.cpi)
        expected[pdu.vc] += [(int(cell.header), cell.payload) for cell in cells]
    got = {vc: [] for vc in range(VCS)}
    numbers = {vpi_vci(vc): vc for vc in range(VCS)}
    for out in environment.sink.cells:
        header = out.as_header()
        got[numbers[header.vpi, header.vci]].append((out.header, out.payload))
    for vc in range(VCS):
        for k, (cell, wanted) in enumerate(zip(got[vc], expected[vc], strict=False)):
            assert cell == wanted, f"VC {vc}, cell {k}"
        assert len(got[vc]) == len(expected[vc]), f"VC {vc}"
    return {AT["tx_cells"] + vc: len(cells) for vc, cells in expected.items()}


async def settle(environment, most):
    await environment.ticks_until(lambda: environment.host.done and not environment.source.queue, most)
    await environment.ticks(5)


async def check_counters(environment, expected):
    found = dict(zip(expected, await environment.read_all(expected), strict=True))
    assert found == expected


@cocotb.test()
async def segmentation(dut):
    """PDUs of 1 to 65535 octets, of 64 VCs at once: padding, UU, CPI, length and CRC-32, octet by octet."""
    environment = await started(dut, line=Fraction(9, 8))
    rng = random.Random(1)
    lengths = [*range(1, 150), *(48 * rng.randrange(4, 40) + k for k in range(36, 46)), 65535]
    lengths += [65528] if environment.wide else []
    rng.shuffle(lengths)
    pdus = [
        Pdu(rng.randrange(VCS), rng.randbytes(length), rng.randrange(256), rng.randrange(256)) for length in lengths
    ]
    for pdu in pdus:
        environment.host.send(pdu)
    running = True
    rewrites = [
        write for write in settings(line=Fraction(9, 8)) if write[0] in addresses(NIC, "tx_header", "tx_period")
    ]
    watch = cocotb.start_soon(environment.watch(addresses(NIC, "tx_cells"), [], lambda: running))
    await environment.write(rewrites)  # what the tables have already, while cells flow
    await settle(environment, 10_000)
    running = False
    assert await watch > 100
    await check_counters(environment, check_segmentation(environment, pdus) | {AT["tx_refused"]: 0})


@cocotb.test()
async def every_vc_has_its_rate(dut):
    """64 VCs, each with its own cell rate and something to send all the time, at 95 % of a line: no cell of a VC or of
    the line is early by GCRA, and none is missing."""
    tolerance, line, ticks = 4, Fraction(5, 4), 3000
    rng = random.Random(2)
    weights = [rng.choice([1, 2, 3, 7, 15]) for _ in range(VCS)]
    # VC k gets its weight's share of 95 % of the line; periods have 16 fraction bits
    periods = {
        vc: Fraction(int(line * sum(weights) / weight / Fraction(95, 100) * 65536), 65536)
        for vc, weight in enumerate(weights)
    }
    environment = await started(dut, line=line, tolerance=tolerance, periods=periods)
    for vc in range(VCS):
        for _ in range(2 if weights[vc] < 10 else 12):
            environment.host.send(Pdu(vc, bytes(48 * int(ticks / periods[vc] / (2 if weights[vc] < 10 else 12) + 2))))
    await environment.ticks(ticks)
    numbers = {vpi_vci(vc)[1]: vc for vc in range(VCS)}
    line_check = VirtualScheduling(line, 1)
    assert all(line_check.conforms(out.tick) for out in environment.sink.cells)
    came = {vc: [] for vc in range(VCS)}
    for out in environment.sink.cells:
        came[numbers[out.as_header().vci]].append(out.tick)
    for vc, times in came.items():
        check = VirtualScheduling(periods[vc], tolerance + 1)
        assert all(check.conforms(tick) for tick in times), f"VC {vc}"
        due = (ticks - times[0]) / periods[vc]
        assert abs(len(times) - due) <= 2 + due / 50, f"VC {vc}: {len(times)} cells, not {float(due):.1f}"


@cocotb.test()
async def vcs_without_a_rate_share_the_line(dut):
    """64 VCs at the line's own period: the line is never idle, and no VC gets two cells more than another."""
    environment = await started(dut, line=2)
    for vc in range(VCS):
        environment.host.send(Pdu(vc, bytes(48 * 40)))
    await environment.ticks(1200)
    cells = [out for out in environment.sink.cells if 200 <= out.tick < 1190]
    assert {b.tick - a.tick for a, b in pairwise(cells)} == {2}
    shares = Counter(out.as_header().vci for out in cells)
    assert len(shares) == VCS and max(shares.values()) - min(shares.values()) <= 1


def damaged(cells, rng):
    """The cells of a PDU after a line that loses cells and flips bits."""
    fate = rng.random()
    if fate < 0.15:
        del cells[rng.randrange(len(cells))]
    elif fate < 0.3:
        del cells[-1]
    elif fate < 0.45:
        k = rng.randrange(len(cells))
        payload = bytearray(cells[k].payload)
        payload[rng.choice([rng.randrange(48), 42, 43])] ^= 1 << rng.randrange(8)
        cells[k] = Cell(cells[k].header, bytes(payload))
    return cells


def incoming(rng, max_sdu, count):
    """PDUs of 64 VCs, cell by cell in any interleaving; those of odd VCs are damaged. Cells that are for nobody."""
    waiting = [[] for _ in range(VCS)]
    for _ in range(count):
        draw, vc = rng.random(), rng.randrange(VCS)
        vpi, vci = vpi_vci(vc)
        if draw < 0.02:
            yield Arrival(Cell(Header(vpi, vci ^ 1 << 8, rng.randrange(4)), rng.randbytes(48)))
        elif draw < 0.06:
            yield Arrival(Cell(Header(vpi, vci, rng.randrange(4, 8)), rng.randbytes(48)))
        elif draw < 0.08:
            yield Arrival(Cell(Header(vpi, vci, rng.randrange(4)), rng.randbytes(48)), hec_error=True)
        else:
            while not waiting[vc]:
                sdu = rng.randbytes(rng.choice([*CORNERS, 200, 500, 700] if vc % 2 else [*CORNERS, max_sdu[vc]]))
                if vc % 2 and rng.random() < 0.1:
                    sdu = b""
                header = Header(vpi, vci, rng.choice([0, 2]), rng.getrandbits(1), rng.randrange(16))
                waiting[vc] = segment(header, sdu, rng.randrange(256), rng.randrange(256))
                if vc % 2:
                    waiting[vc] = damaged(waiting[vc], rng)
            yield Arrival(waiting[vc].pop(0))


def check_reassembly(environment, max_sdu):
    """Every PDU's verdict and octets are the model's; the counters as they have to be."""
    numbers = {vpi_vci(vc): vc for vc in range(VCS)}
    model = Reassembler({vpi_vci(vc): limit for vc, limit in max_sdu.items()})
    expected, strays, taken = [], Counter(), Counter()
    for _, arrival in environment.source.sent:
        header = arrival.cell.header
        vc = numbers.get((header.vpi, header.vci))
        if arrival.hec_error:
            strays["hec"] += 1
        elif vc is None:
            strays["unknown"] += 1
        elif not header.user:
            strays["oam"] += 1
        else:
            ended = model.receive(arrival.cell)
            taken[vc] += 1
            if ended:
                expected.append((vc, ended[1]))
                over = max(0, ended[1].cells - cells_of(max_sdu[vc]))
                taken[vc] -= over
                strays["over"] += over
    got = environment.host.received
    for (vc, result), pdu in zip(expected, got, strict=True):
        assert (pdu.vc, pdu.status) == (vc, result.status)
        if result.status is PduStatus.OK:
            assert (pdu.length, pdu.uu, pdu.cpi) == (len(result.sdu), result.uu, result.cpi)
            assert pdu.octets[: pdu.length] == result.sdu
        assert len(pdu.octets) == 48 * min(result.cells, cells_of(max_sdu[vc]))
    # Cells of a PDU that has not ended yet and is over its limit already
    for vc, limit in max_sdu.items():
        over = max(0, model.vcs[vpi_vci(vc)]._cells - cells_of(limit))
        taken[vc] -= over
        strays["over"] += over
    counters = {AT[f"rx_{why}"]: strays[why] for why in ("unknown", "hec", "oam", "over")}
    tally = Counter((vc, result.status) for vc, result in expected)
    for vc in range(VCS):
        counters |= {AT["rx_cells"] + vc: taken[vc]}
        counters |= {AT["rx_pdus"] + 8 * vc + status: tally[vc, status] for status in VERDICTS}
    return expected, counters


@cocotb.test()
async def both_ways_at_once(dut):
    """64 VCs each way, back to back and with gaps: damage of one VC touches no other, sending touches no receiving."""
    rng = random.Random(3)
    max_sdu = {vc: rng.choice([200, 400, MAX_SDU]) if vc % 2 else rng.choice([300, 1000]) for vc in range(VCS)}
    values = {"line": Fraction(3, 2), "max_sdu": max_sdu}
    environment = await started(dut, **values)
    environment.source.pause = gaps(rng)
    environment.source.queue.extend(incoming(rng, max_sdu, 3000))
    pdus = [
        Pdu(rng.randrange(VCS), rng.randbytes(rng.choice([*CORNERS, 1000])), rng.randrange(256)) for _ in range(400)
    ]
    for pdu in pdus:
        environment.host.send(pdu)
    running = True
    counters = addresses(NIC, *(name for name in COUNTERS if name.startswith("rx")))
    rewrites = [write for write in settings(**values) if write[0] in addresses(NIC, "tx_period", "lookup")]
    watch = cocotb.start_soon(environment.watch(counters, rewrites, lambda: running))
    await settle(environment, 30_000)
    running = False
    assert await watch > 100
    expected, counters = check_reassembly(environment, max_sdu)
    assert set(VERDICTS) == {result.status for _, result in expected}
    assert all(result.status is PduStatus.OK for vc, result in expected if vc % 2 == 0)
    await check_counters(environment, counters | check_segmentation(environment, pdus))


@cocotb.test()
async def each_error_by_itself(dut):
    """One PDU a verdict on one VC, each followed by a good one; a PDU of 65535 octets on another meanwhile."""
    max_sdu = dict.fromkeys(range(VCS), 300) | {9: MAX_SDU}
    environment = await started(dut, max_sdu=max_sdu)
    rng = random.Random(4)
    header = Header(*vpi_vci(5))

    def good(length=200):
        return segment(header, rng.randbytes(length), rng.randrange(256), rng.randrange(256))

    def changed(length_field, crc_right):
        pdu = bytearray(cpcs_pdu(rng.randbytes(200)))
        pdu[-6:-4] = length_field.to_bytes(2, "big")
        if crc_right:
            pdu[-4:] = crc32_aal5(bytes(pdu[:-4])).to_bytes(4, "big")
        cells = good()
        return [Cell(cell.header, bytes(pdu[48 * k : 48 * k + 48])) for k, cell in enumerate(cells)]

    hit = good()
    hit[1] = Cell(hit[1].header, bytes([hit[1].payload[0] ^ 0x80]) + hit[1].payload[1:])
    cases = [
        (hit, PduStatus.CRC),
        (good()[1:], PduStatus.LENGTH),
        (good()[:2] + good()[3:], PduStatus.LENGTH),
        (good(41)[:-1] + good(41), PduStatus.LOST_LAST),
        (good(301 + 48), PduStatus.OVERLENGTH),
        (segment(header, b""), PduStatus.ABORT),
        (changed(0, True), PduStatus.ABORT),
        (changed(0, False), PduStatus.LOST_LAST),
        (changed(65535, False), PduStatus.LENGTH),
        (changed(100, True), PduStatus.LENGTH),
        (changed(201, False), PduStatus.CRC),
        (changed(232, True), PduStatus.OK),
    ]
    wanted = []
    longest = segment(Header(*vpi_vci(9)), rng.randbytes(MAX_SDU), 1, 2)
    for cells, status in cases:
        for one, verdict in ((cells, status), (good(), PduStatus.OK)):
            wanted.append((5, verdict))
            for cell in one:
                environment.source.queue.extend([Arrival(cell), Arrival(longest.pop(0))])
    environment.source.queue.extend(map(Arrival, longest))
    wanted.append((9, PduStatus.OK))
    await settle(environment, 5000)
    assert [(pdu.vc, pdu.status) for pdu in environment.host.received] == wanted
    _, counters = check_reassembly(environment, max_sdu)
    await check_counters(environment, counters)


@cocotb.test()
async def reset_forgets_what_was_under_way(dut):
    """Reset in the middle of PDUs both ways, at many places: afterwards all is as in the beginning."""
    environment = Environment(dut)
    await environment.start()
    rng = random.Random(5)
    max_sdu = dict.fromkeys(range(VCS), 1000)
    for _ in range(4):
        await environment.write(settings(max_sdu=max_sdu))
        environment.source.queue.extend(incoming(rng, max_sdu, 60))
        for vc in range(VCS):
            environment.host.send(Pdu(vc, rng.randbytes(300)))
        environment.running = True
        clocks = iter(range(rng.randrange(20, 80 if environment.wide else 700)))
        await environment.until(lambda clocks=clocks: next(clocks, None) is None)
        await environment.reset()
        await check_counters(environment, dict.fromkeys(addresses(NIC, *COUNTERS), 0))
        await environment.write(settings(max_sdu=max_sdu))
        environment.source.queue.extend(incoming(rng, max_sdu, 100))
        pdus = [Pdu(rng.randrange(VCS), rng.randbytes(rng.choice(CORNERS))) for _ in range(40)]
        for pdu in pdus:
            environment.host.send(pdu)
        await settle(environment, 3000)
        _, counters = check_reassembly(environment, max_sdu)
        await check_counters(environment, counters | check_segmentation(environment, pdus))
