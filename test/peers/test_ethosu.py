# SPDX-License-Identifier: Apache-2.0
"""Ethos-U programs: what Vela made of our TOSA, run by the simulator, gives every byte that the TOSA gives."""
import numpy as np
import pytest
import reference_model
import torch
from test_executorch import load

TARGETS = ["ethos-u55-128", "ethos-u65-256", "ethos-u85-256"]


@pytest.fixture(scope="session")
def on_npu(tool, tmp_path_factory):
    """on_npu(model, target, *options) -> (the .pte, the first delegate's .tosa)."""
    made = {}

    def compile_once(model, target, *options):
        key = (model.name, target, options)
        if key not in made:
            folder = tmp_path_factory.mktemp(f"{model.name}_{target}")
            tool("compile", model.program("raw"), "--target", target, "--calibrate", model.samples, "-o",
                 folder / "model.pte", "--emit", f"tosa={folder / 'model.tosa'}", *options)
            made[key] = folder / "model.pte", folder / "model.tosa"
        return made[key]
    return compile_once


@pytest.mark.parametrize("target", TARGETS)
def test_stream_equals_reference_model(model, target, on_npu, tool, tmp_path):
    options = ("--io", "quantized", "--require-full-delegation")
    if model.name == "unet" and target != "ethos-u85-256":
        pytest.skip("Ethos-U55 and U65 have no bilinear resize: the model is two delegates")
    pte, tosa = on_npu(model, target, *options)
    taken, _ = reference_model.interface(tosa)
    random = np.random.default_rng(7)
    inputs = [random.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, endpoint=True).astype(dtype)
              for _, dtype, shape in taken]
    expected = reference_model.run(tosa, inputs, tmp_path)
    found = tool.run(pte, inputs, tmp_path)
    for f, e in zip(found, expected, strict=True):
        np.testing.assert_array_equal(f, e)


def test_executorch_reads_our_programs(model, on_npu):
    pte, _ = on_npu(model, "ethos-u55-128")
    program = load(pte)  # its Python runtime has no EthosUBackend, so the method's data is what can be asked for
    assert program.method_names == {"forward"}
    assert program.metadata("forward").num_inputs() == len(model.arrays("input")[0])


class Small(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.depthwise = torch.nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.head = torch.nn.Linear(8, 4)

    def forward(self, x):
        x = torch.relu(self.conv(x))
        return self.head((x + self.depthwise(x)).mean((2, 3)))


def test_we_run_executorch_programs(tool, tmp_path):
    """A .pte that ExecuTorch's own flow and Vela made, against the quantised model in PyTorch."""
    from executorch.backends.arm.ethosu import EthosUCompileSpec, EthosUPartitioner
    from executorch.backends.arm.quantizer import EthosUQuantizer, get_symmetric_quantization_config
    from executorch.exir import EdgeCompileConfig, ExecutorchBackendConfig, to_edge_transform_and_lower
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    torch.manual_seed(3)
    example = (torch.randn(1, 3, 16, 16),)
    spec = EthosUCompileSpec("ethos-u55-128")
    quantizer = EthosUQuantizer(spec).set_global(get_symmetric_quantization_config(is_per_channel=True))
    prepared = prepare_pt2e(torch.export.export(Small().eval(), example).module(check_guards=False), quantizer)
    prepared(*example)
    converted = convert_pt2e(prepared)
    edge = to_edge_transform_and_lower(torch.export.export(converted, example), partitioner=[EthosUPartitioner(spec)],
                                       compile_config=EdgeCompileConfig(_check_ir_validity=False))
    program = edge.to_executorch(config=ExecutorchBackendConfig(extract_delegate_segments=False))
    (tmp_path / "model.pte").write_bytes(program.buffer)
    found, = tool.run(tmp_path / "model.pte", [example[0].numpy()], tmp_path, "--device", "ethos-u")
    expected = converted(*example).detach().numpy()
    scale = np.abs(expected).max() / 127
    assert np.abs(found - expected).max() <= 2 * scale + 1e-6, (found, expected)
