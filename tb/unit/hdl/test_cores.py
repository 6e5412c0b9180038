"""The cores of switch, NIC and link name no option, so that an option is its folder and its key, and nothing else."""

import ast
import re
from pathlib import Path

import pytest

import bentpipe_hdl.switch
from bentpipe_hdl.link.options import OPTIONS as LINK_OPTIONS
from bentpipe_hdl.nic.options import OPTIONS as NIC_OPTIONS
from bentpipe_hdl.switch.options import OPTIONS
from bentpipe_hdl.switch.options.plugin import Plugins
from bentpipe_hdl.switch.switch import Switch

HDL = Path(bentpipe_hdl.__path__[0])
SWITCH, NIC, LINK = HDL / "switch", HDL / "nic", HDL / "link"
CORES = {
    SWITCH: [SWITCH / "switch.py", SWITCH / "path.py", *sorted((SWITCH / "core").glob("*.py"))],
    NIC: [NIC / "nic.py", NIC / "core.py"],
    LINK: [LINK / f"{name}.py" for name in ("link", "datapath", "wide", "narrow", "errors")],
}
FOLDERS = {node: {path.parent.name for path in (node / "options").glob("*/control.py")} for node in CORES}
NAMES = {
    SWITCH: {option.name.replace("-", "_") for option in OPTIONS} | FOLDERS[SWITCH],
    NIC: {option.name for option in NIC_OPTIONS} | FOLDERS[NIC],
    LINK: {option.name for option in LINK_OPTIONS if option.name} | (FOLDERS[LINK] - {"delay"}),
}
GENERAL = {"shape", "frames", "path"}
"""Shapes of Amaranth, frames of AAL5 and the datapath are no options: these words count as a whole string or import."""
MOST_LINES = 40
"""Of ``elaborate``."""


def words(text):
    """The words of an identifier, in lower case, as one name: ``ClpThreshold`` is ``_clp_threshold_``."""
    return f"_{re.sub('(?<=[a-z0-9])(?=[A-Z])', '_', text).lower()}_"


def names_in(tree):
    """The identifiers of a module, and its strings but for docstrings; whether each is a string or an import."""
    docstrings = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    }
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if id(node) not in docstrings:
                yield text, True
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) | ast.keyword(arg=str(name)):
                yield name, False
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name, False
            case ast.ImportFrom(module=module):
                yield from ((name, True) for name in module.split("."))
                yield from ((alias.name, True) for alias in node.names)


@pytest.mark.parametrize(("node", "path"), [(node, path) for node, paths in CORES.items() for path in paths],
                         ids=lambda path: path.name)  # fmt: skip
def test_core_names_no_option(node, path):
    found = [
        (text, name)
        for text, plain in names_in(ast.parse(path.read_text()))
        for name in NAMES[node]
        if (plain and text == name if name in GENERAL else f"_{name}_" in words(text))
    ]
    assert found == []


def test_core_imports_nothing_of_an_option():
    imports = [line for path in CORES[SWITCH] for line in path.read_text().splitlines() if "switch.options" in line]
    assert imports == [
        "from bentpipe_hdl.switch.options import options_of",
        "from bentpipe_hdl.switch.options.plugin import Plugins",
    ]


@pytest.mark.parametrize("path", [paths[0] for paths in CORES.values()], ids=lambda path: path.name)
def test_elaborate_is_short(path):
    (elaborate,) = (
        node
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef) and node.name == "elaborate"
    )
    assert elaborate.end_lineno - elaborate.lineno + 1 <= MOST_LINES


def test_each_option_is_a_folder_with_a_plugin_and_a_bit_of_its_own():
    plugins = Plugins.of(OPTIONS)
    assert sorted(name for plugin in plugins for name in plugin.options) == sorted(option.name for option in OPTIONS)
    assert len({option.bit for option in OPTIONS}) == len(OPTIONS)
    assert len(plugins) == len(FOLDERS[SWITCH])
    assert [plugin.order for plugin in plugins] == sorted(plugin.order for plugin in plugins)


def test_members_come_from_plugins():
    plain = set(Switch(vcs=2, cells=2, ports=2).signature.members)
    for option in OPTIONS:
        (plugin,) = Plugins.of([option])
        more = set(Switch(vcs=2, cells=2, ports=2, options=1 << option.bit).signature.members) - plain
        assert more == {*plugin.members(vcs=2, ports=2), *(["drop_pti"] if option.makes_cells else [])}
