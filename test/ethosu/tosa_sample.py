# SPDX-License-Identifier: Apache-2.0
"""A seeded sample of integer tests of the TOSA conformance generator, and what Vela and the simulator make of them.

    python tosa_sample.py OUT --targets ethos-u55-128 ... [--count 8] [--only add conv2d] [--library build/.../libtosaic_ethosu_c.so]

Prints a table: equal, different, refused by Vela, refused by the simulator (with its reason).
"""
import argparse
import collections
import concurrent.futures
import contextlib
import io
import json
import pathlib
import random
import re
import sys

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "conformance")]
import sample  # noqa: E402
import simulator  # noqa: E402
import toolchain  # noqa: E402

FLOATS = re.compile(r"_(bf16|f16|f32|f8e\w+)")


def generate(folder, count, seed=1, only=None):
    """Folders of tests, with reference outputs."""
    folder = pathlib.Path(folder) / f"seed{seed}_{count}"
    stamp = folder / f"manifest_{count}_{seed}.json"
    if stamp.exists():
        return [folder / t for t in json.loads(stamp.read_text()) if not only or t.split("/")[0].startswith(tuple(only))]
    made = sample.make_generator(folder, seed, "positive")
    written = []
    for operator, tests in sample.list_tests(made, "positive").items():
        rng = random.Random(f"{seed}/{operator}")
        integer = [t for t in tests if not FLOATS.search(str(t))]
        for test in sample.choose(integer, count, sample.dtype_of, rng, True):
            with contextlib.redirect_stdout(io.StringIO()):
                if made.serializeTest(test.testOpName, str(test), test.dtype, test.error, test.shapeList, test.argsDict):
                    written.append(folder / test.testOpName / str(test))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        good = list(pool.map(sample.refer, written))
    names = [str(t.relative_to(folder)) for t, ok in zip(written, good) if ok]
    stamp.write_text(json.dumps(names))
    return [folder / t for t in names if not only or t.split("/")[0].startswith(tuple(only))]


def judge(library, test, target, extra=(), **options):
    """('equal' | 'different' | 'vela' | 'refused', detail)"""
    description = json.loads((test / "desc.json").read_text())
    out = test / target
    npz = out / "test_vela.npz"
    refused = out / "vela.refused"
    if not npz.exists() and not refused.exists():
        try:
            toolchain.vela(test / description["tosa_file"], target, out, extra)
        except toolchain.VelaRefused as why:
            refused.write_text(str(why))
    if refused.exists():
        return "vela", refused.read_text()[-120:].replace("\n", " ")
    try:
        program = simulator.Program(library, npz, **options)
        inputs = [np.load(test / f) for f in description["ifm_file"]]
        outputs = program.run(inputs)
    except simulator.Refused as why:
        return "refused", str(why)
    except AssertionError as why:
        return "vela", f"inputs differ: {why}"
    for found, file in zip(outputs, description["ofm_file"]):
        expected = np.load(test / "reference" / file)
        if found != np.ascontiguousarray(expected).tobytes():
            if len(found) != expected.nbytes:
                return "different", f"{len(found)} bytes for {expected.nbytes}"
            got = np.frombuffer(found, expected.dtype).reshape(expected.shape)
            return "different", f"{int((got != expected).sum())} of {expected.size}"
    return "equal", ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--targets", nargs="+", default=["ethos-u55-128"])
    parser.add_argument("--count", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--library", default="build/release/src/libtosaic_ethosu_c.so")
    parser.add_argument("--plain-loops", action="store_true")
    arguments = parser.parse_args()
    tests = generate(arguments.folder, arguments.count, arguments.seed, arguments.only)
    table = collections.defaultdict(collections.Counter)
    lines = []
    for target in arguments.targets:
        for test in tests:
            verdict, detail = judge(arguments.library, test, target, plain_loops=arguments.plain_loops)
            table[target, test.parent.name][verdict] += 1
            table[target, "total"][verdict] += 1
            if verdict in ("different", "refused"):
                lines.append(f"{target} {verdict:9s} {test.parent.name}/{test.name}: {detail}")
    print("\n".join(lines))
    print(f"\n{'target':16s}{'operator':28s}{'equal':>7s}{'differ':>7s}{'refused':>8s}{'vela no':>8s}")
    for (target, operator), count in table.items():
        print(f"{target:16s}{operator:28s}{count['equal']:7d}{count['different']:7d}{count['refused']:8d}{count['vela']:8d}")
    return any(count["different"] for count in table.values())


if __name__ == "__main__":
    sys.exit(main())
