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
)
