"""``bentpipe profile``: synthetic series for ``[[profile]]``."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bentpipe.commands.command import Command, CommandGroup
from bentpipe.errors import BentpipeError

if TYPE_CHECKING:
    from bentpipe.channels import Series

__all__ = ["COMMAND"]


def _common(parser: argparse.ArgumentParser, seeded: bool = True) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help="CSV file to write")
    parser.add_argument("--force", action="store_true", help="overwrite an existing file")
    if seeded:
        parser.add_argument("--seed", type=int, default=1, metavar="N", help="random seed (default: 1)")
        parser.add_argument(
            "--duration", type=_seconds, default="1000", metavar="S", help="length of the series (default: 1000 s)"
        )


def _seconds(text: str) -> float:
    from bentpipe_hdl.units import parse_time

    try:
        return parse_time(text) / 10**12
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _rate(text: str) -> int:
    from bentpipe_hdl.units import parse_rate

    try:
        return parse_rate(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _rain(parser: argparse.ArgumentParser) -> None:
    _common(parser)
    parser.add_argument("--step", type=_seconds, default="1", metavar="S", help="time between rows (default: 1 s)")
    parser.add_argument(
        "--clear", type=float, default=13.0, metavar="DB", help="Eb/N0 under a clear sky, QPSK (default: 13 dB)"
    )
    parser.add_argument(
        "--exceed",
        metavar="P:DB,…",
        help="attenuations in dB, each with the percentage of time that exceeds it (default: an example in Ku band)",
    )
    parser.add_argument(
        "--rainy", type=float, default=4.9095, metavar="P", help="percentage of time that it rains (default: 4.9095)"
    )
    parser.add_argument(
        "--beta",
        type=float,
        default=2e-4,
        metavar="B",
        help="rate at which the fade loses correlation, per second (default: 2e-4)",
    )


def _make_rain(given: argparse.Namespace) -> Series:
    from bentpipe.channels import EXCEEDANCE, Rain, rain_fade

    exceedance = EXCEEDANCE
    if given.exceed:
        try:
            pairs = (point.split(":") for point in given.exceed.split(","))
            exceedance = {float(percent): float(db) for percent, db in pairs}
        except ValueError:
            raise BentpipeError(f"--exceed {given.exceed}: expected P:DB,P:DB,…, as 0.01:16,0.1:5.6") from None
    rain = Rain(exceedance, given.rainy, given.beta)
    return rain_fade(given.duration, given.step, seed=given.seed, clear_db=given.clear, rain=rain)


def _pass(parser: argparse.ArgumentParser) -> None:
    _common(parser, seeded=False)
    parser.add_argument(
        "--altitude", type=float, default=550.0, metavar="KM", help="altitude of the orbit (default: 550 km)"
    )
    parser.add_argument("--top", type=float, default=90.0, metavar="DEG", help="highest elevation (default: 90)")
    parser.add_argument("--least", type=float, default=25.0, metavar="DEG", help="lowest elevation (default: 25)")
    parser.add_argument("--step", type=_seconds, default="0.1", metavar="S", help="time between rows (default: 0.1 s)")
    parser.add_argument("--rate", type=_rate, metavar="R", help="rate at the top; without it there is no column rate")
    parser.add_argument("--snr", type=float, default=10.0, metavar="DB", help="signal to noise there (default: 10 dB)")


def _make_pass(given: argparse.Namespace) -> Series:
    from bentpipe.channels import low_orbit_pass

    return low_orbit_pass(
        given.altitude, given.top, least_deg=given.least, step_s=given.step, rate_bps=given.rate, snr_db=given.snr
    )


def _handover(parser: argparse.ArgumentParser) -> None:
    _common(parser)
    parser.add_argument(
        "--period", type=_seconds, default="120", metavar="S", help="time between two hand-overs (default: 120 s)"
    )
    parser.add_argument("--least-gap", type=_seconds, default="0.05", metavar="S", help="shortest gap (default: 50 ms)")
    parser.add_argument("--most-gap", type=_seconds, default="0.3", metavar="S", help="longest gap (default: 300 ms)")
    parser.add_argument(
        "--least-delay", type=_seconds, default="10 ms", metavar="S", help="least delay of a path (default: 10 ms)"
    )
    parser.add_argument(
        "--most-delay", type=_seconds, default="20 ms", metavar="S", help="greatest delay of a path (default: 20 ms)"
    )


def _make_handover(given: argparse.Namespace) -> Series:
    from bentpipe.channels import handover_gaps

    return handover_gaps(
        given.duration,
        given.period,
        gap_s=(given.least_gap, given.most_gap),
        delay_s=(given.least_delay, given.most_delay),
        seed=given.seed,
    )


def _grid(parser: argparse.ArgumentParser) -> None:
    _common(parser)
    parser.add_argument("--period", type=_seconds, default="15", metavar="S", help="period of the grid (default: 15 s)")
    parser.add_argument(
        "--gap", type=_seconds, default="0.14", metavar="S", help="length of each outage (default: 140 ms)"
    )
    parser.add_argument("--rate", type=_rate, metavar="R", help="median rate; without it there is no column rate")
    parser.add_argument(
        "--spread", type=float, default=0.3, metavar="X", help="deviation of the rate's logarithm (default: 0.3)"
    )


def _make_grid(given: argparse.Namespace) -> Series:
    from bentpipe.channels import Grid, reconfiguration_grid

    grid = Grid(given.period, given.gap, given.rate, given.spread)
    return reconfiguration_grid(given.duration, grid, seed=given.seed)


def _writing(make: Callable[[argparse.Namespace], Series]) -> Callable[[argparse.Namespace], int]:
    def run(given: argparse.Namespace) -> int:
        file: Path = given.file
        if file.exists() and not given.force:
            raise BentpipeError(f"{file}: already exists; give another name, or --force to replace it")
        series = make(given)
        series.write(file)
        print(f"{file}: {len(series.columns['time']):,} rows; {series.model}")
        return 0

    return run


def _action(
    name: str, what: str, arguments: Callable[[argparse.ArgumentParser], None], make: Callable[[Any], Series]
) -> Command:
    return Command(name, what, _writing(make), arguments)


COMMAND = CommandGroup(
    "profile",
    "Write a synthetic series for [[profile]]: a rain fade, a pass, hand-overs, a reconfiguration grid.",
    (
        _action("rain", "Write a rain fade by ITU-R P.1853: ber and outage.", _rain, _make_rain),
        _action("pass", "Write a low-orbit pass: delay, outage and rate.", _pass, _make_pass),
        _action(
            "handover", "Write gaps of hand-overs: outage, and another delay after each.", _handover, _make_handover
        ),
        _action("grid", "Write the reconfiguration grid of a constellation: outage and rate.", _grid, _make_grid),
    ),
)
