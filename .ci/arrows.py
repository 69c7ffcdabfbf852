# SPDX-License-Identifier: Apache-2.0
"""Who may include whom: read off src/CMakeLists.txt, so that the link graph is the one list of it. A file may include its
own library's files and those of libraries that it links, directly or through others; public headers include public
headers only; libraries form no cycle; every file belongs to one library."""
import fnmatch
import pathlib
import re

CALL = re.compile(r"(?<!function\()\b(tosaic_library|generated_list|flatbuffers_header|target_link_libraries)\(([^()]*)\)")
INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]', re.M)
SOURCES = {".cpp", ".h", ".inc"}


class Library:
    def __init__(self, name):
        self.name, self.parts, self.links, self.headers = name, [], [], []


def libraries(cmake):
    """name -> Library, and generated header -> name."""
    found, generated = {}, {}
    text = re.sub(r"\$\{TOSAIC_(SIZES|DIAGNOSTICS)\}", "*", re.sub(r"#.*", "", cmake))  # files that CMake chooses between
    text = text.replace("${TOSAIC_SYSTEM_FOLDERS}", "base/system/*")
    for function, body in CALL.findall(re.sub(r"function\(.*?endfunction\(\)", "", text, flags=re.S)):
        words = body.split()
        name = words[0].removeprefix("tosaic_")
        if function == "tosaic_library":
            library, kind = found.setdefault(name, Library(name)), "parts"
            for word in words[1:]:
                if word in ("LINKS", "HEADERS"):
                    kind = word.lower()
                elif kind != "links":
                    getattr(library, kind).append(word)
                elif word.startswith("tosaic_"):
                    library.links.append(word.removeprefix("tosaic_"))
        elif function == "generated_list":
            found[name].parts += [word.removesuffix(".cpp") for word in words[words.index("FOLDERS") + 1:]]
        elif function == "flatbuffers_header":
            generated[pathlib.Path(words[1]).stem + "_generated.h"] = name
        elif words[0] == "tosaic":  # the tool
            found["tools"] = Library("tools")
            found["tools"].parts.append("tools")
            found["tools"].links = [w.removeprefix("tosaic_") for w in words if w.startswith("tosaic_")]
    return found, generated


def reached(found, name):
    """What `name` links, through others as well; itself only if there is a cycle."""
    seen, waiting = set(), list(found[name].links)
    while waiting:
        link = waiting.pop()
        if link not in seen and link in found:
            seen.add(link)
            waiting += found[link].links
    return seen


def owners(found, path):
    """The libraries whose parts name `path`, which is relative to src/."""
    stem = str(path.with_suffix(""))
    return [library.name for library in found.values()
            if any(str(path.parent) == part or fnmatch.fnmatchcase(stem, part) for part in library.parts)]


def offences(root):
    root = pathlib.Path(root)
    found, generated = libraries((root / "src/CMakeLists.txt").read_text())
    may = {name: reached(found, name) for name in found}
    said = [f"src/CMakeLists.txt: '{name}' links itself through others" for name in found if name in may[name]]
    owner = dict(generated)
    for path in sorted((root / "src").rglob("*")):
        if path.suffix not in SOURCES:
            continue
        inside = path.relative_to(root / "src")
        claims = owners(found, inside)
        if len(claims) != 1:
            said.append(f"src/{inside}: belongs to {' and '.join(claims) if claims else 'no library of src/CMakeLists.txt'}")
        owner[str(inside)] = claims[0] if claims else ""
    public = {f"tosaic/{path.name}" for path in (root / "include/tosaic").glob("*.h*")}
    claimed = {header: name for name, library in found.items() for header in library.headers}
    owner |= {header: claimed.get(header, "api") for header in public}  # the top, unless somebody below owns it
    for file, name in owner.items():
        path = root / ("include" if file in public else "src") / file
        if file in generated or not name:
            continue
        for included in INCLUDE.findall(path.read_text()):
            to = owner.get(included)
            if to is None or to == name:
                continue
            if file in public and included not in public:
                said.append(f"include/{file}: includes {included}, which is not public")
            elif to not in may[name]:
                said.append(f"{path.relative_to(root)}: includes {included} of '{to}', which '{name}' does not link")
    return said
