"""FIFOs of records in a DDR3 memory behind LiteDRAM's native port: the delay memory of long lines.

:class:`Ddr3Fifos` is in the clock domain of the wires, and :class:`Ddr3Port` in that of LiteDRAM. Streams of words lead
from one to the other, and cross between the clocks in :class:`~bentpipe_boards.crossing.Crossing`. Software starts the
memory through the other two streams (:mod:`bentpipe_sim.board.ddr3`).
"""

from typing import Final

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal
from amaranth.lib import data, enum, memory, wiring
from amaranth.lib.wiring import In, Out

from bentpipe_boards.records import BOX, RECORD_WORDS, RecordSignature, ends_of

__all__ = [
    "ADDR_BITS", "CSR_BITS", "DATA_BITS", "PLACE_BITS", "STREAMS", "Ask", "AskSignature", "Ddr3Fifos", "Ddr3Port",
    "Ddr3Signature", "NativeSignature", "Request", "WordSignature",
]  # fmt: skip

DATA_BITS: Final = 128
"""Width of the native port: a burst of 8 on 16 data lines."""
ADDR_BITS: Final = 25
"""Bits of an address of the native port: 512 MB."""
CSR_BITS: Final = 14
"""Bits of an address of LiteDRAM's registers."""
_PATIENCE_BITS: Final = 10
"""Clocks for which a mark is waited for: 2 to the power of this."""
_WORDS: Final = DATA_BITS // 32
_BURSTS: Final = RECORD_WORDS // _WORDS
_WAITING: Final = 2 * _BURSTS
"""Bursts that are written and wait for LiteDRAM."""
PLACE_BITS: Final = ADDR_BITS - (_BURSTS - 1).bit_length()
"""Width of a record's place: 512 MB hold 2**23 records."""


class Request(enum.Enum, shape=2):
    """A request to the memory, in the upper bits of a request's first word; the record's place is in the lower
    ones."""

    READ = 0
    WRITE = 1
    """16 words follow."""
    MARK = 2
    """The answer is one word, behind the answers of all requests before. Its lower bits are those of the request."""


class Ask(enum.Enum, shape=2):
    """A question to the memory's controller."""

    WRITE = 0
    """Write a register."""
    READ = 1
    """Read a register: the answer is one word."""
    WAIT = 2
    """Do nothing for so many clocks of the memory, and one more."""


class WordSignature(wiring.Signature):
    """A stream of words.

    Members
    -------
    valid, ready : Out(1), In(1)
    word : Out(32)
    flag : Out(1)
        Of requests: the first word. Of answers: the answer to a mark.
    """

    def __init__(self):
        super().__init__({"valid": Out(1), "ready": In(1), "word": Out(32), "flag": Out(1)})


class AskSignature(wiring.Signature):
    """A stream of accesses to LiteDRAM's registers.

    Members
    -------
    valid, ready : Out(1), In(1)
    kind : Out(Ask)
    addr : Out(14)
    word : Out(32)
        The word to be written, or the number of clocks to wait.
    """

    def __init__(self):
        super().__init__({"valid": Out(1), "ready": In(1), "kind": Out(Ask), "addr": Out(CSR_BITS), "word": Out(32)})


STREAMS: Final = {
    "request": (True, WordSignature()),
    "answer": (False, WordSignature()),
    "ask": (True, AskSignature()),
    "value": (False, WordSignature()),
}
"""Streams between a board's core and its memory by name: whether they lead to the memory, and their signature."""


class Ddr3Signature(wiring.Signature):
    """All streams of :data:`STREAMS`, as the core has them.

    Members
    -------
    request, answer : Out(WordSignature), In(WordSignature)
        Records.
    ask, value : Out(AskSignature), In(WordSignature)
        Registers of LiteDRAM.
    """

    def __init__(self):
        super().__init__({name: (Out if leaves else In)(one) for name, (leaves, one) in STREAMS.items()})


class NativeSignature(wiring.Signature):
    """LiteDRAM's native port and its bus of registers, as their user has them.

    Members
    -------
    cmd_valid, cmd_ready, cmd_we, cmd_addr : Out(1), In(1), Out(1), Out(25)
        An access to 128 bits.
    wdata_data, wdata_ready : Out(128), In(1)
        LiteDRAM takes a word to be written in a clock with ``wdata_ready``, some clocks after its command. The word
        has to be there before.
    rdata_valid, rdata_data : In(1), In(128)
        What was read comes in the commands' order, and does not wait.
    csr_adr, csr_we, csr_re, csr_dat_w, csr_dat_r : Out(14), Out(1), Out(1), Out(32), In(32)
        What was read is there a clock later.
    """

    def __init__(self):
        super().__init__(
            {
                "cmd_valid": Out(1), "cmd_ready": In(1), "cmd_we": Out(1), "cmd_addr": Out(ADDR_BITS),
                "wdata_data": Out(DATA_BITS), "wdata_ready": In(1),
                "rdata_valid": In(1), "rdata_data": In(DATA_BITS),
                "csr_adr": Out(CSR_BITS), "csr_we": Out(1), "csr_re": Out(1),
                "csr_dat_w": Out(32), "csr_dat_r": In(32),
            }
        )  # fmt: skip


class Ddr3Fifos(wiring.Component):
    """FIFOs of records in one DDR3 memory, each in a part of its own.

    A record that finds nothing of its FIFO in the memory goes past it. So a short FIFO is fast, and does not need the
    memory. A record is written in 18 clocks, while another one is read. The order of reads and writes is that of the
    requests.

    After a reset the memory may still answer earlier requests. So the FIFOs send a mark first, and ignore all answers
    before that of the mark. A mark is lost if the memory is in reset, so it is sent again, with another number.

    Parameters
    ----------
    fifos : int
        From 1 on.
    records : int
        That the memory holds of each FIFO, a power of two; all together at most 2**23.

    Members
    -------
    request, answer : Out(WordSignature), In(WordSignature)
        As for :class:`Ddr3Signature`.
    fifo : In(RecordSignature), an array
    ready : Out(1)
        The memory's clock is there, and answers of earlier requests are over.
    """

    def __init__(self, *, fifos, records):
        if fifos < 1 or records not in [1 << k for k in range(1, PLACE_BITS + 1)] or fifos * records > 1 << PLACE_BITS:
            raise ValueError(f"{fifos} FIFOs of {records!r} records: powers of two, of {1 << PLACE_BITS} in all")
        self._records = records
        super().__init__(
            {
                "request": Out(WordSignature()),
                "answer": In(WordSignature()),
                "fifo": In(RecordSignature()).array(fifos),
                "ready": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        ends = ends_of(m, self.fifo, self._records)
        jobs = _Jobs(len(ends))
        for end, more, less in zip(ends, jobs.wrote, jobs.begun, strict=True):
            m.d.sync += [
                end.held.eq(end.held + more - less),
                end.write.eq(end.write + more),
                end.read.eq(end.read + less),
            ]
        self._work(m, ends, self._choose(m, ends, jobs), jobs)
        return m

    def _choose(self, m, ends, jobs):
        """Return the next job, and which FIFO it is of: to read, to write, or to go past the memory. Reads go before
        the others, as there is only one at a time."""
        layout = data.StructLayout({"kind": _Job, "fifo": range(max(2, len(ends)))})
        chosen, turn = Signal(layout), Signal(range(len(ends)))
        wanted = []
        m.d.comb += chosen.kind.eq(_Job.NONE)
        for k, end in enumerate(ends):
            has, room, empty = end.inbox.level != 0, end.outbox.level < BOX - 1, end.held == 0
            mine, passes = jobs.is_reading & (jobs.reading == k), Signal(name=f"passes{k}")
            m.d.comb += passes.eq(has & empty & room & ~mine)
            wanted.append((~empty & room & ~jobs.is_reading, has & ~passes & ~end.held[-1], passes))
        with m.Switch(turn):
            for first in range(len(ends)):
                with m.Case(first):
                    for k in reversed(range(len(ends))):  # the last one goes before the others
                        number = (first + k) % len(ends)
                        _, writes, passes = wanted[number]
                        with m.If(writes | passes):
                            m.d.comb += [chosen.kind.eq(Mux(passes, _Job.PASS, _Job.WRITE)), chosen.fifo.eq(number)]
                    for k in reversed(range(len(ends))):
                        number = (first + k) % len(ends)
                        with m.If(wanted[number][0]):
                            m.d.comb += [chosen.kind.eq(_Job.READ), chosen.fifo.eq(number)]
        m.d.sync += turn.eq(Mux(turn == len(ends) - 1, 0, turn + 1))
        return chosen

    def _work(self, m, ends, chosen, jobs):
        """Execute one job after the other; a read ends by itself."""
        request, answer, job = self.request, self.answer, jobs.job
        step, come = Signal(range(RECORD_WORDS)), Signal(range(RECORD_WORDS))
        copies, copied, takes, goes = Signal(), Signal(), Signal(), Signal()
        mark, waited = Signal(8, reset_less=True), Signal(_PATIENCE_BITS)
        word = Array(end.inbox.get_word for end in ends)[job]
        write_place = Array(Cat(end.write, k) for k, end in enumerate(ends))[job]
        read_place = Array(Cat(end.read, k) for k, end in enumerate(ends))[job]
        arrives = answer.valid & ~answer.flag & jobs.is_reading & self.ready
        m.d.comb += [answer.ready.eq(1), goes.eq(request.valid & request.ready)]
        m.d.sync += copied.eq(copies)
        for k, end in enumerate(ends):
            m.d.comb += [
                end.inbox.get_at.eq(Mux(copies, step, step + (goes & ~request.flag))),
                end.inbox.take.eq(takes & (job == k)),
                end.outbox.put.eq((copied & (job == k)) | (arrives & (jobs.reading == k))),
                end.outbox.put_word.eq(Mux(copied & (job == k), end.inbox.get_word, answer.word)),
            ]
        with m.If(arrives):
            m.d.sync += come.eq(come + 1)
            with m.If(come == RECORD_WORDS - 1):
                m.d.sync += jobs.is_reading.eq(0)
        with m.FSM():
            with m.State("MARK"):
                m.d.comb += [request.valid.eq(1), request.flag.eq(1), request.word.eq(_first(Request.MARK, mark))]
                m.d.sync += waited.eq(0)
                with m.If(request.ready):
                    m.next = "MARKED"
            with m.State("MARKED"):
                m.d.sync += waited.eq(waited + 1)
                with m.If(answer.valid & answer.flag & (answer.word[: len(mark)] == mark)):
                    m.d.sync += [self.ready.eq(1), mark.eq(mark + 1)]
                    m.next = "IDLE"
                with m.Elif(waited.all()):
                    m.d.sync += mark.eq(mark + 1)
                    m.next = "MARK"
            with m.State("IDLE"):
                m.d.sync += [job.eq(chosen.fifo), step.eq(0)]
                with m.Switch(chosen.kind):
                    for kind in (_Job.READ, _Job.WRITE, _Job.PASS):
                        with m.Case(kind):
                            m.next = kind.name
            with m.State("READ"):
                m.d.comb += [request.valid.eq(1), request.flag.eq(1)]
                m.d.comb += request.word.eq(_first(Request.READ, read_place))
                with m.If(request.ready):
                    m.d.comb += jobs.begun.eq(1 << job)
                    m.d.sync += [jobs.is_reading.eq(1), jobs.reading.eq(job)]
                    m.next = "IDLE"
            with m.State("WRITE"):
                m.d.comb += [request.valid.eq(1), request.flag.eq(1)]
                m.d.comb += request.word.eq(_first(Request.WRITE, write_place))
                with m.If(request.ready):
                    m.next = "WORDS"
            with m.State("WORDS"):
                m.d.comb += [request.valid.eq(1), request.word.eq(word)]
                with m.If(request.ready):
                    m.d.sync += step.eq(step + 1)
                    with m.If(step == RECORD_WORDS - 1):
                        m.d.comb += [takes.eq(1), jobs.wrote.eq(1 << job)]
                        m.next = "IDLE"
            with m.State("PASS"):
                m.d.comb += copies.eq(1)
                m.d.sync += step.eq(step + 1)
                with m.If(step == RECORD_WORDS - 1):
                    m.next = "PASSED"
            with m.State("PASSED"):
                m.d.comb += takes.eq(1)
                m.next = "IDLE_SOON"
            with m.State("IDLE_SOON"):  # the record counts in the other box
                m.next = "IDLE"


class _Jobs:
    """The work of FIFOs: which one the job is of, and the read; of which ones a record was written or its read began in
    this clock."""

    def __init__(self, fifos):
        number = range(max(2, fifos))
        self.job, self.reading, self.is_reading = Signal(number), Signal(number), Signal()
        self.wrote, self.begun = Signal(fifos), Signal(fifos)


class _Job(enum.Enum, shape=2):
    NONE = 0
    READ = 1
    WRITE = 2
    PASS = 3


def _first(kind, place):
    """Return the first word of a request."""
    return Cat(Cat(place, Const(0, 30))[:30], kind)


class Ddr3Port(wiring.Component):
    """Requests for records, and accesses to registers, at the ports of LiteDRAM: all in its clock domain.

    A record is four bursts. Each one of a write has its command when its words are there. A read gives its four
    commands, and the words are answered as they come. There is one read at a time, and writes beside it. A request
    whose words are not all there when another one begins is ended: its core was reset meanwhile.

    Members
    -------
    request, answer, ask, value : In, Out, In, Out
        The other ends of the streams of :class:`Ddr3Signature`.
    native : Out(NativeSignature)
    """

    def __init__(self):
        super().__init__(
            {name: (In if leaves else Out)(one) for name, (leaves, one) in STREAMS.items()}
            | {"native": Out(NativeSignature())}
        )

    def elaborate(self, platform):
        m = Module()
        self._records(m)
        self._registers(m)
        return m

    def _records(self, m):
        request, native = self.request, self.native
        place, burst, word = Signal(PLACE_BITS), Signal(range(_BURSTS)), Signal(range(RECORD_WORDS))
        puts, reads, kind = Signal(), Signal(), request.word[30:]
        idle, marks = self._answers(m)
        room, waits = self._bursts(m, puts, word)
        m.d.comb += [
            native.cmd_addr.eq(Cat(burst, place)),
            native.cmd_we.eq(~reads),
            native.cmd_valid.eq(reads | waits),
        ]
        with m.If(native.cmd_valid & native.cmd_ready):
            m.d.sync += burst.eq(burst + 1)
        with m.FSM():
            with m.State("IDLE"):
                m.d.sync += word.eq(0)
                with m.If(request.valid & ~request.flag):
                    m.d.comb += request.ready.eq(1)
                with m.Elif(request.valid & ~waits & (idle | (kind == Request.WRITE))):
                    m.d.comb += [request.ready.eq(1), marks.eq(kind == Request.MARK)]
                    m.d.sync += [place.eq(request.word), burst.eq(0)]
                    with m.Switch(kind):
                        with m.Case(Request.READ):
                            m.next = "READ"
                        with m.Case(Request.WRITE):
                            m.next = "WORDS"
            with m.State("READ"):
                m.d.comb += reads.eq(1)
                with m.If(native.cmd_ready & (burst == _BURSTS - 1)):
                    m.next = "IDLE"
            with m.State("WORDS"), m.If(request.valid):
                with m.If(request.flag):
                    m.next = "IDLE"
                with m.Elif(room):
                    m.d.comb += [request.ready.eq(1), puts.eq(1)]
                    m.d.sync += word.eq(word + 1)
                    with m.If(word == RECORD_WORDS - 1):
                        m.next = "IDLE"

    def _bursts(self, m, puts, word):
        """Keep the bursts that are written until LiteDRAM takes them. Return whether there is room for a word, and
        whether there is a burst without its command. ``word`` is the number of the word that comes with ``puts``."""
        request, native = self.request, self.native
        filled, given, taken = (Signal(range(2 * _WAITING), name=name) for name in ("filled", "given", "taken"))
        m.submodules.writes = writes = memory.Memory(shape=DATA_BITS, depth=_WAITING, init=[])
        put, get = writes.write_port(granularity=32), writes.read_port(domain="comb")
        lane = word[: (_WORDS - 1).bit_length()]
        m.d.comb += [
            put.addr.eq(filled),
            put.data.eq(request.word.replicate(_WORDS)),
            put.en.eq(Mux(puts, 1 << lane, 0)),
            get.addr.eq(taken),
            native.wdata_data.eq(get.data),
        ]
        with m.If(puts & lane.all()):
            m.d.sync += filled.eq(filled + 1)
        with m.If(native.cmd_valid & native.cmd_ready & native.cmd_we):
            m.d.sync += given.eq(given + 1)
        with m.If(native.wdata_ready):
            m.d.sync += taken.eq(taken + 1)
        return (filled - taken)[: len(filled)] != _WAITING, filled != given

    def _answers(self, m):
        """Answer reads and marks; return whether all has been answered, and a strobe that asks for a mark."""
        request, answer, native = self.request, self.answer, self.native
        left, came, lane = Signal(range(RECORD_WORDS + 1)), Signal(range(2 * _BURSTS)), Signal(range(_WORDS))
        given, marks, is_mark, mark = Signal(range(2 * _BURSTS)), Signal(), Signal(), Signal(8)
        m.submodules.bursts = bursts = memory.Memory(shape=DATA_BITS, depth=_BURSTS, init=[])
        put, get = bursts.write_port(), bursts.read_port(domain="comb")
        m.d.comb += [
            put.addr.eq(came),
            put.data.eq(native.rdata_data),
            put.en.eq(native.rdata_valid),
            get.addr.eq(given),
            answer.valid.eq(is_mark | (came != given)),
            answer.flag.eq(is_mark),
            answer.word.eq(Mux(is_mark, mark, get.data.word_select(lane, 32))),
        ]
        with m.If(native.rdata_valid):
            m.d.sync += came.eq(came + 1)
        with m.If(marks):
            m.d.sync += [is_mark.eq(1), mark.eq(request.word)]
        with m.If(request.valid & request.ready & request.flag & (request.word[30:] == Request.READ)):
            m.d.sync += left.eq(RECORD_WORDS)
        with m.If(answer.valid & answer.ready):
            with m.If(is_mark):
                m.d.sync += is_mark.eq(0)
            with m.Else():
                m.d.sync += [left.eq(left - 1), lane.eq(lane + 1)]
                with m.If(lane == _WORDS - 1):
                    m.d.sync += given.eq(given + 1)
        return (left == 0) & ~is_mark, marks

    def _registers(self, m):
        ask, value, native = self.ask, self.value, self.native
        left = Signal(32)
        m.d.comb += [native.csr_adr.eq(ask.addr), native.csr_dat_w.eq(ask.word)]
        with m.FSM():
            with m.State("IDLE"), m.If(ask.valid):
                m.d.sync += left.eq(ask.word)
                with m.Switch(ask.kind):
                    with m.Case(Ask.WRITE):
                        m.d.comb += [native.csr_we.eq(1), ask.ready.eq(1)]
                    with m.Case(Ask.READ):
                        m.d.comb += native.csr_re.eq(1)
                        m.next = "READ"
                    with m.Case(Ask.WAIT):
                        m.next = "WAIT"
            with m.State("READ"):
                m.d.comb += ask.ready.eq(1)
                m.d.sync += [value.word.eq(native.csr_dat_r), value.valid.eq(1)]
                m.next = "VALUE"
            with m.State("VALUE"), m.If(value.ready):
                m.d.sync += value.valid.eq(0)
                m.next = "IDLE"
            with m.State("WAIT"):
                m.d.sync += left.eq(left - 1)
                with m.If(left == 0):
                    m.d.comb += ask.ready.eq(1)
                    m.next = "IDLE"
