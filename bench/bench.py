# SPDX-License-Identifier: Apache-2.0
"""tosaic beside its peers: one table, every row measured in this run, on this machine.

    python bench.py --tosaic build/release/bin/tosaic [--output build/bench.md] [--only compile run memory start chain]

Times are minima over several runs. Compile times of tosaic are of the whole process; those of ExecuTorch leave out
the seconds that importing its packages takes.
"""
import argparse
import json
import os
import pathlib
import platform
import subprocess
import sys
import time

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
WORK = ROOT / "build/bench"
MODELS = ROOT / "build/models"
THREADS = 2


def process(*command):
    """(seconds, peak bytes, standard output) of one process."""
    start = time.perf_counter()
    with open(WORK / "stdout", "w+") as out, open(WORK / "stderr", "w+") as err:
        child = subprocess.Popen([str(c) for c in command], stdout=out, stderr=err)
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode != 0:
            err.seek(0)
            raise RuntimeError(f"{' '.join(map(str, command))}: exit {child.returncode}: {err.read()[-500:].strip()}")
        out.seek(0)
        return seconds, usage.ru_maxrss * 1024, out.read()


def least(count, *command):
    runs = [process(*command) for _ in range(count)]
    return min(r[0] for r in runs), min(r[1] for r in runs), runs[-1][2]


def peer(*arguments):
    """(what the peer measured, its peak bytes)."""
    _, peak, out = process(sys.executable, HERE / "peers.py", *arguments)
    return json.loads(out.strip().splitlines()[-1]), peak


class Table:
    def __init__(self):
        self.rows = []

    def add(self, what, ours, name, theirs, form):
        """One row; `ours` and `theirs` are functions, so that a failure becomes a word in the table."""
        values = []
        for measure in (ours, theirs):
            try:
                values.append(measure())
            except Exception as failure:  # a peer that cannot do it is a result too
                print(f"{what}: {failure}", file=sys.stderr, flush=True)
                values.append(None)
        a, b = values
        ratio = f"{a / b:.3f}" if a and b and b > 0 else "–"
        times = f"{b / a:.1f} x" if a and b else "–"
        self.rows.append((what, form(a) if a is not None else "failed", name, form(b) if b is not None else "failed",
                          ratio, times))
        print("  ".join(self.rows[-1]), flush=True)

    def text(self):
        head = ["| what | tosaic | peer | its figure | tosaic / peer | peer / tosaic |", "|---|---:|---|---:|---:|---:|"]
        return "\n".join(head + [f"| {' | '.join(row)} |" for row in self.rows]) + "\n"


def milliseconds(seconds):
    return f"{1000 * seconds:.2f} ms" if seconds < 1 else f"{seconds:.2f} s"


def megabytes(size):
    return f"{size / 1e6:.1f} MB"


def cpu_name():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":")[1].strip()
    return platform.processor()


def prepare(tosaic):
    WORK.mkdir(parents=True, exist_ok=True)
    process(sys.executable, ROOT / "test/models/make_models.py", "--output", MODELS, "--only", "mobilenet_v2")
    one = np.load(MODELS / "mobilenet_v2_samples.npz")
    np.savez(WORK / "one_sample.npz", **{name: one[name][:1] for name in one})
    np.save(WORK / "image.npy", np.load(MODELS / "mobilenet_v2_expected.npz")["input_0"][0])


def compile_command(tosaic, target, out, model=None, calibrate=None):
    command = [tosaic, "compile", model or MODELS / "mobilenet_v2.pt2", "--target", target, "-o", out]
    if target == "tosa-int":
        command += ["--calibrate", calibrate or WORK / "one_sample.npz"]
    return command


def compiling(table, tosaic, sections):
    flows = {}

    def flow(target):
        if target not in flows:
            flows[target] = peer("flow", MODELS / "mobilenet_v2.pt2", target, WORK / f"et_{target}.pte",
                                 *([WORK / "one_sample.npz"] if target == "tosa-int" else []))
        return flows[target]

    ours = {}

    def own(target):
        if target not in ours:
            ours[target] = least(5, *compile_command(tosaic, target, WORK / f"{target}.pte"))
        return ours[target]

    for target, words in (("tosa-int", "int8, one sample"), ("tosa-fp", "float")):
        if "compile" in sections:
            table.add(f"compile MobileNetV2-224, {words}", lambda: own(target)[0],
                      "ExecuTorch Arm flow, without imports", lambda: flow(target)[0]["seconds"], milliseconds)
        if "memory" in sections:
            table.add(f"peak memory of that, {words}", lambda: own(target)[1],
                      "ExecuTorch Arm flow, with imports", lambda: flow(target)[1], megabytes)


def running(table, tosaic):
    def ours(target):
        emitted = WORK / f"{target}.tosa"
        process(*compile_command(tosaic, target, WORK / f"{target}.pte"), "--emit", f"tosa={emitted}")
        report = json.loads(process(tosaic, "run", WORK / f"{target}.pte", "--input", WORK / "image.npy", "--output-dir",
                                    WORK / "out", "--repeat", 50, "--threads", THREADS, "--json")[2])
        return min(report["run_seconds"])

    found = {}

    def once(target):
        if target not in found:
            found[target] = ours(target)
        return found[target]

    image, program = WORK / "image.npy", MODELS / "mobilenet_v2.pt2"
    for target, words in (("tosa-fp", "float32"), ("tosa-int", "int8")):
        what = f"run MobileNetV2-224, {words}, {THREADS} threads"
        table.add(what, lambda: once(target), "PyTorch eager, float32",
                  lambda: peer("eager", program, image, THREADS)[0]["seconds"], milliseconds)
        kind = "float" if target == "tosa-fp" else "int8"
        table.add(what, lambda: once(target), f"ExecuTorch XNNPACK, {kind}",
                  lambda: peer("xnnpack", program, image, kind, WORK / "one_sample.npz")[0]["seconds"], milliseconds)
        table.add(what, lambda: once(target), "tosa_reference_model, process",
                  lambda: peer("reference", WORK / f"{target}.tosa", image)[0]["seconds"], milliseconds)


def starting(table, tosaic):
    model = WORK / "three.pt2"
    peer("three", model)
    table.add("compile a model of 3 operators, whole process",
              lambda: least(10, *compile_command(tosaic, "tosa-fp", WORK / "three.pte", model))[0],
              "ExecuTorch Arm flow, whole process",
              lambda: process(sys.executable, HERE / "peers.py", "flow", model, "tosa-fp", WORK / "et_three.pte")[0],
              milliseconds)


def chains(table, tosaic):
    for count in (10, 100, 1000, 10000):
        model = WORK / f"chain_{count}.pt2"
        if not model.exists():
            peer("chain", count, model)
        theirs = lambda: peer("flow", model, "tosa-fp", WORK / "et_chain.pte")[0]["seconds"]
        table.add(f"compile a chain of {count} nodes, float",
                  lambda: least(3, *compile_command(tosaic, "tosa-fp", WORK / "chain.pte", model))[0],
                  "ExecuTorch Arm flow, without imports" if count <= 1000 else "not measured (minutes)",
                  theirs if count <= 1000 else lambda: None, milliseconds)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tosaic", type=pathlib.Path, default=ROOT / "build/release/bin/tosaic")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "build/bench.md")
    sections = ["compile", "memory", "run", "start", "chain"]
    parser.add_argument("--only", nargs="+", choices=sections, default=sections)
    arguments = parser.parse_args()
    prepare(arguments.tosaic)
    table = Table()
    if {"compile", "memory"} & set(arguments.only):
        compiling(table, arguments.tosaic, arguments.only)
    if "run" in arguments.only:
        running(table, arguments.tosaic)
    if "start" in arguments.only:
        starting(table, arguments.tosaic)
    if "chain" in arguments.only:
        chains(table, arguments.tosaic)
    title = f"Measured on {cpu_name()}, {os.cpu_count()} cores, {time.strftime('%Y-%m-%d')}; times are minima.\n\n"
    arguments.output.write_text(title + table.text())
    print(f"\n{title}{table.text()}")


if __name__ == "__main__":
    main()
