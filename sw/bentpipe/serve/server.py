"""The server: loopback addresses only, and only what is in run folders.

A page from elsewhere can make a browser ask this server by a name that leads here (DNS rebinding); so a request must
name this machine as its host. Nothing is changed by any request.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from bentpipe.errors import BentpipeError
from bentpipe.report.html import json_text
from bentpipe.results.folder import is_held, read_above
from bentpipe.serve.runs import Runs, index_page, index_rows, live_news, live_page

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
    """Gives out the runs below a folder."""

    daemon_threads = True

    def __init__(self, folder: Path, address: str, port: int) -> None:
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


def make_server(folder: Path, address: str = "127.0.0.1", port: int = 0) -> Server:
    """Return a server that listens.

    Parameters
    ----------
    folder : Path
        A folder of run folders, or one.
    address : str
        A loopback address.
    port : int
        0: any that is free.

    Raises
    ------
    BentpipeError
        There is no such folder, the address is no loopback address, or the port is taken.
    """
    if not folder.is_dir():
        raise BentpipeError(f"{folder}: no such folder")
    try:
        loopback = ipaddress.ip_address(address).is_loopback
    except ValueError:
        raise BentpipeError(f"--address {address}: not an IP address; give 127.0.0.1 or ::1") from None
    if not loopback:
        raise BentpipeError(f"--address {address}: not a loopback address; runs are shown on this machine only")
    if not 0 <= port < 65536:
        raise BentpipeError(f"--port {port}: out of range 0..65535")
    try:
        return Server(folder, address, port)
    except OSError as error:
        raise BentpipeError(f"{address}, port {port}: {error.strerror or error}") from None


class _Handler(BaseHTTPRequestHandler):
    server: Server  # pyright: ignore[reportIncompatibleVariableOverride]
    server_version = "bentpipe"
    sys_version = ""
    protocol_version = "HTTP/1.1"
    timeout = _TIMEOUT_S

    def do_GET(self) -> None:
        try:
            self._answer()
        except (BrokenPipeError, ConnectionResetError, TimeoutError):
            self.close_connection = True  # who asked went away

    do_HEAD = do_GET

    def log_message(self, format: str, *args: Any) -> None:
        pass  # nobody reads it

    def _answer(self) -> None:
        if self.headers.get("Host", "").lower() not in self.server.hosts:
            return self._refuse(HTTPStatus.MISDIRECTED_REQUEST, "bentpipe serve answers as 127.0.0.1 or localhost only")
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

    def _inside(self, parts: list[str]) -> Path:
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
