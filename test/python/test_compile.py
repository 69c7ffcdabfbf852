# SPDX-License-Identifier: Apache-2.0
"""tosaic.compile of modules, exported programs, paths and bytes; PyTorch eager is the oracle."""
import collections
import dataclasses
import fcntl
import json
import os
import pathlib
import struct
import subprocess
import sys
import termios
import typing

import numpy as np
import pytest
import torch

import torchao.quantization.pt2e.quantizer  # PT2E's operators, for torch.export.load

import tosaic

MODELS = pathlib.Path(__file__).parents[2] / "build" / "models"


class Small(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.conv = torch.nn.Conv2d(3, 8, 3)
        self.norm = torch.nn.BatchNorm2d(8)
        self.head = torch.nn.Linear(8, 4)
        self.drop = torch.nn.Dropout(0.5)

    def forward(self, x):
        return self.head(self.drop(self.norm(self.conv(x)).relu().mean((2, 3))))


@pytest.fixture
def image():
    torch.manual_seed(1)
    return torch.randn(1, 3, 16, 16)


def test_module_is_exported_as_it_infers_and_keeps_its_mode(image):
    model = Small()
    model.head.eval()
    artifact = tosaic.compile(model, image, "tosa-fp")
    assert model.training and model.norm.training and not model.head.training
    with torch.no_grad():
        torch.testing.assert_close(artifact.run(image), model.eval()(image), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["digits", "keyword_spotting", "auto_encoder", "tiny_vit", "digits_pt2e"])
@pytest.mark.parametrize("target", ["tosa-fp", "tosa-int", "vgf"])
def test_program_in_memory_compiles_to_the_bytes_of_its_file(name, target, tmp_path):
    path = MODELS / f"{name}.pt2"
    from_file = tosaic.compile(path, target=target)
    from_bytes = tosaic.compile(path.read_bytes(), target=target)
    assert from_file.pte == from_bytes.pte
    program = torch.export.load(path)
    if tosaic.Program.of(path).torch_version != torch.__version__:  # PyTorch renames nodes of other versions' programs
        torch.export.save(program, tmp_path / f"{name}.pt2")
        from_file = tosaic.compile(tmp_path / f"{name}.pt2", target=target)
    in_memory = tosaic.compile(program, target=target)
    assert from_file.pte == in_memory.pte
    assert in_memory.pieces == from_file.pieces
    assert [(n.name, n.taken) for n in in_memory.summary.nodes] == [(n.name, n.taken) for n in from_file.summary.nodes]


def test_calibration_takes_what_the_module_takes(image):
    batches = [torch.randn(1, 3, 16, 16) for _ in range(4)]
    model = Small().eval()
    wanted = tosaic.compile(model, image, "tosa-int", calibration=[(b,) for b in batches]).pte
    for form in (batches, iter(batches), [b.numpy() for b in batches], [[b] for b in batches],
                 ((b,) for b in batches), torch.utils.data.DataLoader(torch.stack(batches).squeeze(1), batch_size=1)):
        assert tosaic.compile(model, image, "tosa-int", calibration=form).pte == wanted
    assert tosaic.compile(model, image, "tosa-int").pte != wanted


def test_calibration_from_npz_equals_the_command_lines(tmp_path):
    samples = MODELS / "keyword_spotting_samples.npz"
    artifact = tosaic.compile(MODELS / "keyword_spotting.pt2", target="tosa-int", calibration=samples)
    out = tmp_path / "cli.pte"
    tool = pathlib.Path(tosaic.__file__).parent / "bin" / "tosaic"
    subprocess.run([tool, "compile", MODELS / "keyword_spotting.pt2", "--target", "tosa-int", "--calibrate", samples, "-o", out],
                   check=True, capture_output=True)
    assert out.read_bytes() == artifact.pte


@pytest.mark.parametrize("target", ["vgf", "vulkan"])
def test_what_pt2e_quantised_stays_integers_where_floats_are_taken_as_well(target):
    """The same quantised values as on a target of integers, and weights of 8 bits."""
    path = MODELS / "digits_pt2e.pt2"
    x = torch.export.load(path).example_inputs[0]
    integers, both = tosaic.compile(path, target="tosa-int"), tosaic.compile(path, target=target)
    assert torch.equal(both.run(*x), integers.run(*x))
    assert all(verdict.taken for verdict in tosaic.supports(path, target=target))
    if target == "vgf":
        assert len(both.pte) < 1.1 * len(integers.pte)


class Difference(torch.nn.Module):
    def forward(self, x, y):
        return x - 0.5 * y


def test_calibration_files_are_read_by_the_core(tmp_path):
    """By the inputs' names, whatever the order of the arrays; a file of another form is refused by its name."""
    program = torch.export.export(Difference(), (torch.zeros(4), torch.zeros(4)))
    x, y = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4), np.full((2, 4), 9, np.float32)
    np.savez(tmp_path / "s.npz", y=y, x=x)
    wanted = tosaic.compile(program, target="tosa-int", calibration=list(zip(x, y))).pte
    assert tosaic.compile(program, target="tosa-int", calibration=tmp_path / "s.npz").pte == wanted
    np.save(tmp_path / "s.npy", x)
    with pytest.raises(tosaic.Error, match="s.npy"):
        tosaic.compile(program, target="tosa-int", calibration=tmp_path / "s.npy")


Pair = collections.namedtuple("Pair", "first second")


@dataclasses.dataclass
class Outcome:
    logits: torch.Tensor
    extra: typing.Any = None


class Containers(torch.nn.Module):
    def forward(self, x, state, scale=2.0, *, bias=None, flag=True):
        y = x * scale + state["a"] - state["list"][0]
        if bias is not None:
            y = y + bias
        return {"y": y, "pair": Pair(y + 1, (x,)), "list": [y, None, 3, 2.5, flag]}


class ReturnsDataclass(torch.nn.Module):
    def forward(self, x):
        return Outcome(x + 1, (x * 2, None))


def test_call_and_result_keep_their_containers(image):
    torch.utils._pytree._register_namedtuple(Pair, serialized_type_name="test_python.Pair")
    x, state = torch.randn(2, 3), {"a": torch.randn(2, 3), "list": [torch.randn(3)]}
    bias = torch.randn(1)
    model = Containers()
    artifact = tosaic.compile(model, (x, state, 2.0), "tosa-fp", example_kwargs={"bias": bias, "flag": True})
    got, wanted = artifact.run(x, state, 2.0, bias=bias, flag=True), model(x, state, 2.0, bias=bias, flag=True)
    assert type(got["pair"]) is Pair and list(got) == list(wanted)
    torch.testing.assert_close(got["pair"], wanted["pair"])
    assert got["list"][1:] == wanted["list"][1:]
    torch.testing.assert_close(got["y"], wanted["y"])
    with pytest.raises(tosaic.Error, match="exported with 2.0"):
        artifact.run(x, state, 3.0, bias=bias, flag=True)
    with pytest.raises(tosaic.Error, match="run.tree"):
        artifact.run(x, {"a": state["a"]}, 2.0, bias=bias, flag=True)


def test_result_is_the_modules_dataclass():
    torch.export.register_dataclass(Outcome, serialized_type_name="test_python.Outcome")
    x = torch.randn(2, 3)
    got = tosaic.compile(ReturnsDataclass(), x, "tosa-fp").run(x)
    assert isinstance(got, Outcome) and got.extra[1] is None
    torch.testing.assert_close(got.logits, x + 1)


class Odd(torch.nn.Module):
    """Weights that lie in memory in other ways than dense and alone."""

    def __init__(self):
        super().__init__()
        base = torch.arange(24.0).reshape(4, 6) / 24
        self.transposed = torch.nn.Parameter(base.t())
        self.sliced = torch.nn.Parameter(base[1:3, ::2])
        self.tied = torch.nn.Linear(6, 4, bias=False)
        self.again = torch.nn.Linear(6, 4, bias=False)
        self.again.weight = self.tied.weight
        self.register_buffer("empty", torch.zeros(0))
        self.register_buffer("expanded", torch.tensor([0.5]).expand(4))
        self.constant = torch.tensor([1.0, -1.0, 2.0, -2.0])
        self.halves = torch.nn.Parameter(torch.ones(4, dtype=torch.bfloat16))

    def forward(self, x):
        y = x @ self.transposed + self.tied(x) + self.again(x) + self.expanded + self.constant
        return y + self.halves.float() + self.sliced.sum()


def test_weights_are_read_where_they_lie():
    x, model = torch.randn(3, 6), Odd()
    got = tosaic.compile(model, x, "tosa-fp").run(x)
    with torch.no_grad():
        torch.testing.assert_close(got, model(x), rtol=1e-5, atol=1e-5)


def test_half_precision_module():
    x = torch.randn(2, 6, dtype=torch.float16)
    model = torch.nn.Linear(6, 4).half()
    got = tosaic.compile(model, x, "vgf").run(x)
    assert got.dtype == torch.float16
    with torch.no_grad():
        torch.testing.assert_close(got, model(x), rtol=1e-2, atol=1e-2)


def test_options_are_keywords(image):
    model = Small().eval()
    eight = tosaic.compile(model, image, "tosa-int")
    sixteen = tosaic.compile(model, image, "tosa-int", quantize="int16x8", weights="per-tensor", observer="minmax")
    assert eight.pte != sixteen.pte
    mixed = tosaic.compile(model, image, "tosa-int", override=["head: float"])
    assert [n.name for n in mixed.summary.nodes if not n.taken] == ["linear"]
    assert "ethos" not in tosaic.compile.__doc__.split("Options of Ethos-U")[0].split("Options of every target")[1]
    for option in tosaic.targets()[0].options:
        assert option.name.replace("-", "_") in tosaic.compile.__doc__


def test_explain_supports_and_plan(image):
    class Mixed(torch.nn.Module):
        def forward(self, x):
            return torch.special.bessel_j0(x.relu()).relu()

    explanation = tosaic.explain(Mixed(), image, "tosa-fp")
    frame = explanation.to_pandas()
    assert list(frame["taken"]) == [True, False, True]
    assert "bessel_j0" in explanation._repr_html_() and explanation.nodes[1].reason.code == frame["code"][1]
    program = tosaic.Program.of(Mixed(), image)
    for target in tosaic.targets():  # where calibration would have to run it, what follows it stays outside, too
        explained = [n.taken for n in tosaic.explain(Mixed(), image, target.name).nodes]
        assert [v.taken for v in tosaic.supports(program, target=target.name)] == explained
        assert explained == [True, False, target.name in ("tosa-fp", "tosa-0.80-mi", "vgf", "vulkan")], target.name
    assert "conv" in tosaic.plan(Small().eval(), image, "tosa-int")


def test_save_writes_whole_files(image, tmp_path):
    artifact = tosaic.compile(Small().eval(), image, "vgf")
    for ending in ("pte", "vgf", "tosa", "h", "json"):
        artifact.save(tmp_path / f"net.{ending}")
    assert (tmp_path / "net.pte").read_bytes() == artifact.pte
    loaded = tosaic.load(tmp_path / "net.pte")
    torch.testing.assert_close(loaded.run(image), artifact.run(image))
    np.testing.assert_array_equal(tosaic.load(artifact.piece("vgf")).run(image.numpy()).shape, (1, 4))
    with pytest.raises(tosaic.Error, match="cannot write"):
        artifact.save(tmp_path / "no" / "net.pte")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["net.h", "net.json", "net.pte", "net.tosa", "net.vgf"]


def test_ethos_u_runs_here_and_tells_its_estimate(image):
    artifact = tosaic.compile(Small().eval(), image, "ethos-u55-128", calibration=[image])
    assert artifact.summary.estimates[0].cycles > 0 and "cycles" in repr(artifact)
    page = artifact._repr_html_()
    slowest = max(artifact.summary.estimates[0].layers, key=lambda layer: layer.cycles)
    assert f"{artifact.summary.estimates[0].cycles:,.0f} for one inference" in page and slowest.node in page, page
    integer = tosaic.compile(Small().eval(), image, "tosa-int", calibration=[image])
    torch.testing.assert_close(artifact.run(image), integer.run(image), rtol=0, atol=0)
    assert "vela/model.npz" in artifact.pieces or any(p.startswith("vela/") for p in artifact.pieces)


@pytest.mark.parametrize("target", ["tosa-fp", "tosa-int", "vgf"])
def test_single_delegate_has_the_programs_inputs_and_outputs(target):
    class Order(torch.nn.Module):
        def forward(self, x, y):
            z = x * y
            return y + 1, x, z, z, x.reshape(-1)

    x, y = torch.randn(2, 3), torch.randn(2, 3)
    artifact = tosaic.compile(Order(), (x, y), target, io="quantized", single_delegate=True)
    assert artifact.summary.delegates == 1 and artifact.piece("payload") in artifact.pte
    graph = tosaic.load(artifact.piece("tosa"))
    assert [t.sizes for t in graph.inputs] == [[2, 3]] * 2
    assert [t.tensor.sizes for t in graph.outputs] == [[2, 3]] * 4 + [[6]]

    class Partly(torch.nn.Module):
        def forward(self, x):
            return torch.special.bessel_j0(x.relu())

    with pytest.raises(tosaic.Error, match="bessel_j0"):
        tosaic.compile(Partly(), x, target, single_delegate=True)


@pytest.mark.parametrize("lacks", [(), ("rich",), ("rich", "tqdm")], ids=["rich", "tqdm", "plain"])
def test_a_terminal_sees_progress(tmp_path, lacks):
    """On standard error, so that what is printed may go to a file; and it is gone in the end."""
    for name in {"rich", "tqdm"} - set(lacks):
        if not lacks or name == "tqdm":
            pytest.importorskip(name, reason=f"{name} is not installed")
    script = tmp_path / "slow.py"
    script.write_text(
        f"import sys\nsys.modules.update(dict.fromkeys({lacks}))\nimport time, numpy, tosaic\n"
        "def samples():\n"
        "    for _ in range(14):\n"
        "        time.sleep(0.06)\n"
        "        yield numpy.zeros((1, 1, 8, 8), numpy.float32)\n"
        "tosaic.compile(sys.argv[1], target='tosa-int', calibration=samples())\nprint('done')\n")
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 25, 80, 0, 0))  # tqdm draws nothing where there are no columns
    model = pathlib.Path(__file__).parents[2] / "examples" / "digits" / "digits.pt2"
    done = subprocess.run([sys.executable, script, model], stderr=theirs, stdout=subprocess.PIPE, text=True,
                          env={**os.environ, "TERM": "xterm"})
    os.close(theirs)
    assert done.returncode == 0 and done.stdout == "done\n" and "calibrate" in os.read(ours, 1 << 16).decode()
    os.close(ours)


def test_two_numbers_among_codes():
    """torch.where(condition, 1.0, 0.5) has no operand with a scale: its quantised values are the result's."""
    class Masked(torch.nn.Module):
        def forward(self, x):
            return torch.where(x > 0, 1.0, 0.5) * x

    samples = [torch.randn(4, 6, generator=torch.Generator().manual_seed(i)) for i in range(8)]
    artifact = tosaic.compile(Masked(), samples[0], "tosa-int", calibration=samples)
    assert artifact.summary.delegates == 1 and all(n.taken for n in artifact.summary.nodes)
    assert (artifact.run(samples[0]) - Masked()(samples[0])).abs().max() < 0.02


class Odd(torch.nn.Module):
    """What the shorter way of serialising leaves to PyTorch: sizes with names, lists of tensors, several results, infinities."""

    def forward(self, x):
        y, places = torch.cat([x, x.masked_fill(x > 0, -float("inf"))], 1).max(1)
        first, *rest = torch.split(x, 2, 1)
        return y.reshape(x.shape[0], 1), places.to(torch.int32), first + x[:, None, 0].expand(-1, 2), rest


@pytest.mark.parametrize("name", ["digits", "digits_pt2e", "odd"])
def test_a_graph_in_memory_is_what_pytorch_writes(name):
    from torch._export.serde import serialize

    from tosaic import _serialised

    if name == "odd":
        program = torch.export.export(Odd(), (torch.randn(3, 6),), dynamic_shapes={"x": {0: torch.export.Dim("n", max=9)}})
    else:
        program = torch.export.load(MODELS / f"{name}.pt2")
    ours = json.loads(_serialised.text_of(program, program.module_call_graph))["graph_module"]
    serializer = serialize.GraphModuleSerializer(program.graph_signature, program.module_call_graph)
    theirs = json.loads(serialize._to_json_bytes(serializer.serialize(program.graph_module)))
    for node in [*ours["graph"]["nodes"], *theirs["graph"]["nodes"]]:
        node.pop("metadata")
        node.pop("is_hop_single_tensor_return", None)
    assert ours == theirs
