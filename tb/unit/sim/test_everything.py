"""Random networks whose switches have every option there is, all at once: nothing is lost that isn't accounted for."""

import random

import pytest

from bentpipe_hdl.link.control import LinkSettings
from bentpipe_hdl.switch.control import PortSettings, SwitchSettings, VcSettings
from bentpipe_hdl.switch.options import options_word
from bentpipe_hdl.switch.options.histograms.control import HistogramSettings
from bentpipe_hdl.switch.options.oam.control import OamSettings, OamSwitchSettings
from bentpipe_hdl.switch.options.police.control import PoliceSettings
from bentpipe_hdl.switch.options.reactive.control import ReactiveSettings
from bentpipe_hdl.switch.options.red.control import RedSettings
from bentpipe_sim.network import Network
from models.lines import switch_ports

MS = 10**9
OC3 = 149_760_000
SCHEDULERS = ("round-robin", "weighted", "fifo")
PATH_PORTS = (0, 3)
"""By which virtual paths leave."""

TOGETHER = options_word(
    [
        "reactive", "queue_limit", "red", "fifo", "shares", "police", "port_epd", "fair", "minimum", "efci",
        "histograms", "vp", "oam", "copies",
    ]
)  # fmt: skip
"""Options that go together. Each of the others has networks of its own in other tests."""


def port_settings(rng, k):
    """Return the options of a port: each switch has some ports with each option. Ports 0 and 3 have no option that goes
    by frames.
    """
    reactive, frames = None, k not in PATH_PORTS
    if k == 0 or rng.random() < 0.3:
        floor, ceiling = rng.choice([0, 1_000_000, 20_000_000]), rng.choice([20_000_000, 100_000_000, OC3])
        low, high = sorted(rng.choices(range(60), k=2))
        reactive = ReactiveSettings(
            floor_bps=floor, ceiling_bps=ceiling, low=low, high=high, up_bps=rng.randrange(1, 9) * 10**7,
            down_bps=rng.randrange(1, 9) * 10**7, counted=rng.choice(["cells", "packets"]), interval_ps=MS // 4,
            average=rng.choice([1.0, 0.3]),
        )  # fmt: skip
    return PortSettings(
        reactive=reactive,
        queue_limit=rng.choice([4, 20]) if frames and (k == 1 or rng.random() < 0.3) else None,
        red=RedSettings(low=1.0, high=9.0, weight=0.1) if frames and (k == 2 or rng.random() < 0.3) else None,
        scheduler=SCHEDULERS[k % 3],
        epd_threshold=30 if k == 3 else rng.choice([None, 40]),
        efci_threshold=rng.choice([None, 5]),
    )


def make(rng):
    network = Network(seed=rng.randrange(1000))
    switches = [
        network.add_switch(
            f"s{k}",
            ports=switch_ports([OC3] * 6, settings={port: port_settings(rng, port) for port in range(6)}),
            settings=SwitchSettings(
                buffer_cells=150,
                policy=rng.choice(["epd", "selective", "fba"]),
                epd_threshold=100,
                oam_reserve=rng.choice([0, 10]),
                efci_threshold=rng.choice([0, 60]),
                vc_minimum=rng.choice([1, 4]),
                oam=OamSwitchSettings(scan_ps=MS),
                histograms=HistogramSettings(bins=rng.choice(["logarithmic", "linear"])),
            ),
        )
        for k in range(2)
    ]
    for a, b in (switches, switches[::-1]):
        link = network.add_link(f"{a.name}-{b.name}", LinkSettings(delay_ps=MS // 5, ber=rng.choice([0, 1e-6])))
        network.connect((a, 0), link)
        network.connect(link, (b, 0))
    nics = [[network.add_nic(f"n{k}{port}") for port in range(1, 6)] for k in range(2)]
    for k, (switch, own) in enumerate(zip(switches, nics, strict=True)):
        for port, nic in enumerate(own, 1):
            network.connect(nic, (switch, port))
            network.connect((switch, port), nic)
            assert k in (0, 1)
    vcs = []
    for here, there in ((0, 1), (1, 0)):  # a virtual path through both switches, with two VCs each way
        a, b = switches[here], switches[there]
        path = [nics[here][2], a, next(n for n in network.nodes if n.name == f"{a.name}-{b.name}"), b, nics[there][2]]
        police = PoliceSettings(pcr_bps=30_000_000, cdvt_ps=MS, pcr_action="tag")
        network.add_vp(path, 9, VcSettings(weight=rng.randrange(1, 5), limit=rng.choice([0, 30]), police=police))
        vcs += [(path[0].index, network.add_vc(path, 0, 200 + k)) for k in (here, here + 2)]
    for number in range(12):
        here, there = number % 2, rng.randrange(2)
        source, sink = rng.sample(range(5), 2)
        path = [nics[here][source], *dict.fromkeys([switches[here], switches[there]]), nics[there][sink]]
        if here != there:
            path.insert(2, next(n for n in network.nodes if n.name == f"{switches[here].name}-{switches[there].name}"))
        police = None
        if number < 4 or rng.random() < 0.3:
            police = PoliceSettings(
                pcr_bps=20_000_000, cdvt_ps=rng.choice([0, MS]), pcr_action=rng.choice(["discard", "tag"]),
                packets=rng.random() < 0.5,
            )  # fmt: skip
        branches = []
        if number < 2:  # a leaf in each switch
            leaf = next(nic for nic in nics[here] if nic not in (path[0], path[-1]))
            branches = [[path[0], switches[here], leaf]]
        settings = VcSettings(
            weight=rng.randrange(1, 5), priority=rng.randrange(2), service_rate_bps=rng.choice([None, 10_000_000]),
            police=police, efci_threshold=rng.choice([None, 3]),
            policy=rng.choice([None, "ppd", "fba", "selective"]) if number > 1 else "fba",
            oam=OamSettings() if number > 1 and number % 3 else None,
        )  # fmt: skip
        index = network.add_vc(path, 0, 100 + number, settings, branches=branches)
        vcs.append((path[0].index, index))
    return network, switches, vcs


@pytest.mark.parametrize("seed", range(3))
def test_the_account_holds_with_every_option_at_once(seed):
    rng = random.Random(seed)
    network, switches, vcs = make(rng)
    network.start()
    for switch in switches:
        assert dict(switch.shape().parameters)["options"] == TOGETHER
    for step in range(40):
        for nic, vc in rng.choices(vcs, k=rng.choice([0, 2, 12, 30])):
            network.send(nic, vc, b"", key=vc + 1, length=rng.choice([40, 300, 1500, 9180]))
        rng.choice(switches).csr.oam_defects = rng.choice([0, rng.getrandbits(6)])
        until = (step + 1) * MS * 2
        while network.now_ps < until:
            network.run(until)
    network.check_conservation()
    network.ledger()
    counters = [network.counters()[switch.name] for switch in switches]
    drops = [(name, value) for counted in counters for name, value in counted.items() if name.startswith("drop_")]
    reasons = {name for name, value in drops if value and (isinstance(value, int) or any(value))}
    assert len(reasons) >= 3, reasons
    assert sum(sum(counted["oam_sent_ais"]) for counted in counters) > 20
