# SPDX-License-Identifier: Apache-2.0
"""The glossary's words in what users read: the words in bold in the table "Older words" of docs/glossary.md are absent from
pages, help and messages (string literals of src, plugin and python)."""
import ast
import pathlib
import re
import subprocess

TABLE = "docs/glossary.md"
HEADING = "## Older words"
# A comment, a raw string, a character, or a string, whose parts may stand on several lines.
TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\((?P<raw>.*?)\)\1"|\'(?:\\.|[^\'\\\n])\'|"(?P<text>(?:\\.|[^"\\\n])*(?:"\s*"(?:\\.|[^"\\\n])*)*)"', re.S)


def refused(root):
    """word -> what to write instead, of the bold words."""
    rows = re.findall(r"^\| (.*?) \| (.*?) \|$", (root / TABLE).read_text().split(HEADING)[1], re.M)
    return {word: instead for words, instead in rows for word in re.findall(r"\*\*(.+?)\*\*", words)}


def cpp_strings(text):
    for m in TOKEN.finditer(text):
        if string := m["raw"] or m["text"]:
            yield text.count("\n", 0, m.start()) + 1, re.sub(r'"\s*"', "", string)


def python_strings(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def page_lines(text):
    yield from enumerate(text.split(HEADING)[0].splitlines(), 1)


def texts(root):
    """(file, line, text) of everything that users read."""
    names = subprocess.check_output(["git", "ls-files"], cwd=root, text=True).split("\n")
    for name in names:
        path = root / name
        if not path.is_file():
            continue
        if name == "README.md" or (name.startswith("docs/") and name.endswith(".md")):
            read = page_lines
        elif name.startswith(("src/", "plugin/", "python/")) and name.endswith((".cpp", ".h")):
            read = cpp_strings
        elif name.startswith("python/") and name.endswith((".py", ".pyi")):
            read = python_strings
        else:
            continue
        for line, text in read(path.read_text()):
            if " " in text:
                yield name, line, text


def offences(root):
    root = pathlib.Path(root)
    words = refused(root)
    pattern = re.compile(r"\b(" + "|".join(re.escape(w) for w in words) + r")\b", re.I)
    return [f"{name}:{line}: '{m[1]}' is an older word, see {TABLE}: {words[m[1].lower()]}"
            for name, line, text in texts(root) for m in pattern.finditer(re.sub(r"\s+", " ", text))]
