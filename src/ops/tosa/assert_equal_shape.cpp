// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/shape_row.h"

namespace tosaic::tosa {
namespace {
Status eval(const Run& run) {
  const bool broadcasts = run.view.flag("allow_broadcast");
  const std::vector<std::int64_t> a = integers_of(run.in[0]), b = integers_of(run.in[1]);
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i] != b[i] && !(broadcasts && (a[i] == 1 || b[i] == 1)))
      return unpredictable(run, fmt::format("size {} is {} and {}, which the program says are equal", i, a[i], b[i]));
  return {};
}
}  // namespace

Op tosa_assert_equal_shape() {
  return {.name = "assert_equal_shape",
          .schema_number = 93,
          .spirv_number = 0xffff,
          .summary = "stops where two shapes are not equal, or do not broadcast",
          .inputs = {{"input1", "shape", 1, 1}, {"input2", "shape", 1, 1}},
          .attrs = {{"allow_broadcast", AttrKind::boolean}},
          .outputs = {},
          .types = {{{Feature::shape}, {}}},
          .newer = true,
          .check = same_lengths,
          .eval = eval};
}
}  // namespace tosaic::tosa
