# SPDX-License-Identifier: Apache-2.0
"""What is refused, and what the refusal says."""
import pathlib
import pickle
import signal
import threading
import time
import warnings

import numpy as np
import pytest
import torch
from steps import assert_within

import tosaic

MODELS = pathlib.Path(__file__).parents[2] / "build" / "models"


class Add(torch.nn.Module):
    def forward(self, x, y):
        return x + y


X = torch.zeros(2, 3)


def refusal(body):
    with pytest.raises(tosaic.Error) as caught:
        body()
    assert caught.value.code and str(caught.value).find("help: ") > 0, caught.value
    return caught.value


def test_programs():
    assert refusal(lambda: tosaic.compile(3)).code == "program.kind"
    assert refusal(lambda: tosaic.compile(Add())).code == "program.example-inputs"
    assert refusal(lambda: tosaic.compile("/nowhere.pt2")).code == "file.missing"
    assert refusal(lambda: tosaic.compile(b"PK\x03\x04 nothing")).code.startswith("zip.")
    assert refusal(lambda: tosaic.compile(np.zeros(3))).code == "program.kind"


def test_targets_and_options():
    assert "ethos-u55-128" in str(refusal(lambda: tosaic.compile(Add(), (X, X), "ethos-u55-129")))
    error = refusal(lambda: tosaic.compile(Add(), (X, X), "vgf", samples=[(X, X)]))
    assert error.code == "option.unknown"
    assert "tosaic.compile itself takes calibration" in str(error)
    assert refusal(lambda: tosaic.compile(Add(), (X, X), "vgf", memory_mode="Sram_Only")).code == "option.target"
    assert refusal(lambda: tosaic.compile(Add(), (X, X), "tosa-int", quantize="int3")).code == "option.value"


def test_calibration():
    compile_with = lambda c: lambda: tosaic.compile(Add(), (X, X), "tosa-int", calibration=c)
    assert refusal(compile_with(X)).code == "calibrate.structure"
    assert "is a int," in str(refusal(compile_with(5)))
    assert refusal(compile_with([X])).code == "calibrate.structure"
    assert refusal(compile_with([(X, 3)])).code == "calibrate.sample"
    assert refusal(compile_with([(X, X.double())])).code == "calibrate.sample-type"
    assert refusal(compile_with([(X, torch.zeros(3, 3))])).code == "calibrate.sample-type"
    assert refusal(compile_with([(torch.full((2, 3), torch.nan), X)])).code == "calibrate.not-a-number"
    assert refusal(compile_with([])).code == "calibrate.no-samples"
    with pytest.warns(tosaic.CompileWarning, match="calibrate.constant"):
        compile_with([(X, torch.rand(2, 3))] * 4)()
    assert refusal(compile_with([{"x": X, "z": X}])).code == "calibrate.structure"

    def broken():
        yield (X, X)
        raise ZeroDivisionError("of the user's own")

    with pytest.raises(ZeroDivisionError, match="of the user's own"):
        compile_with(broken())()


def test_runs():
    artifact = tosaic.compile(Add(), (X, X), "tosa-fp")
    assert refusal(lambda: artifact.run(X)).code == "run.tree"
    assert "given z by name, the program takes x, y" in str(refusal(lambda: artifact.run(X, z=X)))
    assert refusal(lambda: artifact.run(X, x=X)).code == "run.tree"
    assert refusal(lambda: artifact.run(X, X.double())).code == "run.input-type"
    assert refusal(lambda: artifact.run(X, torch.zeros(4, 3))).code == "run.input-type"
    assert refusal(lambda: artifact.run(X, "text")).code == "tensor.kind"
    assert refusal(lambda: artifact.run(X, torch.zeros(2, 3, device="meta"))).code == "tensor.device"
    assert refusal(lambda: artifact.run(X, np.zeros((2, 3), dtype="complex64"))).code == "tensor.dtype"
    assert refusal(lambda: artifact.run(X, np.zeros((2, 3), dtype="S4"))).code == "tensor.dtype"
    assert refusal(lambda: artifact.piece("vgf")).code == "artifact.no-piece"
    assert refusal(lambda: artifact.save("net.xyz")).code == "artifact.ending"
    assert refusal(lambda: tosaic.load(b"no program")).code == "run.unknown-format"
    assert refusal(lambda: artifact.session(device="gpu")).code == "run.device"


def test_model_on_another_device():
    model = torch.nn.Linear(3, 3, device="meta")
    assert refusal(lambda: tosaic.compile(model, X, "tosa-fp")).code == "program.device"
    with torch.device("meta"):
        exported = torch.export.export(torch.nn.Linear(3, 3), (torch.zeros(2, 3),))
    assert refusal(lambda: tosaic.compile(exported, target="tosa-fp")).code == "program.device"


class Branch(torch.nn.Module):
    def forward(self, x):
        return x + 1 if x.sum() > 0 else x - 1


def test_what_export_does_not_take():
    assert refusal(lambda: tosaic.compile(torch.nn.Linear(3, 3), X.to("meta"), "tosa-fp")).code == "program.device"
    assert refusal(lambda: tosaic.compile(torch.jit.trace(torch.nn.ReLU(), X), X, "tosa-fp")).code == "program.kind"


def test_runs_with_another_form_of_call():
    class Takes(torch.nn.Module):
        def forward(self, x, pair, *, scale, extra=None):
            return x * scale + pair["a"]

    artifact = tosaic.compile(Takes(), (X, {"a": X}), "tosa-fp", example_kwargs={"scale": X})
    for call in (lambda: artifact.run(X), lambda: artifact.run(X, {"b": X}, scale=X), lambda: artifact.run(X, X, scale=X),
                 lambda: artifact.run(X, {"a": X}), lambda: artifact.run(X, {"a": X}, scale=X, extra=X),
                 lambda: artifact.run(X, {"a": X}, X), lambda: artifact.run(X, {"a": X}, factor=X)):
        assert refusal(call).code == "run.tree"
    assert refusal(lambda: artifact.run(X, {"a": None}, scale=X)).code == "tensor.kind"

    def maximum(x):
        return torch.return_types.max((x, x))

    class OfPytorchsTuple(torch.nn.Module):
        def forward(self, pair):
            return pair.values + 1

    artifact = tosaic.compile(OfPytorchsTuple(), (maximum(X),), "tosa-fp")
    assert torch.equal(artifact.run(maximum(X)), X + 1)
    assert refusal(lambda: artifact.run((X, X))).code == "run.tree"


@pytest.mark.parametrize("target, dtype", [("tosa-fp", torch.float64), ("vgf", torch.float64), ("tosa-int", torch.float64)])
def test_precisions_that_a_target_has_not(target, dtype):
    model, x = torch.nn.Linear(3, 3).to(dtype), X.to(dtype)
    assert refusal(lambda: tosaic.compile(model, x, target, calibration=[x])).code == "target.nothing-delegated"
    with pytest.warns(tosaic.CompileWarning, match="nothing-delegated"):  # nobody gave samples: it runs, on the CPU
        tosaic.compile(model, x, target)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_quantised_like_floats(dtype):
    model, x = torch.nn.Linear(3, 3).to(dtype), torch.rand(2, 3).to(dtype)
    got = tosaic.compile(model, x, "tosa-int", calibration=[x]).run(x)
    assert got.dtype == dtype
    assert_within(2, got, model(x).detach())


def test_draft_export_that_is_not_sound():
    draft = torch.export.draft_export(Branch(), (X,))
    refused = refusal(lambda: tosaic.compile(draft, target="tosa-fp"))
    assert refused.code == "program.draft"
    assert "data dependent error: Eq(" in str(refused) and "return x + 1 if x.sum() > 0 else x - 1" in str(refused)
    sound = torch.export.draft_export(Add(), (X, X.clone()))
    assert tosaic.compile(sound, target="tosa-fp").pte == tosaic.compile(Add(), (X, X), target="tosa-fp").pte


def test_draft_export_in_a_file_warns_of_what_it_assumed(tmp_path):
    torch.export.save(torch.export.draft_export(Branch(), (X,)), tmp_path / "draft.pt2")
    with pytest.warns(tosaic.CompileWarning, match="pt2.unchecked-assumption"):
        tosaic.compile(tmp_path / "draft.pt2", target="tosa-fp")


def test_torch_versions(monkeypatch):
    exported = torch.export.export(Add(), (X, X))
    monkeypatch.setattr(torch, "__version__", "2.8.1+cpu")
    refused = refusal(lambda: tosaic.compile(exported, target="tosa-fp"))
    assert refused.code == "program.torch-version" and "2.9 to 2.15" in str(refused)
    monkeypatch.setattr(torch, "__version__", "2.99.0")
    assert tosaic.compile(exported, target="tosa-fp").pte
    monkeypatch.delattr("torch._export.serde.serialize.GraphModuleSerializer")
    refused = refusal(lambda: tosaic.compile(exported, target="tosa-fp"))
    assert refused.code == "program.torch-version" and "torch.export.save" in refused.help


def test_dynamic_shapes_without_bounds_say_what_to_do():
    exported = torch.export.export(Add(), (X, X), dynamic_shapes=[{0: torch.export.Dim("batch")}] * 2)
    assert refusal(lambda: tosaic.compile(exported, target="tosa-fp")).code == "model.dynamic-shape"


def test_warnings_are_pythons():
    class Halves(torch.nn.Module):  # bf16 that the specification leaves out
        def forward(self, x):
            return x.reshape(-1)

    plain = {"tosa_spec": "TOSA-1.0+FP"}

    with pytest.warns(tosaic.CompileWarning, match="nothing-delegated") as said:
        tosaic.compile(Halves(), X.bfloat16(), "vgf", **plain)
    assert said[0].filename == __file__ and said[0].message.diagnostic.code == "target.nothing-delegated"
    with warnings.catch_warnings():
        warnings.simplefilter("error", tosaic.CompileWarning)
        with pytest.raises(tosaic.CompileWarning):
            tosaic.compile(Halves(), X.bfloat16(), "vgf", **plain)


def test_errors_survive_pickling():
    error = pickle.loads(pickle.dumps(refusal(lambda: tosaic.compile("/nowhere.pt2"))))
    assert error.code == "file.missing" and "nowhere" in str(error)


def test_ctrl_c_stops_within_a_second():
    program = tosaic.Program.of(MODELS / "tiny_vit.pt2")
    image = torch.export.load(MODELS / "tiny_vit.pt2").example_inputs[0][0]
    forever = (image for _ in range(10**9))
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background shell ignores it
    threading.Timer(0.5, lambda: signal.raise_signal(signal.SIGINT)).start()
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        tosaic.compile(program, target="tosa-int", calibration=forever)
    assert time.monotonic() - begin < 1.5
