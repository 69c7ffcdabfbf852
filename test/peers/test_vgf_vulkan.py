# SPDX-License-Identifier: Apache-2.0
"""VGF files on Vulkan: our shaders, our runtime, our CPU executor and Arm's scenario runner give the same, and what is said when the
machine lacks something. The driver is whatever the machine has; Mesa's lavapipe and the emulation layer will do."""
import os
import pathlib
import subprocess

import emulation_layer.cli
import numpy as np
import pytest
import scenario_runner
import torch
from conftest import ALL, build_model
from test_tosa_programs import decibels
from test_vgf import KINDS, compiled_to_vgf, random_inputs

pytestmark = pytest.mark.by_turns(2)

# Float results as closely as sums of that type can be distinguished: 24 and 11 bits of mantissa.
DECIBELS = {np.dtype(np.float32): 90, np.dtype(np.float16): 60}
DIGITS = pathlib.Path(__file__).resolve().parents[2] / "examples/digits"


def pytest_generate_tests(metafunc):
    # A pipeline is made of about 50 ms of compiling per operator: the other models come with --all-models.
    if "network" in metafunc.fixturenames:
        names = ALL if metafunc.config.getoption("--all-models") else ["digits"]
        metafunc.parametrize("network", names, scope="module")


def agree(found, expected, what):
    assert len(found) == len(expected), what
    for f, e in zip(found, expected):
        assert f.shape == e.shape, what
        if e.dtype in DECIBELS:
            assert f.dtype == e.dtype
            assert decibels(e, f.astype(np.float64) - e.astype(np.float64)) > DECIBELS[e.dtype], what
        else:
            np.testing.assert_array_equal(f.view(e.dtype) if f.dtype.itemsize == e.dtype.itemsize else f, e, err_msg=what)


@pytest.fixture(params=KINDS, scope="module")
def compiled_network(request, network, tool, tmp_path_factory):
    folder = tmp_path_factory.mktemp(f"{network}_{request.param}")
    model = build_model(network)
    return request.param, model, compiled_to_vgf(model, request.param, tool, folder)


def test_model(compiled_network, tool, tmp_path):
    kind, model, folder = compiled_network
    vgf = folder / "m.vgf"
    inputs = [array.astype(np.float16) for array in model.arrays("input")[0]] if kind == "half" else random_inputs(tool, vgf)
    expected = tool.run(vgf, inputs, tmp_path, "--device", "cpu")
    for what, found in (("our shaders", tool.run(vgf, inputs, tmp_path, "--device", "vulkan", "--repeat", 2)),
                        ("our shaders, in a .pte", tool.run(folder / "m.pte", inputs, tmp_path, "--device", "vulkan")),
                        ("our runtime", tool.run(vgf, inputs, tmp_path, "--device", "vulkan-ml", "--repeat", 2)),
                        ("in a .pte", tool.run(folder / "m.pte", inputs, tmp_path, "--device", "vulkan-ml")),
                        ("Arm's scenario runner", scenario_runner.run(vgf, inputs, tmp_path))):
        if kind != "half":
            agree(found, expected, what)
            continue
        # Sums in another order round otherwise in each of many layers: as close to float32 as the CPU is.
        for f, e, exact in zip(found, expected, model.arrays("float")[0], strict=True):
            assert decibels(exact, f - exact) > decibels(exact, e - exact) - 3, what


class Floats(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(4, 8, 3, stride=2, padding=1)
        self.depthwise = torch.nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.up = torch.nn.ConvTranspose2d(8, 4, 2, stride=2)

    def forward(self, x):
        y = self.conv(x)
        z = self.depthwise(torch.relu(y))
        rows = z.flatten(2).transpose(1, 2)
        return (self.up(z), torch.softmax(rows @ rows.transpose(1, 2), -1), torch.tanh(y).mean((2, 3)),
                torch.nn.functional.max_pool2d(x, 3, 2, 1), torch.cat([y, -z], 1).amax(1), torch.where(y > 0, y.exp(), z * z))


class Integers(torch.nn.Module):
    def forward(self, a, b):
        total = a + b
        return (total * 3 - (a & b), total < b, torch.maximum(a, b).sum(1, dtype=torch.int32), torch.where(a == b, a, -b),
                a.transpose(0, 1).flip(0), torch.nn.functional.pad(b, (1, 2)))


class Halves(torch.nn.Module):
    def forward(self, x, w):
        return torch.sigmoid(x @ w), x.amax(-1), (x * x + w[:4]).clamp(-1, 1)


def integers(*shape):
    return torch.randint(-9, 9, shape, dtype=torch.int32)


GRAPHS = {
    "float": lambda: (Floats(), (torch.randn(1, 4, 12, 12),)),
    "integer": lambda: (Integers(), (integers(4, 6), integers(4, 6))),
    "half": lambda: (Halves(), (torch.randn(4, 8).half(), torch.randn(8, 8).half())),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_operators(name, tool, tmp_path):
    torch.manual_seed(5)
    module, example = GRAPHS[name]()
    torch.export.save(torch.export.export(module.eval(), example), tmp_path / "m.pt2")
    vgf = tmp_path / "m.vgf"
    tool("compile", tmp_path / "m.pt2", "--target", "vgf", "-o", tmp_path / "m.pte", "--emit", f"vgf={vgf}",
         "--require-full-delegation")
    inputs = [e.numpy() for e in example]
    expected = tool.run(vgf, inputs, tmp_path)
    agree(tool.run(vgf, inputs, tmp_path, "--device", "vulkan"), expected, "our shaders")
    agree(tool.run(vgf, inputs, tmp_path, "--device", "vulkan-ml"), expected, "our runtime")
    agree(scenario_runner.run(vgf, inputs, tmp_path), expected, "Arm's scenario runner")


@pytest.mark.filterwarnings("ignore")
def test_a_program_of_executorch(tool, tmp_path):
    """ExecuTorch's own flow with Arm's converter, on both devices."""
    from executorch.backends.arm.vgf import VgfCompileSpec, VgfPartitioner
    from executorch.exir import EdgeCompileConfig, ExecutorchBackendConfig, to_edge_transform_and_lower

    torch.manual_seed(1)
    module = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.ReLU(), torch.nn.Flatten(),
                                 torch.nn.Linear(128, 4))
    example = (torch.randn(1, 3, 4, 4),)
    edge = to_edge_transform_and_lower(torch.export.export(module.eval(), example),
                                       partitioner=[VgfPartitioner(VgfCompileSpec())],
                                       compile_config=EdgeCompileConfig(_check_ir_validity=False))
    pte = tmp_path / "m.pte"
    pte.write_bytes(edge.to_executorch(config=ExecutorchBackendConfig(extract_delegate_segments=False)).buffer)
    expected = [module(*example).detach().numpy()]
    for device in ("cpu", "vulkan", "vulkan-ml"):
        agree(tool.run(pte, [example[0].numpy()], tmp_path, "--device", device), expected, device)


# ---- the first line of a run, and what is missing

@pytest.fixture(scope="module")
def digits_vgf(tool, tmp_path_factory):
    folder = tmp_path_factory.mktemp("digits")
    tool("compile", DIGITS / "digits.pt2", "--target", "vgf", "-o", folder / "digits.pte", "--emit",
         f"vgf={folder / 'digits.vgf'}")
    return folder / "digits.vgf"


def test_a_tosa_file_runs_there_too(digits_vgf, tool):
    tool("compile", DIGITS / "digits.pt2", "--target", "tosa-fp", "-o", digits_vgf.parent / "fp.pte", "--emit",
         f"tosa={digits_vgf.parent / 'digits.tosa'}")
    for device in ("vulkan", "vulkan-ml"):
        said = tool("run", digits_vgf.parent / "digits.tosa", "--device", device)
        assert " on vulkan: " in said.splitlines()[0] and "on the device" in said
    assert tool("run", digits_vgf, "--device", "cpu").splitlines()[0].endswith("digits.vgf on cpu")


def test_the_environment_that_the_emulation_layer_prints(digits_vgf, tosaic):
    """It enables the layers in no particular order, which by itself does not work."""
    paths = emulation_layer.cli.get_deploy_paths()
    environment = {**os.environ, "PATH": "/usr/bin", "VK_LAYER_PATH": paths["VK_LAYER_PATH"],
                   "LD_LIBRARY_PATH": paths["LD_LIBRARY_PATH"],
                   "VK_INSTANCE_LAYERS": "VK_LAYER_ML_Graph_Emulation:VK_LAYER_ML_Tensor_Emulation"}
    done = subprocess.run([tosaic, "run", digits_vgf, "--device", "vulkan-ml"], capture_output=True, text=True, env=environment)
    assert done.returncode == 0 and " on vulkan: " in done.stdout, done.stderr


@pytest.mark.parametrize("arguments,changed,code,telling", [
    ([], {"VK_ICD_FILENAMES": "/nonexistent"}, "vulkan.no-driver", "mesa-vulkan-drivers"),
    ([], {"PATH": "/usr/bin", "VIRTUAL_ENV": "", "VK_LAYER_PATH": "/nonexistent"}, "vulkan.no-extension",
     "ai_ml_emulation_layer_for_vulkan"),
    (["--vulkan-device", "99"], {}, "vulkan.device", "device 0: "),
], ids=["no driver", "no emulation layer", "no such device"])
def test_what_is_missing_is_said(arguments, changed, code, telling, digits_vgf, tosaic):
    done = subprocess.run([tosaic, "run", digits_vgf, "--device", "vulkan-ml", *arguments], capture_output=True, text=True,
                          env={**os.environ, **changed})
    assert done.returncode == 1 and f"error[{code}]" in done.stderr and telling in done.stderr, done.stderr
    assert not done.stdout


def test_wrong_inputs(digits_vgf, tosaic, tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((1, 1, 8, 9), np.float32))
    done = subprocess.run([tosaic, "run", digits_vgf, "--device", "vulkan-ml", "--input", tmp_path / "x.npy"],
                          capture_output=True, text=True)
    assert done.returncode == 1 and "error[run.input-type]" in done.stderr, done.stderr
