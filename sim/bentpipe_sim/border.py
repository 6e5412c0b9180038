"""The border between a node's model and the event loop, in C++: what ``csrc/model.h`` declares."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["Port", "border"]


@dataclass(frozen=True)
class Port:
    """A port of a model: ``width`` in bits."""

    name: str
    width: int


def border(ports: Iterable[Port], model: str, *, begin: str, clock: str, end: str = "") -> str:
    """The model that a library exports.

    Parameters
    ----------
    ports : iterable of Port
    model : str
        A class with a member of the port's name for each.
    begin, clock, end : str
        Statements about a ``model& m``: when it is made, for a clock, before it goes.
    """
    rows = ", ".join(f'{{"{port.name}", &m->{port.name}, {port.width}}}' for port in ports)
    return f"""
namespace {{
struct Instance {{ {model} model; bp_port ports[64]; }};
{model}& of(void* p) {{ return static_cast<Instance*>(p)->model; }}
void* create() {{ Instance* made = new Instance; {model}& m = made->model; {begin} return made; }}
void destroy(void* p) {{ {model}& m = of(p); {end} delete static_cast<Instance*>(p); }}
void one_clock(void* p) {{ {model}& m = of(p); {clock} }}
void reset(void* p, int on) {{ of(p).rst = on; }}
const bp_port* ports(void* p, uint32_t* count) {{
    {model}* m = &of(p);
    const bp_port list[] = {{{rows}}};
    static_assert(sizeof list <= sizeof(Instance::ports), "too many ports");
    *count = sizeof list / sizeof *list;
    for (uint32_t k = 0; k < *count; ++k) static_cast<Instance*>(p)->ports[k] = list[k];
    return static_cast<Instance*>(p)->ports;
}}
}}
extern "C" __attribute__((visibility("default"))) const bp_model bentpipe_model = {{
    create, destroy, one_clock, reset, ports}};
"""
