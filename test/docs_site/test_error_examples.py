# SPDX-License-Identifier: Apache-2.0
"""The examples of docs/errors.md print what stands there, where their files are at hand. (Others need a damaged file, a device or
a board; test/cli compares those that are golden texts.)"""
import re

import code_blocks
import page_files
import pytest
import run_blocks

FILE = re.compile(r"[\w.-]+\.(?:pt2|b?pte|ptd|npz|npy|tosa|vgf|txt|plan|onnx|doc|bin|elf|x)\b")


def examples():
    for block in code_blocks.blocks("docs/errors.md"):
        for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block.text, re.M):
            yield block, command, shown


def at_hand(command):
    """Is all that it reads in page_files, and are models of other names than these no others?"""
    written = set(re.findall(r"(?:-o|--emit \w+=) ?([\w./-]+)", command))
    models = {"digits.pt2", "digits_samples.npz", "digits_test.npz", "digit.npy", "digits.pte", "unknown_operator.pt2",
              "dynamic_batch.pt2", "add_mul.pte", "none.npz"}
    return command.startswith("tosaic ") and " ops " not in command and set(FILE.findall(command)) - written <= models


RUN = [(command, shown) for _, command, shown in examples() if at_hand(command)]


def test_there_are_many():
    assert len(RUN) >= 15


@pytest.mark.parametrize("command, shown", RUN, ids=[re.search(r"\[([\w.-]+)\]|$", shown)[1] or command for command, shown in RUN])
def test_it_prints_that(command, shown, tosaic, tmp_path):
    page_files.provide_names("docs/errors.md", command, tmp_path, tosaic)
    done = run_blocks.run(["bash", "-c", command], tmp_path, tosaic)
    printed = done.stderr + done.stdout
    lines = [line for line in shown.splitlines() if line.strip() and line != "..."]
    assert [line for line in lines if line not in printed] == [], printed
