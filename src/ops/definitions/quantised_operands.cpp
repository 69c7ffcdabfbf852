// SPDX-License-Identifier: Apache-2.0
// What extension operators share that read constants quantised by groups.
#include <algorithm>

#include "ops/definitions/extension.h"
#include "ops/definitions/row.h"

namespace tosaic::extension::quantised {

std::int64_t rows(const tosa::View& view, std::size_t scales) { return view.in(scales).shape.size(0); }

std::int64_t depth(const tosa::View& view, std::size_t values, std::size_t scales) {
  const std::int64_t per_byte = view.integer(run) == 0 ? 1 : 2;
  return view.in(values).shape.elements() * per_byte / std::max<std::int64_t>(rows(view, scales), 1);
}

tosa::Check check(const tosa::View& view, std::size_t values, std::size_t scales) {
  const std::string_view op = view.node().op.base();
  if (view.constant(values).null() || view.constant(scales).null())
    return tosa::broken(fmt::format("{}.constant", op), "its quantised values and their scales must be constants");
  const std::int64_t n = rows(view, scales), k = depth(view, values, scales), of = view.integer(run);
  const bool columns = view.node().attrs.get_or(by_columns, false);
  if (view.in(values).shape.size(columns ? 1 : 0) != (columns && of != 0 ? n / 2 : n))
    return tosa::broken(fmt::format("{}.rows", op), "{} rows have scales, the values' shape is [{}]", n,
                        to_string(view.in(values).shape));
  if (k % view.in(scales).shape.size(1) != 0)
    return tosa::broken(fmt::format("{}.group", op), "{} groups do not divide rows of {}",
                        view.in(scales).shape.size(1), k);
  if (of < 0 || of % 2 != 0 || (of != 0 && n * k % of != 0))
    return tosa::broken(fmt::format("{}.run", op), "runs of {} do not divide {} values", of, n * k);
  return std::nullopt;
}

namespace {

// Two values of 4 bits in a byte b = 16 h + l: h = floor(b / 16), and l - 8, as tidy packs them (pack_int4.cpp).
ValueId unpacked(Definition& d, ValueId bytes, DType type, std::int64_t of) {
  const std::int64_t runs = d.type(bytes).shape.elements() * 2 / of;
  const ValueId both = d.cast(d.shaped(bytes, {runs, of / 2}), type);
  const ValueId scaled = d.mul(both, d.number(type, 2, 1.0 / 16));
  const ValueId second = d.call(tosa::op::floor, {scaled}, d.type(scaled));
  const ValueId low = d.sub(both, d.mul(second, d.number(type, 2, 16)));
  const ValueId first = d.sub(low, d.number(type, 2, 8));
  return d.call(tosa::op::concat, {first, second}, {type, {runs, of}, {}}, {{"axis", std::int64_t{1}}});
}

}  // namespace

ValueId as_floats(Definition& d, std::size_t values, std::size_t scales) {
  const Attrs& attrs = d.node().attrs;
  const std::int64_t of = attrs.get<std::int64_t>(run);
  const ValueId bytes = d.operand(values), by_group = d.operand(scales);
  const TensorType scale = d.type(by_group);
  const std::int64_t n = scale.shape.size(0), groups = scale.shape.size(1),
                     k = d.type(bytes).shape.elements() * (of ? 2 : 1) / n;
  const bool columns = attrs.get_or(by_columns, false);
  const Shape grouped{n, groups, k / groups}, whole = columns ? Shape{k, n} : grouped;
  ValueId v = of ? d.shaped(unpacked(d, bytes, scale.dtype, of), whole) : d.cast(d.shaped(bytes, whole), scale.dtype);
  if (columns)
    v = d.call(tosa::op::transpose, {v}, {scale.dtype, {n, k}, {}}, {{"perms", std::vector<std::int64_t>{1, 0}}});
  return d.shaped(d.mul(d.shaped(v, grouped), d.shaped(by_group, {n, groups, 1})), {n, 1, 1, k});
}

}  // namespace tosaic::extension::quantised
