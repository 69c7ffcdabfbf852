// SPDX-License-Identifier: Apache-2.0
#include "targets/same_results.h"

#include <gtest/gtest.h>

#include "base/diagnostic.h"
#include "interp/interp.h"
#include "ops/definitions/tosa_op.h"

namespace tosaic {
namespace {

// Values that differ from place to place.
Tensor counted(const TensorType& type) {
  std::vector<double> values(static_cast<std::size_t>(type.shape.elements()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>((i * 37 + 11) % 251) - 125;
  return {type, constant_bytes(type.dtype, values)};
}

}  // namespace

void expect_same_results(const std::string& text, void (*shape)(Graph&, const Rewrites&), std::size_t nodes) {
  auto graph = parse(text);
  ASSERT_TRUE(graph.ok()) << render(graph.error(), false);
  std::vector<Tensor> inputs;
  for (ValueId v : graph->inputs) inputs.push_back(counted((*graph)[v].type));
  const auto before = interp::run(*graph, inputs);
  ASSERT_TRUE(before.ok()) << render(before.error(), false);
  shape(*graph, {});
  EXPECT_EQ(graph->nodes.size(), nodes) << print(*graph);
  const auto sound = tosa::verify_graph(*graph, *tosa::Spec::parse("TOSA-1.0+INT+int16"));
  ASSERT_TRUE(sound.ok()) << render(sound.error(), false);
  const auto after = interp::run(*graph, inputs);
  ASSERT_TRUE(after.ok()) << render(after.error(), false);
  ASSERT_EQ(before->size(), after->size());
  for (std::size_t i = 0; i < before->size(); ++i) {
    EXPECT_EQ((*before)[i].type, (*after)[i].type);
    EXPECT_EQ((*before)[i].data, (*after)[i].data);
  }
}

std::string codes(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += (i ? ", " : "") + std::to_string((i * 29) % 200 - 100);
  return text;
}

}  // namespace tosaic
