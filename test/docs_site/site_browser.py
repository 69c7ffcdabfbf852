# SPDX-License-Identifier: Apache-2.0
"""The built site in a headless Chromium, served on this machine. What pages print as errors, and what they ask for outside,
is kept."""
import contextlib
import functools
import http.server
import shutil
import threading

from code_blocks import ROOT

SITE = ROOT / "build/site"
# Where the system has it: the one that a package of Python brings is for machines that download browsers.
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PHONE = {"width": 390, "height": 844}
DESK = {"width": 1400, "height": 900}


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@contextlib.contextmanager
def served(folder=SITE):
    """The address of the folder's files."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()


@contextlib.contextmanager
def chromium():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as player:
        browser = player.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        try:
            yield browser
        finally:
            browser.close()


class Visit:
    """A window of the browser."""

    def __init__(self, browser, address, scheme="light", size=None):
        self.context = browser.new_context(color_scheme=scheme, viewport=size or DESK)
        self.page, self.address, self.faults = self.context.new_page(), address, []
        self.page.on("console", lambda said: self.faults.append(f"{self.page.url}: {said.text}") if said.type == "error" else None)
        self.page.on("pageerror", lambda why: self.faults.append(f"{self.page.url}: {why}"))
        self.page.on("request", self.asked)

    def asked(self, request):
        if not request.url.startswith((self.address, "data:", "blob:")):
            self.faults.append(f"{self.page.url} asks for {request.url}")

    def open(self, path):
        answer = self.page.goto(self.address + path)
        assert answer is None or answer.ok, f"{path}: {answer.status}"
        return self.page

    def close(self):
        self.context.close()
