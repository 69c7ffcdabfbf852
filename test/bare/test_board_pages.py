# SPDX-License-Identifier: Apache-2.0
"""The commands that pages show for boards, run in QEMU."""
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test/docs_site"))
import code_blocks  # noqa: E402
import run_blocks  # noqa: E402

HERE = "test/bare/test_board_pages.py"
BLOCKS = {page: [b for b in code_blocks.blocks(page) if b.why == HERE] for page in code_blocks.pages()}


@pytest.mark.parametrize("page", [page for page, blocks in BLOCKS.items() if blocks])
def test_the_pages_commands(page, tosaic, tmp_path):
    """`make` has built what they need (the suite's needs); the rest is run as it stands there."""
    (tmp_path / "build").symlink_to(ROOT / "build")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for block in BLOCKS[page]:
        run_blocks.run_block(block, tmp_path, tosaic, without="make ")
