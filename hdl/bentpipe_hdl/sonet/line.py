"""A SONET line: two ends back to back, and what may happen to the bytes between them."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from bentpipe_hdl.cell import TIME_BITS, WIDE, node_members
from bentpipe_hdl.csr import CsrMap, CsrSignature
from bentpipe_hdl.link.gap import GAP_BITS, Gap, xorshift
from bentpipe_hdl.sonet.geometry import Geometry
from bentpipe_hdl.sonet.terminal import SonetTerminal

__all__ = ["LineErrors", "SonetLine"]


class LineErrors(wiring.Component):
    """Inverts bits of a line and takes its signal away. Latency 1 clock.

    Random errors are a countdown of good bits to the next one (:class:`~bentpipe_hdl.link.gap.Gap`), at any rate from
    1e-3 to 1e-15. One error a word: one that would follow in the same word hits the first bit of the next.

    Parameters
    ----------
    width : int
        Bytes a clock.

    Members
    -------
    enable : In(1)
        The word clock.
    i, o : In, Out(8 * width)
        The line.
    random : In(1), mantissa : In(24), shift : In(6)
        Random errors, their rate as of :func:`~bentpipe_hdl.link.gap.scale_of`.
    gap_start, state_start : In(1), gap : In(56), state : In(64)
        Good bits before the next error, and the state of the generator (not 0), are set.
    burst : In(16), burst_start : In(1)
        The next ``burst`` words are inverted.
    flip : In(range(8 * width)), flip_start : In(1)
        One bit of the next word is inverted, counted from the first transmitted one.
    loss : In(32), loss_start : In(1)
        Zeros for so many words.
    errors : Out(32)
        Bits inverted one by one; wraps.
    """

    def __init__(self, width):
        self._width = width
        bits = 8 * width
        super().__init__(
            {
                "enable": In(1, init=1),
                "i": In(bits),
                "o": Out(bits),
                "random": In(1),
                "mantissa": In(24),
                "shift": In(6),
                "gap": In(GAP_BITS),
                "gap_start": In(1),
                "state": In(64),
                "state_start": In(1),
                "burst": In(16),
                "burst_start": In(1),
                "flip": In(range(bits)),
                "flip_start": In(1),
                "loss": In(32),
                "loss_start": In(1),
                "errors": Out(32),
            }
        )

    def elaborate(self, platform):
        m = Module()
        bits = 8 * self._width
        left, noise = Signal(GAP_BITS), Signal(64, init=1)
        burst, loss = Signal(16), Signal(32)
        flipping = Signal()
        place = Signal(range(bits))
        m.submodules.gap_unit = unit = Gap()
        fresh = Signal(64)

        # Starts are remembered until the word clock.
        with m.If(self.burst_start):
            m.d.sync += burst.eq(self.burst)
        with m.If(self.loss_start):
            m.d.sync += loss.eq(self.loss)
        with m.If(self.flip_start):
            m.d.sync += [flipping.eq(1), place.eq(self.flip)]

        def inverted(at):
            return self.i ^ (Const(1, bits) << Cat(~at[:3], at[3:]))[:bits]  # bit 7 of a byte is the first

        with m.If(self.enable):
            m.d.sync += self.o.eq(self.i)
            with m.If(self.random):
                with m.If(left < bits):
                    following = Signal(GAP_BITS + 1)
                    m.d.comb += [
                        fresh.eq(xorshift(noise)),
                        unit.state.eq(fresh),
                        unit.mantissa.eq(self.mantissa),
                        unit.shift.eq(self.shift),
                        following.eq(left + 1 + unit.gap),
                    ]
                    m.d.sync += [
                        self.o.eq(inverted(left[: len(place)])),
                        self.errors.eq(self.errors + 1),
                        noise.eq(fresh),
                        left.eq(Mux(following < bits, 0, Mux(following[-1], Const(-1, GAP_BITS), following) - bits)),
                    ]
                with m.Else():
                    m.d.sync += left.eq(left - bits)
            with m.If(flipping & ~self.flip_start):
                m.d.sync += [self.o.eq(inverted(place)), flipping.eq(0), self.errors.eq(self.errors + 1)]
            with m.If((burst != 0) & ~self.burst_start):
                m.d.sync += [self.o.eq(~self.i), burst.eq(burst - 1)]
            with m.If((loss != 0) & ~self.loss_start):
                m.d.sync += [self.o.eq(0), loss.eq(loss - 1)]
        with m.If(self.gap_start):
            m.d.sync += left.eq(self.gap)
        with m.If(self.state_start):
            m.d.sync += noise.eq(self.state)
        return m


class SonetLine(wiring.Component):
    """A line as a node of a network: two terminals and the bytes between them, both ways.

    End 0 and end 1 are the ports. A cell that comes in at a port is framed there and comes out at the other one, with
    ``hec_error`` where its header had an error that could not be corrected. Up to ``WAITING`` cells wait for the line
    at each end; there is no propagation delay.

    **Time.** A word of 3N bytes lasts for 416/159 ticks, exactly, by a remainder that is carried on: so a line is in
    step with the cell rates of 149.76 and 599.04 Mb/s for ever. SONET never stops: the node is due at each word. After
    reset ``START`` frames pass, a word a clock, until both ends are in service (``idle`` is low).

    **Registers.** Its own at 0x0000, the terminals' (``sonet.terminal.REGISTERS``) at 0x1000 and 0x2000. What
    hits the line from end 0 to end 1 is set at 0x0100, the other way at 0x0180.

    A clock offset between the ends is the terminals' ``drift``: it moves pointers, and idle cells take up the rest.

    Parameters
    ----------
    sts : int
        3 or 12: STS-3c with 9 bytes a word, STS-12c with 36.
    width : int
        416. On an FPGA a line's end is a :class:`SonetTerminal`, and the line a fibre.

    Members
    -------
    i, o, time, status, csr
        The faces of a node.
    """

    WAITING = 16
    START = 64
    TICKS, WORDS = 416, 159  # 299520000/53 ticks and 2160000 words a second

    def __init__(self, *, width=WIDE, sts=3):
        if width != WIDE:
            raise ValueError(
                f"width must be {WIDE} bits, not {width!r}: on an FPGA an end of a line is a SonetTerminal"
            )
        if sts not in (3, 12):
            raise ValueError(f"sts must be 3 or 12, not {sts!r}")
        self.width, self.sts = width, sts
        super().__init__({**node_members(width, 2), "csr": In(CsrSignature())})

    def elaborate(self, platform):
        m = Module()
        geometry = Geometry(self.sts, 3 * self.sts)
        ends = [SonetTerminal(geometry) for _ in range(2)]
        ways = [LineErrors(geometry.width) for _ in range(2)]  # from end 0 to 1, and back
        m.submodules.end0, m.submodules.end1 = ends
        m.submodules.way0, m.submodules.way1 = ways

        word, waiting = Signal(), Signal()
        due, part, asked = Signal(TIME_BITS), Signal(range(self.WORDS)), Signal(TIME_BITS)
        following = Signal(TIME_BITS)
        tick, now = self.time.tick, self.time.now
        starting = Signal(range(self.START * geometry.frame_words + 1), init=self.START * geometry.frame_words)
        with m.If(tick):
            with m.If(due <= now):
                m.d.comb += word.eq(1)
        with m.Elif(starting != 0):
            m.d.comb += word.eq(1)
            m.d.sync += starting.eq(starting - 1)
        for k in range(2):
            m.d.comb += [
                ends[k].enable.eq(word),
                ways[k].enable.eq(word),
                ways[k].i.eq(ends[k].line_out),
                ends[1 - k].line_in.eq(ways[k].o),
            ]
        csr = self._registers(m, ends, ways)

        # Time
        rest = self.TICKS % self.WORDS
        with m.If(word), m.If(tick):
            m.d.comb += following.eq(due + self.TICKS // self.WORDS)
            m.d.sync += part.eq(part + rest)
            with m.If(part >= self.WORDS - rest):
                m.d.comb += following.eq(due + self.TICKS // self.WORDS + 1)
                m.d.sync += part.eq(part - (self.WORDS - rest))
            m.d.sync += [due.eq(following), asked.eq(following)]

        # Cells in
        bits = self.WAITING.bit_length() - 1
        dropped = Signal(32)
        hec = Signal(32)
        counts = []
        for k, end in enumerate(ends):
            store = memory.Memory(shape=WIDE, depth=self.WAITING, init=[])
            m.submodules[f"waiting{k}"] = store
            put, get = store.write_port(), store.read_port(domain="comb")
            written, read = Signal(bits + 1, name=f"written{k}"), Signal(bits + 1, name=f"read{k}")
            level = Signal(bits + 1, name=f"level{k}")
            sent, received = Signal(32, name=f"sent{k}"), Signal(32, name=f"received{k}")
            m.d.comb += [
                level.eq(written - read),
                put.addr.eq(written[:bits]),
                put.data.eq(Cat(self.i.payload, self.i.header)),
                get.addr.eq(read[:bits]),
                end.tx_cell.eq(get.data),
                end.tx_valid.eq(level != 0),
            ]
            with m.If(tick), m.If(self.i.valid & (self.i.port == k)):
                with m.If(self.i.hec_error):
                    m.d.sync += hec.eq(hec + 1)
                with m.Elif(level[-1]):
                    m.d.sync += dropped.eq(dropped + 1)
                with m.Else():
                    m.d.comb += put.en.eq(1)
                    m.d.sync += written.eq(written + 1)
            with m.If(word):
                with m.If(end.tx_ready & end.tx_valid):
                    m.d.sync += [read.eq(read + 1), sent.eq(sent + 1)]
                with m.If(end.rx_valid):
                    m.d.sync += received.eq(received + 1)
            counts.append((level, sent, received))
            csr.status(f"QUEUED{k}", 0x0080 + k, level, f"cells that wait at end {k}")
            csr.status(f"SENT{k}", 0x0082 + k, sent, f"cells put on the line by end {k}")
            csr.status(
                f"RECEIVED{k}", 0x0084 + k, received, f"cells received by end {k}, with header errors and alien ones"
            )
        csr.status("FULL", 0x0086, dropped, "cells that found 16 waiting")
        csr.status("HEC", 0x0087, hec, "cells that came in with hec_error, dropped")
        csr.status("UNDER_WAY", 0x0088, waiting, "cells received that leave in the next tick")
        csr.finish()

        # Cells out: that of end 1 waits for a tick if both have one. They stay until the next word.
        m.d.sync += self.o.valid.eq(0)
        for k, end in enumerate(ends):
            leaves = Signal(name=f"leaves{k}")
            if k == 0:
                m.d.comb += leaves.eq(word & end.rx_valid)
            else:
                m.d.comb += leaves.eq(Mux(word, end.rx_valid & ~ends[0].rx_valid, waiting & tick))
            with m.If(leaves):
                m.d.sync += [
                    self.o.valid.eq(1),
                    self.o.port.eq(k),
                    self.o.hec_error.eq(end.rx_hec_error),
                    self.o.header.eq(end.rx_cell[384:]),
                    self.o.payload.eq(end.rx_cell[:384]),
                ]
        with m.If(word & ends[0].rx_valid & ends[1].rx_valid):
            m.d.sync += [waiting.eq(1), asked.eq(now + 1)]
        with m.Elif(tick & waiting):
            m.d.sync += [waiting.eq(0), asked.eq(due)]
        m.d.comb += [self.status.idle.eq(starting == 0), self.status.due.eq(asked)]
        return m

    def _registers(self, m, ends, ways):
        """The bus: the node's own map, which is returned, and the terminals' behind their pages."""
        bus = CsrSignature().create()
        csr = CsrMap(m, bus)
        self.register_map = csr.registers
        page, held = self.csr.addr[12:14], Signal(2)
        with m.If(self.csr.r_en):
            m.d.sync += held.eq(page)
        m.d.comb += self.csr.r_data.eq(bus.r_data)
        for k, target in enumerate((bus, ends[0].csr, ends[1].csr)):
            m.d.comb += [
                target.addr.eq(self.csr.addr[:12]),
                target.w_data.eq(self.csr.w_data),
                target.w_en.eq(self.csr.w_en & (page == k)),
                target.r_en.eq(self.csr.r_en & (page == k)),
            ]
            if k:
                with m.If(held == k):
                    m.d.comb += self.csr.r_data.eq(target.r_data)
        csr.status("ID", 0x0000, Const(0x4250534E, 32), "'BPSN'")
        for k, way in enumerate(ways):
            base, name = 0x0100 + 0x80 * k, f"{k}{1 - k}"
            for part, addr, what in (
                ("random", 0x00, "random errors on"),
                ("mantissa", 0x01, "scale of the gaps between errors, 24 bits"),
                ("shift", 0x02, "scale of the gaps, binary places"),
            ):
                setting = Signal.like(getattr(way, part), name=f"way{k}_{part}")
                csr.setting(f"{part.upper()}_{name}", base + addr, setting, what)
                m.d.comb += getattr(way, part).eq(setting)
            for part, addr, what in (
                ("gap", 0x04, "good bits before the next error"),
                ("state", 0x06, "state of the generator, not 0"),
            ):
                setting = Signal.like(getattr(way, part), name=f"way{k}_{part}")
                csr.wide_setting(f"{part.upper()}_{name}", base + addr, setting, what)
                csr.on_write(base + addr + 1, getattr(way, f"{part}_start"))
                m.d.comb += getattr(way, part).eq(setting)
            for part, addr, what in (
                ("burst", 0x08, "inverts so many words"),
                ("flip", 0x09, "inverts this bit of the next word, 0 the first on the line"),
                ("loss", 0x0A, "zeros for so many words: loss of signal"),
            ):
                setting = Signal.like(getattr(way, part), name=f"way{k}_{part}")
                csr.setting(f"{part.upper()}_{name}", base + addr, setting, what)
                csr.on_write(base + addr, getattr(way, f"{part}_start"))
                m.d.comb += getattr(way, part).eq(setting)
            csr.status(f"ERROR_BITS_{name}", base + 0x10, way.errors, "bits inverted one by one")
        return csr
