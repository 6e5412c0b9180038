"""Reports in a real browser: figures drawn, no error, nothing wider than the page, cursor and zoom, many flows."""

import pytest

from bentpipe.report.cases import cases_html
from bentpipe.report.places import Around, in_sweep
from bentpipe.report.run import report_html
from bentpipe.sweeps.page import sweep_html
from bentpipe.sweeps.plan import plan_sweep
from browser.barriers import faint_texts
from unit.experiment.made_up import PS, made_up, some_cases, some_sweep

WIDTHS = (400, 1600)
SCHEMES = ("light", "dark")
ABOVE = ("cases", "axis", "sweep", "names", "catalogue")
"""Pages above those of runs."""

MOST_OCTETS = 5_000_000

SHORT = PS // 5

DRAWN = """figure => {
    const marks = [...figure.querySelectorAll(".data .mark")];
    return marks.length > 0 && marks.every(mark => mark.tagName !== "path" || mark.getAttribute("d").length > 5);
}"""


def figures(page):
    return page.locator("figure[data-figure]")


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["one", "few", "segments", "hundred", "thousand", *ABOVE])
def test_figures_are_drawn_and_nothing_is_wider_than_the_page(open_page, reports, name, width, scheme):
    page = open_page(reports[name].as_uri(), width, scheme)
    count = figures(page).count()
    assert count > 3 or name in ABOVE
    for n in range(count):
        assert figures(page).nth(n).evaluate(DRAWN), figures(page).nth(n).get_attribute("data-figure")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    wide = page.evaluate("""() => [...document.querySelectorAll("main *, header *")].filter(element => {
        const box = element.getBoundingClientRect();
        return box.right > innerWidth + 1 && !element.closest(".wide, pre, .contents ul, .aside, .skip");
    }).map(element => element.outerHTML.slice(0, 80))""")
    assert wide == []


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", ["few", "cases", "hundred", "sweep", "names", "catalogue"])
def test_every_text_can_be_told_from_what_is_behind_it(open_page, reports, name, scheme):
    page = open_page(reports[name].as_uri(), 1600, scheme)
    assert faint_texts(page) == []


def test_a_thousand_flows_are_less_than_5_mb(reports):
    assert reports["thousand"].stat().st_size < MOST_OCTETS


def figure(page, name):
    found = page.locator(f'figure[data-figure="{name}"]')
    found.scroll_into_view_if_needed()
    return found


def middle(page, name, share=0.5):
    """Return the place in a figure's plot at a share of its width."""
    box = figure(page, name).locator(".plot svg").bounding_box()
    return box["x"] + share * box["width"], box["y"] + box["height"] / 2


def ticks(page, name):
    """The texts along the horizontal axis."""
    return figure(page, name).locator(".tick[text-anchor=middle]").all_text_contents()


def test_the_cursor_shows_the_values_of_all_figures_over_time(open_page, reports):
    page = open_page(reports["few"].as_uri())
    page.mouse.move(*middle(page, "windows"))
    for name in ("throughput", "queues", "windows"):
        root = page.locator(f'figure[data-figure="{name}"]')  # not scrolled to: the mouse would be elsewhere
        assert 2.5 < float(root.locator(".at").text_content().split()[1]) < 3.5
        assert root.locator(".cursor").count() == 1
    value = page.locator('figure[data-figure="windows"]').locator(".legend b").first.text_content()
    assert 9 <= float(value.replace(",", "")) <= 9.2 * 120
    page.mouse.move(5, 5)
    assert figure(page, "queues").locator(".cursor").count() == 0


def test_dragging_zooms_all_figures_over_time_and_a_double_click_undoes_it(open_page, reports):
    page = open_page(reports["few"].as_uri())
    whole = ticks(page, "windows")
    shares = ticks(page, "queue-shares")
    page.mouse.move(*middle(page, "windows", 0.4))
    page.mouse.down()
    page.mouse.move(*middle(page, "windows", 0.6), steps=3)
    page.mouse.up()
    near = ticks(page, "windows")
    assert near != whole and all(2 < float(text) < 4 for text in near)
    assert ticks(page, "queues") == near and ticks(page, "queue-shares") == shares
    page.mouse.dblclick(*middle(page, "queues"))
    assert ticks(page, "windows") == whole


def test_buttons_and_keys_do_the_same(open_page, reports):
    page = open_page(reports["few"].as_uri())
    whole = ticks(page, "drops")
    figure(page, "drops").get_by_role("button", name="Zoom in").click()
    assert ticks(page, "drops") != whole
    figure(page, "drops").get_by_role("button", name="Show the whole range").click()
    assert ticks(page, "drops") == whole
    plot = figure(page, "throughput").locator(".plot svg")
    plot.focus()
    page.keyboard.press("ArrowRight")
    assert "flow1" in figure(page, "throughput").locator("output").text_content()
    page.keyboard.press("+")
    assert ticks(page, "drops") != whole
    page.keyboard.press("Home")
    assert ticks(page, "drops") == whole


def test_a_name_in_the_legend_hides_its_curve(open_page, reports):
    page = open_page(reports["few"].as_uri())
    curves = figure(page, "throughput").locator(".data .mark")
    before = curves.count()
    button = figure(page, "throughput").get_by_role("button", name="flow2")
    button.click()
    assert (curves.count(), button.get_attribute("aria-pressed")) == (before - 1, "false")


def test_values_in_view_stand_in_a_table(open_page, reports):
    page = open_page(reports["few"].as_uri())
    figure(page, "queues").get_by_text("Values in view").click()
    cells = figure(page, "queues").locator("tbody tr").first.locator("td").all_text_contents()
    assert cells == ["0", "3,900", "7,800", "7,800"]


def test_a_heat_map_names_the_flow_below_the_cursor(open_page, reports):
    page = open_page(reports["hundred"].as_uri())
    page.mouse.move(*middle(page, "each-flow"))
    assert "Mb/s" in figure(page, "each-flow").locator(".at").text_content()


def test_long_tables_sort_and_filter(open_page, reports):
    page = open_page(reports["thousand"].as_uri())
    table = page.locator("#flows table").first
    assert table.locator("tbody tr").count() == 1000
    table.get_by_role("button", name="Mb/s").click()
    assert table.get_by_role("columnheader", name="Mb/s").get_attribute("aria-sort") == "descending"
    page.locator("#flows").get_by_role("searchbox").first.fill("flow2-17 ")
    assert table.locator("tbody tr:visible").count() == 1


def test_cases_lead_to_their_reports_and_back(open_page, tmp_path, reports):
    whole = tmp_path / "report.html"
    whole.write_text(cases_html(some_cases("magic-mismatch")), encoding="utf-8")
    (tmp_path / "no-pacing").mkdir()
    around = Around("All cases of magic-mismatch", "../report.html")
    (tmp_path / "no-pacing" / "report.html").write_text(
        report_html(made_up("magic-mismatch"), around), encoding="utf-8"
    )
    page = open_page(whole.as_uri(), server=tmp_path.as_uri())
    page.locator("#cases").get_by_role("link", name="no pacing", exact=True).click()
    assert page.url.endswith("/no-pacing/report.html")
    page.get_by_role("link", name="All cases of magic-mismatch").click()
    assert page.url == whole.as_uri()


def test_the_cursor_shows_mean_and_interval_of_a_sweep(open_page, reports):
    page = open_page(reports["sweep"].as_uri())
    box = figure(page, "aggregate-goodput").locator(".plot svg").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + box["height"] / 2)
    message = figure(page, "aggregate-goodput").locator(".legend").text_content()
    assert "reno48.70" in message and "reno, 95 % interval43.73 to 53.67" in message


def test_a_sweep_leads_to_a_run_and_back(open_page, tmp_path):
    summary, rows = some_sweep(plan_sweep("lan-3flows", (), (1, 2), duration_ps=SHORT))
    (tmp_path / "report.html").write_text(sweep_html(summary, rows), encoding="utf-8")
    run = tmp_path / summary["runs"][1]["folder"]
    run.mkdir(parents=True)
    (run / "report.html").write_text(report_html(made_up("lan-3flows"), in_sweep("lan-3flows")), encoding="utf-8")
    page = open_page((tmp_path / "report.html").as_uri(), server=tmp_path.as_uri())
    page.locator("#runs").get_by_role("link", name="lan-3flows-seed2", exact=True).click()
    assert page.url.endswith(f"/{run.name}/report.html")
    page.get_by_role("link", name="The sweep of lan-3flows").click()
    assert page.url == (tmp_path / "report.html").as_uri()


def test_an_entry_of_the_catalogue_leads_to_its_runs(open_page, reports):
    page = open_page(reports["catalogue"].as_uri(), server=reports["catalogue"].as_uri())
    page.locator("#experiments").get_by_role("link", name="acts-variants").click()
    assert page.url.endswith("#of-acts-variants")
    assert page.locator("#of-acts-variants").bounding_box()["y"] < 900
