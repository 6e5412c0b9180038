"""The state of a run as octets, and back: the objects of hosts, flows and network, however they hang together.

An object of bentpipe's own goes into the pickle in two steps: first that it is there, later what it has. So it does not
matter how deep objects lie in each other, nor that they lie in circles, and each is there once. Classes that have
settled how they are pickled, and values (those that are equal by what they have), go as they are.

In a file the pickle, compressed, stands behind a line of JSON that says which bentpipe wrote it: only the same one
takes it.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
from collections.abc import Iterable
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from bentpipe.compiled import bare
from bentpipe.errors import BentpipeError
from bentpipe.experiment.document import plugins
from bentpipe_sim.digests import sha256_of

__all__ = ["StatePickler", "code", "copied", "given", "pack", "read_state", "taken", "unpickled"]

_OURS: Final = ("bentpipe.", "bentpipe_sim.", "bentpipe_hdl.")
_FORMAT: Final = 2
_PART: Final = 256
"""Objects that are pickled together."""


def _in_two_steps(kind: type) -> bool:
    ours = f"{kind.__module__}.".startswith(_OURS) or plugins.is_of_plugin(kind)
    if not ours or issubclass(kind, tuple):
        return False
    if kind.__reduce__ is not object.__reduce__ or kind.__reduce_ex__ is not object.__reduce_ex__:
        return False
    return hasattr(kind, "__mypyc_attrs__") or (kind.__hash__ is object.__hash__ and not hasattr(kind, "__setstate__"))


class StatePickler(pickle.Pickler):
    """A pickler that takes objects in two steps; ``met`` are those of bentpipe's own."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=5)
        self.met: list[Any] = []
        self._kinds: dict[type, bool] = {}
        self._names: dict[tuple[str, ...], tuple[str, ...]] = {}

    def reducer_override(self, obj: Any) -> Any:
        kind = type(obj)
        known = self._kinds.get(kind)
        if known is None:
            known = self._kinds[kind] = _in_two_steps(kind)
        if not known:
            return NotImplemented
        self.met.append(obj)
        return bare, (kind,)

    def take(self, root: Any) -> None:
        """Pickle an object and all that it refers to; errors as for :func:`taken`."""
        self.dump(root)
        done = 0
        while done < len(self.met):  # which grows with each dump
            part: list[Any] = []  # for many objects, as the pickler keeps each container that it is given
            for obj in self.met[done : done + _PART]:
                state = obj.__getstate__()
                own, slots = state if isinstance(state, tuple) else (state, None)
                members = {**(own or {}), **(slots or {})}
                if hasattr(obj, "__mypyc_attrs__") and hasattr(obj, "__dict__"):  # derived from a compiled class
                    members |= vars(obj)
                names = tuple(members)
                part += (obj, self._names.setdefault(names, names), *members.values())
                done += 1
            self.dump(part)
        self.dump(None)


def taken(root: Any) -> bytes:
    """Return an object and all that it refers to, as octets.

    Raises
    ------
    TypeError, AttributeError, pickle.PicklingError
        Something of it cannot be pickled: a function without a name, an open file.
    """
    out = io.BytesIO()
    StatePickler(out).take(root)
    return out.getvalue()


def given(octets: bytes) -> Any:
    """Return the objects of :func:`taken`, as new objects."""
    return unpickled(pickle.Unpickler(io.BytesIO(octets)))


def unpickled(unpickler: pickle.Unpickler) -> Any:
    """Return the objects of :meth:`StatePickler.take`."""
    root = unpickler.load()
    put = object.__setattr__
    while (part := unpickler.load()) is not None:
        values = iter(part)
        for obj in values:
            for name in next(values):
                put(obj, name, next(values))
    return root


def copied(root: Any) -> Any:
    """Return a copy of an object and all that it refers to."""
    return given(taken(root))


@cache
def code() -> str:
    """Return the digest of bentpipe's sources, as they are when it is first asked for."""
    import bentpipe_hdl
    import bentpipe_sim

    total = hashlib.sha256()
    others = (Path(str(package.__file__)).parent for package in (bentpipe_sim, bentpipe_hdl))
    for root in (Path(__file__).parents[2], *others):
        files = sorted(str(each) for each in root.rglob("*") if each.suffix in (".py", ".cpp", ".hpp", ".h"))
        for file, one in zip(files, sha256_of(map(Path, files)), strict=True):
            total.update(f"\0{file.removeprefix(str(root))}\0{one}".encode())
    return total.hexdigest()[:16]


def pack(root: Any, used: Iterable[plugins.Plugin] = ()) -> bytes:
    """Return the contents of a state's file, with the plugins that it needs; errors as for :func:`taken`."""
    import pyarrow as pa

    plain = taken(root)
    body = pa.compress(plain, codec="zstd", asbytes=True)
    head = {
        "bentpipe state": _FORMAT,
        "version": version("bentpipe"),
        "code": code(),
        "plugins": plugins.rows_of(used),
        "octets": len(plain),
        "sha256": hashlib.sha256(body).hexdigest(),
    }
    return json.dumps(head).encode() + b"\n" + body


def read_state(path: Path) -> Any:
    """Return the object of which :func:`pack` made a file.

    A pickle can do whatever Python can: only files of the user's own are read.

    Raises
    ------
    BentpipeError
        The file is damaged, somebody else's, or of another bentpipe.
    """
    import pyarrow as pa

    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_uid not in (os.geteuid(), 0):
            raise BentpipeError(f"{path}: belongs to another user: only states that you own are loaded")
        line, body = file.readline(), file.read()
    try:
        head = json.loads(line)
        octets, digest, known = head["octets"], head["sha256"], head["bentpipe state"] == _FORMAT
        writer, theirs, needs = head["version"], head["code"], head["plugins"]
    except (ValueError, KeyError, TypeError):
        raise BentpipeError(f"{path}: damaged: not a state") from None
    if not known or theirs != code():
        ours = f"{version('bentpipe')} (code {code()})"
        raise BentpipeError(
            f"{path}: saved by bentpipe {writer} (code {theirs}), this is {ours}: only that version can continue it"
        )
    if hashlib.sha256(body).hexdigest() != digest:
        raise BentpipeError(f"{path}: damaged: its checksum is wrong")
    plugins.required(needs, str(path))
    return given(pa.decompress(body, octets, codec="zstd", asbytes=True))
