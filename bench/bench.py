# SPDX-License-Identifier: Apache-2.0
"""tosaic compared with its peers: one table, every row measured in this run, on this machine.

    python bench.py --tosaic build/release/bin/tosaic [--output build/bench.md] [--only compile run memory start chain]

Each row compares like with like and says what it counts: "process" is the wall clock of whole processes on both sides
(for ExecuTorch that includes its imports), "in process" what happens between the call and its result on both sides, without
start and imports. Both sides run equally often and the least counts; both have THREADS threads, all files have been
read before, and programs are delegated whole.
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
COMPILES = 3  # of each program, each in a process of its own
WARM = 20     # compilations in one process
RUNS = 50     # of each compiled program, after one that does not count


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
    """What the peer measured, with its process's own seconds and peak bytes."""
    seconds, peak, out = process(sys.executable, HERE / "peers.py", *arguments)
    return {**json.loads(out.strip().splitlines()[-1]), "process": seconds, "peak": peak}


def least_of(runs):
    """The least of each figure."""
    return {key: min(run[key] for run in runs) for key in runs[0] if isinstance(runs[0][key], (int, float))}


def flow(model, target, out, *samples):
    """ExecuTorch's flow, COMPILES times."""
    return least_of([peer("flow", THREADS, model, target, out, *samples) for _ in range(COMPILES)])


def compiled(*command):
    """tosaic's, likewise: "seconds" are those between reading the program and having written the result."""
    report, options = WORK / "report.json", ["--threads", THREADS, "--require-full-delegation"]
    runs = []
    for _ in range(COMPILES):
        seconds, peak, _ = process(*command, *options)
        process(*command, *options, "--report", report)  # a report costs hashing the model
        made = json.loads(report.read_text())
        runs.append({"seconds": sum(made["stages"].values()) - made["peer_seconds"], "process": seconds, "peak": peak})
    return least_of(runs)


def once(measure):
    """`measure` with its results kept: several rows show parts of one."""
    found = {}

    def kept(*key):
        if key not in found:
            found[key] = measure(*key)
        return found[key]
    return kept


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
    MODELS.mkdir(parents=True, exist_ok=True)
    process(sys.executable, ROOT / "test/models/make_models.py", "--output", MODELS, "--only", "mobilenet_v2")
    one = np.load(MODELS / "mobilenet_v2_samples.npz")
    np.savez(WORK / "one_sample.npz", **{name: one[name][:1] for name in one})
    np.save(WORK / "image.npy", np.load(MODELS / "mobilenet_v2_expected.npz")["input_0"][0])


def compile_command(tosaic, target, out, model=None, calibrate=None):
    command = [tosaic, "compile", model or MODELS / "mobilenet_v2.pt2", "--target", target, "-o", out]
    if target == "tosa-int":
        command += ["--calibrate", calibrate or WORK / "one_sample.npz"]
    return command


def warm(tosaic, model, target):
    """The least of several compilations through the library, in one process."""
    samples = [WORK / "one_sample.npz"] if target == "tosa-int" else []
    out = process(tosaic.parent / "in_process", model, target, WARM, *samples)[2]
    return min(json.loads(out)["seconds"])


def compiling(table, tosaic, sections):
    model = MODELS / "mobilenet_v2.pt2"
    own = once(lambda target: compiled(*compile_command(tosaic, target, WORK / f"{target}.pte")))
    theirs = once(lambda target: flow(model, target, WORK / f"et_{target}.pte",
                                      *([WORK / "one_sample.npz"] if target == "tosa-int" else [])))
    for target, words in (("tosa-int", "int8, one sample"), ("tosa-fp", "float")):
        if "compile" in sections:
            for key, counted in (("seconds", "in process"), ("process", "process")):
                table.add(f"compile MobileNetV2-224, {words}, {counted}", lambda: own(target)[key],
                          f"ExecuTorch Arm flow, {counted}", lambda: theirs(target)[key], milliseconds)
            table.add(f"compile MobileNetV2-224, {words}, bytes to bytes, warm (best of {WARM} in one process)",
                      lambda: warm(tosaic, model, target), "ExecuTorch Arm flow, in process, once",
                      lambda: theirs(target)["seconds"], milliseconds)
        if "memory" in sections:
            table.add(f"peak memory of that process, {words}", lambda: own(target)["peak"],
                      "ExecuTorch Arm flow, process", lambda: theirs(target)["peak"], megabytes)


def running(table, tosaic):
    image, program = WORK / "image.npy", MODELS / "mobilenet_v2.pt2"

    def emitted(target):
        path = WORK / f"{target}.tosa"
        process(*compile_command(tosaic, target, WORK / f"{target}.pte"), "--require-full-delegation", "--emit", f"tosa={path}")
        return path

    def in_process(target):
        emitted(target)
        out = process(tosaic, "run", WORK / f"{target}.pte", "--input", image, "--output-dir", WORK / "out", "--repeat", RUNS,
                      "--threads", THREADS, "--json")[2]
        return min(json.loads(out)["run_seconds"])

    own = once(in_process)
    model_of = once(lambda target: peer("reference", COMPILES, emitted(target), image))
    for target, words in (("tosa-fp", "float32"), ("tosa-int", "int8, floats in and out")):
        what = f"run MobileNetV2-224, {words}, {THREADS} threads, in process"
        table.add(what, lambda: own(target), "PyTorch eager, float32, in process",
                  lambda: peer("eager", THREADS, RUNS, program, image)["seconds"], milliseconds)
        kind = "float" if target == "tosa-fp" else "int8"
        table.add(what, lambda: own(target), f"ExecuTorch XNNPACK, {kind}, in process",
                  lambda: peer("xnnpack", THREADS, RUNS, program, image, kind, WORK / "one_sample.npz")["seconds"], milliseconds)
        table.add(f"run its .tosa once, {words.split(',')[0]}, process",
                  lambda: least(COMPILES, tosaic, "run", emitted(target), "--input", model_of(target)["input"], "--output-dir",
                                WORK / "out", "--threads", THREADS)[0],
                  "tosa_reference_model (one thread), process", lambda: model_of(target)["seconds"], milliseconds)


def both(table, what, tosaic, model):
    """One model, to tosa-fp, in process and as a process."""
    own = once(lambda: compiled(*compile_command(tosaic, "tosa-fp", model.with_suffix(".pte"), model)))
    theirs = once(lambda: flow(model, "tosa-fp", WORK / "et.pte"))
    for key, counted in (("seconds", "in process"), ("process", "process")):
        table.add(f"{what}, {counted}", lambda: own()[key], f"ExecuTorch Arm flow, {counted}", lambda: theirs()[key], milliseconds)


def starting(table, tosaic):
    model = WORK / "three.pt2"
    peer("three", model)
    both(table, "compile a model of 3 operators", tosaic, model)


def chains(table, tosaic):
    for count in (10, 100, 1000, 10000):
        model = WORK / f"chain_{count}.pt2"
        if not model.exists():
            peer("chain", count, model)
        what = f"compile a chain of {count} nodes, float"
        if count <= 1000:
            both(table, what, tosaic, model)
        else:
            table.add(f"{what}, process", lambda: compiled(*compile_command(tosaic, "tosa-fp", WORK / "chain.pte", model))["process"],
                      "not measured (minutes)", lambda: None, milliseconds)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tosaic", type=pathlib.Path, default=ROOT / "build/release/bin/tosaic")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "build/bench.md")
    sections = ["compile", "memory", "run", "start", "chain"]
    parser.add_argument("--only", nargs="+", choices=sections, default=sections)
    arguments = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    if set(arguments.only) - {"start", "chain"}:
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
    title = f"Measured on {cpu_name()}, {os.cpu_count()} cores, {time.strftime('%Y-%m-%d')}; times are minima of {COMPILES} compilations and {RUNS} runs.\n\n"
    arguments.output.write_text(title + table.text())
    print(f"\n{title}{table.text()}")


if __name__ == "__main__":
    main()
