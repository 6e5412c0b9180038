"""Writes the manual's page on SONET from the tables of the source.

``python -m bentpipe_hdl.sonet.manual > docs/sonet.md``
"""

from bentpipe_hdl.sonet.align import dark_bytes
from bentpipe_hdl.sonet.control import TERMINAL
from bentpipe_hdl.sonet.geometry import Geometry
from bentpipe_hdl.sonet.line import SonetLine
from bentpipe_hdl.sonet.tables import ALARMS, COUNTERS

__all__ = ["page"]

TRANSPORT = (
    ("A1", "1", "F6 in each STS-1", "frame search, SEF"),
    ("A2", "1", "28 in each STS-1", "frame search, SEF"),
    ("J0", "1", "trace message or a byte", "compared with the expected message (TIM-S)"),
    ("Z0", "1", "number of the STS-1: 02, 03, ...", "not read"),
    ("B1", "2", "BIP-8 over the scrambled frame before", "errors counted"),
    ("E1, F1", "2", "register", "register"),
    ("D1-D3", "3", "register", "register"),
    ("H1, H2", "4", "pointer, NDF, ss; in the other STS-1 93 FF", "pointer interpreter, concatenation indicators"),
    ("H3", "4", "a unit of the SPE in a negative movement, else 0", "the same"),
    ("B2", "5", "BIP-8N over line overhead and SPE of the frame before", "errors counted, sent back in M1"),
    ("K1", "5", "register", "register"),
    ("K2", "5", "register; bits 6-8 = 110 for RDI-L", "AIS-L, RDI-L"),
    ("D4-D12", "6-8", "register", "register"),
    ("S1", "9", "register", "register"),
    ("M1", "9", "REI-L: errors that B2 found, the third STS-1's byte", "added up; more than 8N counts as 0"),
    ("E2", "9", "register", "register"),
)
PATH = (
    ("J1", "1", "trace message or a byte", "compared with the expected message (TIM-P)"),
    ("B3", "2", "BIP-8 over the SPE before", "errors counted, sent back in G1"),
    ("C2", "3", "register, 13 (ATM) after reset", "PLM-P, UNEQ-P"),
    ("G1", "4", "REI-P in bits 1-4, RDI-P in bits 5-7", "REI-P added up; more than 8 counts as 0; RDI-P"),
    ("F2, H4, Z3, Z4, N1", "5-9", "register", "register"),
)
FRAME = """\
            3N columns           87N columns
      +------+------+------+------------------------+
row 1 | A1   | A2   | J0 Z0|                        |
    2 | B1   | E1   | F1   |   the SPE begins at    |
    3 | D1   | D2   | D3   |   the pointer; its     |
    4 | H1   | H2   | H3   |   first column is the  |
    5 | B2   | K1   | K2   |   path overhead, then  |
    6 | D4   | D5   | D6   |   N/3 - 1 columns of   |
    7 | D7   | D8   | D9   |   stuff, then cells    |
    8 | D10  | D11  | D12  |                        |
    9 | S1   |Z2, M1| E2   |                        |
      +------+------+------+------------------------+
"""


def _table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


LINE = """\
## A line in a network

`line = "sonet"` of a line or host (`--set line=sonet` for all of them) makes it a node `SonetLine`: two terminals and
the bytes between them, both ways. Bit errors hit the line's bytes. A word of 3N bytes takes exactly 416/159 ticks.
SONET never stops, so this node is evaluated 2.16 million times a simulated second, with or without cells.

The propagation delay is that of a `Link` behind the receiver. For the cells this is the same, since the receiver does
not change with time. Only REI and RDI return without the delay.

With `ppm` the payload's clock is that much slower than the line's at the first end, and faster at the second, so
pointers move. The switches' ports then send slower by as much, so that the line takes all their cells.

Each line has an account, which is checked at the end of every run:

- arriving cells wait, are sent, or are dropped;
- departing cells were received, with a right header or (`ERRORED`) with one for which the next node drops them;
- cells sent half a frame ago and not received are lost: `drop_line` in a run's counters.

Lost cells must have a cause: a defect that stops cells, or at least as many words with errors as cells.

An experiment with SONET lines runs once more with lines of cells, and reports the difference of the goodputs.

"""


def _alarms() -> str:
    """Return the text that follows the table of alarms."""
    return f"""\
LOS and LOF clear the other alarms of line and section. Those and AIS-L make the pointer interpreter see all ones, and
thus AIS-P, which clears the path's alarms. An RDI stays for at least 20 frames. No cells come

- during LOS, SEF, LOF, AIS-L, AIS-P, LOP-P or UNEQ-P;
- from {dark_bytes(Geometry(3, 9))} (STS-3c) or {dark_bytes(Geometry(12, 36))} (STS-12c) bytes of zeros on (0.9 us); \
with the narrow words {dark_bytes(Geometry(3, 1))} and {dark_bytes(Geometry(12, 4))}.

A word of zeros of 8 bytes or more is a loss of signal, but for a probability of 2^-64. So cells stop long before LOS
may be declared (2.3 us). With wide words no cell is delivered that has one of these zeros.

### Pointer states

Each STS-1 has a state (G.783 annex A, EN 300 417-1-1 annex B). The first has the state of its pointer, LOP after reset:

| state | entered |
| --- | --- |
| NORM | after three equal valid pointers, or from AIS after a single NDF |
| AIS | after 3 words of all ones |
| LOP | after 8 words in a row that are neither |

Without NORM no offset is known. The others must have the concatenation indication 1001xx11 11111111:

| state | entered |
| --- | --- |
| CONC | after three concatenation indications |
| AISC | after 3 words of all ones |
| LOPC | at the beginning, and after 8 words in a row that are neither |

| path | if |
| --- | --- |
| normal | the first is in NORM and the others in CONC |
| AIS-P | all are in AIS and AISC |
| LOP-P | otherwise |

So three STS-1 with a pointer each give no cells, nor do those of which some have AIS. An AIS-P that ends with an NDF
passes LOP-P for two frames, until the others are in CONC.

### Loss of framing and new pointers

During SEF the receiver reads neither overhead nor payload, and the counts of frames in a row for an alarm restart. The
pointer may move in this time, and in the frames of an LOS, which are replaced by all ones. So the receiver first waits
for a pointer that confirms the offset. It repeats the old offset, is new with NDF, or is new and comes three times in a
row. Cells and path overhead resume at the next J1. Before SEF is declared there are three frames with a bad framing
pattern; the receiver still uses these. A framing pattern that begins in the two words after the fourth bad one may be
missed. The receiver then finds the next one, 125 us later.

A new pointer with NDF starts a new SPE at its offset and ends the old SPE there. The stream of cells continues from the
old SPE into the new one, so no cell is lost, for any distance and any width. B3 of the SPE that was ended early is not
checked. NDF with the present offset changes only the pointer word.

Two choices of this implementation: the trace mismatch counts three messages, and the order of consequences for RDI-P is
server (101), connectivity (110), payload (010), none (001).

"""


def page():
    """Return the page, in Markdown."""
    shapes = []
    for n, width, use in ((3, 1, "FPGA"), (3, 9, "simulation"), (12, 4, "FPGA"), (12, 36, "simulation")):
        g = Geometry(n, width)
        clock = f"{g.words_per_second / 1e6:g} MHz"
        shapes.append((f"STS-{n}c", str(width), clock, str(g.frame_words), use))
    registers = []
    for _, addr, r in TERMINAL.walk():
        registers.append((f"0x{addr:02x}", f"`{r.name}`", r.access, r.describe()))
    alarms = [(a.title, f"`{a.name}`", a.enter, a.leave, a.action or "-") for a in ALARMS]
    node = []
    for r in sorted(SonetLine().registers.registers, key=lambda r: r.addr):
        last = f" … 0x{r.addr + r.size - 1:04x}" if r.size > 1 else ""
        node.append((f"0x{r.addr:04x}{last}", f"`{r.name}`", r.access, r.describe()))
    return f"""\
# SONET lines

<!-- made by `python -m bentpipe_hdl.sonet.manual`; change the tables there -->

A terminal (`bentpipe_hdl.sonet.terminal.SonetTerminal`) is one end of an STS-3c or STS-12c line that carries ATM cells.
It frames and scrambles sent bytes, aligns and checks received ones, and reports errors and defects to the far end. The
line is words of bytes. The first transmitted byte is in the low bits, the first bit of a byte on top. The receiver
finds frames at any bit. Serialisers and clock recovery belong to the board.

{_table(("signal", "bytes a clock", "clock", "clocks a frame", "for"), shapes)}

## The frame

```text
{FRAME}```

Cells fill the SPE at 149.76 Mb/s (STS-3c) and 599.04 Mb/s (STS-12c). Idle cells are sent when no cell
waits. Idle and unassigned cells are dropped on receipt.

{_table(("byte", "row", "sent", "read"), TRANSPORT)}

Path overhead, first column of the SPE:

{_table(("byte", "row", "sent", "read"), PATH)}

## Alarms

{_table(("alarm", "bit", "raised", "cleared", "consequence"), alarms)}

{_alarms()}## Cells

Delineation leaves SYNC after 7 bad headers in a row and enters it after 6 good ones that follow the one that
was found. In correction mode a single-bit error is corrected; then, and after any other error, headers with
errors are discarded until one is good. A header counts as bad for delineation even if it was corrected.

## Registers

One word an address. Reading takes three clocks, see `bentpipe_hdl.csr`.

{_table(("address", "name", "access", "meaning"), registers)}

All {len(COUNTERS)} counters wrap at 2^32 and count while `latch` copies them.

{LINE}{_table(("address", "name", "access", "meaning"), node)}

0x1000 and 0x2000 are the registers above, of end 0 and end 1.

Next: [lines](lines.md); [operation and maintenance](oam.md).
"""


if __name__ == "__main__":
    print(page(), end="")
