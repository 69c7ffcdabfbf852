# SPDX-License-Identifier: Apache-2.0
"""The conformance tests of what the draft of TOSA 1.1 adds, made by the generator of tosa-tools 2026.8 and judged as those
of 1.0 are (run_sample.py). Its environment is build/tosa-draft-env.

    python draft.py {all,slice} --tosaic build/release/bin/tosaic [--executors interp cpu] [--only row_gather ...]
    python draft.py slice --part 0/3    # every third operator
"""
import argparse
import concurrent.futures
import contextlib
import io
import json
import logging
import pathlib
import random
import shutil
import sys

import sample
from conformance import tosa_cts_versions
from generator import tosa_test_select, tosa_verif_build_tests
from generator.tosa_test_gen import TosaTestGen
from tosa_serializer import DType

VERSION = "1.1.0"
BLOCK_SCALED = ["mx-common", "mx-fp4e2m1", "mx-fp6e2m3", "mx-fp6e3m2", "mx-fp8e4m3", "mx-fp8e5m2", "mx-int8", "mxfp-conv"]
EXTENSIONS = [f"tosa-ext-{e}" for e in [*sample.EXTENSIONS, "int64", "shape", *BLOCK_SCALED]]
# Tests for each type of each operator, positive and negative.
COUNTS = {"all": (6, 12), "slice": (1, 2)}


def types_of(test):
    return test.dtype if isinstance(test.dtype, (list, tuple)) else [test.dtype]


def is_new(operator, test):
    """Does TOSA 1.0 not have it? In an operator of 1.0: integers of 64 bits as operands, indices or results; booleans of
    rows, and next to floats."""
    if sample.configured().get(operator) is False:
        return True
    types, words = types_of(test), str(test).split("_")
    return (DType.INT64 in types or any(word.endswith("i64") for word in words)
            or (operator in ("gather", "scatter") and DType.BOOL in types)
            or (operator == "cast" and DType.BOOL in types and "outf32" in words)
            or (operator == "cast" and DType.FP32 in types and "outb" in words))


def has_scales_within(test):
    """Is a tensor of it one with the scales of its blocks in it, which tosaic does not take?"""
    return any(not isinstance(t, DType) for t in types_of(test))


def operator_of(made, key):
    name = made.getOperatorNameStr(key)
    known = [n for n in sample.configured() if name == n or name.startswith(n + "_")]
    return max(known, key=len, default=None)


def make_generator(folder, seed, test_type, dims):
    arguments = tosa_verif_build_tests.parseArgs([
        "-o", str(folder), "--seed", str(seed), "--tosa-version", VERSION, "--test-type", test_type,
        "--profile", *sample.PROFILES, "--extension", *EXTENSIONS, "--tensor-dim-range", dims,
        "--max-resize-output-dim", "64", "--generate-lib-path", str(sample.GENERATE_LIBRARY)])
    return TosaTestGen(arguments, tosa_cts_versions.get_matching_schema_version(VERSION, logging.getLogger()).version)


def types_to_list(entry, operator, test_type):
    """Of which types tests are listed, which takes long: none where an operator of 1.0 has no new one."""
    types = entry["types"]
    types = types.get(VERSION, ()) if isinstance(types, dict) else types
    plain = [t[0] if isinstance(t, (list, tuple)) else t for t in types]
    plain = [t for t in dict.fromkeys(plain) if isinstance(t, DType)]
    if sample.configured().get(operator) is False or (operator in ("argmax", "cast") and test_type == "positive"):
        return plain
    if test_type == "negative":  # their rules are 1.0's
        return []
    return [t for t in plain if t == DType.INT64 or (t == DType.BOOL and operator in ("gather", "scatter"))]


def is_listed(operator, key, kind, done):
    """Are tests to be listed? Those of block-scaled convolutions take a minute: a slice has those of one kernel."""
    if kind == "slice" and operator == "conv2d_block_scaled" and not key.endswith("_2x2"):
        return False
    return not done or ("block_scaled" in operator and operator not in done)


def list_tests(made, kind, test_type, only, done=frozenset()):
    """operator -> the tests of what is new. With `done`, operators that have some: those block-scaled ones that have none."""
    tests = {}
    for key, entry in made.TOSA_OP_LIST.items():
        operator = operator_of(made, key)
        if operator is None or (only and operator not in only) or not is_listed(operator, key, kind, done):
            continue
        types = types_to_list(entry, operator, test_type)
        if not types:
            continue
        found = tosa_test_select.TosaTestSelectList(made.TOSA_OP_LIST)
        for arguments in made.genOpTestList(key, shapeFilter=made.args.target_shapes, rankFilter=made.args.target_ranks,
                                            dtypeFilter=types, testType=test_type):
            found.add(tosa_test_select.TosaTestSelect(arguments))
        tests.setdefault(operator, []).extend(
            t for t in found.all(profiles_chosen=sample.PROFILES, extensions_chosen=EXTENSIONS)
            if is_new(operator, t) and not has_scales_within(t))
    return {operator: sorted(found, key=str) for operator, found in tests.items() if found}


def type_of(test):
    """By what tests are chosen: the types of operands; of casts to block-scaled tensors also that of the elements."""
    out = next((word for word in str(test).split("_") if word.startswith("out") and word.endswith("xf8ue8m0")), "")
    return f"{sample.dtype_of(test)} {out}"


def generate(folder, kind, seed, only, jobs):
    """[(operator, folder of the test)]; those that the reference model does not run itself are told and left out."""
    shutil.rmtree(folder, ignore_errors=True)
    written = []
    for test_type, count in zip(("positive", "negative"), COUNTS[kind]):
        done = set()
        for dims in sample.DIM_RANGES if test_type == "positive" else sample.DIM_RANGES[:1]:
            made = make_generator(folder, seed, test_type, dims)
            for operator, tests in list_tests(made, kind, test_type, only, frozenset(done)).items():
                done.add(operator)
                rng = random.Random(f"{seed}/{test_type}/{operator}")
                groups = type_of if test_type == "positive" else sample.error_of
                kinds = len({groups(t) for t in tests})
                count_all = count * (kinds if test_type == "positive" else 1)
                for test in sample.choose(tests, count_all, groups, rng, kind == "all"):
                    with contextlib.redirect_stdout(io.StringIO()):
                        if made.serializeTest(test):
                            written.append((operator, next(folder.glob(f"*/{test}"))))  # in a folder by another name
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        good = list(pool.map(lambda entry: sample.refer(entry[1]), written))
    for (_, path), ok in zip(written, good):
        if not ok:
            print(f"left out, the reference model does not run it: {path.relative_to(folder)}")
    return [entry for entry, ok in zip(written, good) if ok]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("sample", choices=COUNTS)
    parser.add_argument("--tosaic", default="build/release/bin/tosaic")
    parser.add_argument("--executors", nargs="+", default=["interp", "cpu"])
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--part", default="0/1")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    import run_sample
    part, parts = map(int, arguments.part.split("/"))
    root = pathlib.Path("build/conformance", f"draft-{arguments.sample}-{part}").resolve()
    tests = generate(root, arguments.sample, arguments.seed, (arguments.only or sorted(sample.configured()))[part::parts],
                     arguments.jobs)
    failures = []
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for executor in arguments.executors:
            results = pool.map(lambda entry: run_sample.run(arguments.tosaic, executor, entry[1]), tests)
            failures += [f"{executor}: {path.relative_to(root)}: {why}" for (_, path), why in zip(tests, results) if why]
    print("\n".join(failures))
    print(json.dumps({operator: sum(o == operator for o, _ in tests) for operator, _ in tests}))
    print(f"{len(tests) * len(arguments.executors) - len(failures)} passed, {len(failures)} failed")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
