"""OAM flows in the switch, on both datapaths: what is taken, what goes back, which states VCs are in, and when."""

import pytest
from amaranth.hdl import ResetInserter, Signal
from amaranth.sim import Simulator

from bentpipe_hdl.lookup_table import lookup_table
from bentpipe_hdl.nodes import Switch
from bentpipe_hdl.switch.control import switch_registers
from bentpipe_hdl.switch.options import options_word
from bentpipe_hdl.switch.options.oam.control import MADE, STATES, TAKEN
from models.cell import Cell, Header
from models.oam import fields, octets
from unit.hdl.bench import WIDTHS, Arrival, Bench
from unit.hdl.bench import run_compiled as run

VCS, PORTS, CELLS = 8, 3, 24
SEGMENT, END = 4, 5
HERE = bytes(range(1, 17))
OTHER = bytes(range(101, 117))
NUMBER = int.from_bytes(HERE, "big")

# VCs 2k and 2k + 1 are each other's way back: the even ones from port 0 to port 1, the odd ones from port 1 to port 0.


def switch(width):
    return Switch(width=width, vcs=VCS, cells=CELLS, ports=PORTS, options=options_word(["oam"]))


async def start(bench, points, *, vcs=2, interval=0, location=HERE):
    await bench.reset()

    def write(csr):
        csr.processing_delay, csr.oam_last = 1, vcs - 1
        for k in range(4):
            csr.oam_location[k] = int.from_bytes(location[4 * k : 4 * k + 4], "little")
        for port in range(PORTS):
            csr.period[port] = 1 << 16
        for k in range(vcs):
            csr.oam_point[k] = {"port": k & 1, "back": k ^ 1, **points.get(k, {})}
            csr.vc_policy[k] = {"limit": CELLS, "port": 1 - (k & 1), "enabled": 1}
            csr.vc_header[k] = {"vci": 200 + k}
        lookup_table(VCS, {(k & 1, 0, 100 + k): k for k in range(vcs)}).write(csr)
        csr.oam_interval = interval

    await bench.apply(write)


def user(vc, mark=0):
    return Arrival(Cell(Header(0, 100 + vc), bytes([vc, mark]) * 24), vc & 1)


def oam(vc, flow, name="", payload=None, **given):
    return Arrival(Cell(Header(0, 100 + vc, flow), payload or octets(name, **given)), vc & 1)


def out(bench):
    """``(tick, VC, PTI, function, fields)`` of OAM cells that left; of others ``(tick, VC, PTI, None, mark)``."""
    found = []
    for cell in bench.came_out:
        header = cell.as_header()
        vc = header.vci - 200
        assert cell.port == 1 - (vc & 1)
        what = fields(cell.payload) if header.pti & 4 else (None, cell.payload[1])
        assert what is not None, "a damaged cell"
        found.append((cell.tick, vc, header.pti, *what))
    bench.came_out.clear()
    return found


def seen(bench):
    """The same without ticks and fields."""
    return [(vc, pti, function) for _, vc, pti, function, _ in out(bench)]


async def taken(bench, vc):
    """The counts of the OAM cells of a VC that were taken."""
    counts = {name: await bench.get("oam_taken", len(TAKEN) * vc + k) for k, name in enumerate(TAKEN)}
    return {name: count for name, count in counts.items() if count}


async def made(bench, vc):
    counts = {name: await bench.get("oam_made", len(MADE) * vc + k) for k, name in enumerate(MADE)}
    return {name: count for name, count in counts.items() if count}


async def states(bench, vc):
    word = await bench.get("oam_state", vc)
    return {name for k, name in enumerate(STATES) if word >> k & 1}


def each(test):
    """The test on both datapaths, which do the same in the same ticks."""

    @pytest.mark.parametrize("width", WIDTHS)
    def both(width):
        run(switch(width), test)

    both.__name__ = test.__name__
    both.__doc__ = test.__doc__
    return both


@each
async def test_cells_pass_where_their_flow_has_no_end(bench):
    await start(bench, {})
    for flow in (SEGMENT, END):
        for name in ("ais", "rdi", "cc", "loopback"):
            await bench.tick(oam(0, flow, name))
    await bench.ticks(10)
    assert seen(bench) == [(0, flow, name) for flow in (SEGMENT, END) for name in ("ais", "rdi", "cc", "loopback")]
    assert await taken(bench, 0) == {}


@each
async def test_cells_are_taken_at_the_end_of_their_flow_alone(bench):
    await start(bench, {0: {"segment_end": 1}, 1: {"end": 1}})
    for vc in (0, 1):
        for flow in (SEGMENT, END):
            await bench.tick(oam(vc, flow, "cc"))
        await bench.tick(user(vc))
    await bench.ticks(10)
    assert seen(bench) == [(0, END, "cc"), (0, 0, None), (1, SEGMENT, "cc"), (1, 0, None)]
    assert await taken(bench, 0) == await taken(bench, 1) == {"cc": 1}


ENDS = {"segment_end": 1, "end": 1}


LOOPED = [
    (ENDS, SEGMENT, b"\xff" * 16, True),
    (ENDS, END, b"\xff" * 16, True),
    (ENDS, SEGMENT, HERE, True),
    (ENDS, END, HERE, True),
    (ENDS, SEGMENT, bytes(16), True),
    (ENDS, END, bytes(16), False),
    (ENDS, SEGMENT, b"\x6a" * 16, False),
    (ENDS, END, OTHER, False),
    ({"loops": 1}, SEGMENT, HERE, True),
]
"""What a VC's flows have here, the flow and the location of a loopback cell, and whether it goes back."""


@each
async def test_a_loopback_cell_goes_back_as_its_location_says(bench):
    await start(bench, {})
    looped = 0
    for number, (point, flow, location, loops) in enumerate(LOOPED):
        await bench.set("oam_point", {"back": 1, **point}, 0)
        given = {"tag": 0xDEADBEEF + number, "location": int.from_bytes(location, "big"), "source": 0x1234 << 100}
        payload = octets("loopback", **given, zero=0x2A, reserved=0x15, unused=0x0102030405060708)
        await bench.tick(oam(0, flow, payload=payload))
        await bench.ticks(8)
        left = out(bench)
        assert bool(left) == loops, LOOPED[number]
        looped += loops
        if loops:
            assert [(vc, pti, name) for _, vc, pti, name, _ in left] == [(1, flow, "loopback")]
            as_it_was = fields(payload)[1] | {"indication": 0}
            del as_it_was["crc"]
            assert {name: value for name, value in left[0][4].items() if name != "crc"} == as_it_was
    assert await taken(bench, 0) == {"looped": looped, "other": len(LOOPED) - looped}
    assert await made(bench, 1) == {"loopback": looped}


@each
async def test_a_connecting_point_passes_what_is_not_for_it(bench):
    await start(bench, {0: {"loops": 1}})
    for location in (b"\xff" * 16, bytes(16), b"\x6a" * 16, OTHER):
        await bench.tick(oam(0, SEGMENT, "loopback", location=int.from_bytes(location, "big")))
    await bench.tick(oam(0, SEGMENT, "loopback", location=NUMBER, indication=0))
    await bench.tick(oam(0, END, "loopback", location=NUMBER))
    await bench.tick(oam(0, SEGMENT, "ais", defect_location=NUMBER))
    await bench.ticks(10)
    assert seen(bench) == [(0, SEGMENT, "loopback")] * 5 + [(0, END, "loopback"), (0, SEGMENT, "ais")]


@each
async def test_a_node_without_a_location_loops_none(bench):
    await start(bench, {0: {"loops": 1}, 1: ENDS}, location=b"\x6a" * 16)
    nowhere = int.from_bytes(b"\x6a" * 16, "big")
    await bench.tick(oam(0, SEGMENT, "loopback", location=nowhere))
    await bench.tick(oam(1, END, "loopback", location=nowhere))
    await bench.ticks(10)
    assert seen(bench) == [(0, SEGMENT, "loopback")]
    assert await taken(bench, 1) == {"other": 1}


@each
async def test_what_is_damaged_is_counted_and_no_more(bench):
    """A bit of each field of each kind of cell; also in what a connecting point would send back."""
    await start(bench, {0: ENDS, 1: {"loops": 1}})
    count = 0
    for name in ("ais", "rdi", "cc", "loopback"):
        for bit in (0, 5, 15, 40, 100, 200, 300, 373, 374, 383):
            payload = bytearray(octets(name))
            payload[bit // 8] ^= 0x80 >> bit % 8
            await bench.tick(oam(0, END, payload=bytes(payload)))
            count += 1
    payload = bytearray(octets("loopback", location=NUMBER))
    payload[40] ^= 1
    await bench.tick(oam(1, SEGMENT, payload=bytes(payload)))
    await bench.ticks(10)
    assert out(bench) == []
    assert await taken(bench, 0) == {"bad": count}
    assert await taken(bench, 1) == {"bad": 1}
    assert await states(bench, 0) == set()


@each
async def test_cells_of_other_functions_say_nothing_here(bench):
    await start(bench, {0: ENDS})
    for given in ({"function": 0b1100}, {"oam_type": 0b0010}):
        await bench.tick(oam(0, END, "cc", **given))
    for name in ("ais", "rdi"):
        await bench.tick(oam(0, SEGMENT, name))
    await bench.tick(oam(0, END, "loopback", indication=0))
    await bench.ticks(4)
    assert await taken(bench, 0) == {"other": 5}
    assert await states(bench, 0) == set()


@each
async def test_seven_cells_wait_to_go_back_and_the_eighth_is_lost(bench):
    """Cells from outside go first: while one comes in each tick, none goes back."""
    await start(bench, {0: ENDS}, vcs=4)
    for k in range(9):
        await bench.tick(oam(0, END, "loopback", tag=k))
    for k in range(3):
        await bench.tick(user(2, k))
    await bench.ticks(40)
    left = out(bench)
    assert [cell[4]["tag"] for cell in left if cell[3]] == list(range(7))
    assert await taken(bench, 0) == {"looped": 7, "no_place": 2}
    assert await bench.get("injected") == 7
    await bench.tick(oam(0, END, "loopback", tag=77))
    await bench.ticks(10)
    assert [cell[4]["tag"] for cell in out(bench)] == [77]


@each
async def test_a_round_trip_is_measured(bench):
    await start(bench, {1: ENDS})
    for tag, (flow, segment) in enumerate(((END, 0), (SEGMENT, 1)), 1):
        await bench.set("oam_request", {"vc": 0, "segment": segment})
        await bench.ticks(8)
        [(tick, vc, pti, name, message)] = out(bench)
        assert (vc, pti, name) == (0, flow, "loopback")
        assert message["indication"] == 1
        assert (message["tag"], message["location"], message["source"]) == (tag, (1 << 128) - 1, NUMBER)
        assert message["unused"] == fields(octets("loopback"))[1]["unused"]
        await bench.ticks(20)
        back = {"indication": 0, "location": message["location"], "source": NUMBER}
        await bench.tick(oam(1, flow, "loopback", tag=tag - 1, **back))  # another one
        came = bench.now
        await bench.tick(oam(1, flow, "loopback", tag=tag, **back))
        await bench.tick(oam(1, flow, "loopback", tag=tag, **back))  # again
        await bench.ticks(4)
        assert await bench.get("oam_answered") == tag
        assert await bench.get("oam_answer") == tag
        assert await bench.get("oam_delay") == came - tick + 1  # it was a tick in the switch
    assert await taken(bench, 1) == {"returned": 6}
    assert await made(bench, 0) == {"loopback": 2}


@each
async def test_a_request_goes_to_the_location_that_is_given(bench):
    await start(bench, {1: ENDS})
    for k in range(4):
        await bench.set("oam_target", int.from_bytes(OTHER[4 * k : 4 * k + 4], "little"), k)
    await bench.set("oam_request", {"vc": 0, "segment": 1})
    await bench.ticks(8)
    [(*_, message)] = out(bench)
    assert message["location"] == int.from_bytes(OTHER, "big")


def test_a_switch_of_more_vcs_than_its_tables_have_place_for_is_refused():
    assert switch_registers(vcs=1024, options=options_word(["oam"]))["oam_made"].size == 4096
    with pytest.raises(ValueError, match="OAM is of 1024 VCs at most, not 4096"):
        switch_registers(vcs=4096, options=options_word(["oam"]))


# States and timers. A scan of two VCs takes four ticks; nothing else goes on.

INTERVAL = 24


async def until(bench, first):
    """Go on so that tick ``first`` is the next one."""
    await bench.ticks(first - bench.now)


async def changes(bench, since=0):
    """``(tick, VC, states)`` of each change of state but the first ones."""
    found = []
    for number in range(since, await bench.get("oam_changes")):
        low, high = [await bench.get(f"oam_log_{half}", number % 256) for half in ("low", "high")]
        in_states = {name for k, name in enumerate(STATES) if high >> 16 + k & 1}
        found.append(((high & 0xFFFF) << 32 | low, high >> 20, in_states))
    return found


def scan_of(bench, number, vc=0):
    """The tick in which a scan looks at a VC, in ticks in which nothing comes: the first is an interval after that in
    which it was set. It begins two ticks after it was due."""
    return bench.began + number * INTERVAL + 2 + vc


async def begin(bench, points, **given):
    await start(bench, points, interval=INTERVAL, **given)
    bench.began = bench.now


@each
async def test_ais_state_begins_with_a_cell_and_ends_by_itself(bench):
    """The sixth scan after it: between five and six half seconds."""
    await begin(bench, {0: {"end": 1}})
    await bench.ticks(INTERVAL // 2)
    came = bench.now
    await bench.tick(oam(0, END, "ais"))
    await bench.tick()
    assert await states(bench, 0) == {"ais"}
    await until(bench, scan_of(bench, 2) + 5)
    await bench.tick(oam(0, END, "ais"))  # the state goes on
    await until(bench, scan_of(bench, 9))
    assert await changes(bench) == [(came + 1, 0, {"ais"}), (scan_of(bench, 8), 0, set())]


@each
async def test_ais_state_ends_with_a_user_cell_or_a_continuity_check(bench):
    await begin(bench, {0: {"end": 1}})
    came = bench.now
    for cell in (user(0), oam(0, END, "cc")):
        await bench.tick(oam(0, END, "ais"))
        await bench.ticks(2)
        await bench.tick(cell)
        await bench.ticks(2)
    assert await changes(bench) == [
        (came + 1, 0, {"ais"}), (came + 4, 0, set()), (came + 7, 0, {"ais"}), (came + 10, 0, set()),
    ]  # fmt: skip


@each
async def test_other_cells_do_not_end_ais_state(bench):
    await begin(bench, {0: {**ENDS, "loops": 1}})
    await bench.tick(oam(0, END, "ais"))
    for cell in (oam(0, SEGMENT, "cc"), oam(0, END, "rdi"), oam(0, END, "loopback"), oam(0, 6, payload=bytes(48))):
        await bench.tick(cell)
    await bench.tick(user(1))
    await bench.ticks(3)
    assert "ais" in await states(bench, 0)


@each
async def test_rdi_state_ends_by_itself_alone(bench):
    await begin(bench, {0: {"end": 1}})
    came = bench.now
    await bench.tick(oam(0, END, "rdi"))
    await bench.tick(user(0))
    await bench.tick(oam(0, END, "cc"))
    await until(bench, scan_of(bench, 7))
    assert await changes(bench) == [(came + 1, 0, {"rdi"}), (scan_of(bench, 6), 0, set())]


@each
async def test_while_in_ais_state_rdi_goes_back_each_second(bench):
    await begin(bench, {0: {"end": 1}})
    await bench.ticks(5)
    came = bench.now
    for k in range(4):
        await until(bench, came + k * 2 * INTERVAL)
        await bench.tick(oam(0, END, "ais"))
    await until(bench, scan_of(bench, 20))
    left = out(bench)
    assert [(vc, pti, name) for _, vc, pti, name, _ in left] == [(1, END, "rdi")] * len(left)
    first, *others = (cell[0] for cell in left)
    assert first - came < 10  # at once
    # then with every other scan; the last AIS cell came before the seventh, and the twelfth ended the state
    assert [tick - scan_of(bench, number) for tick, number in zip(others, range(2, 12, 2), strict=True)] == [3] * 5
    assert [cell[4]["defect_location"] for cell in left] == [int.from_bytes(b"\x6a" * 16, "big")] * 6


@each
async def test_ais_goes_downstream_at_once_and_each_second_while_a_port_has_a_defect(bench):
    await begin(bench, {k: {"alarms": 1} for k in range(4)}, vcs=4)
    await bench.ticks(10)
    at = bench.now
    await bench.set("oam_defects", 0b001)
    await until(bench, scan_of(bench, 6) - 5)
    await bench.set("oam_defects", 0)
    await until(bench, scan_of(bench, 12))
    left = out(bench)
    assert [(vc, pti, name) for _, vc, pti, name, _ in left] == [(0, END, "ais"), (2, END, "ais")] * 3
    assert [cell[4]["defect_location"] for cell in left] == [NUMBER] * 6
    ticks = [cell[0] for cell in left]
    assert ticks[0] - at < 8
    assert ticks[1] - at < 16
    assert [scan_of(bench, n) < tick < scan_of(bench, n) + 16 for tick, n in zip(ticks[2:], (2, 2, 4, 4), strict=True)]
    assert await bench.get("oam_changes") == 0  # connecting points have no states


@each
async def test_an_end_point_sends_no_ais_but_rdi_where_its_port_has_a_defect(bench):
    await begin(bench, {0: {"end": 1, "alarms": 1}, 1: {"alarms": 1}})
    await bench.set("oam_defects", 0b001)
    await bench.ticks(10)
    assert seen(bench) == [(1, END, "rdi")]


@each
async def test_continuity_is_lost_when_nothing_comes_and_back_with_the_next_cell(bench):
    """The eighth scan after the last cell: between seven and eight half seconds."""
    await begin(bench, {0: {"end": 1, "end_sink": 1}})
    await bench.tick(user(0))
    await until(bench, scan_of(bench, 5) - 5)
    await bench.tick(oam(0, END, "cc"))
    await until(bench, scan_of(bench, 13))
    assert await changes(bench) == [(scan_of(bench, 12), 0, {"end_loc"})]
    assert [(vc, pti, name) for vc, pti, name in seen(bench) if name] == [(1, END, "rdi")]
    back = bench.now
    await bench.tick(user(0))
    await bench.ticks(3)
    assert await changes(bench, 1) == [(back + 1, 0, set())]


@each
async def test_at_the_end_of_a_segment_loss_of_continuity_is_told_downstream(bench):
    await begin(bench, {0: {"segment_end": 1, "segment_sink": 1, "alarms": 1}})
    await until(bench, scan_of(bench, 5) + 5)
    await bench.tick(oam(0, SEGMENT, "cc"))
    await bench.tick(oam(0, END, "cc"))  # is not of the segment
    await until(bench, scan_of(bench, 14))
    assert await changes(bench) == [(scan_of(bench, 13), 0, {"segment_loc"})]
    assert seen(bench) == [(0, END, "cc"), (0, END, "ais")]
    await bench.tick(oam(0, SEGMENT, "cc"))
    await bench.ticks(3)
    assert await states(bench, 0) == set()


@pytest.mark.parametrize("always", [0, 1])
@pytest.mark.parametrize("width", WIDTHS)
def test_a_source_checks_continuity_when_no_user_cell_went(width, always):
    async def test(bench):
        await begin(bench, {0: {"segment_source": 1, "end_source": 1, "always": always}})
        await until(bench, scan_of(bench, 2))
        for _ in range(4):  # until the tenth scan
            await bench.tick(user(0))
            await bench.ticks(2 * INTERVAL - 1)
        await until(bench, scan_of(bench, 14) + 10)
        left = [(tick, pti, name) for tick, vc, pti, name, _ in out(bench) if name]
        ticks = {pti: [tick for tick, flow, name in left if flow == pti and name == "cc"] for pti in (SEGMENT, END)}
        scans = [1, 3, 5, 7, 9, 11, 13] if always else [1, 11, 13]
        assert [tick - scan_of(bench, n) for tick, n in zip(ticks[END], scans, strict=True)] == [3] * len(scans)
        assert [tick - scan_of(bench, n) for tick, n in zip(ticks[SEGMENT], scans, strict=True)] == [5] * len(scans)

    run(switch(width), test)


@each
async def test_a_vc_that_is_set_up_again_is_in_no_state(bench):
    await begin(bench, {0: {**ENDS, "end_sink": 1}})
    await bench.tick(oam(0, END, "ais"))
    await bench.tick(oam(0, END, "rdi"))
    await until(bench, scan_of(bench, 4))
    await bench.set("vc_policy", 0, 0)
    await bench.set("oam_point", {**ENDS, "end_sink": 1, "back": 1}, 0)
    await bench.set("vc_policy", {"limit": CELLS, "port": 1, "enabled": 1}, 0)
    assert await states(bench, 0) == set()
    again = await bench.get("oam_changes")
    await until(bench, scan_of(bench, 13))
    assert await changes(bench, again) == [(scan_of(bench, 10), 0, {"end_loc"})]  # the seventh scan from here


@pytest.mark.parametrize("width", WIDTHS)
def test_after_reset_there_is_nothing_of_before(width):
    node, reset = switch(width), Signal()

    async def test(ctx):
        bench = Bench(ctx, node)
        await begin(bench, {0: {"end": 1, "end_sink": 1}})
        for name in ("ais", "rdi", "loopback"):
            await bench.tick(oam(0, END, name))
        await bench.ticks(12)
        assert await taken(bench, 0)
        assert await made(bench, 1)
        assert await states(bench, 0)
        ctx.set(reset, 1)
        await ctx.tick()
        ctx.set(reset, 0)
        await begin(bench, {0: {"end": 1, "end_sink": 1}})
        assert not await taken(bench, 0)
        assert not await made(bench, 1)
        assert not await states(bench, 0)
        assert await bench.get("oam_changes") == 0
        bench.came_out.clear()
        await bench.ticks(12)
        assert out(bench) == []

    simulator = Simulator(ResetInserter(reset)(node))
    simulator.add_clock(1e-6)
    simulator.add_testbench(test)
    simulator.run()


@each
async def test_a_shorter_half_second_holds_from_when_it_is_written(bench):
    await begin(bench, {0: {"end": 1}})
    await bench.ticks(5)
    await bench.tick(oam(0, END, "ais"))
    await bench.set("oam_interval", 10)
    at = bench.now
    await bench.ticks(80)
    assert (await changes(bench))[-1] == (at + 60 + 2, 0, set())


@each
async def test_half_seconds_that_a_full_switch_has_no_tick_for_are_counted(bench):
    """A scan waits for ticks in which no cell comes."""
    await begin(bench, {0: {"end": 1}})
    await bench.tick(oam(0, END, "ais"))
    await until(bench, scan_of(bench, 1) - 5)
    while bench.now < scan_of(bench, 4) - 15:
        await bench.tick(user(1))
    await bench.ticks(10)
    assert await bench.get("oam_late") == 2
    await until(bench, scan_of(bench, 8))
    assert (await changes(bench))[-1] == (scan_of(bench, 7), 0, set())  # one of the six was missed


@each
async def test_times_wrap(bench):
    bench.now = (1 << 48) - 3 * INTERVAL
    await begin(bench, {0: {"end": 1}})
    await bench.tick(oam(0, END, "ais"))
    await bench.ticks(8 * INTERVAL)
    assert [(tick - bench.began) % (1 << 48) for tick, *_ in await changes(bench)] == [1, 6 * INTERVAL + 2]
