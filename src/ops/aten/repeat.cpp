// SPDX-License-Identifier: Apache-2.0
#include "ir/aten_operators.h"
#include "ops/core_form.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  const bool tile = call.schema().name == "tile";
  auto multiples = call.ints(tile ? "dims" : "repeats");
  while (tile && static_cast<int>(multiples.size()) < x.rank()) multiples.insert(multiples.begin(), 1);
  const int added = static_cast<int>(multiples.size()) - x.rank();
  if (added < 0)
    b.refuse("aten.repeat.rank",
             std::to_string(multiples.size()) + " repeats for a tensor of shape " + to_string(x.shape()));
  for (auto m : multiples)
    if (m < 1) b.refuse("aten.repeat.empty", std::to_string(m) + " repeats give an empty tensor");
  std::vector<std::int64_t> dims(static_cast<std::size_t>(added), 1);
  dims.insert(dims.end(), x.shape().sizes().begin(), x.shape().sizes().end());
  return b.tile(b.reshape(x, Shape(dims)), multiples);
}

std::optional<Node> core(const CoreCall& call) {
  if (call.schema.name != "tile") return std::nullopt;
  return call.call(aten::op::repeat, call.node.inputs, {{"repeats", call.attr("dims")}});
}
}  // namespace

AtenOp aten_repeat() {
  return {.schemas = {"repeat(Tensor self, SymInt[] repeats) -> Tensor", "tile(Tensor self, SymInt[] dims) -> Tensor"},
          .summary = "repeats the tensor along each dim",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"x(2,3), [2,1]", "x(2,3), [4,1,2]", "tile.default: x(2,3), [2]"},
          .core = core};
}
}  // namespace tosaic
