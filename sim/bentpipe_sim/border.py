"""The border between a node's model and the event loop, in C++: what ``csrc/model.h`` declares."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from .tools import CSRC

__all__ = ["Port", "border", "port_struct"]


_STEP = 23
"""Lines of a cache between the beginnings of two instances in their pages: about what a clock mostly needs."""


@dataclass(frozen=True)
class Port:
    """A port of a model: ``width`` in bits."""

    name: str
    width: int


def port_struct(ports: Iterable[str]) -> tuple[str, frozenset[str]]:
    """Return the C++ struct of the ports of such a node, and the names of its members."""
    kind = "bp_nic" if "post_valid" in ports else "bp_ports"
    text = (CSRC / "model.h").read_text()
    found: set[str] = set()
    for struct in {"bp_ports", kind}:
        match = re.search(rf"^struct (?:alignas\(64\) )?{struct}\b[^{{]*{{\n(.*?)^}}", text, re.MULTILINE | re.DOTALL)
        assert match is not None
        for line in re.findall(r"^    (?:alignas\(64\) )?(?:uint\d+_t|W<\d+>) ([\w, ]+);", match[1], re.MULTILINE):
            found.update(line.split(", "))
    return kind, frozenset(found)


_INCLUDED = """#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <type_traits>
"""


def border(
    ports: Iterable[Port],
    model: str,
    *,
    begin: str,
    clock: str,
    cell: str = "",
    turn: str = "",
    end: str = "",
    copied: bool = False,
) -> str:
    """Return the model that a library exports.

    Parameters
    ----------
    ports : iterable of Port
    model : str
        A class with a member of the port's name for each, derived from the struct of :func:`port_struct`.
    begin, clock, end : str
        Statements about a ``model& m``: when it is made, for a clock, before it goes.
    cell, turn : str
        Names of functions of a ``void*`` to a ``model``, for a clock of a settled one; without them ``clock``.
    copied : bool
        Its members are all of its state, without pointers.
    """
    ports = list(ports)
    fits = " && ".join(f"sizeof({model}::{port.name}) * 8 >= {port.width}" for port in ports)
    rows = ", ".join(f'{{"{port.name}", &m->{port.name}, {port.width}}}' for port in ports)
    state = f"""
static_assert(std::is_trivially_copyable<{model}>::value, "its state is its octets");
void* state(void* p, uint64_t* length) {{ *length = sizeof({model}); return &of(p); }}"""
    return f"""
{_INCLUDED}namespace {{
static_assert({fits}, "a port is wider than its member");
struct Instance : {model} {{ bp_port list[64]; char* memory; }};
{model}& of(void* p) {{ return *static_cast<{model}*>(p); }}
Instance* instance(void* p) {{ return static_cast<Instance*>(&of(p)); }}
// What is large is put at the beginning of a page, and what is at the same place in pages shares a few lines of a
// cache. So each instance begins some lines further on than the one before.
constexpr size_t LINE = 64, LINES = 64;
std::atomic<size_t> instances;
void* create(size_t in_front) {{
    const size_t skipped = LINE * (instances++ * {_STEP} % LINES) + (in_front + LINE - 1) / LINE * LINE;
    // Zeros: its state is its octets, those between members among them. Pages of memories that nothing is written to
    // stay those of the system.
    char* memory = static_cast<char*>(std::calloc(1, skipped + sizeof(Instance) + LINE));
    if (!memory) throw std::bad_alloc();
    Instance* made = new (memory + skipped + -reinterpret_cast<uintptr_t>(memory) % LINE) Instance;
    made->memory = memory;
    {model}& m = *made;
    {begin}
    return &m;
}}
void destroy(void* p) {{
    {model}& m = of(p);
    {end}
    char* const memory = instance(p)->memory;
    instance(p)->~Instance();
    std::free(memory);
}}
void one_clock(void* p) {{ {model}& m = of(p); {clock} }}
void reset(void* p, int on) {{ of(p).rst = on; }}
const bp_port* ports(void* p, uint32_t* count) {{
    {model}* m = &of(p);
    const bp_port list[] = {{{rows}}};
    static_assert(sizeof list <= sizeof(Instance::list), "too many ports");
    *count = sizeof list / sizeof *list;
    return std::copy(list, list + *count, instance(p)->list) - *count;
}}{state if copied else ""}
}}
extern "C" __attribute__((visibility("default"))) const bp_model bentpipe_model = {{
    create, destroy, {{one_clock, {{{turn or "one_clock"}, {cell or "one_clock"}}}}}, reset, ports,
    {"state" if copied else "nullptr"}}};
"""
