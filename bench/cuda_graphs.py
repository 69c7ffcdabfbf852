# SPDX-License-Identifier: Apache-2.0
"""Compute shaders on this machine's NVIDIA GPU beside PyTorch's CUDA graphs: the models of cpu_models.py, each row of this
run, side by side. Needs PyTorch with CUDA.

    python cuda_graphs.py --tosaic build/release/bin/tosaic [--models NAME ...] [--kinds fp16 ...]
                          [--output build/bench-cuda-graphs.md] [--seconds 0.5]

A run of either side begins with the input in the host's memory and ends with the result there. Medians, after as long a
time of warming up. Floats are those of the type: no TF32. int8 is compared with CUDA graphs' fp16, as they have no int8;
so is "half", the program of `module.half()`, whose inputs and results are of 16 bits on either side.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

import cpu_models
import numpy as np
import torch

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
MODELS, WORK = ROOT / "build/models", ROOT / "build/bench/vulkan"
KINDS = {"fp32": [], "fp16": ["--vulkan-precision", "fp16"], "half": ["--vulkan-precision", "fp16"],
         "int8": ["--quantize", "int8", "--calibrate"]}
ALIKE = {"fp32": 1e-3, "fp16": 2e-2, "half": 2e-2}  # of the result's size, as vectors


def module_of(name):
    module = cpu_models.MODELS[name][0]().eval()
    module.load_state_dict(torch.export.load(MODELS / f"{name}.pt2").state_dict, strict=False)
    return module


def program_of(name, given, kind):
    """The .pt2, and the input that it takes."""
    if kind != "half":
        return MODELS / f"{name}.pt2", given
    path, x = MODELS / f"{name}_half.pt2", torch.from_numpy(given)
    x = x.half() if x.is_floating_point() else x
    if not path.exists():
        with torch.no_grad():
            torch.export.save(torch.export.export(module_of(name).half(), (x,)), path)
    return path, x.numpy()


def of_cuda_graphs(name, given, kind, seconds):
    """(median seconds, result)"""
    module = module_of(name)
    dtype = torch.float32 if kind == "fp32" else torch.float16
    module = module.to("cuda", dtype)
    host = torch.from_numpy(given)
    host = (host.to(dtype) if host.is_floating_point() else host).pin_memory()
    x = host.cuda()
    stream = torch.cuda.Stream()
    with torch.no_grad():
        with torch.cuda.stream(stream):
            for _ in range(3):
                y = module(x)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = module(x)
    result = torch.empty(y.shape, dtype=y.dtype, pin_memory=True)

    def run():
        begin = time.perf_counter()
        x.copy_(host, non_blocking=True)
        graph.replay()
        result.copy_(y, non_blocking=True)
        torch.cuda.synchronize()
        return time.perf_counter() - begin
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        run()
    runs, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end:
        runs.append(run())
    return statistics.median(runs), result.float().numpy()


def of_tosaic(tosaic, name, given, kind, seconds):
    """(median seconds, of them the device's, load's, result)"""
    WORK.mkdir(parents=True, exist_ok=True)
    program, x = WORK / f"{name}_{kind}.pte", WORK / "input.npy"
    source, given = program_of(name, given, kind)
    np.save(x, given)
    options = [*KINDS[kind], *([MODELS / f"{name}_samples.npz"] if kind == "int8" else [])]

    def tool(*words):
        done = subprocess.run([str(word) for word in (tosaic, *words, "--json")], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr.strip()[-300:])
        return json.loads(done.stdout[done.stdout.index("{"):])
    tool("compile", source, "--target", "vulkan", "-o", program, *options)
    run = ["run", program, "--device", "vulkan", "--input", x, "--output-dir", WORK]
    one = tool(*run, "--repeat", 5)
    count = int(min(max(seconds / max(min(one["run_seconds"]), 1e-5), 5), 5000))
    found = tool(*run, "--repeat", 2 * count)
    device = found["device_seconds"]
    return (statistics.median(found["run_seconds"][count:]), statistics.median(device[count:]) if device else None,
            one["load_seconds"], np.load(WORK / "output_0.npy"))


def distance(got, wanted):
    return float(np.linalg.norm(got.astype(np.float64).ravel() - wanted.ravel()) / np.linalg.norm(wanted))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tosaic", type=pathlib.Path, default=ROOT / "build/release/bin/tosaic")
    parser.add_argument("--models", nargs="+", choices=sorted(cpu_models.MODELS), default=sorted(cpu_models.MODELS))
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "build/bench-cuda-graphs.md")
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--seconds", type=float, default=0.5)
    asked = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("cuda_graphs.py: PyTorch finds no CUDA device here")
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    subprocess.run([sys.executable, HERE / "cpu_models.py", "--output", MODELS, "--only", *asked.models], check=True)
    lines = ["| model | type | tosaic, ms | on the device | load | CUDA graphs, ms | tosaic / CUDA graphs |",
             "|---|---|---:|---:|---:|---:|---:|"]
    ratios = {}
    for name in asked.models:
        with np.load(MODELS / f"{name}_expected.npz") as expected:
            given, wanted = expected["input_0"][0], expected["float_0"][0].astype(np.float64)
        theirs = {}
        for kind in ("fp32", "fp16"):
            try:
                seconds, result = of_cuda_graphs(name, given, kind, asked.seconds)
                if distance(result, wanted) > ALIKE[kind]:
                    raise RuntimeError(f"another result than the model's, by {distance(result, wanted):.1e}")
                theirs[kind] = seconds
            except Exception as failure:
                print(f"{name}, {kind}, CUDA graphs: {failure}", file=sys.stderr, flush=True)
            torch.cuda.empty_cache()
        for kind in asked.kinds:
            try:
                ours, device, load, result = of_tosaic(asked.tosaic, name, given, kind, asked.seconds)
                if kind in ALIKE and distance(result, wanted) > ALIKE[kind]:
                    raise RuntimeError(f"another result than the model's, by {distance(result, wanted):.1e}")
            except Exception as failure:
                print(f"{name}, {kind}, tosaic: {failure}", file=sys.stderr, flush=True)
                continue
            peer = theirs.get("fp32" if kind == "fp32" else "fp16")
            if peer:
                ratios.setdefault(kind, []).append(ours / peer)
            cells = [name, kind, f"{1e3 * ours:.3f}", f"{1e3 * device:.3f}" if device else "–", f"{load:.2f} s",
                     f"{1e3 * peer:.3f}" if peer else "–", f"{ours / peer:.2f}" if peer else "–"]
            lines.append(f"| {' | '.join(cells)} |")
            print("  ".join(cells), flush=True)
    lines += ["", *(f"{kind}: geometric mean {np.exp(np.mean(np.log(of))):.2f} of {len(of)} models, ahead on "
                    f"{sum(ratio < 1 for ratio in of)}." for kind, of in ratios.items())]
    text = f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, {os.cpu_count()} cores.\n\n" + "\n".join(lines)
    asked.output.parent.mkdir(parents=True, exist_ok=True)
    asked.output.write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
