"""``bentpipe serve`` in a real browser: runs are listed, one that goes on grows before one's eyes, and has a report."""

import threading
from array import array

import pytest

from bentpipe.results.folder import RunFolder
from bentpipe.results.schema import Trace
from bentpipe.serve.server import make_server
from unit.experiment.made_up import SAMPLES, made_up

HALF = SAMPLES // 2


@pytest.fixture
def served(tmp_path):
    with make_server(tmp_path) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        yield tmp_path, server.url
        server.shutdown()


def part(result, begin, end):
    """Return the samples recorded between two of them."""
    series = {
        name: (array("q", t[begin:end]), array("q", v[begin:end])) for name, (t, v) in result.trace.series.items()
    }
    return Trace(series, [])


def test_a_run_that_goes_on_is_shown_live_and_then_its_report(open_page, served):
    folder, url = served
    result = made_up("lan-3flows")
    so_far = {**result.summary, "status": "running", "time": {**result.summary["time"], "simulated_s": 2.9}}
    with RunFolder.claim(folder / "run-1") as run:
        run.keep(so_far, part(result, 0, HALF))
        page = open_page(url, 400, "dark", server=url)
        assert "Running" in page.locator("tbody").text_content()
        page.get_by_role("link", name="live").click()
        queue = page.locator('figure[data-figure="queues"] .data .mark').first
        queue.wait_for(state="attached")
        before = queue.get_attribute("d")
        assert "2.900 s of" in page.locator("#verdict").text_content()
        assert {"Throughput over the common time", "Speed"} <= set(page.locator("#facts dt").all_text_contents())
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
        run.keep({**so_far, "time": {**so_far["time"], "simulated_s": 6.0}}, part(result, HALF, SAMPLES))
        page.wait_for_function(
            """before => before !==
                document.querySelector('figure[data-figure="queues"] .data .mark').getAttribute("d")""",
            arg=before,
        )
        assert "6.000 s of" in page.locator("#verdict").text_content()
        result.summary["status"] = "done"
        run.finish(result)
        run.draw(
            lambda aside: (aside / "report.html").write_text(
                "<!doctype html><link rel=icon href=data:,><title>whole</title>"
            )
        )
    page.get_by_role("link", name="its report").click()
    assert page.title() == "whole"
