"""One declaration class for the settings of TCP and of applications; it needs no models."""

from __future__ import annotations

import subprocess
import sys

import pytest

from bentpipe.apps.registry import APPLICATIONS
from bentpipe.declarations import FLAG, TEXT, Setting
from bentpipe.tcp.config import SETTINGS, TcpConfig
from bentpipe_hdl.units import COUNT, NUMBER, TIME

WITHOUT = """
import sys
sys.modules["pydantic"] = sys.modules["pydantic_core"] = None  # importing them fails
from bentpipe.apps.registry import APPLICATIONS
from bentpipe.tcp.config import TcpConfig
block = APPLICATIONS["cbr"].by_name["block"]
print(block.read("2 kB"), TcpConfig(variant="sack").offers_sack)
"""


def test_tcp_and_applications_declare_their_settings_without_pydantic() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True)
    assert (done.stderr, done.stdout) == ("", "2000 True\n")
    assert all(isinstance(setting, Setting) for setting in SETTINGS)
    assert all(isinstance(setting, Setting) for kind in APPLICATIONS.values() for setting in kind.settings)


@pytest.mark.parametrize(
    ("of", "given", "expected"),
    [
        (TIME, "5 ms", 5 * 10**9),
        (COUNT.within(1, 9), 9, 9),
        (COUNT.within(1, 9), 10, "10 is out of range 1..9"),
        (NUMBER.within(0.0, 1.0), 1, 1.0),
        (FLAG, True, True),
        (FLAG, 1, "expected true or false, not 1"),
        (TEXT, "any", "any"),
        (("a", "b"), "b", "b"),
        (("a", "b"), "c", "unknown value 'c'; known: a, b"),
        (("a", "b"), 1, "expected a text, not 1"),
    ],
)
def test_a_value_is_read_in_base_units_or_refused(of: object, given: object, expected: object) -> None:
    setting = Setting("name", of, None, "text")  # pyright: ignore[reportArgumentType]
    if isinstance(expected, str) and expected != given:
        with pytest.raises(ValueError, match=expected):
            setting.read(given)
    else:
        found = setting.read(given)
        assert (found, type(found)) == (expected, type(expected))


def test_a_read_value_is_not_checked_again_by_itself() -> None:
    """A rule between settings is checked in both ways."""
    with pytest.raises(ValueError, match=r"initial_cwnd must be 1\.\.1048576, not 0"):
        TcpConfig(initial_cwnd=0)
    assert TcpConfig.of_read({"initial_cwnd": 0}).initial_cwnd == 0
    for make in (lambda values: TcpConfig(**values), TcpConfig.of_read):
        with pytest.raises(ValueError, match="mss must be 0"):
            make({"mss": 5})
