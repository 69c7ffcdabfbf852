# SPDX-License-Identifier: Apache-2.0
"""What Vela cannot compile, in ExecuTorch's flow: found while the partitioner can still leave it outside. Vela's part is
taken by a script that fails on a network with a tensor of some name."""
import os
import pathlib
import shutil
import stat
import sys
import warnings

import executorch.kernels.quantized  # noqa: F401  out-variants of PT2E's operators
import pytest
import torch
from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower
from torch import nn
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

import tosaic
from tosaic.executorch import EthosUCompileSpec, EthosUPartitioner, EthosUQuantizer, get_symmetric_quantization_config

FAKE = """#!{python}
import pathlib, subprocess, sys
if len(sys.argv) > 2 and b"{name}" in pathlib.Path(sys.argv[1]).read_bytes():
    sys.exit("RuntimeError: this cannot be compiled")
with open("{log}", "a") as log:
    log.write("x")
sys.exit(subprocess.run(["{vela}", *sys.argv[1:]]).returncode)
"""


@pytest.fixture
def failing(tmp_path, monkeypatch):
    def on(name):
        folder = tmp_path / "bin"
        folder.mkdir()
        vela = shutil.which("vela") or pathlib.Path(sys.executable).parent / "vela"
        script = folder / "vela"
        script.write_text(FAKE.format(python=sys.executable, name=name, log=tmp_path / "log", vela=vela))
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
        return tmp_path / "log"
    return on


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(16, 16), nn.Linear(16, 8)

    def forward(self, x):
        return self.second(torch.sigmoid(self.first(x)))


def lowered(partitioner):
    torch.manual_seed(0)
    x = torch.randn(4, 16)
    spec = EthosUCompileSpec("ethos-u55-128")
    quantizer = EthosUQuantizer(spec).set_global(get_symmetric_quantization_config())
    prepared = prepare_pt2e(torch.export.export(Model().eval(), (x,)).module(), quantizer)
    prepared(x)
    program = torch.export.export(convert_pt2e(prepared), (x,))
    return to_edge_transform_and_lower(program, partitioner=[partitioner], compile_config=EdgeCompileConfig(_check_ir_validity=False))


def test_a_node_that_vela_cannot_compile_stays_outside(failing):
    failing("sigmoid")
    partitioner = EthosUPartitioner(EthosUCompileSpec("ethos-u55-128"))
    with pytest.warns(tosaic.CompileWarning, match="self-check.set-aside.*sigmoid.*stays outside"):
        edge = lowered(partitioner)
    assert any("sigmoid" in name for name in partitioner.refused) and any("vela.failed" in why for why in partitioner.refused.values())
    calls = [str(n.target) for n in edge.exported_program().graph.nodes if n.op == "call_function"]
    assert sum("executorch_call_delegate" in c for c in calls) == 2 and any("sigmoid" in c for c in calls), calls
    edge.to_executorch()


def test_what_was_compiled_for_the_partitioner_is_not_compiled_again(failing):
    log = failing("nothing of this name")
    with warnings.catch_warnings():
        warnings.simplefilter("error", tosaic.CompileWarning)
        lowered(EthosUPartitioner(EthosUCompileSpec("ethos-u55-128"))).to_executorch()
    assert log.read_text() == "x"
