"""The documentation in a real browser: axe-core finds nothing, no page is very long, pictures have texts."""

import pytest

from browser.barriers import barriers, faint_texts

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
    assert barriers(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
