"""Model of an SDRAM chip, from its data sheet (AS4C16M16SA): it keeps data, and checks that it is driven correctly."""

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from bentpipe_boards.sdram import BANK_BITS, COLUMN_BITS, Command, SdramSignature, SdramTimes
from bentpipe_boards.top import OctetTop

__all__ = ["FAULTS", "SdramChip", "WithSdram"]

BANKS, LENGTH, LATENCY_2_BURST_8 = 1 << BANK_BITS, 8, 0x23
MODE_CLOCKS, ROW_TO_ROW_NS, MOST_DEBT = 2, 15, 2
SIMULATED_HZ, SIMULATED_PIN_CLOCKS = 50_000_000, 2

FAULTS = (
    "",
    "a command within 200 us of power-up",
    "a command while a refresh or the mode register is being done",
    "a row opened in an open bank",
    "a row opened before the precharge was over",
    "a row opened too soon after the last one of its bank",
    "a row opened too soon after one of another bank",
    "a read or write of a bank without an open row",
    "a read or write too soon after its row was opened",
    "a precharge before the row's time was over",
    "a precharge before the last word was written",
    "a refresh or a mode with an open row, or within a precharge",
    "a read or write after a refresh was too late",
    "another mode than bursts of 8 with a latency of 2",
    "a row opened before precharge, 8 refreshes and the mode",
    "data lines driven by both",
    "a row that the model does not have",
    "data lines not driven in a write",
)
"""Faults by number; 0 is none."""


class SdramChip(wiring.Component):
    """A chip that asserts what its data sheet asks for.

    Parameters
    ----------
    times : SdramTimes
    rows : int
        Rows of each bank that the model has, from row 0.

    Members
    -------
    pins : In(SdramSignature)
    fault : Out(5)
        The first fault since reset, an index into :data:`FAULTS`.
    reads, writes, refreshes : Out(32)
        Commands of each kind since reset.
    """

    def __init__(self, times: SdramTimes, *, rows: int):
        self._times, self._rows = times, rows
        counts = {name: Out(32) for name in ("reads", "writes", "refreshes")}
        super().__init__({"pins": In(SdramSignature()), "fault": Out(5), **counts})

    def elaborate(self, platform):
        m = Module()
        pins, clocks = self.pins, self._times.clocks
        command, bank = pins.command, pins.bank

        def is_(kind):
            return command == kind

        opens, refreshes, modes = is_(Command.ACTIVATE), is_(Command.REFRESH), is_(Command.MODE)
        reads, writes, precharges = is_(Command.READ), is_(Command.WRITE), is_(Command.PRECHARGE)
        accesses, all_banks = reads | writes, pins.address[10]

        def timer(name, most):
            left = Signal(range(most + 1), name=name)
            with m.If(left != 0):
                m.d.sync += left.eq(left - 1)
            return left

        named = {
            "rcd": clocks("rcd"), "ras": clocks("ras"), "rp": clocks("rp"), "rc": clocks("rc"),
            "written": LENGTH - 1 + clocks("wr"), "closes": LENGTH - 1 + clocks("wr") + 1,
        }  # fmt: skip
        banks = [{name: timer(f"{name}{b}", most) for name, most in named.items()} for b in range(BANKS)]
        is_open, rows = Signal(BANKS), Array(Signal(13, name=f"row{b}") for b in range(BANKS))
        here = {name: Array(each[name] for each in banks)[bank] for name in named}
        open_here = is_open.bit_select(bank, 1)
        busy, apart = timer("busy", clocks("rfc")), timer("apart", 4)
        rrd = -(-ROW_TO_ROW_NS * self._times.clock_hz // 10**9)

        age, closed_all, done, has_mode = Signal(range(clocks("init") + 2)), Signal(), Signal(4), Signal()
        with m.If(age <= clocks("init")):
            m.d.sync += age.eq(age + 1)
        early, too_soon, shut_soon = Signal(), Signal(), Signal()
        m.d.comb += early.eq(age < clocks("init"))

        # Banks
        for b, timers in enumerate(banks):
            mine, closing = bank == b, Signal(name=f"closing{b}")
            with m.If(opens & mine):
                m.d.sync += [is_open[b].eq(1), rows[b].eq(pins.address)]
                m.d.sync += [timers[name].eq(clocks(name) - 1) for name in ("rcd", "ras", "rc")]
            with m.If(writes & mine):
                m.d.sync += timers["written"].eq(LENGTH - 1 + clocks("wr") - 1)
            with m.If(accesses & mine & all_banks):  # the row is closed behind the access
                m.d.sync += timers["closes"].eq(Mux(writes, LENGTH - 1 + clocks("wr"), LENGTH))
            m.d.comb += closing.eq((timers["closes"] == 1) | (precharges & (mine | all_banks)))
            with m.If(closing):
                m.d.sync += [is_open[b].eq(0), timers["rp"].eq(clocks("rp") - 1)]
                with m.If(is_open[b] & (timers["ras"] != 0)):
                    m.d.comb += too_soon.eq(1)
                with m.If(is_open[b] & precharges & (timers["written"] != 0)):
                    m.d.comb += shut_soon.eq(1)
        with m.If(opens):
            m.d.sync += apart.eq(rrd - 1)
        with m.If(refreshes):
            m.d.sync += [busy.eq(clocks("rfc") - 1), done.eq(Mux(done == 8, 8, done + 1))]
        with m.If(modes):
            m.d.sync += [busy.eq(MODE_CLOCKS - 1), has_mode.eq(1)]
        with m.If(precharges & all_banks):
            m.d.sync += closed_all.eq(1)
        for name, one in (("reads", reads), ("writes", writes), ("refreshes", refreshes)):
            with m.If(one):
                m.d.sync += getattr(self, name).eq(getattr(self, name) + 1)

        stale = self._stale(m, refreshes, modes, has_mode)
        gives, writing = self._data(m, rows, bank, reads, writes, accesses)
        row = rows[bank]
        self._note(
            m,
            (early & ~is_(Command.NOP)),
            (busy != 0) & ~is_(Command.NOP),
            opens & open_here,
            opens & (here["rp"] != 0),
            opens & (here["rc"] != 0),
            opens & (apart != 0),
            accesses & ~open_here,
            accesses & (here["rcd"] != 0),
            too_soon,
            shut_soon,
            (refreshes | modes) & (is_open.any() | Cat(each["rp"] != 0 for each in banks).any()),
            accesses & stale,
            modes & (pins.address != LATENCY_2_BURST_8),
            opens & ~(closed_all & (done == 8) & has_mode),
            gives & pins.drives,
            accesses & (row >= self._rows),
            writing & ~pins.drives,
        )
        return m

    def _stale(self, m, refreshes, modes, has_mode):
        """Count the refreshes that are owed; return whether data are lost because one came too late."""
        clocks = self._times.clocks
        owed, left = Signal(8), Signal(range(clocks("refresh") + 1))
        passes = Signal()
        m.d.comb += passes.eq(has_mode & (left == 0))
        m.d.sync += left.eq(Mux(left == 0, clocks("refresh") - 1, left - 1))
        with m.If(passes & ~refreshes):
            m.d.sync += owed.eq(owed + 1)
        with m.Elif(refreshes & ~passes & (owed != 0)):
            m.d.sync += owed.eq(owed - 1)
        # Without refreshes it loses its data; after the next start that no longer matters
        stale = Signal()
        with m.If(modes):
            m.d.sync += [stale.eq(0), owed.eq(0)]
        with m.Elif(owed > MOST_DEBT):
            m.d.sync += stale.eq(1)
        return stale

    def _note(self, m, *faults):
        assert len(faults) == len(FAULTS) - 1
        with m.If(self.fault == 0):
            for number, fault in reversed(list(enumerate(faults, 1))):
                with m.If(fault):
                    m.d.sync += self.fault.eq(number)

    def _data(self, m, rows, bank, reads, writes, accesses):
        """Return whether the chip drives its data lines, and whether it takes what is on them."""
        pins = self.pins
        depth = self._rows << BANK_BITS + COLUMN_BITS - 2
        m.submodules.cells = cells = memory.Memory(shape=64, depth=depth, init=[])
        put, get = cells.write_port(granularity=16), cells.read_port(domain="sync")
        left, is_write, column, at_bank = Signal(range(LENGTH)), Signal(), Signal(COLUMN_BITS), Signal(BANK_BITS)
        now_column, now_bank, goes, puts = Signal(COLUMN_BITS), Signal(BANK_BITS), Signal(), Signal()
        m.d.comb += [
            now_column.eq(Mux(accesses, pins.address[:COLUMN_BITS], column)),
            now_bank.eq(Mux(accesses, bank, at_bank)),
            goes.eq(accesses | (left != 0)),
            puts.eq(goes & Mux(accesses, writes, is_write)),
        ]
        with m.If(accesses):
            m.d.sync += [left.eq(LENGTH - 1), is_write.eq(writes), at_bank.eq(bank)]
        with m.Elif(left != 0):
            m.d.sync += left.eq(left - 1)
        m.d.sync += column.eq(Cat((now_column + 1)[:3], now_column[3:]))
        address = Signal(range(depth))
        m.d.comb += [
            address.eq(Cat(now_column[2:], now_bank, rows[now_bank])),
            put.addr.eq(address),
            get.addr.eq(address),
            put.data.eq(pins.out.replicate(4)),
            put.en.eq(Mux(puts, 1 << now_column[:2], 0)),
        ]
        lane, came, drives = Signal(2), Signal(), Signal()
        m.d.sync += [
            lane.eq(now_column[:2]), came.eq(goes & ~puts), drives.eq(came),
            pins.data.eq(get.data.word_select(lane, 16)),
        ]  # fmt: skip
        return drives, puts


class WithSdram(wiring.Component):
    """:class:`~bentpipe_boards.top.OctetTop` with the model as its SDRAM. It never answers again once the chip has been
    driven wrongly.

    Parameters
    ----------
    plan : Plan
        Plan with wires in the SDRAM.
    """

    def __init__(self, plan):
        self._times = SdramTimes(SIMULATED_HZ)
        self._octets = OctetTop(plan, memory=self._times, pin_clocks=SIMULATED_PIN_CLOCKS)
        # The rows in which records lie: 16 in each bank's row
        self._rows = max(1, len(plan.sdram) * plan.sdram_cells >> 4 + BANK_BITS)
        super().__init__({name: member for name, member in self._octets.signature.members.items() if name != "chip"})

    def elaborate(self, platform):
        m = Module()
        m.submodules.octets = octets = self._octets
        m.submodules.chip = chip = SdramChip(self._times, rows=self._rows)
        for name in self.signature.members:
            ours, inner = getattr(self, name), getattr(octets, name)
            m.d.comb += inner.eq(ours) if name in ("rx", "rx_valid", "tx_ready") else ours.eq(inner)
        m.d.comb += self.tx_valid.eq(octets.tx_valid & (chip.fault == 0))
        # Registers at the pins, as on a board
        for name in ("command", "bank", "address", "out", "drives"):
            m.d.sync += getattr(chip.pins, name).eq(getattr(octets.chip, name))
        m.d.sync += octets.chip.data.eq(chip.pins.data)
        return m
