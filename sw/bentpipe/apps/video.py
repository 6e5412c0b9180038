"""The frames of a video, by a file of their sizes."""

from __future__ import annotations

from typing import Final, final

from bentpipe.apps.app import Fact
from bentpipe.apps.blocks import LATE_BLOCKS, BlockSource
from bentpipe.apps.draws import RandomStream
from bentpipe.apps.settings import SPAN, ApplicationSpec, AppSetting, Column, FlowRequest, Problem, Report
from bentpipe.apps.trace_files import FRAME_FORMATS, digest, find, frames, problem_of
from bentpipe.declarations import REQUIRED, TEXT
from bentpipe.ip.udp import STAMP_OCTETS

__all__ = ["APPLICATION", "Video"]


@final
class Video(BlockSource):
    """A block for each frame, one a period; behind the last comes the first. Frames without octets are left out.

    Members
    -------
    sizes : list of int
        Octets of the frames, filled up to a stamp.
    period_ps : int
    nth : int
        The frame that is due.
    """

    def __init__(self, given: FlowRequest) -> None:
        super().__init__("video", given.size, given.duration_ps, False)
        v = given.values
        path = find(v["file"], given.folder)
        least = STAMP_OCTETS if given.protocol == "udp" else 1
        self.sizes = [max(size, least) if size else 0 for size in frames(path, v["format"])]
        self.period_ps: int = v["period"]
        self.nth = 0
        if v["begin"] == "random":
            self.nth = RandomStream(given.seed, given.number).uniform(0, len(self.sizes) - 1)
        self.sha256 = digest(path)

    def begin(self, now_ps: int) -> int:
        return now_ps if self.sizes[self.nth] else self.after(now_ps)

    def draw(self) -> int:
        return self.sizes[self.nth]

    def after(self, due_ps: int) -> int:
        due = due_ps
        while True:
            due += self.period_ps
            self.nth = (self.nth + 1) % len(self.sizes)
            if self.sizes[self.nth]:
                return due

    def facts(self, now_ps: int) -> dict[str, Fact]:
        facts = super().facts(now_ps)
        facts["file_sha256"] = self.sha256
        return facts


def _check(given: FlowRequest) -> Problem:
    return problem_of(given.values["file"], given.folder, lambda path: frames(path, given.values["format"]))


APPLICATION: Final = ApplicationSpec(
    "video",
    "the frames of a video, by a file of their sizes, over and over",
    (
        AppSetting("file", TEXT, REQUIRED, "the file, from the folder of the experiment on"),
        AppSetting(
            "format",
            tuple(FRAME_FORMATS),
            "octets",
            "a line is the octets of a frame; its bits; number, type, time, octets (`verbose`); or number, type, "
            "octets, packets, time (`evalvid`)",
        ),
        AppSetting("period", SPAN, 40_000_000_000, "from a frame to the next", unit="s"),
        AppSetting("begin", ("random", "first"), "random", "which frame comes first: any, by the seed, or the file's"),
    ),
    Video,
    _check,
    report=Report(
        LATE_BLOCKS.title,
        (*LATE_BLOCKS.columns, Column("file_sha256", "", "SHA-256 of the file")),
        LATE_BLOCKS.shown_with,
    ),
)
