# SPDX-License-Identifier: Apache-2.0
"""Networks as C on a Cortex-M55 in QEMU: the four of MLPerf Tiny and a streaming GRU, int8, Helium next to plain C.

    python boards.py --tosaic build/release/bin/tosaic [--output build/bench-boards.md] [--models keyword_spotting ...]

Instructions are those of one run. QEMU counts a nanosecond for each (-icount shift=0), the board's SysTick ticks at 32 MHz. Code is
what the linker keeps of the model's steps and of the kernels, with their constants; weights and RAM are those of memory.json;
the stack is a bound, of what -fstack-usage says of each function.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys

import bench

sys.path.insert(0, str(bench.ROOT / "test/firmware"))
import on_board
from board_nets import NETS, write

MODELS = {"keyword_spotting": "keyword spotting (DS-CNN)", "resnet8": "image classification (ResNet-8)",
          "visual_wake_words": "person detection (MobileNetV1, 0.25, 96x96)", "auto_encoder": "anomaly detection (autoencoder)",
          "streaming_gru": "streaming GRU (20 features, 32 states)"}
PLAIN = "-DTOSAIC_MCU_PLAIN"


def model(name):
    """Its .pt2 and samples."""
    if name in NETS:
        net, make = NETS[name]
        write(bench.WORK, name, net(), make)
        return bench.WORK / f"{name}.pt2", bench.WORK / f"{name}.npz"
    bench.process(sys.executable, bench.ROOT / "test/models/make_models.py", "--output", bench.MODELS, "--only", name)
    return bench.MODELS / f"{name}.pt2", bench.MODELS / f"{name}_samples.npz"


def counting_main(header, name):
    """A program that runs the model and prints SysTick's ticks; the second run counts."""
    tensors = re.findall(r"(const )?(\w+) \*(in|out)(\d+)", re.search(rf"void {name}_run\((.*?)\);", header)[1])
    arrays = "\n".join(f"static {kind} {which}{i}[{name.upper()}_RUN_{which.upper()}{i}_ELEMENTS];" for _, kind, which, i in tensors)
    call = f"{name}_run({', '.join(which + i for _, _, which, i in tensors)});"
    init = f"{name}_init();" if f"{name}_init(void)" in header else ""
    return f"""#include <stdio.h>
#include "{name}.h"
{arrays}
#define SYSTICK ((volatile uint32_t *)0xE000E010)
int main(void) {{
  {init}
  {call}
  SYSTICK[1] = 0xffffff, SYSTICK[2] = 0, SYSTICK[0] = 5;
  const uint32_t from = SYSTICK[2];
  {call}
  printf("%u ticks\\n", (unsigned)((from - SYSTICK[2]) & 0xffffff));
  return 0;
}}"""


def kept(listing, files):
    """Bytes of code and constants that the linker took of these objects, by its map."""
    listing = listing[listing.index("Linker script and memory map"):]
    sections = re.findall(r"^ \.(?:text|rodata)\S*\s+0x([0-9a-f]+)\s+0x([0-9a-f]+) (\S+)$", listing, re.M)
    return sum(int(size, 16) for address, size, file in sections if int(address, 16) and pathlib.Path(file).name in files)


def stack(folder, name):
    """The entry, NAME_steps, the largest step, the largest kernel, the largest of what kernels call. Not C's library."""
    depth = {}
    for source in (name, "tosaic_mcu"):
        for line in (folder / f"{source}.su").read_text().splitlines():
            place, size, _ = line.split("\t")
            depth[source, place.split(":")[-1]] = int(size)
    largest = lambda source, pattern: max((size for (file, function), size in depth.items()
                                           if file == source and re.fullmatch(pattern, function)), default=0)
    return sum([depth[name, f"{name}_run"], largest(name, f"{name}_steps"), largest(name, rf"{name}_step\d+"),
                largest("tosaic_mcu", "tosaic_.*"), largest("tosaic_mcu", "(?!tosaic_).*")])


def measured(folder, name, *flags):
    """Instructions of a run, bytes of code, bytes of stack."""
    sources = [folder / f"{name}.c", folder / f"{name}_weights.c", folder / "tosaic_mcu.c", folder / "main.c"]
    for source in sources:
        bench.process("arm-none-eabi-gcc", *on_board.M55, *on_board.FLAGS, f"-I{folder}", *flags, "-fstack-usage", "-c", source, "-o",
                      source.with_suffix(".o"))
    image, listing = folder / "image.elf", folder / "image.map"
    on_board.build([s.with_suffix(".o") for s in sources], image, on_board.M55, f"-Wl,-Map={listing}")
    said, status = on_board.run(image, "-icount", "shift=0")
    if status != 0:
        raise RuntimeError(f"{name}: exit {status}: {said}")
    ticks = int(re.search(r"(\d+) ticks", said)[1])
    return ticks * 1000 // 32, kept(listing.read_text(), {f"{name}.o", "tosaic_mcu.o"}), stack(folder, name)


def kilobytes(size):
    return f"{size / 1000:.1f} kB"


def millions(count):
    return f"{count / 1e6:.{1 if count > 1e6 else 2}f} M"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tosaic", type=pathlib.Path, default=bench.ROOT / "build/release/bin/tosaic")
    parser.add_argument("--output", type=pathlib.Path, default=bench.ROOT / "build/bench-boards.md")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    arguments = parser.parse_args()
    if on_board.missing():
        arguments.output.write_text(f"Not measured: {on_board.missing()}\n")
        return print(f"skipped: {on_board.missing()}")
    bench.WORK.mkdir(parents=True, exist_ok=True)
    gcc = subprocess.run(["arm-none-eabi-gcc", "-dumpfullversion"], capture_output=True, text=True).stdout.strip()
    lines = [f"Cortex-M55 in QEMU, GCC {gcc}, -O2.", "",
             "| network | weights and tables | code | RAM for activations, states | stack | instructions | in plain C |", "|---|" + "---:|" * 6]
    for name in arguments.models:
        folder = bench.WORK / f"board_{name}"
        program, samples = model(name)
        bench.process(arguments.tosaic, "compile", program, "--target", "cortex-m55", "--calibrate", samples, "--io", "quantized",
                      "--emit", f"firmware={folder}")
        (folder / "main.c").write_text(counting_main((folder / f"{name}.h").read_text(), name))
        memory = json.loads((folder / "memory.json").read_text())
        plain, _, _ = measured(folder, name, PLAIN)
        instructions, code, depth = measured(folder, name)
        lines.append(f"| {MODELS[name]} | {kilobytes(memory['flash']['weights'])} | {kilobytes(code)} | "
                     f"{kilobytes(memory['ram']['arena'] + memory['ram']['states'])} | {kilobytes(depth)} | "
                     f"{millions(instructions)} | {millions(plain)} |")
        print(lines[-1], flush=True)
    arguments.output.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
