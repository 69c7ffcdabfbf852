# SPDX-License-Identifier: Apache-2.0
"""From a module to ExecuTorch's runtime and Inspector and back, by what one wheel has: partitioner, backend, plug-in."""
import gc
import weakref

import pytest
import torch

import tosaic

pytestmark = pytest.mark.filterwarnings("ignore")


class Small(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.conv = torch.nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.second = torch.nn.Conv2d(8, 8, 3, padding=1)
        self.head = torch.nn.Linear(8, 4)

    def forward(self, x):
        y = torch.relu(self.conv(x))
        return self.head((self.second(y) + y).sigmoid().mean((2, 3)))


@pytest.mark.parametrize("target", ["tosa", "vgf"])
def test_times_of_the_models_nodes(target, tmp_path):
    import tosaic.executorch.runtime
    from executorch.devtools import Inspector
    from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower
    from tosaic.executorch import TosaCompileSpec, TOSAPartitioner, VgfCompileSpec, VgfPartitioner

    assert tosaic.executorch.runtime.plugin.parent.name == "lib"
    partitioner = {"tosa": TOSAPartitioner(TosaCompileSpec("TOSA-1.0+FP")),
                   "vgf": VgfPartitioner(VgfCompileSpec("TOSA-1.0+FP"))}[target]
    module, example = Small().eval(), (torch.randn(1, 3, 16, 16),)
    edge = to_edge_transform_and_lower(torch.export.export(module, example), partitioner=[partitioner],
                                       compile_config=EdgeCompileConfig(_check_ir_validity=False), generate_etrecord=True)
    lowered = edge.to_executorch()
    lowered.get_etrecord().save(str(tmp_path / "record.bin"))
    (tmp_path / "m.pte").write_bytes(lowered.buffer)
    program = tosaic.executorch.runtime.load_program(tmp_path / "m.pte", enable_etdump=True, debug_buffer_size=1 << 20)
    found, = program.load_method("forward").execute(list(example))
    torch.testing.assert_close(found, module(*example), rtol=1e-5, atol=1e-6)
    program.write_etdump_result_to_file(str(tmp_path / "dump.etdp"), str(tmp_path / "debug.bin"))
    inspector = Inspector(etdump_path=str(tmp_path / "dump.etdp"), etrecord=str(tmp_path / "record.bin"))
    events = [e for block in inspector.event_blocks for e in block.events if e.is_delegated_op]
    operators = {op for e in events for op in e.op_types or []}
    assert {"aten.relu.default", "aten.sigmoid.default", "aten.mean.dim"} <= operators
    assert all(e.perf_data.raw[0] >= 0 for e in events)


def test_a_method_holds_the_program_whose_bytes_it_reads():
    import tosaic.executorch.runtime

    x = torch.randn(1, 3, 16, 16)
    program = tosaic.executorch.runtime.load_program(tosaic.compile(Small().eval(), (x,), "tosa-fp").pte)
    held, method = weakref.ref(program), program.load_method("forward")
    del program
    gc.collect()
    assert held() is not None and method.metadata.num_inputs() == 1
    del method
    gc.collect()
    assert held() is None


@pytest.mark.parametrize("version, good", [("0.9.0", False), ("{}0.0", False), ("{}.99", True)])
def test_another_executorch_is_named(version, good, monkeypatch):
    """ExecuTorch's backend interface is another class in each minor version."""
    from tosaic.executorch import runtime

    minor = runtime._built_for(runtime.plugin)
    version = version.format(minor)
    monkeypatch.setattr(runtime.importlib.metadata, "version", lambda name: {"executorch": version}[name])
    if good:
        assert runtime._load()[0] == runtime.plugin
        return
    with pytest.raises(ImportError) as refused:
        runtime._load()
    said = str(refused.value)
    assert f"is built for ExecuTorch {minor}, and {version} is installed" in said
    assert f"pip install 'executorch=={minor}.*'" in said and "make plugin" in said


def test_no_executorch(monkeypatch):
    from tosaic.executorch import runtime

    def version(name):
        raise runtime.importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(runtime.importlib.metadata, "version", version)
    with pytest.raises(ImportError, match="ExecuTorch is not installed.*pip install 'executorch=="):
        runtime._load()
