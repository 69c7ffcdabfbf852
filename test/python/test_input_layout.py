# SPDX-License-Identifier: Apache-2.0
"""`input_layout="nhwc"`: images as cameras give them. The same results, and no transposition before the first layer."""
import subprocess

import numpy
import pytest
import torch
from torch import nn
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

import tosaic
from tosaic.executorch.quantizer import TOSAQuantizer, get_symmetric_quantization_config

SHAPE = (2, 3, 12, 16)
TO_NHWC = (0, 2, 3, 1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 4, 3, stride=2))
        self.head = nn.Linear(4, 5)

    def forward(self, image):
        return self.head(self.body(image).mean((2, 3)))


class TwoImages(nn.Module):
    """A rank-4 input that is an image, one that is none, and one of another rank."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)

    def forward(self, image, mask, bias):
        return self.conv(image) * mask + bias


@pytest.fixture(scope="module")
def net():
    torch.manual_seed(0)
    return Net().eval()


@pytest.fixture(scope="module")
def samples():
    torch.manual_seed(1)
    return [torch.rand(SHAPE) for _ in range(8)]


def nhwc(x):
    return x.permute(TO_NHWC).contiguous()


def transpositions(artifact):
    """How many the graph that becomes the payload has before its first convolution."""
    return artifact.summary.printed.partition("tosa.conv2d")[0].count("tosa.transpose")


@pytest.mark.parametrize("target", ["tosa-fp", "vgf", "vulkan"])
def test_floats(net, samples, target):
    x = samples[0]
    usual = tosaic.compile(net, x, target, print_after="tidy")
    ours = tosaic.compile(net, x, target, input_layout="nhwc", print_after="tidy")
    assert transpositions(usual) == 1 and transpositions(ours) == 0
    assert torch.equal(ours.run(nhwc(x)), usual.run(x))
    torch.testing.assert_close(ours.run(nhwc(x)), net(x), rtol=1e-5, atol=1e-5)
    with pytest.raises(tosaic.Error, match="run.input"):
        ours.run(x)


@pytest.mark.parametrize("options", [{}, {"quantize": "int16x8"}, {"io": "quantized"}], ids=str)
def test_integers(net, samples, options):
    """Calibrated on the same images, it is the same program but for the order."""
    usual = tosaic.compile(net, samples[0], "tosa-int", calibration=samples, print_after="tidy", **options)
    ours = tosaic.compile(net, samples[0], "tosa-int", calibration=[nhwc(x) for x in samples], input_layout="nhwc",
                          print_after="tidy", **options)
    assert transpositions(usual) == 1 and transpositions(ours) == 0
    for x in samples[:2]:
        given = torch.clamp(torch.round(x * 255) - 128, -128, 127).to(torch.int8) if options.get("io") else x
        assert torch.equal(ours.run(nhwc(given)), usual.run(given))


def test_pt2e(net, samples):
    """The integers are moved, as PT2E's conversions of the input come first."""
    prepared = prepare_pt2e(torch.export.export(net, (samples[0],)).module(),
                            TOSAQuantizer("TOSA-1.0+INT").set_global(get_symmetric_quantization_config()))
    for x in samples:
        prepared(x)
    program = torch.export.export(convert_pt2e(prepared), (samples[0],))
    usual = tosaic.compile(program, target="tosa-int", print_after="tidy")
    ours = tosaic.compile(program, target="tosa-int", input_layout="nhwc", print_after="tidy")
    assert transpositions(ours) == 0
    assert ours.summary.delegates == usual.summary.delegates == 1
    for x in samples[:2]:
        assert torch.equal(ours.run(nhwc(x)), usual.run(x))


@pytest.mark.parametrize("target", ["ethos-u55-128", "ethos-u85-256"])
def test_ethos_u(net, samples, target):
    usual = tosaic.compile(net, samples[0][:1], target, calibration=[x[:1] for x in samples])
    ours = tosaic.compile(net, samples[0][:1], target, calibration=[nhwc(x[:1]) for x in samples], input_layout="nhwc")
    assert torch.equal(ours.run(nhwc(samples[3][:1])), usual.run(samples[3][:1]))


def test_one_of_several_inputs():
    torch.manual_seed(2)
    model = TwoImages().eval()
    x = torch.randn(1, 3, 8, 8), torch.randn(1, 1, 6, 6), torch.randn(6)
    ours = tosaic.compile(model, x, "tosa-fp", input_layout="image=nhwc")
    torch.testing.assert_close(ours.run(nhwc(x[0]), x[1], x[2]), model(*x), rtol=1e-5, atol=1e-5)
    both = tosaic.compile(model, x, "tosa-fp", input_layout="nhwc")
    torch.testing.assert_close(both.run(nhwc(x[0]), nhwc(x[1]), x[2]), model(*x), rtol=1e-5, atol=1e-5)
    but_one = tosaic.compile(model, x, "tosa-fp", input_layout=["nhwc", "mask=nchw"])
    assert torch.equal(but_one.run(nhwc(x[0]), x[1], x[2]), ours.run(nhwc(x[0]), x[1], x[2]))


def test_sizes_that_vary():
    torch.manual_seed(3)
    model = Net().eval()
    size = torch.export.Dim("size", min=8, max=32)
    ours = tosaic.compile(model, torch.rand(1, 3, 16, 16), "vulkan", dynamic_shapes=({2: size},), input_layout="nhwc")
    for height in (9, 20):
        x = torch.rand(1, 3, height, 16)
        torch.testing.assert_close(ours.run(nhwc(x)), model(x), rtol=1e-5, atol=1e-5)
    numbers = tosaic.compile(model, torch.rand(1, 3, 16, 16), "tosa-fp", dynamic_shapes=({2: size},), input_layout="nhwc",
                             sizes="image.1=10")
    x = torch.rand(1, 3, 10, 16)
    torch.testing.assert_close(numbers.run(nhwc(x)), model(x), rtol=1e-5, atol=1e-5)


def test_other_questions(net, samples):
    """What looks at samples takes them in the same order."""
    given = {"calibration": [nhwc(x) for x in samples], "input_layout": "nhwc"}
    assert tosaic.compare(net, samples[0], "tosa-int", **given).outputs[0]["accumulated"]["snr_db"] > 20
    assert tosaic.tune(net, samples[0], "tosa-int", budget="snr>=10", **given).points
    assert "image" in tosaic.plan(net, samples[0], "tosa-int", input_layout="nhwc")
    assert all(v.taken for v in tosaic.supports(net, samples[0], "tosa-int", input_layout="nhwc"))
    assert tosaic.explain(net, samples[0], "tosa-int", input_layout="nhwc").nodes
    assert tosaic.compile(net, samples[0], "tosa-int", **given).compare([nhwc(x) for x in samples[:2]]).outputs[0]["accumulated"]["snr_db"] > 20
    swept = tosaic.sweep(net, samples[0], targets=["tosa-int"], precisions=["int8"], **given)
    assert not swept.rows[0]["problem"]


def test_command_line(net, samples, tmp_path):
    torch.export.save(torch.export.export(net, (samples[0],)), tmp_path / "net.pt2")
    numpy.savez(tmp_path / "samples.npz", image=numpy.stack([nhwc(x).numpy() for x in samples]))
    numpy.save(tmp_path / "x.npy", nhwc(samples[0]).numpy())

    def tool(*words):
        done = subprocess.run(["tosaic", *words], cwd=tmp_path, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    layout = ["--target", "tosa-int", "--calibrate", "samples.npz", "--input-layout", "nhwc"]
    assert tool("compile", "net.pt2", *layout, "-o", "net.pte")[0] == 0
    assert tool("run", "net.pte", "--input", "x.npy", "--output-dir", ".")[0] == 0
    assert numpy.abs(numpy.load(tmp_path / "output_0.npy") - net(samples[0]).detach().numpy()).max() < 0.05
    for command in (["compare", "net.pt2", *layout], ["tune", "net.pt2", *layout, "--budget", "snr>=10"],
                    ["report", "net.pt2", *layout, "-o", "net.html"],
                    ["evaluate", "net.pte", "--data", "samples.npz", "--float", "net.pt2", "--input-layout", "nhwc"]):
        code, said = tool(*command)
        assert code == 0, said
    code, said = tool("evaluate", "net.pte", "--data", "samples.npz", "--float", "net.pt2")
    assert code == 1 and "error[" in said


def test_the_samples_of_a_file(net, samples, tmp_path):
    """What a .pt2 holds as examples is turned with the input."""
    torch.export.save(torch.export.export(net, (samples[0],)), tmp_path / "net.pt2")
    with pytest.warns(tosaic.CompileWarning, match="stored"):
        ours = tosaic.compile(tmp_path / "net.pt2", target="tosa-int", input_layout="nhwc")
    with pytest.warns(tosaic.CompileWarning, match="stored"):
        usual = tosaic.compile(tmp_path / "net.pt2", target="tosa-int")
    assert torch.equal(ours.run(nhwc(samples[0])), usual.run(samples[0]))


def test_a_program_has_one_layout(net, samples):
    """Asked for twice it is the same; another one would turn the images once more."""
    program = tosaic.Program.of(net, samples[0]).with_input_layout("nhwc")
    assert tosaic.compile(program, target="tosa-fp", input_layout="nhwc").run(nhwc(samples[0])).shape == (2, 5)
    with pytest.raises(tosaic.Error, match="option.layout.*another input layout already: nhwc"):
        tosaic.compile(program, target="tosa-fp", input_layout="image=nhwc")


class Counter(nn.Module):
    def forward(self, x):
        x.add_(1)
        return x * 2


@pytest.mark.parametrize("model, x, layout, words", [
    (Net(), torch.rand(SHAPE), "nwhc", "'nwhc' of --input-layout is no layout"),
    (Net(), torch.rand(SHAPE), "x=nhwc", "no such input"),
    (nn.Linear(3, 2), torch.rand(4, 3), "nhwc", "no input of the program has four dimensions"),
    (nn.Linear(3, 2), torch.rand(4, 3), "input=nhwc", "the input is 4x3xf32"),
    (Counter(), torch.rand(SHAPE), "nhwc", "the program writes its input 'x'"),
], ids=["layout", "name", "none", "rank", "written"])
def test_what_cannot_be(model, x, layout, words):
    with pytest.raises(tosaic.Error, match="option.layout") as raised:
        tosaic.compile(model.eval(), x, "tosa-fp", input_layout=layout)
    assert words in str(raised.value) and raised.value.help
