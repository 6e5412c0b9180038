"""Functions stay short: at most 60 lines, in ``hdl`` and ``boards`` 100, and six parameters.

``sizes.txt`` beside this file lists what was longer when the limit came. The list may only shrink: a function in it
must not grow, and leaves it when it is within the limit. ``python tb/unit/test_sizes.py`` writes it anew, and refuses
to add to it.
"""

import ast
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
LISTED = Path(__file__).with_name("sizes.txt")
PACKAGES = ("hdl/bentpipe_hdl", "sim/bentpipe_sim", "sw/bentpipe", "boards/bentpipe_boards")
LINES, LINES_OF_HDL, PARAMETERS = 60, 100, 6


def functions(node, prefix=""):
    """Yield each function of a module or class with its dotted name, those inside of functions not by themselves."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            yield from functions(child, f"{prefix}{child.name}.")
        elif isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield f"{prefix}{child.name}", child


def parameters(function):
    """Count the parameters of a function without ``self``, ``cls``, ``*args`` and ``**kwargs``."""
    given = function.args
    names = [each.arg for each in [*given.posonlyargs, *given.args, *given.kwonlyargs]]
    return len([name for name in names if name not in ("self", "cls")])


@cache
def too_large():
    """Return ``{"file:function": (lines, parameters)}`` of all functions beyond a limit; 0: within it."""
    found = {}
    for package in PACKAGES:
        most = LINES_OF_HDL if package.startswith(("hdl", "boards")) else LINES
        for path in sorted((ROOT / package).rglob("*.py")):
            for name, function in functions(ast.parse(path.read_text())):
                lines = function.end_lineno - function.lineno + 1
                size = (lines if lines > most else 0, n if (n := parameters(function)) > PARAMETERS else 0)
                if any(size):
                    found[f"{path.relative_to(ROOT)}:{name}"] = size
    return found


def listed():
    """Return what ``sizes.txt`` lists, in the same form."""
    rows = [line.split() for line in LISTED.read_text().splitlines() if line and not line.startswith("#")]
    return {name: (int(lines), int(count)) for name, lines, count in rows}


def test_no_function_is_longer_than_the_limit_but_those_listed():
    known = listed()
    new = {
        name: size
        for name, size in too_large().items()
        if any(a > b for a, b in zip(size, known.get(name, (0, 0)), strict=True))
    }
    assert not new, "split these by stage, or give them one object (lines, parameters; 0: within the limit)"


def test_the_list_only_shrinks():
    assert too_large() == listed(), "these got shorter: python tb/unit/test_sizes.py"


def main():
    """Write the list anew, without functions that are new in it."""
    now, known = too_large(), listed() if LISTED.exists() else None
    kept = {name: size for name, size in now.items() if known is None or name in known}
    text = "# lines and parameters of functions beyond the limits, 0: within; see test_sizes.py\n"
    LISTED.write_text(text + "".join(f"{name} {size[0]} {size[1]}\n" for name, size in sorted(kept.items())))
    return len(now) - len(kept)


if __name__ == "__main__":
    sys.exit(main() > 0)
