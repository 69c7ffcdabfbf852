# SPDX-License-Identifier: Apache-2.0
"""Writes the small exported programs of the golden text tests next to this script: what real users run into.

    python make_models.py
"""
import pathlib

import torch
from torch import nn
from torch._higher_order_ops.while_loop import while_loop

HERE = pathlib.Path(__file__).resolve().parent
SITE_PACKAGES = pathlib.Path(torch.__file__).resolve().parent.parent


@torch.library.custom_op("acme::secret", mutates_args=())
def secret(x: torch.Tensor, strength: float) -> torch.Tensor:
    return x * strength


@secret.register_fake
def _(x, strength):
    return torch.empty_like(x)


class UnknownOperator(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(4, 4), nn.Linear(4, 2)

    def forward(self, x):
        return self.last(torch.ops.acme.secret(self.first(x), 2.0))


class Plain(nn.Module):
    def __init__(self, fill=None):
        super().__init__()
        self.layer = nn.Linear(4, 3)
        if fill is not None:
            self.layer.weight.data[1, 2] = fill

    def forward(self, x):
        return torch.relu(self.layer(x))


class Loop(nn.Module):
    """Ends when the data say so."""

    def forward(self, x):
        return while_loop(lambda y: y.sum() < 9, lambda y: (y * 2,), (x,))


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(1))

    def forward(self, x):
        self.seen.add_(1)
        return x + self.seen


class Kinds(nn.Module):
    def forward(self, x):
        x.add_(1)
        return x * 2, None, 3, [2.5, (x.shape[0] > 1, x)]


def write(name, module, keep_samples=True, **options):
    torch.manual_seed(1)
    program = torch.export.export(module, (torch.randn(2, 4),), **options)
    for graph in [m.graph for m in program.graph_module.modules() if isinstance(m, torch.fx.GraphModule)]:
        for node in graph.nodes:
            if trace := node.meta.get("stack_trace"):
                node.meta["stack_trace"] = trace.replace(f"{HERE}/", "").replace(f"{SITE_PACKAGES}/", "")
    if not keep_samples:
        program._example_inputs = None
    torch.export.save(program, HERE / f"{name}.pt2")


def main():
    torch.manual_seed(1)
    write("unknown_operator", UnknownOperator())
    write("no_samples", Plain(), keep_samples=False)
    write("nan_weight", Plain(float("nan")))
    write("dynamic_batch", Plain(), dynamic_shapes=({0: torch.export.Dim("batch", min=1, max=16)},))
    write("control_flow", Loop())
    write("mutated_buffer", Counter())
    write("kinds", Kinds())


if __name__ == "__main__":
    main()
