# SPDX-License-Identifier: Apache-2.0
"""Programs of floats whose weights are quantised values: as torchao leaves them, and as tosaic makes them. The file
holds the quantised values, tosa_reference_model computes what PyTorch does, and the executor takes them as quantised
values."""

import subprocess
import warnings

import numpy as np
import pytest
import reference_model
import torch
from torch import nn

GROUP = 32


class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.gate, self.down = nn.Linear(256, 384, bias=False), nn.Linear(256, 384), nn.Linear(384, 256)

    def forward(self, x):
        return self.down(nn.functional.silu(self.gate(x)) * self.up(x))


WEIGHTS = 3 * 256 * 384


def decibels(wanted, got):
    return 10 * np.log10(np.square(wanted).mean() / max(np.square(wanted - got).mean(), 1e-30))


def program():
    torch.manual_seed(0)
    return Gated().eval(), torch.randn(1, 3, 256)


def by_torchao(scheme):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import torchao.quantization as ao
        from torchao.utils import unwrap_tensor_subclass

        groups = ao.PerGroup(GROUP)
        configs = {
            "int4": lambda: ao.IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=groups),
            "int8": lambda: ao.Int8WeightOnlyConfig(),
            "8da4w": lambda: ao.Int8DynamicActivationIntxWeightConfig(weight_dtype=torch.int4, weight_granularity=groups),
            "8da8w": lambda: ao.Int8DynamicActivationIntxWeightConfig(weight_dtype=torch.int8,
                                                                     weight_granularity=ao.PerAxis(0)),
            # their products are of integers, _int_mm
            "int8 x int8": lambda: ao.Int8DynamicActivationInt8WeightConfig(),
            "int8 x int8, asymmetric": lambda: ao.Int8DynamicActivationInt8WeightConfig(
                act_mapping_type=ao.MappingType.ASYMMETRIC),
        }
        model, x = program()
        ao.quantize_(model, configs[scheme]())
        unwrap_tensor_subclass(model)
        return model, x


def compiled(tosaic, model, x, folder, *options):
    torch.export.save(torch.export.export(model, (x,), strict=False), folder / "m.pt2")
    np.save(folder / "x.npy", x.numpy())
    subprocess.run([tosaic, "compile", folder / "m.pt2", "--target", "tosa-fp", "-q", "-o", folder / "m.pte", "--emit",
                    f"tosa={folder / 'm.tosa'}", *options], check=True)
    return folder / "m.tosa"


def ran(tosaic, file, folder, *options):
    done = subprocess.run([tosaic, "run", file, "-i", folder / "x.npy", "--output-dir", folder, "--profile", *options],
                          check=True, capture_output=True, text=True)
    steps, _, _ = done.stdout.partition("  by kernel\n")
    return np.load(folder / "output_0.npy"), steps + done.stderr


def checked(tosaic, file, folder, wanted, near, kernel, bits):
    assert file.stat().st_size < WEIGHTS * bits / 8 + (WEIGHTS / GROUP * 4 if bits == 4 else 0) + 50000
    ours, profile = ran(tosaic, file, folder)
    assert profile.count(f"{kernel}:") == 3 and "reference" not in profile
    slow, _ = ran(tosaic, file, folder, "--executor", "interp")
    theirs = reference_model.run(file, [np.load(folder / "x.npy")], folder)[0]
    assert decibels(slow, ours) > 100 and decibels(theirs, ours) > 100
    assert decibels(wanted, ours) > near, decibels(wanted, ours)


@pytest.mark.parametrize("scheme", ["int4", "int8", "8da4w", "8da8w"])
def test_of_torchao(tosaic, scheme, tmp_path):
    model, x = by_torchao(scheme)
    file = compiled(tosaic, model, x, tmp_path)
    wanted = model(x).detach().numpy()
    checked(tosaic, file, tmp_path, wanted, 90, "coded_i8" if scheme.startswith("8da") else "coded_f32",
            8 if scheme in ("int8", "8da8w") else 4)


# Compared with torchao's eager result for the same scheme, measured by the floats.
@pytest.mark.parametrize("scheme, options", [("int4", ["--weights", "int4"]), ("int8", ["--weights", "int8"]),
                                             ("8da4w", ["--quantize", "dynamic-int8", "--weights", "int4"]),
                                             ("8da8w", ["--quantize", "dynamic-int8"])])
def test_made_here(tosaic, scheme, options, tmp_path):
    model, x = program()
    floats = model(x).detach().numpy()
    theirs = by_torchao(scheme)[0](x).detach().numpy()
    file = compiled(tosaic, model, x, tmp_path, *options)
    checked(tosaic, file, tmp_path, floats, decibels(floats, theirs) - 0.3,
            "coded_i8" if scheme.startswith("8da") else "coded_f32", 4 if "int4" in options else 8)


# The same weights on a Vulkan device: as quantised values in the payload, and the executor's results.
@pytest.mark.parametrize("scheme, options", [("int4", None), ("int8", None), ("int4", ["--weights", "int4"])])
def test_on_vulkan(tosaic, scheme, options, tmp_path):
    model, x = program() if options else by_torchao(scheme)
    ours = on_vulkan(tosaic, model, x, tmp_path, 4 if scheme == "int4" else 8, options or [])[0]
    wanted, _ = ran(tosaic, tmp_path / "m.pte", tmp_path)
    assert decibels(wanted, ours) > 110, decibels(wanted, ours)


def on_vulkan(tosaic, model, x, folder, bits, options, tier=""):
    compiled(tosaic, model, x, folder, *options)
    file = folder / "v.pte"
    tiers = ["--vulkan-tiers", tier] if tier else []
    subprocess.run([tosaic, "compile", folder / "m.pt2", "--target", "vulkan", "-q", "-o", file, *options, *tiers], check=True)
    assert file.stat().st_size < WEIGHTS * bits / 8 + (WEIGHTS / GROUP * 4 if bits == 4 else 0) + 150000
    return ran(tosaic, file, folder, "--device", "vulkan")


# Activations that are quantised at run time: in one dispatch for each tensor, however many layers read it, and products
# multiply the quantised values. Of the first layers quantised values are the executor's; of the last one they are of
# floats that are added up in another order, so some may be the next quantised value: where scales are symmetric, the
# largest one of a row (docs/numerics.md).
@pytest.mark.parametrize("tier", ["cpu", "dot", "base"])
@pytest.mark.parametrize("scheme, options", [("8da4w", None), ("8da8w", None), ("int8 x int8", None),
                                             ("int8 x int8, asymmetric", None), ("8da8w", ["--quantize", "dynamic-int8"]),
                                             ("8da4w", ["--quantize", "dynamic-int8", "--weights", "int4"])])
@pytest.mark.parametrize("rows", [1, 40])
def test_dynamic_on_vulkan(tosaic, scheme, options, rows, tier, tmp_path):
    model, _ = program() if options else by_torchao(scheme)
    x = torch.randn(1, rows, 256, generator=torch.Generator().manual_seed(rows))
    ours, profile = on_vulkan(tosaic, model, x, tmp_path, 4 if scheme == "8da4w" else 8, options or [], tier)
    kernels = [line.split()[2] for line in profile.splitlines() if line.split()[1:2] == ["ms"]]
    assert (kernels.count("codes"), kernels.count("conv2d") + kernels.count("matmul")) == (2, 3), profile
    assert not {"reduce_min", "reduce_max", "rows"} & set(kernels), profile
    wanted, _ = ran(tosaic, tmp_path / "m.pte", tmp_path)
    assert decibels(wanted, ours) > (50 if scheme == "int8 x int8" else 60), decibels(wanted, ours)


# A TOSA payload holds two values of 4 bits in a byte, which shaders read as they do their own payload's: no dispatch makes
# floats of them.
@pytest.mark.parametrize("options", [["--weights", "int4"], ["--quantize", "dynamic-int8", "--weights", "int4"]])
def test_tosa_payload_on_vulkan(tosaic, options, tmp_path):
    model, x = program()
    wanted = on_vulkan(tosaic, model, x, tmp_path, 4, options)[0]
    ours, profile = ran(tosaic, tmp_path / "m.pte", tmp_path, "--device", "vulkan")
    assert "elementwise" not in profile, profile
    assert np.array_equal(ours, wanted)


def test_refusals(tosaic, tmp_path):
    model, x = program()
    torch.export.save(torch.export.export(model, (x,)), tmp_path / "m.pt2")

    def said(*options):
        done = subprocess.run([tosaic, "compile", tmp_path / "m.pt2", "-o", tmp_path / "m.pte", *options],
                              capture_output=True, text=True)
        assert done.returncode != 0
        return done.stderr

    assert "quantise.group-size" in said("--target", "tosa-fp", "--weights", "int4", "--group-size", "96")
    assert "option.dynamic" in said("--target", "tosa-int", "--quantize", "dynamic-int8")
    assert "option.codes" in said("--target", "vgf", "--quantize", "dynamic-int8")


def activations(count, rows=12):
    """Rows whose neighbours are alike, as those of trained models are."""
    torch.manual_seed(1)
    mixed = torch.randn(40, 256) / 6
    return torch.randn(count, 1, rows, 40) @ mixed


def error_with(tosaic, model, folder, *options):
    """Decibels of the int4 program on rows that no sample has."""
    x = activations(33)[32]
    file = compiled(tosaic, model, x, folder, "--weights", "int4", "--group-size", str(GROUP), *options)
    return decibels(model(x).detach().numpy(), ran(tosaic, file, folder)[0])


@pytest.mark.parametrize("dynamic", [[], ["--quantize", "dynamic-int8"]])
def test_rounded_on_samples(tosaic, dynamic, tmp_path):
    """Least squares on samples bring the error of int4 down, and the file is no larger."""
    model = program()[0]
    np.savez(tmp_path / "s.npz", x=activations(32).numpy())
    nearest = error_with(tosaic, model, tmp_path, *dynamic)
    size = (tmp_path / "m.tosa").stat().st_size
    better = error_with(tosaic, model, tmp_path, "--calibrate", str(tmp_path / "s.npz"), *dynamic)
    assert better > nearest + 2
    assert (tmp_path / "m.tosa").stat().st_size == size
    off = error_with(tosaic, model, tmp_path, "--calibrate", str(tmp_path / "s.npz"), "--rounding", "nearest", *dynamic)
    assert off == nearest


def test_samples_of_other_sizes_round_as_well(tosaic, tmp_path):
    model, x = program()[0], activations(33)[32]
    rows = {"x": {1: torch.export.Dim("rows", min=2, max=64)}}
    torch.export.save(torch.export.export(model, (x,), dynamic_shapes=rows, strict=False), tmp_path / "m.pt2")
    np.save(tmp_path / "x.npy", x.numpy())
    (tmp_path / "samples").mkdir()
    for length in (5, 30):
        np.savez(tmp_path / f"samples/{length}.npz", x=activations(16, length).numpy())
    found = []
    for samples in ([], ["--calibrate", tmp_path / "samples"]):
        subprocess.run([tosaic, "compile", tmp_path / "m.pt2", "--target", "tosa-fp", "-q", "-o", tmp_path / "m.pte", "--sizes",
                        "x.1=12", "--weights", "int4", *samples], check=True)
        found.append(decibels(model(x).detach().numpy(), ran(tosaic, tmp_path / "m.pte", tmp_path)[0]))
    assert found[1] > found[0] + 1


def test_samples_are_looked_at(tosaic, tmp_path):
    samples = activations(4).numpy()
    samples[2, 0, 1, 7] = np.nan
    np.savez(tmp_path / "s.npz", x=samples)
    with pytest.raises(subprocess.CalledProcessError) as refused:
        torch.export.save(torch.export.export(program()[0], (activations(1)[0],)), tmp_path / "m.pt2")
        subprocess.run([tosaic, "compile", tmp_path / "m.pt2", "--target", "tosa-fp", "--weights", "int4", "--calibrate",
                        tmp_path / "s.npz", "-o", tmp_path / "m.pte"], check=True, capture_output=True, text=True)
    assert "sample 2 has NaN in input 'x', at [0, 1, 7]" in refused.value.stderr
