"""A session that a Python program starts, speaks with and ends: ``bentpipe attach`` in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from bentpipe.attach.client import SessionClient
from bentpipe.errors import BentpipeError

__all__ = ["Attached"]

_END_S: Final = 60.0


class Attached:
    """A session while the ``with`` block lasts; behind it, what came of it.

    Parameters
    ----------
    words : Sequence of str
        Arguments of ``bentpipe attach``, without ``--json-to`` and ``--out``.
    folder : Path
        The run folder to make.

    Members
    -------
    client : SessionClient
        Speaks with it, inside the block.
    ends : Mapping
        Where each attached host is (``where``, ``address``).
    """

    def __init__(self, words: Sequence[str], folder: Path) -> None:
        self.folder = folder
        self.ends: Mapping[str, Any] = {}
        self._words = words
        self._process: subprocess.Popen[bytes] | None = None
        self._client: SessionClient | None = None

    @property
    def client(self) -> SessionClient:
        if self._client is None:
            raise BentpipeError(f"{self.folder}: the session runs inside the with block only")
        return self._client

    def __enter__(self) -> Self:
        lines, far = os.pipe()
        command = [sys.executable, "-m", "bentpipe", "attach", *self._words]
        command += ["--json-to", str(far), "--out", str(self.folder)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        with os.fdopen(lines, "rb") as news:
            try:
                self._process = subprocess.Popen(
                    command, pass_fds=(far,), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment
                )
            finally:
                os.close(far)
            begin = news.readline()
        if not begin:
            _, stderr = self._process.communicate()
            raise BentpipeError((stderr.decode(errors="replace").strip().splitlines() or ["the session ended"])[-1])
        self.ends = json.loads(begin)["ends"]
        self._client = SessionClient(self.folder)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process is not None
        if self._client is not None:
            self._client.close()
            self._client = None
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
        try:
            _, stderr = self._process.communicate(timeout=_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            _, stderr = self._process.communicate()
        if self._process.returncode and kind is None:
            lines = stderr.decode(errors="replace").strip().splitlines()
            raise BentpipeError(lines[-1] if lines else f"the session ended with {self._process.returncode}")
