"""The ``tcp`` table of an experiment: ``window``, and every setting that :mod:`bentpipe.tcp` declares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, create_model

from bentpipe.experiment.document.source import Wrong
from bentpipe.tcp.config import SETTINGS, TcpConfig
from bentpipe.tcp.settings import Setting
from bentpipe_hdl.settings import COUNT, NUMBER, SIZE, TIME, Settings, Words
from bentpipe_hdl.units import format_time

__all__ = ["TcpTable", "make_config", "options_text"]

_WINDOW = Annotated[int, SIZE.within(1, 2**30 - 1)]


def _type(setting: Setting) -> Any:
    low, high = setting.low, setting.high
    match setting.kind:
        case "flag":
            return bool
        case "choice":
            return Annotated[str, Words(lambda: dict.fromkeys(setting.choices, ""))]
        case "time":
            return Annotated[int, TIME.within(low, high)]
        case "size":
            return Annotated[int, SIZE.within(low, high)]
        case "count":
            return Annotated[int, COUNT.counting(setting.unit).within(low, high)]
    return Annotated[float, NUMBER.within(low, high, name=setting.unit or "number")]


class _Common(Settings):
    """TCP."""

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
        __doc__="TCP, of all hosts; `[flow.tcp]` has the same keys, for one flow.",
        **{s.name: (_type(s), Field(default=s.default, description=s.text)) for s in SETTINGS},
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
    for setting in SETTINGS:
        value = getattr(config, setting.name)
        if value == setting.default or setting.name in ("variant", "send_buffer", "receive_buffer"):
            continue
        if setting.kind == "flag":
            words.append(setting.key if value else f"no {setting.key}")
        else:
            words.append(f"{setting.key} {format_time(value) if setting.kind == 'time' else value}")
    return ", ".join(words)
