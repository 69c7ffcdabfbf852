# SPDX-License-Identifier: Apache-2.0
"""Sessions, programs and artifacts in several threads of one interpreter; `make test-python-races` watches these."""
import concurrent.futures
import pathlib

import pytest
import torch

import tosaic

pytestmark = pytest.mark.filterwarnings("ignore")
MODELS = pathlib.Path(__file__).parents[2] / "build" / "models"
TARGETS = ["tosa-fp", "tosa-int", "vgf", "vulkan", "ethos-u55-128"]


def in_threads(body, arguments):
    """What body gives for each, in four threads."""
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        return list(pool.map(body, arguments))


class Counts(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(3))

    def forward(self, x):
        self.total += x
        return self.total * 1


@pytest.mark.parametrize("target", TARGETS)
def test_clones_have_a_thread_each(target):
    session = tosaic.compile(MODELS / "digits.pt2", target=target).session(threads=2)
    x = torch.randn(1, 1, 8, 8)
    wanted = session.run(x)

    def work(s):
        return all(torch.equal(s.run(x), wanted) for _ in range(50))

    assert all(in_threads(work, [session.clone() for _ in range(4)]))


@pytest.mark.parametrize("target", TARGETS)
def test_sessions_made_and_dropped(target):
    """Of one artifact, and of its bytes; some of them measured."""
    artifact = tosaic.compile(MODELS / "digits.pt2", target=target)
    x = torch.randn(1, 1, 8, 8)
    wanted = artifact.run(x)

    def work(i):
        session = artifact.session() if i % 2 else tosaic.load(artifact.pte)
        if i % 3 == 0 and i % 2:
            session.measure()
        return torch.equal(torch.utils._pytree.tree_leaves(session.run(x))[0], wanted)

    assert all(in_threads(work, range(16)))


def test_states_are_each_clones_own():
    session = tosaic.compile(Counts(), torch.ones(3), "tosa-fp").session()

    def work(s):
        return [float(s.run(torch.ones(3))[0]) for _ in range(50)]

    assert in_threads(work, [session.clone() for _ in range(4)]) == [[float(i + 1) for i in range(50)]] * 4


def test_one_session_in_two_threads_is_refused_not_wrong():
    program = torch.export.load(MODELS / "tiny_vit.pt2")
    artifact, x = tosaic.compile(program, target="tosa-fp"), program.example_inputs[0][0]
    wanted, session = artifact.run(x), artifact.session(threads=1)
    refused = []

    def work(i):
        try:
            assert torch.equal((session if i % 2 else artifact).run(x), wanted)
        except tosaic.Error as why:
            refused.append(why.code)

    in_threads(work, range(24))
    assert set(refused) <= {"session.busy"}


def test_compilations_and_questions_of_one_program():
    program = tosaic.Program.of(MODELS / "digits.pt2")

    def said(target):
        return tosaic.compile(program, target=target).pte, tosaic.explain(program, target).records()

    wanted = {t: said(t) for t in TARGETS}
    assert all(wanted[t] == found for t, found in zip(TARGETS * 3, in_threads(said, TARGETS * 3), strict=True))


def test_calibrations_of_one_program():
    program = tosaic.Program.of(torch.nn.Linear(4, 4).eval(), (torch.randn(2, 4),))
    data = [[torch.randn(2, 4) * (i + 1) for _ in range(3)] for i in range(4)]

    def quantised(batches):
        return tosaic.compile(program, target="tosa-int", calibration=batches).pte

    assert in_threads(quantised, data * 3) == [quantised(batches) for batches in data] * 3


def test_errors_reach_the_thread_that_made_them():
    session = tosaic.compile(MODELS / "digits.pt2", target="tosa-fp").session(threads=1)

    def work(i):
        wrong = [lambda: tosaic.compile(f"/nowhere/{i}.pt2"), lambda: tosaic.load(b"nothing"),
                 lambda: session.clone().run(torch.zeros(1, 1, 8, 9 + i))][i % 3]
        with pytest.raises(tosaic.Error) as caught:
            wrong()
        return i % 3 != 0 or f"/nowhere/{i}.pt2" in str(caught.value)

    assert all(in_threads(work, range(24)))


def test_in_executorchs_runtime():
    """A program for each thread, as its runtime wants it."""
    import executorch.kernels.quantized  # noqa: F401  what converts the inputs of integer programs
    import tosaic.executorch.runtime

    x = torch.randn(1, 1, 8, 8)
    files = {t: tosaic.compile(MODELS / "digits.pt2", target=t).pte for t in TARGETS}

    def run(target):
        return tosaic.executorch.runtime.load_program(files[target]).load_method("forward").execute([x])[0].clone()

    wanted = {t: run(t) for t in TARGETS}
    names = TARGETS * 4
    assert all(torch.equal(found, wanted[t]) for t, found in zip(names, in_threads(run, names), strict=True))
