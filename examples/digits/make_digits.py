# SPDX-License-Identifier: Apache-2.0
"""Trains the demo's model and writes its files beside this script. Needs PyTorch and scikit-learn; takes seconds.

    python make_digits.py

    digits.pt2           the exported program, as torch.export.save writes it
    digits_samples.npz   64 training images for calibration, one array named after the model's input
    digits_test.npz      the held-out images and labels
    digit.npy            one held-out image

The data are scikit-learn's handwritten digits: 1797 grey images of 8 x 8 pixels (UCI "Optical Recognition of
Handwritten Digits"). A fifth is held out before training and never used for calibration.
"""
import pathlib

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

HERE = pathlib.Path(__file__).resolve().parent
SITE_PACKAGES = pathlib.Path(torch.__file__).resolve().parent.parent
SEED = 7


class Residual(nn.Module):
    """Depthwise and pointwise convolution, added to the input."""

    def __init__(self, channels):
        super().__init__()
        self.depthwise = nn.Conv2d(channels, channels, 3, padding=1, groups=channels, bias=False)
        self.norm1 = nn.BatchNorm2d(channels)
        self.pointwise = nn.Conv2d(channels, channels, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels)
        self.act = nn.ReLU()

    def forward(self, x):
        y = self.act(self.norm1(self.depthwise(x)))
        y = self.norm2(self.pointwise(y))
        return self.act(x + y)


class Digits(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU())
        self.block1 = Residual(16)
        self.pool = nn.MaxPool2d(2)
        self.widen = nn.Sequential(nn.Conv2d(16, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU())
        self.block2 = Residual(32)
        self.average = nn.AdaptiveAvgPool2d(1)
        self.drop = nn.Dropout(0.1)
        self.classifier = nn.Linear(32, 10)

    def forward(self, image):
        x = self.block1(self.stem(image))
        x = self.block2(self.widen(self.pool(x)))
        x = torch.flatten(self.average(x), 1)
        return self.classifier(self.drop(x))


def load():
    images, labels = load_digits(return_X_y=True)
    images = (images / 16.0).astype(np.float32).reshape(-1, 1, 8, 8)
    return train_test_split(images, labels, test_size=0.2, random_state=SEED, stratify=labels)


def train(model, images, labels, epochs=30, batch=64):
    images, labels = torch.from_numpy(images), torch.from_numpy(labels)
    steps = epochs * -(-len(images) // batch)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.01, total_steps=steps)
    model.train()
    for _ in range(epochs):
        order = torch.randperm(len(images))
        for start in range(0, len(images), batch):
            chosen = order[start:start + batch]
            loss = nn.functional.cross_entropy(model(images[chosen]), labels[chosen], label_smoothing=0.05)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    model.eval()


def main():
    torch.manual_seed(SEED)
    train_images, test_images, train_labels, test_labels = load()
    model = Digits()
    train(model, train_images, train_labels)
    with torch.no_grad():
        right = (model(torch.from_numpy(test_images)).argmax(1).numpy() == test_labels).mean()
    print(f"{sum(p.numel() for p in model.parameters())} parameters, {right:.2%} of {len(test_labels)} test digits right")
    assert right > 0.97

    program = torch.export.export(model, (torch.from_numpy(test_images[:1]),))
    for node in program.graph.nodes:  # the places in the source, without the paths of this machine
        if trace := node.meta.get("stack_trace"):
            node.meta["stack_trace"] = trace.replace(f"{HERE}/", "").replace(f"{SITE_PACKAGES}/", "")
    torch.export.save(program, HERE / "digits.pt2")
    chosen = np.random.default_rng(SEED).choice(len(train_images), 64, replace=False)
    np.savez_compressed(HERE / "digits_samples.npz", image=train_images[chosen][:, None])
    np.savez_compressed(HERE / "digits_test.npz", image=test_images[:, None], label=test_labels.astype(np.int64))
    np.save(HERE / "digit.npy", test_images[:1])


if __name__ == "__main__":
    main()
