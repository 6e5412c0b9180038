"""The same bench in Amaranth's simulator and in the native one: what they give has to be the same."""

import random
from functools import partial

import amaranth.sim

from bentpipe_hdl.amaranth_simulation import memories, scopes
from bentpipe_sim.native import Simulator
from models.random_circuit import RandomCircuit, stimulus

BOTH = (amaranth.sim.Simulator, partial(Simulator, is_short=True))
PERIODS = {"sync": 1e-6, "fast": 0.3e-6, "falling": 1e-6, "cleared": 0.7e-6}


def named(simulator):
    """All signals of a design, and all rows of its memories, by name."""
    found = {}
    for signal, name in scopes(simulator._design):
        if len(signal):
            found.setdefault(".".join(name), signal)
    for memory, name in memories(simulator._design):
        found |= {f"{'.'.join(name)}[{k}]": memory[k] for k in range(memory.depth)}
    return found


def unlike(one, other):
    """The first difference of two lists of dictionaries."""
    assert len(one) == len(other)
    for k, (a, b) in enumerate(zip(one, other, strict=True)):
        for name in a:
            if a[name] != b[name]:
                return f"{k}: {name} {a[name]} {b[name]}"
    return None


def history(kind, seed, clocks, domains, *, is_reset):
    """All signals and rows of a random circuit before and after each edge of a clock, with random inputs."""
    circuit, rng, seen = RandomCircuit(seed, domains, is_reset=is_reset), random.Random(seed), []
    simulator = kind(circuit)
    for domain in domains:
        simulator.add_clock(PERIODS[domain], domain=domain)
    signals, made = named(simulator), simulator._design.fragment.domains
    resets = [made[domain].rst for domain in domains if is_reset and made[domain].rst is not None]

    async def bench(ctx):
        for _ in range(clocks):
            for name, value in stimulus(rng).items():
                ctx.set(getattr(circuit, name), value)
            for reset in resets:
                if rng.random() < 0.1:
                    ctx.set(reset, rng.random() < 0.5)
            seen.append({name: ctx.get(signal) for name, signal in signals.items()})
            await ctx.tick(rng.choice(domains))
            seen.append({name: ctx.get(signal) for name, signal in signals.items()})

    simulator.add_testbench(bench)
    simulator.run()
    return seen


def compared(seed, clocks, domains, *, is_reset=False, kinds=BOTH):
    """Return the difference of a random circuit in the two simulators; None if there is none."""
    one, other = (history(kind, seed, clocks, domains, is_reset=is_reset) for kind in kinds)
    return unlike(one, other)


def everything(kind, toplevel, inputs, clocks=60, domains=("sync",), seed=1):
    """All signals of any design before and after each clock, with random values of some signals: ``(signal, how often
    it gets another value)``."""
    rng, seen = random.Random(seed), []
    simulator = kind(toplevel)
    for domain in domains:
        simulator.add_clock(PERIODS.get(domain, 1e-6), domain=domain, if_exists=True)
    signals = named(simulator)

    async def bench(ctx):
        for _ in range(clocks):
            for signal, often in inputs:
                if rng.random() < often:
                    ctx.set(signal, rng.getrandbits(len(signal)))
            seen.append({name: ctx.get(signal) for name, signal in signals.items()})
            await (ctx.tick(domains[0]) if domains else ctx.delay(1e-6))
            seen.append({name: ctx.get(signal) for name, signal in signals.items()})

    simulator.add_testbench(bench)
    simulator.run()
    return seen
