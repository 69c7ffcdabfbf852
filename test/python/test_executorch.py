# SPDX-License-Identifier: Apache-2.0
"""Compile specs, partitioners and backends in ExecuTorch's own flow; what it writes is run and compared."""
import pathlib
import re
import runpy

import pytest
import torch
import torch.nn.functional as F
import torchao.quantization.pt2e.quantizer  # noqa: F401  PT2E's operators
import executorch.kernels.quantized  # noqa: F401  their out-variants
from executorch.exir import EdgeCompileConfig, to_edge, to_edge_transform_and_lower
from executorch.exir.backend.operator_support import DontPartition, DontPartitionModule, DontPartitionName
from executorch.exir.dialects._ops import ops as exir_ops
from torch.fx.passes.operator_support import OperatorSupportBase
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
from steps import assert_within, step_of

import tosaic
from tosaic.executorch import (ArmCompileSpecBuilder, ArmPartitioner, EthosUCompileSpec, EthosUPartitioner, TosaCompileSpec,
                               TOSAPartitioner, TOSAQuantizer, VelaExternalBlockPlacements, VgfCompileSpec, VgfPartitioner,
                               VulkanPartitioner,
                               get_symmetric_quantization_config)

pytestmark = pytest.mark.by_turns(2)

MODELS = pathlib.Path(__file__).parents[2] / "build" / "models"
FP, INT = TosaCompileSpec("TOSA-1.0+FP"), TosaCompileSpec("TOSA-1.0+INT")


def lowered(exported, *partitioners, **kwargs):
    return to_edge_transform_and_lower(exported, partitioner=list(partitioners),
                                       compile_config=EdgeCompileConfig(_check_ir_validity=False), **kwargs)


def operators(edge):
    """What stands in the lowered program, without getitem."""
    names = [getattr(n.target, "_op", n.target) for n in edge.exported_program().graph.nodes if n.op == "call_function"]
    return [str(n) for n in names if "getitem" not in str(n)]


def exported(body, *inputs):
    class Module(torch.nn.Module):
        def forward(self, *args):
            return body(*args)

    return torch.export.export(Module(), inputs)


class Mixed(torch.nn.Module):
    """An operator in the middle that no delegate takes."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.last = torch.nn.Linear(8, 8), torch.nn.Linear(8, 4)

    def forward(self, x):
        y = self.first(x).relu()
        return self.last(y + torch.nonzero(y > 1e9).sum())


@pytest.mark.parametrize("name, spec, target", [
    ("digits", FP, "tosa-fp"), ("digits_pt2e", INT, "tosa-int"), ("digits_pt2e", VgfCompileSpec(), "vgf"),
    ("keyword_spotting_pt2e", EthosUCompileSpec("ethos-u55-128"), "ethos-u55-128"), ("tiny_vit", VgfCompileSpec(), "vgf")])
def test_their_flow_computes_what_ours_does(name, spec, target):
    program = torch.export.load(MODELS / f"{name}.pt2")
    partitioner = ArmPartitioner(spec)
    edge = lowered(program, partitioner)
    assert operators(edge).count("executorch_call_delegate") == 1
    assert all("quantize" in o for o in operators(edge) if o != "executorch_call_delegate"), operators(edge)
    x = program.example_inputs[0]
    got = tosaic.load(bytes(edge.to_executorch().buffer)).run(*x)
    torch.testing.assert_close(got, tosaic.compile(program, target=target).run(*x), rtol=1e-5, atol=1e-6)


def test_partial_delegation_has_a_reason_for_every_node_that_stays(tmp_path):
    x = torch.randn(2, 8)
    program = torch.export.export(Mixed().eval(), (x,))
    partitioner = TOSAPartitioner(TosaCompileSpec("TOSA-1.0+FP").dump_intermediate_artifacts_to(str(tmp_path)))
    edge = lowered(program, partitioner)
    left = [n.name for n in edge.exported_program().graph.nodes
            if n.op == "call_function" and "getitem" not in str(n.target) and "delegate" not in str(n.target)]
    assert operators(edge).count("executorch_call_delegate") == 2 and left and set(left) <= set(partitioner.refused)
    report = (tmp_path / "partition_report.txt").read_text()
    assert "nonzero" in report and {"tag0.tosa", "tag1.tosa"} <= {p.name for p in tmp_path.iterdir()}


def test_nothing_is_left_that_was_not_decomposed():
    """The peer's issue 12270: linear, hardswish, upsample, eye and linspace, also where the target does not take them."""
    body = lambda x: (F.hardswish(F.linear(x, torch.ones(6, 6))) + torch.eye(6) + torch.linspace(0, 1, 6),
                      F.interpolate(x[None, None], scale_factor=2.0, mode="bilinear"))
    program = exported(body, torch.randn(6, 6))
    for partitioner in (TOSAPartitioner(FP), TOSAPartitioner(INT), VgfPartitioner(VgfCompileSpec()),
                        EthosUPartitioner(EthosUCompileSpec("ethos-u55-128"))):
        edge = lowered(program, partitioner)
        assert ("executorch_call_delegate" in operators(edge)) or partitioner.refused
    assert operators(lowered(program, TOSAPartitioner(FP))) == ["executorch_call_delegate"]


def test_edge_operators_that_are_refused_when_tried():
    """ExecuTorch asks once more when all is lowered; what is refused then was never kept."""
    x, mask = torch.rand(1, 4), torch.tensor([[True, False, True, False]])
    quantizer = TOSAQuantizer("TOSA-1.0+INT").set_global(get_symmetric_quantization_config())
    prepared = prepare_pt2e(exported(lambda x, m: x.masked_fill(m, -127.0), x, mask).module(), quantizer)
    prepared(x, mask)
    program = torch.export.export(convert_pt2e(prepared), (x, mask))
    partitioner = TOSAPartitioner(TosaCompileSpec("TOSA-1.0+INT+u55"))
    lowered(program, partitioner)
    assert any("select" in why for why in partitioner.refused.values())


class WithPositionBias(torch.nn.Module):
    """What keeps floats together with quantised values in T5: an embedding of int64 positions as a bias, a dropout, a
    residual of floats."""

    def __init__(self):
        super().__init__()
        self.words, self.bias = torch.nn.Embedding(32, 16), torch.nn.Embedding(8, 2)
        self.query, self.out = torch.nn.Linear(16, 16, bias=False), torch.nn.Linear(16, 16, bias=False)
        self.dropout = torch.nn.Dropout()

    def forward(self, ids, shown):
        x = self.dropout(self.words(ids))
        heads = self.query(x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6)).view(1, -1, 2, 8).transpose(1, 2)
        near = (torch.arange(5) - torch.arange(5)[:, None]).abs()
        positions = torch.where(near < 2, near, 2 + torch.log(near.float() / 2 + 1).to(torch.long))
        bias = torch.where(shown, self.bias(positions).permute(2, 0, 1)[None], -100.0)
        shares = torch.softmax(heads @ heads.transpose(2, 3) + bias, -1)
        return self.dropout(x + self.out((shares @ heads).transpose(1, 2).reshape(1, -1, 16)))


def test_floats_beside_codes_cost_only_what_computes_with_them():
    torch.manual_seed(0)
    example = (torch.randint(0, 32, (1, 5)), torch.ones(5, 5, dtype=torch.bool).tril())
    quantizer = TOSAQuantizer("TOSA-1.0+INT").set_global(get_symmetric_quantization_config())
    prepared = prepare_pt2e(torch.export.export(WithPositionBias().eval(), example).module(), quantizer)
    prepared(*example)
    program = torch.export.export(convert_pt2e(prepared), example)
    partitioner = TOSAPartitioner(TosaCompileSpec("TOSA-1.0+INT"))
    edge = lowered(program, partitioner)
    assert not [o for o in operators(edge) if re.search("mm|softmax|exp|rsqrt", o)], operators(edge)
    got = tosaic.load(bytes(edge.to_executorch().buffer)).run(*example)
    assert (got - program.module()(*example)).abs().max() < 0.05


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_statistics_that_nobody_reads_keep_no_batch_norm_outside(dtype):
    """In the edge dialect it gives three results, two of them without elements."""
    model = torch.nn.Sequential(torch.nn.Hardtanh(), torch.nn.BatchNorm2d(3)).eval().to(dtype)
    program = torch.export.export(model, (torch.randn(1, 3, 4, 4, dtype=dtype),))
    assert operators(lowered(program, TOSAPartitioner(FP))) == ["executorch_call_delegate"]


def test_vulkans_example_of_executorch(tmp_path, monkeypatch, capsys):
    """examples/vulkan_add, by the calls of its page; what it writes is run by both runtimes."""
    from executorch.runtime import Runtime, Verification

    import tosaic.executorch.runtime  # noqa: F401

    monkeypatch.chdir(tmp_path)
    example = runpy.run_path(str(pathlib.Path(__file__).parents[2] / "examples/vulkan_add/vk_add.py"))
    example["main"]()
    said = capsys.readouterr().out
    assert "vk_add: 1 delegates\n" in said and "vk_add_around: 2 delegates\n" in said and "exp" in said, said
    x, y = torch.randn(5), torch.randn(5)
    for name, model in (("vk_add", example["Add"]()), ("vk_add_around", example["AddAround"]())):
        method = Runtime.get().load_program(tmp_path / f"{name}.pte", verification=Verification.Minimal).load_method("forward")
        torch.testing.assert_close(method.execute([x, y])[0], model(x, y))


def test_lists_and_options_of_vulkan():
    x = torch.randn(2, 4)
    program = torch.export.export(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh(), torch.nn.ReLU()).eval(), (x,))
    tanh = exir_ops.edge.aten.tanh.default
    for options in ({"operator_blocklist": [tanh]}, {"nn_module_blocklist": ["Tanh"]},
                    {"nn_module_allowlist": ["Linear", "ReLU"]}):
        assert "aten.tanh.default" in operators(lowered(program, VulkanPartitioner(**options)))
    assert operators(lowered(program, VulkanPartitioner(operator_allowlist=[tanh]))).count("executorch_call_delegate") == 1
    assert operators(lowered(program, VulkanPartitioner({"force_fp16": True}))) == ["executorch_call_delegate"]
    for wrong in ({"require_dynamic_shapes": True}, {"storage_typ": 1}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            VulkanPartitioner(wrong)


def test_checks_of_the_user():
    class NoTanh(OperatorSupportBase):
        def is_node_supported(self, submodules, node):
            return node.target is not exir_ops.edge.aten.tanh.default

    class Inner(torch.nn.Module):
        def forward(self, x):
            return x.sigmoid()

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.linear = Inner(), torch.nn.Linear(4, 4)

        def forward(self, x):
            return self.inner(self.linear(x).tanh() * 2)

    program = torch.export.export(Model(), (torch.randn(1, 4),))
    for check, left in ((NoTanh(), "aten.tanh.default"), (DontPartition(exir_ops.edge.aten.linear.default), "addmm"),
                        (DontPartition("aten.tanh", exact=False), "aten.tanh.default"),
                        (DontPartitionName("mul", exact=False), "aten.mul.Tensor"),
                        (DontPartitionModule(module_name="Inner"), "aten.sigmoid.default")):
        partitioner = TOSAPartitioner(FP, additional_checks=[check])
        outside = [o for o in operators(lowered(program, partitioner)) if "delegate" not in o]
        assert any(left in o for o in outside), (check, outside)
        assert any(f"Rejected by {type(check).__name__}" == why for why in partitioner.refused.values())


def test_to_edge_and_to_backend_work_too():
    program = exported(lambda x, y: x + y, torch.ones(1), torch.ones(1))
    edge = to_edge(program).to_backend(TOSAPartitioner(FP))
    assert operators(edge) == ["executorch_call_delegate"]
    assert torch.equal(tosaic.load(bytes(edge.to_executorch().buffer)).run(torch.ones(1), torch.ones(1)), torch.full((1,), 2.0))


def test_int64_and_odd_strides_stay_outside():
    embedding = torch.nn.Sequential(torch.nn.Embedding(10, 8), torch.nn.Linear(8, 4)).eval()
    partitioner = VgfPartitioner(VgfCompileSpec())
    index = torch.randint(0, 10, (2, 5))
    edge = lowered(torch.export.export(embedding, (index,)), partitioner)
    assert "int64" in partitioner.refused["aten_embedding_default"]
    with torch.no_grad():
        torch.testing.assert_close(tosaic.load(bytes(edge.to_executorch().buffer)).run(index), embedding(index))


def test_one_of_several_results_lies_in_another_order():
    """The whole call is decided about; asking again and again would not end."""
    x = torch.randn(1, 3, 4, 5)
    program = exported(lambda x: x.split_with_sizes([1, 3], -2), x)
    edge = lowered(program, TOSAPartitioner(TosaCompileSpec("TOSA-1.0+FP")))
    assert operators(edge) == ["executorch_call_delegate"]
    got = tosaic.load(bytes(edge.to_executorch().buffer)).run(x)
    assert all(torch.equal(a, b) for a, b in zip(got, program.module()(x)))


@pytest.mark.parametrize("spec", [FP, VgfCompileSpec()])
def test_channels_last_tensors_cross_the_border_as_they_lie(spec):
    """In at the program's inputs and between delegates, out at its outputs; ExecuTorch's runtime and ours agree."""
    from executorch.runtime import Runtime, Verification

    import tosaic.executorch.runtime  # noqa: F401

    torch.manual_seed(0)
    convolution = torch.nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)
    x = torch.randn(2, 3, 6, 5).to(memory_format=torch.channels_last)

    def body(x):
        y = convolution(x).relu()
        return torch.exp(-y.double()).float() * 2 + y  # doubles stay outside

    program = exported(body, x)
    partitioner = ArmPartitioner(spec)
    edge = lowered(program, partitioner)
    assert not [n for n, why in partitioner.refused.items() if "memory" in why], partitioner.refused
    assert operators(edge).count("executorch_call_delegate") >= 1
    file = bytes(edge.to_executorch().buffer)
    wanted = body(x)
    torch.testing.assert_close(tosaic.load(file).run(x), wanted, rtol=1e-5, atol=1e-6)
    method = Runtime.get().load_program(file, verification=Verification.Minimal).load_method("forward")
    torch.testing.assert_close(method.execute([x])[0], wanted, rtol=1e-5, atol=1e-6)


def test_tensors_of_foreign_dtypes_stay_outside():
    scale = torch.ones(4).to(torch.float8_e4m3fnuz)
    partitioner = TOSAPartitioner(FP)
    x = torch.randn(3, 4)
    edge = lowered(exported(lambda x: (x + 1) * scale.to(torch.float32), x), partitioner)
    assert "float8_e4m3fnuz" in " ".join(partitioner.refused.values())
    assert "executorch_call_delegate" in operators(edge)
    partitioner = TOSAPartitioner(FP)
    edge = lowered(exported(lambda x: torch.view_as_real(torch.fft.rfft2(x + 1)).relu(), x), partitioner)
    assert "complex64" in " ".join(partitioner.refused.values())
    assert operators(edge).count("executorch_call_delegate") == 2


def test_both_profiles_make_tosa_files():
    edge = lowered(exported(lambda x: x.relu() + 1, torch.randn(3)), TOSAPartitioner(TosaCompileSpec("TOSA-1.0+INT+FP")))
    (module,) = [m for m in edge.exported_program().graph_module.children() if hasattr(m, "processed_bytes")]
    assert module.processed_bytes[4:8] == b"TOSA"


def test_several_methods_and_partitioners():
    first, second = exported(lambda x: x.relu() + 1, torch.randn(3)), exported(lambda x: x.tanh() * 2, torch.randn(3))
    edge = to_edge_transform_and_lower({"a": first, "b": second},
                                       partitioner=[TOSAPartitioner(FP), VgfPartitioner(VgfCompileSpec())])
    pte = bytes(edge.to_executorch().buffer)
    x = torch.randn(3)
    assert torch.equal(tosaic.load(pte, method="a").run(x), x.relu() + 1)
    torch.testing.assert_close(tosaic.load(pte, method="b").run(x), x.tanh() * 2)


def test_ours_and_theirs_in_one_process():
    from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec as TheirSpec
    from executorch.backends.arm.tosa.partitioner import TOSAPartitioner as Theirs

    program, x = exported(lambda x: x.relu() + 1, torch.randn(3)), torch.randn(3)
    for partitioner in (TOSAPartitioner(FP), Theirs(TheirSpec("TOSA-1.0+FP")), TOSAPartitioner(FP)):
        edge = lowered(program, partitioner)
        assert operators(edge) == ["executorch_call_delegate"]
        assert torch.equal(tosaic.load(bytes(edge.to_executorch().buffer)).run(x), x.relu() + 1)


def test_compile_specs_have_their_arguments_and_travel():
    spec = EthosUCompileSpec("ethos-u85-256", system_config="Ethos_U85_SYS_Flash_High", memory_mode="Dedicated_Sram",
                             extra_flags=["--optimise=Size"],
                             external_block_placements=VelaExternalBlockPlacements(weight_data="weights"))
    spec.dump_intermediate_artifacts_to("somewhere").dump_debug_info(EthosUCompileSpec.DebugMode.JSON)
    assert EthosUCompileSpec._from_list(spec._to_list()) == spec and spec.get_intermediate_path() == "somewhere"
    assert spec.options() == {"system-config": ["Ethos_U85_SYS_Flash_High"], "memory-mode": ["Dedicated_Sram"],
                              "vela-flags": ["--optimise=Size"]}
    old = ArmCompileSpecBuilder().ethosu_compile_spec(
        "ethos-u55-128", system_config="Ethos_U55_High_End_Embedded", memory_mode="Shared_Sram",
        extra_flags="--output-format=raw --debug-force-regor").build()
    assert old.target == "ethos-u55-128" and old.options()["vela-flags"] == ["--debug-force-regor"]
    assert VgfCompileSpec().get_output_format() == "vgf" and TosaCompileSpec("TOSA-1.0+INT").target == "tosa-int"
    from executorch.backends.arm.tosa import TosaSpecification
    assert TosaCompileSpec(TosaSpecification.create_from_string("TOSA-1.0+FP")).tosa_spec.startswith("TOSA-1.0")


def test_their_words_in_specifications():
    spec = TosaCompileSpec("TOSA-1.0+INT+int16+int4+u55")
    assert spec.options() == {"tosa-spec": ["TOSA-1.0+INT+int16+int4"]}
    program = exported(lambda x, y: x ^ y, torch.ones(4, dtype=torch.int8), torch.ones(4, dtype=torch.int8))
    assert operators(lowered(program, TOSAPartitioner(INT))) == ["executorch_call_delegate"]
    assert "delegate" not in str(operators(lowered(program, TOSAPartitioner(spec))))
    assert TosaCompileSpec("TOSA-1.0+FP+cf").options() == {"tosa-spec": ["TOSA-1.0+FP+controlflow"]}


def test_bad_specs_are_refused():
    with pytest.raises(ValueError, match="ethos-u55-128"):
        EthosUCompileSpec("ethos-u99")
    with pytest.raises(TypeError, match="EthosUCompileSpec"):
        EthosUPartitioner(FP)
    with pytest.raises(ValueError, match="output format"):
        VgfCompileSpec._from_list(FP._to_list())
    with pytest.raises(tosaic.Error, match="has no target"):
        ArmCompileSpecBuilder().build()
    with pytest.raises(ValueError, match="dump_intermediate"):
        TOSAPartitioner(TosaCompileSpec("TOSA-1.0+FP").dump_debug_info(TosaCompileSpec.DebugMode.TOSA))
    with pytest.raises(tosaic.Error, match="unused-number|nonsense|vela"):
        lowered(torch.export.load(MODELS / "digits_pt2e.pt2"),
                EthosUPartitioner(EthosUCompileSpec("ethos-u55-128", memory_mode="nonsense")))


def test_blocks_outside_the_program():
    program = torch.export.load(MODELS / "digits_pt2e.pt2")
    x = program.example_inputs[0]
    inside = lowered(program, EthosUPartitioner(EthosUCompileSpec("ethos-u85-256"))).to_executorch()
    spec = EthosUCompileSpec("ethos-u85-256", external_block_placements=VelaExternalBlockPlacements(
        cmd_data="commands", weight_data="weights"))
    outside = lowered(program, EthosUPartitioner(spec)).to_executorch()
    files = {f"{tag}.ptd": bytes(content) for tag, content in outside._tensor_data.items()}
    assert sorted(files) == ["commands.ptd", "weights.ptd"] and len(outside.buffer) < len(inside.buffer)
    got = tosaic.load(bytes(outside.buffer), data=files).run(*x)
    assert torch.equal(got, tosaic.load(bytes(inside.buffer)).run(*x))


class Positions(torch.nn.Module):
    """A bias by distance, computed from nothing but sizes, in int64 and floats: none of it is quantised."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.head, self.bias = torch.nn.Linear(8, 8), torch.nn.Embedding(8, 1)

    def forward(self, x):
        places = torch.arange(x.shape[1])
        apart = (places[None, :] - places[:, None]).abs()
        far = 4 + (torch.log(apart.float() / 4 + 1e-3) * 2).to(torch.long)
        which = torch.where(apart < 4, apart, torch.min(far, torch.full_like(far, 7)).clamp(0))
        return torch.softmax(self.head(x) + self.bias(which)[..., 0], -1)


def test_what_cannot_be_delegated_takes_nothing_else_along():
    """Floats that only pass through an integer delegate are refused without naming a node: not all that happens to be in
    their group, nor is anything said to be kept whole that ExecuTorch would not have taken apart."""
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    from tosaic.executorch import TOSAQuantizer, get_symmetric_quantization_config

    x = torch.randn(1, 8, 8, generator=torch.Generator().manual_seed(1))
    quantizer = TOSAQuantizer(TosaCompileSpec("TOSA-1.0+INT")).set_global(get_symmetric_quantization_config())
    prepared = prepare_pt2e(torch.export.export(Positions().eval(), (x,)).module(), quantizer)
    prepared(x)
    program = torch.export.export(convert_pt2e(prepared), (x,))
    partitioner = TOSAPartitioner(TosaCompileSpec("TOSA-1.0+INT"))
    kept, _ = partitioner.ops_to_not_decompose(program)
    assert kept == [torch.ops.aten.linear.default]
    edge = to_edge_transform_and_lower(program, partitioner=[partitioner])  # raises where what was kept stays outside
    assert "aten_linear_default" not in partitioner.refused and "aten_embedding_default" in partitioner.refused
    got = tosaic.load(bytes(edge.to_executorch().buffer)).run(x)
    assert_within(1.01, got, program.module()(x), of=step_of(program.module()))


def test_what_stands_behind_an_operator_that_stays_is_quantised():
    """Its weights' conversions, and those of what passes it by, are of the group that reads them; assertions hold nothing."""
    class Around(torch.nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.first, self.last = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)

        def forward(self, x):
            y = self.first(x).relu().to(x.dtype)
            return self.last(torch.remainder(y, self.last.bias)) + y

    x = torch.rand(2, 8)
    module = torch.export.export(Around().eval(), (x,), strict=True).module(check_guards=False)
    prepared = prepare_pt2e(module, TOSAQuantizer(INT).set_global(get_symmetric_quantization_config()))
    prepared(x)
    converted = convert_pt2e(prepared)
    partitioner = TOSAPartitioner(INT)
    edge = lowered(torch.export.export(converted, (x,), strict=True), partitioner)
    left = [o for o in operators(edge) if "executorch_call_delegate" not in o and "quantize" not in o]
    assert len(left) == 1 and "remainder" in left[0], partitioner.refused
    got = tosaic.load(bytes(edge.to_executorch().buffer)).run(x)
    assert_within(1.01, got, converted(x), of=step_of(converted))
