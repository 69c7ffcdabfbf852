# SPDX-License-Identifier: Apache-2.0
"""The code blocks of the pages, and what a comment above one says of it:

    <!-- not run: it installs packages -->        a reason why no test runs it
    <!-- run by: test/examples/test_demo.py -->    another test does; the file names the page or the script
    <!-- excerpt of: src/ops/aten/relu.cpp -->     it is text of that file
    <!-- example of: LANGUAGE -->                  it shows a form, and is no program

A comment `<!-- blocks ... -->` speaks of all blocks of its page: `<!-- blocks run in order -->`: Python and shell are one
session; `<!-- blocks not run: ... -->` and `<!-- blocks run by: ... -->` as above."""
import dataclasses
import pathlib
import re
import subprocess
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^(?P<indent> *)(?P<fence>`{3,}|~{3,})(?P<language>[^\n`]*)\n(?P<text>.*?)^(?P=indent)(?P=fence) *$", re.S | re.M)
MARK = re.compile(r"<!-- (?P<kind>not run|run by|excerpt of|example of): (?P<text>[^>]*?) -->\s*\Z")
PAGE_MARK = re.compile(r"<!-- blocks (?P<kind>not run|run by|run in order)(?:: (?P<text>[^>]*?))? -->")
# Languages whose blocks do something when they are run.
RUN = ("python", "sh", "console", "c", "cpp")
OTHERS = ("text", "cmake", "mermaid", "json")


@dataclasses.dataclass(frozen=True)
class Block:
    page: str
    line: int
    language: str
    text: str
    kind: str = ""  # what its mark, or its page's, says of it; empty: nothing, so it is run
    why: str = ""

    @property
    def name(self):
        return f"{self.page}:{self.line}"


def pages():
    """The repository's pages that people read, by path."""
    names = subprocess.check_output(["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"], cwd=ROOT, text=True)
    return [name for name in sorted(names.split()) if (ROOT / name).is_file()]


def blocks_of(page, text):
    of_page = PAGE_MARK.search(text)
    for found in FENCE.finditer(text):
        mark = MARK.search(text, 0, found.start()) or of_page
        yield Block(page, text.count("\n", 0, found.start()) + 1, found["language"].strip(), textwrap.dedent(found["text"]),
                    mark["kind"] if mark else "", (mark["text"] or "") if mark else "")


def blocks(page):
    return list(blocks_of(page, (ROOT / page).read_text()))


def runs_in_order(page):
    return bool(re.search(r"<!-- blocks run in order -->", (ROOT / page).read_text()))
