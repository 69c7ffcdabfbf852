#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes FOLDER/torch-VERSION.tar.xz with the PyTorch that runs it: small programs as torch.export.save writes them, and
for each what the module itself answers, call by call: NAME.pt2, NAME.CALL.in.N.npy, NAME.CALL.out.N.npy (outputs are the
tensors among the results, in their order). `run_versions.py --write` runs it with every version.

The files are as PyTorch left them but for the names of folders in stack traces.
"""
import io
import pathlib
import re
import sys
import tarfile
import warnings

import numpy as np
import torch
from torch import nn
from torch.export import Dim, export
from torch.utils import _pytree

warnings.simplefilter("ignore")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 4, 3, stride=2, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.fc = nn.Linear(4, 3)

    def forward(self, x):
        y = torch.relu(self.norm(self.conv(x)))
        return self.fc(y.mean((2, 3)))


class Attention(nn.Module):
    """Composite operators, and what PyTorch decomposes in other ways from version to version."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.proj = nn.Linear(8, 24, bias=False)

    def forward(self, x):
        q, k, v = self.proj(self.norm(x)).chunk(3, -1)
        y = nn.functional.scaled_dot_product_attention(q, k, v)
        return nn.functional.gelu(y).softmax(-1)


class Kinds(nn.Module):
    """Integers and booleans, a keyword, results in containers."""

    def forward(self, ids, mask, *, scale):
        y = torch.where(mask, ids * 3, -ids)
        return {"sum": y.sum(1), "pair": (y.to(torch.float32) * scale, [mask.logical_not(), None])}


class Rows(nn.Module):
    def forward(self, x):
        return torch.cat([x, x[:1]], 0).reshape(-1), x * x.shape[0]


class Cache(nn.Module):
    """A buffer that is written in place, and one that counts."""

    def __init__(self):
        super().__init__()
        self.register_buffer("kept", torch.zeros(4, 3))
        self.register_buffer("steps", torch.zeros(1, dtype=torch.int64))

    def forward(self, x, position):
        self.kept.index_copy_(0, position, x)
        self.steps.add_(1)
        return self.kept * 2, self.steps + 1


class Branch(nn.Module):
    def forward(self, x):
        return x + 1 if x.sum() > 0 else x - 1


def quantised(model, call):
    """By torchao's PT2E, with the quantizer that it has for its own tests."""
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    from torchao.testing.pt2e._xnnpack_quantizer import XNNPACKQuantizer, get_symmetric_quantization_config

    quantizer = XNNPACKQuantizer().set_global(get_symmetric_quantization_config(is_per_channel=True))
    prepared = prepare_pt2e(export(model, call).module(), quantizer)
    for _ in range(4):
        prepared(torch.randn_like(call[0]))
    return convert_pt2e(prepared)


def portable(archive: bytes) -> bytes:
    """Stack traces name folders of the machine: keep what follows them."""
    here = str(pathlib.Path(__file__).resolve().parent)
    reader = torch._C.PyTorchFileReader(io.BytesIO(archive))
    out = io.BytesIO()
    writer = torch._C.PyTorchFileWriter(out)
    for name in reader.get_all_records():
        if name in (".data/version", ".data/serialization_id", "version", "byteorder"):
            continue
        data = reader.get_record(name)
        if name.endswith(".json"):
            text = data.decode().replace(here + "/", "")
            data = re.sub(r'/[^" ]*/site-packages/', "/site-packages/", text).encode()
        writer.write_record(name, data, len(data))
    writer.write_record("byteorder", b"little", 6)
    writer.write_end_of_file()
    return out.getvalue()


class Written:
    def __init__(self, file: tarfile.TarFile):
        self.file = file

    def add(self, name: str, data: bytes) -> None:
        entry = tarfile.TarInfo(name)  # its time is a constant
        entry.size = len(data)
        self.file.addfile(entry, io.BytesIO(data))

    def program(self, name: str, program, module, *calls) -> None:
        """`calls`: (args, kwargs); the module answers each, one after the other."""
        buffer = io.BytesIO()
        torch.export.save(program, buffer)
        self.add(f"{name}.pt2", portable(buffer.getvalue()))
        for number, (args, kwargs) in enumerate(calls):
            with torch.no_grad():
                result = module(*args, **kwargs)
            for kind, tree in (("in", (args, kwargs)), ("out", result)):
                tensors = [x for x in _pytree.tree_leaves(tree) if isinstance(x, torch.Tensor)]
                for i, x in enumerate(tensors):
                    array = io.BytesIO()
                    np.save(array, x.detach().numpy())
                    self.add(f"{name}.{number}.{kind}.{i}.npy", array.getvalue())


def main(folder: str) -> None:
    path = pathlib.Path(folder) / f"torch-{torch.__version__.split('+')[0]}.tar.xz"
    with tarfile.open(path, "w:xz", preset=9) as file:
        write(Written(file))


def write(out: Written) -> None:
    torch.manual_seed(7)
    net, image = Net().eval(), torch.randn(1, 2, 6, 6)
    with torch.no_grad():
        net.norm.running_mean.normal_()
        net.norm.running_var.uniform_(0.5, 2)
    images = [((x,), {}) for x in (image, torch.randn(1, 2, 6, 6))]
    out.program("float", export(net, (image,), strict=False), net, *images)
    out.program("strict", export(net, (image,), strict=True), net, *images)
    out.program("decomposed", export(net, (image,)).run_decompositions(), net, *images)
    integers = quantised(net, (image,))
    out.program("pt2e", export(integers, (image,)), integers, *images)

    attention, rows = Attention().eval(), torch.randn(1, 5, 8)
    out.program("attention", export(attention, (rows,)), attention, ((rows,), {}))
    out.program("attention_decomposed", export(attention, (rows,)).run_decompositions(), attention, ((rows,), {}))

    args = (torch.tensor([[1, -2, 3], [4, 5, -6]]), torch.tensor([[True, False, True], [False, False, True]]))
    keywords = {"scale": torch.tensor([0.5])}
    out.program("kinds", export(Kinds(), args, keywords), Kinds(), (args, keywords))

    dynamic = export(Rows(), (torch.randn(5, 4),), dynamic_shapes={"x": {0: Dim("rows", min=2, max=16)}})
    out.program("dynamic", dynamic, Rows(), *(((torch.randn(n, 4),), {}) for n in (2, 5, 16)))

    steps = [((torch.randn(1, 3), torch.tensor([i])), {}) for i in (2, 0, 2)]
    out.program("buffer", export(Cache(), steps[0][0]), Cache(), *steps)

    out.program("draft", torch.export.draft_export(Branch(), (torch.ones(4),)), Branch(), ((torch.ones(4),), {}))


if __name__ == "__main__":
    main(sys.argv[1])
