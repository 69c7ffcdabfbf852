# SPDX-License-Identifier: Apache-2.0
"""Programs of ExecuTorch's own Vulkan flow (make_vulkan_programs.py) in ExecuTorch's runtime and in ours, on the CPU and
by compute shaders, give what PyTorch gave. Storage and memory layout are the GPU's affair: `buffers` is `net`."""
import json
import subprocess

import numpy as np
import pytest

from conftest import ROOT

STORED = ROOT / "test/plugin/vulkan"
# Half-precision floats are computed with where the program says so; quantised values are those of a float convolution
# here.
TOLERANCE = {"half": 1e-3}
SMALLER = "most_sizes"  # exported for sizes up to a bound
RUNS = ["runs", "runs_of_sizes", "runs_of_tokens"]  # buffers are kept: inputs and results of three runs, one after another


def stored(name, what):
    arrays = np.load(STORED / f"{name}.npz")
    return [arrays[f"{what}.{i}"] for i in range(9) if f"{what}.{i}" in arrays]


def compare(name, found):
    for f, e in zip(found, stored(name, "out"), strict=True):
        assert f.dtype == e.dtype and f.shape == e.shape
        np.testing.assert_allclose(f, e, rtol=1e-5, atol=TOLERANCE.get(name, 2e-6))


NAMES = sorted(p.stem for p in STORED.glob("*.pte") if p.stem != SMALLER and not p.stem.startswith("runs"))


@pytest.mark.parametrize("name", NAMES)
def test_on_the_cpu(name, ours, theirs):
    inputs = stored(name, "in")
    found = ours(STORED / f"{name}.pte", inputs)
    compare(name, found)
    for f, e in zip(theirs(STORED / f"{name}.pte", inputs), found, strict=True):
        np.testing.assert_array_equal(f, e)


@pytest.mark.parametrize("name", NAMES)
def test_by_compute_shaders(name, ours):
    compare(name, ours(STORED / f"{name}.pte", stored(name, "in"), "--device", "vulkan"))


# With a kernel of the host between delegates each runtime has its own last bits: ExecuTorch sums a mean in another order.
@pytest.mark.parametrize("name", ["attention", "dynamic_8_bits", "net", SMALLER])
def test_by_compute_shaders_in_executorch(name, plugin, ours, theirs):
    plugin.set_option("device", "vulkan", backend="VulkanBackend")
    try:
        found = theirs(STORED / f"{name}.pte", stored(name, "in"))
    finally:
        plugin.set_option("device", "", backend="VulkanBackend")
    compare(name, found)
    if name != "net":
        for f, e in zip(found, ours(STORED / f"{name}.pte", stored(name, "in"), "--device", "vulkan"), strict=True):
            np.testing.assert_array_equal(f, e)


def test_layouts_do_not_change_the_numbers(ours):
    inputs = stored("net", "in")
    for f, e in zip(ours(STORED / "buffers.pte", inputs), ours(STORED / "net.pte", inputs), strict=True):
        np.testing.assert_array_equal(f, e)


def test_extracted(tool, ours, tmp_path):
    """The chain as text of a PyTorch graph, which is a program of its own."""
    tool("extract", STORED / "attention.pte", "-o", tmp_path)
    compare("attention", ours(tmp_path / "forward_delegate0.txt", stored("attention", "in")))
    tool("compile", tmp_path / "forward_delegate0.txt", "--target", "tosa-fp", "-o", tmp_path / "m.pte")
    compare("attention", ours(tmp_path / "m.pte", stored("attention", "in")))


def test_inspected(tool):
    text = tool("inspect", STORED / "half.pte")
    assert "et_vk.conv_with_clamp.default" in text and "1x3x16x16xf16 (outside f32), texture 3d, channels packed" in text
    delegate = json.loads(tool("inspect", "--json", STORED / "half.pte"))["methods"][0]["delegates"][0]["vulkan_backend"]
    assert delegate["operators"]["et_vk.conv_with_clamp.default"] == 2 and delegate["unknown"] == []


def test_64_bits_outside(theirs):
    """The payload has 32 bits where the program has 64: what does not fit saturates."""
    places, sums = theirs(STORED / "token.pte", [np.array([[1, 9, 0, 3, 3, 2]])])
    assert places.dtype == sums.dtype == np.int64
    np.testing.assert_array_equal(sums, [[3, 11, 2, 5, 5, 4]])


def test_sizes_up_to_a_bound(ours, theirs, plugin):
    """Exported for images up to 20x24, with one of 16x16: any smaller one runs, one beyond the bound does not."""
    program, inputs = STORED / f"{SMALLER}.pte", stored(SMALLER, "in")
    compare(SMALLER, theirs(program, inputs))
    largest = np.zeros((1, 3, 20, 24), np.float32)
    largest[:, :, :16, :16] = inputs[0]
    whole, = ours(program, [largest])
    for height, width in (20, 24), (16, 16), (9, 24), (4, 5), (16, 16):
        found, = theirs(program, [np.ascontiguousarray(largest[:, :, :height, :width])])
        assert found.shape == (1, 4, height, width)
        np.testing.assert_allclose(found[:, :, :height - 1, :width - 1], whole[:, :, :height - 1, :width - 1], atol=2e-6)
    with pytest.raises(RuntimeError):
        theirs(program, [np.zeros((1, 3, 21, 24), np.float32)])


@pytest.fixture(params=["cpu", "vulkan"])
def device(request, plugin):
    plugin.set_option("device", request.param, backend="VulkanBackend")
    yield request.param
    plugin.set_option("device", "", backend="VulkanBackend")


@pytest.mark.parametrize("name", RUNS)
def test_buffers_that_are_kept(name, device, plugin):
    """What a payload writes to its buffers, its next run finds; the program loaded again begins with what the file has."""
    import torch
    from executorch.runtime import Runtime
    inputs, wanted = ([torch.from_numpy(x) for x in stored(name, what)] for what in ("in", "out"))
    calls = [inputs[i:i + len(inputs) // 3] for i in range(0, len(inputs), len(inputs) // 3)]
    for _ in range(2):
        method = Runtime.get().load_program(STORED / f"{name}.pte").load_method("forward")
        found = [torch.clone(t) for call in calls for t in method.execute(call)]
        torch.testing.assert_close(found, wanted, rtol=1e-5, atol=2e-6)


def test_buffers_of_an_extracted_chain_are_states(tool, tmp_path):
    """Which every target takes, and the tool keeps from one run to the next."""
    tool("extract", STORED / "runs.pte", "-o", tmp_path)
    tool("compile", tmp_path / "forward_delegate0.txt", "--target", "tosa-fp", "-o", tmp_path / "m.pte")
    wanted = stored("runs", "out")
    for i, array in enumerate(stored("runs", "in")):
        np.save(tmp_path / "x.npy", array)
        tool("run", tmp_path / "m.pte", "--input", tmp_path / "x.npy", "--output-dir", tmp_path, "--states", tmp_path / "states")
        for k in range(2):
            np.testing.assert_allclose(np.load(tmp_path / f"output_{k}.npy"), wanted[2 * i + k], rtol=1e-5, atol=2e-6)


def test_contents_without_a_place(tosaic, plugin, tmp_path, capfd):
    """ExecuTorch's flow without `alias_buffer_mutations` asks a delegate to keep what the payload does not say."""
    from executorch.runtime import Runtime
    said = refused(tosaic, "run", STORED / "runs_forgotten.pte")
    assert "the payload takes 1 inputs and gives 4 outputs, the program passes 3" in said and "alias_buffer_mutations" in said
    import torch
    with pytest.raises(RuntimeError):
        Runtime.get().load_program(STORED / "runs_forgotten.pte").load_method("forward").execute([torch.zeros(1, 4, 5)])
    assert "alias_buffer_mutations" in capfd.readouterr().err


def refused(tosaic, *arguments):
    done = subprocess.run([tosaic, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 1
    return done.stderr


def test_refusals(tosaic, tmp_path):
    program = (STORED / "add.pte").read_bytes()

    def changed(old, new):
        assert program.count(old) == 1
        (tmp_path / "m.pte").write_bytes(program.replace(old, new))
        return refused(tosaic, "run", tmp_path / "m.pte")
    said = changed(b"aten.add.Tensor", b"aten.odd.Tensor")
    assert f"{tmp_path / 'm.pte'} (delegate 0): error[vulkan-backend.operator]: 'aten.odd.Tensor'" in said
    assert "operator_blocklist" in said
    assert "error[vulkan-backend.version]: the graph has the format 'VK01'" in changed(b"VK00", b"VK01")
    assert "error[vulkan-backend.format]" in changed(b"VH00", b"VH01")
