# SPDX-License-Identifier: Apache-2.0
"""`sed s/executorch.backends.arm/tosaic.executorch/` is all that a script needs: every module path of ExecuTorch's is here, with
tosaic's classes, and with ExecuTorch's own where tosaic has none of that name."""
import importlib
import importlib.util
import pathlib
import subprocess
import sys

import pytest
import test_parity

import tosaic.executorch

ARM = pathlib.Path(importlib.util.find_spec("executorch.backends.arm").submodule_search_locations[0])


def public_modules():
    return [m for modules in test_parity.SECTIONS.values() for m in modules]


@pytest.mark.parametrize("theirs", public_modules())
def test_every_public_module_has_tosaics_names(theirs):
    name = theirs.replace("executorch.backends.arm", "tosaic.executorch").replace("executorch.backends.vulkan", "tosaic.executorch.vulkan")
    here, there = importlib.import_module(name), importlib.import_module(theirs)
    for what, thing in test_parity.parts_of(there):
        mine, shared = getattr(here, what), test_parity.ours_for(what)
        if shared is not None and (".vulkan" not in theirs or what.startswith("Vulkan")):
            assert mine is shared, f"{name}.{what}"
        else:
            assert mine is thing, f"{name}.{what}"
    with pytest.raises(AttributeError):
        here.no_such_name  # noqa: B018


@pytest.mark.parametrize("module, names", [
    ("arm_backend", "ArmCompileSpecBuilder is_tosa is_ethosu get_tosa_spec get_intermediate_path"),
    ("arm_partitioner", "ArmPartitioner"), ("ethosu_partitioner", "EthosUPartitioner"), ("tosa_partitioner", "TOSAPartitioner"),
    ("vgf_partitioner", "VgfPartitioner"), ("tosa_backend", "TOSABackend"), ("ethosu_backend", "EthosUBackend"),
    ("tosa_specification", "get_tosa_spec"), ("quantizer.arm_quantizer", "EthosUQuantizer get_symmetric_quantization_config")])
def test_modules_of_earlier_versions(module, names):
    there = importlib.import_module(f"tosaic.executorch.{module}")
    for name in names.split():
        assert getattr(there, name).__module__.startswith("tosaic.executorch."), name
    with pytest.raises(ImportError):
        importlib.import_module(f"tosaic.executorch.{module}.deeper")


def test_what_is_nowhere_is_missing():
    for name in ("no_such_module", "test", "test.tester.arm_tester", "scripts.aot_arm_compiler", "tosa.no_such_module"):
        with pytest.raises(ModuleNotFoundError, match="tosaic.executorch"):
            importlib.import_module(f"tosaic.executorch.{name}")
    with pytest.raises(AttributeError):
        tosaic.executorch.no_such_name  # noqa: B018


SCRIPT = """
import torch
from executorch.backends.arm.arm_backend import ArmCompileSpecBuilder, get_tosa_spec, is_tosa
from executorch.backends.arm.arm_partitioner import ArmPartitioner
from executorch.backends.arm.quantizer.arm_quantizer import TOSAQuantizer, get_symmetric_quantization_config
from executorch.backends.arm.tosa.specification import TosaSpecification
from executorch.backends.arm.util._factory import create_partitioner, create_quantizer
from executorch.exir import to_edge_transform_and_lower
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

model, inputs = torch.nn.Sequential(torch.nn.Conv2d(2, 4, 3), torch.nn.ReLU()).eval(), (torch.randn(1, 2, 8, 8),)
for text in ("TOSA-0.80+BI", "TOSA-1.0+INT"):
    spec = ArmCompileSpecBuilder().tosa_compile_spec(text).build()
    assert is_tosa(spec) and is_tosa(spec.to_list()) and get_tosa_spec(spec) == text
    quantizer = TOSAQuantizer(spec).set_global(get_symmetric_quantization_config())
    assert type(create_quantizer(spec)) is TOSAQuantizer and type(create_partitioner(spec)) is type(ArmPartitioner(spec))
    prepared = prepare_pt2e(torch.export.export(model, inputs).module(), quantizer)
    prepared(*inputs)
    program = torch.export.export(convert_pt2e(prepared), inputs)
    edge = to_edge_transform_and_lower(program, partitioner=[ArmPartitioner(spec)])
    ops = [str(n.target) for n in edge.exported_program().graph.nodes if n.op == "call_function"]
    assert sum("executorch_call_delegate" in o for o in ops) == 1 and not any("convolution" in o for o in ops), ops
    edge.to_executorch()
assert TosaSpecification.create_from_string("TOSA-1.0+INT")
"""


def test_a_script_with_its_import_lines_changed(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT.replace("executorch.backends.arm", "tosaic.executorch"))
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
