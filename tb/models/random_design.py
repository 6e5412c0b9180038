"""Random components of everything that Amaranth has and a node may use: for engines that have to do the same."""

# Members and operators of components are made at run time.
# pyright: reportAttributeAccessIssue=false, reportOperatorIssue=false, reportCallIssue=false
# pyright: reportArgumentType=false, reportIndexIssue=false, reportGeneralTypeIssues=false

import random
from dataclasses import dataclass

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from bentpipe_hdl.sim_hints import branch_first, rarely_changes, usually

WIDTHS = (1, 1, 2, 5, 8, 13, 32, 33, 48, 64, 70, 100)
DEPTHS = (8, 8, 5, 13, 3, 16, 1, 8, 2, 7)


class RandomDesign(wiring.Component):
    """Some registers, some memories with rows of fields, and conditions in each other; everything shows in ``seen``."""

    def __init__(self, seed):
        self._seed = seed
        # The last ones are those that a node's shorter bodies know
        known = {"i_valid": In(1), "time_tick": In(1), "csr_w_en": In(1)}
        super().__init__(
            {"a": In(48), "b": In(16), "c": In(1), "d": In(100), "seen": Out(128), "flag": Out(1), **known}
        )

    def elaborate(self, platform):
        rng, m = random.Random(self._seed), Module()
        values = [self.a, self.b, self.c, self.d, self.i_valid, self.time_tick, self.csr_w_en]

        def pick(width=None):
            value = rng.choice(values)
            if len(value) > 1 and rng.random() < 0.3:
                low = rng.randrange(len(value))
                value = value[low : rng.randrange(low, len(value)) + 1]
            if rng.random() < 0.1:
                value = Cat(value, rng.choice(values))
            return value

        def condition():
            kind = rng.randrange(7)
            if kind == 6:  # one of a few states: a condition in one that says another can't hold
                return self.b[:2] == rng.randrange(4)
            if kind == 0:
                return rng.choice(values) == rng.choice([0, 1, 3])
            if kind == 1:
                return pick() < pick()
            if kind == 2:
                return self.c & rng.choice(values).any()
            if kind == 3:
                return (pick()[0] | ~self.c) & pick()[-1]
            if kind == 4:
                return pick().as_signed() < pick().as_signed()
            return pick()[0]

        def expression():
            x, y = pick(), pick()
            match rng.randrange(16):
                case 0:
                    return x + y
                case 1:
                    return x - y
                case 2:
                    return x[:20] * y[:20]
                case 3:
                    return x & y
                case 4:
                    return x | ~y
                case 5:
                    return x ^ y
                case 6:
                    return Mux(condition(), x, y)
                case 7:
                    return x << y[:4]
                case 8:
                    return x >> y[:5]
                case 9:
                    return x.as_signed() >> y[:3]
                case 10:
                    return Cat(x.any(), x.all(), x.xor(), x == y)
                case 11:
                    return x.bit_select(y[:6], min(7, len(x)))
                case 12:
                    return x.word_select(y[:3], min(3, len(x)))
                case 13:
                    return Array(rng.choices(values, k=3))[y[:2]]
                case 14:
                    return -x.as_signed() + y
            return Cat(y, x)

        row = data.StructLayout({"one": 7, "two": 1, "three": 40, "four": 1, "five": 9})
        memories = []
        for k in range(2):
            attrs = {"bentpipe_whole": 1} if k else {}
            depth = DEPTHS[(self._seed + k) % len(DEPTHS)]
            m.submodules[f"memory{k}"] = memory = Memory(shape=row, depth=depth, init=[], attrs=attrs)
            port = memory.read_port(domain="comb")
            m.d.comb += port.addr.eq(pick())
            values += [port.data.one, port.data.three, port.data.two]
            memories.append((memory.write_port(), port))
        registers = [Signal(rng.choice(WIDTHS), name=f"r{k}", init=rng.getrandbits(1)) for k in range(8)]
        registers.append(rarely_changes(Signal(2, name="lasting"), 1))
        if self._seed % 2:
            registers.append(usually(Signal(3, name="phase"), 2))
        values += registers
        for k in range(12):
            asked = k % 4 == 1
            wire = Signal(1 if asked else rng.choice(WIDTHS), name=f"w{k}")
            m.d.comb += wire.eq(expression())
            for _ in range(rng.randrange(3)):
                with m.If(condition()):
                    m.d.comb += wire.eq(expression())
                    with m.If(condition()):
                        m.d.comb += wire[: len(wire) // 2 + 1].eq(expression())
                with m.Elif(condition()):
                    m.d.comb += wire.eq(expression())
            values.append(wire)
            if asked:
                branch_first(wire, rng.randrange(3), rng.choice((None, 0, 1)))
        for k, (write, read) in enumerate(memories):
            new = Signal(row)
            m.d.comb += [new.eq(read.data), write.addr.eq(read.addr), write.data.eq(new)]
            with m.If(condition()):
                m.d.comb += [new.one.eq(expression()), new.four.eq(condition()), write.en.eq(1)]
            with m.If(condition()):
                m.d.comb += [write.addr.eq(pick()), new.three.eq(expression()), write.en.eq(self.c if k else 1)]
        for register in registers:
            subject = pick()[:2]
            with m.Switch(subject):
                for value in rng.sample(range(1 << len(subject)), rng.randrange(1, 1 << len(subject))):
                    with m.Case(value):
                        m.d.sync += register.eq(expression())
            with m.If(condition()):
                m.d.sync += register.eq(rng.choice(registers) + 1)
                with m.If(condition()):
                    m.d.sync += register[len(register) // 2 :].eq(expression())
            if register.name in ("lasting", "phase"):
                with m.If(~self.csr_w_en):
                    m.d.sync += register.eq(
                        register.attrs["bentpipe_settled" if len(register) == 2 else "bentpipe_steady"]
                    )
            with m.Elif(condition()):
                m.d.sync += register.eq(~register)
        total = Cat(*registers, *(wire for wire in values[-12:]))
        folded = self.seen
        m.d.sync += folded.eq(Cat(folded[1:], folded[0]) ^ total[:128] ^ total[128:256] ^ total[256:384])
        m.d.comb += self.flag.eq(registers[0].any() ^ registers[1][0])
        return m


@dataclass(frozen=True)
class RandomShape:
    """The description of a design for ``bentpipe_sim.build``."""

    seed: int
    kind: str = "random"

    def component(self):
        return RandomDesign(self.seed)


def stimulus(rng):
    """Values of its inputs for a clock: small and large ones, often the same."""
    wide = rng.random() < 0.5
    return {
        "a": rng.getrandbits(48) if wide else rng.randrange(4),
        "b": rng.getrandbits(16) if wide else rng.randrange(3),
        "c": rng.getrandbits(1),
        "i_valid": rng.getrandbits(1),
        "time_tick": int(rng.random() < 0.9),
        "csr_w_en": int(rng.random() < 0.1),
        "d": rng.getrandbits(100) if rng.random() < 0.7 else rng.choice([0, 1, (1 << 100) - 1]),
    }
