# SPDX-License-Identifier: Apache-2.0
"""The page of a report in a browser: what a reader sees and clicks."""
import json
import re
import subprocess

import pytest
from report_files import DIGITS, MODEL, SAMPLES

PARTS = ["graph", "time", "memory", "placement", "quantisation", "messages", "manifest"]


@pytest.fixture(scope="module")
def digits(make_report, tosaic, tmp_path_factory):
    """With all that a report can have but Vela's estimate: measured times and compared layers."""
    folder = tmp_path_factory.mktemp("digits")
    quantised = ["--target", "tosa-int", "--calibrate", SAMPLES]

    def kept(name, *command):
        (folder / name).write_text(subprocess.run([tosaic, *map(str, command)], capture_output=True, text=True, check=True,
                                                  timeout=120).stdout)
        return folder / name
    subprocess.run([tosaic, "compile", MODEL, *quantised, "-o", folder / "digits.pte", "-q"], check=True, timeout=120)
    times = kept("times.json", "run", folder / "digits.pte", "--input", DIGITS / "digit.npy", "--profile", "--json")
    layers = kept("layers.json", "compare", MODEL, *quantised, "--json")
    return make_report(folder, MODEL, *quantised, "--profile", times, "--compare", layers)


def show_all(page):
    for part in PARTS:
        page.evaluate("part => document.getElementById(part).scrollIntoView()", part)
        page.wait_for_selector(f"#{part}:not(.waiting)")


@pytest.mark.parametrize("size, scheme", [("desktop", "light"), ("desktop", "dark"), ("phone", "light")])
def test_every_part_is_drawn(digits, opened, size, scheme):
    with opened(digits, size, scheme) as page:
        show_all(page)
        for part in PARTS:
            body = page.locator(f"#{part} > .body")
            assert body.inner_text().strip(), part
            assert "cannot be shown" not in body.inner_text()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "the page scrolls sideways"
        page.wait_for_timeout(50)  # charts are drawn with the next frame
        painted = page.evaluate("""[...document.querySelectorAll('#time canvas, #memory canvas, #quantisation canvas')].map(c =>
            c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some(b => b > 0))""")
        assert len(painted) >= 3 and all(painted)


def test_a_module_opens_and_a_node_tells_what_it_is(digits, opened):
    with opened(digits) as page:
        level = page.locator("#graph svg .node")
        before, path = level.count(), page.inner_text("#graph .crumbs")
        group = page.locator("#graph svg .node.group").first
        label = group.get_attribute("aria-label")
        group.focus()
        page.keyboard.press("Enter")  # a click does the same, below
        assert page.inner_text("#graph .crumbs") != path
        inside = int(re.search(r"(\d+) nodes?$", label)[1])
        assert level.count() <= inside
        page.click("#graph .crumbs button >> nth=0")
        assert level.count() == before
        page.fill("#graph input[type=search]", "conv2d")
        page.click("#graph .results button >> nth=0")
        assert page.locator("#graph svg .node.chosen").count() == 1
        side = page.inner_text("#graph .side")
        assert "aten.conv2d" in side and "delegate 0" in side and "scale" in side and "make_digits.py" in side


def test_the_tree_opens_a_level_at_a_time(digits, opened):
    with opened(digits) as page:
        before = page.locator("#graph .tree button").count()
        closed = page.locator("#graph .tree details:not([open]) > summary")
        if closed.count():
            closed.first.click()
            page.locator("#graph .tree button").nth(before).wait_for(state="attached")
        page.locator("#graph .tree button").last.click()
        assert page.locator("#graph .tree button[aria-current]").count() == 1


def rows_of(page, part, column):
    return page.locator(f"#{part} table >> nth=0").locator(f"tbody tr:not(.space) td:nth-child({column})").all_inner_texts()


def test_tables_are_sorted_and_searched(digits, opened):
    with opened(digits) as page:
        show_all(page)
        numbers = lambda: [int(text) for text in rows_of(page, "placement", 1)]
        assert numbers() == sorted(numbers()) and len(numbers()) > 5
        page.click("#placement thead button >> nth=0")
        assert numbers() == sorted(numbers(), reverse=True)
        assert page.get_attribute("#placement thead th >> nth=0", "aria-sort") == "descending"
        page.click("#placement thead button >> nth=2")
        operators = rows_of(page, "placement", 3)
        assert operators == sorted(operators)
        page.fill("#placement input[type=search] >> nth=0", "CONV2D")
        page.wait_for_selector("#placement .told:has-text(' of ')")
        assert set(rows_of(page, "placement", 3)) == {"conv2d"}
        page.fill("#placement input[type=search] >> nth=0", "no such thing")
        page.wait_for_selector("#placement .told:text-matches('^0 of')")
        assert rows_of(page, "placement", 1) == ["Nothing is found."]


def test_a_name_in_a_table_leads_to_the_graph(digits, opened):
    with opened(digits) as page:
        show_all(page)
        link = page.locator("#placement tbody button.link").nth(2)
        name = link.inner_text()
        link.click()
        assert page.inner_text("#graph .side h3") == name


def test_a_click_into_the_memory_shows_what_is_alive_there(digits, opened):
    with opened(digits) as page:
        show_all(page)
        heading = page.locator("#memory h3")
        assert heading.inner_text().startswith("Alive at the peak")
        canvas = page.locator("#memory canvas")
        for _ in range(50):  # a chart answers when its first frame is drawn
            canvas.scroll_into_view_if_needed()
            box = canvas.bounding_box()
            page.mouse.click(box["x"] + 0.95 * box["width"], box["y"] + 0.5 * box["height"])
            page.wait_for_timeout(100)
            if not heading.inner_text().startswith("Alive at the peak"):
                break
        assert "at node" in heading.inner_text() and not heading.inner_text().startswith("Alive at the peak")
        page.click("#memory h3 button")
        assert heading.inner_text().startswith("Alive at the peak")


def test_light_and_dark_can_be_changed(digits, opened):
    with opened(digits) as page:
        ground = lambda: page.evaluate("getComputedStyle(document.body).backgroundColor")
        light = ground()
        page.click("#theme")
        dark = ground()
        assert dark != light
        page.click("#theme")
        assert ground() == light


EVIL = '</script><script>alert(1)</script><img src=x onerror=alert(2)>'


def test_hostile_names_stay_text(make_report, opened, tmp_path):
    quoted = EVIL.replace('"', '\\"')
    graph = tmp_path / "evil.txt"
    graph.write_text(f"""graph @main(%x: 2x4xf32) -> (%y) {{
  %a: 2x4xf32 = aten.relu.default(%x) loc("{quoted}":6 "{quoted}" in "{quoted}" "{quoted}" as "{quoted}")
  %"b{quoted}": 2x4xf32 = aten.neg.default(%a) loc("{quoted}":7 "{quoted}" in "{quoted}" "{quoted}" as "c{quoted}")
  %y: 2x4xf32 = aten.tril.default(%"b{quoted}")
}}
""")
    page_file = make_report(tmp_path, graph, "--target", "tosa-fp")
    assert "<script>alert" not in page_file.read_text() and "<img" not in page_file.read_text()
    with opened(page_file) as page:
        show_all(page)
        page.fill("#graph input[type=search]", "relu")
        page.click("#graph .results button >> nth=0")
        assert EVIL in page.inner_text("#graph .side")
        assert page.locator("img").count() == 0
        assert page.evaluate("document.scripts.length") == 4


@pytest.fixture(scope="module")
def flat(make_report, tmp_path_factory):
    """20,000 nodes without modules."""
    folder = tmp_path_factory.mktemp("flat")
    ops = ["relu", "neg", "abs", "sigmoid"]
    lines = [f'  %v{i}: 1x64xf32 = aten.{ops[i % 4]}.default(%{"x" if i == 0 else f"v{i - 1}"}) '
             f'loc("model.py":{i % 700 + 1} "x = f(x)" as "v{i}")' for i in range(20_000)]
    (folder / "flat.txt").write_text("graph @main(%x: 1x64xf32) -> (%v19999) {\n" + "\n".join(lines) + "\n}\n")
    return make_report(folder, folder / "flat.txt", "--target", "tosa-fp")


def test_twenty_thousand_nodes(flat, opened):
    with opened(flat, timed=True) as page:
        page.wait_for_selector("#graph svg .node.group")
        assert page.busy_seconds() < 2, "the page takes too long to answer"
        for _ in range(2):
            before = page.busy_seconds()
            page.locator("#graph svg .node.group").first.click()
            assert page.busy_seconds() - before < 1, "a level takes too long"
            assert page.locator("#graph svg .node").count() <= 40
        assert page.locator("#graph svg .node.leaf").count() > 1
        show_all(page)
        assert page.locator("#placement tbody tr").count() < 100, "rows that nobody sees are in the document"
        page.fill("#placement input[type=search] >> nth=0", "v19998")
        page.wait_for_selector("#placement .told:text-matches('^1 of 20,000')")


def test_data_become_a_page_again(digits, make_report, tosaic, tmp_path, opened):
    """The JSON of a report is all that its page needs."""
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', digits.read_text(), re.S)[1]
    (tmp_path / "data.json").write_text(data)
    assert json.loads(data)["command"] == "report"
    with opened(make_report(tmp_path, tmp_path / "data.json")) as page:
        show_all(page)
