# SPDX-License-Identifier: Apache-2.0
"""The site that `make docs` has built: it is whole, and its files ask nothing of other machines."""
import json
import re

import code_blocks
import pytest
from code_blocks import ROOT

SITE = ROOT / "build/site"
PAGES = sorted(SITE.rglob("*.html"))
# What a browser fetches by itself.
FETCHED = re.compile(r"<(?:script|img|iframe|source|video|audio|embed)\b[^>]*?\bsrc=[\"']?([^\"' >]+)|<link\b[^>]*?\bhref=[\"']?([^\"' >]+)")
OUTSIDE = re.compile(r"^(?:https?:)?//")


@pytest.fixture(scope="module", autouse=True)
def built():
    assert PAGES, "there is no build/site: make docs"


def test_each_page_of_the_repository_is_there():
    there = {p.relative_to(SITE).as_posix() for p in PAGES}
    missing = [page for page in code_blocks.pages() if page != "docs/README.md"
               and not any(place.removesuffix("/index.html").endswith(
                   page.lower().removesuffix(".md").removeprefix("docs/").removesuffix("/readme")) for place in there)
               and page != "README.md"]
    assert missing == [] and {"index.html", "overview/index.html", "404.html"} <= there


def test_references():
    def text(path):
        return (SITE / path / "index.html").read_text()
    for name in ("tosaic.compile", "tosaic.Artifact.run", "tosaic.Session.state_dict", "tosaic.Diagnostic.help"):
        assert f'id="{name}"' in text("reference/python"), name
    assert "OPTIONS" not in re.sub(r"<[^>]*>", "", text("reference/python"))
    assert 'id="tosaic.tosa.conv2d"' in text("reference/python-tosa")
    assert "EthosUPartitioner" in text("reference/python-executorch")
    for command in ("compile", "run", "explain", "inspect", "ops", "device"):
        assert f'id="{command}"' in text("reference/commands"), command


def test_each_public_function_of_the_headers_has_an_entry():
    for header in sorted((ROOT / "include/tosaic").iterdir()):
        shown = re.sub(r"<[^>]*>", "", (SITE / f"reference/{header.name.replace('.', '-')}/index.html").read_text())
        for line in header.read_text().splitlines():
            if found := re.match(r"(?:TOSAIC_\w*API|  (?:static )?Result<.*?>|  Status) .*?(\w+)\(", line):
                assert found[1] in shown, f"{header.name}: {found[1]}"


def test_nothing_is_fetched_from_elsewhere():
    asked = {f"{page.relative_to(SITE)}: {target}" for page in PAGES for found in FETCHED.findall(page.read_text())
             if OUTSIDE.match(target := "".join(found))}
    for style in SITE.rglob("*.css"):
        asked |= {f"{style.name}: {target}" for target in re.findall(r"url\([\"']?([^)\"']+)|@import [\"']([^\"']+)", style.read_text())
                  if OUTSIDE.match("".join(target))}
    assert asked == set()


def test_the_search_knows_the_pages():
    index = json.loads((SITE / "search/search_index.json").read_text())["docs"]
    places = {entry["location"].split("#")[0] for entry in index}
    assert {"", "quickstart/", "errors/", "reference/python/", "reference/commands/"} <= places
    assert not any(place.startswith("source/") for place in places)


def test_diagrams_are_pictures():
    assert "<svg" in (SITE / "architecture/index.html").read_text().split('class="diagram"')[1][:400]
