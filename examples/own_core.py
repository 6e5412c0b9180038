"""One core of bentpipe in a design of your own: a check of ATM cell headers, simulated and exported as Verilog.

Run it: ``python examples/own_core.py`` prints what becomes of a good header, one with a wrong bit, and two in a row
with wrong bits; ``python examples/own_core.py --verilog header_check.v`` writes the design for other tools.
"""

import argparse
from pathlib import Path

from amaranth.back import verilog
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

from bentpipe_hdl.hec import HecReceiver, hec


class HeaderCheck(wiring.Component):
    """Receive a header with its HEC a clock, and give it on corrected, if it can be used (I.432.1 clause 4.3.2).

    Members
    -------
    i : In(40), i_valid : In(1)
        Four octets of header and the HEC, the first octet in the uppermost bits.
    o : Out(32), o_valid : Out(1)
        The header, in the same clock.
    corrected : Out(1)
        One bit of it was wrong.
    """

    i: In(40)
    i_valid: In(1)
    o: Out(32)
    o_valid: Out(1)
    corrected: Out(1)

    def elaborate(self, platform):
        m = Module()
        m.submodules.receiver = receiver = HecReceiver()
        header, received = self.i[8:], self.i[:8]
        m.d.comb += [
            receiver.check.eq(self.i_valid),
            receiver.syndrome.eq(hec(header) ^ received),
            self.o.eq((self.i ^ receiver.flip)[8:]),
            self.o_valid.eq(receiver.accept | receiver.correct),
            self.corrected.eq(receiver.correct),
        ]
        return m


def with_hec(header: int) -> int:
    """Return 40 bits: a header and its HEC, by polynomial division."""
    remainder = header << 8
    for bit in reversed(range(8, 40)):
        if remainder >> bit & 1:
            remainder ^= 0x107 << (bit - 8)
    return header << 8 | remainder ^ 0x55


def simulate(words: list[int]) -> list[tuple[int, bool, bool]]:
    """Return header, valid and corrected for each word."""
    design = HeaderCheck()
    found = []

    async def bench(context):
        context.set(design.i_valid, 1)
        for word in words:
            context.set(design.i, word)
            found.append(
                (context.get(design.o), bool(context.get(design.o_valid)), bool(context.get(design.corrected)))
            )
            await context.tick()

    simulator = Simulator(design)
    simulator.add_clock(6.43e-9)  # 155.52 MHz
    simulator.add_testbench(bench)
    simulator.run()
    return found


def main(arguments: list[str] | None = None) -> None:
    """Print what becomes of four headers, or write the design's Verilog."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--verilog", type=Path, metavar="FILE", help="write the design as Verilog, and simulate nothing"
    )
    given = parser.parse_args(arguments)
    if given.verilog:
        given.verilog.write_text(verilog.convert(HeaderCheck(), name="header_check"))
        print(f"wrote {given.verilog}")
        return
    good = with_hec(0x00000200)  # VPI 0, VCI 32
    words = [good, good ^ 1 << 20, good ^ 1 << 21, good]
    for word, (header, valid, corrected) in zip(words, simulate(words), strict=True):
        what = ("accepted, corrected" if corrected else "accepted") if valid else "discarded"
        print(f"{word:010x}: {what}" + (f", header {header:08x}" if valid else ""))


if __name__ == "__main__":
    main()
