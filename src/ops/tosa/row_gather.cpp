// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/bounds.h"
#include "ops/definitions/extension.h"
#include "ops/definitions/rows_by_index.h"

namespace tosaic::tosa {
namespace {

// values [N, K, C], indices [N, W], row_count R -> [N, W * R, C]
std::vector<TensorType> infer(const View& view) {
  const auto count = view.constant_integers(2);
  if (!count) return {};
  return {view.in(0).with(run_of_rows(view.in(0).shape, view.in(1).shape, count->front())).with(std::nullopt)};
}

Check check(const View& view) { return check_runs_of_rows(view, 1, 2); }

Status eval(const Run& run) { return copy_runs_of_rows(run, 0, run.in[1], run.in[2]); }

// GATHER by the index of every row.
std::vector<ValueId> in_1_0(extension::Definition& d) {
  const ValueId indices = index_of_every_row(d, d.operand(1), d.result().shape.size(1));
  const bool boolean = d.result().dtype == DType::boolean;
  const ValueId values = boolean ? d.cast(d.operand(0), DType::i8) : d.operand(0);
  const ValueId made = d.call(op::gather, {values, indices}, d.result().with(d.type(values).dtype));
  return {boolean ? d.cast(made, DType::boolean) : made};
}
}  // namespace

Op tosa_row_gather() {
  return {
      .name = "row_gather",
      .schema_number = 99,
      .spirv_number = 0xffff,
      .summary = "picks runs of rows of each batch by the index of the first",
      .inputs = {{"values", "in_out", 3, 3},
                 {"indices", "index", 2, 2},
                 {.name = "row_count", .type = "i32", .min_rank = 1, .max_rank = 1, .constant = true}},
      .attrs = {},
      .outputs = {{"output", "in_out", 3, 3}},
      .types = rows_by_index("in_out"),
      .newer = true,
      .infer = infer,
      .check = check,
      .eval = eval,
      .moves = Moves::chosen,
      .bounds = bounds::first,
      .in_1_0 = in_1_0,
  };
}
}  // namespace tosaic::tosa
