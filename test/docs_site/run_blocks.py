# SPDX-License-Identifier: Apache-2.0
"""Runs code blocks of shell, C and C++ as a page's reader would, in a folder that has the files which they name."""
import os
import pathlib
import re
import subprocess
import sys

import page_files
from code_blocks import ROOT

# Times, and what depends on the machine.
VARIES = re.compile(r"(?<=^  time       ).*|(?<=^  one run    ).*|(?<=^  throughput ).*|(?<= in )\S+ s, \S+ per second, \d+ at once|\d+(?:\.\d+)?(?: ms\b| s\b| inferences/s)", re.M)
GIVEN_IN_CPP = "tosaic::OwnedTensor image{tosaic::DType::f32, {1, 1, 8, 8}, tosaic::Bytes::copy(std::vector<float>(64).data(), 256)};\n"


def run(words, folder, tosaic):
    path = os.pathsep.join([str(pathlib.Path(tosaic).parent), str(pathlib.Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run([str(w) for w in words], cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          timeout=300, env=os.environ | {"PATH": path})


def alike(shown, printed):
    """Are they the same but for what varies? `...` at the end of what is shown stands for the rest; nothing, for anything."""
    shown, printed = VARIES.sub("~", shown), VARIES.sub("~", printed)
    head, dots, _ = shown.partition("...\n")
    return printed.startswith(head) if dots or not shown.strip() else printed.strip() == shown.strip()


def run_console(block, folder, tosaic):
    for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block.text, re.M):
        if command.startswith("cat "):
            (folder / command[4:]).write_text(shown)
        elif command.startswith("cd "):
            folder = folder / command[3:]
        else:
            done = run(["bash", "-c", command], folder, tosaic)
            assert alike(shown, done.stderr + done.stdout), f"{block.name}\n{done.stderr}{done.stdout}"


def run_shell(block, folder, tosaic, without=""):
    """`without` begins lines that are left out."""
    lines = [line for line in block.text.splitlines() if not (without and line.startswith(without))]
    done = run(["bash", "-euc", "\n".join(lines)], folder, tosaic)
    assert done.returncode == 0, f"{block.name}\n{block.text}\n{done.stdout}{done.stderr}"


def program_of(block):
    """A block of C or C++ as a file, and whether it has a `main`: statements become its body."""
    functions = re.search(r"^\w[^;\n]*\)[^;\n]*\{$", block.text, re.M)
    if functions:
        return block.text, "int main(" in block.text
    includes = "".join(re.findall(r"^#include.*\n", block.text, re.M))
    rest = re.sub(r"^#include.*\n", "", block.text, flags=re.M)
    given = GIVEN_IN_CPP if re.search(r"\bimage\b", rest) else ""
    return f"#include <vector>\n{includes}int main() {{\n{given}{rest}return 0;\n}}\n", True


def run_compiled(block, folder, tosaic):
    text, has_main = program_of(block)
    source = folder / f"block_{block.line}.{block.language}"
    source.write_text(text)
    compiler = ["cc", "-std=c11"] if block.language == "c" else ["c++", "-std=c++20"]
    library = pathlib.Path(tosaic).resolve().parents[1]  # the build's folder
    ends = ["-L", library, f"-Wl,-rpath,{library}", "-ltosaic", "-o", f"block_{block.line}"] if has_main else ["-c"]
    done = run([*compiler, "-Wall", f"-I{ROOT / 'include'}", f"-I{folder / 'fw'}", source, *ends], folder, tosaic)
    assert done.returncode == 0, f"{block.name}\n{done.stderr}"
    if has_main:
        done = run([f"./block_{block.line}"], folder, tosaic)
        assert done.returncode == 0, f"{block.name}\n{done.stdout}{done.stderr}"


def run_block(block, folder, tosaic, without=""):
    page_files.provide(block, folder, tosaic)
    if block.language == "console":
        run_console(block, folder, tosaic)
    elif block.language == "sh":
        run_shell(block, folder, tosaic, without)
    else:
        run_compiled(block, folder, tosaic)
