// SPDX-License-Identifier: Apache-2.0
// Graphs of attention, as exported programs have them.
#pragma once
#include <functional>

#include "shaders/images.h"

namespace tosaic::test {

inline ValueId along_last(Net& net, const char* op, ValueId v) {
  Attrs attrs{{"axis", std::int64_t{net.graph[v].type.shape.rank() - 1}}};
  if (std::string_view(op) == "reduce_max") attrs.set("nan_mode", std::string("propagate"));
  return net.node(op, {v}, attrs);
}
inline ValueId product(Net& net, ValueId a, ValueId b) { return net.node("mul", {a, b, net.numbers(DType::i8, {0})}); }
inline ValueId shaped(Net& net, ValueId v, const Sizes& sizes) { return net.node("reshape", {v, net.shape(sizes)}); }

inline ValueId softmax(Net& net, ValueId x) {
  const ValueId e = net.node("exp", {net.node("sub", {x, along_last(net, "reduce_max", x)})});
  return product(net, e, net.node("reciprocal", {along_last(net, "reduce_sum", e)}));
}

inline ValueId wide(Net& net, ValueId v) { return net.rescale(v, DType::i32, 31, 31, false); }
inline ValueId narrow(Net& net, ValueId v, int shift, DType to = DType::i16) {
  return net.rescale(v, to, shift, shift, false);
}
inline ValueId looked_up(Net& net, ValueId v) {
  return narrow(net, net.node("table", {v, net.constant(DType::i16, {513}, -16000, 16000)}), 37);
}

// As quantised programs have it: all of 16 bits, products and sums of 32.
inline ValueId softmax_of_integers(Net& net, ValueId x) {
  const ValueId far = net.node("sub", {wide(net, x), wide(net, along_last(net, "reduce_max", x))});
  const ValueId e = wide(net, looked_up(net, narrow(net, far, 33)));
  const ValueId sum = along_last(net, "reduce_sum", e), one = looked_up(net, narrow(net, sum, 40)),
                other = looked_up(net, narrow(net, sum, 36));
  const ValueId r = narrow(net, product(net, wide(net, one), wide(net, other)), 46);
  return narrow(net, product(net, e, wide(net, r)), 50, DType::i8);
}

struct Heads {
  std::int64_t places, count, width;
  double most = 3;    // queries, keys and values are whole numbers between -most and most, which f16 keeps
  double factor = 1;  // of queries
  std::function<ValueId(Net& net, ValueId scores)> mask = {};
  const char* end = "sigmoid";
  std::int64_t images = 1;
  std::function<ValueId(Net& net, ValueId scores)> weights = {};  // of scores; none: softmax
};

// Heads of one product of queries, keys and values, together again behind an elementwise node.
inline ValueId attended(Net& net, const Heads& heads) {
  const std::int64_t places = heads.places, wide = heads.width, all = heads.count * wide, images = heads.images,
                     each = images * heads.count;
  const ValueId x = net.node("floor", {net.input(DType::f32, {images, places, 3 * all}, -heads.most, heads.most)});
  const auto part = [&](std::int64_t which, const Sizes& order) {
    const ValueId cut = net.node("slice", {x, net.shape({0, 0, which * all}), net.shape({images, places, all})});
    ValueId four = shaped(net, cut, {images, places, heads.count, wide});
    if (which == 0 && heads.factor != 1)
      four = product(net, four, net.constant(DType::f32, {1, 1, 1, 1}, heads.factor, heads.factor));
    const ValueId moved = net.node("transpose", {four}, {{"perms", order}});
    return shaped(net, moved, order[2] == 3 ? Sizes{each, wide, places} : Sizes{each, places, wide});
  };
  const ValueId none = net.zero(DType::f32);
  ValueId scores = net.node("matmul", {part(0, {0, 2, 1, 3}), part(1, {0, 2, 3, 1}), none, none});
  if (heads.mask) scores = heads.mask(net, scores);
  const ValueId weights = heads.weights ? heads.weights(net, scores) : softmax(net, scores),
                seen = net.node("matmul", {weights, part(2, {0, 2, 1, 3}), none, none});
  const ValueId together =
      net.node("transpose", {shaped(net, seen, {images, heads.count, places, wide})}, {{"perms", Sizes{0, 2, 1, 3}}});
  return net.node(heads.end, {shaped(net, together, {images, places, all})});
}

// Heads of one tensor of queries, keys and values, as quantised programs have them: sums of the second product, of
// [count, places, width].
struct IntegerHeads {
  std::int64_t places, count, width;
  std::int64_t zero_point = 3;                                 // of queries and values; keys have its negative
  std::function<ValueId(Net& net, ValueId scores)> mask = {};  // of [1, count, places, places], in 16 bits
  std::int64_t value_width = 0;                                // 0: width
  std::int64_t of_values() const { return value_width ? value_width : width; }
};

inline ValueId attended_integers(Net& net, const IntegerHeads& heads) {
  const std::int64_t places = heads.places, count = heads.count, key = heads.width, value = heads.of_values();
  const ValueId x = net.input(DType::i8, {1, places, count * (2 * key + value)}, -128, 127);
  const auto part = [&](std::int64_t which, std::int64_t width, const Sizes& order) {
    const Sizes begin{0, 0, which * count * key}, size{1, places, count * width};
    const ValueId cut = net.node("slice", {x, net.shape(begin), net.shape(size)}),
                  four = shaped(net, cut, {1, places, count, width}),
                  moved = net.node("transpose", {four}, {{"perms", order}});
    return shaped(net, moved, order[2] == 3 ? Sizes{count, width, places} : Sizes{count, places, width});
  };
  const auto matmul = [&](ValueId a, ValueId b, std::int64_t a_zero, std::int64_t b_zero) {
    return net.node("matmul", {a, b, net.numbers(DType::i8, {a_zero}), net.numbers(DType::i8, {b_zero})});
  };
  const ValueId q = part(0, key, {0, 2, 1, 3}), k = part(1, key, {0, 2, 3, 1}), v = part(2, value, {0, 2, 1, 3});
  ValueId scores = narrow(net, matmul(q, k, heads.zero_point, std::max<std::int64_t>(-heads.zero_point, -128)), 34);
  scores = shaped(net, scores, {1, count, places, places});
  if (heads.mask) scores = heads.mask(net, scores);
  const ValueId weights = shaped(net, softmax_of_integers(net, scores), {count, places, places});
  return matmul(weights, v, heads.zero_point ? -128 : 0, heads.zero_point);
}

// Places that attend only to those before them: others score as little as any does.
inline ValueId masked_integers(Net& net, ValueId scores) {
  const std::int64_t places = net.graph[scores].type.shape.size(3);
  std::vector<std::int64_t> before;
  for (std::int64_t line = 0; line < places; ++line)
    for (std::int64_t key = 0; key < places; ++key) before.push_back(key <= line);
  const TensorType type{DType::boolean, Shape{1, 1, places, places}};
  const ValueId mask =
      net.graph.add_value("mask", type, constant_bytes(type.dtype, std::span<const std::int64_t>(before)));
  const ValueId least =
      net.node("reduce_min", {scores}, {{"axis", std::int64_t{3}}, {"nan_mode", std::string("propagate")}});
  return net.node("select", {mask, scores, least});
}

}  // namespace tosaic::test
