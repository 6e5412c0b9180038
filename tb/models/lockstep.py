"""A compiled model beside Amaranth's simulator, clock by clock."""

from amaranth.sim import Simulator

from models.compiled import CompiledModel


def side_by_side(shape, clocks, stimulus, path):
    """The model at ``path`` and Amaranth's simulator get the same inputs; ``stimulus(clock, outputs)`` gives them. What
    the outputs were, a dictionary a clock. AssertionError: they are different."""
    component = shape.component()
    model = CompiledModel(path)
    members = {"_".join(map(str, path)): (m, value) for path, m, value in component.signature.flatten(component)}
    signals = {name: value.as_value() if hasattr(value, "as_value") else value for name, (_, value) in members.items()}
    outputs = [name for name, (m, _) in members.items() if m.flow.name == "Out" and name in model.ports]
    seen = []

    async def bench(ctx):
        before = dict.fromkeys(outputs, 0)
        for clock in range(clocks):
            for name, value in stimulus(clock, before).items():
                ctx.set(signals[name], value)
                model.set(name, value)
            await ctx.tick()
            model.clock()
            before = {name: ctx.get(signals[name]) for name in outputs}
            got = {name: model.get(name) for name in outputs}
            assert got == before, f"clock {clock}"
            seen.append(before)

    simulator = Simulator(component)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return seen
