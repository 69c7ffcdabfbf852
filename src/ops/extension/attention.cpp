// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/elementwise.h"
#include "ops/definitions/extension.h"
#include "ops/definitions/row.h"

namespace tosaic::extension {
namespace {

using namespace attention;

bool broadcasts_to(const Shape& from, const Shape& to) {
  return from.rank() == to.rank() && tosa::broadcast_shape(from, to) == to;
}

tosa::Check check(const tosa::View& view) {
  const Shape &q = view.in(query).shape, &k = view.in(key).shape, &v = view.in(value).shape;
  if (k[0] != q[0] || v[0] != q[0] || k[1] != q[2] || v[1] != k[2])
    return tosa::broken("attention.shapes", "query [{}], key [{}] and value [{}] do not fit", to_string(q),
                        to_string(k), to_string(v));
  if (view.inputs() != last_operand + 1 + std::size_t{view.flag(biased)} + std::size_t{view.flag(masked)})
    return tosa::broken("attention.operands", "{} operands for its attributes", view.inputs());
  const Shape all(view.ints(scores));
  if (all.rank() == 0 || all[all.rank() - 1] != k[2] || all.elements() != q.size(0) * q.size(1) * k.size(2))
    return tosa::broken("attention.scores", "scores [{}] of query [{}] and key [{}]", to_string(all), to_string(q),
                        to_string(k));
  const auto fits = [&](ValueId id, DType dtype) {
    if (id == no_value) return true;
    const TensorType& type = view.graph()[id].type;
    return type.dtype == dtype && broadcasts_to(type.shape, all);
  };
  if (!fits(bias(view.node()), view.in(query).dtype) || !fits(mask(view.node()), DType::boolean))
    return tosa::broken("attention.mask", "bias or mask do not broadcast to scores [{}]", to_string(all));
  return std::nullopt;
}

std::vector<TensorType> infer(const tosa::View& view) {
  const Shape &q = view.in(query).shape, &v = view.in(value).shape;
  return {view.in(query).with(Shape(std::vector<Dim>{q[0], q[1], v[2]}))};
}

std::vector<ValueId> to_tosa(Definition& d) {
  const Attrs& attrs = d.node().attrs;
  const TensorType &q = d.type(d.operand(query)), &k = d.type(d.operand(key));
  const Shape product{q.shape.size(0), q.shape.size(1), k.shape.size(2)},
      all(attrs.get<std::vector<std::int64_t>>(scores));
  const TensorType of_product = q.with(product);
  const ValueId zero = d.number(q.dtype, 1, 0);
  const auto matmul = [&](ValueId a, ValueId b, const TensorType& type) {
    return d.call(tosa::op::matmul, {a, b, zero, zero}, type);
  };
  ValueId x = d.shaped(matmul(d.operand(query), d.operand(key), of_product), all);
  if (const ValueId v = bias(d.node()); v != no_value) x = d.add(x, v);
  std::vector<ValueId> rows{x};
  if (const ValueId v = mask(d.node()); v != no_value) rows.push_back(v);
  const Attrs along{{softmax::axis, std::int64_t{all.rank() - 1}}, {softmax::safe, attrs.get<bool>(softmax::safe)}};
  const ValueId weights = d.call(op::softmax, std::move(rows), d.type(x), along);
  return {matmul(d.shaped(weights, product), d.operand(value), d.result())};
}

std::vector<Form> forms(const Ending& ending) {
  std::vector<Form> all;
  if (ending.op != tosa::op::matmul || ending.result.dtype != DType::f32) return all;
  const TensorType &weights = ending.operands[0], &rows = ending.viewed[0];
  if (rows.rank() == 0 || weights.shape.size(2) != rows.shape.size(rows.rank() - 1)) return all;
  TensorType of_query = weights, of_key = weights;  // of whatever depth
  of_query.shape.set(2, 1);
  of_key.shape.set(1, 1);
  for (const bool is_safe : {false, true})
    for (const bool has_bias : {false, true})
      for (const bool has_mask : {false, true}) {
        Form form{{of_query, of_key, ending.operands[1]},
                  {{scores, rows.shape.sizes()}, {biased, has_bias}, {masked, has_mask}, {softmax::safe, is_safe}},
                  {ending.result}};
        if (has_bias) form.operands.push_back(rows);
        if (has_mask) form.operands.push_back(rows.with(DType::boolean));
        all.push_back(std::move(form));
      }
  return all;
}

}  // namespace

namespace attention {
ValueId bias(const Node& node) { return node.attrs.get<bool>(biased) ? node.inputs[last_operand + 1] : no_value; }
ValueId mask(const Node& node) { return node.attrs.get<bool>(masked) ? node.inputs.back() : no_value; }
}  // namespace attention

// softmax(query x key + bias) x value: rows that weigh those of value, each row's weights adding up to 1.
Op extension_attention() {
  return {.row = {.name = "attention",
                  .schema_number = 0,
                  .spirv_number = 0xffff,
                  .summary = "rows of a value weighed by the softmax of products of a query's rows and a key",
                  .inputs = {{"query", "in_out", 3, 3},
                             {"key", "in_out", 3, 3},
                             {"value", "in_out", 3, 3},
                             {.name = "bias_and_mask", .type = "", .list = true}},
                  .attrs = {{scores, tosa::AttrKind::i32_list},
                            {biased, tosa::AttrKind::boolean},
                            {masked, tosa::AttrKind::boolean},
                            {softmax::safe, tosa::AttrKind::boolean}},
                  .outputs = {{"output", "in_out", 3, 3}},
                  .types = {{{}, {{"in_out", DType::f32}}}},
                  .infer = infer,
                  .check = check},
          .to_tosa = to_tosa,
          .forms = forms};
}

}  // namespace tosaic::extension
