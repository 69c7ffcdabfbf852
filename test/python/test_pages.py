# SPDX-License-Identifier: Apache-2.0
"""What pages and notebooks show runs: docs/quickstart.md block by block, the notebooks of examples/ in a kernel."""
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
NOTEBOOKS = sorted((ROOT / "examples").rglob("*.ipynb"))


def test_quickstart(tmp_path):
    """`python` blocks run in one interpreter and `sh` blocks between them, in a folder that is empty before; `console` is
    what the reader types to install."""
    text = (ROOT / "docs" / "quickstart.md").read_text()
    blocks = re.findall(r"^```(\w+)\n(.*?)^```", text, re.S | re.M)
    assert {kind for kind, _ in blocks} == {"python", "sh", "console"}
    lines = ["import subprocess"]
    for kind, block in blocks:
        if kind == "python":
            lines.append(block)
        elif kind == "sh":
            lines.append(f"subprocess.run({block!r}, shell=True, check=True)")
    (tmp_path / "quickstart.py").write_text("\n".join(lines))
    tools = os.pathsep.join([str(pathlib.Path(sys.executable).parent), os.environ.get("PATH", "")])
    done = subprocess.run([sys.executable, "quickstart.py"], cwd=tmp_path, capture_output=True, text=True,
                          env={**os.environ, "PATH": tools, "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stdout + done.stderr
    accuracies = [float(x) for x in re.findall(r"([\d.]+)%$", done.stdout, re.M)]
    assert len(accuracies) == 4 and min(accuracies) > 90, done.stdout
    assert "aten.sort.default quickstart.py:" in done.stdout.replace(f"{tmp_path}/", ""), done.stdout
    assert {"digits.pte", "digits.h", "digits_executorch.pte"} <= set(os.listdir(tmp_path))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda p: p.stem)
def test_notebook(notebook, tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # tests run beside each other
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
