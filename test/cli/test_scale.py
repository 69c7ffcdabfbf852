# SPDX-License-Identifier: Apache-2.0
"""Programs of many nodes take time in proportion, and large weights no memory of their own."""
import base64
import resource
import struct
import subprocess
import sys

import numpy as np
import pytest


def constant(count, seed):
    return base64.b64encode(struct.pack(f"<{count}f", *(((i * 7919 + seed * 104729) % 1000 - 500) / 2500 for i in range(count)))).decode()


def program(inputs, lines, result):
    return f"graph @forward(%x: {inputs}) -> (%{result}) {{\n" + "\n".join("  " + line for line in lines) + "\n}\n"


def chain(count):
    calls = ("relu", "sigmoid", "neg")
    lines = [f"%v{i}: 1x8x8xf32 = aten.{calls[i % 3]}.default(%{'x' if i == 0 else f'v{i - 1}'})" for i in range(count)]
    return program("1x8x8xf32", lines, f"v{count - 1}")


def wide(count):
    """As many branches next to one another as there are nodes by three, and a tree that adds them."""
    lines, level, sums = [], [], 0
    for i in range(count // 3):
        lines += [f'%c{i}: 8xf32 = constant "{constant(8, i)}"', f"%a{i}: 1x8x8xf32 = aten.mul.Tensor(%x, %c{i})",
                  f"%s{i}: 1x8x8xf32 = aten.sigmoid.default(%a{i})"]
        level.append(f"s{i}")
    while len(level) > 1:
        above = [] if len(level) % 2 == 0 else [level.pop()]
        for a, b in zip(level[::2], level[1::2]):
            lines.append(f"%t{sums}: 1x8x8xf32 = aten.add.Tensor(%{a}, %{b})")
            above.append(f"t{sums}")
            sums += 1
        level = above
    return program("1x8x8xf32", lines, level[0])


def layers(count):
    """Transformer layers of 17 nodes, each with weights of its own."""
    lines, x = [], "x"
    for i in range(count // 17):
        p = f"l{i}_"
        for k, (name, shape) in enumerate({"g": "8", "b": "8", "wq": "24x8", "wo": "8x8", "w1": "16x8", "w2": "8x16"}.items()):
            lines.append(f'%{p}{name}: {shape}xf32 = constant "{constant(int(np.prod([int(d) for d in shape.split("x")])), 10 * i + k)}"')
        call = lambda name, shape, text: lines.append(f"%{p}{name}: {shape}xf32 = aten.{text}")
        call("n", "1x4x8", f"layer_norm.default(%{x}, %{p}g, %{p}b) {{normalized_shape=[8], eps=1e-05}}")
        call("qkv", "1x4x24", f"linear.default(%{p}n, %{p}wq, none)")
        call("r", "1x4x3x2x4", f"reshape.default(%{p}qkv) {{shape=[1, 4, 3, 2, 4]}}")
        call("p", "3x1x2x4x4", f"permute.default(%{p}r) {{dims=[2, 0, 3, 1, 4]}}")
        for k, name in enumerate("qkv"):
            call(name, "1x2x4x4", f"select.int(%{p}p) {{dim=0, index={k}}}")
        call("a", "1x2x4x4", f"scaled_dot_product_attention.default(%{p}q, %{p}k, %{p}v, none)")
        call("t", "1x4x2x4", f"transpose.int(%{p}a) {{dim0=1, dim1=2}}")
        call("m", "1x4x8", f"reshape.default(%{p}t) {{shape=[1, 4, 8]}}")
        call("o", "1x4x8", f"linear.default(%{p}m, %{p}wo, none)")
        call("x", "1x4x8", f"add.Tensor(%{x}, %{p}o)")
        call("n2", "1x4x8", f"layer_norm.default(%{p}x, %{p}g, %{p}b) {{normalized_shape=[8], eps=1e-05}}")
        call("h", "1x4x16", f"linear.default(%{p}n2, %{p}w1, none)")
        call("ge", "1x4x16", f"gelu.default(%{p}h)")
        call("d", "1x4x8", f"linear.default(%{p}ge, %{p}w2, none)")
        call("y", "1x4x8", f"add.Tensor(%{p}x, %{p}d)")
        x = p + "y"
    return program("1x4x8xf32", lines, x)


def cpu_seconds(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.parametrize("shape, target, count", [(chain, "tosa-fp", 5000), (wide, "tosa-fp", 5000), (layers, "tosa-fp", 5000),
                                                  (layers, "vgf", 2500), (wide, "tosa-int", 2500)])
def test_four_times_the_nodes(tosaic, tmp_path, shape, target, count):
    """Four times the time, and half as much again and more for caches that no longer hold it; squares would be sixteen times."""
    np.savez(tmp_path / "samples.npz", x=np.linspace(-1, 1, 2 * 64, dtype=np.float32).reshape(2, 1, 8, 8))
    seconds = []
    for n in (count, 4 * count):
        (tmp_path / f"{n}.txt").write_text(shape(n))
        command = [tosaic, "compile", f"{tmp_path}/{n}.txt", "--target", target, "--threads", "1", "-o", f"{tmp_path}/{n}.pte"]
        if target == "tosa-int":
            command += ["--calibrate", tmp_path / "samples.npz"]
        seconds.append(min(cpu_seconds(command) for _ in range(2 if n == count else 1)))
    assert seconds[1] < 10 * seconds[0] + 0.1, seconds


# ---- weights

def peak_kilobytes(command):
    """Asked of a small process: a child's figure begins with what its parent holds when it forks."""
    ask = ("import resource, subprocess, sys; subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True); "
           "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)")
    return int(subprocess.run([sys.executable, "-c", ask, *map(str, command)], capture_output=True, check=True).stdout)


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """128 MB of weights that no stage has to change, half of them tied."""
    import torch

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = torch.nn.Linear(4096, 4096, False), torch.nn.Linear(4096, 4096, False)
            self.again = torch.nn.Linear(4096, 4096, False)
            self.again.weight = self.one.weight
            for p in self.parameters():
                p.data.copy_((torch.arange(p.numel()) % 251 / 1e5).view(p.shape))
            self.two.weight.data[0, 0] = 1

        def forward(self, x):
            return self.again(self.two(self.one(x)))

    path = tmp_path_factory.mktemp("large") / "m.pt2"
    torch.export.save(torch.export.export(Model().eval(), (torch.ones(1, 4096),)), path)
    np.save(path.with_name("x.npy"), np.linspace(-1, 1, 4096, dtype=np.float32)[None])
    return path


@pytest.mark.parametrize("target", ["tosa-fp", "vgf"])
def test_weights_stay_in_their_file(tosaic, large, target):
    out = large.with_suffix(".pte")
    peak = peak_kilobytes([tosaic, "compile", large, "--target", target, "-o", out]) << 10
    weights = 2 * 4096 * 4096 * 4
    assert weights < out.stat().st_size < weights + (1 << 20), "tied weights are stored once"
    assert peak < large.stat().st_size + (64 << 20), peak


def test_weights_in_a_file_of_their_own(tosaic, large):
    def call(*arguments):
        return subprocess.run([tosaic, *map(str, arguments)], cwd=large.parent, capture_output=True, text=True)

    for name, options in (("whole", []), ("apart", ["--external", "weights=w.ptd"])):
        done = call("compile", "m.pt2", "--target", "tosa-fp", "-o", f"{name}.pte", *options)
        assert done.returncode == 0, done.stderr
    assert (large.parent / "apart.pte").stat().st_size < 1 << 16
    for name, options in (("whole", []), ("apart", ["--data", "w.ptd"])):
        done = call("run", f"{name}.pte", "--input", "x.npy", "--output-dir", name, *options)
        assert done.returncode == 0, done.stderr
    one, other = (np.load(large.parent / name / "output_0.npy") for name in ("whole", "apart"))
    assert one.tobytes() == other.tobytes()
    missing = call("run", "apart.pte", "--input", "x.npy")
    assert missing.returncode == 1 and "error[tosa-file.constant-outside]" in missing.stderr and "--data" in missing.stderr, missing.stderr
    # The graph is taken out whole.
    done = call("extract", "apart.pte", "--output-dir", "parts", "--data", "w.ptd")
    assert done.returncode == 0, done.stderr
    extracted, = (large.parent / "parts").iterdir()
    done = call("run", extracted, "--input", "x.npy", "--output-dir", "extracted")
    assert done.returncode == 0, done.stderr
    assert np.load(large.parent / "extracted/output_0.npy").tobytes() == one.tobytes()
