"""Virtual path connections through the switch, against the cell-level model (I.311, I.361), on both datapaths."""

import random
from fractions import Fraction

import pytest

from bentpipe_hdl.switch.control import PortSettings, SwitchPort, SwitchSettings, SwitchVc, VcSettings
from bentpipe_hdl.switch.options import Setup, options_word
from bentpipe_hdl.switch.options.vp.control import MOST_PATHS, VirtualPaths, paths_of
from models.cell import Cell, Header, Interface
from models.gcra import VirtualScheduling
from models.policer import Bucket, Policer
from models.switch import Drop, Vc
from models.switch import Switch as Model
from unit.hdl.bench import WIDTHS, Arrival
from unit.hdl.bench import run_compiled as run
from unit.hdl.test_switch_rtl import Judge, compare_counters, configure, small, write_lookups, write_policy

VCIS = (0, 1, 3, 4, 6, 32, 33, 40, 4096, 65535)
NNI = Interface.NNI
CELLS = 40
OPTIONS = options_word(["vp", "efci", "police"])


def cell(model, port, vpi, vci, pti=0, clp=0, octets=bytes(48)):
    return Arrival(Cell(Header(vpi, vci, pti, clp, interface=model.interface(port)), octets), port)


def with_vps(width, model, test, *, ports=None, periods=(2.5, 4, 3.25), seed=1):
    """Run ``test`` with a judge of a switch with the model's VCs and VPCs; that of a given number of ports has no other
    options."""

    async def whole(bench):
        await configure(bench, model, periods[: len(model.port_drops)])
        await test(Judge(bench, model))

    run(small(width, CELLS, ports or 3, 8, OPTIONS if ports is None else options_word(["vp"])), whole, seed)


async def drain(judge, ticks=80):
    for _ in range(ticks):
        await judge.tick()
    await judge.finish()
    assert judge.model.occupancy == 0
    await compare_counters(judge.bench, judge.model, judge.high_water)
    assert judge.told == judge.dropped


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("width", WIDTHS)
def test_random_traffic(width, seed):
    """VCs and VPCs side by side, UNI and NNI, VPI 0 and 4095, all kinds of VCIs, into a small buffer with a CLP
    threshold and an OAM reserve: the same cells leave in the same order, every counter agrees."""
    rng = random.Random(seed)
    limits = [2, 0xFFFF, 4, 0xFFFF, *rng.sample([3, 6, 0xFFFF, 0xFFFF], 4)]
    vcs = [
        Vc(0, 0, 0, 1, 255, 0, limit=limits[0], vpc=True),
        Vc(2, 4095, 0, 2, 4094, 0, limit=limits[1], vpc=True),
        Vc(2, 0, 0, 0, 0, 0, limit=limits[2], vpc=True),
        Vc(1, 7, 0, 2, 4095, 0, limit=limits[3], vpc=True),
        Vc(0, 7, 32, 1, 3, 65535, limit=limits[4], epd=True, ppd=True),
        Vc(1, 0, 33, 0, 255, 40, limit=limits[5], ppd=True),
        Vc(0, 1, 3, 2, 0, 4, limit=limits[6]),
        Vc(2, 255, 4096, 1, 0, 32, limit=limits[7], epd=True, ppd=True),
    ]
    model = Model(vcs, ports=3, capacity=12, user_capacity=9, epd_threshold=6, clp_threshold=7, nni=frozenset({2}))

    def draw():
        vc = rng.choice(vcs)
        vpi = vc.in_vpi if rng.random() < 0.95 else vc.in_vpi ^ 1  # or of nothing
        vci = rng.choice(VCIS) if vc.vpc or rng.random() < 0.1 else vc.in_vci
        pti = rng.randrange(8) if rng.random() < 0.4 else rng.choice([0, 0, 1])
        arrival = cell(model, vc.in_port, vpi, vci, pti, int(rng.random() < 0.3), rng.randbytes(48))
        return Arrival(arrival.cell, arrival.port, rng.random() < 0.03)

    async def test(judge):
        busy = True
        for step in range(600 if judge.bench.wide else 300):
            if step % 100 == 99:
                busy = not busy
            await judge.tick(draw() if rng.random() < (0.95 if busy else 0.4) else None)
        await drain(judge)

    with_vps(width, model, test, periods=(4, 8.5, 3.25), seed=seed)
    assert {reason for vc in vcs[:4] for reason in vc.drops} == {Drop.FULL, Drop.CLP, Drop.RESERVE}
    assert all(vc.sent for vc in vcs)
    assert sum(drops[Drop.UNKNOWN] for drops in model.port_drops) > 5


@pytest.mark.parametrize("width", WIDTHS)
def test_the_vci_passes_and_the_vpi_is_translated(width):
    """VCIs of all kinds, from VPI 4095 at an NNI to VPI 0 at a UNI and back; payload, PTI and CLP as they came."""
    vcs = [Vc(0, 4095, 0, 1, 0, 0, vpc=True), Vc(1, 0, 0, 0, 4095, 0, vpc=True)]
    model = Model(vcs, ports=2, capacity=30, nni=frozenset({0}))

    async def test(judge):
        for k, vci in enumerate(VCIS):
            await judge.tick(cell(model, 0, 4095, vci, k % 8, k & 1, bytes([k]) * 48))
            await judge.tick(cell(model, 1, 0, vci, k % 8, k & 1, bytes([100 + k]) * 48))
        await drain(judge)
        there = [d for d in judge.bench.came_out if d.port == 1]
        assert [d.as_header() for d in there] == [Header(0, vci, k % 8, k & 1) for k, vci in enumerate(VCIS)]
        back = [d.as_header(NNI) for d in judge.bench.came_out if d.port == 0]
        assert back == [Header(4095, vci, k % 8, k & 1, interface=NNI) for k, vci in enumerate(VCIS)]

    with_vps(width, model, test)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_vc_goes_before_the_path_that_has_its_vpi(width):
    """Software lays out no such thing; while it changes one into the other both may be there. And with VCI 3 it is no
    F4 cell of the path."""
    vcs = [Vc(0, 5, 0, 1, 6, 0, vpc=True), Vc(0, 5, 3, 1, 9, 99)]
    model = Model(vcs, ports=2, capacity=30, user_capacity=3)

    async def test(judge):
        for vci in (2, 3, 4, 3, 4, 3):
            await judge.tick(cell(model, 0, 5, vci))
        await drain(judge, 300)
        headers = [d.as_header() for d in judge.bench.came_out]
        assert sorted((h.vpi, h.vci) for h in headers) == [(6, 2), (6, 4), (6, 4), (9, 99), (9, 99)]

    with_vps(width, model, test, periods=(40, 40))
    assert vcs[1].drops[Drop.RESERVE] == 1


@pytest.mark.parametrize("width", WIDTHS)
def test_f4_cells_are_no_user_cells(width):
    """Cells with VCI 3 and 4 of a VPC have PTIs of user cells (I.361); they may take the reserve, and congestion isn't
    marked in them. In a VC's VPI the same numbers are a VC's."""
    vcs = [Vc(0, 5, 0, 1, 6, 0, vpc=True), Vc(0, 1, 3, 1, 2, 4)]
    model = Model(vcs, ports=2, capacity=20, user_capacity=4, efci_threshold=3)

    async def test(judge):
        await judge.bench.set("efci_threshold", 3)
        for vpi, vci in ((5, 40), (5, 3), (5, 41), (5, 4), (5, 42), (5, 3), (1, 3), (5, 4), (5, 2), (5, 5)):
            await judge.tick(cell(model, 0, vpi, vci))
        await drain(judge, 400)
        headers = [d.as_header() for d in judge.bench.came_out]
        assert [(h.vci, h.pti) for h in headers] == [(40, 0), (3, 0), (41, 0), (4, 0), (42, 2), (3, 0), (4, 0)]

    with_vps(width, model, test, periods=(50, 30))
    assert [vc.drops[Drop.RESERVE] for vc in vcs] == [2, 1]


@pytest.mark.parametrize("width", WIDTHS)
def test_a_path_is_policed_as_one(width):
    """One contract for all VCs of a path, F4 cells too; what is early is tagged, and dropped at the threshold."""
    rng = random.Random(3)
    vcs = [Vc(0, 5, 0, 1, 6, 0, vpc=True), Vc(0, 7, 0, 1, 8, 0, vpc=True)]
    vcs[0].policer = Policer([Bucket(VirtualScheduling(Fraction(6), 20), clp0=False, action="tag")], packets=False)
    vcs[1].policer = Policer([Bucket(VirtualScheduling(Fraction(9), 0), clp0=False, action="discard")], packets=False)
    model = Model(vcs, ports=2, capacity=14, clp_threshold=4)

    async def test(judge):
        for index, tag, increment, limit in ((0, 1, 6, 20), (1, 0, 9, 0)):
            await judge.bench.set("police_limit", limit << 16, 2 * index)
            await judge.bench.set("police_rate", {"increment": increment << 16, "enabled": 1, "tag": tag}, 2 * index)
        for _ in range(150):
            vpi, vci = rng.choice((5, 7)), rng.choice(VCIS)
            await judge.tick(cell(model, 0, vpi, vci, octets=rng.randbytes(48)) if rng.random() < 0.7 else None)
        await drain(judge)

    with_vps(width, model, test, periods=(3, 3))
    assert vcs[0].drops[Drop.CLP] > 3
    assert vcs[1].drops[Drop.UPC] > 10


@pytest.mark.parametrize("width", WIDTHS)
def test_a_path_that_ends_and_another_in_its_place(width):
    """Queued cells of the path are flushed. Its index then belongs to another path, which has none of them, and then to
    a VC.
    """
    vcs = [Vc(0, 5, 0, 1, 6, 0, vpc=True)]
    model = Model(vcs, ports=2, capacity=12)

    async def test(judge):
        bench = judge.bench
        for vci in (50, 51, 52):
            await bench.tick(cell(model, 0, 5, vci))
        await write_policy(bench, 0, vcs[0], enabled=False)
        await bench.tick(cell(model, 0, 5, 53))
        assert await bench.get("unknown", 0) == 1
        await bench.ticks(140)
        assert await bench.get("flushed") == 3 - len(bench.came_out)
        sent = len(bench.came_out)
        vcs[0].in_vpi, vcs[0].out_vpi = 9, 10
        await bench.set("vc_header", {"vpi": 10}, 0)
        await write_lookups(bench, Model(vcs, ports=2, capacity=12))
        await write_policy(bench, 0, vcs[0])
        await bench.tick(cell(model, 0, 5, 54))
        await bench.tick(cell(model, 0, 9, 55))
        await bench.set("vc_header", {"vpi": 10, "vci": 77}, 0)
        await bench.ticks(140)
        assert [(d.as_header().vpi, d.as_header().vci) for d in bench.came_out[sent:]] == [(10, 77)]
        assert await bench.get("unknown", 0) == 2

    with_vps(width, model, test, periods=(40, 40))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("ports", [1, 3])
def test_as_many_paths_as_vcs(width, ports):
    """Every entry of the second look-up is used, and none of the first; each path's cells go its way."""
    vcs = [Vc(k % ports, 4095 - k // ports, 0, k % ports, k, 0, vpc=True) for k in range(8)]
    model = Model(vcs, ports=ports, capacity=40, nni=frozenset(range(ports)))

    async def test(judge):
        for vc in vcs:
            await judge.tick(cell(model, vc.in_port, vc.in_vpi, 32 + vc.out_vpi))
            await judge.tick(cell(model, vc.in_port, vc.in_vpi ^ 0x800, 32))
        await drain(judge)
        found = {(d.port, d.as_header(NNI).vpi, d.as_header(NNI).vci) for d in judge.bench.came_out}
        assert found == {(vc.out_port, vc.out_vpi, 32 + vc.out_vpi) for vc in vcs}

    with_vps(width, model, test, ports=1 if ports == 1 else None)


@pytest.mark.parametrize("width", WIDTHS)
def test_after_reset_no_path_is_there(width):
    """Whatever the look-up holds: the VC behind an entry isn't enabled."""

    async def test(bench):
        await bench.reset()
        model = Model([Vc(0, 0, 0, 0, 0, 0, vpc=True)], ports=1, capacity=12)
        await write_lookups(bench, model)
        for vci in (0, 32):
            await bench.tick(cell(model, 0, 0, vci))
        await bench.ticks(20)
        assert bench.came_out == []
        assert await bench.get("unknown", 0) == 2

    run(small(width, CELLS, 1, options=options_word(["vp"])), test)


# What is refused

PORTS = [SwitchPort(), SwitchPort(), SwitchPort(settings=PortSettings(queue_limit=5))]


def path(in_port, vpi, out_port=1, out_vpi=None, **settings):
    return SwitchVc(in_port, vpi, 0, out_port, vpi if out_vpi is None else out_vpi, 0, VcSettings(**settings), vpc=True)


def vc(in_port, vpi, vci, out_port=1, out_vpi=0, **settings):
    return SwitchVc(in_port, vpi, vci, out_port, out_vpi, vci, VcSettings(**settings))


@pytest.mark.parametrize(
    ("vcs", "switch", "message"),
    [
        ([path(0, 5), vc(0, 5, 32)], {}, "comes in at port 0 with VPI 5, which something else has"),
        ([path(0, 5, 1, 9), path(0, 5, 1, 8)], {}, "comes in at port 0 with VPI 5, which something else has"),
        ([path(0, 5, 1, 9), vc(0, 6, 32, 1, 9)], {}, "goes out at port 1 with VPI 9, which something else has"),
        ([path(0, 5, policy="epd")], {}, "VPI 5 at port 0: policy 'epd' discards frames; the frames of its VCs"),
        ([path(0, 5, epd_threshold=4)], {}, "an epd_threshold refuses frames"),
        ([path(0, 5, 2)], {}, "queue_limit of port 2 refuses frames"),
        (
            [path(0, 5, police={"pcr_bps": 10**6, "cdvt_ps": 10**9, "packets": True})],
            {},
            "policing by packets discards frames",
        ),
        ([path(0, 5), vc(0, 6, 32, credits=5)], {}, "has no credits"),
        (
            [path(k % 2, k // 2, 1 - k % 2) for k in range(MOST_PATHS + 1)],
            {},
            "257 virtual paths are more than the 256",
        ),
    ],
)
def test_settings_that_do_not_go_together(vcs, switch, message):
    (expected_text,) = VirtualPaths().check(Setup(SwitchSettings(**switch), PORTS, vcs))
    assert message in expected_text


def test_paths_and_vcs_that_go_together():
    vcs = [path(0, 5, policy="tail"), vc(0, 6, 32, 1, 6, policy="epd"), path(1, 5, 0), vc(1, 6, 32, 2, 5)]
    assert list(VirtualPaths().check(Setup(SwitchSettings(policy="fba"), PORTS, vcs))) == []
    assert [one.policy(SwitchSettings(policy="fba")) for one in vcs] == ["tail", "epd", "tail", "fba"]
    assert [paths_of(n) for n in (2, 64, 256, 4096)] == [2, 64, 256, 256]
