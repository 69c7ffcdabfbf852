# SPDX-License-Identifier: Apache-2.0
"""Programs that return Python scalars in addition to tensors: sizes, what follows from them, item(), constants, None.
As eager PyTorch returns them, here and in ExecuTorch's runtime."""

import pytest
import torch
import tosaic
from executors import Both, held
from functions import Of
from torch.export import Dim
from torch.utils._pytree import tree_leaves, tree_structure

pytestmark = pytest.mark.filterwarnings("ignore")


FIXED = {
    "size": lambda x: x.shape[0],
    "beside": lambda x: (x + 1, x.size(1) * 2),
    "nested": lambda x: {"a": x * 2, "none": None, "list": [3, (2.5, True)], "size": x.shape[0]},
    "half": lambda x: (x.relu(), x.shape[0] / 2, x.shape[0] > 3),
    "first": lambda x: (None, x.numel(), 1.5, x - 1),
    "items": lambda x: (x.shape[0], x.relu(), x.max().item(), x.argmax().item(), None),
}
# Of sizes that are symbols; the last ones have no tensor, divide, and say a size of an input that nothing else reads.
VARYING = {
    "size": lambda x, y: (x * 2, x.shape[0]),
    "arithmetic": lambda x, y: (x.shape[0] * x.shape[1] + 3, x.sin(), x.numel(), 2 * y.shape[0] - 1),
    "twice": lambda x, y: [x.shape[0], None, x.relu() + 1, x.shape[0], 7],
    "division": lambda x, y: (x * 2, x.shape[0] // 2, (x.shape[0] + x.shape[1]) % 3, torch.sym_max(x.shape[0], 5)),
    "alone": lambda x, y: (x.shape[0], y.shape[1]),
    "unread": lambda x, y: {"a": x.exp(), "n": y.shape[0] + x.shape[1]},
}
EXAMPLE, OTHERS = (4, 6, 3), [(4, 6, 3), (7, 2, 5), (2, 9, 16), (16, 16, 1)]
SHAPES = ({0: Dim("rows", min=2, max=16), 1: Dim("columns", min=2, max=16)}, {0: Dim("n", min=1, max=16)})


def inputs(rows, columns, n):
    return torch.randn(rows, columns), torch.randn(n, 3)


def agree(wanted, got):
    assert tree_structure(wanted) == tree_structure(got)
    same_leaves(tree_leaves(wanted), tree_leaves(got))


def same_leaves(wanted, got):
    for a, b in zip(wanted, got, strict=True):
        assert type(a) is type(b), (a, b)
        if isinstance(a, torch.Tensor):
            torch.testing.assert_close(b, a, rtol=1e-5, atol=1e-6)
        else:
            assert a == b


@pytest.mark.parametrize("target", ["tosa-fp", "vgf", "vulkan", "tosa-int", "ethos-u55-128"])
@pytest.mark.parametrize("name", FIXED)
def test_of_fixed_sizes(name, target, tmp_path):
    import tosaic.executorch.runtime

    module, x = Of(FIXED[name]), torch.tensor([[0.0, 1.0, 2.0], [3.0, 5.0, 4.0], [1.0, 2.0, 3.0], [0.0, 1.0, 0.5]])
    program = torch.export.export(module, (x,), strict=False)
    integers = target not in ("tosa-fp", "vgf", "vulkan")
    how = {"calibration": [(x,)]} if integers else {}
    artifact = tosaic.compile(program, target=target, **how)
    artifact.save(tmp_path / "m.pte")
    wanted = module(x)
    loaded = held(target, tosaic.load, tmp_path / "m.pte")
    for session in (artifact, loaded, loaded.clone()):
        got = session.run(x)
        assert tree_structure(wanted) == tree_structure(got)
        if integers:  # how near is other tests' matter
            got = [w if isinstance(g, (torch.Tensor, float)) and type(g) is type(w) else g
                   for w, g in zip(tree_leaves(wanted), tree_leaves(got))]
        same_leaves(tree_leaves(wanted), tree_leaves(got))
    if not integers:
        method = tosaic.executorch.runtime.load_program(tmp_path / "m.pte").load_method("forward")
        same_leaves(tree_leaves(wanted), method.execute([x]))
        session = Both(tosaic.Program.of(program).session)
        agree(wanted, session.run(x))
        agree(wanted, session.clone().run(x))


@pytest.mark.parametrize("name", VARYING)
def test_of_sizes_that_vary(name, tmp_path):
    import tosaic.executorch.runtime

    module = Of(VARYING[name])
    program = torch.export.export(module, inputs(*EXAMPLE), dynamic_shapes=(SHAPES,), strict=False)
    tosaic.compile(program, target="vulkan").save(tmp_path / "m.pte")
    session, itself = tosaic.load(tmp_path / "m.pte"), Both(tosaic.Program.of(program).session)
    method = tosaic.executorch.runtime.load_program(tmp_path / "m.pte").load_method("forward")
    for sizes in OTHERS:
        args = inputs(*sizes)
        agree(module(*args), session.run(*args))
        agree(module(*args), itself.run(*args))
        agree(module(*args), session.clone().run(*args))
        same_leaves(tree_leaves(module(*args)), method.execute(list(args)))


@pytest.mark.parametrize("name", VARYING)
def test_of_chosen_sizes(name, tmp_path):
    module = Of(VARYING[name])
    program = torch.export.export(module, inputs(*EXAMPLE), dynamic_shapes=(SHAPES,), strict=False)
    artifact = tosaic.compile(program, target="tosa-fp", sizes=["inputs_0.0=4,7", "inputs_0.1=6", "inputs_1.0=3"])
    artifact.save(tmp_path / "m.pte")
    for session in (artifact, Both(tosaic.load, tmp_path / "m.pte")):
        for rows in (4, 7, 4):
            args = inputs(rows, 6, 3)
            agree(module(*args), session.run(*args))


@pytest.mark.parametrize("function", [lambda x: (x * 2, x.shape[0] / 3), lambda x: (x * 2, torch.arange(x.shape[0])),
                                      lambda x: (x * 2, torch.full((), x.shape[0]))])
def test_what_varies_otherwise_is_refused(function):
    """It was the largest size's, whatever the size was."""
    program = torch.export.export(Of(function), (torch.randn(4, 3),), dynamic_shapes=(({0: Dim("n", min=2, max=16)},),),
                                  strict=False)
    with pytest.raises(tosaic.Error, match="depends on the sizes|sizes vary|choose the sizes"):
        tosaic.compile(program, target="vulkan")
    x = torch.randn(5, 3)
    agree(function(x), tosaic.compile(program, target="tosa-fp", sizes=["inputs_0.0=5"]).run(x))
