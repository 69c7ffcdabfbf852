# SPDX-License-Identifier: Apache-2.0
"""Target `vulkan` on this machine's driver: models compute what the TOSA targets do on the CPU, integers bit for bit;
programs of which a part stays outside; what is said of wrong devices."""
import json
import shutil
import subprocess

import numpy as np
import pytest
import torch
from test_tosa_programs import decibels

KINDS = {"float": ("tosa-fp", []), "int8": ("tosa-int", ["--quantize", "int8"])}


@pytest.mark.parametrize("kind", KINDS)
def test_model(model, kind, tool, tmp_path):
    target, options = KINDS[kind]
    if kind == "int8":
        options = [*options, "--calibrate", model.samples]
    found = {}
    for name in (target, "vulkan"):
        tool("compile", model.program("raw"), "--target", name, "-o", tmp_path / f"{name}.pte", "--require-full-delegation",
             *options)
        found[name] = tool.run(tmp_path / f"{name}.pte", list(model.arrays("input")[0]), tmp_path)
    for ours, expected in zip(found["vulkan"], found[target], strict=True):
        if kind == "int8":
            np.testing.assert_array_equal(ours, expected)
        else:
            assert decibels(expected, ours - expected) > 90


def test_model_in_halves(model, tool, tmp_path):
    """Weights and activations in 16 bits: as near to PyTorch's results as PyTorch's own half of the model, within a bit."""
    tool("compile", model.program("raw"), "--target", "vulkan", "-o", tmp_path / "m.pte", "--require-full-delegation",
         "--vulkan-precision", "fp16")
    inputs, expected = model.arrays("input")[0], model.arrays("float")[0]
    halves = torch.export.load(model.program("raw")).module(check_guards=False).half()
    with torch.no_grad():
        eager = halves(*(torch.from_numpy(x).half() for x in inputs))
    for ours, theirs, right in zip(tool.run(tmp_path / "m.pte", inputs, tmp_path), [eager], expected, strict=True):
        assert decibels(right, ours - right) > decibels(right, theirs.float().numpy() - right) - 6


class PartlyOutside(torch.nn.Module):
    def forward(self, x, y):
        whole = ((x + y) * 10).to(torch.int32)
        return (whole & 6).to(torch.float32) * 2 + y, torch.relu(x)


def test_vk_add_in_part_and_as_a_whole(tool, tmp_path):
    """Without the integer profile `&` runs on the CPU, between two delegates."""
    torch.manual_seed(2)
    example = (torch.randn(4, 8), torch.randn(4, 8))
    torch.export.save(torch.export.export(PartlyOutside(), example), tmp_path / "m.pt2")
    expected = [t.numpy() for t in PartlyOutside()(*example)]
    for name, options in (("whole", ["--require-full-delegation"]), ("part", ["--tosa-spec", "TOSA-1.0+FP"])):
        said = tool("compile", tmp_path / "m.pt2", "--target", "vulkan", "-o", tmp_path / f"{name}.pte", *options)
        assert ("in 1 delegate," in said) == (name == "whole"), said
        for ours, wanted in zip(tool.run(tmp_path / f"{name}.pte", [e.numpy() for e in example], tmp_path), expected, strict=True):
            np.testing.assert_allclose(ours, wanted, rtol=1e-6)


def test_tiers(tosaic, tool, tmp_path, monkeypatch):
    """A program holds the tiers that were asked for; one that holds none for the device says so."""
    torch.export.save(torch.export.export(torch.nn.ReLU(), (torch.randn(3),)), tmp_path / "m.pt2")
    held = {}
    for wanted in ("base", "cpu", "base,cpu", ""):
        program = tmp_path / f"{wanted}.pte"
        tool("compile", tmp_path / "m.pt2", "--target", "vulkan", "-o", program, *(["--vulkan-tiers", wanted] if wanted else []))
        payload = json.loads(tool("inspect", program, "--json"))["methods"][0]["delegates"][0]["vulkan"]
        held[wanted] = {t["name"] for t in payload["tiers"]}
        assert all(t["known"] and t["dispatches"] and t["spirv_bytes"] for t in payload["tiers"])
    assert held["base"] == {"base"} and held["cpu"] == {"cpu"} and held["base,cpu"] == {"base", "cpu"} <= held[""]
    device = json.loads(tool("run", "--list-devices", "--json"))["devices"][0]
    assert "base" in device["tiers"]
    monkeypatch.setenv("TOSAIC_VULKAN_TIER", "base")
    np.testing.assert_array_equal(tool.run(tmp_path / "base,cpu.pte", [np.float32([-1, 0, 2])], tmp_path)[0], [0, 0, 2])
    np.save(tmp_path / "x.npy", np.float32([-1, 0, 2]))
    for value in ("base", "wrong"):
        monkeypatch.setenv("TOSAIC_VULKAN_TIER", value)
        done = subprocess.run([tosaic, "run", tmp_path / "cpu.pte", "--input", tmp_path / "x.npy"], capture_output=True, text=True)
        assert done.returncode == 1 and "error[vulkan.tier]" in done.stderr, done.stderr


class LargeInBetween(torch.nn.Module):
    def forward(self, x):
        large = [torch.sin((x * (i + 1)).expand(128, 25, 4096) + x) for i in range(45)]
        least = torch.stack([y.amax((0, 1, 2)) for y in large]).amin()
        return torch.stack([torch.cos(y * least).mean() for y in large]).sum()


def test_more_than_the_devices_memory(tosaic, tool, tmp_path):
    """2 GiB is what lavapipe lends in one piece; later ones have more, and then the result is right."""
    torch.export.save(torch.export.export(LargeInBetween(), (torch.randn(1, 25, 4096),)), tmp_path / "m.pt2")
    tool("compile", tmp_path / "m.pt2", "--target", "vulkan", "-o", tmp_path / "m.pte", "--require-full-delegation")
    needs = json.loads(tool("inspect", tmp_path / "m.pte", "--json"))["methods"][0]["delegates"][0]["vulkan"]["tiers"]
    assert min(t["activation_bytes"] for t in needs) > 2**31
    np.save(tmp_path / "x.npy", np.zeros((1, 25, 4096), np.float32))
    for program in ("m.pte", "m.pt2"):
        done = subprocess.run([tosaic, "run", tmp_path / program, "--device", "vulkan", "--input", tmp_path / "x.npy",
                               "--output-dir", tmp_path / "out"], capture_output=True, text=True)
        if done.returncode == 0:
            found = np.load(tmp_path / "out/output_0.npy")
            np.testing.assert_allclose(found, LargeInBetween()(torch.zeros(1, 25, 4096)).numpy(), rtol=1e-5)
            shutil.rmtree(tmp_path / "out")
            continue
        assert done.returncode == 1 and "error[vulkan.memory]" in done.stderr, done.stderr
        assert "bytes for constants," in done.stderr and "--target tosa-fp" in done.stderr, done.stderr
        assert not list(tmp_path.glob("out/*.npy"))


def test_devices(tosaic, tool, tmp_path):
    devices = json.loads(tool("run", "--list-devices", "--json"))["devices"]
    assert devices and any(d["shaders"] for d in devices)
    limits = devices[0]["limits"]  # of these every device has some
    assert limits["range_bytes"] >= 1 << 27 and limits["shared_bytes"] >= 16384 and limits["push_constant_bytes"] >= 128
    assert limits["memory_bytes"] > 0 and limits["group_invocations"] >= 128 and len(limits["group_size"]) == 3
    torch.export.save(torch.export.export(torch.nn.ReLU(), (torch.randn(3),)), tmp_path / "m.pt2")
    tool("compile", tmp_path / "m.pt2", "--target", "vulkan", "-o", tmp_path / "m.pte")
    said = subprocess.run([tosaic, "run", tmp_path / "m.pte", "-v"], capture_output=True, text=True, check=True).stderr
    assert " bytes for constants, 0 for activations, 512 for inputs and outputs" in said, said
    for arguments, code in ((["--vulkan-device", "no such"], "vulkan.device"), (["--device", "cpu"], "run.device"),
                            (["--device", "vulkan-ml"], "run.device")):
        done = subprocess.run([tosaic, "run", tmp_path / "m.pte", *arguments], capture_output=True, text=True)
        assert done.returncode == 1 and f"error[{code}]" in done.stderr, done.stderr
    damaged = bytearray((tmp_path / "m.pte").read_bytes())
    at = damaged.index(b"TVKP")
    damaged[at + 40:at + 60] = b"\xff" * 20
    (tmp_path / "m.pte").write_bytes(damaged)
    done = subprocess.run([tosaic, "run", tmp_path / "m.pte"], capture_output=True, text=True)
    assert done.returncode == 1 and "error[vulkan-program." in done.stderr, done.stderr
