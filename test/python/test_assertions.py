# SPDX-License-Identifier: Apache-2.0
"""What a program asserts of numbers that it computes (torch._check, draft_export): refused where PyTorch's own program raises,
on both executors; what is compiled goes on, and says so."""
import re

import pytest
import torch
import tosaic
from executors import Both
from functions import Of
from torch import nn
from torch.export import Dim

pytestmark = pytest.mark.filterwarnings("ignore")
X = torch.ones(5, 3)


def between(x, k):
    n = k.item()
    torch._check(n >= 2)
    torch._check(n < 10)
    return x * n


def odd(x, k):
    n, m = k.item(), (k * 2).sum().item()
    torch._check(n + m < 30)
    torch._check(n != 5)
    torch._check(n % 2 == 1)
    return x * n + m


def leading(x, k):
    n = k.item()
    torch._check(n >= 0)
    torch._check(n <= x.shape[0])
    return x[:n]


def of_a_sum(x, k):
    total = (x * k).sum().item()
    torch._check(total < 40.5)
    return x - 1


def branch(x, k):
    return x + 1 if k > 3 else x - 1


CASES = {"between": between, "odd": odd, "leading": leading, "of a sum": of_a_sum, "branch": branch}


def exported(function):
    how = torch.export.draft_export if function is branch else torch.export.export
    return how(Of(function), (X, torch.tensor(3)), strict=False)


@pytest.mark.parametrize("name", CASES)
def test_as_pytorchs_own_program(name, tmp_path):
    program = exported(CASES[name])
    torch.export.save(program, tmp_path / "m.pt2")  # a draft is no program to compile in Python
    session, refused = Both(tosaic.load, tmp_path / "m.pt2"), 0
    for k in (3, 1, 4, 7, -1, 5, 12, 9, 11):
        x, k = torch.rand(5, 3), torch.tensor(k)
        try:
            wanted = program.module()(x, k)
        except (RuntimeError, AssertionError):
            refused += 1
            with pytest.raises(tosaic.Error, match="run.assumption"):
                session.run(x, k)
        else:
            torch.testing.assert_close(session.run(x, k), wanted)
    assert 0 < refused < 9


def test_the_refusal_says_what_and_where(tmp_path):
    torch.export.save(exported(between), tmp_path / "m.pt2")
    for executor in ("cpu", "interp"):
        with pytest.raises(tosaic.Error) as why:
            tosaic.load(tmp_path / "m.pt2", executor=executor).run(X, torch.tensor(12))
        assert why.value.code == "run.assumption"
        assert re.fullmatch(r"\S+functions\.py:\d+: error\[run\.assumption\]: the program is the module's only where u0 <= 9, and u0 is 12\n"
                            r"(    .*\n)?  node _assert_scalar\w*\n  note: torch._check asserts such things, torch.export.draft_export "
                            r"assumes them\n  help: run it with inputs for which that holds\n", str(why.value)), why.value


class Writes(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(3))

    def forward(self, x, k):
        n = k.item()
        torch._check(n <= 4)
        torch._check(n < 2 * x.shape[0])
        self.seen.add_(x.sum(0) * n)
        return self.seen + x, n


def test_states_stay_and_sizes_vary():
    program = torch.export.export(Writes(), (X, torch.tensor(3)), strict=False, dynamic_shapes=({0: Dim("n", min=2, max=9)}, None))
    session, eager = Both(tosaic.Program.of(program).session), Writes()
    session.warm()
    for rows, k, broken in ((5, 3, ""), (2, 9, "u0 <= 4"), (2, 4, r"u0 < 2\*s\d+"), (7, 5, "u0 <= 4"), (3, 4, ""), (2, 0, "")):
        x, k = torch.rand(rows, 3), torch.tensor(k)
        if broken:
            with pytest.raises(RuntimeError):
                eager(x, k)
            with pytest.raises(tosaic.Error, match=f"only where {broken}, and u0 is {k}"):
                session.run(x, k)
        else:
            got, wanted = session.run(x, k), eager(x, k)
            torch.testing.assert_close(got[0], wanted[0])
            assert got[1] == wanted[1]
    torch.testing.assert_close(session.state_dict()["seen"], eager.seen)
    torch.testing.assert_close(session.clone().run(X, torch.tensor(1))[0], Writes()(X, torch.tensor(1))[0])


def test_warming_up_makes_no_promises():
    program = torch.export.export(Of(between), (X, torch.tensor(3)), strict=False)
    session = tosaic.Program.of(program).session()
    session.warm()
    torch.testing.assert_close(session.run(X, torch.tensor(4)), X * 4)


@pytest.mark.parametrize("name", CASES)
def test_what_is_compiled_says_that_it_goes_on(name, tmp_path):
    torch.export.save(exported(CASES[name]), tmp_path / "m.pt2")
    with pytest.warns(tosaic.CompileWarning, match=r"pt2.unchecked-assumption(.|\n)*a compiled program does not check that"):
        tosaic.compile(tmp_path / "m.pt2", target="tosa-fp")
