# SPDX-License-Identifier: Apache-2.0
"""Netron's readers and Model Explorer's adapters open what tosaic writes, and see the operators that are in it.

Where these packages are installed: `make test-versions` does that. Netron's readers are JavaScript: they need node.
"""
import collections
import json
import pathlib
import shutil
import subprocess

import pytest

netron = pytest.importorskip("netron")
pytest.importorskip("model_explorer")

HERE = pathlib.Path(__file__).resolve().parent
DIGITS = HERE.parents[1] / "examples" / "digits"
KINDS = {"fp": "tosa-fp", "int": "tosa-int", "vgf": "vgf", "npu": "ethos-u55-128"}


@pytest.fixture(scope="session")
def files(tosaic, tmp_path_factory):
    """{kind: its folder, with a model.pte and what else the target has}, and {kind: operators of its TOSA}."""
    folders, operators = {}, {}
    for kind, target in KINDS.items():
        folder = folders[kind] = tmp_path_factory.mktemp(kind)
        more = ["--emit", f"vgf={folder / 'model.vgf'}"] if kind == "vgf" else []
        samples = [] if kind == "fp" else ["--calibrate", DIGITS / "digits_samples.npz"]
        subprocess.run([tosaic, "compile", DIGITS / "digits.pt2", "--target", target, "-o", folder / "model.pte", "--emit",
                        f"tosa={folder / 'model.tosa'}", *more, *samples], check=True, capture_output=True)
        shown = subprocess.run([tosaic, "inspect", "--json", folder / "model.tosa"], check=True, capture_output=True)
        counts = json.loads(shown.stdout)["graph"]["operators"]
        operators[kind] = {name.removeprefix("tosa.").upper(): count for name, count in counts.items()}
    return folders, operators


def explored(adapter, path):
    """[(graph, {label: count})] of Model Explorer's adapter."""
    found = adapter.convert(str(path), {})
    graphs = found.get("graphs") or [g for c in found["graphCollections"] for g in (c["graphs"] if isinstance(c, dict) else c.graphs)]
    return [(g["id"], collections.Counter(n["label"] for n in g["nodes"])) if isinstance(g, dict) else
            (g.id, collections.Counter(n.label for n in g.nodes)) for g in graphs]


@pytest.mark.parametrize("kind", KINDS)
def test_model_explorer_shows_tosa(files, kind):
    from tosa_adapter_model_explorer.main import TosaFlatbufferAdapter

    folders, operators = files
    ((_, labels),) = explored(TosaFlatbufferAdapter(), folders[kind] / "model.tosa")
    assert {k: n for k, n in labels.items() if k not in ("CONST", "CONST_SHAPE", "GraphInputs", "GraphOutputs")} == operators[kind]


def test_model_explorer_shows_vgf(files):
    from vgf_adapter_model_explorer.main import VGFAdapter

    folders, operators = files
    ((_, labels),) = explored(VGFAdapter(), folders["vgf"] / "model.vgf")
    assert {k: n for k, n in labels.items() if k in operators["vgf"]} == operators["vgf"]


@pytest.mark.parametrize("kind, delegate", [("fp", "TOSABackend"), ("int", "TOSABackend"), ("vgf", "VgfBackend"),
                                            ("npu", "EthosUBackend")])
def test_model_explorer_shows_pte(files, kind, delegate):
    from pte_adapter_model_explorer.main import PTEAdapter

    folders, operators = files
    (_, labels), *inside = explored(PTEAdapter(), folders[kind] / "model.pte")
    assert labels[delegate] == 1 and labels["Graph Inputs"] == labels["Graph Outputs"] == 1
    if kind == "vgf":  # it looks into that one
        assert {k: n for k, n in inside[0][1].items() if k in operators["vgf"]} == operators["vgf"]


@pytest.mark.parametrize("kind", ["fp", "int"])
def test_our_adapter_opens_the_tosa_in_a_pte(files, kind):
    """With the operators of the graph, and the lines of the model that they come from."""
    from tosaic_adapter_model_explorer import PteWithTosaAdapter

    folders, operators = files
    program, inside = PteWithTosaAdapter().convert(str(folders[kind] / "model.pte"), {})["graphCollections"]
    (box,) = [n for n in program.graphs[0].nodes if n.label == "TOSABackend"]
    (graph,) = inside.graphs
    assert box.subgraphIds == [graph.id]
    labels = collections.Counter(n.label for n in graph.nodes)
    assert {k: n for k, n in labels.items() if k not in ("CONST", "CONST_SHAPE", "GraphInputs", "GraphOutputs")} == operators[kind]
    places = [a.value for n in graph.nodes if n.label == "CONV2D" for a in n.attrs if a.key == "opLocation"]
    assert len(places) == labels["CONV2D"] and all("make_digits.py:" in p and "module " in p for p in places)


@pytest.fixture(scope="session")
def in_netron(tmp_path_factory):
    node = shutil.which("node")
    if not node:
        pytest.skip("Netron's readers need node on PATH")
    package = tmp_path_factory.mktemp("netron") / "netron"
    shutil.copytree(pathlib.Path(netron.__file__).parent, package)
    (package / "package.json").write_text('{"type": "module"}')

    def opened(path):
        done = subprocess.run([node, HERE / "open_in_netron.mjs", package, path], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)
    return opened


@pytest.mark.parametrize("kind", KINDS)
def test_netron_shows_tosa(files, in_netron, kind):
    folders, operators = files
    shown = in_netron(folders[kind] / "model.tosa")
    assert shown["format"] == "TOSA v1.0.0", shown
    (graph,) = shown["graphs"]
    assert collections.Counter(graph["operators"]) == operators[kind] and graph["inputs"] == graph["outputs"] == 1


def test_netron_shows_pte_as_far_as_it_knows_delegates(files, in_netron):
    folders, _ = files
    (graph,) = in_netron(folders["npu"] / "model.pte")["graphs"]
    assert sorted(graph["operators"]) == ["EthosUBackend", "dequantize_per_tensor", "quantize_per_tensor"]
    # Of these it says so whoever made the program.
    for kind, delegate in (("fp", "TOSABackend"), ("vgf", "VgfBackend")):
        assert in_netron(folders[kind] / "model.pte") == {"error": f"ExecuTorch delegate '{delegate}' not implemented."}
    assert in_netron(folders["vgf"] / "model.vgf") == {"error": "Unsupported file content."}
