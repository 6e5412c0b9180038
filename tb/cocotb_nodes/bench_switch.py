"""Runs inside cocotb: the switch. Started by test_switch.py."""

import random
from collections import Counter
from fractions import Fraction

import cocotb
from bentpipe_hdl.lookup_table import lookup_table
from bentpipe_hdl.switch.control import switch_registers
from bentpipe_hdl.switch.registers import REASON_BITS
from cocotb_nodes.environment import Arrival, Departure, Environment, gaps
from models.aal5 import segment
from models.cell import Cell, Header, Interface
from models.ports import PortClocks
from models.registers import addresses, written
from models.switch import Drop, Frame, Switch, Vc

VCS, CELLS, PORTS = 16, 48, 4
SWITCH = switch_registers(vcs=VCS, cells=CELLS, ports=PORTS)
REASONS = (Drop.FULL, Drop.EPD, Drop.PPD, Drop.CLP, Drop.RESERVE)
NONE = 0xFFFF


def settings(model, clocks):
    """The registers of the switch: every table whole, so that nothing of an earlier test is left."""

    def write(csr):
        csr.capacity = model.capacity
        csr.user_capacity = min(model.user_capacity, NONE)
        csr.epd_threshold, csr.clp_threshold = min(model.epd_threshold, NONE), min(model.clp_threshold, NONE)
        csr.processing_delay = clocks.delay
        csr.nni = sum(1 << port for port in model.nni)
        csr.high_water = 0
        for port, period in enumerate(clocks.periods):
            csr.period[port] = int(period * 65536)
        for index, vc in enumerate(model.vcs):
            csr.vc_policy[index] = {
                "limit": min(vc.limit, NONE), "epd_threshold": vc.epd_threshold or 0, "port": vc.out_port,
                "ppd": vc.ppd, "epd": vc.epd, "epd_own": vc.epd_threshold is not None, "enabled": 1,
            }  # fmt: skip
            no_vpi = 0 if vc.out_port in model.nni else index % 16 << 8  # at a UNI the upper bits have no place
            csr.vc_header[index] = {"vpi": vc.out_vpi | no_vpi, "vci": vc.out_vci}
        lookup_table(VCS, {(vc.in_port, vc.in_vpi, vc.in_vci): k for k, vc in enumerate(model.vcs)}).write(csr)

    return written(SWITCH, write)


def random_vcs(rng):
    """VCs of every policy between ports, UNI and NNI: ports 1 and 3 are NNIs."""
    vcs = []
    for k in range(VCS):
        ppd, epd = [(0, 0), (1, 0), (1, 1), (1, 1), (0, 1)][k % 5]
        own = rng.choice([None, rng.randrange(1, 9)])
        in_port, out_port = k % PORTS, rng.randrange(PORTS)
        in_bits, out_bits = (12 if port % 2 else 8 for port in (in_port, out_port))
        in_vpi = rng.getrandbits(in_bits)
        in_vci = rng.getrandbits(14) << 2 | k // PORTS
        limit = rng.choice([4, 10, NONE, NONE])
        vcs.append(Vc(in_port, in_vpi, in_vci, out_port, rng.getrandbits(out_bits), rng.getrandbits(16),
                      limit=limit, ppd=bool(ppd), epd=bool(epd), epd_threshold=own))  # fmt: skip
    return vcs


def traffic(rng, model, count):
    """Frames of all VCs, OAM and RM cells, unknown VCs, bad HECs."""
    frames = [[] for _ in model.vcs]
    for _ in range(count):
        draw, k = rng.random(), rng.randrange(VCS)
        vc = model.vcs[k]
        interface = model.interface(vc.in_port)
        gfc = rng.choice([0, 0, 9]) if interface is Interface.UNI else 0
        if draw < 0.03:
            wrong = rng.choice([(vc.in_vpi ^ 1 << 6, vc.in_vci), (vc.in_vpi, vc.in_vci ^ 1 << 15)])
            header = Header(*wrong, rng.randrange(8), gfc=gfc, interface=interface)
            yield Arrival(Cell(header, rng.randbytes(48)), vc.in_port)
        elif draw < 0.05:  # this VC, but of another port
            header = Header(vc.in_vpi & 0xFF, vc.in_vci, rng.randrange(8), interface=model.interface(vc.in_port ^ 2))
            yield Arrival(Cell(header, rng.randbytes(48)), vc.in_port ^ 2)
        elif draw < 0.13:
            header = Header(vc.in_vpi, vc.in_vci, rng.randrange(4, 8), rng.getrandbits(1), gfc, interface)
            yield Arrival(Cell(header, rng.randbytes(48)), vc.in_port)
        else:
            if not frames[k]:
                header = Header(vc.in_vpi, vc.in_vci, rng.choice([0, 2]), int(rng.random() < 0.2), gfc, interface)
                frames[k] = segment(header, rng.randbytes(rng.choice([1, 40, 41, 100, 300, 600])))
            yield Arrival(frames[k].pop(0), vc.in_port, rng.random() < 0.02)


class Expected:
    """The result of the models for the cells that came in: cells that leave, their ticks, and counters."""

    def __init__(self, model, clocks, sent, until):
        self.model = model
        self.departures = []
        self.high_water = 0
        self.oam_in_cut_frames = 0
        arrivals = dict(sent)
        for tick in range(min(arrivals, default=until), until):
            self.tick(clocks, tick, arrivals.get(tick))

    def tick(self, clocks, tick, arrival):
        model = self.model
        waiting = [model.scheduler.first(port) is not None for port in range(len(model.port_drops))]
        port = clocks.chosen(tick, waiting)
        vc_joins = None
        if arrival:
            self.look(arrival)
            queued = [bool(vc.queue) for vc in model.vcs]
            model.arrive(arrival.port, arrival.cell.header, arrival.hec_error, arrival.cell)
            vc_joins = next((vc for vc, before in zip(model.vcs, queued, strict=True) if vc.queue and not before), None)
        alone = None  # the port that its last cell leaves
        if port is not None:
            header, _, cell = model.depart(port)
            clocks.sent(port, tick)
            self.departures.append(Departure(tick, port, int(header), cell.payload))
            if sum(len(vc.queue) for vc in model.vcs if vc.out_port == port and vc is not vc_joins) == 0:
                alone = port
        if vc_joins and (not waiting[vc_joins.out_port] or vc_joins.out_port == alone):
            clocks.wakes(vc_joins.out_port, tick)
        self.high_water = max(self.high_water, model.occupancy)

    def look(self, arrival):
        header = arrival.cell.header
        for vc in self.model.vcs:
            if (vc.in_port, vc.in_vpi, vc.in_vci) == (arrival.port, header.vpi, header.vci) and not header.user:
                self.oam_in_cut_frames += vc.frame in (Frame.CUT, Frame.CORPSE, Frame.REFUSED)

    def counters(self):
        at = {register.name: register.addr for register in SWITCH.registers}
        found = {at["occupancy"]: self.model.occupancy, at["high_water"]: self.high_water}
        for port, drops in enumerate(self.model.port_drops):
            found |= {at["unknown"] + port: drops[Drop.UNKNOWN], at["hec"] + port: drops[Drop.HEC]}
        for index, vc in enumerate(self.model.vcs):
            found |= {at["accepted"] + index: vc.accepted, at["departed"] + index: vc.sent}
            found |= {at["dropped"] + (index << REASON_BITS) + k: vc.drops[reason] for k, reason in enumerate(REASONS)}
        return found


def compare(came_out, expected):
    for k, (got, wanted) in enumerate(zip(came_out, expected, strict=False)):
        assert got == wanted, f"cell {k}"
    assert len(came_out) == len(expected)


async def play(environment, model, clocks, cells, pause):
    """Send the cells while registers are read and written; compare; drain; balance the account."""
    writes = settings(model, clocks)
    await environment.write(writes)
    environment.source.pause = pause
    environment.source.queue.extend(cells)
    counters = addresses(SWITCH, "unknown", "hec", "accepted", "departed", "dropped")
    rewrites = [write for write in writes if write[0] in addresses(SWITCH, "period", "vc_policy", "lookup")]
    running = True
    watch = cocotb.start_soon(environment.watch(counters, rewrites, lambda: running))
    await environment.ticks_until(lambda: not environment.source.queue, 100 * len(cells))
    await environment.ticks(3)
    running = False
    assert await watch > 50
    while_busy = await environment.read(SWITCH["high_water"].addr)
    await environment.ticks(CELLS * max(int(period) + 1 for period in clocks.periods) + clocks.delay + 4)
    sent = environment.source.sent
    assert len(sent) == len(cells)
    expected = Expected(model, clocks, sent, environment.now - 2)
    compare(environment.sink.cells, expected.departures)
    model.check_conservation()
    addrs = list(expected.counters())
    found = dict(zip(addrs, await environment.read_all(addrs), strict=True))
    assert found == expected.counters()
    assert while_busy == expected.high_water
    # Every cell that came in is accounted for, and none is left.
    dropped = sum(found.get(addr, 0) for addr in addresses(SWITCH, "dropped", "unknown", "hec"))
    assert len(sent) == len(environment.sink.cells) + dropped
    assert found[SWITCH["occupancy"].addr] == 0
    return expected


RUNS = (
    # capacity, of it for OAM and RM cells, EPD threshold, CLP threshold, processing delay, ticks a cell of each port
    (24, 0, 16, 20, 1, (3, 5.25, 4.5, 7)),
    (CELLS, 6, 30, 40, 32, (2.5, 5.8125, 24, 6)),
    (9, 0, 6, 7, 3, (4, 4, 4, 4)),
)


@cocotb.test()
async def random_traffic(dut):
    """Frames of 16 VCs, of every policy, and what is no frame: every cell that leaves, with header, payload, port and
    tick; every counter."""
    environment = Environment(dut)
    await environment.start()
    rng = random.Random(1)
    drops, oam = Counter(), 0
    for capacity, reserve, epd, clp, delay, periods in RUNS:
        await environment.reset()
        model = Switch(random_vcs(rng), ports=PORTS, capacity=capacity, user_capacity=capacity - reserve,
                       epd_threshold=epd, clp_threshold=clp, nni=frozenset({1, 3}))  # fmt: skip
        clocks = PortClocks([Fraction(period) for period in periods], delay)
        expected = await play(environment, model, clocks, list(traffic(rng, model, 1200)), gaps(rng))
        drops.update(reason for vc in model.vcs for reason in vc.drops.elements())
        oam += expected.oam_in_cut_frames
        assert expected.high_water >= capacity - reserve, "the buffer was full"
    assert all(drops[reason] > 20 for reason in REASONS), drops
    assert oam > 20, "OAM and RM cells met frames that were being dropped"


def plain(vcs, **settings):
    return Switch(vcs, ports=PORTS, capacity=CELLS, **settings)


@cocotb.test()
async def saturated_ports(dut):
    """Cells back to back, for four VCs of one port: they share it in turn, at its rate."""
    environment = Environment(dut)
    await environment.start()
    vcs = [Vc(0, 0, 32 + k, 2, 1, 64 + k, limit=8) for k in range(4)]
    model, clocks = plain(vcs), PortClocks([Fraction(period) for period in (1, 1, 3.6875, 1)], 1)
    rng = random.Random(2)
    cells = [Arrival(Cell(Header(0, 32 + rng.randrange(4)), rng.randbytes(48))) for _ in range(900)]
    await play(environment, model, clocks, cells, lambda tick: False)
    busy = [out for out in environment.sink.cells if 100 <= out.tick < 800]
    shares = Counter(out.as_header().vci for out in busy)
    assert max(shares.values()) - min(shares.values()) <= 1
    for k, out in enumerate(busy):
        assert abs(out.tick - busy[0].tick - Fraction(3.6875) * k) < 1


@cocotb.test()
async def processing_delay_of_idle_ports(dut):
    """A cell alone takes PROCESSING_DELAY ticks; one behind it, the port's period more."""
    environment = Environment(dut)
    await environment.start()
    for delay in (1, 2, 33):
        await environment.reset()
        model, clocks = plain([Vc(1, 0, 40, 3, 0, 50)]), PortClocks([Fraction(4)] * PORTS, delay)
        await environment.write(settings(model, clocks))
        for cells in (1, 2):
            rng = random.Random(delay)
            start = len(environment.source.sent)
            environment.source.queue.extend(Arrival(Cell(Header(0, 40), rng.randbytes(48)), 1) for _ in range(cells))
            await environment.ticks(60)
            came = [tick for tick, _ in environment.source.sent[start:]]
            assert [out.tick - came[0] for out in environment.sink.cells[start:]] == [delay, delay + 4][:cells]


@cocotb.test()
async def reset_forgets_what_was_under_way(dut):
    """Reset with a full buffer and cells on their way, at many places: afterwards all is as in the beginning."""
    environment = Environment(dut)
    await environment.start()
    rng = random.Random(3)
    for _ in range(8):
        model, clocks = plain(random_vcs(rng), nni=frozenset({1, 3})), PortClocks([Fraction(3, 2)] * PORTS, 2)
        await environment.write(settings(model, clocks))
        environment.source.queue.extend(traffic(rng, model, 120))
        environment.running = True
        clocks_left = iter(range(rng.randrange(60, 100 if environment.wide else 1300)))
        await environment.until(lambda clocks=clocks_left: next(clocks, None) is None)
        await environment.reset()
        values = Expected(plain(random_vcs(rng)), clocks, [], 0).counters()
        assert await environment.read_all([1, 2, 3, 4, 5]) == [CELLS, CELLS, CELLS, 0, 0]
        assert dict(zip(values, await environment.read_all(values), strict=True)) == dict.fromkeys(values, 0)
        model, clocks = plain(random_vcs(rng), nni=frozenset({1, 3})), PortClocks([Fraction(5, 2)] * PORTS, 2)
        await environment.write(settings(model, clocks))
        first = environment.now
        environment.source.queue.extend(traffic(rng, model, 60))
        await environment.ticks(60 + 4 * CELLS)
        expected = Expected(model, clocks, environment.source.sent, environment.now - 2)
        compare(environment.sink.cells, expected.departures)
        assert environment.sink.cells[0].tick > first
