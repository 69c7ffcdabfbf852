# SPDX-License-Identifier: Apache-2.0
"""The reference of the C++ and C interfaces: the headers of include/tosaic, whose comments are their manual. They are read
line by line, as clang-format leaves them: a comment belongs to the declaration below it, `// ---- title` begins a section."""
import dataclasses
import posixpath
import re

INCLUDE = "include/tosaic"
FOLDER = "docs/reference"
API = re.compile(r"\bTOSAIC_(?:DELEGATE_|ETHOSU_(?:DEVICE_)?)?API +")
NAMES = [re.compile(p) for p in (
    r"^#define (\w+)", r"^(?:template <.*> *)?(?:class|struct|enum class|enum|union)\b(?: \[\[\w+\]\])? (\w+(?:<\w+>)?)",
    r"^using (\w+) =", r"^\} (\w+);", r"\(\*(\w+)\)\(", r"(operator *[^ (]+|~?\w+) ?\(", r"(\w+)(?:\[\w*\])?(?: = [^;]*|\{[^;]*\})?;")]
# Lines that are about the file and not about its reader.
SKIPPED = re.compile(r"^(?:#pragma once|#include .*|namespace [\w:]+ \{|\}  // namespace.*|extern \"C\" \{|public:|class \w+;|struct \w+;"
                     r"|template <>|enum class \w+ : [\w:]+;)$")
CODE_WORD = re.compile(r"`[^`]+`")


@dataclasses.dataclass
class Item:
    kind: str  # "section", "text", "declaration"
    text: str
    comment: str = ""

    @property
    def name(self):
        lines = self.text.split("\n")
        if lines[0].startswith("typedef") and lines[-1].startswith("}"):
            return NAMES[3].match(lines[-1])[1]
        flat = API.sub("", " ".join(lines)).removeprefix("typedef ")
        flat = re.sub(r"^template <[^()]*?> *(?:requires ?\(.*?\) )?", "", flat)
        for pattern in NAMES:
            found = pattern.search(flat)
            if found:
                return found[1].replace("operator ", "operator")
        raise ValueError(f"headers.py finds no name in: {flat}")


def without_guards(text):
    """Without what only compilers read: include guards, C++'s braces around C, the macros of visibility."""
    text = re.sub(r"^#ifndef \w+_H\n#define \w+_H\n", "", text, flags=re.M)
    text = re.sub(r"^#ifdef __cplusplus\n.*?^#endif\n", "", text, flags=re.S | re.M)
    text = re.sub(r"(?:^#ifndef \w+_API\n)?^#if defined\(_WIN32\)[^\n]*\n(?:#[^\n]*\n)*?#endif\n(?:#endif\n)?", "", text, flags=re.M)
    return re.sub(r"\n#endif[^\n]*\s*$", "\n", text)


def comment_text(lines):
    """Without the signs of the comment."""
    text = "\n".join(lines)
    if text.lstrip().startswith("/*"):
        text = re.sub(r"^ ?\* ?", "", re.sub(r"^\s*/\*+ ?|\s*\*/\s*$", "", text), flags=re.M)
    else:
        text = re.sub(r"^\s*// ?", "", text, flags=re.M)
    return text.strip("\n")


def items(text):
    """The sections, free texts and declarations of a header, or of a class's body."""
    lines, at, comment = text.split("\n"), 0, []
    while at < len(lines):
        line = lines[at]
        if line.startswith("//") or line.startswith("/*"):
            block = [line]
            while line.startswith("/*") and "*/" not in lines[at]:
                at += 1
                block.append(lines[at])
            text_of = comment_text(block)
            if re.match(r"-{4}", text_of):
                if comment:
                    yield Item("text", comment_text(comment))
                    comment = []
                title, _, more = text_of.lstrip("- ").partition(";")
                yield Item("section", title.strip())
                if more:
                    yield Item("text", more.strip()[:1].upper() + more.strip()[1:] + ".")
            else:
                comment += block
            at += 1
        elif not line.strip() or SKIPPED.match(line):
            if comment and not line.strip():
                yield Item("text", comment_text(comment))
                comment = []
            at += 1
        elif line.startswith(("private:", "protected:")):
            return
        else:
            start, depth = at, 0
            while True:
                code = re.sub(r"//.*|/\*.*?\*/|\"[^\"]*\"", "", lines[at])
                depth += code.count("{") - code.count("}") + code.count("(") - code.count(")")
                ends = code.rstrip().endswith((";", "}")) or line.startswith("#") and not code.rstrip().endswith("\\")
                if depth == 0 and ends or at + 1 == len(lines):
                    break
                at += 1
            yield Item("declaration", "\n".join(lines[start:at + 1]), comment_text(comment) if comment else "")
            comment = []
            at += 1


def codes(root):
    """error code -> anchor in docs/errors.md."""
    page = (root / "docs/errors.md").read_text()
    return {code: code.split(".")[0] for code in re.findall(r"^\| `([^`]+)` \|", page, re.M)} | {
        family + ".*": family for family in re.findall(r"^## (\S+)$", page, re.M)}


def prose(text, known):
    """A comment as Markdown: indented lines are code, error codes lead to their page."""
    def words(part):
        part = re.sub(r"([\\*_{}\[\]<>#|~])", r"\\\1", part)

        def link(found):
            code = found[0].replace("\\", "")
            return f"[`{code}`](../errors.md#{known[code]})" if code in known else found[0]
        return re.sub(r"\b[a-z][a-z0-9-]*\.(?:\\\*|[a-z][a-z0-9-]*)(?![\w(/])", link, part)

    made = []
    for paragraph in re.split(r"\n\s*\n", text):
        lines = paragraph.split("\n")
        while lines:
            indented = lines[0].startswith("  ")
            count = next((i for i, line in enumerate(lines) if line.startswith("  ") != indented), len(lines))
            if indented:
                made += ["```cpp", *(line[2:] for line in lines[:count]), "```", ""]
            else:
                part, at = "\n".join(lines[:count]), 0
                done = ""
                for code in CODE_WORD.finditer(part):
                    done += words(part[at:code.start()]) + code[0]
                    at = code.end()
                made += [done + words(part[at:]), ""]
            lines = lines[count:]
    return made


def code(text, language):
    """Without marks for the compiler; lines that continue a declaration stay below its parenthesis."""
    if mark := API.match(text):
        text = re.sub(rf"^ {{{mark.end()}}}(?= )", "", text, flags=re.M)
    return [f"```{language}", API.sub("", re.sub(r" *// NOLINT.*", "", text)), "```", ""]


def body_of(text):
    """What stands between the braces of a class, two blanks less on each line."""
    inner = text[text.index("{") + 1:text.rindex("}")]
    return re.sub(r"^  ", "", inner, flags=re.M).replace("\n public:", "\npublic:").replace("\n private:", "\nprivate:")


def declarations(found, language, level, known, within=""):
    made, before = [], None
    for item in found:
        if item.kind == "section":
            made += [f"{'#' * level} {item.text[:1].upper()}{item.text[1:]}", ""]
        elif item.kind == "text":
            made += prose(item.text, known)
        else:
            name = item.name
            if within and not item.comment and name.lstrip("~") in (within[:-2], "operator="):
                continue  # copies and moves, which do what they do everywhere
            if name != before:
                made += [f"{'#' * (level + 1)} {within}{name.replace('<', chr(92) + '<')}".replace("_", "\\_"), ""]
            before = name
            made += prose(item.comment, known) if item.comment else []
            has_body = re.match(r"(template <.*>\n)?class ", item.text) and "{" in item.text  # else it is only named
            members = list(items(body_of(item.text))) if has_body else []
            if any(m.comment for m in members):
                made += declarations(members, language, level + 1, known, f"{name}::")
                before = None
            else:
                made += code(re.sub(r"\n private:.*(?=\n\};)", "", item.text, flags=re.S), language)
    return made


def page(root, file, known):
    language = "cpp" if file.suffix == ".hpp" else "c"
    text = re.sub(r"SPDX-License-Identifier: Apache-2.0\n(?:// ?| \* ?)?", "", file.read_text(), count=1)
    found = list(items(without_guards(text)))
    lines = [f"# {file.name.replace('_', chr(92) + '_')}", "", *code(f"#include <tosaic/{file.name}>", language)]
    if found and found[0].kind == "declaration" and found[0].comment:  # no empty line after the head
        found.insert(0, Item("text", found[0].comment))
        found[1].comment = ""
    level = 2 if any(item.kind == "section" for item in found) else 1
    return "\n".join(lines + declarations(found, language, level, known))


def page_of(path):
    """Of a header, or of their folder; None: it is none."""
    if path == INCLUDE:
        return f"{FOLDER}/headers.md"
    if posixpath.dirname(path) != INCLUDE:
        return None
    name = posixpath.basename(path)
    return f"{FOLDER}/{name.replace('.', '-')}.md"


def files(root, ending):
    return sorted(p for p in (root / INCLUDE).iterdir() if p.suffix == ending and p.stem != "export")


def first_sentence(text):
    found = re.search(r"SPDX[^\n]*\n(?:// ?| \* )(.*?)(?:[.:](?:\s|$)|\n(?:// ?| \* ?)\n)", text, re.S)
    return re.sub(r"\s*\n(?:// ?| \* ?)", " ", found[1]).strip() if found else ""


def navigation(root, ending):
    return [{file.name: page_of(f"{INCLUDE}/{file.name}")} for file in files(root, ending)]


def pages(root):
    known = codes(root)
    made, rows = {}, []
    for title, ending in (("C++", ".hpp"), ("C", ".h")):
        rows += [f"## {title}", "", "| header | what |", "|---|---|"]
        for file in files(root, ending):
            path = page_of(f"{INCLUDE}/{file.name}")
            made[path] = page(root, file, known)
            about = first_sentence(file.read_text()).replace("|", "\\|").replace("<", "&lt;")
            rows.append(f"| [{file.name}]({posixpath.basename(path)}) | {about} |")
        rows.append("")
    made[page_of(INCLUDE)] = "\n".join(["# Headers", "", "The interfaces of `libtosaic`. A program that embeds it: "
                                        "[examples](../../examples/README.md#cpp).", "", *rows])
    made[page_of(f"{INCLUDE}/export.hpp")] = page(root, root / INCLUDE / "export.hpp", known)
    return made
