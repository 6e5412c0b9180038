"""A real browser: Debian's chromium, driven by playwright."""

import shutil

import pytest

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


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


def _own(asked, url, server):
    return asked == str(url) or asked.startswith("data:") or (server and asked.startswith(server))
