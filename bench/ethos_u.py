# SPDX-License-Identifier: Apache-2.0
"""Vela's estimates for tosaic's TOSA and for ExecuTorch's: same model, same samples, same configuration, one table.

    python ethos_u.py --tosaic build/release/bin/tosaic [--models mobilenet_v2 ...] [--targets ethos-u55-128 ...]

Cycles and bytes are Vela's own estimates, summed over a model's delegates (the SRAM in use: the largest); commands are NPU operators that cost
cycles. Milliseconds are of the whole flow in process, without imports and Vela's own time, the model's file having been read
before: of one run on both sides, each the first of its process.

Not named ethosu.py: Vela's package is, and a script's own folder comes first where Python looks.
"""
import argparse
import csv
import json
import math
import os
import pathlib
import sys

import bench
import numpy as np

MODELS = ["digits", "mobilenet_v2", "mobilenet_v3_small", "resnet18", "keyword_spotting", "auto_encoder", "unet", "tiny_vit"]
SAMPLES = 4


def ours(tosaic, model, target, samples):
    report = bench.WORK / "ethosu.json"
    bench.process(tosaic, "compile", bench.MODELS / f"{model}.pt2", "--target", target, "--calibrate", samples, "--threads",
                  bench.THREADS, "-o", bench.WORK / f"{model}_{target}.pte", "--report", report)
    made = json.loads(report.read_text())
    estimates = made["estimates"]
    return {"cycles": sum(e["cycles"] for e in estimates), "commands": sum(e["npu_operators"] for e in estimates),
            "sram": sum(e["sram_traffic_bytes"] for e in estimates), "used": max(e["sram_bytes"] for e in estimates),
            "seconds": sum(made["stages"].values()) - made["peer_seconds"]}


def theirs(model, target, samples):
    out = bench.WORK / f"et_{model}_{target}.pte"
    seconds = bench.peer("flow", bench.THREADS, bench.MODELS / f"{model}.pt2", target, out, samples)["seconds"]
    found = {"cycles": 0, "commands": 0, "sram": 0, "used": 0, "seconds": seconds}
    folder = out.with_suffix("")
    for summary in folder.rglob("*_summary_*.csv"):
        row = list(csv.DictReader(summary.open()))[-1]
        found["cycles"] += float(row["cycles_total"])
        found["sram"] += float(row["sram_total_bytes"])
        found["used"] = max(found["used"], float(row["sram_memory_used"]) * 1024)
    for layers in folder.rglob("*_per-layer.csv"):
        found["commands"] += sum(float(row["Op Cycles"]) > 0 for row in csv.DictReader(layers.open()))
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tosaic", type=pathlib.Path, default=bench.ROOT / "build/release/bin/tosaic")
    parser.add_argument("--output", type=pathlib.Path, default=bench.ROOT / "build/bench-ethosu.md")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS)
    parser.add_argument("--targets", nargs="+", default=["ethos-u55-128", "ethos-u85-256"])
    arguments = parser.parse_args()
    os.environ["PATH"] = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"  # where pip installed vela
    bench.WORK.mkdir(parents=True, exist_ok=True)
    lines = ["| model | target | cycles | ExecuTorch | ratio | commands | ExecuTorch | SRAM traffic | ExecuTorch | "
             "SRAM used | ExecuTorch | flow | ExecuTorch | ratio |", "|---|---|" + "---:|" * 12]
    ratios = {}
    for model in arguments.models:
        bench.process(sys.executable, bench.ROOT / "test/models/make_models.py", "--output", bench.MODELS, "--only", model)
        (bench.MODELS / f"{model}.pt2").read_bytes()
        stored = np.load(bench.MODELS / f"{model}_samples.npz")
        samples = bench.WORK / f"{model}_few.npz"
        np.savez(samples, **{name: stored[name][:SAMPLES] for name in stored})
        for target in arguments.targets:
            a = ours(arguments.tosaic, model, target, samples)
            try:
                b = theirs(model, target, samples)
            except RuntimeError as failure:  # a peer that cannot do it is a result too
                print(f"{model} {target}: {failure}", file=sys.stderr)
                b = None
            same = b and b["cycles"] > 0
            if same:
                ratios.setdefault(target, []).append(a["cycles"] / b["cycles"])
            parts = [f"{a['cycles']:.0f}", f"{b['cycles']:.0f}" if same else "failed",
                     f"{a['cycles'] / b['cycles']:.3f}" if same else "–", str(a["commands"]),
                     str(b["commands"]) if same else "–", f"{a['sram'] / 1e3:.0f} kB",
                     f"{b['sram'] / 1e3:.0f} kB" if same else "–", f"{a['used'] / 1e3:.1f} kB",
                     f"{b['used'] / 1e3:.1f} kB" if same else "–", bench.milliseconds(a["seconds"]),
                     bench.milliseconds(b["seconds"]) if same else "–",
                     f"1/{b['seconds'] / a['seconds']:.0f}" if same else "–"]
            lines.append(f"| {model} | {target} | " + " | ".join(parts) + " |")
            print(lines[-1], flush=True)
    for target, values in ratios.items():
        lines.append(f"| geometric mean | {target} | | | {math.exp(sum(map(math.log, values)) / len(values)):.3f} |" + " |" * 9)
    arguments.output.write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
