// SPDX-License-Identifier: Apache-2.0
// What extension operators share that normalise rows.
#include "ops/definitions/extension.h"
#include "ops/definitions/row.h"

namespace tosaic::extension::norm {
namespace {

// One row that broadcasts to all of them: [1, .., 1, n].
TensorType row_of(const TensorType& all) {
  TensorType row = all;
  for (int i = 0; i + 1 < all.rank(); ++i) row.shape.set(i, 1);
  return row;
}
TensorType number_of(const TensorType& all) {
  TensorType number = row_of(all);
  number.shape.set(all.rank() - 1, 1);
  return number;
}

tosa::Check check(const tosa::View& view) {
  const std::string_view op = view.node().op.base();
  const std::size_t wanted = 2 + std::size_t{view.flag(weighted)} + std::size_t{view.flag(biased)};
  if (view.inputs() != wanted)
    return tosa::broken(fmt::format("{}.operands", op), "{} operands, {} are wanted", view.inputs(), wanted);
  if (view.constant(epsilon).null()) return tosa::broken(fmt::format("{}.constant", op), "epsilon must be a constant");
  for (std::size_t i = epsilon; i < view.inputs(); ++i) {
    const TensorType type = i == epsilon ? number_of(view.in(input)) : row_of(view.in(input));
    if (view.in(i).shape != type.shape)
      return tosa::broken(fmt::format("{}.operand-shape", op), "operand {} has shape [{}], [{}] is wanted", i,
                          to_string(view.in(i).shape), to_string(type.shape));
  }
  return std::nullopt;
}

}  // namespace

tosa::Op row(std::string_view name, std::string_view summary) {
  return {.name = name,
          .schema_number = 0,
          .spirv_number = 0xffff,
          .summary = summary,
          .inputs = {{"input", "in_out", 1},
                     {.name = "epsilon", .type = "in_out", .min_rank = 1, .constant = true},
                     {.name = "weight_and_bias", .type = "in_out", .list = true}},
          .attrs = {{weighted, tosa::AttrKind::boolean}, {biased, tosa::AttrKind::boolean}},
          .outputs = {{"output", "in_out", 1}},
          .types = tosa::floats("in_out"),
          .infer = tosa::same_as_input,
          .check = check};
}

ValueId weight(const Node& node) { return node.attrs.get<bool>(weighted) ? node.inputs[epsilon + 1] : no_value; }
ValueId bias(const Node& node) { return node.attrs.get<bool>(biased) ? node.inputs.back() : no_value; }

std::vector<Form> forms(const Ending& ending) {
  const TensorType& result = ending.result;
  std::vector<Form> all;
  if ((ending.op != tosa::op::mul && ending.op != tosa::op::add) || !is_float(result.dtype) || result.rank() < 1)
    return all;
  for (const bool has_weight : {false, true})
    for (const bool has_bias : {false, true}) {
      if (has_bias != (ending.op == tosa::op::add)) continue;
      Form form{{result, number_of(result)}, {{weighted, has_weight}, {biased, has_bias}}, {result}};
      form.operands.resize(2 + std::size_t{has_weight} + std::size_t{has_bias}, row_of(result));
      all.push_back(std::move(form));
    }
  return all;
}

ValueId mean(Definition& d, ValueId x) {
  const TensorType& type = d.type(x);
  const int last = type.rank() - 1;
  const ValueId sum = d.reduce(tosa::op::reduce_sum, x, last);
  return d.mul(sum, d.number(type.dtype, type.rank(), 1.0 / static_cast<double>(type.shape.size(last))));
}

ValueId normalised(Definition& d, ValueId x) {
  const ValueId root = d.unary(tosa::op::rsqrt, d.add(mean(d, d.mul(x, x)), d.operand(epsilon)));
  ValueId y = d.mul(x, root);
  if (const ValueId w = weight(d.node()); w != no_value) y = d.mul(y, w);
  if (const ValueId b = bias(d.node()); b != no_value) y = d.add(y, b);
  return y;
}

}  // namespace tosaic::extension::norm
