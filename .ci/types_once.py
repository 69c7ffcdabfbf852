# SPDX-License-Identifier: Apache-2.0
"""One type for each name. Two types of one qualified name in two files are one for the linker, which keeps either's
constructors and destructors for both, and no compiler tells. Unnamed namespaces keep names apart."""
import collections
import pathlib
import re

SOURCES = ("src/**/*.h", "src/**/*.cpp", "include/**/*.hpp", "plugin/**/*.h", "plugin/**/*.cpp")
NAMESPACE = re.compile(r"namespace\b\s*([\w:]*)\s*\{(.*\})?")  # one that ends on its line has no definitions
TYPE = re.compile(r"(?:struct|class|enum class|union)\s+(?:[A-Z]+_API\s+)?([\w:]+)\b(?!\s*<)[^;<]*\{")


def defined(text):
    """The qualified names of the types that a file defines at the top of namespaces that have names."""
    inside = []
    for line in text.splitlines():
        if opened := NAMESPACE.match(line):
            if not opened[2]:
                inside.append(opened[1])
        elif line.startswith("}  // namespace") and inside:
            inside.pop()
        elif (made := TYPE.match(line)) and all(inside):
            yield "::".join([*inside, made[1]])


def offences(root):
    files = collections.defaultdict(list)
    for pattern in SOURCES:
        for path in sorted(pathlib.Path(root).glob(pattern)):
            if re.search("src/base/system/(bare|macos|windows)", path.as_posix()):
                continue  # other systems': never in one program with posix and linux
            for name in defined(path.read_text()):
                files[name].append(str(path.relative_to(root)))
    return [f"{places[1]}: defines {name}, as {places[0]} does: the linker takes them for one"
            for name, places in sorted(files.items()) if len(places) > 1]
