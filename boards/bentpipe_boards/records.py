"""FIFOs of records, whose middle is in an external memory: their interface, and their ends in block memory."""

from dataclasses import dataclass
from typing import Final

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["BOX", "RECORD_WORDS", "Box", "End", "RecordSignature", "ends_of"]

RECORD_WORDS: Final = 16
"""Words of 32 bits of a record: a cell has 13, its due tick two."""
BOX: Final = 4
"""Records that wait at each end of a FIFO."""


class RecordSignature(wiring.Signature):
    """A FIFO of records, as its user has it.

    Members
    -------
    put, put_word : Out(1), Out(32)
        A word of the record that goes in; 16 make it whole. A record may begin only while there is ``room``.
    room : In(1)
    waits : In(1)
        A record can be taken.
    at, word : Out(4), In(32)
        One of its words, in the clock after.
    take : Out(1)
        Have done with it; the next one may be there two clocks later.
    """

    def __init__(self):
        super().__init__(
            {
                "put": Out(1),
                "put_word": Out(32),
                "room": In(1),
                "waits": In(1),
                "at": Out(range(RECORD_WORDS)),
                "word": In(32),
                "take": Out(1),
            }
        )


class Box(wiring.Component):
    """A few records in block memory, at one end of a FIFO.

    Members
    -------
    put, put_word, get_at, get_word : In, In, In(4), Out
        As ``put``, ``put_word``, ``at`` and ``word`` of :class:`RecordSignature`.
    take : In(1)
    level : Out
        Whole records.
    """

    def __init__(self):
        super().__init__(
            {
                "put": In(1),
                "put_word": In(32),
                "get_at": In(range(RECORD_WORDS)),
                "get_word": Out(32),
                "take": In(1),
                "level": Out(range(BOX + 1)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.words = words = memory.Memory(shape=32, depth=BOX * RECORD_WORDS, init=[])
        put, get = words.write_port(), words.read_port(domain="sync")
        write, read = Signal(range(BOX * RECORD_WORDS)), Signal(range(BOX))
        whole = Signal()
        m.d.comb += [
            put.addr.eq(write),
            put.data.eq(self.put_word),
            put.en.eq(self.put),
            get.addr.eq(Cat(self.get_at, read)),
            self.get_word.eq(get.data),
            whole.eq(self.put & (write[:4] == RECORD_WORDS - 1)),
        ]
        with m.If(self.put):
            m.d.sync += write.eq(write + 1)
        with m.If(self.take):
            m.d.sync += read.eq(read + 1)
        m.d.sync += self.level.eq(self.level + whole - self.take)
        return m


@dataclass(frozen=True)
class End:
    """A FIFO's ends; ``write``, ``read`` and ``held`` are of its part of the SDRAM."""

    inbox: Box
    outbox: Box
    write: Signal
    read: Signal
    held: Signal


def ends_of(m, fifos, records):
    """Make both ends of each FIFO; return them, with the pointers of its part of the memory, of so many records."""
    found = []
    for k, user in enumerate(fifos):
        m.submodules[f"inbox{k}"], m.submodules[f"outbox{k}"] = inbox, outbox = Box(), Box()
        bits = records.bit_length() - 1
        write, read, held = (
            Signal(n, name=f"{name}{k}") for name, n in (("write", bits), ("read", bits), ("held", bits + 1))
        )
        m.d.comb += [
            inbox.put.eq(user.put),
            inbox.put_word.eq(user.put_word),
            user.room.eq(inbox.level < BOX - 1),
            user.waits.eq(outbox.level != 0),
            outbox.get_at.eq(user.at),
            user.word.eq(outbox.get_word),
            outbox.take.eq(user.take),
        ]
        found.append(End(inbox, outbox, write, read, held))
    return found
