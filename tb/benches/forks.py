"""Programs in processes of their own that start where another one is: forked from a process that has imported what they
import, which takes a second each otherwise.

A program is a file of Python. It gets its arguments, its environment and three pipes, as from
:class:`subprocess.Popen`, and ends by :class:`SystemExit`.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import runpy
import socket
import subprocess
import sys
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache

__all__ = ["Forked"]


class Forked:
    """A program under way, with what is used of :class:`subprocess.Popen`.

    Parameters
    ----------
    modules : tuple of str
        What is imported before.
    command : sequence of str
        The file and its arguments.
    environment : mapping
        All of it.
    """

    def __init__(self, modules: tuple[str, ...], command: Sequence[str], environment: Mapping[str, str]):
        (read, stdin), (stdout, write), (stderr, error), (told, tell) = (os.pipe() for _ in range(4))
        asked = {"command": [*command], "environment": dict(environment), "folder": os.getcwd()}
        socket.send_fds(_server(modules), [json.dumps(asked).encode()], [read, write, error, tell])
        for end in (read, write, error, tell):
            os.close(end)
        self.stdin, self.stdout, self.stderr = os.fdopen(stdin, "w"), os.fdopen(stdout), os.fdopen(stderr)
        self._told = os.fdopen(told)
        self.pid, self.returncode = int(self._told.readline()), None

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def communicate(self, text: str) -> tuple[str, str]:
        """The output that it writes to its end."""
        with suppress(BrokenPipeError):
            self.stdin.write(text)
            self.stdin.close()
        with self.stdout, self.stderr, self._told:
            found = self.stdout.read(), self.stderr.read()
            self.returncode = os.waitstatus_to_exitcode(int(self._told.readline()))
        return found


@cache
def _server(modules: tuple[str, ...]) -> socket.socket:
    """A process with these modules, which ends with this one."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command = [sys.executable, __file__, str(theirs.fileno()), *modules]
    path = os.pathsep.join(filter(None, sys.path))
    environment = {**os.environ, "PYTHONPATH": path}
    server = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, env=environment)
    theirs.close()
    atexit.register(server.wait)
    atexit.register(ours.close)  # before that: it ends the server
    return ours


def _serve(asking: socket.socket, modules: Sequence[str]) -> None:
    for module in modules:
        importlib.import_module(module)
    while True:
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        text, ends, _, _ = socket.recv_fds(asking, 1 << 20, 4)
        if not text:
            with suppress(ChildProcessError):
                while True:
                    os.wait()
            return
        if not os.fork():
            asking.close()
            _watch(json.loads(text), ends)
        for end in ends:
            os.close(end)


def _watch(asked: dict, ends: list[int]) -> None:
    """Fork the program, tell its number, and how it ended."""
    *standard, tell = ends
    number = os.fork()
    if not number:
        os.close(tell)
        for k, end in enumerate(standard):
            os.dup2(end, k)
            os.close(end)
        _run(asked)
    for end in standard:
        os.close(end)
    os.write(tell, f"{number}\n".encode())
    os.write(tell, f"{os.waitpid(number, 0)[1]}\n".encode())
    os._exit(0)


def _run(asked: dict) -> None:
    os.environ.clear()
    os.environ.update(asked["environment"])
    os.chdir(asked["folder"])
    sys.argv, code = asked["command"], 0
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])), sys.argv[2:])
