# SPDX-License-Identifier: Apache-2.0
"""Every code block of the pages is run, or a comment above it says why not. Here: shell, C and C++. Python's are run in the
package's environment, by test/python/test_pages.py."""
import pathlib
import re
import shutil

import code_blocks
import pytest
import run_blocks
from code_blocks import ROOT

PAGES = code_blocks.pages()


def test_each_block_has_a_language():
    odd = [f"{b.name} {b.language or 'no language'}" for page in PAGES for b in code_blocks.blocks(page)
           if b.language not in code_blocks.RUN + code_blocks.OTHERS]
    assert odd == [], "say one, `text` where it is none: " + ", ".join(odd)


def words_of_files(text):
    """What a block names that looks like a file or folder."""
    return {pathlib.Path(word).name for word in re.findall(r"[\w-]*[./][\w./-]*\w", text)}


def squeezed(text):
    """Without blanks, and without the signs of comments."""
    return re.sub(r"^\s*//|\s+", "", text, flags=re.M)


def fault(block):
    """What is wrong with a block's mark; None: nothing."""
    if block.kind == "not run" and len(block.why) < 10:
        return "says no reason"
    if block.kind == "run by":
        test = ROOT / block.why
        if not test.is_file():
            return f"names {block.why}, which is not there"
        if not any(word in test.read_text() for word in {pathlib.Path(block.page).name, block.why, *words_of_files(block.text)}):
            return f"names {block.why}, which names neither the page nor what the block does"
    if block.kind == "excerpt of":
        source = squeezed((ROOT / block.why).read_text())
        if not all(squeezed(part) in source for part in block.text.split("\n\n")):
            return f"is no text of {block.why}"
    return None


def test_marks_are_true():
    faults = [f"{block.name} {why}" for page in PAGES for block in code_blocks.blocks(page) if (why := fault(block))]
    assert faults == []


def test_a_block_without_a_mark_is_noticed():
    page = "# A\n\n<!-- not run: it needs a board -->\n```sh\nflash\n```\n\n```sh\nls\n```\n"
    assert [block.kind for block in code_blocks.blocks_of("a.md", page)] == ["not run", ""]
    assert [block.kind for block in code_blocks.blocks_of("a.md", "<!-- blocks run by: x.py -->\n" + page)] == ["not run", "run by"]


def here(page):
    """The blocks of a page that this file runs."""
    if code_blocks.runs_in_order(page):
        return []
    return [b for b in code_blocks.blocks(page) if not b.kind and b.language in ("sh", "console", "c", "cpp")]


@pytest.mark.by_turns(2)
@pytest.mark.parametrize("page", [page for page in PAGES if here(page)])
def test_shell_c_and_cpp(page, tosaic, tmp_path):
    """A page's blocks in its order, in one folder that has the files which they name."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    for block in here(page):
        run_blocks.run_block(block, tmp_path, tosaic)
