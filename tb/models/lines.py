"""Ports and VCs of networks in tests, from few values."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from bentpipe_hdl.nic.control import PacingSettings
from bentpipe_hdl.switch.control import PortSettings, SwitchPort, VcSettings

__all__ = ["switch_ports", "vc_settings"]


def switch_ports(
    rates_bps: Sequence[float] = (149_760_000,) * 4,
    *,
    clocks_ppm: Sequence[float] | None = None,
    nni: Collection[int] = (),
    settings: Mapping[int, PortSettings] | None = None,
) -> list[SwitchPort]:
    """Return ports with these rates; exact clocks, UNIs and the default settings where nothing else is given."""
    clocks = [0.0] * len(rates_bps) if clocks_ppm is None else clocks_ppm
    return [
        SwitchPort(rate, clock, port in nni, (settings or {}).get(port, PortSettings()))
        for port, (rate, clock) in enumerate(zip(rates_bps, clocks, strict=True))
    ]


def vc_settings(**given: Any) -> dict[str, Any]:
    """Return arguments of ``Network.add_vc`` for these settings of a VC, its rates among them."""
    rates = {key: given.pop(key) for key in PacingSettings.model_fields if key in given}
    return {"settings": VcSettings(**given), "pacing": PacingSettings(**rates)}
