"""The native engine's graph of values: what folds, what stays, and that it is the same."""

import random

import pytest

from bentpipe_sim.native.graph import Graph, cat, constant, constant_of, cut, distinct, whole_node, width_of
from models.evaluation import Evaluation, operation

WIDTHS = (1, 2, 7, 33, 64, 70)
ONE_BIT = ("==", "u<", "s<", "r^", "r|", "r&", "b", "!=", "u>", "u>=", "u<=", "s>", "s>=", "s<=")
LIKE = {
    "r|": lambda a, _: a != 0,
    "b": lambda a, _: a != 0,
    "!=": lambda a, b: a != b,
    "u>": lambda a, b: a > b,
    "u>=": lambda a, b: a >= b,
    "u<=": lambda a, b: a <= b,
}


class Values:
    """Inputs of a graph, by number."""

    def __init__(self, numbers):
        self.numbers = numbers

    def of(self, node):
        return self.numbers[node.data] if node.op == "input" else None


def expected(op, width, args, data):
    if op in LIKE:
        return int(LIKE[op](args[0][0], args[-1][0]))
    if op == "r&":
        return int(args[0][0] == (1 << args[0][1]) - 1)
    if op in ("s>", "s>=", "s<="):
        less = operation("s<", 1, args if op == "s>=" else args[::-1], None)
        return less if op == "s>" else 1 - less
    return operation(op, width, args, data)


def made(graph, rng, inputs):
    """A random operation of random values, and what it has to be for the inputs' numbers."""

    def pick(width):
        kind = rng.randrange(4)
        if kind == 0:
            return constant(rng.choice([0, 1, (1 << width) - 1, rng.getrandbits(width)]), width)
        node = graph.node("input", 70, data=rng.randrange(len(inputs)))
        low = rng.randrange(71 - width)
        if kind == 1 and width > 1:
            return cat([cut(node, low, width - 1), constant(rng.getrandbits(1), 1)])
        return cut(node, low, width)

    op = rng.choice(["+", "-", "*", "&", "|", "^", "~", "<<", "u>>", "s>>", "m", "part", *ONE_BIT])
    width = rng.choice(WIDTHS)
    args, data, result = [pick(width), pick(width)], None, width
    if op in ("~", "r^", "r|", "r&", "b"):
        args = args[:1]
    elif op in ("<<", "u>>", "s>>"):
        args[1] = pick(rng.choice([1, 3, 7]))
    elif op == "m":
        args = [pick(1), *args]
    elif op == "part":
        args[1], data = pick(3), (rng.choice([1, 5]), bool(rng.getrandbits(1)))
        result = rng.randrange(1, width + 1)
    if op in ONE_BIT:
        result = 1
    return op, result, tuple(args), data


@pytest.mark.parametrize("seed", range(4))
def test_what_is_made_is_what_the_operation_gives(seed):
    rng, graph = random.Random(seed), Graph()
    for _ in range(400):
        inputs = [rng.choice([0, 1, (1 << 70) - 1, rng.getrandbits(70)]) for _ in range(3)]
        op, width, args, data = made(graph, rng, inputs)
        now = Evaluation(Values(inputs))
        bits = graph.make(op, width, args, data)
        assert width_of(bits) == width
        numbers = [(now.value(arg), width_of(arg)) for arg in args]
        assert now.value(bits) == expected(op, width, numbers, data), (op, width, args, data)


def input_bit(graph, number):
    return graph.node("input", 1, data=number)


def test_conditions_of_conditions_are_one_and_contradict_each_other():
    graph = Graph()
    a, b, c = (input_bit(graph, k) for k in range(3))
    both = graph.all([(a, True), (b, True)])
    assert graph.all([(both, True), (c, False)]) == graph.all([(a, True), (b, True), (c, False)])
    assert graph.all([(both, True), (a, False)]) == constant(0, 1)
    assert graph.no(graph.no(a)) == a


def test_what_never_holds_at_once_is_no_condition_any_more():
    graph = Graph()
    a, b, c = (input_bit(graph, k) for k in range(3))
    graph.forbid([(a, True), (b, False)])
    assert graph.all([(a, True), (c, True), (b, False)]) == constant(0, 1)
    assert constant_of(graph.all([(a, True), (c, True)])) is None
    assert graph.all([(a, True), (c, True), (b, True)]) == graph.all([(a, True), (c, True)])


def test_of_a_negation_only_what_the_rest_leaves_open_is_asked():
    graph = Graph()
    a, b, c = (input_bit(graph, k) for k in range(3))
    both = graph.all([(a, True), (b, True)])
    assert graph.all([(a, True), (both, False)]) == graph.all([(a, True), (b, False)])
    assert graph.all([(both, False), (a, False), (c, True)]) == graph.all([(a, False), (c, True)])
    other = graph.all([(c, True), (both, False)])
    assert graph.all([(a, True), (b, False), (other, False)]) == graph.all([(a, True), (b, False), (c, False)])


@pytest.mark.parametrize("seed", range(4))
def test_conditions_are_what_their_parts_say(seed):
    rng, graph = random.Random(seed), Graph()
    forms = [(input_bit(graph, k), lambda bits, k=k: bits >> k & 1) for k in range(4)]
    for _ in range(300):
        parts = [(*rng.choice(forms), rng.random() < 0.5) for _ in range(rng.randrange(1, 4))]
        made = graph.all((bit, wanted) for bit, _, wanted in parts)
        forms.append(
            (made, lambda bits, parts=parts: int(all(value_of(bits) == wanted for _, value_of, wanted in parts)))
        )
        for bits in range(16):
            assert Evaluation(Values([bits >> k & 1 for k in range(4)])).value(made) == forms[-1][1](bits)


@pytest.mark.parametrize("seed", range(4))
def test_a_bit_of_ones_at_places_is_a_comparison_of_the_places(seed):
    rng, graph = random.Random(seed), Graph()
    here, there, wide = (graph.node("input", width, data=k) for k, width in enumerate((3, 3, 8)))
    flags = [cut(graph.node("input", 8, data=3), k, 1) for k in range(8)]
    forms = [wide, *(graph.make("<<", 8, (constant(1, 8), place)) for place in (here, there))]
    for _ in range(40):
        a, b = rng.choice(forms), rng.choice(forms)
        op = rng.choice(["&", "|", "~", "choose"])
        if op == "choose":
            forms.append(graph.choose((rng.choice([a, constant(0, 8)]), rng.choice(flags), b)))
        else:
            forms.append(graph.make(op, 8, (a,) if op == "~" else (a, b)))
        bit = graph.make("part", 1, (forms[-1], here), (1, False))
        for _ in range(10):
            now = Evaluation(Values([rng.randrange(8), rng.randrange(8), rng.randrange(256), rng.randrange(256)]))
            assert now.value(bit) == now.value(forms[-1]) >> now.value(here) & 1
    one = graph.make("<<", 8, (constant(1, 8), here))
    assert graph.make("part", 1, (one, here), (1, False)) == constant(1, 1)
    assert graph.make("part", 1, (one, there), (1, False)) == graph.equal(here, there) == graph.equal(there, here)
    few = graph.make("<<", 5, (constant(1, 5), here))  # a place may be beyond it
    node = whole_node(graph.make("part", 1, (few, here), (1, False)))
    assert node is not None and node.op == "part"


def test_parts_assigned_under_one_condition_are_one_choice():
    graph = Graph()
    condition, word = input_bit(graph, 0), graph.node("input", 8, data=1)
    low = graph.choose((word, condition, cat([constant(5, 4), cut(word, 4, 4)])))
    both = graph.choose((low, condition, cat([cut(low, 0, 4), constant(9, 4)])))
    node = whole_node(both)
    assert node is not None and node.args == (word, condition, constant(0x95, 8))


def test_numbers_are_distinct_where_a_bit_is_the_opposite():
    graph = Graph()
    x, y = graph.node("input", 4, data=0), graph.node("input", 4, data=1)
    other = graph.make("^", 4, (x, constant(1, 4)))
    assert distinct(x, other) and distinct(other, x)
    assert not distinct(other, other) and not distinct(x, y)
    one, two = (cat([cut(x, 0, 2), constant(k, 2)]) for k in (1, 2))
    assert distinct(one, two) and distinct(graph.make("^", 4, (one, constant(1, 4))), two)
    assert not distinct(one, graph.make("^", 4, (two, constant(12, 4))))


def test_a_copy_with_something_known_folds():
    graph, other = Graph(), Graph()
    a, x = input_bit(graph, 0), graph.node("input", 8, data=1)
    choice = graph.choose((x, a, graph.make("+", 8, (x, constant(3, 8)))))
    known = whole_node(a)
    assert known is not None
    assert other.copy({known: constant(0, 1)})(choice) == other.node("input", 8, data=1)
    node = whole_node(other.copy({known: constant(1, 1)})(choice))
    assert node is not None and node.op == "+"


def test_a_known_bit_of_a_word_is_known_where_it_is_asked_for_alone():
    graph, other = Graph(), Graph()
    word = graph.node("input", 8, data=0)
    whole = whole_node(word)
    assert whole is not None
    copied = other.copy({}, flags={(whole, 3): True})
    assert copied(graph.all([(cut(word, 3, 1), True), (cut(word, 4, 1), True)])) == copied(cut(word, 4, 1))
    assert copied(word) == other.node("input", 8, data=0)
