"""A cluster that the tests of sweeps share: to start workers takes longer than their runs."""

import logging
from collections.abc import Iterator

import dask.config
import pytest
from distributed import Client

from bentpipe.sweeps.cluster import opened


@pytest.fixture(scope="session")
def client() -> Iterator[Client]:
    """A cluster of two processes.

    Dask silences the handlers of its log as long as the cluster is there. Those of pytest are among them, and other
    tests look at what these caught.
    """
    handlers = [*logging.getLogger("distributed").handlers, *logging.getLogger().handlers]
    levels = [handler.level for handler in handlers]
    with opened(workers=2) as client:
        for handler, level in zip(handlers, levels, strict=True):
            handler.setLevel(level)
        client.run(_warm)
        yield client


def _warm() -> None:
    """Import what the first run of a worker takes time for."""
    import bentpipe_sim.network  # noqa: F401


@pytest.fixture(scope="module")
def default_cluster(client: Client) -> Iterator[Client]:
    """The same one for sweeps that name none, by Dask's configuration."""
    with dask.config.set({"scheduler-address": client.scheduler.address}):
        yield client
