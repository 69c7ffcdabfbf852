# SPDX-License-Identifier: Apache-2.0
"""The options that users' pages name are those of the tool, and of the command that they stand with."""
import re
import subprocess

import pytest
from code_blocks import ROOT

# Of other tools, and told as such. docs/parity.md is about ExecuTorch's.
OTHERS = {"--gc-sections", "--specs", "--list-configs", "--optimise", "--separate-io-regions", "--cop-format", "--strict",
          "--whole-archive", "--cflags", "--libs", "--install", "--component", "--prefix", "--build", "--select_ops_list", "--bundleio",
          "--elf", "--target", "--target-profile", "--performance", "--backend", "--pte", "--output", "--build_type", "--extra_build_flags", "--all-models", "--executors", "--list", "--bless"}
OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]+")
PAGES = ["README.md", *(f"docs/{p.name}" for p in sorted((ROOT / "docs").glob("*.md")) if p.name != "parity.md")]


@pytest.fixture(scope="module")
def options(tosaic):
    """command -> the options that its help shows."""
    def shown(*command):
        done = subprocess.run([tosaic, *command, "--help"], capture_output=True, text=True, check=True, timeout=60)
        return set(OPTION.findall(done.stdout)) | {"--help", "--version"}
    top = subprocess.run([tosaic, "--help"], capture_output=True, text=True, check=True).stdout
    commands = re.findall(r"^  ([a-z-]+) {2,}\S", top.split("Subcommands:")[1], re.M)
    known = {name: shown(name) | set(OPTION.findall(top)) for name in commands}
    return known


@pytest.mark.parametrize("page", PAGES)
def test_options(page, options):
    known = set.union(*options.values()) | OTHERS
    text = (ROOT / page).read_text()
    wrong = [f"{page}:{text.count(chr(10), 0, m.start()) + 1}: no command has {m[0]}" for m in OPTION.finditer(text)
             if m[0] not in known and not m[0].startswith("--no-")]
    for call in re.finditer(r"\btosaic ([a-z-]+) ([^`\n|]*(?:\\\n[^`\n|]*)*)", text):
        if call[1] in options:
            line = re.split(r" #|&&|;|\$\(", call[2])[0]
            wrong += [f"{page}:{text.count(chr(10), 0, call.start()) + 1}: {call[1]} has no {option}" for option in OPTION.findall(line)
                      if option not in options[call[1]] and not option.startswith("--no-")]
    assert wrong == []
