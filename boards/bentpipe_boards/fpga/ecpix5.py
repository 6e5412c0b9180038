"""ECPIX-5 with an LFE5UM5G-85F, speed grade 8; pins are those of amaranth-boards."""

from amaranth.lib import io

from bentpipe_boards.fpga.board import Board
from bentpipe_boards.fpga.ethernet import Rgmii

__all__ = ["BOARD"]


def _platform():
    from amaranth_boards.ecpix5 import ECPIX585Platform

    return ECPIX585Platform()


def _connect(m, platform, status):
    # Four lights of three colours each: the first four in green, and the fifth in the blue of the last one
    lights = [platform.request("rgb_led", k, dir="-") for k in range(4)]
    pins = {f"led{k}": light.g for k, light in enumerate(lights)} | {"led4": lights[3].b}
    dark = {f"{colour}{k}": getattr(light, colour) for k, light in enumerate(lights) for colour in "rb"}
    del dark["b3"]
    for (name, pin), shown in zip(pins.items(), status, strict=True):
        m.submodules[name] = led = io.Buffer("o", pin)
        m.d.comb += led.o.eq(shown)
    for name, pin in dark.items():
        m.submodules[name] = off = io.Buffer("o", pin)
        m.d.comb += off.o.eq(0)


BOARD = Board(
    name="ecpix5-85f",
    title="ECPIX-5 with an LFE5UM5G-85F",
    device="LFE5UM5G-85F",
    platform=_platform,
    loader="ecpix5",
    cable="the Micro-USB port of the debug interface",
    reference_hz=100_000_000,
    clock_hz=75_000_000,
    plan="line",
    connect=_connect,
    rgmii=Rgmii("eth_rgmii", rx_delay_s=0.0, tx_delay_s=2e-9),  # as LiteX' target for this board has them
    ddr3="ddr3",
)
