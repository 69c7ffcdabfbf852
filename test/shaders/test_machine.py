# SPDX-License-Identifier: Apache-2.0
"""What a machine may have done to a program for Vulkan: no driver, no loader, files of other versions, caches that are
damaged, and processes that write them at the same time."""
import os
import pathlib
import struct
import subprocess

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
