# SPDX-License-Identifier: Apache-2.0
"""ExecuTorch's recipes with tosaic's targets: what `export` makes of them runs, and is what the partitioner gives alone."""
import pytest
import torch
import torchao.quantization.pt2e.quantizer  # noqa: F401  PT2E's operators
import executorch.kernels.quantized  # noqa: F401  their out-variants
from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower
from executorch.export import ExportRecipe, export, recipe_registry
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

import tosaic
from tosaic.executorch import EthosUCompileSpec, EthosUPartitioner, EthosUQuantizer, get_symmetric_quantization_config
from tosaic.executorch.recipes import ArmRecipeType

pytestmark = pytest.mark.filterwarnings("ignore")


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.conv = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.head = torch.nn.Linear(8, 4)

    def forward(self, x):
        return self.head(torch.relu(self.conv(x)).mean((2, 3)))


EXAMPLE = (torch.randn(1, 3, 8, 8, generator=torch.Generator().manual_seed(0)),)
DELEGATES = {"ETHOS": "EthosUBackend", "TOSA": "TOSABackend", "VGF": "VgfBackend", "VULKAN": "TosaicVulkan"}


def delegates(session):
    return [d.id for d in session.get_executorch_program().execution_plan[0].delegates]


def decibels(found, expected):
    return float(10 * torch.log10(expected.pow(2).sum() / (found - expected).pow(2).sum().clamp_min(1e-30)))


@pytest.mark.by_turns(4)
@pytest.mark.parametrize("kind", ArmRecipeType, ids=lambda kind: kind.value)
def test_a_recipe_makes_one_delegate_that_is_right(kind, tmp_path):
    module = Net().eval()
    session = export(module, [EXAMPLE], ExportRecipe.get_recipe(kind))
    assert delegates(session) == [DELEGATES[kind.name.split("_")[0]]]
    (tmp_path / "model.pte").write_bytes(session.get_pte_buffer())
    found = tosaic.load(tmp_path / "model.pte")(*EXAMPLE)
    assert decibels(torch.as_tensor(found), module(*EXAMPLE)) > {"FP": 90, "INT8": 20, "A16W8": 40}[kind.name.rpartition("_")[2]]


def test_a_recipe_is_quantizer_and_partitioner():
    """Byte for byte what a script with the same classes writes."""
    samples = [(torch.randn(1, 3, 8, 8),) for _ in range(4)]
    recipe = ExportRecipe.get_recipe(ArmRecipeType.ETHOS_U55_INT8, macs=64, memory_mode="Sram_Only", calibration_inputs_fn=lambda: samples)
    payload = export(Net().eval(), [EXAMPLE], recipe).get_executorch_program().backend_delegate_data
    spec = EthosUCompileSpec("ethos-u55-64", memory_mode="Sram_Only")
    prepared = prepare_pt2e(torch.export.export(Net().eval(), EXAMPLE, strict=True).module(),
                            EthosUQuantizer(spec).set_global(get_symmetric_quantization_config()))
    for sample in samples:
        prepared(*sample)
    edge = to_edge_transform_and_lower(torch.export.export(convert_pt2e(prepared), EXAMPLE), partitioner=[EthosUPartitioner(spec)],
                                       compile_config=EdgeCompileConfig(_check_ir_validity=False))
    expected = edge.to_executorch()._emitter_output.program.backend_delegate_data
    assert [bytes(d.data) for d in payload] == [bytes(d.data) for d in expected] and len(payload) == 1


@pytest.mark.parametrize("kind,arguments,words", [
    (ArmRecipeType.ETHOS_U55_INT8, {"macs": 512}, "macs=512: there are 32, 64, 128, 256"),
    (ArmRecipeType.ETHOS_U55_INT8, {"memory": "Sram_Only"}, "memory"),
    (ArmRecipeType.VGF_FP, {"macs": 128}, "Ethos-U alone"),
    (ArmRecipeType.TOSA_FP, {"calibration_inputs_fn": list}, "no integers"),
])  # fmt: skip
def test_what_a_recipe_does_not_take(kind, arguments, words):
    with pytest.raises(ValueError, match=words):
        ExportRecipe.get_recipe(kind, **arguments)


def test_executorchs_own_recipes_stay():
    from executorch.backends.arm.recipes import ArmRecipeType as Theirs

    assert {"arm", "tosaic"} <= set(recipe_registry.list_backends())
    assert {t.name for t in Theirs} <= {t.name for t in ArmRecipeType}  # a script changes its import line only
    assert {t.value for t in Theirs} <= {t.value for t in ArmRecipeType}
