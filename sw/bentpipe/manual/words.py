"""The manual's parts on words that are declared in registries: applications, settings of TCP, NetSpec, registers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bentpipe.apps.draws import DISTRIBUTIONS
from bentpipe.declarations import FLAG, Setting
from bentpipe.manual.markdown import table
from bentpipe.netspec.models import MODELS, PARAMETERS_OF, Model
from bentpipe_hdl.units import Quantity

__all__ = ["applications", "netspec", "registers", "tcp"]

_TYPES = {"size": "size", "time": "time", "host": "host", "protocol": "word", "test": "word"}
_FORMS = {
    "": "{}",
    "bounds": "{}, or two bounds",
    "blocks": "{0}, {0}:count, two bounds, or a distribution",
    "modelled": "{}, two bounds, or a distribution",
    "drawn": "{}, two bounds, or a distribution",
}


def _type(setting: Any) -> str:
    if setting.choices:
        return _words(setting.choices)
    return setting.of if isinstance(setting.of, str) else _FORMS[setting.form].format(setting.of.name)


def _default(setting: Any) -> str:
    if setting.required:
        return "must be given"
    return "" if setting.default is None else f"`{setting.show(setting.default)}`"


def applications() -> str:
    """Return the applications with their settings and reports."""
    from bentpipe.apps.registry import APPLICATIONS

    parts = []
    for kind in APPLICATIONS.values():
        over = " and ".join(name.upper() for name in kind.protocols)
        rows = [(f"`{s.name}`", _type(s), _default(s), s.text) for s in kind.settings]
        parts.append(f"`{kind.name}`: {kind.text}. Over {over}.\n\n" + table(("key", "is", "default", "meaning"), rows))
        if kind.report is not None:
            rows = [(f"`{c.name}`", c.text) for c in kind.report.columns]
            parts.append("It reports:\n\n" + table(("column", "meaning"), rows))
    return "\n".join(parts)


def tcp() -> dict[str, str]:
    """Return tables of TCP's settings: of all ends, of the variants, of the growths."""
    from bentpipe.tcp.config import SETTINGS
    from bentpipe.tcp.growth import GROWTHS
    from bentpipe.tcp.recovery import VARIANTS

    def shown(setting: Setting, value: Any) -> str:
        if setting.measured:
            return setting.shown(value)
        return "" if value is None else f"`{str(value).lower() if setting.of == FLAG else value}`"

    def row(setting: Setting) -> tuple[str, str, str, str]:
        what = _words(setting.choices) if setting.choices else str(setting.of)
        if isinstance(setting.of, Quantity):
            what = f"number of {setting.of.name}" if isinstance(setting.of.low, int) else setting.of.name
            what = setting.of.name if setting.measured else what
            what += f", {shown(setting, setting.of.low)} to {shown(setting, setting.of.high)}"
        return f"`{setting.key}`", what, shown(setting, setting.default), setting.text.replace("``", "`")

    head = ("key", "is", "default", "meaning")
    own = {setting.name for kinds in (VARIANTS, GROWTHS) for kind in kinds.values() for setting in kind.settings}
    parts = {"general": table(head, (row(setting) for setting in SETTINGS if setting.name not in own))}
    for name, kinds in (("variants", VARIANTS), ("growths", GROWTHS)):
        parts[name] = "\n".join(
            f"`{kind.name}`: {kind.text.replace('``', '`')}.\n"
            + (f"\n{table(head, map(row, kind.settings))}" if kind.settings else "")
            for kind in kinds.values()
        )
    return parts


def _words(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


def _arguments(arguments: Iterable[Any]) -> str:
    rows = []
    for a in arguments:
        what = _words(a.choices) if a.choices else _type(a.setting) if a.setting else _TYPES[a.kind]
        what += f", in {a.unit}" if a.unit else ""
        must = "; must be given" if a.required else ""
        rows.append((_words((a.name, *a.also)), what, f"{a.text}{must}"))
    return table(("name", "is", "meaning"), rows)


def netspec() -> dict[str, str]:
    """Return tables of NetSpec's words: blocks, parameters, protocols, tests, distributions and models."""
    from bentpipe.netspec.language import BLOCKS, CONNECTIONS, PARAMETERS, PROTOCOLS, TESTS

    blocks = [(_words((w.name, *getattr(w, "also", ()))), w.text) for w in (*BLOCKS, *CONNECTIONS)]
    protocols = [f"`{name}` takes:\n\n{_arguments(arguments)}" for name, arguments in PROTOCOLS.items()]
    tests = [f"`{test.name}`: {test.text}.\n\n{_arguments(test.arguments)}" for test in TESTS]
    return {
        "blocks": table(("block", "meaning"), blocks),
        "parameters": _arguments(PARAMETERS),
        "protocols": "\n".join(protocols),
        "tests": "\n".join(tests),
        "distributions": table(("distribution", "parameters"), map(_distribution, DISTRIBUTIONS)),
        "models": table(("model", "draws", "as", "unless given"), map(_model, MODELS.values())),
    }


def _distribution(name: str) -> tuple[str, str]:
    """Return a distribution's name, and its parameters as scripts write them."""
    also = [(word, own) for (base, word), own in PARAMETERS_OF.items() if base == name]
    required = [
        " or ".join(f"`{word}`" for word in (own, *(word for word, of in also if of == own)))
        for own in DISTRIBUTIONS[name]
    ]
    return f"`{name}`", ", ".join(
        [*required, *(f"`{word}` if need be" for word, own in also if own in ("least", "most"))]
    )


def _model(model: Model) -> tuple[str, str, str, str]:
    defaults = ", ".join(f"{name} {value}" for name, value in model.defaults.items())
    return f"`{model.name}`", model.text, f"`{model.distribution}`", defaults


def registers() -> str:
    """Return a table of registers for each kind of node."""
    from bentpipe_hdl.kinds import REGISTERS

    parts = []
    for kind, make in REGISTERS.items():
        rows = []
        for name, addr, register in make().walk():
            last = f" … {addr + register.size - 1:#07x}" if register.size > 1 else ""
            rows.append((f"{addr:#07x}{last}", f"`{name}`", register.access, register.describe()))
        parts.append(f"## {kind}\n\n" + table(("address", "name", "access", "what it is"), rows))
    return "\n".join(parts)
