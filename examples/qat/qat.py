# SPDX-License-Identifier: Apache-2.0
"""Quantisation-aware training (QAT): a net learns on with rounded weights and activations, and gets used to the rounding.

    python examples/qat/qat.py [SEED]        # PyTorch, torchao, ExecuTorch, scikit-learn; two minutes

Prints the accuracy on held-out handwritten digits as floats, quantised after training (PTQ: by tosaic, and by PT2E), and
after QAT, with weights of 8 and of 4 bits. All but the first are what the compiled artifact gives.
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

TRAIN, TARGET = 1000, "tosa-int"  # ethos-u85-256 gives the same integers
CONFIGS = {"int8": ({}, get_symmetric_quantization_config),
           "int8, weights int4": ({"weights": "int4"}, get_symmetric_a8w4_quantization_config)}


def data():
    """1797 images of 8 x 8 pixels and their labels, shuffled; the first TRAIN are for training and calibration."""
    pixels, labels = load_digits(return_X_y=True)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    return torch.tensor(pixels / 16, dtype=torch.float32).reshape(-1, 1, 8, 8)[order], torch.tensor(labels)[order]


def layer(a, b, kernel, **how):
    return [nn.Conv2d(a, b, kernel, bias=False, **how), nn.BatchNorm2d(b), nn.ReLU()]


def net(width=8):
    """A thousand weights: so few that each one counts."""
    return nn.Sequential(
        *layer(1, width, 3, stride=2, padding=1), *layer(width, width, 3, padding=1, groups=width), *layer(width, 2 * width, 1),
        *layer(2 * width, 2 * width, 3, stride=2, padding=1, groups=2 * width), *layer(2 * width, 2 * width, 1),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2 * width, 10))


def train(model, images, labels, epochs, rate):
    optimizer = torch.optim.Adam(model.parameters(), rate)
    for _ in range(epochs):
        for batch in torch.randperm(TRAIN).split(50):
            optimizer.zero_grad()
            F.cross_entropy(model(images[batch]), labels[batch]).backward()
            optimizer.step()


def prepared(model, prepare, config, images):
    """The exported program with observers (PTQ) or with rounding that can be trained (QAT), for any number of images."""
    program = torch.export.export(model, (images[:2],), dynamic_shapes=({0: torch.export.Dim.DYNAMIC},))
    return prepare(program.module(), TOSAQuantizer(TARGET).set_global(config))


def trained_on(model, config, images, labels):
    model = prepared(copy.deepcopy(model).train(), prepare_qat_pt2e, config, images)
    train(model, images, labels, 8, 2e-3)
    # At last the statistics of batch norms and the ranges stand still, as they will on the device.
    move_exported_model_to_eval(model)
    model.apply(disable_observer)
    train(model, images, labels, 4, 5e-4)
    return model


def main():
    torch.manual_seed(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
    images, labels = data()
    one, samples = images[:1], [(image[None],) for image in images[:64]]

    def accuracy(run):
        return sum(int(run(x[None]).argmax()) == int(y) for x, y in zip(images[TRAIN:], labels[TRAIN:])) / len(labels[TRAIN:])

    def through_pt2e(model):
        return tosaic.compile(torch.export.export(convert_pt2e(model), (one,)), target=TARGET)

    model = net()
    train(model, images, labels, 20, 1e-2)
    train(model, images, labels, 10, 1e-3)
    model.eval()
    print(f"{'float':20}{accuracy(model):7.1%}")
    for name, (options, config) in CONFIGS.items():
        native = tosaic.compile(model, one, target=TARGET, calibration=samples, **options)
        after = through_pt2e(calibrate(prepared(model, prepare_pt2e, config(is_qat=False), images), samples))
        qat = through_pt2e(trained_on(model, config(is_qat=True), images, labels))
        print(f"{name:20}{accuracy(native.run):7.1%} PTQ {accuracy(after.run):7.1%} PTQ by PT2E {accuracy(qat.run):7.1%} QAT")


if __name__ == "__main__":
    main()
