"""Each node in cocotb on Verilator, at both widths, against the models: the benches of ``tb/unit/hdl``."""

import json

import pytest

from benches.run import run
from bentpipe_hdl.cell import NARROW, WIDE
from cocotb_nodes.bench_node import ENVIRONMENT, taken

WIDTHS = [WIDE, NARROW]


def each_width(test, **parameters):
    return [(test, {"width": width, **parameters}) for width in WIDTHS]


CASES = {
    "nic": [
        ("test_reassembly", {"width": WIDE, "seed": 1}),
        ("test_reassembly", {"width": NARROW, "seed": 0}),
        *each_width("test_segmentation"),
        *each_width("test_pacing_conforms_and_reaches_its_rate"),
        *each_width("test_vcs_without_a_rate_share_the_line"),
        *each_width("test_posts_that_cannot_be_taken_are_counted_and_forgotten"),
    ],
    "switch": [
        *each_width("test_random_traffic", seed=0),
        *each_width("test_random_traffic", seed=1),
        *each_width("test_rate_of_a_saturated_port"),
        *each_width("test_processing_delay_of_an_idle_switch", delay=17),
        *each_width("test_high_water_starts_anew_when_written"),
        *each_width("test_unused_slot_of_the_lookup_is_an_unknown_vc"),
        ("test_nni_vpi_has_12_bits", {}),
    ],
    "link": [
        *each_width("test_an_error_at_each_place_of_the_payload"),
        *each_width("test_header_check_follows_the_automaton"),
        *each_width("test_a_cell_that_came_in_bad_stays_bad"),
        *each_width("test_delay", delay=3),
        *each_width("test_a_full_delay_memory_loses_the_cell_and_counts_it"),
        *each_width("test_listed_losses", delay_cells=0),
        *each_width("test_listed_losses", delay_cells=16),
    ],
}


def _name(kind, test, parameters):
    return "-".join([kind, test.removeprefix("test_"), *map(str, parameters.values())])


ALL = [(kind, test, parameters) for kind, cases in CASES.items() for test, parameters in cases]


@pytest.mark.parametrize(("kind", "test", "parameters"), ALL, ids=[_name(*case) for case in ALL])
def test_node(kind, test, parameters, tmp_path):
    spec = [f"unit.hdl.test_{kind}_rtl", test, parameters]
    node, _, _ = taken(*spec)
    run(node, "cocotb_nodes.bench_node", tmp_path, **{ENVIRONMENT: json.dumps(spec)})
