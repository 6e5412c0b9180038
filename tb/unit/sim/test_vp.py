"""Virtual paths in a network: two switches joined by one through a third, which looks at VPIs only."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from bentpipe_hdl.link.control import LinkSettings
from bentpipe_hdl.sonet.control import SonetSettings
from bentpipe_hdl.switch.control import SwitchSettings, VcSettings
from bentpipe_sim.errors import NetworkError
from bentpipe_sim.network import Network
from bentpipe_sim.nodes import Node
from models.lines import switch_ports, vc_settings

MS = 10**9
VPI = 7


class Line:
    """Three hosts at ``west``, three at ``east``; between them ``sat``, with a VP each way through it or not."""

    def __init__(
        self,
        *,
        vp: bool = True,
        vpi: int = VPI,
        nni: bool = False,
        vcis: tuple[int, ...] = (100, 101, 102),
        start: bool = True,
        cells: int = 2000,
        cell_rate_bps: float | None = None,
        sonet: bool = False,
        **of_vp: Any,
    ) -> None:
        self.network = network = Network(seed=3)
        ports = (3,) if nni else ()
        self.west, self.east = (network.add_switch(name, ports=switch_ports(nni=ports)) for name in ("west", "east"))
        rates = (149_760_000,) * 2 + (60_000_000,) * 2
        self.sat = network.add_switch(
            "sat", SwitchSettings(buffer_cells=cells), ports=switch_ports(rates, nni=(2, 3) if nni else ())
        )
        self.sources, self.sinks = ([network.add_nic(f"{side}{k}") for k in range(3)] for side in "ab")
        for switch, nics, port in ((self.west, self.sources, 2), (self.east, self.sinks, 3)):
            for k, nic in enumerate(nics):
                network.connect(nic, (switch, k))
                network.connect((switch, k), nic)
            up, down = (network.add_link(f"{way}-{switch.name}", LinkSettings(delay_ps=MS)) for way in ("up", "down"))
            over = (
                [network.add_sonet_line("line", SonetSettings(ber=(2e-5, 0)))] if sonet and switch is self.west else []
            )
            if over:
                network.connect((switch, 3), (over[0], 0))
            network.connect((over[0], 1) if over else (switch, 3), up)
            network.connect(up, (self.sat, port))
            network.connect((self.sat, port), down)
            network.connect(down, (over[0], 1) if over else (switch, 3))
            if over:
                network.connect((over[0], 0), (switch, 3))
            switch.up, switch.down = [*over, up], [down, *over]
        self.path: list[Node] = [self.west, *self.west.up, self.sat, *self.east.down, self.east]
        self.back: list[Node] = [self.east, *self.east.up, self.sat, *self.west.down, self.west]
        if vp:
            self.vps = [network.add_vp(path, vpi, VcSettings(**of_vp)) for path in (self.path, self.back)]
        self.there = [self.add(k, vci, cell_rate_bps=cell_rate_bps) for k, vci in enumerate(vcis)]
        self.returns = [
            network.add_vc([self.sinks[k], *self.back, self.sources[k]], 0, vci) for k, vci in enumerate(vcis)
        ]
        if start:
            network.start()

    def add(self, k: int, vci: int, vpi: int = 0, **settings) -> int:
        return self.network.add_vc([self.sources[k], *self.path, self.sinks[k]], vpi, vci, **vc_settings(**settings))

    def send(self, pdus: int, length: int = 2000) -> list[list[bytes]]:
        """PDUs of every source, one of every sink's for each three; what each sink got, and each source."""
        network, ends = self.network, [*self.sinks, *self.sources]
        got: list[list[bytes]] = [[] for _ in ends]
        for n in range(pdus):
            for k in range(3):
                network.send(self.sources[k].index, self.there[k], bytes([k, n]) * (length // 2))
                if n % 3 == 0:
                    network.send(self.sinks[k].index, self.returns[k], bytes([100 + k, n]) * (length // 2))
        numbers = [nic.index for nic in ends]
        while network.now_ps < 200 * MS:
            for event in network.run(200 * MS):
                if event.status == 0:
                    got[numbers.index(event.nic)].append(event.head[:2])
        network.check_conservation()
        return got


def test_the_same_arrives_with_a_path_as_without() -> None:
    """Nothing is lost where there is room, and the third switch has one queue each way for all."""
    lines = [Line(vp=False), Line()]
    got = [line.send(12) for line in lines]
    assert (
        got[0]
        == got[1]
        == [[bytes([k, n]) for n in range(12)] for k in range(3)]
        + [[bytes([100 + k, n]) for n in range(0, 12, 3)] for k in range(3)]
    )
    plain, paths = (line.network.counters()["sat"] for line in lines)
    assert len(plain["accepted"]) == 6 and plain["accepted"][:3] == [12 * 42] * 3
    assert paths["accepted"] == [3 * 12 * 42, 3 * 4 * 42]
    accounts = [line.network.ledger() for line in lines]
    assert [account.lost for both in accounts for account in both] == [{}] * 12


def test_a_vc_has_the_paths_vpi_in_it_and_its_own_outside() -> None:
    line = Line(vpi=0xABC, nni=True, vcis=(100, 200, 300))
    line.send(3)
    assert [(vc.in_vpi, vc.in_vci, vc.out_vpi, vc.out_vci) for vc in line.west.vcs[:3]] == [
        (0, vci, 0xABC, vci) for vci in (100, 200, 300)
    ]
    assert [(vc.in_vpi, vc.out_vpi) for vc in line.east.vcs[:3]] == [(0xABC, 0)] * 3
    assert [(vc.vpc, vc.in_vpi, vc.out_vpi) for vc in line.sat.vcs] == [(True, 0xABC, 0xABC)] * 2
    assert [nic.driver.received(vc) for nic, vc in zip(line.sinks, line.there, strict=True)] == [3] * 3


def test_what_the_third_switch_drops_is_told_of_each_vc() -> None:
    """The path's limit is of one queue for all its VCs, and cells are dropped one by one: every PDU is accounted for,
    and the switches at the ends, with EPD, drop nothing."""
    line = Line(limit=40)
    got = line.send(60)
    accounts = line.network.ledger()
    dropped = line.network.counters()["sat"]["drop_full"]
    assert dropped[0] > 1000
    for k, account in enumerate(accounts[:3]):
        assert account.delivered == len(got[k]) < account.sent == 60
        assert account.lost["sat", "full"] > 10
        assert sum(account.lost.values()) == 60 - account.delivered
    counters = line.network.counters()
    assert sum(sum(counters[name][f"drop_{why}"]) for name in ("west", "east") for why in ("full", "epd", "ppd")) == 0


def test_a_limit_changes_in_a_run() -> None:
    line = Line(limit=1000)
    for number in line.vps:
        line.network.change_vp(number, VcSettings(limit=20))
    line.send(60)
    assert line.network.counters()["sat"]["high_water"] <= 40
    assert line.network.counters()["sat"]["drop_full"][0] > 100
    with pytest.raises(NetworkError, match="policy 'epd' discards frames; the frames of its VCs interleave"):
        line.network.change_vp(0, VcSettings(policy="epd"))


def test_a_path_is_policed_and_shaped_at_its_first_switch() -> None:
    """A contract of all VCs of the path together, where they come into the first switch that passes it."""
    contract = {"pcr_bps": 20_000_000, "cdvt_ps": MS}
    line = Line(police=contract)
    line.send(60)
    assert line.network.counters()["sat"]["drop_upc"][0] > 1000
    assert sum(account.lost.get(("sat", "UPC"), 0) for account in line.network.ledger()) > 30
    shaped = Line(shape=contract)
    shaped.send(2)
    assert [len(got) for got in shaped.send(0)] == [0] * 6
    assert sum(shaped.network.counters()["sat"]["accepted"]) == 3 * 2 * 42 + 3 * 42


def test_a_path_from_host_to_host_passes_every_switch() -> None:
    """The NICs end it: their VCs have its VPI."""
    line = Line(vp=False, start=False)
    path = [line.sources[0], *line.path, line.sinks[0]]
    line.network.add_vp(path, 9)
    vc = line.network.add_vc(path, 0, 500)
    assert line.sources[0].sends[vc].vpi == line.sinks[0].receives[vc].vpi == 9
    line.network.send(line.sources[0].index, vc, bytes(1000))
    while line.network.now_ps < 20 * MS:
        line.network.run(20 * MS)
    assert line.sinks[0].driver.received(vc) == 1
    assert [account.delivered for account in line.network.ledger()][-1] == 1


def with_line(change, message: str, **of_line) -> None:
    line = Line(start=False, **of_line)
    with pytest.raises((NetworkError, ValidationError), match=message):
        change(line)
        line.network.start()


def test_what_does_not_go_together_is_refused() -> None:
    def plain(line: Line) -> list[Node]:
        return [line.sources[0], line.west, *line.west.up, line.sat]

    def short(line: Line) -> None:  # through the third switch, and not along the path
        network, sat = line.network, line.sat
        nic = network.add_nic("there")
        network.connect((sat, 0), nic)
        network.connect(nic, (sat, 0))
        network.add_vc([*plain(line), nic], VPI, 500)

    def twice(line: Line) -> None:
        line.network.add_vp(line.path, 9)
        line.add(0, 600)

    with_line(short, "VPI 7 is that of a virtual path at port 2 of sat")
    with_line(twice, "it would go through virtual path 7 .* and virtual path 9 .* at once")
    with_line(lambda line: line.network.add_vp(line.path, VPI), "VPI 7 is that of a virtual path at port 2 of sat")
    with_line(lambda line: line.network.add_vp(line.path, 0), "VPI 0 is used by VC 0/100 at port 2 of sat", vp=False)
    with_line(lambda line: line.network.add_vp(line.path, 256), "VPI 256 needs NNI lines, port 2 of sat is a UNI")
    with_line(lambda line: line.network.add_vp(line.path, 4096), "VPI from 0 to 4095", nni=True)
    with_line(lambda line: line.network.add_vp(line.path[1:], 9), "goes from a switch or NIC to another one")
    with_line(lambda line: line.network.add_vp(line.path[:3], 9), "there is no switch between its ends")
    with_line(lambda line: line.network.add_vp([*line.path, *line.back[1:]], 9), "passes a node once")
    with_line(lambda line: line.network.add_vp(line.path[::2], 9), "west is not connected to sat")
    with_line(
        lambda line: line.network.add_vp(line.path, 9, VcSettings(shape={"pcr_bps": 10**6, "at": "west"})),
        "doesn't pass",
    )
    with_line(
        lambda line: line.network.add_vp(line.path, 9, VcSettings(policy="ppd")),
        "policy 'ppd' discards frames",
        vcis=(),
    )
    with_line(lambda line: line.add(0, 600, credits=10), "credits cannot pass through a virtual path")
    with_line(lambda line: line.add(0, 100, vpi=5), "VPI/VCI 7/100 is used twice at port 3 of east")
    with_line(lambda line: line.add(0, 600, police={"pcr_bps": 10**6, "cdvt_ps": 0, "at": "sat"}), "doesn't pass")


def test_where_vcs_are_known_epd_keeps_packets_whole_and_a_path_cuts_them() -> None:
    """Three sources with half again what the line takes: by VC whole packets fill it; by path as many cells come
    through, of packets that mostly lack some."""
    shares = []
    for vp in (False, True):
        line = Line(vp=vp, cells=1000, cell_rate_bps=30_000_000)
        delivered = [len(got) for got in line.send(150)[:3]]
        counters = line.network.counters()["sat"]
        sent = sum(counters["departed"][k] for k in (range(3) if not vp else [0]))
        dropped = {why: sum(counters[f"drop_{why}"]) for why in ("epd", "full", "ppd")}
        assert dropped["epd" if not vp else "full"] > 3000 and sum(dropped.values()) > 4000
        shares.append(sum(delivered) * 42 / sent)
    assert shares[0] > 0.98
    assert shares[1] < 0.6


def test_losses_of_a_sonet_line_in_a_path() -> None:
    """A line's loss inside a path is reported for the VC whose cell it was."""
    line = Line(sonet=True)
    got = line.send(15)
    accounts = line.network.ledger()
    assert [account.delivered for account in accounts[:3]] == [len(each) for each in got[:3]]
    assert {where for account in accounts[:3] for where, _ in account.lost} == {"line"}


def test_under_way_in_a_path_at_any_time() -> None:
    """PDUs queued in the third switch are neither lost nor missed, whenever one looks."""
    line = Line()
    network = line.network
    for n in range(20):
        for k in range(3):
            network.send(line.sources[k].index, line.there[k], bytes([n]) * 2000)
    busy = 0
    for step in range(1, 60):
        while network.now_ps < step * MS // 2:
            network.run(step * MS // 2)
        waiting = line.sat.csr.occupancy
        accounts = network.ledger()
        assert all(account.delivered + account.lost.get(("", "under way"), 0) == 20 for account in accounts[:3])
        busy += waiting > 500
    assert busy > 5
    assert [account.delivered for account in accounts[:3]] == [20] * 3


def test_a_vc_that_is_copied_behind_its_path() -> None:
    """A point-to-multipoint VC goes through the path once, and is copied where it comes out: what the path's switch
    drops is lost to both leaves."""
    line = Line(limit=40, vcis=(), start=False)
    network = line.network
    leaves = [[line.sources[0], *line.path, sink] for sink in line.sinks[:2]]
    copied = network.add_vc(leaves[0], 0, 100, branches=leaves[1:])
    other = line.add(1, 101)
    network.start()
    for n in range(60):
        network.send(line.sources[0].index, copied, bytes([n]) * 2000)
        network.send(line.sources[1].index, other, bytes([n]) * 2000)
    while network.now_ps < 100 * MS:
        network.run(100 * MS)
    network.check_conservation()
    first, second, _ = network.ledger()
    assert sum(vc.vpc for vc in line.sat.vcs) == 2 == len(line.sat.vcs)
    assert first.sent == second.sent == 60 and first.delivered == second.delivered < 60
    assert first.lost["sat", "full"] == second.lost["sat", "full"] > 10
    assert [nic.driver.received(copied) for nic in line.sinks[:2]] == [first.delivered, second.delivered]
