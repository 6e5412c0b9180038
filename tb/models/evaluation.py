"""Designs and plans of the native engine, worked out in plain Python: what their C++ has to do."""

from bentpipe_sim.native.schedule import Statement


def signed(value, width):
    return value - (1 << width) if width and value >> (width - 1) & 1 else value


def operation(op, width, args, data):
    """Return the result of an operation; ``args`` are pairs of number and width."""
    numbers = [number for number, _ in args]
    first, size = args[0]
    match op:
        case "all":
            found = all(bool(number) == wanted for number, wanted in zip(numbers, data, strict=True))
        case "choose":
            found = first
            for condition, value in zip(numbers[1::2], numbers[2::2], strict=True):
                found = value if condition else found
        case "m":
            found = numbers[1] if first else numbers[2]
        case "is":
            found = first
        case "==":
            found = first == numbers[1]
        case "u<":
            found = first < numbers[1]
        case "s<":
            found = signed(first, size) < signed(numbers[1], args[1][1])
        case "+":
            found = first + numbers[1]
        case "-":
            found = first - numbers[1]
        case "*":
            found = first * numbers[1]
        case "&":
            found = first & numbers[1]
        case "|":
            found = first | numbers[1]
        case "^":
            found = first ^ numbers[1]
        case "~":
            found = ~first
        case "r^":
            found = first.bit_count() & 1
        case "<<":
            found = first << numbers[1]
        case "u>>":
            found = first >> numbers[1]
        case "s>>":
            found = signed(first, size) >> numbers[1]
        case "part":
            stride, is_signed = data
            found = (signed(first, size) if is_signed else first) >> numbers[1] * stride
        case "u//" | "u%":
            found = (first // numbers[1] if op == "u//" else first % numbers[1]) if numbers[1] else 0
        case _:
            raise AssertionError(op)
    return int(found) & ((1 << width) - 1)


class State:
    """Registers, memories and inputs of a design, and the values of nodes that were worked out."""

    def __init__(self, design):
        self.registers = {register: register.init for register in design.registers}
        self.memories = {
            (memory, k): [*(value >> low & ((1 << width) - 1) for value in memory.init)]
            for memory in design.memories
            for k, (low, width) in enumerate(memory.fields)
        }
        self.inputs = {}

    def copy(self):
        made = object.__new__(State)
        made.registers, made.inputs = dict(self.registers), dict(self.inputs)
        made.memories = {key: [*words] for key, words in self.memories.items()}
        return made

    def word(self, memory, field, address):
        words = self.memories[memory, field]
        return words[address] if address < len(words) else 0

    def of(self, node):
        """A node that is there before the clock; None of others."""
        if node.op == "register":
            return self.registers[node.data]
        return self.inputs.get(node.data, 0) if node.op == "input" else None


def joined(bits, of):
    """The number that a value is, where ``of`` gives that of a node."""
    found, at = 0, 0
    for node, low, width in bits:
        value = low if node is None else of(node) >> low
        found |= (value & ((1 << width) - 1)) << at
        at += width
    return found


class Evaluation:
    """The values of a design in one clock."""

    def __init__(self, state):
        self.state, self.done = state, {}

    def value(self, bits):
        return joined(bits, self.node)

    def node(self, node):
        found = self.state.of(node)
        if found is None:
            found = self.done.get(node)
        if found is None:
            if node.op == "read":
                found = self.state.word(*node.data, self.value(node.args[0]))
            else:
                args = [(self.value(arg), sum(piece[2] for piece in arg)) for arg in node.args]
                found = operation(node.op, node.width, args, node.data)
            self.done[node] = found
        return found


def after(design, state):
    """The state behind a clock of a design, as its graph says."""
    now, made = Evaluation(state), state.copy()
    for register, bits in design.registers.items():
        made.registers[register] = now.value(bits)
    for write in design.writes:
        if now.value(write.enable):
            address = now.value(write.address)
            for k, bits in enumerate(write.data):
                if address < len(made.memories[write.memory, k]):
                    made.memories[write.memory, k][address] = now.value(bits)
    return made


def run(plan, state):
    """The state behind a clock, as a plan says, statement by statement; what is read before it is there is an error."""
    made, values = state.copy(), {}
    copies = {register: state.registers[register] for register in plan.copied}

    def of(node):
        if node.op == "register":
            return copies.get(node.data, made.registers[node.data])
        return state.inputs.get(node.data, 0) if node.op == "input" else values[node]

    def do(statement):
        kind, what = statement.target[:2]
        width = sum(piece[2] for piece in statement.args[0]) if kind == "output" else getattr(what, "width", 1)
        if kind == "memory":
            width = what.fields[statement.target[2]][1]
        args = [(joined(arg, of), sum(piece[2] for piece in arg)) for arg in statement.args]
        if statement.op == "read":
            found = made.word(*statement.data, args[0][0])
        elif statement.op == "m":
            found = args[1][0] if args[0][0] else args[2][0]
        else:
            found = operation(statement.op, width, args, statement.data)
        if kind == "value":
            values[what] = found
        elif kind == "register":
            made.registers[what] = found
        elif kind == "memory":
            words, address = made.memories[what, statement.target[2]], joined(statement.address, of)
            if address < len(words):
                words[address] = found
        else:
            values[what] = found

    def walk(tree):
        for item in tree:
            if isinstance(item, Statement):
                do(item)
                continue
            for (node, low, wanted), inner in item.arms:
                if bool(of(node) >> low & 1) == wanted:
                    walk(inner)
                    break

    walk(plan.tree)
    return made, values
