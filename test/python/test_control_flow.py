# SPDX-License-Identifier: Apache-2.0
"""cond, map, scan and loops that count on every target; PyTorch's own gallery of exported programs."""

import copy
import logging

import pytest
import torch
import tosaic
from executors import Both, held
from torch import nn
from torch._export.db.examples import all_examples
from torch._higher_order_ops.map import map as map_rows
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop

pytestmark = pytest.mark.filterwarnings("ignore")


class Branches(nn.Module):
    """Closures over weights, a branch in a branch, several results."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x, flag):
        def inner(x):
            return torch.cond(x.max() > 1, lambda x: self.a(x).relu(), lambda x: x - 1, (x,))

        y = torch.cond(flag, inner, lambda x: self.b(x).sin(), (x,))
        return y, *torch.cond(x.sum() > 0, lambda x: (x + 1, x * 2), lambda x: (x - 1, x / 2), (x,))


class Rows(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)

    def forward(self, x, y):
        return map_rows(lambda row, y: self.a(row) + y, x, y)


class Recurrent(nn.Module):
    """A recurrent net, and the same backwards along another dim."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)

    def forward(self, x, h):
        def step(h, row):
            h = torch.tanh(self.a(h) + row)
            return h, h * 2

        last, all_of_them = scan(step, h, x, dim=0)
        backwards = scan(lambda h, row: (h + row, h * row), h, x.transpose(0, 1).contiguous(), dim=1, reverse=True)
        return last, all_of_them, *backwards


class Counted(nn.Module):
    def forward(self, x):
        start = torch.zeros((), dtype=torch.int64)
        return while_loop(lambda i, y: i < 5, lambda i, y: (i + 1, y * 1.5 + 1), (start, x))


MODELS = {
    "branches": (Branches, lambda i: (torch.randn(2, 4) + (i % 3 - 1), torch.tensor(i % 2 == 0))),
    "rows": (Rows, lambda i: (torch.randn(5, 2, 4), torch.randn(2, 4))),
    "recurrent": (Recurrent, lambda i: (torch.randn(5, 2, 4), torch.randn(2, 4))),
    "counted": (Counted, lambda i: (torch.randn(2, 4),)),
}
leaves = torch.utils._pytree.tree_leaves


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    make, inputs = MODELS[request.param]
    torch.manual_seed(2)
    module, calls = make().eval(), [inputs(i) for i in range(6)]
    with torch.no_grad():
        return torch.export.export(module, calls[0], strict=False), calls, [leaves(module(*c)) for c in calls]


def check(run, calls, wanted, atol):
    for call, expected in zip(calls, wanted):
        for a, b in zip(expected, leaves(run(*call)), strict=True):
            torch.testing.assert_close(b, a, rtol=1e-4, atol=atol)


@pytest.mark.parametrize("target", ["tosa-fp", "vgf", "vulkan"])
def test_floats_here_and_in_executorch(model, target, tmp_path):
    import tosaic.executorch.runtime

    program, calls, wanted = model
    artifact = tosaic.compile(program, target=target, require_full_delegation=True)
    check(held(target, artifact.session).run, calls, wanted, 1e-5)
    artifact.save(tmp_path / "m.pte")
    method = tosaic.executorch.runtime.load_program(tmp_path / "m.pte").load_method("forward")
    check(lambda *call: method.execute(list(call)), calls, wanted, 1e-5)


@pytest.mark.parametrize("make", ["tosa", "vgf", "vulkan"])
def test_floats_in_executorchs_flow(model, make):
    """The graphs of control flow go into the delegate with it, unless it gives int64, which delegates have not."""
    import tosaic.executorch.runtime
    from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower
    from tosaic import executorch as ours

    program, calls, wanted = model
    partitioner = {"tosa": lambda: ours.TOSAPartitioner(ours.TosaCompileSpec("TOSA-1.0+FP+cf")),
                   "vgf": lambda: ours.VgfPartitioner(ours.VgfCompileSpec("TOSA-1.0+FP+cf")),
                   "vulkan": ours.VulkanPartitioner}[make]()
    edge = to_edge_transform_and_lower(program, partitioner=[partitioner],
                                       compile_config=EdgeCompileConfig(_check_ir_validity=False))
    called = {str(n.target) for n in edge.exported_program().graph.nodes if n.op == "call_function"}
    outside = any(t.dtype == torch.int64 for t in wanted[0])
    assert ("while_loop" in called) == bool(partitioner.refused) == outside, partitioner.refused
    if outside:
        return  # ExecuTorch 1.5 writes no program with a while_loop of its own
    pte = edge.to_executorch().buffer
    check(held(make, tosaic.load, pte).run, calls, wanted, 1e-5)
    method = tosaic.executorch.runtime.load_program(pte).load_method("forward")
    check(lambda *call: method.execute(list(call)), calls, wanted, 1e-5)


def test_a_counted_loop_in_executorchs_flow():
    import tosaic.executorch.runtime
    from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower
    from tosaic.executorch import TosaCompileSpec, TOSAPartitioner

    class Last(Counted):
        def forward(self, x):
            return super().forward(x)[1]

    x, partitioner = torch.randn(2, 4), TOSAPartitioner(TosaCompileSpec("TOSA-1.0+FP+cf"))
    edge = to_edge_transform_and_lower(torch.export.export(Last(), (x,)), partitioner=[partitioner],
                                       compile_config=EdgeCompileConfig(_check_ir_validity=False))
    assert not partitioner.refused
    method = tosaic.executorch.runtime.load_program(edge.to_executorch().buffer).load_method("forward")
    torch.testing.assert_close(method.execute([x])[0], Last()(x), rtol=1e-5, atol=1e-6)


def test_a_branch_that_stays_outside_in_executorchs_flow():
    """With everything in it: what only other calls may keep whole is decomposed there."""
    import tosaic.executorch.runtime
    from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower
    from tosaic.executorch import TosaCompileSpec, TOSAPartitioner

    class Half(nn.Module):
        def forward(self, x):
            y = torch.nn.functional.hardswish(x) * 2
            z = torch.cond(y.sum() > 0, lambda y: torch.nn.functional.hardswish(y) + torch.nonzero(y > 1e9).sum(),
                           lambda y: y - 1, (y,))
            return z * 3

    x = torch.randn(2, 4)
    partitioner = TOSAPartitioner(TosaCompileSpec("TOSA-1.0+FP"))
    edge = to_edge_transform_and_lower(torch.export.export(Half(), (x,)), partitioner=[partitioner],
                                       compile_config=EdgeCompileConfig(_check_ir_validity=False))
    called = [str(n.target) for n in edge.exported_program().graph.nodes if n.op == "call_function"]
    assert sum("delegate" in name for name in called) == 2 and "nonzero" in partitioner.refused["cond"], partitioner.refused
    method = tosaic.executorch.runtime.load_program(edge.to_executorch().buffer).load_method("forward")
    for call in (x, -x.abs(), x.abs()):
        torch.testing.assert_close(method.execute([call])[0], Half()(call), rtol=1e-5, atol=1e-6)


def test_program_itself_runs(model):
    program, calls, wanted = model
    check(Both(tosaic.Program.of(program).session).run, calls, wanted, 1e-5)


@pytest.mark.parametrize("target", ["tosa-int", "ethos-u55-128", "ethos-u85-256"])
def test_integers(model, target):
    """Within a few quantised values of the largest value; the NPU's are those of the CPU, or the self-check would have
    refused."""
    program, calls, wanted = model
    artifact = tosaic.compile(program, target=target, calibration=calls)
    largest = max(float(t.abs().max()) for results in wanted for t in results)
    check(Both(artifact.session).run, calls, wanted, largest / 25)


def test_what_stays_is_said_by_name():
    class Long(nn.Module):
        def forward(self, x, y):
            return map_rows(lambda row, y: row + y, x, y)

    program = torch.export.export(Long(), (torch.ones(30000, 1), torch.ones(1)), strict=False)
    with pytest.raises(tosaic.Error, match="model.control-flow(.|\n)*too many to unroll"):
        tosaic.compile(program, target="tosa-fp")


GALLERY = sorted(name for name, case in all_examples().items() if case.support_level.name == "SUPPORTED")


@pytest.mark.parametrize("name", GALLERY)
def test_gallery_of_pytorch(name):
    """PyTorch's examples of what torch.export takes: control flow, sizes, states, containers, Python's own constructs."""
    logging.getLogger("torch").setLevel(logging.ERROR)
    case = all_examples()[name]
    calls = [(case.example_args, case.example_kwargs)] + ([(case.extra_args, {})] if case.extra_args else [])
    with torch.no_grad():
        program = torch.export.export(case.model.eval(), *copy.deepcopy(calls[0]), dynamic_shapes=case.dynamic_shapes,
                                      strict=False)
    sizes = [f"{node.name}.{d}={size.node.hint}" for node in program.graph.find_nodes(op="placeholder")
             if isinstance(node.meta.get("val"), torch.Tensor)
             for d, size in enumerate(node.meta["val"].shape) if isinstance(size, torch.SymInt)]
    compiled = tosaic.compile(program, target="tosa-fp", sizes=sizes)
    for session, given in ((Both(tosaic.Program.of(program).session), calls), (Both(compiled.session), calls[:1])):
        for args, kwargs in given:
            with torch.no_grad():
                wanted = leaves(copy.deepcopy(case.model)(*copy.deepcopy(args), **copy.deepcopy(kwargs)))
            for a, b in zip(wanted, leaves(session.run(*copy.deepcopy(args), **copy.deepcopy(kwargs))), strict=True):
                if isinstance(a, torch.Tensor):
                    torch.testing.assert_close(b, a, rtol=1e-4, atol=1e-5)
                else:
                    assert a == b
