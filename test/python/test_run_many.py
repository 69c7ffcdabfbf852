# SPDX-License-Identifier: Apache-2.0
"""`run_many`: many calls at once give what they give one after the other, in the order of the calls."""
import itertools
import pathlib
import threading

import numpy as np
import pytest
import torch

import tosaic

pytestmark = pytest.mark.filterwarnings("ignore")
MODELS = pathlib.Path(__file__).parents[2] / "build" / "models"


class Sum(torch.nn.Module):
    def forward(self, x, y=None):
        return {"sum": x + y}


@pytest.fixture(scope="module")
def artifact():
    return tosaic.compile(Sum(), (torch.zeros(3), torch.zeros(3)), "tosa-fp")


@pytest.mark.parametrize("target", ["tosa-fp", "tosa-int", "vulkan", "ethos-u55-128"])
def test_as_one_after_the_other(target):
    artifact = tosaic.compile(MODELS / "digits.pt2", target=target)
    images = torch.randn(23, 1, 1, 8, 8)
    wanted = [artifact.run(x) for x in images]
    got = list(artifact.run_many(images, workers=3))
    assert len(got) == 23 and all(torch.equal(a, b) for a, b in zip(got, wanted))


def test_calls_by_position_and_by_name(artifact):
    calls = [(torch.full((3,), float(i)), torch.ones(3)) if i % 2 else {"x": torch.full((3,), float(i)), "y": torch.ones(3)}
             for i in range(9)]
    assert [r["sum"].tolist() for r in artifact.run_many(calls)] == [[i + 1.0] * 3 for i in range(9)]
    for result in artifact.run_many([(np.zeros(3, np.float32), np.ones(3, np.float32))]):
        assert isinstance(result["sum"], np.ndarray)
    assert list(artifact.run_many([])) == []


def test_calls_are_read_as_results_are_taken(artifact):
    read = itertools.count()
    endless = ((torch.full((3,), float(next(read))), torch.zeros(3)) for _ in itertools.count())
    results = artifact.run_many(endless, workers=2)
    assert [next(results)["sum"][0].item() for _ in range(10)] == list(range(10))
    assert next(read) <= 10 + 2 * 2 + 1
    results.close()
    assert not any(t.name.startswith("tosaic.run_many") for t in threading.enumerate())


def test_states_begin_anew_for_each():
    class Counts(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("total", torch.zeros(2))

        def forward(self, x):
            self.total += x
            return self.total * 1

    session = tosaic.compile(Counts(), torch.zeros(2), "tosa-fp").session(threads=1)
    session.run(torch.ones(2))
    assert [r.tolist() for r in session.run_many([torch.full((2,), float(i)) for i in range(8)], workers=2)] == [[float(i)] * 2 for i in range(8)]
    assert session.run(torch.ones(2)).tolist() == [2.0, 2.0]  # its own goes on


def test_what_is_wrong_is_told_with_the_call(artifact):
    good, bad = (torch.zeros(3), torch.zeros(3)), (torch.zeros(3), torch.zeros(4))
    results = artifact.run_many([good, good, bad, good])
    next(results), next(results)
    with pytest.raises(tosaic.Error, match=r"call 2: .*run\.input-type") as refused:
        next(results)
    assert refused.value.code == "run.input-type"
    with pytest.raises(tosaic.Error, match="call 0: .*run.tree"):
        list(artifact.run_many([torch.zeros(3), good]))
    for workers in (-1, 1025):
        with pytest.raises(tosaic.Error, match="run.threads"):
            artifact.run_many([good], workers=workers)
