"""Ethernet frames of VLANs to PDUs of a network interface, and back: RFC 2684 with LLC, bridged, without FCS.

The MAC is not here: it has preamble, FCS and padding, and gives and takes words of 32 bits (:class:`MacSignature`).
:class:`LineReceiver` sorts received frames, :class:`VlanPort` is the host of an interface, and :class:`LineSender`
joins what is sent. Start with :class:`VlanPort`.
"""

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.fifo import SyncFIFO, SyncFIFOBuffered
from amaranth.lib.wiring import In, Out

from bentpipe_sim.board.windows import FRAME_COUNTERS, VLAN_COUNTERS

__all__ = [
    "LONGEST", "SHORTEST", "FrameFifo", "LineReceiver", "LineSender", "MacSignature", "NicSide", "SduSignature",
    "VlanPort",
]  # fmt: skip

SHORTEST = 60
"""Octets of the shortest frame without its FCS (IEEE 802.3, minFrameSize)."""
LONGEST = 1518
"""Octets of the longest frame with one VLAN tag, without its FCS (IEEE 802.3, maxBasicFrameSize and qTagPrefixSize)."""

_TAG = 4
_LLC = (0x0003AAAA, 0x0700C280)
"""LLC and SNAP of a bridged frame, OUI and PID, the first octet lowest; two octets of padding follow."""
_LLC_OCTETS = 10
_LLC_WORDS = 2
_TAG_WORD = 3
"""The word of a frame in which its tag is."""
_ETHERNET = 14
_LONGEST_SDU = LONGEST - _TAG + _LLC_OCTETS
_MOST_WORDS = -(-_LONGEST_SDU // 4) + 2
"""Words of the longest SDU, and those that are written behind it."""
_LENGTH_BITS = 16
_VID_BITS = 12
_DESCRIPTORS = 64
"""Frames that wait in a memory, at most."""
_WORD_BITS = 32 + 1 + 4 + 1
_LEAVING = 16
"""Words between the frames' memories and the MAC."""
_LOOKUP = 5
"""Clocks from a VID until the interfaces' answer to it."""


class MacSignature(wiring.Signature):
    """A stream of frames without preamble and FCS, as the MAC of LiteEth has it.

    Members
    -------
    valid, ready, last, data : Out(1), In(1), Out(1), Out(32)
        Words; the first octet is lowest.
    last_be : Out(4)
        With ``last``: a bit for the last octet of the frame.
    error : Out(1)
        With ``last``: the FCS is wrong.
    """

    def __init__(self):
        super().__init__(
            {"valid": Out(1), "ready": In(1), "last": Out(1), "data": Out(32), "last_be": Out(4), "error": Out(1)}
        )


class SduSignature(wiring.Signature):
    """SDUs of received frames, for the interface that has their VLAN.

    Members
    -------
    vid : Out(12)
        VLAN of the next SDU.
    has_vlan, has_room : In(1), In(1)
        An interface has this VLAN, and room for an SDU; some clocks after ``vid``.
    asks : Out(1)
        The answer is taken in this clock. With both an SDU follows. With the former alone the frame is dropped.
    valid, word : Out(1), Out(32)
        A word of the SDU. One word or two without meaning may follow the last one.
    ends, length : Out(1), Out(16)
        All words have come; octets of the SDU.
    """

    def __init__(self):
        super().__init__(
            {
                "vid": Out(_VID_BITS),
                "has_vlan": In(1),
                "has_room": In(1),
                "asks": Out(1),
                "valid": Out(1),
                "word": Out(32),
                "ends": Out(1),
                "length": Out(_LENGTH_BITS),
            }
        )


class FrameFifo(wiring.Component):
    """A memory for whole frames: a frame is there when it is complete, or never.

    Parameters
    ----------
    words : int
        A power of two.
    info_bits : int
        Bits that are kept with each frame.

    Members
    -------
    w_valid, w_data : In(1), In(32)
        A word of a frame.
    w_ends, w_keeps, w_info : In(1), In(1), In(info_bits)
        The frame is complete, with this word or with the one before; it is to be kept.
    w_lost : Out(1)
        With ``w_ends``: a frame to be kept is dropped, as there was no room.
    has_room : Out(1)
        There is room for the longest SDU; a clock late.
    r_valid, r_info : Out(1), Out(info_bits)
        A frame is there.
    r_data, r_next : Out(32), In(1)
        Its present word, and a step to the next one, which is there a clock later.
    r_ends : In(1)
        The frame is removed; ``r_valid`` is low for a clock.
    """

    def __init__(self, *, words, info_bits):
        if words not in [1 << k for k in range(9, 17)]:
            raise ValueError(f"words must be a power of two from 512 to 65536, not {words!r}")
        self.words, self._info_bits = words, info_bits
        super().__init__(
            {
                "w_valid": In(1),
                "w_data": In(32),
                "w_ends": In(1),
                "w_keeps": In(1),
                "w_info": In(info_bits),
                "w_lost": Out(1),
                "has_room": Out(1),
                "r_valid": Out(1),
                "r_info": Out(info_bits),
                "r_data": Out(32),
                "r_next": In(1),
                "r_ends": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        bits = self.words.bit_length()  # one more than an address: a full memory differs from an empty one
        # A row that is written is not read before the frame is complete
        m.submodules.rows = rows = memory.Memory(
            shape=32, depth=self.words, init=[], attrs={"ram_style": "block", "no_rw_check": 1}
        )
        put, get = rows.write_port(), rows.read_port(domain="sync")
        m.submodules.infos = infos = SyncFIFO(width=self._info_bits + bits, depth=_DESCRIPTORS)
        begin, write, first, read = Signal(bits), Signal(bits), Signal(bits), Signal(bits)
        over, end = Signal(), Signal(bits)
        full, behind, drops = Signal(), Signal(bits), Signal()
        m.d.comb += [
            full.eq((write - first)[:bits] == self.words),
            put.addr.eq(write),
            put.data.eq(self.w_data),
            put.en.eq(self.w_valid & ~full & ~over),
            behind.eq(write + put.en),
            drops.eq(over | (self.w_valid & full) | ~infos.w_rdy),
            infos.w_en.eq(self.w_ends & self.w_keeps & ~drops),
            infos.w_data.eq(Cat(self.w_info, behind)),
            self.w_lost.eq(self.w_ends & self.w_keeps & drops),
        ]
        m.d.sync += [write.eq(behind), over.eq(over | (self.w_valid & full))]
        with m.If(self.w_ends):
            m.d.sync += over.eq(0)
            with m.If(infos.w_en):
                m.d.sync += begin.eq(behind)
            with m.Else():
                m.d.sync += write.eq(begin)
        free = Signal(bits)
        m.d.comb += free.eq(self.words - (write - first)[:bits])
        m.d.sync += self.has_room.eq((free >= _MOST_WORDS) & infos.w_rdy)

        seen = Signal()
        m.d.sync += [seen.eq(infos.r_rdy & ~self.r_ends), Cat(self.r_info, end).eq(infos.r_data)]
        m.d.comb += [
            self.r_valid.eq(seen),
            infos.r_en.eq(self.r_ends),
            self.r_data.eq(get.data),
            get.addr.eq(read),
        ]
        with m.If(self.r_ends):
            m.d.comb += get.addr.eq(end)
            m.d.sync += [read.eq(end), first.eq(end)]
        with m.Elif(self.r_next):
            m.d.comb += get.addr.eq(read + 1)
            m.d.sync += read.eq(read + 1)
        return m


class LineReceiver(wiring.Component):
    """The receiver of an Ethernet line: it sorts frames by their VLAN, and counts those that it drops.

    A frame is first received whole. Then one with a tag of IEEE 802.1Q (type 0x8100) becomes an SDU without this tag,
    for the interface that has its VLAN. One without a tag goes to ``own``. A priority tag (VID 0) is a tag of no VLAN.
    ``line`` never waits. Each frame of ``line`` is counted once, or goes to ``own``.

    Parameters
    ----------
    words : int
        Size of each of the two memories for frames, as for :class:`FrameFifo`.

    Members
    -------
    line, own : In(MacSignature), Out(MacSignature)
    sdus : Out(SduSignature)
    counters : Out(32) each
        As :data:`~bentpipe_sim.board.windows.FRAME_COUNTERS`; they wrap.
    """

    def __init__(self, *, words=1024):
        self._words = words
        counters = {f"count_{name}": Out(32) for name in FRAME_COUNTERS}
        super().__init__(
            {"line": In(MacSignature()), "own": Out(MacSignature()), "sdus": Out(SduSignature()), **counters}
        )

    def elaborate(self, platform):
        m = Module()
        counts = {name: Signal(name=f"counts_{name}") for name in FRAME_COUNTERS}
        for name, event in counts.items():
            counter = getattr(self, f"count_{name}")
            m.d.sync += counter.eq(counter + event)
        m.submodules.frames = frames = FrameFifo(words=self._words, info_bits=_LENGTH_BITS + 1 + _VID_BITS)
        m.submodules.owned = owned = FrameFifo(words=self._words, info_bits=_LENGTH_BITS)
        self._receive(m, frames, counts)
        self._sort(m, frames, owned, counts)
        self._give_own(m, owned)
        return m

    def _receive(self, m, frames, counts):
        line = self.line
        place, octets, length = Signal(_LENGTH_BITS - 2), Signal(3), Signal(_LENGTH_BITS)
        tagged, vid = Signal(), Signal(_VID_BITS)
        fits = Signal()
        m.d.comb += [
            line.ready.eq(1),
            octets.eq(Mux(line.last_be[0], 1, Mux(line.last_be[1], 2, Mux(line.last_be[2], 3, 4)))),
            length.eq((place << 2) + octets),
            fits.eq((length >= SHORTEST) & (length <= LONGEST)),
            frames.w_valid.eq(line.valid),
            frames.w_data.eq(line.data),
            frames.w_info.eq(Cat(length, tagged, vid)),
            frames.w_ends.eq(line.valid & line.last),
            frames.w_keeps.eq(~line.error & fits),
            counts["no_buffer"].eq(frames.w_lost),
        ]
        with m.If(line.valid):
            with m.If(~place.all()):
                m.d.sync += place.eq(place + 1)
            with m.If(place == _TAG_WORD):
                m.d.sync += [
                    tagged.eq(line.data[:16] == 0x0081),
                    vid.eq(Cat(line.data[24:32], line.data[16:20])),
                ]  # fmt: skip
            with m.If(line.last):
                m.d.sync += [place.eq(0), tagged.eq(0)]
                with m.If(line.error):
                    m.d.comb += counts["wrong_fcs"].eq(1)
                with m.Elif(length < SHORTEST):
                    m.d.comb += counts["runt"].eq(1)
                with m.Elif(length > LONGEST):
                    m.d.comb += counts["giant"].eq(1)

    def _sort(self, m, frames, owned, counts):
        sdus = self.sdus
        length, tagged, vid = Signal(_LENGTH_BITS), Signal(), Signal(_VID_BITS)
        waited, place, last, held = Signal(range(_LOOKUP + 1)), Signal(_LENGTH_BITS - 2), Signal(), Signal(16)
        m.d.comb += [
            Cat(length, tagged, vid).eq(frames.r_info),
            sdus.vid.eq(vid),
            last.eq(place == (length - 1)[2:]),
            owned.w_data.eq(frames.r_data),
            owned.w_info.eq(length),
            owned.w_keeps.eq(1),
        ]
        m.d.sync += [sdus.valid.eq(0), sdus.ends.eq(0), sdus.length.eq(length + _LLC_OCTETS - _TAG)]
        with m.FSM():
            with m.State("IDLE"), m.If(frames.r_valid):
                m.d.sync += [waited.eq(0), place.eq(0), held.eq(0)]
                m.next = "LOOK UP"
            with m.State("LOOK UP"):
                m.d.sync += waited.eq(waited + 1)
                with m.If(waited == _LOOKUP):
                    m.next = "DECIDE"
            with m.State("DECIDE"):
                m.next = "DROP"
                with m.If(tagged):
                    m.d.comb += [sdus.asks.eq(1), counts["tagged"].eq(1), counts["no_vlan"].eq(~sdus.has_vlan)]
                    with m.If(sdus.has_vlan & sdus.has_room):
                        m.next = "LLC 0"
                with m.Elif(owned.has_room):
                    m.next = "OWN"
                with m.Else():
                    m.d.comb += counts["no_own_room"].eq(1)
            for k, word in enumerate(_LLC):
                with m.State(f"LLC {k}"):
                    m.d.sync += [sdus.valid.eq(1), sdus.word.eq(word)]
                    m.next = f"LLC {k + 1}" if k + 1 < _LLC_WORDS else "BODY"
            with m.State("BODY"):  # two octets later than in the frame, the padding of the LLC header before them
                m.d.comb += frames.r_next.eq(1)
                m.d.sync += place.eq(place + 1)
                with m.If(place != _TAG_WORD):
                    m.d.sync += [
                        sdus.valid.eq(1), sdus.word.eq(Cat(held, frames.r_data[:16])), held.eq(frames.r_data[16:]),
                    ]  # fmt: skip
                with m.If(last):
                    m.next = "TAIL"
            with m.State("TAIL"):
                m.d.sync += [sdus.valid.eq(1), sdus.word.eq(held), sdus.ends.eq(1)]
                m.next = "DROP"
            with m.State("OWN"):
                m.d.comb += [frames.r_next.eq(1), owned.w_valid.eq(1), owned.w_ends.eq(last)]
                m.d.sync += place.eq(place + 1)
                with m.If(last):
                    m.next = "DROP"
            with m.State("DROP"):
                m.d.comb += frames.r_ends.eq(1)
                m.next = "IDLE"

    def _give_own(self, m, owned):
        own, place, step = self.own, Signal(_LENGTH_BITS - 2), Signal()
        rest = Signal(2)
        m.d.comb += [
            own.valid.eq(owned.r_valid),
            own.data.eq(owned.r_data),
            own.last.eq(place == (owned.r_info - 1)[2:]),
            rest.eq(owned.r_info - 1),
            own.last_be.eq(Mux(own.last, Const(1, 4) << rest, 0)),
            step.eq(own.valid & own.ready),
            owned.r_next.eq(step),
            owned.r_ends.eq(step & own.last),
        ]
        with m.If(step):
            m.d.sync += place.eq(Mux(own.last, 0, place + 1))


class LineSender(wiring.Component):
    """The sender of an Ethernet line: frames of several streams, one whole frame after the other, in turn.

    Parameters
    ----------
    streams : int

    Members
    -------
    i : In(MacSignature), an array
    o : Out(MacSignature)
    """

    def __init__(self, *, streams):
        if streams < 1:
            raise ValueError(f"streams must be 1 or more, not {streams!r}")
        self._streams = streams
        super().__init__({"i": In(MacSignature()).array(streams), "o": Out(MacSignature())})

    def elaborate(self, platform):
        m = Module()
        n = self._streams
        inside, which, valid = Signal(), Signal(range(n)), Signal(n)
        m.d.comb += valid.eq(Cat(each.valid for each in self.i))
        with m.If(~inside):
            following = _next_of(m, which, valid)
            m.d.sync += [inside.eq(valid.any()), which.eq(following)]
        for k, each in enumerate(self.i):
            with m.If(inside & (which == k)):
                m.d.comb += [
                    _word(self.o).eq(_word(each)),
                    self.o.valid.eq(each.valid),
                    each.ready.eq(self.o.ready),
                ]
                with m.If(each.valid & each.ready & each.last):
                    m.d.sync += inside.eq(0)
        return m


def _word(stream):
    """Return the word of a stream of frames."""
    return Cat(stream.data, stream.last, stream.last_be, stream.error)


def _next_of(m, last, valid):
    """Return the number of the first bit of ``valid`` that is set after bit ``last``, in turn."""
    found = Signal(range(len(valid)))
    m.d.comb += found.eq(last)
    # The later statement wins: bits after the last one before the others, and of each the lowest
    for above in (0, 1):
        for k in reversed(range(len(valid))):
            with m.If(valid[k] & ((last < k) if above else 1)):
                m.d.comb += found.eq(k)
    return found


class NicSide(wiring.Signature):
    """The host's side of an interface at 32 bits, as its host drives it; members as of :class:`~bentpipe_hdl.nic.Nic`.

    Parameters
    ----------
    vcs : int
    """

    def __init__(self, vcs):
        vc = range(vcs)
        super().__init__(
            {
                "post_valid": Out(1),
                "post_vc": Out(vc),
                "post_length": Out(16),
                "post_uu": Out(8),
                "post_cpi": Out(8),
                "post_taken": In(1),
                "fetch": In(1),
                "fetch_vc": In(vc),
                "word": Out(32),
                "word_next": In(1),
                "done": In(1),
                "done_vc": In(vc),
                "rx_valid": In(1),
                "rx_vc": In(vc),
                "rx_word": In(32),
                "rx_last": In(1),
                "rx_status": In(3),
                "rx_length": In(16),
                "rx_efci": In(1),
            }
        )


class VlanPort(wiring.Component):
    """The host of an interface whose PDUs are Ethernet frames of VLANs.

    Each VLAN has a VC that takes its frames, a VC whose PDUs are its frames, and a memory for each direction. The VCs
    of a direction must differ.

    A frame that is sent gets the tag of its VLAN with priority 0, and zeros up to 60 octets. A PDU with an error, or
    without a bridged frame of 14 to 1514 octets (RFC 2684, LLC, PID 0x0007), is counted and dropped.

    Parameters
    ----------
    vcs : int
        Of the interface.
    vlans : int
    in_words, out_words : int
        Size of a VLAN's memory of frames from Ethernet, and to it, as for :class:`FrameFifo`.

    Members
    -------
    nic : Out(NicSide)
    sdus : In(SduSignature)
    frames : Out(MacSignature)
        Frames for Ethernet.
    vlan : In(32), an array
        Settings: VID, and the numbers of both VCs, as in the register.
    waits : Out(1)
        A PDU waits for the interface.
    counters : Out(32) each, arrays
        As :data:`~bentpipe_sim.board.windows.VLAN_COUNTERS`; they wrap.
    count_no_vlan : Out(32)
        PDUs from VCs of no VLAN; wraps.
    """

    def __init__(self, *, vcs, vlans, in_words=4096, out_words=2048):
        if vlans < 1:
            raise ValueError(f"vlans must be 1 or more, not {vlans!r}")
        self._vcs, self._vlans, self._words = vcs, vlans, (in_words, out_words)
        super().__init__(
            {
                "nic": Out(NicSide(vcs)),
                "sdus": In(SduSignature()),
                "frames": Out(MacSignature()),
                "vlan": In(32).array(vlans),
                "waits": Out(1),
                **{f"count_{name}": Out(32).array(vlans) for name in VLAN_COUNTERS},
                "count_no_vlan": Out(32),
            }
        )

    def elaborate(self, platform):
        m = Module()
        vc_bits = len(self.nic.post_vc)
        self._vid = [each[:_VID_BITS] for each in self.vlan]
        self._tx = [each[_VID_BITS:][:vc_bits] for each in self.vlan]
        self._rx = [each[_VID_BITS + 10 :][:vc_bits] for each in self.vlan]
        ins = self._take(m)
        self._fetch(m, ins, *self._post(m, ins))
        self._give(m, self._collect(m))
        return m

    def _count(self, m, name, k, event):
        counter = getattr(self, f"count_{name}")[k]
        m.d.sync += counter.eq(counter + event)

    def _take(self, m):
        """Take SDUs into the memories of their VLANs; return these."""
        sdus, has, room, takes = self.sdus, Signal(self._vlans), Signal(self._vlans), Signal(self._vlans)
        m.d.sync += [
            has.eq(Cat((vid == sdus.vid) & (vid != 0) for vid in self._vid)),
            sdus.has_vlan.eq(has.any()),
            sdus.has_room.eq((has & room).any()),
        ]
        ins = []
        for k in range(self._vlans):
            each = FrameFifo(words=self._words[0], info_bits=_LENGTH_BITS)
            m.submodules[f"in{k}"] = each
            ins.append(each)
            m.d.comb += [
                room[k].eq(each.has_room),
                each.w_valid.eq(sdus.valid & takes[k]),
                each.w_data.eq(sdus.word),
                each.w_ends.eq(sdus.ends & takes[k]),
                each.w_keeps.eq(1),
                each.w_info.eq(sdus.length),
            ]
            with m.If(sdus.asks):
                m.d.sync += takes[k].eq(has[k] & sdus.has_room)
            self._count(m, "frames_in", k, each.w_ends & ~each.w_lost)
            self._count(m, "full_in", k, (sdus.asks & has[k] & ~sdus.has_room) | each.w_lost)
        return ins

    def _post(self, m, ins):
        """Give the interface the first SDU of each VLAN whose VC is free.

        Return which VLANs' VCs are in use, which SDUs have ended, and the signals that remove these.
        """
        nic, n = self.nic, self._vlans
        posts, which = Signal(), Signal(range(n))
        busy, ended, ready, ends = Signal(n), Signal(n), Signal(n), Signal(n)
        for k in range(n):
            others = [busy[other] & (self._tx[other] == self._tx[k]) for other in range(n) if other != k]
            m.d.sync += ready[k].eq(ins[k].r_valid & ~busy[k] & ~Cat(others).any())
            m.d.comb += ins[k].r_ends.eq(ends[k])
            with m.If(nic.done & busy[k] & (self._tx[k] == nic.done_vc)):
                m.d.sync += ended[k].eq(1)
            with m.If(ends[k]):
                m.d.sync += [ended[k].eq(0), busy[k].eq(0), ready[k].eq(0)]
        pause = Signal()  # `ready` is a clock late
        m.d.sync += pause.eq(0)
        with m.If(posts & nic.post_taken):
            m.d.sync += [posts.eq(0), pause.eq(1), busy.bit_select(which, 1).eq(1)]
        with m.Elif(~posts & ~pause & ready.any()):
            m.d.sync += [posts.eq(1), which.eq(_next_of(m, which, ready))]
        m.d.comb += [
            nic.post_valid.eq(posts),
            nic.post_vc.eq(Array(self._tx)[which]),
            nic.post_length.eq(Array([each.r_info for each in ins])[which]),
            self.waits.eq(posts | ready.any()),
        ]
        own = Signal(n)
        m.d.comb += own.eq(busy | (Mux(posts, 1, 0) << which))
        return own, ended, ends

    def _fetch(self, m, ins, own, ended, ends):
        """Give the interface the words of its cells."""
        nic = self.nic
        # Two cells' words, one being sent and one fetched
        m.submodules.cells = cells = memory.Memory(shape=32, depth=32, init=[])
        put, get = cells.write_port(), cells.read_port(domain="comb")
        left, source, filled, sent = Signal(4), Signal(self._vlans), Signal(5), Signal(5)
        moves = Signal()
        m.d.comb += [
            moves.eq(left != 0),
            put.addr.eq(filled),
            put.en.eq(moves),
            get.addr.eq((sent + nic.word_next)[:5]),
            ends.eq(Mux(moves | nic.fetch, 0, ended)),
        ]
        m.d.sync += nic.word.eq(get.data)
        for k, each in enumerate(ins):
            m.d.comb += each.r_next.eq(moves & source[k])
            with m.If(source[k]):
                m.d.comb += put.data.eq(each.r_data)
        with m.If(nic.fetch):
            m.d.sync += left.eq(12)
            m.d.sync += source.eq(Cat(own[k] & (tx == nic.fetch_vc) for k, tx in enumerate(self._tx)))
        with m.Elif(moves):
            m.d.sync += left.eq(left - 1)
        with m.If(moves):
            m.d.sync += filled.eq(filled + 1)
        with m.If(nic.word_next):
            m.d.sync += sent.eq(sent + 1)

    def _collect(self, m):
        """Collect received PDUs in the memories of their VLANs; return these."""
        nic = self.nic
        valid, last, word, fine = Signal(), Signal(), Signal(32), Signal()
        has = Signal(self._vlans)
        length = Signal(_LENGTH_BITS)
        m.d.sync += [
            valid.eq(nic.rx_valid),
            last.eq(nic.rx_last),
            word.eq(nic.rx_word),
            length.eq(nic.rx_length),
            fine.eq(
                (nic.rx_status == 0) & (nic.rx_length >= _LLC_OCTETS + _ETHERNET) & (nic.rx_length <= _LONGEST_SDU)
            ),
            has.eq(
                Cat((rx == nic.rx_vc) & (vid != 0) for rx, vid in zip(self._rx, self._vid, strict=True)),
            ),
            self.count_no_vlan.eq(self.count_no_vlan + (last & ~has.any())),
        ]
        outs = []
        for k in range(self._vlans):
            each = FrameFifo(words=self._words[1], info_bits=_LENGTH_BITS)
            m.submodules[f"out{k}"] = each
            outs.append(each)
            place, is_bridged = Signal(2, name=f"place{k}"), Signal(name=f"is_bridged{k}")
            m.d.comb += [
                each.w_valid.eq(valid & has[k]),
                each.w_data.eq(word),
                each.w_ends.eq(last & has[k]),
                each.w_keeps.eq(fine & is_bridged),
                each.w_info.eq(length),
            ]
            with m.If(each.w_valid & (place != _LLC_WORDS)):
                m.d.sync += place.eq(place + 1)
                for at, wanted in enumerate(_LLC):
                    with m.If(place == at):
                        m.d.sync += is_bridged.eq((is_bridged | (at == 0)) & (word == wanted))
            with m.If(each.w_ends):
                m.d.sync += [place.eq(0), is_bridged.eq(0)]
            self._count(m, "frames_out", k, each.w_ends & each.w_keeps & ~each.w_lost)
            self._count(m, "full_out", k, each.w_lost)
            self._count(m, "bad_out", k, each.w_ends & ~each.w_keeps)
        return outs

    def _give(self, m, outs):
        """Give the collected frames to Ethernet, with their tags."""
        m.submodules.leaving = leaving = SyncFIFOBuffered(width=_WORD_BITS - 1, depth=_LEAVING)
        m.d.comb += [
            Cat(self.frames.data, self.frames.last, self.frames.last_be).eq(leaving.r_data),
            self.frames.valid.eq(leaving.r_rdy),
            leaving.r_en.eq(self.frames.ready),
        ]
        which, place, held = Signal(range(self._vlans)), Signal(_LENGTH_BITS - 2), Signal(16)
        octets, vid, data = Signal(_LENGTH_BITS), Signal(_VID_BITS), Signal(32)
        steps, ends, last, word = Signal(), Signal(), Signal(), Signal(32)
        ready = Cat(each.r_valid for each in outs)
        m.d.comb += data.eq(Array([each.r_data for each in outs])[which])
        for k, each in enumerate(outs):
            m.d.comb += [each.r_next.eq(steps & (which == k)), each.r_ends.eq(ends & (which == k))]
        # Padded here: LiteEth 2024.12 pads no frame behind one of 57 to 59 octets
        is_tag, whole, mask = Signal(), Signal(_LENGTH_BITS), Signal(32)
        inside, ending = Signal(), Signal()
        m.d.comb += [
            is_tag.eq(place == _TAG_WORD),
            whole.eq(Mux(octets < SHORTEST - 1, SHORTEST - 1, octets)),
            last.eq(place == whole[2:]),
            inside.eq(place < octets[2:]),
            ending.eq(place == octets[2:]),
            mask.eq(Cat((inside | (ending & (octets[:2] >= lane))).replicate(8) for lane in range(4))),
            word.eq(Mux(is_tag, Cat(Const(0x0081, 16), vid[8:], Const(0, 4), vid[:8]), Cat(held, data[:16])) & mask),
            leaving.w_data.eq(Cat(word, last, Mux(last, Const(1, 4) << whole[:2], 0))),
        ]
        with m.FSM():
            with m.State("IDLE"), m.If(ready.any()):
                m.d.sync += [which.eq(_next_of(m, which, ready)), place.eq(0)]
                m.next = "LENGTH"
            with m.State("LENGTH"):  # of the frame with its tag, less 1
                m.d.sync += [
                    octets.eq(Array([each.r_info for each in outs])[which] - _LLC_OCTETS + _TAG - 1),
                    vid.eq(Array(self._vid)[which]),
                ]
                m.d.comb += steps.eq(1)
                m.next = "SKIP"
            with m.State("SKIP"):
                m.d.comb += steps.eq(1)
                m.next = "HOLD"
            with m.State("HOLD"):
                m.d.comb += steps.eq(1)
                m.d.sync += held.eq(data[16:])
                m.next = "WORDS"
            with m.State("WORDS"), m.If(leaving.w_rdy):
                m.d.comb += leaving.w_en.eq(1)
                m.d.sync += place.eq(place + 1)
                with m.If(~is_tag):
                    m.d.comb += steps.eq(1)
                    m.d.sync += held.eq(data[16:])
                with m.If(last):
                    m.d.comb += ends.eq(1)
                    m.next = "IDLE"
        return leaving
