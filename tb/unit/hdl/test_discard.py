"""Thresholds of ports, shares of the buffer, guaranteed cells, EFCI: the switch against the model, at both widths."""

import random
from fractions import Fraction

import pytest

from bentpipe_hdl.cell import WIDE
from bentpipe_hdl.switch.control import PortSettings, SwitchPort, SwitchSettings, SwitchVc, VcSettings, options_for
from bentpipe_hdl.switch.options import Setup, options_of
from bentpipe_hdl.switch.switch import Switch
from models.aal5 import segment
from models.cell import Cell, Header
from models.switch import Drop, Vc
from models.switch import Switch as Model
from unit.hdl.bench import WIDTHS, Arrival
from unit.hdl.bench import run_compiled as run
from unit.hdl.test_switch_rtl import Judge, compare_counters, configure

CELLS = 40

POLICIES = "epd", "fba", "selective", "fba", "ppd", "tail", "epd", "selective"

OWN = 6
"""The VC whose EPD goes by its own queue."""


def settings_of(rng, *, minima):
    """A switch with all of it."""
    own = [rng.choice([0, 2, 3]) if minima else None for _ in POLICIES]
    vcs = [
        VcSettings(
            policy=policy,
            minimum=minimum,
            efci_threshold=rng.choice([None, 4]),
            limit=rng.choice([0, 9]),
            epd_threshold=5 if k == OWN else None,
        )
        for k, (policy, minimum) in enumerate(zip(POLICIES, own, strict=True))
    ]
    ports = [PortSettings(), PortSettings(efci_threshold=8, epd_threshold=6), PortSettings(epd_threshold=5)]
    whole = SwitchSettings(
        buffer_cells=CELLS, epd_threshold=18, efci_threshold=24, fair_share=0.75, clp_threshold=34 if minima else 0,
        oam_reserve=4 if minima else 0,
    )  # fmt: skip
    places = [SwitchVc(k % 3, 0, 32 + k, (k + 1) % 3, 0, 64 + k, one) for k, one in enumerate(vcs)]
    return Setup(whole, [SwitchPort(settings=one) for one in ports], places, "1/s")


def model_of(setup):
    settings = setup.settings
    vcs = [
        Vc(
            vc.in_port, vc.in_vpi, vc.in_vci, vc.out_port, vc.out_vpi, vc.out_vci,
            limit=vc.settings.limit or settings.buffer_cells,
            ppd=vc.settings.policy != "tail", epd=vc.settings.policy == "epd",
            fair=vc.settings.policy if vc.settings.policy in ("selective", "fba") else "",
            epd_threshold=vc.settings.epd_threshold, minimum=vc.settings.minimum or 0,
            efci_threshold=vc.settings.efci_threshold,
        )
        for vc in setup.vcs
    ]  # fmt: skip
    ports = dict(enumerate(port.settings for port in setup.ports))
    return Model(
        vcs, ports=3, capacity=settings.buffer_cells, user_capacity=settings.buffer_cells - settings.oam_reserve,
        epd_threshold=settings.epd_cells, clp_threshold=settings.clp_threshold or settings.buffer_cells,
        share=Fraction(settings.fair_share), efci_threshold=settings.efci_threshold,
        port_epd={k: port.epd_threshold for k, port in ports.items() if port.epd_threshold},
        efci_ports={k: port.efci_threshold for k, port in ports.items() if port.efci_threshold},
    )  # fmt: skip


@pytest.mark.parametrize("minima", [False, True])
@pytest.mark.parametrize("width", WIDTHS)
def test_random_traffic(width, minima):
    """Frames of eight VCs of all policies, OAM cells between them, a buffer that fills and drains: the same cells
    leave, marked alike, every drop has the model's reason, every counter agrees."""
    rng = random.Random(minima)
    setup = settings_of(rng, minima=minima)
    model = model_of(setup)

    async def test(bench):
        await configure(bench, model, [4, 5, 5.25])
        for option in options_of(options_for(setup)):
            await bench.apply(lambda csr, option=option: option.configure(csr, setup))
        judge = Judge(bench, model)
        frames = [[] for _ in POLICIES]
        load, greedy = 0.5, 1
        for step in range(1000 if width == WIDE else 600):
            if step % 100 == 0:
                load, greedy = 1.4 - load, rng.randrange(8)
            arrival = None
            if rng.random() < load:
                k = rng.choice([greedy, rng.randrange(8)])
                if rng.random() < 0.05:
                    arrival = Arrival(Cell(Header(0, 32 + k, 5), bytes(48)), k % 3)
                else:
                    if not frames[k]:
                        header = Header(0, 32 + k, rng.choice([0, 0, 2]), int(rng.random() < 0.1))
                        frames[k] = segment(header, rng.randbytes(rng.choice([1, 40, 41, 100, 300])))
                    arrival = Arrival(frames[k].pop(0), k % 3)
            await judge.tick(arrival)
        for _ in range(300):
            await judge.tick()
        await judge.finish()
        await compare_counters(bench, model, judge.high_water)
        assert judge.told == judge.dropped
        assert [await bench.get("marked", k) for k in range(8)] == [vc.marked for vc in model.vcs]
        assert await bench.get("active_vcs") == 0
        if minima:
            assert await bench.get("shared") == 0

    run(Switch(width=width, vcs=8, cells=CELLS, ports=3, options=options_for(setup)), test, seed=1)
    seen = sum((vc.drops for vc in model.vcs), start=type(model.vcs[0].drops)())
    assert set(seen) >= {Drop.EPD, Drop.FAIR, Drop.PPD, Drop.FULL}
    assert sum(vc.marked for vc in model.vcs) > 50
    assert sum(vc.sent for vc in model.vcs) > 100


def _checked(settings, *, ports=(), vcs=()):
    """Return the error for these settings together."""
    places = [SwitchVc(0, 0, 32 + k, 0, 0, 32 + k, one) for k, one in enumerate(vcs)]
    setup = Setup(settings, [SwitchPort(settings=one) for one in ports or [PortSettings()]], places)
    return [message for option in options_of(options_for(setup)) for message in option.check(setup)]


def test_minima_that_do_not_fit_the_buffer_are_refused():
    vcs = [VcSettings(minimum=300), VcSettings()]
    assert not _checked(SwitchSettings(buffer_cells=400, vc_minimum=100), vcs=vcs)
    (message,) = _checked(SwitchSettings(buffer_cells=400, vc_minimum=101), vcs=vcs)
    assert message == "the minima of its 2 VCs are 401 cells, more than the buffer's 400"
    (message,) = _checked(SwitchSettings(buffer_cells=400, vc_minimum=100, oam_reserve=1), vcs=vcs)
    assert message == "the minima of its 2 VCs are 400 cells, more than the buffer's 400 but 1 for OAM"


@pytest.mark.parametrize("key", ["epd_threshold", "efci_threshold"])
def test_a_ports_threshold_above_the_buffer_is_refused(key):
    assert not _checked(SwitchSettings(buffer_cells=400), ports=[PortSettings(**{key: 400})])
    (message,) = _checked(SwitchSettings(buffer_cells=400), ports=[PortSettings(), PortSettings(**{key: 401})])
    assert message == f"{key} of port 1: 401 cells are more than the buffer's 400"


def test_a_fair_policy_goes_by_the_shared_buffer():
    (message,) = _checked(SwitchSettings(), vcs=[VcSettings(policy="fba", epd_threshold=5)])
    assert message == "policies 'selective' and 'fba' go by the shared buffer: epd_threshold of a VC needs policy 'epd'"
