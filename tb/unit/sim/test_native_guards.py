"""Tests of what the native engine knows at each place: contexts of conditions, and values in them."""

from bentpipe_sim.native.graph import Graph, constant, whole_node
from bentpipe_sim.native.guards import Guards, literal_of


def bits(graph, *names):
    return [graph.node("input", 1, data=name) for name in names]


def inside(guards, *conditions):
    context = guards.root
    for condition in conditions:
        context = guards.within(context, condition)
        assert context is not None
    return context


def test_a_condition_of_conditions_is_blocks_in_each_other():
    graph, guards = Graph(), Guards()
    a, b = bits(graph, "a", "b")
    both = inside(guards, graph.all([(a, True), (b, True)]))
    assert [each.literal for each in both.path()] == [literal_of(a, True), literal_of(b, True)]
    assert guards.within(both, graph.no(a)) is None


def test_contexts_have_in_common_what_lies_outside_of_both():
    graph, guards = Graph(), Guards()
    a, b, c = bits(graph, "a", "b", "c")
    one, other = inside(guards, a, b), inside(guards, a, c)
    assert one.common(other) is inside(guards, a)
    assert not one.disjoint(other)
    assert inside(guards, a, b).disjoint(inside(guards, c, graph.no(b)))


def test_different_numbers_are_apart():
    graph, guards = Graph(), Guards()
    x = graph.node("input", 4, data="x")
    one, two = (inside(guards, graph.equal(x, constant(k, 4))) for k in (1, 2))
    assert one.disjoint(two)
    assert guards.bit(graph.equal(x, constant(2, 4)), one) is False


def test_a_choice_that_is_decided_is_what_was_chosen():
    graph, guards = Graph(), Guards()
    a, b = bits(graph, "a", "b")
    x, y = (graph.node("input", 8, data=name) for name in "xy")
    choice = graph.choose((x, a, y))
    assert guards.value(choice, inside(guards, a)) == y
    assert guards.value(choice, inside(guards, graph.no(a))) == x
    assert guards.value(choice, inside(guards, b)) == choice


def test_one_of_several_holds_where_what_they_share_does():
    graph, guards = Graph(), Guards()
    a, b, c = bits(graph, "a", "b", "c")
    either = graph.any([graph.all([(a, True), (b, True)]), graph.all([(a, True), (c, True)])])
    path = inside(guards, either).path()
    assert path[0].literal == literal_of(a, True) and len(path) == 2
    assert guards.bit(either, inside(guards, a, b)) is True
    assert guards.bit(either, inside(guards, graph.no(a))) is False


def test_a_bit_that_is_not_one_of_these_is_asked_as_its_opposite():
    graph = Graph()
    (a,) = bits(graph, "a")
    node = whole_node(graph.no(a))
    assert node is not None and literal_of(graph.no(a), True) == literal_of(a, False)
