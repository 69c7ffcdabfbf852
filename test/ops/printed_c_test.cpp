// SPDX-License-Identifier: Apache-2.0
// Every operator's domain as C: floats and integers of both schemes, against the interpreter.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "c_source/batch.h"
#include "integer_nodes.h"
#include "interp/interp.h"
#include "lower/lower.h"
#include "normalise/normalise.h"
#include "ops/rules/quantisation_rule.h"
#include "quantise/quantise.h"
#include "stored_values.h"
#include "tidy/tidy.h"

namespace tosaic::domain {
namespace {

bool finite(const std::vector<Tensor>& tensors) {
  return std::ranges::all_of(tensors, [](const Tensor& t) {
    for (std::int64_t i = 0; is_float(t.type.dtype) && i < t.type.shape.elements(); ++i)
      if (!std::isfinite(element_as_double(t.type.dtype, t.data.data(), static_cast<std::size_t>(i)))) return false;
    return true;
  });
}

class PrintedC : public testing::Test {
 protected:
  template <class F>
  void each_case(F take) {
    for (const NamedAtenOp& op : all_aten()) {
      auto stored = load_values(op.file);
      ASSERT_TRUE(stored.ok());
      for (std::size_t i = 0; i < op.op.domain.size() && i < stored->calls.size(); ++i) {
        auto parsed = parse(op, op.op.domain[i]);
        ASSERT_TRUE(parsed.ok());
        if (!parsed->refused.empty()) continue;
        auto outputs = stored->of(i, "out");
        outputs.resize(std::min(outputs.size(), parsed->results));
        take(fmt::format("{}: {}", op.file, op.op.domain[i]), *parsed, stored->of(i, "in"), outputs);
      }
    }
  }

  void add(const std::string& what, const Graph& graph, const std::vector<Tensor>& inputs, double rtol, double atol) {
    const auto wanted = interp::run(graph, inputs);
    if (!wanted.ok()) return;  // unpredictable: values_test.cpp has the calls where that is right
    std::string why;
    const auto check = [=, wanted = *wanted](const std::vector<Tensor>& got) {
      for (std::size_t k = 0; k < got.size(); ++k) EXPECT_EQ(difference(wanted[k], got[k], rtol, atol), "") << what;
    };
    if (!batch_.add(graph, inputs, check, &why)) ++refusals_[why.substr(0, why.find(" of ("))];
  }

  // All that C does not have is said here, so that nothing falls out of it unseen.
  void finish(const std::set<std::string>& allowed) {
    batch_.run();
    for (const auto& [why, count] : refusals_) {
      fmt::print("{}: {} calls\n", why, count);
      EXPECT_TRUE(allowed.contains(why)) << why;
    }
    fmt::print("{} calls as C\n", batch_.size());
  }

  void integers(Scheme scheme) {
    const auto spec = *tosa::Spec::parse("TOSA-1.0+INT+int16+int4");
    each_case([&](const std::string& what, const Case& parsed, const auto& inputs, const auto& outputs) {
      if (!finite(inputs)) return;
      Call call = program_of(parsed, inputs, outputs);
      auto normal = normalise(call.graph, {}, {});
      if (!normal.ok() || normal->nodes.empty()) return;
      QuantiseOptions options;
      options.scheme = scheme;
      options.observer = Observer::minmax;
      options.threads = 1;
      auto graph = quantise(*normal, {call.inputs}, options, {});
      if (!graph.ok()) return;
      auto lowered = lower(*graph, {.spec = &spec});
      if (!lowered.ok() || !tosa::verify_graph(lowered->graph, spec).ok()) return;
      std::vector<Tensor> quantised_values;
      for (std::size_t i = 0; i < call.inputs.size(); ++i)
        quantised_values.push_back(quantise_as(call.inputs[i], (*graph)[graph->inputs[i]].type));
      tidy(lowered->graph);
      add(what, lowered->graph, as_bytes(quantised_values), 0, 0);
    });
  }

  test::Batch batch_;
  std::map<std::string, std::size_t> refusals_;
};

TEST_F(PrintedC, Int8) {
  integers(Scheme::int8);
  EXPECT_GT(batch_.size(), 500u);
  finish({});
}
TEST_F(PrintedC, Int16x8) {
  integers(Scheme::int16x8);
  EXPECT_GT(batch_.size(), 500u);
  finish({});
}
TEST_F(PrintedC, Floats) {
  each_case([&](const std::string& what, const Case& parsed, const auto& inputs, const auto& outputs) {
    auto lowered = lower_case(parsed, parsed.schema->full_name(), inputs, outputs, DType::f32);
    if (lowered.ok()) add(what, lowered->graph, lowered->inputs, parsed.rtol, parsed.atol);
  });
  EXPECT_GT(batch_.size(), 500u);
  finish({"there is no C for tosa.cast"});  // to floats of 16 bits
}

}  // namespace
}  // namespace tosaic::domain
