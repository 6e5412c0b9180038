"""The proofs of ``tb/formal`` (``make formal``, minutes) look at variables of the RTL by name. A name that has moved
would be noticed there alone, so the names are looked up here: among the functions of that name in the whole RTL."""

import ast
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]


def variables(root):
    """``function.variable`` for all variables and arguments of the functions below a folder."""
    found = set()
    for file in root.rglob("*.py"):
        for function in ast.walk(ast.parse(file.read_text())):
            if isinstance(function, ast.FunctionDef):
                found |= {f"{function.name}.{node.arg}" for node in ast.walk(function) if isinstance(node, ast.arg)}
                found |= {
                    f"{function.name}.{node.id}"
                    for node in ast.walk(function)
                    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
                }
    return found


def probed(source):
    """Return the names that a proof asks of its ``probe``, also those of ``probe[f"f.{name}"] for name in (…)``."""
    found = set()
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and getattr(node.value, "id", "") == "probe":
            found |= {node.slice.value} if isinstance(node.slice, ast.Constant) else set()
    for node in ast.walk(tree):
        if isinstance(node, ast.GeneratorExp) and isinstance(node.elt, ast.Subscript):
            place = node.elt.slice
            if isinstance(place, ast.JoinedStr) and getattr(node.elt.value, "id", "") == "probe":
                (names,) = [each.iter for each in node.generators]
                found |= {f"{place.values[0].value}{name}" for name in ast.literal_eval(names)}
    return found


PROOFS = sorted(file for file in (TOP / "tb" / "formal").glob("test_*.py") if "probe[" in file.read_text())


@pytest.fixture(scope="module")
def known():
    return variables(TOP / "hdl" / "bentpipe_hdl")


@pytest.mark.parametrize("file", PROOFS, ids=lambda file: file.stem)
def test_the_variables_that_a_proof_looks_at_exist(file, known):
    asked = probed(file.read_text())
    assert asked and not asked - known


def test_a_name_that_has_moved_is_found():
    asked = probed('a, b = (probe[f"run.{name}"] for name in ("a", "b"))\nprobe["run.c"][3]')
    assert asked == {"run.a", "run.b", "run.c"}
