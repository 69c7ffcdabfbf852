# SPDX-License-Identifier: Apache-2.0
"""uint8: images go into a program as they come from a camera. TOSA has no such type: delegates get the same bytes."""

import pytest
import tosaic
import torch
from functions import Of
from torch.nn.functional import hardtanh, interpolate, pad, threshold

X = torch.arange(0, 256, dtype=torch.uint8).reshape(16, 16)


class Camera(torch.nn.Module):
    """Integer preprocessing, then a network."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.conv = torch.nn.Conv2d(3, 4, 3)
        self.register_buffer("mean", torch.tensor([0.4, 0.5, 0.6]).view(3, 1, 1))

    def forward(self, x):
        return self.conv((x.float() / 255 - self.mean) / 0.25)


CALLS = {
    "not": lambda x: ~x, "clamp": lambda x: x.clamp(10, 200), "clamp low": lambda x: x.clamp(min=200),
    "rsub": lambda x: 255 - x, "xor": lambda x: x ^ 255, "and": lambda x: x & 15,
    "add": lambda x: x + 3, "mul": lambda x: x * 3, "neg": lambda x: -x, "abs": lambda x: x.abs(), "shift": lambda x: x >> 2,
    "floor_divide": lambda x: x // 7, "remainder": lambda x: x % 7, "equal": lambda x: x == 200, "less": lambda x: x < 200,
    "where": lambda x: torch.where(x > 100, x, x.flip(0)), "maximum": lambda x: torch.maximum(x, x.flip(1)),
    "amax": lambda x: x.amax(1), "amin": lambda x: x.amin(0), "max": lambda x: x.max(1), "argmax": lambda x: x.argmax(1),
    "sort": lambda x: x.sort(1, descending=True)[0], "topk": lambda x: x.topk(3, 1)[0], "cummax": lambda x: x.cummax(1),
    "cat": lambda x: torch.cat([x, x.flip(0)]), "pad": lambda x: pad(x, (1, 1), value=200), "roll": lambda x: x.roll(3, 1),
    "slice": lambda x: x.permute(1, 0)[2:5], "gather": lambda x: x[:, [3, 1, 2]], "repeat": lambda x: x.repeat(2, 1),
    "nearest": lambda x: interpolate(x[None, None], scale_factor=2), "tril": lambda x: x.tril(),
    "masked_fill": lambda x: x.masked_fill(x > 200, 3), "threshold": lambda x: threshold(x, 100, 7),
    "hardtanh": lambda x: hardtanh(x, 5, 200), "any": lambda x: (x - 1).any(1), "all": lambda x: x.all(0),
    "float": lambda x: x.float() / 255, "half": lambda x: x.half(), "int": lambda x: x.int() * 1000, "bool": lambda x: x.bool(),
    "from float": lambda x: (x.float() * 0.9).to(torch.uint8), "to int8": lambda x: x.to(torch.int8),
    "many readers": lambda x: (x.float() / 255, x.int() + 1, x > 100, x.half(), x),
}
FLOATS = {"float", "half", "from float", "many readers"}  # what a target of integers alone does not compute in itself


def flat(value):
    return [v for item in value for v in flat(item)] if isinstance(value, (tuple, list)) else [value]


@pytest.mark.filterwarnings("ignore::tosaic.CompileWarning")
@pytest.mark.parametrize("name", CALLS)
def test_calls(name):
    """Bit for bit, on the CPU, in integers and whole on the GPU."""
    want = flat(CALLS[name](X))
    for target in ("tosa-fp", "vulkan", *(["tosa-int"] if name not in FLOATS else [])):
        artifact = tosaic.compile(Of(CALLS[name]), (X,), target)
        if target == "vulkan":
            assert "in 1 delegate" in str(artifact) and "outside" not in str(artifact), str(artifact)
        got = flat(artifact.run(X))
        assert [g.dtype for g in got] == [w.dtype for w in want]
        assert all(torch.allclose(g.float(), w.float(), rtol=1e-6, atol=0) for g, w in zip(got, want))


@pytest.mark.parametrize("target", ["tosa-fp", "vulkan", "vgf", "tosa-int", "ethos-u55-128", "ethos-u85-256"])
def test_an_image_goes_in_whole(target):
    torch.manual_seed(2)
    images = [torch.randint(0, 256, (1, 3, 8, 8), dtype=torch.uint8) for _ in range(4)]
    integers = target not in ("tosa-fp", "vulkan", "vgf")
    artifact = tosaic.compile(Camera(), (images[0],), target, **({"calibration": images} if integers else {}))
    assert "6 of 6 nodes, in 1 delegate" in str(artifact)
    for image in images:
        got, want = artifact.run(image), Camera()(image)
        noise = 10 * torch.log10((want**2).mean() / ((got - want) ** 2).mean())
        assert noise > (35 if integers else 90)


@pytest.mark.parametrize("device", ["cpu", "vulkan"])
def test_a_file_of_pytorch_runs(device, tmp_path):
    image = torch.randint(0, 256, (1, 3, 8, 8), dtype=torch.uint8)
    torch.export.save(torch.export.export(Camera(), (image,)), tmp_path / "camera.pt2")
    torch.testing.assert_close(tosaic.load(tmp_path / "camera.pt2", device=device).run(image), Camera()(image).detach())
