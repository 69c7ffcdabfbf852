# SPDX-License-Identifier: Apache-2.0
"""Bundled programs (.bpte): ours in ExecuTorch's runtime, ExecuTorch's in ours, and files that are not what they seem."""
import pathlib
import subprocess

import pytest
import torch

import tosaic

TOOL = pathlib.Path(tosaic.__file__).parent / "bin" / "tosaic"  # the package's own


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.conv = torch.nn.Conv2d(2, 4, 3)
        self.head = torch.nn.Linear(4, 3)

    def forward(self, x, bias):
        y = self.conv(x).relu().mean((2, 3))
        return self.head(y) + bias, y.argmax(1)


CALLS = [(torch.randn(1, 2, 6, 6, generator=torch.Generator().manual_seed(i)), torch.full((3,), float(i))) for i in range(3)]


@pytest.fixture(scope="module")
def artifact():
    return tosaic.compile(Net().eval(), CALLS[0], "tosa-fp")


def test_cases_pass_here(artifact, tmp_path):
    artifact.save(tmp_path / "net.bpte", cases=CALLS)
    outcomes = tosaic.check(tmp_path / "net.bpte")
    assert all(outcomes) and [(c.method, c.number, c.why) for c in outcomes] == [("forward", i, "") for i in range(3)]
    loaded = tosaic.load(tmp_path / "net.bpte")
    for got, wanted in zip(loaded.run(*CALLS[1]), artifact.run(*CALLS[1])):
        assert torch.equal(got, wanted)
    done = subprocess.run([TOOL, "run", tmp_path / "net.bpte"], capture_output=True, text=True)
    assert done.returncode == 0 and "3 of 3 cases passed" in done.stdout, done.stderr
    shown = subprocess.run([TOOL, "inspect", tmp_path / "net.bpte"], capture_output=True, text=True).stdout
    assert "bundled program, 3 cases" in shown and "forward(1x2x6x6xf32, 3xf32) -> (1x3xf32, 1xi64)" in shown


def test_delegates_are_extracted_as_from_the_program(artifact, tmp_path):
    artifact.save(tmp_path / "net.bpte", cases=CALLS)
    artifact.save(tmp_path / "net.pte")
    for name in ("net.bpte", "net.pte"):
        subprocess.run([TOOL, "extract", tmp_path / name, "-o", tmp_path / f"parts_{name}"], check=True, capture_output=True)
    taken, wanted = (tmp_path / f"parts_{name}" / "forward_delegate0.tosa" for name in ("net.bpte", "net.pte"))
    assert taken.read_bytes() == wanted.read_bytes()


def test_what_differs_is_said(artifact, tmp_path):
    with torch.no_grad():
        expected = [Net().eval()(*call) for call in CALLS]
    assert all(tosaic.check(artifact.bundle(CALLS, expected), rtol=1e-4, atol=1e-5))
    expected[1] = (expected[1][0] + torch.tensor([[0, 0, 1.0]]), expected[1][1])
    expected[2] = (expected[2][0], expected[2][1] + 1)
    artifact.save(tmp_path / "net.bpte", cases=CALLS, expected=expected)
    outcomes = tosaic.check(tmp_path / "net.bpte", rtol=1e-4, atol=1e-5)
    assert [bool(c) for c in outcomes] == [True, False, False]
    assert "output 0: 1 of 3 elements differ, the most [0, 2]" in outcomes[1].why
    assert "output 1: 1 of 1 elements differ" in outcomes[2].why
    done = subprocess.run([TOOL, "run", tmp_path / "net.bpte"], capture_output=True, text=True)
    assert done.returncode == 1 and "error[run.case-failed]" in done.stderr and "FAILED: output" in done.stdout


def test_cases_of_an_npu(tmp_path):
    x = torch.randn(1, 2, 6, 6)
    artifact = tosaic.compile(Net().eval(), CALLS[0], "ethos-u55-128", calibration=CALLS)
    assert all(tosaic.check(artifact.bundle(CALLS), rtol=0, atol=0))
    assert "simulated" in tosaic.load(artifact.bundle([(x, CALLS[0][1])])).device


def test_executorch_runs_our_cases(artifact, tmp_path):
    pytest.importorskip("executorch.runtime")
    import tosaic.executorch.runtime  # noqa: F401  (loads the plug-in)
    from executorch.extension.pybindings import portable_lib

    wrong = [(torch.zeros(1, 3), torch.zeros(1, dtype=torch.int64))] * 3
    for expected, passes in ((None, True), (wrong, False)):
        content = artifact.bundle(CALLS, expected)  # ExecuTorch looks at these bytes as long as it uses them
        module = portable_lib._load_bundled_program_from_buffer(content)
        for number, call in enumerate(CALLS):
            if not passes:
                with pytest.raises(RuntimeError, match="verif"):
                    module.verify_result_with_bundled_expected_output("forward", number)
                continue
            given = module.verify_result_with_bundled_expected_output("forward", number)
            assert all(torch.equal(a, b) for a, b in zip(given, artifact.run(*call), strict=True))


def test_executorchs_bundles_run_here(artifact, tmp_path):
    core = pytest.importorskip("executorch.devtools.bundled_program.core")
    from executorch.devtools.bundled_program.config import MethodTestCase, MethodTestSuite
    from executorch.devtools.bundled_program.serialize import serialize_from_bundled_program_to_flatbuffer
    from executorch.exir import to_edge

    model = Net().eval()
    with torch.no_grad():
        cases = [MethodTestCase(inputs=list(call), expected_outputs=list(model(*call))) for call in CALLS]
    suites = [MethodTestSuite("forward", cases)]
    program = to_edge(torch.export.export(model, CALLS[0])).to_executorch()
    (tmp_path / "ours.pte").write_bytes(artifact.pte)
    for bundled in (core.BundledProgram(program, suites),
                    core.BundledProgram(None, suites, pte_file_path=str(tmp_path / "ours.pte"))):
        outcomes = tosaic.check(serialize_from_bundled_program_to_flatbuffer(bundled), rtol=1e-4, atol=1e-5)
        assert len(outcomes) == 3 and all(outcomes), outcomes
    # A tensor that lies in memory in another order is the same tensor.
    last = (CALLS[0][0].to(memory_format=torch.channels_last), CALLS[0][1])
    with torch.no_grad():
        suites = [MethodTestSuite("forward", [MethodTestCase(inputs=list(last), expected_outputs=list(model(*last)))])]
    bundled = core.BundledProgram(None, suites, pte_file_path=str(tmp_path / "ours.pte"))
    assert all(tosaic.check(serialize_from_bundled_program_to_flatbuffer(bundled), rtol=1e-4, atol=1e-5))


class Scaled(torch.nn.Module):
    def forward(self, x, times, flag):
        return x * times if flag else x


def test_numbers_among_inputs():
    x = torch.randn(4)
    artifact = tosaic.compile(Scaled(), (x, 3, True), "tosa-fp")
    bundle = tosaic._core.bundle(artifact.pte, [])
    assert tosaic.check(bundle) == []
    with pytest.raises(tosaic.Error, match="run.literal"):
        artifact.bundle([(x, 4, True)])
    assert all(tosaic.check(artifact.bundle([(x, 3, True)])))


def refused(body):
    with pytest.raises(tosaic.Error) as caught:
        body()
    return caught.value.code


def test_bad_input(artifact, tmp_path):
    assert refused(lambda: artifact.save(tmp_path / "net.bpte")) == "artifact.cases"
    assert refused(lambda: artifact.save(tmp_path / "net.pte", cases=CALLS)) == "artifact.cases"
    assert refused(lambda: artifact.bundle([CALLS[0][0]])) == "run.tree"
    assert refused(lambda: artifact.bundle([(CALLS[0][0], torch.zeros(4))])) == "run.input-type"
    assert refused(lambda: artifact.bundle(CALLS, [])) == "bundle.expected"
    assert refused(lambda: artifact.bundle(CALLS[:1], [artifact.run(*CALLS[0])] * 2)) == "bundle.expected"
    assert refused(lambda: artifact.bundle(CALLS[:1], [artifact.run(*CALLS[0])[0]])) == "run.tree"
    assert refused(lambda: tosaic.check(tmp_path / "nothing.bpte")) == "file.missing"
    assert refused(lambda: tosaic.check(artifact.pte)) == "bpte.version"
    good = artifact.bundle(CALLS)
    assert refused(lambda: tosaic.check(good[:4] + b"BP09" + good[8:])) == "bpte.version"
    for cut in range(8, len(good), len(good) // 40):
        assert refused(lambda: tosaic.check(good[:cut])) in ("bpte.corrupt", "bpte.version")
    # A case of another program is a failed case, not an error.
    other = tosaic.compile(torch.nn.ReLU(), torch.zeros(2), "tosa-fp")
    (outcome,) = tosaic.check(tosaic._core.bundle(other.pte, [("forward", [1, 2.0, True], [])]))
    assert not outcome and "0 inputs are given, the program takes 1" in outcome.why
    assert refused(lambda: tosaic.check(tosaic._core.bundle(other.pte, [("backward", [], [])]))) == "method.missing"
    assert refused(lambda: tosaic._core.bundle(other.pte, [("forward", [None], [])])) == "bpte.value"
