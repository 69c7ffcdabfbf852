# SPDX-License-Identifier: Apache-2.0
"""Scripts that were written for ExecuTorch's Arm backends, with nothing but their import lines changed: ExecuTorch's own
public-API scenarios, and the flows of its documents (training: test_quantizer.py). What they write is run and compared."""
import importlib.util
import pathlib
import sys

import pytest
import torch
from executorch.exir import EdgeCompileConfig, ExecutorchBackendConfig, to_edge, to_edge_transform_and_lower
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
from steps import assert_within

import tosaic
from tosaic.executorch import (ArmCompileSpecBuilder, ArmPartitioner, EthosUPartitioner, EthosUQuantizer, VgfCompileSpec,
                               VgfPartitioner, get_symmetric_quantization_config)

ROOT = pathlib.Path(__file__).parents[2]
sys.path += [str(ROOT / "test" / "models"), str(ROOT / "test" / "peers")]
from mobilenet import MobileNetV2  # noqa: E402
from reference_model import run as run_in_reference_model  # noqa: E402


class MobileNet(MobileNetV2):
    """MobileNetV2 with two blocks, whose batch norms have seen data."""

    TABLE = [(1, 16, 1, 1), (6, 16, 1, 1)]

    def __init__(self):
        torch.manual_seed(0)
        super().__init__(classes=10)
        with torch.no_grad():
            for _ in range(10):
                self(torch.randn(8, 3, 32, 32))


def snr(wanted, got):
    return (10 * torch.log10((wanted**2).sum() / ((wanted - got) ** 2).sum())).item()


def scenario(name):
    """A scenario of ExecuTorch's, whose imports say where the names come from."""
    spec = importlib.util.find_spec(f"executorch.backends.arm.test.public_api_bc.{name}")
    text = pathlib.Path(spec.origin).read_text().replace("from executorch.backends.arm import", "from tosaic.executorch import")
    assert "executorch.backends.arm" not in text
    namespace = {"__name__": name}
    exec(compile(text, spec.origin, "exec"), namespace)
    return namespace


@pytest.mark.parametrize("name, function, wanted", [
    ("test_ethosu_flow", "test_u55_u85_public_api_scenario", lambda n: n["TinyAdd"]()),
    ("test_vgf_int_flow", "test_vgf_int_public_api_scenario", lambda n: n["TinyAddSigmoid"]()),
    ("test_vgf_fp_flow", "test_vgf_fp_public_api_scenario", lambda n: n["TinyAddSigmoid"]())])
def test_scenarios_of_the_public_api(name, function, wanted, tmp_path):
    names = scenario(name)
    names[function](tmp_path)
    inputs = (torch.ones(1, 1, 1, 1), torch.ones(1, 1, 1, 1))
    (pte,) = tmp_path.glob("*.pte")
    assert_within(2.5, tosaic.load(pte).run(*inputs), wanted(names)(*inputs))


def test_ethos_u_with_the_builder(tmp_path):
    """The Ethos-U page: MobileNetV2, quantised by PT2E, for a U55."""
    model, inputs = MobileNet().eval(), (torch.randn(1, 3, 32, 32),)
    compile_spec = ArmCompileSpecBuilder().ethosu_compile_spec(
        "ethos-u55-128", system_config="Ethos_U55_High_End_Embedded", memory_mode="Shared_Sram",
        extra_flags="--output-format=raw --debug-force-regor").build()
    graph_module = torch.export.export(model, inputs).module()
    quantizer = EthosUQuantizer(compile_spec)
    quantizer.set_global(get_symmetric_quantization_config(is_per_channel=False))
    graph_module = prepare_pt2e(graph_module, quantizer)
    graph_module(*inputs)
    graph_module = convert_pt2e(graph_module)
    edge = to_edge_transform_and_lower(
        torch.export.export(graph_module, inputs), partitioner=[EthosUPartitioner(compile_spec)],
        compile_config=EdgeCompileConfig(_check_ir_validity=False))
    program = edge.to_executorch(config=ExecutorchBackendConfig(extract_delegate_segments=False))
    with open(tmp_path / "model.pte", "wb") as file:
        program.write_to_file(file)
    session = tosaic.load(tmp_path / "model.pte")
    assert session.device == "ethos-u55-128 (simulated)"
    assert snr(model(*inputs), session.run(*inputs)) > 20
    assert torch.equal(session.run(*inputs), session.run(*inputs))


def test_vgf_flow(tmp_path):
    """The VGF page: floats, with the file for an application kept."""
    model, inputs = MobileNet().eval(), (torch.randn(1, 3, 32, 32),)
    compile_spec = VgfCompileSpec("TOSA-1.0+FP")
    compile_spec.dump_intermediate_artifacts_to(str(tmp_path)).dump_debug_info(VgfCompileSpec.DebugMode.JSON)
    edge = to_edge_transform_and_lower(torch.export.export(model, inputs), partitioner=[VgfPartitioner(compile_spec)])
    got = tosaic.load(bytes(edge.to_executorch().buffer)).run(*inputs)
    torch.testing.assert_close(got, model(*inputs), rtol=1e-4, atol=1e-5)
    assert compile_spec.get_intermediate_path() == str(tmp_path) and compile_spec.get_output_format() == "vgf"
    (vgf,) = tmp_path.glob("*.vgf")
    assert torch.equal(tosaic.load(vgf).run(*inputs), got) and list(tmp_path.glob("*.debug.json"))


def test_tosa_end_to_end(tmp_path):
    """The TOSA example: the graph that is kept runs in Arm's reference model."""
    model, inputs = MobileNet().eval(), (torch.randn(1, 3, 32, 32),)
    compile_spec = ArmCompileSpecBuilder().tosa_compile_spec("TOSA-1.0+FP").dump_intermediate_artifacts_to(str(tmp_path)).build()
    edge = to_edge(torch.export.export(model, inputs)).to_backend(ArmPartitioner(compile_spec))
    (tosa,) = tmp_path.glob("*.tosa")
    got = tosaic.load(bytes(edge.to_executorch().buffer)).run(*inputs)
    torch.testing.assert_close(got, model(*inputs), rtol=1e-4, atol=1e-5)
    judged = run_in_reference_model(tosa, [inputs[0].numpy()], tmp_path)
    torch.testing.assert_close(got, torch.from_numpy(judged[0]), rtol=1e-4, atol=1e-5)
