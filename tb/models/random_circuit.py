"""Random circuits of everything that Amaranth has: all operators with and without signs, memories with any ports,
clock domains of both edges and both kinds of reset."""

# Members and operators of components are made at run time.
# pyright: reportAttributeAccessIssue=false, reportOperatorIssue=false, reportCallIssue=false
# pyright: reportArgumentType=false, reportIndexIssue=false, reportGeneralTypeIssues=false

import random

from amaranth.hdl import Array, Cat, ClockDomain, Const, Module, Mux, Shape, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

WIDTHS = (1, 1, 2, 3, 7, 8, 16, 31, 32, 33, 63, 64, 65, 100, 130)
DOMAINS = {
    "sync": {},
    "fast": {"reset_less": True},
    "falling": {"clk_edge": "neg"},
    "cleared": {"async_reset": True},
}
INPUTS = {"a": Shape(40), "b": signed(16), "c": Shape(3), "d": Shape(100), "e": signed(70)}


class RandomCircuit(wiring.Component):
    """Some wires, registers and memories; ``domains`` are names of :data:`DOMAINS`, all made by the circuit itself.

    With ``is_reset`` it has nothing on which a reset acts in Amaranth's simulator (0.5.10) and not in the netlist:
    ports of memories in a domain with a reset, registers without a reset in a domain with an asynchronous one.
    """

    def __init__(self, seed, domains=("sync",), *, is_reset=False, wires=10, registers=8, memories=2):
        self._seed, self.domains, self.is_reset = seed, domains, is_reset
        self._counts = wires, registers, memories
        super().__init__({**{name: In(shape) for name, shape in INPUTS.items()}, "seen": Out(64), "through": Out(33)})

    def elaborate(self, platform):
        m = Module()
        for name in self.domains:
            setattr(m.domains, name, ClockDomain(name, **DOMAINS[name]))
        _Maker(self, m).run(*self._counts)
        return m


class _Maker:
    def __init__(self, circuit, m):
        self.circuit, self.m, self.rng = circuit, m, random.Random(circuit._seed)
        self.values = [getattr(circuit, name) for name in INPUTS]
        self.in_order = {}  # names of wires that are made of what was before

    def shape(self):
        return Shape(self.rng.choice(WIDTHS), self.rng.random() < 0.4)

    def domain(self, of_memory=False):
        domains = self.circuit.domains
        if of_memory and self.circuit.is_reset:
            domains = [name for name in domains if DOMAINS[name].get("reset_less")]
        return self.rng.choice(domains) if domains else None

    def pick(self, most=None):
        rng = self.rng
        value = rng.choice(self.values)
        if rng.random() < 0.15:
            value = Const(rng.getrandbits(9) - 256, self.shape())
        if rng.random() < 0.3 and len(value) > 1:
            low = rng.randrange(len(value))
            value = value[low : rng.randrange(low, len(value)) + 1]
        if rng.random() < 0.2:
            value = value.as_signed() if rng.random() < 0.5 else value.as_unsigned()
        if most is not None:
            value = value[:most] if value.shape().signed is False else value[:most].as_signed()
        return value

    def signal(self):
        return self.rng.choice(self.values)

    def condition(self):
        x, y = self.expression(1), self.expression(1)
        match self.rng.randrange(6):
            case 0:
                return x == y
            case 1:
                return x < y
            case 2:
                return x >= y
            case 3:
                return x != self.rng.randrange(-2, 3)
            case 4:
                return x.any() & y.bool()
        return x[0] if len(x) else x

    def unsigned(self, most):
        return self.pick(most).as_unsigned()

    def expression(self, depth=2):
        rng = self.rng
        if not depth or rng.random() < 0.15:
            return self.pick()
        x, y = self.expression(depth - 1), self.expression(depth - 1)
        makers = (
            lambda: x + y,
            lambda: x - y,
            lambda: x * self.pick(20),
            lambda: x // self.pick(),
            lambda: x % self.pick(),
            lambda: x & y,
            lambda: x | y,
            lambda: x ^ y,
            lambda: ~x,
            lambda: -x,
            lambda: abs(x),
            lambda: +x,
            lambda: x << self.unsigned(5),
            lambda: x >> self.unsigned(7),
            lambda: x >> self.pick().as_unsigned(),
            lambda: Mux(self.pick(), x, y),
            lambda: Cat(x, y),
            lambda: Cat(x.any(), x.all(), x.xor(), x.bool(), x == y, x != y, x < y, x <= y, x > y, x >= y),
            # of signals alone: beyond the end of an expression Amaranth's simulator gives bits that it has not (0.5.10)
            lambda: self.signal().bit_select(self.unsigned(7), rng.randrange(1, 40)),
            lambda: self.signal().word_select(self.unsigned(4), rng.randrange(1, 40)),
            lambda: Array(rng.choices(self.values, k=rng.choice((2, 3, 5))))[self.unsigned(4)],
            lambda: x.shift_left(rng.randrange(-3, 70)),
            lambda: x.shift_right(rng.randrange(-3, 70)),
            lambda: x.rotate_left(rng.randrange(9)),
            lambda: x.replicate(rng.randrange(1, 3)) if len(x) < 70 else x,
            lambda: self.matched(x),
        )
        found = rng.choice(makers)()
        return found if len(found) <= 200 else found[: rng.randrange(1, 200)]

    def matched(self, value):
        if not 1 <= len(value) <= 40:
            return value
        patterns = ("".join(self.rng.choice("01-") for _ in range(len(value))) for _ in range(2))
        return value.matches(*patterns)

    # Statements

    def target(self, signal):
        """The whole of a signal, or a part of it that may be found when it runs."""
        rng = self.rng
        if rng.random() < 0.7 or len(signal) < 2:
            return signal
        match rng.randrange(3):
            case 0:
                low = rng.randrange(len(signal))
                return signal[low:]
            case 1:
                return signal.bit_select(self.unsigned(6), rng.randrange(1, len(signal)))
        return Cat(signal[: len(signal) // 2], signal[len(signal) // 2 :])

    def assigned(self, domain, signal, depth=2):
        m, rng = self.m, self.rng
        match rng.randrange(4) if depth else 0:
            case 0:
                domain += self.target(signal).eq(self.expression())
            case 1:
                with m.If(self.condition()):
                    self.assigned(domain, signal, depth - 1)
                with m.Elif(self.condition()):
                    self.assigned(domain, signal, depth - 1)
                if rng.random() < 0.5:
                    with m.Else():
                        self.assigned(domain, signal, depth - 1)
            case 2:
                subject = self.pick(3)
                with m.Switch(subject):
                    for _ in range(rng.randrange(1, 4)):
                        patterns = ["".join(rng.choice("01-") for _ in range(len(subject))) for _ in range(2)]
                        with m.Case(*patterns):
                            self.assigned(domain, signal, depth - 1)
                    if rng.random() < 0.5:
                        with m.Default():
                            self.assigned(domain, signal, depth - 1)
            case 3:
                self.assigned(domain, signal, depth - 1)
                self.assigned(domain, signal, depth - 1)

    def memory(self, k):
        m, rng = self.m, self.rng
        part = rng.choice((1, 3, 8, 16, 33))
        width, depth = part * rng.choice((1, 2, 3, 4)), rng.choice((1, 2, 3, 4, 5, 8, 13, 16))
        init = [rng.getrandbits(width) for _ in range(rng.randrange(depth + 1))]
        m.submodules[f"memory{k}"] = memory = Memory(shape=width, depth=depth, init=init)
        domain = self.domain(of_memory=True)
        if domain is None:
            return
        writes = [memory.write_port(domain=domain, granularity=rng.choice((None, part, width)))
                  for _ in range(rng.choice((0, 1, 1, 2, 3)))]  # fmt: skip
        reads = []
        for _ in range(rng.randrange(1, 4)):
            kind = rng.choice(("comb", domain, self.domain(of_memory=True)))
            seen = [write for write in writes if rng.random() < 0.5] if kind == domain else ()
            read = memory.read_port(domain=kind, transparent_for=seen)
            m.d.comb += read.addr.eq(self.pick())
            if kind != "comb" and rng.random() < 0.7:
                m.d.comb += read.en.eq(self.pick())
            reads.append(read.data)
        for write in writes:
            m.d.comb += [
                write.addr.eq(self.pick() if rng.random() < 0.7 else rng.choice(reads)),
                write.data.eq(Cat(self.pick(), self.pick(), self.circuit.d)),
                write.en.eq(self.pick()),
            ]
        self.values += reads

    def run(self, wires, registers, memories):
        m, rng, circuit = self.m, self.rng, self.circuit
        held, clocks = [], [self.domain() for _ in range(registers)]
        for k, clock in enumerate(clocks):
            shape = self.shape()
            init = rng.randrange(-(1 << shape.width - 1), 0) if shape.signed else rng.getrandbits(shape.width)
            reset_less = rng.random() < 0.3 and not (circuit.is_reset and DOMAINS[clock].get("async_reset"))
            held.append(Signal(shape, name=f"r{k}", init=init, reset_less=reset_less))
        self.values += held
        for k in range(memories):
            self.memory(k)
        for k in range(wires):
            shape = self.shape()
            wire = Signal(shape, name=f"w{k}", init=rng.randrange(2) if not shape.signed else 0)
            for _ in range(rng.randrange(1, 3)):
                self.assigned(m.d.comb, wire)
            self.values.append(wire)
        chain = Signal(9, name="chain")  # a bit of a word depends on another one
        m.d.comb += chain[0].eq(self.pick()[:1])
        for k in range(8):
            m.d.comb += chain[k + 1].eq(chain[k] & circuit.a[k] ^ circuit.d[k])
        self.values.append(chain)
        for register, domain in zip(held, clocks, strict=True):
            for _ in range(rng.randrange(1, 3)):
                self.assigned(m.d[domain], register)
        total = Cat(*held, *self.values[-10:])
        total = Cat(total, Const(0, max(1, 256 - len(total))))
        m.d[circuit.domains[0]] += circuit.seen.eq(Cat(circuit.seen[1:], circuit.seen[0]) ^ total[:64] ^ total[64:128])
        m.d.comb += circuit.through.eq(self.pick() + chain)


def stimulus(rng, names=INPUTS):
    """Values of its inputs: of some of them, small and large ones."""
    found = {}
    for name in names:
        shape, kind = INPUTS[name], rng.random()
        if kind < 0.3:
            continue
        value = rng.getrandbits(shape.width) if kind < 0.7 else rng.choice((0, 1, 2, (1 << shape.width) - 1))
        value &= (1 << shape.width) - 1
        found[name] = value - (1 << shape.width) if shape.signed and value >> (shape.width - 1) else value
    return found
