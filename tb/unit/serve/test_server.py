"""``bentpipe serve``: this machine only, run folders only, and what is in them now."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from array import array

import pytest

from bentpipe.cli import main
from bentpipe.errors import BentpipeError
from bentpipe.results.folder import RunFolder
from bentpipe.results.schema import Trace
from bentpipe.serve.server import make_server
from bentpipe.sweeps.page import sweep_html
from bentpipe.sweeps.plan import plan_sweep
from unit.experiment.fake import write_run
from unit.experiment.made_up import PS, made_up, some_sweep


@pytest.fixture
def folder(tmp_path):
    """A folder of runs: one that is over, with a report; beside it what nobody is to have."""
    runs = tmp_path / "runs"
    result = made_up("lan-3flows")
    result.summary["status"] = "done"

    def report(folder, _):
        (folder / "report.html").write_text("<title>of a</title>")

    write_run(runs / "a", result, report)
    (runs / "a" / "notes.key").write_text("secret")
    (tmp_path / "secret.html").write_text("secret")
    (runs / "out.html").symlink_to(tmp_path / "secret.html")
    return runs


@pytest.fixture
def ask(folder):
    """Asks a server of that folder; gives status, headers, text."""
    with make_server(folder) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        port = server.server_address[1]

        def ask(path, host=None, method="GET"):
            connection = http.client.HTTPConnection("127.0.0.1", port)
            connection.putrequest(method, path, skip_host=True)
            connection.putheader("Host", f"127.0.0.1:{port}" if host is None else host.replace("PORT", str(port)))
            connection.endheaders()
            answer = connection.getresponse()
            text = answer.read().decode()
            connection.close()
            return answer.status, answer.headers, text

        yield ask
        server.shutdown()


def test_the_list_has_the_runs_with_verdicts_and_reports(ask):
    status, headers, text = ask("/")
    assert status == 200 and "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    assert "3 flows carried" in text and 'href="/runs/a/report.html"' in text
    assert ask("/runs/a/report.html")[::2] == (200, "<title>of a</title>")
    assert json.loads(ask("/runs/a/result.json")[2])["id"] == "lan-3flows"


@pytest.mark.parametrize(
    "path",
    [
        "/runs/../secret.html", "/runs/%2e%2e/secret.html", "/runs/a/..%2f..%2fsecret.html",
        "/runs/a/%2e%2e%5csecret.html", "/runs//etc/passwd", "/runs/out.html", "/runs/a/notes.key", "/runs/a",
        "/runs/a/.running/lock", "/runs/a%00.html", "/live/../..", "/news/..", "/secret.html", "/runs/",
    ],
)  # fmt: skip
def test_nothing_else_is_given_out(ask, path):
    status, _, text = ask(path)
    assert status in (400, 404) and "secret" not in text and "root:" not in text


@pytest.mark.parametrize("host", ["", "example.org", "example.org:PORT", "127.0.0.1", "127.0.0.1:1", "10.0.0.1:PORT"])
def test_a_page_from_elsewhere_gets_nothing(ask, host):
    status, _, text = ask("/", host)
    assert status == 421 and "lan-3flows" not in text


@pytest.mark.parametrize("host", ["localhost:PORT", "LOCALHOST:PORT", "[::1]:PORT"])
def test_this_machine_has_several_names(ask, host):
    assert ask("/", host)[0] == 200


def test_nothing_but_sessions_can_be_changed(ask):
    for method, status in (("POST", 411), ("PUT", 501), ("DELETE", 501)):
        assert ask("/", method=method)[0] == status
    assert ask("/", method="HEAD")[::2] == (200, "")


def test_a_run_that_goes_on_has_news(ask, folder):
    result = made_up("lan-3flows")
    result.summary["status"] = "done"
    summary = {**result.summary, "status": "running", "time": {**result.summary["time"], "simulated_s": 0.25}}
    news = Trace({"west.queue": (array("q", [0, 10**11, 2 * 10**11]), array("q", [1, 2, 3]))}, [])
    with RunFolder.claim(folder / "b") as run:
        run.keep(summary, news)
        assert 'href="/live/b/"' in ask("/list")[2].replace('\\"', '"')
        assert 'data-live="/news/b"' in ask("/live/b/")[2]
        first = json.loads(ask("/news/b")[2])
        assert first["figures"]["queues"]["series"][0]["y"] == [1, 2, 3] and not first["over"]
        run.keep(summary, Trace({"west.queue": (array("q", [21 * 10**10]), array("q", [4]))}, []))
        assert json.loads(ask("/news/b")[2])["figures"]["queues"]["series"][0]["y"] == [1, 2, 3, 4]
        run.finish(result)
        assert not json.loads(ask("/news/b")[2])["over"]  # its report is to come
        run.draw(lambda aside: (aside / "report.html").write_text("whole"))
        last = json.loads(ask("/news/b")[2])
    assert last["over"] and 'href="/runs/b/report.html"' in last["parts"]["report-now"]


def test_a_sweep_that_goes_on_has_its_report_so_far(ask, folder):
    summary, rows = some_sweep(plan_sweep("lan-3flows", (), (1, 2), duration_ps=PS // 5))
    with RunFolder.claim(folder / "s") as held:
        held.begin()
        held.put({**summary, "status": "running"})
        held.draw(lambda aside: (aside / "report.html").write_text(sweep_html(summary, rows)))
        text = json.loads(ask("/list")[2])["parts"]["runs-now"]
    assert "report so far" in text and 'href="/runs/s/report.html"' in text
    killed = json.loads(ask("/list")[2])["parts"]["runs-now"]
    assert "report so far" not in killed and "Killed" in killed


def test_a_run_that_was_killed_is_called_that(ask, folder):
    result = made_up("lan-3flows")
    (folder / "c").mkdir()
    (folder / "c" / "result.json").write_text(json.dumps({**result.summary, "status": "running"}))
    text = json.loads(ask("/list")[2])["parts"]["runs-now"]
    assert "Killed" in text and "bentpipe report" in text and "/live/c/" not in text


def test_folders_of_other_versions_are_left_out(ask, folder):
    (folder / "old").mkdir()
    (folder / "old" / "result.json").write_text('{"schema": 1}')
    assert ">old<" not in json.loads(ask("/list")[2])["parts"]["runs-now"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--address", "0.0.0.0"],
            "--address 0.0.0.0: not a loopback address; give --token FILE with 16 characters or more",
        ),
        (["--address", "192.168.0.1"], "not a loopback address"),
        (["--address", "localhost"], "--address localhost: not an IP address; give 127.0.0.1 or ::1"),
        (["--port", "65536"], "--port 65536: out of range 0..65535"),
    ],
)
def test_wrong_use_is_one_line(folder, capsys, arguments, message):
    assert main(["serve", str(folder), *arguments]) == 2
    assert message in capsys.readouterr().err


def test_no_folder_and_a_taken_port_are_one_line(folder, tmp_path):
    with pytest.raises(BentpipeError, match="none: no such folder"):
        make_server(tmp_path / "none")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(BentpipeError, match=r"port [0-9]+: Address already in use"):
            make_server(folder, port=taken.getsockname()[1])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it(folder, number):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-m", "bentpipe", "serve", str(folder)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),  # who runs the tests may ignore it
    ) as run:  # fmt: skip
        assert run.stdout and run.stderr
        assert "http://127.0.0.1:" in run.stdout.readline()
        run.send_signal(number)
        assert (run.wait(60), run.stderr.read()) == (0, "")
