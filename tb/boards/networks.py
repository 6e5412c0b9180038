"""Small networks for boards, one for each thing that could be otherwise there, and traffic for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from bentpipe_hdl.link.control import LinkSettings
from bentpipe_hdl.switch.control import PortSettings, SwitchPort, SwitchSettings, VcSettings
from bentpipe_hdl.switch.options.credits.control import CreditSettings
from bentpipe_hdl.switch.options.reactive.control import ReactiveSettings
from bentpipe_sim.interface import PduEvent
from bentpipe_sim.network import Network

__all__ = ["NETWORKS", "play", "play_alone"]

_MS: Final = 10**9


def _star(network: Network, *, ber: float = 0.0, port: PortSettings | None = None) -> list[int]:
    """Two interfaces at a switch, a third behind two links at its port 2, which both overrun."""
    n0, n1, n2 = (network.add_nic(name) for name in ("n0", "n1", "n2"))
    ports = [SwitchPort(settings=port or PortSettings()) if number == 2 else SwitchPort() for number in range(4)]
    switch = network.add_switch("switch", SwitchSettings(buffer_cells=256, epd_threshold=128), ports=ports)
    up, down = (network.add_link(name, LinkSettings(delay_ps=_MS // 2, ber=ber)) for name in ("up", "down"))
    for number, nic in enumerate((n0, n1)):
        network.connect(nic, (switch, number), delay_ps=6_000_000)
        network.connect((switch, number), nic)
    network.connect((switch, 2), up)
    network.connect(up, n2)
    network.connect(n2, down)
    network.connect(down, (switch, 2))
    paths = [[n0, switch, up, n2], [n1, switch, up, n2], [n2, down, switch, n0], [n0, switch, n1]]
    return [network.add_vc(path, 0, 100 + k) for k, path in enumerate(paths)]


def _credits(network: Network) -> list[int]:
    """Credits on all VCs, and two senders to one interface."""
    nics = [network.add_nic(name) for name in ("n0", "n1", "n2")]
    switch = network.add_switch("switch", SwitchSettings(credits=CreditSettings(share=64)))
    for number, nic in enumerate(nics):
        network.connect(nic, (switch, number))
        network.connect((switch, number), nic)
    vcs = {}
    for number, (a, b) in enumerate(((0, 2), (1, 2), (0, 1))):
        for source, sink in ((a, b), (b, a)):
            vcs[source, sink] = network.add_vc(
                [nics[source], switch, nics[sink]], 0, 100 + number, VcSettings(credits=16)
            )
    return [vcs[0, 2], vcs[1, 2], vcs[2, 0], vcs[0, 1]]


def _reactive(network: Network) -> list[int]:
    reactive = ReactiveSettings(floor_bps=5 * 10**7, ceiling_bps=10**8, low=2, high=60)
    return _star(network, port=PortSettings(reactive=reactive))


NETWORKS: Final[dict[str, Callable[[Network], list[int]]]] = {
    "overrun": _star,
    "bit errors": lambda network: _star(network, ber=1e-5),
    "many bit errors": lambda network: _star(network, ber=1e-3),
    "credits": _credits,
    "reactive port": _reactive,
}


def play(network: Network, vcs: list[int], *, pdus: int, until_ms: float = 8) -> list[PduEvent]:
    """Two interfaces send, the third one answers each PDU; what came."""
    found: list[PduEvent] = []
    answered = 0
    for k in range(pdus):
        network.send(0, vcs[0], b"alpha%04d" % k, 1, 1000 * k, 1500)
        network.send(1, vcs[1], b"bravo%04d" % k, 2, 500 * k, 1500 + 37 * k)
        network.send(0, vcs[3], b"local%04d" % k, 3, 100 * k, 100 + k)
    until = round(until_ms * _MS)
    while network.now_ps < until:
        for event in network.run(until):
            found.append(event)
            if event.nic == 2 and event.status == 0:
                network.send(2, vcs[2], b"chars%04d" % answered, 4, 10 * answered, 40)
                answered += 1
    return found


def play_alone(network: Network, *, pdus: int) -> list[PduEvent]:
    """An interface whose PDUs come back to it through a link with errors; what came."""
    nic, link = network.add_nic("nic"), network.add_link("link", LinkSettings(delay_ps=_MS // 5, ber=1e-5))
    network.connect(nic, link)
    network.connect(link, nic)
    vcs = [network.add_vc([nic, link, nic], 0, 100 + k) for k in range(2)]
    found: list[PduEvent] = []
    for k in range(pdus):
        network.send(0, vcs[k % 2], b"%04d" % k, k, 10 * k, 1 + 97 * k)
    until = 15 * _MS
    while network.now_ps < until:
        found += network.run(until)
    return found
