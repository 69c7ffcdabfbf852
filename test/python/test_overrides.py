# SPDX-License-Identifier: Apache-2.0
"""Overrides: more bits for a call are never worth less."""
import pytest
import torch

import tosaic


class Levels(torch.nn.Module):
    """A function of the energies of a filter bank, as audio front ends have it."""

    def __init__(self, function):
        super().__init__()
        torch.manual_seed(1)
        self.filters, self.classes, self.function = torch.nn.Conv1d(1, 16, 16, 4), torch.nn.Conv1d(16, 8, 1), function

    def forward(self, sound):
        return self.classes(self.function((self.filters(sound) ** 2).mean(-1, keepdim=True) + 1e-6))


def sounds(count):
    return [(torch.randn(1, 1, 256) * 10 ** (-2 * torch.rand(1)),) for _ in range(count)]


@pytest.mark.parametrize("function", [torch.log, torch.sqrt])
def test_a_steep_function_of_16_bits_reads_what_has_them(function):
    model = Levels(function).eval()
    torch.manual_seed(0)
    calibration, test = sounds(24), sounds(24)
    with torch.no_grad():
        expected = torch.cat([model(*call) for call in test])

    def decibels(**options):
        artifact = tosaic.compile(model, calibration[0], calibration=calibration, **options)
        noise = torch.cat([artifact.run(*call) for call in test]) - expected
        return (10 * torch.log10(expected.square().sum() / noise.square().sum())).item()
    usual = decibels()
    assert usual > 35
    assert decibels(override=[f"aten.{function.__name__}: int16x8"]) > usual - 0.5
