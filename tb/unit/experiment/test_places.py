"""Lines of the keys of TOML documents."""

from pathlib import Path

import pytest

from bentpipe.experiment.document.catalogue import catalogue, networks, read_document
from bentpipe.experiment.document.places import lines
from bentpipe.experiment.document.source import ConfigProblem, Source

TEXT = """# [no]
a = \"\"\"
[x]
b = 1 \\\"\"\"
\"\"\"\"
"q.\\u0072" = [ 1, # ]
  [2, "]"],
  { z = 1, 'y'.w = {} }
]
[ n . "m" ]
c.d = 1979-05-27 07:32:00
e = 'x#'
[[f]]
g = 1
[f.h]
i = {j = "}", k = [1,2]}
[[f]]
g = '''
[[f]]
'''
[[f.p]]
q=""
[[f.p]]
[last]
"""

PLACES = {
    "a": 2, "q.r": 6, "q.r.0": 6, "q.r.1": 7, "q.r.1.0": 7, "q.r.1.1": 7, "q.r.2": 8, "q.r.2.z": 8, "q.r.2.y": 8,
    "q.r.2.y.w": 8, "n": 10, "n.m": 10, "n.m.c": 11, "n.m.c.d": 11, "n.m.e": 12, "f": 13, "f.0": 13, "f.0.g": 14,
    "f.0.h": 15, "f.0.h.i": 16, "f.0.h.i.j": 16, "f.0.h.i.k": 16, "f.0.h.i.k.0": 16, "f.0.h.i.k.1": 16, "f.1": 17,
    "f.1.g": 18, "f.1.p": 21, "f.1.p.0": 21, "f.1.p.0.q": 22, "f.1.p.1": 23, "last": 24,
}  # fmt: skip


def paths(value, above=""):
    """Every key of a document, and every entry of its arrays, by its dotted path."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        path = f"{above}.{key}" if above else str(key)
        yield path
        yield from paths(inner, path)


def test_every_key_has_its_line(tmp_path):
    file = tmp_path / "x.toml"
    file.write_text(TEXT)
    assert lines(TEXT) == PLACES
    assert set(paths(read_document(file)[0])) == set(PLACES)


@pytest.mark.parametrize("name", catalogue())
def test_every_key_of_the_catalogue_has_a_line_with_its_name(name):
    document, text = read_document(catalogue()[name])
    found = lines(text)
    assert set(found) == set(paths(document))
    for path, line in found.items():
        last = path.rpartition(".")[2]
        assert last.isdigit() or last in text.splitlines()[line - 1], (path, line)


STRUCTURE = {
    "name", "at", "curve", "label", "what",
    "ends", "port", "source", "sink", "path", "vc", "return_vc", "from", "to", "vci",
}  # fmt: skip
"""What lays out a network, or names its parts, needs no place of its own."""


@pytest.mark.parametrize("name", catalogue() | networks())
def test_every_parameter_of_the_catalogue_has_its_place_in_a_paper_or_a_reason(name, monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[3] / "docs")
    import generate

    found = [*generate.parameters((catalogue() | networks())[name].read_text())]
    assert [p for p in found if not p.place and p.key not in STRUCTURE] == []


def test_an_error_names_the_line_of_the_key_or_of_the_table_around_it():
    source = Source("x.toml", TEXT)
    assert str(source.error(ConfigProblem("f.1.g", "bad"))) == "x.toml:18: f.1.g: bad"
    assert str(source.error(ConfigProblem("f.0.h.missing", "bad"))).startswith("x.toml:15: ")
    assert str(source.error(ConfigProblem("missing", "bad"))) == "x.toml: missing: bad"
