"""Changes of a document: ``--set``, ``--vary``, the values of a case, ``--seed``, ``--duration``, ``--quick``.

The last of three steps from a file to an experiment. It starts first: it puts values into the document by their dotted
keys, and then has the document read by the other two.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, SupportsIndex

from bentpipe.errors import BentpipeError, ConfigError
from bentpipe.experiment.build.faults import BuildError
from bentpipe.experiment.document import plugins
from bentpipe.experiment.document.assign import SHORTHANDS, Assignment, assigned, value_of
from bentpipe.experiment.document.catalogue import find, read_extended
from bentpipe.experiment.document.changes import Change, changes_between
from bentpipe.experiment.document.sets import MARK, named_set
from bentpipe.experiment.document.source import ConfigProblem, Source
from bentpipe.experiment.document.tables import Cases, CaseTable, Document
from bentpipe.experiment.resolve.parse import parse_experiment
from bentpipe.experiment.resolve.specs import Experiment
from bentpipe.results.folder import is_cases, is_sweep, read_run
from bentpipe.results.knees import FIGURES
from bentpipe_hdl.settings import Settings, key_of
from bentpipe_hdl.units import format_time, parse_time
from bentpipe_hdl.words import kind_of, nearest
from bentpipe_sim.tools import uncollected

__all__ = [
    "apply_settings",
    "cases_of",
    "check_seed",
    "experiment_of",
    "load",
    "load_cases",
    "parse_duration",
    "value_of",
]


@dataclass(frozen=True)
class _Options:
    """The options of a run on the command line, beside ``--set``."""

    seed: int | None = None
    duration_ps: int | None = None
    quick: bool = False


@uncollected()
def load(
    name: str,
    settings: Sequence[str] = (),
    *,
    seed: int | None = None,
    duration_ps: int | None = None,
    quick: bool = False,
) -> Experiment:
    """Find, read, change and validate an experiment, without its cases' settings; see
    :func:`~bentpipe.experiment.document.catalogue.find` and
    :func:`~bentpipe.experiment.resolve.parse.parse_experiment`."""
    file = _File(name)
    return file.changed(file.document, file.source, _read(settings, "--set"), _Options(seed, duration_ps, quick))


@uncollected()
def load_cases(
    name: str,
    settings: Sequence[str] = (),
    *,
    varied: Mapping[str, str] | None = None,
    seed: int | None = None,
    duration_ps: int | None = None,
    quick: bool = False,
    only: Sequence[str] = (),
) -> list[Experiment]:
    """Return the experiment of each of its cases, or the experiment itself if it has no cases.

    ``settings`` override those of a case. ``varied`` has the values that a sweep gives to its keys; ``only`` names the
    wanted cases. Each case has only its own published figures.

    Raises
    ------
    BentpipeError, ConfigError
        As :func:`load`; a case's error names it.
    """
    file = _File(name)
    options = _Options(seed, duration_ps, quick)
    names = [case.name for case in file.cases]
    for wanted in only:
        if not names:
            raise BentpipeError(f"{file.source.name}: has no cases, so no case {wanted!r}")
        if wanted not in names:
            raise BentpipeError(f"{file.source.name}: there is no case {wanted!r}{nearest(wanted, names)}")
    given = _read(settings, "--set") + _read((f"{key}={value}" for key, value in (varied or {}).items()), "--vary")
    if not names:
        return [file.changed(file.document, file.source, given, options)]
    return [file.with_case(case, given, options) for case in file.cases if not only or case.name in only]


def experiment_of(folder: Path) -> Experiment:
    """Return the experiment of the run in a folder, as it was run.

    Raises
    ------
    BentpipeError
        There is no run; or the experiment's file is missing, or has changed.
    """
    if is_sweep(folder):
        raise BentpipeError(f"{folder}: is a sweep's folder; give the name of its experiment, and --set")
    if is_cases(folder):
        raise BentpipeError(f"{folder}: has several runs; give the folder of one of them, as {folder}/CASE")
    summary = read_run(folder).summary
    case = summary.get("case")
    limit = round(summary["time"]["limit_s"] * 1e12)
    try:
        found = load_cases(
            summary["file"],
            summary["settings"],
            seed=summary["seed"],
            duration_ps=limit if limit < round(summary["time"]["full_s"] * 1e12) else None,
            only=[case["name"]] if case else [],
        )[0]
    except ConfigError:
        raise
    except BentpipeError as error:
        raise BentpipeError(f"{folder}: its experiment can't be run again: {error}") from None
    before = {row["name"]: row["sha256"] for row in summary.get("plugins", ())}
    for plugin in found.plugins:
        if before.get(plugin.name, plugin.sha256) != plugin.sha256:
            raise BentpipeError(f"{folder}: its plugin {plugin.name} has changed: run it again")
    if found.document != summary["configuration"]:
        raise BentpipeError(f"{folder}: its experiment, {summary['file']}, has changed since: run it again")
    return found


def parse_duration(text: str, who: str) -> int:
    """Return a time to simulate, in ps; ``who`` gives it, for messages.

    Raises
    ------
    BentpipeError
        It is none, or none of 1 us to 100000 s.
    """
    try:
        duration = parse_time(text)
    except ValueError as error:
        raise BentpipeError(f"{who}: {error}") from None
    if not 10**6 <= duration <= 10**17:
        raise BentpipeError(f"{who} {text}: out of range, 1 us to 100000 s")
    return duration


def check_seed(seed: SupportsIndex, who: str) -> int:
    """Return a seed, of whatever type of whole numbers (NumPy's, too), as an ``int``.

    Raises
    ------
    BentpipeError
        It is none of 0 to 2**32 - 1.
    """
    try:
        number = operator.index(seed)
    except TypeError:
        raise BentpipeError(f"{who} {seed!r}: expected a whole number") from None
    if not 0 <= number < 2**32:
        raise BentpipeError(f"{who} {number}: out of range 0..{2**32 - 1}")
    return number


def cases_of(name: str) -> tuple[CaseTable, ...]:
    """Return the cases in an experiment's file, none if it has none; errors as :func:`load`."""
    return _File(name).cases


class _File:
    """A file of an experiment: its document without the cases, and these."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.path: Path = find(name)
        plugins.installed()
        self.document, files = read_extended(self.path)
        base: Source | None = None
        for path, text in reversed(files):
            base = Source(path.name, text, base=base, folder=path.parent)
        assert base is not None
        self.source: Source = base
        given = self.source.read(Cases, self.document)
        self.cases = given.all()
        self.axis = given.axis[-1].label or given.axis[-1].name if given.axis else ""
        self._check_cases(given)
        self.document.pop("case", None)
        self.document.pop("axis", None)

    def _check_cases(self, given: Cases) -> None:
        names = [case.name for case in self.cases]
        found = [
            ConfigProblem(f"case.{number}.name", f"there is a case {name!r} already")
            for number, name in enumerate(names)
            if name in names[:number]
        ]
        if not given.axis and len({case.at is None for case in self.cases}) > 1:
            found.append(ConfigProblem("case", "either all cases have a place on the axis ('at') or none"))
        found += [
            ConfigProblem(f"{table}.{number}.{key}", f"expected a text, not {kind_of(row[key])}")
            for table in ("published", "expect")
            for number, row in enumerate(self._rows(table))
            for key in ("case", "metric")
            if not isinstance(row.get(key, ""), str)
        ]
        if found:
            raise self.source.error(*found)
        if names:
            rows = [(row.get("case", ""), row.get("metric", "")) for row in self._rows("published")]
            found += _unknown_cases(rows, names)
        for number, row in enumerate(self._rows("expect")):
            name = row.get("case", "")
            if name and name not in names:
                what = f"there is no case {name!r}{nearest(name, names)}" if names else "there are no cases"
                found.append(ConfigProblem(f"expect.{number}.case", what))
        if found:
            raise self.source.error(*found)

    def _rows(self, key: str) -> list[dict[str, Any]]:
        """Return an array of tables of the document, which is not checked yet.

        Return none if it is something else, which is reported when the document is read.
        """
        given = self.document.get(key)
        return given if isinstance(given, list) and all(isinstance(row, dict) for row in given) else []

    def with_case(self, case: CaseTable, settings: Sequence[Assignment], options: _Options) -> Experiment:
        """Return the experiment with the values of a case, and its own published figures."""
        own = [Assignment("set", key, value) for key, value in case.set.items()]
        try:
            document, touched = assigned(self.document, own, self.source.name)
            source = dataclasses.replace(self.source, overrides=touched, defaults={})
            made = self.changed(document, source, settings, options)
        except BentpipeError as error:
            error_of_case = type(error)(f"case {case.name!r}: {error}")
            error_of_case.more = tuple(f"case {case.name!r}: {line}" for line in error.more)
            raise error_of_case from None
        given = [(row.case, row.metric or "") for row in made.published]
        found = [*_unknown_cases(given, [case.name for case in self.cases])]
        if found:
            raise dataclasses.replace(source, overrides=dict.fromkeys((wrong.key for wrong in found), "--set")).error(
                *found
            )
        rows = tuple(row for row in made.published if row.case == case.name)
        over = tuple(row for row in made.published if not row.case)
        expect = tuple(row for row in made.expect if row.case in ("", case.name))
        return dataclasses.replace(
            made,
            case=case.name,
            at=case.at,
            curve=case.curve,
            axis=self.axis or made.axis,
            published=rows,
            over_cases=over,
            expect=expect,
        )

    def changed(
        self, document: dict[str, Any], source: Source, settings: Sequence[Assignment], options: _Options
    ) -> Experiment:
        """Return the experiment of a document with settings in it, with its differences from the document alone."""
        for setting in settings:
            _check_owner(setting, document, source.name)
        after, touched = assigned(document, settings, source.name)
        whole = dataclasses.replace(source, overrides={**source.overrides, **touched}, defaults={})
        named = _load_plugins(after, whole)
        made = parse_experiment(after, whole, **vars(options))
        try:
            asked = settings or vars(options) != vars(_Options())
            plain = parse_experiment(document, source) if asked else made
        except BentpipeError:  # it needs the settings to be an experiment at all
            plain = dataclasses.replace(made, duration_ps=made.full_ps)
        changes: list[Change] = []
        if made.seed != plain.seed:
            changes.append(Change("experiment.seed", plain.seed, made.seed))
        if made.duration_ps > plain.duration_ps:
            before, now = (format_time(e.duration_ps) for e in (plain, made))
            changes.append(Change("experiment.duration", before, now))
        changes += changes_between(document, after, source.defaults)
        _check_build(made, whole)
        used = tuple(each for each in plugins.loaded() if each.name in named or _uses(made, each))
        return dataclasses.replace(
            made, file=self.name, full_ps=plain.duration_ps, changes=tuple(changes), plugins=used
        )


def _load_plugins(document: dict[str, Any], source: Source) -> list[str]:
    """Load what ``[plugins]`` names; the names. What is not a table of texts is for the reader of the document."""
    table = document.get("plugins")
    named: list[str] = []
    for name, text in (table if isinstance(table, dict) else {}).items():
        if isinstance(text, str):
            key = f"plugins.{name}"
            folder = None if key in source.overrides else source.owner(key).folder
            try:
                named.append(plugins.load(name, Path(text) if folder is None else folder / text).name)
            except plugins.PluginError as error:
                raise source.error(ConfigProblem(key, str(error))) from None
    return named


def _uses(experiment: Experiment, plugin: plugins.Plugin) -> bool:
    """Return whether an experiment uses something of an installed package."""
    flows = experiment.flows
    if any(flow.app in plugin.applications or (flow.tcp and flow.tcp.growth in plugin.growths) for flow in flows):
        return True
    switches = experiment.network.switches
    tables: list[Settings] = [switch.settings for switch in switches]
    tables += [port.settings for switch in switches for port in switch.ports]
    tables += [vc.settings for vc in experiment.vcs]
    keys = plugins.keys_of(plugin)
    return any(getattr(t, k) != type(t).model_fields[k].default for t in tables for k in keys & t.members().keys())


def _check_owner(setting: Assignment, document: dict[str, Any], name: str) -> None:
    """Refuse a key that begins with a line, switch or host, or with what is near to one, and name the whole key."""
    first, _, rest = setting.key.partition(".")
    tables = [*map(key_of, Document.model_fields), *SHORTHANDS]
    network = document.get("network")
    if not rest or first in tables or not isinstance(network, dict):
        return
    whole = {}
    for kind in ("lines", "switches", "hosts"):
        known = network.get(kind)
        whole |= {each: f"network.{kind}.{each}" for each in (known if isinstance(known, dict) else {})}
    near = get_close_matches(first, whole, n=1, cutoff=0.6)
    if near and not get_close_matches(first, tables, n=1, cutoff=0.8):
        what = f"unknown key; did you mean '{whole[near[0]]}.{rest}'?"
        raise BentpipeError(f"{setting.by} {setting.key}: {what} (in {name})")


def _check_build(experiment: Experiment, source: Source) -> None:
    """Raise ConfigError with its place if network and hosts of an experiment cannot be made."""
    from bentpipe.experiment.build.hosts import rehearse
    from bentpipe.experiment.run.branch import check_random

    try:
        engine = rehearse(experiment)
    except BuildError as error:
        raise source.error(ConfigProblem(error.key, error.what)) from error
    if experiment.splits:
        try:
            check_random(engine)
        except ValueError as error:
            key = "splitting" if experiment.splitting is not None else "rare_timeout"
            raise source.error(ConfigProblem(key, str(error))) from error


def _unknown_cases(given: Iterable[tuple[str, str]], names: Sequence[str]) -> Iterator[ConfigProblem]:
    """Yield a problem for each published figure of a case that does not exist.

    Figures of all cases together have no case.
    """
    for number, (name, metric) in enumerate(given):
        if name not in names and (name or metric.rpartition(".")[2] not in FIGURES):
            yield ConfigProblem(f"published.{number}.case", f"there is no case {name!r}{nearest(name, names)}")


def apply_settings(
    document: dict[str, Any], settings: Sequence[str], name: str
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return a copy of the document with ``KEY=VALUE`` settings in it, and the dotted keys that were set, each with
    ``--set``.

    A key has dots: ``network.lines.satellite.delay``; ``flow.0.size`` is the first flow's, ``flow.*.size`` every
    flow's. The reader of the document checks the keys and values.
    """
    return assigned(document, _read(settings, "--set"), name)


def _read(settings: Iterable[str], by: str) -> list[Assignment]:
    """Parse ``KEY=VALUE`` settings.

    A key without dots is one of a document's tables, or short for another key. ``@NAME`` stands for all settings of a
    set.
    """
    found = []
    for setting in settings:
        if setting.startswith(MARK):
            found += _read((f"{key}={value}" for key, value in named_set(setting[1:].strip()).items()), by)
            continue
        key, equals, text = setting.partition("=")
        key = key.strip()
        if not equals or not key or not all(key.split(".")):
            raise BentpipeError(f"{by} {setting}: expected KEY=VALUE with a dotted KEY")
        tables = map(key_of, Document.model_fields)
        if "." not in key and key not in (short := {*SHORTHANDS, *tables}):
            raise BentpipeError(f"{by} {key}: unknown key{nearest(key, short)}")
        found.append(Assignment(by, key, value_of(text.strip())))
    return found
