# SPDX-License-Identifier: Apache-2.0
"""One payload for Vulkan at every size, of networks whose windows have strides: equal to eager PyTorch, and in integers bit
for bit to the program of each size on the CPU."""

import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
import tosaic
from torch import nn
from torch.export import Dim
from torch.utils._pytree import tree_leaves

sys.path.append(str(Path(__file__).parents[1] / "models"))
from mobilenet import MobileNetV2  # noqa: E402
from resnet import ResNet18  # noqa: E402

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.by_turns(2)]


def decibels(wanted, found):
    return 10 * torch.log10(wanted.square().sum() / (wanted - found).square().sum())


def layer(i, o, stride=1):
    return nn.Sequential(nn.Conv2d(i, o, 3, stride, 1), nn.BatchNorm2d(o), nn.ReLU())


class UNet(nn.Module):
    def __init__(self, mode="nearest"):
        super().__init__()
        self.how = {"mode": mode} if mode == "nearest" else {"mode": mode, "align_corners": False}
        self.a, self.b, self.c, self.d, self.e = layer(3, 4), layer(4, 8), layer(8, 8), layer(16, 8), layer(12, 4)
        self.up, self.out = nn.ConvTranspose2d(8, 8, 2, 2), nn.Conv2d(4, 2, 1)

    def forward(self, x):
        a = self.a(x)
        b = self.b(F.max_pool2d(a, 2))
        y = self.d(torch.cat([self.up(self.c(F.max_pool2d(b, 2))), b], 1))
        return self.out(self.e(torch.cat([F.interpolate(y, scale_factor=2, **self.how), a], 1)))


class Detector(nn.Module):
    """Boxes and classes of three scales, flattened into one list."""

    def __init__(self):
        super().__init__()
        self.stem = layer(3, 8, 2)
        self.scales = nn.ModuleList([layer(8, 8, 2), layer(8, 8, 2), layer(8, 8, 2)])
        self.heads = nn.ModuleList([nn.Conv2d(8, 6, 1) for _ in range(3)])

    def forward(self, x):
        x, found = self.stem(x), []
        for scale, head in zip(self.scales, self.heads, strict=True):
            x = scale(x)
            found.append(head(x).flatten(2))
        y = torch.cat(found, 2).transpose(1, 2)
        return y[..., :4].sigmoid(), y[..., 4:].softmax(-1)


class Patches(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches, self.norm, self.head = nn.Conv2d(3, 16, 16, 16), nn.LayerNorm(16), nn.Linear(16, 5)
        self.attention = nn.MultiheadAttention(16, 2, batch_first=True)

    def forward(self, x):
        t = self.patches(x).flatten(2).transpose(1, 2)
        n = self.norm(t)
        return self.head((t + self.attention(n, n, n, need_weights=False)[0]).mean(1))


class Pools(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 8, 1, 2)

    def forward(self, x):
        y = self.first(x)
        return (F.avg_pool2d(y, 3, 2, 1), F.avg_pool2d(y, 3, 2, 1, count_include_pad=False),
                F.avg_pool2d(y, 2, ceil_mode=True), F.max_pool2d(y, 3, 2, ceil_mode=True), F.max_pool2d(y, 3, 3),
                F.adaptive_avg_pool2d(y, 1))


class Speech(nn.Module):
    """Waves to letters, in the manner of wav2vec."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv1d(1, 16, 10, 5), nn.GELU(), nn.Conv1d(16, 16, 3, 2), nn.GELU(),
                                      nn.Conv1d(16, 16, 2, 2), nn.GELU())
        self.norm, self.head = nn.LayerNorm(16), nn.Linear(16, 8)

    def forward(self, wave):
        return self.head(self.norm(self.features(wave).transpose(1, 2))).log_softmax(-1)


class Volume(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv3d(3, 4, 3, 2, 1)

    def forward(self, x):
        return self.conv(x).relu()


def image(*sizes):
    return torch.randn(1, 3, *sizes)


def thirty_seconds():
    return {2: 32 * Dim("h", max=4), 3: 32 * Dim("w", max=4)}


def any_size():
    return {2: Dim.AUTO(min=33, max=130), 3: Dim.AUTO(min=33, max=130)}


BY_32, ANY = [(64, 96), (128, 64), (96, 128)], [(64, 97), (33, 130), (130, 51), (40, 40)]
# Name -> (module, its shapes, an input of some sizes, sizes).
PROGRAMS = {
    "MobileNetV2": (MobileNetV2, any_size, image, ANY),
    "ResNet18": (ResNet18, any_size, image, ANY),
    "ResNet18 by 32": (ResNet18, thirty_seconds, image, BY_32),
    "U-Net": (UNet, thirty_seconds, image, BY_32),
    "U-Net, bilinear": (lambda: UNet("bilinear"), thirty_seconds, image, BY_32),
    "detector": (Detector, any_size, image, ANY),
    "patches": (Patches, any_size, image, ANY),
    "pools": (Pools, any_size, image, ANY),
    "speech": (Speech, lambda: {2: Dim.AUTO(min=100, max=4000)}, lambda t: torch.randn(2, 1, t), [(400,), (4000,), (123,)]),
    "volume": (Volume, lambda: {2: Dim("d", min=3, max=9), 3: Dim("h", min=3, max=19)},
               lambda d, h: torch.randn(1, 3, d, h, 8), [(4, 8), (5, 19), (3, 3)]),
}


def program_of(name):
    make, shapes, example, sizes = PROGRAMS[name]
    torch.manual_seed(3)
    module = make().eval()
    return module, torch.export.export(module, (example(*sizes[0]),), dynamic_shapes=(shapes(),)), example, sizes


@pytest.mark.parametrize("name", PROGRAMS)
def test_floats_are_those_of_eager(name, tmp_path):
    module, program, example, sizes = program_of(name)
    tosaic.compile(program, target="vulkan").save(tmp_path / "m.pte")
    session = tosaic.load(tmp_path / "m.pte")
    for size in [*sizes, sizes[0]]:
        x = example(*size)
        for a, b in zip(tree_leaves(module(x)), tree_leaves(session.run(x)), strict=True):
            torch.testing.assert_close(b, a, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("quantize", ["int8", "int16x8"])
@pytest.mark.parametrize("name", ["MobileNetV2", "U-Net", "U-Net, bilinear", "detector", "pools", "speech", "volume"])
def test_integers_are_those_of_the_program_of_each_size(name, quantize, tmp_path):
    if (name, quantize) == ("MobileNetV2", "int16x8"):
        pytest.skip("the pieces are those of the detector")
    _, program, example, sizes = program_of(name)
    samples = [(example(*size),) for size in sizes[:2]]
    how = {"quantize": quantize, "calibration": samples}
    tosaic.compile(program, target="vulkan", **how).save(tmp_path / "m.pte")
    session = tosaic.load(tmp_path / "m.pte")
    (spec,) = (n for n in program.graph.nodes if n.op == "placeholder" and "val" in n.meta and n.name in ("x", "image", "wave"))
    varying = [d for d, size in enumerate(spec.meta["val"].shape) if not isinstance(size, int)]
    for size in sizes:  # the last ones were not calibrated
        x = example(*size)
        chosen = [f"{spec.name}.{d}={x.shape[d]}" for d in varying]
        fixed = tosaic.compile(program, target="tosa-int", tosa_spec="TOSA-1.0+INT+int16+int4", sizes=chosen, **how)
        for a, b in zip(tree_leaves(fixed.run(x)), tree_leaves(session.run(x)), strict=True):
            assert torch.equal(a, b)


class Positions(nn.Module):
    def __init__(self):
        super().__init__()
        self.positions = nn.Parameter(torch.randn(40, 8))

    def forward(self, x):
        return torch.tanh(x + self.positions[:x.shape[1]])


ENCODER = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True)


@pytest.mark.parametrize("make", [lambda: ENCODER, Positions], ids=["norms", "positions"])
@pytest.mark.parametrize("quantize, enough", [("int8", 25), ("int16x8", 45)])
def test_samples_of_several_sizes(make, quantize, enough):
    """Norms are written for rows as large as those of any size, and constants have their bounds at any of them."""
    torch.manual_seed(0)
    module = make().eval()
    program = torch.export.export(module, (torch.randn(2, 9, 8),), dynamic_shapes=({1: Dim("t", min=2, max=40)},))
    # Rows of the longest ones are twice those of the shortest, and of what is run.
    samples = [(torch.randn(2, t, 8) * (1 + t / 10),) for t in (6, 9, 16) for _ in range(6)]
    [name] = program.graph_signature.user_inputs
    how = {"quantize": quantize, "calibration": samples}
    session = tosaic.compile(program, target="vulkan", **how).session()
    for t in (6, 16, 12):
        x = torch.randn(2, t, 8)
        wanted, ours = module(x), session.run(x)
        assert decibels(wanted, ours) > enough
        fixed = tosaic.compile(program, target="tosa-int", tosa_spec="TOSA-1.0+INT+int16+int4", sizes=[f"{name}.1={t}"], **how)
        assert fixed.summary.delegates == 1 and torch.equal(fixed.run(x), ours)


class Of(nn.Module):
    def __init__(self, program, layer=None):
        super().__init__()
        self.program, self.layer = program, layer

    def forward(self, x):
        return self.program(x) if self.layer is None else self.program(self.layer, x)


def rotated(x):
    places = torch.outer(torch.arange(x.shape[1]).float(), torch.tensor([1.0, 0.3, 0.1, 0.03])).repeat(1, 2)
    return torch.cat([-x[..., 4:], x[..., :4]], -1) * places.sin() + x * places.cos()


def biased(layer, x):
    far = (torch.arange(x.shape[1])[None] - torch.arange(x.shape[1])[:, None]).abs()
    return torch.softmax(layer(x) @ x.transpose(1, 2) - far * 0.1, -1)


ROWS = {
    "mean": lambda: Of(lambda x: x.mean(1)),
    "mean of one row more": lambda: Of(lambda x: torch.cat([x, x[:, :1]], 1).mean(1)),
    "mean behind a layer": lambda: Of(lambda layer, x: layer(x).relu().mean(1), nn.Linear(8, 16)),
    "group norm": lambda: Of(lambda layer, x: layer(x.transpose(1, 2)), nn.GroupNorm(2, 8)),
    "instance norm": lambda: Of(lambda layer, x: layer(x.transpose(1, 2)), nn.InstanceNorm1d(8)),
    "divided by a size": lambda: Of(lambda x: (x * x.sigmoid()).sum(-1, keepdim=True) / x.shape[1]),
    "rotary positions": lambda: Of(rotated),
    "biases by distance": lambda: Of(biased, nn.Linear(8, 8)),
}


@pytest.mark.parametrize("quantize, enough, few", [("int8", 24, 1.01), ("int16x8", 45, 4.01)])
@pytest.mark.parametrize("name", ROWS)
def test_factors_and_constants_that_follow_from_sizes(name, quantize, enough, few):
    """And what is rounded otherwise than in the program of each size is so by few steps."""
    torch.manual_seed(0)
    module = ROWS[name]().eval()
    program = torch.export.export(module, (torch.randn(2, 9, 8),), dynamic_shapes=({1: Dim("t", min=2, max=40)},))
    samples = [(torch.randn(2, t, 8),) for t in (6, 9, 16) for _ in range(8)]
    how = {"quantize": quantize, "calibration": samples}
    session = tosaic.compile(program, target="vulkan", **how).session()
    for t in (6, 16, 12):
        x = torch.randn(2, t, 8)
        wanted, ours = module(x), session.run(x)
        assert decibels(wanted, ours) > enough
        if name == "biases by distance":
            continue  # at one size the sums of a softmax are held otherwise
        fixed = tosaic.compile(program, target="tosa-int", tosa_spec="TOSA-1.0+INT+int16+int4", sizes=[f"x.1={t}"], **how).run(x)
        step = fixed.unique().diff().min()
        assert (fixed - ours).abs().max() < few * max(step, fixed.abs().max() / 32767)


def test_a_mean_of_rows_and_columns():
    torch.manual_seed(0)
    module = Of(lambda layer, x: layer(x).relu().mean((2, 3)), nn.Conv2d(3, 8, 3, 2, 1)).eval()
    program = torch.export.export(module, (image(64, 97),), dynamic_shapes=(any_size(),))
    samples = [(image(h, w),) for h, w in ANY for _ in range(3)]
    session = tosaic.compile(program, target="vulkan", quantize="int8", calibration=samples).session()
    for size in [*ANY, (50, 111)]:
        x = image(*size)
        wanted, ours = module(x), session.run(x)
        assert decibels(wanted, ours) > 30


@pytest.mark.parametrize("weights", ["int4", "int8"])
def test_codes_of_rows_are_those_of_the_program_of_each_size(weights):
    """--quantize dynamic-int8: rows are quantised in one dispatch, and products multiply these, however many rows."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.LayerNorm(128), nn.Linear(128, 192), nn.GELU(), nn.Linear(192, 128)).eval()
    program = torch.export.export(model, (torch.randn(2, 128),), dynamic_shapes=({0: Dim("n", min=1, max=96)},))
    options = {"quantize": "dynamic-int8", "weights": weights}
    session = tosaic.compile(program, target="vulkan", **options).session(device="vulkan")
    session.measure()
    for rows in (2, 1, 11, 96):
        x = torch.randn(rows, 128, generator=torch.Generator().manual_seed(rows))
        wanted = tosaic.compile(torch.export.export(model, (x,)), target="tosa-fp", **options).run(x)
        ours = session.run(x)
        assert decibels(wanted, ours) > 60
    kernels = [name.split()[0] for name, *_ in session.profile()]
    assert kernels.count("codes") == 2 and "reduce_max" not in kernels, kernels


def test_one_size_of_samples_is_the_calibration_of_that_size(tmp_path):
    _, program, example, sizes = program_of("detector")
    samples = [(example(*sizes[0]),) for _ in range(3)]
    tosaic.compile(program, target="vulkan", quantize="int8", calibration=samples).save(tmp_path / "m.pte")
    again = tosaic.compile(program, target="tosa-int", sizes=[f"x.2={sizes[0][0]}", f"x.3={sizes[0][1]}"],
                           calibration=samples)
    x = example(*sizes[0])
    session = tosaic.load(tmp_path / "m.pte")
    for a, b in zip(again.run(x), session.run(x), strict=True):
        assert torch.equal(a, b)


class Rooted(nn.Module):
    def forward(self, x):
        return x.sum(2) / x.shape[2] ** 0.5


class Adaptive(nn.Module):
    def forward(self, x):
        return F.adaptive_avg_pool2d(x, 3)


class Resized(nn.Module):
    def forward(self, x):
        return F.interpolate(F.max_pool2d(x, 2), size=x.shape[2:], mode="bilinear", align_corners=False)


@pytest.mark.parametrize("module, how, why", [
    (Rooted(), {"quantize": "int8", "calibration": [(image(64, 97),)]}, "a scale that follows from the sizes, and not as 1 / size"),
    (Adaptive(), {}, "which operators it becomes depends on the sizes"),
    (Resized(), {}, r"operand 'scale' depends on the sizes(.|\n)*at the largest sizes"),
])
def test_what_depends_on_sizes_is_told_with_its_reason(module, how, why):
    program = torch.export.export(module, (image(64, 97),), dynamic_shapes=(any_size(),))
    with pytest.raises(tosaic.Error, match=why) as refused:
        tosaic.compile(program, target="vulkan", **how)
    assert "lower.sizes" in str(refused.value) and "--sizes" in str(refused.value)


def test_explain_says_what_compile_says():
    class Doubles(nn.Module):
        def forward(self, x):
            return x.double().exp().float().relu()

    program = torch.export.export(Doubles(), (torch.randn(3, 8),), dynamic_shapes=({0: Dim("n", max=16)},))
    with pytest.raises(tosaic.Error, match="all has to run on the device") as refused:
        tosaic.compile(program, target="vulkan")
    explained = tosaic.explain(program, target="vulkan")
    told = [str(m) for m in explained.summary.messages if "compile refuses the program" in str(m)]
    assert len(told) == 1 and "all has to run on the device" in told[0] and "--sizes NAME=SIZE" in told[0]
    assert str(refused.value).splitlines()[0].split("]: ")[1] in told[0]


class NormBeforeMean(nn.Module):
    """The layer after the mean takes the norm, whose offset is the same at any size."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.head = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.Linear(8, 5)
        with torch.no_grad():
            self.norm.running_mean.normal_()
            self.norm.running_var.uniform_(0.3, 3)
            self.norm.bias.normal_()

    def forward(self, x):
        return self.head(self.norm(self.conv(x).relu()).mean((2, 3)))


def test_a_norm_that_a_layer_after_a_mean_takes():
    torch.manual_seed(0)
    module = NormBeforeMean().eval()
    program = torch.export.export(module, (image(64, 97),), dynamic_shapes=(any_size(),))
    session = tosaic.compile(program, target="vulkan").session()
    for size in ((64, 97), (33, 40), (96, 64)):
        x = image(*size)
        torch.testing.assert_close(session.run(x), module(x), rtol=1e-4, atol=1e-5)
