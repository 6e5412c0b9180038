"""Line settings written straight into a network's specs, for changes that come too often to read a document again.

Only settings that nothing else is made from are written so: error ratios, outages, delays, bursts, and the rate of a
line whose ports have no rate of their own and are not load-reactive. The result is the same as that of reading the
whole document again; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from bentpipe.experiment.resolve.specs import LineSpec, LineWrite, NetworkSpec, PortSpec, SwitchSpec
from bentpipe_hdl.link.control import BurstSettings, LinkSettings
from bentpipe_hdl.settings import BER, key_of, quantity_of
from bentpipe_hdl.sonet.control import SonetSettings
from bentpipe_hdl.units import CELL_RATE, Quantity

__all__ = ["LineWriter", "quantity_of_line"]

_BURSTS: Final = {key_of(name): (name, quantity_of(field)) for name, field in BurstSettings.model_fields.items()}


_BOTH_WAYS: Final = {name: quantity_of(LinkSettings.model_fields[name]) for name in LinkSettings.SIMPLE}
"""Keys with one number for both directions."""

_DELAY: Final = quantity_of(LinkSettings.model_fields["delay_ps"])


def quantity_of_line(key: str) -> Quantity | None:
    """Return the quantity of a line's key that can be written directly; None if it has none."""
    if key.startswith("bursts."):
        return _BURSTS.get(key.removeprefix("bursts."), ("", None))[1]
    return {"ber": BER, "rate": CELL_RATE, "delay": _DELAY, **_BOTH_WAYS}.get(key)


class LineWriter:
    """Writes of lines, by what a document has.

    Parameters
    ----------
    document : Mapping
        As the run begins.
    network : NetworkSpec
        What was made from it.
    shorter_ps : Mapping
        By how much lines are shorter than the document says, by their numbers: those of a session.
    """

    def __init__(
        self, document: Mapping[str, Any], network: NetworkSpec, shorter_ps: Mapping[int, int] | None = None
    ) -> None:
        self._shorter_ps = shorter_ps or {}
        self._numbers = {line.name: number for number, line in enumerate(network.lines)}
        self._looped = [line.looped for line in network.lines]
        tables = document.get("network", {}).get("switches", {})
        self._own_rates = {name for name, table in tables.items() if isinstance(table.get("ports"), list)}
        self._switches = {switch.name: number for number, switch in enumerate(network.switches)}

    def writes(self, values: Mapping[str, Any]) -> list[LineWrite] | None:
        """Return the writes of values by dotted keys; None: not all are of that kind. ValueError: a value is wrong."""
        found: list[LineWrite] = []
        for whole, value in values.items():
            parts = whole.split(".", 3)
            if len(parts) != 4 or parts[:2] != ["network", "lines"]:
                return None
            names = [*self._numbers] if parts[2] == "*" else [parts[2]]
            for name in names:
                if name not in self._numbers:
                    return None
                made = self._of_line(self._numbers[name], parts[3], value)
                if made is None:
                    return None
                found += made
        return found

    def _of_line(self, line: int, key: str, value: Any) -> list[LineWrite] | None:
        if key in ("ber", "outage", "rate", "delay"):
            both = isinstance(value, (list, tuple))
            values = [*value] if both else [value]
            quantity = quantity_of_line(key)
            if key == "ber":
                values = [float(BER.check(each, document=True)) for each in values]
            elif quantity is not None:
                values = [quantity.check(each, document=True) for each in values]
            elif not all(isinstance(each, bool) for each in values):
                raise ValueError(f"expected true or false, not {value!r}")
            if both and len(values) != 2:
                raise ValueError(f"give one value, or two, not {len(values)}")
            ends: list[int | None] = [0, 1] if both else [None]
            member = "delay_ps" if key == "delay" else key
            return [LineWrite(line, member, end, each) for end, each in zip(ends, values, strict=True)]
        quantity = quantity_of_line(key)
        if quantity is None:
            return None
        member = _BURSTS[key.removeprefix("bursts.")][0] if key.startswith("bursts.") else key
        prefix = "bursts." if key.startswith("bursts.") else ""
        return [LineWrite(line, prefix + member, None, quantity.check(value, document=True))]

    def applied(self, network: NetworkSpec, writes: Iterable[LineWrite]) -> NetworkSpec | None:
        """Return the network with these writes in it; None: the whole document has to be read for them."""
        of_lines: dict[int, list[LineWrite]] = {}
        for write in writes:
            of_lines.setdefault(write.line, []).append(write)
        lines, switches = [*network.lines], network.switches
        for number, those in of_lines.items():
            line, less = lines[number], self._shorter_ps.get(number, 0)
            if less:
                those = [
                    each._replace(value=each.value - less) if each.member == "delay_ps" else each for each in those
                ]
                if any(each.member == "delay_ps" and each.value < 0 for each in those):
                    return None
            made = self._line(line, those)
            if made is None:
                return None
            lines[number] = made
            if made.rates_bps != line.rates_bps:
                ported = self._with_rate(switches, made)
                if ported is None:
                    return None
                switches = ported
        return NetworkSpec(switches, tuple(lines), network.hosts, network.vps)

    @staticmethod
    def _line(line: LineSpec, writes: Sequence[LineWrite]) -> LineSpec | None:
        """Return the line with these writes in it; the same object where they change nothing."""
        pairs: dict[str, list[Any]] = {
            "ber": [*line.ber], "outage": [*line.outage], "rate": [*line.rates_bps], "delay_ps": [*line.delays_ps],
        }  # fmt: skip
        bursts: dict[str, Any] = {}
        others: dict[str, Any] = {}
        for _, member, end, value in writes:
            if member.startswith("bursts."):
                bursts[member[7:]] = value
            elif member in _BOTH_WAYS:
                if value != getattr(line.ways[0], member):
                    others[member] = value
            elif end is not None and line.looped:
                return None
            else:
                for each in (0, 1) if end is None else (end,):
                    pairs[member][each] = value
        rates = (pairs["rate"][0], pairs["rate"][1])
        if rates != line.rates_bps and line.framing is not None:
            return None
        for way in line.ways if bursts else ():
            if way.bursts is None or any(getattr(way.bursts, member) is None for member in bursts):
                return None
        ways, framing = line.ways, line.framing
        ber, outage, delays = ((pairs[name][0], pairs[name][1]) for name in ("ber", "outage", "delay_ps"))
        faults = [*zip(ber, outage, strict=True)]
        if framing is not None:
            if (ber, outage) != (line.ber, line.outage):
                framing = SonetSettings.part_of(framing, ber=ber, outage=outage)
            faults = [(way.ber, way.outage) for way in ways]
        if others:
            ways = (LinkSettings.part_of(ways[0], **others), LinkSettings.part_of(ways[1], **others))
        if bursts or delays != line.delays_ps or faults != [(way.ber, way.outage) for way in ways]:
            ways = (_way(ways[0], *faults[0], delays[0], bursts), _way(ways[1], *faults[1], delays[1], bursts))
        if ways is line.ways and framing is line.framing and rates == line.rates_bps:
            return line
        return LineSpec(line.name, line.ends, rates, line.clock_ppm, ways, framing)

    def _with_rate(self, switches: tuple[SwitchSpec, ...], line: LineSpec) -> tuple[SwitchSpec, ...] | None:
        """Return the switches with the line's rate at its ports; None: a port's rate does not hang on it alone."""
        made = [*switches]
        for end, rate_bps in zip(line.ends, line.rates_bps, strict=True):
            if end.switch in self._own_rates:
                return None
            number = self._switches[end.switch]
            switch = made[number]
            settings = switch.ports[end.port].settings
            if settings.reactive is not None:
                return None
            ports = [*switch.ports]
            ports[end.port] = PortSpec(rate_bps, settings)
            made[number] = SwitchSpec(switch.name, tuple(ports), switch.settings)
        return tuple(made)


def _way(way: LinkSettings, ber: float, outage: bool, delay_ps: int, bursts: Mapping[str, Any]) -> LinkSettings:
    made = way.bursts
    if made is not None and any(getattr(made, member) != value for member, value in bursts.items()):
        made = BurstSettings.part_of(made, **bursts)
    if (ber, outage, delay_ps) == (way.ber, way.outage, way.delay_ps) and made is way.bursts:
        return way
    return LinkSettings.part_of(way, ber=ber, outage=outage, delay_ps=delay_ps, bursts=made)
