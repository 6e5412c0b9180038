"""An STS-3c terminal in cocotb: into frame from any bit offset, and after a loss of signal; prints the times."""

import re
from functools import partial

from benches.run import run
from bentpipe_hdl.sonet.geometry import Geometry
from bentpipe_hdl.sonet.terminal import SonetTerminal


def test_into_service_from_any_bit_and_after_a_loss_of_signal(tmp_path):
    run(partial(SonetTerminal, Geometry(3, 9)), "cocotb_nodes.bench_sonet", tmp_path)
    log = (tmp_path / "cocotb.log").read_text()
    times = re.findall(r"(?:in frame after|bit \d: in frame).*", log)
    print("\n".join(times))
    assert len(times) == 11
