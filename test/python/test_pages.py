# SPDX-License-Identifier: Apache-2.0
"""What pages and notebooks show in Python runs: pages that say so block by block, the blocks of all others each in a process
of its own, the notebooks of examples/ in a kernel. Other languages: test/docs_site."""
import ast
import builtins
import os
import pathlib
import re
import shutil
import subprocess
import sys

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "test/docs_site"))
import code_blocks  # noqa: E402

NOTEBOOKS = sorted((ROOT / "examples").rglob("*.ipynb"))


def run_script(text, folder):
    (folder / "page.py").write_text(text)
    tools = os.pathsep.join([str(pathlib.Path(sys.executable).parent), os.environ.get("PATH", "")])
    done = subprocess.run([sys.executable, "page.py"], cwd=folder, capture_output=True, text=True, timeout=600,
                          env={**os.environ, "PATH": tools, "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, text + done.stdout + done.stderr
    return done


def run_in_order(page, folder):
    """`python` blocks run in one interpreter and `sh` blocks between them, in a folder that is empty before."""
    lines = ["import subprocess"]
    for block in code_blocks.blocks(page):
        if block.kind == "run in order" and block.language == "python":
            lines.append(block.text)
        elif block.kind == "run in order" and block.language == "sh":
            lines.append(f"subprocess.run(['bash', '-euc', {block.text!r}], check=True)")
    assert len(lines) > 5
    return run_script("\n".join(lines), folder).stdout


def test_quickstart(tmp_path):
    printed = run_in_order("docs/quickstart.md", tmp_path)
    accuracies = [float(x) for x in re.findall(r"([\d.]+)%$", printed, re.M)]
    assert len(accuracies) == 4 and min(accuracies) > 90, printed
    assert "aten.sort.default page.py:" in printed.replace(f"{tmp_path}/", ""), printed
    assert {"digits.pte", "digits.h", "digits_executorch.pte"} <= set(os.listdir(tmp_path))


def test_quickstart_of_an_executorch_script(tmp_path):
    printed = run_in_order("docs/quickstart-executorch.md", tmp_path)
    left = re.findall(r"^(\w+): .*outside an integer delegate", printed, re.M)
    assert [name.split("_per_tensor")[0] for name in sorted(left)] == ["quantized_decomposed_dequantize", "quantized_decomposed_quantize"]


def test_pages_that_run_in_order_are_these():
    assert [page for page in code_blocks.pages() if code_blocks.runs_in_order(page)] == [
        "docs/quickstart-executorch.md", "docs/quickstart.md"]


# What a page's reader has when a block begins, by name.
GIVEN = {
    "torch": "import torch",
    "tosaic": "import tosaic",
    "image": "image = torch.randn(1, 1, 8, 8)",
    "x": "x = torch.randn(1, 1, 8, 8)",
    "example": "example = torch.randn(1, 1, 8, 8)",
    "inputs": "inputs = (torch.randn(1, 1, 8, 8),)",
    "example_inputs": "example_inputs = (torch.randn(1, 1, 8, 8),)",
    "samples": "samples = [(torch.randn(1, 1, 8, 8),) for _ in range(4)]",
    "batches": "batches = [torch.randn(8, 1, 8, 8) for _ in range(2)]",
    "model": "model = torch.nn.Sequential(torch.nn.Conv2d(1, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(288, 10)).eval()",
    "exported": "exported = torch.export.export(model, (torch.randn(1, 1, 8, 8),))",
    "prefill_ep": "prefill_ep = torch.export.export(model, (torch.randn(1, 1, 8, 8),))",
    "decode_ep": "decode_ep = torch.export.export(model, (torch.randn(1, 1, 8, 8),))",
    "artifact": "artifact = tosaic.compile(model, torch.randn(1, 1, 8, 8), calibration=[torch.randn(8, 1, 8, 8)])",
    "dataset": "dataset = [(torch.randn(1, 1, 8, 8), 3) for _ in range(4)]",
    "Runtime": "import tosaic.executorch.runtime\nfrom executorch.runtime import Runtime",
    "Inspector": "from executorch.devtools import Inspector",
}


def blocks():
    for page in code_blocks.pages():
        for block in code_blocks.blocks(page):
            if block.language == "python" and not block.kind:
                yield pytest.param(block.text, id=block.name.replace("/", "."))


def before(block):
    """What makes the names that a block reads and does not make."""
    tree = ast.parse(block)
    names = [n for n in ast.walk(tree) if isinstance(n, ast.Name)]
    made = {n.id for n in names if isinstance(n.ctx, ast.Store)} | {a.arg for a in ast.walk(tree) if isinstance(a, ast.arg)}
    made |= {n.name for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.ClassDef))} | set(dir(builtins))
    made |= {(a.asname or a.name).split(".")[0] for n in ast.walk(tree) if isinstance(n, (ast.Import, ast.ImportFrom)) for a in n.names}
    wanted = {n.id for n in names} - made
    assert not (unknown := wanted - set(GIVEN)), f"say in GIVEN what {unknown} are"
    needs = "\n".join(GIVEN[name] for name in GIVEN if name in wanted)
    also = [name for name in ("torch", "tosaic", "model") if re.search(rf"\b{name}\b", needs) and name not in wanted | made]
    return "\n".join([GIVEN[name] for name in also] + [needs])


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """An int8 program, as readers have one from the pages before."""
    import torch

    import tosaic

    file = tmp_path_factory.mktemp("compiled") / "model.pte"
    scope = {"torch": torch}
    exec(GIVEN["model"], scope)
    samples = [torch.randn(1, 1, 8, 8) for _ in range(4)]
    tosaic.compile(scope["model"], samples[0], "tosa-int", calibration=samples).save(file)
    return file


@pytest.mark.by_turns(3)
@pytest.mark.parametrize("block", blocks())
def test_each_block_in_a_process_of_its_own(block, compiled, tmp_path):
    shutil.copy(compiled, tmp_path)
    operators = "".join(f"""
@torch.library.custom_op("mylib::{name}", mutates_args=())
def {name}(x: torch.Tensor) -> torch.Tensor: return x.clone()
""" for name in set(re.findall(r'lowering\("mylib::(\w+)"', block)))
    script = "\n".join([before(block), "import torch" if operators else "", operators, block])
    assert "DeprecationWarning" not in run_script(script, tmp_path).stderr


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda p: p.stem)
def test_notebook(notebook, tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # tests run at the same time
    for file in notebook.parent.glob("*.py"):
        shutil.copy(file, tmp_path)
    page = nbformat.read(notebook, as_version=4)
    assert not [c for c in page.cells if c.get("outputs")], "notebooks are kept without what they print"
    NotebookClient(page, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [out.get("data", {}) for cell in page.cells for out in cell.get("outputs", [])]
    html = "".join(data.get("text/html", "") for data in shown)
    if folder := os.environ.get("TOSAIC_NOTEBOOKS"):  # for a look at them as they are shown
        nbformat.write(page, pathlib.Path(folder) / notebook.name)
    assert "cycles" in html and "delegated" in html and "make_digits.py:" in html
    assert "return super().forward(image).sort(dim=1).values" in html  # the line that the NPU does not take
