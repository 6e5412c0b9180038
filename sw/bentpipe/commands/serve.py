"""``bentpipe serve``."""

from __future__ import annotations

import argparse
from pathlib import Path

from bentpipe.commands.command import Command

__all__ = ["COMMAND"]


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "folder", type=Path, nargs="?", default=Path("runs"), metavar="DIR", help="folder of runs (default: runs)"
    )
    parser.add_argument("--port", type=int, default=0, metavar="N", help="TCP port (default: a free one)")
    parser.add_argument(
        "--address", default="127.0.0.1", metavar="A", help="loopback address to listen on (default: 127.0.0.1)"
    )


def _run(given: argparse.Namespace) -> int:
    from bentpipe.serve.server import make_server

    with make_server(given.folder, given.address, given.port) as server:
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
