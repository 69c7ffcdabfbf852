# SPDX-License-Identifier: Apache-2.0
"""Networks of networks.py through Vela and the simulator, against tosa_reference_model.

    python suite.py OUT --targets ethos-u55-128 ethos-u85-256 [--only conv] [--library ...] [--inputs 2]
"""
import argparse
import collections
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import networks  # noqa: E402
import simulator  # noqa: E402
import toolchain  # noqa: E402

TARGETS = ["ethos-u55-32", "ethos-u55-64", "ethos-u55-128", "ethos-u55-256", "ethos-u65-256", "ethos-u65-512",
           "ethos-u85-128", "ethos-u85-256", "ethos-u85-512", "ethos-u85-1024", "ethos-u85-2048"]


def targets_of(name):
    return [t for t in TARGETS if not name.startswith("u85_") or "u85" in t]


def prepare(folder, name, build, inputs=2):
    """The .tosa file, seeded inputs and the reference model's outputs; made once."""
    folder = pathlib.Path(folder) / name
    data = build()
    tosa = folder / "net.tosa"
    if not tosa.exists() or tosa.read_bytes() != data or not (folder / f"outputs_{inputs - 1}.npz").exists():
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("*/net_vela.npz"):
            old.unlink()
        for old in folder.glob("*/vela.refused"):
            old.unlink()
        tosa.write_bytes(data)
        for seed in range(inputs):
            given = toolchain.random_inputs(tosa, seed)
            outputs = toolchain.reference(tosa, given, folder / "reference")
            np.savez(folder / f"inputs_{seed}.npz", *given)
            np.savez(folder / f"outputs_{seed}.npz", *outputs)
    return tosa


def compiled(tosa, target, extra=()):
    """Vela's program, or None with the reason next to it."""
    out = tosa.parent / "_".join([target, *(e.strip("-").replace("=", "_") for e in extra)])
    if not (out / "net_vela.npz").exists() and not (out / "vela.refused").exists():
        try:
            toolchain.vela(tosa, target, out, extra)
        except toolchain.VelaRefused as why:
            (out / "vela.refused").write_text(str(why))
    return out / "net_vela.npz" if not (out / "vela.refused").exists() else None


def judge(library, tosa, target, inputs=2, extra=(), **options):
    npz = compiled(tosa, target, extra)
    if npz is None:
        return "vela", ""
    try:
        program = simulator.Program(library, npz, **options)
        for seed in range(inputs):
            with np.load(tosa.parent / f"inputs_{seed}.npz") as given, np.load(tosa.parent / f"outputs_{seed}.npz") as expected:
                found = program.run(list(given.values()))
                for i, (raw, array) in enumerate(zip(found, expected.values(), strict=True)):
                    got = np.frombuffer(raw, array.dtype).reshape(array.shape)
                    if (got != array).any():
                        return "different", f"output {i} of input {seed}: {int((got != array).sum())} of {array.size}"
    except simulator.Refused as why:
        return "refused", str(why)
    return "equal", ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--targets", nargs="+", default=TARGETS)
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--inputs", type=int, default=2)
    parser.add_argument("--library", default="build/release/src/libtosaic_ethosu_c.so")
    parser.add_argument("--plain-loops", action="store_true")
    arguments = parser.parse_args()
    counts = collections.defaultdict(collections.Counter)
    for name, build in networks.networks().items():
        if arguments.only and not name.startswith(tuple(arguments.only)):
            continue
        tosa = prepare(arguments.folder, name, build, arguments.inputs)
        for target in [t for t in arguments.targets if t in targets_of(name)]:
            verdict, detail = judge(arguments.library, tosa, target, arguments.inputs, plain_loops=arguments.plain_loops)
            counts[target][verdict] += 1
            if verdict != "equal":
                print(f"{target} {verdict} {name} {detail}", flush=True)
    for target, count in counts.items():
        print(f"{target:16s}" + "  ".join(f"{v} {count[v]}" for v in ("equal", "different", "refused", "vela")))
    return any(count["different"] for count in counts.values())


if __name__ == "__main__":
    sys.exit(main())
