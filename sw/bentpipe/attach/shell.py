"""Two namespaces of this process' own, and a command in one of them: rootless, where the kernel permits."""

from __future__ import annotations

import ctypes
import os
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bentpipe.attach import kernel
from bentpipe.errors import BentpipeError

__all__ = ["Commands", "own_namespaces"]

_MS_BIND, _MS_REC, _MS_PRIVATE = 0x1000, 0x4000, 0x40000


@contextmanager
def own_namespaces(addresses: Mapping[str, Sequence[str]]) -> Iterator[None]:
    """Give this process its own mounts and names of network namespaces, within the context.

    ``/etc/hosts`` has these addresses by name. A process that is not root becomes root in a user namespace of its own.
    Other processes see nothing of that, and nothing is left afterwards.

    Raises
    ------
    BentpipeError
        The kernel does not permit it.
    """
    user, group = os.geteuid(), os.getegid()
    try:
        if user:
            kernel.unshare(kernel.CLONE_NEWUSER | kernel.CLONE_NEWNS | kernel.CLONE_NEWNET)
            Path("/proc/self/setgroups").write_text("deny")
            Path("/proc/self/uid_map").write_text(f"0 {user} 1")
            Path("/proc/self/gid_map").write_text(f"0 {group} 1")
        else:
            kernel.unshare(kernel.CLONE_NEWNS)
    except (BentpipeError, OSError) as error:
        raise BentpipeError(f"no namespaces of its own: {error}; run it as root, or enable user namespaces") from None
    _mount("none", "/", "", _MS_REC | _MS_PRIVATE)
    _mount("tmpfs", "/run", "tmpfs", 0)
    with tempfile.NamedTemporaryFile("w", prefix="bentpipe-hosts-") as hosts:
        known = Path("/etc/hosts")
        hosts.write(known.read_text() if known.is_file() else "127.0.0.1 localhost\n")
        hosts.writelines(f"{each} {name}\n" for name, those in addresses.items() for each in those)
        hosts.flush()
        if known.is_file():
            _mount(hosts.name, str(known), "", _MS_BIND)
        yield


def _mount(source: str, target: str, kind: str, flags: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), None):
        raise BentpipeError(f"{target} can't be mounted: {os.strerror(ctypes.get_errno())}")


class Commands:
    """A command in one namespace, and others beside it that end with it.

    Parameters
    ----------
    command : Sequence[str]
    namespace : str
    beside : Sequence of (str, str)
        Namespaces, and commands as a shell has them.
    """

    def __init__(self, command: Sequence[str], namespace: str, beside: Sequence[tuple[str, str]]) -> None:
        self._command, self._namespace, self._beside = command, namespace, beside
        self._others: list[subprocess.Popen[bytes]] = []
        self._main: subprocess.Popen[bytes] | None = None
        self._stack = ExitStack()

    def begin(self) -> None:
        """Start them.

        Raises
        ------
        BentpipeError
            One cannot be.
        """
        self._stack.callback(self._end)
        for namespace, text in self._beside:
            self._others.append(_start(shlex.split(text), namespace, new_session=True))
        self._main = _start(self._command, self._namespace, new_session=False)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C on the terminal is for the command

    def over(self) -> bool:
        """Return whether the command has ended."""
        return self._main is not None and self._main.poll() is not None

    def close(self) -> int:
        """End the commands that still run; return the exit code of the main one, as a shell has it."""
        self._stack.close()
        if self._main is None:  # the session was ended before its start
            return 0
        code = self._main.wait()
        return code if code >= 0 else 128 - code

    def _end(self) -> None:
        for each in (self._main, *self._others):
            if each is not None and each.poll() is None:
                each.terminate()
        for each in (self._main, *self._others):
            if each is None:
                continue
            try:
                each.wait(timeout=2)
            except subprocess.TimeoutExpired:
                each.kill()
                each.wait()


def _start(command: Sequence[str], namespace: str, *, new_session: bool) -> subprocess.Popen[bytes]:
    there = kernel.namespace_fd(namespace)

    def prepare() -> None:
        kernel.enter(there)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)

    try:
        return subprocess.Popen(command, preexec_fn=prepare, start_new_session=new_session)
    except FileNotFoundError:
        raise BentpipeError(f"{command[0]}: no such program") from None
    except (OSError, subprocess.SubprocessError) as error:
        raise BentpipeError(f"{command[0]}: {error}") from None
    finally:
        os.close(there)
