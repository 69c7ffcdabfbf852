#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tool for aarch64, under qemu, and this machine's own: what they compile must be the same bytes, and programs must
give the same results on both: integers to the bit, floats but for the last digits (an exponential has a form of its own for
AVX-512).

    run_aarch64.py NATIVE EMULATED ROOT [PYTHON_PACKAGE NUMPY]
    run_aarch64.py --runtime NATIVE EMULATED ROOT

The second way compares the programs run_tosa and run_ethos_u (test/delegates/run_program.cpp), which lie next to the
tools, on what the native tool compiles; EMULATED itself need not be there.

ROOT has the arm64 libraries (.ci/arm64-root) and, if the last two are there, the Python that imports the package for
aarch64 and runs a program with it. Prints a line per comparison and ends with 1 if anything differs.
"""
import math
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
DIGITS, MODELS = ROOT / "examples" / "digits", ROOT / "build" / "models"

# Of each target's kinds of arithmetic one.
WAYS = {"tosa-fp": [], "tosa-int": [], "tosa-int, int16x8": ["--target", "tosa-int", "--quantize", "int16x8"],
        "ethos-u55-128": [], "ethos-u85-256": [], "vgf": [], "vgf, int8": ["--target", "vgf", "--quantize", "int8"],
        "vulkan": []}

PACKED = ["program, [0-9]+ bytes", "TosaicVulkan: [0-9]+ bytes", "modules of [0-9]+ bytes"]  # of what was compressed

PACKAGE = """
import numpy, sys, tosaic
artifact = tosaic.compile(sys.argv[1], target="tosa-int", calibration=sys.argv[2])
numpy.save(sys.argv[4], artifact.run(numpy.load(sys.argv[3])))
print(tosaic.__version__)
"""


# Programs that are delegated as a whole: integers on every kernel's int8 and int16 form, and the NPU's simulator.
RUNTIMES = {"tosa-fp": "run_tosa", "tosa-int": "run_tosa", "ethos-u55-128": "run_ethos_u", "ethos-u85-256": "run_ethos_u"}
PROGRAMS = {DIGITS / "digits.pt2": (1, 1, 8, 8), MODELS / "keyword_spotting.pt2": (1, 1, 49, 10), MODELS / "tiny_vit.pt2": (1, 3, 32, 32)}


def near(a, b):
    """Bytes of floats of 32 bits: no two are further apart than a millionth of the largest."""
    if len(a) != len(b):
        return False
    a, b = (struct.unpack(f"{len(data) // 4}f", data) for data in (a, b))
    return max(abs(x - y) for x, y in zip(a, b)) <= 1e-6 * max(map(abs, a))


class Compared:
    def __init__(self, native, emulated):
        self.tools, self.bad = {"native": native, "emulated": emulated}, 0

    def say(self, what, good, why=""):
        self.bad += not good
        print(f"{'same' if good else 'DIFFERS':8} {what}{why and ': '}{why}", flush=True)

    def text(self, *arguments, instead=None, without=()):
        """What both print is the same; `instead`: the emulated one's last argument; `without`: patterns that may differ."""
        given = {"native": arguments, "emulated": [*arguments[:-1], instead or arguments[-1]]}
        said = {name: subprocess.run([*tool, *given[name]], check=True, capture_output=True, text=True).stdout
                for name, tool in self.tools.items()}
        for name, words in given.items():
            said[name] = re.sub("|".join(without) or "(?!)", "", said[name].replace(str(words[-1]), ""))
        self.say(" ".join(map(str, arguments)), said["native"] == said["emulated"])

    def model(self, model, samples, inputs, name, folder):
        """Both compile it, and both run what the native one made."""
        way = ["--calibrate", samples, *(WAYS[name] or ["--target", name])]
        floats = name in ("tosa-fp", "vgf", "vulkan")
        for tool, command in self.tools.items():
            subprocess.run([*command, "compile", model, *(way[2:] if floats else way), "-o", folder / f"{tool}.pte"], check=True,
                           capture_output=True)
        if name == "vulkan":
            # Shaders' instructions stand in the order in which the compiler evaluates arguments; there is nothing to run them
            # on under qemu.
            return self.text("inspect", folder / "native.pte", instead=folder / "emulated.pte", without=PACKED)
        same = (folder / "native.pte").read_bytes() == (folder / "emulated.pte").read_bytes()
        self.say(f"{model.stem} compiled for {name}", same)
        for tool, command in self.tools.items():
            (folder / tool).mkdir(exist_ok=True)
            subprocess.run([*command, "run", folder / "native.pte", *inputs, "--output-dir", folder / tool], check=True,
                           capture_output=True)
        outputs = [[f.read_bytes() for f in sorted((folder / tool).glob("*.npy"))] for tool in self.tools]
        self.say(f"{model.stem} run for {name}", outputs[0] and outputs[0] == outputs[1])


def compare_packages(compared, emulator, root, package, numpy, folder):
    """The package in an aarch64 Python, which has no PyTorch here."""
    interpreter = [*emulator, root / "usr/bin/python3"]
    done = subprocess.run(["env", f"PYTHONPATH={package}:{numpy}", f"PYTHONHOME={root / 'usr'}", *interpreter, "-c", PACKAGE,
                           DIGITS / "digits.pt2", DIGITS / "digits_samples.npz", DIGITS / "digit.npy", folder / "package.npy"],
                          capture_output=True, text=True)
    if done.returncode:
        return compared.say("the Python package", False, done.stderr)
    native = compared.tools["native"]
    subprocess.run([*native, "compile", DIGITS / "digits.pt2", "--target", "tosa-int", "--calibrate", DIGITS / "digits_samples.npz",
                    "-o", folder / "p.pte"], check=True, capture_output=True)
    subprocess.run([*native, "run", folder / "p.pte", "--input", DIGITS / "digit.npy", "--output-dir", folder], check=True,
                   capture_output=True)
    same = (folder / "package.npy").read_bytes() == (folder / "output_0.npy").read_bytes()
    compared.say(f"the Python package, {done.stdout.strip()}: digits compiled and run", same)


def compare_runtimes(native, emulated, emulator, folder):
    """The runtime with one delegate and no kernels, as a device would link it: the same bytes from the same bytes."""
    compared = Compared([native], emulator)
    for model, sizes in PROGRAMS.items():
        samples = model.with_name(f"{model.stem}_samples.npz")
        for target, program in RUNTIMES.items():
            floats = target == "tosa-fp"
            made, given = folder / "m.pte", folder / "in"
            quantised = [] if floats else ["--calibrate", samples, "--io", "quantized"]
            subprocess.run([native, "compile", model, "--target", target, *quantised, "-o", made], check=True, capture_output=True)
            noise = random.Random(0).randbytes(math.prod(sizes))
            given.write_bytes(struct.pack(f"{len(noise)}f", *(b / 64 - 2 for b in noise)) if floats else noise)
            results = []
            for place, before in ((native, []), (emulated, emulator)):
                subprocess.run([*before, pathlib.Path(place).with_name(program), made, given, folder / "out"], check=True)
                results.append((folder / "out").read_bytes())
            same = near(*results) if floats else results[0] == results[1]
            compared.say(f"{model.stem} for {target} in {program}", results[0] and same)
    return compared


def main(native, emulated, root, package=None, numpy=None, runtime=False):
    qemu = shutil.which("qemu-aarch64-static") or shutil.which("qemu-aarch64")
    if not qemu:
        sys.exit("qemu-aarch64 is not installed (Debian: qemu-user-static)")
    root = pathlib.Path(root).resolve()
    emulator = [qemu, "-L", root]
    if runtime:
        with tempfile.TemporaryDirectory() as folder:
            sys.exit(bool(compare_runtimes(native, emulated, emulator, pathlib.Path(folder)).bad))
    compared = Compared([native], [*emulator, emulated])
    compared.text("--version")
    compared.text("ops", "--markdown")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for name in WAYS:
            compared.model(DIGITS / "digits.pt2", DIGITS / "digits_samples.npz", ["--input", DIGITS / "digit.npy"], name, folder)
        for name in ("tosa-fp", "tosa-int", "ethos-u55-128"):
            compared.model(MODELS / "keyword_spotting.pt2", MODELS / "keyword_spotting_samples.npz", [], name, folder)
        if package:
            compare_packages(compared, emulator, root, package, numpy, folder)
    sys.exit(bool(compared.bad))


if __name__ == "__main__":
    main(*(a for a in sys.argv[1:] if a != "--runtime"), runtime="--runtime" in sys.argv)
