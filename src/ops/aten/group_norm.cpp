// SPDX-License-Identifier: Apache-2.0
#include "ir/aten_operators.h"
#include "ops/core_form.h"
#include "ops/lowering/moments.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// Each group of channels becomes one row, which is normalised like layer_norm.
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("input");
  const bool native = call.schema().name == "native_group_norm";
  const std::int64_t groups = call.integer(native ? "group" : "num_groups");
  if (x.rank() < 2 || groups < 1 || x.dim(1) % groups)
    b.refuse("aten.group_norm.groups", std::to_string(groups) + " groups for shape " + to_string(x.shape()));
  const Shape rows{x.dim(0), groups, x.shape().elements() / (x.dim(0) * groups)};
  Normalised n = normalised(calls::view(x, rows), {2}, call.number("eps"));
  std::vector<std::int64_t> per_channel(static_cast<std::size_t>(x.rank()) - 1, 1);
  per_channel[0] = x.dim(1);
  Val y = affine(calls::view(n.y, x.shape()), call.optional_tensor("weight"), call.optional_tensor("bias"),
                 Shape(per_channel));
  if (!native) return y;
  const Shape statistics{x.dim(0), groups};
  return {y, calls::view(n.mean, statistics), calls::view(n.rstd, statistics)};
}

std::optional<Node> core(const CoreCall& call) {
  if (call.schema.name != "group_norm") return std::nullopt;
  const Shape& shape = call.in(0).shape;
  const std::int64_t n = shape.size(0), c = shape.size(1), groups = call.integer("num_groups");
  if (n == 0 || c == 0) return std::nullopt;
  Node made = call.call(
      aten::op::native_group_norm, {call.operand(0), call.operand(1), call.operand(2)},
      {{"N", n}, {"C", c}, {"HxW", shape.elements() / (n * c)}, {"group", groups}, {"eps", call.attr("eps")}});
  call.add_result(made, call.out().dtype, {n, groups});
  call.add_result(made, call.out().dtype, {n, groups});
  return made;
}
}  // namespace

AtenOp aten_group_norm() {
  return {.schemas = {"group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float "
                      "eps=1.0000000000000001e-05, bool cudnn_enabled=True) -> Tensor",
                      "native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt HxW, "
                      "int group, float eps) -> (Tensor, Tensor, Tensor)"},
          .summary = "zero mean and unit variance over each group of channels, then a weight and a bias per channel",
          .rule = Rule::inside,
          .lower = {lower},
          .domain = {"x(2,6,3,3), 3, x(6), x(6)", "x(1,4,5), 1", "x(2,4), 2, x(4), None",
                     "native_group_norm.default: x(1,4,2,3), x(4), x(4), 1, 4, 6, 2, 1e-5"},
          .core = core};
}
}  // namespace tosaic
