# SPDX-License-Identifier: Apache-2.0
"""Names, numbers and signals that no tidy program has: every one is taken as it is meant, or refused by name."""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import time
import unicodedata

import numpy as np
import pytest
import torch

import tosaic


class Add(torch.nn.Module):
    def forward(self, x, y):
        return x + y


X = torch.ones(2, 3)


@pytest.fixture(scope="module")
def artifact():
    return tosaic.compile(Add(), (X, X), "tosa-fp")


def refusal(body):
    with pytest.raises(tosaic.Error) as caught:
        body()
    assert caught.value.code and "help: " in str(caught.value), caught.value
    return caught.value


def is_shown(text):
    """No control characters but line ends, and it goes to a terminal and into a file."""
    text.encode()
    return not any(unicodedata.category(c) == "Cc" and c != "\n" for c in text)


# ---- text

def test_a_name_that_nothing_has(artifact):
    """One of its two places is damaged: the error names it, on whichever way out it takes."""
    for piece in "tosa", "pte":
        content = bytearray(artifact.piece(piece))
        at = content.find(b"\0x\0\0\0")
        while at >= 0:
            for bad in 0xff, 0x9b, 0xc3, 0x1b, 0x0a:
                one = bytearray(content)
                one[at + 1] = bad
                try:
                    tosaic.load(bytes(one)).run(X, X)
                except tosaic.Error as error:
                    assert is_shown(str(error)) and error.code != "internal"
                    assert all(is_shown(n) for n in error.diagnostic.notes) or bad < 0x80
            at = content.find(b"\0x\0\0\0", at + 1)


@pytest.mark.parametrize("bad", [b"\xff", b"\x9b", b"\xc3", b"\x1b"])
def test_every_name_in_a_graph(bad):
    """Of inputs, outputs, places: signatures, profiles, reports and errors show what is there."""
    class Named(torch.nn.Module):
        def forward(self, first, second):
            return first + second

    content = bytearray(tosaic.compile(Named(), (X, X), "tosa-fp").piece("tosa"))
    for name in b"first", b"second", b"add", b"test_untidy.py":
        at = content.find(name)
        assert at > 0
        while at >= 0:
            content[at + len(name) - 1] = bad[0]
            at = content.find(name, at + 1)
    session = tosaic.load(bytes(content))
    session.measure()
    assert torch.equal(session.run(X, X), X + X)
    shown = bad.decode(errors="backslashreplace")
    assert [i.name for i in session.inputs] == ["firs" + shown, "secon" + shown]
    texts = [repr(session), *(o.name for o in session.outputs)]
    texts += [text for row in session.profile() for text in (row.operation, row.value, row.place)]
    for text in texts:
        text.encode()
    with pytest.raises(tosaic.Error) as caught:
        session.run(X, torch.ones(5, 5))
    assert is_shown(str(caught.value))


def test_names_of_files(artifact, tmp_path):
    untidy = os.fsencode(tmp_path) + b"/caf\xe9\x9b.pte"
    with open(untidy, "wb") as file:
        file.write(artifact.pte)
    assert torch.equal(tosaic.load(os.fsdecode(untidy)).run(X, X), X + X)
    with open(untidy, "wb") as file:
        file.write(artifact.pte[:100])
    error = refusal(lambda: tosaic.load(os.fsdecode(untidy)))
    assert is_shown(str(error)) and "caf\\xe9\\x9b.pte" in str(error)
    artifact.save(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.tosa"))
    assert b"\xff.tosa" in os.listdir(os.fsencode(tmp_path))


def test_zero_bytes_in_names(artifact, tmp_path):
    path = str(tmp_path / "model.pte")
    artifact.save(path)
    assert refusal(lambda: tosaic.load(path + "\0.pte")).code == "file.unreadable"
    assert refusal(lambda: tosaic.compile(path + "\0.pt2")).code == "file.unreadable"
    assert refusal(lambda: artifact.save(path + "\0.pte")).code == "file.write"


def test_long_names(artifact, tmp_path):
    for name in "n" * 6000, "n/" * 6000 + "n":
        assert refusal(lambda: tosaic.load(name)).code == "file.unreadable"
        assert refusal(lambda: artifact.save(name + ".pte")).code == "file.write"
    longest = str(tmp_path / ("n" * 251)) + ".pte"  # 255 bytes, as many as a file system takes
    artifact.save(longest)
    assert torch.equal(tosaic.load(longest).run(X, X), X + X)

    class Kept(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("b" * 6000, torch.zeros(3))

        def forward(self, x):
            return x + getattr(self, "b" * 6000).add_(1)

    kept = tosaic.compile(Kept(), torch.zeros(3), "tosa-fp").session()
    assert torch.equal(kept.run(torch.zeros(3)), torch.ones(3))
    assert list(kept.state_dict()) == ["b" * 6000]


# ---- numbers

def test_numbers_beyond_all_measure(artifact):
    for threads in 2**70, -(2**70), -1, 1025:
        assert refusal(lambda: artifact.session(threads=threads)).code == "run.threads"
        assert refusal(lambda: tosaic.load(artifact.pte, threads=threads)).code == "run.threads"
        assert refusal(lambda: tosaic.compile(Add(), (X, X), "tosa-fp", threads=threads)).code.startswith("option.")


# ---- what was passed over in silence

def test_masked_elements(artifact):
    whole = np.ones((2, 3), "f4")
    masked = np.ma.MaskedArray(whole, mask=[[0, 1, 0], [0, 0, 0]])
    assert refusal(lambda: artifact.run(masked, whole)).code == "tensor.masked"
    assert "masked" in str(refusal(lambda: tosaic.compile(Add(), (X, X), "tosa-int", calibration=[(masked, whole)])))
    np.testing.assert_array_equal(artifact.run(masked.filled(0), whole), masked.filled(0) + 1)
    np.testing.assert_array_equal(artifact.run(np.ma.MaskedArray(whole), whole), whole + 1)  # nothing is masked


def test_masked_tensors(artifact):
    from torch.masked import masked_tensor
    mask = torch.tensor([[True, False, True], [True, True, True]])
    assert refusal(lambda: artifact.run(masked_tensor(X, mask), X)).code == "tensor.masked"


class Counts(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("a", torch.zeros(3))
        self.register_buffer("b", torch.zeros(3))

    def forward(self, x):
        return x + self.a.add_(1) + self.b.add_(2)


def test_states_that_are_left_out():
    session = tosaic.compile(Counts(), torch.zeros(3), "tosa-fp").session()
    session.run(torch.zeros(3))
    error = refusal(lambda: session.load_state_dict({"a": torch.full((3,), 9.0)}))
    assert error.code == "run.state" and "nothing is given for the state 'b'" in str(error)
    assert refusal(lambda: session.load_state_dict({})).code == "run.state"
    assert torch.equal(session.state_dict()["a"], torch.ones(3))
    session.load_state_dict({"a": torch.full((3,), 9.0)}, strict=False)
    assert torch.equal(session.run(torch.zeros(3)), torch.full((3,), 14.0))


@pytest.mark.parametrize("form", ["tosa", "pt2"])
def test_methods_that_there_are_not(artifact, form, tmp_path):
    file = tmp_path / ("model." + form)
    if form == "tosa":
        artifact.save(file)
    else:
        torch.export.save(torch.export.export(Add(), (X, X)), file)
    error = refusal(lambda: tosaic.load(file, method="decode"))
    assert error.code == "method.missing" and "'decode'" in str(error)
    assert torch.equal(tosaic.load(file, method="forward").run(X, X), X + X)


# ---- what files say of their author

class Line(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.secret_layer = torch.nn.Linear(3, 4)

    def forward(self, x):
        return torch.tanh(self.secret_layer(x))  # a line of my own


@pytest.mark.parametrize("target", ["tosa-fp", "tosa-int", "vgf", "vulkan"])
def test_strip(target):
    own = [b"a line of my own", b"test_untidy.py", str(pathlib.Path(__file__).parent).encode()]
    module = Line()
    kept, stripped = (tosaic.compile(module, X, target, strip=strip) for strip in (False, True))
    for piece in stripped.pieces:
        assert not [text for text in own if text in stripped.piece(piece)], piece
    if target != "vulkan":
        torch.testing.assert_close(stripped.run(X), kept.run(X), rtol=0, atol=0)
    said = '"source_in_files": {"stripped": '
    assert said + "true" in stripped.manifest and said + "false" in kept.manifest
    if target in ("tosa-fp", "tosa-int"):
        assert own[0] in kept.pte and f'"files": ["{__file__}"]' in kept.manifest


# ---- signals

class Long(torch.nn.Module):
    def forward(self, x):
        for _ in range(60):
            x = torch.tanh(x @ x)
        return x


@pytest.mark.parametrize("executor", ["cpu", "interp"])
def test_ctrl_c_during_a_run(executor):
    size = 1200 if executor == "cpu" else 200
    x = torch.eye(size)
    session = tosaic.compile(Long(), x, "tosa-fp").session(executor=executor, threads=1)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background shell ignores it
    begin = time.monotonic()
    threading.Timer(0.3, lambda: signal.raise_signal(signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        for _ in range(100):
            session.run(x)
    assert time.monotonic() - begin < 10
    assert session.inputs  # it is as usable as before


# ---- processes

def test_two_processes_with_the_same_outputs(tmp_path):
    """The last one stays, none is refused."""
    tool = shutil.which("tosaic") or str(pathlib.Path(sys.executable).parent / "tosaic")
    torch.export.save(torch.export.export(Add(), (X, X)), tmp_path / "add.pt2")
    command = [tool, "compile", "add.pt2", "-t", "tosa-fp", "-o", "add.pte", "--emit", "tosa=add.tosa", "--emit",
               "header=add.h", "--report", "add.json", "-q"]
    for _ in range(6):
        running = [subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) for _ in range(4)]
        for process in running:
            _, said = process.communicate()
            assert process.returncode == 0, said
    assert sorted(p.name for p in tmp_path.iterdir()) == ["add.h", "add.json", "add.pt2", "add.pte", "add.tosa"]
    assert torch.equal(tosaic.load(tmp_path / "add.pte").run(X, X), X + X)
