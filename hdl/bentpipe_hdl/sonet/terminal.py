"""One end of a SONET line: framer, deframer, alarms, traces, counters, and the registers for all of it."""

from amaranth.hdl import Cat, Const, EnableInserter, Module, Mux, Signal
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

from bentpipe_hdl.csr import CsrMap, CsrSignature
from bentpipe_hdl.sim_hints import rarely_changes, usually
from bentpipe_hdl.sonet.alarms import Defects, Hold, LineAlarms, PathAlarms, Persistence
from bentpipe_hdl.sonet.control import AFTER_RESET, TERMINAL, WAITING_MOVES
from bentpipe_hdl.sonet.deframer import Deframer
from bentpipe_hdl.sonet.delineation import State
from bentpipe_hdl.sonet.framer import Framer, FramerForce
from bentpipe_hdl.sonet.tables import ALARMS, COUNTERS, FRAMER_SETTINGS, RECEIVED
from bentpipe_hdl.sonet.trace import TraceForm, TraceReceiver, TraceSender

__all__ = ["SonetTerminal", "Termination"]

RDI_FRAMES = 20
"""An RDI once sent stays for at least so many frames."""

LCD_FRAMES = 32
"""4 ms."""

Settings = data.StructLayout(
    {
        "overhead": data.StructLayout({name: bits for name, (bits, _) in FRAMER_SETTINGS.items()}),
        "force": FramerForce,
        "hec_mask": 8,
        "drift": 24,
        "c2_expected": 8,
        "auto_rdi": 1,
        "auto_rei": 1,
        "tim_s": 1,
        "tim_p": 1,
        "j0_sent_form": TraceForm,
        "j1_sent_form": TraceForm,
        "j0_form": TraceForm,
        "j1_form": TraceForm,
    }
)

TABLES = ("j0_sent", "j1_sent", "j0_expected", "j1_expected")
"""Trace memories of 64 bytes."""


class Termination(wiring.Component):
    """The data path and everything that works at its clock. All of it may be stopped by an enable.

    Parameters
    ----------
    geometry : Geometry
    pointer : int
        Offset sent after reset.

    Members
    -------
    line_out : Out(8 * width), line_in : In(8 * width), signal : In(1)
        The line. First byte in the low bits, first bit of a byte on top.
    tx_cell, tx_valid, tx_ready
        Cells to be sent, as in :class:`CellMapper`.
    rx_cell, rx_valid, rx_hec_error, rx_corrected
        Cells received, as in :class:`CellDemapper`.
    settings : In(Settings)
    increment, decrement, jump : In(1), target : In(10)
        Pointer requests, held until ``served``.
    served : Out(1)
        Combinational: the requests of this clock are served.
    latch : In(1)
        Copies the counters into ``counters`` and clears them.
    table : In(2), table_address : In(6), table_data : In(8), table_write : In(1)
        Writes a trace memory (``TABLES``).
    poll : Out(1)
        Strobe: ``defects`` have changed. They are looked at once a row, and when LOS or OCD comes or goes.
    defects : Out(Defects), received : Out(Struct), counters : Out(20 x 32), rdi_p_code, pointer, state, in_frame
    """

    def __init__(self, geometry, pointer=522):
        self._geometry = geometry
        self._pointer = pointer
        bits = 8 * geometry.width
        super().__init__(
            {
                "line_out": Out(bits),
                "line_in": In(bits),
                "signal": In(1, init=1),
                "tx_cell": In(416),
                "tx_valid": In(1),
                "tx_ready": Out(1),
                "rx_cell": Out(416),
                "rx_valid": Out(1),
                "rx_hec_error": Out(1),
                "rx_corrected": Out(1),
                "settings": In(Settings),
                "increment": In(1),
                "decrement": In(1),
                "jump": In(1),
                "target": In(10),
                "served": Out(1),
                "latch": In(1),
                "table": In(2),
                "table_address": In(6),
                "table_data": In(8),
                "table_write": In(1),
                "defects": Out(Defects, init=AFTER_RESET),
                "poll": Out(1),
                "received": Out(data.StructLayout(RECEIVED)),
                "counters": Out(data.ArrayLayout(32, len(COUNTERS))),
                "rdi_p_code": Out(3),
                "pointer": Out(10),
                "sent_pointer": Out(10),
                "state": Out(State),
                "in_frame": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        g = self._geometry
        s = self.settings
        m.submodules.framer = framer = Framer(g, self._pointer)
        m.submodules.deframer = rx = Deframer(g)
        m.d.comb += [
            self.line_out.eq(framer.line),
            framer.cell.eq(self.tx_cell),
            framer.valid.eq(self.tx_valid),
            self.tx_ready.eq(framer.ready),
            framer.overhead.eq(s.overhead),
            framer.force.eq(s.force),
            framer.hec_mask.eq(s.hec_mask),
            framer.drift.eq(s.drift),
            framer.increment.eq(self.increment),
            framer.decrement.eq(self.decrement),
            framer.jump.eq(self.jump),
            framer.target.eq(self.target),
            self.served.eq(framer.served),
            self.sent_pointer.eq(framer.active),
            rx.line.eq(self.line_in),
            rx.signal.eq(self.signal),
            self.rx_cell.eq(rx.cell),
            self.rx_valid.eq(rx.valid),
            self.rx_hec_error.eq(rx.hec_error),
            self.rx_corrected.eq(rx.corrected),
            self.received.eq(rx.received),
            self.pointer.eq(rx.pointer),
            self.state.eq(rx.state),
            self.in_frame.eq(rx.in_frame),
        ]

        # What is slow is looked at with the overhead only, about once a row and direction, and when LOS or OCD changes;
        # with narrow words a clock late, so that nothing hangs on the framer and the deframer.
        news, slow = Signal(), Signal()
        was_sef, was_sync, sync = rarely_changes(Signal(init=1)), rarely_changes(Signal(), 1), Signal()
        usually(self.poll)
        for signal in (self.defects, rx.stop):
            rarely_changes(signal)
        m.d.comb += [
            sync.eq(rx.state == State.SYNC),
            news.eq(rx.row_strobe | rx.path_strobe | framer.frame | (rx.los ^ self.defects.los) | (sync ^ was_sync)),
        ]
        frame_end, sent_frame = Signal(), Signal()
        row_strobes = {row: Signal(name=f"at_row{row}") for row in (0, 4, 8)}
        path_strobes = {row: Signal(name=f"at_path{row}") for row in (0, 2, 3)}
        looks = m.d.comb if g.wide else m.d.sync
        looks += slow.eq(news)
        with m.If(news | slow):
            if not g.wide:
                strobes = (frame_end, sent_frame, *row_strobes.values(), *path_strobes.values())
                m.d.sync += [strobe.eq(0) for strobe in strobes]
            with m.If(rx.row_strobe):
                for row, strobe in row_strobes.items():
                    with m.If(rx.in_frame & (rx.row == row)):
                        looks += strobe.eq(1)
                with m.If(rx.row == 8):
                    looks += frame_end.eq(1)
            with m.If(rx.path_strobe):
                for row, strobe in path_strobes.items():
                    with m.If(rx.path_row == row):
                        looks += strobe.eq(1)
            with m.If(framer.frame):
                looks += sent_frame.eq(1)

        # Traces
        senders = {}
        receivers = {}
        for k, name in enumerate(TABLES):
            first = 1 if name.startswith("j0") else 0
            item = TraceSender(first) if name.endswith("sent") else TraceReceiver(first)
            m.submodules[name] = item
            (senders if name.endswith("sent") else receivers)[name[:2]] = item
            m.d.comb += [
                item.address.eq(self.table_address),
                item.data.eq(self.table_data),
            ]
            with m.If(self.table_write), m.If(self.table == k):
                m.d.comb += item.write.eq(1)
        no_section, no_line, no_path = Signal(), Signal(), Signal()
        m.d.comb += [
            senders["j0"].form.eq(s.j0_sent_form),
            senders["j1"].form.eq(s.j1_sent_form),
            senders["j0"].sent.eq(framer.j0_sent),
            senders["j1"].sent.eq(framer.j1_sent),
            framer.j0.eq(senders["j0"].byte),
            framer.j1.eq(senders["j1"].byte),
            receivers["j0"].form.eq(s.j0_form),
            receivers["j0"].strobe.eq(row_strobes[0]),
            receivers["j0"].byte.eq(rx.received.j0),
            receivers["j1"].form.eq(s.j1_form),
            receivers["j1"].strobe.eq(path_strobes[0]),
            receivers["j1"].byte.eq(rx.received.j1),
        ]
        with m.If(slow):
            with m.If(no_section | ~s.tim_s):
                m.d.comb += receivers["j0"].clear.eq(1)
            with m.If(no_path | ~s.tim_p):
                m.d.comb += receivers["j1"].clear.eq(1)

        # Defects
        line, path, lcd = LineAlarms(), PathAlarms(), Persistence(LCD_FRAMES)
        m.submodules.line = EnableInserter(slow)(line)
        m.submodules.path = EnableInserter(slow)(path)
        m.submodules.lcd = EnableInserter(slow)(lcd)
        d = Signal(Defects)
        no_cells = Signal()
        m.d.comb += [
            no_section.eq(rx.los | rx.lof),
            no_line.eq(no_section | line.ais_l),
            no_path.eq(no_line | rx.path_ais | rx.lop),
            no_cells.eq(no_path | path.uneq_p),
            line.strobe.eq(row_strobes[4]),
            line.k2.eq(rx.received.k2),
            line.restart.eq(rx.sef),
            line.clear.eq(no_section),
            path.c2_strobe.eq(path_strobes[2]),
            path.c2.eq(rx.received.c2),
            path.expected.eq(s.c2_expected),
            path.g1_strobe.eq(path_strobes[3]),
            path.g1.eq(rx.received.g1),
            path.restart.eq(rx.sef),
            path.clear.eq(no_path),
            lcd.strobe.eq(frame_end),
            lcd.condition.eq(d.ocd),
            lcd.clear.eq(no_cells),
            self.rdi_p_code.eq(path.rdi_p_code),
            d.los.eq(rx.los),
            d.sef.eq(rx.sef),
            d.lof.eq(rx.lof),
            d.ais_l.eq(line.ais_l),
            d.rdi_l.eq(line.rdi_l),
            d.tim_s.eq(receivers["j0"].mismatch),
            d.ais_p.eq(rx.path_ais),
            d.lop_p.eq(rx.lop),
            d.uneq_p.eq(path.uneq_p),
            d.plm_p.eq(path.plm_p),
            d.tim_p.eq(receivers["j1"].mismatch),
            d.rdi_p.eq(path.rdi_p),
            d.ocd.eq((rx.state != State.SYNC) & ~no_cells),
            d.lcd.eq(lcd.defect),
        ]
        with m.If(self.poll):
            m.d.sync += self.poll.eq(0)
        with m.If(slow):
            m.d.sync += [self.defects.eq(d), self.poll.eq(d.as_value() != self.defects.as_value())]
            m.d.sync += rx.stop.eq(no_line | path.uneq_p)

        # What the far end is told.
        hold_l, hold_p = Hold(1, RDI_FRAMES), Hold(3, RDI_FRAMES)
        m.submodules.rdi_l = EnableInserter(slow)(hold_l)
        m.submodules.rdi_p = EnableInserter(slow)(hold_p)
        code = Signal(3)
        with m.If(no_path):
            m.d.comb += code.eq(0b101)
        with m.Elif(path.uneq_p | d.tim_p):
            m.d.comb += code.eq(0b110)
        with m.Elif(path.plm_p | lcd.defect):
            m.d.comb += code.eq(0b010)
        m.d.comb += [
            hold_l.strobe.eq(sent_frame),
            hold_l.value.eq(no_line),
            hold_p.strobe.eq(sent_frame),
            hold_p.value.eq(code),
            framer.rdi_l.eq(hold_l.held & s.auto_rdi),
            framer.rdi_p.eq(Mux(hold_p.held != 0, hold_p.held, 0b001)),
        ]
        with m.If(~s.auto_rdi):
            m.d.comb += framer.rdi_p.eq(0)
        self._rei(m, 8 * g.n, rx.parity_strobe, rx.b2_errors, framer.rei_l_sent, framer.rei_l)
        self._rei(m, 8, rx.b3_strobe, rx.b3_errors, framer.rei_p_sent, framer.rei_p)

        # Counters: events by the strobe under which they are looked for
        with m.If(slow):
            m.d.sync += [was_sef.eq(rx.sef), was_sync.eq(sync)]
        m1 = rx.received.m1
        rei_p = rx.received.g1[4:]
        events = {
            "frames": (slow, frame_end, 1),
            "b1": (rx.early, rx.parity_strobe, rx.b1_errors),
            "b2": (rx.early, rx.parity_strobe, rx.b2_errors),
            "b3": (rx.b3_strobe, None, rx.b3_errors),
            "rei_l": (slow, row_strobes[8] & ~no_line & (m1 <= 8 * g.n), m1),
            "rei_p": (slow, path_strobes[3] & ~no_path & (rei_p <= 8), rei_p),
            "sef": (slow, rx.sef & ~was_sef, 1),
            "positive": (rx.early, rx.positive, 1),
            "negative": (rx.early, rx.negative, 1),
            "new_pointer": (rx.early, rx.new_pointer, 1),
            "ndf": (rx.early, rx.ndf, 1),
            "sent_positive": (framer.moved, framer.positive, 1),
            "sent_negative": (framer.moved, framer.negative, 1),
            "rx_user": (rx.valid, ~rx.hec_error, 1),
            "rx_idle": (rx.idle, None, 1),
            "corrected": (rx.valid, rx.corrected, 1),
            "discarded": (rx.valid, rx.hec_error, 1),
            "ocd": (slow, was_sync & ~sync, 1),
            "tx_user": (framer.user, None, 1),
            "tx_idle": (framer.idle, None, 1),
        }
        counts = {name: Signal(32, name=f"count_{name}") for name in COUNTERS}
        for name, (strobe, more, amount) in events.items():
            with m.If(strobe), m.If(1 if more is None else more):
                m.d.sync += counts[name].eq(counts[name] + amount)
        with m.If(self.latch):
            for k, (name, count) in enumerate(counts.items()):
                strobe, more, amount = events[name]
                m.d.sync += [
                    self.counters[k].eq(count),
                    count.eq(Mux(strobe & (1 if more is None else more), amount, 0)),
                ]
        return m

    def _rei(self, m, most, strobe, errors, sent, value):
        """Add up error counts, and report at most ``most`` of them at a time."""
        most = min(most, (1 << len(value)) - 1)
        pending = Signal(len(value) + 4)
        portion = Signal(len(value))  # of `pending`, once that is no longer `changed`
        changed, adding = usually(Signal()), usually(Signal())
        added = Signal(len(errors))
        with m.If(sent):
            m.d.sync += [value.eq(portion), pending.eq(pending - portion), changed.eq(1)]
        with m.Elif(changed):
            m.d.sync += [portion.eq(Mux(pending > most, most, pending)), changed.eq(0)]
        with m.Elif(adding):
            m.d.sync += [adding.eq(0), changed.eq(1)]
            with m.If(~pending[-1]):
                m.d.sync += pending.eq(pending + added)
        with m.If(strobe), m.If(self.settings.auto_rei):
            m.d.sync += [added.eq(errors), adding.eq(1)]


class SonetTerminal(wiring.Component):
    """:class:`Termination` behind registers.

    Members
    -------
    enable : In(1)
        The line's word clock. Everything but the registers stands still while it is low.
    csr : In(CsrSignature)
        ``sonet.control.TERMINAL``.
    irq : Out(1)
    line_out, line_in, signal, tx_cell, tx_valid, tx_ready, rx_cell, rx_valid, rx_hec_error, rx_corrected
        As in :class:`Termination`; they hold while ``enable`` is low, and count only when it is high.
    """

    def __init__(self, geometry, pointer=522):
        self._geometry = geometry
        self._pointer = pointer
        bits = 8 * geometry.width
        super().__init__(
            {
                "enable": In(1, init=1),
                "csr": In(CsrSignature()),
                "irq": Out(1),
                "line_out": Out(bits),
                "line_in": In(bits),
                "signal": In(1, init=1),
                "tx_cell": In(416),
                "tx_valid": In(1),
                "tx_ready": Out(1),
                "rx_cell": Out(416),
                "rx_valid": Out(1),
                "rx_hec_error": Out(1),
                "rx_corrected": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        core = Termination(self._geometry, self._pointer)
        m.submodules.core = EnableInserter(self.enable)(core)
        for name in ("line_in", "signal", "tx_cell", "tx_valid"):
            m.d.comb += getattr(core, name).eq(getattr(self, name))
        for name in ("line_out", "tx_ready", "rx_cell", "rx_valid", "rx_hec_error", "rx_corrected"):
            m.d.comb += getattr(self, name).eq(getattr(core, name))

        mode = TERMINAL["mode"]
        reset = {part.name: mode.reset >> part.low & part.mask for part in mode.fields}
        reset["c2_expected"] = TERMINAL["c2_expected"].reset
        overhead = {name: value for name, (_, value) in FRAMER_SETTINGS.items()}
        s = Signal(Settings, init={"overhead": overhead, **reset})
        force = rarely_changes(Signal(FramerForce))
        m.d.comb += [core.settings.eq(s), core.settings.force.eq(force)]
        csr = CsrMap(m, self.csr, TERMINAL)

        # Requests wait for the word clock, and pointer movements for their time.
        w_data = self.csr.w_data
        moves = memory.Memory(shape=13, depth=WAITING_MOVES, init=[])
        m.submodules.moves = moves
        put_move, next_move = moves.write_port(), moves.read_port(domain="comb")
        level, refused = rarely_changes(Signal(range(WAITING_MOVES + 1))), Signal(16)
        asks, moved = Signal(), Signal()
        m.d.comb += [put_move.data.eq(Cat(w_data[:3], w_data[16:26])), core.target.eq(next_move.data[3:])]
        with m.If(level != 0):
            m.d.comb += Cat(core.increment, core.decrement, core.jump).eq(next_move.data[:3])
            m.d.comb += moved.eq(core.served & self.enable)
        with m.If(moved):
            m.d.sync += next_move.addr.eq(next_move.addr + 1)
        with csr.written("move"):
            with m.If(level == WAITING_MOVES):
                m.d.sync += refused.eq(refused + 1)
            with m.Else():
                m.d.comb += [asks.eq(1), put_move.en.eq(1)]
                m.d.sync += put_move.addr.eq(put_move.addr + 1)
        with m.If(asks ^ moved):
            m.d.sync += level.eq(Mux(asks, level + 1, level - 1))
        latch = rarely_changes(Signal())
        m.d.comb += core.latch.eq(latch)
        table = Signal(18)
        table_write = rarely_changes(Signal())
        m.d.comb += [
            core.table_data.eq(table[:8]),
            core.table_address.eq(table[8:14]),
            core.table.eq(table[16:18]),
            core.table_write.eq(table_write),
        ]
        with m.If(self.enable):
            m.d.sync += [latch.eq(0), table_write.eq(0)]
        with csr.written("latch"):
            m.d.sync += latch.eq(1)
        with csr.written("trace"):
            m.d.sync += [table.eq(w_data), table_write.eq(1)]

        before = Signal(Defects, init=AFTER_RESET).as_value()
        changed = Signal(len(ALARMS))
        mask = Signal(len(ALARMS))
        defects = core.defects.as_value()
        look = usually(Signal())
        fresh = defects ^ before
        with m.If(look):
            m.d.sync += [
                look.eq(0),
                before.eq(defects),
                changed.eq(changed | fresh),
                self.irq.eq(((changed | fresh) & mask).any()),
            ]
        with m.If(core.poll):
            m.d.sync += look.eq(1)
        with m.If(self.csr.w_en):
            m.d.sync += look.eq(1)
            with m.If(self.csr.addr == TERMINAL["changed"].addr):
                m.d.sync += [before.eq(before), changed.eq(changed & ~w_data)]  # `look` follows
        csr.status("moves", Cat(level, Const(0, 16 - len(level)), refused))
        csr.status("defects", defects)
        csr.status("changed", changed)
        csr.register("interrupt_mask", mask)
        csr.status(
            "state",
            Cat(
                core.state, Const(0, 2), core.rdi_p_code, Const(0, 1), core.pointer, Const(0, 2), core.sent_pointer,
                Const(0, 1), core.in_frame,
            ),
        )  # fmt: skip
        csr.register("mode", Cat(s[part.name] for part in mode.fields))
        csr.register("force", force.as_value())
        csr.register("hec_mask", s.hec_mask)
        csr.register("c2_expected", s.c2_expected)
        csr.register("drift", s.drift)
        for name in FRAMER_SETTINGS:
            csr.register(f"sent_{name}", s.overhead[name])
        for name in RECEIVED:
            csr.status(f"received_{name}", core.received[name])
        for k, name in enumerate(COUNTERS):
            csr.status(f"count_{name}", core.counters[k])
        csr.finish()
        return m
