"""The ``tcp`` table of an experiment: ``window``, and every setting that :mod:`bentpipe.tcp` declares."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated, Any

from pydantic import Field, GetJsonSchemaHandler
from pydantic_core import CoreSchema

from bentpipe.declarations import FLAG, Setting
from bentpipe.experiment.document.declared import DeclaredTable, schema_of
from bentpipe.experiment.document.source import ConfigProblem
from bentpipe.tcp.config import SETTINGS, TcpConfig
from bentpipe_hdl.settings import SIZE, TIME, Quantity, key_of, unknown_key
from bentpipe_hdl.units import format_time

__all__ = ["TcpTable", "make_config", "options_text"]


class TcpTable(DeclaredTable):
    """TCP, of all hosts; `[flow.tcp]` has the same keys, for one flow."""

    window: Annotated[int, SIZE.within(1, 2**30 - 1)] | None = Field(default=None, description="both socket buffers")

    @classmethod
    def declared(cls, given: Mapping[str, Any]) -> tuple[Setting, ...]:
        del given
        return tuple(SETTINGS)

    @classmethod
    def declared_keys(cls) -> Collection[str]:
        return [setting.key for setting in SETTINGS]

    @classmethod
    def unknown(cls, key: str) -> str:
        return unknown_key(key, [*map(key_of, cls.model_fields), *cls.declared_keys()])

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        made = super().__get_pydantic_json_schema__(schema, handler)
        handler.resolve_ref_schema(made)["properties"] |= schema_of(SETTINGS)
        return made

    def given(self) -> dict[str, Any]:
        """Return the members of TcpConfig that are given; ``window`` gives both socket buffers."""
        buffers = {} if self.window is None else {"send_buffer": self.window, "receive_buffer": self.window}
        return buffers | {**self.values}


def make_config(options: Mapping[str, Any], mtu: int, place: str) -> TcpConfig:
    """Return the TcpConfig of options that were read by their declarations; ``place`` is where they came from."""
    try:
        config = TcpConfig.of_read(options)
        config.segment_size(mtu)
    except ValueError as error:
        raise ConfigProblem(place, str(error)) from None
    return config


def options_text(config: TcpConfig) -> str:
    """Return the variant, and the settings that differ from the defaults, without buffers: ``reno, ack_policy
    immediate``."""
    words = [config.variant]
    for setting in SETTINGS:
        value = getattr(config, setting.name)
        if value == setting.default or setting.name in ("variant", "send_buffer", "receive_buffer"):
            continue
        if setting.of == FLAG:
            words.append(setting.key if value else f"no {setting.key}")
        else:
            is_time = isinstance(setting.of, Quantity) and setting.of.name == TIME.name
            words.append(f"{setting.key} {format_time(value) if is_time else value}")
    return ", ".join(words)
