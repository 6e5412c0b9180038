"""Tests of --a, --b and --end, and of the lines from which the slack of real time is taken."""

from __future__ import annotations

import pytest

from bentpipe.attach.ends import End, parse_end
from bentpipe.attach.hosts import attached_hosts, parse_ends
from bentpipe.attach.slack import take_slack
from bentpipe.errors import BentpipeError
from bentpipe.experiment.load import load

MS = 10**9


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("veth0", "expected ns:NAME"),
        ("nss:a", "no end 'nss'; did you mean 'ns'"),
        ("tap:a b", "a name has 1 to 15"),
        ("ns:", "expected ns:NAME"),
        ("tun:a/../../b", "a name has 1 to 15"),
    ],
)
def test_what_is_no_end_is_a_line(text: str, message: str) -> None:
    with pytest.raises(BentpipeError, match=message):
        parse_end(text, "--a")


def test_the_first_flow_says_who_a_and_b_are() -> None:
    experiment = load("acts-1flow")
    assert parse_ends("ns:x", "ns:y", (), experiment) == {"alpha1": End("ns", "x"), "ultra": End("ns", "y")}
    assert list(parse_ends("ultra=ns:x", "alpha1=ns:y", (), experiment)) == ["ultra", "alpha1"]


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ("ns:x", "ns:x", "another host already has this end"),
        ("ns:x", "alpha1=ns:y", "host alpha1 has an end already"),
        ("alpha2=ns:x", "ns:y", "no host 'alpha2'; did you mean 'alpha1'"),
        ("tun:x", "tap:y", "use the same kind at all ends"),
    ],
)
def test_ends_that_dont_go_together_are_a_line(a: str, b: str, message: str) -> None:
    experiment = load("acts-1flow")
    with pytest.raises(BentpipeError, match=message):
        attached_hosts(experiment, parse_ends(a, b, (), experiment))


def slack_of(name: str, settings: tuple[str, ...], attached: tuple[str, ...]):
    experiment = load(name, settings)
    ends = {host: End("ns", host) for host in attached}
    left, hosts = attached_hosts(experiment, ends)
    return (left, *take_slack(left, attached, hosts.vcs, 15 * MS, 5 * MS))


def delays(experiment) -> dict[str, int]:
    return {each.name: each.delay_ps for each in (*experiment.network.lines, *experiment.network.hosts)}


def test_the_slack_comes_from_the_line_that_all_pass() -> None:
    before, after, slack = slack_of("acts-1flow", (), ("alpha1", "ultra"))
    assert not before.flows
    assert (slack.lag_ps, slack.computing_ps, slack.excess_ps) == (20 * MS, 15 * MS, 0)
    assert {n: d - delays(after)[n] for n, d in delays(before).items() if d != delays(after)[n]} == {
        "satellite": 20 * MS
    }
    assert set(slack.delays_ps.values()) == {267 * MS}


def test_a_flow_with_one_end_outside_is_named() -> None:
    """A flow with one end outside is refused by name; flows between two hosts outside are left out."""
    experiment = load("acts-modern")
    first, other = experiment.flows[0], experiment.flows[1]
    ends = {host: End("ns", host) for host in (first.source, first.sink, other.source)}
    with pytest.raises(BentpipeError, match="no VC leads from it to another attached host"):
        attached_hosts(experiment, ends)
    shared = load("acts-3flows")
    flows = shared.flows
    assert len({flow.sink for flow in flows}) == 1
    left, attached = attached_hosts(shared, {host: End("ns", host) for host in (flows[0].source, flows[0].sink)})
    assert not left.flows and attached.left_out == tuple(flow.name for flow in flows[1:])


def test_hosts_inside_keep_their_paths() -> None:
    """The lines of hosts inside are longer by as much as the shared line is shorter."""
    attached = ("reno", "reno_sink")
    before, after, slack = slack_of("acts-modern", (), attached)
    assert len(before.flows) == 3 and slack.shorter_vcs == ()
    for vc in after.vcs:
        there = [delays(each)[vc.path[0]] + delays(each)["satellite"] + delays(each)[vc.path[-1]]
                 for each in (before, after)]  # fmt: skip
        inside = not {vc.path[0], vc.path[-1]} & {*attached}
        assert there[0] - there[1] == (0 if inside else 20 * MS)


def test_what_hosts_own_lines_can_give_is_taken_from_them() -> None:
    settings = ("network.hosts.alpha1.delay=12 ms", "network.hosts.ultra.delay=11 ms")
    before, after, _ = slack_of("acts-1flow", settings, ("alpha1", "ultra"))
    changed = {n: d - delays(after)[n] for n, d in delays(before).items() if d != delays(after)[n]}
    assert changed == {"alpha1": 10 * MS, "ultra": 10 * MS}


def test_events_of_the_file_have_the_shorter_path_too() -> None:
    event = 'event=[{at="1 s", set={"satellite.ber"=1e-6}}]'.replace("satellite.ber", "network.lines.satellite.ber")
    _, after, _ = slack_of("acts-1flow", (event,), ("alpha1", "ultra"))
    (line,) = after.events[0].network.lines
    assert (line.delay_ps, line.ber[0]) == (247 * MS, 1e-6)


@pytest.mark.parametrize(("delay", "taken", "lag"), [("8 ms", 7_999_000_000, 7_999_000_000), ("0 ms", 0, 2 * MS)])
def test_a_path_without_enough_delay_gives_what_it_has_or_says_that_it_has_none(
    delay: str, taken: int, lag: int
) -> None:
    _, _, slack = slack_of("acts-1flow", (f"network.lines.satellite.delay={delay}",), ("alpha1", "ultra"))
    assert abs(slack.taken_ps - taken) <= 2000 and abs(slack.lag_ps - lag) <= 2000
    assert slack.computing_ps == slack.lag_ps * 3 // 4 // 1000 * 1000
    assert ("2 ms more than configured" in slack.text()) is (taken == 0)
