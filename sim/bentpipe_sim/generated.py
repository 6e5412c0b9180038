"""What is done to Verilator's C++ before it is compiled."""

import re

__all__ = ["FIRST", "LAST", "split_bodies", "with_byte_shifts", "without_resets"]

FIRST, LAST = "bentpipe: body", "bentpipe: end"
"""Comments around each body of a scheduled block that has more than one."""


def without_resets(text: str) -> str:
    """Generated C++ without the zeros that Verilator gives to automatic variables of the scheduled block on entry.

    The scheduler writes each before it is read, so they change nothing, but the compiler can't see that through all
    the guards (a fifth of the time).
    """
    local = r"(\w+__DOT__slot__DOT__\w+)"
    zero = re.compile(rf" +(?:VL_ZERO\w*_W\(\d+, {local}\)|{local} = 0);\n")
    any_zero = re.compile(r" +(?:VL_ZERO\w*_W\(\d+, \w+\)|\w+ = 0);\n")
    lines = []
    declaring, entering = False, False
    seen: set[str] = set()
    for line in text.splitlines(keepends=True):
        found = zero.fullmatch(line)
        variable = found and (found[1] or found[2])
        if line.strip() in ("// Locals", "// Body"):
            declaring, entering, seen = "Locals" in line, "Body" in line, set()
        elif variable and (declaring or (entering and variable not in seen)):  # what comes again is an assignment
            seen.add(variable)
            continue
        elif not any_zero.fullmatch(line):
            entering = False
        lines.append(line)
    return "".join(lines)


def with_byte_shifts(text: str) -> str:
    """Generated C++ whose wide shifts to the right are those of ``shift.hpp``: most are by whole octets."""
    return text.replace("VL_SHIFTR_WWI(", "bentpipe_shiftr(")


def split_bodies(text: str) -> str:
    """Generated C++ with each body as a function of its own, its variables in it: compilers take less time for it, and
    what they make takes less."""
    function = r"^void (\w+___nba_sequent__\w+)\((\w+)\* vlSelf\) \{\n(.*?)^\}\n"
    found = re.search(function, text, re.DOTALL | re.MULTILINE)
    if not found or FIRST not in found[3]:
        return text
    name, model, block = found.groups()
    # The function: declarations and zeros, then statements among which the bodies are.
    head, *parts = re.split(rf"^ *// {FIRST}\n", block, flags=re.MULTILINE)
    bodies, between = [], []
    for part in parts:
        body, rest = re.split(rf"^ *// {LAST}\n", part, flags=re.MULTILINE)
        bodies.append(body)
        between.append(rest)
    words = [set(re.findall(r"\w+", body)) for body in bodies]
    left = set(re.findall(r"\w+", "".join(between)))
    own: list[list[str]] = [[] for _ in bodies]
    kept = []
    for line in head.splitlines(keepends=True):
        about = re.fullmatch(r" +(?:VL_ZERO\w*\(\d+, (\w+)\)|[\w<>]+(?:/\*.*?\*/)? (\w+)|(\w+) = 0);\n", line)
        variable = about and (about[1] or about[2] or about[3])
        users = [k for k, used in enumerate(words) if variable in used]
        for k in users:
            own[k].append(line)
        if not users or variable in left:
            kept.append(line)
    functions = [
        f"static VL_ATTR_NOINLINE void body_{k}({model}* vlSelf) {{\n"
        f"    auto& vlSelfRef = std::ref(*vlSelf).get();\n{''.join(own[k])}{body}}}\n\n"
        for k, body in enumerate(bodies)
    ]
    calls = "".join(f"    body_{k}(vlSelf);\n{rest}" for k, rest in enumerate(between))
    whole = f"void {name}({model}* vlSelf) {{\n{''.join(kept)}{calls}}}\n"
    return text[: found.start()] + "".join(functions) + whole + text[found.end() :]
