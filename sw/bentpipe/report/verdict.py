"""The verdict on a run in one sentence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from bentpipe.apps.settings import BARE
from bentpipe.results.declared import axis_names
from bentpipe.results.expect import broken, expectation_text
from bentpipe.results.metrics import pdus_lost
from bentpipe.results.splitting import ratio_of
from bentpipe.results.tables import apart_text, figure_text, rare_words

__all__ = ["Verdict", "run_verdict", "several_verdict", "sweep_verdict"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """A verdict: its ``level``, a word, and a sentence."""

    level: Literal["good", "note", "bad"]
    word: str
    text: str


def run_verdict(summary: Mapping[str, Any]) -> Verdict:
    """Return the verdict on a run: whether it can be trusted, what it carried, and how it compares with published
    figures."""
    s = summary
    did = _did(s)
    if s["status"] == "failed":
        return Verdict("bad", "Failed", f"The experiment failed: {s['reason']}.")
    if s["status"] in ("interrupted", "running"):
        time = s["time"]
        so_far = f"{time['simulated_s']:.3f} s of {time['limit_s']:g} s"
        if s["status"] == "running":
            return Verdict("note", "Running", f"{so_far}: {did}.")
        return Verdict("note", "Interrupted", f"by {s['reason']} at {so_far}: {did}.")
    torn = [flow["name"] for flow in s["flows"] if flow.get("error")]
    unmet = broken(s.get("expected", ()))
    missed = [row["quantity"] for row in s.get("theory", ()) if row["holds"] is False]
    rest = [
        *_against(s["published"]),
        *_against_theory(s.get("theory", ())),
        *(["shortened"] if s["shortened"] else []),
    ]
    text = "; ".join([did, *rest]) + "."
    if unmet:
        return Verdict("bad", "Not as expected", f"{'; '.join(map(expectation_text, unmet))}: {text}")
    if torn:
        return Verdict("bad", "Done", f"Broken connections ({', '.join(torn[:5])}): {text}")
    return Verdict("note" if missed or s["shortened"] else "good", "Done", text)


def _did(s: Mapping[str, Any]) -> str:
    """Return the data that the flows carried and lost, in words."""
    flows = [flow for flow in s["flows"] if flow.get("protocol") not in BARE]
    total, parts = s["metrics"], []
    if s.get("splitting"):
        port, ratio = s["splitting"]["port"], ratio_of(s["splitting"])[1]["value"]
        found = "no estimate yet" if ratio is None else f"{ratio:.3g} of the arriving cells"
        parts.append(f"{rare_words(s['splitting'])[0]} at {port}: {found}")
    elif s.get("rare_timeout"):
        found, chance = s["rare_timeout"], s["rare_timeout"]["probability"]["value"]
        parts.append(
            f"probability of a time-out in the transfer {found['flow']}: "
            f"{'no estimate yet' if chance is None else f'{chance:.3g}'}"
        )
    elif flows:
        count = "one flow" if len(flows) == 1 else f"{len(flows)} flows"
        text = f"{count} carried {figure_text(total['aggregate_goodput'] / 1e6)} Mb/s"
        if apart_text(s, flows):
            own = figure_text(total["sum_of_flow_rates"] / 1e6)
            text += f" over their common time ({own} Mb/s as the sum of their own rates)"
        if total.get("efficiency") is not None:
            text += f", {100 * total['efficiency']:.3g} % of what the lines can deliver while they run"
        parts.append(text)
        if total["fairness"] is not None and len(flows) > 1:
            parts[0] += f", with fairness {total['fairness']:.3f}"
    lost = pdus_lost(s)
    if lost is None:
        parts.append("how many PDUs were lost is unknown")
    else:
        sent = sum(vc["sent"] for vc in s["ledger"])
        parts.append(f"{lost:,} of {sent:,} PDUs were lost" if lost else "no PDU was lost")
    if "attached" in s:
        parts.append(f"attached hosts, {s['attached']['verdict']}")
    return ", and ".join(parts)


def _against(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return texts about ours beside published figures: one is named, several are summed up."""
    compared = [row for row in rows if row["ratio"] is not None]
    if not compared:
        return []
    changed = " (settings differ from the published ones)" if "changed" in compared[0]["remarks"] else ""
    if len(compared) == 1:
        (row,) = compared
        theirs = "measured" if row["measured"] is not None else "predicted"
        published = figure_text(row[theirs])
        return [f"{row['quantity']} {_off(row['ratio'])} the {theirs} {published} {row['unit']}{changed}"]
    errors = [abs(row["ratio"] - 1) for row in compared]
    worst = max(compared, key=lambda row: abs(row["ratio"] - 1))
    name = ", ".join(filter(None, (worst["quantity"], worst["case"])))
    mean = sum(errors) / len(errors)
    return [
        f"mean error {100 * mean:.1f} % over {len(compared)} published figures, "
        f"worst {100 * max(errors):.1f} % ({name}){changed}"
    ]


def _off(ratio: float) -> str:
    off = ratio - 1
    return "within 0.1 % of" if abs(off) < 0.0005 else f"{100 * abs(off):.1f} % {'above' if off > 0 else 'below'}"


def _against_theory(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    judged = [row for row in rows if row["holds"] is not None]
    if not judged:
        return []
    return [_held(sum(row["holds"] for row in judged), len(judged))]


def _held(held: int, judged: int) -> str:
    return f"{held} of {judged} predictions of theory are within our interval"


def several_verdict(summary: Mapping[str, Any]) -> Verdict:
    """Return the verdict on an experiment's cases."""
    s = summary
    cases, planned = s["cases"], len(s["planned"])
    done = sum(case["status"] == "done" for case in cases)
    text = "; ".join([f"{done} of {planned} cases are done", *_against(s["published"])])
    unmet = [(case["name"], row) for case in cases for row in broken(case.get("expected", ()))]
    short = "shortened, so not compared with published figures"
    return _ended(s, text, unmet) or _done(text, short, s["shortened"])


def sweep_verdict(summary: Mapping[str, Any]) -> Verdict:
    """Return the verdict on a sweep, or on a run of the catalogue."""
    s = summary
    runs = s["runs"]
    done = sum(run["status"] == "done" for run in runs)
    names = {run["experiment"] for run in runs}
    of = f" of {len(names)} experiments" if len(names) > 1 else ""
    parts = [f"{done} of {len(runs)} runs{of} are done", *(_between(s) if len(names) == 1 else [])]
    parts += _against([row for row in s["published"] if "changed" not in row["remarks"]])
    theory = [run["theory"] for run in runs if run.get("theory")]
    if theory:
        held, judged = (sum(each[key] for each in theory) for key in ("held", "of"))
        parts.append(_held(held, judged))
    text = "; ".join(parts)
    unmet = [(run["folder"].rpartition("/")[2], row) for run in runs for row in broken(run["expected"])]
    if ended := _ended(s, text, unmet):
        return ended
    judged = sum(row["holds"] is True for run in runs for row in run["expected"])
    text += f"; {judged} expectations hold" if judged else ""
    short = sum(run["shortened"] for run in runs)
    many = "all runs" if short == len(runs) else f"{short} runs"
    return _done(text, f"{many} shortened and not compared with published figures", s["shortened"])


def _ended(s: Mapping[str, Any], text: str, unmet: Sequence[tuple[str, Mapping[str, Any]]]) -> Verdict | None:
    """Return the verdict on several runs, or None if they are done and as expected; `unmet` are the conditions not
    met."""
    if s["status"] == "failed":
        return Verdict("bad", "Failed", f"{s['reason']}; {text}.")
    if s["status"] == "running":
        return Verdict("note", "Running", f"{text}.")
    if s["status"] == "interrupted":
        return Verdict("note", "Interrupted", f"({s['reason']}) {text}.")
    if unmet:
        what = "; ".join(f"{name}: {expectation_text(row)}" for name, row in unmet[:3])
        return Verdict("bad", "Not as expected", f"{what}{' …' if len(unmet) > 3 else ''}: {text}.")
    return None


def _done(text: str, short: str, shortened: bool) -> Verdict:
    return Verdict("note", "Done", f"{text}; {short}.") if shortened else Verdict("good", "Done", f"{text}.")


def _between(s: Mapping[str, Any]) -> list[str]:
    """Return a text about the least and greatest throughput, and where they occur."""
    found = [(entry["metrics"]["aggregate_goodput"], entry) for entry in s["means"]
             if "aggregate_goodput" in entry["metrics"]]  # fmt: skip
    if not found:
        return []
    names = axis_names(s["axes"])

    def text(figure: Mapping[str, Any], entry: Mapping[str, Any]) -> str:
        at = [entry["case"]] if entry["case"] else []
        at += [
            f"{name} = {f'{entry[key]:g}' if isinstance(entry[key], float) else entry[key]}"
            for key, name in names.items()
        ]
        half = "" if figure["half"] is None else f" ± {figure_text(figure['half'] / 1e6)}"
        return f"{figure_text(figure['mean'] / 1e6)}{half} Mb/s" + (f" ({', '.join(at)})" if at else "")

    least, most = (pick(found, key=lambda each: each[0]["mean"]) for pick in (min, max))
    if len(found) == 1:
        return [f"throughput: {text(*least)}"]
    return [f"throughput: {text(*least)} to {text(*most)}"]
