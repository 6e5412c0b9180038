"""LiteX's UARTBone beside the frames of a serial line, so that its tools read a board's registers.

A command is an octet (1: write, 2: read, 3 and 4: the same, all at one address), the number of words, the address in
words, four octets; with 1 and 3 then the words. A read answers words alone. The first octet of an address or a word is
its highest. There is no check: so nothing can be written but the register ``scratch``.
"""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from bentpipe_boards.bridge import BUS_ADDR_BITS, READ_CLOCKS, BusSignature

__all__ = ["FIXED", "READ", "WRITE", "UartBone"]

WRITE, READ = 1, 2
FIXED = 2
"""Added to a command: all words at one address."""


class UartBone(wiring.Component):
    """LiteX's UARTBone: it takes its commands out of the received octets, and answers them while the bridge is idle.

    A frame begins and ends with an octet 0, and has none inside. So what stands between frames, and is 1 to 4, is a
    command; all else goes to the bridge. After a pause within either, what comes next is a beginning. A frame whose
    first octet is lost may be taken for a command: then it has no effect, and is sent again.

    Parameters
    ----------
    scratch : int
        Address of the register that can be written.
    pause : int
        Clocks without an octet.

    Members
    -------
    rx, rx_valid : In(8), In(1)
        Octets that come.
    passes : Out(1)
        This one is for the bridge.
    tx, tx_valid, tx_ready : Out(8), Out(1), In(1)
        Octets that go.
    bus : Out(BusSignature)
    holds, still : Out(1), In(1)
        The bridge is not to begin anything; it does nothing.
    busy : Out(1)
        An answer or a write is under way. While it waits for the rest of a command it is not busy.
    """

    def __init__(self, *, scratch, pause):
        self._scratch, self._pause = scratch, pause
        super().__init__(
            {
                "rx": In(8),
                "rx_valid": In(1),
                "passes": Out(1),
                "tx": Out(8),
                "tx_valid": Out(1),
                "tx_ready": In(1),
                "bus": Out(BusSignature()),
                "holds": Out(1),
                "still": In(1),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        inside, filled = Signal(), Signal()  # of a frame, which has an octet
        waited = Signal(range(self._pause + 1))
        begins, taken = Signal(), Signal()  # a command does; the octet is of one
        m.d.comb += [
            begins.eq(~inside & (self.rx >= WRITE) & (self.rx <= READ + FIXED)),
            self.passes.eq(self.rx_valid & ~taken & ~begins),
        ]
        with m.If(self.passes):
            m.d.sync += [inside.eq((self.rx != 0) | ~(inside & filled)), filled.eq(self.rx != 0)]
        paused = Signal()
        m.d.sync += paused.eq(waited == self._pause - 1)
        with m.If(self.rx_valid):
            m.d.sync += waited.eq(0)
        with m.Elif(waited != self._pause):
            m.d.sync += waited.eq(waited + 1)
        with m.If(paused & ~self.rx_valid):
            m.d.sync += inside.eq(0)

        command, left, place, word = Signal(3), Signal(8), Signal(2), Signal(32)
        addr, timer, is_read = Signal(BUS_ADDR_BITS), Signal(range(READ_CLOCKS + 1)), Signal()
        m.d.comb += [is_read.eq(~command[0]), self.tx.eq(word[24:])]
        following = addr + Mux(command > FIXED, 0, 1)
        # A write waits for the bridge, while further words come
        writes, written = Signal(), Signal(32)
        m.d.comb += [
            self.bus.addr.eq(Mux(writes, self._scratch, addr)),
            self.bus.w_data.eq(written),
            self.bus.w_en.eq(writes & self.still),
        ]
        with m.If(self.bus.w_en):
            m.d.sync += writes.eq(0)
        with m.FSM() as fsm:
            answers = fsm.ongoing("ASK") | fsm.ongoing("DO") | fsm.ongoing("READ") | fsm.ongoing("SEND")
            m.d.comb += [
                taken.eq(fsm.ongoing("LENGTH") | fsm.ongoing("ADDRESS") | fsm.ongoing("DATA")),
                self.holds.eq(answers | writes),
                self.busy.eq(self.holds),
            ]
            with m.State("COMMAND"), m.If(self.rx_valid & begins):
                m.d.sync += [command.eq(self.rx), place.eq(0)]
                m.next = "LENGTH"
            with m.State("LENGTH"):
                with m.If(self.rx_valid):
                    m.d.sync += left.eq(self.rx)
                    m.next = "ADDRESS"
                with m.Elif(paused):
                    m.next = "COMMAND"
            with m.State("ADDRESS"):
                with m.If(self.rx_valid):
                    m.d.sync += [addr.eq(Cat(self.rx, addr)), place.eq(place + 1)]
                    with m.If(place == 3):
                        m.next = "ASK"
                        with m.If(left == 0):
                            m.next = "COMMAND"
                        with m.Elif(~is_read):
                            m.next = "DATA"
                with m.Elif(paused):
                    m.next = "COMMAND"
            with m.State("DATA"):
                with m.If(self.rx_valid):
                    m.d.sync += [word.eq(Cat(self.rx, word)), place.eq(place + 1)]
                    with m.If(place == 3):
                        m.d.sync += [addr.eq(following), left.eq(left - 1)]
                        with m.If(addr == self._scratch):
                            m.d.sync += [writes.eq(1), written.eq(Cat(self.rx, word))]
                        with m.If(left == 1):
                            m.next = "COMMAND"
                with m.Elif(paused):
                    m.next = "COMMAND"
            with m.State("ASK"), m.If(self.still & ~writes):
                m.next = "DO"
            with m.State("DO"):
                m.d.comb += self.bus.r_en.eq(1)
                m.d.sync += [timer.eq(READ_CLOCKS), left.eq(left - 1)]
                m.next = "READ"
            with m.State("READ"):
                m.d.sync += timer.eq(timer - 1)
                with m.If(timer == 1):
                    m.d.sync += [word.eq(self.bus.r_data), addr.eq(following), place.eq(0)]
                    m.next = "SEND"
            with m.State("SEND"):
                m.d.comb += self.tx_valid.eq(1)
                with m.If(self.tx_ready):
                    m.d.sync += [word.eq(word << 8), place.eq(place + 1)]
                    with m.If(place == 3):
                        m.next = "DO"
                        with m.If(left == 0):
                            m.next = "COMMAND"
        return m
