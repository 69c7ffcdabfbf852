// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/block_scaled.h"
#include "ops/definitions/rows_by_index.h"

namespace tosaic::tosa {
namespace {

// values [N, K, C] with their scales, indices [N, W], row_count R -> [N, W * R, C] with theirs
std::vector<TensorType> infer(const View& view) {
  const auto count = view.constant_integers(3);
  if (!count) return {};
  const auto picked = [&](std::size_t i) {
    return TensorType{view.in(i).dtype, run_of_rows(view.in(i).shape, view.in(2).shape, count->front()), std::nullopt};
  };
  return {picked(0), picked(1)};
}

Check check(const View& view) {
  if (Check c = block_scaled::check(view, 0, 1)) return c;
  return check_runs_of_rows(view, 2, 3);
}

Status eval(const Run& run) {
  TOSAIC_CHECK(copy_runs_of_rows(run, 0, run.in[2], run.in[3]));
  return copy_runs_of_rows(run, 1, run.in[2], run.in[3]);
}

std::vector<ValueId> in_1_0(extension::Definition& d) {
  const ValueId indices = index_of_every_row(d, d.operand(2), d.result().shape.size(1));
  const auto picked = [&](std::size_t i) {
    return d.call(op::gather, {d.operand(i), indices}, d.type(d.node().outputs[i]));
  };
  return {picked(0), picked(1)};
}
}  // namespace

Op tosa_row_gather_block_scaled() {
  return {
      .name = "row_gather_block_scaled",
      .schema_number = 98,
      .spirv_number = 0xffff,
      .summary = "picks runs of block-scaled rows of each batch by the index of the first",
      .inputs = {{"values_data", "element", 3, 3},
                 {"values_scale", block_scaled::scale_type, 3, 3},
                 {"indices", "index", 2, 2},
                 {.name = "row_count", .type = "i32", .min_rank = 1, .max_rank = 1, .constant = true}},
      .attrs = {block_scaled::size_attribute()},
      .outputs = {{"output_data", "element", 3, 3}, {"output_scale", block_scaled::scale_type, 3, 3}},
      .types = with(block_scaled::elements("element"), "index", DType::i32) +
               with(block_scaled::elements("element"), "index", DType::i64),
      .newer = true,
      .infer = infer,
      .check = check,
      .eval = eval,
      .in_1_0 = in_1_0,
  };
}
}  // namespace tosaic::tosa
