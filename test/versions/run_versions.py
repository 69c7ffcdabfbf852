#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tries tosaic with other versions of what it works with, each in an environment of its own below build/versions:

    run_versions.py [PART ...] [--only VERSION] [--write] [--keep]

PART is a name in PARTS; without one all are tried. Needs the wheel in build/dist and the quick models; PyTorch is PyPI's,
several gigabytes a version, so an environment is removed when it has been tried, but for --keep. --write makes
data/torch-VERSION.tar.xz anew. Prints a line per version and ends with 1 if anything failed. docs/versions.md is the table.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import venv

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
FOLDER = ROOT / "build" / "versions"

# PyTorch, and the torchao of its time, which has PT2E.
TORCH = {"2.9.1": "0.14.1", "2.10.0": "0.16.0", "2.11.0": "0.16.0", "2.12.1": "0.17.0", "2.13.0": "0.18.0",
         "2.14.1": "0.18.0", "2.15.0": "0.18.0"}
PYTHON_TESTS = [f"test/python/test_{name}.py" for name in ("compile", "run", "bad_input")]


class Environment:
    """A virtual environment with these packages of PyPI."""

    def __init__(self, name: str, *packages: str, without_dependencies: tuple = ()):
        self.folder = FOLDER / name
        self.bin = self.folder / "bin"
        venv.create(self.folder, clear=True, with_pip=True)
        self.install(*packages)
        if without_dependencies:
            self.install("--no-deps", *without_dependencies)

    def see_peers(self) -> None:
        """What it has not itself it takes from the environment of this script."""
        (place,) = self.folder.glob("lib/python*/site-packages")
        (place / "peers.pth").write_text(sysconfig.get_path("purelib") + "\n")

    def install(self, *packages: str) -> None:
        self.python("-m", "pip", "install", "-q", "--no-compile", "--no-cache-dir", "--disable-pip-version-check", *packages)

    def python(self, *arguments, may_fail: bool = False) -> subprocess.CompletedProcess:
        """In the root of the sources. What it prints is kept next to the environment."""
        path = os.pathsep.join([str(self.bin), os.path.dirname(sys.executable), os.environ["PATH"]])
        done = subprocess.run([self.bin / "python", *arguments], cwd=ROOT, env={**os.environ, "PATH": path}, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        with open(f"{self.folder}.log", "a") as log:
            log.write(done.stdout)
        if done.returncode and not may_fail:
            raise subprocess.CalledProcessError(done.returncode, arguments, done.stdout)
        return done

    def pytest(self, *arguments) -> str:
        """pytest's last line, and whether all passed."""
        done = self.python("-m", "pytest", "-q", "-W", "ignore", "-p", "no:cacheprovider", *arguments, may_fail=True)
        lines = done.stdout.strip().splitlines()
        failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
        if done.returncode:
            raise AssertionError("\n    ".join([lines[-1] if lines else "nothing was said", *failed]))
        return lines[-1]


def wheel() -> str:
    found = list((ROOT / "build" / "dist").glob("tosaic-*.whl"))
    if len(found) != 1:
        sys.exit(f"{len(found)} wheels lie in build/dist; make wheel")
    return str(found[0])


def try_torch(version: str, write: bool) -> tuple[Environment, str]:
    environment = Environment(f"torch-{version}", f"torch=={version}", f"torchao=={TORCH[version]}", "numpy", "pandas",
                              "pytest", "tqdm", without_dependencies=(wheel(),))
    if write:
        environment.python(str(HERE / "make_programs.py"), str(HERE / "data"))
    return environment, environment.pytest(*PYTHON_TESTS)


def try_vela(version: str, write: bool) -> tuple[Environment, str]:
    environment = Environment(f"vela-{version}", f"ethos-u-vela=={version}")
    environment.see_peers()
    return environment, environment.pytest("test/versions/test_vela.py", "test/ethosu/test_program.py", "--all-models")


def try_tosa_tools(version: str, write: bool) -> tuple[Environment, str]:
    environment = Environment(f"tosa-tools-{version}", f"tosa-tools=={version}")
    environment.see_peers()
    return environment, environment.pytest("test/peers/test_tosa_programs.py", "-k", "reference_model_agrees")


VIEWERS = ["netron==9.3.3", "ai-edge-model-explorer==0.1.34", "tosa-adapter-model-explorer==0.1.0",
           "pte-adapter-model-explorer==0.2.0", "vgf-adapter-model-explorer==0.5.1"]


def try_viewers(version: str, write: bool) -> tuple[Environment, str]:
    environment = Environment(f"viewers-{version}", *VIEWERS, "pytest", without_dependencies=(str(ROOT / "python" / "model_explorer"),))
    return environment, environment.pytest("test/versions/test_viewers.py")


def try_mlia(version: str, write: bool) -> tuple[Environment, str]:
    environment = Environment(f"mlia-{version}", f"mlia-ethos-u=={version}", "ethos-u-vela==5.1.0", "pytest", "jsonschema",
                              without_dependencies=(wheel(), str(ROOT / "python" / "mlia")))
    environment.see_peers()
    return environment, environment.pytest("test/versions/test_mlia.py")


PARTS = {"torch": (TORCH, try_torch), "vela": (("5.1.0", "5.2.0"), try_vela),
         "tosa-tools": (("2026.2.1", "2026.5.0", "2026.8.0"), try_tosa_tools),
         "viewers": (("2026",), try_viewers), "mlia": (("0.1.0",), try_mlia)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], metavar="PART")
    parser.add_argument("--only", metavar="VERSION", help="this version alone")
    parser.add_argument("--write", action="store_true", help="write the fixtures of PyTorch's versions anew")
    parser.add_argument("--keep", action="store_true", help="keep the environments")
    options = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    failed = 0
    for part in options.parts or PARTS:
        versions, body = PARTS[part]
        for version in versions:
            if options.only not in (None, version):
                continue
            try:
                environment, said = body(version, options.write)
                print(f"{part} {version}: {said}", flush=True)
            except (AssertionError, subprocess.CalledProcessError) as why:
                failed += 1
                said = getattr(why, "output", None) or str(why)
                print(f"{part} {version}: FAILED\n    {said}", flush=True)
            if not options.keep:
                shutil.rmtree(FOLDER / f"{part}-{version}", ignore_errors=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
