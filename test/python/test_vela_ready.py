# SPDX-License-Identifier: Apache-2.0
"""A Vela that waits for the next compilation: one process serves several, is replaced when it is gone, and ends with the
process that it serves."""
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest
import torch

import tosaic

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def waiting(parent=None):
    """Processes that wait to run Vela for `parent`."""
    found = []
    for status in pathlib.Path("/proc").glob("[0-9]*/status"):
        try:
            words = (status.parent / "cmdline").read_bytes().split(b"\0")
            above = status.read_text().split("PPid:")[1].split()[0]
        except (OSError, IndexError):
            continue
        if b"ethosu.vela.vela" in words and int(above) == (parent or os.getpid()):
            found.append(int(status.parent.name))
    return found


def compiled(size=8):
    """A program that was not compiled before, for sizes of its own. What Vela took, in seconds."""
    torch.manual_seed(size)
    module, x = torch.nn.Sequential(torch.nn.Linear(8, size), torch.nn.ReLU()).eval(), torch.randn(1, 8)
    return tosaic.compile(module, (x,), "ethos-u55-128", calibration=[x]).summary.peer_seconds


def gone(process):
    for _ in range(100):
        try:
            os.kill(process, 0)
            if "(zombie)" in pathlib.Path(f"/proc/{process}/status").read_text():
                return True
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.05)
    return False


def one_process_serves_all():
    first = compiled(9)
    served = waiting()
    assert len(served) == 1
    second = min(compiled(size) for size in (10, 11, 12))
    assert waiting() == served and 0 < second < first


def one_that_was_killed_is_replaced():
    compiled(13)
    (before,) = waiting()
    os.kill(before, signal.SIGKILL)
    time.sleep(0.1)
    assert compiled(14) > 0
    (after,) = waiting()
    assert after != before


def a_forked_process_has_one_of_its_own():
    compiled(15)
    before = waiting()
    child = os.fork()
    if child == 0:
        compiled(16)
        os._exit(0 if len(waiting()) == 1 and not set(waiting()) & set(before) else 1)
    assert os.waitpid(child, 0)[1] == 0
    compiled(17)
    assert waiting() == before


def apart(body):
    """A process without what other tests left waiting, and this file as `t`."""
    script = f"import sys; sys.path[:0] = {sys.path!r}; import test_vela_ready as t; {body}"
    return subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True, cwd=pathlib.Path(__file__).parent)


@pytest.mark.by_turns(3)
@pytest.mark.parametrize("what", ["one_process_serves_all", "one_that_was_killed_is_replaced", "a_forked_process_has_one_of_its_own"])
def test_in_a_process_of_its_own(what):
    child = apart(f"t.{what}()")
    said = child.communicate(timeout=300)[1]
    assert child.returncode == 0, said


def test_it_ends_with_the_process_that_it_serves():
    """However that ends."""
    child = apart("t.compiled(); print(*t.waiting(), flush=True); input()")
    (process,) = map(int, child.stdout.readline().split())
    child.kill()
    child.wait(timeout=60)
    assert gone(process)


@pytest.mark.filterwarnings("ignore")
def test_a_vela_that_nobody_tried_is_told_of(tmp_path, monkeypatch):
    """And what stands in the folder of the call is not imported in place of Python's modules."""
    (tmp_path / "bin").mkdir()
    monkeypatch.chdir(tmp_path)
    vela = tmp_path / "bin" / "vela"
    vela.with_name("later.py").write_text("from ethosu.vela.vela import main\n__version__ = '9.9.9'\n")
    vela.write_text(f"#!{sys.executable}\nimport sys\nfrom later import main\nif __name__ == '__main__':\n    sys.exit(main())\n")
    vela.chmod(0o755)
    (tmp_path / "socket.py").write_text("raise RuntimeError\n")
    module, x = torch.nn.Linear(8, 18).eval(), torch.randn(1, 8)
    artifact = tosaic.compile(module, (x,), "ethos-u55-128", calibration=[x], vela=str(vela))
    (said,) = [m for m in artifact.summary.messages if m.code == "vela.untested"]
    assert said.severity == "warning" and "Vela 9.9.9" in said.message and "ethos-u-vela==5.1.0" in said.help
