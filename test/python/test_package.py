# SPDX-License-Identifier: Apache-2.0
"""The wheel as it is installed: size, import, command line, types."""
import importlib.metadata
import os
import pathlib
import subprocess
import sys
import zipfile

import tosaic

ROOT = pathlib.Path(__file__).parents[2]


def in_python(code):
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


def test_import_is_quick_and_leaves_pytorch_alone():
    # Beside a module of Python's own (asyncio is 0.035 s on a machine of 2023): any machine may be slow, or busy.
    def took(module):
        seconds, *loaded = in_python(f"import sys, time; begin = time.process_time(); import {module}; "
                                     "took = time.process_time() - begin; "
                                     "print(took, 'torch' in sys.modules, 'numpy' in sys.modules)").split()
        assert loaded == ["False", "False"]
        return float(seconds)
    runs = [(took("tosaic"), took("asyncio")) for _ in range(5)]
    assert min(ours for ours, _ in runs) < 1.5 * min(theirs for _, theirs in runs), runs


def test_wheel_is_small_and_installed():
    wheels = list((ROOT / "build" / "dist").glob("*.whl"))
    assert len(wheels) == 1 and wheels[0].stat().st_size < 9e6
    with zipfile.ZipFile(wheels[0]) as wheel:  # the core is in it once: what else is compiled is a face of it
        large = [entry.filename for entry in wheel.infolist() if entry.file_size > 1e6]
    assert large == ["tosaic/lib/libtosaic_core.so"]
    assert importlib.metadata.version("tosaic") == tosaic.__version__ == (ROOT / "VERSION").read_text().strip()
    assert str(ROOT / "build" / "python-env") in tosaic.__file__


def test_command_line_comes_along():
    tool = pathlib.Path(sys.executable).parent / "tosaic"
    out = subprocess.run([tool, "--version"], check=True, capture_output=True, text=True).stdout
    assert out.strip() == f"tosaic {tosaic.__version__}"
    assert subprocess.run([tool, "compile", "/nowhere.pt2"], capture_output=True).returncode == 2


def test_everything_public_is_documented():
    assert "py.typed" in os.listdir(pathlib.Path(tosaic.__file__).parent)
    for name in tosaic.__all__:
        thing = getattr(tosaic, name)
        assert thing.__doc__, name
        for member, value in vars(thing).items() if isinstance(thing, type) else ():
            if not member.startswith("_") and callable(value):
                assert value.__doc__, f"{name}.{member}"
