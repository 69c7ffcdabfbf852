// SPDX-License-Identifier: Apache-2.0
// Every operator's domain in integers: the call is quantised on its own inputs, placed, lowered, and the integer
// graph runs on both executors with equal bits, before and after tidying. The float lowering of the same call, run
// on the numbers that the input codes stand for, says what the result should be.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "cpu/cpu.h"
#include "interp/interp.h"
#include "lower/lower.h"
#include "normalise/normalise.h"
#include "quantise/quantise.h"
#include "stored_values.h"
#include "tidy/tidy.h"

namespace tosaic::domain {
namespace {

struct Call {
  Graph graph;  // one aten node
  std::vector<Tensor> inputs;
};

// The case as a program of one call, with PyTorch's result types.
Call program_of(const Case& parsed, const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs) {
  Call call;
  Node node;
  node.op = parsed.schema->full_name();
  std::map<std::string, std::vector<ValueId>> given;
  std::size_t next = 0;
  for (const Argument& a : parsed.arguments) {
    if (!a.is_tensor) {
      if (!std::holds_alternative<std::monostate>(a.literal)) node.attrs.set(a.name, narrowed(a.literal));
      continue;
    }
    for (const auto& g : a.tensors) {
      if (!g) {
        given[a.name].push_back(no_value);
        continue;
      }
      Tensor tensor = narrowed(inputs.at(next));
      // Weights are constants in programs, whatever the domain says.
      const bool constant = g->constant || a.name == "weight" || a.name == "bias";
      ValueId id = call.graph.add_value(fmt::format("in.{}", next++), tensor.type, constant ? tensor.data : Bytes{});
      given[a.name].push_back(id);
      if (constant) continue;
      call.graph.inputs.push_back(id);
      call.inputs.push_back(std::move(tensor));
    }
  }
  for (const SchemaArgument& formal : parsed.schema->arguments) {
    if (!formal.is_tensor()) continue;
    auto it = given.find(formal.name);
    if (it != given.end())
      node.inputs.insert(node.inputs.end(), it->second.begin(), it->second.end());
    else if (!formal.is_tensor_list())
      node.inputs.push_back(no_value);
  }
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    node.outputs.push_back(call.graph.add_value(fmt::format("out.{}", k), narrowed(outputs[k]).type));
    call.graph.outputs.push_back(node.outputs.back());
  }
  call.graph.nodes.push_back(std::move(node));
  return call;
}

bool all_finite(const std::vector<Tensor>& tensors) {
  for (const Tensor& t : tensors)
    for (std::int64_t i = 0; is_float(t.type.dtype) && i < t.type.shape.elements(); ++i)
      if (!std::isfinite(element_as_double(t.type.dtype, t.data.data(), static_cast<std::size_t>(i)))) return false;
  return true;
}

std::vector<Tensor> quantised(const std::vector<Tensor>& reals, const Graph& graph) {
  std::vector<Tensor> codes;
  for (std::size_t i = 0; i < reals.size(); ++i) {
    const TensorType& type = graph[graph.inputs[i]].type;
    if (!type.quantised()) {
      codes.push_back(reals[i]);
      continue;
    }
    const auto range = codes_of(type);
    std::vector<std::int64_t> values;
    for (std::int64_t k = 0; k < type.shape.elements(); ++k) {
      double code =
          std::nearbyint(element_as_double(reals[i].type.dtype, reals[i].data.data(), static_cast<std::size_t>(k)) /
                         type.scales->scale[0]) +
          static_cast<double>(type.scales->zero_point[0]);
      values.push_back(static_cast<std::int64_t>(
          std::clamp(code, static_cast<double>(range.lowest), static_cast<double>(range.highest))));
    }
    codes.push_back({type, constant_bytes(type.dtype, values)});
  }
  return codes;
}

std::vector<Tensor> reals(const std::vector<Tensor>& codes) {
  std::vector<Tensor> result;
  for (const Tensor& t : codes) {
    if (!t.type.quantised()) {
      result.push_back(t);
      continue;
    }
    std::vector<double> values;
    for (std::int64_t k = 0; k < t.type.shape.elements(); ++k)
      values.push_back(
          (static_cast<double>(element_as_integer(t.type.dtype, t.data.data(), static_cast<std::size_t>(k))) -
           static_cast<double>(t.type.scales->zero_point[0])) *
          t.type.scales->scale[0]);
    result.push_back({{DType::f32, t.type.shape, {}}, constant_bytes(DType::f32, values)});
  }
  return result;
}

// Codes moved down to a multiple of 128, plus `step`.
std::vector<Tensor> at_knots(const std::vector<Tensor>& codes, std::int64_t step) {
  std::vector<Tensor> moved = codes;
  std::vector<std::int64_t> values;
  for (auto code : codes.at(0).data.as<std::int16_t>())
    values.push_back(std::clamp<std::int64_t>((std::int64_t{code} >> 7) * 128 + step, -32767, 32767));
  moved[0].data = constant_bytes(DType::i16, values);
  return moved;
}

class Quantised : public testing::TestWithParam<const NamedAtenOp*> {
 protected:
  void check(Scheme scheme) {
    const NamedAtenOp& op = *GetParam();
    if (op.op.rule == Rule::float_only) return;
    auto stored = load_values(op.file);
    ASSERT_TRUE(stored.ok()) << stored.error().message;
    for (std::size_t i = 0; i < op.op.domain.size() && i < stored->calls.size(); ++i) {
      SCOPED_TRACE(fmt::format("{}: {}", op.file, op.op.domain[i]));
      auto parsed = parse(op, op.op.domain[i]);
      ASSERT_TRUE(parsed.ok());
      if (!parsed->half || !parsed->refused.empty())
        continue;  // numerically extreme by design: a few bits say nothing about it
      auto inputs = stored->of(i, "in"), outputs = stored->of(i, "out");
      outputs.resize(std::min(outputs.size(), parsed->results));
      if (all_finite(inputs) && all_finite(outputs)) one(program_of(*parsed, inputs, outputs), scheme);
    }
  }

  void one(Call call, Scheme scheme) {
    drop_identities(call.graph);
    if (call.graph.nodes.empty()) return;
    QuantiseOptions options;
    options.scheme = scheme;
    options.observer = Observer::minmax;
    options.threads = 1;
    auto graph = quantise(call.graph, {call.inputs}, options, {});
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    if (!is_quantised(*graph)) return;  // integer tensors only
    const auto spec = *tosa::Spec::parse("TOSA-1.0+INT+int16+int4");
    const auto used = used_values(*graph);
    for (const Node& node : graph->nodes) {
      auto able = can_lower(*graph, node, used, spec);
      // What stays behind says why; that it says so is all that can be asked.
      if (!able.ok()) {
        EXPECT_FALSE(able.error().internal) << able.error().message;
        return;
      }
    }
    auto lowered = lower(*graph, {.spec = &spec});
    ASSERT_TRUE(lowered.ok()) << lowered.error().message << "\n" << print(*graph);
    auto legal = tosa::verify_graph(lowered->graph, spec);
    ASSERT_TRUE(legal.ok()) << legal.error().message << "\n" << print(lowered->graph);
    auto codes = quantised(call.inputs, lowered->graph);
    auto exact = interp::run(lowered->graph, codes);
    ASSERT_TRUE(exact.ok()) << exact.error().message << "\n" << print(lowered->graph);

    Graph tidied = lowered->graph;
    tidy(tidied);
    auto status = verify(tidied);
    ASSERT_TRUE(status.ok()) << status.error().message << "\n" << print(tidied);
    auto tidy_result = interp::run(tidied, codes);
    ASSERT_TRUE(tidy_result.ok()) << tidy_result.error().message << "\n" << print(tidied);
    auto program = cpu::Program::compile(tidied, {.threads = 2, .observed = {}});
    ASSERT_TRUE(program.ok()) << program.error().message;
    auto fast = program->run(codes);
    ASSERT_TRUE(fast.ok()) << fast.error().message;
    auto floats = lower(call.graph);
    ASSERT_TRUE(floats.ok()) << floats.error().message;
    auto want = interp::run(floats->graph, reals(codes));
    ASSERT_TRUE(want.ok()) << want.error().message;
    // A 16-bit table interpolates between codes 128 apart: what it may give lies between f at those two.
    const bool table = GetParam()->op.rule == Rule::pointwise && codes.at(0).type.dtype == DType::i16;
    auto left = table ? interp::run(floats->graph, reals(at_knots(codes, 0))) : want;
    auto right = table ? interp::run(floats->graph, reals(at_knots(codes, 128))) : want;
    ASSERT_TRUE(left.ok() && right.ok());
    for (std::size_t k = 0; k < exact->size(); ++k) {
      EXPECT_EQ((*exact)[k].data, (*tidy_result)[k].data) << "tidy changes output " << k << "\n"
                                                          << print(lowered->graph) << print(tidied);
      EXPECT_EQ((*exact)[k].data, (*fast)[k].data) << "the CPU executor differs in output " << k << "\n"
                                                   << print(tidied);
      close((*want)[k], table ? (*left)[k] : (*want)[k], table ? (*right)[k] : (*want)[k], (*exact)[k],
            graph->outputs.size() > k ? (*graph)[graph->outputs[k]].type : TensorType{}, *graph);
    }
  }

  // Root mean square error below two steps of the output, or a few percent of the signal where composites round
  // several times. Where the function is not finite, or leaves the calibrated range, nothing is promised.
  void close(const Tensor& want, const Tensor& left, const Tensor& right, const Tensor& got, const TensorType& type,
             const Graph& graph) {
    if (!type.quantised()) return;
    double error = 0, signal = 0;
    const auto n = static_cast<std::size_t>(type.shape.elements());
    for (std::size_t i = 0; i < n; ++i) {
      double w = element_as_double(want.type.dtype, want.data.data(), i);
      if (!std::isfinite(w)) continue;
      const auto codes = codes_of(type);
      auto held = [&](double real) {
        return std::clamp(real,
                          (static_cast<double>(codes.lowest) - static_cast<double>(type.scales->zero_point[0])) *
                              type.scales->scale[0],
                          (static_cast<double>(codes.highest) - static_cast<double>(type.scales->zero_point[0])) *
                              type.scales->scale[0]);
      };
      double g = (static_cast<double>(element_as_integer(got.type.dtype, got.data.data(), i)) -
                  static_cast<double>(type.scales->zero_point[0])) *
                 type.scales->scale[0];
      double low = held(w), high = held(w);
      for (const Tensor* side : {&left, &right})
        if (double at = element_as_double(side->type.dtype, side->data.data(), i); std::isfinite(at)) {
          low = std::min(low, held(at));
          high = std::max(high, held(at));
        }
      const double off = g - std::clamp(g, low, high);
      error += off * off;
      signal += w * w;
    }
    if (n == 0) return;
    error = std::sqrt(error / static_cast<double>(n));
    signal = std::sqrt(signal / static_cast<double>(n));
    EXPECT_LE(error, std::max(2 * type.scales->scale[0], 0.05 * signal))
        << "rms error against a signal of " << signal << "\n"
        << print(graph);
  }
};

TEST_P(Quantised, int8) { check(Scheme::int8); }
TEST_P(Quantised, int16x8) { check(Scheme::int16x8); }

std::vector<const NamedAtenOp*> every_operator() {
  std::vector<const NamedAtenOp*> result;
  for (const auto& op : all_aten()) result.push_back(&op);
  return result;
}

INSTANTIATE_TEST_SUITE_P(Aten, Quantised, testing::ValuesIn(every_operator()),
                         [](const auto& instance) { return std::string(instance.param->file); });

}  // namespace
}  // namespace tosaic::domain
