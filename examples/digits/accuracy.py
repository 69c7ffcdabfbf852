# SPDX-License-Identifier: Apache-2.0
"""accuracy.py TOSAIC DATA_DIR WORK_DIR: runs the float and the int8 program over the held-out digits.

Only the standard library: it reads and writes .npy by itself, so that the demo needs neither PyTorch nor NumPy.
"""
import array
import ast
import os
import pathlib
import struct
import subprocess
import sys
import time
import zipfile

TYPES = {"<f4": "f", "<i8": "q"}


def parse_npy(data):
    length = struct.unpack_from("<H", data, 8)[0]
    header = ast.literal_eval(data[10:10 + length].decode("latin1"))
    values = array.array(TYPES[header["descr"]])
    values.frombytes(data[10 + length:])
    return header["shape"], values


def npy(shape, floats):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {tuple(shape)}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + array.array("f", floats).tobytes()


def main(tosaic, data, work):
    with zipfile.ZipFile(pathlib.Path(data, "digits_test.npz")) as archive:
        shape, pixels = parse_npy(archive.read("image.npy"))
        _, labels = parse_npy(archive.read("label.npy"))
    each = len(pixels) // shape[0]
    images = pathlib.Path(work, "images")
    images.mkdir(exist_ok=True)
    for i in range(shape[0]):
        (images / f"{i}.npy").write_bytes(npy(shape[1:], pixels[i * each:(i + 1) * each]))

    def answers(program):
        start = time.perf_counter()
        found = []
        for i in range(shape[0]):
            out = pathlib.Path(work, "answer")
            out.mkdir(exist_ok=True)
            subprocess.run([tosaic, "run", program, "--input", images / f"{i}.npy", "--output-dir", out],
                           check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            _, scores = parse_npy((out / "output_0.npy").read_bytes())
            found.append(max(range(len(scores)), key=scores.__getitem__))
        return found, time.perf_counter() - start

    print(f"{shape[0]} held-out digits, one process each:")
    for name, program in (("float", "digits_fp.pte"), ("int8", "digits.pte"),
                          ("int8 on ethos-u55-128, simulated", "digits_u55.pte")):
        program = pathlib.Path(work, program)
        found, seconds = answers(program)
        right = sum(a == b for a, b in zip(found, labels))
        print(f"  {name:32s}  {100 * right / len(labels):6.2f} % right   {os.path.getsize(program):6d} bytes   "
              f"{1000 * seconds / len(labels):.1f} ms per process")


main(*sys.argv[1:])
