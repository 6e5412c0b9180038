"""One end of an STS-3c line in cocotb, looped back over a channel that shifts bits and loses the signal."""

from cocotb.clock import Clock
from cocotb.triggers import FallingEdge

import cocotb
from bentpipe_hdl.sonet.control import TERMINAL
from cocotb_nodes.environment import reader

WIDTH = 9
BITS = 8 * WIDTH
FRAME = 270  # words
CELL_TIME = 53 / WIDTH * 270 / (9 * 29 - 1)  # words of line a cell: 260 bytes of payload in a row of 270
MS = 2160  # words


def stream(word):
    """A word as a number in the order of transmission: its first byte lowest, bit 7 of a byte first."""
    return int.from_bytes(word.to_bytes(WIDTH, "little"), "big")


class Line:
    """The terminal, a word a clock. ``shift`` bits late; zeros while ``dead``."""

    def __init__(self, dut):
        self.dut = dut
        names = ("tx_ready", "rx_valid", "rx_cell", "rx_hec_error", "line_out", "csr_r_data")
        self.get = {name: reader(getattr(dut, name)) for name in names}
        self.now = 0
        self.shift, self.dead = 0, False
        self.before = 0
        self.sent, self.got = 0, []
        self.ready = False

    async def start(self):
        dut = self.dut
        for name in ("line_in", "csr_addr", "csr_w_en", "csr_w_data", "csr_r_en", "tx_cell", "tx_valid"):
            getattr(dut, name).value = 0
        dut.enable.value = dut.signal.value = dut.rst.value = 1
        Clock(dut.clk, 2, "ns", impl="gpi").start()
        await FallingEdge(dut.clk)
        await FallingEdge(dut.clk)
        dut.rst.value = 0
        dut.tx_valid.value = 1
        self._cell()

    def _cell(self):
        self.dut.tx_cell.value = 0x640 << 384 | self.sent

    async def word(self):
        dut = self.dut
        await FallingEdge(dut.clk)
        self.now += 1
        if self.ready:
            self.sent += 1
            self._cell()
        self.ready = bool(self.get["tx_ready"]())
        if self.get["rx_valid"]():
            cell, bad = self.get["rx_cell"](), self.get["rx_hec_error"]()
            self.got.append((self.now, cell >> 384, cell & (1 << 384) - 1, bad))
        current = stream(self.get["line_out"]())
        shifted = (self.before << BITS | current) >> self.shift & (1 << BITS) - 1
        self.before = current
        dut.line_in.value = 0 if self.dead else stream_back(shifted)

    async def words(self, count):
        for _ in range(count):
            await self.word()

    async def read(self, name):
        dut = self.dut
        dut.csr_addr.value = TERMINAL[name].addr
        dut.csr_r_en.value = 1
        await self.word()
        dut.csr_r_en.value = 0
        await self.words(3)
        return self.get["csr_r_data"]()

    async def write(self, name, value):
        dut = self.dut
        dut.csr_addr.value = TERMINAL[name].addr
        dut.csr_w_data.value = value
        dut.csr_w_en.value = 1
        await self.word()
        dut.csr_w_en.value = 0

    async def until(self, ready, most):
        """Words until ``ready(state)``, looked at every 4 words."""
        begin = self.now
        while not ready(await self.read("state")):
            assert self.now - begin < most, "it does not come into service"
        return self.now - begin


def stream_back(number):
    return int.from_bytes(number.to_bytes(WIDTH, "big"), "little")


def right_cells(got):
    """The numbers of the cells: each as it was sent, none twice, in order."""
    numbers = []
    for _, header, payload, bad in got:
        assert header == 0x640 and not bad
        numbers.append(payload)
    assert numbers == sorted(set(numbers))
    return numbers


NO_CELLS = 1 << 0 | 1 << 2 | 1 << 3 | 1 << 6 | 1 << 7 | 1 << 8  # LOS, LOF, AIS-L, AIS-P, LOP-P, UNEQ-P


async def recover(line, shift, dead):
    """Lose the signal for so many words; how many words until in frame. Cells have come when this returns."""
    line.dead = True
    await line.words(dead)
    line.shift, line.dead = shift, False
    line.got.clear()
    framed = await line.until(lambda state: state >> 31, 3 * FRAME)
    await line.words(8 * FRAME)  # three for the pointer, up to two to the start of an SPE, and delineation
    assert line.got, "no cell came"
    assert not (await line.read("defects")) & NO_CELLS
    return framed


async def delineate(line, phase):
    """Lose the cells by wrong headers; how many cell times from the first right one until a cell comes."""
    await line.write("hec_mask", 0x55)
    await line.words(150 + phase)
    assert (await line.read("state")) & 3 != 2, "still in SYNC"
    line.got.clear()
    await line.write("hec_mask", 0)
    begin = line.now
    while not line.got:
        await line.word()
        assert line.now - begin < 400
    return (line.got[0][0] - begin) / CELL_TIME


@cocotb.test()
async def any_bit_offset(dut):
    line = Line(dut)
    await line.start()
    await line.words(10 * FRAME)
    framing, delineation = [], []
    for shift in range(8):
        framing.append(await recover(line, shift, 5 * FRAME + 31 * shift))  # 4 frames end framing
        await line.words(25 * FRAME)  # 3 ms in frame: LOF would add up
        right_cells(line.got)
        for phase in range(3):
            delineation.append(await delineate(line, phase))
            await line.words(100)
            right_cells(line.got)
        cocotb.log.info("bit %d: in frame after %.2f frames, cells after %.1f cell times", shift,
                        framing[-1] / FRAME, sum(delineation[-3:]) / 3)  # fmt: skip
    mean = sum(delineation) / len(delineation)
    cocotb.log.info("in frame after %.2f frames at most, cells after %.1f cell times on average",
                    max(framing) / FRAME, mean)  # fmt: skip
    # Up to one frame to the first pattern, then another one; the register is read every 4 words.
    assert max(framing) <= 2 * FRAME + 12
    assert mean <= 12


@cocotb.test()
async def loss_of_signal_of_1_ms(dut):
    line = Line(dut)
    await line.start()
    await line.words(10 * FRAME)
    for shift in (3, 6):
        begin = line.now
        framed = await recover(line, shift, MS)
        await line.words(20 * FRAME)
        numbers = right_cells(line.got)
        assert len(numbers) > 500
        cocotb.log.info("after 1 ms of zeros: in frame after %.2f frames, first cell %.0f us after the signal",
                        framed / FRAME, (line.got[0][0] - begin - MS) / 2.16)  # fmt: skip
        assert (await line.read("defects")) & NO_CELLS == 0
