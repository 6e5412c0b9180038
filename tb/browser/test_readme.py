"""README.md as a forge shows it: axe-core finds nothing, nothing is too wide, what it names exists."""

import re

import pytest

from browser.barriers import barriers
from browser.conftest import ROOT
from browser.forge import forge_html

VIEWS = [(width, scheme) for width in (1400, 400) for scheme in ("light", "dark")]

_TOO_WIDE = """() => [...document.querySelectorAll("main table, main pre, main img")]
    .filter(each => each.scrollWidth > each.clientWidth).map(each => each.textContent.trim().slice(0, 40))"""

_NAMED = """() => [...document.querySelectorAll("a[href], img[src]")]
    .map(each => each.getAttribute("href") ?? each.getAttribute("src"))"""

_NOT_SHOWN = """() => [...document.images].filter(({ naturalWidth, alt }) => !naturalWidth || alt.length < 15)
    .map(({ src }) => src)"""


@pytest.fixture(scope="module")
def readme(tmp_path_factory):
    path = tmp_path_factory.mktemp("readme") / "README.html"
    path.write_text(forge_html((ROOT / "README.md").read_text("utf-8"), f"{ROOT.as_uri()}/"), encoding="utf-8")
    return path.as_uri()


@pytest.mark.parametrize("width, scheme", VIEWS)
def test_the_readme_has_no_barriers_and_fits(open_page, readme, width, scheme):
    page = open_page(readme, width, scheme, server=ROOT.as_uri())
    assert barriers(page, contrast=True) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert width < 1000 or page.evaluate(_TOO_WIDE) == []


def test_pictures_and_links_of_the_readme_lead_somewhere(open_page, readme):
    page = open_page(readme, server=ROOT.as_uri())
    assert page.evaluate(_NOT_SHOWN) == []
    named = [each for each in page.evaluate(_NAMED) if not each.startswith("https:")]
    assert [each for each in named if not leads_somewhere(each)] == [] and len(named) > 15


def leads_somewhere(link):
    """Return whether a relative link names a file, and a heading of it if it has an anchor."""
    path, _, anchor = link.partition("#")
    file = ROOT / path if path else ROOT / "README.md"
    return file.exists() and (not anchor or anchor in anchors(file.read_text("utf-8")))


def anchors(text):
    """Return the anchors that a forge gives the headings of a page."""
    heads = re.findall(r"^#+ (.*)", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}
