"""The scheduler for FIFO, weighted round robin and strict priority, over lists of entries by port and priority."""

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from bentpipe_hdl.switch.core.round_robin import round_members
from bentpipe_hdl.switch.core.vc_table import ARRIVAL, DEPARTURE
from bentpipe_hdl.switch.options.weighted_priority.control import PRIORITIES, WEIGHT_BITS
from bentpipe_hdl.tick_schedule import TickSchedule

__all__ = ["Share", "WeightedPriorityScheduler"]

Share = data.StructLayout({"weight": WEIGHT_BITS, "priority": (PRIORITIES - 1).bit_length()})
"""What a VC has of its ports: cells a turn (0 is 1), and its priority."""


class WeightedPriorityScheduler(wiring.Component):
    """A list of turns for each port and priority. The first turn of the highest priority that has any is the port's
    next.

    A VC has one turn while it has cells, and after ``weight`` of them goes behind the others of its list (weighted
    round robin; as cells are all of one size, deficit round robin with a quantum of so many cells is the same). At a
    FIFO port each of its cells has a turn of its own, in the order in which they were queued; that begins and ends with
    the VC's queue, which stays in one list meanwhile.

    What joins goes before a VC that joins again in the same tick. A new weight holds at once, a new port or priority
    from the VC's next turn on; where its cells have turns of their own, from when it has none queued.

    Parameters
    ----------
    slot : TickSchedule
    vcs, ports : int
    at : int
        Narrow: the clock in which the first turn is read.
    places : int
        Of the cell buffer, if cells may have turns of their own; 0 if not.
    weighted : bool
        Whether VCs have weights; else all have 1.
    priorities : int
        1, or a power of two.

    Members
    -------
    busy, port, vc, serve, join, join_vc, join_port, changes, begins, still_busy
        As for :class:`~bentpipe_hdl.switch.core.round_robin.RoundRobin`.
    rejoin, rejoin_port : In
        The VC that is served has cells beyond the one that leaves. If it was a cell's turn, that changes nothing.
    fifo : In
        A bit a port: it is a FIFO port. This and the following only with ``places``.
    queued, empty, cell : In
        A cell of ``join_vc`` is queued now; it had none (``join`` is both); its place in the buffer. Narrow: ``empty``
        is valid from clock 9 on.
    kept, new_kept : In, Out
        What is kept of that VC (a :class:`~bentpipe_hdl.switch.core.vc_table.VcField`
        of the row that is written when a cell is queued).
    joins_at : Out
        The port of the list that is joined; ``join_port`` where it is not kept.
    share_vc, share, share_en : In
        Software writes a VC's weight and priority. Only with ``weighted`` or ``priorities``.
    """

    def __init__(
        self,
        slot: TickSchedule,
        *,
        vcs: int,
        ports: int,
        at: int,
        places: int = 0,
        weighted: bool = False,
        priorities: int = 1,
    ):
        self._slot, self._vcs, self._ports, self._at = slot, vcs, ports, at
        self._places, self._weighted, self._priorities = places, weighted, priorities
        vc, port = range(vcs), range(max(ports, 2))
        self.Kept = data.StructLayout({"by_cell": 1, "port": port, "priority": Share["priority"].shape})
        super().__init__(
            {
                **round_members(vcs, ports),
                "fifo": In(ports),
                "queued": In(1),
                "empty": In(1),
                "cell": In(range(max(places, 2))),
                "kept": In(self.Kept),
                "new_kept": Out(self.Kept),
                "joins_at": Out(port),
                "share_vc": In(vc),
                "share": In(Share),
                "share_en": In(1),
            }
        )

    def attach(self, m, csr, path):
        """Connect the scheduler's registers, and the arriving cell's key in the FIFO."""
        if self._places:
            arrival = path.core.vc_table.a_arrival
            with path.core.build.slot.gate_when(path.arriving.arrival):
                m.d.comb += self.empty.eq(path.arriving.queue_empty)
            m.d.comb += [
                self.fifo.eq(csr.register("fifo")),
                self.queued.eq(path.arriving.enqueue),
                self.cell.eq(arrival.tail),
                self.kept.eq(arrival.kept),
                path.core.vc_table.arrival.kept.eq(self.new_kept),
            ]
        if self._weighted:
            index, share, written = csr.write_port("share")
            m.d.comb += [
                self.share_vc.eq(index),
                Value.cast(self.share).eq(share),
                self.share_en.eq(written),
            ]

    def elaborate(self, platform):
        m = Module()
        slot, ports, priorities = self._slot.within(m), self._ports, self._priorities
        slot.with_commit(self.serve, self.join, self.rejoin, self.queued)
        level_bits, count = (priorities - 1).bit_length(), ports * priorities
        # A turn is known by its number: a VC's by that of the VC, a cell's by that of its place behind those
        turns = self._vcs + self._places
        turn = range(turns)
        self.first = first = Array(Signal(turn, name=f"first{k}") for k in range(count))
        self.last = last = Array(Signal(turn, name=f"last{k}") for k in range(count))
        self.listed = listed = Signal(count)  # lists that have turns
        self.follows = follows = slot.store("follows", turn, turns, block=True, apart=True)  # the next turn of the list

        def list_of(port, level):
            return Cat(level[:level_bits], port)

        def bit(bits, index):
            return bits.bit_select(index, 1)

        # The turn that is next at the port
        levels, level = Signal(priorities), Signal(max(level_bits, 1))
        m.d.comb += levels.eq(listed.word_select(self.port, priorities))
        for k in range(1, priorities):
            with m.If(levels[k]):
                m.d.comb += level.eq(k)
        here = slot.pipe(list_of(self.port, level), "here")
        now, after = Signal(turn), Signal(turn)
        with slot.gate_when(self.serve):
            m.d.comb += now.eq(first[here])
            m.d.comb += after.eq(follows.read(now, at=self._at, to="following"))
            if self._places:
                self.cell_vcs = cell_vcs = slot.store(
                    "cell_vcs", range(self._vcs), turns, range(self._vcs), block=True, apart=True
                )
                m.d.comb += self.vc.eq(cell_vcs.read(now, at=self._at, to="next_vc"))
            else:
                m.d.comb += self.vc.eq(slot.pipe(now, "next_vc"))
        # What joins, and to which lists?
        goes_on, join, joining = 1, Signal(), Signal(turn)
        m.d.comb += [join.eq(self.join), joining.eq(self.join_vc)]
        join_level, again_level, weight = Signal(Share["priority"].shape), Signal.like(level), Signal(WEIGHT_BITS)
        if self._weighted or priorities > 1:
            self.shares = shares = slot.store("shares", Share, self._vcs)
            shares.write(self.share_vc, self.share, self.share_en)
            with slot.gate_when(self.join):
                m.d.comb += join_level.eq(shares.read(self.join_vc, at=ARRIVAL, to="joining_share").priority)
            with slot.gate_when(self.serve):
                share = shares.read(self.vc, at=DEPARTURE, to="served_share")
                m.d.comb += [again_level.eq(share.priority), weight.eq(share.weight)]
        m.d.comb += self.joins_at.eq(self.join_port)
        to_level = Signal.like(join_level)
        m.d.comb += to_level.eq(join_level)
        if self._places:
            goes_on = slot.pipe(now < self._vcs, "is_of_vc")
            by_cell = Signal()
            m.d.comb += [
                self.new_kept.eq(self.kept),
                by_cell.eq(self.kept.by_cell),
                join.eq(self.join | (self.queued & by_cell)),
            ]
            with m.If(self.empty):
                m.d.comb += [
                    by_cell.eq(bit(self.fifo, self.join_port)),
                    self.new_kept.by_cell.eq(by_cell),
                    self.new_kept.port.eq(self.join_port),
                    self.new_kept.priority.eq(join_level),
                ]
            with m.Elif(self.kept.by_cell):
                m.d.comb += [self.joins_at.eq(self.kept.port), to_level.eq(self.kept.priority)]
            with m.If(by_cell):
                m.d.comb += joining.eq(self._vcs + self.cell)
            cell_vcs.write(joining, self.join_vc, join & by_cell)
        join_to = slot.pipe(list_of(self.joins_at, to_level), "join_to")
        again_to = slot.pipe(list_of(self.rejoin_port, again_level), "again_to")

        # A VC that has sent less than its weight keeps its turn; else the turn is over, and if it has cells it gets
        # another
        again, keeps, over, moves = Signal(), Signal(), Signal(), Signal()
        alone = slot.pipe(now == last[here], "alone")
        with m.If(self.serve):
            m.d.comb += again.eq(self.rejoin & goes_on)
        if self._weighted:
            self.sent = sent = Array(Signal(WEIGHT_BITS, name=f"sent{k}") for k in range(count))  # in its first turn
            less, stays = slot.pipe(sent[here] + 1 < weight, "less"), slot.pipe(again_to == here, "stays")
            with m.If(self.serve):
                m.d.comb += keeps.eq(again & less & stays)
                m.d.sync += sent[here].eq(Mux(keeps, sent[here] + 1, 0))
        m.d.comb += [over.eq(self.serve & ~keeps), moves.eq(again & ~keeps)]

        # Of the lists that they go to: whether it has others, now that the turn is over
        again_here = slot.pipe((again_to == here) & alone, "again_here")
        again_listed = slot.pipe(bit(listed, again_to), "again_listed")
        join_others, again_others = Signal(), Signal()
        with m.If(join):
            m.d.comb += join_others.eq(bit(listed, join_to) & ~(over & alone & (join_to == here)))
            m.d.sync += last[join_to].eq(joining)
            with m.If(~join_others):
                m.d.sync += first[join_to].eq(joining)
        both = join & (join_to == again_to)
        with m.If(moves):
            m.d.comb += again_others.eq((again_listed & ~again_here) | both)
            m.d.sync += last[again_to].eq(now)
            with m.If(~again_others):
                m.d.sync += first[again_to].eq(now)
        with m.If(over & ~alone):
            m.d.sync += first[here].eq(after)
        follows.write(last[join_to], joining, join_others)
        follows.write(Mux(both, joining, last[again_to]), now, moves & again_others)

        # Which lists and which ports have turns
        kept, come, kept_ports, come_ports = Signal(count), Signal(count), Signal(ports), Signal(ports)
        emptied, joined, moved, stays_busy = Signal(count), Signal(count), Signal(count), Signal(ports)
        with m.If(over & alone):
            m.d.comb += emptied.eq(1 << here)
        with m.If(join):
            m.d.comb += joined.eq(1 << join_to)
        with m.If(moves):
            m.d.comb += moved.eq(1 << again_to)
        with m.If(again & (self.rejoin_port == self.port)):
            m.d.comb += stays_busy.eq(1 << self.port)
        m.d.comb += self.changes.eq(self.serve | join)
        with m.If(slot.commit), m.If(self.changes):
            m.d.comb += [kept.eq(listed & ~emptied), come.eq(joined | moved)]
            for p in range(ports):
                m.d.comb += [
                    kept_ports[p].eq(kept.word_select(p, priorities).any() | stays_busy[p]),
                    come_ports[p].eq(come.word_select(p, priorities).any()),
                ]
            m.d.comb += [self.still_busy.eq(kept_ports | come_ports), self.begins.eq(come_ports & ~kept_ports)]
            m.d.sync += [listed.eq(kept | come), self.busy.eq(self.still_busy)]
        return m
