"""The shared-buffer switch: UBR with tail drop, partial and early packet discard."""

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..cell import (
    FRACTION_BITS,
    NEVER,
    TIME_BITS,
    WIDE,
    WORDS_A_CELL,
    CellHeader,
    check_width,
    node_members,
)
from ..csr import CsrMap, CsrSignature
from ..lookup import Lookup
from ..slot import Slot
from .control import REASONS, switch_registers

__all__ = ["Policy", "Switch"]

DUE_BITS = TIME_BITS + FRACTION_BITS


class Policy(data.Struct):
    """What a VC may take of the buffer: the entry of the ``VC_POLICY`` table.

    Members
    -------
    limit : 16
        Most cells that the VC may have queued.
    epd_threshold : 16
        A new frame is refused when the queue has this many cells or more. The queue is the VC's own with
        ``epd_own``, else the shared buffer, and then the threshold is the switch's ``EPD_THRESHOLD``.
    port : 4
        Output port.
    ppd, epd : 1
        Partial, early packet discard, together as a rule. With neither, cells are dropped one by one (tail drop).
    epd_own : 1
        EPD looks at the VC's own queue and threshold.
    enabled : 1
        The VC is there. While it is 0, cells that arrive for it are unknown, those queued are flushed, and its frame
        state is that of a new VC. Written as 0 with a ``port`` that the switch doesn't have.
    """

    limit: 16
    epd_threshold: 16
    port: 4
    ppd: 1
    epd: 1
    epd_own: 1
    enabled: 1


FULL, EPD, PPD, CLP = (REASONS.index(reason) for reason in ("full", "epd", "ppd", "clp"))

CATCH_UP = 64
"""Most ticks that a port, held up by the others, is behind its clock and makes up for."""


def _before(a, b):
    """Tick ``a`` is before tick ``b``, as long as they are less than half the range of the time apart."""
    return (a - b)[TIME_BITS - 1]


class Switch(wiring.Component):
    """An output-queued ATM switch module: one cell buffer shared by all VCs, a linked-list queue a VC.

    A cell is looked up by (port, VPI, VCI), gets its VC's outgoing VPI/VCI, is queued or dropped, and leaves in its
    VC's turn (round robin over the VCs of its port that have cells) at the rate of its port.

    **Dropping.** ``Q`` is the number of cells in the buffer. A cell is dropped as *full* when ``Q >= CAPACITY`` or its
    VC has ``limit`` cells queued. A cell with CLP=1 is dropped as *clp* when ``Q >= CLP_THRESHOLD``. For AAL5 user
    cells (PTI below 4) of a VC with PPD or EPD: the first cell of a frame decides: EPD (asked first) refuses the
    whole frame when the queue is at or above its threshold, the CLP threshold does likewise, and with PPD so does a
    full buffer. Once a later cell is dropped (only *full* does that), PPD drops the rest of the frame but its last
    cell, which is let through if there is room; if even that is lost, the following frame is dropped too up to its
    last cell, so that no receiver joins two half frames to one. OAM and RM cells (PTI 4 to 7) are queued or dropped
    by ``full`` and ``clp`` alone and touch no frame state (TM 4.0 clause 5.8; Romanow and Floyd 1995). Where a VC is in
    its frame is kept whatever its policy, so that a change of policy takes effect from the next cell on.

    **Timing.** A cell may leave its port when ``now >= next``, and then ``next += PERIOD``: the port's rate is exact
    in the long run even if a tick's turn goes to another port. A cell that finds its port idle sets ``next`` to
    ``max(next, now + PROCESSING_DELAY)``; so the delay is what a cell meets in an unloaded switch, and is hidden in the
    queueing of a loaded one. A tick takes one cell in and gives one out; of several ports due, the first behind
    the port that sent last goes first. A port that has to wait makes up for at most ``CATCH_UP`` ticks: whoever sets
    the periods sees to it that all ports together have no more than a cell a tick. A cell leaves at the earliest in
    the tick after it came in. Times are compared modulo half their range.

    **Set-up and tear-down.** A VC's queue, counters and frame state start anew when its ``VC_POLICY`` is written with
    ``enabled`` 0: what it has queued then leaves the buffer in its port's turns, one cell a tick, without going out
    (``FLUSHED``). A new ``port`` holds for all cells that are queued from then on, and for those queued already from
    the VC's next turn on.

    **Within a tick** the arrival is admitted first, as if the departure had not yet freed its place; if both concern
    the same port's round, the arriving cell's VC joins it first. If the departure is its port's last cell, an arriving
    cell of another VC finds the port idle; one of the same VC continues its queue.

    Parameters
    ----------
    width : int
        Datapath, 416 or 32 bits.
    vcs : int
        Number of VCs, a power of two, 2 to 4096.
    cells : int
        Size of the buffer in cells, 1 to 32768. (``vcs`` more are built: each VC has its next cell's place reserved.)
    ports : int
        Ports in and out, 1 to 16.

    Members
    -------
    i, o : cells in and out
        A cell of tick T comes out in tick T+1 at the earliest. Not ``hec_error``: such cells are dropped here.
    drop, drop_vc, drop_reason, drop_accepted : Out
        For one clock, registered as ``o`` is: the cell of this VC that came with the tick was dropped, for the reason
        (0 to 3, in the order of the counters), after so many of its VC had been accepted (modulo 2**32). So whoever
        watches knows which cell of the VC it was, and need not look at those that are not dropped.
    time, status, csr

    Raises
    ------
    ValueError
        A parameter out of its range.

    Notes
    -----
    Counters of cells wrap at 2**32. ``HIGH_WATER`` is that of the occupancy at the ends of ticks. After reset the
    tables are cleared for ``4 * vcs`` clocks (``idle`` is low): no VC is enabled, whatever was in the look-up; cells
    that arrive meanwhile are lost. Clause: I.361, TM 4.0 (af-tm-0056) clause 5.8.
    """

    def __init__(self, *, width=WIDE, vcs=64, cells=8192, ports=4):
        check_width(width)
        if vcs not in [1 << k for k in range(1, 13)]:
            raise ValueError(f"vcs must be a power of two from 2 to 4096, not {vcs!r}")
        if not 1 <= cells <= 32768:
            raise ValueError(f"cells must be from 1 to 32768, not {cells!r}")
        if not 1 <= ports <= 16:
            raise ValueError(f"ports must be from 1 to 16, not {ports!r}")
        self.width, self.vcs, self.cells, self.ports = width, vcs, cells, ports
        drop = {
            "drop": Out(1),
            "drop_vc": Out(range(vcs)),
            "drop_reason": Out(range(len(REASONS))),
            "drop_accepted": Out(32),
        }
        self.registers = switch_registers(vcs=vcs, cells=cells, ports=ports)
        super().__init__({**node_members(width, ports), "csr": In(CsrSignature()), **drop})

    def elaborate(self, platform):
        m = Module()
        slot = Slot(m, self.time, self.width)
        wide, now, tick = slot.wide, self.time.now, self.time.tick
        vcs, cells, ports = self.vcs, self.cells, self.ports
        vc_bits = (vcs - 1).bit_length()
        cell_bits = (cells + vcs - 1).bit_length()
        count_bits = (cells + 1).bit_length()
        places = cells + vcs

        # Settings
        csr = CsrMap(m, self.csr, self.registers)
        capacity, epd_threshold, clp_threshold, processing_delay, nni = (
            csr.setting(name) for name in ("capacity", "epd_threshold", "clp_threshold", "processing_delay", "nni")
        )
        occupancy = Signal(count_bits)
        high_water = Signal(count_bits)
        csr.status("occupancy", occupancy)
        csr.status("high_water", high_water)
        period = Array(csr.settings("period"))

        # Tables
        lookup = Lookup(m, slot, csr, vcs=vcs, ports=ports, nni=nni)
        policies = slot.store("policies", Policy, vcs)
        policy_vc, policy_word, policy_en = csr.table("vc_policy")
        written = Policy(policy_word)
        enables = written.enabled & (written.port < ports)
        new_policy = Cat(policy_word[:-1], enables)
        ends_vc = Signal()
        m.d.comb += ends_vc.eq(policy_en & ~enables)
        translations = slot.store("translations", 28, vcs)
        translations.write(*csr.table("vc_header"))

        # Clearing after reset: 4 * vcs clocks
        clear = Signal(vc_bits + 3)
        clearing = Signal()
        clear_vc = Signal(vc_bits)
        m.d.comb += [clearing.eq(~clear[-1]), clear_vc.eq(clear)]
        with m.If(clearing):
            m.d.sync += clear.eq(clear + 1)

        policies.write(policy_vc, new_policy, policy_en, clear=(clearing, clear_vc, 0))

        # Arrival: look-up and the VC's words
        if wide:
            header, in_port, in_hec_error = self.i.header, self.i.port, self.i.hec_error
            arrives = self.i.valid & ~clearing
        else:
            soc = self.i.valid & self.i.soc
            header = CellHeader(slot.hold(self.i.word, soc, "held_header"))
            in_port = slot.hold(self.i.port, soc, "held_port")
            in_hec_error = slot.hold(self.i.hec_error, soc, "held_hec_error")
            arrived = Signal()
            with m.If(soc):
                m.d.sync += arrived.eq(1)
            with m.Elif(slot.commit):
                m.d.sync += arrived.eq(0)
            arrives = arrived & ~clearing

        arrival_layout = data.StructLayout({"tail": cell_bits, "accepted": 32})
        frame_layout = data.StructLayout({"inside": 1, "refused": 1, "cut": 1, "why": 2})
        departure_layout = data.StructLayout({"head": cell_bits, "departed": 32})
        arrival_words = slot.store("arrival_words", arrival_layout, vcs)
        departure_words = slot.store("departure_words", departure_layout, vcs)
        frames = slot.store("frames", frame_layout, vcs)

        take = Signal()
        with m.If(slot.commit), m.If(arrives):
            m.d.comb += take.eq(1)
        vc = Signal(vc_bits)
        known, empty = Signal(), Signal()
        a = Signal(arrival_layout)
        a_departure = Signal(departure_layout)
        frame = Signal(frame_layout)
        policy = Signal(Policy)
        length = Signal(count_bits)
        user, last, framed, full, clp_drop, epd_queue, epd_limit, epd_drop = (
            Signal(), Signal(), Signal(), Signal(), Signal(), Signal(count_bits), Signal(16), Signal(),
        )  # fmt: skip
        drop, reason = Signal(), Signal(2)
        inside, refused, cut, why = Signal(), Signal(), Signal(), Signal(2)
        out_port = Signal(range(max(ports, 2)))
        with slot.only(take):
            found, found_vc = lookup.find(header, in_port)
            found = slot.settle(found, "found")
            m.d.comb += vc.eq(slot.settle(found_vc, "found_vc"))
            m.d.comb += [
                known.eq(found & ~in_hec_error & policy.enabled),
                a.eq(arrival_words.read(vc)),
                frame.eq(frames.read(vc)),
                a_departure.eq(departure_words.read(vc)),
                policy.eq(policies.read(vc)),
                out_port.eq(policy.port),
                empty.eq(slot.settle(a.tail == a_departure.head, "empty_held")),
                length.eq(a.accepted - a_departure.departed),
                user.eq(~header.pti[2]),
                last.eq(header.pti[0]),
                framed.eq(user & (policy.ppd | policy.epd)),
                full.eq(slot.settle((occupancy >= capacity) | (length >= policy.limit), "full_held")),
                clp_drop.eq(header.clp & slot.settle(occupancy >= clp_threshold, "clp_held")),
                epd_queue.eq(Mux(policy.epd_own, length, occupancy)),
                epd_limit.eq(Mux(policy.epd_own, policy.epd_threshold, epd_threshold)),
                epd_drop.eq(policy.epd & slot.settle(epd_queue >= epd_limit, "epd_held")),
            ]
            # The decision
            m.d.comb += [inside.eq(frame.inside), refused.eq(frame.refused), cut.eq(frame.cut), why.eq(frame.why)]
            with m.If(~framed):
                with m.If(user):  # no frame is refused or cut, but where the next begins is known
                    m.d.comb += [inside.eq(~last), refused.eq(0), cut.eq(0)]
                with m.If(full):
                    m.d.comb += [drop.eq(1), reason.eq(FULL)]
                with m.Elif(clp_drop):
                    m.d.comb += [drop.eq(1), reason.eq(CLP)]
            with m.Else():
                with m.If(~frame.inside):  # the first cell decides for its frame
                    with m.If(epd_drop):
                        m.d.comb += [drop.eq(1), reason.eq(EPD), why.eq(EPD)]
                    with m.Elif(full):
                        m.d.comb += [drop.eq(1), reason.eq(FULL), why.eq(PPD)]
                    with m.Elif(clp_drop):
                        m.d.comb += [drop.eq(1), reason.eq(CLP), why.eq(CLP)]
                    m.d.comb += [
                        inside.eq(~last),
                        refused.eq(drop & ~last & (policy.ppd | (reason != FULL))),
                        cut.eq(0),
                    ]
                with m.Elif(frame.refused):
                    m.d.comb += [drop.eq(1), reason.eq(frame.why)]
                    with m.If(last):
                        m.d.comb += [inside.eq(0), refused.eq(0)]
                with m.Elif(last):
                    # A frame's last cell goes through if there is room; if not, what follows is still this frame.
                    m.d.comb += [inside.eq(full & policy.ppd), cut.eq(full & policy.ppd)]
                    with m.If(full):
                        m.d.comb += [drop.eq(1), reason.eq(FULL)]
                with m.Elif(frame.cut):
                    m.d.comb += [drop.eq(1), reason.eq(PPD)]
                with m.Elif(full):
                    m.d.comb += [drop.eq(1), reason.eq(FULL), cut.eq(policy.ppd)]
        drops_it = slot.settle(drop, "drop_held")
        seen, enqueue, lost, stray = Signal(), Signal(), Signal(), Signal()
        with m.If(take):
            with m.If(known):
                m.d.comb += seen.eq(1)
                with m.If(drops_it):
                    m.d.comb += lost.eq(1)
                with m.Else():
                    m.d.comb += enqueue.eq(1)
            with m.Else():
                m.d.comb += stray.eq(1)

        # Departure: which port, which VC
        next_due = Array(Signal(DUE_BITS, name=f"next{p}") for p in range(ports))
        ring_read = Array(Signal(vc_bits + 1, name=f"ring_read{p}") for p in range(ports))
        ring_write = Array(Signal(vc_bits + 1, name=f"ring_write{p}") for p in range(ports))
        rings = slot.store("rings", vc_bits, ports * vcs)
        busy = Signal(ports)
        ready = Signal(ports)
        for p in range(ports):
            m.d.comb += [
                busy[p].eq(ring_read[p] != ring_write[p]),
                ready[p].eq(slot.settle(busy[p] & ~_before(now, next_due[p][FRACTION_BITS:]), f"ready_held{p}")),
            ]
        behind_last = Signal(ports)  # the ports behind the one that sent last
        first_ready = Signal(ports)
        m.d.comb += first_ready.eq(Mux((ready & behind_last).any(), ready & behind_last, ready))
        d_port = Signal(range(max(ports, 2)))
        for p in reversed(range(ports)):
            with m.If(first_ready[p]):
                m.d.comb += d_port.eq(p)
        d_port = slot.settle(d_port, "d_port_held")
        dequeue = Signal()
        with m.If(slot.commit), m.If(ready.any()):
            m.d.comb += dequeue.eq(1)
            m.d.sync += behind_last.eq((((1 << ports) - 2) << d_port)[:ports])
        d_vc = Signal(vc_bits)
        d = Signal(departure_layout)
        d_arrival = Signal(arrival_layout)
        d_policy = Signal(Policy)
        gone = Signal()  # the departing cell's VC is there no more: the cell is flushed
        r_port = Signal.like(d_port)  # where the VC goes on
        with slot.only(dequeue):
            m.d.comb += [
                d_vc.eq(rings.read(Cat(ring_read[d_port][:vc_bits], d_port) if ports > 1 else ring_read[0][:vc_bits])),
                d.eq(departure_words.read(d_vc)),
                d_arrival.eq(arrival_words.read(d_vc)),
                d_policy.eq(policies.read(d_vc)),
                gone.eq(~d_policy.enabled),
                r_port.eq(Mux(gone, d_port, d_policy.port)),
            ]
        sends, flushes = Signal(), Signal()
        with m.If(dequeue):
            with m.If(gone):
                m.d.comb += flushes.eq(1)
            with m.Else():
                m.d.comb += sends.eq(1)

        # The buffer: places linked to queues, one read and one write of a link a tick
        links = slot.store("links", data.StructLayout({"next": cell_bits, "pti": 3, "clp": 1}), places)
        free_head, free_count = Signal(cell_bits), Signal(count_bits)
        fresh = Signal(cell_bits, init=vcs)
        from_list = Signal()
        link = links.read(Mux(dequeue if wide else ready.any(), d.head, free_head))
        place = Signal(cell_bits)
        m.d.comb += [
            from_list.eq(free_count != 0),
            place.eq(Mux(dequeue, d.head, Mux(from_list, free_head, fresh))),
        ]
        new_link = Signal(links._shape)
        m.d.comb += [
            new_link.next.eq(Mux(enqueue, place, free_head)),
            new_link.pti.eq(header.pti),
            new_link.clp.eq(header.clp),
        ]
        links.write(Mux(enqueue, a.tail, d.head), new_link, enqueue | dequeue)
        with m.If(enqueue), m.If(~dequeue):
            m.d.sync += occupancy.eq(occupancy + 1)
            with m.If(occupancy >= high_water):
                m.d.sync += high_water.eq(occupancy + 1)
            with m.If(from_list):
                m.d.sync += [free_head.eq(link.next), free_count.eq(free_count - 1)]
            with m.Else():
                m.d.sync += fresh.eq(fresh + 1)
        with m.If(dequeue), m.If(~enqueue):
            m.d.sync += [
                occupancy.eq(occupancy - 1),
                free_head.eq(d.head),
                free_count.eq(free_count + 1),
            ]
        with csr.written("high_water"):
            m.d.sync += high_water.eq(occupancy)

        # The words of the VCs
        new_a = Signal(arrival_layout)
        cleared = Signal(arrival_layout)
        m.d.comb += [
            new_a.tail.eq(place),
            new_a.accepted.eq(a.accepted + 1),
            cleared.tail.eq(clear_vc),
        ]
        arrival_words.write(vc, new_a, enqueue, clear=(clearing, clear_vc, cleared))
        new_frame = Signal(frame_layout)
        m.d.comb += [
            new_frame.inside.eq(inside),
            new_frame.refused.eq(refused),
            new_frame.cut.eq(cut),
            new_frame.why.eq(why),
        ]
        keeps_frame = Signal()
        with m.If(seen), m.If(~ends_vc | (policy_vc != vc)):
            m.d.comb += keeps_frame.eq(1)
        frames.write(vc, new_frame, keeps_frame, clear=(clearing, clear_vc, 0))
        frames.write(policy_vc, 0, ends_vc)
        new_d = Signal(departure_layout)
        cleared_d = Signal(departure_layout)
        m.d.comb += [
            new_d.head.eq(link.next),
            new_d.departed.eq(d.departed + 1),
            cleared_d.head.eq(clear_vc),
        ]
        departure_words.write(d_vc, new_d, dequeue, clear=(clearing, clear_vc, cleared_d))

        # The rounds: a VC joins its port's when its queue stops being empty, and again after each cell it sends
        joins, rejoins = Signal(), Signal()
        same_vc, same_port = Signal(), Signal()
        stays = slot.settle(r_port == d_port, "stays_held")
        same = slot.settle(vc == d_vc, "same_held")
        more = slot.settle(link.next != d_arrival.tail, "more_held")
        only = slot.settle((ring_read[d_port] + 1)[: vc_bits + 1] == ring_write[d_port], "only_held")
        with m.If(enqueue):
            m.d.comb += same_vc.eq(same)
            with m.If(empty):
                m.d.comb += joins.eq(1)
                with m.If(dequeue):
                    m.d.comb += same_port.eq(out_port == r_port)
        with m.If(dequeue):
            m.d.comb += rejoins.eq(more | same_vc)
        rejoin_at = Signal(vc_bits + 1)
        m.d.comb += rejoin_at.eq(ring_write[r_port] + same_port)

        def in_ring(port, index):
            return Cat(index[:vc_bits], port) if ports > 1 else index[:vc_bits]

        rings.write(in_ring(out_port, ring_write[out_port]), vc, joins)
        rings.write(in_ring(r_port, rejoin_at), d_vc, rejoins)
        emptied = Signal()  # the departing cell was the last of its port
        with m.If(dequeue), m.If(only), m.If(~rejoins | ~stays):
            m.d.comb += emptied.eq(1)
        earliest = Signal(TIME_BITS)
        m.d.comb += earliest.eq(slot.settle((now + processing_delay)[:TIME_BITS], "earliest_held"))
        after = Signal(DUE_BITS)  # the departing port's next
        late = (now - next_due[d_port][FRACTION_BITS:])[:TIME_BITS] > CATCH_UP  # of a port that is ready
        latest = Cat(Const(0, FRACTION_BITS), (now - CATCH_UP)[:TIME_BITS])
        base = slot.settle(Mux(late, latest, next_due[d_port]), "base_held")
        after_period = slot.settle((base + period[d_port])[:DUE_BITS], "after_held")
        m.d.comb += after.eq(Mux(gone, next_due[d_port], after_period))

        due = Signal(TIME_BITS, init=NEVER)
        next_values, busy_values = [], []
        for p in range(ports):
            joins_p, leaves_p, rejoins_p = (Signal(name=f"{name}{p}") for name in ("joins", "leaves", "rejoins"))
            next_p = Signal(DUE_BITS, name=f"new_next{p}")
            read_p = Signal(vc_bits + 1, name=f"new_read{p}")
            write_p = Signal(vc_bits + 1, name=f"new_write{p}")
            m.d.comb += [next_p.eq(next_due[p]), read_p.eq(ring_read[p]), write_p.eq(ring_write[p])]
            with m.If(dequeue), m.If(d_port == p):
                m.d.comb += [leaves_p.eq(1), next_p.eq(after), read_p.eq(ring_read[p] + 1)]
            was = Mux(leaves_p if wide else ready.any() & (d_port == p), after, next_due[p])
            # An idle port's next is a period ahead at most: what seems further is long ago, before the time wrapped.
            ahead = slot.settle((was[FRACTION_BITS:] - now)[:TIME_BITS], f"ahead{p}")
            early = slot.settle((ahead < processing_delay) | (ahead > period[p][FRACTION_BITS:] + 1), f"early{p}")
            with m.If(rejoins), m.If(r_port == p):
                m.d.comb += rejoins_p.eq(1)
            with m.If(joins), m.If(out_port == p):
                m.d.comb += joins_p.eq(1)
            with m.If(joins_p | (rejoins_p & ~leaves_p)), m.If(~busy[p] | (leaves_p & emptied)):
                with m.If(early):
                    m.d.comb += next_p.eq(Cat(Const(0, FRACTION_BITS), earliest))
            m.d.comb += write_p.eq(ring_write[p] + joins_p + rejoins_p)
            with m.If(slot.commit), m.If(joins_p | leaves_p | rejoins_p):
                m.d.sync += [next_due[p].eq(next_p), ring_read[p].eq(read_p), ring_write[p].eq(write_p)]
            next_values.append(next_p[FRACTION_BITS:])
            busy_values.append(read_p != write_p)
        if wide:
            with m.If(slot.commit), m.If(enqueue | dequeue):
                m.d.sync += due.eq(self._minimum(m, busy_values, next_values))
        else:  # from the registers, in two steps: right by the end of the tick
            whole = [next_due[p][FRACTION_BITS:] for p in range(ports)]
            half = (ports + 1) // 2
            parts = [
                slot.settle(self._minimum(m, busy[k : k + half], whole[k : k + half]), f"soonest_held{k}")
                for k in range(0, ports, half)
            ]
            there = [slot.settle(busy[k : k + half].any(), f"busy_held{k}") for k in range(0, ports, half)]
            m.d.sync += due.eq(self._minimum(m, there, parts))

        # Counters
        flushed = Signal(32)
        with m.If(flushes):
            m.d.sync += flushed.eq(flushed + 1)
        csr.status("flushed", flushed)
        drops = slot.store("drops", 32, 4 * vcs)
        drop_index = Signal(vc_bits + 2)
        m.d.comb += drop_index.eq(Cat(reason, vc))
        dropped = drops.read(drop_index)
        drops.write(drop_index, dropped + 1, lost, clear=(clearing, clear, 0))
        m.d.sync += self.drop.eq(lost)
        with m.If(lost):
            m.d.sync += [self.drop_vc.eq(vc), self.drop_reason.eq(reason), self.drop_accepted.eq(a.accepted)]
        strays = Array(Signal(32, name=f"stray{k}") for k in range(2 * ports))
        for p in range(ports):
            with m.If(stray), m.If(in_port == p):
                with m.If(in_hec_error):
                    m.d.sync += strays[2 * p + 1].eq(strays[2 * p + 1] + 1)
                with m.Else():
                    m.d.sync += strays[2 * p].eq(strays[2 * p] + 1)
        csr.status("unknown", *strays[::2])
        csr.status("hec", *strays[1::2])
        csr.counters("accepted", lambda index: arrival_words.read(index).accepted)
        csr.counters("departed", lambda index: departure_words.read(index).departed)
        csr.counters("dropped", drops.read)
        csr.finish()

        # The payload, and the cell on its way out
        translation = translations.read(d_vc)
        vpi_high = Mux(nni.bit_select(d_port, 1), translation[24:], 0)
        out_header = Signal(CellHeader)
        m.d.comb += [
            out_header.clp.eq(link.clp),
            out_header.pti.eq(link.pti),
            out_header.vci.eq(translation[:16]),
            out_header.vpi.eq(translation[16:24]),
            out_header.gfc.eq(vpi_high),
        ]
        if wide:
            payloads = slot.store("payloads", 384, places)
            payloads.write(a.tail, self.i.payload, enqueue)
            payload = payloads.read(d.head)
            m.d.sync += self.o.valid.eq(0)
            with m.If(sends):
                m.d.sync += [
                    self.o.valid.eq(1),
                    self.o.port.eq(d_port),
                    self.o.header.eq(out_header),
                    self.o.payload.eq(payload),
                ]
            m.d.comb += self.status.idle.eq(~clearing)
        else:
            self._narrow_payload(m, slot, tick, places, cell_bits, a.tail, sends, d.head, d_port, out_header, clearing)
        m.d.comb += self.status.due.eq(due)
        return m

    @staticmethod
    def _minimum(m, busy, times):
        """The earliest of the ``times``, in ticks, that are ``busy``; NEVER if none is."""
        best, found = Const(NEVER, TIME_BITS), Const(0)
        for p, (b, t) in enumerate(zip(busy, times, strict=True)):
            chosen = Signal(TIME_BITS, name=f"soonest{p}")
            m.d.comb += chosen.eq(best)
            with m.If(b & (~found | _before(t, best))):
                m.d.comb += chosen.eq(t)
            best, found = chosen, found | b
        return best

    def _narrow_payload(self, m, slot, tick, places, cell_bits, tail, dequeue, head, d_port, out_header, clearing):
        """Payload words in and out of the buffer, 12 clocks each, at places times 12.

        Words come in delayed by ``LATENCY`` clocks, when the place reserved for the VC's next cell is known;
        they are written there whether the cell is accepted or not. Words go out in the tick after the decision.
        """
        latency = 6
        words = WORDS_A_CELL - 1
        addr_bits = (places * words - 1).bit_length()
        payloads = slot.store("payloads", 32, places * words)

        # In: word k of a cell whose header came in clock h is written in clock h + k + latency
        delayed, starts = self.i.word, self.i.valid & self.i.soc
        for k in range(latency):
            word, start = Signal(32, name=f"word_d{k}"), Signal(name=f"soc_d{k}")
            m.d.sync += [word.eq(delayed), start.eq(starts)]
            delayed, starts = word, start
        write_addr = Signal(addr_bits)
        tail_addr = slot.settle((tail * words)[:addr_bits], "tail_addr")
        head_addr = slot.settle((head * words)[:addr_bits], "head_addr")
        left = Signal(4)
        with m.If(starts):
            m.d.sync += [left.eq(words), write_addr.eq(tail_addr)]
        with m.Elif(left != 0):
            m.d.sync += [left.eq(left - 1), write_addr.eq(write_addr + 1)]
        payloads.write(write_addr, delayed, left != 0)

        # Out
        chosen, out_head = Signal(), Signal(CellHeader)
        out_port = Signal.like(d_port)
        first_addr, next_addr, read_addr = Signal(addr_bits), Signal(addr_bits), Signal(addr_bits)
        with m.If(dequeue):  # while the last cell's words may still be on their way
            m.d.sync += [
                chosen.eq(1),
                out_head.eq(out_header),
                out_port.eq(d_port),
                first_addr.eq(head_addr),
            ]
        sending = Signal(4)
        m.d.comb += read_addr.eq(Mux(tick & chosen, first_addr, next_addr))
        word = payloads.read(read_addr)
        m.d.sync += [self.o.valid.eq(0), self.o.soc.eq(0)]
        with m.If(tick & chosen):
            m.d.sync += [
                self.o.valid.eq(1),
                self.o.soc.eq(1),
                self.o.port.eq(out_port),
                self.o.word.eq(out_head),
                chosen.eq(0),
                sending.eq(words),
                next_addr.eq(read_addr + 1),
            ]
        with m.Elif(sending != 0):
            m.d.sync += [
                self.o.valid.eq(1),
                self.o.word.eq(word),
                sending.eq(sending - 1),
                next_addr.eq(read_addr + 1),
            ]
        m.d.comb += self.status.idle.eq(~clearing & ~chosen & (sending == 0) & (left == 0) & ~self.i.valid)
