// SPDX-License-Identifier: Apache-2.0
// Graphs packed into programs: the calls, the memory plan, and that a packed program computes what the graph says.
#include "pack/pack.h"

#include <gtest/gtest.h>
#include <cmath>
#include <random>

#include "delegates/delegates.h"
#include "formats/tosa/tosa_file.h"
#include "interp/interp.h"
#include "ir/tensor.h"
#include "kernels/lowered_kernel.h"
#include "kernels/out_variant.h"
#include "lower/lower.h"
#include "pack/executorch_kernels.h"
#include "runtime/method.h"

namespace tosaic {
namespace {

Graph graph_of(std::string_view text) {
  auto graph = parse(text);
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : render(graph.error(), false));
  return graph.ok() ? *graph : Graph();
}

pte::Program packed(const Graph& graph, const std::vector<DelegatePayload>& payloads = {}) {
  auto file = pack(graph, payloads, "TOSABackend", {"in spec", "out spec", {}, {}});
  EXPECT_TRUE(file.ok()) << (file.ok() ? "" : render(file.error(), false));
  auto program = file.ok() ? pte::read(file->joined(), "packed.pte") : Result<pte::Program>(file.error());
  EXPECT_TRUE(program.ok()) << (program.ok() ? "" : render(program.error(), false));
  return program.ok() ? *program : pte::Program();
}

std::vector<Tensor> inputs_for(const std::vector<TensorType>& types) {
  std::mt19937 random(3);
  std::vector<Tensor> inputs;
  for (const TensorType& type : types) {
    std::vector<double> values(static_cast<std::size_t>(type.shape.elements()));
    for (double& v : values) v = is_float(type.dtype) ? random() % 2000 / 500.0 - 2 : random() % 3;
    inputs.push_back({type, constant_bytes(type.dtype, values)});
  }
  return inputs;
}

// The packed program's outputs are those of the graph's own lowering on the interpreter.
void expect_same(const Graph& graph, double tolerance = 1e-5) {
  auto method = runtime::Method::load(packed(graph), "forward",
                                      {.threads = 1,
                                       .interpret = false,
                                       .file = "packed.pte",
                                       .delegates = all_delegates(),
                                       .kernels = kernels::lowered_kernels()});
  ASSERT_TRUE(method.ok()) << render(method.error(), false);
  const auto inputs = inputs_for(method->input_types());
  auto ours = method->run(inputs);
  ASSERT_TRUE(ours.ok()) << render(ours.error(), false);
  auto lowered = lower(graph);
  ASSERT_TRUE(lowered.ok()) << render(lowered.error(), false);
  auto expected = interp::run(lowered->graph, inputs);
  ASSERT_TRUE(expected.ok()) << render(expected.error(), false);
  ASSERT_EQ(ours->size(), expected->size());
  for (std::size_t o = 0; o < ours->size(); ++o) {
    const TensorType& type = (*ours)[o].type;
    ASSERT_EQ(type.shape.sizes(), (*expected)[o].type.shape.sizes());
    for (std::size_t i = 0; i < static_cast<std::size_t>(type.shape.elements()); ++i)
      ASSERT_NEAR(element_as_double(type.dtype, (*ours)[o].data.data(), i),
                  element_as_double((*expected)[o].type.dtype, (*expected)[o].data.data(), i), tolerance);
  }
}

std::vector<std::string> calls_of(const pte::Program& program) {
  std::vector<std::string> names;
  for (const auto& instruction : program.plans[0].instructions)
    if (const auto* call = std::get_if<pte::KernelCall>(&instruction)) {
      const auto& op = program.plans[0].operators[static_cast<std::size_t>(call->op)];
      names.push_back(op.name + "." + op.overload + "/" + std::to_string(call->args.size()));
    } else {
      names.push_back("delegate");
    }
  return names;
}
using Names = std::vector<std::string>;

TEST(Pack, KernelsAreOutVariants) {
  const Graph graph = graph_of(R"(graph @g(%x: 2x3xf32, %y: 2x3xf32) -> (%d, %s) {
    %a: 2x3xf32 = aten.add.Tensor(%x, %y) {alpha=2}
    %b: 2x3xf32 = aten.relu.default(%a)
    %c: 3x2xf32 = aten.permute.default(%b) {dims=[1, 0]}
    %d: 6xf32 = aten.view.default(%c) {size=[6]}
    %s: 2x1xf32 = aten.mean.dim(%b) {dim=[1], keepdim=true}
  })");
  EXPECT_EQ(calls_of(packed(graph)), (Names{"aten::add.out/5", "aten::relu.out/3", "aten::permute_copy.out/4",
                                            "aten::view_copy.out/4", "aten::mean.out/6"}));
  expect_same(graph);
}

TEST(Pack, CompositesAreSpelledAsCoreAten) {
  const Graph graph = graph_of(R"(graph @g(%x: 1x2x6x6xf32, %g: 2xf32) -> (%f, %n, %p) {
    %w: 3x2x1x1xf32 = constant [0.5, -1.0, 2.0, 0.25, 1.0, -0.5]
    %c: 1x3x6x6xf32 = aten.conv2d.default(%x, %w, none) {padding=[0, 0]}
    %m: 1x3x3x3xf32 = aten.max_pool2d.default(%c) {kernel_size=[2, 2], stride=[2, 2]}
    %f: 1x27xf32 = aten.flatten.using_ints(%m) {start_dim=1}
    %n: 1x3x3x3xf32 = aten.softmax.int(%m) {dim=1}
    %p: 1x2xf32 = aten.unsqueeze.default(%g) {dim=0}
  })");
  EXPECT_EQ(calls_of(packed(graph)), (Names{"aten::convolution.out/11", "aten::max_pool2d_with_indices.out/9",
                                            "aten::view_copy.out/4", "aten::_softmax.out/5", "aten::view_copy.out/4"}));
  expect_same(graph);
}

TEST(Pack, ListsOfTensors) {
  const Graph graph = graph_of(R"(graph @g(%x: 2x4xf32, %y: 2x3xf32) -> (%c, %a, %b) {
    %c: 2x7xf32 = aten.cat.default(%x, %y) {dim=1}
    %a: 2x2xf32, %b: 2x2xf32 = aten.split.Tensor(%x) {split_size=2, dim=1}
  })");
  EXPECT_EQ(calls_of(packed(graph)), (Names{"aten::cat.out/4", "aten::split_copy.Tensor_out/5"}));
  expect_same(graph);
}

// Only lists whose schema says so (index's) may: ExecuTorch takes such a call for a damaged file.
TEST(Pack, ListsOfTensorsLackNone) {
  const Graph graph = graph_of(R"(graph @g(%x: 2x4xf32) -> (%c) {
    %c: 2x4xf32 = aten.cat.default(%x, none) {dim=1}
  })");
  auto file = pack(graph, {}, "TOSABackend", {});
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().code, "pack.argument");
}

TEST(Pack, QuantisedTensorsAreRealOutsideDelegates) {
  const Graph graph = graph_of(R"(graph @g(%x: 4xf32) -> (%z) {
    %q: 4xi8<0.5:3> = quantized_decomposed.quantize_per_tensor.default(%x) {scale=0.5, zero_point=3, quant_min=-128, quant_max=127, dtype=i8}
    %r: 4xi8<0.25:-1> = aten.relu.default(%q)
    %z: 4xf32 = quantized_decomposed.dequantize_per_tensor.default(%r) {scale=0.25, zero_point=-1, quant_min=-128, quant_max=127, dtype=i8}
  })");
  const Names calls = calls_of(packed(graph));
  EXPECT_EQ(calls, (Names{"quantized_decomposed::quantize_per_tensor.out/8",
                          "quantized_decomposed::dequantize_per_tensor.out/9", "aten::relu.out/3",
                          "quantized_decomposed::quantize_per_tensor.out/8",
                          "quantized_decomposed::dequantize_per_tensor.out/9"}));
  auto method = runtime::Method::load(packed(graph), "forward",
                                      {.delegates = all_delegates(), .kernels = kernels::lowered_kernels()});
  ASSERT_TRUE(method.ok()) << render(method.error(), false);
  auto y = method->run({{{DType::f32, {4}, {}}, constant_bytes(DType::f32, std::vector<double>{-1, 0.6, 1.9, 40})}});
  ASSERT_TRUE(y.ok()) << render(y.error(), false);
  const std::vector<float> expected{0, 0.5, 2, 32};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ((*y)[0].data.as<float>()[i], expected[i]);
}

TEST(Pack, DelegatesRunBetweenKernels) {
  auto payload = tosa_file::write(graph_of(R"(graph @main(%p: 2x3xf32) -> (%q) {
    %q: 2x3xf32 = tosa.abs(%p)
  })"));
  ASSERT_TRUE(payload.ok());
  const Graph graph = graph_of(R"(graph @g(%x: 2x3xf32) -> (%z) {
    %a: 2x3xf32 = aten.neg.default(%x)
    %b: 2x3xf32 = "delegate"(%a) {region=0}
    %z: 2x3xf32 = aten.add.Tensor(%b, %x)
  })");
  const pte::Program program = packed(graph, {{*payload}});
  EXPECT_EQ(calls_of(program), (Names{"aten::neg.out/3", "delegate", "aten::add.out/5"}));
  EXPECT_EQ(program.plans[0].input_spec, "in spec");
  auto method =
      runtime::Method::load(program, "forward", {.delegates = all_delegates(), .kernels = kernels::lowered_kernels()});
  ASSERT_TRUE(method.ok()) << render(method.error(), false);
  auto y =
      method->run({{{DType::f32, {2, 3}, {}}, constant_bytes(DType::f32, std::vector<double>{1, -2, 3, -4, 5, -6})}});
  ASSERT_TRUE(y.ok());
  const std::vector<float> expected{2, 0, 6, 0, 10, 0};
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ((*y)[0].data.as<float>()[i], expected[i]);
}

float first_of(runtime::Method& method, const Tensor& input) {
  const auto result = method.run({input});
  if (!result.ok()) ADD_FAILURE() << render(result.error(), false);
  return result.ok() ? (*result)[0].data.as<float>()[0] : 0;
}

TEST(Pack, BuffersAreWrittenBack) {
  const Graph graph = graph_of(R"(graph @g(%x: 2xf32) -> (%y) {
    %s: 2xf32 = state "s" = [1.0, 2.0]
    %n: 2xf32 = aten.add.Tensor(%s, %x)
    %y: 2xf32 = aten.mul.Tensor(%n, %x)
    state "s" %s -> %n
  })");
  const pte::Program program = packed(graph);
  EXPECT_EQ(calls_of(program).back(), "aten::copy_./4");
  auto method =
      runtime::Method::load(program, "forward", {.delegates = all_delegates(), .kernels = kernels::lowered_kernels()});
  ASSERT_TRUE(method.ok()) << render(method.error(), false);
  const Tensor one{{DType::f32, {2}, {}}, constant_bytes(DType::f32, std::vector<double>{1, 1})};
  for (float expected : {2.0f, 3.0f, 4.0f}) {
    auto y = method->run({one});
    ASSERT_TRUE(y.ok());
    EXPECT_EQ((*y)[0].data.as<float>()[0], expected);
  }
  auto clone = method->clone();
  ASSERT_TRUE(clone.ok()) << render(clone.error(), false);
  ASSERT_TRUE(method->reset().ok());
  for (runtime::Method* each : {&*method, &*clone})
    for (float expected : {2.0f, 3.0f}) EXPECT_EQ(first_of(*each, one), expected);
}

// Memory is planned for the largest size; where none is known, nothing is made up.
TEST(Pack, SizesThatDependOnValues) {
  const auto found = [](const std::string& range) {
    return pack(graph_of("graph @g(%x: 4xf32, %m: 4xbool) -> (%k) {\n  %k: (u0 in " + range +
                         ")xf32 = aten.index.Tensor(%x, %m)\n}"),
                {}, "", {});
  };
  const auto bounded = found("0..4");
  ASSERT_TRUE(bounded.ok()) << render(bounded.error(), false);
  const auto program = pte::read(bounded->joined(), "bounded.pte");
  ASSERT_TRUE(program.ok());
  const pte::Plan& plan = program->plans.at(0);
  const auto& k = std::get<pte::TensorValue>(plan.values.at(static_cast<std::size_t>(plan.outputs.at(0))));
  EXPECT_EQ(k.sizes, (std::vector<std::int32_t>{4}));
  EXPECT_EQ(k.shape_dynamism, 1);
  const auto open = found("0..");
  ASSERT_FALSE(open.ok());
  EXPECT_EQ(open.error().code, "pack.unbounded-size");
}

// State inside a payload: TOSA's VARIABLEs.
TEST(Pack, DelegatesKeepTheirVariables) {
  auto payload = tosa_file::write(graph_of(R"(graph @main(%p: 2xf32) -> (%q) {
    %start: 2xf32 = constant [1.0, 2.0]
    tosa.variable(%start) {name="v", var_shape=[2], type=f32}
    %before: 2xf32 = tosa.variable_read() {name="v"}
    %q: 2xf32 = tosa.add(%before, %p)
    tosa.variable_write(%q) {name="v"}
  })"));
  ASSERT_TRUE(payload.ok());
  const pte::Program program = packed(graph_of(R"(graph @g(%x: 2xf32) -> (%z) {
    %b: 2xf32 = "delegate"(%x) {region=0}
    %z: 2xf32 = aten.neg.default(%b)
  })"),
                                      {{*payload}});
  const Tensor one{{DType::f32, {2}, {}}, constant_bytes(DType::f32, std::vector<double>{1, 1})};
  for (const bool interpret : {false, true}) {
    auto method = runtime::Method::load(
        program, "forward",
        {.interpret = interpret, .delegates = all_delegates(), .kernels = kernels::lowered_kernels()});
    ASSERT_TRUE(method.ok()) << render(method.error(), false);
    for (float expected : {-2.0f, -3.0f}) EXPECT_EQ(first_of(*method, one), expected);
    auto clone = method->clone();
    ASSERT_TRUE(clone.ok()) << render(clone.error(), false);
    EXPECT_EQ(first_of(*clone, one), -2.0f);
    EXPECT_EQ(first_of(*method, one), -4.0f);
    ASSERT_TRUE(method->reset().ok());
    EXPECT_EQ(first_of(*method, one), -2.0f);
  }
}

TEST(Pack, MethodsTellWhereTheirTimeGoes) {
  auto payload = tosa_file::write(graph_of(R"(graph @main(%p: 2x3xf32) -> (%q) {
    %q: 2x3xf32 = tosa.abs(%p)
  })"));
  ASSERT_TRUE(payload.ok());
  const pte::Program program = packed(graph_of(R"(graph @g(%x: 2x3xf32) -> (%z) {
    %a: 2x3xf32 = aten.neg.default(%x)
    %z: 2x3xf32 = "delegate"(%a) {region=0}
  })"),
                                      {{*payload}});
  auto method =
      runtime::Method::load(program, "forward", {.delegates = all_delegates(), .kernels = kernels::lowered_kernels()});
  ASSERT_TRUE(method.ok()) << render(method.error(), false);
  const Tensor x{{DType::f32, {2, 3}, {}}, constant_bytes(DType::f32, std::vector<double>(6, 1))};
  ASSERT_TRUE(method->run({x}).ok());
  EXPECT_TRUE(method->profile().empty());
  ASSERT_TRUE(method->measure(true).ok());
  for (int again = 0; again < 2; ++again) {
    ASSERT_TRUE(method->run({x}).ok());
    const auto times = method->profile();
    ASSERT_EQ(times.size(), 3u);
    EXPECT_EQ(times[0].operation, "aten::neg.out");
    EXPECT_EQ(times[1].operation, "TOSABackend");
    EXPECT_EQ(times[1].within, "");
    EXPECT_TRUE(times[2].operation.ends_with("tosa.abs")) << times[2].operation;
    EXPECT_EQ(times[2].within, "TOSABackend");
    EXPECT_LE(times[2].seconds, times[1].seconds);
    for (const auto& t : times) EXPECT_GT(t.seconds, 0);
  }
}

TEST(Pack, UnknownOperatorsAreRefusedAtTheirLine) {
  const Graph graph = graph_of(R"-(graph @g(%x: 2xf32) -> (%y) {
    %y: 2xf32 = aten.frobnicate.default(%x) loc("model.py":12 "y = frobnicate(x)")
  })-");
  auto file = pack(graph, {}, "TOSABackend", {});
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().code, "pack.unknown-operator");
  EXPECT_EQ(file.error().place.line, 12);
}

// The listed schemas are PyTorch's: each is understood, and its operator is found by name.
TEST(ExecutorchCall, EveryListedSchemaIsFound) {
  const std::vector<std::pair<std::string, std::string>> listed{
#include "pack/executorch_kernels.inc"
  };
  for (const auto& [kernel, functional] : listed) {
    if (functional.empty()) continue;
    auto schema = parse_schema(functional);
    ASSERT_TRUE(schema.ok()) << functional;
    const auto call = packing::executorch_call(Operator(schema->full_name()));
    ASSERT_TRUE(call.has_value()) << functional;
    EXPECT_EQ(call->kernel.name + "." + call->kernel.overload, kernel);
    const pte::OperatorName named = kernels::out_variant(*schema);
    if (find_aten(Operator(schema->full_name())).op) { EXPECT_EQ(named.name + "." + named.overload, kernel); }
  }
  EXPECT_FALSE(packing::executorch_call(Operator("aten.no_such_operator.default")).has_value());
  EXPECT_FALSE(packing::executorch_call(Operator("acme.add.Tensor")).has_value());
}

// Both directions of the naming agree for every operator in the table.
TEST(OutVariant, NamesLeadBackToTheOperator) {
  std::size_t count = 0;
  for (const NamedAtenOp& op : all_aten())
    for (std::string_view text : op.op.schemas) {
      auto schema = parse_schema(text);
      ASSERT_TRUE(schema.ok());
      if (schema->in_place || schema->returns.empty()) continue;
      std::size_t arguments = kernels::trailing_arguments(*schema);
      for (const SchemaArgument& a : schema->arguments) arguments += kernels::kept_by_out_variant(*schema, a);
      const pte::OperatorName name = kernels::out_variant(*schema);
      auto found = kernels::functional(name, arguments);
      ASSERT_TRUE(found.has_value()) << text;
      EXPECT_EQ(found->schema->ns + "::" + found->schema->name, name.name) << text;
      ++count;
    }
  EXPECT_GT(count, 200u);
}

}  // namespace
}  // namespace tosaic
