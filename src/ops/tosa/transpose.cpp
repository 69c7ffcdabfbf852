// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/bounds.h"
#include "ops/definitions/layout.h"

namespace tosaic::tosa {
namespace {
Check check(const View& view) {
  const auto& perms = view.ints("perms");
  const int rank = view.in(0).rank();
  if (static_cast<int>(perms.size()) != rank)
    return broken("transpose.perms-length", "perms has {} entries, the operand has rank {}", perms.size(), rank);
  std::vector<bool> used(perms.size(), false);
  for (std::int64_t dim : perms) {
    if (dim < 0 || dim >= rank)
      return broken("transpose.perms-range", "perms names dim {} of a tensor of rank {}", dim, rank);
    if (used[static_cast<std::size_t>(dim)]) return broken("transpose.perms-repeat", "perms names dim {} twice", dim);
    used[static_cast<std::size_t>(dim)] = true;
  }
  return std::nullopt;
}

// Dim i of the output is dim perms[i] of the input.
std::vector<TensorType> infer(const View& view) {
  const auto& perms = view.ints("perms");
  TensorType type = view.in(0);
  for (int i = 0; i < type.rank(); ++i) {
    const int from = static_cast<int>(perms[static_cast<std::size_t>(i)]);
    type.shape.set(i, view.in(0).shape[from]);
    if (type.scales && view.in(0).scales->axis == from) type.scales->axis = i;
  }
  return {std::move(type)};
}

Status eval(const Run& run) {
  const Walk plain = row_major(run.in[0].type.shape);
  Walk from = plain;
  const auto& perms = run.view.ints("perms");
  for (std::size_t i = 0; i < perms.size(); ++i) from.strides[i] = plain.strides[static_cast<std::size_t>(perms[i])];
  return copy_along(run, from);
}
}  // namespace

Op tosa_transpose() {
  Op op = layout_row("transpose", 61, "the dims of a tensor in another order");
  op.attrs = {{"perms", AttrKind::i32_list}};
  op.infer = infer;
  op.check = check;
  op.eval = eval;
  op.bounds = bounds::first;
  op.in_core_aten = [](const View& node, CoreAten& calls) {
    return calls.gives(aten::op::permute_copy, {calls.operand(0)}, {{"dims", node.ints("perms")}});
  };
  return op;
}
}  // namespace tosaic::tosa
