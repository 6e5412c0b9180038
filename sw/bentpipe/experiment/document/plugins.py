"""Models from outside of bentpipe: applications, growths of the window, options of switches.

A plugin is a file or a package folder that a document's ``[plugins]`` or ``--plugin`` names, or an installed package
with entry points. :func:`load` and :func:`installed` add what it declares to the registries of bentpipe, where nothing
tells it from bentpipe's own. Each plugin has the hash of its sources, which results, states and sweeps keep.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Final

from bentpipe.apps import registry
from bentpipe.apps.settings import ApplicationSpec, AppSetting
from bentpipe.declarations import Setting
from bentpipe.errors import BentpipeError, one_line
from bentpipe.experiment.document.tables import FlowTable, add_series
from bentpipe.netspec.language import TESTS, add_tests
from bentpipe.tcp.config import SETTINGS, add_growth
from bentpipe.tcp.growth import GROWTHS
from bentpipe.tcp.growth.base import Growth
from bentpipe.tcp.settings import Registration
from bentpipe_hdl.registers import RegisterMap
from bentpipe_hdl.settings import Settings, check_extension, extend, key_of
from bentpipe_hdl.switch.control import PortSettings, SwitchSettings, VcSettings
from bentpipe_hdl.switch.options import OPTIONS, Option
from bentpipe_hdl.switch.options import add as add_option
from bentpipe_hdl.switch.registers import core_registers

__all__ = [
    "Plugin",
    "PluginError",
    "blamed",
    "installed",
    "is_of_plugin",
    "keys_of",
    "load",
    "loaded",
    "required",
    "rows_of",
]

_MODULE: Final = "bentpipe_plugin_{}"
_NAME: Final = re.compile(r"[A-Za-z_]\w*")
_MOST_SHOWN: Final = 12


class PluginError(BentpipeError):
    """A plugin that cannot be used: the message names its file or package."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """A plugin that was loaded.

    Members
    -------
    name : str
        As in ``[plugins]``, or that of its installed package.
    sha256 : str
        Of its sources.
    version : str
        Of its package; "": it is a file.
    applications, growths, options : tuple of str
        Names of what it adds.
    file : str
        Absolute; "": it is an installed package.
    """

    name: str
    sha256: str
    version: str
    applications: tuple[str, ...]
    growths: tuple[str, ...]
    options: tuple[str, ...]
    file: str = field(compare=False, metadata={"of a machine": True})

    def __str__(self) -> str:
        return f"{self.name} {self.version}".rstrip() + f" ({self.sha256[:_MOST_SHOWN]})"


@dataclass(slots=True)
class _Declared:
    """The declarations of a plugin that are not added yet."""

    applications: list[ApplicationSpec] = field(default_factory=list)
    growths: list[Registration] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)


_loaded: Final[dict[str, Plugin]] = {}
_modules: Final[set[str]] = set()
"""Top-level names of their modules."""
_asked: Final[list[bool]] = []
"""Not empty: installed packages were looked for."""


def loaded() -> tuple[Plugin, ...]:
    """Return the plugins that were loaded, in order."""
    return tuple(_loaded.values())


def is_of_plugin(kind: type) -> bool:
    """Return whether a class is a plugin's."""
    return kind.__module__.partition(".")[0] in _modules


def load(name: str, path: Path) -> Plugin:
    """Load a plugin from a file or a package folder, unless that was done.

    Raises
    ------
    PluginError
        A line that says what is wrong with it, and where.
    """
    if not _NAME.fullmatch(name):
        raise PluginError(f"{path}: {name!r} is no name of a plugin: it needs letters, digits and _ only")
    first = path / "__init__.py" if path.is_dir() else path
    if not first.is_file() or first.suffix != ".py":
        what = "has no __init__.py" if path.is_dir() else "is no Python file" if path.is_file() else "no such file"
        raise PluginError(f"{path}: {what}, so it is no plugin")
    sha256 = _digest(path.rglob("*.py") if path.is_dir() else [path], first.parent)
    before = _loaded.get(name)
    if before is not None:
        if before.sha256 == sha256:
            return before
        same = before.file == str(path.resolve())
        what = "was changed since it was loaded; start a new process" if same else f"{before.file or name} has its name"
        raise PluginError(f"{path}: plugin {name} {what}")
    module_name = _MODULE.format(name)
    spec = importlib.util.spec_from_file_location(module_name, first)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    try:
        with _with_place(str(path), path):
            spec.loader.exec_module(module)
            declared = _declared_in(module)
            return _add(declared, name, sha256, "", str(path.resolve()), module_name)
    except PluginError:
        for each in [each for each in sys.modules if each.partition(".")[0] == module_name]:
            del sys.modules[each]
        raise


def installed() -> None:
    """Load the plugins of installed packages, once.

    Raises
    ------
    PluginError
        As for :func:`load`.
    """
    if _asked:
        return
    _asked.append(True)
    by_package: dict[str, list[EntryPoint]] = {}
    entries_of_all = entry_points()  # each call reads those of all packages
    for group in _GROUPS:
        for entry in entries_of_all.select(group=group):
            by_package.setdefault(entry.dist.name if entry.dist else entry.module, []).append(entry)
    for package, entries in sorted(by_package.items()):
        if package not in _loaded:
            _load_package(package, entries)


def _load_package(package: str, entries: Sequence[EntryPoint]) -> None:
    declared = _Declared()
    place, tops = f"package {package}", sorted({entry.module.partition(".")[0] for entry in entries})
    for entry in entries:
        with _with_place(f"{place}: entry point {entry.name!r} of {entry.group}"):
            _GROUPS[entry.group](declared, entry.load(), entry.value)
    files = [Path(str(sys.modules[top].__file__)) for top in tops]
    sources = [(f, f.parent.rglob("*.py") if f.name == "__init__.py" else [f]) for f in files]
    sha256 = hashlib.sha256("".join(_digest(found, f.parent) for f, found in sources).encode()).hexdigest()
    version = entries[0].dist.version if entries[0].dist else ""
    with _with_place(place):
        _add(declared, package, sha256, version, "", *tops)


def required(rows: Iterable[Sequence[str]], who: str) -> None:
    """Load the plugins with which something was made: rows of name, file ("": an installed package) and hash.

    Raises
    ------
    PluginError
        One is missing, or is another one now; ``who`` was made with it, for the message.
    """
    installed()
    for name, file, sha256 in rows:
        now = load(name, Path(file)) if file else _loaded.get(name)
        if now is None:
            raise PluginError(f"{who}: was made with plugin {name}, a package that isn't installed")
        if now.sha256 != sha256:
            was = sha256[:_MOST_SHOWN]
            raise PluginError(f"{who}: was made with another plugin {name} ({was}) than the present {now}")


def rows_of(plugins: Iterable[Plugin]) -> list[tuple[str, str, str]]:
    """Return the plugins in the form that :func:`required` takes."""
    return [(plugin.name, plugin.file, plugin.sha256) for plugin in plugins]


def keys_of(plugin: Plugin) -> set[str]:
    """Return the members that its options add to settings of switches, ports and VCs."""
    own = [option for option in OPTIONS if option.name in plugin.options]
    models = [getattr(option, member) for option in own for member in _TABLES]
    return {name for model in models if model is not None for name in model.model_fields}


def blamed(error: Exception) -> str:
    """Return the place in a plugin where an error comes from, and its text; "" if it is not a plugin's."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        for plugin in _loaded.values():
            file = Path(frame.filename)
            if plugin.file and (file == Path(plugin.file) or file.is_relative_to(plugin.file)):
                return f"plugin {plugin.name}: {frame.filename}:{frame.lineno}: {_text(error)}"
    return ""


def _digest(files: Iterable[Path], root: Path) -> str:
    total = hashlib.sha256()
    for file in sorted(files):
        content = file.read_bytes()
        total.update(f"{file.relative_to(root).as_posix()}\0{len(content)}\0".encode() + content)
    return total.hexdigest()


def _text(error: Exception) -> str:
    return f"{type(error).__name__}: {one_line(error)}" if str(error) else type(error).__name__


@contextmanager
def _with_place(place: str, path: Path | None = None) -> Iterator[None]:
    """Turn every exception within the context into a line about a plugin, with the place in its own files."""
    try:
        yield
    except PluginError:
        raise
    except _Refused as refused:
        raise PluginError(f"{place}: {refused}") from None
    except SyntaxError as error:
        at = _within(str(error.filename), path) or error.filename or place
        raise PluginError(f"{at}:{error.lineno}: {type(error).__name__}: {error.msg}") from None
    except Exception as error:
        frames = reversed(traceback.extract_tb(error.__traceback__))
        own = ((_within(frame.filename, path), frame.lineno) for frame in frames)
        at = next((f"{file}:{line}" for file, line in own if file), place)
        raise PluginError(f"{at}: {_text(error)}") from None


def _within(file: str, path: Path | None) -> str:
    """Return a file of a plugin, beginning with the path that the plugin was named by; "" if it is none."""
    if path is None or not Path(file).is_relative_to(path.resolve()):
        return ""
    return str(path / Path(file).relative_to(path.resolve()))


class _Refused(Exception):
    """A declaration of a plugin is invalid; the text names the fault."""


def _each(given: object) -> Iterator[object]:
    if isinstance(given, (list, tuple)):
        yield from given
    else:
        yield given


def _declared_in(module: ModuleType) -> _Declared:
    """Return the declarations of a module, by the names that modules of bentpipe use."""
    found = _Declared()
    known = {"APPLICATION": _take_applications, "REGISTRATION": _take_growths, "OPTIONS": _take_options}
    known |= {"APPLICATIONS": _take_applications, "GROWTHS": _take_growths}
    for name, take in known.items():
        if hasattr(module, name):
            take(found, getattr(module, name), name)
    if not (found.applications or found.growths or found.options):
        raise _Refused("declares nothing: it needs an APPLICATION, a REGISTRATION or OPTIONS")
    return found


def _take_applications(found: _Declared, given: object, name: str) -> None:
    for kind in _each(given):
        if not isinstance(kind, ApplicationSpec):
            raise _Refused(f"{name} is no ApplicationSpec but {type(kind).__name__}")
        if kind.name in registry.APPLICATIONS or any(kind.name == other.name for other in found.applications):
            raise _Refused(f"there is an application {kind.name!r} already")
        tests = {test.name for test in TESTS}
        for test in kind.tests:
            if test.name in tests:
                raise _Refused(f"application {kind.name!r}: NetSpec has a test {test.name!r} already")
        for setting in kind.settings:
            if not isinstance(setting, AppSetting):
                raise _Refused(f"application {kind.name!r}: {setting!r} is no AppSetting")
            if setting.key in map(key_of, FlowTable.model_fields):
                raise _Refused(f"application {kind.name!r}: its setting {setting.key!r} is a key of all flows")
        _check_settings(f"application {kind.name!r}", kind.settings)
        found.applications.append(kind)


def _take_growths(found: _Declared, given: object, name: str) -> None:
    taken = {setting.name for setting in SETTINGS}
    for kind in _each(given):
        if not isinstance(kind, Registration):
            raise _Refused(f"{name} is no Registration but {type(kind).__name__}")
        what = f"growth {kind.name!r}"
        if kind.name in GROWTHS or any(kind.name == other.name for other in found.growths):
            raise _Refused(f"there is a {what} already")
        if not (isinstance(kind.make, type) and issubclass(kind.make, Growth)):
            raise _Refused(f"{what}: {_called(kind.make)} is not derived from bentpipe.tcp.growth.base.Growth")
        for setting in kind.settings:
            if not isinstance(setting, Setting):
                raise _Refused(f"{what}: {setting!r} is no Setting")
            if setting.name in taken:
                raise _Refused(f"{what}: TCP has a setting {setting.name!r} already")
            if not setting.name.startswith(f"{kind.name}_"):
                raise _Refused(f"{what}: the name of its setting {setting.name!r} must begin with '{kind.name}_'")
        _check_settings(what, kind.settings)
        found.growths.append(kind)


def _called(given: object) -> str:
    return getattr(given, "__name__", repr(given))


def _check_settings(what: str, settings: Sequence[Setting]) -> None:
    seen: set[str] = set()
    for setting in settings:
        if setting.name in seen:
            raise _Refused(f"{what}: has two settings {setting.name!r}")
        seen.add(setting.name)
        if setting.default is None or setting.required:
            continue
        try:
            for value in setting.default if isinstance(setting.default, tuple) else (setting.default,):
                setting.check(value)
        except (ValueError, TypeError) as error:
            raise _Refused(f"{what}: the default of {setting.name!r} is wrong: {one_line(error)}") from None


_TABLES: Final[dict[str, type[Settings]]] = {
    "switch_settings": SwitchSettings,
    "port_settings": PortSettings,
    "vc_settings": VcSettings,
}


def _take_options(found: _Declared, given: object, name: str) -> None:
    from bentpipe_hdl.switch.options.plugin import Plugin as Hardware

    for option in _each(given):
        if not isinstance(option, Option):
            kind = option.__name__ if isinstance(option, type) else type(option).__name__
            if isinstance(option, type) and issubclass(option, Option):
                raise _Refused(f"{name} has the class {kind}, not an object of it: write {kind}()")
            raise _Refused(f"{name}: {kind} is not derived from bentpipe_hdl.switch.options.Option")
        what = f"option {getattr(option, 'name', type(option).__name__)!r}"
        if not isinstance(getattr(option, "name", None), str):
            raise _Refused(f"{what}: has no name")
        if any(option.name == other.name for other in (*OPTIONS, *found.options)):
            raise _Refused(f"there is an {what} of switches already")
        for method in ("wanted", "registers", "configure"):
            if getattr(type(option), method) is getattr(Option, method):
                raise _Refused(f"{what}: has no {method}()")
        hardware = option.hardware()
        if not (isinstance(hardware, type) and issubclass(hardware, Hardware)):
            base = "bentpipe_hdl.switch.options.plugin.Plugin"
            raise _Refused(f"{what}: its hardware {_called(hardware)} is not derived from {base}")
        if option.name not in hardware.options:
            raise _Refused(f"{what}: is not among the `options` of its hardware {hardware.__name__}")
        try:
            for member, model in _TABLES.items():
                more = getattr(option, member)
                if more is not None:
                    check_extension(model, more)
            _check_registers((*OPTIONS, *found.options, option))
        except ValueError as error:
            raise _Refused(f"{what}: {error}") from None
        found.options.append(option)


def _check_registers(options: Iterable[Option]) -> None:
    """Raise ValueError if a switch with all of these had two registers at one address or of one name, or the largest
    switch with the last one alone."""
    given = tuple(options)
    for vcs, cells, ports, some in ((64, 8192, 4, given), (4096, 65535, 16, given[-1:])):
        core = core_registers(vcs=vcs, cells=cells, ports=ports, makes_cells=True, changes_cells=True)
        own = (each for option in some for each in option.registers(vcs=vcs, cells=cells, ports=ports))
        RegisterMap("switch", "", 0, {}, (*core, *own))


_GROUPS: Final[dict[str, Callable[[_Declared, object, str], None]]] = {
    "bentpipe.applications": _take_applications,
    "bentpipe.growths": _take_growths,
    "bentpipe.switch_options": _take_options,
}
"""Entry points of packages."""


def _add(declared: _Declared, name: str, sha256: str, version: str, file: str, *modules: str) -> Plugin:
    """Add what was declared and checked to the registries."""
    for kind in declared.applications:
        registry.add(kind)
        add_tests(kind)
    for growth in declared.growths:
        add_growth(growth)
    for option in declared.options:
        add_option(option)
        add_series(option.series)
        for member, model in _TABLES.items():
            more = getattr(option, member)
            if more is not None:
                extend(model, more)
    _modules.update(modules)
    names: Mapping[str, tuple[str, ...]] = {
        key: tuple(each.name for each in getattr(declared, key)) for key in ("applications", "growths", "options")
    }
    _loaded[name] = Plugin(name, sha256, version, names["applications"], names["growths"], names["options"], file)
    return _loaded[name]
