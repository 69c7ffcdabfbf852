# SPDX-License-Identifier: Apache-2.0
"""Programs of ExecuTorch's flow with dynamic_shapes, all kernels and no delegate: at any sizes, here as in ExecuTorch's own
runtime and in eager PyTorch. (They ran here at their largest sizes only.)"""
import pytest
import tosaic
import torch
import torch.nn.functional as F
from executors import Both
from functions import Of
from torch import nn
from torch.export import Dim
from torch.utils._pytree import tree_leaves

pytestmark = pytest.mark.filterwarnings("ignore")
executorch = pytest.importorskip("executorch.exir", reason="ExecuTorch makes these programs")


class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
                                    nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 5)).eval()

    def forward(self, x):
        return self.layers(x)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.words, self.qkv, self.out = nn.Embedding(11, 8), nn.Linear(8, 24), nn.Linear(8, 8)

    def forward(self, words):
        x = self.words(words)
        q, k, v = (t.view(t.shape[0], t.shape[1], 2, 4).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        y = (q @ k.transpose(-1, -2) / 2).softmax(-1) @ v
        return self.out(y.transpose(1, 2).reshape(x.shape)) + x


def rows(n):
    return torch.randn(n, 6)


N = Dim("n", min=2, max=9)
# The module, its inputs of a size, the shapes.
PROGRAMS = {
    "elements": (Of(lambda x: (x.sigmoid() * 2 + x[:1]).relu()), lambda n: (rows(n),), ({0: N},)),
    "views": (Of(lambda x: (x.view(x.shape[0], 2, 3).permute(1, 0, 2).reshape(-1, 3), x.flatten())),
              lambda n: (rows(n),), ({0: N},)),
    "slices": (Of(lambda x: (x[1:], x[:-1] * 2, torch.cat([x, x[:2]]))), lambda n: (rows(n),), ({0: Dim("n", min=3, max=9)},)),
    "reductions": (Of(lambda x: (x.mean(0), x.amax(1), x.softmax(0), x.argmax(0))), lambda n: (rows(n),), ({0: N},)),
    "sizes as numbers": (Of(lambda x: x.sum(0) / x.shape[0] + torch.arange(x.shape[0]).sum()),
                         lambda n: (rows(n),), ({0: N},)),
    "made": (Of(lambda x: x + torch.ones(x.shape[0], 1).cumsum(0) + torch.zeros_like(x)), lambda n: (rows(n),), ({0: N},)),
    "two inputs": (Of(lambda a, b: a @ b.t()), lambda n: (rows(n), rows(11 - n)),
                   ({0: N}, {0: Dim("m", min=2, max=9)})),
    "images": (Convolutions(), lambda n: (torch.randn(2, 3, 2 * n, 6),), ({2: 2 * Dim("half", min=2, max=9)},)),
    "attention": (Attention(), lambda n: (torch.randint(0, 11, (2, n)),), ({1: N},)),
    "rows in a loop": (Of(lambda x: torch._higher_order_ops.map(lambda u: u.relu() + u.sum(), x)), lambda n: (rows(n),), ({0: N},)),
    "a scan": (Of(lambda x: torch._higher_order_ops.scan(lambda h, u: (h * 0.5 + u, h + u), x[0] * 0, x, dim=0)),
               lambda n: (rows(n),), ({0: N},)),
    "inputs whose sizes add up": (Of(lambda x, y, z: torch.cat((x, y), 1) + z[:, ::2]),
                                  lambda n: (torch.randn(2, n), torch.randn(2, n + 1), torch.randn(2, 4 * n + 1)),
                                  ({1: Dim.AUTO(min=2, max=30)}, {1: Dim.AUTO(min=2, max=30)}, {1: Dim.AUTO(min=2, max=64)})),
    "padded": (Of(lambda x: F.pad(x, (1, 1, 0, 2)).clamp(-1, 1)), lambda n: (rows(n),), ({0: N},)),
}


def program_of(name, path):
    module, inputs, shapes = PROGRAMS[name]
    if isinstance(module, Of):
        shapes = (shapes,)
    # The largest, for ExecuTorch forgets the bounds of what a map goes through.
    exported = torch.export.export(module, inputs(9), dynamic_shapes=shapes, strict=False)
    from executorch.exir.passes.sym_shape_eval_pass import ConstraintBasedSymShapeEvalPass

    made = executorch.to_edge(exported).to_executorch(
        executorch.ExecutorchBackendConfig(sym_shape_eval_pass=ConstraintBasedSymShapeEvalPass()))
    path.write_bytes(made.buffer)
    return module, inputs


@pytest.mark.parametrize("name", PROGRAMS)
def test_at_any_sizes(name, tmp_path):
    from executorch.runtime import Runtime

    module, inputs = program_of(name, tmp_path / "m.pte")
    session = Both(tosaic.load, tmp_path / "m.pte")
    clone = session.clone()
    method = Runtime.get().load_program(tmp_path / "m.pte").load_method("forward")
    for n in (4, 9, 3, 4, 7, 9):
        torch.manual_seed(n)
        x = inputs(n)
        wanted = tree_leaves(module(*x))
        theirs = tree_leaves(method.execute(list(x)))
        for got in (tree_leaves(session.run(*x)), tree_leaves(clone.run(*x)), theirs):
            for a, b in zip(got, wanted, strict=True):
                torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)


def test_more_sizes_than_are_kept(tmp_path):
    module, inputs, shapes = PROGRAMS["two inputs"]
    program_of("two inputs", tmp_path / "m.pte")
    session = tosaic.load(tmp_path / "m.pte")
    for a in range(2, 10):
        for b in range(2, 10):
            x, y = rows(a), rows(b)
            torch.testing.assert_close(session.run(x, y), x @ y.t(), rtol=1e-5, atol=1e-5)


def test_sizes_beyond_the_bounds_are_refused(tmp_path):
    program_of("elements", tmp_path / "m.pte")
    session = tosaic.load(tmp_path / "m.pte")
    with pytest.raises(tosaic.Error, match="run.input-type|takes"):
        session.run(rows(10))
    with pytest.raises(tosaic.Error, match="run.input-type|takes"):
        session.run(torch.randn(4, 7))
    torch.testing.assert_close(session.run(rows(3)).shape, torch.Size([3, 6]))


def test_sizes_that_do_not_fit_together_are_the_inputs(tmp_path):
    """It was said of the model's line, though the model is right."""
    exported = torch.export.export(Of(lambda a, b: a + b), (rows(9), rows(9)), dynamic_shapes=(({0: N}, {0: N}),), strict=False)
    (tmp_path / "m.pte").write_bytes(executorch.to_edge(exported).to_executorch().buffer)
    session = tosaic.load(tmp_path / "m.pte")
    with pytest.raises(tosaic.Error, match=r"run.sizes(.|\n)*inputs do not fit together(.|\n)*5x6 and 4x6 do not broadcast"):
        session.run(rows(5), rows(4))
    assert session.run(rows(5), rows(5)).shape == (5, 6)


def masks():
    some = torch.arange(6) % 2 == 0
    return [some, torch.ones(6, dtype=torch.bool), torch.zeros(6, dtype=torch.bool), ~some]


PICKED = {
    "rows": lambda x, m: x.relu()[m],
    "rows behind": lambda x, m: x.t().contiguous()[:, m],
    "rows that go on": lambda x, m: (x[m] * 2 + 1).sigmoid(),
    "places": lambda x, m: m.nonzero(),
    "places in a matrix": lambda x, m: x.gt(0).nonzero() * 2,
    "put back": lambda x, m: x.index_put((m,), x[m] * 2),
    "mixed": lambda x, m: x.index_put((m,), x[m].softmax(0)),
}


# ExecuTorch 1.5.1: its to_edge() fails (GuardOnDataDependentSymNode); its kernel takes a column-major result for row-major.
NOT_THEIRS = {"rows behind"}
THEIRS_WRONG = {"places in a matrix"}


@pytest.mark.parametrize("name", PICKED)
def test_as_large_as_values_say(name, tmp_path):
    """In ExecuTorch's flow, and outside the delegate in ours."""
    import tosaic.executorch.runtime
    from executorch.exir.passes.sym_shape_eval_pass import ConstraintBasedSymShapeEvalPass
    from executorch.runtime import Runtime

    function = PICKED[name]
    exported = torch.export.export(Of(function), (torch.randn(6, 4), masks()[0]), strict=False)
    tosaic.compile(exported, target="tosa-fp").save(tmp_path / "ours.pte")
    sessions = [Both(tosaic.load, tmp_path / "ours.pte")]
    sessions.append(sessions[0].clone())
    methods = []
    if name not in THEIRS_WRONG:
        methods.append(tosaic.executorch.runtime.load_program(tmp_path / "ours.pte").load_method("forward"))
    if name not in NOT_THEIRS:
        made = executorch.to_edge(exported).to_executorch(
            executorch.ExecutorchBackendConfig(sym_shape_eval_pass=ConstraintBasedSymShapeEvalPass()))
        (tmp_path / "theirs.pte").write_bytes(made.buffer)
        sessions.append(Both(tosaic.load, tmp_path / "theirs.pte"))
        if name not in THEIRS_WRONG:
            methods.append(Runtime.get().load_program(tmp_path / "theirs.pte").load_method("forward"))
    for i, mask in enumerate(masks()):
        torch.manual_seed(i)
        x = torch.randn(6, 4)
        wanted = tree_leaves(function(x, mask))
        results = [tree_leaves(s.run(x, mask)) for s in sessions]
        if mask.any():  # torch.from_numpy of ExecuTorch's tensors without elements fails
            results += [tree_leaves(m.execute([x, mask])) for m in methods]
        for got in results:
            for a, b in zip(got, wanted, strict=True):
                torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)
