# SPDX-License-Identifier: Apache-2.0
"""A custom operator on an NPU. snake(x, a) = x + sin(a x)^2 / a is an activation that PyTorch does not have; somebody wrote
a fast kernel of it, so programs have it as one operator. `tosaic.lowering` says what it means.

    python examples/custom_operator/snake.py        # writes snake.pte
"""
import torch

import tosaic


@torch.library.custom_op("example::snake", mutates_args=())
def snake(x: torch.Tensor, a: float) -> torch.Tensor:
    return x + torch.sin(a * x) ** 2 / a  # imagine a kernel in C++ here


@snake.register_fake  # what torch.export goes by: types and sizes of the result
def _(x, a):
    return torch.empty_like(x)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.head = torch.nn.Conv1d(1, 8, 5, stride=2), torch.nn.Linear(8, 4)

    def forward(self, sound):
        return self.head(snake(self.conv(sound), 0.5).mean(2))


def main():
    torch.manual_seed(0)
    model, samples = Model().eval(), [torch.randn(1, 1, 64) for _ in range(32)]

    # tosaic does not know the operator: it would stay outside the delegate, and nothing there could run it.
    for node in tosaic.supports(model, "ethos-u85-256", samples[0]):
        print(f"{node.name:<10} {'taken' if node.taken else node.reason.reason}")

    # The same arguments, and PyTorch's functions. Integer targets quantise each of the calls.
    @tosaic.lowering("example::snake")
    def lower_snake(x, a):
        return x + torch.sin(a * x).square() / a

    artifact = tosaic.compile(model, samples[0], target="ethos-u85-256", calibration=samples)
    print(artifact)
    with torch.no_grad():
        worst = max((artifact.run(x) - model(x)).abs().max() for x in samples)
        spread = torch.cat([model(x) for x in samples]).abs().max()
    print(f"largest difference from PyTorch {worst:.3f}, largest result {spread:.3f}")
    assert worst < 0.05 * spread
    artifact.save("snake.pte")


if __name__ == "__main__":
    main()
