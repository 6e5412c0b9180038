"""The frames of a video, by a file of their sizes."""

from __future__ import annotations

from typing import Final, final

from bentpipe.apps.app import Fact
from bentpipe.apps.blocks import LATE_BLOCKS, BlockSource
from bentpipe.apps.draws import RandomStream
from bentpipe.apps.settings import SPAN, ApplicationSpec, AppSetting, Column, FlowRequest, Problem, Report
from bentpipe.apps.trace_files import FRAME_FORMATS, digest, find, frames
from bentpipe.declarations import REQUIRED, TEXT
from bentpipe.ip.udp import STAMP_OCTETS

__all__ = ["APPLICATION", "Video"]


@final
class Video(BlockSource):
    """A block for each frame, one a period; behind the last comes the first. Frames without octets are left out.

    Parameters
    ----------
    sizes : list of int
        Octets of the frames.
    period_ps : int
    first : int
        The frame to begin with.
    least_octets : int
        Shorter frames are filled up to this.
    sha256 : str
        Of the file.
    """

    def __init__(
        self,
        sizes: list[int],
        period_ps: int,
        first: int,
        least_octets: int,
        sha256: str,
        size_octets: int | None = None,
        duration_ps: int = 0,
    ) -> None:
        super().__init__("video", size_octets, duration_ps, False)
        if not any(sizes):
            raise ValueError("sizes must have one above 0")
        self.sizes = [max(size, least_octets) if size else 0 for size in sizes]
        self.period_ps = period_ps
        self.nth = first
        self.sha256 = sha256

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
    try:
        frames(find(given.values["file"], given.folder), given.values["format"])
    except ValueError as error:
        return "file", str(error)
    except OSError as error:
        return "file", f"{given.values['file']}: {error.strerror or error}"
    return None


def _make(given: FlowRequest) -> Video:
    v = given.values
    path = find(v["file"], given.folder)
    sizes = frames(path, v["format"])
    first = RandomStream(given.seed, given.number).uniform(0, len(sizes) - 1) if v["begin"] == "random" else 0
    least = STAMP_OCTETS if given.protocol == "udp" else 1
    return Video(sizes, v["period"], first, least, digest(path), given.size, given.duration_ps)


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
    _make,
    _check,
    report=Report(
        LATE_BLOCKS.title,
        (*LATE_BLOCKS.columns, Column("file_sha256", "", "SHA-256 of the file")),
        LATE_BLOCKS.shown_with,
    ),
)
