# SPDX-License-Identifier: Apache-2.0
"""Ethos-U programs: what Vela made of our TOSA, run by the simulator, gives every byte that the TOSA gives."""
import pathlib
import subprocess

import numpy as np
import pytest
import reference_model
import torch
from test_executorch import load

pytestmark = pytest.mark.by_turns(2)

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGETS = ["ethos-u55-128", "ethos-u65-256", "ethos-u85-256"]
ALL_TARGETS = [*TARGETS, "ethos-u55-32", "ethos-u55-64", "ethos-u55-256", "ethos-u65-512", "ethos-u85-128", "ethos-u85-512",
               "ethos-u85-1024", "ethos-u85-2048"]


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


def pytest_generate_tests(metafunc):
    if metafunc.function is test_stream_equals_reference_model:
        metafunc.parametrize("target", ALL_TARGETS if metafunc.config.getoption("--all-models") else TARGETS)


def test_stream_equals_reference_model(model, target, on_npu, tool, tmp_path):
    pte, tosa = on_npu(model, target, "--io", "quantized", "--require-full-delegation")
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


@pytest.fixture(scope="module")
def small():
    """A model that ExecuTorch quantised, and an example."""
    from executorch.backends.arm.ethosu import EthosUCompileSpec
    from executorch.backends.arm.quantizer import EthosUQuantizer, get_symmetric_quantization_config
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    torch.manual_seed(3)
    example = (torch.randn(1, 3, 16, 16),)
    quantizer = EthosUQuantizer(EthosUCompileSpec("ethos-u55-128")).set_global(get_symmetric_quantization_config(is_per_channel=True))
    prepared = prepare_pt2e(torch.export.export(Small().eval(), example).module(check_guards=False), quantizer)
    prepared(*example)
    return convert_pt2e(prepared), example


def made_by_executorch(small, folder, target="ethos-u55-128", **options):
    """The .pte of ExecuTorch's own flow, with the .ptd files that it writes next to it."""
    from executorch.backends.arm.ethosu import EthosUCompileSpec, EthosUPartitioner
    from executorch.exir import EdgeCompileConfig, ExecutorchBackendConfig, to_edge_transform_and_lower

    converted, example = small
    spec = EthosUCompileSpec(target, **options)
    edge = to_edge_transform_and_lower(torch.export.export(converted, example), partitioner=[EthosUPartitioner(spec)],
                                       compile_config=EdgeCompileConfig(_check_ir_validity=False))
    program = edge.to_executorch(config=ExecutorchBackendConfig(extract_delegate_segments=False))
    (folder / "model.pte").write_bytes(program.buffer)
    program.write_tensor_data_to_file(str(folder))
    return folder / "model.pte"


def external(**tags):
    from executorch.backends.arm.ethosu.compile_spec import VelaExternalBlockPlacements
    return {"external_block_placements": VelaExternalBlockPlacements(**tags)}


@pytest.mark.parametrize("target,options,tags", [
    ("ethos-u55-128", {}, {}), ("ethos-u65-256", {}, {}), ("ethos-u85-256", {}, {}),
    ("ethos-u85-256", {"extra_flags": ["--separate-io-regions", "--cop-format=COP2"]}, {}),
    ("ethos-u55-128", {}, {"weight_data": "flash"}), ("ethos-u55-128", {}, {"weight_data": "flash", "cmd_data": "sram"}),
], ids=["u55", "u65", "u85", "direct drive", "external weights", "external both"])
def test_we_run_executorch_programs(small, target, options, tags, tool, tmp_path):
    """A .pte that ExecuTorch's own flow and Vela made, against the quantised model in PyTorch."""
    pte = made_by_executorch(small, tmp_path, target, **options, **(external(**tags) if tags else {}))
    data = [o for file in sorted(tmp_path.glob("*.ptd")) for o in ("--data", file)]
    assert len(data) == 2 * len(set(tags.values()))
    assert target in tool("inspect", pte, *data, "--disassemble")
    converted, example = small
    found, = tool.run(pte, [example[0].numpy()], tmp_path, "--device", target, *data)
    expected = converted(*example).detach().numpy()
    scale = np.abs(expected).max() / 127
    assert np.abs(found - expected).max() <= 2 * scale + 1e-6, (found, expected)


def test_a_stream_of_another_product_than_the_program_says(small, tool, tosaic, tmp_path):
    pte = made_by_executorch(small, tmp_path)
    changed = pte.read_bytes().replace(b"ethos-u55-128", b"ethos-u55-256")
    pte.write_bytes(changed)
    done = subprocess.run([tosaic, "run", str(pte)], capture_output=True, text=True)
    assert done.returncode == 1 and "error[delegate.product]" in done.stderr and "ethos-u55-256" in done.stderr


def test_executorch_finds_our_external_blocks(tool, tmp_path):
    """The same keys for the same blocks under the same tag, in a file that ExecuTorch's reader takes."""
    import hashlib

    from executorch.exir._serialize._cord import Cord
    from executorch.extension.flat_tensor.serialize.serialize import FlatTensorSerializer

    digits = ROOT / "examples/digits"
    tool("compile", digits / "digits.pt2", "--target", "ethos-u55-128", "--calibrate", digits / "digits_samples.npz", "-o",
         tmp_path / "model.pte", "--external", f"weights={tmp_path / 'flash.ptd'}", "--external",
         f"commands={tmp_path / 'flash.ptd'}")
    payload = FlatTensorSerializer().deserialize(Cord((tmp_path / "flash.ptd").read_bytes()))
    assert len(payload.named_data) == 2
    program = (tmp_path / "model.pte").read_bytes()
    for key, entry in payload.named_data.items():
        assert key == hashlib.sha256(b"flash\0" + bytes(payload.buffers[entry.buffer_index])).hexdigest()
        assert key.encode() in program
    # What is extracted is whole: the stream that the same model has with everything inside.
    tool("extract", tmp_path / "model.pte", "--data", tmp_path / "flash.ptd", "-o", tmp_path / "parts")
    tool("compile", digits / "digits.pt2", "--target", "ethos-u55-128", "--calibrate", digits / "digits_samples.npz", "-o",
         tmp_path / "inside.pte")
    tool("extract", tmp_path / "inside.pte", "-o", tmp_path / "inside")
    whole, inside = (tmp_path / folder / "forward_delegate0.vela" for folder in ("parts", "inside"))
    assert whole.read_bytes() == inside.read_bytes()
