"""Round robin over the VCs of a port that have cells."""

from amaranth.hdl import Array, Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from bentpipe_hdl.tick_schedule import TickSchedule

__all__ = ["RoundRobin", "round_members"]


def round_members(vcs: int, ports: int):
    """Return the ports that every scheduler has: those of :class:`RoundRobin`."""
    vc, port = range(vcs), range(max(ports, 2))
    return {
        "busy": Out(ports),
        "port": In(port),
        "vc": Out(vc),
        "serve": In(1),
        "join": In(1),
        "join_vc": In(vc),
        "join_port": In(port),
        "rejoin": In(1),
        "rejoin_port": In(port),
        "changes": Out(1),
        "begins": Out(ports),
        "still_busy": Out(ports),
    }


class RoundRobin(wiring.Component):
    """A round a port, of the VCs that have cells: a VC joins at the end when its queue stops being empty, and again
    after each cell it sends. A joining VC goes before one that joins again in the same tick.

    A scheduler of another kind has the same ports and keeps the same promises: a VC that joined is served, in one port,
    once for each time that it joined; ``busy`` tells which ports have any.

    Members
    -------
    busy : Out
        A bit a port: it has VCs.
    port : In
        The busy port that is served now; at 32 bits valid by clock ``at``.
    vc : Out
        The VC that is next there; narrow: from clock ``at + 2`` on.
    serve : In
        It is taken from its round now.
    join, join_vc, join_port : In
        A VC joins a round.
    rejoin, rejoin_port : In
        So does the VC that is served.
    changes : Out
        Something happens to a round now.
    begins : Out
        A bit a port: its round is empty, or becomes so with the VC that is served, and now another VC joins it.
    still_busy : Out
        With ``changes``: ``busy`` after this tick.
    members : Out
        With ``counts``: VCs in the round of ``port``.
    """

    def __init__(self, slot: TickSchedule, *, vcs: int, ports: int, at: int, counts: bool = False):
        self._slot, self._vcs, self._ports, self._at, self._counts = slot, vcs, ports, at, counts
        members = {"members": Out(range(vcs + 1))} if counts else {}
        super().__init__({**round_members(vcs, ports), **members})

    def elaborate(self, platform):
        m = Module()
        slot, ports = self._slot.within(m), self._ports
        slot.with_commit(self.serve, self.join, self.rejoin)
        vc_bits = len(self.vc)
        self.first = first = Array(Signal(vc_bits + 1, name=f"first{p}") for p in range(ports))
        self.end = end = Array(Signal(vc_bits + 1, name=f"end{p}") for p in range(ports))
        self.rounds = rounds = slot.store("rounds", vc_bits, ports * self._vcs, block=True, apart=True)

        def at(port, index):
            return Cat(index[:vc_bits], port) if ports > 1 else index[:vc_bits]

        with slot.gate_when(self.serve):
            m.d.comb += self.vc.eq(rounds.read(at(self.port, first[self.port]), at=self._at, to="next_vc"))
        if self._counts:
            with slot.gate_when(self.serve):
                m.d.comb += self.members.eq((end[self.port] - first[self.port])[: vc_bits + 1])
        alone = slot.pipe((first[self.port] + 1)[: vc_bits + 1] == end[self.port], "alone")
        stays = slot.pipe(self.rejoin_port == self.port, "stays")
        both = Signal()  # a VC joins the round that the served one joins again
        again_at = Signal(vc_bits + 1)
        with m.If(self.join), m.If(self.serve):
            m.d.comb += both.eq(self.join_port == self.rejoin_port)
        m.d.comb += again_at.eq(end[self.rejoin_port] + both)
        rounds.write(at(self.join_port, end[self.join_port]), self.join_vc, self.join)
        rounds.write(at(self.rejoin_port, again_at), self.vc, self.rejoin)

        kept, joined = Signal(ports), Signal(ports)  # ports whose rounds do not become empty; to whose rounds VCs come
        rejoined, emptied = Signal(ports), Signal(ports)
        goes, shifts = Signal(), Signal()  # the VC leaves the port's round; which ports are busy may change
        with m.If(self.serve):
            m.d.sync += first[self.port].eq(first[self.port] + 1)
            m.d.comb += goes.eq(~(self.rejoin & stays))
            with m.If(goes), m.If(alone):
                m.d.comb += emptied.eq(1 << self.port)
        with m.If(self.join):
            m.d.comb += joined.eq(1 << self.join_port)
            m.d.sync += end[self.join_port].eq(end[self.join_port] + 1)
        with m.If(self.rejoin):
            m.d.sync += end[self.rejoin_port].eq(again_at + 1)
            with m.If(goes):
                m.d.comb += rejoined.eq(1 << self.rejoin_port)
        m.d.comb += [self.changes.eq(self.serve | self.join), shifts.eq(self.join | goes)]
        m.d.comb += [self.still_busy.eq(self.busy), kept.eq(self.busy & ~emptied)]
        with m.If(slot.commit), m.If(shifts):
            m.d.comb += [
                self.still_busy.eq(kept | joined | rejoined),
                self.begins.eq((joined | rejoined) & ~kept),
            ]
            m.d.sync += self.busy.eq(self.still_busy)
        return m
