# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium, and pages in it that must stay quiet: no error on the console, no request but for the file."""
import contextlib
import os
import shutil
import subprocess

import pytest

SIZES = {"desktop": (1280, 900), "phone": (390, 844)}


@pytest.fixture(scope="session")
def make_report(tosaic):
    """make_report(folder, *arguments): the page that `tosaic report` writes there, as a path."""
    def make(folder, *arguments):
        page = folder / "report.html"
        subprocess.run([tosaic, "report", *map(str, arguments), "-o", page, "-q"], check=True, timeout=300)
        return page
    return make


@pytest.fixture(scope="session")
def browser():
    from playwright.sync_api import sync_playwright
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    assert chromium, "chromium is missing; make packages-BROWSER"
    with sync_playwright() as playwright:
        # Its sandbox is not for root; the pages are our own.
        opened = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"] if os.getuid() == 0 else [])
        yield opened
        opened.close()


@pytest.fixture
def opened(browser):
    """`with opened(path, size="phone", scheme="dark") as page`: ready, and quiet until the end. If it is timed,
    page.busy_seconds() is the processor's time of its thread so far, which others on this machine do not lengthen much."""
    @contextlib.contextmanager
    def open_page(path, size="desktop", scheme="light", timed=False):
        width, height = SIZES[size]
        page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
        said = []
        page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: said.append(f"error: {error}"))
        page.on("dialog", lambda dialog: (said.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("request", lambda request: None if request.url == path.as_uri() or request.url.startswith("data:")
                else said.append(f"request: {request.url}"))
        if timed:
            session = page.context.new_cdp_session(page)
            session.send("Performance.enable", {"timeDomain": "threadTicks"})
            page.busy_seconds = lambda: next(m["value"] for m in session.send("Performance.getMetrics")["metrics"]
                                             if m["name"] == "TaskDuration")
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready]", timeout=60_000)
        yield page
        page.close()
        assert said == []
    return open_page
