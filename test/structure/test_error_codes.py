# SPDX-License-Identifier: Apache-2.0
"""Every error code of the sources has a row in src/api/errors, and every row a code in the sources."""
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLE = ROOT / "src/api/errors"
# Functions that make a diagnostic with a code of their own as first argument.
MAKERS = r"\b(?:error|warning|refuse|fail|wrong|too_much|too_far|unknown_sharing|Violation)"
CODE = r"[a-z][a-z0-9-]*\.[a-z0-9_.-]*[a-z0-9]"
MADE = re.compile(rf'{MAKERS}\s*[({{]\s*"({CODE})"|\bcode ?= ?"({CODE})"|"(?:error|warning)\[({CODE})\]')
# The last word of a code that is composed: "aten." + name + ".rank", label(op, "type").
LAST = re.compile(r'"(?:[a-z0-9_{}.-]*\.)?([a-z0-9_-]+)"')


def sources():
    for folder, endings in (("src", {".cpp", ".h"}), ("python", {".py", ".cpp"}), ("device", {".cpp", ".c"})):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in endings and TABLE not in path.parents:
                yield path


def read_table():
    """family -> its rows, patterns with '*' among them."""
    table = {}
    for path in TABLE.glob("*.cpp"):
        text = path.read_text()
        for family in re.split(r"^ErrorFamily \w+\(\) \{$", text, flags=re.M)[1:]:
            family = family[:family.index("\n}\n")]
            name = re.search(r'return \{\s*"([a-z0-9-]+)"', family)[1]
            table[name] = re.findall(r'\{"([a-z0-9_*.-]+)",', family[family.index(name) + len(name):])
    return table


TEXTS = {path: path.read_text() for path in sources()}
ROWS = read_table()
CODES = {code: path for path, text in TEXTS.items() for pair in MADE.findall(text) for code in pair if code}


def has_row(code):
    family, name = code.split(".", 1)
    return any(re.fullmatch(row.replace(".", r"\.").replace("*", r"[^.]*"), name) for row in ROWS.get(family, []))


def test_the_table_is_read():
    assert len(ROWS) > 50 and len(CODES) > 300
    assert "foreign" in ROWS["pt2"] and "*.rank" in ROWS["aten"]


def test_every_code_has_a_row():
    assert {code: path for code, path in CODES.items() if not has_row(code)} == {}


def test_every_row_has_a_code():
    everything = "\n".join(TEXTS.values())
    literals = set(re.findall(rf'"({CODE})"', everything)) | set(CODES)
    ends = set(LAST.findall(everything))

    def exists(family, row):
        if "*" not in row:
            return f"{family}.{row}" in literals
        word = row.rsplit(".", 1)[1]
        return any(re.fullmatch(word.replace("*", ".*"), end) for end in ends)

    assert [f"{family}.{row}" for family, rows in ROWS.items() for row in rows if not exists(family, row)] == []


@pytest.mark.parametrize("family", sorted(ROWS))
def test_examples(family):
    """An example shows a code of its family."""
    text = next(p.read_text() for p in TABLE.glob("*.cpp") if re.search(rf'return \{{\s*"{family}",', p.read_text()))
    family_text = re.split(rf'return \{{\s*"{family}",', text)[1].split("\n}\n")[0]
    assert re.search(rf"\[{family}[.\]]|{family}\.\w+\.\w+: ", family_text)
