"""A real browser: Debian's chromium, driven by playwright."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bentpipe.report.cases import cases_html
from bentpipe.report.run import report_html
from bentpipe.sweeps.grid import parse_axes
from bentpipe.sweeps.page import sweep_html
from bentpipe.sweeps.plan import plan_catalogue, plan_sweep
from unit.experiment.made_up import PS, made_up, some_cases, some_sweep

ROOT = Path(__file__).parents[2]
PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

THOUSAND = ("flow.0.copies=334", "flow.1.copies=333", "flow.2.copies=333")
SHORT = PS // 5
SWEPT = ["hosts.mtu=1500,4470,9180", "hosts.tcp.variant=reno,sack"]


@pytest.fixture(scope="session")
def chromium():
    if PROGRAM is None:
        pytest.exit("chromium is missing; get it: apt-get install chromium", 2)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=PROGRAM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium):
    """Opens a file or an address at a width, in a colour scheme; at the end nothing may have gone wrong in it."""
    contexts, wrong = [], []

    def open_page(url, width=1600, scheme="light", server=""):
        context = chromium.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, reduced_motion="reduce"
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on(
            "request", lambda asked: None if _own(asked.url, url, server) else wrong.append(f"asks for {asked.url}")
        )
        page.goto(str(url))
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert wrong == []


def _rate(values, seed):
    return 1e6 * (int(values["hosts.mtu"]) / 100 + 2 * seed + 10 * (values["hosts.tcp.variant"] == "sack"))


@pytest.fixture(scope="session")
def reports(tmp_path_factory):
    """Reports of several shapes by name, made once; the data of runs are made up."""
    folder = tmp_path_factory.mktemp("reports")
    made = {
        "one": report_html(made_up("acts-1flow")),
        "few": report_html(made_up("lan-3flows", peak=40_000_000)),
        "segments": report_html(made_up("fall-floyd-4")),
        "hundred": report_html(made_up("netspec-100")),
        "thousand": report_html(made_up("acts-15flows", *THOUSAND)),
        "cases": cases_html(some_cases("magic-mismatch")),
        "axis": cases_html(some_cases("magic-window")),
        "sweep": sweep_html(
            *some_sweep(plan_sweep("lan-3flows", parse_axes(SWEPT), (1, 2, 3), duration_ps=SHORT), rate=_rate)
        ),
        "names": sweep_html(*some_sweep(plan_sweep("acts-variants", (), (1, 2), duration_ps=SHORT))),
        "catalogue": sweep_html(*some_sweep(plan_catalogue(["lan-1flow", "fall-floyd-4", "acts-variants"]))),
    }
    for name, text in made.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return {name: folder / f"{name}.html" for name in made}


@pytest.fixture(scope="session")
def docs():
    """The folder of the documentation, built as `make docs` builds it."""
    folder = ROOT / "build" / "docs"
    subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "-d", ROOT / "build" / "doctrees",
         ROOT / "docs", folder],
        check=True,
    )  # fmt: skip
    return folder


def _own(asked, url, server):
    return asked == str(url) or asked.startswith("data:") or (server and asked.startswith(server))
