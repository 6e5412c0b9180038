"""The notebook in ``examples`` runs from its first cell to its last, and shows runs and sweeps as HTML."""

import ast
import json
import shutil
from pathlib import Path

import pytest

from bentpipe.api import Run, Sweep

EXAMPLES = Path(__file__).parents[2] / "examples"


SHORTER = ("[2, 4, 8, 16]", "[2, 8]"), ('seeds="1-3"', 'seeds="1-2"')


def code_cells():
    """Return the code of the cells, with a shorter sweep."""
    notebook = json.loads((EXAMPLES / "cell-loss.ipynb").read_text())
    assert notebook["nbformat"] == 4
    code = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for long, short in SHORTER:
        assert sum(long in each for each in code) == 1
        code = [each.replace(long, short) for each in code]
    return code


def played(cells):
    """Run cells as a notebook does; the value of each cell's last line, None of one that has none."""
    names, shown = {}, []
    for code in cells:
        tree = ast.parse(code)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, "<cell>", "exec"), names)
        shown.append(None if last is None else eval(compile(ast.Expression(last.value), "<cell>", "eval"), names))
    return names, shown


@pytest.fixture(scope="module")
def notebook(tmp_path_factory, default_cluster):
    folder = tmp_path_factory.mktemp("notebook")
    shutil.copy(EXAMPLES / "cell-loss.toml", folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("MPLBACKEND", "agg")
        names, shown = played(code_cells())
        yield folder, names, shown


def test_its_figures_agree_with_each_other(notebook):
    _, names, _ = notebook
    first, clr = names["first"], names["first"].clr(by="vc").set_index("vc")
    cells = first.cells.set_index("vc")
    sending = cells.loc[clr.index]
    assert list(sending["lost"]) == list(clr["cells_lost"]) and sending["lost"].sum() == len(first.losses) > 0
    assert (sending["lost"] / sending["sent"]).tolist() == pytest.approx(list(clr["cell_loss_ratio"]))
    by_cause = [name for name in cells.columns if name.startswith("lost.")]
    assert by_cause and cells[by_cause].sum(axis=1).tolist() == cells["lost"].tolist()
    assert (cells["sent"] - cells["received"] - cells["lost"] >= 0).all()
    assert (names["means"]["short-1"]["count"] == 2).all()


def test_runs_and_sweeps_are_shown_as_short_html(notebook):
    _, _, shown = notebook
    first = next(value for value in shown if isinstance(value, Run))
    study = next(value for value in shown if isinstance(value, Sweep))
    for value in (first, study):
        text = value._repr_html_()
        assert len(text) < 20_000 and text.count("<table") == text.count("</table>") >= 1
        assert "<script" not in text and "<style" not in text
        assert len(repr(value)) < 200
    text = first._repr_html_()
    assert "Cell loss of eight VCs in two switches" in text and "Cells by VC" in text and "long-1 (far to sink)" in text
    assert "buffer, switch east (cells): 2, 8; seeds 1, 2" in study._repr_html_()


def test_it_draws_a_pdf(notebook):
    folder, _, _ = notebook
    assert (folder / "cell-loss.pdf").read_bytes().startswith(b"%PDF")
