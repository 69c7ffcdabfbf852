# SPDX-License-Identifier: Apache-2.0
"""Operators that an NPU has no command for, and batches: fully delegated, and the bytes that the TOSA gives.

Each small PyTorch module is compiled for the NPU and for tosa-int with the same samples; the two programs must agree.
Without --all-models a sample is taken, on one product.
"""
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import executorch_programs  # noqa: E402

pytestmark = pytest.mark.by_turns(2)

os.environ["PATH"] = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"  # where pip installed vela


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *arguments):
        return self.function(*arguments)


def padded(kernel, stride, pad):
    return nn.AvgPool2d(kernel, stride, pad, count_include_pad=False)


# name: (module, input shapes); the ones in QUICK are always tested
CASES = {
    "mean_256x400": (Function(lambda x: x.mean((2, 3))), (1, 3, 256, 400)),
    "global_average_256x400": (nn.AdaptiveAvgPool2d(1), (1, 3, 256, 400)),
    "sum_256x400": (Function(lambda x: x.sum((2, 3))), (1, 3, 256, 400)),
    "mean_of_an_image_with_odd_sides": (nn.Sequential(nn.Conv2d(64, 64, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1)), (1, 64, 25, 5)),
    "mean_of_102400": (Function(lambda x: x.mean(1)), (1, 102400)),
    "mean_of_102400_inside": (Function(lambda x: x.mean(1)), (4, 102400, 2)),
    "mean_of_all": (Function(lambda x: x.mean()), (2, 3, 200, 300)),
    "maximum_256x400": (Function(lambda x: x.amax((2, 3))), (1, 3, 256, 400)),
    "image_320x480": (nn.Conv2d(3, 8, 3, stride=2), (1, 3, 320, 480)),
    "permute_300x400": (Function(lambda x: x.permute(0, 2, 1, 3)), (1, 300, 400, 8)),
    "permute_70000x3": (Function(lambda x: x.permute(0, 2, 1)), (1, 70000, 3)),
    "permute_3x70000": (Function(lambda x: x.permute(0, 2, 1)), (1, 3, 70000)),
    "permute_five_dims": (Function(lambda x: x.permute(0, 3, 1, 4, 2)), (2, 3, 4, 5, 6)),
    "conv1d": (nn.Conv1d(8, 16, 5, padding=2), (1, 8, 40)),
    "conv1d_batch_stride_4": (nn.Conv1d(8, 16, 9, stride=4, padding=4), (3, 8, 40)),
    "conv1d_audio": (nn.Conv1d(1, 8, 100, stride=10), (1, 1, 1000)),
    "conv1d_depthwise_stride_5": (nn.Conv1d(8, 8, 5, stride=5, groups=8), (1, 8, 40)),
    "pool1d": (nn.Sequential(nn.AvgPool1d(4), nn.MaxPool1d(3, 2, 1)), (2, 8, 40)),
    "conv3d": (nn.Conv3d(3, 8, 3, padding=1), (1, 3, 6, 8, 10)),
    "conv3d_batch_stride_2": (nn.Conv3d(3, 8, 3, padding=1, stride=2), (2, 3, 6, 8, 10)),
    "conv3d_dilation": (nn.Conv3d(3, 8, (2, 3, 3), dilation=(2, 1, 1)), (1, 3, 6, 8, 10)),
    "conv3d_groups": (nn.Conv3d(4, 4, 3, padding=1, groups=4), (1, 4, 6, 8, 10)),
    "conv3d_large_weights": (nn.Conv3d(32, 64, 3, padding=1), (1, 32, 4, 6, 6)),
    "conv_transpose3d": (nn.ConvTranspose3d(3, 4, 2, stride=2), (1, 3, 4, 4, 4)),
    "average3d_padded": (nn.AvgPool3d(3, 2, 1), (1, 4, 6, 8, 10)),
    "maximum3d_batch": (nn.MaxPool3d(3, 2, 1), (2, 4, 6, 8, 10)),
    "adaptive3d": (nn.AdaptiveAvgPool3d(1), (1, 4, 6, 8, 10)),
    "network3d": (nn.Sequential(nn.Conv3d(2, 4, 3, padding=1), nn.BatchNorm3d(4), nn.ReLU(), nn.MaxPool3d((1, 2, 2)),
                                nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(4, 3)), (1, 2, 6, 12, 12)),
    "linear_rank_3": (nn.Linear(32, 48), (2, 7, 32)),
    "linear_batch": (nn.Linear(32, 48), (4, 32)),
    "conv_batch": (nn.Conv2d(3, 8, 3, padding=1), (4, 3, 12, 12)),
    "conv_depthwise_batch": (nn.Conv2d(8, 8, 3, padding=1, groups=8), (4, 8, 12, 12)),
    "conv_depthwise_multiplier": (nn.Conv2d(8, 24, 3, padding=1, groups=8), (1, 8, 12, 12)),
    "conv_depthwise_multiplier_100": (nn.Conv2d(100, 200, 3, groups=100), (1, 100, 5, 5)),
    "conv_groups_batch": (nn.Conv2d(8, 8, 3, groups=2), (2, 8, 9, 9)),
    "pool_batch": (nn.Sequential(nn.MaxPool2d(2), nn.AvgPool2d(3, 2, 1)), (4, 8, 12, 12)),
    "softmax_batch": (nn.Softmax(-1), (4, 6, 40)),
    "layer_norm_batch": (nn.LayerNorm(16), (4, 5, 16)),
    "conv_65x1": (nn.Conv2d(3, 8, (65, 1)), (1, 3, 80, 4)),
    "conv_1x65": (nn.Conv2d(3, 8, (1, 65)), (1, 3, 4, 80)),
    "conv_100x3": (nn.Conv2d(2, 4, (100, 3)), (1, 2, 120, 6)),
    "conv_70x70": (nn.Conv2d(2, 4, 70), (1, 2, 80, 80)),
    "conv_70x1_large_weights": (nn.Conv2d(32, 64, (70, 1)), (1, 32, 72, 4)),
    "conv_depthwise_80x1": (nn.Conv2d(4, 4, (80, 1), groups=4), (1, 4, 100, 4)),
    "conv_stride_5": (nn.Conv2d(3, 8, 3, stride=5), (1, 3, 33, 33)),
    "conv_depthwise_stride_4": (nn.Conv2d(8, 8, 3, stride=4, groups=8), (1, 8, 33, 33)),
    "conv_transpose_stride_3": (nn.ConvTranspose2d(4, 6, 3, stride=3), (1, 4, 6, 6)),
    "conv_transpose_stride_1": (nn.ConvTranspose2d(4, 6, 3), (1, 4, 6, 6)),
    "conv_transpose_stride_2": (nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1), (1, 4, 6, 6)),
    "conv_transpose_batch": (nn.ConvTranspose2d(4, 6, 2, stride=2), (3, 4, 5, 7)),
    "conv_transpose_stride_4": (nn.ConvTranspose2d(4, 6, 6, stride=4, padding=1, output_padding=1), (1, 4, 6, 6)),
    "maximum_stride_5": (nn.MaxPool2d(5), (1, 8, 30, 30)),
    "maximum_9x9_stride_4": (nn.MaxPool2d(9, 4, 4), (1, 8, 33, 33)),
    "average_stride_4": (nn.AvgPool2d(4), (1, 8, 32, 32)),
    "average_10x10_padded": (nn.AvgPool2d(10, 5, 5), (1, 8, 40, 40)),
    "average_10x10_without_padding": (padded(10, 5, 5), (1, 8, 40, 40)),
    "average_300x2": (nn.AvgPool2d((300, 2)), (1, 4, 300, 8)),
    "average_256x400": (nn.AvgPool2d((256, 400)), (1, 3, 256, 400)),
    "upsample_3": (nn.Upsample(scale_factor=3), (1, 4, 8, 8)),
    "upsample_4": (nn.Upsample(scale_factor=4), (1, 4, 8, 8)),
    "bilinear_2": (nn.Upsample(scale_factor=2, mode="bilinear"), (1, 4, 8, 6)),
    "bilinear_2_batch": (nn.Upsample(scale_factor=2, mode="bilinear"), (2, 4, 5, 6)),
    "bilinear_4": (nn.Upsample(scale_factor=4, mode="bilinear"), (1, 4, 8, 8)),
    "bilinear_half": (nn.Upsample(scale_factor=0.5, mode="bilinear"), (1, 4, 8, 8)),
    "bilinear_3_for_2": (nn.Upsample(size=(12, 9), mode="bilinear"), (1, 4, 8, 6)),
    "tril": (Function(torch.tril), (2, 3, 6, 6)),
    "masked_fill_of_channels": (Function(lambda x: x.masked_fill(torch.arange(8) % 3 == 0, -1.5)), (2, 5, 8)),
    "masked_softmax": (Function(lambda x: torch.softmax(x.masked_fill(torch.ones(12, 12).triu(1).bool(), -1e9), -1)), (2, 4, 12, 12)),
}
QUICK = {"mean_256x400", "mean_of_all", "permute_70000x3", "conv1d_batch_stride_4", "conv3d_batch_stride_2", "conv3d_large_weights",
         "average3d_padded", "linear_rank_3", "conv_batch", "conv_groups_batch", "conv_65x1", "conv_depthwise_80x1", "conv_stride_5",
         "conv_depthwise_stride_4", "conv_transpose_stride_3", "maximum_9x9_stride_4", "average_10x10_without_padding", "average_256x400",
         "upsample_3", "bilinear_2", "image_320x480", "masked_softmax"}


def pytest_generate_tests(metafunc):
    everything = metafunc.config.getoption("--all-models")
    modes = [(t, "int8") for t in (["ethos-u55-128", "ethos-u65-256", "ethos-u85-256"] if everything else ["ethos-u55-128"])]
    modes += [("ethos-u55-128", "int16x8")] if everything else []
    names = [name for name in CASES if everything or name in QUICK]
    metafunc.parametrize("name,target,scheme", [(n, t, s) for n in names for t, s in modes])


@pytest.fixture(scope="module")
def call(tosaic):
    def run(*arguments):
        done = subprocess.run([tosaic, *map(str, arguments)], capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        executorch_programs.check_written(arguments, tosaic, done.stderr)
    return run


def test_equals_the_tosa_program(name, target, scheme, call, tmp_path):
    torch.manual_seed(len(name))
    module, shape = CASES[name]
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.1)
    example = torch.randn(*shape) + 1  # so that means are not all zero
    program = torch.export.export(module.eval(), (example,), strict=False)
    torch.export.save(program, tmp_path / "model.pt2")
    np.savez(tmp_path / "samples.npz", **{program.graph_signature.user_inputs[0]: np.stack([example.numpy(), 0.7 * example.numpy()])})
    np.save(tmp_path / "input.npy", example.numpy())
    outputs = []
    for made_for, extra in ((target, ["--require-full-delegation"]), ("tosa-int", [])):
        call("compile", tmp_path / "model.pt2", "--target", made_for, "--quantize", scheme, "--calibrate", tmp_path / "samples.npz",
             "-o", tmp_path / f"{made_for}.pte", *extra)
        call("run", tmp_path / f"{made_for}.pte", "--input", tmp_path / "input.npy", "--output-dir", tmp_path / made_for)
        outputs.append(np.load(tmp_path / made_for / "output_0.npy"))
    np.testing.assert_array_equal(*outputs)
    assert np.abs(outputs[0]).max() > 0
