"""AAL5 segmentation: PDUs of many VCs to cells on one line, each VC at its own cell rate (I.363.5 clause 9)."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import data

from ..cell import FRACTION_BITS, NARROW, NEVER, TIME_BITS, CellHeader, comes, due_tick
from ..setup import SETUP_BITS, SetUps
from ..traffic.tournament import KEY_BITS, Tournament
from .crc32 import INIT, crc32_word, swapped

__all__ = ["build_segmenter"]

KEY_TICKS = KEY_BITS - FRACTION_BITS
PERIOD_BITS = 40
AHEAD = 1 << PERIOD_BITS - FRACTION_BITS
"""The line's next tick is at most so many ticks ahead: that of a cell after the longest period."""


def build_segmenter(m: Module, nic, slot, csr, tables, clearing, clear_vc):
    """Build the transmit half of a :class:`~bentpipe_hdl.nodes.nic.Nic` into ``m``. Returns its due tick."""
    vcs = nic.vcs
    vc_bits = (vcs - 1).bit_length()
    now = nic.time.now
    commit = slot.commit

    # Settings
    line_period, tolerance = csr.setting("line_period"), csr.setting("tolerance")
    headers = slot.store("tx_headers", CellHeader, vcs)
    index, word, en = csr.table("tx_header")
    headers.write(index, word, en)
    periods = slot.store("tx_periods", PERIOD_BITS, vcs)
    periods.write(*csr.table("tx_period"))

    # State
    line_next = Signal(TIME_BITS + FRACTION_BITS)
    fetched, fetched_vc = Signal(), Signal(vc_bits)
    tournament = Tournament(m, slot, vcs)
    root = Signal(tournament.entry)
    job = data.StructLayout({"left": 16, "length": 16, "uu": 8, "cpi": 8, "first": 1, "setup": SETUP_BITS})
    jobs = slot.store("tx_jobs", job, vcs)
    setups = SetUps(m, slot, "tx", vcs, index, en, lambda vc: jobs.read(vc).setup)
    sent = slot.store("tx_sent", 32, vcs)
    crcs = slot.store("tx_crcs", 32, vcs)
    refused = Signal(32)

    # What this tick does: send the fetched cell, or take a post. A post that found a cell being sent comes first in the
    # next tick: a line with less than two ticks a cell leaves it no other.
    sends, posts, waited = Signal(), Signal(), Signal()
    line_free = slot.settle(~comes(line_next[FRACTION_BITS:], now, AHEAD), "line_free")
    if slot.wide:
        post_there = nic.post_valid & ~clearing
    else:
        post_there = Signal()
        with m.If(nic.time.tick):
            m.d.sync += post_there.eq(nic.post_valid & ~clearing)
    m.d.comb += [
        sends.eq(fetched & line_free & ~(post_there & waited)),
        posts.eq(post_there & ~sends),
    ]
    vc = Signal(vc_bits)
    m.d.comb += vc.eq(Mux(sends, fetched_vc, nic.post_vc))
    state = Signal(job)
    m.d.comb += state.eq(jobs.read(vc))
    leaf = Signal(tournament.entry)
    m.d.comb += leaf.eq(tournament.leaf(vc))
    period = periods.read(vc)
    last = Signal()
    m.d.comb += last.eq(state.left <= 40)
    accepts = Signal()
    m.d.comb += accepts.eq(posts & ~leaf.valid & (nic.post_length != 0))

    # The VC's next due time: paced by its period; catches up no more than the tolerance
    now_key = Cat(Const(0, FRACTION_BITS), now[:KEY_TICKS])
    earliest = Signal(KEY_BITS)
    lag, ahead = Signal(signed(KEY_BITS)), Signal(signed(KEY_BITS))
    key = Signal(KEY_BITS)
    m.d.comb += earliest.eq(now_key - Cat(Const(0, FRACTION_BITS), tolerance))
    earliest = slot.settle(earliest, "earliest_held")
    m.d.comb += [lag.eq(leaf.key - earliest), ahead.eq(leaf.key - now_key)]
    late = slot.settle(lag < 0, "late")
    setup = setups.read(vc)
    keeps = slot.settle((ahead > 0) & (ahead <= period) & (setup == state.setup), "keeps")
    with m.If(sends):
        m.d.comb += key.eq(Mux(late, earliest, leaf.key) + period)
    with m.Else():  # a key further ahead than a period is left over from long ago, or the VC was another then
        m.d.comb += key.eq(Mux(keeps, leaf.key, now_key))
    key_held = slot.settle(key, "key_held")
    changes = Signal()
    m.d.comb += changes.eq(sends | accepts)
    changed = Signal()
    with m.If(commit), m.If(changes):
        m.d.comb += changed.eq(1)
    valid = Mux(sends, ~last, 1)
    replayed = tournament.replay(vc, valid, key_held, changed, clearing, clear_vc)
    best = Signal(tournament.entry)
    m.d.comb += best.eq(root)
    with m.If(changes):
        m.d.comb += best.eq(replayed)

    # The line
    line_after = Signal(TIME_BITS + FRACTION_BITS)
    m.d.comb += line_after.eq(line_next)
    behind = slot.settle(line_next[FRACTION_BITS:] != now, "behind")
    with m.If(sends):
        m.d.comb += line_after.eq(Mux(behind, Cat(Const(0, FRACTION_BITS), now), line_next) + line_period)
    line_after = slot.settle(line_after, "line_after_held")
    soonest = Signal(TIME_BITS)  # when the line could take the next cell
    line_tick, next_tick = line_after[FRACTION_BITS:], (now + 1)[:TIME_BITS]
    m.d.comb += soonest.eq(Mux(comes(line_tick, next_tick, AHEAD), line_tick, next_tick))
    soonest = slot.settle(soonest, "soonest_held")
    wait = Signal(signed(KEY_TICKS))
    m.d.comb += wait.eq(best.key[FRACTION_BITS:] - soonest[:KEY_TICKS])
    wait = slot.settle(wait, "wait_held")

    due = Signal(TIME_BITS, init=NEVER)
    m.d.sync += [nic.fetch.eq(0), nic.post_taken.eq(0), nic.done.eq(0)]
    with m.If(commit):
        m.d.sync += [line_next.eq(line_after), root.eq(best)]
        with m.If(post_there):
            m.d.sync += waited.eq(sends)
        with m.If(sends | ~fetched):
            eligible = best.valid & (wait <= 0)
            m.d.sync += [fetched.eq(eligible), nic.fetch.eq(eligible)]
            with m.If(eligible):
                m.d.sync += [fetched_vc.eq(best.vc), nic.fetch_vc.eq(best.vc), due.eq(due_tick(soonest))]
            with m.Elif(best.valid):  # fetch in the tick before the VC is due
                m.d.sync += due.eq(due_tick((soonest + wait - 1)[:TIME_BITS]))
            with m.Else():
                m.d.sync += due.eq(NEVER)
        with m.If(posts):
            m.d.sync += nic.post_taken.eq(1)
            with m.If(~accepts):
                m.d.sync += refused.eq(refused + 1)
        with m.If(sends & last):
            m.d.sync += [nic.done.eq(1), nic.done_vc.eq(vc)]
    with m.If(clearing):
        m.d.sync += line_next.eq(Cat(Const(0, FRACTION_BITS), now))

    new_job = Signal(job)
    with m.If(sends):
        m.d.comb += [
            new_job.eq(state),
            new_job.left.eq(Mux(state.left < 48, 0, state.left - 48)),
            new_job.first.eq(0),
        ]
    with m.Else():
        m.d.comb += [
            new_job.left.eq(nic.post_length),
            new_job.length.eq(nic.post_length),
            new_job.uu.eq(nic.post_uu),
            new_job.cpi.eq(nic.post_cpi),
            new_job.first.eq(1),
            new_job.setup.eq(setup),
        ]
    jobs.write(vc, new_job, changed)
    sending = Signal()
    with m.If(commit), m.If(changes), m.If(sends):
        m.d.comb += sending.eq(1)
    sent.write(vc, sent.read(vc) + 1, sending, clear=(clearing, clear_vc, 0))

    csr.status("tx_refused", refused)
    csr.counters("tx_cells", sent.read)

    header = Signal(CellHeader)
    m.d.comb += header.eq(headers.read(vc))
    out_header = Signal(CellHeader)
    m.d.comb += [out_header.eq(header), out_header.pti.eq(last)]
    datapath = _narrow if slot.wide is False else _wide
    datapath(m, nic, slot, tables, sending, vc, state, last, out_header, crcs)
    return due


def _wide(m, nic, slot, tables, sending, vc, state, last, out_header, crcs):
    """A cell a clock. In the last cell the CRC is to cover 44 octets: they are moved up by four, behind zeros."""
    crc = Signal(32)
    m.d.comb += crc.eq(Mux(state.first, INIT, crcs.read(vc)))
    short = Signal()  # the PDU ends in this cell
    m.d.comb += short.eq(state.left < 48)
    kept = Signal(384)
    m.d.comb += kept.eq(nic.block & (Const((1 << 384) - 1, 384) >> (384 - (state.left[:6] << 3))[:9]))
    octets = [Signal(32, name=f"octets{k}") for k in range(12)]  # of the cell, but for the CRC
    covered = [Signal(32, name=f"covered{k}") for k in range(12)]
    for k in range(12):
        m.d.comb += octets[k].eq(nic.block[32 * k : 32 * k + 32])
        with m.If(short):
            m.d.comb += octets[k].eq(kept[32 * k : 32 * k + 32])
    with m.If(last):
        m.d.comb += octets[10].eq(Cat(state.uu, state.cpi, state.length[8:], state.length[:8]))
    mixed = [octets[0] ^ swapped(crc), *octets[1:]]
    for k in range(12):
        m.d.comb += covered[k].eq(mixed[k])
        with m.If(last):
            m.d.comb += covered[k].eq(mixed[k - 1] if k else 0)
    after = tables.cell(Cat(*covered), "tx")
    crcs.write(vc, after, sending)
    m.d.sync += nic.o.valid.eq(0)
    with m.If(sending):
        m.d.sync += [nic.o.valid.eq(1), nic.o.header.eq(out_header), nic.o.payload.eq(Cat(*octets))]
        with m.If(last):
            m.d.sync += nic.o.payload[352:].eq(swapped(~after))


def _narrow(m, nic, slot, tables, sending, vc, state, last, out_header, crcs):
    """13 words in the tick after the decision, four octets of CRC a clock."""
    chosen, is_last, first = Signal(), Signal(), Signal()
    header = Signal(CellHeader)
    cell = Signal.like(state)
    cell_vc = Signal.like(vc)
    with m.If(sending):
        m.d.sync += [
            chosen.eq(1),
            cell.eq(state),
            cell_vc.eq(vc),
            is_last.eq(last),
            first.eq(state.first),
            header.eq(out_header),
        ]
    crc, crc_vc = Signal(NARROW), Signal.like(vc)
    stored = crcs.read(cell_vc)
    count = Signal(4)
    left = Signal(16)
    keep = Signal()
    trailer = Signal(32)
    closing = Signal()
    m.d.sync += [nic.o.valid.eq(0), nic.o.soc.eq(0), keep.eq(0)]
    m.d.comb += nic.word_next.eq(count != 0)
    crcs.write(crc_vc, crc, keep)
    with m.If(nic.time.tick & chosen):
        m.d.sync += [
            nic.o.valid.eq(1),
            nic.o.soc.eq(1),
            nic.o.word.eq(header),
            chosen.eq(0),
            count.eq(12),
            left.eq(cell.left),
            crc_vc.eq(cell_vc),
            trailer.eq(Cat(cell.uu, cell.cpi, cell.length[8:], cell.length[:8])),
            closing.eq(is_last),
        ]
        with m.If(first):
            m.d.sync += crc.eq(INIT)
        with m.Elif(cell_vc != crc_vc):
            m.d.sync += crc.eq(stored)
    word = Signal(32)
    m.d.comb += word.eq(nic.word)
    with m.Switch(left):
        for octets in range(4):
            with m.Case(octets):
                m.d.comb += word.eq(nic.word & ((1 << 8 * octets) - 1))
    with m.If(closing & (count == 2)):
        m.d.comb += word.eq(trailer)
    with m.If(closing & (count == 1)):
        m.d.comb += word.eq(swapped(~crc))
    with m.If(count != 0):
        m.d.sync += [
            nic.o.valid.eq(1),
            nic.o.word.eq(word),
            count.eq(count - 1),
            left.eq(Mux(left < 4, 0, left - 4)),
            crc.eq(crc32_word(crc, word)),
            keep.eq(count == 1),
        ]
    m.d.comb += nic.tx_streaming.eq(chosen | (count != 0) | keep)
