"""A node at 32 bits does what it does at 416: the same cells in the same ticks, the same drops, verdicts, counters.

Both are compiled from Amaranth's own Verilog and play the same script of random traffic and settings, one clock after
another; ticks have 13 clocks or more, follow each other at once or after a gap, or are left out while a node is idle.
"""

import random

import pytest

from benches.build import library_of, shape_of
from benches.compiled import Compiled
from benches.ticks import SINGLE, Cell, Script, play
from bentpipe_hdl.bit_errors import scale_of
from bentpipe_hdl.cell import NARROW, WIDE
from bentpipe_hdl.link.control import link_registers
from bentpipe_hdl.lookup_table import lookup_table
from bentpipe_hdl.nic.control import nic_registers
from bentpipe_hdl.nodes import Link, Nic, Switch
from bentpipe_hdl.switch.control import switch_registers
from bentpipe_hdl.switch.options import options_word
from bentpipe_hdl.switch.options.oam.control import MADE, POINT, TAKEN
from bentpipe_hdl.switch.registers import REASON_BITS, REASONS
from bentpipe_hdl.test_cells.cells import TestCell, TestCellError, stamp_of
from bentpipe_hdl.test_cells.cells import pack as pack_test_cell
from bentpipe_hdl.test_cells.cells import unpack as unpack_test_cell
from models.aal5 import cells_of, segment
from models.cell import Header, Interface
from models.credits import payload
from models.oam import octets
from models.registers import addresses, written

VCS = 8
PORTS = 3
CELLS = 24
RM = 6
NIC = nic_registers(vcs=VCS)
SWITCH = switch_registers(vcs=VCS, cells=CELLS, ports=PORTS)


def _library(node):
    return library_of(shape_of(node), node.width)


def compare(make, script, seed):
    """Play the script on both widths; the wide record, for a look at whether the script was worth it."""
    wide, narrow = (play(script, Compiled(_library(make(width))), width, seed) for width in (WIDE, NARROW))
    for k, (expected, got) in enumerate(zip(wide.came_out, narrow.came_out, strict=False)):
        assert got == expected, f"cell {k}"
    assert len(narrow.came_out) == len(wide.came_out)
    assert narrow.ends == wide.ends
    for expected, got in zip(wide.log, narrow.log, strict=False):
        assert got == expected
    assert len(narrow.log) == len(wide.log)
    for expected, got in zip(wide.received, narrow.received, strict=False):
        assert got == expected
    assert len(narrow.received) == len(wide.received)
    assert narrow.counters == wide.counters
    return wide


def times(rng, end):
    """Ticks in which cells come: bursts back to back, mixed traffic, long gaps."""
    now = 3
    while now < end:
        share, length = rng.choice([(1.0, 60), (0.95, 200), (0.5, 200), (0.1, 300), (0.01, 600)])
        stop = min(now + rng.randrange(1, length), end)
        for tick in range(now, stop):
            if rng.random() < share:
                yield tick
        now = stop


# The switch


def switch_script(rng, end, registers=SWITCH, more=lambda csr: None):
    """``more`` writes settings besides, every now and then."""
    script = Script(end=end + 2000)
    vcs = []

    def start(csr):
        csr.processing_delay, csr.nni = rng.choice([1, 2, 9]), 0b100
        for port in range(PORTS):
            csr.period[port] = rng.randrange(1 << 16, 6 << 16)
        for k in range(VCS):
            port, vpi, vci = k % PORTS, 16 * (k // PORTS), 32 + k
            vcs.append((port, vpi, vci))
        lookup_table(VCS, {vc: k for k, vc in enumerate(vcs)}).write(csr)

    def policies(csr):
        csr.capacity, csr.epd_threshold = rng.choice([9, 15, 24]), rng.randrange(4, 20)
        csr.clp_threshold = rng.randrange(4, 20)
        csr.user_capacity = rng.choice([5, 12, 24, 24])
        for k in range(VCS):
            word = rng.choice([2, 3, 6, 0xFFFF]) | rng.randrange(1, 8) << 16 | rng.getrandbits(3) << 36
            port, enabled = rng.randrange(PORTS + (rng.random() < 0.05)), rng.random() < 0.95
            csr.vc_policy[k] = word | port << 32 | enabled << 39
            csr.vc_header[k] = rng.getrandbits(28)
        more(csr)

    def interfaces(csr):
        csr.nni = rng.getrandbits(3)

    script.writes[1] = written(registers, start)
    for tick in (2, *sorted(rng.sample(range(3, end), 30))):
        script.writes[tick] = written(registers, policies, *([interfaces] if tick > 2 else []))
    frames = [[] for _ in range(VCS)]
    for tick in times(rng, end):
        draw = rng.random()
        k = rng.randrange(VCS) if rng.random() < 0.7 else 0
        port, vpi, vci = vcs[k]
        if draw < 0.04:
            script.cells[tick] = Cell(rng.getrandbits(32), rng.randbytes(48), port)
        elif draw < 0.1:
            header = Header(vpi, vci, rng.randrange(4, 8), rng.getrandbits(1), gfc=rng.choice([0, 0, 5]))
            script.cells[tick] = Cell(int(header), rng.randbytes(48), port)
        else:
            if not frames[k]:
                header = Header(vpi, vci, rng.choice([0, 2]), int(rng.random() < 0.2), interface=Interface.NNI)
                frames[k] = segment(header, rng.randbytes(rng.choice([1, 40, 41, 100, 300])))
            cell = frames[k].pop(0)
            script.cells[tick] = Cell(int(cell.header), cell.payload, port, int(rng.random() < 0.03))
    script.reads = addresses(
        registers, "occupancy", "high_water", "flushed", "unknown", "hec", "accepted", "departed", "dropped"
    )
    return script


def dropped(record, reason):
    """Cells dropped for it, by VC."""
    first = SWITCH["dropped"].addr + REASONS.index(reason)
    return [record.counters[first + (vc << REASON_BITS)] for vc in range(VCS)]


@pytest.mark.parametrize("seed", range(3))
def test_switch(seed):
    rng = random.Random(f"switch {seed}")
    script = switch_script(rng, 9000)
    record = compare(lambda width: Switch(width=width, vcs=VCS, cells=CELLS, ports=PORTS), script, seed)
    assert len(record.came_out) > 500
    for reason in ("full", "epd", "ppd", "clp", "reserve"):
        assert sum(dropped(record, reason)) > 10
    assert record.counters[SWITCH["occupancy"].addr] == 0, "the switch is empty in the end"
    assert record.counters[SWITCH["flushed"].addr] > 0, "something was flushed"


@pytest.mark.parametrize("seed", range(2))
def test_switch_that_polices(seed):
    rng = random.Random(f"police {seed}")
    options = options_word(["police"])
    registers = switch_registers(vcs=VCS, cells=CELLS, ports=PORTS, options=options)

    def contracts(csr):
        for index in range(2 * VCS):
            csr.police_limit[index] = rng.choice([0, rng.randrange(200 << 16), rng.randrange(4000 << 16)])
            flags = {name: rng.getrandbits(1) for name in ("tag", "clp0", "packets")}
            csr.police_rate[index] = {"increment": rng.randrange(1 << 16, 40 << 16), **flags} | {
                "enabled": int(rng.random() < 0.8)
            }

    script = switch_script(rng, 9000, registers, contracts)
    script.reads += addresses(registers, "upc_tagged")
    record = compare(
        lambda width: Switch(width=width, vcs=VCS, cells=CELLS, ports=PORTS, options=options), script, seed
    )
    assert len(record.came_out) > 500
    assert sum(dropped(record, "upc")) > 100
    assert sum(record.counters[addr] for addr in addresses(registers, "upc_tagged")) > 50


def with_messages(rng, script, header_of, offered_on):
    """Some cells become credit cells and probes of the same port, with counts up to what was offered of their VC."""
    offered = [0] * VCS
    for tick, cell in sorted(script.cells.items()):
        vc = offered_on(cell)
        if vc is not None and rng.random() < 0.2:
            kind = int(rng.random() < 0.3)
            count = rng.randrange(offered[vc ^ 1] * rng.choice([0, 1, 1, 2]) // 2, offered[vc ^ 1] + 2)
            octets = bytearray(payload(kind, count))
            if rng.random() < 0.1:
                octets[rng.randrange(48)] ^= 1 << rng.randrange(8)
            script.cells[tick] = Cell(header_of(cell) & ~0xF | RM << 1, bytes(octets), cell.port)
        elif vc is not None:
            offered[vc] += 1


@pytest.mark.parametrize("seed", range(2))
def test_switch_with_credits(seed):
    rng = random.Random(f"credits {seed}")
    options = options_word(["credits"])
    registers = switch_registers(vcs=VCS, cells=CELLS, ports=PORTS, options=options)

    def shares(csr):
        csr.credit_batch, csr.credit_step, csr.credit_last = rng.randrange(1, 5), rng.randrange(1, 40), VCS - 1
        for vc in range(VCS):
            csr.vc_credits[vc] = {
                "share": rng.choice([0, 1, 2, 5, 9]),
                "back": vc ^ 1 if rng.random() < 0.9 else rng.randrange(VCS),
                "back_port": rng.randrange(PORTS),
                "returns": int(rng.random() < 0.7),
            }

    script = switch_script(rng, 9000, registers, shares)
    numbers = {(k % PORTS, 16 * (k // PORTS), 32 + k): k for k in range(VCS)}
    with_messages(
        rng,
        script,
        lambda cell: cell.header,
        lambda cell: numbers.get((cell.port, cell.header >> 20 & 0xFF, cell.header >> 4 & 0xFFFF)),
    )
    counts = "came", "bad", "given", "probes", "holds", "freed", "lost"
    script.reads += addresses(registers, *(f"credit_{name}" for name in (*counts, "skipped")))
    record = compare(
        lambda width: Switch(width=width, vcs=VCS, cells=CELLS, ports=PORTS, options=options), script, seed
    )
    assert len(record.came_out) > 500
    for name in counts:
        assert sum(record.counters[addr] for addr in addresses(registers, f"credit_{name}")) > 20, name


@pytest.mark.parametrize("seed", range(2))
def test_switch_that_shapes(seed):
    rng = random.Random(f"shape {seed}")
    options = options_word(["shape"])
    registers = switch_registers(vcs=VCS, cells=CELLS, ports=PORTS, options=options)

    def contracts(csr):
        for index in range(2 * VCS):
            csr.shape_limit[index] = rng.choice([0, rng.randrange(200 << 16)])
            csr.shape_rate[index] = {"increment": rng.randrange(1 << 16, 60 << 16), "enabled": int(rng.random() < 0.7)}

    script = switch_script(rng, 9000, registers, contracts)
    record = compare(
        lambda width: Switch(width=width, vcs=VCS, cells=CELLS, ports=PORTS, options=options), script, seed
    )
    assert len(record.came_out) > 500
    assert record.counters[registers["occupancy"].addr] == 0, "the switch is empty in the end"


@pytest.mark.parametrize("seed", range(2))
def test_switch_with_virtual_paths(seed):
    """Half of the VPIs are paths'; any VCI comes with any of them, and what is a path changes as the VCs do."""
    rng = random.Random(f"paths {seed}")
    options = options_word(["vp"])
    registers = switch_registers(vcs=VCS, cells=CELLS, ports=PORTS, options=options)

    def paths(csr):
        entries = {(port, vpi, 0): rng.randrange(VCS) for port in range(PORTS) for vpi in (0, 32)}
        lookup_table(VCS, entries).write(csr, "vp_lookup")
        for k in range(VCS):
            csr.vc_header[k] = {"vpi": rng.getrandbits(12), "vci": rng.choice([0, 0, 77])}

    script = switch_script(rng, 9000, registers, paths)
    for tick, cell in script.cells.items():
        if rng.random() < 0.4:
            vpi, vci = rng.choice([0, 32]), rng.choice([0, 3, 4, *(rng.getrandbits(16) for _ in range(6))])
            script.cells[tick] = Cell(vpi << 20 | vci << 4 | cell.header & 0xF, cell.payload, cell.port)
    record = compare(
        lambda width: Switch(width=width, vcs=VCS, cells=CELLS, ports=PORTS, options=options), script, seed
    )
    assert len(record.came_out) > 500
    assert len({cell.header >> 4 & 0xFFFF for _, cell in record.came_out}) > 200, "VCIs pass"
    assert sum(dropped(record, "reserve")) > 10


@pytest.mark.parametrize("seed", range(2))
def test_switch_with_oam(seed):
    """F4 and F5 cells of all kinds, damaged or not, at points that change; half seconds of some hundred ticks; ports
    with defects; loopback cells that software asks for, of which some come back."""
    rng = random.Random(f"oam {seed}")
    options = options_word(["oam", "vp", "police"])
    registers = switch_registers(vcs=VCS, cells=CELLS, ports=PORTS, options=options)
    flags = [field.name for field in POINT if field.width == 1]
    here = rng.randbytes(16)

    def points(csr):
        csr.oam_last, csr.oam_interval = rng.choice([VCS - 1, 3]), rng.choice([0, 30, 100, 300])
        csr.oam_defects = rng.choice([0, 0, rng.getrandbits(PORTS)])
        for k in range(4):
            csr.oam_location[k] = int.from_bytes(here[4 * k : 4 * k + 4], "little")
            csr.oam_target[k] = rng.choice([0xFFFFFFFF, rng.getrandbits(32)])
        for vc in rng.sample(range(VCS), rng.choice([0, 2, VCS])):
            more = {"port": rng.randrange(PORTS), "back": rng.randrange(VCS), "parent": rng.randrange(VCS)}
            csr.oam_point[vc] = {name: int(rng.random() < 0.4) for name in flags} | more
            csr.police_limit[2 * vc] = rng.randrange(200 << 16)
            csr.police_rate[2 * vc] = {"increment": rng.randrange(1 << 16, 9 << 16), "enabled": rng.getrandbits(1)}
            csr.vc_header[vc] = {"vpi": rng.getrandbits(12), "vci": rng.choice([0, 77])}
        csr.oam_request = {name: rng.getrandbits(1) for name in ("segment", "path")} | {"vc": rng.randrange(VCS)}
        entries = {(port, 32, 0): rng.randrange(VCS) for port in range(PORTS)}
        lookup_table(VCS, entries).write(csr, "vp_lookup")

    script = switch_script(rng, 9000, registers, points)
    tags = 0
    for tick, cell in sorted(script.cells.items()):
        tags += tick in script.writes
        if rng.random() < 0.3:
            name = rng.choice(["ais", "rdi", "cc", "loopback", "loopback"])
            given = {"function": rng.getrandbits(4)} if rng.random() < 0.05 else {}
            if name == "loopback":
                locations = [here, here, b"\xff" * 16, bytes(16), b"\x6a" * 16, rng.randbytes(16)]
                at, source = (int.from_bytes(rng.choice(locations), "big") for _ in range(2))
                given |= {"location": at, "source": source, "tag": rng.choice([tags, rng.getrandbits(32)])}
                given |= {"indication": int(rng.random() < 0.7)}
            payload = bytearray(octets(name, **given))
            if rng.random() < 0.1:
                payload[rng.randrange(48)] ^= 1 << rng.randrange(8)
            header = cell.header & ~0xE | rng.choice([4, 5]) << 1
            if rng.random() < 0.3:
                header = rng.choice([0, 16, 32]) << 20 | rng.choice([3, 4]) << 4
            script.cells[tick] = Cell(header, bytes(payload), cell.port)
    names = [f"oam_{name}" for name in ("taken", "made", "changes", "answered", "late", "state")]
    script.reads += addresses(registers, "injected", *names, "oam_delay", "oam_log_low", "oam_log_high")
    record = compare(
        lambda width: Switch(width=width, vcs=VCS, cells=CELLS, ports=PORTS, options=options), script, seed
    )
    assert len(record.came_out) > 500
    for name, kinds in (("oam_taken", len(TAKEN)), ("oam_made", len(MADE))):
        first = registers[name].addr
        for k in range(min(kinds, TAKEN.index("no_place"))):
            assert sum(record.counters[first + kinds * vc + k] for vc in range(VCS)) > 0, (name, k)
    for name in ("injected", "oam_changes"):
        assert record.counters[registers[name].addr] > 20, name


# The NIC


def vpi_vci(vc):
    return 16 * (vc % 4), 32 + vc


def nic_script(rng, end, registers=NIC, more=lambda csr: None):
    """``more`` writes settings besides, every now and then."""
    script = Script(end=end + 20000)

    def start(csr):
        for vc in range(VCS):
            vpi, vci = vpi_vci(vc)
            csr.tx_header[vc] = int(Header(vpi, vci, clp=vc & 1, gfc=vc))
            csr.rx_limit[vc] = rng.choice([3, 5, 9])
        lookup_table(VCS, {(0, *vpi_vci(vc)): vc for vc in range(VCS)}).write(csr)

    def rates(csr):
        line = rng.choice([1 << 16, 5 << 14, rng.randrange(1 << 16, 5 << 16)])
        csr.line_period, csr.tolerance = line, rng.choice([0, 1, 7, 200])
        csr.rx_timeout = rng.choice([0, 1, 60, 2000])
        for vc in rng.sample(range(VCS), 2):
            csr.rx_limit[vc] = rng.choice([3, 5, 9])
            csr.tx_header[vc] = int(Header(*vpi_vci(vc)))
        for vc in range(VCS):
            csr.tx_period[vc] = line if rng.random() < 0.5 else rng.randrange(line, 30 << 16)
        more(csr)

    script.writes[1] = written(registers, start)
    for tick in (2, *sorted(rng.sample(range(3, end), 6))):
        script.writes[tick] = written(registers, rates)
    now = 3
    while now < end:
        now += rng.choice([0, 0, 1, 5, 10, 20, 60])
        length = rng.choice([0, 1, 39, 40, 41, 44, 47, 48, 49, 88, 89, 150, 300, 1000, rng.randrange(1, 3000)])
        script.posts.append((now, rng.randrange(VCS), length, rng.randrange(256), rng.randrange(256)))
    script.cells = dict(incoming(rng, end))
    script.reads = addresses(
        registers, "tx_refused", "rx_unknown", "rx_hec", "rx_oam", "rx_over", "tx_cells", "rx_cells", "rx_pdus"
    )
    return script


def incoming(rng, end):
    """PDUs of all VCs, some of them damaged, and cells that are for nobody."""
    waiting = [[] for _ in range(VCS)]
    for tick in times(rng, end):
        draw, vc = rng.random(), rng.randrange(VCS)
        vpi, vci = vpi_vci(vc)
        if draw < 0.03:
            yield tick, Cell(rng.getrandbits(32), rng.randbytes(48))
        elif draw < 0.06:
            yield tick, Cell(int(Header(vpi, vci, rng.randrange(4, 8))), rng.randbytes(48))
        else:
            if not waiting[vc]:
                sdu = rng.randbytes(rng.choice([0, 1, 40, 41, 88, 89, 150, 200, 250, 500]))
                cells = segment(Header(vpi, vci, rng.choice([0, 2]), rng.getrandbits(1)), sdu, rng.randrange(256), 3)
                cells = [(int(cell.header), bytearray(cell.payload)) for cell in cells]
                fate = rng.random()
                if fate < 0.15:
                    del cells[rng.randrange(len(cells))]
                elif fate < 0.25:
                    del cells[-1]
                elif fate < 0.4:
                    rng.choice(cells)[1][rng.choice([rng.randrange(48), 42, 43])] ^= 1 << rng.randrange(8)
                waiting[vc] = cells
            if waiting[vc]:
                header, payload = waiting[vc].pop(0)
                yield tick, Cell(header, bytes(payload), 0, int(rng.random() < 0.02))


@pytest.mark.parametrize("seed", range(3))
def test_nic(seed):
    rng = random.Random(f"nic {seed}")
    script = nic_script(rng, 6000)
    record = compare(lambda width: Nic(width=width, vcs=VCS), script, seed)
    assert len(record.came_out) > 1000
    for verdict in range(7):
        assert sum(record.counters[NIC["rx_pdus"].addr + 8 * vc + verdict] for vc in range(VCS)) > 5
    assert record.counters[NIC["tx_refused"].addr] > 5
    sent = sum(entry[1] == "done" for entry in record.log)
    assert sent == len(script.posts) - record.counters[NIC["tx_refused"].addr]


def test_nic_with_sustained_rates():
    rng = random.Random("sustained")
    registers = nic_registers(vcs=VCS, sustained=1)

    def sustain(csr):
        for vc in range(VCS):
            csr.tx_burst[vc] = rng.choice([0, rng.randrange(200 << 16)])
            csr.tx_sustained[vc] = {"increment": rng.randrange(1 << 16, 60 << 16), "enabled": int(rng.random() < 0.8)}

    script = nic_script(rng, 6000, registers, sustain)
    record = compare(lambda width: Nic(width=width, vcs=VCS, sustained=1), script, 1)
    assert len(record.came_out) > 1000


def test_nic_with_credits():
    rng = random.Random("credits")
    registers = nic_registers(vcs=VCS, credits=1)

    def shares(csr):
        csr.credit_step, csr.credit_last = rng.randrange(1, 100), VCS - 1
        for vc in range(VCS):
            csr.tx_share[vc] = rng.choice([0, 1, 3, 20])
            csr.rx_back[vc] = {"vc": vc ^ 1, "takes": int(rng.random() < 0.8)}

    script = nic_script(rng, 6000, registers, shares)
    numbers = {vpi_vci(vc): vc for vc in range(VCS)}
    with_messages(
        rng,
        script,
        lambda cell: cell.header,
        lambda cell: numbers.get((cell.header >> 20 & 0xFF, cell.header >> 4 & 0xFFFF)),
    )
    quiet = written(registers, lambda csr: [csr.tx_share.__setitem__(vc, 0) for vc in range(VCS)])
    script.writes[7000] = quiet  # all may send, and no one asks any more
    counts = "came", "bad", "probes", "holds"
    script.reads += addresses(registers, *(f"credit_{name}" for name in counts), "tx_freed")
    record = compare(lambda width: Nic(width=width, vcs=VCS, credits=1), script, 1)
    assert len(record.came_out) > 500
    for name in (*(f"credit_{name}" for name in counts), "tx_freed"):
        assert sum(record.counters[addr] for addr in addresses(registers, name)) > 10, name


@pytest.mark.parametrize("others", [{}, {"sustained": 1, "credits": 1}])
def test_nic_with_oam_cells(others):
    """Single cells between PDUs, F5 cells between the cells that come, some of unknown VCs, and more than the host
    takes."""
    rng = random.Random(f"oam {others}")
    registers = nic_registers(vcs=VCS, oam=1, **others)

    def more(csr):
        if others:
            csr.credit_step, csr.credit_last = rng.randrange(1, 100), VCS - 1
            for vc in range(VCS):
                csr.tx_share[vc] = rng.choice([0, 0, 5, 20])
                csr.rx_back[vc] = {"vc": vc ^ 1, "takes": 1}
                csr.tx_burst[vc] = rng.randrange(200 << 16)
                csr.tx_sustained[vc] = {"increment": rng.randrange(1 << 16, 60 << 16), "enabled": rng.getrandbits(1)}

    script = nic_script(rng, 6000, registers, more)
    singles = [(rng.randrange(3, 6000), rng.randrange(VCS), SINGLE, 0, 0) for _ in range(400)]
    script.posts = sorted(script.posts + singles, key=lambda post: post[0])
    for tick in range(3, 6000):
        if tick not in script.cells and rng.random() < 0.3:
            vpi, vci = vpi_vci(rng.randrange(VCS))
            unknown = rng.random() < 0.1
            header = Header(vpi + unknown, vci, rng.choice([4, 5]), rng.getrandbits(1))
            script.cells[tick] = Cell(int(header), rng.randbytes(48), 0, int(rng.random() < 0.05))
    if others:
        numbers = {vpi_vci(vc): vc for vc in range(VCS)}
        with_messages(
            rng, script, lambda cell: cell.header,
            lambda cell: numbers.get((cell.header >> 20 & 0xFF, cell.header >> 4 & 0xFFFF)),
        )  # fmt: skip
        script.writes[7000] = written(registers, lambda csr: [csr.tx_share.__setitem__(vc, 0) for vc in range(VCS)])
    script.reads += addresses(registers, "oam_taken", "oam_lost")
    record = compare(lambda width: Nic(width=width, vcs=VCS, oam=1, **others), script, 1)
    taken, lost = (record.counters[addr] for addr in addresses(registers, "oam_taken", "oam_lost"))
    assert sum(entry[1] == "oam" for entry in record.log) == taken > 200
    assert lost > 200
    sent = [sum(entry[1] == what for entry in record.log) for what in ("done", "done single")]
    assert sum(sent) == len(script.posts) - record.counters[registers["tx_refused"].addr]
    assert min(sent) > 100


@pytest.mark.parametrize("others", [{}])  # and all options together in soak.test_cells
def test_nic_with_test_cells(others):
    """Test cells between those of PDUs, started, stopped and moved to other VCs; some of these are a host's, which then
    keeps them. Test cells that come, on VCs that change."""
    rng = random.Random(f"test cells {others}")
    registers = nic_registers(vcs=VCS, test_cells=1, **others)

    def more(csr):
        csr.test_tx_first, csr.test_tx_count = rng.getrandbits(32), rng.choice([0, 0, 1, 7])
        csr.test_tx = {"vc": rng.choice([6, 7, 7, 0]), "run": int(rng.random() < 0.8)}
        csr.test_block_size, csr.test_block_limit, csr.test_class = rng.randrange(1, 8), 1, rng.randrange(16)
        csr.test_rx = {"vc": rng.choice([4, 5]), "run": int(rng.random() < 0.9), "known": rng.getrandbits(1)}
        if others:
            csr.credit_step, csr.credit_last = rng.randrange(1, 100), VCS - 1
            for vc in range(VCS):
                csr.tx_share[vc] = rng.choice([0, 0, 5, 20])
                csr.rx_back[vc] = {"vc": vc ^ 1, "takes": 1}
                csr.tx_burst[vc] = rng.randrange(200 << 16)
                csr.tx_sustained[vc] = {"increment": rng.randrange(1 << 16, 60 << 16), "enabled": rng.getrandbits(1)}

    script = nic_script(rng, 6000, registers, more)
    script.posts = [post for post in script.posts if post[1] != 7]
    if others:
        singles = [(rng.randrange(3, 6000), rng.randrange(VCS), SINGLE, 0, 0) for _ in range(200)]
        script.posts = sorted(script.posts + singles, key=lambda post: post[0])
        numbers = {vpi_vci(vc): vc for vc in range(VCS)}
        with_messages(
            rng, script, lambda cell: cell.header,
            lambda cell: numbers.get((cell.header >> 20 & 0xFF, cell.header >> 4 & 0xFFFF)),
        )  # fmt: skip
    number = 0
    for tick, cell in sorted(script.cells.items()):
        if rng.random() < 0.4:
            number += rng.choice([1, 1, 1, 1, 3, -1, 200])
            payload = bytearray(pack_test_cell(TestCell(number % (1 << 32), stamp_of(tick - rng.randrange(300)))))
            payload[rng.randrange(48)] ^= int(rng.random() < 0.1)
            header = int(Header(*vpi_vci(rng.choice([4, 5]))))
            script.cells[tick] = Cell(header, bytes(payload), 0, cell.hec_error)
    stops = {"vc": 7, "run": 0}
    script.writes[7000] = written(
        registers, lambda csr: csr.put(registers["test_tx"], stops),
        *([lambda csr: [csr.tx_share.__setitem__(vc, 0) for vc in range(VCS)]] if others else []),
    )  # fmt: skip
    tests = [each.name for each in registers.registers if each.name.startswith("test_") and each.access == "ro"]
    script.reads += addresses(registers, *tests)
    record = compare(lambda width: Nic(width=width, vcs=VCS, test_cells=1, **others), script, 1)
    counts = {name: sum(record.counters[addr] for addr in addresses(registers, name)) for name in tests}
    assert counts["test_sent"] > 20
    for name in ("in_order", "errored", "lost", "misinserted", "blocks", "secbs", "classes"):
        assert counts[f"test_{name}"] > 5, name
    made = sum(is_test_cell(cell.payload) for _, cell in record.came_out)
    assert made == counts["test_sent"]


def is_test_cell(payload):
    try:
        unpack_test_cell(payload)
    except TestCellError:
        return False
    return payload[8:45] == b"\x6a" * 37


def test_nic_with_a_pdu_of_every_length_of_its_last_cells():
    """1 to 150 octets, one after another on a VC, and the longest one beside them."""
    script = Script(end=15000)

    def start(csr):
        csr.line_period, csr.tolerance = 1 << 16, 0
        for vc, (vci, period) in enumerate(((5, 1 << 16), (6, 8 << 16))):
            csr.tx_header[vc], csr.tx_period[vc] = {"vci": vci}, period

    script.writes[1] = written(NIC, start)
    script.posts = [(3, 1, 65535, 1, 2)] + [(10 * length, 0, length, 0, 0) for length in range(1, 150)]
    refused, sent = NIC["tx_refused"].addr, NIC["tx_cells"].addr
    script.reads = [refused, sent, sent + 1]
    record = compare(lambda width: Nic(width=width, vcs=VCS), script, 1)
    assert record.counters == {refused: 0, sent: sum(map(cells_of, range(1, 150))), sent + 1: cells_of(65535)}


# The link


def link_script(rng, end, delay_cells):
    script = Script(end=end + 1000, settle=40)

    registers = link_registers(delay_cells=delay_cells)

    def errors(rate):
        def write(csr):
            if rng.random() < 0.3:  # the rate alone, with cells on their way
                csr.error_mantissa, csr.error_shift = scale_of(rate)
                return
            csr.error_enable = 0
            csr.error_mantissa, csr.error_shift = scale_of(rate)
            csr.gap, csr.seed = rng.randrange(5000), rng.getrandbits(64) | 1
            csr.error_enable = 1

        return written(registers, write)

    delays = [60, 2, 3, 9]
    for k, tick in enumerate((1, *sorted(rng.sample(range(2, end), 8)))):
        script.writes[tick] = errors(rng.choice([1e-3, 1e-3, 1e-4, 1e-6]))
        if delay_cells:
            script.writes[tick].append((registers["delay"].addr, delays[k % 4]))
    script.writes[end - 50] = [(registers["error_enable"].addr, 0)]
    for tick in times(rng, end):
        script.cells[tick] = Cell(rng.getrandbits(32), rng.randbytes(48), 0, int(rng.random() < 0.01))
    script.reads = addresses(registers, "cells", "errored", "corrected", "rejected", "error_bits", "lost")
    return script


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("delay_cells", [0, 16])
def test_link(delay_cells, seed):
    rng = random.Random(f"link {delay_cells} {seed}")
    script = link_script(rng, 8000, delay_cells)
    record = compare(lambda width: Link(width=width, delay_cells=delay_cells), script, seed)
    *counts, lost = (record.counters[addr] for addr in script.reads)
    assert all(count > 10 for count in counts)
    assert (lost > 10) == bool(delay_cells)
