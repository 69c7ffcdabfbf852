# SPDX-License-Identifier: Apache-2.0
"""What a type checker and `help` see: the stub of the core is what the core says, every public name has a sentence and
types, and a user's script passes mypy --strict against the installed package."""
import importlib
import inspect
import os
import pathlib
import subprocess
import sys

import nanobind.stubgen

import tosaic
import tosaic.executorch

ROOT = pathlib.Path(__file__).parents[2]
MODULES = ("tosaic", "tosaic.executorch", "tosaic.executorch.runtime")


def hold(text, name):
    path = ROOT / "python" / "tosaic" / name
    if os.environ.get("TOSAIC_BLESS"):
        path.write_text(text)
    assert text == path.read_text(), "`make pages` writes it again"


def test_stub_of_tosas_operators():
    """What `tosaic.tosa` makes of the core's rows, for editors and type checkers."""
    types = {"Tensor": "Tensor", "Tensor[]": "Sequence[Tensor]", "int[]": "Sequence[int]", "int": "int", "bool": "bool",
             "Scalar": "float", "str": "str", "ScalarType": "dtype", "ScalarType?": "dtype | None"}
    text = ("# SPDX-License-Identifier: Apache-2.0\nfrom collections.abc import Sequence\n\nfrom torch import Tensor, dtype\n\n"
            "def op(name: str, *operands: object, **attributes: object) -> Tensor | tuple[Tensor, ...]: ...\n")
    for row in tosaic._core.tosa_operators():
        operator = getattr(tosaic.tosa, row.name)
        constants = {o.name for o in row.operands if o.constant and o.type != "shape"}
        signature = operator.__signature__
        parameters = [p.replace(annotation="\0") for p in signature.parameters.values()]
        said = str(signature.replace(parameters=parameters))
        for p in signature.parameters.values():
            known = types[p.annotation] + (" | float | Sequence[float]" if p.name in constants else "")
            said = said.replace("'\\x00'", known, 1)
        gives = "Tensor" if len(row.results) == 1 else f"tuple[{', '.join('Tensor' for _ in row.results)}]"
        text += f'def {row.name}{said} -> {gives}:\n    """{row.summary}"""\n'
    hold(text, "tosa.pyi")


def test_stub_of_the_core():
    """The stub lies in the sources, for editors and for wheels that are made for another machine, where the module cannot
    be imported; TOSAIC_BLESS=1 writes it again."""
    stub = nanobind.stubgen.StubGen(module=importlib.import_module("tosaic._core"), quiet=True)
    stub.put(importlib.import_module("tosaic._core"))
    text = "# SPDX-License-Identifier: Apache-2.0\n" + stub.get()
    hold(text, "_core.pyi")
    installed = pathlib.Path(tosaic.__file__).parent
    assert (installed / "_core.pyi").is_file() and (installed / "py.typed").is_file()


def public_things():
    """(name, object) of every public name, and of what the classes among them have of ours."""
    for module in MODULES:
        for name in (home := importlib.import_module(module)).__all__:
            thing = getattr(home, name)
            yield f"{module}.{name}", thing
            if not isinstance(thing, type):
                continue
            for base in thing.__mro__:
                if base.__module__.startswith("tosaic."):
                    yield from ((f"{module}.{name}.{member}", value) for member, value in vars(base).items()
                                if not member.startswith("_") or member == "__init__")


def function_of(thing):
    """The Python function behind a method or property; None: there is none."""
    thing = getattr(thing, "__func__", thing)  # of static and class methods
    thing = thing.fget if isinstance(thing, property) else thing
    thing = inspect.unwrap(thing) if callable(thing) and not isinstance(thing, type) else thing
    return thing if inspect.isfunction(thing) else None


def test_every_public_name_has_a_sentence():
    missing = [name for name, thing in public_things()
               if (function_of(thing) or isinstance(thing, (type, property)) or callable(thing))
               and not name.endswith(".__init__") and not (getattr(thing, "__doc__", None) or "").strip()]
    assert not missing, missing


def test_every_public_name_has_types():
    missing = []
    for name, thing in public_things():
        function = function_of(thing)
        if function is None or not function.__module__.startswith("tosaic"):
            continue
        untyped = [p.name for p in inspect.signature(function).parameters.values()
                   if p.annotation is p.empty and p.name not in ("self", "cls")]
        if "return" not in function.__annotations__ and not name.endswith("__init__"):
            untyped.append("return")
        missing += [f"{name}: {p}" for p in untyped]
    assert not missing, "\n".join(missing)


SCRIPT = '''
import numpy as np
import tosaic

artifact = tosaic.compile("model.pt2", target="ethos-u55-128", calibration=[np.zeros((1, 1, 8, 8), np.float32)])
reveal_type(artifact)
artifact.save("model.pte")
cycles = [e.cycles for e in artifact.summary.estimates]
reveal_type(cycles)
reveal_type(artifact.summary.nodes[0].reason)
explanation = tosaic.explain("model.pt2", "vgf")
outside: list[str] = [node.op for node in explanation.nodes if not node.taken]
reveal_type(explanation.records())
explanation.to_pandas()
session = tosaic.load("model.pte", threads=1)
reveal_type(session)
sizes: list[list[int]] = [i.sizes for i in session.clone().inputs]
y = session.run(np.zeros((1, 1, 8, 8), np.float32))
names = [t.name for t in tosaic.targets() if t.family == "Ethos-U"]
reveal_type(names)
try:
    tosaic.supports("model.pt2", "tosa-int")
except tosaic.Error as why:
    reveal_type(why.diagnostic)
spec = EthosUCompileSpec("ethos-u55-128", memory_mode="Shared_Sram").dump_intermediate_artifacts_to("there")
reveal_type(spec)
quantizer = EthosUQuantizer(spec).set_global(get_symmetric_quantization_config(is_qat=True))
reveal_type(quantizer)
reveal_type(EthosUPartitioner(spec).refused)
'''
SEEN = ["tosaic._artifact.Artifact", "list[float]", "tosaic._core.Diagnostic | None", "list[dict[str, Any]]",
        "tosaic._session.Session", "list[str]", "tosaic._core.Diagnostic | None",
        "tosaic.executorch.compile_specs.EthosUCompileSpec", "tosaic.executorch.quantizer.EthosUQuantizer",
        "dict[str, str]"]


WRONG = '''
import tosaic
from tosaic.executorch import EthosUCompileSpec
tosaic.compile("m.pt2", target=3)
tosaic.load("m.pte").rum()
EthosUCompileSpec("ethos-u55-128", memory="x")
'''


def test_users_scripts_are_typed(tmp_path):
    names = ", ".join(tosaic.executorch.__all__)  # each is known to the checker, too
    (tmp_path / "script.py").write_text(f"from tosaic.executorch import {names}\n{SCRIPT}")
    (tmp_path / "wrong.py").write_text(WRONG)
    # PyTorch's and ExecuTorch's own sources take a minute to analyse and are not what is asked about.
    (tmp_path / "mypy.ini").write_text("[mypy]\nstrict = True\n" + "".join(
        f"[mypy-{other}.*]\nfollow_imports = skip\nfollow_imports_for_stubs = True\n"
        for other in ("torch", "torchao", "executorch", "pandas", "numpy")))
    done = subprocess.run([sys.executable, "-m", "mypy", "--config-file", "mypy.ini", "--no-color-output", "script.py",
                           "wrong.py"], cwd=tmp_path, capture_output=True, text=True)
    lines = done.stdout.splitlines()
    assert not [line for line in lines if line.startswith("script.py") and ": error:" in line], done.stdout + done.stderr
    seen = [line.split('"')[1].replace("builtins.", "") for line in lines if "Revealed type" in line]
    assert seen == SEEN
    found = [line.rsplit("[", 1)[1] for line in lines if line.startswith("wrong.py") and ": error:" in line]
    assert found == ["arg-type]", "attr-defined]", "call-arg]"], done.stdout
