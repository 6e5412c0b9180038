"""Pages with Python that runs when the documentation is built: below each block stands what it showed."""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import tempfile
from pathlib import Path
from typing import Any, Final

__all__ = ["PAGES", "on_read", "run_page"]

PAGES: Final = ("python",)
_BLOCK: Final = re.compile(r"^```python\n(.*?)^```$\n?", re.MULTILINE | re.DOTALL)


def on_read(app: Any, name: str, source: list[str]) -> None:
    """Sphinx is about to parse a page."""
    if name in PAGES:
        source[0] = run_page(source[0], Path(app.confdir) / "_generated", name)


def run_page(text: str, figures: Path, name: str) -> str:
    """The page with the outcome of each block: what it printed, the value of its last line, its figures.

    Parameters
    ----------
    text : str
        Markdown. The blocks run one after the other in one namespace, in an empty folder.
    figures : Path
        Where SVG files go, ``NAME-1.svg`` and so on.
    name : str
        Of the page.

    Raises
    ------
    Exception
        What a block raised: the documentation is not built then.
    """
    import matplotlib

    matplotlib.use("agg")
    from bentpipe.plots.style import styled

    figures.mkdir(exist_ok=True)
    known: dict[str, Any] = {}
    count = 0

    def shown(match: re.Match[str]) -> str:
        nonlocal count
        text, drawn = _run(match[1], known)
        parts = [match[0].rstrip("\n")]
        if text:
            parts.append(f"```text\n{text}\n```")
        for figure in drawn:
            count += 1
            file = figures / f"{name}-{count}.svg"
            figure.savefig(file, metadata={"Date": None})
            parts.append(f"![{_in_words(figure)}]({figures.name}/{file.name})")
        return "\n\n".join(parts) + "\n"

    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder, styled():
        os.chdir(folder)
        try:
            return _BLOCK.sub(shown, text)
        finally:
            os.chdir(before)


def _in_words(figure: Any) -> str:
    """Return a text for those who do not see a figure: titles of its panels, what is drawn over what."""
    panels = [
        f"{axes.get_title()}: {axes.get_ylabel() or 'values'} over {axes.get_xlabel() or 'cases'}".removeprefix(": ")
        for axes in figure.axes
    ]
    return "; ".join(panels)


def _run(code: str, known: dict[str, Any]) -> tuple[str, list[Any]]:
    """What a block says, and the figures that it draws."""
    import matplotlib.pyplot as plt

    tree = ast.parse(code)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(tree, "<page>", "exec"), known)
        value = eval(compile(ast.Expression(last.value), "<page>", "eval"), known) if last is not None else None
    drawn = [plt.figure(number) for number in plt.get_fignums()]
    text = out.getvalue()
    if value is not None and not drawn:
        text += str(value)
    plt.close("all")
    return text.rstrip(), drawn
