# SPDX-License-Identifier: Apache-2.0
"""check_built.py macos|windows FILE...: programs and libraries that were linked for another system. Are they of its kind and
processor, and do they need nothing that it does not have by itself? None is run: that takes the system."""
import argparse
import pathlib
import re
import struct
import sys

ARM64, X86_64 = 0x0100000C, 0x8664  # as Mach-O and as PE number them
LOAD_LIBRARY = {0xC, 0x80000018, 0x8000001F}  # LC_LOAD_DYLIB, LC_LOAD_WEAK_DYLIB, LC_REEXPORT_DYLIB
OF_MACOS = re.compile(r"/usr/lib/|/System/Library/")
OF_WINDOWS = re.compile(r"(api-ms-win-[\w-]+|kernel32|ntdll|advapi32|user32|shell32|ole32|ws2_32|bcrypt|psapi)\.dll", re.I)


def text_at(data, at):
    return data[at:data.index(b"\0", at)].decode()


def libraries_of_mach_o(data):
    magic, processor, _, _, commands = struct.unpack_from("<IIIII", data)
    if (magic, processor) != (0xFEEDFACF, ARM64):
        raise ValueError("no Mach-O file for arm64")
    at, found = 32, []
    for _ in range(commands):
        command, size = struct.unpack_from("<II", data, at)
        if command in LOAD_LIBRARY:
            found.append(text_at(data, at + struct.unpack_from("<I", data, at + 8)[0]))
        at += size
    return found


def libraries_of_pe(data):
    head = struct.unpack_from("<I", data, 0x3C)[0] if data[:2] == b"MZ" else 0
    if data[head:head + 4] != b"PE\0\0" or struct.unpack_from("<H", data, head + 4)[0] != X86_64:
        raise ValueError("no PE file for x86_64")
    sections, optional_size = struct.unpack_from("<H", data, head + 6)[0], struct.unpack_from("<H", data, head + 20)[0]
    imports = struct.unpack_from("<I", data, head + 24 + 112 + 8)[0]  # the second data directory of a PE32+ file
    table = head + 24 + optional_size

    def place(address):
        for i in range(sections):
            size, begin, _, raw = struct.unpack_from("<IIII", data, table + 40 * i + 8)
            if begin <= address < begin + size:
                return raw + address - begin
        raise ValueError("an address outside all sections")
    found, at = [], place(imports)
    while (name := struct.unpack_from("<I", data, at + 12)[0]) != 0:
        found.append(text_at(data, place(name)))
        at += 20
    return found


SYSTEMS = {"macos": (libraries_of_mach_o, OF_MACOS), "windows": (libraries_of_pe, OF_WINDOWS)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("system", choices=SYSTEMS)
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    asked = parser.parse_args()
    libraries, own = SYSTEMS[asked.system]
    failed = False
    for file in asked.files:
        try:
            data = file.read_bytes()
            needed = libraries(data)
        except (OSError, ValueError, struct.error) as why:
            print(f"{file}: {why}", file=sys.stderr)
            failed = True
            continue
        foreign = [name for name in needed if not own.match(name)]
        if foreign or not needed:
            print(f"{file}: {asked.system} does not have what it needs: {', '.join(foreign) or 'nothing'}", file=sys.stderr)
            failed = True
        print(f"{file}: {len(data) / 1e6:.1f} MB, needs {', '.join(sorted(needed))}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
