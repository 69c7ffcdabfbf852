# SPDX-License-Identifier: Apache-2.0
"""The reference of the Python package: what its modules say of themselves, read and not imported."""
import ast

FOLDER = "docs/reference"
HEAD = "How to use it: [{page}](../{file}). Types and docstrings are those of the package, so `help()` says the same.\n"


def executorch_modules(root):
    """module -> names that `tosaic.executorch` has from it."""
    tree = ast.parse((root / "python/tosaic/executorch/__init__.py").read_text())
    value = next(node.value for node in tree.body if isinstance(node, ast.Assign) and node.targets[0].id == "_MODULES")
    return ast.literal_eval(value)


def pages(root):
    package = ["# Python: tosaic", "", HEAD.format(page="the Python package", file="python.md"), "::: tosaic", "",
               "## Options", "", "::: tosaic._compile_options.CompileOptions", ""]
    operators = ["# Python: tosaic.tosa", "", HEAD.format(page="TOSA's operators as functions",
                                                          file="python.md#tosas-operators-as-functions"), "::: tosaic.tosa", ""]
    theirs = ["# Python: tosaic.executorch", "", HEAD.format(page="in ExecuTorch's flow", file="executorch.md")]
    for module, names in executorch_modules(root).items():
        theirs += [f"## {module}", ""]
        theirs += [f"::: tosaic.executorch.{module}.{name}\n    options:\n      heading_level: 3\n" for name in names]
    theirs += ["## runtime", "", "::: tosaic.executorch.runtime\n    options:\n      heading_level: 3\n"]
    return {f"{FOLDER}/python.md": "\n".join(package), f"{FOLDER}/python-tosa.md": "\n".join(operators),
            f"{FOLDER}/python-executorch.md": "\n".join(theirs)}
