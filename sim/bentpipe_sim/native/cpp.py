"""Values and statements as text of C++.

A value of up to 64 bits is an unsigned number, with zeros above its bits; a wider one is a ``W<n>`` of ``wide.hpp``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .design import Memory, Register
from .graph import Bits, Literal, Node, Piece, constant_of, cut, whole_node, width_of
from .layout import Rows
from .netlist import NetlistError
from .schedule import Branch, Plan, Statement

__all__ = ["Text", "local_type", "number"]


def local_type(width: int) -> str:
    """Return the C++ type of a local variable of so many bits."""
    return "bool" if width == 1 else f"uint{32 if width <= 32 else 64}_t" if width <= 64 else f"W<{_words(width)}>"


def number(value: int, width: int) -> str:
    """Return a C++ constant of so many bits."""
    if width <= 64:
        return f"{value:#x}" + ("ull" if width > 32 else "u")
    words = ", ".join(f"{value >> 64 * k & (1 << 64) - 1:#x}ull" for k in range(_words(width)))
    return f"W<{_words(width)}>{{{{{words}}}}}"


def _words(width: int) -> int:
    return (width + 63) // 64


def _mask(width: int) -> str:
    return number((1 << width) - 1, width)


class Text:
    """The text of a plan in C++.

    Parameters
    ----------
    plan : Plan
    names : mapping of Register to str
        Members of the node, ``s``.
    rows : mapping of Memory to Rows
        Members of the node that hold memories.
    flags : mapping of Register to (str, int)
        Marked registers: the member that is cleared when the register gets another value than this.

    Members
    -------
    heat : mapping of Register to float
        Set by :meth:`lines`: how often each register is read and written, if each condition is as often true as false.
    """

    OUTPUTS = "s"
    """What has the outputs as members."""
    INITIAL = ""
    """Behind the declaration of a variable that gets its value in blocks beside each other."""

    def __init__(
        self,
        plan: Plan,
        names: Mapping[Register, str],
        rows: Mapping[Memory, Rows],
        flags: Mapping[Register, tuple[str, int]],
    ):
        self.plan, self.names, self.rows, self.flags = plan, names, rows, flags
        self.heat: dict[Register, float] = {}
        self.tables: dict[tuple[tuple[int, ...], int], str] = {}  # names of tables, by columns and width
        self.often = 1.0  # what is made text now is executed
        self.copied = set(plan.copied)
        # Of each variable: the block of all its uses, that of its first value; those that are declared
        self.path: dict[Node, tuple[int, ...]] = {}
        self.first: dict[Node, tuple[int, ...]] = {}
        self.declared: set[Node] = set()
        self.rows_of: set[Node] = set()  # what numbers of rows are made of
        self.loose: set[Node] = set()  # what may have more than its own bits
        self.pointed: set[Node] = set()  # wide choices, one of which is an input: where that is
        self.places: dict[tuple[int, ...], list[Node]] = {}  # these, by the blocks that have them

    def lines(self) -> list[str]:
        self.find(self.plan.tree, ())
        self.loose = _Loose(self.plan.tree).run()
        shared: dict[tuple[int, ...], list[Node]] = {}
        for node, path in self.path.items():
            if node in self.pointed:
                self.places.setdefault(path, []).append(node)
            elif self.first[node] != path:  # blocks beside each other have it
                shared.setdefault(path, []).append(node)
        copies = [
            f"    const {local_type(register.width)} c_{self.names[register]} = s.{self.names[register]};"
            for register in self.plan.copied
        ]
        body = self.walk(self.plan.tree, (), shared)
        return [*(_table(*each, name) for each, name in self.tables.items()), *copies, *body]

    def find(self, tree: Iterable[Statement | Branch], path: tuple[int, ...]) -> None:
        """Find for each variable the block that contains all its uses, and the block that first assigns it."""

        def used(bits: Bits) -> None:
            for node, _, _ in bits:
                if node is not None and node in self.path:
                    self.path[node] = _common(self.path[node], path)

        for k, item in enumerate(tree):
            if isinstance(item, Statement):
                for bits in (*item.args, item.address):
                    used(bits)
                row = item.args[0] if item.op == "read" else item.address
                self.rows_of.update(
                    node for node, _, _ in row if node is not None and node.op != "choose" and node.width < 32
                )
                if item.target[0] == "value":
                    node = item.target[1]
                    if node.op == "choose" and node.width > 64 and item.op == "is" and _input(item.args[0]):
                        self.pointed.add(node)
                    self.first.setdefault(node, path)
                    self.path[node] = _common(self.path.get(node, path), path)
                continue
            for literal, _ in item.arms:
                used(((literal[0], literal[1], 1),))
            for arm, (_, inner) in enumerate(item.arms):
                self.find(inner, (*path, k, arm))

    def walk(
        self, tree: Iterable[Statement | Branch], path: tuple[int, ...], shared: Mapping[tuple[int, ...], list[Node]]
    ) -> list[str]:
        pad = "    " * (1 + len(path) // 2)
        self.often = 0.5 ** (len(path) // 2)
        out = [f"{pad}{self.type_of(node)}{_local(node)}{self.INITIAL};" for node in shared.get(path, ())]
        for node in self.places.get(path, ()):
            out.append(f"{pad}{local_type(node.width)} {_local(node)}_made; {self.type_of(node)}{_local(node)};")
        for k, item in enumerate(tree):
            if isinstance(item, Statement):
                kind = ""
                if item.target[0] == "value" and self.first[item.target[1]] == path == self.path[item.target[1]]:
                    node = item.target[1]
                    if node not in self.declared and node not in self.pointed:
                        self.declared.add(node)
                        kind = self.type_of(node)
                out.append(pad + kind + self.statement(item))
                continue
            for arm, (literal, inner) in enumerate(item.arms):
                before = item.arms[arm - 1][0] if arm else None
                opposite = before is not None and before == (literal[0], literal[1], not literal[2])
                head = "if" if not arm else "} else if"
                out.append(f"{pad}}} else {{" if opposite else f"{pad}{head} ({self.literal(literal)}) {{")
                out += self.walk(inner, (*path, k, arm), shared)
                self.often = 0.5 ** (len(path) // 2)
            out.append(f"{pad}}}")
        return out

    def type_of(self, node: Node) -> str:
        """Return the type of a variable.

        The number of a row is as wide as an address, so that it needs no conversion.
        """
        if node in self.pointed:
            return f"const {local_type(node.width)}* "
        return local_type(64 if node in self.rows_of and node.width > 1 else node.width) + " "

    def literal(self, literal: Literal) -> str:
        text = self.value(((literal[0], literal[1], 1),))
        return text if literal[2] else f"!{text}"

    def warm(self, register: Register) -> None:
        self.heat[register] = self.heat.get(register, 0) + self.often

    # Statements

    def statement(self, statement: Statement) -> str:
        kind, what = statement.target[:2]
        moved = self.moved(statement)
        if moved:
            return moved
        if kind == "value":
            assert isinstance(what, Node)
            if what in self.pointed:
                if statement.op == "is" and _input(statement.args[0]):
                    return f"{_local(what)} = &{self.value(statement.args[0])};"
                made = f"{_local(what)}_made"
                return f"{made} = {self.operation(statement, what.width)}; {_local(what)} = &{made};"
            return f"{_local(what)} = {self.operation(statement, what.width)};"
        if kind == "output":
            return f"{self.OUTPUTS}.{what} = {self.operation(statement, width_of(statement.args[0]))};"
        if kind == "decision":
            return f"const bool {what} = {self.operation(statement, 1)};"
        if kind == "memory":
            assert isinstance(what, Memory)
            field = statement.target[2]
            place = self.word(what, field, statement.address)
            return f"{place} = {self.operation(statement, what.fields[field][1])};"
        assert isinstance(what, Register)
        self.warm(what)
        name = f"s.{self.names[what]}"
        text = f"{name} = {self.operation(statement, what.width)};"
        if what in self.flags:
            flag, value = self.flags[what]
            is_value = constant_of(statement.args[0]) if statement.op == "is" else None
            if is_value is None:
                text += f" s.{flag} &= {name} == {number(value, what.width)};"
            elif is_value != value:
                text += f" s.{flag} = false;"
        return text

    def moved(self, statement: Statement) -> str | None:
        """Return a wide word that goes as it is from one place to another."""
        kind, what = statement.target[:2]
        if kind == "memory":
            width = what.fields[statement.target[2]][1]
        elif kind == "register":
            width = what.width
        elif kind == "output":
            width = width_of(statement.args[0])
        else:
            return None
        if width <= 64:
            return None
        if statement.op == "is":
            node = whole_node(statement.args[0])
            if node is None or node.op not in STORED:
                return None
            source = self.value(statement.args[0])
        elif statement.op == "read":
            memory, field = statement.data
            row, array = self.row(statement.args[0]), self.rows[memory]
            type_, octets, place = local_type(width), f"sizeof s.{array.array}[0]", array.place("0", field)
            source = f"in_row<{type_}>(&s, ({row}) * {octets}, __builtin_offsetof(Node, {place}))"
        else:
            return None
        if kind == "memory":
            target = self.word(what, statement.target[2], statement.address)
        elif kind == "register":
            self.warm(what)
            target = f"s.{self.names[what]}"
        else:
            target = f"{self.OUTPUTS}.{what}"
        return f"move({target}, {source});"

    def operation(self, statement: Statement, width: int) -> str:
        op, args = statement.op, statement.args
        loose = statement.target[1] in self.loose
        if op == "is":
            return self.value(args[0], loose)
        if op == "read":
            memory, field = statement.data
            return self.word(memory, field, args[0])
        if op == "call":
            return f"{statement.data}({', '.join(self.value(arg) for arg in args)})"
        if op == "m":
            return f"{self.value(args[0])} ? {self.value(args[1], loose)} : {self.value(args[2], loose)}"
        if op == "table":
            base, tables = statement.data
            return self.table(args, base, tables, width)
        if op == "all":
            parts = zip(args, statement.data, strict=True)
            return " && ".join(("" if is_one else "!") + self.value(bit) for bit, is_one in parts)
        if op == "part":
            return self.part(args[0], args[1], width, *statement.data)
        if op in ("&", "|", "^"):
            return f"{self.value(args[0])} {op} {self.value(args[1])}"
        if op == "~":
            if width > 64:
                return f"trim<{width}>(~{self.value(args[0])})"
            if loose:
                return f"~{self.value(args[0], loose)}"
            return f"{self.value(args[0])} ^ {_mask(width)}"
        if op == "==":
            return f"{self.value(args[0])} == {self.value(args[1])}"
        if op == "r^":
            return f"parity({self.value(args[0])})"
        if op == "u<":
            most = max(_effective(arg) for arg in args)
            if most > 64:
                return f"less({self.value(args[0])}, {self.value(args[1])})"
            return f"{self.value(cut(args[0], 0, most))} < {self.value(cut(args[1], 0, most))}"
        if op == "s<" and width_of(args[0]) <= 64:
            return f"{self.signed(args[0])} < {self.signed(args[1])}"
        if op in ("+", "-", "*"):
            return self.sum(op, args, width, loose)
        if op in ("<<", "u>>", "s>>"):
            return self.shift(op, args, width)
        if op in ("u//", "u%") and width <= 64:
            a, b = map(self.value, args)
            return f"{b} ? {a} {op[1]} {b} : 0"
        if op in ("u//", "u%", "s//", "s%"):
            a, b = map(self.value, args)
            is_signed, rest = (str(holds).lower() for holds in (op[0] == "s", op[1] == "%"))
            return f"divided<{width}, {is_signed}>({a}, {b}, {rest})"
        raise NetlistError(f"the native engine has no operation {op} of {width} bits")

    def table(self, args: tuple[Bits, ...], base: int, tables: Iterable[tuple[int, ...]], width: int) -> str:
        """Return a sum modulo 2 of numbers from tables; the tables are declared by :meth:`lines`."""
        terms = [number(base, width)] if base else []
        for arg, columns in zip(args, tables, strict=True):
            name = self.tables.setdefault((columns, width), f"table_{len(self.tables)}")
            terms.append(f"{name}[{self.value(arg)}]")
        return " ^ ".join(terms)

    def sum(self, op: str, args: tuple[Bits, ...], width: int, loose: bool) -> str:
        sizes = [_effective(arg) for arg in args]
        fits = (op == "+" and max(sizes) < width) or (op == "*" and sum(sizes) <= width)
        # What is above the sum's own bits is left out anyway, or may be there
        a, b = (self.value(arg, upper=width <= 64 and not fits and width_of(arg) >= width) for arg in args)
        if width > 64:
            return f"trim<{width}>({ {'+': 'add', '-': 'sub', '*': 'mul'}[op] }({a}, {b}))"
        a = f"(uint64_t){a}" if width > 32 else f"(uint32_t){a}"
        text = f"{a} {op} {b}"
        return text if fits or loose or width in (32, 64) else f"({text}) & {_mask(width)}"

    def shift(self, op: str, args: tuple[Bits, ...], width: int) -> str:
        a, by = self.value(args[0]), self.amount(args[1])
        most = (1 << min(_effective(args[1]), 20)) - 1
        if width > 64:
            by = by if most < 1 << 20 else f"least({by}, {width}u)"
            if op == "s>>":
                return f"sar<{width}>({a}, {by})"
            return f"shr({a}, {by})" if op == "u>>" else f"trim<{width}>(shl({a}, {by}))"
        if op == "s>>":
            by = by if most < 64 else f"least({by}, 63u)"
            return f"(uint64_t)({self.signed(args[0])} >> {by}) & {_mask(width)}"
        text = f"((uint64_t){a} {op.lstrip('u')} {by})"
        if most >= 64:
            text = f"({by} < 64 ? {text} : 0)"
        return f"{text} & {_mask(width)}" if op == "<<" else text

    def amount(self, bits: Bits) -> str:
        """Return the text of a shift's distance, or of a number that is beyond the width."""
        if width_of(bits) <= 64:
            return self.value(bits)
        return self.value(cut(bits, 0, 64)) if _effective(bits) <= 64 else f"least({self.value(bits)}, 0xfffffu)"

    def part(self, value: Bits, offset: Bits, width: int, stride: int, signed: bool) -> str:
        size = width_of(value)
        most = ((1 << _effective(offset)) - 1) * stride
        at = self.amount(offset)
        if stride > 1:
            at = f"{at} * {stride}u" if most < 1 << 32 else f"least({at}, 0xfffffu) * {stride}u"
        if size > 64:
            if not signed and stride == 1 and width > 32 and constant_of(cut(offset, 0, 3)) == 0:  # whole octets
                octet = self.value(cut(offset, 3, width_of(offset) - 3))
                return f"octets<{width}, {most // 8}>({self.value(value)}, {octet})" + (".w[0]" if width <= 64 else "")
            if most >= size:
                at = f"least({at}, {size}u)"
            if signed:
                return f"resize<{width}>(sar<{size}>({self.value(value)}, {at}))" + (".w[0]" if width <= 64 else "")
            if width <= 64:
                return f"pick<{width}>({self.value(value)}, {at})"
            return f"resize<{width}>(shr({self.value(value)}, {at}))"
        if signed:
            return f"(uint64_t)({self.signed(value)} >> least({at}, 63u)) & {_mask(width)}"
        text = f"((uint64_t){self.value(value)} >> ({at}))"
        if most >= 64:
            text = f"({at} < 64 ? {text} : 0)"
        return f"{text} & {_mask(width)}" if width < 64 else text

    # Values

    def word(self, memory: Memory, field: int, address: Bits) -> str:
        return f"s.{self.rows[memory].place(self.row(address), field)}"

    def row(self, address: Bits) -> str:
        node, high, size = address[-1]
        if node is None and high and len(address) > 1:  # a sum is an address as it stands
            low = width_of(address) - size
            return f"{self.value(cut(address, 0, low))} + {number(high << low, 64)}"
        return self.value(address)

    def atom(self, node: Node) -> str:
        if node.op == "input":
            return f"s.{node.data}"
        if node.op == "register":
            self.warm(node.data)
            return f"c_{self.names[node.data]}" if node.data in self.copied else f"s.{self.names[node.data]}"
        return f"(*{_local(node)})" if node in self.pointed else _local(node)

    def value(self, bits: Bits, upper: bool = False) -> str:
        """Return an expression that needs no parentheses around it; with ``upper`` there may be bits above its own."""
        width = width_of(bits)
        if width > 64:
            node, _, size = bits[0]
            if len(bits) == 1 and node is not None and size == node.width:
                return self.atom(node)
            if constant_of(bits) is not None:
                return number(constant_of(bits) or 0, width)
            if len(bits) == 1 and node is not None:
                low = bits[0][1]
                if node.op not in STORED or low % 8:
                    return f"slice<{low}, {width}>({self.atom(node)})"
            words = [self.value(cut(bits, at, min(64, width - at))) for at in range(0, width, 64)]
            return f"W<{len(words)}>{{{{{', '.join(words)}}}}}"
        big, at = width > 32, 0
        terms = []
        pieces = list(bits)
        while pieces:
            node, low, size = pieces.pop(0)
            here, at = at, at + size
            if node is None:
                if low:
                    terms.append(number(low << here, width))
                continue
            turned = _turned((node, low, size), pieces)
            if turned >= _TURNED:
                del pieces[: turned - 1]
                at += turned - 1
                text = f"turned_bits<{low ^ 7}, {turned}>({self.atom(node)})"
                text = text if big else f"(uint32_t){text}"
                terms.append(f"{text} << {here}" if here else text)
                continue
            falling = _falling((node, low, size), pieces)
            if falling >= _FALLING:
                del pieces[: falling - 1]
                at += falling - 1
                text = self.reversed(node, low, falling)
                text = f"(uint64_t){text}" if big and here else f"(uint32_t){text}" if here else text
                terms.append(f"{text} << {here}" if here else text)
                continue
            again = 0  # its highest bit repeated: a signed number in more bits
            while pieces and pieces[0] == (node, low + size - 1, 1):
                pieces.pop(0)
                again += 1
            at += again
            text, type_bits = self.piece(node, low, size, upper and not pieces)
            if again:
                text = f"((uint64_t)extend<{size}>({text}) & {_mask(size + again)})"
                type_bits = 64
            if big and type_bits <= 32 and here:
                text = f"(uint64_t){text}"
            elif (not big and type_bits > 32) or (here and type_bits < 32):
                text = f"(uint32_t){text}"
            terms.append(f"{text} << {here}" if here else text)
        if not terms:
            return "0ull" if big else "0u"
        if len(terms) == 1 and "<<" not in terms[0]:
            return terms[0]
        return "(" + " | ".join(f"({term})" if "<<" in term else term for term in terms) + ")"

    def piece(self, node: Node, low: int, size: int, upper: bool) -> tuple[str, int]:
        """Return some bits of a node, shifted to the low end, and the width of the expression's type.

        With ``upper`` the expression may have other bits above them.
        """
        text, width = self.atom(node), node.width
        if width > 64:
            if node.op in STORED and low % 8 == 0:
                return f"octet_bits<{low // 8}, {size}>({text})", 64
            return f"bits<{low}, {size}>({text})", 64
        type_bits = 64 if width > 32 else 32
        if node.op in STORED and width <= 16:
            type_bits = 16
        elif width == 1:
            type_bits = 1
        if low:
            text = f"({text} >> {low})"
        exact = low + size == width and not (node in self.loose and low and size <= _CHEAP)
        if upper:
            pass
        elif not exact or (low and size == 1 and width > 32):  # a bit that a processor's instruction asks for
            text = f"({text} & {number((1 << size) - 1, width)})"
        return text, type_bits

    def reversed(self, node: Node, high: int, size: int) -> str:
        """Return ``size`` bits of an octet of a node from bit ``high`` downwards, the first in the lowest bit."""
        text, octet = self.atom(node), high // 8
        if octet:
            text = f"({text} >> {8 * octet})"
        if node.width > 8 * octet + 8 or node in self.loose:
            text = f"(uint8_t){text}"
        text, unused = f"reversed_octet[{text}]", 7 - high % 8
        if unused:
            text = f"({text} >> {unused})"
        return text if size == high % 8 + 1 else f"({text} & {number((1 << size) - 1, 8)})"

    def signed(self, bits: Bits) -> str:
        """Return a signed number of up to 64 bits, as int64_t."""
        size = width_of(bits)
        while size > 1 and cut(bits, size - 1, 1) == cut(bits, size - 2, 1):
            size -= 1
        if constant_of(cut(bits, size - 1, 1)) == 0:
            return f"(int64_t){self.value(cut(bits, 0, size))}"
        return f"extend<{size}>({self.value(cut(bits, 0, size))})"


STORED = ("register", "input")

_CHEAP = 31
"""Bits of a mask that an instruction has in itself."""

_TURNED = 16
"""So many bits are taken from a number that is turned, octet by octet, rather than one by one."""

_FALLING = 3
"""So many bits of an octet in the opposite order are taken from the table of reversed octets rather than one by one."""


class _Loose:
    """The values that may have more than their own bits.

    All uses of such a value leave out the bits above it, so the value itself need not. They are sums, opposites and
    choices of these.
    """

    OPS = ("+", "-", "*", "~", "choose", "m")

    def __init__(self, tree: Iterable[Statement | Branch]):
        self.found: set[Node] = set()
        self.only: dict[Node, set[Node]] = {}  # if these are loose, too
        self.exact: set[Node] = set()
        self.statements: list[Statement] = []
        self.collect(tree)

    def run(self) -> set[Node]:
        for statement in self.statements:
            for k, arg in enumerate(statement.args):
                self.wanted(statement, k, arg)
        self.found -= self.exact
        while True:
            less = {node for node in self.found if not self.only.get(node, set()) <= self.found}
            if not less:
                return self.found
            self.found -= less

    def collect(self, tree: Iterable[Statement | Branch]) -> None:
        for item in tree:
            if isinstance(item, Statement):
                self.statements.append(item)
                self.all_of(item.address)
                if item.target[0] == "value":
                    node = item.target[1]
                    if node.op in self.OPS and 1 < node.width < 64 and node.width != 32:
                        self.found.add(node)
                continue
            for literal, inner in item.arms:
                self.all_of(((literal[0], literal[1], 1),))
                self.collect(inner)

    def all_of(self, bits: Bits) -> None:
        """Record that these bits must be exact."""
        self.exact.update(node for node, low, size in bits if node is not None and not _cut(node, low, size))

    def wanted(self, statement: Statement, k: int, arg: Bits) -> None:
        """Record the bits that an operand needs of each of its pieces."""
        width = width_of(arg)
        if width > 64:
            self.all_of(arg)
            return
        kind, target = statement.target[:2]
        for at, (node, low, size) in enumerate(arg):
            if node is None or _cut(node, low, size) or (low and size <= _CHEAP and size > 1):
                continue
            rest = arg[at + 1 :]
            if rest and all(piece == (node, node.width - 1, 1) for piece in rest):  # a signed number
                continue
            if not rest and kind == "value" and statement.op in ("+", "-", "*") and width >= target.width:
                continue
            moved = statement.op in ("~", "is") or (statement.op == "m" and k > 0)
            if not rest and kind == "value" and moved and width == target.width:
                self.only.setdefault(node, set()).add(target)
            elif not rest and kind == "memory" and statement.op == "is" and width in (8, 16):
                continue
            else:
                self.exact.add(node)


def _cut(node: Node, low: int, size: int) -> bool:
    """Return whether the text of some bits has the bits above them left out."""
    return low + size < node.width or (low > 0 and size == 1 and node.width > 32)


def _turned(first: Piece, others: Iterable[Piece]) -> int:
    """Return how many single bits follow each other in the order of a number with the bits of each octet reversed."""
    node, low, size = first
    if size > 1:
        return 0
    count = 1
    for piece in others:
        if piece != (node, (low ^ 7) + count ^ 7, 1):
            break
        count += 1
    return count


def _falling(first: Piece, others: Iterable[Piece]) -> int:
    """Return how many single bits of one octet of a number follow each other downwards."""
    node, low, size = first
    if size > 1 or node is None or node.width > 64:
        return 0
    count = 1
    for piece in others:
        if count > low % 8 or piece != (node, low - count, 1):
            break
        count += 1
    return count


def _table(columns: tuple[int, ...], width: int, name: str) -> str:
    """Return the declaration of a table: for each number the sum modulo 2 of the columns at which it has a 1."""
    values = [0]
    for column in columns:
        values += [value ^ column for value in values]
    kind = f"uint{32 if width <= 32 else 64}_t"
    return f"    static const {kind} {name}[] = {{{', '.join(number(value, width) for value in values)}}};"


def _common(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    """Return the block that two blocks are in: a block is a row of statements' places and arms."""
    same = 0
    while same < min(len(one), len(other)) and one[same : same + 2] == other[same : same + 2]:
        same += 2
    return one[:same]


def _input(bits: Bits) -> bool:
    """Return whether it is all of an input."""
    node = whole_node(bits)
    return node is not None and node.op == "input"


def _local(node: Node) -> str:
    return f"v{node.key}"


def _effective(bits: Bits) -> int:
    """Return the number of bits without the zeros at the top."""
    size = width_of(bits)
    if bits and bits[-1][0] is None:
        size -= bits[-1][2] - bits[-1][1].bit_length()
    return size
