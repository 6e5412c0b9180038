"""``bentpipe serve``."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from bentpipe.commands.command import Command
from bentpipe.errors import BentpipeError

__all__ = ["COMMAND"]


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "folder", type=Path, nargs="?", default=Path("runs"), metavar="DIR", help="folder of runs (default: runs)"
    )
    parser.add_argument("--port", type=int, default=0, metavar="N", help="TCP port (default: a free one)")
    parser.add_argument(
        "--address", default="127.0.0.1", metavar="A",
        help="address to listen on (default: 127.0.0.1); one that is not loopback needs --token",
    )  # fmt: skip
    parser.add_argument(
        "--token", type=Path, metavar="FILE", help="file whose first line is the token that each request must have"
    )


def _run(given: argparse.Namespace) -> int:
    from bentpipe.serve.server import make_server

    token = ""
    if given.token is not None:
        try:
            token = given.token.read_text(encoding="ascii").split("\n", 1)[0].strip()
        except (OSError, UnicodeDecodeError) as error:
            raise BentpipeError(f"--token {given.token}: {getattr(error, 'strerror', None) or 'not ASCII'}") from None
        if not re.fullmatch(r"[A-Za-z0-9._~-]{16,}", token):
            raise BentpipeError(f"--token {given.token}: a token is 16 letters, digits and ._~- or more")
    with make_server(given.folder, given.address, given.port, token) as server:
        try:
            print(f"{given.folder}: {server.url} (Ctrl-C ends it)", flush=True)
            server.serve_forever()
        except KeyboardInterrupt:  # how it is meant to end
            return 0
    return 0


COMMAND = Command(
    "serve",
    "Serve a folder of runs to a browser; runs in progress are shown live.",
    _run,
    _arguments,
    exit_codes="0 also after Ctrl-C or SIGTERM",
)
