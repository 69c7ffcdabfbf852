# SPDX-License-Identifier: Apache-2.0
"""What `tosaic run` says of Vulkan devices, of what it opens there, where the time went, and what to do where it refuses."""
import json
import re
import subprocess

import numpy as np

# A loop that the host runs, of a condition and a body that the device runs: four times.
LOOP = """graph @main(%x: 5xf32) -> (%y) {
  %zero: 1xi32 = constant [0]
  %n: 1xi32, %y: 5xf32 = tosa.while_loop(%zero, %x) (
    graph @below(%n: 1xi32, %v: 5xf32) -> (%go) {
      %limit: 1xi32 = constant [4]
      %go: 1xbool = tosa.greater(%limit, %n)
    }
    graph @grow(%n: 1xi32, %v: 5xf32) -> (%m, %w) {
      %one: 1xi32 = constant [1]
      %m: 1xi32 = tosa.add(%n, %one)
      %w: 5xf32 = tosa.add(%v, %v)
    }
  )
}
"""


def told(tosaic, *arguments):
    done = subprocess.run([tosaic, *map(str, arguments)], text=True, capture_output=True)
    return done.returncode, done.stdout, done.stderr


def test_where_the_host_runs_control_flow(tosaic, tmp_path):
    (tmp_path / "loop.txt").write_text(LOOP)
    np.save(tmp_path / "x.npy", np.arange(5, dtype=np.float32))
    assert told(tosaic, "convert", tmp_path / "loop.txt", "-o", tmp_path / "loop.tosa")[0] == 0
    run = ["run", tmp_path / "loop.tosa", "--device", "vulkan", "--input", tmp_path / "x.npy", "--output-dir", tmp_path]
    status, out, err = told(tosaic, *run, "--profile", "-v")
    assert status == 0, err
    assert (np.load(tmp_path / "output_0.npy") == 16 * np.arange(5)).all()
    sizes = [line for line in err.splitlines() if "bytes for constants" in line]
    assert [line.split(":")[0] for line in sizes] == ["part 1", "part 2"], err
    assert re.findall(r"ms (\S+) +(\S+)$", out, re.M) == [("tosa.while_loop", "n"), ("elementwise", "go"),
                                                        ("elementwise", "m"), ("elementwise", "w")], out
    found = json.loads(told(tosaic, *run, "--profile", "--json")[1])
    parts = [part["seconds"] for part in found["operations"]]
    assert min(parts) >= 0 and sum(parts) < 2 * found["run_seconds"][-1]
    assert sum(parts[1:]) >= 0.5 * found["device_seconds"][-1]  # all rounds of the loop, not the last
    # A second run counts from nothing.
    again = json.loads(told(tosaic, *run, "--profile", "--json", "--repeat", 50)[1])
    assert sum(part["seconds"] for part in again["operations"]) < 0.5 * sum(again["run_seconds"])


def test_what_no_device_takes(tosaic, tmp_path):
    (tmp_path / "large.txt").write_text("graph @main(%x: 64x1025x512xf32) -> (%y) {\n  %y: 64x1025x512xf32 = tosa.exp(%x)\n}\n")
    status, _, err = told(tosaic, "run", tmp_path / "large.txt", "--device", "vulkan")
    assert status == 1 and "error[vulkan.storage-range]" in err, err
    assert "make the tensor smaller" in err and "--device cpu" in err and "another device" not in err, err


def test_the_list_of_devices(tosaic):
    status, out, err = told(tosaic, "run", "--list-devices")
    assert status == 0, err
    devices = json.loads(told(tosaic, "run", "--list-devices", "--json")[1])["devices"]
    blocks = re.split(r"^(?=\d+: )", out, flags=re.M)[1:]
    assert len(blocks) == len(devices) > 0
    for block, device in zip(blocks, devices):
        assert block.startswith(f"{device['index']}: {device['name']}, {device['kind']}, Vulkan {device['vulkan']}: ")
        assert device["driver_version"] and f"\n   driver {device['driver_version']}" in block
        if tuple(map(int, device["vulkan"].split("."))) >= (1, 2):
            assert device["driver"] and device["driver"] in block
        answer = {True: "yes", False: "no"}
        assert (f"8-bit elements (i8, bool): {answer[device['storage_8']]}; "
                f"of 16-bit ones (i16, f16, bf16): {answer[device['storage_16']]}") in block
        assert "MB of memory" in block and f"{device['limits']['shared_bytes']} bytes that they share" in block
        if not device["shaders"]:
            continue
        assert "base" in device["tiers"] and f"(tiers {', '.join(device['tiers'])})" in block
        assert sorted([*device["tiers"], *device["lacks"]]) == ["base", "coopmat", "coopmat-int8", "cpu", "dot"]
        assert re.findall(r"no tier (\S+): it lacks (.+)", block) == list(device["lacks"].items())
        if device["kind"] == "cpu" and "llvmpipe" in device["name"]:
            assert "VK_KHR_cooperative_matrix" in device["lacks"]["coopmat"]
            assert "16x16x32 of 8-bit integers" in device["lacks"]["coopmat-int8"]
