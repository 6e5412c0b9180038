"""The event loop's rules in Python, on nodes that cocotb drives: the same cells at the same ticks as in the native one.

A node is clocked with ``tick`` high when a cell reaches it or it is due; it takes the cell that came first, one a
tick. A cell that leaves in tick T reaches the other end of its wire in tick max(``o_end``, T + 1) + delay, or, from a
node that clocks no line, in tick T + 1 + delay.
"""

from collections import deque

from cocotb.task import bridge, resume
from cocotb.triggers import Timer

from bentpipe_hdl.ticks import ps_to_ticks, ticks_to_ps
from bentpipe_sim.interface import PduEvent, PduStatus
from bentpipe_sim.network import Network
from bentpipe_sim.nodes import Link, Nic
from bentpipe_sim.pattern import pattern
from cocotb_nodes.environment import reader

MASK = (1 << 64) - 1
NEVER = (1 << 48) - 1


def mix64(z):
    z = (z + 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ z >> 27) * 0x94D049BB133111EB) & MASK
    return z ^ z >> 31


def internet_sum(octets):
    padded = octets + b"\0" * (len(octets) % 2)
    total = sum(int.from_bytes(padded[k : k + 2], "big") for k in range(0, len(padded), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


class _Pdu:
    def __init__(self, octets):
        self.length = len(octets)
        self.octets = octets + b"\0" * (-len(octets) % 48)
        self.fetched = 0


class _Node:
    def __init__(self, dut, spec):
        self.dut, self.spec = dut, spec
        self.handles, self.readers = {}, {}
        self.wires = {}  # input port -> cells (tick, header, payload, hec_error)
        self.outputs = {}  # output port -> (node, port, delay, whether o_end counts)
        self.last, self.next = -1, None
        self.cells_in = self.cells_out = self.turn = 0
        self.digests = {}
        self.tx, self.rx, self.to_post, self.posted = {}, {}, deque(), {}

    def port(self, name):
        if name not in self.handles:
            self.handles[name] = getattr(self.dut, f"{self.spec.name}_{name}", None)
        return self.handles[name]

    def get(self, name):
        if name not in self.readers:
            handle = self.port(name)
            self.readers[name] = reader(handle) if handle is not None else lambda: 0
        return self.readers[name]()

    def set(self, name, value):
        handle = self.port(name)
        if handle is not None:
            handle.value = value

    def reckon(self, now):
        due = self.get("status_due")
        times = [wire[0][0] for wire in self.wires.values() if wire]
        if due != NEVER:
            times.append(due)
        if self.to_post:
            times.append(now)
        self.next = max(min(times), self.last + 1) if times else None


class RtlNetwork:
    """A :class:`bentpipe_sim.interface.PduNetwork` on a rig. ``run`` is to be called from a bridged thread."""

    def __init__(self, dut, network: Network):
        self.dut, self.network = dut, network
        self.nodes = [_Node(dut, spec) for spec in network.nodes]
        self.now, self._now_ps = 0, 0
        self.events, self.received = [], []

    async def start(self):
        dut = self.dut
        for node in self.nodes:
            for name in ("time_tick", "time_now", "i_valid", "i_hec_error", "csr_w_en", "csr_r_en", "post_valid"):
                node.set(name, 0)
        dut.rst.value = 1
        await self.clock()
        dut.rst.value = 0
        while not all(node.get("status_idle") for node in self.nodes):
            await self.clock()
        loop = self.network.loop  # a driver's accesses, from a bridged thread, instead of the native loop's
        loop.csr_write, loop.csr_read = resume(self.write), resume(self.read)
        loop.csr_write_all = resume(self.write_all)
        for spec in self.network.nodes:
            await bridge(spec.driver.identify)()
            await bridge(spec.configure)()
        for a, a_port, b, b_port, delay in self.network._wires:
            held = delay + (a.delay - 1 if isinstance(a, Link) else 0)
            sends = self.network.sends(a, b)
            self.nodes[a.index].outputs[a_port] = (self.nodes[b.index], b_port, held, sends)
            self.nodes[b.index].wires[b_port] = deque()

    async def clock(self):
        self.dut.clk.value = 0
        await Timer(1, "ns")
        self.dut.clk.value = 1
        await Timer(1, "ns")

    async def write(self, index, addr, value):
        node = self.nodes[index]
        node.set("csr_addr", addr)
        node.set("csr_w_data", value)
        node.set("csr_w_en", 1)
        await self.clock()
        node.set("csr_w_en", 0)

    async def write_all(self, index, addr, words, count):
        for k in range(count):
            await self.write(index, addr + k, words[k])

    async def read(self, index, addr):
        node = self.nodes[index]
        node.set("csr_addr", addr)
        node.set("csr_r_en", 1)
        await self.clock()
        node.set("csr_r_en", 0)
        for _ in range(3):
            await self.clock()
        return node.get("csr_r_data")

    async def step(self, tick):
        """One clock for every node that has work in this tick."""
        busy = [node for node in self.nodes if node.next is not None and node.next <= tick]
        for node in busy:
            node.set("time_tick", 1)
            node.set("time_now", tick)
            ready = [
                (wire[0][0], port < node.turn, port) for port, wire in node.wires.items() if wire and wire[0][0] <= tick
            ]
            node.set("i_valid", bool(ready))
            if ready:
                *_, port = min(ready)
                waits = len(ready) > 1 or (len(node.wires[port]) > 1 and node.wires[port][1][0] <= tick)
                node.turn = port + 1 if waits else node.turn
                _, header, payload, hec_error = node.wires[port].popleft()
                node.set("i_header", header)
                node.set("i_payload", payload)
                node.set("i_hec_error", hec_error)
                node.set("i_port", port)
                node.cells_in += 1
            if isinstance(node.spec, Nic):
                node.set("post_valid", bool(node.to_post))
                if node.to_post:
                    vc = node.to_post[0]
                    node.set("post_vc", vc)
                    node.set("post_length", node.tx[vc][0].length)
                    node.set("post_uu", 0)
                    node.set("post_cpi", 0)
        await self.clock()
        for node in busy:
            node.set("time_tick", 0)
            node.set("i_valid", 0)
            node.set("post_valid", 0)
            node.last = tick
            if node.get("o_valid"):
                self._emit(node, tick)
            if isinstance(node.spec, Nic):
                self._host(node, tick)
        for node in self.nodes:
            node.reckon(tick)

    def _emit(self, node, tick):
        port = node.get("o_port")
        header, payload, hec_error = node.get("o_header"), node.get("o_payload"), node.get("o_hec_error")
        digest = mix64(node.digests.get(port, 0) ^ tick)
        digest = mix64(digest ^ header ^ hec_error << 32)
        for k in range(12):
            digest = mix64(digest ^ payload >> 32 * k & 0xFFFFFFFF)

        node.digests[port] = digest
        node.cells_out += 1
        to, to_port, delay, sends = node.outputs[port]
        sent = max(node.get("o_end") if sends else 0, tick + 1)
        to.wires[to_port].append((sent + delay, header, payload, hec_error))

    def _host(self, node, tick):
        if node.get("post_taken"):
            node.to_post.popleft()
        if node.get("done"):
            vc = node.get("done_vc")
            node.tx[vc].popleft()
            if node.tx[vc]:
                node.to_post.append(vc)
        if node.get("fetch"):
            pdu = node.tx[node.get("fetch_vc")][0]
            block = pdu.octets[pdu.fetched : pdu.fetched + 48]
            if block:
                node.set("block", int.from_bytes(block, "little"))
            pdu.fetched += 48
        vc = node.get("rx_vc")
        if node.get("rx_valid"):
            octets = node.rx.setdefault(vc, bytearray())
            at = 48 * node.get("rx_index")
            octets[at : at + 48] = node.get("rx_payload").to_bytes(48, "little")
        if node.get("rx_last"):
            status, length = node.get("rx_status"), node.get("rx_length")
            good = status == PduStatus.OK
            octets = bytes(node.rx.get(vc, b""))[:length] if good else b""
            event = PduEvent(
                ticks_to_ps(tick), node.spec.index, vc, status, len(octets), octets[:128], len(self.received),
                bool(node.get("rx_efci")),
            )  # fmt: skip
            self.events.append(event)
            if good:
                self.received.append(octets)

    # PduNetwork

    @property
    def now_ps(self):
        return self._now_ps

    def send(self, nic, vc, head, key=0, offset=0, length=0, checksum_start=-1, checksum_at=-1, uu=0):
        octets = bytearray(head + pattern(key, offset, length))
        if checksum_at >= 0:
            total = ~internet_sum(bytes(octets[checksum_start:])) & 0xFFFF
            octets[checksum_at : checksum_at + 2] = total.to_bytes(2, "big")
        node = self.nodes[nic]
        queue = node.tx.setdefault(vc, deque())
        queue.append(_Pdu(bytes(octets)))
        if len(queue) == 1:
            node.to_post.append(vc)
        node.reckon(self.now)

    async def advance(self, until_ps):
        """Run as ``run`` does, for coroutines."""
        self.events, self.received = [], []
        until = ps_to_ticks(until_ps)
        while True:
            times = [node.next for node in self.nodes if node.next is not None]
            tick = min(times, default=None)
            if self.events and (tick is None or tick > self.now):
                self._now_ps = self.events[-1].time_ps
                return self.events
            if tick is None or tick > until:
                self.now = until
                self._now_ps = max(self._now_ps, until_ps)
                return []
            self.now = tick
            await self.step(tick)

    def run(self, until_ps):
        return resume(self.advance)(until_ps)

    def check(self, handle, start, key, offset, length):
        return self.received[handle][start : start + length] == pattern(key, offset, length)

    def checksum(self, handle, start, length):
        return internet_sum(self.received[handle][start : start + length])

    def sdu(self, handle):
        return self.received[handle]

    def under_way(self, nic, vc, sink, key):
        return -1
