"""Datagrams of UDP as a stream of octets, and one of two lines as the stream of a board.

A datagram is what the UDP port of LiteEth has: words of 32 bits, the first octet lowest. Here is no protocol: what is
lost or damaged on the way is sent again by the frames' own (:mod:`bentpipe_sim.board.protocol`).
"""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import fifo, memory, wiring
from amaranth.lib.wiring import In, Out

from bentpipe_sim.board.pipe import DATAGRAM_OCTETS

__all__ = ["DatagramSignature", "Datagrams", "Lines"]

_WORDS = 512
"""Words received that wait. A frame of 2,048 octets comes at 1 Gb/s while fewer of its octets go to the bridge."""
_BANK = 512
_LANES = 4


class DatagramSignature(wiring.Signature):
    """A stream of datagrams.

    Members
    -------
    valid, ready, last, data : Out(1), In(1), Out(1), Out(32)
    ip_address, port, length : Out(32), Out(16), Out(16)
        The other end, and the octets of the payload; constant from a datagram's first word to its last.
    """

    def __init__(self):
        super().__init__(
            {
                "valid": Out(1),
                "ready": In(1),
                "last": Out(1),
                "data": Out(32),
                "ip_address": Out(32),
                "port": Out(16),
                "length": Out(16),
            }
        )


class Datagrams(wiring.Component):
    """Octets of the received datagrams; and octets to datagrams, which go to the last client.

    The payload of received datagrams is a stream of octets, whatever their lengths are. Words that find no place are
    dropped; ``received`` never waits. An empty datagram has no effect. Four octets take four clocks.

    Octets that go are collected up to the end of a frame (a 0 behind another octet), or to 1,472 of them, the payload
    of the longest datagram that is not fragmented. There are two such memories: one is filled while the other is sent.
    While both are full, ``tx`` waits, but no longer than ``patience`` clocks. Then octets are dropped until a memory
    is free and a frame ends. So a line that takes nothing, or a client that answers no ARP, does not stop the board.

    A datagram goes to the client whose datagram came last, at the clock in which it begins. Before the first one there
    is no client, and what is sent is dropped.

    Parameters
    ----------
    patience : int
        Clocks.

    Members
    -------
    received, sent : In(DatagramSignature), Out(DatagramSignature)
    rx, rx_valid, rx_ready : Out(8), Out(1), In(1)
    tx, tx_valid, tx_ready : In(8), In(1), Out(1)
    """

    def __init__(self, *, patience):
        if patience < 1:
            raise ValueError(f"patience must be 1 or more clocks, not {patience!r}")
        self._patience = patience
        super().__init__(
            {
                "received": In(DatagramSignature()),
                "sent": Out(DatagramSignature()),
                "rx": Out(8),
                "rx_valid": Out(1),
                "rx_ready": In(1),
                "tx": In(8),
                "tx_valid": In(1),
                "tx_ready": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        client = self._receive(m)
        self._send(m, *client)
        return m

    def _receive(self, m):
        """Make the way in; return address and port of the last client, and whether there is one."""
        m.submodules.words = words = fifo.SyncFIFOBuffered(width=34, depth=_WORDS)
        came = self.received
        left = Signal(16)  # octets of the datagram behind this word and the ones before
        begins, rest = Signal(init=1), Signal(16)
        m.d.comb += [
            came.ready.eq(1),
            rest.eq(Mux(begins, came.length, left)),
            words.w_data.eq(Cat(came.data, Mux(rest >= _LANES, _LANES - 1, rest - 1)[:2])),
            words.w_en.eq(came.valid & (rest != 0)),
        ]
        ip_address, port, known = Signal(32), Signal(16), Signal()
        with m.If(came.valid):
            m.d.sync += [begins.eq(came.last), left.eq(Mux(rest >= _LANES, rest - _LANES, 0))]
            with m.If(rest != 0):
                m.d.sync += [ip_address.eq(came.ip_address), port.eq(came.port), known.eq(1)]

        octets, count = Signal(32), Signal(3)
        m.d.comb += [self.rx.eq(octets[:8]), self.rx_valid.eq(count != 0)]
        taken = self.rx_valid & self.rx_ready
        with m.If(taken):
            m.d.sync += [octets.eq(octets >> 8), count.eq(count - 1)]
        m.d.comb += words.r_en.eq((count == 0) | (taken & (count == 1)))
        with m.If(words.r_en & words.r_rdy):
            m.d.sync += [octets.eq(words.r_data), count.eq(words.r_data[32:] + 1)]
        return ip_address, port, known

    def _send(self, m, ip_address, port, known):
        m.submodules.banks = banks = memory.Memory(shape=32, depth=2 * _BANK, init=[])
        put, get = banks.write_port(), banks.read_port(domain="sync")
        # A bank is filled. Its word is written with each octet, so that nothing has to be done at its end.
        bank, filled, inside = Signal(), Signal(range(DATAGRAM_OCTETS)), Signal()
        full, lengths = Signal(2), [Signal(16, name=f"length{k}") for k in range(2)]
        early = Signal(24)  # the word's octets before this one
        waited, drops = Signal(range(self._patience + 1)), Signal()
        blocked, lane, ends, discards = full.bit_select(bank, 1), filled[:2], Signal(), Signal()
        m.d.comb += [
            self.tx_ready.eq(drops | ~blocked),
            put.addr.eq(Cat(filled[2:], bank)),
            put.data.eq(Mux(lane == 0, self.tx, early | self.tx << (lane << 3))),
            ends.eq((self.tx == 0) & inside),
            discards.eq(drops & (blocked | inside)),
        ]
        with m.If(~blocked & ~inside):
            m.d.sync += drops.eq(0)
        empties, fills = Signal(2), Signal(2)
        m.d.sync += full.eq(full & ~empties | fills)
        with m.If(self.tx_valid & self.tx_ready):
            m.d.sync += [inside.eq(self.tx != 0), waited.eq(0)]
            with m.If(~discards):
                m.d.comb += put.en.eq(1)
                m.d.sync += [early.eq(put.data), filled.eq(filled + 1)]
                with m.If(ends | (filled == DATAGRAM_OCTETS - 1)):
                    m.d.comb += fills.bit_select(bank, 1).eq(1)
                    m.d.sync += [filled.eq(0), bank.eq(~bank)]
                    for k, length in enumerate(lengths):
                        with m.If(bank == k):
                            m.d.sync += length.eq(filled + 1)
        with m.Elif(self.tx_valid):
            m.d.sync += waited.eq(waited + 1)
            with m.If(waited == self._patience - 1):
                m.d.sync += drops.eq(1)

        # The other one goes
        out, at, sent = Signal(), Signal(range(_BANK)), self.sent
        goes, following = Signal(), Signal(range(_BANK))
        length = Mux(out, lengths[1], lengths[0])
        m.d.comb += [
            sent.valid.eq(goes),
            sent.data.eq(get.data),
            sent.last.eq(at == (sent.length - 1)[2:]),
            following.eq(Mux(goes & sent.ready, at + 1, at)),
            get.addr.eq(Cat(following, out)),
        ]
        with m.If(~goes):
            m.d.sync += [sent.ip_address.eq(ip_address), sent.port.eq(port), sent.length.eq(length), at.eq(0)]
            with m.If(full.bit_select(out, 1)):
                m.d.sync += goes.eq(known)
                with m.If(~known):
                    m.d.comb += empties.bit_select(out, 1).eq(1)
                    m.d.sync += out.eq(~out)
        with m.Elif(sent.ready):
            m.d.sync += at.eq(following)
            with m.If(sent.last):
                m.d.comb += empties.bit_select(out, 1).eq(1)
                m.d.sync += [goes.eq(0), out.eq(~out), at.eq(0)]


class Lines(wiring.Component):
    """A board's stream of octets on two lines: a serial one, and one that can wait.

    Frames are not mixed: octets of the other line wait until the frame ends, those of the serial line are dropped. So
    is a frame over in which nothing comes for ``pause`` clocks. Answers go to the line whose octet came last.

    Parameters
    ----------
    pause : int
        Clocks.

    Members
    -------
    serial_rx, serial_rx_valid, other_rx, other_rx_valid, other_rx_ready : In(8), In(1), In(8), In(1), Out(1)
    rx, rx_valid : Out(8), Out(1)
        Octets of both.
    tx_valid, tx_ready : In(1), Out(1)
    serial_tx_valid, serial_tx_ready, other_tx_valid, other_tx_ready : Out(1), In(1), Out(1), In(1)
        The octet itself goes to both.
    """

    def __init__(self, *, pause):
        if pause < 1:
            raise ValueError(f"pause must be 1 or more clocks, not {pause!r}")
        self._pause = pause
        members = {"rx": Out(8), "rx_valid": Out(1), "tx_valid": In(1), "tx_ready": Out(1), "other_rx_ready": Out(1)}
        for line in ("serial", "other"):
            members |= {
                f"{line}_rx": In(8),
                f"{line}_rx_valid": In(1),
                f"{line}_tx_valid": Out(1),
                f"{line}_tx_ready": In(1),
            }
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        other, inside, waited = Signal(), Signal(), Signal(range(self._pause + 1))
        serial_passes, other_passes = Signal(), Signal()
        m.d.comb += [
            serial_passes.eq(self.serial_rx_valid & ~(inside & other)),
            self.other_rx_ready.eq(~serial_passes & ~(inside & ~other)),
            other_passes.eq(self.other_rx_valid & self.other_rx_ready),
            self.rx.eq(Mux(serial_passes, self.serial_rx, self.other_rx)),
            self.rx_valid.eq(serial_passes | other_passes),
            self.serial_tx_valid.eq(self.tx_valid & ~other),
            self.other_tx_valid.eq(self.tx_valid & other),
            self.tx_ready.eq(Mux(other, self.other_tx_ready, self.serial_tx_ready)),
        ]
        with m.If(self.rx_valid):
            m.d.sync += [other.eq(other_passes), inside.eq(self.rx != 0), waited.eq(0)]
        with m.Elif(waited == self._pause - 1):
            m.d.sync += inside.eq(0)
        with m.Else():
            m.d.sync += waited.eq(waited + 1)
        return m
