# SPDX-License-Identifier: Apache-2.0
"""The reference of the command line, made of the help that the tool prints: test/cli keeps it, and tests that it is so."""
import re

PAGE = "docs/reference/commands.md"
COMMAND = re.compile(r"^\$ tosaic (?:help (?P<asked>[a-z-]+)|(?P<shown>[a-z-]+) --help)$", re.M)


def helps(root):
    """command -> what its help prints, in the order of `tosaic help`."""
    found = {}
    for path in sorted((root / "test/cli").rglob("*.txt")):
        text = path.read_text()
        command = COMMAND.search(text)
        if command and text.count("\n$ ") + text.startswith("$ ") == 1 and "--- exit" not in text:
            found[command["asked"] or command["shown"]] = text.split("--- stdout\n")[1]
    listed = re.findall(r"^  ([a-z-]+) {2,}\S", (root / "test/cli/help.txt").read_text().split("Subcommands:")[1], re.M)
    return {name: found[name] for name in listed if name in found}


def cell(text):
    return text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_")


def table(lines):
    """Of options: a line begins with the option; what it does stands after two blanks, or on the lines below."""
    rows = []
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if indent < 8:
            name, _, about = line.strip().partition("  ")
            rows.append([name, about.strip()])
        elif rows:
            rows[-1][1] = f"{rows[-1][1]} {line.strip()}".strip()
    code = lambda name: "`" + name.replace("|", "\\|") + "`"
    return ["| | |", "|---|---|", *(f"| {code(name)} | {cell(about)} |" for name, about in rows), ""]


def section(name, text):
    about, usage, *lines = text.rstrip().split("\n")
    made = [f"## {name}", "", f"{about[0].upper()}{cell(about[1:])}.", "", "```text", usage.removeprefix("Usage: "), "```", ""]
    rows, examples, title = [], None, ""

    def close():
        nonlocal rows
        if rows and title != "General":  # the same in each: told once
            made.extend(([f"**{title}**", ""] if title else []) + table(rows))
        rows = []

    for line in lines:
        group = re.match(r"\[Option Group: (.*)\]", line)
        if examples is not None:
            examples.append(line.strip())
        elif line in ("example:", "examples:"):
            close()
            examples = []
        elif group or (line.endswith(":") and not line.startswith(" ")):
            close()
            title = group[1] if group else line.rstrip(":")
        elif line.strip() and line.strip() != "Options:":
            rows.append(line)
    close()
    if examples:
        made += ["**Examples**", "", "```text", *(e for e in examples if e), "```", ""]
    return made


def pages(root):
    general = (root / "test/cli/help.txt").read_text().split("General:\n")[1].split("\n\n")[0]
    lines = ["# Commands", "", "What `tosaic help COMMAND` prints. How commands behave, their messages and exit codes: "
             "[the command line](../command-line.md).", "", "**Options of every command**", "", *table(general.split("\n"))]
    for name, text in helps(root).items():
        lines += section(name, text)
    return {PAGE: "\n".join(lines)}
