# SPDX-License-Identifier: Apache-2.0
"""Which wrong semantics do the tests notice? Runs every mutation over everything that a cache folder holds.

    cmake --preset release -B build/mutate -DTOSAIC_ETHOSU_MUTATE=ON && cmake --build build/mutate --target tosaic_ethosu_c
    python suite.py CACHE/networks; python tosa_sample.py CACHE/conformance --targets ethos-u55-128 ethos-u85-256
    python mutation_gate.py build/mutate/src/libtosaic_ethosu_c.so CACHE

Exit code 1 when a mutation that docs/developer/ethosu-simulator.md does not list as unproven goes unnoticed.
"""
import concurrent.futures
import os
import pathlib
import random
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
SOURCES = HERE.parent.parent / "src/ethosu"
PAGE = HERE.parent.parent / "docs/developer/ethosu-simulator.md"


def mutations():
    return sorted({m for path in SOURCES.glob("*.[ch]*") for m in re.findall(r'mutated\("([a-z0-9_.]+)"\)', path.read_text())})


def programs(cache):
    nets = [p for p in pathlib.Path(cache, "networks").glob("*/*/net_vela.npz")]
    tests = [p for p in pathlib.Path(cache, "conformance").glob("*/*/*/*/test_vela.npz")]
    return sorted(nets + tests)


def judge(library, npz):
    import suite
    import tosa_sample
    if npz.name == "net_vela.npz":
        tosa = npz.parent.parent / "net.tosa"
        inputs = len(list(npz.parent.parent.glob("inputs_*.npz")))
        return suite.judge(library, tosa, npz.parent.name, inputs)
    return tosa_sample.judge(library, npz.parent.parent, npz.parent.name)


def worker(library, cache, baseline):
    """Prints the first program that does not do what it did without a mutation."""
    good = set(pathlib.Path(baseline).read_text().split("\n"))
    found = programs(cache)
    random.Random(1).shuffle(found)
    for npz in found:
        if str(npz) in good and judge(library, npz)[0] != "equal":
            print(f"{npz.parent.parent.name} on {npz.parent.name}")
            return


def main(library, cache):
    sys.path.insert(0, str(HERE))
    good = [str(npz) for npz in programs(cache) if judge(library, npz)[0] == "equal"]
    baseline = pathlib.Path(cache, "baseline.txt")
    baseline.write_text("\n".join(good))
    print(f"{len(good)} programs are equal without a mutation")

    def run(name):
        done = subprocess.run([sys.executable, __file__, "--worker", library, cache, str(baseline)], capture_output=True, text=True,
                              env={**os.environ, "TOSAIC_ETHOSU_MUTATE": name})
        return done.stdout.strip() or ("noticed: the process died" if done.returncode else "")

    listed = set(re.findall(r"^\| `([a-z0-9_.]+)` \|", PAGE.read_text(), re.M)) if PAGE.exists() else set()
    names = mutations()
    unnoticed = []
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for name, noticed in zip(names, pool.map(run, names)):
            print(f"{name:32s} {noticed or 'NOT NOTICED'}", flush=True)
            if not noticed:
                unnoticed.append(name)
    print(f"{len(names) - len(unnoticed)} of {len(names)} mutations noticed")
    return bool(set(unnoticed) - listed)


if __name__ == "__main__":
    if sys.argv[1] == "--worker":
        sys.path.insert(0, str(HERE))
        worker(*sys.argv[2:])
    else:
        sys.exit(main(*sys.argv[1:3]))
