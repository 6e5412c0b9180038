"""The native simulator of any Amaranth design: random circuits, and designs of packages that are installed, against
Amaranth's simulator.

``python -m soak.simulator [--count N] [--first SEED]``. Exit code 1: a signal is different.
"""

import argparse
import sys
from importlib.util import find_spec

from amaranth.hdl import Value

from models.simulators import BOTH, compared, everything, unlike

ALL = ("sync", "fast", "falling", "cleared")


def spi_registers():
    from luna.gateware.interface.spi import SPIRegisterInterface

    design = SPIRegisterInterface(address_size=7, register_size=32)
    design.add_read_only_register(1, read=0xDEADBEEF)
    design.add_register(2, size=32)
    return design, [(design.spi.sck, 0.4), (design.spi.sdi, 0.3), (design.spi.cs, 0.01)]


def usb_device():
    from amaranth.hdl import DomainRenamer
    from luna.gateware.interface.utmi import UTMIInterface
    from luna.gateware.usb.usb2.device import USBDevice

    bus = UTMIInterface()
    device = USBDevice(bus=bus, handle_clocking=False)
    device.add_control_endpoint()
    often = {"rx_data": 0.5, "rx_active": 0.1, "rx_valid": 0.3, "tx_ready": 0.5, "line_state": 0.05}
    return DomainRenamer({"usb": "sync"})(device), [(getattr(bus, name), rate) for name, rate in often.items()]


FOREIGN = {"luna": (spi_registers, usb_device)}
"""Designs by the module that they are in."""


def foreign(make):
    found = []
    for kind in BOTH:
        design, inputs = make()
        found.append(everything(kind, design, [(Value.cast(value), rate) for value, rate in inputs], 150))
    return unlike(*found)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100, help="random circuits of each kind")
    parser.add_argument("--first", type=int, default=1000, help="seed of the first one")
    given = parser.parse_args()
    wrong = 0
    for seed in range(given.first, given.first + given.count):
        for domains, is_reset in ((("sync",), False), (ALL, False), (ALL, True)):
            difference = compared(seed, 40, domains, is_reset=is_reset)
            wrong += difference is not None
            if difference:
                print(f"seed {seed}, domains {domains}, reset {is_reset}: {difference}")
    for module, makers in FOREIGN.items():
        for make in makers if find_spec(module) else ():
            difference = foreign(make)
            wrong += difference is not None
            print(f"{module}, {make.__name__}: {difference or 'the same'}", flush=True)
        if not find_spec(module):
            print(f"{module}: not installed")
    sys.exit(int(wrong > 0))


if __name__ == "__main__":
    main()
