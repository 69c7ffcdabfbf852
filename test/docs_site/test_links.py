# SPDX-License-Identifier: Apache-2.0
"""Links of all pages: files and headings are there, as a code host finds them; addresses outside are well formed. That the
site has them, too, `make docs` finds out (mkdocs --strict)."""
import functools
import posixpath
import re
import sys
import urllib.parse

import pytest
from code_blocks import ROOT, pages

sys.path.insert(0, str(ROOT / "docs/site"))
import markdown_links  # noqa: E402


def slug(heading):
    """The anchor that code hosts give a heading: links and code lose their signs, all that is no word is left out."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.strip()).replace("`", "")
    text = re.sub(r"(?<!\w)[*_]+|[*_]+(?!\w)", "", text)
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")


@functools.cache
def anchors(page):
    seen, found = {}, set()
    text = (ROOT / page).read_text()
    fences = [m.span() for m in markdown_links.CODE.finditer(text) if m["fence"]]
    for heading in re.finditer(r"^#{1,6} (.*?)#*$", text, re.M):
        if any(start <= heading.start() < end for start, end in fences):
            continue
        name = slug(heading[1])
        found.add(f"{name}-{seen[name]}" if name in seen else name)
        seen[name] = seen.get(name, 0) + 1
    return found | set(re.findall(r'<a (?:id|name)="([^"]+)"', text))


def fault(page, target):
    if markdown_links.is_outside(target):
        parts = urllib.parse.urlsplit(target)
        good = parts.scheme == "mailto" or parts.scheme == "https" and "." in parts.netloc and " " not in target
        return None if good else "is no https address"
    if target.startswith("/"):
        return "is absolute"
    path, _, anchor = target.partition("#")
    path = posixpath.normpath(posixpath.join(posixpath.dirname(page), path)) if path else page
    if not (ROOT / path).exists():
        return "leads nowhere"
    if anchor and path.endswith(".md") and anchor not in anchors(path):
        return f"asks for a heading that {path} does not have"
    return None


@pytest.mark.parametrize("page", pages())
def test_links(page):
    faults = [f"{page}:{line}: {target} {why}" for line, target in markdown_links.links((ROOT / page).read_text())
              if (why := fault(page, target))]
    assert faults == []


def test_a_wrong_link_is_found():
    assert fault("docs/README.md", "nowhere.md") == "leads nowhere"
    assert fault("docs/README.md", "python.md#no-such-heading")
    assert fault("docs/README.md", "http://example.org")
    assert fault("docs/README.md", "python.md#functions") is None
    text = "`[a](b)` and [c](d)\n\n```\n[e](f)\n```\n[g\n`h`](i)"
    assert [target for _, target in markdown_links.links(text)] == ["d", "i"]
