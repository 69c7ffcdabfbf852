# SPDX-License-Identifier: Apache-2.0
"""make_seeds.py TOSAIC OUTPUT: real files for the fuzzers of formats that nobody keeps files of here: OUTPUT/tosa, pte,
ptd, ethosu and vulkan, made of the programs in seeds/stages and of the digits model. Vela has to be on PATH."""
import pathlib
import struct
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
DIGITS = HERE.parent.parent / "examples/digits"


def main(tosaic, output):
    names = "tosa", "pte", "ptd", "ethosu", "vulkan", "vulkan_backend"
    tosa, pte, ptd, ethosu, vulkan, theirs = folders = [output / name for name in names]
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)

    def compile_(model, name, *options):
        subprocess.run([tosaic, "compile", "--quiet", model, "-o", pte / f"{name}.pte", *options], check=True)
        return (pte / f"{name}.pte").read_bytes()

    for program in sorted((HERE / "seeds/stages").glob("*.txt")):
        compile_(program, program.stem, "--target", "tosa-fp", "--emit", f"tosa={tosa / program.stem}.tosa")
        compile_(program, f"{program.stem}_vulkan", "--target", "vulkan")
        subprocess.run([tosaic, "extract", "--quiet", pte / f"{program.stem}_vulkan.pte", "-o", vulkan / program.stem], check=True)
    for program in sorted((HERE.parent / "plugin/vulkan").glob("*.pte")):
        file = program.read_bytes()
        at = file.index(b"VH00") - 4  # src/formats/vulkan_backend/read.cpp has the header
        constants, size = struct.unpack_from("<IQ", file, at + 18)
        (theirs / program.stem).write_bytes(file[at:at + constants + size])
    for target in ("ethos-u55-128", "ethos-u65-256", "ethos-u85-256"):
        samples = ["--target", target, "--calibrate", DIGITS / "digits_samples.npz"]
        compile_(DIGITS / "digits.pt2", "external", *samples, "--external", f"weights={ptd / target}.ptd")
        file = compile_(DIGITS / "digits.pt2", target, *samples)
        # src/formats/vela/vela.h has the blocks; the fuzzer takes a kilobyte of constants, then the commands.
        blocks = {}
        for name in (b"cmd_data", b"weight_data"):
            at = file.index(name)
            size, = struct.unpack_from("<I", file, at + 16)
            blocks[name] = file[at + 32:at + 32 + size]
        (ethosu / target).write_bytes(blocks[b"weight_data"][:1024].ljust(1024, b"\0") + blocks[b"cmd_data"])


if __name__ == "__main__":
    main(sys.argv[1], pathlib.Path(sys.argv[2]))
