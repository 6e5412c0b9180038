"""Two interfaces, a switch and a satellite link without TCP: what a PDU takes, and what is lost, exact to the tick.

Run it: ``python examples/own_network.py``. It posts 20 PDUs at once on two VCs that share a line, which is slower than
what comes, and prints when each one arrives and what the switch discarded. Every figure is the hardware's own.
"""

from bentpipe_hdl.link.control import LinkSettings
from bentpipe_hdl.nic.control import NicLine
from bentpipe_hdl.switch.control import SwitchPort, SwitchSettings
from bentpipe_sim.interface import PduStatus
from bentpipe_sim.network import Network

OC3_BPS = 149_760_000
"""Cell rate of an OC-3c line in bits a second: 2,340 octets of each frame."""

T1_BPS = 1_536_000
MS = 10**9
"""A millisecond in picoseconds."""


def build(buffer_cells: int) -> tuple[Network, dict[str, tuple[int, int]]]:
    """Return a network, and for each VC the index of its interface and its number there."""
    network = Network(seed=1)
    sources = [network.add_nic(name, line=NicLine(OC3_BPS)) for name in ("a", "b")]
    sink = network.add_nic("sink", line=NicLine(OC3_BPS))
    settings = SwitchSettings(buffer_cells=buffer_cells, processing_delay_ps=0)
    ports = [SwitchPort(rate) for rate in (OC3_BPS, OC3_BPS, T1_BPS)]
    switch = network.add_switch("switch", settings, ports=ports)
    link = network.add_link("satellite", LinkSettings(delay_ps=250 * MS))
    for port, source in enumerate(sources):
        network.connect(source, (switch, port))
    network.connect((switch, 2), link)
    network.connect(link, sink)
    numbers = [network.add_vc([source, switch, link, sink], 0, 32 + k) for k, source in enumerate(sources)]
    return network, {source.name: (source.index, number) for source, number in zip(sources, numbers, strict=True)}


def run(pdus: int, octets: int, buffer_cells: int) -> tuple[list[tuple[str, float, str]], list[str]]:
    """Return VC, time in milliseconds and status of each PDU that ends at the sink, and what became of each VC's."""
    network, vcs = build(buffer_cells)
    try:
        for _ in range(pdus):
            for nic, vc in vcs.values():
                network.send(nic, vc, b"", length=octets)
        name = {vc: name for name, (_, vc) in vcs.items()}
        ended = []
        while network.now_ps < 1000 * MS:
            for event in network.run(1000 * MS):
                if event.status != PduStatus.SENT:
                    ended.append((name[event.vc], event.time_ps / MS, PduStatus(event.status).name))
        network.check_conservation()  # cells in = cells out + cells dropped + cells queued, at every node
        accounts = []
        for each in network.ledger():
            lost = ", ".join(f"{count} at {node} ({why})" for (node, why), count in each.lost.items())
            accounts.append(f"{each.source}: {each.sent} sent, {each.delivered} delivered, lost: {lost or 'none'}")
    finally:
        network.close()
    return ended, accounts


def main() -> None:
    """Print the times of arrival."""
    ended, accounts = run(10, 4_470, 400)
    for name, time_ms, status in ended:
        print(f"{name}: {time_ms:.6f} ms {status}")
    print("\n".join(accounts))


if __name__ == "__main__":
    main()
