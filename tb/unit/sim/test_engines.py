"""A node of each engine does at every clock what Amaranth's simulator does with the same component."""

import random

import pytest
from amaranth.sim import Simulator

from bentpipe_hdl.bit_errors import scale_of
from bentpipe_hdl.link.control import link_registers
from bentpipe_hdl.link.link import CELL_BITS
from bentpipe_hdl.lookup_table import lookup_table
from bentpipe_hdl.nic.control import nic_registers
from bentpipe_hdl.switch.control import switch_registers
from bentpipe_sim.build import Shape, build_model
from models.compiled import CompiledModel
from models.registers import written

SHAPES = [
    Shape.of("switch", vcs=8, cells=12, ports=2),
    Shape.of("nic", vcs=4),
    Shape.of("link"),
]
REGISTERS = {
    "switch": switch_registers(vcs=8, cells=12, ports=2),
    "nic": nic_registers(vcs=4),
    "link": link_registers(),
}


def _setup(shape, rng):
    """Register writes that make the node do something: VCs, rates, errors."""

    def switch(csr):
        csr.processing_delay, csr.epd_threshold, csr.clp_threshold = 2, 8, 9
        for port in range(2):
            csr.period[port] = 15 << 16 | 0x8000
        lookup_table(8, {(vc % 2, 0, vc // 2): vc for vc in range(8)}).write(csr)
        for vc in range(8):
            policy = rng.getrandbits(3)
            csr.vc_policy[vc] = 6 | 3 << 16 | rng.randrange(2) << 32 | policy << 36 | 1 << 39
            csr.vc_header[vc] = {"vci": 40 + vc}

    def nic(csr):
        csr.line_period = 2 << 16
        lookup_table(4, {(0, 0, vc): vc for vc in range(4)}).write(csr)
        for vc in range(4):
            csr.tx_header[vc] = {"vci": vc}
            csr.rx_limit[vc] = 3 + vc
            csr.tx_period[vc] = rng.randrange(2 << 16, 9 << 16)

    def link(csr):
        csr.error_mantissa, csr.error_shift = scale_of(1e-3)
        csr.gap = 100
        csr.seed = 12345
        csr.error_enable = 1

    return written(REGISTERS[shape.kind], {"switch": switch, "nic": nic, "link": link}[shape.kind])


def _stimulus(rng, ports, now, clock, setup, registers, room):
    """Values for all inputs; registers are set up first, then settings change now and then. ``room`` is a link's."""
    values = {name: rng.getrandbits(width) for name, width in ports.items()}
    values["time_now"] = now
    values["time_tick"] = int(rng.random() < 0.8)
    values["i_valid"] = int(rng.random() < 0.7)
    values["i_hec_error"] = int(rng.random() < 0.05)
    values["i_header"] = rng.randrange(5) << 4 | rng.choice([0, 0, 0, 2, 2, 8]) | rng.getrandbits(1)
    values["csr_w_en"] = values["csr_r_en"] = 0
    if setup and clock > 50:
        values["csr_addr"], values["csr_w_data"] = setup.pop(0)
        values["csr_w_en"] = 1
    elif rng.random() < 0.05:
        values["csr_r_en"] = 1
        values["csr_addr"] = rng.choice([register.addr for register in registers]) + rng.randrange(12)
    elif rng.random() < 0.02:
        values["csr_w_en"] = 1
        values["csr_addr"], values["csr_w_data"] = rng.choice(
            [(register.addr, value) for register in registers[:8] for value in (0, 1, 7, 12)]
        )
    if "passed" in ports:  # cells go by in a clock without anything else
        values["passed"] = 0
        if room >= CELL_BITS and not values["csr_w_en"] and not values["csr_r_en"] and rng.random() < 0.2:
            values["time_tick"] = values["i_valid"] = 0
            values["passed"] = rng.randint(1, min(3, room // CELL_BITS))
    if "post_length" in ports:
        values["i_header"] |= (clock & 1) << 2  # EFCI, or RM cells
        values["post_length"] = rng.choice([0, 1, 40, 41, 47, 48, 100, 200])
        if rng.random() < 0.3:  # a trailer now and then, so that a length may fit
            values["i_payload"] = rng.randrange(96) << 344
    return values


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_model_equals_amaranth(shape):
    """Both engines' models run beside one simulation, which takes most of the time."""
    component = shape.component()
    models = {engine: CompiledModel(build_model(shape, engine)) for engine in ("native", "verilator")}
    model = models["native"]
    members = {
        "_".join(str(part) for part in path): (member, value)
        for path, member, value in component.signature.flatten(component)
    }
    inputs = {
        name: model.ports[name][1] for name, (m, _) in members.items() if m.flow.name == "In" and name in model.ports
    }
    outputs = [name for name, (m, _) in members.items() if m.flow.name == "Out" and name in model.ports]
    rng = random.Random(f"{shape}")
    setup = _setup(shape, rng)
    differences = []
    seen = {name: set() for name in outputs}

    async def bench(ctx):
        now = 5
        for clock in range(600):
            now += rng.choice([1, 1, 1, 1, 3, 20, 1 << 20 if clock % 300 == 299 else 1])
            room = model.get("room") if "room" in model.ports else 0
            registers = REGISTERS[shape.kind].registers
            for name, value in _stimulus(rng, inputs, now, clock, setup, registers, room).items():
                if name not in inputs:
                    continue
                signal = members[name][1]
                signal = signal if not hasattr(signal, "as_value") else signal.as_value()
                ctx.set(signal, value)
                for other in models.values():
                    other.set(name, value)
            await ctx.tick()
            for other in models.values():
                other.clock()
            for name in outputs:
                signal = members[name][1]
                signal = signal if not hasattr(signal, "as_value") else signal.as_value()
                expected = ctx.get(signal)
                seen[name].add(expected)
                for engine, other in models.items():
                    if expected != (got := other.get(name)):
                        differences.append(f"clock {clock}, {engine}: {name} is {got:#x}, not {expected:#x}")
                        return

    simulator = Simulator(component)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert not differences, differences[0]
    still = {"link": {"status_idle", "status_due"}}.get(shape.kind, {"o_hec_error"})
    quiet = {name for name, values in seen.items() if len(values) < 2}
    assert quiet <= still, f"the stimulus never moved {quiet - still}"
