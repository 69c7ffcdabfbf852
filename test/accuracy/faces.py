# SPDX-License-Identifier: Apache-2.0
"""MTCNN's three nets, which find faces: P on 12 x 12 pixels, R on 24 x 24, O on 48 x 48. Weights: PyPI's facenet-pytorch. Pictures:
scikit-image's 100 faces (a part of LFW) and 100 parts of pictures without one. The task: a face, or not?"""
import numpy as np
import torch
from torch import nn

from model import Model
from packages import package

# For each net: channels, kernel and pooling of its convolutions, its hidden layer, and its results in order.
NETS = {"pnet": ([(10, 3, 2, 2), (16, 3, 0, 0), (32, 3, 0, 0)], None, ["conv4_2", "softmax4_1"], 12),
        "rnet": ([(28, 3, 3, 2), (48, 3, 3, 2), (64, 2, 0, 0)], ("4", 576, 128), ["dense5_2", "softmax5_1"], 24),
        "onet": ([(32, 3, 3, 2), (64, 3, 3, 2), (64, 3, 2, 2), (128, 2, 0, 0)], ("5", 1152, 256),
                 ["dense6_2", "dense6_3", "softmax6_1"], 48)}
WIDTHS = {"1": 2, "2": 4, "3": 10}  # of heads: face or not, the box, the eyes and so on


class Net(nn.Module):
    """Its parts have the names of the weights."""

    def __init__(self, name):
        super().__init__()
        convolutions, self.hidden, self.heads, _ = NETS[name]
        last, self.pools = 3, []
        for i, (channels, kernel, window, stride) in enumerate(convolutions, 1):
            setattr(self, f"conv{i}", nn.Conv2d(last, channels, kernel))
            setattr(self, f"prelu{i}", nn.PReLU(channels))
            self.pools.append(nn.MaxPool2d(window, stride, ceil_mode=True) if window else nn.Identity())
            last = channels
        if self.hidden:
            i, wide, last = self.hidden
            setattr(self, f"dense{i}", nn.Linear(wide, last))
            setattr(self, f"prelu{i}", nn.PReLU(last))
        for head in self.heads:
            key = head.replace("softmax", "dense" if self.hidden else "conv")
            width = WIDTHS[head[-1]]
            setattr(self, key, nn.Linear(last, width) if self.hidden else nn.Conv2d(last, width, 1))

    def forward(self, x):
        for i, pool in enumerate(self.pools, 1):
            x = pool(getattr(self, f"prelu{i}")(getattr(self, f"conv{i}")(x)))
        if self.hidden:
            i = self.hidden[0]
            x = x.permute(0, 3, 2, 1).flatten(1)  # as the weights came from another framework
            x = getattr(self, f"prelu{i}")(getattr(self, f"dense{i}")(x))
        of = lambda head: getattr(self, head.replace("softmax", "dense" if self.hidden else "conv"))(x)
        return tuple(torch.softmax(of(head), 1) if "softmax" in head else of(head) for head in self.heads)


def calls(rng, indices, size):
    """Faces have indices below 100."""
    pictures = torch.from_numpy(np.load(package("scikit-image") / "skimage/data/lfw_subset.npy")).float()[indices, None]
    pictures = nn.functional.interpolate(pictures, (size, size), mode="bilinear", antialias=True, align_corners=False)
    light = torch.from_numpy(rng.uniform(0.7, 1, (len(indices), 1, 1, 1)).astype(np.float32))
    return [(p,) for p in ((pictures * light * 255 - 127.5) / 128).expand(-1, 3, -1, -1).contiguous().split(1)]


def model(name, rng):
    net = Net(name)
    net.load_state_dict(torch.load(package("facenet-pytorch") / f"facenet_pytorch/data/{name}.pt"))
    order = rng.permutation(200)

    def score(results):
        return 100 * float(np.mean([(r[-1].reshape(2)[1] > 0.5) == (i < 100) for r, i in zip(results, order[40:])]))
    return Model(net, calls(rng, order[:40], NETS[name][-1]), calls(rng, order[40:], NETS[name][-1]), "right, %", score)
