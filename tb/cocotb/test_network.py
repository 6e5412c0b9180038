"""A whole network in cocotb, clock by clock on Amaranth's own Verilog, against the native harness."""

import json
from functools import partial

from benches.rig import rig_of
from benches.run import run
from bentpipe.apps.ttcp import Ttcp
from bentpipe.hosts.config import HostConfig
from bentpipe.hosts.engine import Engine
from bentpipe.tcp.config import TcpConfig
from cocotb_nodes.scenario import END_PS, load, satellite, summary


def _in_cocotb(case, tmp_path):
    network, _, _ = satellite()
    result = tmp_path / "result.json"
    shapes = {node.name: node.shape() for node in network.nodes}
    run(partial(rig_of, shapes), "cocotb_nodes.bench_network", tmp_path, case, BENTPIPE_RESULT=str(result))
    return json.loads(result.read_text())


def _native():
    network, nics, vcs = satellite()
    network.trace()
    load(network, nics, vcs)
    events = []
    while network.now_ps < END_PS:
        events += network.run(END_PS)
    network.check_conservation()
    counters = {node.name: node.counters() for node in network.nodes}
    used = {face: digest for face, digest in network.digests().items() if digest}
    return {**summary(events, used), "counters": counters}


def test_the_same_cells_at_the_same_ticks(tmp_path):
    """The same drivers also set the nodes up and read their counters."""
    native = _native()
    assert native["counters"]["out"]["errored"] > 10, "the link had errors"
    west = native["counters"]["west"]
    assert west["drop_epd"][0] > 0 and west["drop_ppd"][1] > 0, "EPD and PPD dropped cells"
    assert {event[3] for event in native["events"]} >= {0, 1}, "some PDUs are whole, some are not"
    assert _in_cocotb("scenario", tmp_path) == native


def test_tcp_crosses_the_network(tmp_path):
    """60 kB by TCP through NIC, switch, link with errors, switch, NIC: all right, and as in the native harness."""
    result = _in_cocotb("transfer", tmp_path)
    network, nics, vcs = satellite(ber=1e-5)
    engine = Engine(network)
    cost = 62_000_000
    source = engine.add_host(HostConfig(name="source", send_cost_ps=cost, receive_cost_ps=cost), nics[0].index)
    sink = engine.add_host(HostConfig(name="sink", send_cost_ps=cost, receive_cost_ps=cost), nics[1].index)
    tcp = TcpConfig(mss=1460, send_buffer=1 << 16, receive_buffer=1 << 16)
    flow = engine.add_tcp_flow("flow", source, sink, vcs[0], vcs[2], tcp, app=Ttcp(60_000))
    engine.run(10**13)
    report = flow.report(network.now_ps)
    assert result == {
        "octets": 60_000,
        "bad": 0,
        "retransmitted": report.retransmits,
        "end_ps": network.now_ps,
    }
    assert report.retransmits > 0, "errors on the link made TCP send something again"
