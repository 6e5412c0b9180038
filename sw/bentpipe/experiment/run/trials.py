"""The engine of a run that splits: which trials an experiment asks for, and on what."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

from bentpipe.errors import BentpipeError

if TYPE_CHECKING:
    from bentpipe.experiment.build.hosts import BuiltExperiment
    from bentpipe.experiment.resolve.specs import Experiment
    from bentpipe.hosts.engine import Engine

__all__ = ["with_splitting"]


def with_splitting(experiment: Experiment, built: BuiltExperiment) -> BuiltExperiment:
    """Return the same with an engine that splits, if the experiment asks for it.

    Raises
    ------
    BentpipeError
        Nothing of it is random.
    """
    if built.gauge is None:
        return built
    from bentpipe.experiment.run.branch import Branches, check_random  # takes long, and few experiments come here
    from bentpipe.experiment.run.rare_timeouts import RareTimeouts
    from bentpipe.experiment.run.splitting import Splitting

    assert built.network is not None
    engine = cast("Engine", built.engine)
    try:
        check_random(engine)
    except ValueError as error:
        raise BentpipeError(f"{experiment.id}: {error}") from None
    if experiment.rare_timeout is not None:
        branches = Branches(built.network, engine, built.gauge)
        return replace(built, splitting=RareTimeouts(experiment, branches, built.network), gauge=None)
    splitting = Splitting(experiment, Branches(built.network, engine, built.gauge))
    return replace(built, engine=splitting, splitting=splitting, gauge=None)
