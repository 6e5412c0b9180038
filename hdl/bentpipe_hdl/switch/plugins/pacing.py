"""When ports may send: load-reactive lines, slots of frames."""

from ..frame_clock import FrameClock
from ..rate_controller import RateController
from .base import Plugin

__all__ = ["Frames", "Reactive"]


class Reactive(Plugin):
    options = ("reactive",)
    core = {"port_clock": {"reactive": True}}  # noqa: RUF012

    def build(self, with_):
        self.gate = with_.m.submodules.rates = RateController(
            with_.slot, ports=with_.ports, count_bits=with_.count_bits
        )
        self.due = self.gate.due

    def periods(self):
        return self.gate.periods

    def attach(self, m, csr, tick):
        self.gate.attach(m, csr, tick)


class Frames(Plugin):
    options = ("frames",)
    core = {"port_clock": {"framed": True}}  # noqa: RUF012

    def build(self, with_):
        self.gate = with_.m.submodules.frames = FrameClock(with_.slot, ports=with_.ports)
        self.due = self.gate.due

    def attach(self, m, csr, tick):
        self.gate.attach(m, csr, tick)
