# SPDX-License-Identifier: Apache-2.0
"""Reads, runs and rewrites one golden text test; README.md describes the file."""
import dataclasses
import pathlib
import re
import shlex
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
PARTS_WITH_TEXT = {"file", "bytes", "stdout", "stderr", "text"}
PARTS_WITHOUT = {"copy", "mask", "exit", "no"}


@dataclasses.dataclass
class Part:
    kind: str
    argument: str
    text: str = ""


@dataclasses.dataclass
class Golden:
    head: list  # comment lines
    commands: list
    parts: list

    def all(self, kind):
        return [p for p in self.parts if p.kind == kind]

    def text(self, kind):
        return "".join(p.text for p in self.all(kind))

    @property
    def exit_code(self):
        return int(next((p.argument for p in self.all("exit")), 0))


def parse(text):
    golden = Golden([], [], [])
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("--- "):
            kind, _, argument = line[4:].partition(" ")
            if kind not in PARTS_WITH_TEXT | PARTS_WITHOUT:
                raise ValueError(f"line {number}: no such part: {kind}")
            golden.parts.append(Part(kind, argument))
        elif golden.parts:
            if golden.parts[-1].kind in PARTS_WITHOUT:
                raise ValueError(f"line {number}: {golden.parts[-1].kind} takes no text")
            golden.parts[-1].text += line + "\n"
        elif line.startswith("$ "):
            golden.commands.append(line[2:])
        elif line.startswith("#") or not line.strip():
            golden.head.append(line)
        else:
            raise ValueError(f"line {number}: neither a comment, a command nor a part")
    if not golden.commands:
        raise ValueError("no command")
    return golden


def run(golden, tosaic, folder):
    """(exit code, stdout, stderr) of the commands, run in `folder`, masked."""
    for part in golden.parts:
        target = folder / pathlib.Path(part.argument).name
        if part.kind == "copy":
            shutil.copy(ROOT / part.argument, target)
        elif part.kind == "file":
            target.write_text(part.text)
        elif part.kind == "bytes":
            target.write_bytes(bytes.fromhex(part.text))
    code, out, err = 0, "", ""
    for command in golden.commands:
        name, *arguments = shlex.split(command)
        if name != "tosaic":
            raise ValueError(f"only tosaic is run here, not {name}")
        done = subprocess.run([tosaic, *arguments], cwd=folder, capture_output=True, text=True, errors="replace", timeout=120)
        code, out, err = done.returncode, out + done.stdout, err + done.stderr
        if code != 0:
            break
    for mask in golden.all("mask"):
        out, err = (re.sub(mask.argument, "~", text) for text in (out, err))
    return code, out, err


def blessed(golden, code, out, err, folder):
    """The file's text with what was found in place of what was expected."""
    lines = golden.head + [f"$ {c}" for c in golden.commands]
    text = "".join(line + "\n" for line in lines)
    for part in golden.parts:
        if part.kind not in ("exit", "stdout", "stderr", "text"):
            text += f"--- {part.kind} {part.argument}\n" + part.text
    if code != 0:
        text += f"--- exit {code}\n"
    for part in golden.all("text"):
        text += f"--- text {part.argument}\n" + ended((folder / part.argument).read_text())
    for kind, found in (("stdout", out), ("stderr", err)):
        if found:
            text += f"--- {kind}\n" + ended(found)
    return text


def ended(text):
    return text if not text or text.endswith("\n") else text + "\n"
