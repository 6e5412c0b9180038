"""The manual's page is the one that the tables give."""

from pathlib import Path

from bentpipe_hdl.sonet.manual import page


def test_page_is_current():
    docs = Path(__file__).parents[3] / "docs" / "sonet.md"
    assert docs.read_text() == page(), "python -m bentpipe_hdl.sonet.manual > docs/sonet.md"
