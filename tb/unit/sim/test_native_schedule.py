"""The native engine's statements and their order, worked out in Python: random designs against Amaranth's simulator,
whole and with something known."""

import itertools
import random
from functools import cache

import pytest
from amaranth.sim import Simulator

from bentpipe_sim.native.design import Design, Register, design
from bentpipe_sim.native.graph import Graph, constant, constant_of
from bentpipe_sim.native.guards import literal_of
from bentpipe_sim.native.netlist import read
from bentpipe_sim.native.schedule import Branch, schedule
from models.evaluation import Evaluation, State, after, run
from models.random_design import RandomDesign, stimulus

CLOCKS, SEEDS = 30, range(4)


@cache
def made(seed):
    return design(read(RandomDesign(seed), "random"))


def states(whole, rng):
    """States as they come one after the other, with inputs."""
    state = State(whole)
    for _ in range(CLOCKS):
        state.inputs = stimulus(rng)
        yield state
        state = after(whole, state)


def alike(one, other):
    assert one.registers == other.registers
    assert one.memories == other.memories


@pytest.mark.parametrize("seed", SEEDS)
def test_a_design_is_what_amaranth_says(seed):
    component, rng = RandomDesign(seed), random.Random(seed)
    whole = design(read(component, "random"))
    inputs = {name: getattr(component, name) for name in whole.inputs if name != "rst"}

    async def bench(ctx):
        for state in states(whole, rng):
            for name, value in state.inputs.items():
                ctx.set(inputs[name], value)
            for name, bits in whole.outputs.items():
                assert ctx.get(getattr(component, name)) == Evaluation(state).value(bits), name
            await ctx.tick()

    simulator = Simulator(component)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


@pytest.mark.parametrize("seed", SEEDS)
def test_its_plan_does_the_same(seed):
    whole, rng = made(seed), random.Random(seed)
    plan = schedule(whole, {})
    for state in states(whole, rng):
        alike(run(plan, state)[0], after(whole, state))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_plan_of_what_is_known_does_the_same_where_that_holds(seed):
    whole, rng = made(seed), random.Random(seed)
    known = {register: register.mark[1] for register in whole.registers if register.mark}
    bodies = [
        (comes, schedule(whole.known(known, {"i_valid": comes, "time_tick": 1, "csr_w_en": 0}), known))
        for comes in (0, 1)
    ]
    for state in states(whole, rng):
        state.registers |= known
        for comes, plan in bodies:
            state.inputs |= {"i_valid": comes, "time_tick": 1, "csr_w_en": 0}
            alike(run(plan, state)[0], after(whole, state))


@pytest.mark.parametrize("seed", SEEDS)
def test_what_decides_gives_a_body_for_each_answer(seed):
    whole, rng = made(seed), random.Random(seed)
    for bit, _ in whole.deciding:
        asked = schedule(whole.only(bit, "answer"), {}, outputs=True)
        bodies = [schedule(whole.given(bit, bool(answer)), {}) for answer in (0, 1)]
        for state in states(whole, rng):
            answer = run(asked, state)[1]["answer"]
            assert answer == Evaluation(state).value(bit)
            alike(run(bodies[answer], state)[0], after(whole, state))


def test_that_not_all_hold_does_not_say_which():
    graph = Graph()
    a, b, c = (graph.node("input", 1, data=name) for name in "abc")
    both = graph.all([(a, True), (b, True)])
    outputs = {"a": a, "both": both, "all": graph.all([(c, True), (both, True)])}
    whole = Design(graph, dict.fromkeys("abc", 1), outputs)
    found = {holds: whole.given(both, holds).outputs for holds in (False, True)}
    assert {name: constant_of(bits) for name, bits in found[False].items()} == {"a": None, "both": 0, "all": 0}
    assert {name: constant_of(bits) for name, bits in found[True].items()} == {"a": 1, "both": 1, "all": None}


def test_a_dear_part_of_a_condition_is_asked_only_if_the_cheap_ones_hold():
    graph = Graph()
    a, x, y = (graph.node("input", width, data=name) for name, width in (("a", 1), ("x", 8), ("y", 8)))
    dear = graph.equal(graph.make("+", 8, (x, y)), constant(3, 8))
    found = Register("found", 1, 0, None)
    whole = Design(graph, {"a": 1, "x": 8, "y": 8}, registers={found: graph.all([(a, False), (dear, True)])})
    plan = schedule(whole, {})
    (branch,) = (item for item in plan.tree if isinstance(item, Branch))
    assert branch.arms[0][0] == literal_of(a, False) and len(branch.arms[0][1]) == 3
    for inputs in itertools.product((0, 1), (0, 2, 3), (0, 1)):
        state = State(whole)
        state.inputs = dict(zip("axy", inputs, strict=True))
        alike(run(plan, state)[0], after(whole, state))


def test_a_value_is_worked_out_in_each_of_the_contexts_that_exclude_each_other():
    graph = Graph()
    widths = {"a": 1, "b": 1, "x": 8, "y": 8}
    a, b, x, y = (graph.node("input", width, data=name) for name, width in widths.items())
    total = graph.make("+", 8, (x, y))
    one, other = (Register(name, 8, 0, None) for name in ("one", "other"))
    whole = Design(graph, widths)
    whole.registers = {
        one: graph.choose((whole.register(one), a, total)),
        other: graph.choose((whole.register(other), graph.all([(a, False), (b, True)]), total)),
    }
    plan = schedule(whole, {})
    assert all(isinstance(item, Branch) for item in plan.tree)
    for values in itertools.product((0, 1), (0, 1), (2, 3), (5,)):
        state = State(whole)
        state.inputs = dict(zip(widths, values, strict=True))
        alike(run(plan, state)[0], after(whole, state))


def test_random_designs_ask_decide_and_copy():
    """The random designs have the cases that the tests above check."""
    wholes = [made(seed) for seed in SEEDS]
    assert sum(bool(whole.deciding) for whole in wholes) > 2
    plans = [schedule(whole, {}) for whole in wholes]
    assert sum(bool(plan.copied) for plan in plans) > 2

    def depth(tree):
        return max((1 + depth(inner) for item in tree if isinstance(item, Branch) for _, inner in item.arms), default=0)

    assert max(depth(plan.tree) for plan in plans) > 3
