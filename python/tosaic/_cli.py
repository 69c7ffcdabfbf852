# SPDX-License-Identifier: Apache-2.0
"""The command `tosaic`: the tool that comes with the package."""

import os
import sys


def main() -> None:
    tool = os.path.join(os.path.dirname(__file__), "bin", "tosaic")
    # Vela and its like lie next to the interpreter.
    os.environ["PATH"] = os.path.dirname(sys.executable) + os.pathsep + os.environ.get("PATH", "")
    os.execv(tool, [tool, *sys.argv[1:]])
