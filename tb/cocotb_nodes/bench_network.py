"""Runs inside cocotb: the scenario, and a TCP transfer. Started by test_network.py."""

import json
import os

from cocotb.task import bridge

import cocotb
from bentpipe.apps.ttcp import Ttcp
from bentpipe.hosts.config import HostConfig
from bentpipe.hosts.engine import Engine
from bentpipe.tcp.config import TcpConfig
from cocotb_nodes.loop import RtlNetwork
from cocotb_nodes.scenario import END_PS, load, satellite, summary


@cocotb.test()
async def scenario(dut):
    spec, nics, vcs = satellite()
    network = RtlNetwork(dut, spec)
    await network.start()
    load(network, nics, vcs)
    events = []
    while network.now_ps < END_PS:
        events += await network.advance(END_PS)
    digests = {(node.spec.name, port): digest for node in network.nodes for port, digest in node.digests.items()}
    counters = {node.spec.name: await bridge(node.spec.counters)() for node in network.nodes}
    with open(os.environ["BENTPIPE_RESULT"], "w") as file:
        json.dump({**summary(events, digests), "counters": counters}, file)


@cocotb.test()
async def transfer(dut):
    spec, nics, vcs = satellite(ber=1e-5)
    network = RtlNetwork(dut, spec)
    await network.start()
    engine = Engine(network)
    cost = 62_000_000
    source = engine.add_host(HostConfig(name="source", send_cost_ps=cost, receive_cost_ps=cost), nics[0].index)
    sink = engine.add_host(HostConfig(name="sink", send_cost_ps=cost, receive_cost_ps=cost), nics[1].index)
    tcp = TcpConfig(mss=1460, send_buffer=1 << 16, receive_buffer=1 << 16)
    flow = engine.add_tcp_flow("flow", source, sink, vcs[0], vcs[2], tcp, app=Ttcp(60_000))
    await bridge(engine.run)(10**13)
    report = flow.report(network.now_ps)
    with open(os.environ["BENTPIPE_RESULT"], "w") as file:
        json.dump(
            {
                "octets": report.octets_delivered,
                "bad": report.bad_octets,
                "retransmitted": report.retransmits,
                "end_ps": network.now_ps,
            },
            file,
        )
