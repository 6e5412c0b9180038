"""A DDR3 chip that is started by software, from JESD79-3F alone, and the registers of LiteDRAM before it.

The chip decodes its mode registers, and asserts the order and the times of a start. Its data pass a PHY that reads
rightly with some settings only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from bentpipe_sim.board.ddr3 import REGISTERS

TCK_NS = 1000 / 150
CLOCK_NS = 2 * TCK_NS
RCD, RP, RAS, RFC = 15.0, 15.0, 37.5, 260.0
MRD, MOD, ZQ_INIT, DLL_LOCK = 4 * TCK_NS, 12 * TCK_NS, 512 * TCK_NS, 512 * TCK_NS
WRITE_RECOVERY, BURST = 15.0, 4 * TCK_NS

CAS_LATENCY = {0b0010: 5, 0b0100: 6, 0b0110: 7, 0b1000: 8}
RECOVERY = {1: 5, 2: 6, 3: 7, 4: 8, 5: 10, 6: 12}
RTT_NOM = {0: None, 1: 60, 2: 120, 3: 40, 4: 20, 5: 30}
RTT_WR = {0: None, 1: 60, 2: 120}
DRIVER = {0: 40, 1: 34}


def decode(registers: dict[int, int]) -> dict[str, object]:
    """Return what the mode registers mean (figures 9, 10, 11 and 12 of JESD79-3F)."""
    mr0, mr1, mr2, mr3 = (registers[k] for k in range(4))
    assert not mr0 >> 13 and not mr1 >> 13 and not mr2 >> 11 and not mr3 >> 3, "reserved bits are 0"
    assert not mr0 >> 7 & 1, "no test mode"
    return {
        "burst": {0: 8, 1: "4 or 8", 2: 4}[mr0 & 3],
        "interleaved": bool(mr0 >> 3 & 1),
        "cas latency": CAS_LATENCY[(mr0 >> 4 & 7) << 1 | mr0 >> 2 & 1],
        "dll reset": bool(mr0 >> 8 & 1),
        "write recovery": RECOVERY[mr0 >> 9 & 7],
        "dll": not mr1 & 1,
        "driver": DRIVER[mr1 >> 5 << 1 & 2 | mr1 >> 1 & 1],
        "termination": RTT_NOM[(mr1 >> 9 & 1) << 2 | (mr1 >> 6 & 1) << 1 | mr1 >> 2 & 1],
        "additive latency": mr1 >> 3 & 3,
        "write levelling": bool(mr1 >> 7 & 1),
        "tdqs": bool(mr1 >> 11 & 1),
        "outputs": not mr1 >> 12 & 1,
        "cas write latency": 5 + (mr2 >> 3 & 7),
        "write termination": RTT_WR[mr2 >> 9 & 3],
        "self refresh": mr2 >> 6 & 3,
        "multi-purpose register": bool(mr3 >> 2 & 1),
    }


@dataclass
class Chip:
    """A chip, by what it sees; ``now`` is in ns since power-up.

    Members
    -------
    modes : list of (int, int)
        Numbers and values of mode registers, as they were written.
    """

    modes: list[tuple[int, int]] = field(default_factory=list)
    reset_n: bool = False
    cke: bool = False
    odt: bool = False
    words: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    _last: dict[str, float] = field(default_factory=dict)
    _row: int | None = None
    _calibrated: bool = False

    def open(self, now: float) -> None:
        """Open a row, as the controller may have done."""
        self._row, self._last["activate"] = 7, now

    def _since(self, now: float, event: str, least: float) -> None:
        if event in self._last:
            passed = now - self._last[event]
            assert passed >= least - 1e-6, f"{passed:.1f} ns since {event}, not {least:.1f}"

    def control(self, now: float, reset_n: bool, cke: bool, odt: bool) -> None:
        """Set RESET#, CKE and ODT."""
        if reset_n and not self.reset_n:
            self._last["reset"] = now
        if cke and not self.cke:
            assert self.reset_n
            self._since(now, "reset", 500_000)
            self._last["cke"] = now
        assert cke or not self.cke, "nothing is gained by a power-down"
        if odt and not self.odt:
            assert self._calibrated, "ODT rises while the termination is not calibrated"
            self._since(now, "calibration", ZQ_INIT)
        self.reset_n, self.cke, self.odt = reset_n, cke, odt

    def command(self, now: float, name: str, bank: int, address: int) -> None:
        """Take a command that has no data."""
        assert self.cke
        self._since(now, "cke", max(5 * TCK_NS, RFC + 10))
        if name == "mode":
            assert self._row is None and not self.odt, "all banks are precharged, and ODT is low"
            self._since(now, "mode", MRD)
            self._since(now, "precharge", RP)
            self.modes.append((bank, address))
            self._last["mode"] = now
            self._calibrated = False
            if bank == 0 and address >> 8 & 1:
                self._last["dll"] = now
            return
        self._since(now, "mode", MOD)
        if name == "calibrate":
            assert address >> 10 & 1 and self._row is None, "the long calibration, all banks precharged"
            assert [number for number, _ in self.modes[-4:]] == [2, 3, 1, 0], "the order of 3.3.1"
            self._last["calibration"], self._calibrated = now, True
        elif name == "activate":
            assert self._row is None and bank == 0 and self._calibrated
            self._since(now, "calibration", ZQ_INIT)
            self._since(now, "dll", DLL_LOCK)
            self._since(now, "precharge", RP)
            self._row, self._last["activate"] = address, now
        elif name == "precharge":
            self._since(now, "activate", RAS)
            self._since(now, "write", 5 * TCK_NS + BURST + WRITE_RECOVERY)
            self._row, self._last["precharge"] = None, now
        else:
            raise AssertionError(f"{name} does not belong to a start")

    def write(self, now: float, column: int, beats: list[int]) -> None:
        """Take a burst."""
        assert self._row is not None and column % 8 == 0
        self._since(now, "activate", RCD)
        self.words[self._row, column], self._last["write"] = beats, now

    def read(self, now: float, column: int) -> list[int]:
        """Return a burst."""
        assert self._row is not None and column % 8 == 0
        self._since(now, "activate", RCD)
        self._since(now, "write", 5 * TCK_NS + BURST + 4 * TCK_NS)
        return self.words[self._row, column]


COMMANDS = {(1, 1, 1): "mode", (0, 0, 1): "calibrate", (1, 0, 0): "activate", (1, 0, 1): "precharge"}
"""Names by RAS, CAS, WE: table 6 of JESD79-3F."""
NAMES = {addr: name for name, addr in REGISTERS.items()}


class Controller:
    """The registers of LiteDRAM with a PHY, as a board has them: accesses wait in a queue, and take time.

    Parameters
    ----------
    windows : sequence of dict of int to range
        For each byte: the delays with which it is read rightly, by bitslip.
    strobes : range
        Delays with which the PHY sees the strobe of a burst.
    """

    def __init__(self, windows: Sequence[dict[int, range]], strobes: range = range(8)) -> None:
        self.chip, self.now, self.most = Chip(), 0.0, 0
        self._windows, self._strobes = windows, strobes
        self.slips, self.delays = [0] * len(windows), [0] * len(windows)
        self._queue: list[tuple[str, int, int]] = []
        self._found: list[int] = []
        self._kept = dict.fromkeys(REGISTERS, 0)
        self._seen = 0

    def write_memory(self, kind: str, words: Sequence[int]) -> None:
        if kind == "memory_address":
            self._queue.append(("write", words[0], words[1]))
        else:
            self._queue.append((kind.removeprefix("memory_"), words[0], words[0]))
        self.most = max(self.most, len(self._queue))
        assert len(self._queue) <= 17, "the board has lost an access"

    def take_memory(self, most: int) -> list[int]:
        for kind, addr, value in self._queue:
            self.now += CLOCK_NS
            if kind == "wait":
                self.now += value * CLOCK_NS
            elif kind == "read":
                self._found.append(self._read(NAMES[addr]))
            else:
                self._write(NAMES[addr], value)
        self._queue.clear()
        found, self._found = self._found[:most], self._found[most:]
        return found

    def _read(self, name: str) -> int:
        return self._seen if name == "burstdet_seen" else self._kept[name]

    def _write(self, name: str, value: int) -> None:
        self._kept[name] = value
        if name == "control":
            control = (True, True, True) if value & 1 else (bool(value & 8), bool(value & 2), bool(value & 4))
            self.chip.control(self.now, *control)
        elif name == "burstdet_clr":
            self._seen = 0
        elif name.endswith("command_issue"):
            assert not self._kept["control"] & 1
            self._issue(int(name[2]))
        else:
            for byte in range(len(self._windows)):
                if self._kept["dly_sel"] >> byte & 1:
                    self._step(name, byte)

    def _step(self, name: str, byte: int) -> None:
        if name == "rdly_dq_rst":
            self.delays[byte] = 0
        elif name == "rdly_dq_inc":
            self.delays[byte] = (self.delays[byte] + 1) % 8
        elif name == "rdly_dq_bitslip_rst":
            self.slips[byte] = 0
        elif name == "rdly_dq_bitslip":
            self.slips[byte] = (self.slips[byte] + 1) % 4

    def _issue(self, phase: int) -> None:
        command, address = self._kept[f"pi{phase}_command"], self._kept[f"pi{phase}_address"]
        now, lines = self.now + phase * TCK_NS, (command >> 3 & 1, command >> 2 & 1, command >> 1 & 1)
        assert command & 1, "the chip is selected"
        assert not self._kept["dly_sel"], "the PHY is paused"
        if lines == (0, 1, 1):
            assert phase == 1 and command == 0x17, "CWL 5 is an odd number of clocks"
            self.chip.write(now, address, self._beats("wrdata"))
        elif lines == (0, 1, 0):
            assert phase == 0 and command == 0x25, "CL 6 is an even number of clocks"
            self._came(self.chip.read(now, address))
        else:
            self.chip.command(now, COMMANDS[lines], self._kept[f"pi{phase}_baddress"], address)

    def _beats(self, name: str) -> list[int]:
        words = [self._kept[f"pi{k}_{name}1"] << 32 | self._kept[f"pi{k}_{name}0"] for k in range(2)]
        return [words[beat // 4] >> 16 * (beat % 4) & 0xFFFF for beat in range(8)]

    def _came(self, beats: list[int]) -> None:
        words = [0, 0]
        for byte, window in enumerate(self._windows):
            good = self.delays[byte] in window.get(self.slips[byte], range(0))
            self._seen |= (self.delays[byte] in self._strobes) << byte
            for beat in range(8):
                # With a wrong delay the word of the next beat is read
                value = beats[beat if good else (beat + 1) % 8] >> 8 * byte & 0xFF
                words[beat // 4] |= value << 16 * (beat % 4) + 8 * byte
        for phase, word in enumerate(words):
            self._kept[f"pi{phase}_rddata1"], self._kept[f"pi{phase}_rddata0"] = word >> 32, word & 0xFFFFFFFF
