# SPDX-License-Identifier: Apache-2.0
"""Training with quantisation (QAT): the last epochs see rounded weights and activations, and the net gets used to them.

    python examples/qat/qat.py [SEED]        # PyTorch, torchao, ExecuTorch, scikit-learn; some minutes

An autoencoder makes 16 numbers of a handwritten digit, and a digit of these. Printed is how near it comes, on digits that it
was not trained on (PSNR in dB, more is better): as floats, quantised after training (PTQ: by tosaic, and by PT2E), and with
QAT; with weights of 8 and of 4 bits. All have seen as many training images. Integers are what the compiled artifact gives.
"""
import copy
import sys

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torchao.quantization.pt2e import disable_observer, move_exported_model_to_eval
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e, prepare_qat_pt2e

import tosaic
from tosaic.executorch import (TOSAQuantizer, calibrate, get_symmetric_a8w4_quantization_config,
                               get_symmetric_quantization_config)

TARGET = "tosa-int"  # ethos-u85-256 gives the same integers
WIDTHS = {"int8": ({}, get_symmetric_quantization_config),
          "int8, weights int4": ({"weights": "int4"}, get_symmetric_a8w4_quantization_config)}


def data():
    """Images of 8 x 8 pixels: 1200 for training and calibration, 597 to measure."""
    pixels = torch.tensor(load_digits().data / 16, dtype=torch.float32).reshape(-1, 1, 8, 8)
    return pixels[torch.randperm(len(pixels), generator=torch.Generator().manual_seed(0))].split([1200, 597])


def net():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
        nn.Conv2d(16, 16, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.Flatten(), nn.Linear(256, 16),
        nn.Linear(16, 256, bias=False), nn.BatchNorm1d(256), nn.ReLU(), nn.Unflatten(1, (16, 4, 4)),
        nn.ConvTranspose2d(16, 16, 2, stride=2), nn.ReLU(), nn.Conv2d(16, 1, 3, padding=1), nn.Sigmoid())


def train(model, images, epochs, rate):
    """With a rate that falls to nothing, or rounded weights would jump to the end."""
    optimizer = torch.optim.Adam(model.parameters(), rate)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1, 0.01, epochs * len(images) // 50)
    for _ in range(epochs):
        for batch in torch.randperm(len(images)).split(50):
            optimizer.zero_grad()
            F.mse_loss(model(images[batch]), images[batch]).backward()
            optimizer.step()
            schedule.step()


def finished(model, images, freeze):
    """The last epochs. In the very last, statistics and ranges stand still, as they will on the device."""
    train(model, images, 14, 3e-3)
    freeze(model)
    train(model, images, 6, 1e-3)
    return model


def freeze_quantised(model):
    move_exported_model_to_eval(model)  # batch norms
    model.apply(disable_observer)  # ranges


def prepared(model, prepare, config, images):
    """The exported program, with observers (PTQ) or with rounding that can be trained (QAT), for any number of images."""
    program = torch.export.export(model, (images[:2],), dynamic_shapes=({0: torch.export.Dim.DYNAMIC},))
    return prepare(program.module(), TOSAQuantizer(TARGET).set_global(config))


def main():
    torch.set_num_threads(1)  # faster, for so small a net
    torch.manual_seed(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
    images, held_out = data()
    one, samples = images[:1], [(image[None],) for image in images[:64]]

    def psnr(run):
        with torch.no_grad():
            return -10 * torch.log10(torch.stack([F.mse_loss(run(x[None]), x[None]) for x in held_out]).mean())

    def compiled(model):
        return tosaic.compile(torch.export.export(convert_pt2e(model), (one,)), target=TARGET)

    model = net()
    train(model, images, 40, 1e-2)
    in_float = finished(copy.deepcopy(model), images, nn.Module.eval)
    print(f"{'float':20}{psnr(in_float):6.2f} dB", flush=True)
    for name, (options, config) in WIDTHS.items():
        ptq = tosaic.compile(in_float, one, target=TARGET, calibration=samples, **options)
        pt2e = compiled(calibrate(prepared(in_float, prepare_pt2e, config(is_qat=False), images), samples))
        qat = prepared(copy.deepcopy(model), prepare_qat_pt2e, config(is_qat=True), images)
        qat = compiled(finished(qat, images, freeze_quantised))
        print(f"{name:20}{psnr(ptq.run):6.2f} dB PTQ {psnr(pt2e.run):6.2f} dB PTQ by PT2E {psnr(qat.run):6.2f} dB QAT",
              flush=True)


if __name__ == "__main__":
    main()
