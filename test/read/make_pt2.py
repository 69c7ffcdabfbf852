#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the small .pt2 files under test/read/data that the reader's tests look at. Seeded: run with torch 2.13.

Every file shows one thing that torch.export.save does (tied weights, sliced storages, mutation, ...).
"""
import io
import json
import pathlib
import re
import sys

import torch
from torch import nn
from torch.export import Dim, export

OUT = pathlib.Path(__file__).resolve().parent / "data"


def rewritten(archive: bytes, change=lambda name, data: data, rename=lambda name: name, drop=()) -> bytes:
    """The same archive with records changed, in PyTorch's own container layout."""
    reader = torch._C.PyTorchFileReader(io.BytesIO(archive))
    out = io.BytesIO()
    writer = torch._C.PyTorchFileWriter(out)
    for name in reader.get_all_records():
        if name in (".data/version", ".data/serialization_id", "version", "byteorder") or name in drop:
            continue
        data = change(name, reader.get_record(name))
        writer.write_record(rename(name), data, len(data))
    writer.write_record("byteorder", b"little", 6)
    writer.write_end_of_file()
    return out.getvalue()


def portable(name: str, data: bytes) -> bytes:
    """Stack traces name this machine's folders: keep what follows them, and drop what no reader reads."""
    if not name.startswith("models/"):
        return data
    text = data.decode()
    here = str(pathlib.Path(__file__).resolve().parent)
    text = text.replace(here + "/", "")
    text = re.sub(r'File \\"/[^"\\]*/site-packages/', r'File \\"/site-packages/', text)
    text = re.sub(r'File \\\\\\"/[^"\\]*/site-packages/', r'File \\\\\\"/site-packages/', text)
    program = json.loads(text)

    def strip(graph):
        for node in graph["nodes"]:
            node["metadata"].pop("from_node", None)
            node["metadata"].pop("source_fn_stack", None)
            for argument in node["inputs"]:
                if "as_graph" in argument["arg"]:
                    strip(argument["arg"]["as_graph"]["graph"])

    strip(program["graph_module"]["graph"])
    return json.dumps(program, separators=(",", ":")).encode()


def saved(program) -> bytes:
    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    return rewritten(buffer.getvalue(), portable)


def write(name: str, program) -> None:
    (OUT / name).write_bytes(saved(program))


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.bn = nn.BatchNorm2d(4)
        self.act = nn.ReLU(inplace=True)
        self.dropout = nn.Dropout(0.2)
        self.fc = nn.Linear(4, 5)

    def forward(self, x):
        y = self.act(self.bn(self.conv(x)))
        y += 1.5
        y = y.mean((2, 3))
        return self.fc(self.dropout(y)) * 2


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(7, 4)
        self.head = nn.Linear(4, 7, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids):
        return self.head(self.embed(ids))


class Storages(nn.Module):
    """A sliced buffer, a transposed one, a channels_last weight, a non-persistent buffer, a plain attribute, a
    literal tensor, and a weight with a NaN."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 2, 3).to(memory_format=torch.channels_last)
        self.register_buffer("sliced", torch.arange(10, dtype=torch.float32)[3:7])
        self.register_buffer("turned", torch.arange(6, dtype=torch.float32).reshape(2, 3).t())
        self.register_buffer("temporary", torch.tensor([5, 6], dtype=torch.int64), persistent=False)
        self.register_buffer("broken", torch.tensor([1.0, float("nan"), float("inf"), 4.0]))
        self.register_buffer("unused", torch.zeros(3))
        self.plain = torch.tensor([True, False])

    def forward(self, x, y):
        a = self.conv(x)
        b = y @ self.turned
        c = self.sliced + self.broken + torch.tensor([1.0, 2.0, 3.0, 4.0])
        return a, b, c, torch.where(self.plain, self.temporary, self.temporary + 1)


class Several(nn.Module):
    def forward(self, x):
        a, b = x.split([1, 2], dim=1)
        values, indices = x.max(dim=1)
        return a + 1, values, indices, torch.stack([a, a], 0), x[:, torch.tensor([0, 2])]


class Arguments(nn.Module):
    def forward(self, x):
        y = torch.nn.functional.gelu(x, approximate="tanh").to(torch.float16)
        y = torch.clamp(y, min=None, max=float("inf")).contiguous()
        z = torch.zeros(2, 3, dtype=torch.int32)
        return y, z, torch.where(x > 0, x, -1.0), x[..., 1:], x.index_select(1, torch.tensor([0]))


class Dynamic(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 3)

    def forward(self, x):
        y = self.fc(x)
        return y.reshape(x.size(0) * 3), torch.cat([x, x, x[:1]], 0)


class Cond(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        def yes(x):
            return self.fc(x)

        def no(x):
            return x * 2

        return torch.cond(x.sum() > 0, yes, no, (x,))


class Cache(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("k", torch.zeros(1, 4, 3))
        self.register_buffer("steps", torch.zeros(1, dtype=torch.int64))
        self.register_buffer("window", torch.ones(4, 3))

    def forward(self, x, position):
        self.k.index_copy_(1, position, x)
        self.steps.add_(1)
        self.window[1:3].copy_(x[0, :1])
        return self.k.sum(1) + self.steps


class Keywords(nn.Module):
    def forward(self, a, pair, *, scale, options):
        return (a + pair[0] - pair[1]) * scale + options["b"] - options["a"]


class WritesInput(nn.Module):
    def forward(self, x):
        x.add_(1)
        return x * 2


class Kinds(nn.Module):
    def forward(self, x, times, flag, name):
        x.view(-1)
        x.mul_(times).add_(1)
        return x * 2, None, 3, [2.5, (x.shape[0] > 1, x)]


def quantised():
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (XNNPACKQuantizer,
                                                                        get_symmetric_quantization_config)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(3, 4, 3, stride=2)
            self.bn = nn.BatchNorm2d(4)
            self.fc = nn.Linear(4, 2)

        def forward(self, x):
            return self.fc(torch.relu(self.bn(self.conv(x))).mean((2, 3)))

    model = Net().eval()
    x = (torch.randn(1, 3, 8, 8),)
    quantizer = XNNPACKQuantizer().set_global(get_symmetric_quantization_config(is_per_channel=True))
    prepared = prepare_pt2e(export(model, x).module(), quantizer)
    prepared(*x)
    return export(convert_pt2e(prepared), x)


def pickled_layout(archive: bytes, model) -> bytes:
    """What torch 2.8 wrote: all weights in one torch.save file, all constants in another."""
    def pickled(value):
        buffer = io.BytesIO()
        torch.save(value, buffer)
        return buffer.getvalue()

    def change(name, data):
        if name == "models/model.json":
            program = json.loads(data)
            program["schema_version"] = {"major": 8, "minor": 8}
            program["torch_version"] = "2.8.0"
            return json.dumps(program).encode()
        if name.endswith("_weights_config.json"):
            return pickled(model.state_dict())
        if name.endswith("_constants_config.json"):
            return pickled({})
        return data

    def rename(name):
        return name.replace("model_weights_config.json", "model.pt").replace("model_constants_config.json", "model.pt")

    weights = [n for n in torch._C.PyTorchFileReader(io.BytesIO(archive)).get_all_records()
               if re.search(r"/(weight|tensor)_\d+$", n)]
    return rewritten(archive, change, rename, weights)


def main():
    OUT.mkdir(exist_ok=True)
    torch.manual_seed(7)
    net = ConvNet().eval()
    image = (torch.randn(1, 3, 4, 4),)
    write("conv.pt2", export(net, image))
    write("conv_decomposed.pt2", export(net, image).run_decompositions())
    (OUT / "conv_torch28.pt2").write_bytes(pickled_layout((OUT / "conv.pt2").read_bytes(), net))
    write("tied.pt2", export(Tied().eval(), (torch.tensor([[1, 2, 3]]),)))
    write("storages.pt2", export(Storages().eval(), (torch.randn(1, 3, 4, 4), torch.randn(2, 3))))
    write("several.pt2", export(Several(), (torch.randn(2, 3),)))
    write("arguments.pt2", export(Arguments(), (torch.randn(2, 3),)))
    write("dynamic.pt2", export(Dynamic().eval(), (torch.randn(5, 4),),
                                dynamic_shapes={"x": {0: Dim("batch", min=2, max=16)}}))
    write("unbounded.pt2", export(Dynamic().eval(), (torch.randn(5, 4),), dynamic_shapes={"x": {0: Dim.DYNAMIC}}))
    write("cond.pt2", export(Cond().eval(), (torch.randn(2, 4),)))
    position = torch.tensor([1])
    write("cache.pt2", export(Cache(), (torch.randn(1, 1, 3), position)))
    write("cache_decomposed.pt2", export(Cache(), (torch.randn(1, 1, 3), position)).run_decompositions({}))
    one, two = torch.full((2,), 1.0), torch.full((2,), 2.0)
    write("keywords.pt2", export(Keywords(), (one, [two, torch.full((2,), 3.0)]),
                                 {"options": {"b": torch.full((2,), 5.0), "a": torch.full((2,), 6.0)},
                                  "scale": 4}))
    write("writes_input.pt2", export(WritesInput(), (torch.ones(2),)).run_decompositions({}))
    write("kinds.pt2", export(Kinds(), (torch.ones(2), 4, True, None)))
    if "--without-pt2e" not in sys.argv:
        write("pt2e.pt2", quantised())


if __name__ == "__main__":
    main()
