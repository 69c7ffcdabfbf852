# SPDX-License-Identifier: Apache-2.0
"""The suites: name, what it is, what must be there first, and its commands. Every folder of test/ with tests is a suite by
its own name, too, unless one here has it."""
import dataclasses

from suites.commands import ET_SUITE, ET_VULKAN, RESULTS, ROOT, Command

# With sanitizers: readers, stages, executors, runtime.
ASAN = ["ir", "formats", "plan", "targets", "vulkan", "read", "line", "pack", "partition", "pipeline", "rewrites", "runtime",
        "tosa", "ethosu", "ethosu_device"]
SAMPLED = ["ops", "cpu", "api"]  # of these, which take long, one part in SHARDS
THREADED = ["cpu", "api"]


@dataclasses.dataclass
class Suite:
    name: str
    about: str
    needs: list = dataclasses.field(default_factory=list)
    commands: object = None  # a function that gives them, asked when all that the suite needs is there
    parts: list = dataclasses.field(default_factory=list)  # or the suites that it is made of
    reports: bool = True  # do the commands leave reports to be counted?


def programs(names):
    return [f"test_{name}" for name in names]


def table(o):
    """All suites, for options `o`."""
    tool, tests = o.make("build", "compile"), o.make("build-tests", "compile")
    venv, models, layer, zoo_env, vela = (o.make(name, "python") for name in (
        "venv", "quick-models", "emulation-layer", "zoo-env", "vela"))
    draft = o.make("tosa-draft-env", "python")
    draft_tests = dataclasses.replace(draft, optional=True)
    zoo_tests = dataclasses.replace(zoo_env, optional=True)
    chromium = o.make("packages-BROWSER", "python")
    weights = o.make("accuracy-packages", "python")
    site = dataclasses.replace(o.make("docs", "python"), optional=True)
    browser = o.make("docs-test-env", "python")
    quick_weights = dataclasses.replace(o.make("accuracy-quick", "python"), optional=True)
    plugin, wheel, package = (o.make(name, "after") for name in ("plugin", "wheel", "python-env"))
    in_package = ROOT / "build/python-env/bin/python"
    python_core = lambda: ["-DTOSAIC_PYTHON=ON", f"-DTOSAIC_EXECUTORCH={o.executorch()}", f"-DPython_EXECUTABLE={o.python}"]
    arm64 = ["-DTOSAIC_PYTHON=ON", f"-DTOSAIC_ARM64_ROOT={ROOT}/build/arm64-root", f"-DPython_EXECUTABLE={o.python}"]
    cross = [o.make("packages-CROSS", "compile"), o.make("arm64-root", "after")]
    aarch64 = lambda *words: Command([o.python, "test/aarch64/run_aarch64.py", *words], o.peers)
    boards = [o.make("device", "compile"), o.make("qemu-npu", "compile")]
    other = lambda system, *files: Suite(
        system, f"the tool and the libraries compiled and linked for {system} by zig; nothing is run", [
            o.make("zig", "compile"), o.build(system, "tosaic", "tosaic_shared", "tosaic_static", "tosaic_ethosu_c")],
        lambda: [Command(["python3", "test/other_systems/check_built.py", system, *(f"build/{system}/{f}" for f in files)])],
        reports=False)
    qemu = ["build/release/bin/tosaic", "build/aarch64/bin/tosaic", "build/arm64-root"]
    sharded = {"GTEST_TOTAL_SHARDS": o.shards, "GTEST_SHARD_INDEX": o.turn % o.shards}
    third = {"GTEST_TOTAL_SHARDS": 3, "GTEST_SHARD_INDEX": o.turn % 3}
    # Their build is as long as the release's. By three, so that over time each part of the second runs, and either with
    # either of the Debians (.ci/run).
    sanitizers = [["asan"], ["asan-part"], []][o.turn % 3]
    every = {"GTEST_TOTAL_SHARDS": 1000, "GTEST_SHARD_INDEX": 0}
    first = "--first-of-each-file"
    packaged = ["--ignore", "test/python", "--ignore", "test/accuracy", "--ignore", "test/bare",
                "--ignore", "test/firmware"]  # tests that need the package, or a board
    by_turns = ["--turn", str(o.turn)]
    chosen = lambda: o.ask(o.python, ROOT / "test/peers/executorch_suite/chosen.py", 10910, "misc", "misc", "models")
    theirs = lambda: [o.executorch_suite("ours", 400, 0, ET_SUITE, *chosen(), report="executorch_suite")]
    with_quantizers = lambda: [o.executorch_suite("ours_quantized", 1000, 0, ET_SUITE, report="executorch_quantized_suite"),
                               o.executorch_suite("vulkan", 20, o.turn, ET_VULKAN, report="executorch_vulkan_suite")]
    bench = lambda name, file, about, *needs: Suite(name, about, [tool, venv, *needs], lambda: [Command([
        o.python, f"bench/{file}.py", "--tosaic", "build/release/bin/tosaic", "--output", f"build/{name}.md", *o.more])],
        reports=False)
    return [
        Suite("test", "everything that must hold before a change goes in; of the two sanitizer suites one or none, by turns",
              parts=["cpp", "shaders-part", *sanitizers, "py", "python", "bare", "executorch-part"]),
        Suite("cpp", "C++ tests but for compute shaders, release build", [tests, layer], lambda: [o.ctest("release", but=["shaders"])]),
        Suite("shaders-part", "a third of the compute shaders' tests; SEED chooses, `test-shaders` is all of them",
              [tests, layer], lambda: [o.ctest("release", ["shaders"], third)]),
        Suite("asan", "readers, stages, executors, runtime with AddressSanitizer and UBSan",
              [o.build("sanitized", *programs(ASAN)), layer], lambda: [o.ctest("sanitized", ASAN)]),
        Suite("asan-part", "a part of the lowerings', kernels' and API's tests with sanitizers; SEED chooses, SHARDS=1: all",
              [o.build("sanitized", *programs(SAMPLED))], lambda: [o.ctest("sanitized", SAMPLED, sharded)]),
        Suite("py", "all of Python but the package: golden text, peers, delegates, fuzz seeds, a conformance slice; of what "
              "takes long a part, by turns: SEED chooses, `run.py ethosu`, say, is all of a folder's",
              [tool, plugin, models, zoo_tests, draft_tests, site, chromium], lambda: [o.pytest("test", *packaged, *by_turns)]),
        Suite("python", "the Python package, installed from its wheel; accuracy of two trained models; of what takes long a "
              "part, by turns: SEED chooses",
              [package, models, quick_weights], lambda: [o.package_tests("test/python", "test/accuracy", *by_turns)]),
        Suite("bare", "firmware of programs, in QEMU: the same bytes as here, within the memory that `tosaic inspect` says",
              [tool, venv, models, vela, *boards], lambda: [o.pytest("test/bare", "test/firmware", *by_turns, env=o.peers)]),
        Suite("executorch-part", "some of ExecuTorch's own tests on tosaic", [package], lambda: [*theirs(), *with_quantizers()]),

        Suite("slice", "the first test of each test file: is everything installed that the tests need?",
              parts=["slice-cpp", "slice-asan", "slice-py", "slice-python"]),
        Suite("slice-cpp", "of each C++ program", [tests, layer], lambda: [o.ctest("release", env=every)]),
        Suite("slice-asan", "of one with sanitizers", [o.build("sanitized", "test_ir")],
              lambda: [o.ctest("sanitized", ["ir"], every)]),
        Suite("slice-py", "of each Python file", [tests, plugin, models, zoo_tests, draft_tests, site, chromium],
              lambda: [o.pytest("test", first, *packaged, env=every)]),
        Suite("slice-python", "of each of the package's", [package, models, quick_weights],
              lambda: [o.package_tests("test/python", "test/accuracy", first)]),

        Suite("sanitized", "everything with sanitizers, threads with theirs; an hour or two",
              parts=["sanitized-cpp", "sanitized-py", "threads"]),
        Suite("sanitized-cpp", "all C++ tests with sanitizers", [o.build("sanitized"), layer], lambda: [o.ctest("sanitized")]),
        Suite("sanitized-py", "command line and delegates with sanitizers", [o.build("sanitized"), venv, models], lambda: [
            o.pytest("test/cli", "test/delegates", "--tosaic", "build/sanitized/bin/tosaic")]),
        Suite("threads", "kernels, sessions and calibration in threads, with ThreadSanitizer",
              [o.build("tsan", *programs(THREADED))], lambda: [o.ctest("tsan", THREADED)]),
        Suite("python-sanitized", "a part of the Python package's tests with sanitizers; SEED chooses, SHARDS=1 is all",
              [venv, models, o.build("sanitized", "tosaic", "tosaic_python", options=python_core)], lambda: [o.instrumented(
                  "sanitized", ["asan", "ubsan"], {
                      # Python's objects lie in memory that the sanitizers see.
                      "PYTHONMALLOC": "malloc", "UBSAN_OPTIONS": "print_stacktrace=1",
                      "ASAN_OPTIONS": "detect_leaks=1:leak_check_at_exit=0:abort_on_error=1:detect_stack_use_after_return=1:"
                                      f"log_path={RESULTS}/report"})]),
        Suite("python-races", "the package in threads, and a part of its other tests, with ThreadSanitizer; SEED, SHARDS",
              [venv, models, o.build("tsan", "tosaic", "tosaic_python", options=python_core)], lambda: [o.instrumented(
                  # It sees what is compiled for it alone: PyTorch's threads and a driver's are theirs. It wants its
                  # addresses where they always are (setarch).
                  "tsan", ["tsan"], {"TSAN_OPTIONS": "ignore_noninstrumented_modules=1:report_thread_leaks=0:exitcode=0:"
                                                     f"log_path={RESULTS}/report"}, before=["setarch", "-R"])]),

        Suite("peers", "every model against PyTorch, tosa_reference_model and ExecuTorch", [tool, models], lambda: [
            o.pytest("test/peers", "--ignore", "test/peers/test_ethosu.py", "--all-models")]),
        Suite("ethosu", "every Ethos-U network, model and conformance sample, on every product", [tests, venv], lambda: [
            o.pytest("test/ethosu", "test/peers/test_ethosu.py", "--all-models")]),
        Suite("vulkan", "every model, operator graph and conformance sample as compute shaders, under the validation layer",
              [tests, venv], lambda: [
                  Command([".ci/validated", "--opens", "build/release/bin/test_shaders", "--gtest_brief=1"],
                          {"TOSAIC_ALL_SHADERS": "1", "GTEST_OUTPUT": f"xml:{RESULTS}/"}),
                  o.pytest("test/peers/test_vulkan.py", "--all-models", "--tosaic", ".ci/validated-tool", report="peers"),
                  o.pytest("test/vulkan_runtime", "--all-models", report="vulkan_runtime"),
                  o.conformance("all", "--executors", "shaders", "--tosaic", ".ci/validated-tool")]),
        Suite("vgf", "every model and operator graph as VGF, on the CPU, on Vulkan and in Arm's runner", [tests, venv], lambda: [
            o.ctest("release", ["vulkan"]),
            o.pytest(*sorted(str(p.relative_to(ROOT)) for p in ROOT.glob("test/peers/test_vgf*.py")), "--all-models"),
            o.conformance("slice", "--executors", "vgf", "vulkan", "scenario")]),
        Suite("conformance", "the TOSA 1.0.1 conformance sample, on both executors", [tool, venv],
              lambda: [o.conformance("all", *o.more)], reports=False),
        Suite("conformance-draft", "the conformance tests of what the draft of TOSA 1.1 adds, on both executors", [tool, draft],
              lambda: [Command([ROOT / "build/tosa-draft-env/bin/python", "test/conformance/draft.py", "all", *o.more])],
              reports=False),
        Suite("executorch-suite", "ExecuTorch's 12,000 tests of its Arm backends on tosaic's: every SAMPLE-th (40), the SEED-th",
              [package], lambda: [o.executorch_suite(o.plugin, o.sample, o.seed or 0, o.suite)]),
        Suite("executorch-vulkan-suite", "ExecuTorch's 101 tests of its Vulkan backend on tosaic's; ten minutes", [package],
              lambda: [o.executorch_suite("vulkan", 1, 0, ET_VULKAN)]),
        Suite("versions", "other versions of PyTorch and of the peers; half an hour, and gigabytes of downloads", [wheel, models],
              lambda: [Command([o.python, "test/versions/run_versions.py", *o.more])], reports=False),
        Suite("aarch64-runtime", "the runtime with its TOSA and Ethos-U delegates for aarch64, under qemu; three minutes of CPU",
              [tool, models, vela, *cross, o.build("release", "run_tosa", "run_ethos_u"),
               o.build("aarch64", "run_tosa", "run_ethos_u", options=lambda: arm64)],
              lambda: [aarch64("--runtime", *qemu)], reports=False),
        Suite("aarch64", "all but the ExecuTorch plug-in compiled for aarch64, and tried under qemu; an hour",
              parts=["aarch64-runtime", "aarch64-tool", "aarch64-cpu"]),
        Suite("aarch64-tool", "command line and Python package for aarch64", [
            tool, models, vela, *cross, o.make("arm64-numpy", "python"),
            o.build("aarch64", "tosaic", "tosaic_python", "tosaic_shared", "tosaic_ethosu_c", options=lambda: arm64)],
              lambda: [aarch64(*qemu, "build/aarch64/python", "build/arm64-numpy")], reports=False),
        Suite("aarch64-cpu", "kernels for aarch64 beside the interpreter", [
            venv, *cross, o.build("aarch64", "test_cpu", options=lambda: arm64)],
              lambda: [o.ctest("aarch64", ["cpu"])]),
        other("macos", "bin/tosaic", "libtosaic.dylib", "src/libtosaic_ethosu_c.dylib"),
        other("windows", "bin/tosaic.exe", "bin/libtosaic.dll", "bin/libtosaic_ethosu_c.dll"),
        Suite("docs", "the site of docs/: links, files, and in a browser light, dark, on a phone, with its search", [site, browser],
              lambda: [o.pytest(*(f"test/docs_site/test_{name}.py" for name in ("links", "site_files", "site_browser")),
                                env={"TOSAIC_BROWSER": "1"}, python=ROOT / "build/docs-env/bin/python")]),
        Suite("fuzz", "every fuzzer for FUZZ_SECONDS (60)",
              [tool, vela, o.make("packages-FUZZ", "compile"), o.build("fuzz")], lambda: [
                  Command(["python3", "test/fuzz/make_seeds.py", "build/release/bin/tosaic", "build/fuzz/seeds"], o.peers),
                  Command([".ci/run-fuzzers", "build/fuzz/bin", o.seconds])], reports=False),
        Suite("zoo", "87 families of models on the targets, one table in build/zoo/zoo.md; half an hour", [tool, zoo_env], lambda: [
            Command(["build/zoo-env/bin/python", "-W", "ignore", "test/models/zoo.py", "--tosaic", "build/release/bin/tosaic",
                     "--output", "build/zoo", *o.more])], reports=False),

        Suite("accuracy", "trained models in int8 and int16x8, next to PT2E: one table, and the bars; some ten minutes", [package, weights],
              lambda: [Command([in_package, "test/accuracy/table.py", *o.more]), o.pytest(
                  "test/accuracy", "--all-models", python=in_package,
                  env={**o.peers, "ACCURACY_FIGURES": str(ROOT / "build/accuracy/accuracy.json")})]),

        bench("bench", "bench", "tosaic beside its peers, one table", o.build("release", "in_process")),
        bench("bench-cpu", "cpu", "run time on the CPU, beside ONNX Runtime, OpenVINO, XNNPACK and PyTorch",
              o.make("cpu-peers-env", "python")),
        bench("bench-ethosu", "ethos_u", "Vela's estimates for our TOSA and for ExecuTorch's, every model"),
        bench("bench-boards", "boards", "networks as C on a Cortex-M55 in QEMU: instructions, flash and RAM, Helium next to plain C",
              o.make("packages-BARE", "compile")),
        bench("bench-vgf", "vgf", "VGF files and their making, beside Arm's model converter and ExecuTorch's flow"),
        bench("bench-cuda", "cuda_graphs", "compute shaders on an NVIDIA GPU, beside PyTorch's CUDA graphs"),
        bench("bench-vulkan", "vulkan", "compute shaders on this machine's Vulkan device, beside ncnn's from PyPI"),
        bench("bench-large", "large_weights", "decoders of 60 to 250 million random weights: seconds, memory, bytes"),
        bench("bench-llm", "llm", "a decoder of 0.43 billion weights, of 32 to 4 bits; --llama PYTHON: beside llama-cpp-python, "
                                  "--xnnpack PYTHON: beside ExecuTorch's XNNPACK (a quarter of an hour, once)"),
        *folders(o, [tests, layer], [tests, plugin, models, layer])]


def folders(o, cpp_needs, python_needs):
    """A suite of each folder's C++ program and Python tests."""
    for folder in sorted(p for p in (ROOT / "test").iterdir() if p.is_dir()):
        program = any(folder.glob("*.cpp")) and not (folder / "CMakeLists.txt").exists()
        python = any(folder.rglob("test_*.py"))
        if program or python:
            needs = [*(cpp_needs if program else []), *(python_needs if python else [])]
            yield Suite(folder.name, f"the tests in test/{folder.name}", needs,
                        lambda name=folder.name, program=program, python=python: [
                            *([o.ctest("release", [name])] if program else []), *([o.pytest(f"test/{name}")] if python else [])])
