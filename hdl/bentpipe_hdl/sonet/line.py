"""A SONET line: two ends back to back, and what may happen to the bytes between them."""

from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from bentpipe_hdl.bit_errors import GAP_BITS
from bentpipe_hdl.cell import TIME_BITS, WIDE, node_members
from bentpipe_hdl.csr import CsrMap, CsrSignature
from bentpipe_hdl.link.gap import Gap, inject, xorshift
from bentpipe_hdl.sim_hints import branch_first, rarely_changes
from bentpipe_hdl.sonet.control import WAITING, sonet_registers
from bentpipe_hdl.sonet.geometry import Geometry
from bentpipe_hdl.sonet.terminal import SonetTerminal

__all__ = ["LineErrors", "SonetLine"]


def _in_order(word):
    """Return the bits of a word in order of transmission, the first lowest; and back."""
    return Cat(word[k : k + 8][::-1] for k in range(0, len(word), 8))


class LineErrors(wiring.Component):
    """The errors of a line: inverted bits, loss of signal, and delay by bits. Latency 1 clock.

    Random errors are a countdown of good bits to the next one (:class:`~bentpipe_hdl.link.gap.Gap`), at any rate from
    1e-3 to 1e-15. A word gets ``ERRORS_A_WORD`` of them at most, the next hits the first bit of the next word: at 1e-3,
    the highest rate, one word of STS-12c in 40 million has more.

    Parameters
    ----------
    geometry : Geometry

    Members
    -------
    enable : In(1)
        The word clock.
    i, o : In, Out(8 * width)
        The line.
    word : In(range(frame_words))
        Which word of the frame ``i`` is.
    random : In(1), mantissa : In(24), shift : In(6)
        Random errors, their rate as for :func:`~bentpipe_hdl.link.gap.scale_of`.
    rate_start : In(1)
        The rate was written: one word passes without random errors, then a gap drawn at the new rate begins, unless
        ``gap_start`` comes before that.
    gap_start, state_start : In(1), gap : In(56), state : In(64)
        Good bits before the next error, and the state of the generator (not 0), are set.
    burst : In(16), burst_start : In(1)
        The next ``burst`` words are inverted.
    flip : In(32), flip_start : In(1)
        One bit of the frame is inverted when it next passes: bits 16 to 31 are the word, bits 0 to 15 the bit in it,
        counted from the first transmitted one.
    loss : In(32), loss_start : In(1)
        Zeros for so many words.
    slip : In(range(8 * width))
        All this, so many bits late: the receiver finds its frames at another bit.
    errors, hits : Out(32)
        Bits inverted one by one; words changed by any of this. They wrap.
    """

    ERRORS_A_WORD = 6

    def __init__(self, geometry):
        self._geometry = geometry
        bits = 8 * geometry.width
        super().__init__(
            {
                "enable": In(1, init=1),
                "i": In(bits),
                "o": Out(bits),
                "word": In(range(geometry.frame_words)),
                "random": In(1),
                "mantissa": In(24),
                "shift": In(6),
                "rate_start": In(1),
                "gap": In(GAP_BITS),
                "gap_start": In(1),
                "state": In(64),
                "state_start": In(1),
                "burst": In(16),
                "burst_start": In(1),
                "flip": In(32),
                "flip_start": In(1),
                "loss": In(32),
                "loss_start": In(1),
                "slip": In(range(bits)),
                "errors": Out(32),
                "hits": Out(32),
            }
        )

    def elaborate(self, platform):
        m = Module()
        bits = 8 * self._geometry.width
        line, before = Signal(bits), Signal(bits)
        left, noise = Signal(GAP_BITS), Signal(64, init=1)
        burst, loss, flipping = Signal(16), Signal(32), Signal()
        at_random, at_place, hit = Signal(), Signal(), Signal()
        busy, starts = rarely_changes(Signal()), Signal()  # something may happen to the line
        redraw = rarely_changes(Signal())
        m.submodules.first_gap = first = Gap()
        m.d.comb += [first.mantissa.eq(self.mantissa), first.shift.eq(self.shift)]
        m.d.comb += starts.eq(self.burst_start | self.flip_start | self.loss_start)

        with m.If(self.enable):
            m.d.sync += line.eq(self.i)
            with m.If(self.slip != 0):
                m.d.sync += before.eq(line)
            with m.If(redraw):
                m.d.comb += first.state.eq(xorshift(noise))
                m.d.sync += [left.eq(first.gap), noise.eq(first.state), redraw.eq(0)]
            with m.Elif(self.random):
                with m.If(left < bits):
                    m.d.comb += at_random.eq(1)
                with m.Else():
                    m.d.sync += left.eq(left - bits)
            with m.If(busy):
                with m.If(flipping), m.If(self.word == self.flip[16:]):
                    m.d.comb += at_place.eq(1)
                with m.If((burst == 0) & (loss == 0) & ~flipping):
                    m.d.sync += busy.eq(0)
            with m.If(at_random | (busy & (at_place | (burst != 0) | (loss != 0)))):
                m.d.comb += hit.eq(1)
            with m.If(hit):
                flips, count = self._flips(m, bits, left, noise, at_random, at_place)
                m.d.sync += [
                    line.eq(self.i ^ flips),
                    self.errors.eq(self.errors + count),
                    self.hits.eq(self.hits + 1),
                ]
                with m.If(at_place):
                    m.d.sync += flipping.eq(0)
                with m.If(burst != 0):
                    m.d.sync += [line.eq(~self.i), burst.eq(burst - 1)]
                with m.If(loss != 0):
                    m.d.sync += line.eq(0)
                    with m.If(~loss.all()):
                        m.d.sync += loss.eq(loss - 1)
        m.d.comb += self.o.eq(line)
        with m.If(self.slip != 0):
            two = Cat(_in_order(before), _in_order(line))
            late = Signal(bits)
            m.d.comb += [late.eq((two << self.slip)[bits : 2 * bits]), self.o.eq(_in_order(late))]
        # A start goes before what is under way.
        with m.If(starts):
            m.d.sync += busy.eq(1)
            with m.If(self.burst_start):
                m.d.sync += burst.eq(self.burst)
            with m.If(self.loss_start):
                m.d.sync += loss.eq(self.loss)
            with m.If(self.flip_start):
                m.d.sync += flipping.eq(1)
        with m.If(self.rate_start):
            m.d.sync += redraw.eq(1)
        with m.If(self.gap_start):
            m.d.sync += [left.eq(self.gap), redraw.eq(0)]
        with m.If(self.state_start):
            m.d.sync += noise.eq(self.state)
        return m

    def _flips(self, m, bits, left, noise, at_random, at_place):
        """Return the bits of this word to be inverted one by one, and how many."""

        def one(place):
            return (Const(1, bits) << Cat(~place[:3], place[3:]))[:bits]  # bit 7 of a byte is the first

        flips, count = Signal(bits, name="flips_at_place"), Signal(4, name="count_at_place")
        with m.If(at_place):
            m.d.comb += [flips.eq(one(self.flip[: (bits - 1).bit_length()])), count.eq(1)]
        flips, count, gap, state = inject(
            m, bits, self.ERRORS_A_WORD, gap=left, state=noise, mantissa=self.mantissa, shift=self.shift, one=one,
            draws=at_random, flips=flips, count=count,
        )  # fmt: skip
        with m.If(at_random):
            m.d.sync += [left.eq(gap), noise.eq(state)]
        return flips, count


class SonetLine(wiring.Component):
    """A line as a node of a network: two terminals and the bytes between them, both ways.

    End 0 and end 1 are the ports. A cell that arrives at a port is framed there and comes out at the other one, with
    ``hec_error`` where its header had an error that could not be corrected. Up to
    ``sonet.control.WAITING`` cells wait for the line at each end; there is no propagation delay.

    **Time.** A word of 3N bytes lasts for 416/159 ticks, exactly, by a remainder that is carried on: so a line is in
    step with the cell rates of 149.76 and 599.04 Mb/s for ever. SONET never stops: the node is due at each word. After
    reset ``START`` frames pass, a word a clock, until both ends are in service (``idle`` is low).

    **Account.** Cells that come in wait, are sent, or are dropped for ``FULL`` or ``HEC``; cells that go out were
    received, rightly or in error. What was sent and is not received is under way or lost; what was sent half a frame
    ago (``LANDED``) is not under way any more. As on a real line nobody can tell whether a header in error was a cell's
    or that of an idle one.

    **Registers.** Its own at 0x0000, the terminals' (``sonet.control.TERMINAL``) at 0x1000 and 0x2000. What
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

    Notes
    -----
    Handshake: cells have no back-pressure; a cell in a tick each way. Those that find ``sonet.control.WAITING`` cells
    waiting are dropped and counted.

    Latency: one to two cell times of the line in the framer, if no cell waits before it, and a few words in the
    deframer.

    Source: GR-253 clauses 3 and 6.2.1 (frames, alarms), I.432.1 clause 4.3 (cells).
    """

    START = 64
    TICKS, WORDS = 416, 159  # 299520000/53 ticks and 2160000 words a second

    def __init__(self, *, width=WIDE, sts=3):
        if width != WIDE:
            raise ValueError(
                f"width must be {WIDE} bits, not {width!r}: on an FPGA an end of a line is a SonetTerminal"
            )
        self.width, self.sts = width, sts
        self.registers = sonet_registers(sts=sts)
        super().__init__({**node_members(width, 2), "csr": In(CsrSignature())})

    def elaborate(self, platform):
        m = Module()
        geometry = Geometry(self.sts, 3 * self.sts)
        ends = [SonetTerminal(geometry) for _ in range(2)]
        ways = [LineErrors(geometry) for _ in range(2)]  # from end 0 to 1, and back
        m.submodules.end0, m.submodules.end1 = ends
        m.submodules.way0, m.submodules.way1 = ways

        word, waiting = branch_first(Signal(), 0), Signal()
        due, part, asked = Signal(TIME_BITS), Signal(range(self.WORDS)), Signal(TIME_BITS)
        following = Signal(TIME_BITS)
        tick, now, start = self.time.tick, self.time.now, self.START * geometry.frame_words
        starting = rarely_changes(Signal(range(start + 1), init=start))
        with m.If(tick):
            with m.If(due <= now):
                m.d.comb += word.eq(1)
        with m.Elif(starting != 0):
            m.d.comb += word.eq(1)
            m.d.sync += starting.eq(starting - 1)
        last = geometry.frame_words - 1
        place, half = Signal(range(last + 1), init=last), Signal()  # of the word between an end and what hits it
        with m.If(word):
            m.d.sync += place.eq(place + 1)
            with m.If(place == last):
                m.d.sync += place.eq(0)
            m.d.comb += half.eq((place == last) | (place == last // 2))
        for k in range(2):
            m.d.comb += [
                ends[k].enable.eq(word),
                ways[k].enable.eq(word),
                ways[k].word.eq(place),
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
        bits = WAITING.bit_length() - 1
        dropped = Signal(32)
        hec = Signal(32)
        at_end = {name: [] for name in ("queued", "sent", "landed", "received", "errored")}
        for k, end in enumerate(ends):
            store = memory.Memory(shape=WIDE, depth=WAITING, init=[])
            m.submodules[f"waiting{k}"] = store
            put, get = store.write_port(), store.read_port(domain="comb")
            written, read = Signal(bits + 1, name=f"written{k}"), Signal(bits + 1, name=f"read{k}")
            level = Signal(bits + 1, name=f"level{k}")
            names = ("sent", "sampled", "landed", "received", "errored")
            sent, sampled, landed, received, errored = (Signal(32, name=f"{name}{k}") for name in names)
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
                with m.If(half):
                    m.d.sync += [sampled.eq(sent), landed.eq(sampled)]
                with m.If(end.rx_valid):
                    with m.If(end.rx_hec_error):
                        m.d.sync += errored.eq(errored + 1)
                    with m.Else():
                        m.d.sync += received.eq(received + 1)
            for name, value in zip(at_end, (level, sent, landed, received, errored), strict=True):
                at_end[name].append(value)
        for name, values in at_end.items():
            csr.status(name, *values)
        csr.status("full", dropped)
        csr.status("hec", hec)
        csr.status("under_way", waiting)
        csr.finish()

        # Cells out: that of end 1 waits for a tick if both have one. In the next word the end may have another one.
        m.d.sync += self.o.valid.eq(0)
        late, late_error = Signal(WIDE), Signal()

        def leaves(port, cell, hec_error):
            m.d.sync += [
                self.o.valid.eq(1),
                self.o.port.eq(port),
                self.o.hec_error.eq(hec_error),
                self.o.header.eq(cell[384:]),
                self.o.payload.eq(cell[:384]),
            ]

        first, second = ends
        with m.If(word):
            with m.If(first.rx_valid):
                leaves(0, first.rx_cell, first.rx_hec_error)
                with m.If(second.rx_valid):
                    m.d.sync += [late.eq(second.rx_cell), late_error.eq(second.rx_hec_error)]
                    m.d.sync += [waiting.eq(1), asked.eq(now + 1)]
            with m.Elif(second.rx_valid):
                leaves(1, second.rx_cell, second.rx_hec_error)
        with m.Elif(tick & waiting):
            leaves(1, late, late_error)
            m.d.sync += [waiting.eq(0), asked.eq(due)]
        m.d.comb += [self.status.idle.eq(starting == 0), self.status.due.eq(asked)]
        return m

    def _registers(self, m, ends, ways):
        """Connect the bus to the node's own map and to the terminals', behind their pages.

        Return the node's own map.
        """
        bus = CsrSignature().create()
        csr = CsrMap(m, bus, self.registers)
        page = self.csr.addr[12:]
        held = Signal.like(page)
        with m.If(self.csr.r_en):
            m.d.sync += held.eq(page)
        m.d.comb += self.csr.r_data.eq(bus.r_data)
        for k, target in enumerate((bus, ends[0].csr, ends[1].csr)):
            m.d.comb += [target.addr.eq(self.csr.addr[:12]), target.w_data.eq(self.csr.w_data)]
            with m.If(self.csr.w_en), m.If(page == k):
                m.d.comb += target.w_en.eq(1)
            with m.If(self.csr.r_en), m.If(page == k):
                m.d.comb += target.r_en.eq(1)
            if k:
                with m.If(held == k):
                    m.d.comb += self.csr.r_data.eq(target.r_data)
        for k, way in enumerate(ways):
            to, rates = f"{k}{1 - k}", []
            for part in ("random", "mantissa", "shift", "slip"):
                name = f"{part}_{to}"
                setting = csr.register(name)
                if part in ("random", "slip"):
                    rarely_changes(setting)
                else:
                    strobe = Signal(name=f"{name}_written")
                    csr.on_write(name, strobe)
                    rates.append(strobe)
                m.d.comb += getattr(way, part).eq(setting)
            m.d.comb += way.rate_start.eq(Cat(rates).any())
            for part in ("gap", "state", "burst", "flip", "loss"):
                name = f"{part}_{to}"
                m.d.comb += getattr(way, part).eq(csr.register(name))
                csr.on_write(name, getattr(way, f"{part}_start"))
            csr.status(f"error_bits_{to}", way.errors)
            csr.status(f"hit_words_{to}", way.hits)
        return csr
