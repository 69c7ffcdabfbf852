// SPDX-License-Identifier: Apache-2.0
#include "ir/aten_operators.h"
#include "ops/core_form.h"
#include "ops/lowering/padding.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  const std::string mode = call.text("mode");
  const auto list = call.ints("pad");
  if (mode == "constant") return padded_with(b, "pad", x, list, call.has("value") ? call.number("value") : 0.0);
  if (mode == "reflect") return padded_by_edges(b, "pad", x, list, Edge::reflect);
  if (mode == "replicate") return padded_by_edges(b, "pad", x, list, Edge::replicate);
  if (mode == "circular") return padded_by_edges(b, "pad", x, list, Edge::circular);
  b.refuse("aten.pad.mode", "pad mode '" + mode + "' is not one of constant, reflect, replicate, circular");
}

std::optional<Node> core(const CoreCall& call) {
  if (call.attr("mode") != Attr(std::string("constant"))) return std::nullopt;
  return call.call(
      aten::op::constant_pad_nd, {call.operand(0)},
      {{"pad", call.attr("pad")}, {"value", call.has("value") ? call.attr("value") : Attr(std::int64_t{0})}});
}
}  // namespace

AtenOp aten_pad() {
  return {
      .schemas = {"pad(Tensor self, SymInt[] pad, str mode=\"constant\", float? value=None) -> Tensor"},
      .summary = "a tensor continued beyond its ends, by a constant or by its own elements",
      .rule = Rule::transparent,
      .lower = {lower},
      .domain = {"x(2,3), [1,2]", "x(2,3), [1,1,0,2], 'constant', 1.5", "x(1,2,4,5), [2,1,1,3], 'reflect'",
                 "x(1,2,4,5), [2,1,1,3], 'replicate'", "x(1,2,4,5), [2,1,1,3], 'circular'", "x(2,5), [3,0], 'reflect'"},
      .core = core};
}
}  // namespace tosaic
