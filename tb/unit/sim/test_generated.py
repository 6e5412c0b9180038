"""What is done to Verilator's C++ before it is compiled. That models still do the same is in test_schedule and
test_steady."""

import subprocess

from bentpipe_sim.build import CSRC, compiler, verilator
from bentpipe_sim.generated import FIRST, LAST, split_bodies, without_resets


def test_entry_zeros_go_and_assigned_ones_stay():
    generated = """
void Vx___024root___nba_sequent__TOP__0(Vx___024root* vlSelf) {
    // Locals
    IData/*31:0*/ x__DOT__slot__DOT__one;
    x__DOT__slot__DOT__one = 0;
    VlWide<3>/*71:0*/ x__DOT__slot__DOT__two;
    VL_ZERO_W(72, x__DOT__slot__DOT__two);
    CData/*0:0*/ x__DOT__all;
    x__DOT__all = 0;
    // Body
    x__DOT__slot__DOT__one = 0;
    VL_ZERO_W(72, x__DOT__slot__DOT__two);
    VL_ZERO_W(72, x__DOT__slot__DOT__two);
    x__DOT__all = 0;
    vlSelfRef.out = 1U;
    VL_ZERO_W(72, x__DOT__slot__DOT__two);
}
"""
    left = [line.strip() for line in without_resets(generated).splitlines()]
    assert left.count("VL_ZERO_W(72, x__DOT__slot__DOT__two);") == 2
    assert left.count("x__DOT__all = 0;") == 2
    assert "x__DOT__slot__DOT__one = 0;" not in left
    assert (
        left.index("// Body") < left.index("VL_ZERO_W(72, x__DOT__slot__DOT__two);") < left.index("vlSelfRef.out = 1U;")
    )


def test_bodies_become_functions_with_their_variables():
    generated = f"""
void Vx___024root___nba_sequent__TOP__0(Vx___024root* vlSelf) {{
    auto& vlSelfRef = std::ref(*vlSelf).get();
    IData/*31:0*/ x__DOT__slot__DOT__one;
    VlWide<3>/*71:0*/ x__DOT__slot__DOT__two;
    CData/*0:0*/ x__DOT__all;
    VL_ZERO_W(72, x__DOT__slot__DOT__two);
    x__DOT__all = 0;
    if (vlSelfRef.steady) {{
// {FIRST}
        x__DOT__slot__DOT__one = 1U;
// {LAST}
    }} else {{
// {FIRST}
        x__DOT__slot__DOT__one = x__DOT__slot__DOT__two[0U];
// {LAST}
    }}
    vlSelfRef.out = x__DOT__all;
}}
int after;
"""
    split = split_bodies(generated)
    first, second, whole = split.split("(Vx___024root* vlSelf) {")[1:]
    assert " one;" in first.replace("x__DOT__slot__DOT__", " ") and "two" not in first and "all" not in first
    assert "one" in second and second.index("VL_ZERO_W") > second.index("VlWide<3>") > 0
    assert whole.index("CData") < whole.index("all = 0") < whole.index("body_0(") < whole.index("body_1(")
    assert "__one" not in whole and "__two" not in whole
    assert split.endswith("int after;\n")
    assert split_bodies("int x;\n") == "int x;\n"


SHIFTS = """
#include "shift.hpp"
#include <cstdio>

template <int BITS> int check() {
    VlWide<VL_WORDS_I(BITS)> value, want, got;
    for (int i = 0; i < VL_WORDS_I(BITS); ++i) value[i] = 0x9E3779B9U * (i + 1);
    value[VL_WORDS_I(BITS) - 1] &= VL_MASK_E(BITS);
    for (int rd = 0; rd < BITS + 80; ++rd) {
        VL_SHIFTR_WWI(BITS, BITS, 32, want, value, rd);
        bentpipe_shiftr(BITS, BITS, 32, got, value, rd);
        for (int i = 0; i < VL_WORDS_I(BITS); ++i) {
            if (want[i] != got[i]) return std::printf("%d bits by %d: word %d\\n", BITS, rd, i);
        }
        got = value;
        bentpipe_shiftr(BITS, BITS, 32, got, got, rd);  // in place
        for (int i = 0; i < VL_WORDS_I(BITS); ++i) {
            if (want[i] != got[i]) return std::printf("%d bits by %d in place: word %d\\n", BITS, rd, i);
        }
        for (int i = 0; i < VL_WORDS_I(BITS); ++i) value[i] ^= 0x85EBCA6BU * (i + rd);
        value[VL_WORDS_I(BITS) - 1] &= VL_MASK_E(BITS);
    }
    return 0;
}

int main() { return check<65>() || check<72>() || check<288>() || check<424>() || check<704>(); }
"""


def test_shifts_by_octets_are_shifts(tmp_path):
    _, root = verilator()
    source, program = tmp_path / "shifts.cpp", tmp_path / "shifts"
    source.write_text(SHIFTS)
    include = [f"-I{CSRC}", f"-I{root / 'include'}", f"-I{root / 'include' / 'vltstd'}"]
    runtime = [str(root / "include" / name) for name in ("verilated.cpp", "verilated_threads.cpp")]
    command = [compiler(), "-std=gnu++17", "-O1", "-w", *include, str(source), *runtime, "-o", str(program), "-pthread"]
    subprocess.run(command, check=True)
    done = subprocess.run([program], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")
