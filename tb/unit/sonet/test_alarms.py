"""Path alarms by themselves: frames that were missed do not count as frames in a row."""

from amaranth.sim import Simulator

from bentpipe_hdl.sonet.alarms import PathAlarms

RDI = 0b101 << 1
"""G1 of a path with a server defect (GR-253 table 3-6), in ten frames in a row (clause 6.2.1.3.2)."""


def declared(frames: list[int]) -> bool:
    """Return whether RDI-P is there after these numbers of frames with the code, each followed by a restart."""
    alarms = PathAlarms()
    found = []

    async def bench(ctx):
        ctx.set(alarms.expected, 0x13)
        ctx.set(alarms.g1, RDI)
        for k, count in enumerate(frames):
            ctx.set(alarms.restart, k > 0)
            await ctx.tick()
            ctx.set(alarms.restart, 0)
            for _ in range(count):
                ctx.set(alarms.g1_strobe, 1)
                await ctx.tick()
                ctx.set(alarms.g1_strobe, 0)
                await ctx.tick()
        found.append(ctx.get(alarms.rdi_p))

    simulator = Simulator(alarms)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return bool(found[0])


def test_rdi_needs_ten_frames_in_a_row_without_frames_missed_between():
    assert declared([10])
    assert not declared([9])
    assert not declared([9, 9])
    assert declared([9, 10])
