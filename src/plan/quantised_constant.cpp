// SPDX-License-Identifier: Apache-2.0
#include "plan/quantised_constant.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/parallel.h"
#include "ir/tensor.h"
#include "ir/tosa_operators.h"
#include "plan/views.h"

namespace tosaic::plan {
namespace {

class Search {
 public:
  Search(const Graph& graph, std::span<const std::int32_t> producer) : graph_(graph), producer_(producer) {}

  std::optional<QuantisedConstant> found(ValueId value) const {
    if (const Bytes* bytes = cast_bytes(skip_views(graph_, producer_, value))) return QuantisedConstant{*bytes};
    return packed(skip_views(graph_, producer_, value));
  }

 private:
  const Graph& graph_;
  const std::span<const std::int32_t> producer_;

  const Node* made_by(Operator op, ValueId v, std::size_t operands) const {
    const Node* node = maker(graph_, producer_, v);
    return node && node->op == op && node->inputs.size() == operands ? node : nullptr;
  }
  // Of a CAST of constant bytes.
  const Bytes* cast_bytes(ValueId v) const {
    const Node* cast = made_by(tosa::op::cast, v, 1);
    if (!cast || !is_float(graph_[v].type.dtype)) return nullptr;
    const Value& from = graph_[cast->inputs[0]];
    return from.is_constant() && from.type.dtype == DType::i8 ? &from.constant : nullptr;
  }
  bool is_number(ValueId v, double number) const {
    const Value& value = graph_[v];
    return value.is_constant() && is_float(value.type.dtype) && value.type.shape.elements() == 1 &&
           element_as_double(value.type.dtype, value.constant.data(), 0) == number;
  }
  // x of x * number.
  ValueId times(ValueId v, double number) const {
    const Node* mul = made_by(tosa::op::mul, v, 3);
    return mul && is_number(mul->inputs[1], number) ? mul->inputs[0] : no_value;
  }
  // concat(b - 16 h - 8, h) of h = floor(b / 16), along the last dim.
  std::optional<QuantisedConstant> packed(ValueId v) const {
    const Node* both = made_by(tosa::op::concat, v, 2);
    const Shape& shape = graph_[v].type.shape;
    if (!both || both->attrs.get<std::int64_t>("axis") != shape.rank() - 1) return std::nullopt;
    const ValueId second = both->inputs[1];
    const Node *offset = made_by(tosa::op::sub, both->inputs[0], 2), *floor = made_by(tosa::op::floor, second, 1);
    if (!offset || !floor || !is_number(offset->inputs[1], 8)) return std::nullopt;
    const Node* low = made_by(tosa::op::sub, offset->inputs[0], 2);
    if (!low || times(low->inputs[1], 16) != second || times(floor->inputs[0], 0.0625) != low->inputs[0])
      return std::nullopt;
    const Bytes* bytes = cast_bytes(low->inputs[0]);
    if (!bytes) return std::nullopt;
    return QuantisedConstant{*bytes, shape.size(shape.rank() - 1)};
  }
};

}  // namespace

std::optional<QuantisedConstant> quantised_constant(const Graph& graph, std::span<const std::int32_t> producer,
                                                    ValueId value) {
  return Search(graph, producer).found(value);
}

void QuantisedConstant::read(std::int64_t first, std::span<std::int8_t> to) const {
  const auto* from = reinterpret_cast<const std::int8_t*>(bytes.data());
  if (run == 0) {
    std::memcpy(to.data(), from + first, to.size());
    return;
  }
  const std::int64_t half = run / 2;
  auto left = static_cast<std::int64_t>(to.size());
  for (std::int8_t* out = to.data(); left > 0;) {
    const std::int64_t at = first % run, count = std::min(left, half - at % half);
    const std::int8_t* in = from + first / run * half + at % half;
    if (at < half)
      for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<std::int8_t>((in[i] & 15) - 8);
    else
      for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<std::int8_t>(in[i] >> 4);
    out += count;
    first += count;
    left -= count;
  }
}

std::span<const std::byte> QuantisedConstant::stored(std::int64_t first, std::int64_t count) const {
  const std::int64_t per_byte = run ? 2 : 1;
  return {bytes.data() + first / per_byte, static_cast<std::size_t>(count / per_byte)};
}

// Of values of 8 bits one of the first few says no.
bool QuantisedConstant::fits_four_bits() const {
  if (run != 0) return true;
  constexpr std::size_t block = 4096;
  const auto all = bytes.as<std::int8_t>();
  for (std::size_t first = 0; first < all.size(); first += block) {
    int beyond = 0;  // without a branch for each
    for (const std::int8_t c : all.subspan(first, std::min(block, all.size() - first)))
      beyond |= static_cast<int>(c < -8) | static_cast<int>(c > 7);
    if (beyond != 0) return false;
  }
  return true;
}

Bytes as_bytes(std::span<const float> values) {
  constexpr float rounds = 12582912.0f;  // 1.5 * 2^23: what is added to it becomes a whole number
  std::atomic<int> others = 0;
  std::int8_t* to = nullptr;
  Bytes bytes = Bytes::fresh(values.size(), to);
  in_parallel(values.size(), std::size_t{1} << 18, [&](std::size_t first, std::size_t last) {
    int other = 0;  // without a branch for each
    for (std::size_t i = first; i < last; ++i) {
      const float v = values[i], whole = (v + rounds) - rounds;
      other |= static_cast<int>(!(v >= -128.0f)) | static_cast<int>(!(v <= 127.0f)) | static_cast<int>(whole != v);
    }
    others |= other;
    if (other != 0) return;
    for (std::size_t i = first; i < last; ++i) to[i] = static_cast<std::int8_t>(values[i]);
  });
  return others != 0 ? Bytes() : bytes;
}

}  // namespace tosaic::plan
