"""Sphinx configuration. Built by `make docs`, with warnings as errors."""

import sys
from importlib.metadata import version as package_version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import generate
import notebook

project = "bentpipe"
copyright = "the bentpipe authors, BSD-2-Clause"
version = release = package_version("bentpipe")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
autodoc_typehints = "none"  # the signatures have them in short
napoleon_google_docstring = False
napoleon_custom_sections = [("Members", "params_style")]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
exclude_patterns = ["_generated"]

html_theme = "furo"
html_title = f"bentpipe {release}"
html_static_path = ["_static"]
html_css_files = ["docs.css"]
html_js_files = ["scrolling.js", "moved.js"]
templates_path = ["_templates"]


def setup(app):
    """Write the generated pages before Sphinx reads them."""
    app.connect("source-read", notebook.on_read)
    generate.write_all(Path(app.confdir) / "_generated")
