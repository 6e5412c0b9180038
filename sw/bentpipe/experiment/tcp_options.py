"""The ``tcp`` table of an experiment: ``window`` and every member of :class:`bentpipe.tcp.config.TcpConfig`.

The keys are TcpConfig's own members, so a switch added there can be set in an experiment at once. Times lose
their ``_ps``: ``rto_min = "1 s"``. A number is of octets, but for those that count something else.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Final

from bentpipe.experiment.table import Table
from bentpipe_hdl.units import format_time

if TYPE_CHECKING:
    from bentpipe.tcp.config import TcpConfig

__all__ = ["known_keys", "make_config", "note_defaults", "options_text", "read_options"]

_MAX_WINDOW: Final = 2**30 - 1
_TIME: Final = "_ps"
_COUNTS: Final = {"initial_cwnd": "segments", "rto_min_ticks": "ticks"}


def _members() -> dict[str, tuple[str, str]]:
    """Key of the table: member of TcpConfig, its annotation."""
    from bentpipe.tcp.config import TcpConfig

    return {f.name.removesuffix(_TIME): (f.name, str(f.type)) for f in dataclasses.fields(TcpConfig) if f.init}


def known_keys() -> tuple[str, ...]:
    return ("window", *_members())


def read_options(table: Table) -> dict[str, Any]:
    """The members of TcpConfig that a ``tcp`` table gives; ``window`` gives both socket buffers."""
    from bentpipe.tcp.config import VARIANTS

    members = _members()
    options: dict[str, Any] = {}
    if "window" in table:
        window = table.size("window", high=_MAX_WINDOW)
        options |= {"send_buffer": window, "receive_buffer": window}
    for key in table.data:
        if key == "window":
            continue
        name, kind = members[key]
        if name == "variant":
            options[name] = table.text(key, choices=VARIANTS)
        elif "bool" in kind:
            options[name] = table.boolean(key)
        elif "str" in kind:
            options[name] = table.text(key)
        elif name.endswith(_TIME):
            options[name] = table.time(key)
        elif name in _COUNTS:
            options[name] = table.integer(key, things=_COUNTS[name])
        else:
            options[name] = table.size(key, low=0)
    return options


def note_defaults(table: Table) -> None:
    """Note TcpConfig's own defaults of what a ``tcp`` table, below which there is no other, doesn't give."""
    from bentpipe.tcp.config import TcpConfig

    fields = {f.name: f for f in dataclasses.fields(TcpConfig) if f.init}
    for key, (name, _) in _members().items():
        default = fields[name].default
        if key not in table and default is not dataclasses.MISSING:
            table.note(key, default, format_time if name.endswith(_TIME) else None)


def make_config(options: dict[str, Any], mtu: int, table: Table) -> TcpConfig:
    """The TcpConfig of the options; ``table`` is where they came from."""
    from bentpipe.tcp.config import TcpConfig

    try:
        config = TcpConfig(**options)
        config.segment_size(mtu)
    except ValueError as error:
        raise table.error("tcp", str(error)) from None
    return config


def options_text(config: TcpConfig) -> str:
    """Variant, and what else differs from the defaults but the buffers: ``reno, ack_policy immediate, no nagle``."""
    words = [config.variant]
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if value == field.default or field.name in ("variant", "send_buffer", "receive_buffer"):
            continue
        if isinstance(value, bool):
            words.append(field.name if value else f"no {field.name}")
        elif field.name.endswith(_TIME):
            words.append(f"{field.name.removesuffix(_TIME)} {format_time(value)}")
        else:
            words.append(f"{field.name} {value}")
    return ", ".join(words)
