# SPDX-License-Identifier: Apache-2.0
"""Several programs as the methods of one file: weights stored once, buffers of equal names kept together, in our runtime and
in ExecuTorch's; and several sizes of a program that keeps a cache."""
import copy
import pathlib
import subprocess
import sys

import pytest
import tosaic
import torch
from torch import nn
from steps import assert_within, step

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.by_turns(2)]


class Decoder(nn.Module):
    """Attention over a cache that both methods write."""

    def __init__(self, width=64, slots=16):
        super().__init__()
        torch.manual_seed(0)
        self.query, self.key, self.head = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, 256)
        self.requires_grad_(False)
        self.register_buffer("cache", torch.zeros(1, slots, width))

    def forward(self, x, positions):
        self.cache[:, positions] = self.key(x)
        return self.head(torch.softmax(self.query(x) @ self.cache.transpose(1, 2), -1) @ self.cache)


PREFILL, STEP = (torch.randn(1, 8, 64), torch.arange(8)), (torch.randn(1, 1, 64), torch.tensor([8]))


def exported(module):
    return {"prefill": torch.export.export(module, PREFILL), "decode": torch.export.export(module, STEP)}


def sequence(seed=3):
    torch.manual_seed(seed)
    yield "prefill", (torch.randn(1, 8, 64), torch.arange(8))
    for position in range(8, 12):
        yield "decode", (torch.randn(1, 1, 64), torch.tensor([position]))


def follow(run, module, seed=3):
    for method, inputs in sequence(seed):
        torch.testing.assert_close(run(method, inputs), module(*inputs), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("target", ["tosa-fp", "vgf", "vulkan"])
def test_one_cache_for_prefill_and_decode(target):
    module = Decoder().eval()
    artifact = tosaic.compile(exported(module), target=target)
    session = artifact.session()
    assert session.methods == ["prefill", "decode"]
    both = {"prefill": session, "decode": session.method("decode")}
    eager = copy.deepcopy(module)
    follow(lambda name, inputs: both[name](*inputs), eager)
    assert torch.allclose(both["decode"].state_dict()["cache"], eager.cache, atol=1e-5)
    twin = session.clone()
    assert twin.state_dict()["cache"].abs().max() == 0  # its own, as at first, and one for its methods
    twin_both = {"prefill": twin, "decode": twin.method("decode")}
    follow(lambda name, inputs: twin_both[name](*inputs), copy.deepcopy(module), seed=4)
    assert torch.allclose(session.state_dict()["cache"], eager.cache, atol=1e-5)
    both["decode"].reset()
    assert session.state_dict()["cache"].abs().max() == 0
    follow(lambda name, inputs: both[name](*inputs), copy.deepcopy(module), seed=5)


@pytest.mark.parametrize("target, shaders", [("tosa-fp", 0), ("vulkan", 40000)])
def test_weights_are_stored_once(target, shaders):
    module = Decoder(width=256).eval()
    calls = {"prefill": (torch.randn(1, 8, 256), torch.arange(8)), "decode": (torch.randn(1, 1, 256), torch.tensor([8]))}
    together = tosaic.compile({name: torch.export.export(module, call) for name, call in calls.items()}, target=target).pte
    alone = tosaic.compile(module, calls["prefill"], target).pte
    assert len(together) < 1.1 * len(alone) + shaders


def test_shared_weights_of_vulkan_come_out_whole(tmp_path):
    """What `extract` writes needs no program around it."""
    tool = pathlib.Path(tosaic.__file__).parent / "bin" / "tosaic"
    module = Decoder().eval()
    tosaic.compile(exported(module), target="vulkan").save(tmp_path / "m.pte")
    tosaic.compile(module, STEP, "vulkan").save(tmp_path / "alone.pte")
    for name in ("m", "alone"):
        subprocess.run([tool, "extract", tmp_path / f"{name}.pte", "-o", tmp_path / name], check=True, capture_output=True)
    whole = (tmp_path / "m/decode_delegate0.bin").read_bytes()
    assert len(whole) > 3 * 64 * 64 * 4
    assert whole == (tmp_path / "alone/forward_delegate0.bin").read_bytes()
    told = subprocess.run([tool, "inspect", tmp_path / "m.pte"], check=True, capture_output=True, text=True).stdout
    assert told.count("constants ") == 2 and "unreadable" not in told


def test_sizes_share_weights():
    linear = nn.Linear(256, 256).eval()
    program = torch.export.export(linear, (torch.randn(2, 256),), dynamic_shapes=({0: torch.export.Dim("batch", max=4)},))
    several = tosaic.compile(program, target="tosa-fp", sizes=["input.0=1,2,3,4"]).pte
    assert len(several) < 1.1 * len(tosaic.compile(program, target="tosa-fp", sizes=["input.0=1"]).pte) + 12000


def test_state_that_does_not_begin_with_zeros():
    class Average(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", torch.arange(1, 5.0))
            self.register_buffer("runs", torch.zeros(()))

        def forward(self, x):
            self.mean.mul_(0.5).add_(x, alpha=0.5)
            return x - self.mean

    class Seen(Average):
        def forward(self, x):
            self.runs.add_(1)
            return self.mean * x

    x = torch.randn(4)
    artifact = tosaic.compile({"update": torch.export.export(Average(), (x,)), "apply": torch.export.export(Seen(), (x,))},
                              target="tosa-fp")
    update = artifact.session()
    mean = torch.arange(1, 5.0)
    for _ in range(2):
        torch.testing.assert_close(update(x), x - (mean * 0.5 + x * 0.5))
        update.reset()
    update(x)
    late = update.method("apply")  # which only reads the buffer, and is loaded when that has changed: it stays so
    assert late.state_dict().keys() == {"mean", "runs"} and update.state_dict().keys() == {"mean"}
    torch.testing.assert_close(late(x), (mean * 0.5 + x * 0.5) * x)
    assert late.state_dict()["runs"] == 1


def test_several_sizes_keep_one_cache():
    module = Decoder().eval()
    length = torch.export.Dim("length", min=1, max=8)
    program = torch.export.export(module, PREFILL, dynamic_shapes=({1: length}, {0: length}))
    artifact = tosaic.compile(program, target="tosa-fp", sizes=["x.1=8,1"])
    session = artifact.session()
    eager = copy.deepcopy(module)
    follow(lambda _, inputs: session(*inputs), eager)
    assert torch.allclose(session.state_dict()["cache"], eager.cache, atol=1e-5)
    session.clone()
    session.reset()
    follow(lambda _, inputs: session(*inputs), copy.deepcopy(module), seed=6)


def decibels(wanted, got):
    return 10 * torch.log10(wanted.square().sum() / (wanted - got).square().sum()).item()


def small_steps():
    """On an empty cache these leave ranges that the contents after a prefill are far beyond."""
    torch.manual_seed(9)
    return [(torch.randn(1, 1, 64) * 0.01, torch.tensor([p])) for p in range(8, 12)]


@pytest.mark.parametrize("target", ["tosa-int", "ethos-u85-256"])
@pytest.mark.parametrize("scheme", ["int8", "int16x8"])
def test_each_method_has_its_samples_and_a_state_one_scale(target, scheme):
    module = Decoder().eval()
    artifact = tosaic.compile(exported(copy.deepcopy(module)), target=target, quantize=scheme, calibration={
        "prefill": [inputs for seed in range(4) for name, inputs in sequence(seed) if name == "prefill"],
        "decode": [inputs for seed in range(4) for name, inputs in sequence(seed) if name == "decode"]})
    assert artifact.summary.samples == 20
    session = artifact.session()
    both = {"prefill": session, "decode": session.method("decode")}
    before = None
    for name, inputs in sequence(seed=11):
        assert decibels(module(*inputs), both[name](*inputs)) > (22 if scheme == "int8" else 37)
        after = session.state_dict()["cache"].clone()
        if name == "decode":  # what it does not write passes through its integers, and is the same number again
            kept = [p for p in range(16) if p != int(inputs[1])]
            assert torch.equal(after[:, kept], before[:, kept])
        before = after
    assert decibels(module.cache, before) > (36 if scheme == "int8" else 46)


def test_samples_of_a_method_see_what_the_methods_before_left():
    module = Decoder().eval()
    artifact = tosaic.compile(exported(copy.deepcopy(module)), target="tosa-int", calibration={
        "decode": small_steps(), "prefill": [inputs for name, inputs in sequence(5) if name == "prefill"]})
    session = artifact.session()
    prefill = next(inputs for name, inputs in sequence(5) if name == "prefill")
    session(*prefill), module(*prefill)
    step = small_steps()[0]
    assert decibels(module(*step), session.method("decode")(*step)) > 36  # 2 with scales of its own


def test_a_method_without_samples_takes_those_of_its_program():
    artifact = tosaic.compile(exported(Decoder().eval()), target="tosa-int", calibration={"prefill": [PREFILL] * 3})
    assert artifact.summary.samples == 4
    assert [m.code for m in artifact.summary.messages].count("calibrate.stored-samples") == 1


def test_states_of_one_scale_family():
    """Two states that share a scale in one method, by a concatenation, do in the other, which reads them apart."""
    class Pair(nn.Module):
        def __init__(self, both):
            super().__init__()
            self.both = both
            self.register_buffer("a", torch.zeros(1, 4))
            self.register_buffer("b", torch.zeros(1, 4))

        def forward(self, x):
            if self.both:
                all_of_it = torch.cat((self.a, self.b), 1)
                self.a.copy_(all_of_it[:, 4:])
                self.b.copy_(x)
                return all_of_it * 2
            self.b.copy_(self.a)
            self.a.copy_(x)
            return self.a + self.b

    x = torch.tensor([[-1.0, 0.5, 0.25, 3]])
    methods = {"apart": torch.export.export(Pair(False), (x,)), "both": torch.export.export(Pair(True), (x,))}
    artifact = tosaic.compile(methods, target="tosa-int", calibration={"apart": [x * 10], "both": [x] * 3})
    eager, session = Pair(True), artifact.session()
    run = {False: session, True: session.method("both")}
    states = session.state_dict()
    for both, scale in ((False, 10), (True, 1), (True, 8), (False, 3), (True, 1), (True, 1)):
        eager.both = both
        before, wanted = {name: t.clone() for name, t in states.items()}, eager(x * scale)
        assert_within(2.25, run[both](x * scale), wanted, of=step(x * 20))  # what calibration saw of "both"
        states = session.state_dict()
        moved = (states["a"], before["b"]) if both else (states["b"], before["a"])
        assert torch.equal(*moved), (both, scale)


@pytest.mark.parametrize("calibration, says, help", [
    ([PREFILL], "whose samples", "calibration={\"prefill\": ...}"),
    ("samples.npz", "whose samples", "--calibrate prefill=FILE"),
    ({"forward": [PREFILL]}, "'forward', which is no method", "prefill, decode"),
    ({"prefill": "missing.npz", "other": "missing.npz"}, None, None),
    ({3: [PREFILL]}, "'3', which is no method", "prefill, decode"),
    ({"prefill": [STEP]}, "sample 0", None),
    ({"prefill": []}, "gives no samples", None),
    ({"prefill": PREFILL[0]}, "one tensor", "calibration=[x]"),
])
def test_samples_of_no_method_are_refused(calibration, says, help):
    with pytest.raises(tosaic.Error, match=says) as refused:
        tosaic.compile(exported(Decoder().eval()), target="tosa-int", calibration=calibration)
    assert refused.value.code.startswith("calibrate.") or refused.value.code == "file.missing"
    assert help is None or help in refused.value.help


@pytest.mark.parametrize("methods, code, says", [
    (lambda d: {"a b": torch.export.export(d, STEP)}, "model.methods", "no name of a method"),
    (lambda d: {"prefill": torch.export.export(d, PREFILL), "decode": torch.export.export(Decoder(slots=12), STEP)},
     "model.state", "1x16x64xf32"),
    (lambda d: {}, "model.methods", "no programs"),
])
def test_what_does_not_fit_is_refused(methods, code, says):
    with pytest.raises(tosaic.Error, match=says) as refused:
        tosaic.compile(methods(Decoder().eval()), target="tosa-fp")
    assert refused.value.code == code


def test_states_that_begin_with_other_content_are_refused():
    first, second = Decoder().eval(), Decoder().eval()
    second.cache[:] = 1
    with pytest.raises(tosaic.Error, match="other content") as refused:
        tosaic.compile({"prefill": torch.export.export(first, PREFILL), "decode": torch.export.export(second, STEP)},
                       target="tosa-fp")
    assert refused.value.code == "model.state"


def test_a_method_that_is_not_there_is_told():
    session = tosaic.compile(exported(Decoder().eval()), target="tosa-fp").session()
    with pytest.raises(tosaic.Error, match="no method 'forward'") as refused:
        session.method("forward")
    assert "'prefill', 'decode'" in str(refused.value)


@pytest.mark.parametrize("target", ["tosa-fp", "vulkan"])
def test_in_executorchs_runtime(target):
    import tosaic.executorch.runtime

    module = Decoder().eval()
    pte = tosaic.compile(exported(module), target=target).pte
    program = tosaic.executorch.runtime.load_program(pte)
    methods = {name: program.load_method(name) for name in ("prefill", "decode")}
    follow(lambda name, inputs: methods[name].execute(list(inputs))[0], copy.deepcopy(module))


@pytest.mark.parametrize("named", [True, False])
def test_executorchs_programs_with_shared_buffers(named):
    from executorch.exir import ExecutorchBackendConfig, to_edge
    from executorch.exir.passes import MemoryPlanningPass

    module = Decoder().eval()
    theirs = to_edge(exported(module)).to_executorch(ExecutorchBackendConfig(
        memory_planning_pass=MemoryPlanningPass(share_mutable_buffers=True), emit_mutable_buffer_names=named))
    first = tosaic.load(theirs.buffer, method="prefill")
    both = {"prefill": first, "decode": first.method("decode")}
    follow(lambda name, inputs: both[name](*inputs), copy.deepcopy(module))
    both["decode"].reset()
    follow(lambda name, inputs: both[name](*inputs), copy.deepcopy(module), seed=5)
    # Without sharing every method has a cache of its own.
    apart = to_edge(exported(module)).to_executorch(ExecutorchBackendConfig(emit_mutable_buffer_names=True))
    alone = tosaic.load(apart.buffer, method="prefill")
    other = alone.method("decode")
    alone(*PREFILL)
    assert other.state_dict()["cache"].abs().max() == 0


# In a process of its own: what others have freed there would be taken first.
LOADS_TWICE = """
import sys
import tosaic

def anonymous():  # what is not mapped from files, in MB
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("RssAnon"))

before = anonymous()
first = tosaic.load(sys.argv[1], method="rows_8")
between = anonymous()
second = first.method("rows_1")
print(between - before, anonymous() - between)
"""


def test_methods_share_what_weights_are_packed_to(tmp_path):
    module = nn.Sequential(*(nn.Linear(448, 448) for _ in range(64))).eval()  # too small to be read where they lie
    programs = {f"rows_{n}": torch.export.export(module, (torch.randn(n, 448),)) for n in (8, 1)}
    tosaic.compile(programs, target="tosa-fp").save(tmp_path / "m.pte")
    taken = subprocess.run([sys.executable, "-c", LOADS_TWICE, tmp_path / "m.pte"], check=True, capture_output=True, text=True)
    first, second = map(float, taken.stdout.split())
    assert first > 45 and second < 12
    loaded = tosaic.load(tmp_path / "m.pte", method="rows_8")
    step = loaded.method("rows_1")
    x = torch.randn(8, 448)
    del loaded
    torch.testing.assert_close(step(x[:1]), module(x[:1]), rtol=1e-4, atol=1e-5)


RUNS_ONCE = """
import sys
import torch
import tosaic

def anonymous():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("RssAnon"))

before = anonymous()
run = tosaic.load(sys.argv[1])
run(torch.arange(int(sys.argv[2]))[None])
print(anonymous() - before)
"""


class LargeLanguageModel(nn.Module):
    """A table of tokens that is the last layer's weight, too, and layers as decoders have them: 104 MB of f32."""

    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(8192, 1024)
        self.layers = nn.ModuleList(nn.ModuleList([nn.Linear(1024, 3072, bias=False), nn.Linear(3072, 1024, bias=False)])
                                    for _ in range(3))
        self.head = nn.Linear(1024, 8192, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, tokens):
        x = self.tokens(tokens)
        for up, down in self.layers:
            x = x + down(torch.relu(up(x)))
        return self.head(x)


@pytest.mark.parametrize("rows", [1, 16])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_large_weights_stay_in_the_mapped_file(dtype, rows, tmp_path):
    module = LargeLanguageModel().to(dtype).eval()
    program = torch.export.export(module, (torch.zeros(1, rows, dtype=torch.int64),))
    tosaic.compile(program, target="tosa-fp").save(tmp_path / "m.pte")
    taken = subprocess.run([sys.executable, "-c", RUNS_ONCE, tmp_path / "m.pte", str(rows)], check=True, capture_output=True,
                           text=True)
    assert float(taken.stdout) < 20
    tokens = torch.arange(rows)[None]
    wanted = module(tokens).float()
    got = tosaic.load(tmp_path / "m.pte")(tokens).float()
    unit = torch.finfo(dtype).eps
    torch.testing.assert_close(got, wanted, rtol=0, atol=max(8 * unit, 1e-4) * wanted.abs().max().item())
