// SPDX-License-Identifier: Apache-2.0
#include "api/shown_output.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <cmath>

#include "base/diagnostic.h"
#include "base/memory.h"

namespace tosaic {
namespace {

std::string json_number(double number) {
  return std::isfinite(number) ? to_string(number) : json_quote(to_string(number));
}

ShownOutput shown(const Literal& value) {
  auto tensor = [](DType type, std::vector<std::int64_t> shape, const auto& elements) {
    Bytes content = constant_bytes(type, elements);
    return Tensor{{type, Shape(std::move(shape)), {}}, std::move(content)};
  };
  using Ints = std::vector<std::int64_t>;
  using Reals = std::vector<double>;
  auto size = [](const auto& list) { return Ints{static_cast<std::int64_t>(list.size())}; };
  if (const auto* i = std::get_if<std::int64_t>(&value))
    return {"int", std::to_string(*i), tensor(DType::i64, {}, Ints{*i})};
  if (const auto* d = std::get_if<double>(&value)) return {"float", json_number(*d), tensor(DType::f64, {}, Reals{*d})};
  if (const auto* b = std::get_if<bool>(&value))
    return {"bool", *b ? "true" : "false", tensor(DType::boolean, {}, Ints{*b})};
  if (const auto* s = std::get_if<std::string>(&value)) return {"str", json_quote(*s), {}};
  if (const auto* l = std::get_if<Ints>(&value))
    return {"int[]", fmt::format("[{}]", fmt::join(*l, ", ")), tensor(DType::i64, size(*l), *l)};
  if (const auto* l = std::get_if<Reals>(&value)) {
    std::vector<std::string> texts;
    for (double d : *l) texts.push_back(json_number(d));
    return {"float[]", fmt::format("[{}]", fmt::join(texts, ", ")), tensor(DType::f64, size(*l), *l)};
  }
  return {"None", "null", {}};
}

}  // namespace

ShownOutput shown(const Output& output) {
  if (!output.tensor) return shown(output.literal);
  const TensorType type{output.tensor->dtype, Shape(output.tensor->sizes), {}};
  return {to_string(type), "", Tensor{type, output.tensor->data}};
}

}  // namespace tosaic
