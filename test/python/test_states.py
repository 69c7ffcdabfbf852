# SPDX-License-Identifier: Apache-2.0
"""Buffers that a model writes: run after run as in eager PyTorch, on every target, here and in ExecuTorch."""

import copy

import pytest
import torch
import tosaic
from executors import Both, held
from executorch.examples.models.llama.llama_transformer import construct_transformer
from executorch.examples.models.llama.model_args import ModelArgs
from torch import nn

pytestmark = pytest.mark.filterwarnings("ignore")


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("runs", torch.zeros((), dtype=torch.int64))
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        self.runs += 1
        return self.linear(x), self.runs


class Average(nn.Module):
    """A running statistic that does not begin with zeros."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.ones(4) * 3)

    def forward(self, x):
        self.mean.mul_(0.9).add_(x.mean(0), alpha=0.1)
        return x - self.mean


class Cache(nn.Module):
    """Keys at the place that an input says: index_copy_, index_put_ or a slice."""

    def __init__(self, write):
        super().__init__()
        self.write = write
        self.register_buffer("keys", torch.zeros(1, 2, 16, 4))
        self.query, self.key = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x, position):
        key = self.key(x).view(1, 1, 2, 4).transpose(1, 2)
        if self.write == "index_copy":
            self.keys.index_copy_(2, position, key)
        else:
            self.keys[:, :, position] = key
        query = self.query(x).view(1, 1, 2, 4).transpose(1, 2)
        return torch.softmax(query @ self.keys.transpose(2, 3), -1) @ self.keys


class Stream(nn.Module):
    """A convolution over frames as they come."""

    def __init__(self):
        super().__init__()
        self.register_buffer("past", torch.zeros(1, 8, 4))
        self.conv = nn.Conv1d(8, 8, 5)

    def forward(self, x):
        frames = torch.cat([self.past, x], 2)
        self.past.copy_(frames[:, :, -4:])
        return torch.relu(self.conv(frames))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(4, 8)
        self.register_buffer("hidden", torch.zeros(1, 8))

    def forward(self, x):
        self.hidden.copy_(self.cell(x, self.hidden))
        return self.hidden * 2


class Swapped(nn.Module):
    """Each buffer's new content is the other's old one; one of them is returned."""

    def __init__(self):
        super().__init__()
        self.register_buffer("a", torch.arange(4.0))
        self.register_buffer("b", torch.ones(4))

    def forward(self, x):
        old = self.a.clone()
        self.a.copy_(self.b)
        self.b.copy_(old)
        return self.a + x, self.b


class Old(nn.Module):
    """What a buffer held before, and what it holds now."""

    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(4))

    def forward(self, x):
        old = self.total.clone()
        self.total.add_(x)
        return old, self.total


class Seen(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(4, dtype=torch.bool))

    def forward(self, x):
        self.seen.logical_or_(x > 0.5)
        return torch.where(self.seen, x, -x)


class Column(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.zeros(2, 6))

    def forward(self, x):
        self.table[:, 1:3] = x
        return self.table.sum(1)


class WritesItsInput(nn.Module):
    def forward(self, x, y):
        x.add_(y)
        return x * 2


def llama():
    """ExecuTorch's own decoder: rotary embedding, grouped heads, a key/value cache that index_put_ writes."""
    module = construct_transformer(ModelArgs(dim=32, n_layers=2, n_heads=4, n_kv_heads=2, vocab_size=64, hidden_dim=64,
                                             max_seq_len=16, max_context_len=16, use_kv_cache=True,
                                             enable_dynamic_shape=False))
    for parameter in module.parameters():
        if parameter.dim() > 1:
            nn.init.normal_(parameter, std=0.2)
    return module


def rows(*sizes):
    return lambda i: tuple(torch.randn(s) for s in sizes)


# Name -> (module, the inputs of run i).
MODELS = {
    "counter": (Counter, rows((2, 4))),
    "average": (Average, rows((5, 4))),
    "index_copy": (lambda: Cache("index_copy"), lambda i: (torch.randn(1, 1, 8), torch.tensor([i]))),
    "index_put": (lambda: Cache("index_put"), lambda i: (torch.randn(1, 1, 8), torch.tensor([i]))),
    "stream": (Stream, rows((1, 8, 3))),
    "recurrent": (Recurrent, rows((1, 4))),
    "swapped": (Swapped, rows((4,))),
    "old": (Old, rows((4,))),
    "seen": (Seen, rows((4,))),
    "column": (Column, rows((2, 2))),
    "writes_its_input": (WritesItsInput, rows((3,), (3,))),
    "llama": (llama, lambda i: (torch.randint(0, 64, (1, 1)), {"input_pos": torch.tensor([i])})),
}
RUNS = 6
EXACT = 110  # decibels: f32, but for the order of sums


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    """A module, its program, the inputs of the runs, what eager PyTorch gives."""
    make, inputs = MODELS[request.param]
    torch.manual_seed(1)
    module = make().eval()
    steps = [inputs(i) for i in range(RUNS)]
    with torch.no_grad():
        program = torch.export.export(module, copied(steps[0]), strict=False)
        eager = copy.deepcopy(module)
        wanted = [[t.clone() for t in listed(eager(*copied(step)))] for step in steps]
    return request.param, program, steps, wanted, dict(eager.named_buffers())


def copied(step):
    return copy.deepcopy(step)


def listed(result):
    return list(result) if isinstance(result, (tuple, list)) else [result]


def decibels(wanted, got):
    noise = ((wanted.double() - got.double()) ** 2).sum()
    return float(10 * torch.log10((wanted.double() ** 2).sum() / noise)) if noise else 200.0


@pytest.mark.parametrize("target", ["tosa-fp", "vgf", "vulkan"])
def test_floats_here_and_in_executorch(model, target, tmp_path):
    import tosaic.executorch.runtime

    name, program, steps, wanted, states = model
    path = tmp_path / "m.pte"
    tosaic.compile(program, target=target).save(path)
    session, method = held(target, tosaic.load, path), tosaic.executorch.runtime.load_program(path).load_method("forward")
    session.warm()  # and what it keeps is as before
    for step, expected in zip(steps, wanted):
        flat = [t for t in torch.utils._pytree.tree_leaves(copied(step))]
        for results in (listed(session.run(*copied(step))), method.execute(flat)[-len(expected):]):
            for a, b in zip(expected, results, strict=True):
                assert decibels(a, b) > EXACT, name
    for state in session.states:
        torch.testing.assert_close(session.state_dict()[state.name], states[state.name], rtol=1e-5, atol=1e-6)


# What stays a state of the program: i32 and bool, which no VARIABLE has, and what the program itself reads (to return it).
STAYS = {"counter": {"runs"}, "seen": {"seen"}, "old": {"total"}, "writes_its_input": set()}


def test_states_as_variables(model, tmp_path):
    """A target with VARIABLEs: the delegate keeps them, in every runtime and in the graph alone."""
    import tosaic.executorch.runtime

    name, program, steps, wanted, states = model
    path = tmp_path / "m.pte"
    artifact = tosaic.compile(program, target="tosa-fp", tosa_spec="TOSA-1.0+FP+variable")
    artifact.save(path)
    session, method = Both(tosaic.load, path), tosaic.executorch.runtime.load_program(path).load_method("forward")
    assert {s.name for s in session.states} == STAYS.get(name, set()), name
    plain = tosaic.compile(program, target="tosa-fp").session()
    assert {s.name for s in plain.states} - STAYS.get(name, set()) or name in STAYS

    def check(run):
        for step, expected in zip(steps, wanted):
            flat = [t for t in torch.utils._pytree.tree_leaves(copied(step))]
            for a, b in zip(expected, listed(run(step, flat))[-len(expected):], strict=True):
                assert decibels(a, b) > EXACT, name

    check(lambda step, flat: session.run(*copied(step)))
    check(lambda step, flat: method.execute(flat))
    session.reset()
    check(lambda step, flat: session.run(*copied(step)))
    other = session.clone()
    check(lambda step, flat: other.run(*copied(step)))


def test_a_write_into_a_part_at_chosen_sizes():
    """The write's own result is read by nobody: choosing sizes dropped it, and the cache stayed empty."""

    class Part(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("keys", torch.zeros(8, 3))

        def forward(self, x):
            self.keys[: x.shape[0]].add_(x)
            self.keys.narrow(0, 4, x.shape[0]).copy_(x * 2)
            return self.keys.sum(0) + x.sum(0)

    module = Part()
    program = torch.export.export(copy.deepcopy(module), (torch.randn(3, 3),),
                                  dynamic_shapes=({0: torch.export.Dim("n", min=2, max=4)},))
    sessions = [Both(tosaic.compile(program, target="tosa-fp", sizes=["x.0=3"]).session), Both(tosaic.Program.of(program).session)]
    for _ in range(4):
        x = torch.randn(3, 3)
        wanted = module(x)
        for session in sessions:
            torch.testing.assert_close(session.run(x), wanted)


# Of quantised values after conversions; int32 and 16-bit quantised values no VARIABLE has.
STAYS_OF_INTEGERS = STAYS | {"seen": set()}


@pytest.mark.parametrize("target", ["tosa-int", "tosa-fp"])
def test_states_of_integers_as_variables(model, target, tmp_path):
    """The delegate keeps the quantised values that it reads: run after run those of the program that keeps floats
    between."""
    import executorch.kernels.quantized  # noqa: F401  its kernels at the boundary of delegates
    import tosaic.executorch.runtime

    name, program, steps, wanted, _ = model
    spec = "TOSA-1.0+INT" if target == "tosa-int" else "TOSA-1.0+FP+INT"  # where quantised values are made inside

    def compiled(more):
        return tosaic.compile(program, target=target, tosa_spec=spec + more, quantize="int8", calibration=[copied(s) for s in steps])

    path = tmp_path / "m.pte"
    compiled("+variable").save(path)
    session, method = tosaic.load(path), tosaic.executorch.runtime.load_program(path).load_method("forward")
    stays = STAYS_OF_INTEGERS.get(name, set())
    assert {s.name for s in session.states} == stays
    plain = compiled("").session()
    assert stays or plain.states or name == "writes_its_input"
    results = [[torch.as_tensor(t).clone() for t in listed(plain.run(*copied(step)))] for step in steps]
    interpreter = tosaic.load(path, executor="interp")
    for again in range(2):
        for step, expected, real in zip(steps, results, wanted):
            flat = [t for t in torch.utils._pytree.tree_leaves(copied(step))]
            ways = [listed(session.run(*copied(step)))]
            if not again:
                ways += [method.execute(flat)[-len(expected):], listed(interpreter.run(*copied(step)))]
            for got in ways:
                for a, b, c in zip(expected, got, real, strict=True):
                    torch.testing.assert_close(b, a, rtol=1e-6, atol=1e-6)
                    assert decibels(c, b) > LEAST["int8"]
        session.reset()


def test_codes_of_16_bits_stay_states():
    """No VARIABLE of TOSA 1.0 holds them."""
    x = torch.randn(5, 4)
    program = torch.export.export(Average(), (x,))
    artifact = tosaic.compile(program, target="tosa-int", tosa_spec="TOSA-1.0+INT+int16+variable", quantize="int16x8",
                              calibration=[(x,)])
    assert [s.name for s in artifact.session().states] == ["mean"]


@pytest.mark.parametrize("target", ["tosa-fp", "tosa-int"])
def test_methods_keep_states_of_their_own(target, tmp_path):
    """What a delegate keeps in itself no other method sees: what several of them keep is no VARIABLE, what one has is."""
    import executorch.kernels.quantized  # noqa: F401
    import tosaic.executorch.runtime

    torch.manual_seed(0)
    x, frames = torch.randn(5, 4), [torch.randn(1, 8, 3) for _ in range(4)]
    stream = Stream().eval()
    programs = {name: torch.export.export(Average(), (x,)) for name in ("first", "second")}
    programs["stream"] = torch.export.export(copy.deepcopy(stream), (frames[0],))
    samples = {"first": [(x,)], "second": [(x,)], "stream": [(f,) for f in frames]}
    artifact = tosaic.compile(programs, target=target, tosa_spec=f"TOSA-1.0+{target[5:].upper()}+variable",
                              **({"calibration": samples} if target == "tosa-int" else {}))
    session = artifact.session()
    assert [s.name for s in session.states] == ["mean"]
    session.run(x)
    again = session.method("second").run(x)
    eager = Average()
    eager(x)
    close = {"rtol": 0, "atol": 1e-5 if target == "tosa-fp" else 0.05}
    torch.testing.assert_close(again, eager(x), **close)
    own = session.method("stream")
    assert "past" not in [s.name for s in own.states]
    artifact.save(tmp_path / "m.pte")
    method = tosaic.executorch.runtime.load_program(tmp_path / "m.pte").load_method("stream")
    with torch.no_grad():
        for f in frames:
            expected = stream(f)
            torch.testing.assert_close(own.run(f), expected, **close)
            torch.testing.assert_close(method.execute([f])[0], expected, **close)


def test_program_itself_runs(model):
    """The exported program in floats, reset, cloned, and continued from states that were kept."""
    _, program, steps, wanted, states = model
    session = Both(tosaic.Program.of(program).session)
    assert {s.name for s in session.states} <= set(states)

    def check(session, number):
        for a, b in zip(wanted[number], listed(session.run(*copied(steps[number]))), strict=True):
            assert decibels(a, b) > EXACT

    for number in range(3):
        check(session, number)
    kept = session.state_dict()
    other = session.clone()
    check(other, 0)
    other.load_state_dict(kept)
    for number in range(3, RUNS):
        check(session, number)
        check(other, number)
    session.reset()
    check(session, 0)


# Decibels that each run has at least; weights have 8 bits in both (the decoder in floats with such weights has 27.3 in the
# second run). No run is worse for being the last: the samples are a
# sequence of runs, and ranges are those of all of them.
LEAST = {"int8": 18, "int16x8": 26}


@pytest.mark.parametrize("scheme", LEAST)
def test_integers_keep_what_the_samples_grew_to(model, scheme):
    name, program, steps, wanted, _ = model
    artifact = tosaic.compile(program, target="tosa-int", quantize=scheme, calibration=[copied(s) for s in steps])
    session = Both(artifact.session)
    for i, (step, expected) in enumerate(zip(steps, wanted)):
        for a, b in zip(expected, listed(session.run(*copied(step))), strict=True):
            assert decibels(a, b) > LEAST[scheme], f"{name}, run {i}"


@pytest.mark.parametrize("target", ["ethos-u55-128", "ethos-u85-256"])
@pytest.mark.parametrize("name", ["stream", "llama"])
def test_an_npu_gives_the_integers_of_the_cpu(name, target):
    make, inputs = MODELS[name]
    torch.manual_seed(1)
    module, steps = make().eval(), [inputs(i) for i in range(RUNS)]
    with torch.no_grad():
        program = torch.export.export(module, copied(steps[0]), strict=False)
    options = dict(quantize="int8", calibration=[copied(s) for s in steps])
    ours = tosaic.compile(program, target="tosa-int", **options).session()
    npu = Both(tosaic.compile(program, target=target, **options).session)  # what stays outside, too
    for step in steps:
        got, expected = npu.run(*copied(step)), ours.run(*copied(step))
        assert decibels(expected, got) > 30  # ranges differ by what stays outside of a delegate


def test_a_buffer_that_grows_is_warned_of():
    program = torch.export.export(Old(), (torch.ones(4),))
    with pytest.warns(tosaic.CompileWarning, match="'total' became larger in each of the 3 runs"):
        tosaic.compile(program, target="tosa-int", calibration=[(torch.ones(4),)] * 3)


def test_states_that_do_not_fit_change_nothing():
    session = tosaic.Program.of(torch.export.export(Swapped(), (torch.ones(4),))).session()
    with pytest.raises(tosaic.Error, match="no state 'c'(.|\n)*its states are a, b"):
        session.load_state_dict({"c": torch.ones(4)})
    for wrong in (torch.ones(5), torch.ones(4, dtype=torch.int32)):
        with pytest.raises(tosaic.Error, match="state 'b' is"):
            session.load_state_dict({"a": torch.full((4,), 9.0), "b": wrong})
    assert torch.equal(session.state_dict()["a"], torch.arange(4.0))


def test_executorchs_own_files_keep_theirs(tmp_path):
    """A program that ExecuTorch lowered itself, its buffers initialised: the same states, by the same names."""
    from executorch.exir import ExecutorchBackendConfig, to_edge
    from executorch.exir.passes.init_mutable_pass import InitializedMutableBufferPass

    module = Average()
    edge = to_edge(torch.export.export(module, (torch.ones(5, 4),)))
    made = edge.to_executorch(ExecutorchBackendConfig(passes=[InitializedMutableBufferPass(["mean"])],
                                                      emit_mutable_buffer_names=True))
    (tmp_path / "m.pte").write_bytes(made.buffer)
    session = Both(tosaic.load, tmp_path / "m.pte")
    for _ in range(4):
        x = torch.randn(5, 4)
        torch.testing.assert_close(session.run(x), module(x))
    assert [s.name for s in session.states] == ["mean"]
    torch.testing.assert_close(session.state_dict()["mean"], module.mean)


def test_statistics_of_a_model_in_training():
    """Left in training mode by mistake it is warned of; where that is meant, its statistics are states like any other."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)).train()
    batches = [torch.randn(2, 3, 6, 6) for _ in range(3)]
    program = torch.export.export(model, (batches[0],))
    with pytest.warns(tosaic.CompileWarning, match="batch_norm is in training mode"):
        session = tosaic.compile(program, target="tosa-fp").session()
    for x in batches:
        torch.testing.assert_close(session.run(x), model(x).detach(), rtol=1e-5, atol=1e-5)
    for name, content in session.state_dict().items():
        torch.testing.assert_close(content, model.state_dict()[name], rtol=1e-5, atol=1e-6)
