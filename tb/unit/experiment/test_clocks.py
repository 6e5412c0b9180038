"""The clocks of an experiment's lines: drawn from the seed, within the tolerance, exact where that is asked for."""

import copy
import tomllib

import pytest

from bentpipe.errors import ConfigError
from bentpipe.experiment.build.network import build_network
from bentpipe.experiment.document.source import Source
from bentpipe.experiment.resolve.parse import parse_experiment
from unit.experiment.test_parse import TEXT


def experiment(changes=None, **options):
    document = tomllib.loads(TEXT)
    for key, value in (changes or {}).items():
        table = document
        *path, last = key.split(".")
        for part in path:
            table = table.setdefault(part, {})
        table[last] = value
    return parse_experiment(copy.deepcopy(document), Source("x.toml", TEXT), **options)


def offsets(e):
    return [ppm for line in e.network.lines for ppm in line.clock_ppm] + [
        ppm for host in e.network.hosts for ppm in host.line_clock_ppm
    ]


def test_every_clock_is_its_own_and_within_20_ppm_around_its_mean():
    drawn = [ppm for seed in range(200) for ppm in offsets(experiment(seed=seed))]
    assert len(set(offsets(experiment()))) == 6
    assert -40 <= min(drawn) < -39 and -1 < max(drawn) <= 0
    assert sum(drawn) / len(drawn) == pytest.approx(-20, abs=1)


def test_the_seed_draws_them():
    assert offsets(experiment(seed=3)) == offsets(experiment(seed=3)) != offsets(experiment(seed=4))


def test_a_tolerance_of_0_gives_exact_clocks():
    assert set(offsets(experiment({"network.clock_tolerance": 0}))) == {0.0}


def test_a_line_and_a_host_have_tolerances_of_their_own():
    e = experiment({"network.lines.wan.clock_tolerance": 0, "network.hosts.anna.line_clock_tolerance": 4.6})
    assert e.network.lines[0].clock_ppm == (0.0, 0.0)
    anna, bert = e.network.hosts
    assert all(-9.2 <= ppm < 0 for ppm in anna.line_clock_ppm)
    assert bert.line_clock_ppm == experiment().network.hosts[1].line_clock_ppm


@pytest.mark.parametrize("key", ["network", "network.lines.wan", "network.hosts.anna"])
def test_a_tolerance_out_of_range_is_an_error(key):
    name = "line_clock_tolerance" if key.endswith("anna") else "clock_tolerance"
    with pytest.raises(ConfigError, match=rf"{name}: 400 ppm is out of range 0 to 320"):
        experiment({f"{key}.{name}": 400})


def test_interfaces_and_ports_have_them_in_their_periods():
    e = experiment()
    network, nics, _ = build_network(e)
    anna = e.host("anna")
    west, east = (next(n for n in network.nodes if n.name == name) for name in ("west", "east"))
    exact = 16 * 65536
    assert nics["anna"].period == round(exact / (1 + anna.line_clock_ppm[0] * 1e-6))
    assert west.periods[0] == round(exact / (1 + anna.line_clock_ppm[1] * 1e-6))
    assert west.periods[1] == exact  # no line
    ds3 = 599_040_000 * 4 * 65536 / 40_704_000
    for port, ppm in zip((west.periods[3], east.periods[1]), e.network.lines[0].clock_ppm, strict=True):
        assert port / (ds3 if port > 2 * exact else exact) == pytest.approx(1 - ppm * 1e-6, rel=1e-6)


def test_lines_that_bring_more_than_a_switch_moves_are_an_error():
    hosts = {f"network.hosts.h{k}": {"port": f"west:{k}", "rate": "OC-12c"} for k in (1, 2, 4, 5)}
    experiment({"network.switches.west.ports": 6} | dict(list(hosts.items())[:3]))
    with pytest.raises(ConfigError, match=r"its lines bring up to 2586\.624 Mb/s .* and a switch moves 2396\.16 Mb/s"):
        experiment({"network.switches.west.ports": 6} | hosts)
