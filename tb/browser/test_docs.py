"""The documentation in a real browser: no barriers, no very long page, texts for pictures, old links that lead on."""

import json

import pytest

from browser.barriers import barriers, faint_texts
from browser.conftest import ROOT

VIEWS = ((1400, "light"), (400, "dark"))
SHOWN = (
    "index.html",
    "quickstart.html",
    "writing-experiments.html",
    "keys-network.html",
    "explained.html",
    "api.html",
    "catalogue-acts98.html",
    "cores/nic.html",
    "genindex.html",
    "search.html",
)
"""Pages of the documentation with all that its style has: code of each language, tables, pictures, signatures."""
CONTRAST = {"index.html", "quickstart.html", "cores/nic.html", "search.html"}
"""Pages whose contrast axe-core measures in less than 3 s; every page has that of :func:`faint_texts`."""

MOST_PIXELS = 20_000


_WITHOUT_TEXT = """() => [...document.querySelectorAll("article img:not(.toggler)")]
    .filter(({ alt }) => alt.length < 15 || /[.](png|svg)$/.test(alt)).map(({ src, alt }) => `${src}: ${alt}`)"""


@pytest.fixture(scope="module")
def found(chromium, docs):
    """Return the faults of all pages at 1400 pixels, by kind; each page is opened once."""
    wrong = {"barriers": [], "long": [], "pictures": []}
    context = chromium.new_context(viewport={"width": 1400, "height": 900}, reduced_motion="reduce")
    page = context.new_page()
    for path in sorted(path for path in docs.rglob("*.html") if "_static" not in path.parts):
        page.emulate_media(color_scheme="light")
        page.goto(path.as_uri())
        wrong["barriers"] += barriers(page)
        height = page.evaluate("document.documentElement.scrollHeight")
        wrong["long"] += [f"{path.name}: {height}"] if height > MOST_PIXELS else []
        wrong["pictures"] += page.evaluate(_WITHOUT_TEXT)
        page.emulate_media(color_scheme="dark")
        wrong["barriers"] += [f"contrast, {path.name}, {text}, dark" for text in faint_texts(page)]
    context.close()
    return wrong


def test_no_page_of_the_documentation_has_barriers(found):
    assert found["barriers"] == []


def test_no_page_of_the_documentation_is_very_long(found):
    assert found["long"] == []


def test_pictures_of_the_documentation_have_texts(found):
    assert found["pictures"] == []


@pytest.mark.parametrize("width, scheme", VIEWS)
@pytest.mark.parametrize("name", SHOWN)
def test_pages_of_the_documentation_fit_both_widths(open_page, docs, name, width, scheme):
    page = open_page((docs / name).as_uri(), width, scheme, server=docs.as_uri())
    assert barriers(page, contrast=name in CONTRAST) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


MOVED = json.loads((ROOT / "docs" / "_static" / "moved.js").read_text("utf-8").split("moved = ")[1].split(";\n")[0])
"""Places that moved to another page: by page and anchor the address of today."""

_PLACES = """() => [...document.querySelectorAll("[id]")].map(({ id }) => id)"""


def test_old_links_lead_to_places_that_exist(chromium, docs):
    """Each place has moved from the page, and the page that it moved to has it."""
    targets = {target.partition("#")[::2] for anchors in MOVED.values() for target in anchors.values()}
    page = chromium.new_page()
    ids = {}
    for name in {*MOVED, *(name for name, _ in targets)}:
        page.goto((docs / name).as_uri())
        ids[name] = {*page.evaluate(_PLACES)}
    page.close()
    assert [each for each in sorted(targets) if each[1] not in ids[each[0]]] == []
    assert [(name, anchor) for name, anchors in MOVED.items() for anchor in anchors if anchor in ids[name]] == []


def _in_view(page, name):
    """The page goes to this place, and stays there when its pictures have been loaded."""
    for state in ("domcontentloaded", "networkidle"):
        page.wait_for_load_state(state)
        there = f"(({{top}}) => 0 <= top && top < 900)(document.getElementById('{name}').getBoundingClientRect())"
        page.wait_for_function(there)


@pytest.mark.parametrize(
    "old, new",
    [
        ("catalogue-studies.html#phase-lock", "catalogue-traffic.html#phase-lock"),
        ("writing-experiments.html#network-switches-name", "keys-network.html#network-switches-name"),
    ],
)
def test_an_old_link_leads_on(open_page, docs, old, new):
    page = open_page(f"{docs.as_uri()}/{old}", server=docs.as_uri())
    page.wait_for_url(f"**/{new}")
    _in_view(page, new.partition("#")[2])


def test_a_link_of_today_stays(open_page, docs):
    address = f"{docs.as_uri()}/writing-experiments.html#mistakes"
    assert open_page(address, server=docs.as_uri()).url == address


def test_experiments_keep_their_place_in_the_catalogue(open_page, docs):
    page = open_page(f"{docs.as_uri()}/experiments.html#phase-lock", server=docs.as_uri())
    _in_view(page, "phase-lock")
