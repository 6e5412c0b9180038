"""Tests of where the native engine cuts words: never a value that is computed with, and alike wherever a word moves."""

from bentpipe_sim.native.fields import fields
from bentpipe_sim.native.netlist import Cell, Memory, Netlist, Register


def netlist(*cells, outputs=None):
    made = Netlist([*cells], {}, {})
    made.outputs = outputs or {}
    return made


def register(width, *args):
    return Cell("register", width, [*args], Register(0, None))


def cuts(found, home, width):
    return [low for low, _ in found.of(home, width)][1:]


def test_a_word_is_cut_where_something_takes_a_part():
    made = netlist(
        register(16, ((0, 0, 16),)),
        register(4, ((0, 4, 4),)),
        Cell("+", 4, [((1, 0, 4),), ((0, 0, 4),)]),
    )
    assert cuts(fields(made), 0, 16) == [4, 8]


def test_what_is_computed_with_stays_whole():
    made = netlist(
        register(16, ((0, 0, 16),)),
        register(4, ((0, 4, 4),)),
        Cell("==", 1, [((0, 0, 16),), ((-1, 7, 16),)]),
    )
    assert cuts(fields(made), 0, 16) == []


def test_both_ends_of_a_move_have_the_same_fields():
    made = netlist(
        register(8, ((1, 0, 8),)),
        register(8, ((0, 0, 8),)),
        Cell("~", 3, [((0, 0, 3),)]),
        Cell("u<", 1, [((1, 3, 5),), ((-1, 2, 5),)]),
    )
    found = fields(made)
    assert cuts(found, 0, 8) == cuts(found, 1, 8) == [3]


def test_rows_of_a_memory_are_cut_like_what_is_read_of_them_unless_they_are_whole():
    for whole, expected in ((False, [6]), (True, [])):
        made = netlist(
            Cell("memory", 12, [], Memory(4, (0,) * 4, whole)),
            Cell("read", 12, [((-1, 1, 2),)], 0),
            Cell("~", 6, [((1, 0, 6),)]),
        )
        assert cuts(fields(made), 0, 12) == expected


def test_assignments_of_a_part_cut_the_word():
    made = netlist(
        Cell("input", 1, [], "c"),
        Cell("assign", 8, [((-1, 0, 8),)], [(((0, 0, 1),), 2, ((-1, 1, 3),))]),
        register(8, ((1, 0, 8),)),
    )
    assert cuts(fields(made), 1, 8) == cuts(fields(made), 2, 8) == [2, 5]
