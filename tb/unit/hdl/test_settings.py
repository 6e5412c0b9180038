"""Models of settings: units, ranges, and what is said of a wrong value."""

from typing import Annotated

import pytest
from pydantic import Field, ValidationError

from bentpipe_hdl.settings import BER, CELLS, PPM, RATE, SIZE, TIME, Ber, Settings, from_document, quantity_of


class Example(Settings):
    delay_ps: Annotated[int, TIME.within(0, "1 s")] = Field(0, description="on the way")
    buffer_cells: Annotated[int, CELLS.within(1, 32768)] = Field(8192, description="shared")
    rate_bps: Annotated[int, RATE] | None = Field(None, description="of cells")
    window: Annotated[int, SIZE] = Field(1, description="octets")
    ber: tuple[Ber, ...] = Field((), description="both ways")
    clock_ppm: Annotated[float, PPM] = Field(20.0, description="off at most")


def message(call):
    with pytest.raises(ValidationError) as caught:
        call()
    return [(".".join(map(str, e["loc"])), e["msg"]) for e in caught.value.errors()]


def test_python_gives_base_units_or_texts():
    example = Example(delay_ps=5, rate_bps=64_000, window="1 MiB")  # pyright: ignore
    assert (example.delay_ps, example.rate_bps, example.window, example.clock_ppm) == (5, 64_000, 2**20, 20.0)


def test_a_document_gives_seconds_and_texts_without_the_base_unit_in_the_key():
    example = from_document(Example, {"delay": 0.5, "rate": "OC-3c", "ber": [0, 1e-9], "clock": 4})
    assert (example.delay_ps, example.rate_bps, example.ber) == (5 * 10**11, 149_760_000, (0.0, 1e-9))
    assert message(lambda: from_document(Example, {"delay_ps": 5}))[0][0] == "delay_ps"


def test_all_that_is_wrong_is_said_at_once_in_the_units_of_the_document():
    document = {"delay": "2 s", "buffer_cells": 0, "rate": 0, "ber": [0.5, True], "window": "1 s", "clock": 1001}
    assert message(lambda: from_document(Example, document)) == [
        ("delay", "'2 s' is out of range 0 s to 1 s"),
        ("buffer_cells", "0 is out of range 1..32768"),
        ("rate", "impossible rate 0: it must be more than 0"),
        ("window", "unknown unit of size 's' in '1 s'; known: B, octets, bytes, kB, MB, GB, KiB, MiB, GiB"),
        ("ber.0", "0.5 is out of range: 0, or 1e-15 to 0.001"),
        ("ber.1", "expected a number, not true"),
        ("clock", "1001 ppm is out of range 0 to 1000"),
    ]


@pytest.mark.parametrize("value", [True, 1.5, "9", None])
def test_a_number_of_cells_is_a_whole_number(value):
    assert "expected a whole number of cells" in message(lambda: Example(buffer_cells=value))[0][1]


def test_python_is_held_to_the_range_too():
    assert message(lambda: Example(delay_ps=10**12 + 1)) == [("delay_ps", "1000000000001 is out of range 0 s to 1 s")]


def test_a_member_without_a_description_is_no_setting():
    with pytest.raises(TypeError, match=r"Bare\.a has no description"):

        class Bare(Settings):
            a: int = 1


def test_the_quantity_of_a_member_is_found_in_its_type():
    found = [quantity_of(field) for field in Example.model_fields.values()]
    assert [q.name for q in found if q] == ["time", "cells", "rate", "size", "bit error ratio", "ppm"]
    assert found[0].bounds == ("0 s", "1 s") and found[4] == BER
