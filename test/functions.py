# SPDX-License-Identifier: Apache-2.0
"""A function as the module that torch.export takes."""
from torch import nn


class Of(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)
