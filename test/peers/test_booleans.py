# SPDX-License-Identifier: Apache-2.0
"""Booleans among floats: in the floating-point profile they are looked up, written and counted as 0.0 and 1.0, and the
whole program is one TOSA graph, which tosa_reference_model computes as PyTorch does."""
import subprocess
import warnings

import numpy as np
import pytest
import reference_model

warnings.filterwarnings("ignore")
import torch
from torch import nn
from torch.nn import functional as F

PROGRAMS = {
    "gather": lambda m, i, j, x: torch.gather(m, 0, j),
    "take_along": lambda m, i, j, x: torch.take_along_dim(m, j, 0),
    "index_select": lambda m, i, j, x: m.index_select(0, i),
    "embedding": lambda m, i, j, x: F.embedding(i, m),
    "index": lambda m, i, j, x: m[:, i],
    "pairs": lambda m, i, j, x: m[i, i],
    "index_put": lambda m, i, j, x: torch.index_put(m, (i,), x[:3] > 0),
    "index_copy": lambda m, i, j, x: m.index_copy(0, i, x[:3] > 0),
    "as floats": lambda m, i, j, x: x * m.float() + m,
    "counted": lambda m, i, j, x: m.float().sum(1) / x.abs().sum(1),
    "masked mean": lambda m, i, j, x: (x * m).sum(1) / m.sum(1, dtype=torch.float32),
}


class Of(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, m, i, j, x):
        return self.function(m, i, j, x)


@pytest.mark.parametrize("name", PROGRAMS)
def test_one_graph_of_floats(tosaic, name, tmp_path):
    torch.manual_seed(2)
    module = Of(PROGRAMS[name])
    args = torch.rand(4, 5) > 0.4, torch.tensor([2, 0, 3]), torch.randint(0, 4, (3, 5)), torch.randn(4, 5)
    args[0][:, 0] = True
    torch.export.save(torch.export.export(module, args, strict=False), tmp_path / "m.pt2")
    files = [tmp_path / f"{n}.npy" for n in "mijx"]
    for file, value in zip(files, args):
        np.save(file, value.numpy())
    subprocess.run([tosaic, "compile", tmp_path / "m.pt2", "--target", "tosa-fp", "-q", "--require-full-delegation", "-o",
                    tmp_path / "m.pte", "--emit", f"tosa={tmp_path / 'm.tosa'}"], check=True)
    wanted = module(*args).numpy()
    for file, executor in ((tmp_path / "m.pte", "cpu"), (tmp_path / "m.tosa", "interp")):
        given = files if file.suffix == ".pte" else of_graph(tmp_path / "m.tosa", files)
        subprocess.run([tosaic, "run", file, *(a for f in given for a in ("-i", f)), "--output-dir", tmp_path, "-q",
                        "--executor", executor], check=True)
        agree(wanted, np.load(tmp_path / "output_0.npy"))
    taken = of_graph(tmp_path / "m.tosa", files)
    agree(wanted, reference_model.run(tmp_path / "m.tosa", [np.load(f) for f in taken], tmp_path)[0])


def agree(wanted, got):
    assert got.dtype == wanted.dtype and got.shape == wanted.shape
    np.testing.assert_allclose(got, wanted, rtol=1e-6)


def of_graph(file, files):
    """The graph's own inputs, its integers in 32 bits."""
    by_name, taken = {f.stem: f for f in files}, []
    for name, *_ in reference_model.interface(file)[0]:
        value = np.load(by_name[name := name.split(".")[0]])
        taken.append(by_name[name].with_name(f"{name}_taken.npy"))
        np.save(taken[-1], value.astype(np.int32) if value.dtype == np.int64 else value)
    return taken
