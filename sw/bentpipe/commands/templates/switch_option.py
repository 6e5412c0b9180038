"""Option of a switch ``my_model``: drops every n-th cell of each VC.

Change the admission stage (``decide``), the register and the key. The stage is RTL: the same source is simulated and
built for an FPGA. ``bentpipe help keys --plugin my_model.py`` shows the key, ``bentpipe rtl switch --plugin my_model.py
--shape options=my_model`` writes the Verilog.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Final

from pydantic import Field

from bentpipe_hdl.registers import Register, Registers
from bentpipe_hdl.settings import COUNT, Settings
from bentpipe_hdl.switch.core.admission import Rank, Stage, Verdict
from bentpipe_hdl.switch.core.vc_table import VcField
from bentpipe_hdl.switch.options import Option, Setup
from bentpipe_hdl.switch.options.plugin import Order, Plugin

__all__ = ["OPTIONS", "MyModel"]


class MyModelStage(Stage):
    """Counts the cells of each VC, and objects to every n-th."""

    reason = "limit"
    fields = (VcField("my_model_count", 16, "state"),)

    def __init__(self, every: Any) -> None:
        self._every = every

    def decide(self, m: Any, slot: Any, cell: Any) -> Verdict:
        drops = (self._every != 0) & (cell.state.my_model_count + 1 >= self._every)
        with m.If(~drops):
            m.d.comb += cell.new_state.my_model_count.eq(cell.state.my_model_count + 1)
        with m.Else():
            m.d.comb += cell.new_state.my_model_count.eq(0)
        return Verdict(drops)


class MyModelHardware(Plugin):
    """The stage, with the register as its setting."""

    options = ("my_model",)
    order = Order.ADMIT

    def build(self, build: Any, others: Any) -> None:
        self.stage = MyModelStage(build.csr.register("my_model_every"))

    def stages(self) -> Iterator[tuple[int, Stage]]:
        yield Rank.LIMIT, self.stage


class MyModelSettings(Settings):
    """Key in ``[network.switches.NAME]``."""

    my_model: Annotated[int, COUNT.within(0, 65535)] = Field(
        default=0, description="every cell of a VC with this number is dropped; 0: none"
    )


class MyModel(Option):
    """An option that drops every n-th cell of each VC."""

    name = "my_model"
    switch_settings = MyModelSettings

    def wanted(self, setup: Setup) -> bool:
        return setup.settings.my_model > 0

    def hardware(self) -> type[Plugin]:
        return MyModelHardware

    def registers(self, *, vcs: int, cells: int, ports: int) -> tuple[Register, ...]:
        del vcs, cells, ports
        return (
            Register("my_model_every", 0x0800, "every cell of a VC with this number is dropped; 0: none", "rw", 16),
        )

    def configure(self, csr: Registers, setup: Setup) -> None:
        csr.my_model_every = setup.settings.my_model


OPTIONS: Final = (MyModel(),)
