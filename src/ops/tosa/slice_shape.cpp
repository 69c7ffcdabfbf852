// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/row.h"

namespace tosaic::tosa {
namespace {
// Operands {input, start, size}, the last two of one element each.
std::vector<TensorType> infer(const View& view) {
  const auto size = view.constant_integers(2);
  if (!size) return {};
  return {{DType::shape, {size->front()}, std::nullopt}};
}

Check check(const View& view) {
  for (const std::size_t i : {1, 2})
    if (Check c = check_length(view, i, 1)) return c;
  const auto start = view.constant_integers(1), size = view.constant_integers(2);
  if (start && start->front() < 0) return broken("slice_shape.start", "start {} is negative", start->front());
  if (size && size->front() < 1) return broken("slice_shape.size", "size {} must be at least 1", size->front());
  const std::int64_t given = view.in(0).shape.size(0);
  if (start && size && start->front() > given - size->front())
    return broken("slice_shape.range", "{} sizes from {} on are not within {}", size->front(), start->front(), given);
  return std::nullopt;
}

Status eval(const Run& run) {
  const std::vector<std::int64_t> sizes = integers_of(run.in[0]);
  const std::int64_t start = integers_of(run.in[1]).front(), taken = run.out[0].type.shape.size(0);
  if (start < 0 || start > static_cast<std::int64_t>(sizes.size()) - taken)
    return unpredictable(run, fmt::format("start {} is outside a shape of {} sizes", start, sizes.size()));
  for (std::int64_t i = 0; i < taken; ++i)
    store_integer(DType::shape, run.out[0].data, static_cast<std::size_t>(i),
                  sizes[static_cast<std::size_t>(start + i)]);
  return {};
}
}  // namespace

Op tosa_slice_shape() {
  return {.name = "slice_shape",
          .schema_number = 84,
          .spirv_number = 0xffff,
          .summary = "some of the sizes of a shape",
          .inputs = {{"input", "shape", 1, 1},
                     {.name = "start", .type = "i32", .min_rank = 1, .max_rank = 1, .constant = true},
                     {.name = "size", .type = "i32", .min_rank = 1, .max_rank = 1, .constant = true}},
          .outputs = {{"output", "shape", 1, 1}},
          .types = {{{Feature::shape}, {}}},
          .newer = true,
          .infer = infer,
          .check = check,
          .eval = eval};
}
}  // namespace tosaic::tosa
