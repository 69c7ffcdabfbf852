# SPDX-License-Identifier: Apache-2.0
"""The site as people see it, in Chromium: light and dark, on a phone, with its search. `make test-docs` runs this; the other
Python tests have no browser. SITE_SHOTS=FOLDER keeps pictures."""
import os
import pathlib

import pytest
import site_browser

if not os.environ.get("TOSAIC_BROWSER"):
    pytest.skip("make test-docs has the browser", allow_module_level=True)

# Of each kind one: the first page, prose, wide tables, diagrams, long code, generated references.
LOOKED_AT = ["", "quickstart/", "operators/", "errors/", "numerics/", "architecture/", "concepts/", "benchmarks/accuracy/", "vulkan/",
             "reference/python/", "reference/compile-hpp/", "reference/delegate-h/", "reference/commands/", "source/src/ops/aten/relu.cpp/"]


@pytest.fixture(scope="module")
def browser():
    assert site_browser.CHROMIUM, "no Chromium: make docs-test-env installs it"
    with site_browser.served() as address, site_browser.chromium() as browser:
        yield browser, address


@pytest.fixture
def visit(browser):
    made = []

    def start(**how):
        made.append(site_browser.Visit(*browser, **how))
        return made[-1]
    yield start
    for one in made:
        one.close()


def keep(page, name):
    if folder := os.environ.get("SITE_SHOTS"):
        page.screenshot(path=pathlib.Path(folder) / f"{name}.png")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", ["DESK", "PHONE"])
def test_pages(visit, scheme, size):
    """No error, nothing from other machines, and no page that must be pushed sideways."""
    window = visit(scheme=scheme, size=getattr(site_browser, size))
    wide = []
    for path in LOOKED_AT:
        page = window.open(path)
        width = page.evaluate("document.documentElement.scrollWidth")
        if width > getattr(site_browser, size)["width"]:
            wide.append(f"{path}: {width}")
        assert page.title() and page.locator("h1").count() >= 1
        keep(page, f"{path.strip('/').replace('/', '_') or 'home'}_{scheme}_{size.lower()}")
    assert wide == [] and window.faults == []


def lightness(page):
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return sum(int(part) for part in colour[colour.index("(") + 1:-1].split(",")[:3]) / 3


def test_light_and_dark(visit):
    """As the system is, and as the switch says."""
    assert lightness(visit(scheme="dark").open("")) < 80
    page = visit(scheme="light").open("")
    assert lightness(page) > 200
    page.locator("form[data-md-component=palette] label:not([hidden])").first.click()
    page.wait_for_function("document.body.getAttribute('data-md-color-scheme') === 'slate'")
    assert lightness(page) < 80


def test_the_search_finds_a_page(visit):
    window = visit()
    page = window.open("")
    page.locator("input.md-search__input").fill("fallback")
    first = page.locator(".md-search-result__link").first
    first.wait_for(state="visible", timeout=20000)
    assert "allback" in page.locator(".md-search-result__list").inner_text()
    keep(page, "search")
    first.click()
    page.wait_for_url(lambda url: url.rstrip("/") != window.address.rstrip("/"))
    assert "allback" in page.locator("article").inner_text() and window.faults == []


def test_the_menu_of_a_phone(visit):
    window = visit(size=site_browser.PHONE)
    page = window.open("install/")
    page.locator("label.md-header__button[for=__drawer]").click()
    entry = page.locator("nav.md-nav--primary a.md-nav__link", has_text="Microcontroller").first
    entry.wait_for(state="visible")
    entry.click()
    page.wait_for_url("**/quickstart-microcontroller/")
    assert window.faults == []


def test_code_is_copied(visit):
    window = visit()
    window.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = window.open("")
    block = page.locator("div.highlight").first
    block.hover()
    page.locator("button[data-md-type=copy], .md-clipboard").first.click()
    assert "tosaic.compile" in page.evaluate("navigator.clipboard.readText()")


def test_the_personas_are_one_step_away(visit):
    page = visit().open("")
    links = page.locator("#where-are-you + ul a")
    assert links.count() == 5
    for number in range(5):
        page.goto(page.url.split("#")[0])
        links.nth(number).click()
        page.wait_for_load_state()
        assert "uickstart" in page.locator("h1").first.inner_text()
        page.go_back()

