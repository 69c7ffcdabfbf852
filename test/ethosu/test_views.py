# SPDX-License-Identifier: Apache-2.0
"""Views between two commands: every program passes its self-check, which compares the stream with its TOSA graph.

Without --all-models a few seeds, each on one product; with it hundreds on every one.
"""
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import suite
import torch
import views
from torch import nn

pytestmark = pytest.mark.by_turns(2)

os.environ["PATH"] = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"  # where pip installed vela

CHAINS = 6  # in one model: a start of Vela is dear, and neighbours in memory show what is written next to its place


class Function(nn.Module):
    def __init__(self, function, *modules):
        super().__init__()
        self.function, self.parts = function, nn.ModuleList(modules)

    def forward(self, *xs):
        return self.function(*self.parts, *xs)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(8, 8, batch_first=True)

    def forward(self, x):
        return self.lstm(x)[0]


def normalised(norm, x, y):
    """Rows that the samples show to be a thousand times smaller than others."""
    x, y = (v * torch.exp(-0.86 * torch.arange(9.0))[:, None] for v in (x, y))
    return norm(x), nn.functional.normalize(y, dim=-1), y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)


def partitioned(conv, x):
    """MaxViT's windows: an image in windows of 2x2, as rows of tokens and back."""
    n, c, h, w = x.shape
    x = x.view(n, c, h // 2, 2, w // 2, 2).permute(0, 2, 4, 3, 5, 1).reshape(-1, 4, c)
    x = torch.tanh(x).view(n, h // 2, w // 2, 2, 2, c).permute(0, 5, 1, 3, 2, 4).reshape(n, c, h, w)
    return conv(x)


def unfolded(linear, conv, x):
    """MobileViT: patches of an image as rows, a linear, and back into an image."""
    n, c, h, w = x.shape
    x = x.reshape(n * c * h // 2, 2, w // 2, 2).transpose(1, 2).reshape(n, c, h * w // 4, 4).transpose(1, 3)
    x = linear(x).transpose(1, 3).reshape(n * c * h // 2, w // 2, 2, 2).transpose(1, 2).reshape(n, c, h, w)
    return conv(x)


# What Vela 5.1.0 gets wrong when it is written as PyTorch has it. name: (module, input shapes, scheme)
FORMS = {
    "detection_head": (Function(lambda c, x: c(x).view(1, 3, 85, 4, 4).permute(0, 1, 3, 4, 2).sigmoid(), nn.Conv2d(16, 255, 1)), [(1, 16, 4, 4)], "int8"),
    "rows_into_an_image": (Function(lambda f, c, x: c(f(x).view(1, 4, 1, 40).transpose(1, 3).reshape(1, 40, 2, 2)), nn.Linear(40, 40), nn.Conv2d(40, 48, 1)),
                           [(4, 1, 40)], "int8"),
    "windows": (Function(partitioned, nn.Conv2d(16, 16, 3, padding=1)), [(1, 16, 4, 6)], "int8"),
    "patches": (Function(unfolded, nn.Linear(8, 8), nn.Conv2d(8, 8, 1)), [(1, 8, 4, 6)], "int8"),
    "scores_that_leave": (Function(lambda q, k: (lambda s: (s, s.amax(-1)))(q @ k.transpose(-1, -2))), [(1, 2, 9, 16)] * 2, "int8"),
    "masked_attention": (Function(lambda q, k, v: nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)), [(1, 2, 9, 16)] * 3, "int8"),
    "two_tables_in_a_chain": (Function(lambda a, b: torch.tanh(torch.sigmoid(a) * b)), [(4, 32)] * 2, "int16x8"),
    "two_sums_in_a_chain": (Function(lambda v: v.sum(1) ** 2 - (v ** 2).sum(1)), [(2, 6, 16)], "int16x8"),
    "sum_beside_a_part": (Function(lambda a, z: torch.relu(a.sum(1)) + z[:, 32:]), [(4, 6, 32), (4, 64)], "int16x8"),
    "gate_beside_a_part": (Function(lambda a, z: torch.sigmoid(a.mean((2, 3), keepdim=True)) * z[:, 3:11]), [(1, 8, 5, 6), (1, 16, 1, 1)], "int8"),
    "sum_beside_every_second": (Function(lambda a, z: torch.relu(a.sum(1, keepdim=True)) * z[:, :, ::2]), [(4, 6, 32), (4, 1, 64)], "int16x8"),
    "softmax_beside_a_part": (Function(lambda a, z: torch.sigmoid(a.softmax(-1)) * z[..., 3:11]), [(1, 3, 5, 8), (1, 3, 5, 16)], "int8"),
    "clamped_gate": (Function(lambda a, b, z: torch.tanh((torch.sigmoid(a) * b).clamp(-0.9, 0.9) + z[:, 24:])), [(1, 12), (1, 12), (1, 36)], "int16x8"),
    "two_clamped_gates": (Function(lambda a, b, c, d: torch.tanh((torch.sigmoid(a) * b).clamp(-0.9, 0.9) + (torch.sigmoid(c) * d).clamp(-0.9, 0.9))), [(1, 12)] * 4, "int16x8"),
    "image_into_five_dims": (Function(lambda c, x: torch.relu(c(x)).permute(0, 2, 3, 1).reshape(1, 1, 7, 8, 14).permute(0, 1, 3, 2, 4),
                                      nn.Conv2d(3, 16, 3, stride=2, padding=1)), [(1, 3, 14, 14)], "int8"),
    "lstm": (Recurrent(), [(1, 6, 8)], "int16x8"),
    "norms_of_unlike_rows": (Function(normalised, nn.LayerNorm(24)), [(1, 9, 24)] * 2, "int16x8"),
    "conv3d_behind_conv3d": (nn.Sequential(nn.Conv3d(8, 8, 3, padding=1), nn.ReLU(), nn.Conv3d(8, 16, 1, stride=2)), [(1, 8, 4, 8, 8)], "int8"),
}


def pytest_generate_tests(metafunc):
    every = metafunc.config.getoption("--all-models")
    if "form" in metafunc.fixturenames:
        targets = suite.TARGETS if every else ["ethos-u55-128", "ethos-u85-256"]
        metafunc.parametrize("form,target", [(f, t) for f in FORMS for t in targets])
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed,target,scheme", [(s, t, "int16x8" if s % 3 == 0 else "int8") for s in range(60 if every else 2)
                                                    for i, t in enumerate(suite.TARGETS) if every or i == (2, 7)[s]])


def checked(tosaic, module, inputs, folder, target, *options):
    """Compiles; the program has passed its self-check."""
    program = torch.export.export(module.eval(), inputs, strict=False)
    torch.export.save(program, folder / "model.pt2")
    np.savez(folder / "samples.npz", **{n: np.stack([x.numpy(), 0.7 * x.numpy()]) for n, x in zip(program.graph_signature.user_inputs, inputs)})
    done = subprocess.run([tosaic, "compile", folder / "model.pt2", "--target", target, "--calibrate", folder / "samples.npz", "-o", folder / "model.pte", *options],
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def test_form(form, target, tosaic, tmp_path):
    module, shapes, scheme = FORMS[form]
    torch.manual_seed(len(form))
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.2)
    done = checked(tosaic, module, tuple(torch.randn(*s) for s in shapes), tmp_path, target, "--quantize", scheme)
    assert "self-check passed" in done.stdout, done.stdout + done.stderr


def test_chains(seed, target, scheme, tosaic, tmp_path):
    module = views.Chains(seed, CHAINS)
    try:
        done = checked(tosaic, module, module.inputs(), tmp_path, target, "--quantize", scheme)
        assert "self-check passed" in done.stdout, done.stdout + done.stderr
    except AssertionError as why:
        raise AssertionError(f"{module.text()}\n{why}") from None
