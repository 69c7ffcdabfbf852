# SPDX-License-Identifier: Apache-2.0
"""Builds the test models into a folder, from seeds only. Files that exist are kept.

    python make_models.py --output build/models [--quick | --only NAME ...]

For each model NAME:
    NAME.pt2             torch.export, as a user would save it
    NAME_decomposed.pt2  the same after run_decompositions()
    NAME_pt2e.pt2        quantised by PT2E with ExecuTorch's TOSAQuantizer (symmetric, per channel)
    NAME_samples.npz     calibration: one array per input, named after it, samples stacked along a new first axis
    NAME_expected.npz    input_N, float_N (eager) and pt2e_N (eager, quantised), stacked the same way
"""
import argparse
import pathlib
import sys
import time
import warnings

warnings.filterwarnings("ignore")
import numpy as np
import torch
from torch import nn

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from mobilenet import MobileNetV2, MobileNetV3Small
from model_names import ALL, QUICK
from resnet import ResNet18
from small_nets import AutoEncoder, KeywordSpotting, UNet
from vit import TinyViT

SAMPLES = 4


def pictures(count, channels, height, width):
    """Smooth random fields, four octaves, standardised: closer to normalised photographs than white noise is."""
    field = torch.zeros(count, channels, height, width)
    for octave in range(4):
        grid = torch.randn(count, channels, 2 << octave, 2 << octave)
        field += nn.functional.interpolate(grid, (height, width), mode="bicubic") / (1.5 ** octave)
    field += 0.05 * torch.randn_like(field)
    return (field - field.mean()) / field.std()


# name: (model, one batch of inputs of the given size)
MODELS = {
    "mobilenet_v2": (MobileNetV2, lambda n: pictures(n, 3, 224, 224)),
    "mobilenet_v3_small": (MobileNetV3Small, lambda n: pictures(n, 3, 224, 224)),
    "resnet18": (ResNet18, lambda n: pictures(n, 3, 224, 224)),
    "keyword_spotting": (KeywordSpotting, lambda n: 2 * pictures(n, 1, 49, 10)),
    "auto_encoder": (AutoEncoder, lambda n: 3 * pictures(n, 1, 5, 128).reshape(n, 640)),
    "unet": (UNet, lambda n: pictures(n, 3, 64, 64)),
    "tiny_vit": (TinyViT, lambda n: pictures(n, 3, 32, 32)),
}


def populate(model, make):
    """Gives an untrained net the statistics of a trained one: batch norms know their inputs, outputs differ."""
    norms = [m for m in model.modules() if isinstance(m, (nn.BatchNorm1d, nn.BatchNorm2d))]
    for norm in norms:
        norm.momentum = None  # a plain average over the passes below
        nn.init.uniform_(norm.weight, 0.6, 1.4)
        nn.init.normal_(norm.bias, 0, 0.2)
    for layer in model.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.kaiming_normal_(layer.weight, mode="fan_in", nonlinearity="relu")
    last = [m for m in model.modules() if isinstance(m, nn.Linear)][-1:]
    for layer in last:
        nn.init.normal_(layer.weight, 0, 1.5 / layer.in_features ** 0.5)
    if norms:
        model.train()
        with torch.no_grad():
            for _ in range(3):
                model(make(8))
    return model.eval()


def quantise(program, batches):
    from executorch.backends.arm.quantizer import TOSAQuantizer, get_symmetric_quantization_config
    from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    quantizer = TOSAQuantizer(TosaCompileSpec("TOSA-1.0+INT"))
    quantizer.set_global(get_symmetric_quantization_config(is_per_channel=True))
    prepared = prepare_pt2e(program.module(check_guards=False), quantizer)
    for batch in batches:
        prepared(*batch)
    return convert_pt2e(prepared)


def stack(outputs):
    return torch.cat([o[None] for o in outputs]).numpy()


def write(name, program, module, samples, inputs, output):
    """All files of one model. `inputs` and `samples` are lists of batches, one tuple of tensors each."""
    names = [s.arg.name for s in program.graph_signature.input_specs if s.kind == torch.export.graph_signature.InputKind.USER_INPUT]
    torch.export.save(program, output / f"{name}.pt2")
    torch.export.save(program.run_decompositions(), output / f"{name}_decomposed.pt2")
    np.savez(output / f"{name}_samples.npz", **{n: stack(values) for n, values in zip(names, zip(*samples))})
    quantised = quantise(program, samples)
    torch.export.save(torch.export.export(quantised, inputs[0]), output / f"{name}_pt2e.pt2")
    expected = {f"input_{i}": stack(values) for i, values in enumerate(zip(*inputs))}
    for kind, model in (("float", module), ("pt2e", quantised)):
        results = [model(*batch) for batch in inputs]
        results = [r if isinstance(r, (tuple, list)) else (r,) for r in results]
        expected |= {f"{kind}_{i}": stack(values) for i, values in enumerate(zip(*results))}
    np.savez(output / f"{name}_expected.npz", **expected)  # last: its presence says that the set is whole


def make(name, output):
    build, inputs = MODELS[name]
    torch.manual_seed(sum(map(ord, name)))
    module = populate(build(), inputs)
    batches = [(inputs(1),) for _ in range(2 * SAMPLES)]
    with torch.no_grad():
        program = torch.export.export(module, batches[0])
        write(name, program, module, batches[:SAMPLES], batches[SAMPLES:SAMPLES + 2], output)


def make_digits(output):
    digits = HERE.parent.parent / "examples" / "digits"
    program = torch.export.load(digits / "digits.pt2")
    samples = np.load(digits / "digits_samples.npz")
    test = np.load(digits / "digits_test.npz")
    with torch.no_grad():
        write("digits", program, program.module(), [(torch.from_numpy(s),) for s in samples["image"]],
              [(torch.from_numpy(s),) for s in test["image"][:8]], output)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", type=pathlib.Path, required=True)
    parser.add_argument("--only", nargs="*", default=ALL)
    parser.add_argument("--quick", dest="only", action="store_const", const=QUICK, help="those of `make test`")
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    for name in arguments.only:
        if (arguments.output / f"{name}_expected.npz").exists():
            continue
        start = time.perf_counter()
        make_digits(arguments.output) if name == "digits" else make(name, arguments.output)
        print(f"{name}: {time.perf_counter() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main()
