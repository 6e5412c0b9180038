"""Results without runs: of any experiment's shape, for tests of what is made of results."""

from array import array

from bentpipe.experiment.build.overrides import Rates
from bentpipe.experiment.load import load, load_cases
from bentpipe.experiment.run.run import _resolved, cases_head, run_experiment
from bentpipe.report.cases import sum_up_cases
from bentpipe.results.schema import RunResult, Trace
from bentpipe.sweeps.run import _entry, _head
from bentpipe.sweeps.summary import Results
from unit.experiment.fake import fake_build

PS = 10**12
SAMPLES = 61


def made_up(name, *settings, peak=0):
    """A result of an experiment's shape without a run: every series that it records, and time-outs; ``peak`` octets
    arrive within one sample."""
    e = load(name, settings)
    blank = run_experiment(load("lan-1flow", duration_ps=PS // 10), build=fake_build).summary
    resolved = _resolved(e)
    times = [i * PS // 10 for i in range(SAMPLES)]
    flows, series, events = [], {}, []

    def put(key, values):
        if key.rpartition(".")[2] in e.record.what or (".drops." in key and "drops" in e.record.what):
            series[key] = (array("q", times), array("q", values))

    for number, f in enumerate(e.flows, 1):
        flows.append(dict(blank["flows"][0], name=f.name, source=f.source, sink=f.sink, protocol=f.protocol))
        if "goodput" in e.record.what:
            octets = [(10_000 + 10 * number) * i + (peak if i > 30 else 0) for i in range(SAMPLES)]
            series[f"{f.name}.delivered"] = (array("q", times), array("q", octets))
        if f.tcp is None:
            flows[-1] |= dict.fromkeys(
                (
                    "datagrams_sent",
                    "datagrams_lost",
                    "datagrams_reordered",
                    "datagrams_refused",
                    "delay_mean_ps",
                    "delay_max_ps",
                ),
                5,
            )
            put(f"{f.name}.lost", [i // 9 * number for i in range(SAMPLES)])
            continue
        put(f"{f.name}.cwnd", [9140 * (1 + i * number % 120) for i in range(SAMPLES)])
        put(f"{f.name}.ssthresh", [9140 * 40] * SAMPLES)
        put(f"{f.name}.una", [9140 * i for i in range(SAMPLES)])
        for i in (5, 6, 20, 40):
            events += [(f.name, times[i], "segment", 9140 * i), (f.name, times[i], "segment", 9140 * (i + 1))]
        events += [(f.name, times[20], "timeout", 0), (f.name, times[40], "fast_retransmit", 0)]
    for switch in e.network.switches:
        put(f"{switch.name}.queue", [i * 130 for i in range(SAMPLES)])
        for reason in ("epd", "full"):
            put(f"{switch.name}.drops.{reason}", [i // 7 * 192 for i in range(SAMPLES)])
    summary = {
        **blank,
        "id": e.id,
        "title": e.title,
        "resolved": resolved,
        "rates": Rates(e.network, e.vcs, 1).rows(0),
        "flows": flows,
        "configuration": e.document,
    }
    summary["counters"] = {
        **{s.name: {"high_water": 7000, "accepted": [10**6], "drop_epd": [1536]} for s in e.network.switches},
        **{f"{line.name}.out": {"cells": 10**6} for line in e.network.lines},
        **{h.name: {"tx_cells": [10**6], "rx_cells": [10**4, 10**4]} for h in e.network.hosts},
    }
    summary["drops"] = {s.name: {"epd": 1536} for s in e.network.switches}
    summary["ledger"] = [
        {
            "vc": vc.name,
            "source": vc.path[0],
            "sink": vc.path[-1],
            "sent": 2000,
            "delivered": 1990,
            "flows": [],
            "lost": [{"where": vc.path[1], "why": "EPD", "pdus": 9}, {"where": "", "why": "under way", "pdus": 1}],
        }
        for vc in e.vcs
    ]
    summary["time"] = {**blank["time"], "simulated_s": times[-1] / PS}
    return RunResult(summary, flows, Trace(series, events))


def some_cases(name, whole=True, **options):
    """Return what precedes the cases of an experiment, each run with the stand-in; ``whole``: as if not shortened."""
    cases = load_cases(name, duration_ps=PS // 5, **options)
    runs = [run_experiment(e, build=fake_build).summary for e in cases]
    for summary in runs if whole else ():
        summary["shortened"] = False
        for row in summary["published"]:
            row["remarks"].remove("shortened")
    return sum_up_cases(cases_head(cases, (), {}), runs)


def some_sweep(plan, whole=True, rate=None):
    """``(summary, rows)`` of a sweep whose runs were made by the stand-in; ``whole``: as if not shortened. ``rate``
    gives the throughput (b/s) of a run by what is varied and seed."""
    entries = [_entry(planned) for planned in plan.runs]
    results = Results(_head(plan), entries)
    for planned, entry in zip(plan.runs, entries, strict=True):
        summary = run_experiment(planned.experiment, build=fake_build).summary
        summary["shortened"] = summary["shortened"] and not whole
        for row in summary["published"] if whole else ():
            row["remarks"] = []
        if rate is not None:
            bps = rate(planned.values, planned.experiment.seed)
            summary["metrics"] |= {"aggregate_goodput": bps, "sum_of_flow_rates": bps}
        results.add(entry["folder"], summary, "here:1")
    return results.summary(*results.verdict(), {"started": "", "wall_s": 12.0}), results.rows()
