# SPDX-License-Identifier: Apache-2.0
"""What programs read: completion scripts, in the shells themselves, and the shape of JSON."""
import io
import json
import pathlib
import re
import shutil
import subprocess
import zipfile

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MESSAGE = {"severity", "code", "message", "file", "line", "text", "context", "notes", "help"}


@pytest.fixture
def script(tosaic, tmp_path):
    def write(shell):
        path = tmp_path / f"completion.{shell}"
        path.write_text(subprocess.run([tosaic, "completion", shell], capture_output=True, text=True, check=True).stdout)
        return path
    return write


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def bash(script, *words):
    line = " ".join(f"'{w}'" for w in words)
    return run("bash", "-c", f"source {script('bash')}; COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; compopt() {{ :; }};"
               "_tosaic; printf '%s\\n' \"${COMPREPLY[@]}\"")


def fish(script, *words):
    return [line.split()[0] for line in
            subprocess.run(["fish", "--no-config", "-c", f"source {script('fish')}; complete -C'{' '.join(words)}'"],
                           capture_output=True, text=True, timeout=60, check=True).stdout.splitlines()]


@pytest.mark.parametrize("complete", [bash, fish])
def test_offers(complete, script):
    if not shutil.which(complete.__name__):
        pytest.skip(f"{complete.__name__} is not installed")
    assert set(complete(script, "tosaic", "comp")) == {"compare", "compile", "completion"}
    assert set(complete(script, "tosaic", "compile", "--cal")) == {"--calibrate"}
    assert set(complete(script, "tosaic", "compile", "m.pt2", "--io", "")) == {"float", "quantized"}
    assert set(complete(script, "tosaic", "explain", "--target", "ethos-u65-")) == {"ethos-u65-256", "ethos-u65-512"}
    assert set(complete(script, "tosaic", "completion", "")) == {"bash", "zsh", "fish"}
    assert set(complete(script, "tosaic", "help", "ins")) == {"inspect"}
    assert "--trace" not in complete(script, "tosaic", "inspect", "--")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_script_is_valid(shell, script):
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    run(shell, "-n", script(shell))


def test_every_command_and_option_is_there(tosaic, script):
    """From the help, which the parser writes too."""
    def helped(*command):
        return subprocess.run([tosaic, *command, "--help"], capture_output=True, text=True, check=True).stdout
    commands = [line.split()[0] for line in helped().split("Subcommands:")[1].split("`tosaic help")[0].splitlines() if line.strip()]
    assert {"compile", "run", "help"} <= set(commands)
    for shell in ("bash", "zsh", "fish"):
        text = script(shell).read_text()
        for command in commands:
            assert command in text
            for line in helped(command).splitlines():
                for option in (w for w in line.split()[0:1] if w.startswith("-")):
                    for name in option.split(","):
                        assert (f"-l {name[2:]}" if shell == "fish" and name.startswith("--") else
                                f"-s {name[1:]}" if shell == "fish" else name) in text, (shell, command, name)


def test_json_has_one_shape(tosaic, tmp_path):
    """Of what all commands print, and of messages."""
    digits = ROOT / "examples/digits"
    shutil.copy(digits / "digits.pt2", tmp_path / "m.pt2")
    calls = [["compile", "m.pt2", "--target", "vgf", "-o", "m.pte", "--emit", "tosa=m.tosa"], ["explain", "m.pt2"], ["compare", "m.pt2"],
             ["inspect", "m.pte"], ["run", "m.pte"], ["extract", "m.pte", "-o", "parts"],
             ["convert", "m.tosa", "-o", "m.vgf"], ["ops"], ["explain-error", "pt2"], ["inspect", "m.tosa"], ["inspect", "m.pt2"]]
    found = {}
    for call in calls:
        done = subprocess.run([tosaic, *call, "--json"], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        answer = json.loads(done.stdout)
        assert list(answer)[:2] == ["tosaic", "command"] and answer["command"] == call[0]
        for line in done.stderr.splitlines():
            assert set(json.loads(line)) == MESSAGE
        found[call[0]] = answer
    assert set(found["explain"]) == set(found["compile"])
    for call, code in ((["inspect", "none"], 1), (["insp"], 2), (["run", "m.pte", "--threads", "x"], 2)):
        done = subprocess.run([tosaic, *call, "--json"], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == code and done.stdout == ""
        answer = json.loads(done.stderr)
        assert set(answer) == MESSAGE and answer["severity"] == "error" and answer["help"]


def test_control_characters_are_shown(tosaic, tmp_path):
    """Whoever wrote the file chose the names: a terminal must not obey them."""
    array = io.BytesIO()
    np.save(array, np.zeros(3, np.float32))
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("\x1b[31mred\x9b\r.npy", array.getvalue())
        archive.writestr("plain.npy", b"no array")
    done = subprocess.run([tosaic, "inspect", "a.npz"], cwd=tmp_path, capture_output=True)
    assert done.returncode == 1 and b"a.npz:plain.npy: error[npy.not-npy]" in done.stderr
    with zipfile.ZipFile(tmp_path / "b\x1b[2J.npz", "w") as archive:
        archive.writestr("\x1b[31mred\x9b\r.npy", array.getvalue())
    for more, shown in (((), b"\\x1b[31mred\\x9b\\x0d"), (("--json",), b"\\u001b[31mred\\u009b\\r")):
        done = subprocess.run([tosaic, "inspect", "b\x1b[2J.npz", *more], cwd=tmp_path, capture_output=True)
        assert done.returncode == 0 and shown in done.stdout and b"\x1b" not in done.stdout
    done = subprocess.run([tosaic, "run", "b\x1b[2J.npz"], cwd=tmp_path, capture_output=True)
    assert done.returncode == 1 and b"\x1b" not in done.stderr and b"b\\x1b[2J.npz: error" in done.stderr
