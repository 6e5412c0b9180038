"""Sessions over HTTP: the methods of a session's control socket as paths, and the OpenAPI document that lists them.

A request goes on to the socket of the session, which is another process: a slow client keeps no simulation waiting.
Start at :func:`answer`. Who may ask is the server's affair (:mod:`.server`).
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qs

from bentpipe.attach.client import SessionClient
from bentpipe.attach.rpc import METHODS, VERSION
from bentpipe.errors import BentpipeError

__all__ = ["MOST_OCTETS", "PREFIX", "Answer", "answer", "openapi"]

PREFIX: Final = "api"
"""First part of the paths."""
MOST_OCTETS: Final = 1 << 20
"""Size of a request's body at most."""

_CHANGING: Final = {"set", "reset", "stop"}
"""Methods that change something: POST. All others are GET."""


class Answer(NamedTuple):
    """An answer is a status, and content for JSON."""

    status: HTTPStatus
    content: Any


def answer(
    verb: str,
    parts: Sequence[str],
    query: str,
    body: bytes,
    sessions: Callable[[], Sequence[str]],
    inside: Callable[[Sequence[str]], Path],
) -> Answer:
    """Answer a request.

    Parameters
    ----------
    verb : str
        GET or POST.
    parts : sequence of str
        Of the path, behind the prefix.
    query, body
        As they came.
    sessions : callable
        Returns the paths of the run folders in which a session goes on.
    inside : callable
        Returns the folder of such a path; FileNotFoundError: there is none.
    """
    if parts == ["openapi.json"]:
        return Answer(HTTPStatus.OK, openapi())
    if parts == ["sessions"]:
        return Answer(HTTPStatus.OK, [{"run": each} for each in sessions()])
    if len(parts) < 3 or parts[0] != "sessions" or parts[-1] not in METHODS:
        return _wrong(HTTPStatus.NOT_FOUND, f"no such path; /{PREFIX}/openapi.json lists all")
    name, wanted = parts[-1], "POST" if parts[-1] in _CHANGING else "GET"
    if verb != wanted:
        return _wrong(HTTPStatus.METHOD_NOT_ALLOWED, f"{name} is asked for by {wanted}")
    try:
        params = _params(name, query, body)
    except ValueError as error:
        return _wrong(HTTPStatus.BAD_REQUEST, str(error))
    try:
        client = SessionClient(inside(parts[1:-1]))
    except (BentpipeError, OSError):
        return _wrong(HTTPStatus.NOT_FOUND, f"{'/'.join(parts[1:-1])}: no session is in progress there")
    with client:
        try:
            return Answer(HTTPStatus.OK, client.call(name, **params))
        except BentpipeError as error:
            return _wrong(HTTPStatus.CONFLICT, str(error))


def _wrong(status: HTTPStatus, what: str) -> Answer:
    return Answer(status, {"error": what})


def _params(name: str, query: str, body: bytes) -> dict[str, Any]:
    """Return the parameters of a method; the text of a ValueError names the fault."""
    known = _parameters(name)
    if name in _CHANGING:
        given: Any = json.loads(body) if body.strip() else {}
        if not isinstance(given, dict):
            raise ValueError("the body is not a JSON object")
    else:
        given = {key: values[-1] for key, values in parse_qs(query, keep_blank_values=True).items()}
        if "keys" in given:
            given["keys"] = given["keys"].split(",")
        if "since" in given:
            given["since"] = int(given["since"])
    for key in given:
        if key not in known:
            raise ValueError(f"{name} has no parameter {key!r}; it has {', '.join(known) or 'none'}")
    return given


def _parameters(name: str) -> dict[str, Mapping[str, Any]]:
    """Return the parameters of a method, each with its schema."""
    schemas: dict[str, Mapping[str, Any]] = {
        "keys": {"type": "array", "items": {"type": "string"}},
        "since": {"type": "integer", "minimum": 0},
        "values": {"type": "object", "description": "values by key", "additionalProperties": True},
        "settings": {"type": "array", "items": {"type": "string"}, "description": "texts KEY=VALUE"},
    }
    names = [each for each in inspect.signature(METHODS[name]).parameters if each != "self"]
    return {each: schemas[each] for each in names}


def openapi() -> dict[str, Any]:
    """Return the OpenAPI document: made from the methods of the session protocol."""
    paths: dict[str, Any] = {
        f"/{PREFIX}/sessions": {"get": _operation("sessions", "Return the sessions that go on, by run folder.", [])}
    }
    run = {"name": "run", "in": "path", "required": True, "schema": {"type": "string"},
           "description": "path of the run folder below the folder that is served; it may have slashes"}  # fmt: skip
    for name, method in METHODS.items():
        text = (method.__doc__ or "").strip()
        parameters: list[dict[str, Any]] = [run]
        if name not in _CHANGING:
            parameters += [
                {"name": each, "in": "query", "schema": schema, "style": "form", "explode": False}
                for each, schema in _parameters(name).items()
            ]
        made = _operation(name, text, parameters)
        if name in _CHANGING:
            schema = {"type": "object", "properties": _parameters(name), "additionalProperties": False}
            made["requestBody"] = {"content": {"application/json": {"schema": schema}}}
        paths[f"/{PREFIX}/sessions/{{run}}/{name}"] = {"post" if name in _CHANGING else "get": made}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Sessions of bentpipe", "version": str(VERSION)},
        "paths": paths,
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{}, {"token": []}],
    }


def _operation(name: str, text: str, parameters: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    wrong = {"application/json": {"schema": {"type": "object", "properties": {"error": {"type": "string"}}}}}
    return {
        "operationId": name,
        "summary": text,
        "parameters": [*parameters],
        "responses": {
            "200": {"description": "the result", "content": {"application/json": {}}},
            "400": {"description": "a parameter is wrong", "content": wrong},
            "404": {"description": "no session is in progress there", "content": wrong},
            "409": {"description": "the session refuses it", "content": wrong},
        },
    }
