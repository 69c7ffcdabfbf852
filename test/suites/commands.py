# SPDX-License-Identifier: Apache-2.0
"""How the commands of suites are spelled, and what stands before them: things to build or to install."""
import dataclasses
import os
import pathlib
import shlex
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
PATH = os.environ["PATH"]
SYSTEM_PATH = f"/usr/bin:{PATH}"  # a pip-installed cmake elsewhere may need a Python that is not there
RESULTS = "{results}"  # stands for the folder of the suite's reports
ET_SUITE, ET_VULKAN = "executorch/backends/arm/test/ops", "executorch/backends/vulkan/test/test_vulkan_delegate.py"


@dataclasses.dataclass
class Command:
    words: list
    env: dict = dataclasses.field(default_factory=dict)
    folder: pathlib.Path = ROOT

    def filled(self, results):
        fill = lambda text: str(text).replace(RESULTS, str(results))
        return Command([fill(w) for w in self.words], {k: fill(v) for k, v in self.env.items()}, self.folder)

    def __str__(self):
        where = [] if self.folder == ROOT else [f"cd {shlex.quote(str(self.folder))} &&"]
        variables = [f"{k}={shlex.quote(v.removesuffix(PATH)) + '$PATH' * v.endswith(PATH)}" for k, v in self.env.items() if v]
        return " ".join([*where, *variables, shlex.join(map(str, self.words))])

    def run(self):
        return subprocess.call(self.words, cwd=self.folder, env={**os.environ, **self.env})


@dataclasses.dataclass
class Need:
    """Something that is there when its commands have run. Python's environment and the C++ builds are made next to each
    other: downloads and PyTorch leave cores idle. What wants both comes after both."""
    name: str
    commands: object  # a function that gives them
    lane: str
    optional: bool = False  # without it some tests fail, and the others run


class Options:
    """What was asked for: each has an option of run.py, and a variable of the environment for make."""

    def __init__(self, asked, more):
        number = lambda text, default: int(text) if str(text or "") else default
        self.jobs = number(asked["jobs"], os.cpu_count())
        self.shards, self.sample = number(asked["shards"], 8), number(asked["sample"], 40)
        self.seconds = number(asked["fuzz_seconds"], 60)
        self.plugin, self.suite = asked["plugin"] or "ours", asked["suite"] or ET_SUITE
        self.seed = number(asked["seed"], None)
        if self.seed is not None:
            os.environ["SEED"] = str(self.seed)  # for tests that choose by it
        self.other_python = asked["python"] if asked["python"] not in ("", ".venv/bin/python") else ""
        self.python = pathlib.Path(os.path.abspath(ROOT / (self.other_python or ".venv/bin/python")))
        self.tosaic, self.dry, self.more = asked["tosaic"], asked["dry_run"], more

    @property
    def turn(self):
        """Of tests that run by turns: the number of this commit, unless a seed is given."""
        if self.seed is not None:
            return self.seed
        count = subprocess.run(["git", "rev-list", "--count", "HEAD"], capture_output=True, text=True, cwd=ROOT).stdout
        return int(count or 0)

    @property
    def peers(self):
        """The environment in which pip put Vela and the others is on the path."""
        return {"PATH": f"{self.python.parent}:{PATH}"}

    def ask(self, *words):
        """What a small program prints, split at spaces."""
        if self.dry:
            return [f"$({shlex.join(map(str, words))})"]
        return subprocess.run([str(w) for w in words], check=True, capture_output=True, text=True, cwd=ROOT).stdout.split()

    def packages(self, python=None):
        return self.ask(python or self.python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))")[0]

    def executorch(self):
        return f"{self.packages()}/executorch"

    def make(self, target, lane):
        python = [f"PYTHON={self.other_python}"] if self.other_python else []
        clean = {"MAKEFLAGS": "", "MFLAGS": "", "MAKELEVEL": ""}  # this make is no part of one that called us
        return Need(target, lambda: [Command(["make", "--no-print-directory", target, f"JOBS={self.jobs}", *python], clean)],
                    lane)

    def build(self, preset, *targets, options=None):
        """`targets` of a preset of CMake, all without any; what `options` gives configures it, when Python's part is there."""
        def commands():
            path = {"PATH": SYSTEM_PATH}
            there = not options and (ROOT / "build" / preset / "build.ninja").exists()
            set_up = ["cmake", "--preset", preset, "--log-level=WARNING", *(options() if options else [])]
            build = ["cmake", "--build", "--preset", preset, "-j", self.jobs, *(["--target", *targets] if targets else [])]
            return [Command(words, path) for words in ([build] if there else [set_up, build])]
        return Need(" ".join(["build", preset, *targets]), commands, "after" if options else "compile")

    def ctest(self, build, only=(), env=None, but=()):
        chosen = [word for flag, names in (("-R", only), ("-E", but)) if names for word in (flag, f"^({'|'.join(names)})$")]
        return Command(["ctest", "--test-dir", f"build/{build}", "-j", self.jobs, "--no-tests=error", "--output-on-failure",
                        "--output-junit", f"{RESULTS}/ctest.xml", *chosen],
                       {"PATH": SYSTEM_PATH, "VIRTUAL_ENV": str(self.python.parents[1]), "GTEST_OUTPUT": f"xml:{RESULTS}/",
                        **(env or {})})

    def pytest(self, *words, python=None, env=None, report="pytest", folder=ROOT):
        tool = ["--tosaic", self.tosaic] if self.tosaic and "--tosaic" not in words and folder == ROOT else []
        return Command([python or self.python, "-m", "pytest", "-q", *words, *tool, *self.more, "-n", self.jobs,
                        "--dist", "worksteal", f"--junitxml={RESULTS}/{report}.xml"], env or {}, folder)

    def conformance(self, sample, *words):
        return Command([self.python, "test/conformance/run_sample.py", sample, *words, "--jobs", self.jobs])

    def package_tests(self, *words, **others):
        """In the environment that has the wheel."""
        return self.pytest(*words, python=ROOT / "build/python-env/bin/python", env=self.peers, **others)

    def instrumented(self, build, libraries, env, before=()):
        """The package's tests on a core and a plug-in that are built with sanitizers, in a Python that is not: the
        sanitizers' libraries are loaded before it."""
        loaded = ":".join(self.ask("g++", f"-print-file-name=lib{name}.so")[0] for name in (*libraries, "stdc++"))
        command = self.pytest("test/python", "-p", "sanitized", "-p", "no:faulthandler", env={
            **self.peers, **env, "LD_PRELOAD": loaded, "SHARDS": str(self.shards), "SEED": str(self.turn),
            "PYTHONPATH": f"build/{build}/python:test/python",
            "TOSAIC_EXECUTORCH_PLUGIN": str(ROOT / f"build/{build}/python/tosaic/lib/libtosaic_executorch.so")})
        command.words[:0] = before
        return command

    def executorch_suite(self, plugin, sample, seed, *tests, report="pytest"):
        """ExecuTorch's own tests of its backends, with tosaic under them."""
        env = {**self.peers, "PYTHONPATH": str(ROOT / "test/peers/executorch_suite"), "SAMPLE": str(sample), "SEED": str(seed),
               "LEAST": "2"}
        return self.pytest("-p", plugin, "-p", "no:cacheprovider", "-c", "/dev/null", "--rootdir=.", "-W", "ignore",
                           "--tb=short", *tests, python=ROOT / "build/python-env/bin/python", env=env, report=report,
                           folder=pathlib.Path(self.packages()))
