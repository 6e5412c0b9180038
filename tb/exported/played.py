"""The inputs of a trace in a simulator that cocotb drives."""

import json
from pathlib import Path

from cocotb.triggers import Timer

import cocotb


@cocotb.test()
async def played(dut):
    about = json.loads(Path("trace.json").read_text())
    inputs, outputs = (
        [(getattr(dut, name), width) for name, width in about[way].items()] for way in ("inputs", "outputs")
    )
    dut.clk.value = 0
    before, lines = {}, []
    for clock, row in enumerate(about["given"]):
        dut.rst.value = int(clock < about["reset"])
        for signal, width in inputs:
            value, row = row & ((1 << width) - 1), row >> width
            if before.get(signal) != value:
                signal.value = before[signal] = value
        await Timer(5, "ns")
        lines.append(_text("".join(str(signal.value) for signal, _ in reversed(outputs))))
        dut.clk.value = 1
        await Timer(5, "ns")
        dut.clk.value = 0
    Path("got.hex").write_text("\n".join(lines) + "\n")


def _text(bits):
    """Bits as Verilog's ``%h`` writes them, and x for a digit with an X or Z."""
    bits = bits.rjust((len(bits) + 3) // 4 * 4, "0")
    digits = (bits[k : k + 4] for k in range(0, len(bits), 4))
    return "".join(f"{int(digit, 2):x}" if set(digit) <= {"0", "1"} else "x" for digit in digits)
