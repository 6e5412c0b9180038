"""A limit of the frames that are queued for a port."""

from collections.abc import Sequence

from amaranth.hdl import Array, Const, Signal, Value

from bentpipe_hdl.switch.core.admission import Stage, Verdict

__all__ = ["QueueLimit"]


class QueueLimit(Stage):
    """The queue limit: it refuses a frame when the limit of frames queued for its port is reached."""

    reason = "limit"

    def __init__(self, limits: Sequence[Value]):
        self._limits = limits
        self.refuses: Value = Const(0)

    def decide(self, m, slot, cell):
        limit, refuses = Signal(16, name="queue_limit"), Signal(name="limit_refuses")
        m.d.comb += limit.eq(slot.pipe(Array(self._limits)[cell.policy.port], "arriving_queue_limit"))
        m.d.comb += refuses.eq((limit != 0) & (cell.port_frames >= limit))
        self.refuses = refuses
        return Verdict(cell.starts & refuses)
