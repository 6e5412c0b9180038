"""Synthetic channels: series for ``[[profile]]`` that follow published models, the same for the same seed.

A series has a column ``time`` (s) and columns of keys. A column whose name begins with ``_`` is there to be looked at
and drives nothing. Each series says in its first line that it is synthetic, by which model and parameters.

>>> from bentpipe.channels import rain_fade
>>> rain_fade(3600, seed=1).write("fade.csv")
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import NormalDist, fmean
from typing import Any, Final

from bentpipe.errors import BentpipeError

__all__ = [
    "EXCEEDANCE",
    "Grid",
    "LogNormal",
    "Rain",
    "Series",
    "handover_gaps",
    "low_orbit_pass",
    "rain_fade",
    "reconfiguration_grid",
]

EXCEEDANCE: Final[Mapping[float, float]] = {
    0.01: 16.0243, 0.02: 12.1351, 0.03: 10.1633, 0.05: 8.004, 0.1: 5.6312, 0.2: 3.8381,
    0.3: 3.0224, 0.5: 2.2024, 1.0: 1.3946, 2.0: 0.8555, 3.0: 0.6334,
}  # fmt: skip
"""Rain attenuation in dB that is exceeded for these percentages of time: an example in Ku band."""

_MOST_ROWS: Final = 5_000_000
_LIGHT_KM_S: Final = 299_792.458
_EARTH_KM: Final = 6371.0
_GRAVITY: Final = 398_600.44
"""The earth's gravitational constant, km³/s²."""
_MOST_BER, _LEAST_BER = 1e-3, 1e-15


@dataclass(frozen=True)
class Series:
    """Columns by name, all of one length, and what they were made by."""

    columns: dict[str, list[Any]]
    model: str

    def write(self, path: str | Path) -> Path:
        """Write a CSV file.

        Raises
        ------
        BentpipeError
            It cannot be written.
        """
        path = Path(path)
        rows = zip(*self.columns.values(), strict=True)
        lines = [f"# synthetic: {self.model}", ",".join(self.columns), *(",".join(map(_text, row)) for row in rows)]
        try:
            path.write_text("\n".join(lines) + "\n")
        except OSError as error:
            raise BentpipeError(f"{path}: cannot be written: {error.strerror or error}") from None
        return path


def _text(value: Any) -> str:
    return str(int(value)) if isinstance(value, bool) else f"{value:.9g}" if isinstance(value, float) else str(value)


def _times(duration_s: float, step_s: float) -> list[float]:
    if not (step_s > 0 and duration_s > 0 and math.isfinite(duration_s / step_s)):
        raise BentpipeError(f"duration {duration_s:g} s, step {step_s:g} s: both are more than 0")
    count = math.ceil(duration_s / step_s - 1e-9)
    if count > _MOST_ROWS:
        raise BentpipeError(f"{duration_s:g} s in steps of {step_s:g} s are more than {_MOST_ROWS:,} rows")
    return [number * step_s for number in range(count)]


@dataclass(frozen=True)
class LogNormal:
    """The distribution of rain attenuation: ln A = m + sigma X, less an offset that makes it dry for the rest of the
    time (P.1853-0)."""

    m: float
    sigma: float
    offset_db: float

    @classmethod
    def fitted(cls, exceedance: Mapping[float, float], rainy_percent: float) -> LogNormal:
        """Return the distribution that fits attenuations in dB by the percentage of time that they are exceeded.

        It is fitted by least squares.

        Raises
        ------
        BentpipeError
            There are fewer than two points below the percentage at which it rains.
        """
        points = [(_q_inverse(p / 100), math.log(a)) for p, a in exceedance.items() if 0 < p < rainy_percent and a > 0]
        if len(points) < 2 or not 0 < rainy_percent < 100:
            raise BentpipeError(f"a fit needs two attenuations or more below {rainy_percent:g} % of the time")
        mean_x, mean_y = fmean(x for x, _ in points), fmean(y for _, y in points)
        spread = sum((x - mean_x) ** 2 for x, _ in points)
        sigma = sum((x - mean_x) * (y - mean_y) for x, y in points) / spread
        m = mean_y - sigma * mean_x
        return cls(m, sigma, math.exp(m + sigma * _q_inverse(rainy_percent / 100)))


def _q_inverse(share: float) -> float:
    return NormalDist().inv_cdf(1 - share)


@dataclass(frozen=True)
class Rain:
    """The rain of a place at a frequency.

    Members
    -------
    exceedance : Mapping
        Attenuation in dB by the percentage of time that exceeds it.
    rainy_percent : float
        Of the time; P0 of the recommendation.
    beta : float
        Per second; how fast the process forgets.
    """

    exceedance: Mapping[float, float] = field(default_factory=lambda: EXCEEDANCE)
    rainy_percent: float = 4.9095
    beta: float = 2e-4


def rain_fade(
    duration_s: float, step_s: float = 1.0, *, seed: int = 1, clear_db: float = 13.0, rain: Rain | None = None
) -> Series:
    """Return a rain fade by ITU-R P.1853-0: ``ber``, ``outage`` and ``_attenuation_db``.

    The attenuation is a log-normal first-order process. It begins in the stationary state, so nothing has to be left
    out. The bit error ratio is that of QPSK without a code; above 1e-3, the most that a line has, there is an outage.

    Parameters
    ----------
    clear_db : float
        Eb/N0 under a clear sky, with the gain of a code.
    rain : Rain, optional

    Raises
    ------
    BentpipeError
        A parameter makes no sense.
    """
    rain = rain or Rain()
    times, beta = _times(duration_s, step_s), rain.beta
    fit = LogNormal.fitted(rain.exceedance, rain.rainy_percent)
    if not beta > 0:
        raise BentpipeError(f"beta {beta:g}: more than 0")
    draw = random.Random(f"rain {seed}")
    keep = math.exp(-beta * step_s)
    news, state = math.sqrt(1 - keep * keep), draw.gauss(0.0, 1.0)
    attenuation, errors = [], []
    for _ in times:
        fade = max(math.exp(fit.m + fit.sigma * state) - fit.offset_db, 0.0)
        attenuation.append(round(fade, 4))
        errors.append(0.5 * math.erfc(math.sqrt(10 ** ((clear_db - fade) / 10))))
        state = keep * state + news * draw.gauss(0.0, 1.0)
    ber = [0.0 if each < _LEAST_BER else min(each, _MOST_BER) for each in errors]
    model = (
        f"rain fade, ITU-R P.1853-0, m={fit.m:.5f}, sigma={fit.sigma:.5f}, A_off={fit.offset_db:.5f} dB, "
        f"beta={beta:g}/s, clear Eb/N0={clear_db:g} dB, QPSK, seed={seed}"
    )
    outage = [each > _MOST_BER for each in errors]
    return Series({"time": times, "ber": ber, "outage": outage, "_attenuation_db": attenuation}, model)


def low_orbit_pass(
    altitude_km: float = 550.0,
    top_deg: float = 90.0,
    *,
    least_deg: float = 25.0,
    step_s: float = 0.1,
    rate_bps: float | None = None,
    snr_db: float = 10.0,
) -> Series:
    """Return one pass of a satellite on a circular orbit over a still earth, from rise to set and one step behind it.

    Columns: ``outage`` after the pass, ``delay`` (s, up to the satellite and down again, where both ends of the line
    have the same range), ``_elevation_deg``, ``_range_km``; with ``rate_bps`` a ``rate`` that follows the path
    loss (Shannon), which is ``rate_bps`` at the top.

    Parameters
    ----------
    altitude_km : float
    top_deg : float
        Highest elevation.
    least_deg : float
        Elevation at which it rises and sets.
    snr_db : float
        Signal to noise at the top of the pass.

    Raises
    ------
    BentpipeError
        A parameter makes no sense; the satellite does not come so high.
    """
    if not 100 <= altitude_km <= 50_000:
        raise BentpipeError(f"altitude {altitude_km:g} km: out of range 100 to 50000 km")
    if not 0 <= least_deg < top_deg <= 90:
        raise BentpipeError(f"elevations {least_deg:g} and {top_deg:g} degrees: the first is less, 0 to 90")
    half_s = _seconds_above(altitude_km, top_deg, least_deg) / 2
    times = _times(2 * half_s, step_s)
    places = [_place(altitude_km, top_deg, time - half_s) for time in times]
    columns: dict[str, list[Any]] = {"time": [*times, 2 * half_s], "outage": [*[False] * len(times), True]}
    places.append(_place(altitude_km, top_deg, half_s))
    columns["delay"] = [2 * range_km / _LIGHT_KM_S for range_km, _ in places]
    columns["_elevation_deg"] = [round(elevation, 4) for _, elevation in places]
    columns["_range_km"] = [round(range_km, 4) for range_km, _ in places]
    if rate_bps is not None:
        top = _place(altitude_km, top_deg, 0.0)[0]
        snr = 10 ** (snr_db / 10)
        shares = [math.log2(1 + snr * (top / range_km) ** 2) / math.log2(1 + snr) for range_km, _ in places]
        columns["rate"] = [round(rate_bps * share) for share in shares]
    model = f"pass of a circular orbit, {altitude_km:g} km, {least_deg:g} to {top_deg:g} degrees, still earth"
    return Series(columns, model)


def _place(altitude_km: float, top_deg: float, time_s: float) -> tuple[float, float]:
    """Return the range in km and the elevation in degrees, so many seconds after the top of the pass."""
    radius, top = _EARTH_KM + altitude_km, math.radians(top_deg)
    nearest = math.acos(_EARTH_KM * math.cos(top) / radius) - top
    angle = math.cos(nearest) * math.cos(math.sqrt(_GRAVITY / radius**3) * time_s)
    range_km = math.sqrt(_EARTH_KM**2 + radius**2 - 2 * _EARTH_KM * radius * angle)
    return range_km, math.degrees(math.asin((radius * angle - _EARTH_KM) / range_km))


def _seconds_above(altitude_km: float, top_deg: float, least_deg: float) -> float:
    radius = _EARTH_KM + altitude_km
    top, least = math.radians(top_deg), math.radians(least_deg)
    nearest, widest = (math.acos(_EARTH_KM * math.cos(each) / radius) - each for each in (top, least))
    return 2 * math.acos(math.cos(widest) / math.cos(nearest)) / math.sqrt(_GRAVITY / radius**3)


def handover_gaps(
    duration_s: float,
    period_s: float = 120.0,
    *,
    gap_s: Sequence[float] = (0.05, 0.3),
    delay_s: Sequence[float] = (0.01, 0.02),
    seed: int = 1,
) -> Series:
    """Return ``outage`` and ``delay``: a gap at each hand-over, a period apart, and another delay after it.

    Three values are drawn, uniformly: the time of the first gap, the length of each gap (between the two of ``gap_s``),
    and each delay (between the two of ``delay_s``).
    """
    least, most = min(gap_s), max(gap_s)
    if not 0 <= min(delay_s) <= max(delay_s) <= 1:
        raise BentpipeError(f"delays of {min(delay_s):g} to {max(delay_s):g} s: out of range 0 to 1 s")
    draw_delay = random.Random(f"handover delay {seed}")
    if not 0 < least <= most < period_s or not duration_s > 0:
        raise BentpipeError(f"gaps of {least:g} to {most:g} s, a period of {period_s:g} s: a gap is shorter")
    draw = random.Random(f"handover {seed}")
    at = draw.uniform(0.0, period_s)
    times, outage, delays = [0.0], [False], [draw_delay.uniform(*delay_s)]
    while at < duration_s:
        for time, out in ((at, True), (at + draw.uniform(least, most), False)):
            if time > times[-1]:
                times.append(round(time, 9))
                outage.append(out)
                delays.append(delays[-1])
            else:
                outage[-1] = out
        delays[-1] = draw_delay.uniform(*delay_s)
        at += period_s
    model = f"hand-over gaps of {least:g} to {most:g} s, {period_s:g} s apart, seed={seed}"
    return Series({"time": times, "outage": outage, "delay": delays}, model)


@dataclass(frozen=True)
class Grid:
    """A constellation whose paths are assigned anew once a period.

    The defaults give a loss of 0.9 % without congestion, a median round trip of 50 ms and steps of 6.7 ms in the mean,
    as measured in low orbit.

    Members
    -------
    period_s : float
    gap_s : float
        Outage at the beginning of a period.
    rate_bps, spread : float
        Median rate, and the standard deviation of its logarithm; None: no column ``rate``.
    rtt_s, mean_step_s : float
        Median round trip, and the mean step from one period to the next.
    """

    period_s: float = 15.0
    gap_s: float = 0.14
    rate_bps: float | None = None
    spread: float = 0.3
    rtt_s: float = 0.05
    mean_step_s: float = 0.0067


def reconfiguration_grid(duration_s: float, grid: Grid | None = None, *, seed: int = 1) -> Series:
    """Return a constellation's reconfiguration: an ``outage`` as each period begins.

    Each period has another ``rate`` (if there is one) and ``_rtt``. It is drawn, not measured.
    """
    grid = grid or Grid()
    period_s, gap_s, rate_bps = grid.period_s, grid.gap_s, grid.rate_bps
    if not 0 < gap_s < period_s or not grid.spread >= 0 or not grid.rtt_s > 0 or not grid.mean_step_s >= 0:
        raise BentpipeError(f"gap {gap_s:g} s, period {period_s:g} s: the gap is shorter, no parameter is negative")
    draw = random.Random(f"grid {seed}")
    columns: dict[str, list[Any]] = {"time": [], "outage": [], "_rtt": []}
    if rate_bps is not None:
        columns["rate"] = []
    sigma = grid.mean_step_s * math.sqrt(math.pi) / 2
    for begin in _times(duration_s, period_s):
        rtt = max(0.4 * grid.rtt_s, draw.gauss(grid.rtt_s, sigma))
        rate = draw.lognormvariate(0.0, grid.spread)
        for time, outage in ((begin, True), (begin + gap_s, False)):
            columns["time"].append(round(time, 9))
            columns["outage"].append(outage)
            columns["_rtt"].append(round(rtt, 6))
            if rate_bps is not None:
                columns["rate"].append(round(rate_bps * rate))
    model = f"reconfiguration grid of {period_s:g} s, gaps of {gap_s:g} s, seed={seed}"
    return Series(columns, model)
