# SPDX-License-Identifier: Apache-2.0
"""A custom operator in TOSA's operators: what PyTorch cannot say. bit_width(x) is the number of bits that a whole number
needs; TOSA counts leading zeros, PyTorch has no such operator.

    python examples/custom_operator/bit_width.py        # writes bit_width.pte
"""
import torch

import tosaic
from tosaic import tosa


@torch.library.custom_op("example::bit_width", mutates_args=())
def bit_width(x: torch.Tensor) -> torch.Tensor:
    return torch.tensor([v.bit_length() for v in x.flatten().tolist()], dtype=torch.int32).reshape(x.shape)


@bit_width.register_fake
def _(x):
    return torch.empty_like(x)


@tosaic.lowering(bit_width)
def lower_bit_width(x):
    return 32 - tosa.clz(x)  # among PyTorch's operators


class Loudness(torch.nn.Module):
    """Of whole numbers, as a recorder gives them: rough logarithms."""

    def forward(self, sound):
        return bit_width(sound * sound).amax(1)


def main():
    model = Loudness()
    sound = torch.randint(0, 20_000, (2, 64), dtype=torch.int32)
    print("by itself:", lower_bit_width(torch.tensor([0, 1, 255, 256], dtype=torch.int32)).tolist())  # it computes here, too
    artifact = tosaic.compile(model, sound, target="ethos-u85-256")
    print(artifact)
    assert torch.equal(artifact.run(sound), model(sound))
    artifact.save("bit_width.pte")


if __name__ == "__main__":
    main()
