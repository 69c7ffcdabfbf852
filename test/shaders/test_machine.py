# SPDX-License-Identifier: Apache-2.0
"""What a machine may have done to a program for Vulkan: no driver, no loader, files of other versions, caches that are
damaged, and processes that write them at the same time."""
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

import pytest

DIGITS = pathlib.Path(__file__).resolve().parents[2] / "examples/digits"


@pytest.fixture(scope="module")
def program(tosaic, tmp_path_factory):
    path = tmp_path_factory.mktemp("program") / "d.pte"
    subprocess.run([tosaic, "compile", DIGITS / "digits.pt2", "--target", "vulkan", "-o", path], check=True)
    return path


def start(tosaic, program, cache, *options, **environment):
    return subprocess.Popen([tosaic, "run", program, "--input", DIGITS / "digit.npy", *map(str, options)], text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            env=os.environ | {"XDG_CACHE_HOME": str(cache)} | environment)


def run(*arguments, **environment):
    child = start(*arguments, **environment)
    out, err = child.communicate()
    return child.returncode, out, err


@pytest.mark.parametrize("options, environment, code, hint", [
    ([], {"VK_ICD_FILENAMES": "/nonexistent"}, "vulkan.no-driver", "mesa-vulkan-drivers"),
    ([], {"VK_DRIVER_FILES": "/nonexistent"}, "vulkan.no-driver", "VK_DRIVER_FILES"),
    (["--vulkan-device", "no such"], {}, "vulkan.device", "an index or a part of a name"),
    (["--vulkan-device", "99"], {}, "vulkan.device", "an index or a part of a name")])
def test_no_device(tosaic, program, tmp_path, options, environment, code, hint):
    status, _, said = run(tosaic, program, tmp_path, *options, **environment)
    assert status == 1 and f"error[{code}]" in said and hint in said, said


def test_no_loader(tosaic, program, tmp_path):
    for name in ("libvulkan.so.1", "libvulkan.so"):
        (tmp_path / name).touch()  # found first, and no library
    status, _, said = run(tosaic, program, tmp_path, LD_LIBRARY_PATH=str(tmp_path))
    assert status == 1 and "error[vulkan.no-loader]" in said and "libvulkan1" in said, said


def test_a_newer_version(tosaic, program, tmp_path):
    data = bytearray(program.read_bytes())
    root = data.index(b"TVKP") - 4
    table = root + struct.unpack_from("<I", data, root)[0]
    vtable = table - struct.unpack_from("<i", data, table)[0]
    at = table + struct.unpack_from("<H", data, vtable + 4)[0]  # its first field
    assert struct.unpack_from("<I", data, at)[0] < 20
    struct.pack_into("<I", data, at, 1000)
    newer = tmp_path / "newer.pte"
    newer.write_bytes(data)
    status, _, said = run(tosaic, newer, tmp_path)
    assert status == 1 and "error[vulkan-program.version]" in said and "has version 1000, this runtime knows" in said, said
    assert "compile the model with this version of tosaic" in said, said


def checked(cache):
    path, = (cache / "tosaic").glob("*.checked")
    words = struct.unpack(f"<{path.stat().st_size // 8}Q", path.read_bytes())
    assert sum(words[:-1]) % 2**64 == words[-1]
    return path, words[1:-1]


def test_caches(tosaic, program, tmp_path):
    assert run(tosaic, program, tmp_path)[0] == 0
    path, hashes = checked(tmp_path)
    assert hashes
    whole = path.read_bytes()
    for damaged in (b"", b"x", whole[:-8], whole[:-1] + b"\xff", os.urandom(len(whole))):
        path.write_bytes(damaged)
        path.with_suffix("").write_bytes(damaged * 9)  # the pipelines'
        status, _, said = run(tosaic, program, tmp_path)
        assert status == 0, said
        assert checked(tmp_path)[1] == hashes
    path.unlink()
    path.mkdir()  # what cannot be written is no error
    assert run(tosaic, program, tmp_path)[0] == 0
    assert run(tosaic, program, "/proc/nowhere")[0] == 0


def test_caches_that_are_links(tosaic, program, tmp_path):
    """What a link leads to stays as it was; the link becomes a file."""
    assert run(tosaic, program, tmp_path)[0] == 0
    precious = tmp_path / "precious"
    precious.write_text("precious")
    path, hashes = checked(tmp_path)
    for name in (path, path.with_suffix("")):
        name.unlink(missing_ok=True)
        name.symlink_to(precious)
    assert run(tosaic, program, tmp_path)[0] == 0
    assert precious.read_text() == "precious"
    assert not path.is_symlink() and checked(tmp_path)[1] == hashes


def test_a_cache_that_is_large(tosaic, program, tmp_path):
    """It is neither read nor mapped: a gigabyte of holes costs nothing."""
    assert run(tosaic, program, tmp_path)[0] == 0
    path, hashes = checked(tmp_path)
    for name in (path, path.with_suffix("")):
        with open(name, "ab") as file:
            file.truncate(1 << 30)
    # A child is charged with what its parent had when it forked, so a small process asks.
    small = """
import os, sys
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)])
_, status, used = os.wait4(pid, 0)
print(status, used.ru_maxrss)"""
    said = subprocess.run([sys.executable, "-S", "-c", small, tosaic, "run", program, "--input", DIGITS / "digit.npy"], text=True,
                          stdout=subprocess.PIPE, check=True, env=os.environ | {"XDG_CACHE_HOME": str(tmp_path)}).stdout
    status, used = map(int, said.split())
    assert status == 0 and used < 600_000, said  # KB
    assert checked(tmp_path)[1] == hashes


@pytest.fixture
def small_disk(tmp_path):
    """A disk with little room."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", folder], capture_output=True).returncode:
        pytest.skip("nothing can be mounted here: the user is not root, or the container forbids it")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_cache_on_a_full_disk(tosaic, program, small_disk):
    """Mesa maps its own cache, and dies of a page for which there is no block: it keeps none there."""
    (small_disk / "fill").write_bytes(b"x" * (598 << 10))
    for _ in range(2):
        status, _, said = run(tosaic, program, small_disk)
        assert status == 0, (status, said)
    assert not (small_disk / "mesa_shader_cache").exists()
    status, _, said = run(tosaic, program, small_disk, MESA_SHADER_CACHE_DIR=str(small_disk.parent))
    assert status == 0, (status, said)  # there is room there


@pytest.mark.parametrize("limit", [["--nproc=1"], ["--nproc=4"], ["--nproc=8"], ["--as=300000000"], ["--as=500000000"]])
def test_threads_that_cannot_start(tosaic, program, limit):
    """Fewer threads, or an error of the driver's; never the process's end. Limits of processes do not hold for root."""
    with tempfile.TemporaryDirectory() as folder:  # nobody looks into pytest's
        os.chmod(folder, 0o777)
        command = [shutil.copy(file, folder) for file in (tosaic, program, DIGITS / "digit.npy")]
        command[1:1], command[3:3] = ["run"], ["--input"]
        if limit[0].startswith("--nproc") and os.geteuid() == 0:
            command = ["setpriv", "--reuid", "65534", "--clear-groups", *command]
        ran = subprocess.run(["prlimit", *limit, *command], capture_output=True, text=True, timeout=120,
                             env=os.environ | {"XDG_CACHE_HOME": folder, "TOSAIC_VULKAN_SELF_TEST": "always"})
    assert ran.returncode in (0, 1), (ran.returncode, ran.stderr)
    assert ran.returncode == 0 or "error[vulkan." in ran.stderr or "error[memory." in ran.stderr, ran.stderr


def test_processes_that_write_at_once(tosaic, program, tmp_path):
    children = [start(tosaic, program, tmp_path) for _ in range(6)]
    for child in children:
        _, said = child.communicate()
        assert child.returncode == 0, said
    assert checked(tmp_path)[1]
    assert [p.name for p in (tmp_path / "tosaic").iterdir() if not p.name.startswith("pipelines-")] == []


def test_the_self_test_is_repeated(tosaic, program, tmp_path):
    assert run(tosaic, program, tmp_path)[0] == 0
    path, hashes = checked(tmp_path)
    path.write_bytes(b"")
    assert run(tosaic, program, tmp_path, TOSAIC_VULKAN_SELF_TEST="never")[0] == 0
    assert path.read_bytes() == b""
    assert run(tosaic, program, tmp_path, "--vulkan-self-test")[0] == 0
    assert checked(tmp_path)[1] == hashes


def test_lavapipe_finds_all_in_its_own_cache(tosaic, tmp_path):
    """What the first process compiles, the second one does not: it is written before that process has ended, and under the
    names under which it is looked up."""
    program = tmp_path / "codes.pte"
    subprocess.run([tosaic, "compile", DIGITS / "digits.pt2", "--target", "vulkan", "--quantize", "int8", "--calibrate",
                    DIGITS / "digits_samples.npz", "-o", program], check=True)
    for again in range(4):
        cache = tmp_path / str(again)
        cache.mkdir()
        shaders = []
        for _ in range(2):  # without the check, little is between the last shader and the end of the process
            assert run(tosaic, program, cache, TOSAIC_VULKAN_SELF_TEST="never")[0] == 0
            shaders.append({p.name for p in cache.glob("mesa_shader_cache/*/*")})
        if not shaders[0]:
            pytest.skip("the device is not lavapipe, or keeps its cache elsewhere")
        assert shaders[0] == shaders[1]
