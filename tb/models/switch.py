"""A shared-buffer cell switch at the level of cells: look-up, per-VC queues, drop policy, schedulers of ports.

It knows no time, but for its VCs' policers: :meth:`Switch.arrive` and :meth:`Switch.depart` are called in the order in
which things happen.
Policies after Romanow and Floyd (JSAC, May 1995) and TM 4.0 (af-tm-0056); headers after I.361. Virtual paths after
I.311: a VP switch ends VP links and translates VPIs; the VCIs in a path pass unchanged, and it doesn't look at them,
but for the path's own OAM cells (I.361: VCI 3 and 4 in any VPI).
"""

from __future__ import annotations

import enum
from collections import Counter, deque
from dataclasses import dataclass, field, replace
from fractions import Fraction

from models.cell import Header, Interface, Pti
from models.copies import Copies
from models.policer import Policer
from models.red import RedPort, xorshift64
from models.scheduling import Member, Scheduler

__all__ = ["Drop", "Frame", "Switch", "Vc"]

F4 = {3: Pti.OAM_SEGMENT, 4: Pti.OAM_END_TO_END}
"""VCIs of a virtual path's OAM cells, and the payload types that say the same of a VC's (F5)."""


class Drop(enum.Enum):
    """Why a cell was dropped. ``UNKNOWN`` and ``HEC`` are counted an input port, the others a VC."""

    UNKNOWN = "unknown"
    HEC = "hec"
    FULL = "full"
    EPD = "epd"
    PPD = "ppd"
    CLP = "clp"
    RESERVE = "reserve"
    LIMIT = "limit"
    RED = "red"
    UPC = "upc"
    FAIR = "fair"
    COPIES = "copies"


class Frame(enum.Enum):
    """The place of a VC in an AAL5 frame, which decides the fate of the next user cell."""

    FIRST = "first"
    """It begins a frame, and every frame before it is complete downstream (or wholly absent)."""
    PASSING = "passing"
    """The frame's cells so far were queued."""
    REFUSED = "refused"
    """The frame's first cell was dropped: so is the whole rest, its last cell included."""
    CUT = "cut"
    """A later cell was dropped (PPD): so is the rest, but its last cell should still come through."""
    CORPSE = "corpse"
    """A cut frame's last cell was lost as well. The next frame is discarded; its last cell ends the corpse."""


@dataclass
class Vc:
    """A VC through the switch: where it comes in and goes out, and what of the buffer it may take.

    ``limit`` is the most cells it may have queued. ``epd_threshold`` is its own one; None uses the switch's
    threshold on the shared buffer. Its cells pass the ``policer``, if there is one, before the buffer sees them.
    ``fair`` is "selective" (drop) or "fba" (fair buffer allocation), instead of EPD. ``minimum`` are the cells that it
    may always have, ``efci_threshold`` marks by its own queue. One with ``in_port`` -1 gets copies alone.
    """

    in_port: int
    in_vpi: int
    in_vci: int
    out_port: int
    out_vpi: int
    out_vci: int
    limit: int = 1 << 30
    ppd: bool = False
    epd: bool = False
    epd_threshold: int | None = None
    weight: int = 1
    priority: int = 0
    policer: Policer | None = None
    fair: str = ""
    minimum: int = 0
    efci_threshold: int | None = None
    vpc: bool = False
    frame: Frame = Frame.FIRST
    refused_for: Drop = Drop.EPD
    queue: deque[tuple[Header, object, bool]] = field(default_factory=deque)
    """Header, what came with the cell, whether its place is one of the VC's own."""
    marked: int = 0
    accepted: int = 0
    sent: int = 0
    drops: Counter[Drop] = field(default_factory=Counter)


class Switch:
    """The switch.

    Parameters
    ----------
    vcs : list of Vc
    ports : int
    capacity : int
        Cells of the shared buffer.
    user_capacity : int
        A user cell is dropped when the buffer has this many cells or more: the rest is for OAM and RM cells.
    epd_threshold : int
        A new frame of a VC with EPD and without a threshold of its own is refused when the buffer has this many
        cells or more.
    clp_threshold : int
        A cell with CLP=1 is dropped when the buffer has this many cells or more; of a VC with PPD or EPD a frame that
        begins so, as a whole.
    nni : set of int
        Ports with NNI headers.
    share : Fraction
        Z of selective drop and fair buffer allocation.
    port_epd, efci_ports : dict
        By output port: cells queued for it from which on EPD refuses frames, and from which on cells are marked.
    efci_threshold : int, optional
        Cells in the buffer from which on they are.
    limits, red : dict
        By output port: most frames queued for it; random early detection on them, with the state of its generator.
    fifo : set of int
        Ports that send cells in the order in which they came; the others go round their VCs, by weight and priority.
    copies : Copies, optional
        Of the cells of point-to-multipoint VCs. Each tick ends with :meth:`tick`.

    Attributes
    ----------
    now : int
        The tick, for random early detection and policers.
    """

    def __init__(
        self,
        vcs: list[Vc],
        *,
        ports: int,
        capacity: int,
        user_capacity: int = 1 << 30,
        epd_threshold: int = 1 << 30,
        clp_threshold: int = 1 << 30,
        nni: frozenset[int] = frozenset(),
        share: Fraction = Fraction(4, 5),
        port_epd: dict[int, int] | None = None,
        efci_threshold: int | None = None,
        efci_ports: dict[int, int] | None = None,
        limits: dict[int, int] | None = None,
        red: dict[int, tuple[RedPort, int]] | None = None,
        fifo: frozenset[int] = frozenset(),
        copies: Copies | None = None,
    ) -> None:
        self.vcs = vcs
        self.copies, self._came, self._copied = copies, None, False
        self.capacity = capacity
        self.user_capacity = user_capacity
        self.epd_threshold = epd_threshold
        self.clp_threshold = clp_threshold
        self.nni = nni
        self.share, self.port_epd = share, port_epd or {}
        self.efci_threshold, self.efci_ports = efci_threshold, efci_ports or {}
        self.limits, self.red, self.now = limits or {}, red or {}, 0
        self.occupancy = 0
        self.high_water = 0
        self.port_drops = [Counter[Drop]() for _ in range(ports)]
        self.scheduler = Scheduler([Member(vc.out_port) for vc in vcs], ports=ports, fifo=fifo)
        self._routes: dict[tuple[int, int, int | None], int] = {}
        for index, vc in enumerate(vcs):
            if vc.in_port < 0:
                continue
            key = (vc.in_port, vc.in_vpi, None if vc.vpc else vc.in_vci)
            if key in self._routes:
                raise ValueError(f"port {key[0]} VPI {key[1]} VCI {key[2]} is used twice")
            self._routes[key] = index

    def interface(self, port: int) -> Interface:
        """UNI or NNI."""
        return Interface.NNI if port in self.nni else Interface.UNI

    def arrive(
        self, port: int, header: Header, hec_error: bool = False, cell: object = None
    ) -> tuple[bool, Drop | None]:
        """A cell comes in at ``port``: accepted, or dropped with its reason. ``cell`` is kept along with it."""
        if hec_error:
            self.port_drops[port][Drop.HEC] += 1
            return False, Drop.HEC
        index = self._routes.get((port, header.vpi, header.vci), self._routes.get((port, header.vpi, None)))
        if index is None:
            self.port_drops[port][Drop.UNKNOWN] += 1
            return False, Drop.UNKNOWN
        vc = self.vcs[index]
        if vc.policer:
            fate, clp = vc.policer.cell(self.now, header.clp, header.user, header.last)
            if fate == "discarded":
                vc.drops[Drop.UPC] += 1
                return False, Drop.UPC
            header = replace(header, clp=clp)
        if self.copies:
            framed = vc.ppd or vc.epd or bool(vc.fair)
            judged = self._judged(vc, header)
            if self.copies.refuses(index, framed=framed, user=judged.user, last=judged.last):
                vc.drops[Drop.COPIES] += 1
                return False, Drop.COPIES
            self._came = index, (header, cell)
        return self._admit(index, header, cell)

    def copy(self) -> bool:
        """A copy comes in, if one is offered."""
        offer = self.copies.offer() if self.copies else None
        if offer is None:
            return False
        self._copied = True
        self._admit(offer.leaf, *offer.cell)
        return True

    def tick(self) -> None:
        """The tick is over."""
        if self.copies:
            self.copies.tick(self._came, self._copied)
            self._came, self._copied = None, False

    @staticmethod
    def _judged(vc: Vc, header: Header) -> Header:
        """Return the VC as the buffer knows it: OAM cells of a VPC are known by their VCI."""
        return replace(header, pti=F4[header.vci]) if vc.vpc and header.vci in F4 else header

    def _admit(self, index: int, header: Header, cell: object) -> tuple[bool, Drop | None]:
        """A cell of a known VC is queued or dropped."""
        vc = self.vcs[index]
        judged = self._judged(vc, header)
        reason = self._policy(vc, judged)
        if reason is not None:
            vc.drops[reason] += 1
            return False, reason
        self._member(index)
        self.scheduler.arrive(index)
        if self._congested(vc) and judged.user:
            vc.marked += not header.pti & 2
            header = replace(header, pti=header.pti | 2)
        own = self._own(vc) < vc.minimum
        out_vci = header.vci if vc.vpc else vc.out_vci
        vc.queue.append((header.to(vc.out_vpi, out_vci, self.interface(vc.out_port)), cell, own))
        vc.accepted += 1
        self.occupancy += 1
        self.high_water = max(self.high_water, self.occupancy)
        return True, None

    def _member(self, index: int) -> None:
        """The scheduler's state of a VC is up to date."""
        vc, member = self.vcs[index], self.scheduler.members[index]
        member.port, member.weight, member.priority = vc.out_port, vc.weight, vc.priority

    def depart(self, port: int, priority: int | None = None) -> tuple[Header, int, object] | None:
        """The next cell of an output port: header, index of its VC, and what came with it; None if it has none. With a
        ``priority``: that which the port had to offer (``scheduler.level``) before a cell came in the same tick."""
        for index in range(len(self.vcs)):
            self._member(index)
        if self.scheduler.first(port) is None:
            return None
        index = self.scheduler.depart(port, priority)
        vc = self.vcs[index]
        header, cell, _ = vc.queue.popleft()
        vc.sent += 1
        self.occupancy -= 1
        if vc.out_port in self.red and not self._queued(vc.out_port):
            self.red[vc.out_port][0].idle_since = self.now
        return header, index, cell

    def check_conservation(self) -> None:
        """Cells accepted are cells sent and cells queued, a VC and in all."""
        for vc in self.vcs:
            assert vc.accepted == vc.sent + len(vc.queue)
        assert self.occupancy == sum(len(vc.queue) for vc in self.vcs)
        assert [len(vc.queue) for vc in self.vcs] == [member.cells for member in self.scheduler.members]
        self.scheduler.check()

    @staticmethod
    def _own(vc: Vc) -> int:
        """Own places of the VC that are taken."""
        return sum(own for _, _, own in vc.queue)

    def _congested(self, vc: Vc) -> bool:
        """Cells of the VC are marked."""
        never = 1 << 30
        return (
            self.occupancy >= (never if self.efci_threshold is None else self.efci_threshold)
            or len(self._queued(vc.out_port)) >= self.efci_ports.get(vc.out_port, never)
            or len(vc.queue) >= (never if vc.efci_threshold is None else vc.efci_threshold)
        )

    def _no_room(self, vc: Vc, header: Header) -> Drop | None:
        """Why there is no place for the cell."""
        if self.occupancy >= self.capacity or len(vc.queue) >= vc.limit:
            return Drop.FULL
        if self._own(vc) < vc.minimum:
            return None
        shared = self.occupancy - sum(map(self._own, self.vcs))
        places = (min(self.user_capacity, self.capacity) if header.user else self.capacity) - sum(
            each.minimum for each in self.vcs
        )
        if any(each.minimum for each in self.vcs) and shared >= places:
            return Drop.FULL
        return Drop.RESERVE if header.user and self.occupancy >= self.user_capacity else None

    def _over_clp(self, vc: Vc, header: Header) -> bool:
        return bool(header.clp) and self.occupancy >= self.clp_threshold and self._own(vc) >= vc.minimum

    def _over_share(self, vc: Vc) -> bool:
        """With the buffer above its threshold the VC has more than its share of it."""
        queued, threshold = self.occupancy, self.epd_threshold
        active = sum(bool(each.queue) for each in self.vcs)
        if not vc.fair or queued < threshold or not queued:
            return False
        part = Fraction(len(vc.queue) * active, queued)
        if vc.fair == "selective":
            return part > self.share
        return queued > threshold and part > self.share * (1 + Fraction(self.capacity - queued, queued - threshold))

    def _over_epd(self, vc: Vc) -> bool:
        if not vc.epd:
            return False
        if vc.epd_threshold is None:
            port = len(self._queued(vc.out_port)) >= self.port_epd.get(vc.out_port, 1 << 30)
            return self._own(vc) >= vc.minimum and (port or self.occupancy >= self.epd_threshold)
        return len(vc.queue) >= vc.epd_threshold

    def _queued(self, port: int) -> list[Header]:
        """The headers of the cells queued for a port."""
        return [header for vc in self.vcs if vc.out_port == port for header, _, _ in vc.queue]

    def _port_refuses(self, port: int) -> Drop | None:
        """Why the port's queue takes no other frame."""
        queued = self._queued(port)
        frames = sum(header.user and header.last for header in queued)
        limited = frames >= self.limits.get(port, 1 << 30)
        detected = False
        if port in self.red:
            red, state = self.red[port]
            detected = red.arrives(frames, (state >> 40) / 2**24, limited=limited, idle=not queued, now=self.now)
            self.red[port] = red, xorshift64(state)
            if not queued:
                red.idle_since = self.now
        return Drop.LIMIT if limited else Drop.RED if detected else None

    def _policy(self, vc: Vc, header: Header) -> Drop | None:
        """The reason to drop a cell of a known VC, or None; frame state moves on."""
        if not header.user or not (vc.ppd or vc.epd or vc.fair):
            # OAM and RM cells touch no frame state. Without PPD and EPD no cell's fate depends on its frame, but
            # where frames begin is known, so that either can be switched on in the middle of one.
            if header.user:
                vc.frame = Frame.FIRST if header.last else Frame.PASSING
            return self._no_room(vc, header) or (Drop.CLP if self._over_clp(vc, header) else None)
        if vc.frame is Frame.FIRST:
            return self._first(vc, header)
        if vc.frame is Frame.PASSING:
            why = self._no_room(vc, header)
            if why is None:
                if header.last:
                    vc.frame = Frame.FIRST
                return None
            if vc.ppd or vc.fair:
                vc.frame = Frame.CORPSE if header.last else Frame.CUT
            elif header.last:
                vc.frame = Frame.FIRST
            return why
        if vc.frame is Frame.REFUSED:
            if header.last:
                vc.frame = Frame.FIRST
            return vc.refused_for
        # CUT or CORPSE: only the last cell has a chance.
        if not header.last:
            return Drop.PPD
        why = self._no_room(vc, header)
        vc.frame = Frame.CORPSE if why else Frame.FIRST
        return why

    def _first(self, vc: Vc, header: Header) -> Drop | None:
        """The first cell of a frame decides on the whole frame; the port's queue and early packet discard are asked
        first."""
        spared = self._own(vc) < vc.minimum
        if (why := self._port_refuses(vc.out_port)) and not spared:
            reason, rest = why, why
        elif self._over_epd(vc):
            reason, rest = Drop.EPD, Drop.EPD
        elif self._over_share(vc) and not spared:
            reason, rest = Drop.FAIR, Drop.FAIR
        elif why := self._no_room(vc, header):
            reason, rest = why, Drop.PPD if why is Drop.FULL else why
        elif self._over_clp(vc, header):
            reason, rest = Drop.CLP, Drop.CLP
        else:
            reason, rest = None, Drop.PPD
        if reason is Drop.FULL and not (vc.ppd or vc.fair):
            # EPD alone: a full buffer costs this cell only.
            vc.frame = Frame.FIRST if header.last else Frame.PASSING
        elif header.last:
            vc.frame = Frame.FIRST
        elif reason is None:
            vc.frame = Frame.PASSING
        else:
            vc.frame, vc.refused_for = Frame.REFUSED, rest
        return reason
