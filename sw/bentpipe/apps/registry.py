"""All applications by name. Every module beside this one that has an ``APPLICATION`` is one; those from outside of
bentpipe come by :func:`add`."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Final

import bentpipe.apps
from bentpipe.apps.app import Application
from bentpipe.apps.settings import ApplicationSpec, AppSetting, FlowRequest, Problem, Report
from bentpipe.errors import BentpipeError
from bentpipe.ip.udp import datagram_octets
from bentpipe_hdl.units import SIZE, TIME

__all__ = ["APPLICATIONS", "COMMON", "REPORTS", "add", "check", "keys", "make", "reported"]

COMMON: Final = (
    AppSetting("size", SIZE, None, "how much to send; without it the flow is endless", ends=True),
    AppSetting(
        "duration",
        TIME.within(1, TIME.high),
        None,
        "when the application stops writing, counted from the connection",
        unit="s",
        ends=True,
    ),
)
"""Settings of every application that takes them."""


def _found() -> dict[str, ApplicationSpec]:
    names = sorted(module.name for module in pkgutil.iter_modules(bentpipe.apps.__path__))
    modules = [importlib.import_module(f"bentpipe.apps.{name}") for name in names if name != "registry"]
    kinds = [module.APPLICATION for module in modules if hasattr(module, "APPLICATION")]
    return {kind.name: kind for kind in kinds}


APPLICATIONS: Final[dict[str, ApplicationSpec]] = _found()
"""Applications by name."""

REPORTS: Final[dict[str, Report]] = {k.name: k.report for k in APPLICATIONS.values() if k.report is not None}
"""What they report, by the application."""


def add(kind: ApplicationSpec) -> None:
    """Add an application from outside of bentpipe.

    Raises
    ------
    ValueError
        Its name is taken.
    """
    if kind.name in APPLICATIONS:
        raise ValueError(f"there is an application {kind.name!r} already")
    APPLICATIONS[kind.name] = kind
    if kind.report is not None:
        REPORTS[kind.name] = kind.report


def keys() -> list[str]:
    """Return the names of all applications' settings."""
    return sorted({setting.name for kind in APPLICATIONS.values() for setting in kind.settings})


def check(name: str, given: FlowRequest) -> Problem:
    """Return the fault of settings that are each valid, as key and reason; None if there is none."""
    kind = APPLICATIONS[name]
    if given.protocol not in kind.protocols:
        return "protocol", f"{name} runs over {' and '.join(kind.protocols)} only"
    if given.sinks > 1 and (given.protocol != "udp" or kind.answers):
        what = "TCP" if given.protocol == "tcp" else kind.name
        return "sink", f'{what} is between two hosts; to several go applications with protocol = "udp" and no answers'
    if given.size is not None and "size" not in kind.takes:
        return "size", f"{name} has no such setting"
    if given.protocol == "udp":
        try:
            datagram_octets(given.datagram or 0, given.mtu)
        except ValueError as error:
            return "datagram", str(error)
    return kind.check(given)


def make(name: str, given: FlowRequest) -> Application:
    """Return the application of one flow; its settings have been checked.

    Raises
    ------
    BentpipeError
        What the declaration makes is no application.
    """
    made = APPLICATIONS[name].make(given)
    if not isinstance(made, Application):
        kind = type(made).__name__
        raise BentpipeError(
            f"application {name!r}: makes {kind}, which is not derived from bentpipe.apps.app.Application"
        )
    return made


def reported(app: str) -> tuple[str, ...]:
    """Return the names of an application's reported figures that are numbers."""
    report = REPORTS.get(app)
    return () if report is None else tuple(c.name for c in report.columns if c.name != report.label)
