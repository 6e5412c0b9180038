"""The packets of a trace: a capture, or a CSV file of time, size and VC."""

from __future__ import annotations

from typing import Final, final

from bentpipe.apps.app import Fact
from bentpipe.apps.blocks import LATE_BLOCKS, BlockSource
from bentpipe.apps.settings import ApplicationSpec, AppSetting, Column, FlowRequest, Problem, Report
from bentpipe.apps.trace_files import digest, find, packets, problem_of
from bentpipe.declarations import REQUIRED, TEXT
from bentpipe.ip.udp import STAMP_OCTETS, UDP_OVERHEAD
from bentpipe_hdl.units import NUMBER

__all__ = ["APPLICATION", "Trace"]


@final
class Trace(BlockSource):
    """A block for each packet, at its time behind the first; it ends with the last one.

    Members
    -------
    times : list of int
        When each is due (ps), from the beginning on.
    sizes : list of int
        Octets of its block.
    """

    def __init__(self, given: FlowRequest) -> None:
        super().__init__("trace", given.size, given.duration_ps, False)
        v = given.values
        path = find(v["file"], given.folder)
        taken = packets(path, v["of_vc"] or "")
        headers = UDP_OVERHEAD if v["sizes"] == "packet" else 0
        least = STAMP_OCTETS if given.protocol == "udp" else 1
        speed: float = v["speed"]
        self.times = [int(packet.time_ps / speed) for packet in taken]
        self.sizes = [max(least, packet.octets - headers) for packet in taken]
        self.filled = sum(packet.octets - headers < least for packet in taken)
        self.sha256 = digest(path)
        self.nth = 0
        self.begin_ps = 0

    def begin(self, now_ps: int) -> int:
        self.begin_ps = now_ps
        return now_ps + self.times[0]

    def draw(self) -> int:
        octets = self.sizes[self.nth]
        if self.nth == len(self.sizes) - 1 and (self.left < 0 or self.left > octets):
            self.left = octets  # the last one
        return octets

    def after(self, due_ps: int) -> int:
        if self.nth < len(self.times) - 1:
            self.nth += 1
        at = self.begin_ps + self.times[self.nth]
        return at if at > due_ps else due_ps + 1

    def facts(self, now_ps: int) -> dict[str, Fact]:
        facts = super().facts(now_ps)
        facts["blocks_filled"] = self.filled
        facts["file_sha256"] = self.sha256
        return facts


def _check(given: FlowRequest) -> Problem:
    return problem_of(given.values["file"], given.folder, lambda path: packets(path, given.values["of_vc"] or ""))


APPLICATION: Final = ApplicationSpec(
    "trace",
    "the packets of a file: a capture (pcap, pcapng) or CSV with the columns time, size and vc",
    (
        AppSetting("file", TEXT, REQUIRED, "the file, from the folder of the experiment on", ends=True),
        AppSetting("of_vc", TEXT, None, "only packets of this VC: as in the column, or `VPI/VCI` of a SunATM capture"),
        AppSetting("sizes", ("packet", "payload"), "packet", "sizes are those of IP packets, or of their UDP payload"),
        AppSetting("speed", NUMBER.within(1e-6, 1e6, name="factor"), 1.0, "so many times as fast as it was recorded"),
    ),
    Trace,
    _check,
    report=Report(
        LATE_BLOCKS.title,
        (
            *LATE_BLOCKS.columns,
            Column("blocks_filled", "", "packets of the file that were shorter than a block can be"),
            Column("file_sha256", "", "SHA-256 of the file"),
        ),
        LATE_BLOCKS.shown_with,
    ),
)
