"""From Amaranth's netlist to one ordered, guarded clocked block of SystemVerilog, for a fast Verilated model.

Verilog as generated for synthesis is a sea of assignments: Verilator evaluates all of it at every clock, what
hangs on inputs twice. This scheduler emits the same function as a single ``always @(posedge clk)`` block: every
combinational value becomes a local variable, assigned in topological order; what is used only where an ``m.If``
holds is computed only inside that ``if``; registers and memories are written at the end. One call of the compiled
function is one clock, nothing is evaluated twice, and work that is not due costs a branch. A design that marks
registers as steady gets shorter bodies of that block beside the whole one (:mod:`bentpipe_sim.steady`).

The input is Amaranth's internal netlist (NIR), which keeps the decision trees of ``m.If``; so Amaranth is pinned to a
minor version. A test holds the result against Amaranth's own Verilog, cell for cell.

Restrictions, each an error: one clock domain ``sync`` with synchronous reset, no latches or instances, one write
enable a memory word, outputs that depend on inputs only through registers.
"""

# The netlist's classes carry no types.
# pyright: reportAttributeAccessIssue=false, reportOptionalMemberAccess=false
# pyright: reportArgumentType=false, reportReturnType=false

from __future__ import annotations

import sys
from dataclasses import dataclass, field

from amaranth.hdl import Fragment, Value
from amaranth.hdl import _nir as nir
from amaranth.hdl._ir import PortDirection, build_netlist
from amaranth.lib.wiring import In

from .generated import FIRST, LAST
from .steady import LEVELS, constant, settled_inputs, specialise, steady_registers

__all__ = ["Port", "ScheduleError", "Scheduled", "schedule"]

Context = tuple[int, ...]
"""Nets of 1 bit that are all known to be 1, outermost ``if`` first."""


class ScheduleError(Exception):
    """The design uses something that the scheduler does not handle."""


@dataclass(frozen=True)
class Port:
    """A port of the emitted module: ``direction`` is "input" or "output"."""

    name: str
    width: int
    direction: str


@dataclass(frozen=True)
class Scheduled:
    """SystemVerilog text of a module ``name``, and its ports (without ``clk`` and ``rst``)."""

    name: str
    text: str
    ports: tuple[Port, ...]


@dataclass
class _Statement:
    text: str
    context: Context
    needs: set[int] = field(default_factory=set)  # indices of statements


@dataclass
class _Body:
    """What the clocked block of a netlist is made of; lists of cells by index."""

    outside: set[int]
    flops: list[int]
    memories: list[int]
    resets: list[int]
    locals: list[str]
    lines: list[str]


@dataclass(frozen=True)
class _Level:
    """Flip-flops with steady values, and the register that tells whether they have them all."""

    flag: str
    registers: dict[int, int]


class _Scheduler:
    def __init__(self, netlist: nir.Netlist, name: str, levels: tuple[_Level, ...] = ()):
        self.netlist = netlist
        # Flip-flops that are constants in this netlist, their values, and the flags that fall when they are written
        self.steady = {index: value for level in levels for index, value in level.registers.items()}
        self.flags = {index: level.flag for level in levels for index in level.registers}
        self.prefix = "".join(level.flag[:2] for level in levels)  # of local variables
        self.cells = netlist.cells
        self.name = name
        self.input_at: dict[int, str] = {}
        self.input_width: dict[str, int] = {}
        for port, (start, width) in netlist.top.ports_i.items():
            self.input_width[port] = width
            for bit in range(width):
                self.input_at[start + bit] = port
        self._chains: dict[int, Context] = {}
        self.context: dict[int, Context] = {}  # of a combinational cell
        self.output_registers: dict[int, str] = {}  # flip-flop -> output port that it is
        self.copied: set[int] = set()  # flip-flops read while registers are written

    # Names and expressions

    def width_of(self, cell: nir.Cell) -> int:
        if isinstance(cell, nir.FlipFlop):
            return len(cell.data)
        if isinstance(cell, nir.PriorityMatch):
            return len(cell.inputs)
        if isinstance(cell, nir.AssignmentList):
            return len(cell.default)
        if isinstance(cell, nir.Matches):
            return 1
        return cell.width  # type: ignore[attr-defined]

    def variable(self, index: int, copies: bool) -> str:
        cell = self.cells[index]
        if isinstance(cell, nir.FlipFlop):
            return f"{self.prefix}c{index}" if copies and index in self.copied else self.register(index)
        return f"{self.prefix}t{index}"

    def register(self, index: int) -> str:
        return self.output_registers.get(index, f"q{index}")

    def expression(self, value: nir.Value | tuple, copies: bool = False) -> str:
        """Verilog for a value; ``copies`` reads registers as they were before any was written."""
        parts: list[str] = []
        position = 0
        value = tuple(value)
        while position < len(value):
            net = value[position]
            end = position + 1
            if net.is_const:
                bits = str(net.const)
                while end < len(value) and value[end].is_const:
                    bits = str(value[end].const) + bits
                    end += 1
                parts.append(f"{len(bits)}'b{bits}" if len(bits) < 65 else f"{len(bits)}'h{int(bits, 2):x}")
            elif net.cell == 0:
                port = self.input_at[net.bit]
                start = self.netlist.top.ports_i[port][0]
                while (
                    end < len(value)
                    and value[end] == net + (end - position)
                    and self.input_at.get(value[end].bit) == port
                ):
                    end += 1
                low, high = net.bit - start, net.bit - start + end - position - 1
                parts.append(self.slice(_port_name(port), self.input_width[port], low, high))
            else:
                cell = self.cells[net.cell]
                if isinstance(cell, nir.PriorityMatch):
                    parts.append(f"{self.prefix}t{net.cell}_{net.bit}")
                else:
                    while end < len(value) and value[end] == net + (end - position):
                        end += 1
                    high = net.bit + end - position - 1
                    name = self.variable(net.cell, copies)
                    parts.append(self.slice(name, self.width_of(cell), net.bit, high))
            position = end
        if not parts:
            return "1'b0"
        return parts[0] if len(parts) == 1 else "{" + ", ".join(reversed(parts)) + "}"

    @staticmethod
    def initial(cell: nir.FlipFlop) -> str:
        width = len(cell.data)
        return f"{width}'h{cell.init & ((1 << width) - 1):x}"

    def constant_of(self, index: int, value: int) -> str:
        return f"{len(self.cells[index].data)}'h{value:x}"

    @staticmethod
    def slice(name: str, width: int, low: int, high: int) -> str:
        if low == 0 and high == width - 1:
            return name
        return f"{name}[{low}]" if low == high else f"{name}[{high}:{low}]"

    # Guards

    def chain(self, net: nir.Net) -> Context:
        """The conditions under which ``net`` can be 1, outermost first, itself last."""
        if net in self._chains:
            return self._chains[net]
        result: Context = (int(net),)
        if net.is_const:
            result = ()
        elif net.cell:
            cell = self.cells[net.cell]
            if isinstance(cell, nir.PriorityMatch):
                result = self.chain(cell.en)
                condition = self.plain_condition(cell.inputs[net.bit])
                # an If, or one whose alternatives before can't hold: the condition itself, under what encloses it
                if condition is not None and not any(cell.inputs[: net.bit]):
                    result = self.join(result, self.chain(condition))
                else:
                    result += (int(net),)
            elif isinstance(cell, nir.AssignmentList) and len(cell.default) == 1 and cell.default[0] == 0:
                ones = [a for a in cell.assignments if tuple(a.value) == (1,)]
                if len(ones) == 1 and len(cell.assignments) == 1:
                    result = self.chain(ones[0].cond)
            elif isinstance(cell, nir.Operator) and cell.operator == "&" and cell.width == 1:
                left, right = (self.chain(v[0]) for v in cell.inputs)
                result = (right if len(right) > len(left) else left) + (int(net),)
        self._chains[net] = result
        return result

    def is_reset(self, assignment: nir.Assignment, cell: nir.FlipFlop) -> bool:
        """The last assignment of a register sets it to its initial value when ``rst`` is high."""
        if "rst" not in self.netlist.top.ports_i or assignment.start or len(assignment.value) != len(cell.data):
            return False
        rst = nir.Net.from_cell(0, self.netlist.top.ports_i["rst"][0])
        value = sum(net.const << k for k, net in enumerate(assignment.value) if net.is_const)
        constant = all(net.is_const for net in assignment.value)
        return constant and value == cell.init and self.chain(assignment.cond) == (int(rst),)

    def plain_condition(self, net: nir.Net) -> nir.Net | None:
        """The net of 1 bit that a ``Matches`` cell passes on unchanged."""
        cell = self.cells[net.cell] if net.is_cell else None
        if isinstance(cell, nir.Matches) and cell.patterns == ("1",):
            return cell.value[0]
        return None

    @staticmethod
    def join(context: Context, more: Context) -> Context:
        return context + tuple(net for net in more if net not in context)

    def own(self, index: int) -> tuple[nir.Net, ...]:
        """What a flip-flop's data input is if it keeps its value."""
        width = len(self.cells[index].data)
        if index in self.steady:
            return constant(self.steady[index], width)
        return tuple(nir.Net.from_cell(index, bit) for bit in range(width))

    def write(self, index: int, start: int, value: nir.Value, text: str) -> str:
        """The statement that writes part of a register, which notices what isn't steady any more."""
        target = self.slice(self.register(index), self.width_of(self.cells[index]), start, start + len(value) - 1)
        if index not in self.steady or tuple(value) == self.own(index)[start : start + len(value)]:
            return f"{target} = {text};"
        flag = self.flags[index]
        if all(net.is_const for net in value):
            return f"{target} = {text}; {flag} = 1'b0;"
        wanted = self.expression(self.own(index)[start : start + len(value)])
        return f"{target} = {text}; if ({target} != {wanted}) {flag} = 1'b0;"

    # The work

    def run(self) -> _Body:
        top = self.netlist.top
        comb: list[int] = []
        flops: list[int] = []
        writes: list[int] = []
        sync_reads: list[int] = []
        memories: list[int] = []
        for index, cell in enumerate(self.cells):
            match cell:
                case nir.Top():
                    pass
                case nir.Operator() | nir.Part() | nir.Matches() | nir.PriorityMatch() | nir.AssignmentList():
                    comb.append(index)
                case nir.AsyncReadPort():
                    comb.append(index)
                case nir.FlipFlop():
                    if cell.clk_edge != "pos" or not (cell.arst.is_const and cell.arst.const == 0):
                        raise ScheduleError(f"{cell!r}: only rising edges and synchronous resets")
                    flops.append(index)
                case nir.SyncWritePort():
                    writes.append(index)
                case nir.SyncReadPort():
                    sync_reads.append(index)
                case nir.Memory():
                    memories.append(index)
                case _:
                    raise ScheduleError(f"cannot schedule a {type(cell).__name__}")
        if sync_reads:
            raise ScheduleError("registered memory reads are for the narrow datapath, which is not scheduled")

        # Cells that feed outputs combinationally stay outside the block, as wires.
        outside: set[int] = set()

        def mark_outside(net):
            if net.is_const or (net.cell and isinstance(self.cells[net.cell], nir.FlipFlop)):
                return
            if net.cell == 0:
                raise ScheduleError(f"an output depends on input {self.input_at[net.bit]} without a register")
            if net.cell not in outside:
                outside.add(net.cell)
                for other in self.cells[net.cell].input_nets():
                    mark_outside(other)

        for port, value in top.ports_o.items():
            first = value[0] if len(value) else None
            whole = (
                first is not None
                and first.is_cell
                and first.cell
                and isinstance(self.cells[first.cell], nir.FlipFlop)
                and tuple(value) == tuple(first + k for k in range(self.width_of(self.cells[first.cell])))
            )
            if whole and first.cell not in self.output_registers:
                self.output_registers[first.cell] = _port_name(port)
            else:
                for net in value:
                    mark_outside(net)

        # Register updates: (flop, condition chain, start, value)
        updates: list[tuple[int, Context, int, nir.Value]] = []
        resets: list[int] = []
        absorbed: set[int] = set()
        uses: dict[int, int] = {}
        for cell in self.cells:
            for net in cell.input_nets() if not isinstance(cell, nir.Memory) else ():
                if net.is_cell and net.cell:
                    uses[net.cell] = uses.get(net.cell, 0) + 1
        for index in flops:
            cell = self.cells[index]
            width = len(cell.data)
            own = self.own(index)
            first = cell.data[0] if width else None
            source = self.cells[first.cell] if first is not None and first.is_cell and first.cell else None
            if (
                isinstance(source, nir.AssignmentList)
                and tuple(cell.data) == tuple(nir.Net.from_cell(first.cell, bit) for bit in range(len(source.default)))
                and tuple(source.default) == own
                and uses[first.cell] == width
                and first.cell not in outside
            ):
                absorbed.add(first.cell)
                assignments = list(source.assignments)
                if assignments and self.is_reset(assignments[-1], cell):
                    assignments.pop()
                    resets.append(index)
                updates += [(index, self.chain(a.cond), a.start, a.value) for a in assignments]
            elif tuple(cell.data) != own:
                updates.append((index, (), 0, cell.data))
        comb = [index for index in comb if index not in absorbed]

        # Where is each value used? Contexts flow backwards from registers and memories.
        context: dict[int, Context | None] = {}

        def use(net, where: Context):
            if not net.is_cell or not net.cell or isinstance(self.cells[net.cell], nir.FlipFlop):
                return
            known = context.get(net.cell)
            if known is None:
                context[net.cell] = where
            else:
                shared = 0
                while shared < min(len(known), len(where)) and known[shared] == where[shared]:
                    shared += 1
                context[net.cell] = known[:shared]

        def use_guards(where: Context):
            for depth, net in enumerate(where):
                use(nir.Net(net), where[:depth])

        for _, where, _, value in updates:
            use_guards(where)
            for net in value:
                use(net, where)
        # Memory writes: (port, condition chain, conditions that override it, address, data)
        stores: list[tuple[int, Context, tuple, nir.Value, nir.Value]] = []
        for index in writes:
            if any(self.cells[index].en):
                stores += self.store_cases(index)
        for _, where, later, addr, value in stores:
            use_guards(where)
            for net in (*later, *addr, *value):
                use(net, where)

        order = self.topological(comb)
        for index in reversed(order):
            where = context.get(index)
            if where is None:
                continue
            cell = self.cells[index]
            if isinstance(cell, nir.AssignmentList):
                use_guards(where)
                for net in cell.default:
                    use(net, where)
                for a in cell.assignments:
                    inner = self.join(where, self.chain(a.cond))
                    use_guards(inner)
                    for net in a.value:
                        use(net, inner)
            else:
                use_guards(where)
                for net in cell.input_nets():
                    use(net, where)

        unread = set(flops)
        for index, cell in enumerate(self.cells):
            unread -= {net.cell for net in self.nets_read(cell, index in absorbed) if net.is_cell}
        early = [update for update in updates if update[0] in unread]
        updates = [update for update in updates if update[0] not in unread]
        inlined: dict[int, str] = {}  # memory reads whose only use is an early update
        for _, where, _, value in early:
            source = value[0].cell if value[0].is_cell else 0
            read = self.cells[source]
            if (
                isinstance(read, nir.AsyncReadPort)
                and tuple(value) == tuple(nir.Net.from_cell(source, bit) for bit in range(read.width))
                and uses[source] == read.width
                and context[source] == where
            ):
                inlined[source] = self.operation(read)

        self.copied = self.to_copy(updates)

        reads: list[_Statement] = []
        defined: dict[int, list[int]] = {}  # cell -> statements that define it

        nets_of: list[tuple] = []  # what a statement reads, its guards included

        def add(index, text, where, nets):
            reads.append(_Statement(text, where))
            nets_of.append((*nets, *(nir.Net(n) for n in where)))
            earlier = defined.setdefault(index, [])
            if earlier:  # assignments of one value stay in order
                reads[-1].needs.add(earlier[-1])
            earlier.append(len(reads) - 1)

        locals_: list[str] = []
        for index in order:
            where = context.get(index)
            if where is None or index in inlined:
                continue
            cell = self.cells[index]
            width = self.width_of(cell)
            if isinstance(cell, nir.PriorityMatch):
                for bit in range(width):
                    locals_.append(f"automatic logic {self.prefix}t{index}_{bit};")
                    add(
                        index,
                        f"{self.prefix}t{index}_{bit} = {self.priority(cell, bit, where)};",
                        where,
                        cell.input_nets(),
                    )
                continue
            locals_.append(f"automatic logic {_range(width)}{self.prefix}t{index};")
            if isinstance(cell, nir.AssignmentList):
                add(index, f"{self.prefix}t{index} = {self.expression(cell.default)};", where, cell.default)
                for a in cell.assignments:
                    inner = self.join(where, self.chain(a.cond))
                    target = self.slice(f"{self.prefix}t{index}", width, a.start, a.start + len(a.value) - 1)
                    add(index, f"{target} = {self.expression(a.value)};", inner, a.value)
            elif isinstance(cell, nir.Part) and (text := self.selection(cell)):
                value, select = text
                locals_.append(f"automatic logic {_range(self.reach(cell))}{self.prefix}p{index};")
                add(index, f"{self.prefix}p{index} = {value};", where, cell.value)
                add(
                    index,
                    f"{self.prefix}t{index} = {self.prefix}p{index}[{select} +: {cell.width}];",
                    where,
                    cell.offset,
                )
            else:
                add(index, f"{self.prefix}t{index} = {self.operation(cell)};", where, cell.input_nets())
        for index, where, start, value in early:
            source = value[0].cell if value[0].is_cell else 0
            if source in inlined:
                add(index, self.write(index, start, value, inlined[source]), where, self.cells[source].addr)
            else:
                add(index, self.write(index, start, value, self.expression(value)), where, value)
        for at, statement in enumerate(reads):  # guards may come later in the order than what they guard
            for net in nets_of[at]:
                if net.is_cell and net.cell:
                    statement.needs.update(k for k in defined.get(net.cell, ()) if k != at)
        for own in defined.values():  # ... but a value does not wait for itself
            for at in own:
                statement_needs = reads[at].needs
                statement_needs -= {k for k in own if k > at}
        locals_ += [
            f"automatic logic {_range(self.width_of(self.cells[i]))}{self.prefix}c{i};" for i in sorted(self.copied)
        ]

        # Writes, after everything else is read; a register is written after all writes that read it
        ends: list[_Statement] = []
        latest: dict[int, int] = {}
        readers: dict[int, set[int]] = {}  # register -> statements
        shared: dict[int, Context] = {}  # copied register -> what all guards of its uses begin with

        def read_by(at: int, nets, where: Context):
            """Statement ``at`` reads these nets, and its guards each under those before."""
            uses = [(register, where) for register in self.registers_in(nets)]
            for depth, net in enumerate(where):
                uses += [(register, where[:depth]) for register in self.registers_in((nir.Net(net),))]
            for register, under in uses:
                readers.setdefault(register, set()).add(at)
                known = shared.setdefault(register, under)
                same = next((k for k, (a, b) in enumerate(zip(known, under, strict=False)) if a != b), None)
                shared[register] = known[: min(len(known), len(under)) if same is None else same]

        for index, where, start, value in updates:
            statement = _Statement(self.write(index, start, value, self.expression(value, copies=True)), where)
            if index in latest:
                statement.needs.add(latest[index])
            ends.append(statement)
            latest[index] = len(ends) - 1
            read_by(len(ends) - 1, value, where)
        for index, where, later, addr, value in stores:
            read_by(len(ends), (*later, *addr, *value), where)
            word = f"m{self.cells[index].memory}[{self.expression(addr, copies=True)}]"
            text = f"{word} = {self.expression(value, copies=True)};"
            if later:
                text = f"if (~({' | '.join(self.expression((net,), copies=True) for net in later)})) {text}"
            ends.append(_Statement(text, where))
        writers: dict[int, set[int]] = {}
        for at, (index, *_) in enumerate(updates):
            writers.setdefault(index, set()).add(at)
        for index in sorted(self.copied):  # where all that need it are, before the first write and the first use
            for at in writers.get(index, set()) | readers.get(index, set()):
                ends[at].needs.add(len(ends))
            ends.append(_Statement(f"{self.prefix}c{index} = {self.register(index)};", shared.get(index, ())))
        for at, (index, *_) in enumerate(updates):
            if index not in self.copied:
                ends[at].needs |= readers.get(index, set()) - writers[index]

        lines = [*self.blocks(reads, copies=False), *self.blocks(ends, copies=True)]
        return _Body(outside, flops, memories, resets, locals_, lines)

    def registers_in(self, nets) -> set[int]:
        """The flip-flops among what these nets come from."""
        found = {net.cell for net in nets if net.is_cell and net.cell}
        return {index for index in found if isinstance(self.cells[index], nir.FlipFlop)}

    def to_copy(self, updates: list[tuple[int, Context, int, nir.Value]]) -> set[int]:
        """The registers that are copied before any is written: those up to 64 bits that others read, as that is cheaper
        than to split guarded blocks; of wide ones, those whose later partial updates read themselves, and one of each
        ring of registers that read each other. The other wide ones are written after all that read them."""
        before: dict[int, set[int]] = {}  # register -> registers that its updates read
        copied: set[int] = set()
        for index, where, _, value in updates:
            found = self.registers_in((*value, *map(nir.Net, where)))
            if index in before and index in found:
                copied.add(index)
            before.setdefault(index, set()).update(found - {index})
        copied |= {index for read in before.values() for index in read if self.width_of(self.cells[index]) <= 64}
        while True:
            # Registers that no uncopied one of the others has to precede can be written last: peel them off.
            left = {index: {r for r in read if r in before and r not in copied} for index, read in before.items()}
            while True:
                read = set().union(*left.values()) if left else set()
                free = [index for index in left if index not in read]
                free += [index for index, reads in left.items() if not reads and index not in free]
                if not free:
                    break
                for index in free:
                    left.pop(index, None)
                left = {index: reads & left.keys() for index, reads in left.items()}
            if not left:
                return copied
            ring = set().union(*left.values())
            copied.add(min(ring, key=lambda index: (self.width_of(self.cells[index]), index)))

    def store_cases(self, index: int) -> list[tuple[int, Context, tuple, nir.Value, nir.Value]]:
        """A write port as one guarded write for each ``m.If`` that drives it, if all its inputs are driven alike."""
        cell = self.cells[index]
        if len(set(cell.en)) != 1:
            raise ScheduleError("a memory word has several write enables")

        def driver(value) -> nir.AssignmentList | None:
            source = self.cells[value[0].cell] if value[0].is_cell and value[0].cell else None
            if not isinstance(source, nir.AssignmentList) or len(source.default) != len(value):
                return None
            whole = all(a.start == 0 and len(a.value) == len(value) for a in source.assignments)
            return source if whole and all(net == value[0] + k for k, net in enumerate(value)) else None

        en, addr, data = driver(cell.en[:1]), driver(cell.addr), driver(cell.data)
        if en and addr and data and tuple(en.default) == (0,) and len(en.assignments) > 1:
            conditions = [a.cond for a in en.assignments]
            alike = all([a.cond for a in each.assignments] == conditions for each in (addr, data))
            if alike and all(tuple(a.value) == (1,) for a in en.assignments):
                return [
                    (
                        index,
                        self.chain(condition),
                        tuple(conditions[k + 1 :]),
                        addr.assignments[k].value,
                        data.assignments[k].value,
                    )
                    for k, condition in enumerate(conditions)
                ]
        return [(index, self.chain(cell.en[0]), (), cell.addr, cell.data)]

    @staticmethod
    def nets_read(cell: nir.Cell, absorbed: bool) -> set[nir.Net]:
        """What a cell reads; an absorbed one, of a register that keeps its value otherwise, does not read that."""
        if isinstance(cell, nir.Memory | nir.Top):
            return set()
        if absorbed and isinstance(cell, nir.AssignmentList):
            return {net for a in cell.assignments for net in (*a.value, a.cond)}
        return cell.input_nets()

    def topological(self, comb: list[int]) -> list[int]:
        inside = set(comb)
        order: list[int] = []
        done: set[int] = set()
        for root in comb:
            stack = [(root, iter(()))] if root in done else [(root, self.sources(root, inside))]
            if root in done:
                continue
            done.add(root)
            while stack:
                index, sources = stack[-1]
                for source in sources:
                    if source not in done:
                        done.add(source)
                        stack.append((source, self.sources(source, inside)))
                        break
                else:
                    order.append(index)
                    stack.pop()
        return order

    def sources(self, index: int, inside: set[int]):
        nets = set(self.cells[index].input_nets())
        cell = self.cells[index]
        if isinstance(cell, nir.AssignmentList):  # the guards of the assignments as well
            for a in cell.assignments:
                nets |= {nir.Net(net) for net in self.chain(a.cond)}
        return iter(sorted({net.cell for net in nets if net.is_cell and net.cell in inside}))

    def priority(self, cell: nir.PriorityMatch, bit: int, where: Context) -> str:
        terms = [] if cell.en == 1 or int(cell.en) in where else [self.expression((cell.en,))]
        terms += [f"~{self.expression((net,))}" for net in cell.inputs[:bit]]
        terms.append(self.expression((cell.inputs[bit],)))
        return " & ".join(terms)

    @staticmethod
    def reach(cell: nir.Part) -> int:
        """How many bits of its value a selection can touch, those beyond the end among them."""
        most = sum(1 << k for k, net in enumerate(cell.offset) if not net.is_const or net.const)
        return most * cell.stride + cell.width

    def selection(self, cell: nir.Part) -> tuple[str, str] | None:
        """A selection from a wide value that is cheaper as such than as a shift of all of it: the value, with zeros up
        to where the selection reaches, and the place."""
        if cell.value_signed or len(cell.value) <= 64 or not cell.offset or 2 * cell.width > len(cell.value):
            return None
        reach = self.reach(cell)
        zeros = nir.Net.from_const(0)
        value = (*cell.value[:reach], *[zeros] * (reach - len(cell.value)))
        offset = self.expression(cell.offset)
        return self.expression(value), offset if cell.stride == 1 else f"{offset} * 32'd{cell.stride}"

    def operation(self, cell: nir.Cell) -> str:
        e = self.expression
        if isinstance(cell, nir.AsyncReadPort):
            return f"m{cell.memory}[{e(cell.addr)}]"
        if isinstance(cell, nir.Matches):
            terms = []
            for pattern in cell.patterns:
                cared = [k for k, c in enumerate(reversed(pattern)) if c != "-"]
                bits = "".join(pattern[len(pattern) - 1 - k] for k in reversed(cared))
                if not cared:
                    terms.append("1'b1")
                    continue
                picked = e(tuple(cell.value[k] for k in cared))
                if len(bits) == 1:
                    terms.append(picked if bits == "1" else f"~{picked}")
                else:
                    terms.append(f"({picked} == {len(bits)}'b{bits})")
            return " | ".join(terms)
        if isinstance(cell, nir.Part):
            offset = e(cell.offset)
            shift = offset if cell.stride == 1 else f"({offset} * 32'd{cell.stride})"
            if not cell.offset:
                shift = "1'b0"
            return f"$signed({e(cell.value)}) >>> {shift}" if cell.value_signed else f"{e(cell.value)} >> {shift}"
        assert isinstance(cell, nir.Operator)
        operands = [e(value) for value in cell.inputs]
        symbol = cell.operator
        if symbol == "m":
            return f"{operands[0]} ? {operands[1]} : {operands[2]}"
        if len(operands) == 1:
            return {"b": "|", "r|": "|", "r&": "&", "r^": "^"}.get(symbol, symbol) + operands[0]
        if symbol in ("s<", "s>", "s<=", "s>="):
            return f"$signed({operands[0]}) {symbol[1:]} $signed({operands[1]})"
        if symbol == "s>>":
            return f"$signed({operands[0]}) >>> {operands[1]}"
        if symbol in ("s//", "s%"):
            raise ScheduleError("no division of signed values in the cell path")
        if symbol in ("u//", "u%"):  # by 0 it is 0, as Amaranth has it
            return f"({operands[1]}) == 0 ? 0 : {operands[0]} {symbol[1]} {operands[1]}"
        return f"{operands[0]} {symbol.lstrip('u')} {operands[1]}"

    def emit(self, levels: tuple[_Level, ...], bodies: list[_Body], inputs: tuple[str, ...]) -> Scheduled:
        """The module. Its block for clocks in which the registers of the levels from the k-th on are steady, and these
        inputs are 0, is the k-th body; the last one is for all others."""
        whole = bodies[-1]
        top = self.netlist.top
        ports: list[Port] = []
        head: list[str] = []
        body: list[str] = []
        for port, (_, width) in top.ports_i.items():
            if width:
                head.append(f"input {_range(width)}{_port_name(port)}")
                if port not in ("clk", "rst"):
                    ports.append(Port(_port_name(port), width, "input"))
        for port, value in top.ports_o.items():
            if not len(value):
                continue
            ports.append(Port(_port_name(port), len(value), "output"))
            if _port_name(port) in self.output_registers.values():
                head.append(f"output reg {_range(len(value))}{_port_name(port)}")
            else:
                head.append(f"output {_range(len(value))}{_port_name(port)}")
                body.append(f"assign {_port_name(port)} = {self.expression(value)};")
        for index in whole.flops:
            cell = self.cells[index]
            width = len(cell.data)
            if width and index in self.output_registers:
                body.append(f"initial {self.register(index)} = {self.initial(cell)};")
            elif width:
                body.append(f"reg {_range(width)}q{index} = {self.initial(cell)};")
        for index in whole.memories:
            memory = self.cells[index]
            body.append(f"reg {_range(memory.width)}m{index} [0:{memory.depth - 1}];")
            used = [(k, v) for k, v in enumerate(memory.init) if v]
            if used:
                body.append("initial begin")
                body += [f"  m{index}[{k}] = {memory.width}'h{v:x};" for k, v in used]
                body.append("end")
        for index in self.topological(sorted(whole.outside)):
            cell = self.cells[index]
            width = self.width_of(cell)
            name = f"t{index}"
            if isinstance(cell, nir.PriorityMatch):
                for bit in range(width):
                    body.append(f"wire {name}_{bit} = {self.priority(cell, bit, ())};")
            elif isinstance(cell, nir.AssignmentList):
                body.append(f"reg {_range(width)}{name};")
                body.append(f"always @* begin {name} = {self.expression(cell.default)};")
                for a in cell.assignments:
                    target = self.slice(name, width, a.start, a.start + len(a.value) - 1)
                    body.append(f"  if ({self.expression((a.cond,))}) {target} = {self.expression(a.value)};")
                body.append("end")
            else:
                body.append(f"wire {_range(width)}{name} = {self.operation(cell)};")
        # Inside the block the same cells are local variables of their own, which hide these.
        resets = [f"{self.register(index)} = {self.initial(self.cells[index])};" for index in whole.resets]
        block = [*whole.lines, *(["if (rst) begin", *(f"  {line}" for line in resets), "end"] if resets else [])]
        for level in levels:
            body.append(f"reg {level.flag} = 1'b0;")
        blocks = [quick.lines for quick in bodies[:-1]] + [block]
        for k, level in enumerate(levels):
            kept = [f"({self.register(i)} == {self.constant_of(i, value)})" for i, value in level.registers.items()]
            for block in blocks[k + 1 :]:
                block.append(f"{level.flag} = {' & '.join(kept)};")
        if levels:
            blocks = [[f'$c("// {FIRST}\\n");', *lines, f'$c("// {LAST}\\n");'] for lines in blocks]
        block = blocks[-1]
        for k in reversed(range(len(levels))):
            flags = [level.flag for level in levels[k:]]
            condition = " & ".join([*flags, *(f"~{_port_name(port)}" for port in inputs)])
            block = [f"if ({condition}) begin", *_indented(blocks[k]), "end", "else begin", *_indented(block), "end"]
        locals_ = [line for each in bodies for line in each.locals]
        body += ["always @(posedge clk) begin : slot", *_indented([*locals_, *block]), "end"]
        lines = [f"module {self.name}(", "  " + ",\n  ".join(head), ");", *body, "endmodule", ""]
        return Scheduled(self.name, "\n".join(lines), tuple(ports))

    def blocks(self, statements: list[_Statement], copies: bool) -> list[str]:
        """Statements in an order that respects ``needs`` and opens few ``if`` blocks.

        At each level: what is ready, then whole inner blocks that need nothing more from outside; only if that
        leads no further, the ready part of the inner block that has the most of it.
        """
        done: set[int] = set()
        lines: list[str] = []

        def possible(group: set[int]) -> set[int]:
            """The statements of a group that can be emitted without anything from outside it."""
            found: set[int] = set()
            waiting = {k: statements[k].needs - done for k in group}
            while True:
                more = [k for k, needs in waiting.items() if needs <= found]
                if not more:
                    return found
                found.update(more)
                for k in more:
                    del waiting[k]

        def emit(group: set[int], depth: int):
            indent = "  " * depth
            own = [k for k in sorted(group) if len(statements[k].context) == depth]
            inner: dict[int, set[int]] = {}
            for k in sorted(group):
                if len(statements[k].context) > depth:
                    inner.setdefault(statements[k].context[depth], set()).add(k)
            while own or inner:
                ready = [k for k in own if statements[k].needs <= done]
                if ready:
                    lines.extend(indent + statements[k].text for k in ready)
                    done.update(ready)
                    own = [k for k in own if k not in done]
                    continue
                parts = {net: possible(members) for net, members in inner.items()}
                whole = [net for net, members in inner.items() if len(parts[net]) == len(members)]
                chosen = whole[0] if whole else max(parts, key=lambda net: len(parts[net]), default=None)
                if chosen is None or not parts[chosen]:
                    raise ScheduleError("statements wait for each other")
                lines.append(f"{indent}if ({self.expression((nir.Net(chosen),), copies=copies)}) begin")
                emit(parts[chosen], depth + 1)
                lines.append(f"{indent}end")
                inner[chosen] -= parts[chosen]
                if not inner[chosen]:
                    del inner[chosen]

        emit(set(range(len(statements))), 0)
        return lines


def _indented(lines: list[str]) -> list[str]:
    return [f"  {line}" for line in lines]


def _range(width: int) -> str:
    return f"[{width - 1}:0] " if width > 1 else ""


def _port_name(port: str) -> str:
    return port.replace("__", "_")


def schedule(component, name: str) -> Scheduled:
    """Schedule an Amaranth component (``wiring.Component``) as a module ``name``.

    Raises
    ------
    ScheduleError
        It uses something that the scheduler does not handle.
    """
    ports = {}
    for path, member, value in component.signature.flatten(component):
        direction = PortDirection.Input if member.flow == In else PortDirection.Output
        ports["__".join(str(part) for part in path)] = (Value.cast(value), direction)
    sys.setrecursionlimit(max(sys.getrecursionlimit(), 100_000))
    netlist = build_netlist(Fragment.get(component, None), ports=ports, name=name)
    registers, inputs = steady_registers(netlist), settled_inputs(netlist)
    levels = tuple(_Level(flag, registers[flag]) for flag in LEVELS if registers[flag])
    bodies = []
    for k in range(len(levels)):
        known = {index: value for level in levels[k:] for index, value in level.registers.items()}
        bodies.append(_Scheduler(specialise(netlist, known, inputs), name, levels[k:]).run())
    scheduler = _Scheduler(netlist, name)
    return scheduler.emit(levels, [*bodies, scheduler.run()], inputs if levels else ())
