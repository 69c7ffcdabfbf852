# SPDX-License-Identifier: Apache-2.0
"""Older words are absent from what users read, and one that comes back is noticed."""
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / ".ci"))
import words  # noqa: E402


def test_the_tree():
    assert words.offences(ROOT) == []


def test_the_table():
    assert words.refused(ROOT)["way out"] == "hint"


@pytest.mark.parametrize("read, text, line", [
    (words.cpp_strings, 'f();\nrefuse("its codes lie "\n       "beside it");', 2),
    (words.cpp_strings, '// "a comment"\nconst char* s = R"(beside it)";', 2),
    (words.python_strings, "# beside\nraise Error(message=f'it lies beside {x}')", 2),
    (words.page_lines, "# A page\nbeside the delegate", 2),
])
def test_found(read, text, line):
    assert [at for at, found in read(text) if "beside" in found] == [line]


def test_comments_are_not_read():
    assert list(words.cpp_strings("// it's beside\n/* \"beside\" */ char c = '\"';")) == []
