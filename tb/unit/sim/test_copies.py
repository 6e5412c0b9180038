"""Point-to-multipoint VCs in a network: who gets what, and the account of each leaf."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from bentpipe_hdl.link.control import LinkSettings
from bentpipe_hdl.nic.control import NicLine
from bentpipe_hdl.switch.control import VcSettings
from bentpipe_sim.errors import NetworkError
from bentpipe_sim.network import Network
from bentpipe_sim.nodes import Nic, Node
from models.lines import switch_ports, vc_settings

MS = 10**9


class Tree:
    """A root and four leaves: ``a`` at the first switch, ``b`` and ``c`` behind a link at the second, ``d`` behind
    another one at a third switch. Copies are made in the first, and in the second of copies."""

    def __init__(
        self, *, ber: float = 0.0, slow: float = 149_760_000, lose: tuple[int, ...] = (), **settings: Any
    ) -> None:
        self.network = network = Network(seed=3)
        one, two, three = (
            network.add_switch(f"s{k}", ports=switch_ports((149_760_000, slow, 149_760_000, 149_760_000)))
            for k in range(3)
        )
        self.source = network.add_nic("source")
        self.sinks: dict[str, Nic] = {name: network.add_nic(name) for name in "abcd"}
        places = {"a": (one, 1), "b": (two, 1), "c": (two, 2), "d": (three, 1)}
        for nic, face in ((self.source, (one, 0)), *((self.sinks[name], face) for name, face in places.items())):
            network.connect(nic, face)
            network.connect(face, nic)
        self.links = [network.add_link(name, LinkSettings(delay_ps=MS, ber=ber)) for name in ("near", "far")]
        for link, face, switch in zip(self.links, ((one, 2), (two, 3)), (two, three), strict=True):
            network.connect(face, link)
            network.connect(link, (switch, 0))
        near, far = self.links
        trunk: list[Node] = [self.source, one, near, two]
        paths = {
            "a": [self.source, one, self.sinks["a"]],
            "b": [*trunk, self.sinks["b"]],
            "c": [*trunk, self.sinks["c"]],
            "d": [*trunk, far, three, self.sinks["d"]],
        }
        first, *branches = paths.values()
        self.vc = network.add_vc(first, 0, 100, **vc_settings(**settings), branches=branches)
        if lose:
            near.lose(0, 100, pdus=lose)
        self.got: dict[str, list[int]] = {name: [] for name in paths}

    def run(self, sizes: list[int]) -> dict[str, Counter[tuple[str, str]]]:
        """Send a PDU of each size; what each leaf lost, by where and why."""
        network = self.network
        names = {nic.index: name for name, nic in self.sinks.items()}
        for number, size in enumerate(sizes):
            network.send(self.source.index, self.vc, number.to_bytes(2, "big") + bytes([number & 255]) * (size - 2))
        while network.now_ps < 200 * MS:
            for event in network.run(200 * MS):
                if event.status == 0:
                    sdu = network.sdu(event.handle)[: event.length]
                    number = int.from_bytes(sdu[:2], "big")
                    assert sdu[2:] == bytes([number & 255]) * (sizes[number] - 2)
                    self.got[names[event.nic]].append(number)
        network.check_conservation()
        accounts = network.ledger()
        assert [account.sink for account in accounts] == list("abcd")
        for account in accounts:
            assert (account.sent, account.delivered) == (len(sizes), len(self.got[account.sink]))
        return {account.sink: Counter(account.lost) for account in accounts}


def test_every_leaf_gets_every_pdu_once_and_in_order() -> None:
    tree = Tree()
    rng = random.Random(1)
    lost = tree.run([rng.randrange(40, 4000) for _ in range(60)])
    assert tree.got == {leaf: [*range(60)] for leaf in "abcd"}
    assert not any(lost.values())
    counters = tree.network.counters()
    assert counters["s0"]["copies"] > 0 == counters["s0"]["copies_waiting"]
    assert counters["s1"]["copies"] == 2 * counters["s0"]["copies"]
    assert "copies" not in counters["s2"]


def test_a_loss_before_the_branching_counts_for_all_behind_it() -> None:
    tree = Tree(lose=(3, 7))
    lost = tree.run([500] * 10)
    assert lost == {"a": {}} | {leaf: {("near", "listed loss"): 2} for leaf in "bcd"}
    assert tree.got["d"] == [0, 1, 3, 4, 5, 7, 8, 9]


def test_a_slow_leaf_loses_its_own_frames_alone() -> None:
    """The ports to a, b and d are slower than the source, each with its own VC's limit; c's isn't."""
    tree = Tree(slow=20_000_000, policy="epd", limit=100, epd_threshold=60)
    lost = tree.run([900] * 100)
    assert tree.got["c"] == [*range(100)] and not lost["c"]
    for leaf, switch in (("a", "s0"), ("b", "s1"), ("d", "s2")):
        assert 5 < len(tree.got[leaf]) < 60
        assert {where for where, _ in lost[leaf]} == {switch}


@pytest.mark.parametrize("ber", [1e-6, 1e-5, 1e-4])
def test_bit_errors_and_drops_at_once(ber: float) -> None:
    """Losses by errors of the near link are the same for all leaves behind it, and each leaf's account balances."""
    tree = Tree(ber=ber, slow=60_000_000, policy="epd", limit=200, epd_threshold=120)
    lost = tree.run([random.Random(ber).randrange(40, 3000) for _ in range(150)])
    near = {leaf: {key: n for key, n in rows.items() if key[0] == "near"} for leaf, rows in lost.items()}
    assert near["a"] == {} and near["b"] == near["c"] == near["d"] != {}
    assert {where for leaf in "abc" for where, _ in lost[leaf]} >= {"s0", "s1"}


def test_the_roots_contract_holds_for_all() -> None:
    police = {"pcr_bps": 20_000_000, "cdvt_ps": 10**8, "packets": True}
    tree = Tree(police=police)
    lost = tree.run([900] * 40)
    assert lost["a"][("s0", "UPC")] > 5
    assert all(rows == lost["a"] for rows in lost.values())


def test_what_is_refused_for_want_of_room_no_leaf_gets() -> None:
    """Four OC-12c lines bring a cell in each tick, as long as all send: nobody's copy finds one without."""
    network, rate = Network(seed=1), 599_040_000
    switch = network.add_switch("s", ports=switch_ports((rate,) * 4))
    nics = [network.add_nic(f"n{k}", line=NicLine(rate)) for k in range(4)]
    for port, nic in enumerate(nics):
        network.connect(nic, (switch, port))
        network.connect((switch, port), nic)
    paths = [[nics[0], switch, nics[k]] for k in (1, 2, 3)]
    vcs = [(0, network.add_vc(paths[0], 0, 100, VcSettings(policy="epd"), branches=paths[1:]))]
    vcs += [(k, network.add_vc([nics[k], switch, nics[k % 3 + 1]], 0, 100 + k)) for k in (1, 2, 3)]
    for k in range(30):
        for nic, vc in vcs[: 1 if k > 9 else None]:
            network.send(nics[nic].index, vc, bytes([k]) * 2000)
    while network.now_ps < 20 * MS:
        network.run(20 * MS)
    network.check_conservation()
    first, *others = network.ledger()[:3]
    assert all(each.lost == first.lost and each.delivered == first.delivered for each in others)
    assert first.lost.keys() == {("s", "copies")} and 10 < first.delivered < 25


def test_what_is_refused() -> None:
    tree = Tree()
    network, source, (switch, *_) = tree.network, tree.source, [n for n in tree.network.nodes if n.kind == "switch"]
    a, b = tree.sinks["a"], tree.sinks["b"]
    with pytest.raises(NetworkError, match="its branches begin at source, each to another NIC"):
        network.add_vc([source, switch, a], 0, 101, branches=[[source, switch, a]])
    with pytest.raises(NetworkError, match="s0 is not connected to b"):
        network.add_vc([source, switch, a], 0, 101, branches=[[source, switch, b]])
    with pytest.raises(NetworkError, match="it leads to several hosts; credits work with one sink only"):
        tree = Tree(credits=100)
