// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/mxfp.h"

#include <array>
#include <utility>

#include "ir/aten_operators.h"
#include "ops/definitions/block_rounding.h"
#include "ops/lowering/calls.h"
#include "ops/lowering/packed_weight.h"

namespace tosaic::mxfp {
namespace {
using tosa::block_scaled::block;

struct BuilderWords {
  using Value = Val;
  Builder& b;

  Val number(double value, Val like) {
    return b.filled(value, DType::f32, Shape(std::vector<std::int64_t>(static_cast<std::size_t>(like.rank()), 1)));
  }
  Val abs(Val v) { return b.unary(tosa::op::abs, v); }
  Val greatest_of_block(Val v) { return b.reduce(tosa::op::reduce_max, v, {v.rank() - 1}, true); }
  Val greater(Val x, Val y) { return b.binary(tosa::op::greater, x, y); }
  Val select(Val condition, Val x, Val y) { return b.select(condition, x, y); }
  Val add(Val x, Val y) { return b.add(x, y); }
  Val sub(Val x, Val y) { return b.sub(x, y); }
  Val mul(Val x, Val y) { return b.mul(x, y); }
  Val cast(Val v, DType to) { return b.tosa_all(tosa::op::cast, {v}, {}, to).front(); }  // rounds
  Val clamp_or_nan_to_least(Val v, double most) {
    return b.tosa(tosa::op::clamp, {v}, {{"min_val", -most}, {"max_val", most}, {"nan_mode", std::string("ignore")}});
  }
};

DType element_type(const Call& call, Val data) {
  constexpr std::array<std::pair<std::string_view, DType>, 5> names{{{"f4e2m1", DType::f4e2m1},
                                                                     {"fp6e2m3", DType::f6e2m3},
                                                                     {"fp6e3m2", DType::f6e3m2},
                                                                     {"f8e4m3", DType::f8e4m3},
                                                                     {"f8e5m2", DType::f8e5m2}}};
  const std::string name = call.text("weight_payload_dtype");
  if (name.empty() && data.dtype() == DType::u8) return DType::f4e2m1;
  for (const auto& [known, type] : names)
    if (name.empty() ? type == data.dtype() : known == name) return type;
  call.builder().refuse("aten.mxfp.type",
                        fmt::format("elements of type '{}'", name.empty() ? name_of(data.dtype()) : name));
}

// The same bits as elements of the type; two of 4 bits share a byte, the first one in its lower half.
Val as_elements(Val data, DType type) {
  Builder& b = data.builder();
  if (data.dtype() == type) return data;
  if (data.dtype() != DType::u8)
    b.refuse("aten.mxfp.type", fmt::format("elements of {} in a tensor of {}", name_of(type), name_of(data.dtype())));
  const Bytes bytes = b.graph()[data.id()].constant;
  if (type != DType::f4e2m1) return b.constant(data.type().with(type), bytes);
  std::vector<std::int64_t> sizes = data.shape().sizes();
  sizes.back() *= 2;
  std::vector<std::uint8_t> elements;
  elements.reserve(2 * bytes.size());
  for (const std::uint8_t byte : bytes.as<std::uint8_t>()) {
    elements.push_back(byte & 15);
    elements.push_back(byte >> 4);
  }
  return b.constant({type, Shape(std::move(sizes)), {}}, Bytes::of(std::move(elements)));
}

Shape in_blocks(const Shape& shape) {
  std::vector<Dim> dims = shape.dims();
  dims.back() = Dim(shape.size(shape.rank() - 1) / block);
  dims.emplace_back(block);
  return Shape(std::move(dims));
}
}  // namespace

bool has_operators(const Builder& b) { return b.spec() && b.spec()->has(tosa::Feature::mxfp); }

Attrs block_size() { return {{tosa::block_scaled::size, block}}; }

Tensor weight(const Call& call) {
  Builder& b = call.builder();
  const Val data = call.tensor("weight_qdata"), scale = call.tensor("weight_scale");
  if (!data.is_constant() || !scale.is_constant())
    b.refuse("aten.mxfp.weight", "weights that are computed while the program runs");
  if (data.rank() == 0) b.refuse("aten.mxfp.shape", "weights without dims");
  if (call.integer("block_size") != block)
    b.refuse("aten.mxfp.block-size",
             fmt::format("blocks of {}: TOSA has blocks of {}", call.integer("block_size"), block));
  const Val elements = as_elements(data, element_type(call, data));
  const Shape wanted = tosa::block_scaled::scales_shape(elements.shape());
  if (elements.dim(-1) % block != 0 || scale.shape() != wanted)
    b.refuse("aten.mxfp.shape", fmt::format("weights of shape [{}] with scales of shape [{}]",
                                            to_string(elements.shape()), to_string(scale.shape())));
  return {elements, as_elements(scale, DType::f8ue8m0)};
}

Tensor rounded(Val x, DType element) {
  Builder& b = x.builder();
  if (has_operators(b)) {
    const Vals made = b.tosa_all(tosa::op::cast_to_block_scaled, {x}, block_size(), element);
    return {made[0], made[1]};
  }
  const Val grouped = calls::view(b.aten(aten::op::_to_copy, {x}, {{"dtype", DType::f32}}), in_blocks(x.shape()));
  const bool cast = element == DType::f8e4m3   ? b.spec() && b.spec()->has(tosa::Feature::fp8e4m3)
                    : element == DType::f8e5m2 ? b.spec() && b.spec()->has(tosa::Feature::fp8e5m2)
                                               : false;
  const auto [elements, scale] = tosa::block_scaled::Rounding(BuilderWords{b})(grouped, element, cast);
  return {elements, scale};
}

Val as_whole_numbers(const Tensor& weight) {
  const auto& [elements, scales] = weight;
  Builder& b = elements.builder();
  const double parts = elements.dtype() == DType::f4e2m1 ? 2 : elements.dtype() == DType::f6e2m3 ? 8 : 0;  // of one
  if (parts == 0) return as_floats(weight);
  std::vector<double> whole = elements_of(elements), by = elements_of(scales);
  for (double& v : whole) v *= parts;
  for (double& v : by) v /= parts;
  const Val values = b.constant({DType::i8, elements.shape(), {}}, constant_bytes(DType::i8, whole));
  Shape one_each = in_blocks(elements.shape());
  one_each.set(one_each.rank() - 1, 1);
  const Val scale = b.constant({DType::f32, one_each, {}}, constant_bytes(DType::f32, by));
  const Val real = b.aten(aten::op::_to_copy, {values}, {{"dtype", DType::f32}});
  return calls::view(calls::mul(calls::view(real, in_blocks(elements.shape())), scale), elements.shape());
}

Val as_floats(const Tensor& tensor) {
  const auto& [elements, scales] = tensor;
  Builder& b = elements.builder();
  if (elements.is_constant()) {  // a weight
    const TensorView data{elements.type(), b.graph()[elements.id()].constant.data()},
        scale{scales.type(), b.graph()[scales.id()].constant.data()};
    return b.constant({DType::f32, elements.shape(), {}},
                      constant_bytes(DType::f32, tosa::block_scaled::as_doubles(data, scale)));
  }
  std::vector<Dim> dims = elements.shape().dims();
  dims.pop_back();
  dims.back() = dims.back() * Dim(block);
  return calls::view(calls::mul(elements, scales), Shape(std::move(dims)));
}

}  // namespace tosaic::mxfp
