# SPDX-License-Identifier: Apache-2.0
"""VGF in programs: several delegates, 16-bit floats, ExecuTorch's programs here and ours there, Arm's converter inside,
custom operators as Arm's converter writes them."""
import base64
import json
import struct
import subprocess
import sys
import warnings

import numpy as np
import pytest

warnings.filterwarnings("ignore")
import torch
from executorch.runtime import Runtime, Verification
from torch import nn

from steps import step

import conftest  # noqa: F401  (puts the environment's programs on PATH)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(4)
        self.conv, self.linear = nn.Conv2d(2, 6, 3, padding=1), nn.Linear(6, 5)

    def forward(self, x):
        return self.linear(torch.relu(self.conv(x)).mean((2, 3)))


class Interrupted(Net):
    """TOSA has no float64: the middle stays outside."""

    def forward(self, x):
        y = torch.relu(self.conv(x)).mean((2, 3))
        return self.linear((y.double() * 3).float())


def exported(module, inputs, path):
    torch.export.save(torch.export.export(module.eval(), inputs), path)


@pytest.fixture
def image():
    torch.manual_seed(9)
    return torch.randn(1, 2, 8, 8)


def test_kernels_between_two_delegates(tool, tmp_path, image):
    exported(Interrupted(), (image,), tmp_path / "m.pt2")
    tool("compile", tmp_path / "m.pt2", "--target", "vgf", "-o", tmp_path / "m.pte", "--emit", f"vgf={tmp_path / 'm.vgf'}",
         "--emit", f"tosa={tmp_path / 'm.tosa'}")
    assert sorted(f.name for f in tmp_path.glob("m_*")) == ["m_0.tosa", "m_0.vgf", "m_1.tosa", "m_1.vgf"]
    found = tool.run(tmp_path / "m.pte", [image.numpy()], tmp_path)
    np.testing.assert_allclose(found[0], Interrupted().eval()(image).detach().numpy(), rtol=1e-5, atol=1e-5)
    tool("extract", tmp_path / "m.pte", "-o", tmp_path / "parts")
    for i in (0, 1):
        assert (tmp_path / f"parts/forward_delegate{i}.vgf").read_bytes() == (tmp_path / f"m_{i}.vgf").read_bytes()


@pytest.mark.parametrize("dtype, spec", [(torch.float16, "TOSA-1.0+FP+INT+int16+int4"), (torch.bfloat16, "TOSA-1.0+FP+bf16")],
                         ids=["float16", "bfloat16"])
def test_16_bit_floats(dtype, spec, tool, tmp_path, image):
    exported(Net().to(dtype), (image.to(dtype),), tmp_path / "m.pt2")
    tool("compile", tmp_path / "m.pt2", "--target", "vgf", "-o", tmp_path / "m.pte", "--emit", f"vgf={tmp_path / 'm.vgf'}",
         "--emit", f"tosa={tmp_path / 'm.tosa'}", "--require-full-delegation", "--tosa-spec", spec)
    subprocess.run(["model-converter", "-i", tmp_path / "m.tosa", "-o", tmp_path / "theirs.vgf"], check=True, capture_output=True)
    if dtype == torch.float16:
        inputs = [image.to(dtype).numpy()]
        expected = tool.run(tmp_path / "m.tosa", inputs, tmp_path)
        np.testing.assert_allclose(expected[0].astype(np.float32), Net().eval()(image).detach().numpy(), rtol=0, atol=4e-3)
    else:  # NumPy has no such type of its own: zeros are taken when no input is given
        inputs, expected = [], tool.run(tmp_path / "m.tosa", [], tmp_path)
    for program in ("m.vgf", "m.pte", "theirs.vgf"):
        assert tool.run(tmp_path / program, inputs, tmp_path)[0].tobytes() == expected[0].tobytes(), program


def test_executorch_loads_our_program(tool, tmp_path, image):
    exported(Net(), (image,), tmp_path / "m.pt2")
    tool("compile", tmp_path / "m.pt2", "--target", "vgf", "-o", tmp_path / "m.pte", "--require-full-delegation")
    program = Runtime.get().load_program(tmp_path / "m.pte", verification=Verification.InternalConsistency)
    metadata = program.metadata("forward")
    assert tuple(metadata.input_tensor_meta(0).sizes()) == (1, 2, 8, 8)
    assert tuple(metadata.output_tensor_meta(0).sizes()) == (1, 5)


@pytest.fixture(scope="module", params=["vgf-fp", "vgf-int"])
def executorch_program(request, tmp_path_factory):
    """ExecuTorch's VGF flow in a process of its own: it changes what torch knows."""
    if request.param == "vgf-int" and not request.config.getoption("--all-models"):
        pytest.skip("half a minute of ExecuTorch's quantiser: only with --all-models")
    folder = tmp_path_factory.mktemp(request.param)
    torch.manual_seed(9)
    image = torch.randn(1, 2, 8, 8)
    exported(Net(), (image,), folder / "m.pt2")
    np.savez(folder / "samples.npz", x=np.stack([image.numpy()] * 2))
    bench = conftest.ROOT / "bench/peers.py"
    samples = [folder / "samples.npz"] if request.param == "vgf-int" else []
    done = subprocess.run([sys.executable, bench, "flow", "2", folder / "m.pt2", request.param, folder / "m.pte", *samples],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return request.param, folder, image


def test_we_run_executorchs_program(executorch_program, tool, tmp_path):
    kind, folder, image = executorch_program
    found = tool.run(folder / "m.pte", [image.numpy()], tmp_path)[0]
    expected = Net().eval()(image).detach().numpy()
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 if kind == "vgf-fp" else 3 * step(torch.tensor(expected)))
    listed = json.loads(tool("extract", folder / "m.pte", "-o", tmp_path / "parts", "--json"))["files"]
    assert [entry["format"] for entry in listed] == ["vgf"]
    assert json.loads(tool("inspect", listed[0]["file"], "--json"))["segments"][0]["kind"] == "graph"


def test_arms_converter_in_place_of_ours(tool, tmp_path, image):
    exported(Net(), (image,), tmp_path / "m.pt2")
    results = []
    for converter in ("tosaic", "sdk"):
        tool("compile", tmp_path / "m.pt2", "--target", "vgf", "-o", tmp_path / f"{converter}.pte", "--vgf-converter", converter)
        results.append(tool.run(tmp_path / f"{converter}.pte", [image.numpy()], tmp_path)[0])
    np.testing.assert_array_equal(*results)
    assert (tmp_path / "tosaic.pte").read_bytes() != (tmp_path / "sdk.pte").read_bytes()


SHADER = {"entry_point": "main", "workgroup_sizes": [4, 1, 1], "shader_language": "SPIR-V",
          "shader_code": base64.b64encode(struct.pack("<5I", 0x07230203, 0x10300, 0, 1, 0)).decode(),
          **{f"{tensor}_{member}": value
             for tensor, binding, descriptor in (("input_0", 0, "STORAGE_BUFFER"), ("input_1", 1, "TENSOR_ARM"),
                                                 ("output_0", 2, "STORAGE_BUFFER"))
             for member, value in (("binding", binding), ("descriptorset", 0), ("type", "Tensor"),
                                   ("vkformat", "VK_FORMAT_R32_SFLOAT"),
                                   ("vkdescriptortype", f"VK_DESCRIPTOR_TYPE_{descriptor}"))}}
CUSTOM = """graph @main(%x: 1x4xf32, %g: 1x4xf32) -> (%y, %c) {
  %a: 1x4xf32 = tosa.abs(%x)
  %b: 1x4xf32 = tosa.custom(%a, %g) {operator_name="first", domain_name="com.arm.VulkanCustomShader", implementation_attrs=SHADER}
  %k: 1x4xf32 = constant [1.0, 2.0, 3.0, 4.0]
  %d: 1x4xf32 = tosa.add(%b, %k)
  %c: 1x4xf32 = tosa.custom(%x, %k) {operator_name="second", domain_name="com.arm.VulkanCustomShader", implementation_attrs=SHADER}
  %e: 1x4xf32 = tosa.custom(%d) {operator_name="call", domain_name="com.arm.bespoke", implementation_attrs="seven"}
  %y: 1x4xf32 = tosa.exp(%e)
}
""".replace("SHADER", json.dumps(json.dumps(SHADER)))


def test_custom_operators_as_arms_converter_writes_them(tool, tosaic, tmp_path):
    """Both files read back as the same operators, in the same order, on the same operands."""
    (tmp_path / "net.txt").write_text(CUSTOM)
    graphs = []
    tool("convert", tmp_path / "net.txt", "-o", tmp_path / "net.tosa")
    for converter in ("tosaic", "sdk"):
        made = tmp_path / f"{converter}.vgf"
        tool("convert", tmp_path / "net.tosa", "-o", made, "--vgf-converter", converter, "--vgf-flags=--enable-bespoke")
        text = tool("inspect", made)
        graphs.append([line.split(" = ")[1].split("(")[0] for line in text.splitlines() if " = tosa." in line])
        assert text.count("seven") == 1 and "com.arm.bespoke" in text
        refused = subprocess.run([tosaic, "run", made], capture_output=True, text=True)
        assert refused.returncode == 1 and "run.custom-operator" in refused.stderr
    assert sorted(graphs[0]) == sorted(graphs[1])
