# SPDX-License-Identifier: Apache-2.0
"""What users reported of ExecuTorch's Arm and Vulkan backends (numbers of its issues and pull requests): their models,
small where theirs were large, in ExecuTorch's flow with tosaic's import lines, and in tosaic's own."""
import pytest
import torch
import torch.nn.functional as F
from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower
from torch import nn
from torchao.quantization.pt2e import move_exported_model_to_eval, move_exported_model_to_train
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e, prepare_qat_pt2e

import tosaic
from tosaic.executorch import (EthosUCompileSpec, EthosUPartitioner, EthosUQuantizer, VulkanPartitioner,
                               get_symmetric_a16w8_quantization_config, get_symmetric_quantization_config)

pytestmark = pytest.mark.by_turns(2)


class Function(nn.Module):
    """A function of the input and of the given layers."""

    def __init__(self, function, *layers):
        super().__init__()
        self.function, self.layers = function, nn.ModuleList(layers)

    def forward(self, *inputs):
        return self.function(*inputs, *self.layers)


class PerChannelScale(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3))

    def forward(self, x):
        return x * self.scale.view(1, 3, 1, 1)


def yolo_attention(x, qkv, out):
    """A convolution split into heads, two products, positions of a depthwise convolution."""
    q, k, v = qkv(x).view(1, 2, 32, 16).split([8, 8, 16], dim=2)
    shares = ((q.transpose(-2, -1) @ k) * 8**-0.5).softmax(-1)
    return out((v @ shares.transpose(-2, -1)).view(1, 32, 4, 4))


INT8, INT16 = get_symmetric_quantization_config(), get_symmetric_a16w8_quantization_config()
ETHOS_U = {  # the issue: the model, its inputs, devices, configuration
    "20486": (Function(lambda x, conv: torch.cat([x, F.hardtanh(conv(x), 0.0, 6.0)], dim=3), nn.Conv2d(2, 2, 1, bias=False)),
              (2, 4, 4), ["ethos-u55-128"], INT8),
    "16779": (Function(lambda x: x.mean(dim=(1, 2), keepdim=True)), (256, 400), ["ethos-u55-128"], INT8),
    "20314": (Function(lambda x, conv, linear: x + linear(conv(x).moveaxis(1, -1)).moveaxis(-1, 1),
                       nn.Conv2d(8, 8, 7, padding=3, groups=8), nn.Linear(8, 8)), (8, 12, 12), ["ethos-u55-128"], INT8),
    "21585": (nn.Sequential(nn.Conv2d(3, 8, 3), nn.Upsample(scale_factor=2, mode="nearest"), nn.Conv2d(8, 8, 3)),
              (3, 10, 10), ["ethos-u55-128"], INT8),
    "17241": (nn.Sequential(nn.BatchNorm2d(3), nn.ReLU(), nn.Conv2d(3, 4, 3)), (3, 8, 8), ["ethos-u85-256"], INT8),
    "17241 without running statistics": (nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.BatchNorm2d(4, track_running_stats=False)),
                                         (3, 8, 8), ["ethos-u85-256"], INT8),
    "16090": (nn.GroupNorm(2, 8, affine=False), (8, 6, 6), ["ethos-u55-128"], INT8),
    "16739": (Function(lambda x, conv: conv(x).relu().permute(0, 2, 3, 1).reshape(1, 1, 7, 16, 28).permute(0, 1, 3, 2, 4),
                       nn.Conv2d(3, 16, 3, stride=2, padding=1)), (3, 28, 28), ["ethos-u55-128", "ethos-u85-256"], INT8),
    "16629": (nn.Sequential(nn.Conv2d(3, 8, 7, stride=2, padding=3, bias=False), nn.ReLU(inplace=True)), (3, 32, 32),
              ["ethos-u85-256"], INT16),
    "22966": (Function(yolo_attention, nn.Conv2d(32, 64, 1), nn.Conv2d(32, 32, 1)), (32, 4, 4), ["ethos-u85-256"], INT8),
    "12270": (Function(lambda x, gru, linear: linear(gru(x)[0]), nn.GRU(8, 12, batch_first=True, bidirectional=True),
                       nn.Linear(24, 5, bias=False)), (6, 8), ["ethos-u55-128", "ethos-u85-256"], INT8),
    "1396": (nn.Sequential(nn.Conv2d(2, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(),
                           nn.ConvTranspose2d(8, 4, 3, stride=2, padding=1, output_padding=1)), (2, 8, 8),
             ["ethos-u85-256"], INT8),
}


def snr(wanted, got):
    return (10 * torch.log10((wanted**2).sum() / ((wanted - got) ** 2).sum())).item()


def quantised(model, example, samples, quantizer, **how):
    prepared = prepare_pt2e(torch.export.export(model, example, **how).module(), quantizer)
    for sample in samples:
        prepared(*sample)
    return torch.export.export(convert_pt2e(prepared), example)


def left(edge):
    """What is not in a delegate, but for what quantises at its boundary."""
    calls = [str(n.target) for n in edge.exported_program().graph.nodes if n.op == "call_function"]
    return [c for c in calls if "getitem" not in c and "delegate" not in c and "quantize_per" not in c]


@pytest.mark.parametrize("issue, device", [(issue, device) for issue, case in ETHOS_U.items() for device in case[2]])
def test_of_ethos_u(issue, device):
    model, sizes, _, configuration = ETHOS_U[issue]
    torch.manual_seed(0)
    model = model.eval()
    samples = [(torch.randn(1, *sizes),) for _ in range(8)]
    wanted = model(*samples[0])
    spec = EthosUCompileSpec(device)
    program = quantised(model, samples[0], samples, EthosUQuantizer(spec).set_global(configuration))
    partitioner = EthosUPartitioner(spec)
    edge = to_edge_transform_and_lower(program, partitioner=[partitioner], compile_config=EdgeCompileConfig(_check_ir_validity=False))
    assert not left(edge), partitioner.refused
    theirs = tosaic.load(bytes(edge.to_executorch().buffer)).run(*samples[0])
    ours = tosaic.compile(model, samples[0], target=device, calibration=samples,
                          quantize="int16x8" if configuration is INT16 else "int8")
    assert ours.summary.delegated == ours.summary.pieces, ours.summary
    assert snr(wanted, theirs) > 20 and snr(wanted, ours.run(*samples[0])) > 20


def test_a_parameter_of_its_own_trains():
    """20148: the optimiser found no parameter."""
    torch.manual_seed(0)
    x, factors = torch.randn(1, 3, 4, 4), torch.tensor([0.5, 1.5, -2.0]).view(1, 3, 1, 1)
    spec = EthosUCompileSpec("ethos-u55-128")
    quantizer = EthosUQuantizer(spec).set_global(get_symmetric_quantization_config(is_qat=True))
    model = move_exported_model_to_train(prepare_qat_pt2e(torch.export.export(PerChannelScale(), (x,)).module(), quantizer))
    optimiser = torch.optim.SGD(model.parameters(), lr=1.0)
    for _ in range(40):
        optimiser.zero_grad()
        F.mse_loss(model(x), x * factors).backward()
        optimiser.step()
    (scale,) = model.parameters()
    assert (scale.view_as(factors) - factors)[0, :2].abs().max() < 0.05
    program = torch.export.export(convert_pt2e(move_exported_model_to_eval(model)), (x,))
    edge = to_edge_transform_and_lower(program, partitioner=[EthosUPartitioner(spec)],
                                       compile_config=EdgeCompileConfig(_check_ir_validity=False))
    assert not left(edge) and snr(program.module()(x), tosaic.load(bytes(edge.to_executorch().buffer)).run(x)) > 40


class ConvNextBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.depthwise, self.norm = nn.Conv2d(8, 8, 7, padding=3, groups=8), nn.LayerNorm(8, eps=1e-6)
        self.wide, self.narrow, self.scale = nn.Linear(8, 32), nn.Linear(32, 8), nn.Parameter(torch.full((8, 1, 1), 1e-6))

    def forward(self, x):
        y = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        return x + self.scale * self.narrow(F.gelu(self.wide(y))).permute(0, 3, 1, 2)


VULKAN = {  # the issue: the model, its inputs
    "14053": (ConvNextBlock(), torch.randn(1, 8, 12, 12)),
    "15490": (Function(lambda x, a, b: F.interpolate(b(F.max_pool2d(a(x), 2, 2, ceil_mode=True)).relu(), size=(9, 9),
                                                     mode="bilinear").sigmoid(),
                       nn.Conv2d(3, 8, 3, padding=2, dilation=2), nn.Conv2d(8, 1, 3, padding=1)), torch.randn(1, 3, 9, 9)),
    "16823": (Function(lambda x: torch.cat([x > 0, x.abs() > 1, x < -1], dim=1)), torch.randn(1, 3, 4)),
    "22322": (nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, norm_first=True), torch.randn(1, 7, 16)),
}


@pytest.mark.parametrize("issue", VULKAN)
def test_of_vulkan(issue):
    model, x = VULKAN[issue]
    model = model.eval()
    partitioner = VulkanPartitioner()
    edge = to_edge_transform_and_lower(torch.export.export(model, (x,)), partitioner=[partitioner])
    assert not left(edge), partitioner.refused
    torch.testing.assert_close(tosaic.load(bytes(edge.to_executorch().buffer)).run(x), model(x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("least, most", [(1, 8), (3, 5)])
def test_a_group_norm_whose_batch_varies(least, most):
    """16090: exported with a batch that varies, quantised, and compiled for the batch of the device."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.GroupNorm(2, 8, affine=False), nn.Softmax(1)).eval()
    x = torch.randn(4, 3, 8, 8)
    spec = EthosUCompileSpec("ethos-u85-256")
    program = quantised(model, (x,), [(x,), (x[:least],)], EthosUQuantizer(spec).set_global(INT8),
                        dynamic_shapes=({0: torch.export.Dim("batch", min=least, max=most)},))
    edge = to_edge_transform_and_lower(program, partitioner=[EthosUPartitioner(spec)],
                                       compile_config=EdgeCompileConfig(_check_ir_validity=False))
    assert not left(edge) and snr(model(x), tosaic.load(bytes(edge.to_executorch().buffer)).run(x)) > 20
