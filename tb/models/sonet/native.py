"""Two compiled ends of a SONET line with a channel each way: for tests that need thousands of frames."""

# pyright: reportAttributeAccessIssue=false, reportArgumentType=false
# (cffi's library has no types)

from dataclasses import dataclass
from pathlib import Path

import cffi

from bentpipe_hdl.sonet.control import TERMINAL
from bentpipe_hdl.sonet.geometry import Geometry
from bentpipe_hdl.sonet.tables import ALARMS, COUNTERS
from bentpipe_hdl.sonet.terminal import SonetTerminal
from bentpipe_sim import build, tools
from bentpipe_sim.cache import Cache
from bentpipe_sim.digests import digest, digest_of
from bentpipe_sim.verilated import HEADERS

FLAGS = (*tools.CXX_FLAGS, "-O3")
_C = """
typedef struct { uint64_t cells, payload_bad, header_bad, lost, repeated, alien, discarded, corrected, errors,
                 first_cell, last_bad, last_cell; } Counts;
void* line_open(const char* path, int bytes);
void line_close(void*);
void line_seed(void*, uint64_t);
void line_load(void*, int end, double load);
void line_channel(void*, int end, double ber, uint64_t zero_from, uint64_t zero_to, int shift);
uint64_t line_now(void*);
void line_run(void*, uint64_t words);
uint64_t line_run_until_interrupt(void*, int end, uint64_t words);
void line_counts(void*, int end, Counts*);
void line_clear(void*, int end);
uint32_t line_sent(void*, int end);
void line_write(void*, int end, uint32_t address, uint32_t value);
uint32_t line_read(void*, int end, uint32_t address);
uint64_t line_octets(void*, int end, const uint8_t* line, uint8_t* sent, uint64_t words, uint8_t* cells, uint64_t room);
void line_cell(uint32_t sequence, uint8_t* cell);
"""


@dataclass(frozen=True)
class TerminalShape:
    """The description of a terminal for ``bentpipe_sim.build``."""

    n: int
    width: int
    kind: str = "sonet_terminal"

    def component(self):
        return SonetTerminal(Geometry(self.n, self.width))


SOURCE = Path(__file__).with_name("native.cpp")


def driver_name(headers=tools.CSRC):
    """In the cache, by all that decides what it is; the headers say how a node is called, which changes."""
    text = digest_of([SOURCE, *(headers / name for name in HEADERS)])
    return f"sonet-line-{digest(text, tools.compiler_version(), *FLAGS)}.so"


def _driver():
    def make(folder):
        made = folder / "line.so"
        command = [tools.compiler(), *FLAGS, f"-I{tools.CSRC}", str(SOURCE), "-o", str(made), "-ldl"]
        tools.run(command, "compiling the SONET line driver")
        return made

    return Cache().make(driver_name(), make)


class NativeLine:
    """Ends 0 and 1. Times are in words of ``width`` bytes."""

    def __init__(self, n, width, seed=1):
        self.geometry = Geometry(n, width)
        self._ffi = cffi.FFI()
        self._ffi.cdef(_C)
        self._lib = self._ffi.dlopen(str(_driver()))
        model = build.build_model(TerminalShape(n, width))
        handle = self._lib.line_open(str(model).encode(), width)
        assert handle != self._ffi.NULL
        self._handle = self._ffi.gc(handle, self._lib.line_close)
        self._lib.line_seed(handle, seed)

    @property
    def now(self):
        return self._lib.line_now(self._handle)

    def run(self, frames=0, words=0):
        self._lib.line_run(self._handle, frames * self.geometry.frame_words + words)

    def load(self, end, load):
        self._lib.line_load(self._handle, end, load)

    def channel(self, end, ber=0.0, zeros=(0, 0), shift=0, zero_bytes=None):
        """The errors of the line into ``end``: ``zeros`` between two words, or ``zero_bytes`` between two bytes. After
        that it is ``shift`` bits late, less than a word.
        """
        first, last = zero_bytes or (word * self.geometry.width for word in zeros)
        self._lib.line_channel(self._handle, end, ber, first, last, shift)

    def counts(self, end):
        c = self._ffi.new("Counts*")
        self._lib.line_counts(self._handle, end, c)
        return {name: getattr(c, name) for name, _ in self._ffi.typeof("Counts").fields}

    def clear(self, end):
        self._lib.line_clear(self._handle, end)

    def sent(self, end):
        return self._lib.line_sent(self._handle, end)

    def write(self, end, name, value):
        self._lib.line_write(self._handle, end, TERMINAL[name].addr, value & 0xFFFFFFFF)

    def read(self, end, name):
        return self._lib.line_read(self._handle, end, TERMINAL[name].addr)

    def defects(self, end):
        bits = self.read(end, "defects")
        return {alarm.name for k, alarm in enumerate(ALARMS) if bits >> k & 1}

    def latched(self, end):
        """Counters since the last call."""
        self.write(end, "latch", 0)
        self.run(words=2)
        return {name: self.read(end, f"count_{name}") for name in COUNTERS}

    def send(self, end, frames):
        """The octets of the end's next frames; its line is given what it was given last."""
        words = frames * self.geometry.frame_words
        sent = self._ffi.new("uint8_t[]", words * self.geometry.width)
        self._lib.line_octets(self._handle, end, self._ffi.NULL, sent, words, self._ffi.NULL, 0)
        return bytes(sent)

    def receive(self, end, octets):
        """Give the end a line's octets, a whole number of words; the cells that come: the word, whether discarded, and
        its 52 octets."""
        words, room = len(octets) // self.geometry.width, len(octets) // 53 + 9
        cells = self._ffi.new("uint8_t[]", 64 * room)
        null = self._ffi.NULL
        count = self._lib.line_octets(self._handle, end, self._ffi.from_buffer(octets), null, words, cells, room)
        whole = bytes(self._ffi.buffer(cells, 64 * count))
        pieces = [whole[k : k + 64] for k in range(0, len(whole), 64)]
        return [(int.from_bytes(cell[:8], "little"), bool(cell[8]), cell[12:]) for cell in pieces]

    def cell(self, sequence):
        """The octets of the cell that any end sends as its ``sequence``-th."""
        made = self._ffi.new("uint8_t[]", 52)
        self._lib.line_cell(sequence, made)
        return bytes(made)

    def seconds(self, words):
        return words / self.geometry.words_per_second

    def trace(self, end, message, data):
        """Write trace message 0 to 3 (J0 sent, J1 sent, J0 expected, J1 expected)."""
        for k, byte in enumerate(data):
            self.write(end, "trace", byte | k << 8 | message << 16)
            self.run(words=2)
