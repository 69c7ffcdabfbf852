# SPDX-License-Identifier: Apache-2.0
"""Runs TOSA conformance tests on tosaic's executors and judges the results as the TOSA framework does.

    python run_sample.py {all,slice} [--tosaic build/release/bin/tosaic] [--executors interp cpu shaders vgf vulkan scenario] [--only ...]

`shaders` are those for a Vulkan device. `vgf`, `vulkan` and `scenario` are a detour: the TOSA file is made a VGF file, and that is run on the CPU, on a Vulkan
device, or there by Arm's scenario runner.

A positive test passes when tosa_verify finds every output compliant; a negative one when tosaic refuses the file
with a diagnostic that names a rule of the specification (crashes and "not supported" do not count).
"""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import filelock
import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "peers")]
import sample as generation

os.environ["PATH"] = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"  # where pip put the emulation layer

# all: at least 5 of each operator, as the acceptance rule of the project asks, and every ERROR_IF condition. Of each type
# of each operator both have a test.
SAMPLES = {"all": {"positive": 8, "negative": 5, "every_error": True},
           "slice": {"positive": 1, "negative": 1, "every_error": False}}
EXECUTORS = {"interp": ["--executor", "interp"], "cpu": ["--device", "cpu"], "vgf": ["--device", "cpu"],
             "shaders": ["--device", "vulkan"], "vulkan": ["--device", "vulkan-ml"], "scenario": ["--device", "cpu"]}
NOT_IN_VGF = "spirv.no-instruction"  # control flow and variables, which the SPIR-V set has no words for
TIMEOUT_SECONDS = 60
UINT8, FP8, FP8_E5M2 = b"'|u1'", b"'<V1'", b"'<f1'"
DIAGNOSTIC = re.compile(r"\b(?:error|internal error)\[([a-z0-9._-]+)\]")
NOT_A_VERDICT = ("tosa.unsupported", "tosa.not-implemented", "run.", "cli.", "internal")


def prepare(sample, root="build/conformance", jobs=2):
    folder = pathlib.Path(root, sample)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with filelock.FileLock(f"{folder}.lock"):  # tests run in several processes
        return generation.generate(folder, **SAMPLES[sample], jobs=jobs, log=lambda text: print(text, flush=True))


def rename_type(path, old, new):
    """tosa-tools stores fp8e5m2 as if it were uint8, tosaic as the raw bytes that NumPy can load."""
    data = path.read_bytes()
    if old in data[:128]:
        path.write_bytes(data.replace(old, new, 1))


def judge_refusal(done):
    codes = DIAGNOSTIC.findall(done.stderr)
    if done.returncode == 0:
        return "accepted, although it breaks a rule"
    if done.returncode != 1:
        return f"exit code {done.returncode}: {done.stderr[-200:]}"
    if not codes or codes[0].startswith(NOT_A_VERDICT):
        return f"refused for another reason: {done.stderr[:200]}"
    return None


def is_packed(data_type):
    return data_type == "FP4E2M1" or data_type.startswith("FP6")


def repack(path, data_type, way):
    """Elements of 4 and 6 bits are packed in tosa-tools' files; tosaic's have one in a byte. `way`: "pack" or "unpack"."""
    from serializer import numpy_utils

    bits = 4 if data_type == "FP4E2M1" else 6
    np.save(path, getattr(numpy_utils, f"{way}_{bits}bit_array")(np.load(path)))


def judge_outputs(test, description, outputs):
    tensors = description.get("meta", {}).get("compliance", {}).get("tensors", {})
    for number, (name, file) in enumerate(zip(description["ofm_name"], description["ofm_file"])):
        found, expected = outputs / f"output_{number}.npy", test / "reference" / file
        if not found.exists():
            return f"no output {number}"
        if "f8e5m2" in test.name.lower():  # no operator takes one fp8 type and gives the other
            rename_type(found, FP8, UINT8)
        if found.read_bytes() == expected.read_bytes():
            continue
        judged = tensors.get(name, {})
        if is_packed(judged.get("data_type", "")):
            repack(found, judged["data_type"], "pack")
        if judged.get("data_type") == "FP8UE8M0":  # powers of two, which tosa_verify judges with their elements alone
            exponents = np.load(found).view(np.uint8).astype(int) - 127
            if np.abs(exponents - np.log2(np.load(expected))).max() > judged.get("ulp_info", {}).get("ulp", 0):
                return f"{name}: other scales than the reference model's"
            continue
        found, expected = [found], [expected]
        if "scale_tensor_name" in judged:  # elements are judged with their scales
            at = description["ofm_name"].index(judged["scale_tensor_name"])
            found.append(outputs / f"output_{at}.npy")
            expected.append(test / "reference" / description["ofm_file"][at])
            rename_type(found[1], UINT8, FP8)
        command = [generation.VERIFY, "--test_desc", test / "desc.json", "--imp_result_file", ",".join(map(str, found)),
                   "--ref_result_file", ",".join(map(str, expected)), "--ofm_name", name]
        if description.get("test_requirements", {}).get("bounds_file_required", False):
            command += ["--bnd_result_file", test / "reference" / f"bounds_{file}"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            said = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
            return f"{name}: " + (" ".join(said[-2:]) if said else f"tosa_verify exits {done.returncode}")
    return None


def given_inputs(test, description, folder):
    """The test's inputs as options of `tosaic run`."""
    options = []
    for name, file in zip(description["ifm_name"], description["ifm_file"]):
        given = pathlib.Path(folder, f"input_{file}")
        shutil.copy(test / file, given)
        tensor = description.get("meta", {}).get("data_gen", {}).get("tensors", {}).get(name, {})
        if tensor.get("data_type") == "FP8E5M2":
            rename_type(given, UINT8, FP8_E5M2)
        if is_packed(tensor.get("data_type", "")):
            repack(given, tensor["data_type"], "unpack")
        options += ["--input", given]
    return options


def in_arms_runner(vgf, test, description, folder):
    """Replaces the data of the outputs in `folder` by what Arm's runner gives: NumPy has no name for some of TOSA's types."""
    import scenario_runner
    inputs = [np.load(test / file) for file in description["ifm_file"]]
    for number, found in enumerate(scenario_runner.run(vgf, inputs, folder)):
        file, data = folder / f"output_{number}.npy", found.tobytes()
        ours = file.read_bytes()
        file.write_bytes(ours[:len(ours) - len(data)] + data)


def run(tosaic, executor, test):
    """None when the test passes, NOT_IN_VGF when no VGF file can hold it, else one line that says why not."""
    description = json.loads((test / "desc.json").read_text())
    with tempfile.TemporaryDirectory() as outputs:
        program = test / description["tosa_file"]
        if executor in ("vgf", "vulkan", "scenario") and not description["expected_failure"]:  # refusals are TOSA's, whatever comes after
            converted = pathlib.Path(outputs, "test.vgf")
            done = subprocess.run([tosaic, "convert", program, "-o", converted], capture_output=True, text=True)
            if done.returncode != 0:
                return NOT_IN_VGF if NOT_IN_VGF in done.stderr else f"not converted: {done.stderr[:300].strip()}"
            program = converted
        command = [tosaic, "run", program, *EXECUTORS[executor], "--level", "8k", "--output-dir", outputs,
                   *given_inputs(test, description, outputs)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            return f"no answer in {TIMEOUT_SECONDS} s"
        if description["expected_failure"]:
            return judge_refusal(done)
        if done.returncode != 0:
            return f"exit code {done.returncode}: {done.stderr[:300].strip()}"
        if executor == "scenario":
            try:
                in_arms_runner(program, test, description, pathlib.Path(outputs))
            except AssertionError as failure:
                return str(failure)[-300:]
        return judge_outputs(test, description, pathlib.Path(outputs))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("sample", choices=SAMPLES)
    parser.add_argument("--tosaic", default="build/release/bin/tosaic")
    parser.add_argument("--executors", nargs="+", choices=EXECUTORS, default=["interp", "cpu"])
    parser.add_argument("--only", nargs="+", help="operators, e.g. conv2d add")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    tests = [t for t in prepare(arguments.sample, jobs=arguments.jobs)
             if not arguments.only or t["operator"] in arguments.only]
    root = pathlib.Path("build/conformance", arguments.sample)
    passed = collections.Counter()
    failures, left = [], []
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for executor in arguments.executors:
            results = pool.map(lambda t: run(arguments.tosaic, executor, root / t["folder"]), tests)
            for test, why in zip(tests, results):
                passed[executor, test["operator"]] += why is None
                if why == NOT_IN_VGF:
                    left.append(test["folder"])
                elif why:
                    failures.append(f"{executor}: {test['folder']}: {why}")
    print("\n".join(failures))
    count = collections.Counter(t["operator"] for t in tests)
    print(f"\n{'operator':24s}{'tests':>7s}" + "".join(f"{e:>9s}" for e in arguments.executors))
    for operator in sorted(count):
        print(f"{operator:24s}{count[operator]:7d}" + "".join(f"{passed[e, operator]:9d}" for e in arguments.executors))
    if left:
        print(f"not for VGF: {', '.join(left)}")
    total = len(tests) * len(arguments.executors) - len(left)
    print(f"{total - len(failures)} passed, {len(failures)} failed")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
