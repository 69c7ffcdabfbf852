# SPDX-License-Identifier: Apache-2.0
"""Families of models (zoo_families.py) on the targets: one table of what is delegated, right, exact, fast and large.

    python zoo.py --tosaic build/release/bin/tosaic --output build/zoo [--only WORD ...]

For each family and target: nodes that the target takes of all, with the first reason if it does not take one; whether the
result is PyTorch's (floats) or by how many dB it differs (int8); seconds and peak memory of the compilation. Families run
in processes of their own; results are kept, so a second call only runs what is missing. --fresh starts over. What differs
from zoo_left.txt is printed, and the exit code is 1.
"""
import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import warnings

HERE = pathlib.Path(__file__).resolve().parent
FLOATS = ["tosa-fp", "vgf", "vulkan"]
SHARES = ["tosa-int", "ethos-u55-128", "ethos-u85-256"]  # asked what they take; of the first, results too
LIMIT = 300  # seconds of one command
WORST = 1e-4  # of the largest value, in floats
DECIBELS = 18  # of int8 against eager, at least
FEWER = {"timm mobilevit_xxs": 15, "timm mobilevitv2_050": 10}  # no better elsewhere: docs/benchmarks/models.md


# Says on its last line what the command took. A process counts what the one that started it held: this one is small.
MEASURED = """import os, resource, sys
ended = os.waitstatus_to_exitcode(os.waitpid(os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ), 0)[1])
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(f"\\n{used.ru_utime + used.ru_stime} {used.ru_maxrss / 1024}", file=sys.stderr)
sys.exit(ended % 256)
"""


def call(tool, *arguments):
    """(exit code, stdout, stderr, seconds of the processor, peak memory in MB) of one command of the tool."""
    process = subprocess.Popen([sys.executable, "-I", "-S", "-c", MEASURED, tool, *map(str, arguments)], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        out, err = process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return 124, "", f"no answer within {LIMIT} seconds", float(LIMIT), 0.0
    err, _, numbers = err.rstrip("\n").rpartition("\n")
    seconds, megabytes = map(float, numbers.split())
    return process.returncode, out, err, seconds, megabytes


def first_error(text):
    for line in text.splitlines():
        try:
            said = json.loads(line)
        except ValueError:
            continue
        if said.get("severity") == "error":
            return f"{said['code']}: {said['message']}"[:160]
    return text.strip()[-160:]


def difference(expected, found):
    """(largest error relative to the largest value, SNR in dB) over all float outputs; None where integers differ."""
    import numpy as np
    worst, noise, signal = 0.0, 0.0, 0.0
    for e, f in zip(expected, found):
        if e.shape != f.shape:
            return None
        if not np.issubdtype(e.dtype, np.floating):
            if not np.array_equal(e, f):
                return None
            continue
        e, f = e.astype(np.float64), f.astype(np.float64)
        if not np.array_equal(np.isfinite(e), np.isfinite(f)):
            return None
        e, f = e[np.isfinite(e)], f[np.isfinite(f)]
        if e.size:
            worst = max(worst, float(abs(e - f).max() / max(abs(e).max(), 1e-30)))
        noise, signal = noise + float(((e - f) ** 2).sum()), signal + float((e ** 2).sum())
    return worst, 10 * np.log10(signal / noise) if noise else float("inf")


def export(name, folder):
    """The program, its inputs and PyTorch's results, as files."""
    import numpy as np
    import torch
    from zoo_families import FAMILIES
    torch.manual_seed(sum(map(ord, name)))
    module, inputs = FAMILIES[name]()
    module.eval()
    with torch.no_grad():
        for weight in module.parameters():  # some begin with zeros, which would give zeros alone
            if weight.dim() > 1 and not weight.any():
                weight.normal_(std=0.02)
        results = module(*inputs)
        program = torch.export.export(module, inputs)
    torch.export.save(program, folder / "model.pt2")
    results = results if isinstance(results, (tuple, list)) else (results,)
    for kind, tensors in (("input", inputs), ("expected", results)):
        for i, tensor in enumerate(tensors):
            np.save(folder / f"{kind}_{i}.npy", tensor.detach().contiguous().numpy())


def arrays(folder, kind):
    import numpy as np
    found = []
    while (folder / f"{kind}_{len(found)}.npy").exists():
        found.append(np.load(folder / f"{kind}_{len(found)}.npy"))
    return found


def share(answer):
    nodes = [n for n in answer["nodes"] if n["delegate"] >= 0 or n["code"] != "target.conversion"]
    outside = [n for n in nodes if n["delegate"] < 0]
    return {"taken": len(nodes) - len(outside), "of": len(nodes),
            "why": f"{outside[0]['op']}: {outside[0]['reason']}"[:200] if outside else ""}


def on_target(tool, folder, target, run):
    code, out, err, seconds, _ = call(tool, "explain", folder / "model.pt2", "--target", target, "--json")
    if code:
        return {"error": first_error(err)}
    row = share(json.loads(out))
    if not run:
        return row
    made = folder / f"{target}.pte"
    code, out, err, row["seconds"], row["megabytes"] = call(tool, "compile", folder / "model.pt2", "--target", target, "-o", made, "--json")
    if code:
        return row | {"error": first_error(err)}
    results = folder / target
    inputs = [word for i in range(len(arrays(folder, "input"))) for word in ("--input", folder / f"input_{i}.npy")]
    device = ["--device", "vulkan"] if target == "vulkan" and os.environ.get("TOSAIC_WITHOUT_VULKAN") is None else []
    code, out, err, _, _ = call(tool, "run", made, *inputs, *device, "--output-dir", results, "--json")
    made.unlink()
    if code:
        return row | {"error": first_error(err)}
    compared = difference(arrays(folder, "expected"), arrays(results, "output"))
    if compared is None:
        return row | {"error": "results of another shape, or other integers"}
    return row | {"worst": compared[0], "snr": compared[1]}


def look_at(tool, name, folder, targets):
    """One family: a dict by targets, written by the process that runs it."""
    sys.path.insert(0, str(HERE))
    warnings.filterwarnings("ignore")
    folder.mkdir(parents=True, exist_ok=True)
    found = {}
    try:
        export(name, folder)
    except Exception as failure:  # the libraries' own failures: said in the table
        found["export"] = f"{type(failure).__name__}: {failure}".splitlines()[0][:160]
    else:
        for target in targets:
            found[target] = on_target(tool, folder, target, target in FLOATS or target == SHARES[0])
    for file in folder.rglob("*"):
        if file.is_file():
            file.unlink()
    (folder / "found.json").write_text(json.dumps(found, indent=1))
    return found


def cell(row):
    if row is None:
        return ""
    if "error" in row:
        return "refused" if row["error"].partition(":")[0].count(".") else "failed"
    text = "all" if row["taken"] == row["of"] else f"{row['taken']}/{row['of']}"
    return text


def right(row):
    return "worst" in row and row["worst"] < WORST


def known():
    """(family, target) -> the reason why that is left."""
    lines = (HERE / "zoo_left.txt").read_text().splitlines()
    return {(family, target): reason for family, target, reason in
            (line.split("  ") for line in lines if line and not line.startswith("#"))}


def unlike_what_is_known(name, found):
    """A sentence for each thing that is worse than zoo_left.txt says, or better."""
    left = known()
    if "export" in found or (name, "export") in left:
        now, before = found.get("export", ""), left.get((name, "export"), "")
        return [] if before and now.startswith(before) else [f"export: {now or 'goes'}; known: {before or 'goes'}"]
    said = []
    for target, row in found.items():
        reason = row.get("error") or row["why"]
        if reason != left.get((name, target), ""):
            said.append(f"{target}: {reason or 'takes all'}; known: {left.get((name, target)) or 'takes all'}")
        if "error" not in row and target in FLOATS and not right(row):
            said.append(f"{target}: {row['worst']:.0e} of the largest value beside eager")
        if "error" not in row and target == SHARES[0] and row["snr"] < FEWER.get(name, DECIBELS):
            said.append(f"{target}: int8 has {row['snr']:.1f} dB")
    return said


def table(results):
    lines = ["| family | " + " | ".join([*FLOATS, *SHARES]) + " | float worst | int8 dB | compile s | MB |",
             "|---" * (len(FLOATS) + len(SHARES) + 5) + "|"]
    reasons, nan = [], float("nan")
    for name, found in results.items():
        if "export" in found:
            lines.append(f"| {name} | PyTorch: {found['export']} |")
            continue
        cells = [cell(found.get(t)) + ("" if t not in FLOATS or right(found[t]) or "error" in found[t] else " WRONG")
                 for t in [*FLOATS, *SHARES] if t in found]
        worst = max((found[t]["worst"] for t in FLOATS if "worst" in found.get(t, {})), default=nan)
        integer = found.get(SHARES[0], {})
        lines.append(f"| {name} | {' | '.join(cells)} | {worst:.0e} | {integer.get('snr', nan):.1f} | "
                     f"{found[FLOATS[0]].get('seconds', nan):.2f} | {found[FLOATS[0]].get('megabytes', nan):.0f} |")
        reasons += [f"- {name}, {t}: {found[t].get('error') or found[t]['why']}" for t in [*FLOATS, *SHARES]
                    if t in found and (found[t].get("error") or found[t]["why"])]
    return "\n".join(lines) + "\n\nFirst reasons:\n\n" + "\n".join(reasons) + "\n"


def in_a_child(tool, name, folder):
    """One family in a process of its own, which may die. It has the parent's imports."""
    child = os.fork()
    if child == 0:
        try:
            look_at(tool, name, folder, [*FLOATS, *SHARES])
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    if not (folder / "found.json").exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "found.json").write_text(json.dumps({"export": "the process died"}))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tosaic", default="build/release/bin/tosaic")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("build/zoo"))
    parser.add_argument("--only", nargs="*", default=[], help="families whose name has one of these words")
    parser.add_argument("--fresh", action="store_true", help="also families of which there are results")
    arguments = parser.parse_args()
    tool = str(pathlib.Path(arguments.tosaic).resolve())
    sys.path.insert(0, str(HERE))
    import torch
    from zoo_families import FAMILIES
    torch.set_num_threads(1)  # threads do not survive a fork
    results = {}
    for name in FAMILIES:
        if arguments.only and not any(word in name for word in arguments.only):
            continue
        folder = arguments.output / name.replace(" ", "_")
        kept = folder / "found.json"
        if arguments.fresh or not kept.exists():
            kept.unlink(missing_ok=True)
            start = time.perf_counter()
            in_a_child(tool, name, folder)
            print(f"{name}: {time.perf_counter() - start:.1f} s", flush=True)
        results[name] = json.loads(kept.read_text())
    (arguments.output / "zoo.md").write_text(table(results))
    unlike = [f"{name}, {sentence}" for name, found in results.items() for sentence in unlike_what_is_known(name, found)]
    print(*unlike, f"{arguments.output / 'zoo.md'}: {len(results)} families", sep="\n")
    return bool(unlike) or not results


if __name__ == "__main__":
    sys.exit(main())
