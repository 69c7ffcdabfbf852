# SPDX-License-Identifier: Apache-2.0
"""Run time on this machine's CPU, beside the runtimes that people would take instead: ONNX Runtime, OpenVINO, ExecuTorch
with XNNPACK, PyTorch. Every figure from this run, in processes of their own, by turns.

    python cpu.py --tosaic build/release/bin/tosaic [--output build/bench-cpu.md] [--models NAME ...] [--larger]
                    [--peers "ONNX Runtime" OpenVINO] [--types fp32 int8] [--threads 1 2] [--rounds 2] [--runs 50]

--larger takes the models of cpu_models.py, too. Lowering one of those for XNNPACK takes minutes: --peers without it.

The least of all runs counts; the median of the quietest round stands next to it. A peer whose result is not the model's is
no peer: in floats it has to be within 0.1 % of PyTorch's, in int8 above 5 dB.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import time

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
WORK, MODELS = ROOT / "build/bench", ROOT / "build/models"
PYTHON = ROOT / "build/cpu-peers-env/bin/python"
sys.path.insert(0, str(ROOT / "test/models"))
from model_names import ALL


def process(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, start_new_session=True,
                          env=os.environ | {"PYTHONPATH": str(HERE)})
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}: exit {done.returncode}: {done.stderr[-400:].strip()}")
    said = done.stdout
    return json.loads(said[said.index("{"):] if said.lstrip().startswith("{") else said.strip().splitlines()[-1])


class Model:
    def __init__(self, name, tosaic, peers):
        self.name, self.tosaic, self.peers, self.folder = name, tosaic, peers, WORK / "cpu" / name
        self.folder.mkdir(parents=True, exist_ok=True)
        self.pt2, self.samples, self.input = MODELS / f"{name}.pt2", MODELS / f"{name}_samples.npz", self.folder / "input.npy"
        with np.load(MODELS / f"{name}_expected.npz") as expected:
            np.save(self.input, expected["input_0"][0])
            self.wanted = expected["float_0"][0]

    def prepare(self, kind):
        """For each side a function that runs it: (threads, runs, output) to seconds."""
        target = {"fp32": ["tosa-fp"], "int8": ["tosa-int", "--calibrate", self.samples]}[kind]
        program, onnx, lowered = (self.folder / f"{kind}{ending}" for ending in (".pte", ".onnx", "_xnnpack.pte"))
        process(self.tosaic, "compile", self.pt2, "--target", *target, "-o", program, "--json")
        sides = {"tosaic": lambda *how: self.ours(program, *how)}

        def make(*command):
            file = command[-1]
            if not file.exists() or file.stat().st_mtime < self.samples.stat().st_mtime:
                process(PYTHON, HERE / "cpu_peers.py", *command)

        def peer(name, runner, file, *makers):
            if name not in self.peers:
                return
            try:
                for command in makers:
                    make(*command)
                sides[name] = lambda threads, runs, output: process(
                    PYTHON, HERE / "cpu_peers.py", runner, threads, runs, file, self.input, output)
            except RuntimeError as failure:  # a peer that cannot do it is a result, too
                print(f"{self.name}, {kind}, {name}: {failure}", file=sys.stderr, flush=True)

        floats = self.folder / "fp32.onnx"
        as_onnx = [("onnx", self.pt2, floats)]
        if kind == "int8":
            as_onnx.append(("onnx_int8", floats, self.samples, onnx))
        peer("ONNX Runtime", "onnxruntime", onnx, *as_onnx)
        peer("OpenVINO", "openvino", onnx, *as_onnx)
        peer("XNNPACK", "xnnpack", lowered, ("lower", self.pt2, "float" if kind == "fp32" else kind, self.samples, lowered))
        if kind == "fp32":
            peer("PyTorch", "eager", self.pt2)
        return sides

    def ours(self, program, threads, runs, output):
        said = process(self.tosaic, "run", program, "--input", self.input, "--repeat", runs, "--threads", threads,
                       "--output-dir", self.folder / "out", "--json")
        os.replace(self.folder / "out/output_0.npy", output)
        return {"least": min(said["run_seconds"]), "median": sorted(said["run_seconds"])[len(said["run_seconds"]) // 2]}

    def is_right(self, output, kind):
        got = np.load(output).reshape(self.wanted.shape).astype(np.float64)
        error, power = ((got - self.wanted) ** 2).sum(), (self.wanted.astype(np.float64) ** 2).sum()
        return error <= 1e-6 * power if kind == "fp32" else error <= 10 ** -0.5 * power


def measured(model, kind, sides, threads, rounds, runs):
    """The least and a median of each side; what failed is said and left out."""
    found = {}
    for _ in range(rounds):
        for name, run in list(sides.items()):
            output = model.folder / "output.npy"
            try:
                seconds = run(threads, runs, output)
                if not model.is_right(output, kind):
                    raise RuntimeError("another result than the model's")
            except Exception as failure:
                print(f"{model.name}, {kind}, {name}: {failure}", file=sys.stderr, flush=True)
                del sides[name]
                found.pop(name, None)
                continue
            known = found.setdefault(name, seconds)
            found[name] = {key: min(known[key], seconds[key]) for key in known}
    return found


PEERS = ("ONNX Runtime", "OpenVINO", "XNNPACK", "PyTorch")


def row(name, kind, threads, found):
    shown = lambda side: f"{1e3 * side['least']:.3f} ({1e3 * side['median']:.3f})" if side else "–"
    best = min((found[peer]["least"] for peer in PEERS if peer in found), default=None)
    ratio = found["tosaic"]["least"] / best if best and "tosaic" in found else None
    cells = [name, kind, str(threads), shown(found.get("tosaic")), *(shown(found.get(peer)) for peer in PEERS),
             f"{ratio:.2f}" if ratio else "–"]
    print("  ".join(cells), flush=True)
    return cells, ratio


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tosaic", type=pathlib.Path, default=ROOT / "build/release/bin/tosaic")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "build/bench-cpu.md")
    parser.add_argument("--models", nargs="+", help="of test/models and of cpu_models.py; those of test/models if none is named")
    parser.add_argument("--larger", action="store_true")
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=PEERS)
    parser.add_argument("--types", nargs="+", choices=["fp32", "int8"], default=["fp32", "int8"])
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--runs", type=int, default=50)
    asked = parser.parse_args()
    models = asked.models or list(ALL)
    if asked.larger or not set(models) <= set(ALL):
        import cpu_models  # which takes seconds
        models += [name for name in cpu_models.MODELS if asked.larger and name not in models]
        if unknown := set(models) - set(ALL) - set(cpu_models.MODELS):
            parser.error(f"no model is named {', '.join(sorted(unknown))}; there are {', '.join([*ALL, *cpu_models.MODELS])}")
    for script, names in ((ROOT / "test/models/make_models.py", [n for n in models if n in ALL]),
                          (HERE / "cpu_models.py", [n for n in models if n not in ALL])):
        if names:
            subprocess.run([sys.executable, script, "--output", MODELS, "--only", *names], check=True)
    rows, ratios = [], {}
    for name in models:
        model = Model(name, asked.tosaic, asked.peers)
        for kind in asked.types:
            sides = model.prepare(kind)
            for threads in asked.threads:
                cells, ratio = row(name, kind, threads, measured(model, kind, sides, threads, asked.rounds, asked.runs))
                rows.append(cells)
                if ratio:
                    ratios.setdefault((kind, threads), []).append(ratio)
    lines = [f"Measured on {machine()}, {time.strftime('%Y-%m-%d')}: milliseconds, the least of {asked.rounds} times {asked.runs} "
             "runs, the median in brackets.", "", f"| model | type | threads | tosaic | {' | '.join(PEERS)} | tosaic / best |",
             "|---|---|---|---:" + "|---:" * (len(PEERS) + 1) + "|", *(f"| {' | '.join(cells)} |" for cells in rows), ""]
    for (kind, threads), of in ratios.items():
        lines.append(f"Geometric mean of {len(of)} model{'s' * (len(of) > 1)}, {kind}, {threads} thread{'s' * (threads > 1)}: "
                     f"{np.exp(np.mean(np.log(of))):.2f}; ahead on {sum(r < 1 for r in of)}.")
    asked.output.write_text("\n".join(lines) + "\n")
    print("\n" + asked.output.read_text())


def machine():
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    named = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "an unnamed CPU")
    flags = next((line.split(":")[1].split() for line in lines if line.startswith("flags")), [])
    has = [text for flag, text in (("avx512f", "AVX-512"), ("avx512_vnni", "VNNI"), ("amx_int8", "AMX")) if flag in flags]
    return f"{named} ({', '.join(has) or 'without AVX-512'}), {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"


if __name__ == "__main__":
    main()
