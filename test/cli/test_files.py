# SPDX-License-Identifier: Apache-2.0
"""What the tool does to a user's disk: inputs stay as they are, outputs are complete or not there, nothing is left."""
import os
import pathlib
import shutil
import signal
import stat
import subprocess
import sys
import time
import zipfile

import numpy as np
import pytest

DIGITS = pathlib.Path(__file__).resolve().parents[2] / "examples/digits"
DONE, REFUSED, USAGE = 0, 1, 2


@pytest.fixture
def call(tosaic, tmp_path):
    """call("compile", ...) in a folder with a model in it; the result, and nothing may be left next to the files."""
    shutil.copy(DIGITS / "digits.pt2", tmp_path / "m.pt2")

    def run(*arguments, **more):
        more = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "timeout": 60, **more}
        done = subprocess.run([tosaic, *map(str, arguments)], cwd=tmp_path, text=True, **more)
        assert not list(tmp_path.rglob("*.tmp")), "a temporary file is left"
        return done

    return run


def test_states_that_do_not_fit(call, tmp_path):
    """Told before the run; the file of the state stays as it was, and nothing is written."""
    shutil.copy(pathlib.Path(__file__).parent / "models/mutated_buffer.pt2", tmp_path)
    assert call("compile", "mutated_buffer.pt2", "--target", "tosa-fp", "-o", "s.pte").returncode == DONE
    (tmp_path / "kept").mkdir()
    for wrong in (np.zeros(3, np.float32), np.zeros(1, np.int32)):
        np.save(tmp_path / "kept/seen.npy", wrong)
        refused(call("run", "s.pte", "--states", "kept", "--output-dir", "out"), "run.state-type")
        np.testing.assert_array_equal(np.load(tmp_path / "kept/seen.npy"), wrong)
        assert not list((tmp_path / "out").iterdir())
    (tmp_path / "kept/seen.npy").write_bytes(b"nothing")
    assert call("run", "s.pte", "--states", "kept").returncode == REFUSED
    np.save(tmp_path / "kept/seen.npy", np.full(1, 5, np.float32))
    for runs in (6, 7):
        assert call("run", "s.pte", "--states", "kept", "--repeat", "1").returncode == DONE
        assert np.load(tmp_path / "kept/seen.npy") == runs
    assert call("run", "s.pte", "--states", "kept", "--repeat", "3").returncode == DONE  # and one that warms up
    assert np.load(tmp_path / "kept/seen.npy") == 10


def compile_to(*arguments):
    return ("compile", "m.pt2", "--target", "tosa-fp", *arguments)


def refused(done, code):
    assert done.returncode == REFUSED and f"error[{code}]" in done.stderr and "help: " in done.stderr, done


def same_by_name(folder):
    return "m.pt2"


def same_by_path(folder):
    (folder / "sub").mkdir()
    return "sub/../m.pt2"


def same_by_symlink(folder):
    (folder / "link.pte").symlink_to("m.pt2")
    return "link.pte"


def same_by_hard_link(folder):
    os.link(folder / "m.pt2", folder / "hard.pte")
    return "hard.pte"


@pytest.mark.parametrize("other_name", [same_by_name, same_by_path, same_by_symlink, same_by_hard_link])
@pytest.mark.parametrize("option", [["-o", "{}"], ["--emit", "tosa={}"], ["-o", "a.pte", "--emit", "header={}"],
                                    ["-o", "a.pte", "--report", "{}"]])
def test_outputs_never_touch_the_model(call, tmp_path, option, other_name):
    before = (tmp_path / "m.pt2").read_bytes()
    path = other_name(tmp_path)
    refused(call(*compile_to(*(word.format(path) for word in option))), "output.is-input")
    assert (tmp_path / "m.pt2").read_bytes() == before and not (tmp_path / "a.pte").exists()


def test_no_other_input_is_touched(call, tmp_path):
    shutil.copy(DIGITS / "digits_samples.npz", tmp_path / "s.npz")
    refused(call("compile", "m.pt2", "--calibrate", "s.npz", "-o", "s.npz"), "output.is-input")
    (tmp_path / "samples").mkdir()
    shutil.copy(DIGITS / "digits_samples.npz", tmp_path / "samples")
    refused(call("compile", "m.pt2", "--calibrate", "samples", "-o", "samples/digits_samples.npz"), "output.is-input")
    assert call(*compile_to("-o", "m.pte", "--emit", "tosa=m.tosa")).returncode == DONE
    refused(call("convert", "m.tosa", "-o", "./m.tosa"), "output.is-input")
    shutil.copy(DIGITS / "digit.npy", tmp_path / "output_0.npy")
    refused(call("run", "m.pte", "--input", "output_0.npy", "--output-dir", "."), "output.is-input")
    assert (tmp_path / "output_0.npy").read_bytes() == (DIGITS / "digit.npy").read_bytes()
    os.rename(tmp_path / "m.pte", tmp_path / "forward_delegate0.tosa")
    refused(call("extract", "forward_delegate0.tosa", "-o", ".", "--force"), "output.is-input")
    (tmp_path / "network.pt2").write_bytes((tmp_path / "m.pt2").read_bytes())
    refused(call("compile", "network.pt2", "-o", "n.pte", "--emit", "vela=."), "output.is-input")


@pytest.mark.parametrize("options", [["-o", "a.pte", "--emit", "tosa=./a.pte"], ["-o", "a.pte", "--report", "a.pte"],
                                     ["-o", "a.pte", "--emit", "tosa=link"]])
def test_outputs_are_different_files(call, tmp_path, options):
    (tmp_path / "link").symlink_to("a.pte")
    refused(call(*compile_to(*options)), "output.twice")
    assert not (tmp_path / "a.pte").exists()


def test_symlinks_modes_and_hard_links_stay(call, tmp_path):
    (tmp_path / "far").mkdir()
    (tmp_path / "far/real.pte").write_text("old")
    (tmp_path / "far/real.pte").chmod(0o640)
    (tmp_path / "link.pte").symlink_to("far/real.pte")
    (tmp_path / "dangling.pte").symlink_to("far/new.pte")
    (tmp_path / "one.pte").write_text("old")
    os.link(tmp_path / "one.pte", tmp_path / "two.pte")
    for name in ("link.pte", "dangling.pte", "one.pte", "plain.pte"):
        assert call(*compile_to("-o", name)).returncode == DONE
    content = (tmp_path / "plain.pte").read_bytes()
    for name in ("far/real.pte", "far/new.pte", "one.pte", "two.pte"):
        assert (tmp_path / name).read_bytes() == content, name
    assert (tmp_path / "link.pte").is_symlink() and (tmp_path / "dangling.pte").is_symlink()
    assert stat.S_IMODE((tmp_path / "far/real.pte").stat().st_mode) == 0o640
    assert (tmp_path / "one.pte").stat().st_ino == (tmp_path / "two.pte").stat().st_ino
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE((tmp_path / "plain.pte").stat().st_mode) == 0o666 & ~umask


def test_only_files_are_written(call, tmp_path):
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "round").symlink_to("round")
    for path in ("/dev/null", "/dev/full", "folder", "folder/", "pipe", "-"):
        refused(call(*compile_to("-o", path)), "output.not-a-file")
    refused(call(*compile_to("-o", "round")), "file.unwritable")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode) and stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_a_failure_writes_nothing(call, tmp_path):
    """One output of several cannot be written: the others keep what they held."""
    (tmp_path / "old.pte").write_text("old")
    done = call(*compile_to("-o", "old.pte", "--emit", "tosa=t.tosa", "--report", "r.json"),
                preexec_fn=lambda: __import__("resource").setrlimit(__import__("resource").RLIMIT_FSIZE, (4000, 4000)))
    refused(done, "file.disk-full")
    assert (tmp_path / "old.pte").read_text() == "old"
    assert {p.name for p in tmp_path.iterdir()} == {"m.pt2", "old.pte"}


@pytest.fixture
def full_disk(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8k", "none", disk],
                                           capture_output=True).returncode != 0:
        pytest.skip("small file systems can be mounted by root only")
    yield disk
    subprocess.run(["umount", disk], check=True)


def test_a_full_disk_is_called_one(call, tmp_path, full_disk):
    refused(call(*compile_to("-o", "disk/m.pte")), "file.disk-full")
    assert not list(full_disk.iterdir())
    (full_disk / "old.pte").write_text("old")
    os.link(full_disk / "old.pte", full_disk / "other.pte")
    refused(call(*compile_to("-o", "disk/old.pte")), "file.disk-full")
    assert (full_disk / "other.pte").read_text() == "old"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_leave_nothing(tosaic, tmp_path, number):
    """Killed while Vela runs, which here sleeps: its folder and Vela itself are gone."""
    shutil.copy(DIGITS / "digits.pt2", tmp_path / "m.pt2")
    vela = tmp_path / "vela"
    vela.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid\nexec sleep 60\n")
    vela.chmod(0o755)
    (tmp_path / "tmp").mkdir()
    child = subprocess.Popen([tosaic, "compile", "m.pt2", "--target", "ethos-u55-128", "--vela", vela, "-o", "m.pte"],
                             cwd=tmp_path, env={**os.environ, "TMPDIR": str(tmp_path / "tmp")},
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             preexec_fn=lambda: signal.signal(number, signal.SIG_DFL))  # a background shell ignores SIGINT
    for _ in range(600):
        if (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip():
            break
        time.sleep(0.05)
    sleeping = int((tmp_path / "pid").read_text())
    assert list((tmp_path / "tmp").iterdir())
    child.send_signal(number)
    child.communicate(timeout=30)
    assert child.returncode == -number
    assert not list((tmp_path / "tmp").iterdir()) and not (tmp_path / "m.pte").exists()
    with pytest.raises(ProcessLookupError):
        os.kill(sleeping, 0)


def sleeping_vela(tmp_path):
    shutil.copy(DIGITS / "digits.pt2", tmp_path / "m.pt2")
    vela = tmp_path / "vela"
    vela.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid\nexec sleep 60\n")
    vela.chmod(0o755)
    return ["compile", "m.pt2", "--target", "ethos-u55-128", "--vela", vela, "-o", "m.pte"]


def gone(number):
    for _ in range(100):
        try:
            os.kill(number, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


def test_vela_ends_with_who_started_it(tosaic, tmp_path):
    """Also where nobody can tell it to: SIGKILL."""
    child = subprocess.Popen([tosaic, *sleeping_vela(tmp_path)], cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(600):
        if (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip():
            break
        time.sleep(0.05)
    child.kill()
    child.wait(timeout=30)
    assert gone(int((tmp_path / "pid").read_text()))


def test_vela_has_a_deadline(call, tmp_path):
    done = call(*sleeping_vela(tmp_path), "--vela-timeout", "1")
    refused(done, "vela.deadline")
    assert "--vela-timeout" in done.stderr
    assert gone(int((tmp_path / "pid").read_text())) and not (tmp_path / "m.pte").exists()


# ---- standard streams

def test_stderr_closed_or_full_is_no_reason_to_fail(call, tmp_path):
    with open("/dev/full", "w") as full:
        assert call(*compile_to("-o", "a.pte"), stderr=full).returncode == DONE
        assert call("compile", "m.pt2", "-o", "b.pte", stderr=full).returncode == DONE  # it has a note to tell
        assert call("compile", "none.pt2", "-o", "c.pte", stderr=full).returncode == REFUSED
    assert call(*compile_to("-o", "d.pte"), stderr=None, preexec_fn=lambda: os.close(2)).returncode == DONE
    assert call("inspect", "none.pte", stderr=None, preexec_fn=lambda: os.close(2)).returncode == REFUSED
    assert (tmp_path / "d.pte").read_bytes() == (tmp_path / "a.pte").read_bytes()


def test_stdout_closed_or_full_is_an_error(call, tmp_path):
    with open("/dev/full", "w") as full:
        refused(call("inspect", "m.pt2", stdout=full), "output.stdout")
        refused(call("--version", stdout=full), "output.stdout")
    done = call("inspect", "m.pt2", stdout=None, preexec_fn=lambda: os.close(1))
    refused(done, "output.stdout")
    done = call(*compile_to("-o", "a.pte", "-q"), stdout=None, preexec_fn=lambda: os.close(1))
    assert done.returncode == DONE and zipfile.is_zipfile(tmp_path / "m.pt2")


def test_a_pipe_that_nobody_reads(tosaic):
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([tosaic, "ops"], stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert done.returncode == -signal.SIGPIPE and done.stderr == ""


def test_inputs_that_are_no_files(call, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in ("pipe", "/dev/zero", "."):
        refused(call("inspect", path, timeout=10), "file.unreadable")
    refused(call("compile", "m.pt2", "--calibrate", "pipe", "-o", "a.pte", timeout=10), "file.unreadable")


def test_a_file_that_shrinks(tosaic, tmp_path):
    """A mapped file loses its end while it is read: an error that says so, no SIGBUS, nothing written."""
    samples = np.zeros((20000, 1, 1, 8, 8), np.float32)
    np.save(tmp_path / "s.npy", samples)
    shutil.copy(DIGITS / "digits.pt2", tmp_path / "m.pt2")
    child = subprocess.Popen([tosaic, "compile", "m.pt2", "--calibrate", "s.npy", "--observer", "minmax", "--threads",
                              "1", "-o", "m.pte"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             text=True)
    maps = pathlib.Path(f"/proc/{child.pid}/maps")
    while child.poll() is None and "s.npy" not in maps.read_text():
        time.sleep(0.001)
    os.truncate(tmp_path / "s.npy", 128)
    out, err = child.communicate(timeout=300)  # with sanitizers
    assert child.returncode == REFUSED and "error[file.changed]" in err, (child.returncode, out, err)
    assert not (tmp_path / "m.pte").exists()


# ---- memory

def test_an_archive_that_inflates(call, tmp_path):
    with zipfile.ZipFile(tmp_path / "small.npz", "w", zipfile.ZIP_DEFLATED) as archive, archive.open("x.npy", "w") as x:
        np.save(x, np.zeros(8 << 20, np.uint8))
    refused(call("inspect", "small.npz", "--memory-limit", "1M"), "memory.limit")
    assert call("inspect", "small.npz").returncode == DONE
    # One that says of itself to be as dense as the format allows: 2 MB that inflate to 2 GB.
    with zipfile.ZipFile(tmp_path / "bomb.npz", "w") as archive:
        archive.writestr("x.npy", bytes(2 << 20))
    bomb = bytearray((tmp_path / "bomb.npz").read_bytes())
    entry = bomb.index(b"PK\1\2")
    bomb[entry + 10:entry + 12] = (8).to_bytes(2, "little")  # deflated
    bomb[entry + 24:entry + 28] = (2 << 30).to_bytes(4, "little")
    (tmp_path / "bomb.npz").write_bytes(bomb)
    refused(call("inspect", "bomb.npz"), "memory.limit")


def peak_kilobytes(command, folder):
    """Asked of a small process: a child's figure begins with what its parent holds when it forks, here PyTorch."""
    ask = ("import resource, subprocess, sys; subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True); "
           "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)")
    return int(subprocess.run([sys.executable, "-c", ask, *command], cwd=folder, capture_output=True, check=True).stdout)


def test_a_program_that_claims_memory(call, tmp_path):
    """The arena's size is a number in the file; changed, a program of some kilobytes asks for gigabytes."""
    assert call(*compile_to("-o", "m.pte")).returncode == DONE
    program = bytearray((tmp_path / "m.pte").read_bytes())
    arena = int(call("inspect", "m.pte").stdout.split("arena ")[1].split()[0])
    at = program.index(arena.to_bytes(8, "little"))
    for gigabytes, options, code in ((3, [], DONE), (3, ["--memory-limit", "1G"], REFUSED), (1000, [], REFUSED)):
        program[at:at + 8] = (gigabytes << 30).to_bytes(8, "little")
        (tmp_path / "large.pte").write_bytes(program)
        done = call("run", "large.pte", *options)
        assert done.returncode == code, done
        if code == REFUSED:
            refused(done, "memory.limit")
        else:  # granted, but only what the program touches is taken
            least = peak_kilobytes([done.args[0], "--version"], tmp_path)
            assert peak_kilobytes([done.args[0], "run", "large.pte", "-q"], tmp_path) < least + 300_000
