"""Calls of 0.1 that give a node's or a VC's settings as keyword arguments. They work in 0.2, and warn.

From 0.3 on there are only the calls that take a settings object.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from bentpipe_hdl.nic.control import NicLine, NicSettings, PacingSettings
from bentpipe_hdl.settings import Settings
from bentpipe_hdl.switch.control import PortSettings, SwitchPort, SwitchSettings, VcSettings

from .errors import NetworkError
from .nodes import made

__all__ = ["old_nic", "old_settings", "old_switch", "old_vc"]

S = TypeVar("S", bound=Settings)

_OC3: float = 149_760_000
_PACING = tuple(PacingSettings.model_fields)


def _warn(call: str, model: type[Settings]) -> None:
    what = f"{call}: settings as keyword arguments go in 0.3; give a {model.__name__} object"
    warnings.warn(what, DeprecationWarning, stacklevel=4)


def old_settings(call: str, what: str, model: type[S], settings: S | None, old: Mapping[str, Any]) -> S:
    """Return the settings of a call: the object, or one of keyword arguments."""
    if not old:
        return settings or model()
    if settings is not None:
        raise NetworkError(f"{what}: give a {model.__name__} object or keyword arguments, not both")
    _warn(call, model)
    return made(what, model, old)


def old_nic(name: str, rate_bps: Any, old: Mapping[str, Any]) -> tuple[NicSettings, NicLine]:
    """Return settings and line of a NIC from keyword arguments of older versions."""
    _warn("add_nic", NicSettings)
    rest = dict(old)
    rate = rest.pop("rate_bps", _OC3 if rate_bps is None else rate_bps)
    line = NicLine(rate, **{key: rest.pop(key) for key in ("clock_ppm", "nni", "frames") if key in rest})
    return made(f"NIC {name}", NicSettings, rest), line


def old_switch(name: str, rates_bps: Any, old: Mapping[str, Any]) -> tuple[SwitchSettings, list[SwitchPort]]:
    """Return settings and ports of a switch from keyword arguments of older versions."""
    _warn("add_switch", SwitchSettings)
    rest = dict(old)
    rates: Sequence[float] = rest.pop("port_rates_bps", (_OC3,) * 4 if rates_bps is None else rates_bps)
    clocks, nni = rest.pop("port_clock_ppm", None), rest.pop("nni_ports", ())
    own: Mapping[int, PortSettings] = rest.pop("port_settings", None) or {}
    clocks = (0.0,) * len(rates) if clocks is None else tuple(clocks)
    if len(clocks) != len(rates):
        raise NetworkError(f"switch {name}: port_clock_ppm has a value for each of {len(rates)} ports")
    for port in own:
        if not 0 <= port < len(rates):
            raise NetworkError(f"switch {name}: settings of port {port}, and its ports are 0..{len(rates) - 1}")
    ports = [
        SwitchPort(rate, clock, port in nni, own.get(port, PortSettings()))
        for port, (rate, clock) in enumerate(zip(rates, clocks, strict=True))
    ]
    return made(f"switch {name}", SwitchSettings, rest), ports


def old_vc(
    call: str, what: str, settings: VcSettings | None, pacing: PacingSettings | None, old: Mapping[str, Any]
) -> tuple[tuple[float | None, float | None, int | None], VcSettings]:
    """Return cell rate, sustained rate and burst of a VC, and its settings, from keyword arguments of older
    versions."""
    rest = dict(old)
    given = {key: rest.pop(key) for key in _PACING if key in rest}
    if given:
        if pacing is not None:
            raise NetworkError(f"{what}: give a PacingSettings object or keyword arguments, not both")
        _warn(call, PacingSettings)
    found = old_settings(call, what, VcSettings, settings, rest)
    first, sustained, burst = (given.get(key, getattr(pacing, key, None)) for key in _PACING)
    return (first, sustained, burst), found
