"""The state of a network: a copy goes on as the network itself does, and a state that doesn't fit is refused."""

import copy as copy_module
import dataclasses
import hashlib
import os
import pickle
import subprocess
import sys

import pytest

from bentpipe_hdl.link.options import OPTIONS as LINK_OPTIONS
from bentpipe_hdl.nic.options import OPTIONS as NIC_OPTIONS
from bentpipe_hdl.sonet.control import SonetSettings
from bentpipe_hdl.switch.options import OPTIONS as SWITCH_OPTIONS
from bentpipe_sim.errors import SimulationError
from bentpipe_sim.network import Network
from unit.sim.test_network import MS, satellite


def copy(network, saved, captures=None):
    found = pickle.loads(pickle.dumps(network))
    found.restore(saved, captures)
    return found


def feed(network, nics, vcs, first):
    for k in range(first, first + 40):
        network.send(nics[0].index, vcs[0], b"first", key=1, offset=1000 * k, length=4000)
        network.send(nics[2].index, vcs[1], b"second", key=2, offset=500 * k, length=1500 + 17 * k)


def go(network, until_ps):
    events = []
    while network.now_ps < until_ps:
        for event in network.run(until_ps):
            right = event.status == 0 and network.check(event.handle, 5, 1, 0, 1)
            events.append((event, right, network.checksum(event.handle, 0, event.length) if event.status == 0 else 0))
    return events


def outcome(network):
    network.check_conservation()
    most = [network.loop.wire_most(node.index, port) for node in network.nodes for port in node.inputs]
    return network.digests(), network.counters(), network.ledger(), network.loss_records(), network.stats(), most


# What there is between two runs: PDUs half cut into cells or half put together, cells on wires and in queues, losses in
# the ledger.
@pytest.mark.parametrize("at_us", [1, 1500, 3517, 5200, 11000])
def test_a_copy_goes_on_as_the_network_itself(at_us, tmp_path):
    network, nics, vcs = satellite(ber=1e-5)
    network.trace()
    network.record_losses(100_000)
    (tmp_path / "copy").mkdir()
    for kind, face in (("ip", nics[1]), ("cells", nics[0]), ("pdus", nics[2])):
        network.capture(tmp_path / kind, kind, face)
    feed(network, nics, vcs, 0)
    before = go(network, at_us * 10**6)
    saved = network.save()
    for file in ("ip", "cells", "pdus"):
        (tmp_path / "copy" / file).write_bytes((tmp_path / file).read_bytes() + b"what a killed run wrote later")
    other = copy(network, saved, tmp_path / "copy")
    ends = []
    for each in (network, other):
        feed(each, nics, vcs, 40)
        events = go(each, 60 * MS)
        each.end_captures()
        ends.append((events, outcome(each)))
    assert ends[0] == ends[1]
    assert len(before) + len(ends[0][0]) > 60
    assert ends[0][1][1]["out"]["errored"] > 0
    lost = sum(sum(account.cells.lost.values()) for account in ends[0][1][2])
    assert len(ends[0][1][3][0]) == 64 * lost > 0
    for file in ("ip", "cells", "pdus"):
        assert (tmp_path / file).read_bytes() == (tmp_path / "copy" / file).read_bytes()


def test_a_line_of_sonet_goes_on(tmp_path):
    network = Network(seed=3)
    a, b = (network.add_nic(name) for name in "ab")
    line = network.add_sonet_line("line", SonetSettings(ber=(2e-6, 2e-6)))
    for end, nic in enumerate((a, b)):
        network.connect(nic, (line, end))
        network.connect((line, end), nic)
    vc = network.add_vc([a, line, b], 0, 100)
    network.start()
    network.trace()
    for k in range(100):
        network.send(a.index, vc, b"head", key=1, offset=4000 * k, length=4000)
    go(network, 7 * MS + 123)
    other = copy(network, network.save())
    ends = [(go(each, 20 * MS), outcome(each)) for each in (network, other)]
    assert ends[0] == ends[1]
    assert any(lost for account in network.ledger() for lost in account.lost)


def test_options_of_a_copied_node_are_those_that_there_are():
    """A copied link is changed as the network's own is: its driver knows that the link has outages."""
    for options in (LINK_OPTIONS, NIC_OPTIONS, SWITCH_OPTIONS):
        for option in options:
            assert pickle.loads(pickle.dumps(option)) is option
            assert copy_module.copy(option) is copy_module.deepcopy(option) is option
    network, nics, vcs = satellite(start=False)
    out = next(node for node in network.nodes if node.name == "out")
    out.may_fail()
    network.start()
    other = copy(network, network.save())
    outcomes = []
    for each in (network, other):
        each.nodes[out.index].change(outage=True)
        feed(each, nics, vcs, 0)
        outcomes.append((go(each, 20 * MS), outcome(each)))
    assert outcomes[0] == outcomes[1]
    assert other.counters()["out"]["drop_outage"] > 0


def test_saving_is_nothing_to_the_network():
    ends = []
    for step in (60 * MS, MS // 3):
        network, nics, vcs = satellite(ber=1e-5)
        network.trace()
        feed(network, nics, vcs, 0)
        while network.now_ps < 60 * MS:
            go(network, min(network.now_ps + step, 60 * MS))
            network.save()
        network.check_conservation()
        ends.append((network.digests(), network.counters(), network.ledger()))
    assert ends[0] == ends[1]


def digest():
    network, nics, vcs = satellite(ber=1e-5)
    feed(network, nics, vcs, 0)
    go(network, 3517 * 10**6)
    return hashlib.sha256(network.save().octets).hexdigest()


def test_networks_that_are_alike_have_one_state():
    """It tells nothing of where in memory a network is, nor of what was there before."""
    command = [sys.executable, "-c", "from unit.sim.test_state import digest; print(digest())"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    another = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert digest() == digest() == another.stdout.strip()


def test_a_state_that_does_not_fit_is_refused(tmp_path):
    network, nics, vcs = satellite()
    network.capture(tmp_path / "cells", "cells", nics[0])
    feed(network, nics, vcs, 0)
    network.run(MS)
    saved = network.save()
    cut = dataclasses.replace(saved, octets=saved.octets[:-100])
    longer = dataclasses.replace(saved, octets=saved.octets + b"\0")
    for octets in (cut, longer):
        with pytest.raises(SimulationError, match=r"^the state is damaged, or of another network$"):
            copy(network, octets)
    built = dataclasses.replace(saved, models=("nic-old.so", *saved.models[1:]))
    with pytest.raises(
        SimulationError, match=r"^a is built differently than when the state was saved: nic-.*, not nic-old"
    ):
        copy(network, built)
    (tmp_path / "cells").write_bytes(b"short")
    with pytest.raises(SimulationError, match=r"cells has not the \d+ octets that it had when the state was saved$"):
        copy(network, saved)


def test_the_engine_verilator_gives_no_state():
    network, nics, vcs = satellite(engine="verilator")
    feed(network, nics, vcs, 0)
    network.run(MS)
    assert not network.saves
    with pytest.raises(
        SimulationError, match=r"^the network's state cannot be saved: the models of this engine give no state"
    ):
        network.save()
