# SPDX-License-Identifier: Apache-2.0
"""The data behind a report: real programs, what other commands say of them, and files that are refused."""
import hashlib
import json
import re
import subprocess

import numpy as np
import pytest
from report_files import MODEL, ROOT, SAMPLES

COMPILED = ["--calibrate", SAMPLES]


@pytest.fixture
def run(tosaic, tmp_path):
    def call(*words, code=0):
        done = subprocess.run([tosaic, *map(str, words)], cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert done.returncode == code, done.stderr
        return done.stdout if code == 0 else done.stderr
    return call


def graph_of(report, kind):
    return next(g for g in report["graphs"] if g["kind"] == kind)


def check_indices(report):
    """What refers to something refers to something that is there."""
    for graph in report["graphs"]:
        values = len(graph["values"])
        for node in graph["nodes"]:
            assert all(v < values for v in node.get("inputs", []) + node.get("outputs", []))
    for memory in report["memory"]:
        graph = report["graphs"][memory["graph"]]
        steps = max(len(graph["nodes"]), 1)
        alive = np.zeros(steps)
        for b in memory["buffers"]:
            assert b["value"] < len(graph["values"]) and 0 <= b["first"] <= b["last"] < steps
            alive[b["first"]:b["last"] + 1] += b["bytes"]
        if memory["buffers"]:
            assert alive[memory["peak"]] == alive.max()
            assert alive.max() == memory["peak_bytes"] <= memory["arena_bytes"]


def test_a_program_and_a_target(run):
    report = json.loads(run("report", MODEL, "--target", "tosa-int", *COMPILED, "--json"))
    check_indices(report)
    program = graph_of(report, "program")
    manifest = json.loads(run("compile", MODEL, "--target", "tosa-int", *COMPILED, "-o", "m.pte", "--json"))
    placed = [(n["name"], n["op"], n["module"], n["place"], n["delegate"]) for n in manifest["nodes"]]
    assert placed == [(n["name"], n["op"], n.get("module", ""), n.get("place", ""), n["delegate"]) for n in program["nodes"]]
    assert report["manifest"]["program"] == manifest["program"] and report["manifest"]["nodes"] == []
    assert report["manifest"]["exported"] == manifest["exported"]
    outside = [n for n in program["nodes"] if n["delegate"] < 0]
    assert outside and all(n["code"] and n["reason"] for n in outside)
    scaled = [v for v in program["values"] if "scale" in v]
    assert scaled and all(v["range"][0] < v["range"][1] for v in scaled)
    delegate = graph_of(report, "delegate")
    assert all(n["op"].startswith("tosa.") for n in delegate["nodes"])
    conv = next(n for n in delegate["nodes"] if n["op"] == "tosa.conv2d")
    assert conv["module"] and "make_digits.py" in conv["place"]


def test_an_npu(run):
    report = json.loads(run("report", MODEL, "--target", "ethos-u55-128", *COMPILED, "--json"))
    estimate, = report["manifest"]["estimates"]
    assert estimate["cycles"] > 0 and len(estimate["layers"]) > 3
    names = {n["name"] for n in graph_of(report, "delegate")["nodes"]}
    known = sum(layer["cycles"] for layer in estimate["layers"] if layer["name"] in names)  # Vela adds a few of its own
    assert known > 0.8 * estimate["cycles"], "cycles of operators that the graph does not have"


def test_mlias_json(run, tmp_path):
    """Against the manifest; against MLIA's own schema and rules: test/versions/test_mlia.py."""
    asked = ["report", MODEL, "--target", "ethos-u55-128", *COMPILED]
    found, report = (json.loads(run(*asked, *form)) for form in (["--format", "mlia-json"], ["--json"]))
    assert found["schema_version"] == "1.2.0" and found["model"] == {
        "name": "digits.pt2", "format": "pt2", "hash": hashlib.sha256(MODEL.read_bytes()).hexdigest(), "size_bytes": MODEL.stat().st_size}
    assert report["sha256"] == found["model"]["hash"]
    npu, = found["target"]["components"]
    assert npu == {"type": "npu", "family": "ethos-u", "model": "u55", "variant": "128"}
    compatibility, performance = found["results"]
    exported = report["manifest"]["exported"]
    assert [(c["entity_id"], c["status"] == "pass") for c in compatibility["checks"]] == [
        (f"source_operator/{n['name']}", n["taken"]) for n in exported]
    outside = {f"source_operator/{n['name']}": n["reason"] for n in exported if not n["taken"]}
    assert {c["entity_id"]: c["details"]["reasons"][0]["detail"] for c in compatibility["checks"] if c["status"] != "pass"} == outside
    assert compatibility["status"] == ("partial" if outside else "ok")
    estimate, = report["manifest"]["estimates"]
    metrics = {m["name"]: m.get("value") for m in performance["metrics"]}
    assert len(metrics) == len(performance["metrics"]) and metrics["total_cycles"] == estimate["cycles"]
    assert metrics["inference_time"] == pytest.approx(1e3 / estimate["inferences_per_second"])
    assert metrics["peak_activation_memory"] == max(layer["staging_bytes"] for layer in estimate["layers"])
    cycles = [next(m["value"] for m in b["metrics"] if m["name"] == "op_cycles") for b in performance["breakdowns"]]
    assert cycles == [layer["cycles"] for layer in estimate["layers"]]
    entities = {e["id"]: e for e in performance["entities"]}
    parents = [p for b in performance["breakdowns"] for p in entities[b["entity_id"]].get("parent_ids", [])]
    assert parents and all(p in entities for p in parents)

    # Of a compiled file with its manifest it says the same; alone that file does not know.
    run("compile", *asked[1:], "-o", "m.pte", "--report", "compiled.json", "-q")
    run("report", "m.pte", "--manifest", "compiled.json", "--format", "mlia-json", "-o", "advice.json", "-q")
    again = json.loads((tmp_path / "advice.json").read_text())
    assert again["results"] == [{**compatibility}, {**performance, "metrics": again["results"][1]["metrics"]}]
    assert again["model"]["format"] == "pte" and again["model"]["hash"] == hashlib.sha256((tmp_path / "m.pte").read_bytes()).hexdigest()
    (tmp_path / "moved").mkdir()
    (tmp_path / "m.pte").rename(tmp_path / "moved" / "alone.pte")
    assert "report.no-manifest" in run("report", "moved/alone.pte", "--format", "mlia-json", code=1)


def test_a_compiled_file_and_what_others_know_of_it(run, tmp_path):
    run("compile", MODEL, "--target", "ethos-u55-128", *COMPILED, "-o", "m.pte", "--report", "m.json", "-q")
    alone = json.loads(run("report", "m.pte", "--json"))
    check_indices(alone)
    assert alone["format"] == "pte" and alone["manifest"] is None and alone["inspection"]["format"] == "pte"
    assert graph_of(alone, "instructions")["nodes"]
    npu = graph_of(alone, "delegate")
    assert npu["id"] == "EthosUBackend" and npu["sequence"] and any(n["op"].startswith("CONV") for n in npu["nodes"])
    manifest = json.loads((tmp_path / "m.json").read_text())
    assert json.loads(run("report", "m.pte", "--manifest", "m.json", "--json"))["manifest"] == manifest

    run("compile", MODEL, "--target", "tosa-int", *COMPILED, "-o", "t.pte", "-q")
    (tmp_path / "times.json").write_text(run("run", "t.pte", "--profile", "--json"))
    (tmp_path / "layers.json").write_text(run("compare", MODEL, *COMPILED, "--json"))
    report = json.loads(run("report", "t.pte", "--profile", "times.json", "--compare", "layers.json", "--json"))
    values = {v["name"] for v in graph_of(report, "delegate")["values"]}
    timed = {o["value"] for o in report["profile"]["operations"] if o["within"]}
    assert timed and timed <= values, "times of values that the graph does not have"
    assert report["comparison"]["layers"]


def test_a_manifest_of_another_program_is_refused(run, tmp_path):
    for name, target in {"fast": "tosa-fp", "small": "tosa-int"}.items():
        run("compile", MODEL, "--target", target, *(COMPILED if target == "tosa-int" else ()), "-o", f"{name}.pte", "--report", f"{name}.json", "-q")
    message = run("report", "small.pte", "--manifest", "fast.json", "-o", "m.html", code=1)
    assert "fast.json: error[report.other-manifest]" in message and "small.pte" in message and "--report FILE" in message
    assert json.loads(run("report", "small.pte", "--manifest", "small.json", "--json"))["manifest"]["target"]["name"] == "tosa-int"
    (tmp_path / "explained.json").write_text(run("explain", MODEL, "--target", "tosa-fp", "--json"))  # which wrote no program
    run("report", "small.pte", "--manifest", "explained.json", "--json")


@pytest.mark.parametrize("target", ["tosa-fp", "vgf", "vulkan"])
def test_delegates_are_shown_with_their_lines(run, target):
    run("compile", MODEL, "--target", target, "-o", "m.pte", "-q")
    report = json.loads(run("report", "m.pte", "--json"))
    check_indices(report)
    delegate = graph_of(report, "delegate")
    placed = [n for n in delegate["nodes"] if "make_digits.py" in n.get("place", "")]
    assert len(placed) > 2 or target == "vgf"  # whose files hold no source locations
    assert any(n.get("inputs") for n in delegate["nodes"])
    assert next(m for m in report["memory"] if report["graphs"][m["graph"]] == delegate)["peak_bytes"] > 0


@pytest.mark.parametrize("name", ["add_mul", "branch", "conv", "counter", "mlp", "tosa_delegate"])
def test_files_of_executorch(run, name):
    report = json.loads(run("report", ROOT / f"test/formats/pte/{name}.pte", "--json"))
    check_indices(report)
    assert graph_of(report, "instructions")["nodes"]


def test_several_methods(run):
    report = json.loads(run("report", f"one={MODEL}", f"two={MODEL}", "--target", "tosa-fp", "--json"))
    check_indices(report)
    assert [g["name"] for g in report["graphs"] if g["kind"] == "program"] == ["one", "two"]


def test_size_of_a_page(run, request, tmp_path):
    """Of what the quick models have the largest; MobileNetV2 where all models were made."""
    name = "mobilenet_v2" if request.config.getoption("--all-models") else "keyword_spotting"
    model = ROOT / f"build/models/{name}.pt2"
    if not model.exists():
        pytest.skip("make quick-models")
    run("report", model, "--target", "ethos-u55-128", "--calibrate", model.with_name(f"{name}_samples.npz"), "-o", "m.html", "-q")
    assert (tmp_path / "m.html").stat().st_size < 1_000_000


def test_the_page_lists_every_member(run, tmp_path):
    """docs/report.md has each member of the JSON, and no other."""
    listed = set(re.findall(r'`"([a-z0-9_]+)"`', (ROOT / "docs/report.md").read_text().split("## The data")[1]))
    run("compile", MODEL, "--target", "tosa-int", *COMPILED, "-o", "t.pte", "-q")
    found = set()
    for report in (run("report", MODEL, "--target", "ethos-u55-128", *COMPILED, "--json"), run("report", "t.pte", "--json")):
        report = json.loads(report)
        found |= set(report)
        for graph in report["graphs"]:
            found |= set(graph).union(*map(set, graph["nodes"] + graph["values"]))
        for memory in report["memory"]:
            found |= set(memory).union(*map(set, memory["buffers"]))
    assert found <= listed, found - listed
    assert listed <= found | {"sequence", "help", "source"}, listed - found


def test_damaged_files_are_refused_as_elsewhere(run, tmp_path):
    run("compile", MODEL, "--target", "tosa-int", *COMPILED, "-o", "m.pte", "-q")
    whole = (tmp_path / "m.pte").read_bytes()
    for name, content in {"cut.pte": whole[:len(whole) // 3], "empty.pte": b"", "text.pte": b"hello"}.items():
        (tmp_path / name).write_bytes(content)
        said = run("report", name, "-o", "m.html", code=1)
        assert re.match(rf"{name}: error\[[a-z.-]+\]: ", said), said
        assert not (tmp_path / "m.html").exists()
