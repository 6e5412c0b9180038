"""The small commands: new, check, help, export, rtl, completion."""

import csv
import json
import subprocess
import tomllib

import pytest

from bentpipe.cli import main
from bentpipe.manual import TOPICS
from bentpipe_hdl.amaranth_private import ports


@pytest.mark.parametrize("how", [[], ["--whole"]])
def test_a_new_file_is_an_experiment_like_that_which_it_is_from(how, tmp_path, capsys):
    file = tmp_path / "My Study.toml"
    assert main(["new", str(file), "--from", "acts-variants", *how]) == 0
    capsys.readouterr()
    networks = []
    for name in ("acts-variants", str(file)):
        assert main(["show", name, "--json"]) == 0
        networks.append(json.loads(capsys.readouterr().out)["network"])
    assert networks[0] == networks[1]


def test_what_a_new_file_offers_is_valid_once_it_is_uncommented(tmp_path):
    file = tmp_path / "own.toml"
    assert main(["new", str(file), "--from", "lan-3flows"]) == 0
    lines = file.read_text().splitlines()
    assert tomllib.loads(file.read_text())["experiment"]["id"] == "own"
    kept = ("# Unset", "# Remove")  # sentences
    file.write_text("\n".join(line if line.startswith(kept) else line.removeprefix("# ") for line in lines))
    assert main(["check", str(file)]) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["there.toml"], "already exists; give another name, or --force to replace it"),
        (["study.txt"], "the name of an experiment's file ends in .toml"),
        (["new.toml", "--from", "acts-4flows"], "no such experiment in the catalogue; did you mean"),
        (["no/such/folder/new.toml"], "cannot be written: No such file or directory"),
    ],
)
def test_a_file_that_cant_be_begun_is_a_line(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there.toml").write_text("# mine\n")
    assert main(["new", *arguments]) == 2
    assert message in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["there.toml"]
    assert (tmp_path / "there.toml").read_text() == "# mine\n"


def test_a_run_of_ones_own_file_is_repeated_by_that_file(tmp_path):
    file, folder = tmp_path / "my own.toml", tmp_path / "run"
    assert main(["new", str(file), "--from", "lan-1flow"]) == 0
    assert main(["run", str(file), "--duration", "10 ms", "--no-plots", "--out", str(folder)]) == 0
    assert f"bentpipe run &#x27;{file}&#x27; --seed 1" in (folder / "report.html").read_text()


def test_a_copy_that_would_miss_what_it_extends_is_refused(tmp_path, capsys):
    (tmp_path / "sub").mkdir()
    first, second = tmp_path / "sub" / "first.toml", tmp_path / "sub" / "second.toml"
    assert main(["new", str(first), "--from", "lan-1flow"]) == 0
    second.write_text('extends = "first.toml"\n[experiment]\nid = "second"\ntitle = "second"\n')
    assert main(["new", str(tmp_path / "copy.toml"), "--from", str(second), "--whole"]) == 2
    assert "extends first.toml, which is beside it" in capsys.readouterr().err
    assert not (tmp_path / "copy.toml").exists()
    assert main(["new", str(tmp_path / "over.toml"), "--from", str(second)]) == 0
    assert main(["check", str(tmp_path / "over.toml")]) == 0


def test_check_tells_every_file_and_fails_for_one_that_is_wrong(tmp_path, capsys):
    wrong = tmp_path / "wrong.toml"
    wrong.write_text('extends = "lan-1flow"\n[experiment]\nid = "x"\ntitle = "y"\n[hosts.tcp]\nwindow = "-1 kB"\n')
    assert main(["check", "lan-1flow", str(wrong)]) == 2
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith("lan-1flow: OK; switches 2, hosts 2, flows 1; simulates at most")
    assert out[1].startswith("wrong.toml:6: hosts.tcp.window:")
    assert main(["check", "lan-1flow", str(wrong), "--json"]) == 2
    rows = json.loads(capsys.readouterr().out)
    assert [row["valid"] for row in rows] == [True, False]
    assert main(["check", "acts-variants"]) == 0


def test_help_has_every_topic(capsys):
    assert main(["help"]) == 0
    listed = capsys.readouterr().out
    for name in TOPICS:
        assert f"bentpipe help {name}" in listed
        assert main(["help", name]) == 0
        assert "| --- |" in capsys.readouterr().out
    assert main(["help", "metric"]) == 2
    assert "did you mean 'metrics'" in capsys.readouterr().err


def test_what_is_exported_is_what_the_run_has(tmp_path, capsys):
    folder = tmp_path / "run"
    assert main(["run", "lan-1flow", "--duration", "100 ms", "--no-plots", "--out", str(folder), "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert main(["export", str(folder)]) == 0
    with (folder / "csv" / "metrics.csv").open() as file:
        metrics = {row["metric"]: row["value"] for row in csv.DictReader(file)}
    assert float(metrics["aggregate_goodput"]) == summary["metrics"]["aggregate_goodput"]
    with (folder / "csv" / "flows.csv").open() as file:
        (flow,) = csv.DictReader(file)
    assert int(flow["octets_delivered"]) == summary["flows"][0]["octets_delivered"]
    with (folder / "csv" / "trace.csv").open() as file:
        delivered = [int(row["value"]) for row in csv.DictReader(file) if row["series"] == "flow1.delivered"]
    assert delivered[-1] == summary["flows"][0]["octets_delivered"]
    assert main(["export", str(folder), "--csv"]) == 2
    assert "already exists" in capsys.readouterr().err
    assert main(["export", str(folder), "--force"]) == 0
    assert main(["export", str(tmp_path), "--csv"]) == 2


def test_cases_are_exported_with_their_names(tmp_path):
    folder = tmp_path / "cases"
    chosen = ["--case", "window 16 kB", "--case", "window 48 kB"]
    assert main(["run", "magic-window", "--duration", "50 ms", "--no-plots", *chosen, "--out", str(folder)]) == 0
    assert main(["export", str(folder), "--csv", "--out", str(tmp_path / "out")]) == 0
    for name in ("metrics", "flows", "trace"):
        with (tmp_path / "out" / f"{name}.csv").open() as file:
            assert list(dict.fromkeys(row["case"] for row in csv.DictReader(file))) == ["window 16 kB", "window 48 kB"]


def test_a_node_is_written_as_verilog_of_its_shape(tmp_path, capsys):
    file = tmp_path / "link.v"
    assert main(["rtl", "link", "-o", str(file)]) == 0
    text = file.read_text()
    assert "module bentpipe_link(" in text and "input [31:0] i_word" in text
    assert main(["rtl", "link", "-o", str(file)]) == 2
    assert main(["rtl", "link", "--width", "416", "-o", str(file), "--force"]) == 0
    assert "input [31:0] i_word" not in file.read_text()
    assert "i_port" not in text and "[-1:0]" not in text
    capsys.readouterr()
    for arguments, message in (
        (["link", "-o", str(tmp_path / "none" / "x.v")], "x.v: cannot be written: No such file or directory"),
        (["hub"], "no core is called 'hub'; there are nic, switch,"),
        ([], "name a core, or --list"),
        (["hec", "--bus", "wishbone"], "--bus: the core hec has no registers"),
        (["hec", "--registers"], "--registers: the core hec has no registers"),
        (["hec", "--shape", "n=3"], "the core hec has no parameter 'n'; it has none"),
        (["gcra", "--shape", "vcs=x"], "--shape: expected NAME=N"),
        (["gcra", "--axi-stream"], "--axi-stream: it is for nodes"),
        (["gcra", "--width", "8"], "--width must be 32 or 416 bits, not 8"),
        (["sonet-terminal", "--shape", "octets=2"], "n and octets must be 3 and 1, or 12 and 1, 2 or 4, not 3 and 2"),
        (["utopia-phy", "--shape", "bits=9"], "bits must be 8 or 16, not 9"),
        (["utopia-atm", "--shape", "phys=32"], "phys must be 1 to 31, not 32"),
        (["hec", "--fusesoc"], "give it a name with -o FILE.v"),
        (["link", "--width", "64"], "--width must be 32 or 416 bits, not 64"),
        (["sonet", "--width", "32"], "--width must be 416 bits, not 32"),
        (["link", "--width", "416", "--axi-stream"], "only nodes with cells of 32 bits in and out have adapters"),
        (["nic", "--shape", "options=foo"], "the shape of a nic has no 'options'; it has vcs"),
        (["switch", "--shape", "ports=0"], "ports must be"),
    ):
        assert main(["rtl", *arguments]) == 2
        assert message in capsys.readouterr().err


def test_a_sonet_line_is_written_with_its_only_width(monkeypatch, capsys):
    monkeypatch.setattr("bentpipe_sim.verilated.source", lambda component, name: f"{name} {component.width}\n")
    assert main(["rtl", "sonet"]) == 0
    assert capsys.readouterr().out == "bentpipe_sonet 416\n"


def test_a_node_is_written_with_other_buses(monkeypatch, capsys):
    monkeypatch.setattr("bentpipe_sim.verilated.source", lambda component, name: " ".join(ports(component)))
    assert main(["rtl", "link", "--bus", "axi-lite", "--axi-stream"]) == 0
    assert {"csr_awaddr", "i_tdata", "o_tready", "lost", "time_now"} <= set(capsys.readouterr().out.split())
    assert main(["rtl", "nic", "--bus", "wishbone"]) == 0
    assert {"csr_dat_w", "i_word", "post_valid"} <= set(capsys.readouterr().out.split())


def test_a_core_has_a_guide_registers_and_a_core_file(tmp_path, capsys):
    assert main(["rtl", "--list"]) == 0
    assert "aal5-reassembler  AAL5 cells of several VCs to packets" in capsys.readouterr().out
    assert main(["rtl", "gcra", "--guide", "--bus", "wishbone"]) == 0
    guide = capsys.readouterr().out
    assert "Data to be written." in guide and "csr_dat_w" in guide and "Latency: none at 416 bits" in guide
    assert main(["rtl", "gcra", "--registers"]) == 0
    assert "police_rate" in capsys.readouterr().out
    file = tmp_path / "hec.v"
    assert main(["rtl", "hec", "--fusesoc", "-o", str(file)]) == 0
    assert "module bentpipe_hec(" in file.read_text()
    assert "    files: [hec.v]" in file.with_suffix(".core").read_text()
    file.unlink()
    assert main(["rtl", "hec", "--fusesoc", "-o", str(file)]) == 2
    assert f"{file.with_suffix('.core')}: already exists" in capsys.readouterr().err


def test_parts_of_a_shape_are_options(capsys):
    outputs = []
    for command, *shape in (("regs", "--ports", "2", "--vcs", "64"), ("registers", "--shape", "ports=2,vcs=64")):
        assert main([command, "switch", *shape]) == 0
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1]


def test_bash_takes_the_completion_and_knows_the_commands(capsys):
    assert main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    asked = script + '\nCOMP_WORDS=(bentpipe expo); COMP_CWORD=1; _shtab_bentpipe; echo "${COMPREPLY[@]}"\n'
    done = subprocess.run(["bash"], input=asked, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["export"], done.stderr


def test_a_run_without_plots_has_a_report_and_no_pictures(tmp_path, capsys):
    folder = tmp_path / "run"
    assert main(["run", "lan-1flow", "--duration", "50 ms", "--no-plots", "--out", str(folder)]) == 0
    assert (folder / "report.html").is_file()
    assert not [*folder.glob("*.png"), *folder.glob("*.svg")]
    assert main(["report", str(folder)]) == 0
    assert [*folder.glob("*.png")]
