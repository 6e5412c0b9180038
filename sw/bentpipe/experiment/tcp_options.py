"""The ``tcp`` table of an experiment: ``window`` and every member of :class:`bentpipe.tcp.config.TcpConfig`.

The keys are TcpConfig's own members, so a switch added there can be set in an experiment at once. Times lose
their ``_ps``: ``rto_min = "1 s"``. A number is of octets, but for those that count something else.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import Field, create_model

from bentpipe.experiment.source import Wrong
from bentpipe.tcp.config import ACK_POLICIES, SACK_PIPES, TIMERS, VARIANTS, TcpConfig
from bentpipe_hdl.settings import COUNT, SIZE, TIME, Settings, Words, key_of
from bentpipe_hdl.units import format_time

__all__ = ["TcpTable", "make_config", "options_text"]

_WINDOW = Annotated[int, SIZE.within(1, 2**30 - 1)]
_CHOICES: Final = {"variant": VARIANTS, "ack_policy": ACK_POLICIES, "timers": TIMERS, "sack_pipe": SACK_PIPES}
_COUNTS: Final = {"initial_cwnd": "segments", "rto_min_ticks": "ticks"}


def _type(field: dataclasses.Field[Any]) -> Any:
    name, kind = field.name, str(field.type)
    if name in _CHOICES:
        return Annotated[str, Words(lambda: dict.fromkeys(_CHOICES[name], ""))]
    if "bool" in kind:
        return bool
    if name.endswith("_ps"):
        return Annotated[int, TIME]
    return Annotated[int, COUNT.counting(_COUNTS[name]) if name in _COUNTS else SIZE.within(0, SIZE.high)]


class _Common(Settings):
    """TCP; a member that isn't given is None, and TcpConfig's own default holds."""

    window: _WINDOW | None = Field(default=None, description="both socket buffers")

    def given(self) -> dict[str, Any]:
        """The members of TcpConfig that are given; ``window`` gives both socket buffers."""
        options = {} if self.window is None else {"send_buffer": self.window, "receive_buffer": self.window}
        return options | {name: getattr(self, name) for name in self.model_fields_set if name != "window"}


if TYPE_CHECKING:
    TcpTable = _Common
else:
    TcpTable = create_model(
        "TcpTable",
        __base__=_Common,
        **{
            field.name: (_type(field), Field(default=field.default, description="see TcpConfig"))
            for field in dataclasses.fields(TcpConfig)
            if field.init
        },
    )


def make_config(options: dict[str, Any], mtu: int, place: str) -> TcpConfig:
    """The TcpConfig of the options; ``place`` is where they came from."""
    try:
        config = TcpConfig(**options)
        config.segment_size(mtu)
    except ValueError as error:
        raise Wrong(place, str(error)) from None
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
        else:
            words.append(f"{key_of(field.name)} {format_time(value) if field.name.endswith('_ps') else value}")
    return ", ".join(words)
