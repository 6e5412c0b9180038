"""The network interface: AAL5 both ways, in RTL; the host's side is PDUs. A core (:mod:`.core`) and plugins of its
:mod:`.options`; this module names no option."""

from functools import reduce
from operator import or_

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from bentpipe_hdl.aal5.reassembler import Verdict
from bentpipe_hdl.cell import TIME_BITS, WIDE, check_width, earlier, earliest, node_members
from bentpipe_hdl.csr import CsrMap, CsrSignature
from bentpipe_hdl.nic.control import nic_registers
from bentpipe_hdl.nic.core import NicCore
from bentpipe_hdl.nic.options import options_of
from bentpipe_hdl.nic.options.plugin import plugins_of
from bentpipe_hdl.tick_schedule import TickSchedule

__all__ = ["Nic"]


class Nic(wiring.Component):
    """An ATM network interface with AAL5 segmentation and reassembly.

    **Transmit.** The host posts a PDU of 1 to 65535 octets for a VC; a VC has one PDU at a time, any number of VCs have
    theirs interleaved cell by cell. The VC whose cell is due first gets the line (:class:`~..traffic.tournament`);
    after each cell its due time moves on by its ``TX_PERIOD`` from ``max(due, now - TOLERANCE)``, the virtual
    scheduling of GCRA (I.371); with a sustained rate the cell waits until ``TX_SUSTAINED`` and ``TX_BURST`` let it go,
    too. VCs without a rate of their own get the line's period and so share it in turn. The
    NIC fetches 48 octets when it has chosen the VC of its next cell, a tick or more ahead; it pads, and adds the
    trailer. A tick sends a cell or takes a post: a post waits for one cell at most, which costs the line a tick only
    if it has less than two ticks a cell.

    **Receive.** Cells of known VCs go to the host with their place in the PDU. The PDU's last cell brings the verdict
    :class:`~..aal5.reassembler.Verdict`. Cells that are no user cells (OAM, RM), of unknown VCs, with a bad HEC, or
    beyond ``RX_LIMIT`` are counted and dropped; with ``oam`` F5 cells of known VCs go to the host instead. No error of
    a VC touches another. With ``RX_TIMEOUT`` set, a PDU whose last cell has not come so many ticks after its first is
    given up (the optional reassembly timer): ``TIMEOUT``, at the latest a quarter of the time-out (or ``vcs`` ticks)
    later, in a tick in which no cell arrives. Cells of it that come after that are taken for another PDU.

    **Single cells.** With ``oam`` the host may post a VC a cell of 48 octets with a PTI of its own, whether the VC has
    a PDU or not, one at a time. It goes as the VC's next cell, except for one that was fetched already, and is paced as
    any other; between two cells of a PDU it leaves that as it is (OAM cells count in the VC's traffic, I.610 and
    I.371).

    **Set-up.** Writing a VC's ``TX_HEADER`` or ``RX_LIMIT`` sets it up: whatever it was before, its next PDU may go at
    once, and the next cell is the first of a PDU; one that was half assembled is forgotten without a verdict. To be
    done while no PDU is being sent on the VC. Counters go on.

    **Time** is compared modulo half its range. After 2**48 ticks of silence a line may seem busy, for the length of
    the longest period (3 s) at most.

    Parameters
    ----------
    width : int
        Datapath, 416 or 32 bits.
    vcs : int
        Number of VCs each way, a power of two, 2 to 4096.
    **options : int
        1 or 0 by the name of an option (:data:`.options.OPTIONS`): whether the interface is built with it.

    Members
    -------
    i, o, time, status, csr
        The faces of a node; a cell decided on in tick T goes out in tick T+1.
    o_end : Out
        With a cell in ``o`` (narrow: with its header): the tick in which its last bit leaves, by the line's clock.
    post_valid, post_vc, post_length, post_uu, post_cpi, post_taken : In, Out
        A PDU to send; to be held until ``post_taken``, which comes with the end of a tick. A post for a busy VC or
        of length 0 is taken, counted in ``TX_REFUSED`` and forgotten.
    fetch, fetch_vc : Out
        Give the next 48 octets of this VC's PDU. One clock. At 32 bits the next fetch may come while the words of
        the cell before are still being taken: the host keeps two cells' octets in order.
    block : In(384)
        At 416 bits: those octets, from the clock after ``fetch`` on. Octets beyond the PDU's end are ignored.
    word, word_next : In(32), Out(1)
        At 32 bits: those octets as 12 words, the next after each clock with ``word_next``; the first has to be there in
        the tick after ``fetch``.
    done, done_vc : Out
        The last cell of this VC's PDU has been chosen for the line; the VC can be posted to again.
    rx_valid, rx_vc, rx_index : Out
        48 octets (416 bits), or one word of 12 (32 bits), of cell ``rx_index`` of a PDU of VC ``rx_vc``.
    rx_payload : Out(384), rx_word : Out(32)
        Those octets, first octet in the low bits; one or the other by the width.
    rx_last, rx_status, rx_length, rx_uu, rx_cpi, rx_efci : Out
        With the PDU's last cell (its last word), or alone where that was dropped or the PDU given up: verdict, length
        field, UU, CPI.
    … : In, Out
        What its options' plugins have (:meth:`.options.plugin.NicPlugin.members`).

    Notes
    -----
    Counters wrap at 2**32. After reset the tables are cleared for ``8 * vcs`` clocks (``idle`` is low), cells and posts
    have to wait.

    Handshake: cells have no back-pressure; a cell in a tick each way. Hold a post until ``post_taken``. Answer
    each ``fetch``. Take received words at once: they are there for one clock.

    Latency: in ticks. A cell decided on in tick T goes out in tick T+1. A received cell is at ``rx_*`` a clock after
    it came at 416 bits, each of its words 14 clocks after at 32.

    Source: I.363.5 (AAL5), I.371 (pacing), I.361 (header), I.610 (single cells).
    """

    def __init__(self, *, width=WIDE, vcs=64, **options):
        check_width(width)
        self.width, self.vcs, self.options = width, vcs, options_of(options)
        self.registers = nic_registers(vcs=vcs, **options)
        host = {
            "post_valid": In(1),
            "post_vc": In(range(vcs)),
            "post_length": In(16),
            "post_uu": In(8),
            "post_cpi": In(8),
            "post_taken": Out(1),
            "fetch": Out(1),
            "fetch_vc": Out(range(vcs)),
            "done": Out(1),
            "done_vc": Out(range(vcs)),
            "rx_valid": Out(1),
            "rx_vc": Out(range(vcs)),
            "rx_index": Out(11),
            "rx_last": Out(1),
            "rx_status": Out(Verdict),
            "rx_length": Out(16),
            "rx_uu": Out(8),
            "rx_cpi": Out(8),
            "rx_efci": Out(1),
        }
        if width == WIDE:
            host |= {"block": In(384), "rx_payload": Out(384)}
        else:
            host |= {"word": In(32), "word_next": Out(1), "rx_word": Out(32)}
        for plugin in plugins_of(self.options):
            host |= plugin.members(width=width, vcs=vcs)
        super().__init__({**node_members(width, 1), "o_end": Out(TIME_BITS), "csr": In(CsrSignature()), **host})

    @property
    def documented_by(self):
        """Classes that describe ports of options."""
        return tuple(type(plugin) for plugin in plugins_of(self.options))

    def elaborate(self, platform):
        m = Module()
        slot = TickSchedule(m, self.time, self.width, commit=11)
        csr = CsrMap(m, self.csr, self.registers)
        plugins, arguments = plugins_of(self.options), {}
        for plugin in plugins:
            for part, more in plugin.arguments.items():
                arguments.setdefault(part, {}).update(more)
        core = NicCore.of(m, slot, csr, self, arguments)
        self.pacer, self.reassembler = core.pacer, core.reassembler
        core.transmit(plugins)
        core.receive(plugins)
        csr.finish()
        due = [core.reassembler.due, core.pacer.due, *(due for plugin in plugins for due in plugin.due())]
        busy = [core.clearing, core.segmenter.busy, core.reassembler.busy]
        busy += [*(bit for plugin in plugins for bit in plugin.busy()), self.i.valid]
        m.d.comb += [
            self.status.idle.eq(~(core.clearing if slot.wide else reduce(or_, busy))),
            self.status.due.eq(reduce(earlier, due) if slot.wide else earliest(*due)),
        ]
        return slot.checked(m)
