"""Random settings of a switch that ask for given options. Which options exclude each other is not known here: what
the settings' models and the options' own checks refuse is drawn again, or left out."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from pydantic import ValidationError

from bentpipe_hdl.plcp import LINE_RATES
from bentpipe_hdl.settings import Settings, in_run
from bentpipe_hdl.switch.control import PortSettings, SwitchPort, SwitchSettings, SwitchVc, VcSettings, options_for
from bentpipe_hdl.switch.options import OPTIONS, Setup, options_of, options_word
from bentpipe_hdl.switch.options.credits.control import CreditSettings
from bentpipe_hdl.switch.options.histograms.control import HistogramSettings
from bentpipe_hdl.switch.options.oam.control import POINT, OamPoint, OamSwitchSettings
from bentpipe_hdl.switch.options.police.control import Action, PoliceSettings
from bentpipe_hdl.switch.options.reactive.control import ReactiveSettings
from bentpipe_hdl.switch.options.red.control import RedSettings
from bentpipe_hdl.switch.options.shape.control import ShapeSettings

__all__ = ["BUILT", "CELLS", "NAMES", "PORTS", "VCS", "alone", "changed", "combination", "draw"]

VCS, PORTS, CELLS = 8, 3, 24
NAMES = [option.name for option in OPTIONS]
BUILT = [options_word(names) for names in (NAMES, ["fifo", "shares"], ["shape"])]
"""Of switches on which many settings can be tried; the smallest last. Where one has all options, their scheduler is
virtual-clock's."""

TRIES = 20
"""Draws of settings for one set of options."""

MB = 1_000_000


@dataclass
class Draft:
    """The settings of a switch, its ports and its VCs, as they are collected."""

    rng: random.Random
    switch: dict[str, Any]
    rates: list[float]
    ports: list[dict[str, Any]] = field(default_factory=lambda: [{} for _ in range(PORTS)])
    vcs: list[dict[str, Any]] = field(default_factory=lambda: [{} for _ in range(VCS)])
    places: list[dict[str, Any]] = field(default_factory=lambda: [{} for _ in range(VCS)])

    def some(self, entries: list[dict[str, Any]]) -> Sequence[dict[str, Any]]:
        """At least one of them."""
        return self.rng.sample(entries, self.rng.randint(1, len(entries)))


def _reactive(draft: Draft) -> None:
    rng = draft.rng
    for port in draft.some(draft.ports):
        floor, low = rng.choice([0, 1000, 20 * MB]), rng.randrange(4)
        port["reactive"] = ReactiveSettings(
            floor_bps=floor, ceiling_bps=rng.choice([100 * MB, 500 * MB]), low=low, high=low + rng.randrange(5),
            initial_bps=rng.choice([None, floor, 90 * MB]), counted=rng.choice(["cells", "packets", "octets"]),
            up_bps=rng.choice([MB, 60 * MB]), down_bps=rng.choice([MB, 60 * MB]), interval_ps=20 * MB,
            average=rng.choice([1.0, 0.25]),
        )  # fmt: skip


def _queue_limit(draft: Draft) -> None:
    for port in draft.some(draft.ports):
        port["queue_limit"] = draft.rng.randint(1, 5)


def _red(draft: Draft) -> None:
    rng = draft.rng
    for port in draft.some(draft.ports):
        low = rng.choice([0.0, 0.5, 1.5])
        port["red"] = RedSettings(
            low=low, high=low + rng.choice([1, 3]), weight=rng.choice([0.2, 1.0]), wait=rng.random() < 0.5,
            max_probability=rng.choice([0.3, 1.0]), packet_time_ps=rng.choice([MB, 20 * MB]),
        )  # fmt: skip


def _fifo(draft: Draft) -> None:
    for port in draft.some(draft.ports):
        port["scheduler"] = "fifo"


def _shares(draft: Draft) -> None:
    for vc in draft.some(draft.vcs):
        vc["priority"] = draft.rng.randint(1, 3)


def _virtual_clock(draft: Draft) -> None:
    draft.switch["scheduler"] = "virtual-clock"
    for vc in draft.some(draft.vcs):
        vc["service_rate_bps"] = draft.rng.randint(MB, 10 * MB)


def _contract(rng: random.Random) -> dict[str, Any]:
    peak = rng.randint(20 * MB, 200 * MB)
    return {"pcr_bps": peak, "cdvt_ps": rng.choice([0, 20 * MB])} | (
        {"scr_bps": peak // 3, "mbs": rng.randint(1, 9)} if rng.random() < 0.5 else {}
    )


def _police(draft: Draft) -> None:
    rng = draft.rng
    for vc in draft.some(draft.vcs):
        action: Action = rng.choice(["tag", "discard"])
        vc["police"] = PoliceSettings(**_contract(rng), pcr_action=action, packets=rng.random() < 0.4)


def _port_epd(draft: Draft) -> None:
    for port in draft.some(draft.ports):
        port["epd_threshold"] = draft.rng.randint(1, 9)


def _fair(draft: Draft) -> None:
    rng = draft.rng
    draft.switch["fair_share"] = rng.choice([0.3, 0.8, 2.0])
    for vc in draft.some(draft.vcs):
        vc["policy"] = rng.choice(["selective", "fba"])


def _minimum(draft: Draft) -> None:
    for vc in draft.some(draft.vcs):
        vc["minimum"] = draft.rng.randint(1, 2)


def _efci(draft: Draft) -> None:
    rng = draft.rng
    draft.switch["efci_threshold"] = rng.choice([0, 6])
    for one in (*draft.some(draft.ports), *draft.some(draft.vcs)):
        one["efci_threshold"] = rng.randint(1, 8)


def _histograms(draft: Draft) -> None:
    draft.switch["histograms"] = HistogramSettings(bins=draft.rng.choice(["linear", "logarithmic"]))


def _credits(draft: Draft) -> None:
    rng = draft.rng
    draft.switch["credits"] = CreditSettings(batch=rng.randint(1, 2), resync_ps=rng.choice([10 * MB, 100 * MB]))
    for k in range(0, VCS, 2):
        share = rng.choice([0, 2, 3])
        for vc in (k, k + 1) if share else ():
            draft.vcs[vc]["credits"] = share
            draft.places[vc] |= {"credits_in": share, "credits_out": share, "back": vc ^ 1}


def _frames(draft: Draft) -> None:
    port = draft.rng.randrange(PORTS)
    draft.ports[port]["frames"], draft.rates[port] = "plcp", LINE_RATES["DS-3"]


def _shape(draft: Draft) -> None:
    for vc in draft.some(draft.vcs):
        vc["shape"] = ShapeSettings(**_contract(draft.rng))


def _vp(draft: Draft) -> None:
    rng = draft.rng
    for place in rng.sample(draft.places, rng.randint(1, 3)):
        place["vpc"] = True


def _oam(draft: Draft) -> None:
    rng = draft.rng
    draft.switch["oam"] = OamSwitchSettings()
    flags = [member.name for member in POINT if member.width == 1]
    for place in draft.some(draft.places):
        given = {name: rng.random() < 0.4 for name in flags}
        place["oam"] = OamPoint(**given, parent=rng.randrange(VCS))
        place.setdefault("back", rng.randrange(VCS))


def _copies(draft: Draft) -> None:
    rng = draft.rng
    chain = rng.sample(range(VCS), rng.randint(2, 4))
    for root, leaf in pairwise(chain):
        draft.places[root]["leaf"] = leaf
        draft.places[leaf]["in_port"] = -1


ASKS: dict[str, Callable[[Draft], None]] = {
    "reactive": _reactive, "queue_limit": _queue_limit, "red": _red, "fifo": _fifo, "shares": _shares,
    "police": _police, "port_epd": _port_epd, "fair": _fair, "minimum": _minimum, "efci": _efci,
    "histograms": _histograms, "virtual-clock": _virtual_clock, "credits": _credits, "frames": _frames,
    "shape": _shape, "vp": _vp, "oam": _oam, "copies": _copies,
}  # fmt: skip
"""What asks for an option, by its name."""


def draw(rng: random.Random, names: Sequence[str]) -> Setup | None:
    """Random settings that ask for these options, and perhaps others that go with them; None: every draw is refused."""
    for _ in range(TRIES):
        found = _drawn(rng, names)
        if found is not None and options_for(found) & options_word(names) == options_word(names):
            return found
    return None


def _drawn(rng: random.Random, names: Sequence[str]) -> Setup | None:
    switch = {
        "buffer_cells": CELLS, "policy": rng.choice(["ppd", "epd"]), "epd_threshold": rng.randint(3, CELLS),
        "clp_threshold": rng.choice([0, 8]), "oam_reserve": rng.choice([0, 3]), "vc_limit": rng.choice([0, 3, 6]),
        "processing_delay_ps": rng.choice([0, 2 * MB]),
    }  # fmt: skip
    draft = Draft(rng, switch, [rng.choice([100, 300, 700]) * float(MB) for _ in range(PORTS)])
    for name in rng.sample(list(names), len(names)):
        ASKS[name](draft)
    for vc, place in zip(draft.vcs, draft.places, strict=True):
        if place.get("in_port", 0) < 0:  # a copy comes in at no port
            for name in ("oam", "vpc"):
                place.pop(name, None)
        if not vc.get("credits") and not place.get("vpc") and rng.random() < 0.3:
            vc.setdefault("epd_threshold", rng.randint(1, 5))
    try:
        ports = [
            SwitchPort(rate, nni=bool(rng.getrandbits(1)), settings=PortSettings(**port))
            for rate, port in zip(draft.rates, draft.ports, strict=True)
        ]
        vcs = [
            SwitchVc(
                **{
                    "in_port": k % PORTS, "in_vpi": 16 * (k // PORTS), "in_vci": 32 + k,
                    "out_port": rng.randrange(PORTS), "out_vpi": 20 + k, "out_vci": 64 + k,
                    "settings": VcSettings(**vc), **place,
                }
            )
            for k, (vc, place) in enumerate(zip(draft.vcs, draft.places, strict=True))
        ]  # fmt: skip
        setup = Setup(SwitchSettings(**draft.switch), ports, vcs, seed=f"{rng.random()}", name="switch")
    except ValidationError:
        return None
    return None if _refused(setup) else setup


def _refused(setup: Setup) -> list[str]:
    return [what for option in options_of(options_for(setup)) for what in option.check(setup)]


def combination(rng: random.Random, most: int = len(NAMES)) -> tuple[list[str], Setup]:
    """Options that go together, of all of them in random order those that are not refused, and such settings."""
    names: list[str] = []
    setup = None
    for name in rng.sample(NAMES, len(NAMES)):
        found = draw(rng, [*names, name]) if len(names) < most else None
        if found is not None:
            names, setup = [*names, name], found
    assert setup is not None
    return names, setup


def alone(rng: random.Random, name: str) -> Setup:
    """Settings that ask for this option, and for none besides, but for those that it cannot do without."""
    found = [setup for setup in (draw(rng, [name]) for _ in range(TRIES)) if setup is not None]
    return min(found, key=lambda setup: options_for(setup).bit_count())


def changed(rng: random.Random, setup: Setup, names: Sequence[str]) -> Setup:
    """The same settings, with other values where a run may change them: of the switch and of all ports and VCs."""
    other = draw(rng, names)
    if other is None:
        return setup
    try:
        return replace(
            setup,
            settings=_merged(setup.settings, other.settings),
            ports=[_with(one, two) for one, two in zip(setup.ports, other.ports, strict=True)],
            vcs=[_with(one, two) for one, two in zip(setup.vcs, other.vcs, strict=True)],
        )
    except ValidationError:
        return setup


def _with(one: Any, two: Any) -> Any:
    return replace(one, settings=_merged(one.settings, two.settings))


def _merged(old: Settings, new: Settings) -> Settings:
    values = {}
    for name, declared in type(old).model_fields.items():
        was, is_now = getattr(old, name), getattr(new, name)
        if isinstance(was, Settings) and type(was) is type(is_now):
            is_now = _merged(was, is_now)
        elif not in_run(declared):
            is_now = was
        values[name] = is_now
    return type(old)(**values)
