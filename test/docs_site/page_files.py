# SPDX-License-Identifier: Apache-2.0
"""The files that a page's reader has, by the names that pages give them: made where a block names one that is not there."""
import pathlib
import re
import shutil
import subprocess
import sys

from code_blocks import ROOT

HERE = pathlib.Path(__file__).resolve().parent
DIGITS = ROOT / "examples/digits"
CLI = ROOT / "test/cli/models"
COPIES = {
    **{name: DIGITS / name for name in ("digits.pt2", "digits_samples.npz", "digits_test.npz", "digit.npy", "make_digits.py")},
    **{name: CLI / name for name in ("unknown_operator.pt2", "dynamic_batch.pt2")},
    **{name: DIGITS / "digits.pt2" for name in ("net.pt2", "m.pt2", "keyword_spotting.pt2", "model.pt2")},
    "samples.npz": DIGITS / "digits_samples.npz",
    "x.npy": DIGITS / "digit.npy",
    "add_mul.pte": ROOT / "test/formats/pte/add_mul.pte",
}
# By page_programs.py, which needs PyTorch. docs/ethos-u.md has a model of its own.
PROGRAMS = {"decoder.pt2": "caches", "prefill.pt2": "caches", "decode.pt2": "caches", "token.npy": "caches", "position.npy": "caches",
            ("docs/ethos-u.md", "net.pt2"): "net", ("docs/executorch.md", "model.pte"): "vulkan_flow",
            "model.bpte": "bundle"}
TEXTS = {"export.py": "from executorch.backends.arm.ethosu import EthosUPartitioner\n"}
# What a command of an earlier page has made.
MADE = {
    "digits.pte": "compile digits.pt2 --calibrate digits_samples.npz",
    "digits_u55.pte": "compile digits.pt2 --target ethos-u55-128 --calibrate digits_samples.npz",
    "model.pte": "compile model.pt2 --calibrate samples.npz",
    "net.pte": "compile net.pt2 --calibrate samples.npz",
    "net.tosa": "compile net.pt2 --calibrate samples.npz",
}
NAME = re.compile(r"[\w.-]+\.(?:pt2|b?pte|npz|npy|tosa|py)\b")


def make(page, name, folder, tosaic):
    if program := PROGRAMS.get((page, name), PROGRAMS.get(name)):
        subprocess.run([sys.executable, HERE / "page_programs.py", program], cwd=folder, check=True)
    elif name in TEXTS:
        (folder / name).write_text(TEXTS[name])
    elif name in COPIES:
        shutil.copy(COPIES[name], folder / name)
    elif name in MADE:
        provide_names(page, MADE[name], folder, tosaic)
        subprocess.run([tosaic, *MADE[name].split(), "-o", name, "-q"], cwd=folder, check=True)


def provide_names(page, text, folder, tosaic):
    written = set(re.findall(r"(?:-o|--emit \w+=|>) ?([\w./-]+)", text))
    for name in NAME.findall(text):
        if not (folder / name).exists() and name not in written:
            make(page, name, folder, tosaic)


def provide(block, folder, tosaic):
    """Makes the files that a block reads, where they are not there."""
    text = block.text
    if block.language == "console":
        text = "\n".join(re.findall(r"^\$ .*", text, re.M))
    provide_names(block.page, text, folder, tosaic)
