"""Run capsules: written from runs, done again, and tampered with."""

import json
import shutil
import tomllib
import zipfile
from pathlib import Path

import pytest

from bentpipe.capsule.crate import CAPSULE, METADATA, digest
from bentpipe.capsule.toml import to_toml
from bentpipe.cli import main


@pytest.fixture(scope="module")
def capsule(tmp_path_factory):
    """A capsule, as a folder and as a zip file, of two cases with changed settings and of a script beside its entry."""
    folder = tmp_path_factory.mktemp("capsule")
    runs = folder / "runs"
    cases = ["--case", "in LAN, load 105", "--case", "in WAN, load 15", "--set", "flow.*.size=100 kB"]
    assert main(["run", "load-sweep", *cases, "--no-plots", "--out", str(runs / "cases")]) == 0
    script = ["netspec-100", "--duration", "60 ms", "--seed", "7"]
    assert main(["run", *script, "--no-plots", "--out", str(runs / "script")]) == 0
    for name in ("made", "made.zip"):
        assert main(["capsule", str(runs), "--out", str(folder / name)]) == 0
    return folder


def test_a_capsule_is_an_ro_crate_with_all_that_makes_its_runs_again(capsule):
    made = capsule / "made"
    graph = {entity["@id"]: entity for entity in json.loads((made / METADATA).read_text())["@graph"]}
    assert graph[METADATA]["conformsTo"] == {"@id": "https://w3id.org/ro/crate/1.1"}
    assert {"name", "description", "datePublished", "license", "hasPart"} <= {*graph["./"]}
    files = {path.relative_to(made).as_posix() for path in made.rglob("*") if path.is_file()} - {METADATA}
    assert files == {part["@id"] for part in graph["./"]["hasPart"]}
    assert all(graph[name]["sha256"] == digest((made / name).read_bytes()) for name in files)
    assert {"README.md", CAPSULE, "published.json", "environment/machine.json", "environment/packages.txt"} <= files
    about = json.loads((made / CAPSULE).read_text())
    assert sorted((run["experiment"], run["case"], run["seed"]) for run in about["runs"]) == [
        ("load-sweep", "in LAN, load 105", 1), ("load-sweep", "in WAN, load 15", 1), ("netspec-100", "", 7),
    ]  # fmt: skip
    (published,) = (row for row in json.loads((made / "published.json").read_text()) if row["measured"])
    assert published["case"] == "in LAN, load 105" and "%" in published["verdict"]
    with zipfile.ZipFile(capsule / "made.zip") as packed:
        assert {*packed.namelist()} == files | {METADATA}


def test_runs_of_a_capsule_are_reproduced(capsule, capsys, monkeypatch, tmp_path):
    """From the zip file, in another folder, without the experiments' own files."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("bentpipe.experiment.document.catalogue._CATALOGUE", tmp_path)
    assert main(["reproduce", str(capsule / "made.zip")]) == 0
    message = capsys.readouterr().out
    assert message.count(": reproduced") == 3 and "3 of 3 runs are reproduced." in message


def test_a_case_with_an_expectation_of_its_own_is_reproduced(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    words = ["goodput-discard", "--case", "discard EPD, buffer 1024", "--duration", "20 ms", "--no-plots"]
    assert main(["run", *words, "--out", "runs/discard"]) == 0
    assert main(["capsule", "runs/discard", "--out", "made"]) == 0
    (file,) = Path("made", "inputs").glob("*.toml")
    (expected,) = tomllib.loads(file.read_text())["expect"]
    assert expected == {"metric": "efficiency", "min": 0.85}
    capsys.readouterr()
    assert main(["reproduce", "made"]) == 0
    assert "1 of 1 runs are reproduced." in capsys.readouterr().out


def changed(capsule, tmp_path, name, change, again=True):
    """A copy of the capsule with a file changed; ``again``: and its hash."""
    made = tmp_path / "copy"
    shutil.copytree(capsule / "made", made)
    (file,) = made.glob(name)
    file.write_text(change(file.read_text()))
    if again:
        metadata = json.loads((made / METADATA).read_text())
        for entity in metadata["@graph"]:
            if entity["@id"] == file.relative_to(made).as_posix():
                entity["sha256"] = digest(file.read_bytes())
        (made / METADATA).write_text(json.dumps(metadata))
    return made


def test_a_tampered_file_is_named(capsule, tmp_path, capsys):
    made = changed(capsule, tmp_path, "inputs/*-netspec-100.toml", lambda text: text + "\n", again=False)
    (made / "more.txt").touch()
    (made / "published.json").unlink()
    assert main(["reproduce", str(made)]) == 1
    message = capsys.readouterr().err
    assert "was tampered with: " in message
    for each in ("-netspec-100.toml was changed", "published.json is missing", "more.txt was added"):
        assert each in message


def test_figures_that_differ_are_told_with_how_much(capsule, tmp_path, capsys):
    def more(text):
        summary = json.loads(text)
        summary["metrics"]["aggregate_goodput"] /= 2
        return json.dumps(summary)

    made = changed(capsule, tmp_path, "results/*-netspec-100/result.json", more)
    assert main(["reproduce", str(made), "--only", "netspec-100"]) == 1
    message = capsys.readouterr().out
    assert "-netspec-100: differs by up to 100 % in 1 of" in message and "metrics.aggregate_goodput" in message
    assert "0 of 1 runs are reproduced." in message


def test_what_cannot_be_done_here_is_not_comparable(capsule, tmp_path, capsys):
    made = changed(capsule, tmp_path, "inputs/*-netspec-100.toml", lambda text: text.replace("duration", "duratoin", 1))
    assert main(["reproduce", str(made), "--only", "netspec-100"]) == 1
    assert "-netspec-100: not comparable" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["capsule", "nowhere"], "nowhere: no such folder of runs"),
        (["capsule", "catalogue"], "has no run of the catalogue"),
        (["reproduce", "nowhere.zip"], "nowhere.zip: no such capsule"),
        (["reproduce", "text.zip"], "text.zip: is no capsule"),
        (["reproduce", "."], "can't be read"),
    ],
)
def test_wrong_uses_of_capsules(words, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.zip").write_text("no zip")
    assert main(words) == 2
    assert message in capsys.readouterr().err


def test_a_capsule_is_not_written_over_another(capsule, capsys):
    assert main(["capsule", str(capsule / "runs"), "--out", str(capsule / "made.zip")]) == 2
    assert "already exists" in capsys.readouterr().err


def test_documents_as_toml():
    odd = 'x\n"\x7f\\'
    document = {"a": {"b c": [1, 2.5, True, odd], "n": {"m": [{"k": -1}]}}, "e": [], "f": 1e-13, "i": float("inf")}
    assert tomllib.loads(to_toml(document)) == document
