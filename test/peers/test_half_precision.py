# SPDX-License-Identifier: Apache-2.0
"""Programs of f16 and bf16 are no further from f32 than PyTorch's own half precision, wherever they run."""
import warnings

import ml_dtypes
import numpy as np
import pytest

warnings.filterwarnings("ignore")
import torch
from torch import nn
from torch.nn import functional as F

SLACK = 0.5  # dB: which of two equally near numbers a sum rounds to


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


class Recurrent(nn.Module):
    def __init__(self, cell):
        super().__init__()
        self.cell = cell(16, 24, batch_first=True)

    def forward(self, x):
        return self.cell(x)[0]


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix, self.out = nn.Linear(16, 48), nn.Linear(16, 16)

    def forward(self, x):
        q, k, v = self.mix(x).reshape(*x.shape[:2], 3, 2, 8).permute(2, 0, 3, 1, 4)
        return self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))


def picture(*layers):
    return nn.Sequential(nn.Unflatten(1, (4, 4)), *layers)


def folded():
    norm = nn.BatchNorm2d(8)
    norm.running_mean.normal_(0, 0.3), norm.running_var.uniform_(0.5, 2), nn.init.uniform_(norm.weight, 0.5, 1.5)
    return picture(nn.Conv2d(4, 8, 3, padding=1), norm, nn.ReLU(), nn.Conv2d(8, 8, 3, groups=8), nn.SiLU())


# Of 2x16x16, each something that PyTorch computes in f32 between two roundings.
MODELS = {
    "conv and batch norm": folded,
    "group norm": lambda: picture(nn.Conv2d(4, 8, 3), nn.GroupNorm(2, 8), nn.Hardswish()),
    "layer norm and gelu": lambda: nn.Sequential(nn.LayerNorm(16), nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16)),
    "rms norm": lambda: nn.Sequential(nn.RMSNorm(16), nn.Linear(16, 16), nn.Mish()),
    "attention": Attention,
    "encoder": lambda: nn.TransformerEncoderLayer(16, 2, 32, batch_first=True),
    "lstm": lambda: Recurrent(nn.LSTM),
    "gru": lambda: Recurrent(nn.GRU),
    "statistics": lambda: Function(lambda x: torch.cat([x.var(-1), x.std(-1), x.norm(dim=-1), x.logsumexp(-1)], -1)),
    "mean of large numbers": lambda: Function(lambda x: (x * 100 + 3000).mean((1, 2))),
    "shares": lambda: Function(lambda x: torch.cat([x.softmax(-1), x.log_softmax(1), F.normalize(x, dim=-1)], -1)),
    "numbers": lambda: Function(lambda x: torch.cat([x * 0.1, x / 3, torch.lerp(x, x.flip(0), 0.3), x.sinh(), x.atan()], -1)),
}
# Outside of all delegates: what the specification leaves out.
WHERE = {torch.float16: {"tosa-fp": [], "vgf": []},
         torch.bfloat16: {"tosa-fp": [], "vgf": [], "kernels": ["--tosa-spec", "TOSA-1.0+FP"]}}


def decibels(found, expected):
    found, expected = found.double(), expected.double()
    return float(10 * torch.log10(expected.square().sum() / (found - expected).square().sum().clamp(min=1e-30)))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["f16", "bf16"])
@pytest.mark.parametrize("name", MODELS)
def test_no_further_than_eager(name, dtype, tool, tmp_path):
    torch.manual_seed(3)
    model, x = MODELS[name]().eval().to(dtype), torch.randn(2, 16, 16).to(dtype)
    with torch.no_grad():
        eager = model(x)
        torch.export.save(torch.export.export(model, (x,)), tmp_path / "m.pt2")
        exact = model.float()(x.float())
    given = x.numpy() if dtype == torch.float16 else x.view(torch.int16).numpy().view(ml_dtypes.bfloat16).view("V2")
    for where, options in WHERE[dtype].items():
        target = "tosa-fp" if options else where
        tool("compile", tmp_path / "m.pt2", "--target", target, "-o", tmp_path / "m.pte", *options)
        found = tool.run(tmp_path / "m.pte", [given], tmp_path)[0]
        if dtype == torch.bfloat16:
            found = found.view(np.int16)
        ours = decibels(torch.from_numpy(found.copy()).view(dtype), exact)
        assert ours > decibels(eager, exact) - SLACK, where


def test_the_model_chooses_the_extension(tool, tmp_path):
    torch.export.save(torch.export.export(nn.Linear(4, 4).bfloat16(), (torch.randn(1, 4).bfloat16(),)), tmp_path / "m.pt2")
    for target in ("tosa-fp", "vgf"):
        tool("compile", tmp_path / "m.pt2", "--target", target, "-o", tmp_path / "m.pte", "--require-full-delegation")
        assert "bf16" in tool.said and "EXT-BF16" in tool.said, tool.said
