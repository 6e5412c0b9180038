"""Tests that the contracts in ``pyproject.toml`` (``make lint``) are not broken by way of Python either, and that
registers are addressed by name.
"""

import ast
import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]
CONTRACTS = tomllib.loads((TOP / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
WITHOUT_AMARANTH = [c for c in CONTRACTS if "amaranth" in c.get("forbidden_modules", ())]

IMPORT_ALL = """
import importlib, json, pkgutil, sys
for name in json.loads(sys.argv[1]):
    module = importlib.import_module(name)
    for below in pkgutil.walk_packages(getattr(module, "__path__", ()), name + "."):
        importlib.import_module(below.name)
print(json.dumps(sorted(sys.modules)))
"""


def modules(pattern):
    """The modules that a contract's pattern names: a star stands for one part of the name."""
    if "*" not in pattern:
        return [pattern]
    package, *below = pattern.split(".")
    folder = next(TOP.glob(f"*/{package}"))
    files = sorted(folder.glob("/".join(below) + ".py"))
    assert files, pattern
    return [".".join((package, *file.relative_to(folder).with_suffix("").parts)) for file in files]


@pytest.mark.parametrize("contract", WITHOUT_AMARANTH, ids=lambda contract: contract["name"])
def test_importing_modules_does_not_load_what_is_forbidden_to_them(contract):
    """A package's ``__init__`` runs with each of its modules, which the contracts don't see."""
    sources = [name for pattern in contract["source_modules"] for name in modules(pattern)]
    command = [sys.executable, "-c", IMPORT_ALL, json.dumps(sources)]
    loaded = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert set(sources) <= set(loaded)
    assert not set(contract["forbidden_modules"]) & set(loaded)


ADDRESSES = {"read": 1, "write": 1, "write_wide": 1, "peek": 1, "poke": 1, "csr_read": 2, "csr_write": 2}
"""Functions on a bus, and in how many arguments, the first ones, an address may stand."""


def literal_addresses(source):
    """Lines with a call of such a function in which a hexadecimal number stands in an address."""
    if "0x" not in source or not any(f"{name}(" in source for name in ADDRESSES):
        return []  # not parsed: that takes ten times as long
    lines = source.splitlines()
    found = set()
    for call in ast.walk(ast.parse(source)):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute | ast.Name):
            name = call.func.attr if isinstance(call.func, ast.Attribute) else call.func.id
            places = [node for given in call.args[: ADDRESSES.get(name, 0)] for node in ast.walk(given)]
            numbers = [node for node in places if isinstance(node, ast.Constant) and isinstance(node.value, int)]
            found |= {n.lineno for n in numbers if lines[n.lineno - 1][n.col_offset :].startswith("0x")}
    return [lines[number - 1].strip() for number in sorted(found)]


def test_no_register_is_addressed_by_number():
    files = [file for folder in ("hdl", "sim", "sw", "boards", "tb") for file in sorted((TOP / folder).rglob("*.py"))]
    found = {str(file.relative_to(TOP)): literal_addresses(file.read_text()) for file in files}
    assert not {file: lines for file, lines in found.items() if lines}


def test_an_address_in_figures_is_found():
    source = "bus.write(0x0006, 1)\nbus.write(at, 0xFF)\nnode.csr_read(3, 0x30000 + vc)\nfile.read(16)\n"
    assert literal_addresses(source) == ["bus.write(0x0006, 1)", "node.csr_read(3, 0x30000 + vc)"]


def test_modules_without_amaranth_have_their_types_checked():
    """The modules of ``hdl`` that the contract names are in the type checker's list, and no others."""
    settings = tomllib.loads((TOP / "pyproject.toml").read_text())["tool"]["pyright"]
    checked = {place for place in settings["include"] if place.startswith("hdl/")}
    [contract] = (c for c in WITHOUT_AMARANTH if c["name"].startswith("Registers, settings"))
    names = [name.replace(".", "/") for name in contract["source_modules"] if name.startswith("bentpipe_hdl")]
    assert checked == {f"hdl/{name}.py" for name in names}
