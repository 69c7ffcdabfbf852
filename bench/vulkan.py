# SPDX-License-Identifier: Apache-2.0
"""Compute shaders on this machine's Vulkan device compared with ncnn's, every row measured in this run.

    python vulkan.py --tosaic build/release/bin/tosaic [--output build/bench-vulkan.md] [--only mobilenet_v2 ...] [--seconds 3]

cold load   from the file to a session that can run, with no cache of pipelines and none of the driver's: the shaders are
            compiled and, on ours, checked
cached load the same once more, in another process
first run   of the cold process: lavapipe compiles here
cached run  the first one of the process with caches
hot         the median of the runs after half a second of warming up, inputs and outputs included
ncnn comes from PyPI into build/bench-ncnn, with pnnx, which makes its files from TorchScript; where that fails its column
says so. Both sides have the device to themselves, one after the other. ncnn 1.0 has no int8 on Vulkan.
"""
import argparse
import json
import pathlib
import shutil
import statistics
import subprocess
import sys

import bench
import numpy as np

NETS = ["tiny_vit", "mobilenet_v2", "resnet18"]
PEERS = bench.ROOT / "build/bench-ncnn"
TRACE = """
import sys, torch
program = torch.export.load(sys.argv[1])
with torch.no_grad():
    torch.jit.trace(program.module(check_guards=False), program.example_inputs[0], check_trace=False).save(sys.argv[2])
"""


def of_tosaic(tosaic, program, image, seconds):
    """A cold process, a process with caches, and the hot runs of a third."""
    cache = bench.WORK / "vulkan_cache"
    shutil.rmtree(cache, ignore_errors=True)
    command = ["env", f"XDG_CACHE_HOME={cache}", tosaic, "run", program, "--device", "vulkan", "--input", image, "--json"]
    cold, cached = (json.loads(bench.process(*command)[2]) for _ in range(2))
    about = max(cached["run_seconds"][-1], 1e-5)
    count = int(min(max(seconds / about, 5), 5000))
    hot = json.loads(bench.process(*command, "--repeat", count)[2])
    runs, device = hot["run_seconds"], hot["device_seconds"]
    begin = min(int(0.5 / about), len(runs) // 2)  # half a second of them warms up
    return {"load": cold["load_seconds"], "cached": cached["load_seconds"], "first": cold["run_seconds"][0],
            "cached_first": cached["run_seconds"][0],
            "hot": statistics.median(runs[begin:]), "device": statistics.median(device[begin:]) if device else None,
            "on": hot["device"]}


def packed_modules(tosaic, program):
    """Bytes of all tiers' shaders in the file, which holds those that are equal once."""
    delegates = json.loads(bench.process(tosaic, "inspect", program, "--json")[2])["methods"][0]["delegates"]
    return sum(tier["stored_spirv_bytes"] for d in delegates for tier in d["vulkan"]["tiers"])


def install_ncnn():
    python = PEERS / "bin/python"
    if not (PEERS / "lib").exists():
        subprocess.run([sys.executable, "-m", "venv", PEERS], check=True)
    for wanted in (["ncnn", "numpy"], ["--no-deps", "pnnx"]):  # pnnx is a program of its own, and asks for PyTorch all the same
        subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *wanted], check=True,
                       stdout=sys.stderr, stderr=subprocess.DEVNULL)
    return python


def said(command, **options):
    """Runs it; what it says at last is the reason where it fails."""
    done = subprocess.run([str(c) for c in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]}: exit {done.returncode}: {done.stdout[-500:].strip()}")


def ncnn_files(name):
    """Its two files, made from TorchScript of the same program, weights included."""
    folder = bench.WORK / f"ncnn_{name}"
    made = [folder / "net.ncnn.param", folder / "net.ncnn.bin"]
    if not all(path.exists() for path in made):
        folder.mkdir(exist_ok=True)
        said([sys.executable, "-c", TRACE, bench.MODELS / f"{name}.pt2", folder / "net.pt"])
        binary = next((PEERS / "lib").glob("python3*/site-packages/pnnx/pnnx"))
        said([binary, folder / "net.pt", "fp16=0"], cwd=folder)  # weights of 32 bits; ncnn itself makes halves of them
    return made


def of_ncnn(python, name, precision, seconds):
    cache = bench.WORK / "ncnn_cache"
    shutil.rmtree(cache, ignore_errors=True)
    command = ["env", f"XDG_CACHE_HOME={cache}", python, bench.HERE / "ncnn_peer.py", *ncnn_files(name),
               bench.MODELS / f"{name}_expected.npz", seconds, precision]
    cold, cached = (json.loads(bench.process(*command)[2].strip().splitlines()[-1]) for _ in range(2))
    return {"load": cold["load"], "cached": cached["load"], "first": cold["first"], "cached_first": cached["first"],
            "hot": cached["hot"],
            "on": f"ncnn {cached['version']} on {cached['device']}, {cached['distance']:.1e} from PyTorch's results"}


def rows(table, tosaic, python, name, seconds):
    bench.process(sys.executable, bench.ROOT / "test/models/make_models.py", "--output", bench.MODELS, "--only", name)
    image = bench.WORK / f"{name}.npy"
    np.save(image, np.load(bench.MODELS / f"{name}_expected.npz")["input_0"][0])
    for kind, options in (("fp32", []), ("fp16", ["--vulkan-precision", "fp16"]),
                          ("int8", ["--quantize", "int8", "--calibrate", bench.MODELS / f"{name}_samples.npz"])):
        program = bench.WORK / f"{name}_{kind}_vulkan.pte"
        compiled = bench.process(tosaic, "compile", bench.MODELS / f"{name}.pt2", "--target", "vulkan", "-o", program,
                                 "--require-full-delegation", *options)[0]
        print(f"  {name} {kind}: compiled for all tiers in {bench.milliseconds(compiled)}, its shaders take "
              f"{packed_modules(tosaic, program) / 1000:.0f} KB of the file", flush=True)
        ours = bench.once(lambda: of_tosaic(tosaic, program, image, seconds))
        peer = "fp32" if kind == "fp32" else "fp16"  # the nearest that it has

        def theirs():
            if python is None:
                raise RuntimeError("ncnn is not installed")
            return of_ncnn(python, name, peer, seconds)
        theirs = bench.once(theirs)
        for what, key in (("hot", "hot"), ("first run", "first"), ("cold load", "load"), ("cached load", "cached"),
                          ("cached run", "cached_first")):
            table.add(f"{name} {kind}, {what}", lambda: ours()[key], f"ncnn {peer}", lambda: theirs()[key], bench.milliseconds)
        print(f"  {ours()['on']}; hot, by the device's clock: "
              + (bench.milliseconds(ours()["device"]) if ours()["device"] else "it has none"))
        if table.rows[-1][3] != "failed":
            print(f"  {theirs()['on']}")
        sys.stdout.flush()
    return ours()["on"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tosaic", default="build/release/bin/tosaic")
    parser.add_argument("--output")
    parser.add_argument("--only", nargs="+", default=NETS)
    parser.add_argument("--seconds", type=float, default=3)
    arguments = parser.parse_args()
    bench.WORK.mkdir(parents=True, exist_ok=True)
    try:
        python = install_ncnn()
    except (OSError, subprocess.CalledProcessError) as failure:
        print(f"ncnn does not install: {failure}", file=sys.stderr)
        python = None
    table = bench.Table()
    for name in arguments.only:
        device = rows(table, pathlib.Path(arguments.tosaic).resolve(), python, name, arguments.seconds)
    text = f"{device}; {bench.cpu_name()}. Medians; what cold, cached and hot mean: bench/vulkan.py\n\n{table.text()}"
    if arguments.output:
        pathlib.Path(arguments.output).write_text(text)
    print(text)


if __name__ == "__main__":
    main()
