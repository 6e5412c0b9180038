"""The server: what is in run folders, and the sessions that go on in them.

A page from elsewhere can make a browser ask this server by a name that leads here (DNS rebinding); so on loopback a
request must name this machine as its host. Only POST requests change something, and only in a session. They must be
JSON, which a page from elsewhere cannot send, and name no other origin. On any other address each request needs the
token.

The standard library's server is enough: a browser and some scripts are its clients, each has a thread, and the
simulation is another process.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
import socket
from collections.abc import Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, unquote, urlsplit

from bentpipe.errors import BentpipeError
from bentpipe.report.html import json_text
from bentpipe.results.folder import is_held, read_above
from bentpipe.serve import api
from bentpipe.serve.runs import Runs, index_page, index_rows, live_news, live_page, sessions_of

__all__ = ["Server", "make_server"]

_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".pdf": "application/pdf",
    ".png": "image/png",
    ".csv": "text/csv; charset=utf-8",
    ".xml": "application/xml",
    ".parquet": "application/octet-stream",
    ".pcap": "application/vnd.tcpdump.pcap",
}
"""What of a run folder is given out."""

_TIMEOUT_S: Final = 30
_LEAST_TOKEN: Final = 16
_COOKIE: Final = "bentpipe"
_ALWAYS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src 'self' data:; "
        "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    ),
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class Server(ThreadingHTTPServer):
    """A server of the runs below a folder."""

    daemon_threads = True

    def __init__(self, folder: Path, address: str, port: int, token: str = "") -> None:
        self.token = token
        self.address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.runs = Runs(folder.resolve())
        self._news: dict[str, tuple[tuple[Any, ...], bytes]] = {}
        super().__init__((address, port), _Handler)

    def news(self, folder: Path, path: str) -> bytes:
        """Return the present content of a run's page as JSON, made once for the present files."""
        state = (
            (folder / "result.json").stat().st_mtime_ns,
            is_held(folder),
            *((folder / name).is_file() for name in ("trace.parquet", "report.html")),
        )
        known = self._news.get(path)
        if known is None or known[0] != state:
            known = self._news[path] = state, json_text(live_news(folder, path)).encode()
        return known[1]

    @property
    def url(self) -> str:
        host, port = self.server_address[:2]
        host = host if isinstance(host, str) else host.decode()
        return f"http://{f'[{host}]' if ':' in host else host}:{port}/"

    @property
    def hosts(self) -> frozenset[str]:
        """The names under which it may be asked."""
        port = self.server_address[1]
        return frozenset(f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]", urlsplit(self.url).hostname))


def make_server(folder: Path, address: str = "127.0.0.1", port: int = 0, token: str = "") -> Server:
    """Return a server that listens.

    Parameters
    ----------
    folder : Path
        A folder of run folders, or one.
    address : str
        A loopback address, or with a token any.
    port : int
        0: any that is free.
    token : str
        With which a request must come; "": with none.

    Raises
    ------
    BentpipeError
        There is no such folder, the address is no loopback address and there is no token, or the port is taken.
    """
    if not folder.is_dir():
        raise BentpipeError(f"{folder}: no such folder")
    try:
        loopback = ipaddress.ip_address(address).is_loopback
    except ValueError:
        raise BentpipeError(f"--address {address}: not an IP address; give 127.0.0.1 or ::1") from None
    if not loopback and len(token) < _LEAST_TOKEN:
        raise BentpipeError(
            f"--address {address}: not a loopback address; give --token FILE with {_LEAST_TOKEN} characters or more"
        )
    if not 0 <= port < 65536:
        raise BentpipeError(f"--port {port}: out of range 0..65535")
    try:
        return Server(folder, address, port, token)
    except OSError as error:
        raise BentpipeError(f"{address}, port {port}: {error.strerror or error}") from None


class _Handler(BaseHTTPRequestHandler):
    server: Server  # pyright: ignore[reportIncompatibleVariableOverride]
    server_version = "bentpipe"
    sys_version = ""
    protocol_version = "HTTP/1.1"
    timeout = _TIMEOUT_S
    disable_nagle_algorithm = True  # else the body waits for the head's acknowledgement, 40 ms on Linux

    def do_GET(self) -> None:
        try:
            self._answer()
        except (BrokenPipeError, ConnectionResetError, TimeoutError):
            self.close_connection = True  # who asked went away

    do_HEAD = do_GET

    def log_message(self, format: str, *args: Any) -> None:
        pass  # nobody reads it

    def do_POST(self) -> None:
        try:
            self._change()
        except (BrokenPipeError, ConnectionResetError, TimeoutError):
            self.close_connection = True

    def _change(self) -> None:
        """Answer a request that changes a session."""
        length = self.headers.get("Content-Length", "")
        if not length.isdigit():
            self.close_connection = True
            return self._refuse(HTTPStatus.LENGTH_REQUIRED, "give Content-Length")
        if int(length) > api.MOST_OCTETS:
            self.close_connection = True
            return self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a body has {api.MOST_OCTETS} octets at most")
        body = self.rfile.read(int(length))
        if self._refused():
            return None
        origin, parts = self.headers.get("Origin"), _parts(self.path)
        if origin is not None and urlsplit(origin).netloc.lower() != self.headers.get("Host", "").lower():
            return self._refuse(HTTPStatus.FORBIDDEN, "a page from elsewhere changes nothing here")
        if self.headers.get_content_type() != "application/json":
            return self._refuse(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "give a body of type application/json")
        if not parts or parts[0] != api.PREFIX:
            return self._refuse(HTTPStatus.METHOD_NOT_ALLOWED, "only sessions are changed")
        return self._session(parts[1:], body)

    def _session(self, parts: list[str], body: bytes = b"") -> None:
        runs = self.server.runs
        verb = "POST" if self.command == "POST" else "GET"
        status, content = api.answer(
            verb, parts, urlsplit(self.path).query, body, lambda: sessions_of(runs), self._inside
        )
        self._send(json_text(content).encode(), _TYPES[".json"], status)

    def _refused(self) -> bool:
        """Refuse a request that comes by another name, or without the token; return whether it was."""
        token = self.server.token
        if not token:
            if self.headers.get("Host", "").lower() in self.server.hosts:
                return False
            self._refuse(HTTPStatus.MISDIRECTED_REQUEST, "bentpipe serve answers as 127.0.0.1 or localhost only")
            return True
        bearer = self.headers.get("Authorization", "").removeprefix("Bearer ")
        cookies = (each.strip().partition("=") for each in self.headers.get("Cookie", "").split(";"))
        given = [bearer, *(value for name, _, value in cookies if name == _COOKIE)]
        if any(hmac.compare_digest(each.encode(), token.encode()) for each in given):
            return False
        asked = parse_qs(urlsplit(self.path).query).get("token", [""])[-1]
        if self.command == "GET" and hmac.compare_digest(asked.encode(), token.encode()):
            self.send_response(HTTPStatus.SEE_OTHER)
            self.send_header("Set-Cookie", f"{_COOKIE}={token}; HttpOnly; SameSite=Strict; Path=/")
            self.send_header("Location", urlsplit(self.path).path or "/")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return True
        self._refuse(HTTPStatus.UNAUTHORIZED, "give the token: Authorization: Bearer TOKEN, or ?token=TOKEN")
        return True

    def _answer(self) -> None:
        if self._refused():
            return None
        parts = _parts(self.path)
        if parts is None:
            return self._refuse(HTTPStatus.BAD_REQUEST, "no such path")
        runs = self.server.runs
        try:
            if not parts:
                return self._send(index_page(runs).encode(), _TYPES[".html"])
            kind, *rest = parts
            if kind == "list" and not rest:
                now = {"verdict": "", "runs-now": index_rows(runs)}
                return self._send(json_text({"parts": now, "figures": {}, "over": False}).encode(), _TYPES[".json"])
            if kind == api.PREFIX:
                return self._session(rest)
            if kind == "runs" and rest:
                return self._file(self._inside(rest))
            if kind == "news":
                body = self.server.news(self._inside(rest), "/".join(rest) or ".")
                return self._send(body, _TYPES[".json"])
            if kind == "live":
                return self._live(self._inside(rest), "/".join(rest) or ".")
        except (FileNotFoundError, BentpipeError) as error:
            return self._refuse(HTTPStatus.NOT_FOUND, str(error) if isinstance(error, BentpipeError) else "not there")
        return self._refuse(HTTPStatus.NOT_FOUND, "not there")

    def _inside(self, parts: Sequence[str]) -> Path:
        """Return a path below the folder; links that lead out of it are refused."""
        path = self.server.runs.root.joinpath(*parts).resolve()
        if not path.is_relative_to(self.server.runs.root):
            raise FileNotFoundError
        return path

    def _live(self, folder: Path, path: str) -> None:
        self._send(live_page(path, read_above(folder)).encode(), _TYPES[".html"])

    def _file(self, path: Path) -> None:
        if path.suffix not in _TYPES or not path.is_file():
            raise FileNotFoundError
        self._send(path.read_bytes(), _TYPES[path.suffix])

    def _refuse(self, status: HTTPStatus, why: str) -> None:
        self._send(f"{why}\n".encode(), "text/plain; charset=utf-8", status)

    def _send(self, body: bytes, kind: str, status: HTTPStatus = HTTPStatus.OK) -> None:
        self.send_response(status)
        for name, value in {**_ALWAYS, "Content-Type": kind, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


_ODD: Final = re.compile(r"[\x00-\x1f\x7f\\]")


def _parts(target: str) -> list[str] | None:
    """Return the parts of a request's path; None if any could lead elsewhere or to a hidden file."""
    parts = unquote(urlsplit(target).path).split("/")[1:]
    if parts and not parts[-1]:
        parts.pop()
    return None if any(not part or part.startswith(".") or _ODD.search(part) for part in parts) else parts
