# SPDX-License-Identifier: Apache-2.0
"""Calls that people make: arguments in another order, a tokenizer's dict, NumPy's arrays, a loader's batches, files that hold
something else, modules that decide by numbers, that write to what they are given, that several threads compile."""
import collections
import copy
import inspect
import pathlib
import threading
import warnings

import numpy as np
import pytest
import tosaic
import torch
from torch import nn
from steps import assert_within

HERE = pathlib.Path(__file__).name


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.conv = nn.Conv2d(1, 4, 3)
        self.head = nn.Linear(4 * 36, 3)

    def forward(self, x):
        return self.head(self.conv(x).relu().flatten(1))


IMAGE = torch.randn(1, 1, 8, 8, generator=torch.Generator().manual_seed(1))


# ---- one order of arguments


@pytest.mark.parametrize("question, of", [(tosaic.compile, lambda a: a.pte), (tosaic.explain, lambda e: e.records()),
                                          (tosaic.supports, lambda v: [(n.name, n.taken) for n in v]),
                                          (tosaic.plan, lambda text: text)], ids=["compile", "explain", "supports", "plan"])
def test_the_same_order_everywhere(question, of):
    names = [p.name for p in inspect.signature(question).parameters.values()]
    assert names[:3] == ["model", "example_inputs", "target"] and {"example_kwargs", "dynamic_shapes"} < set(names)
    model = Small().eval()
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        wanted = of(question(model, IMAGE, "tosa-int"))
    with pytest.warns(DeprecationWarning, match="old order") as told:
        got = of(question(model, "tosa-int", IMAGE))
    assert got == wanted and told[0].filename == __file__
    with pytest.warns(DeprecationWarning, match="old order"):
        assert of(question(model, "tosa-int", example_inputs=IMAGE)) == wanted
    assert of(question(model, example_kwargs={"x": IMAGE}, target="tosa-int")) is not None
    with pytest.raises(tosaic.Error, match="'tosa-int' is no example") as refused:
        question(model, "tosa-int", target="tosa-int")
    assert refused.value.code == "program.example-inputs"


@pytest.mark.parametrize("question", [tosaic.supports, tosaic.plan], ids=["supports", "plan"])
def test_keywords_and_sizes_in_every_question(question):
    class Scaled(nn.Module):
        def forward(self, x, *, scale):
            return torch.relu(x) * scale

    given = {"example_kwargs": {"scale": torch.randn(4)}, "target": "tosa-int"}
    assert question(Scaled(), torch.randn(2, 4), **given)
    given["dynamic_shapes"] = {"x": {0: torch.export.Dim("b", min=1, max=8)}, "scale": None}
    try:
        assert question(Scaled(), torch.randn(2, 4), **given, sizes=["x.0=4"])
    except tosaic.Error as why:  # the sizes vary, so they were heard
        assert why.code == "model.dynamic-shape"


# ---- examples


class Tokens(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(16, 4)

    def forward(self, input_ids, attention_mask=None):
        return self.table(input_ids) * attention_mask.unsqueeze(-1)


@pytest.mark.parametrize("kind", [dict, collections.UserDict, collections.OrderedDict])
def test_a_tokenizers_dict(kind):
    given = kind(input_ids=torch.tensor([[1, 2, 3]]), attention_mask=torch.tensor([[1.0, 1.0, 0.0]]))
    model = Tokens().eval()
    artifact = tosaic.compile(model, given, "tosa-fp")
    wanted = model(**given)
    torch.testing.assert_close(artifact.run(**given), wanted)
    torch.testing.assert_close(artifact.run(given), wanted)
    assert tosaic.supports(model, given, "tosa-fp")
    assert tosaic.compile(model, given, "tosa-int", calibration=[given, dict(given)]).summary.samples == 2


def test_a_module_whose_argument_is_a_dict():
    class OfDict(nn.Module):
        def forward(self, batch):
            return batch["x"] * batch["y"]

    given = {"x": torch.randn(3), "y": torch.randn(3)}
    artifact = tosaic.compile(OfDict(), given, "tosa-int", calibration=[given])
    assert_within(2, artifact.run(given), given["x"] * given["y"])


def test_numpys_arrays_as_examples():
    model, image = Small().eval(), np.flip(IMAGE.numpy(), 3)
    image.flags.writeable = False
    artifact = tosaic.compile(model, image, "tosa-fp")
    wanted = model(torch.from_numpy(image.copy())).detach()
    torch.testing.assert_close(torch.from_numpy(artifact.run(image)), wanted)
    assert tosaic.compile(model, (image,), "tosa-fp").pte == artifact.pte

    class Times(nn.Module):
        def forward(self, x, factor):
            return x * factor

    assert tosaic.compile(Times(), (np.ones(3, np.float32), np.float32(2)), "tosa-fp").run(
        np.ones(3, np.float32), np.float32(3)).tolist() == [3, 3, 3]
    with pytest.raises(tosaic.Error, match="cannot be a tensor") as refused:
        tosaic.compile(Times(), (np.array(["a"]), 2), "tosa-fp")
    assert refused.value.code == "program.example-inputs"


# ---- calibration


def one_by_one(batches):
    return [x[None] for batch in batches for x in batch]


def test_a_loaders_batches_are_split():
    images = torch.randn(20, 1, 8, 8, generator=torch.Generator().manual_seed(2))
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(images), batch_size=8)
    model = Small().eval()
    wanted = tosaic.compile(model, IMAGE, "tosa-int", calibration=one_by_one([images]))
    got = tosaic.compile(model, IMAGE, "tosa-int", calibration=loader)
    assert wanted.summary.samples == got.summary.samples == 20 and wanted.pte == got.pte
    strided = images.permute(1, 2, 3, 0).contiguous().permute(3, 0, 1, 2)
    assert tosaic.compile(model, IMAGE, "tosa-int", calibration=[strided[:12], strided[12:].numpy()]).pte == wanted.pte
    pairs = tosaic.compile(model, IMAGE.repeat(2, 1, 1, 1), "tosa-int", calibration=[images])
    assert pairs.summary.samples == 10


def test_what_is_no_batch_of_calls_is_refused_as_before():
    class Masked(nn.Module):
        def forward(self, x, mask):
            return x * mask

    x, mask = torch.randn(1, 4), torch.rand(4, 4)
    artifact = tosaic.compile(Masked(), (x, mask), "tosa-int", calibration=[(torch.randn(6, 4), mask)])
    assert artifact.summary.samples == 6  # the mask is each one's
    for wrong in [(torch.randn(6, 5), mask), (torch.randn(6, 4), torch.rand(8, 4)), (torch.randn(0, 4), mask), (torch.randn(4), mask)]:
        with pytest.raises(tosaic.Error) as refused:
            tosaic.compile(Masked(), (x, mask), "tosa-int", calibration=[wrong])
        assert refused.value.code.startswith("calibrate."), refused.value
    with pytest.raises(tosaic.Error, match="for x, _ in loader"):
        tosaic.compile(Small(), IMAGE, "tosa-int", calibration=[(IMAGE, torch.tensor([1]))])


# ---- what is no program


def test_weights_are_no_program(tmp_path):
    model = Small()
    for given in (model.state_dict(), dict(model.named_parameters())):
        with pytest.raises(tosaic.Error, match="weights without a program") as refused:
            tosaic.compile(given, IMAGE, "tosa-fp")
        assert refused.value.code == "program.state-dict" and "load_state_dict" in refused.value.help
    torch.save(model.state_dict(), tmp_path / "new.pth")
    torch.save(model.state_dict(), tmp_path / "old.pth", _use_new_zipfile_serialization=False)
    torch.jit.save(torch.jit.trace(model, IMAGE), tmp_path / "script.pt")
    (tmp_path / "net.onnx").write_bytes(b"\x08\x08\x12\x07pytorch\x1a\x052.9.0")
    (tmp_path / "net.safetensors").write_bytes((2).to_bytes(8, "little") + b"{}")
    (tmp_path / "net.tflite").write_bytes(b"\x1c\0\0\0TFL3" + bytes(20))
    (tmp_path / "net.pte").write_bytes(tosaic.compile(model, IMAGE, "tosa-fp").pte)
    for name, words, way in [("new.pth", "state_dict", "load_state_dict"), ("old.pth", "pickle", "load_state_dict"),
                             ("script.pt", "TorchScript", "torch.export"), ("net.onnx", "ONNX", "torch.export"),
                             ("net.safetensors", "safetensors", "load_state_dict"), ("net.tflite", "TFLite", "torch.export"),
                             ("net.pte", "ExecuTorch program", "tosaic run")]:
        with pytest.raises(tosaic.Error, match=words) as refused:
            tosaic.compile(tmp_path / name, target="tosa-fp")
        assert way in refused.value.help, refused.value


class Branches(nn.Module):
    def forward(self, x):
        y = x * 2
        if y.sum() > 0:
            return y
        return -y


class Loops(nn.Module):
    def forward(self, x):
        while x.abs().max() > 1:
            x = x / 2
        return x


@pytest.mark.parametrize("module, line", [(Branches, "if y.sum() > 0:"), (Loops, "while x.abs().max() > 1:")])
def test_branches_on_numbers_are_told_with_their_line(module, line):
    with pytest.raises(tosaic.Error) as refused:
        tosaic.compile(module(), torch.randn(4), "tosa-fp")
    assert refused.value.code == "program.branch" and line in str(refused.value)
    number = inspect.getsourcelines(module)[1] + next(i for i, text in enumerate(inspect.getsource(module).splitlines()) if line in text)
    assert f"{HERE}:{number}" in str(refused.value) and "torch.cond" in refused.value.help


def test_doubles_are_told():
    with pytest.warns(tosaic.CompileWarning, match=r"model\.float\(\)") as told:
        tosaic.compile(nn.Linear(3, 2).double(), torch.randn(1, 3, dtype=torch.float64), "tosa-fp")
    assert len([w for w in told if "float64" in str(w.message)]) == 1


def test_torchaos_tensors_are_unwrapped():
    from torchao.quantization import Int8WeightOnlyConfig, quantize_
    from torchao.utils import unwrap_tensor_subclass

    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4)).eval()
    quantize_(model, Int8WeightOnlyConfig())
    kinds = [type(p) for p in model.parameters()]
    x = torch.randn(1, 16)
    artifact = tosaic.compile(model, x, "tosa-fp")
    assert [type(p) for p in model.parameters()] == kinds, "the user's module is as it was"
    torch.testing.assert_close(artifact.run(x), model(x), rtol=1e-3, atol=1e-4)
    assert artifact.pte == tosaic.compile(unwrap_tensor_subclass(copy.deepcopy(model)), x, "tosa-fp").pte


# ---- writes to an argument


class Adds(nn.Module):
    def forward(self, x, y):
        x.add_(1)
        return x * y


class WritesRows(nn.Module):
    def forward(self, x, y):
        y[:, ::2] = x[:, ::2] * 3
        return y.sum(1)


class WritesBoth(nn.Module):
    def forward(self, x, y):
        y.mul_(2)
        x[0] = y[0]
        return x.clone(), None, y + 1


@pytest.mark.parametrize("functional", [False, True], ids=["as exported", "decomposed"])
@pytest.mark.parametrize("module", [Adds, WritesRows, WritesBoth])
@pytest.mark.filterwarnings("ignore")
def test_the_callers_tensors_are_written(module, functional):
    x, y = torch.randn(2, 6), torch.randn(2, 6)
    program = torch.export.export(module(), (x, y))
    program = program.run_decompositions({}) if functional else program
    for runs in (tosaic.compile(program, target="tosa-fp").run, tosaic.Program.of(program).session().run,
                 tosaic.compile(program, target="tosa-fp").session().clone().run):
        mine, eager = [x.clone(), y.clone()], [x.clone(), y.clone()]
        torch.testing.assert_close(runs(*mine), module()(*eager))
        torch.testing.assert_close(mine, eager)
        strided = [x.t().contiguous().t(), y.clone()]
        runs(*strided)
        torch.testing.assert_close(strided, eager)
        arrays = [x.clone().numpy(), y.clone().numpy()]
        runs(*arrays)
        torch.testing.assert_close([torch.from_numpy(a) for a in arrays], eager)


@pytest.mark.filterwarnings("ignore")
def test_the_methods_of_one_file_write_their_own():
    inputs = (torch.randn(2, 6), torch.randn(2, 6))
    programs = {"adds": torch.export.export(Adds(), inputs), "rows": torch.export.export(WritesRows(), inputs)}
    artifact = tosaic.compile(programs, target="tosa-fp")
    for name, module in (("adds", Adds()), ("rows", WritesRows())):
        mine, eager = [x.clone() for x in inputs], [x.clone() for x in inputs]
        got, wanted = artifact.session(method=name).run(*mine), module(*eager)
        torch.testing.assert_close(got, wanted)
        torch.testing.assert_close(mine, eager)


@pytest.mark.filterwarnings("ignore")
def test_a_tensor_that_cannot_be_written_is_refused_before_the_run():
    artifact = tosaic.compile(Adds(), (torch.randn(2, 6), torch.randn(2, 6)), "tosa-fp")
    locked = np.zeros((2, 6), np.float32)
    locked.flags.writeable = False
    with pytest.raises(tosaic.Error) as refused:
        artifact.run(locked, locked)
    assert refused.value.code == "run.read-only"
    artifact.session().warm(torch.zeros(2, 6), torch.zeros(2, 6))
    case = (torch.zeros(2, 6), torch.ones(2, 6))
    cases = artifact.bundle([case])
    assert all(tosaic.check(cases))


# ---- threads


def test_modules_are_compiled_from_several_threads():
    """PyTorch exports in one thread at a time; a module of its own for each, and one for all."""
    shared, image = Small(), IMAGE
    shared.train()
    wanted = tosaic.compile(shared, image, "tosa-fp").pte
    failed, results = [], []

    def work(model):
        try:
            for _ in range(3):
                results.append(tosaic.compile(model, image, "tosa-fp").pte)
        except BaseException as why:  # told below
            failed.append(why)

    threads = [threading.Thread(target=work, args=(shared if i % 2 else Small(),)) for i in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failed and set(results) == {wanted}
    assert shared.training and shared.conv.training
    assert tosaic.compile(Small(), image, "tosa-fp").pte == wanted, "and PyTorch is whole behind it"


def test_an_example_that_is_the_only_sample_is_warned_of():
    module, x = nn.Linear(4, 4), torch.randn(1, 4)
    with pytest.warns(tosaic.CompileWarning, match=r"calibrate.stored-samples(.|\n)*calibration=") as told:
        tosaic.compile(module, x, "tosa-int")
    assert told[0].filename == __file__
    for target, samples in (("tosa-int", [x]), ("tosa-fp", None)):
        with warnings.catch_warnings():
            warnings.simplefilter("error", tosaic.CompileWarning)
            tosaic.compile(module, x, target, calibration=samples)


class Largest(nn.Module):
    """As the last layer of YOLOv10, YOLO26 and RT-DETR: of all positions and classes, the best 300."""

    def forward(self, scores):
        return torch.topk(scores, 300)


class Ordered(nn.Module):
    def __init__(self, descending):
        super().__init__()
        self.descending = descending

    def forward(self, x):
        return torch.sort(x, stable=True, dim=1, descending=self.descending)


@pytest.mark.filterwarnings("ignore::tosaic.CompileWarning")  # of floats alone, no target counts in integers
@pytest.mark.parametrize("target", ["vgf", "vulkan", "tosa-fp"])
def test_many_elements_are_sorted(target):
    """More than 4096, whose pairs nobody compares: with equal ones, infinities and NaN."""
    scores = torch.rand(1, 15120)
    values, indices = tosaic.compile(Largest(), (scores,), target).run(scores)
    assert torch.equal(values, torch.topk(scores, 300).values)
    assert torch.equal(scores[0, indices[0].long()], values[0])
    x = torch.randn(2, 5000).round(decimals=1)
    x[0, ::7], x[0, 3::11], x[1, 5::13] = float("inf"), float("nan"), -float("inf")
    for x in x, (x[:, :4097].nan_to_num() * 10).to(torch.int32):
        for descending in True, False:
            found, wanted = tosaic.compile(Ordered(descending), (x,), target).run(x), Ordered(descending)(x)
            assert torch.equal(found[1].long(), wanted.indices)
            torch.testing.assert_close(found[0], wanted.values, rtol=0, atol=0, equal_nan=True)
