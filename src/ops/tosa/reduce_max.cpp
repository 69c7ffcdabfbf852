// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/bounds.h"
#include "ops/definitions/reduce.h"

namespace tosaic::tosa {
namespace {
Status eval(const Run& run) {
  if (ignores_nan(run.view)) return fold<[](auto a, auto b) { return larger(a, b, true); }>(run, std::nullopt);
  return fold<[](auto a, auto b) { return larger(a, b, false); }>(run, std::nullopt);
}
}  // namespace

Op tosa_reduce_max() {
  Op op = reduction_row("reduce_max", 51, "the largest of the elements along an axis",
                        integers("in_out", {DType::i8, DType::i16, DType::i32}) + floats("in_out") + int64s("in_out"),
                        eval);
  op.attrs.push_back({"nan_mode", AttrKind::nan_mode});
  op.bounds = bounds::first;
  op.moves = Moves::compared;
  op.in_core_aten = [](const View& node, CoreAten& calls) {
    const std::vector<std::int64_t> dims{node.integer("axis")};
    return calls.gives(aten::op::amax, {calls.operand(0)}, {{"dim", dims}, {"keepdim", true}});
  };
  return op;
}
}  // namespace tosaic::tosa
