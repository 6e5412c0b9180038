"""The catalogue's entries, shortened, carry the same cells at the same ticks as when their digests were kept."""

import pytest

from bentpipe.experiment.document.catalogue import catalogue
from digests import PARTS, QUICK, SHORT, RunSet, __main__, differences, digests

KEPT = SHORT.kept()


def test_every_entry_of_the_catalogue_has_kept_digests():
    assert {run.partition(",")[0] for run in QUICK.kept()} == set(catalogue())
    assert {run.partition(",")[0] for run in KEPT} == set(SHORT.entries)


def test_an_entry_without_kept_digests_fails(monkeypatch, capsys):
    only = RunSet("short", "of-no-commit", SHORT.durations, SHORT.settings)
    monkeypatch.setattr(__main__, "SETS", {"quick": only})
    monkeypatch.setattr("sys.argv", ["digests", "netspec-cbr"])
    assert __main__.main() == 1
    assert "no digests are kept of this run" in capsys.readouterr().out


@pytest.mark.parametrize("entry", sorted({run.partition(",")[0] for run in KEPT}))
def test_the_same_cells_at_the_same_ticks(entry):
    runs = dict(SHORT.runs(entry))
    assert list(runs) == [run for run in KEPT if run.partition(",")[0] == entry]
    found = {run: differences(KEPT[run], digests(runs[run]), runs[run].duration_ps) for run in runs}
    assert not {run: wires for run, wires in found.items() if wires}


def test_a_wire_that_differs_is_named_with_the_part_in_which_it_first_did():
    kept = {wire: ["0"] * PARTS for wire in ("a:0", "b:1", "c:0")}
    found = {"a:0": ["0"] * 8 + ["1"] * 2, "b:1": ["0"] * 3 + ["2"] * 7, "c:0": ["0"] * PARTS}
    assert differences(kept, found, 10**12) == [
        "b:1 differ from between 300 ms and 400 ms on",
        "a:0 differ from between 800 ms and 900 ms on",
    ]
    found = {"a:0": ["0"] * PARTS, "b:1": ["0"] * PARTS, "d:0": ["0"] * PARTS}
    assert differences(kept, found, 10**12) == ["c:0, d:0 are wires only then or only now"]
