"""axe-core finds nothing in reports and in the pages of `bentpipe serve`; narrow pages show what matters."""

import threading

import pytest

from bentpipe.attach.control import Control
from bentpipe.attach.rpc import Service
from bentpipe.experiment.resolve.changeable import changeable_keys
from bentpipe.results.folder import RunFolder
from bentpipe.serve.server import make_server
from browser.barriers import barriers
from unit.experiment.made_up import made_up

VIEWS = ((1400, "light"), (400, "dark"))
REPORTS = ("one", "few", "hundred", "cases", "sweep", "catalogue")


@pytest.mark.parametrize("width, scheme", VIEWS)
@pytest.mark.parametrize("name", REPORTS)
def test_reports_have_no_barriers(open_page, reports, name, width, scheme):
    assert barriers(open_page(reports[name].as_uri(), width, scheme), contrast=True) == []


def test_a_faint_text_is_a_barrier(open_page, tmp_path):
    """axe-core and our own script both find it."""
    path = tmp_path / "faint.html"
    text = '<h1>T</h1><p style="color: #999">faint text</p>'
    path.write_text(f'<!doctype html><html lang="en"><link rel=icon href=data:,><title>t</title><main>{text}</main>')
    found = barriers(open_page(path.as_uri()), contrast=True)
    assert [each.partition(",")[0] for each in found] == ["color-contrast", "contrast"]


class FakeService(Service):
    """A session without a simulation, whose settings can be read."""

    def __init__(self, document):
        self._document = document

    def close(self):
        pass

    def _call(self, given):
        return changeable_keys(self._document) if given["method"] == "keys" else {}


def end(host):
    """The counts of an attached end, as a session has them."""
    none = {"count": 0, "p99": 0, "times": [], "counts": []}
    return {
        "host": host,
        "where": f"udp:{host}",
        "end": "udp",
        "counts": {"injected": 12345, "released": 12001},
        "dropped": 3,
        "late": none | {"count": 2},
        "computed_late": none,
        "jitter": none,
        "beyond": none,
    }


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """The address of a server with a run in progress, a session in progress, and a run that has ended."""
    folder = tmp_path_factory.mktemp("served")
    run, session, ended = made_up("lan-3flows"), made_up("acts-1flow"), made_up("fall-floyd-4")
    for result in (run, session):
        result.summary |= {"status": "running"}
    hosts = [host["name"] for host in session.summary["resolved"]["network"]["hosts"]]
    session.summary["attached"] = {
        "ends": [end(host) for host in hosts],
        "slack": {"text": "5 ms of the delay of satellite are used as slack", "lines": {}, "longer": {}},
        "priority": "normal",
        "left_out": [],
        "changed": [],
        "verdict": "none late",
    }
    session.flows.clear()
    with (
        RunFolder.claim(folder / "run-1") as a,
        RunFolder.claim(folder / "session-1") as b,
        RunFolder.claim(folder / "ended-1") as c,
        make_server(folder) as server,
    ):
        a.keep(run.summary, run.trace)
        b.keep(session.summary, session.trace)
        c.finish(ended)
        control = Control(folder / "session-1" / ".running" / "control", FakeService(session.summary["configuration"]))
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        yield server.url
        server.shutdown()
        control.close()


@pytest.mark.parametrize("width, scheme", VIEWS)
@pytest.mark.parametrize(
    "path, there", [("", "table.runs"), ("live/run-1", "figure .mark"), ("live/session-1", "#controls .control")]
)
def test_pages_of_the_server_have_no_barriers(open_page, served, path, there, width, scheme):
    page = open_page(served + path, width, scheme, server=served)
    page.locator(there).first.wait_for(state="attached")
    assert barriers(page, contrast=True) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_narrow_list_of_runs_shows_verdicts_and_links(open_page, served):
    page = open_page(served, 400, server=served)
    row = page.locator("tbody tr").filter(has_text="run-1")
    for part in (row.get_by_text("3 flows carried"), row.get_by_role("link", name="live")):
        box = part.bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= 400


def test_copy_does_not_cover_the_command(open_page, reports):
    page = open_page(reports["few"].as_uri(), 400)
    command, button = page.locator(".copy pre").first.bounding_box(), page.locator(".copy button").first.bounding_box()
    assert command["x"] + command["width"] <= button["x"] and button["x"] + button["width"] <= 400
