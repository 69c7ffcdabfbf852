# SPDX-License-Identifier: Apache-2.0
"""make_seeds.py TOSAIC OUTPUT: real files for the fuzzers of formats that nobody keeps files of here: OUTPUT/tosa, pte,
ptd, ethosu, vulkan and shader, made of the programs in seeds/stages and of the digits model. Vela has to be on PATH."""
import pathlib
import struct
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
DIGITS = HERE.parent.parent / "examples/digits"


def fields(file, table):
    """Where the fields of a flatbuffer's table lie; None: it has its default."""
    vtable = table - struct.unpack_from("<i", file, table)[0]
    size, = struct.unpack_from("<H", file, vtable)
    return [table + at if at else None for at in struct.unpack_from(f"<{size // 2 - 2}H", file, vtable + 4)]


def follow(file, at):
    return at + struct.unpack_from("<I", file, at)[0]


def tables(file, at):
    vector = follow(file, at)
    return [follow(file, vector + 4 + 4 * i) for i in range(struct.unpack_from("<I", file, vector)[0])]


def unpacked(data):
    """The words of a module, as src/formats/spirv/packed_module.h packs them."""
    data = iter(data)

    def number():
        found = shift = 0
        for byte in data:
            found |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                return found & 0xffffffff
        raise StopIteration
    words = [0x07230203] + [number() for _ in range(4)]
    before = {}
    while True:
        try:
            head = number()
        except StopIteration:
            return struct.pack(f"<{len(words)}I", *words)
        opcode, count = head >> 4, head & 15
        count += number() if count == 15 else 0
        words.append(count + 1 << 16 | opcode)
        for i in range(count):
            place, step = (opcode % 512, min(i, 7)), number()
            before[place] = before.get(place, 0) + (step >> 1 ^ -(step & 1)) & 0xffffffff
            words.append(before[place])


def modules(payload):
    """The shaders of a payload, src/formats/vulkan_program/vulkan_program.fbs."""
    for tier in tables(payload, fields(payload, follow(payload, 0))[5]):
        for module in tables(payload, fields(payload, tier)[2]):
            vector = follow(payload, fields(payload, module)[1])
            yield unpacked(payload[vector + 4:vector + 4 + struct.unpack_from("<I", payload, vector)[0]])


def main(tosaic, output):
    names = "tosa", "pte", "ptd", "ethosu", "vulkan", "vulkan_backend", "shader"
    tosa, pte, ptd, ethosu, vulkan, theirs, shader = folders = [output / name for name in names]
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)

    def compile_(model, name, *options):
        subprocess.run([tosaic, "compile", "--quiet", model, "-o", pte / f"{name}.pte", *options], check=True)
        return (pte / f"{name}.pte").read_bytes()

    for program in sorted((HERE / "seeds/stages").glob("*.txt")):
        compile_(program, program.stem, "--target", "tosa-fp", "--emit", f"tosa={tosa / program.stem}.tosa")
        compile_(program, f"{program.stem}_vulkan", "--target", "vulkan")
        subprocess.run([tosaic, "extract", "--quiet", pte / f"{program.stem}_vulkan.pte", "-o", vulkan / program.stem], check=True)
        for payload in (vulkan / program.stem).iterdir():
            for number, module in enumerate(modules(payload.read_bytes())):
                (shader / f"{program.stem}_{payload.stem}_{number}").write_bytes(module)
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
