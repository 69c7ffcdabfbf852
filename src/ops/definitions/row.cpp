// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/row.h"

namespace tosaic::tosa {

TypeRows rows(std::vector<Feature> needs, std::string_view variable, std::initializer_list<DType> dtypes) {
  TypeRows result;
  for (DType dtype : dtypes) result.push_back({.needs = needs, .types = {{variable, dtype}}});
  return result;
}
TypeRows integers(std::string_view variable, std::initializer_list<DType> dtypes) {
  return rows({Feature::pro_int}, variable, dtypes);
}
TypeRows either(std::string_view variable, std::initializer_list<DType> dtypes) {
  return rows({Feature::pro_int, Feature::pro_fp}, variable, dtypes);
}
TypeRows floats(std::string_view variable) {
  return rows({Feature::pro_fp}, variable, {DType::f16, DType::f32}) + rows({Feature::bf16}, variable, {DType::bf16});
}
TypeRows fp8s(std::string_view variable) {
  return rows({Feature::fp8e4m3}, variable, {DType::f8e4m3}) + rows({Feature::fp8e5m2}, variable, {DType::f8e5m2});
}
TypeRows int64s(std::string_view variable) { return rows({Feature::int64}, variable, {DType::i64}); }
TypeRows any_data(std::string_view variable) {
  return either(variable, {DType::boolean}) + integers(variable, {DType::i8, DType::i16, DType::i32}) +
         floats(variable) + fp8s(variable) + int64s(variable);
}
TypeRows since_1_1(TypeRows rows) {
  for (TypeRow& row : rows) row.and_needs = Feature::v1_1;
  return rows;
}

TypeRows operator+(TypeRows a, const TypeRows& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
TypeRows with(TypeRows rows, std::string_view variable, DType dtype) {
  for (TypeRow& row : rows) row.types.emplace_back(variable, dtype);
  return rows;
}
TypeRows with_same(TypeRows rows, std::string_view like, std::string_view variable) {
  for (TypeRow& row : rows)
    for (std::size_t i = 0, n = row.types.size(); i < n; ++i)
      if (row.types[i].first == like) row.types.emplace_back(variable, row.types[i].second);
  return rows;
}

Check check_length(const View& view, std::size_t i, std::int64_t length) {
  const Op& op = *find(view.node().op);
  const std::string_view operand = op.inputs[i].name;
  if (view.in(i).rank() == 1 && view.in(i).shape.size(0) == length) return std::nullopt;
  return broken(fmt::format("{}.{}-length", op.name, operand), "{} of {} has shape [{}], TOSA wants [{}]", operand,
                op.name, to_string(view.in(i).shape), length);
}

Check check_axis(const View& view) {
  const std::int64_t axis = view.integer("axis");
  if (axis >= 0 && axis < view.in(0).rank()) return std::nullopt;
  return broken(fmt::format("{}.axis", view.node().op.base()), "axis {} is not a dim of a tensor of rank {}", axis,
                view.in(0).rank());
}

std::optional<double> constant_scalar(const View& view, std::size_t i) {
  const Bytes& data = view.constant(i);
  if (data.null() || data.size() < storage_size(view.in(i).dtype)) return std::nullopt;
  return element_as_double(view.in(i).dtype, data.data(), 0);
}

Status unpredictable(const Run& run, const std::string& why) {
  return error("tosa.unpredictable", fmt::format("{}: {}", run.view.node().op.base(), why));
}

std::vector<std::int64_t> integers_of(const TensorView& tensor) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(tensor.type.shape.elements()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = element_as_integer(tensor.type.dtype, tensor.data, i);
  return values;
}

std::vector<TensorType> same_as_input(const View& view) { return {view.in(0).with(std::nullopt)}; }

}  // namespace tosaic::tosa
