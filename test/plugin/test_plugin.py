# SPDX-License-Identifier: Apache-2.0
"""The ExecuTorch plug-in: programs of both projects in ExecuTorch's own runtime give what ours gives."""
import importlib.util
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest

from conftest import ENVIRONMENT, ROOT, RUNTIME

DIGITS, SAMPLES = ROOT / "examples/digits/digits.pt2", ROOT / "examples/digits/digits_samples.npz"
INT8 = ["--quantize", "int8", "--calibrate", SAMPLES]
TARGETS = {"tosa-int": ["tosa-int", *INT8], "tosa-fp": ["tosa-fp"], "vgf": ["vgf"], "vgf-int8": ["vgf", *INT8],
           "ethos-u55-128": ["ethos-u55-128", *INT8], "ethos-u85-256": ["ethos-u85-256", *INT8, "--io", "quantized"]}


@pytest.fixture(scope="session")
def digits(tool, tmp_path_factory):
    """The digits model for a target, compiled once."""
    made = {}

    def compiled(target):
        if target not in made:
            made[target] = tmp_path_factory.mktemp(target) / "digits.pte"
            tool("compile", DIGITS, "--target", *TARGETS[target], "-o", made[target])
        return made[target]
    return compiled


def image(target, seed=1):
    sample = np.random.default_rng(seed).standard_normal((1, 1, 8, 8)).astype(np.float32)
    return (sample * 40).clip(-128, 127).astype(np.int8) if "quantized" in TARGETS[target] else sample


def same(found, expected):
    """To the last bit, also of floats: both are the same executor."""
    assert len(found) == len(expected)
    for f, e in zip(found, expected):
        assert f.dtype == e.dtype and f.shape == e.shape
        np.testing.assert_array_equal(f, e)


# ---- programs

@pytest.mark.parametrize("target", TARGETS)
def test_our_programs(target, digits, ours, theirs):
    for seed in 1, 2:
        found = theirs(digits(target), [image(target, seed)])
        same(found, ours(digits(target), [image(target, seed)]))
    assert len(np.unique(found[0])) > 5


@pytest.mark.parametrize("model", ["keyword_spotting", "auto_encoder"])
@pytest.mark.parametrize("target", ["tosa-int", "vgf"])
def test_our_programs_of_models(model, target, tool, ours, theirs, tmp_path):
    program = ROOT / f"build/models/{model}.pt2"
    if not program.exists():
        pytest.skip("make quick-models has not run")
    samples = program.with_name(f"{model}_samples.npz")
    tool("compile", program, "--target", target, "--quantize", "int8", "--calibrate", samples, "-o", tmp_path / "m.pte")
    stored = np.load(program.with_name(f"{model}_expected.npz"))
    inputs = [stored[f"input_{i}"][0] for i in range(sum(name.startswith("input_") for name in stored))]
    same(theirs(tmp_path / "m.pte", inputs), ours(tmp_path / "m.pte", inputs))


def export(function, inputs, path):
    import torch

    class Call(torch.nn.Module):
        def forward(self, *tensors):
            return function(*tensors)
    torch.export.save(torch.export.export(Call(), tuple(inputs)), path)
    return Call()(*inputs)


def test_partly_delegated(plugin, tool, ours, theirs, tmp_path):
    """Kernels of ExecuTorch's between delegates of ours; int64 and boolean tensors among inputs and outputs."""
    import torch

    def function(x, i, flags):
        values, places = torch.topk(x @ x.T * 0.5, 2, dim=1)
        return values.sin() * 2, places + i, torch.logical_not(flags)
    inputs = [torch.linspace(-2, 3, 12).reshape(3, 4), torch.tensor([[2**20, 1]]), torch.tensor([True, False])]
    expected = export(function, inputs, tmp_path / "m.pt2")
    tool("compile", tmp_path / "m.pt2", "--target", "tosa-fp", "-o", tmp_path / "m.pte")
    assert tool("inspect", tmp_path / "m.pte").count("delegate TOSABackend") >= 2
    arrays = [i.numpy() for i in inputs]
    found = theirs(tmp_path / "m.pte", arrays)
    same(found, ours(tmp_path / "m.pte", arrays))
    for f, e in zip(found, expected):
        np.testing.assert_allclose(f, e.numpy(), rtol=1e-5, atol=1e-6)


def test_data_outside_the_program(tool, digits, theirs, tmp_path):
    """A command stream's weights in a .ptd file, found by ExecuTorch's named data."""
    tool("compile", DIGITS, "--target", *TARGETS["ethos-u55-128"], "-o", tmp_path / "m.pte", "--external",
         f"weights={tmp_path / 'weights.ptd'}")
    inputs = [image("ethos-u55-128")]
    same(theirs(tmp_path / "m.pte", inputs, data_path=tmp_path / "weights.ptd"), theirs(digits("ethos-u55-128"), inputs))
    with pytest.raises(RuntimeError, match="0x:23"):
        theirs(tmp_path / "m.pte", inputs)


def test_constants_outside_the_payload(tool, theirs, ours, tmp_path):
    """TOSA's large constants, which the flatbuffer names and a .ptd file holds."""
    import base64
    weights = (np.arange(256 * 256) % 97 / 97 - 0.5).astype(np.float32).tobytes()
    (tmp_path / "m.txt").write_text("graph @forward(%x: 1x256xf32) -> (%y) {\n  %w: 256x256xf32 = constant \""
                                    + base64.b64encode(weights).decode()
                                    + "\"\n  %y: 1x256xf32 = aten.linear.default(%x, %w, none)\n}\n")
    inputs = [np.linspace(-1, 1, 256, dtype=np.float32)[None]]
    for name, options in (("whole", []), ("apart", ["--external", f"weights={tmp_path / 'w.ptd'}"])):
        tool("compile", tmp_path / "m.txt", "--target", "tosa-fp", "-o", tmp_path / f"{name}.pte", *options)
    assert (tmp_path / "apart.pte").stat().st_size < 1 << 14
    expected = theirs(tmp_path / "whole.pte", inputs)
    same(theirs(tmp_path / "apart.pte", inputs, data_path=tmp_path / "w.ptd"), expected)
    same(ours(tmp_path / "apart.pte", inputs, "--data", tmp_path / "w.ptd"), expected)


# ---- of ExecuTorch's own Arm flow (make_programs.py)

PROGRAMS = ROOT / "test/plugin/programs"
METHODS = [(p.stem, m) for p in sorted(PROGRAMS.glob("*.pte")) if p.stem != "tosa_dynamic"
           for m in (["first", "second"] if p.stem == "tosa_methods" else ["forward"])]


def stored(name, what, method="forward"):
    arrays = np.load(PROGRAMS / f"{name}.npz")
    return [np.ascontiguousarray(arrays[f"{method}_{what}{i}"]) for i in range(9) if f"{method}_{what}{i}" in arrays]


@pytest.mark.parametrize("name, method", METHODS, ids=[f"{n}-{m}" for n, m in METHODS])
def test_programs_of_executorch(name, method, plugin, ours):
    """PyTorch's numbers, and to the last bit ours. A program with a channels-last input takes such a tensor."""
    import torch
    from executorch.runtime import Runtime
    inputs, data = stored(name, "in", method), sorted(PROGRAMS.glob("*.ptd")) if name.endswith("external") else []
    tensors = [torch.from_numpy(i) for i in inputs]
    if name.endswith("layout"):
        tensors[0] = tensors[0].to(memory_format=torch.channels_last)
    loaded = Runtime.get().load_program(PROGRAMS / f"{name}.pte", **{"data_path": d for d in data}).load_method(method)
    found = [o.numpy() for o in loaded.execute(tensors)]
    for f, e in zip(found, stored(name, "out", method), strict=True):
        assert f.dtype == e.dtype and f.shape == e.shape
        np.testing.assert_allclose(f, e, rtol=1e-5, atol=1e-6)
    if method != "second":
        options = [o for d in data for o in ("--data", d)] + (["--method", method] if method != "forward" else [])
        same(found, ours(PROGRAMS / f"{name}.pte", inputs, *options))


def test_methods_of_one_program(plugin):
    """Both loaded, called by turns."""
    import torch
    from executorch.runtime import Runtime
    program = Runtime.get().load_program(PROGRAMS / "tosa_methods.pte")
    methods = {m: program.load_method(m) for m in ("first", "second")}
    for m in ("first", "second") * 2:
        found = methods[m].execute([torch.from_numpy(i) for i in stored("tosa_methods", "in", m)])
        np.testing.assert_allclose(found[0].numpy(), stored("tosa_methods", "out", m)[0], rtol=1e-5, atol=1e-6)


def test_dynamic_sizes_are_refused(plugin, theirs, capfd):
    with pytest.raises(RuntimeError, match="0x:23"):
        theirs(PROGRAMS / "tosa_dynamic.pte", stored("tosa_dynamic", "in"))
    said = capfd.readouterr().err
    assert "error[tosa-file.dynamic]: dimension 0 of tensor 'input_1' is -1" in said and "help: export the model" in said


# ---- ExecuTorch's C++ interface

CHECK = ROOT / "build/release/bin/plugin_check"


def check(*words):
    done = subprocess.run([str(w) for w in (CHECK, *words)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    return done.stdout + done.stderr


def test_threads(digits):
    said = check("threads", *(digits(t) for t in ("tosa-int", "vgf", "ethos-u55-128")))
    assert said.count("simulator") == 1  # said once


def test_nothing_grows(digits):
    check("growth", *(digits(t) for t in ("tosa-int", "vgf", "ethos-u55-128", "tosa-fp")))


def test_the_methods_allocator(digits):
    said = check("memory", digits("vgf"), "VgfBackend")
    assert "forward (VgfBackend): error[" in said and "option heap" in said


@pytest.mark.parametrize("target, backend", [("vgf-int8", "VgfBackend"), ("ethos-u55-128", "EthosUBackend")])
def test_options(target, backend, digits):
    said = check("options", digits(target), backend)
    assert "has no option 'treads'; it has threads, reference, device, heap, log" in said
    assert f"forward ({backend}) runs on" in said


def test_values_that_no_program_passes(digits, tool, tmp_path):
    tool("extract", digits("tosa-fp"), "-o", tmp_path / "payload")
    said = check("direct", next((tmp_path / "payload").iterdir()))
    for text in ("the payload takes 1 inputs and gives 1 outputs, the program passes 3 values", "input 0 is no tensor",
                 "input 0: 1x1x4x16xf32 (256 bytes) is passed, the payload takes 1x1x8x8xf32", "no delegate has",
                 "output 0 cannot be resized"):
        assert text in said, said


# ---- time

def traced(program, inputs, folder):
    """What ExecuTorch's Inspector makes of two executions: the events of Execute by name."""
    import torch
    from executorch.devtools import Inspector
    from executorch.runtime import Runtime
    loaded = Runtime.get().load_program(program, enable_etdump=True, debug_buffer_size=1 << 20)
    method = loaded.load_method("forward")
    for _ in range(2):
        method.execute([torch.from_numpy(i) for i in inputs])
    loaded.write_etdump_result_to_file(str(folder / "dump.etdp"), str(folder / "debug.bin"))
    inspector = Inspector(etdump_path=str(folder / "dump.etdp"),
                          delegate_metadata_parser=lambda texts: {"run": [t.decode() for t in texts]})
    return [e for block in inspector.event_blocks if block.name == "Execute" for e in block.events]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("target", ["tosa-int", "vgf-int8", "ethos-u55-128"])
def test_inspector_shows_our_times(target, plugin, digits, tool, tmp_path):
    events = traced(digits(target), [image(target)], tmp_path)
    ours = [e for e in events if e.is_delegated_op]
    call, = (e for e in events if e.name == "DELEGATE_CALL")
    assert all(len(e.perf_data.raw) == 2 and min(e.perf_data.raw) >= 0 for e in ours)
    assert sum(e.perf_data.raw[0] for e in ours) <= call.perf_data.raw[0]
    said = [e.delegate_debug_metadatas["run"][0] for e in ours]
    if target.startswith("ethos"):
        assert said == ["ethos-u55-128 (simulated)"]
        return
    assert len(ours) > 5 and len({e.name for e in ours}) == len(ours)  # as the payload names what they compute
    payload = tool("inspect", digits(target))
    assert all(f"%{e.name}: " in payload or f"(%{e.name})" in payload for e in ours)
    assert sum(s.startswith("conv_i8: tosa.") for s in said) >= 3 and "pool: tosa.max_pool2d" in said
    if target == "vgf-int8":
        assert {"stem.0", "block1", "pool"} <= {e.name for e in ours}


# ---- again and again, from Python

def test_loaded_in_python_again_and_again(digits, theirs):
    """In four threads; the process does not grow."""
    import concurrent.futures
    import gc
    targets = ["tosa-int", "vgf", "ethos-u55-128", "tosa-fp"]
    expected = {t: theirs(digits(t), [image(t)]) for t in targets}

    def run(number):
        target = targets[number % len(targets)]
        same(theirs(digits(target), [image(target)]), expected[target])

    def resident():
        gc.collect()
        return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * 4096
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(run, range(100)))
        before = resident()
        list(pool.map(run, range(200)))
        assert resident() - before < 4 << 20


# ---- what is wrong

def test_damaged_payloads(plugin, digits, theirs, tmp_path, capfd):
    """ExecuTorch's error, our words in its log, and the process goes on."""
    for target, text in ("tosa-int", b"TOSA"), ("vgf", b"VGF1"), ("ethos-u55-128", b"COP1"):
        content = bytearray(digits(target).read_bytes())
        at = content.rindex(text)
        content[at:at + 4] = b"ABCD"
        (tmp_path / "m.pte").write_bytes(content)
        with pytest.raises(RuntimeError, match="0x:23"):
            theirs(tmp_path / "m.pte", [image(target)])
        assert "forward (" in (said := capfd.readouterr().err) and "error[" in said, said
        with pytest.raises(RuntimeError, match=r"(?s)0x:23.*forward \(\w+Backend\): error\["):  # what a notebook shows
            plugin.load_program(tmp_path / "m.pte").load_method("forward")
    rng = np.random.default_rng(7)
    start = bytes(digits("vgf").read_bytes())
    for _ in range(60):
        content = bytearray(start)
        for at in rng.integers(start.rindex(b"VGF1"), len(start), 3):
            content[at] ^= 1 << rng.integers(8)
        try:
            theirs(bytes(content), [image("vgf")])
        except RuntimeError as error:
            assert "error: 0x" in str(error) or "0x" in str(error)
    same(theirs(digits("vgf"), [image("vgf")]), theirs(start, [image("vgf")]))


def test_wrong_inputs(digits, theirs):
    with pytest.raises(RuntimeError):
        theirs(digits("vgf"), [np.zeros((1, 1, 8, 9), np.float32)])


def test_a_program_for_another_backend(plugin, digits, tmp_path, capfd):
    content = digits("vgf").read_bytes().replace(b"VgfBackend", b"NoBackends")
    (tmp_path / "m.pte").write_bytes(content)
    for program in tmp_path / "m.pte", content:
        with pytest.raises(plugin.MissingBackend, match="(?s)needs NoBackends.*VgfBackend.*compile the model"):
            plugin.load_program(program)
    method = plugin.load_program(digits("vgf")).load_method("forward")
    import torch
    assert method.execute([torch.zeros(1, 1, 8, 8)])[0].shape == (1, 10)
    with open(digits("vgf"), "rb") as file:
        assert plugin.load_program(file).method_names == {"forward"}
    (tmp_path / "empty.pte").write_bytes(b"")
    with pytest.raises(RuntimeError):
        plugin.load_program(tmp_path / "empty.pte")
    with pytest.raises(FileNotFoundError):
        plugin.load_program(tmp_path / "none.pte")
    with pytest.raises(RuntimeError, match="0x10"):  # ExecuTorch's own words, there are no others
        method.execute([torch.zeros(1, 1, 8, 9)])


def test_options_from_python(plugin, digits, theirs, capfd):
    assert plugin.backends() == ["TOSABackend", "VgfBackend", "TosaicVulkan", "VulkanBackend", "EthosUBackend"]
    fast = theirs(digits("tosa-int"), [image("tosa-int")])
    plugin.set_option("reference", True)
    plugin.set_option("log", 1, "TOSABackend")
    slow = theirs(digits("tosa-int"), [image("tosa-int")])
    plugin.set_option("reference", False)
    plugin.set_option("log", 0)
    same(slow, fast)
    assert "runs on interp" in capfd.readouterr().err
    with pytest.raises(ValueError, match="no option 'threat'"):
        plugin.set_option("threat", 2)


def imported_here(path):
    spec = importlib.util.spec_from_file_location("again", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def imported(folder, **environment):
    """What importing the module in a process of its own says. It looks for what may be wrong before it imports
    ExecuTorch, so this is quick."""
    script = f"import runpy; runpy.run_path({str(folder)!r}); print('good')"
    return subprocess.run([sys.executable, "-W", "always", "-c", script], capture_output=True, text=True,
                          env=ENVIRONMENT | environment)


def installed(tmp_path, library=None):
    """The module as a wheel would have it."""
    folder = tmp_path / "site/tosaic/executorch"
    folder.mkdir(parents=True)
    shutil.copy(RUNTIME, folder)
    if library:
        (folder.parent / "lib").mkdir()
        shutil.copy(library, folder.parent / "lib")
    return folder / "runtime.py"


def test_a_missing_plugin(tmp_path):
    done = imported(installed(tmp_path), TOSAIC_EXECUTORCH_PLUGIN="")
    assert done.returncode == 1 and "built without it" in done.stderr and "make plugin PYTHON=" in done.stderr
    done = imported(RUNTIME, TOSAIC_EXECUTORCH_PLUGIN="/no/such.so")
    assert done.returncode == 1 and "names /no/such.so, which is no file" in done.stderr
    done = imported(RUNTIME, TOSAIC_EXECUTORCH_PLUGIN=str(DIGITS))
    assert done.returncode == 1 and "is no ExecuTorch plug-in of tosaic" in done.stderr


def test_another_version_of_executorch(library, tmp_path):
    other = tmp_path / "other.so"
    other.write_bytes(library.read_bytes().replace(b"for ExecuTorch 1.5\0", b"for ExecuTorch 1.4\0"))
    done = imported(RUNTIME, TOSAIC_EXECUTORCH_PLUGIN=str(other))
    assert done.returncode == 1 and "built for ExecuTorch 1.4, and 1.5." in done.stderr
    assert "pip install 'executorch==1.4.*'" in done.stderr
    # And where there is no Python: an ExecuTorch that says that it is 1.6.
    import executorch
    package = pathlib.Path(list(executorch.__path__)[0])
    (tmp_path / "lib/cmake/executorch").mkdir(parents=True)
    shutil.copy(package / "lib/libexecutorch.so", tmp_path / "lib")
    (tmp_path / "lib/cmake/executorch/executorch-config-version.cmake").write_text('set(PACKAGE_VERSION "1.6.0")\n')
    script = f"import ctypes; ctypes.CDLL({str(tmp_path / 'lib/libexecutorch.so')!r}); l = ctypes.CDLL({str(library)!r}); " \
             "l.tosaic_executorch_backends.restype = ctypes.c_char_p; print(l.tosaic_executorch_backends())"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "b''\n" and "built for ExecuTorch 1.5, the process has 1.6.0" in done.stderr, done.stderr


def test_an_executorch_without_a_library(library, tmp_path):
    """As wheels were before 1.5, the runtime inside the Python extension: a stand-in, ours has the library."""
    (tmp_path / "executorch/runtime").mkdir(parents=True)
    (tmp_path / "executorch/runtime/__init__.py").write_text("")
    (tmp_path / "executorch-1.5.9.dist-info").mkdir()
    (tmp_path / "executorch-1.5.9.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: executorch\nVersion: 1.5.9\n")
    done = imported(RUNTIME, TOSAIC_EXECUTORCH_PLUGIN=str(library), PYTHONPATH=str(tmp_path))
    assert done.returncode == 1 and "inside the Python extension (no libexecutorch.so is loaded)" in done.stderr


def test_two_plugins(plugin, library, tmp_path, monkeypatch, capfd):
    """Two copies in one process: the second one says which is the first."""
    again = imported_here(plugin.__file__)
    assert again.backends() == plugin.backends()  # the same file is loaded once
    monkeypatch.setenv("TOSAIC_EXECUTORCH_PLUGIN", "")
    wheel = installed(tmp_path, library)
    with pytest.raises(ImportError, match=f"(?s)tosaic/lib/.*could not register a backend.*VgfBackend is registered "
                                          f"already, by {library}: that one is used"):
        imported_here(wheel)
    assert "VgfBackend is registered already" in capfd.readouterr().err


def test_what_the_library_shows(library):
    symbols = subprocess.run(["nm", "-DC", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    assert {line.split()[-1] for line in symbols.splitlines()} == {
        f"tosaic_executorch_{name}" for name in ("version", "backends", "problem", "missing", "error", "set")}
    needs = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout
    assert "[libexecutorch.so]" in needs and "RUNPATH" not in needs and "RPATH" not in needs
    assert "aten_" not in symbols


# ---- another project

CMAKE = "/usr/bin/cmake" if pathlib.Path("/usr/bin/cmake").exists() else "cmake"  # not a wrapper of pyenv's


def test_a_cpp_project(plugin, digits, ours, tmp_path):
    """examples/executorch against the installed plug-in, with ExecuTorch's Module and no Python."""
    import executorch
    package = list(executorch.__path__)[0]

    def call(*words):
        done = subprocess.run([str(w) for w in words], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr
    call(CMAKE, "--install", ROOT / "build/release", "--prefix", tmp_path / "prefix", "--component", "tosaic_executorch")
    call(CMAKE, "-S", ROOT / "examples/executorch", "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={tmp_path / 'prefix'};{package}")
    call(CMAKE, "--build", tmp_path / "build")
    for target in "ethos-u55-128", "vgf":
        image(target).tofile(tmp_path / "input")
        said = call(tmp_path / "build/run", digits(target), tmp_path / "input", tmp_path / "output")
        assert "backends TOSABackend VgfBackend TosaicVulkan VulkanBackend EthosUBackend" in said
        expected, = ours(digits(target), [image(target)])
        np.testing.assert_array_equal(np.fromfile(tmp_path / "output", np.float32), expected.ravel())
