"""A network with everything that can happen to a cell, for the comparison of cocotb with the native harness."""

from bentpipe_hdl.link.control import LinkSettings
from bentpipe_hdl.switch.control import SwitchSettings, VcSettings
from bentpipe_sim.network import Network

MS = 10**9
END_PS = 14 * MS


def satellite(ber=1e-4):
    """Two senders into one line with bit errors; the second overruns its share of the buffer."""
    network = Network(seed=11)
    a, b, c = (network.add_nic(name) for name in "abc")
    west = network.add_switch("west", SwitchSettings(buffer_cells=256, epd_threshold=150))
    east = network.add_switch("east", SwitchSettings(buffer_cells=256))
    out = network.add_link("out", LinkSettings(delay_ps=2 * MS, ber=ber))
    back = network.add_link("back", LinkSettings(delay_ps=2 * MS))
    for node, face in ((a, (west, 0)), (c, (west, 1)), (b, (east, 0))):
        network.connect(node, face)
        network.connect(face, node)
    network.connect((west, 3), out)
    network.connect(out, (east, 3))
    network.connect((east, 3), back)
    network.connect(back, (west, 3))
    vcs = (
        network.add_vc([a, west, out, east, b], 0, 100),
        network.add_vc([c, west, out, east, b], 1, 200, VcSettings(policy="ppd", limit=100)),
        network.add_vc([b, east, back, west, a], 0, 101),
    )
    return network, (a, b, c), vcs


def load(network, nics, vcs):
    """Hand 16 PDUs to each of the two senders."""
    for k in range(16):
        network.send(nics[0].index, vcs[0], b"first", key=1, offset=1000 * k, length=4000)
        network.send(nics[2].index, vcs[1], b"second", key=2, offset=500 * k, length=1500 + 170 * k)


def summary(events, digests):
    """Return the results that have to agree: a PDU's fate and time, and the digest of each port's cells."""
    return {
        "events": [[e.time_ps, e.nic, e.vc, int(e.status), e.length, e.head.hex()] for e in events],
        "digests": {f"{name}:{port}": f"{digest:016x}" for (name, port), digest in sorted(digests.items())},
    }
