# SPDX-License-Identifier: Apache-2.0
"""`tosaic.executorch.calibrate`: between prepare_pt2e and convert_pt2e it keeps the mean of every layer's channels."""
import pytest
import torch
from torch import nn
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e, prepare_qat_pt2e

import tosaic
from tosaic.executorch import (TOSAQuantizer, calibrate, get_symmetric_a16w8_quantization_config,
                               get_symmetric_quantization_config)


class Mixed(nn.Module):
    """A convolution with a batch norm, one by channel, and a linear layer."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU6(),
                                  nn.Conv2d(8, 8, 3, stride=2, groups=8), nn.ReLU6())
        self.head = nn.Linear(8, 5)

    def forward(self, x):
        return self.head(self.body(x).mean((2, 3)))


def prepared(prepare=prepare_pt2e):
    torch.manual_seed(3)
    model = Mixed()
    model = model.train() if prepare is prepare_qat_pt2e else model.eval()
    samples = [(torch.randn(1, 3, 12, 12) + 1,) for _ in range(6)]
    quantizer = TOSAQuantizer("TOSA-1.0+INT").set_global(
        get_symmetric_quantization_config(is_qat=prepare is prepare_qat_pt2e))
    return prepare(torch.export.export(model, samples[0]).module(), quantizer), model, samples


def mean_error(model, converted, samples):
    with torch.no_grad():
        return torch.cat([converted(*s) - model(*s) for s in samples]).mean(0).abs().max().item()


def test_it_keeps_means():
    program, model, samples = prepared()
    usual = mean_error(model, convert_pt2e(calibrate(program, samples, bias_correction=False)), samples)
    program, model, samples = prepared()
    corrected = mean_error(model, convert_pt2e(calibrate(program, samples)), samples)
    step = 1 / 128  # of the result, which is in -1..1: no correction can see less
    assert corrected < max(usual / 2, step), (usual, corrected)


def test_a_tensor_stands_for_the_only_argument():
    a, _, samples = prepared()
    b, _, _ = prepared()
    x = samples[0][0]
    given = calibrate(a, [s[0] for s in samples]), calibrate(b, samples)
    assert torch.equal(convert_pt2e(given[0])(x), convert_pt2e(given[1])(x))


class Unequal(nn.Module):
    """Channels that are an eighth of the one before, and count as much."""

    def __init__(self, activation=nn.ReLU6):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), activation(), nn.Conv2d(8, 8, 3, groups=8),
                                  activation(), nn.Conv2d(8, 4, 1))
        with torch.no_grad():
            self.body[1].weight.copy_(0.125 ** (torch.arange(8) % 4))
            self.body[1].bias.copy_(0.3 * self.body[1].weight)
            self.body[3].bias.mul_(self.body[1].weight)
            self.body[5].weight.div_(self.body[1].weight[:, None, None])

    def forward(self, x):
        return self.body(x)


def unequal(config=None, count=8, model=None, quantizer=None):
    torch.manual_seed(4)
    model = (model or Unequal()).eval()
    samples = [(torch.randn(1, 3, 12, 12),) for _ in range(count)]
    quantizer = quantizer or TOSAQuantizer("TOSA-1.0+INT+int16").set_global(config or get_symmetric_quantization_config())
    return prepare_pt2e(torch.export.export(model, samples[0]).module(), quantizer), model, samples


def parameters(program):
    return {name: p.detach().clone() for name, p in program.named_parameters()}


def changed(program, before):
    return {name for name, p in program.named_parameters() if not torch.equal(p, before[name])}


def noise(model, converted, samples):
    with torch.no_grad():
        return sum(((converted(*s) - model(*s)) ** 2).sum() for s in samples).item()


@pytest.mark.parametrize("activation", [nn.ReLU, nn.ReLU6, lambda: nn.LeakyReLU(0.1)])
def test_small_channels_are_made_larger(activation):
    """And the floats stay what they were, bit for bit."""
    program, model, samples = unequal(model=Unequal(activation))
    with torch.no_grad():
        before = [program(*s) for s in samples]
        program, model, _ = unequal(model=model)
        known = parameters(program)
        program = calibrate(program, samples, bias_correction=False)
        assert len(changed(program, known)) == 5  # weight and bias of two, the weight of the last one
        assert all(torch.equal(program(*s), b) for s, b in zip(samples, before))
    finer = noise(model, convert_pt2e(program), samples)
    plain, _, _ = unequal(model=model)
    usual = noise(model, convert_pt2e(calibrate(plain, samples, bias_correction=False, equalization=False)), samples)
    assert finer < usual / 2, (finer, usual)


def test_programs_of_executorch_too():
    quantizers = pytest.importorskip("executorch.backends.arm.quantizer", reason="ExecuTorch is not installed")
    from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
    theirs = quantizers.TOSAQuantizer(TosaCompileSpec("TOSA-1.0+INT")).set_global(
        quantizers.get_symmetric_quantization_config(is_per_channel=True))
    program, model, samples = unequal(quantizer=theirs)
    known = parameters(program)
    assert len(changed(calibrate(program, samples, bias_correction=False), known)) == 5
    convert_pt2e(program)(*samples[0])


def test_channels_stay_where_it_would_not_help():
    for config, count in [(get_symmetric_quantization_config(), 7),  # samples that say too little
                          (get_symmetric_quantization_config(is_per_channel=False), 8),
                          (get_symmetric_a16w8_quantization_config(), 8)]:
        program, _, samples = unequal(config, count)
        known = parameters(program)
        assert not changed(calibrate(program, samples, bias_correction=False), known)
    program, _, samples = unequal()
    known = parameters(program)
    assert not changed(calibrate(program, samples, bias_correction=False, equalization=False), known)


class Recurrent(nn.Module):
    """One layer, called for each step."""

    def __init__(self):
        super().__init__()
        self.step = nn.Linear(4, 4)

    def forward(self, x):
        h = torch.zeros(1, 4)
        for i in range(6):
            h = torch.tanh(self.step(h) + x[:, i])
        return h


def test_a_bias_that_several_calls_have_is_corrected_once():
    torch.manual_seed(5)
    model, samples = Recurrent().eval(), [(torch.randn(1, 6, 4),) for _ in range(8)]
    quantizer = TOSAQuantizer("TOSA-1.0+INT").set_global(get_symmetric_quantization_config())
    program = prepare_pt2e(torch.export.export(model, samples[0]).module(), quantizer)
    calibrate(program, samples)
    off = model.step.weight.abs().amax(1, keepdim=True) / 127 / 2  # of a weight that is rounded, at most
    shift = program.get_parameter("step.bias") - model.step.bias  # |h| < 1
    assert shift.abs().gt(0).any() and torch.all(shift.abs() <= 4 * off[:, 0])


def test_the_model_stays_as_it_is():
    program, model, samples = unequal()
    known = parameters(model)
    before = parameters(program)
    assert changed(calibrate(program, samples), before)
    assert not changed(model, known)


def test_programs_of_varying_sizes():
    model = Unequal().eval()
    samples = [(torch.randn(n, 3, 12, 12),) for n in (2, 3, 4, 2, 3, 4, 2, 3)]
    batch = torch.export.Dim("batch", min=2, max=8)
    exported = torch.export.export(model, samples[0], dynamic_shapes=({0: batch},)).module()
    program = prepare_pt2e(exported, TOSAQuantizer("TOSA-1.0+INT").set_global(get_symmetric_quantization_config()))
    known = parameters(program)
    assert not changed(calibrate(program, samples, bias_correction=False), known)
    convert_pt2e(program)(*samples[1])


def test_a_sample_that_is_no_call_of_the_program():
    program, _, samples = unequal()
    with pytest.warns(tosaic.CompileWarning, match="channels stay"), pytest.raises(Exception, match="got|given|arg"):
        calibrate(program, [*samples, (torch.ones(1, 3, 12, 12), torch.ones(1))])


def test_bad_input():
    program, _, samples = prepared()
    with pytest.raises(tosaic.Error, match="calibrate.no-samples"):
        calibrate(program, [])
    program, _, samples = prepared(prepare_qat_pt2e)
    with pytest.raises(tosaic.Error, match="quantizer.program"):
        calibrate(program, samples)
