# SPDX-License-Identifier: Apache-2.0
"""A seeded sample of the TOSA 1.0.1 conformance tests, made by the generator of the tosa-tools package.

The generator lists every test in seconds and writes one in milliseconds; only whole suites take hours. So: list
all, choose per operator, write the chosen ones, and let tosa_reference_model (in its precise mode) say once what
comes out. A test is a folder <operator>/<name>/ of

    desc.json, test.tosa, the inputs as .npy, and reference/ with the expected outputs and error bounds
"""
import concurrent.futures
import contextlib
import io
import json
import logging
import pathlib
import random
import subprocess

import generator
from conformance import tosa_cts_versions
from generator import tosa_test_select, tosa_verif_build_tests
from generator.tosa_test_gen import TosaTestGen
from tosa.DType import DType
from tosa.Op import Op

VERSION = "1.0.1"
PROFILES = ["tosa-pro-int", "tosa-pro-fp"]
EXTENSIONS = ["int16", "int4", "bf16", "fp8e4m3", "fp8e5m2", "fft", "variable", "controlflow", "doubleround", "inexactround"]

PACKAGES = pathlib.Path(generator.__file__).resolve().parent.parent
REFERENCE_MODEL = PACKAGES / "bin/tosa_reference_model"
VERIFY = PACKAGES / "bin/tosa_verify"
SCHEMA = PACKAGES / "bin/tosa.fbs"
GENERATE_LIBRARY = PACKAGES / "tosa_reference_model/libtosa_reference_generate_lib.so"


def configured():
    """The operators of the generator's own configuration: name -> does it exist in VERSION?"""
    config = json.loads((PACKAGES / "conformance/cts-config_v1.0.json").read_text())
    return {name: "from_version" not in entry for name, entry in config.items() if isinstance(entry, dict)}


def operators_of_version():
    return [name for name, exists in configured().items() if exists]


# Sums of products are tested from 1000 of them on: where small dims leave a type of an operator without a test, larger
# ones are tried. (A Fourier transform has one batch and powers of two, so 1024 is its least.)
DIM_RANGES = ["1,12", "12,32", "32,40"]
# What the generator does not make tests of, and why.
UNTESTED = {"custom": "what it does is not the standard's", "const_shape": "its result is a shape, which no graph gives",
            "variable": "nor does the reference model know it; test_variable has tests", "variable_read": "see variable",
            "variable_write": "see variable"}


def operators_of_standard():
    """Those of the schema that comes with the generator, newer ones left out."""
    newer = {name for name, exists in configured().items() if not exists}
    return {name.lower() for name in vars(Op) if name.isupper() and name != "UNKNOWN"} - newer


def newer_than_version(operator, dtype):
    """Types that the generator offers and TOSA 1.0 does not have."""
    return (dtype in (DType.INT64, DType.SHAPE) or (operator in ("gather", "scatter") and dtype == DType.BOOL)
            or (operator == "argmax" and dtype == DType.INT32))


def operator_of(made, key):
    """conv2d_3x3 and conv2d_1x1 are one operator. None: VERSION does not have it."""
    exists = configured() | {"const_shape": False}
    name = made.getOperatorNameStr(key)
    operator = max((n for n in exists if name == n or name.startswith(n + "_")), key=len, default=None)
    return operator if operator and exists[operator] else None


def types_of_version(made):
    """Every (operator, type) that needs a positive test."""
    return {(operator, str(dtype)) for key, entry in made.TOSA_OP_LIST.items() for dtype in entry["types"]
            if (operator := operator_of(made, key)) and not newer_than_version(operator, dtype)}


def make_generator(folder, seed, test_type, dims=DIM_RANGES[0]):
    arguments = tosa_verif_build_tests.parseArgs([
        "-o", str(folder), "--seed", str(seed), "--tosa-version", VERSION, "--test-type", test_type,
        "--profile", *PROFILES, "--extension", *[f"tosa-ext-{e}" for e in EXTENSIONS],
        "--tensor-dim-range", dims, "--max-resize-output-dim", "64",
        "--generate-lib-path", str(GENERATE_LIBRARY)])
    version = tosa_cts_versions.get_matching_schema_version(VERSION, logging.getLogger()).version
    return TosaTestGen(arguments, version)


def first_of(dtype):
    """The generator's name for a row of types: its first, or int4 where that is among them."""
    if not isinstance(dtype, (list, tuple)):
        return dtype
    return DType.INT4 if DType.INT4 in dtype else dtype[0]


def list_tests(made, test_type, wanted=None):
    """operator -> its tests; `wanted`: of these (operator, type) alone, and no second form (conv2d_3x3) of a type that has
    tests: listing takes longest."""
    tests, have = {}, set()
    for key in made.TOSA_OP_LIST:
        operator = operator_of(made, key)
        entry = made.TOSA_OP_LIST[key]
        types = None
        if wanted is not None:
            types = [first_of(d) for d in entry["types"] if (operator, str(d)) in wanted - have]
        if operator is None or types == []:
            continue
        chosen = tosa_test_select.TestList(made.TOSA_OP_LIST)
        for op, text, dtype, error, shapes, arguments in made.genOpTestList(
                key, shapeFilter=made.args.target_shapes, rankFilter=made.args.target_ranks,
                dtypeFilter=types, testType=test_type):
            chosen.add(tosa_test_select.Test(made.getOperatorNameStr(op), text, dtype, error, shapes, arguments, op))
        listed = chosen.all(profiles_chosen=PROFILES, extensions_chosen=[f"tosa-ext-{e}" for e in EXTENSIONS])
        listed = [t for t in listed if not newer_than_version(operator, t.dtype)]
        tests.setdefault(operator, []).extend(listed)
        have |= {(operator, str(t.dtype)) for t in listed}
    return {operator: sorted(found, key=str) for operator, found in sorted(tests.items()) if found}


def list_all(folder, seed, test_type):
    """(generator, operator -> tests) of each range of dims; of positive tests at least one for every operator's every
    type."""
    if test_type == "negative":
        made = make_generator(folder, seed, test_type)
        return [(made, list_tests(made, test_type))]
    listed, missing = [], None
    for dims in DIM_RANGES:
        made = make_generator(folder, seed, test_type, dims)
        found = list_tests(made, test_type, missing)
        if missing is None:
            missing = types_of_version(made)
        else:
            found = {operator: [t for t in tests if (operator, str(t.dtype)) in missing] for operator, tests in found.items()}
        listed.append((made, found))
        missing = missing - {(operator, str(t.dtype)) for operator, tests in found.items() for t in tests}
    assert not missing, f"no positive test of {sorted(missing)}"
    return listed


def choose(tests, count, kind, rng, every_kind):
    """`count` tests (all if there are fewer), one of each kind, then round again; more if there are more kinds and
    every_kind is asked for."""
    kinds = {}
    for test in tests:
        kinds.setdefault(kind(test), []).append(test)
    for group in kinds.values():
        rng.shuffle(group)
    chosen = []
    while kinds and len(chosen) < count:
        names = sorted(kinds)
        rng.shuffle(names)
        for name in names if every_kind else names[:count - len(chosen)]:
            chosen.append(kinds[name].pop())
        kinds = {name: group for name, group in kinds.items() if group}
    return chosen


def refer(folder):
    """The reference model's outputs. False when the test is one that the model itself cannot run."""
    description = json.loads((folder / "desc.json").read_text())
    for leftover in folder.glob("*.cpp"):
        leftover.unlink()
    if description["expected_failure"]:
        return True
    (folder / "reference").mkdir(exist_ok=True)
    done = subprocess.run([REFERENCE_MODEL, "--tosa_level", "EIGHTK", "--operator_fbs", SCHEMA, "--precise_mode=1",
                           "--test_desc", folder / "desc.json", "--output_dir", folder / "reference",
                           "--flatbuffer_dir", folder], capture_output=True)
    return done.returncode == 0


def dtype_of(test):
    return str(test.dtype)


def error_of(test):
    return str(test.error)


def generate(folder, positive, negative, every_error=True, seed=1, jobs=2, log=print):
    """Per operator: `positive` positive tests spread over its types, and `negative` negative ones spread over its
    ERROR_IF conditions; at least one of every type, and if `every_error` of every condition. Writes folder/manifest.json
    last; does nothing when that says the same already."""
    folder = pathlib.Path(folder)
    asked = {"version": VERSION, "positive": positive, "negative": negative, "every_error": every_error,
             "seed": seed, "dims": DIM_RANGES}
    manifest = folder / "manifest.json"
    if manifest.exists() and json.loads(manifest.read_text())["asked"] == asked:
        return json.loads(manifest.read_text())["tests"]
    written = []
    kinds = (("positive", positive, dtype_of, True), ("negative", negative, error_of, every_error))
    for test_type, count, kind, every_kind in kinds:
        for made, listed in list_all(folder, seed, test_type):
            for operator, tests in listed.items():
                rng = random.Random(f"{seed}/{test_type}/{operator}")
                for test in choose(tests, count, kind, rng, every_kind):
                    with contextlib.redirect_stdout(io.StringIO()):
                        if made.serializeTest(test.testOpName, str(test), test.dtype, test.error, test.shapeList, test.argsDict):
                            written.append((operator, folder / test.testOpName / str(test), kind(test)))
    log(f"{len(written)} conformance tests written, running the reference model on them")
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        good = list(pool.map(lambda entry: refer(entry[1]), written))
    tests = [{"operator": operator, "folder": str(path.relative_to(folder))}
             for (operator, path, _), ok in zip(written, good) if ok]
    dropped = [str(path.relative_to(folder)) for (_, path, _), ok in zip(written, good) if not ok]
    if dropped:
        log(f"{len(dropped)} left out, the reference model itself does not run them: {', '.join(dropped[:5])} ...")
    lost = types_of_version(made) - {(operator, kind) for (operator, _, kind), ok in zip(written, good) if ok}
    assert not lost, f"no positive test that the reference model runs of {sorted(lost)}"
    manifest.write_text(json.dumps({"asked": asked, "tests": tests, "left_out": dropped}, indent=1))
    return tests
