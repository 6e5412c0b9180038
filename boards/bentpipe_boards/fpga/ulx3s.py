"""ULX3S with an LFE5U-85F, speed grade 6; pins are those of amaranth-boards."""

from amaranth.lib import io

from bentpipe_boards.fpga.board import Board

__all__ = ["BOARD"]


def _platform():
    from amaranth_boards.ulx3s import ULX3S_85F_Platform

    return ULX3S_85F_Platform()


def _connect(m, platform, status):
    for k, light in enumerate(status):
        m.submodules[f"led{k}"] = led = io.Buffer("o", platform.request("led", k, dir="-"))
        m.d.comb += led.o.eq(light)
    # The ESP32 restarts the board if its GPIO0 is low
    module = platform.request("esp32", 0, dir="-")
    m.submodules.gpio0 = gpio0 = io.Buffer("o", module.gpio0)
    m.d.comb += gpio0.o.eq(1)


def _sdram(m, platform, chip):
    pins = platform.request("sdram", 0, dir="-")
    # Registers in the cells of the pins, so that all lines are equally late
    outs = {
        "ras": ~chip.command[2],
        "cas": ~chip.command[1],
        "we": ~chip.command[0],
        "ba": chip.bank,
        "a": chip.address,
    }
    fixed = {"clk_en": 1, "cs": 1, "dqm": 0}
    for name, value in outs.items():
        m.submodules[f"sdram_{name}"] = pin = io.FFBuffer("o", getattr(pins, name))
        m.d.comb += pin.o.eq(value)
    for name, value in fixed.items():
        m.submodules[f"sdram_{name}"] = pin = io.Buffer("o", getattr(pins, name))
        m.d.comb += pin.o.eq(value)
    m.submodules.sdram_clk = clock = io.DDRBuffer("o", pins.clk, o_domain="chip")
    m.d.comb += [clock.o[0].eq(1), clock.o[1].eq(0)]
    m.submodules.sdram_dq = data = io.FFBuffer("io", pins.dq)
    m.d.comb += [data.o.eq(chip.out), data.oe.eq(chip.drives), chip.data.eq(data.i)]


BOARD = Board(
    name="ulx3s-85f",
    title="ULX3S with an LFE5U-85F",
    device="LFE5U-85F",
    platform=_platform,
    loader="ulx3s",
    cable="the port US1",
    reference_hz=25_000_000,
    clock_hz=50_000_000,
    plan="line",
    connect=_connect,
    sdram=_sdram,
)
