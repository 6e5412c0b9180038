"""Commands that repeat a run, and that read its captures."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Final

__all__ = ["capture_commands", "repeat_command", "session_command"]

_FLOWS: Final = 3
"""So many flows have a filter of their own."""

_ENDLESS_S: Final = 10**5
"""The limit of a session that has none (``bentpipe.attach.session.ENDLESS_PS``)."""

SLACK_PS: Final = {"computing": 4 * 10**9, "release": 16 * 10**9}
"""The slack of a session unless it is given."""


def repeat_command(summary: Mapping[str, Any]) -> str:
    """Return the command that makes the same cells: experiment, case, seed, what was changed, length, engine or
    board."""
    s = summary
    words = ["bentpipe", "run", *_experiment(s)]
    time = s.get("time")
    if time and time["limit_s"] < time["full_s"]:
        words += ["--duration", f"{time['limit_s']:.12g} s"]
    return shlex.join([*words, *_engine(s)])


def session_command(summary: Mapping[str, Any]) -> str:
    """Return the command that starts the same session: experiment, ends of its hosts, slack. Its packets are others."""
    s, session = summary, summary["attached"]
    inside = session.get("commands")  # of `bentpipe shell`
    words = ["bentpipe", "attach" if inside is None else "shell", *_experiment(s)]
    if inside is None:
        options = ["--a", "--b", *["--end"] * len(session["ends"])]
        for option, row in zip(options, session["ends"], strict=False):
            words += [option, f"{row['host']}={row['end']}"]
    if s["time"]["limit_s"] < _ENDLESS_S:
        words += ["--duration", f"{s['time']['limit_s']:.12g} s"]
    for name, usual in SLACK_PS.items():
        if session["wanted_ps"][name] != usual:
            words += [f"--{name}", f"{session['wanted_ps'][name] / 10**9:.12g} ms"]
    if session["late"] != "report":
        words += ["--late", session["late"]]
    return shlex.join([*words, *_engine(s), *(inside or [])])


def _experiment(s: Mapping[str, Any]) -> list[str]:
    words = [s["file"]]
    if s.get("case"):
        words += ["--case", s["case"]["name"]]
    words += ["--seed", str(s["seed"])]
    for setting in s["settings"]:
        words += ["--set", setting]
    return words


def _engine(s: Mapping[str, Any]) -> list[str]:
    board = s.get("board") or {}
    if board.get("alone"):
        return ["--target", board["target"], "--alone"]
    engine = s["versions"].get("engine", "native")
    ticks = ["--board-ticks"] if s.get("board_ticks") else []
    return ticks if engine == "native" else ["--engine", engine, *ticks]


def capture_commands(summary: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    """Return each capture with tshark commands: for the whole file, and for single flows by their addresses or VCs."""
    resolved = summary["resolved"]
    address = {host["name"]: f"10.0.{n >> 8}.{n & 255}" for n, host in enumerate(resolved["network"]["hosts"], 1)}
    found = []
    for capture in resolved["record"]["pcap"]:
        file = capture["file"]
        if file not in summary.get("captures", ()):
            continue
        lines = [f"tshark -r {shlex.quote(file)}"]
        for flow in _at(capture, resolved)[:_FLOWS]:
            if capture["kind"] == "ip":
                wanted = f"ip.addr == {address[flow['source']]} && ip.addr == {address[flow['sink']]}"
            else:
                numbers = [resolved["vcs"][vc]["vci"] for vc in (flow["vc"], flow["return_vc"]) if vc is not None]
                wanted = " || ".join(f"atm.vci == {number}" for number in numbers)
            lines.append(f"tshark -r {shlex.quote(file)} -Y {shlex.quote(wanted)}  # {flow['name']}")
        found.append((file, lines))
    return found


def _at(capture: Mapping[str, Any], resolved: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return the flows that pass where something was captured."""
    place = capture["host"] or capture["switch"]
    return [flow for flow in resolved["flows"] if place in resolved["vcs"][flow["vc"]]["path"]]
