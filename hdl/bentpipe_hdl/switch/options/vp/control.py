"""Virtual paths as software sees them: a switch that passes them looks at VPIs only (I.311, I.361)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from bentpipe_hdl.lookup_table import lookup_registers, lookup_table
from bentpipe_hdl.registers import Register, Registers
from bentpipe_hdl.switch.options.base import Fault, Option, Setup

__all__ = ["MOST_PATHS", "OPTIONS", "VirtualPaths", "paths_of"]

MOST_PATHS: Final = 256
"""Virtual paths through a switch at most: its second look-up table has no more entries."""


def paths_of(vcs: int) -> int:
    """Return the most virtual path connections among the VCs of a switch that is built for so many VCs."""
    return min(vcs, MOST_PATHS)


class VirtualPaths(Option):
    """Virtual path connections: what comes with their VPI continues another, and with the VCI that it has."""

    name = "vp"
    bit = 15

    def wanted(self, setup: Setup) -> bool:
        return any(vc.vpc or vc.ends_path for vc in setup.vcs)

    def check(self, setup: Setup) -> Iterator[Fault]:
        paths = [(k, vc) for k, vc in enumerate(setup.vcs) if vc.vpc]
        if len(paths) > MOST_PATHS:
            what = f"{len(paths)} virtual paths are more than the {MOST_PATHS} that pass a switch"
            yield Fault(what, "path", vc=paths[MOST_PATHS][0])
        for way, places in (
            ("comes in at", [(vc.vpc, vc.in_port, vc.in_vpi) for vc in setup.vcs]),
            ("goes out at", [(vc.vpc, vc.out_port, vc.out_vpi) for vc in setup.vcs]),
        ):
            counts = Counter((port, vpi) for _, port, vpi in places)
            for port, vpi in dict.fromkeys((port, vpi) for vpc, port, vpi in places if vpc):
                if counts[port, vpi] > 1:
                    what = f"a virtual path {way} port {port} with VPI {vpi}, which something else has there"
                    yield Fault(what, "vpi", vc=places.index((True, port, vpi)))
        for k, vc in paths:
            what = f"the virtual path with VPI {vc.in_vpi} at port {vc.in_port}"
            if problem := _frames(vc, setup):
                yield Fault(f"{what}: {problem}; the frames of its VCs interleave in it", vc=k)
        if setup.settings.credits or any(vc.settings.credits for vc in setup.vcs):
            what = "a switch that virtual paths pass has no credits: those of a VC are told on the VC"
            yield Fault(what, "path", vc=paths[0][0] if paths else None)

    def registers(self, *, vcs: int, cells: int, ports: int) -> tuple[Register, ...]:
        del cells, ports
        return lookup_registers(paths_of(vcs), paths=True)

    def configure(self, csr: Registers, setup: Setup) -> None:
        vcs = csr.map.shape["vcs"]
        entries = {(vc.in_port, vc.in_vpi, 0): index for index, vc in enumerate(setup.vcs) if vc.vpc}
        lookup_table(paths_of(vcs), entries, vcs=vcs).write(csr, "vp_lookup")


def _frames(vc: Any, setup: Setup) -> str:
    """Return a text about a setting of a path that would need frames; "" if there is none."""
    settings, port = vc.settings, setup.ports[vc.out_port].settings
    if settings.policy not in (None, "tail"):
        return f"policy '{settings.policy}' discards frames"
    if settings.epd_threshold is not None:
        return "an epd_threshold refuses frames"
    if settings.police is not None and settings.police.packets:
        return "policing by packets discards frames"
    for key in ("red", "queue_limit"):
        if getattr(port, key) is not None:
            return f"{key} of port {vc.out_port} refuses frames"
    return ""


OPTIONS: Final = (VirtualPaths(),)
