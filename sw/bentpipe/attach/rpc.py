"""The session protocol: JSON-RPC 2.0, one message a line, and the methods of a session.

Nothing of a socket is here: :class:`Service` gets a request as a text and gives the text of its answer. What touches
the network runs between two turns of the simulation (:meth:`Service.turn`); everything else runs in the caller's
thread. ``docs/attach.md`` lists the methods; :data:`VERSION` grows when one of them changes.
"""

from __future__ import annotations

import inspect
import json
import queue
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from bentpipe.attach.settings import read_settings, whole_key
from bentpipe.errors import BentpipeError, one_line
from bentpipe.experiment.build.overrides import value_at
from bentpipe.experiment.resolve.changeable import changeable_keys
from bentpipe_sim.errors import SimulationError

if TYPE_CHECKING:
    from typing import Protocol

    from bentpipe.experiment.build.overrides import Overrides, Resolved
    from bentpipe.experiment.resolve.specs import Experiment

    class Served(Protocol):
        """A session, as its methods need it (:class:`bentpipe.attach.session.Session`)."""

        read: Experiment

        def write(self, now_ps: int, resolved: Resolved, settings: Sequence[str]) -> dict[str, Any]: ...
        def reset(self, now_ps: int) -> dict[str, Any]: ...
        def counters(self) -> dict[str, Any]: ...
        def losses(self) -> list[dict[str, Any]]: ...
        def queue(self) -> dict[str, int]: ...
        def lateness(self) -> dict[str, Any]: ...
        def passing(self, now_ps: int) -> dict[str, Any]: ...
        def described(self) -> dict[str, Any]: ...
        def stop(self) -> None: ...


__all__ = ["MOST_OCTETS", "VERSION", "Refused", "Service", "message"]

VERSION: Final = 1
"""Version of the protocol, ``version`` in each answer and notification."""
MOST_OCTETS: Final = 1 << 20
"""Size of a message at most."""

_PARSE, _REQUEST, _METHOD, _PARAMS, _REFUSED = -32700, -32600, -32601, -32602, -32000
_TURN_S: Final = 0.004
"""For so long requests may keep the simulation at one turn; the others wait for the next."""
_ANSWER_S: Final = 5.0


class Refused(BentpipeError):
    """A request that was not done; ``code`` is that of JSON-RPC."""

    def __init__(self, what: str, code: int = _REFUSED) -> None:
        super().__init__(what)
        self.code = code


def message(content: Mapping[str, Any]) -> str:
    """Return a message as a line."""
    return json.dumps({"jsonrpc": "2.0", "version": VERSION, **content}, separators=(",", ":")) + "\n"


class Service:
    """The methods of a session.

    Parameters
    ----------
    session : Served
    overrides : Overrides
        Of the network that runs.

    Members
    -------
    requests : int
        Requests that turns of the simulation have executed.
    longest_s : float
        The longest time for which requests have kept the simulation in one turn.
    """

    def __init__(self, session: Served, overrides: Overrides) -> None:
        self._session, self._overrides = session, overrides
        self._waiting: queue.SimpleQueue[tuple[Callable[[int], Any], queue.SimpleQueue[Any]]] = queue.SimpleQueue()
        self._over = False
        self.requests = 0
        self.longest_s = 0.0

    # The protocol

    def answer(self, text: str | bytes) -> str:
        """Return the answer to a line: a message, a batch, or "" if no answer is wanted."""
        try:
            given = json.loads(text)
        except ValueError:
            return message({"id": None, "error": {"code": _PARSE, "message": "not JSON"}})
        if not isinstance(given, list):
            found = self._one(given)
            return "" if found is None else message(found)
        if not given:
            return message({"id": None, "error": {"code": _REQUEST, "message": "an empty batch"}})
        answers = [each for each in map(self._one, given) if each is not None]
        lines = [json.loads(message(each)) for each in answers]
        return json.dumps(lines, separators=(",", ":")) + "\n" if lines else ""

    def _one(self, given: Any) -> dict[str, Any] | None:
        number = given.get("id") if isinstance(given, dict) else None
        wants = not isinstance(given, dict) or "id" in given
        try:
            found: dict[str, Any] = {"id": number, "result": self._call(given)}
        except Refused as error:
            found = {"id": number, "error": {"code": error.code, "message": one_line(error)}}
        except (BentpipeError, SimulationError) as error:
            found = {"id": number, "error": {"code": _REFUSED, "message": one_line(error)}}
        return found if wants else None

    def _call(self, given: Any) -> Any:
        if not isinstance(given, dict) or given.get("jsonrpc") != "2.0" or not isinstance(given.get("method"), str):
            raise Refused('a request has "jsonrpc": "2.0" and a "method"', _REQUEST)
        if given.get("version", VERSION) != VERSION:
            raise Refused(f"version {given['version']!r}: this session has version {VERSION}", _REQUEST)
        method, params = METHODS.get(given["method"]), given.get("params", {})
        if method is None:
            raise Refused(f"there is no method {given['method']!r}; known: {', '.join(METHODS)}", _METHOD)
        if not isinstance(params, dict):
            raise Refused("params: expected an object", _PARAMS)
        try:
            bound = inspect.signature(method).bind(self, **params)
        except TypeError as error:
            raise Refused(f"{given['method']}: {error}", _PARAMS) from None
        return method(*bound.args, **bound.kwargs)

    # The simulation's thread

    def turn(self, now_ps: int) -> None:
        """Execute the waiting requests that touch the network."""
        if self._waiting.empty():
            return
        begin = time.monotonic()
        while not self._waiting.empty() and time.monotonic() < begin + _TURN_S:
            self.requests += 1
            work, answer = self._waiting.get()
            try:
                answer.put(work(now_ps))
            except (BentpipeError, SimulationError) as error:
                answer.put(error)
        self.longest_s = max(self.longest_s, time.monotonic() - begin)

    def close(self) -> None:
        """Refuse all waiting requests, as the session has ended."""
        self._over = True
        while not self._waiting.empty():
            self._waiting.get()[1].put(Refused("the session has ended"))

    def _in_turn(self, work: Callable[[int], Any]) -> Any:
        answer: queue.SimpleQueue[Any] = queue.SimpleQueue()
        if self._over:
            raise Refused("the session has ended")
        self._waiting.put((work, answer))
        try:
            found = answer.get(timeout=_ANSWER_S)
        except queue.Empty:
            raise Refused("the session has ended, or takes no requests") from None
        if isinstance(found, Exception):
            raise found
        return found

    # The methods

    def session(self) -> dict[str, Any]:
        """Return the session's description: experiment, ends, seconds so far."""
        return self._session.described()

    def keys(self) -> list[dict[str, Any]]:
        """Return the keys that can be set, each with kind, range, words and present value."""
        return changeable_keys(self._overrides.document())

    def get(self, keys: Sequence[str] | None = None) -> dict[str, Any]:
        """Return the present values of keys; of all that can be set, if none are named."""
        known = {row["key"]: row["value"] for row in self.keys()}
        if keys is None:
            return known
        if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
            raise Refused("keys: expected a list of texts", _PARAMS)
        document, found = self._overrides.document(), {}
        for key in keys:
            whole = whole_key(key, self._session.read)
            value = known.get(whole, value_at(document, whole))
            if value is None and whole not in known:
                raise Refused(f"{key}: unknown key, or no value for it in the file")
            found[key] = value
        return found

    def set(self, values: Mapping[str, Any] | None = None, settings: Sequence[str] | None = None) -> dict[str, Any]:
        """Write values by key, or ``KEY=VALUE`` texts; return the time, the tick and what changed."""
        texts = settings or []
        if not isinstance(texts, list) or not isinstance(values or {}, dict) or not (texts or values):
            raise Refused("set: give values (an object) or settings (a list of texts)", _PARAMS)
        given = read_settings(texts, self._session.read)
        given |= {whole_key(key, self._session.read): value for key, value in (values or {}).items()}
        resolved = self._overrides.resolve(given)
        texts = [*texts, *(f"{key}={json.dumps(value)}" for key, value in (values or {}).items())]
        return self._in_turn(lambda now_ps: self._session.write(now_ps, resolved, texts))

    def reset(self) -> dict[str, Any]:
        """Reset all settings to the file's state; return the change."""
        return self._in_turn(self._session.reset)

    def counters(self) -> dict[str, Any]:
        """Return the counters of every node."""
        return self._in_turn(lambda _now: self._session.counters())

    def losses(self) -> list[dict[str, Any]]:
        """Return the loss ledger: for each VC its PDUs sent and delivered, and losses by place."""
        return self._in_turn(lambda _now: self._session.losses())

    def queue(self) -> dict[str, int]:
        """Return the cells that are queued, by switch."""
        return self._in_turn(lambda _now: self._session.queue())

    def lateness(self) -> dict[str, Any]:
        """Return how far behind the simulation is, and the packets that were late, by end."""
        return self._in_turn(lambda _now: self._session.lateness())

    def now(self) -> dict[str, Any]:
        """Return the present traffic: packets and octets of each end, cells queued and dropped."""
        return self._in_turn(self._session.passing)

    def events(self, since: int = 0) -> dict[str, Any]:
        """Return the changes so far from number ``since`` on, and the number of the next."""
        found = self._overrides.events
        rows = [
            {"at_s": event.at_ps / 10**12, "tick": event.tick, "source": event.source}
            | {"changes": [asdict(change) for change in event.changes]}
            for event in found[since:]
        ]
        return {"events": rows, "next": since + len(rows)}

    def stop(self) -> bool:
        """End the session, as Ctrl-C does; return True."""
        self._session.stop()
        return True


METHODS: Final[dict[str, Callable[..., Any]]] = {
    name: getattr(Service, name)
    for name in (
        "session", "keys", "get", "set", "reset", "counters", "losses", "queue", "lateness", "now", "events", "stop",
    )
}  # fmt: skip
"""Methods by name; the connection itself handles ``subscribe`` and ``unsubscribe``."""
