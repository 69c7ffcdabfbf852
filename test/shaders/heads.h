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

struct Heads {
  std::int64_t places, count, width;
  double most = 3;    // queries, keys and values are whole numbers between -most and most, which halves keep
  double factor = 1;  // of queries
  std::function<ValueId(Net& net, ValueId scores)> mask = {};
  const char* end = "sigmoid";
};

// Heads of one product of queries, keys and values, together again behind an elementwise node.
inline ValueId attended(Net& net, const Heads& heads) {
  const std::int64_t places = heads.places, wide = heads.width, all = heads.count * wide;
  const ValueId x = net.node("floor", {net.input(DType::f32, {1, places, 3 * all}, -heads.most, heads.most)});
  const auto part = [&](std::int64_t which, const Sizes& order) {
    const ValueId cut = net.node("slice", {x, net.shape({0, 0, which * all}), net.shape({1, places, all})});
    ValueId four = shaped(net, cut, {1, places, heads.count, wide});
    if (which == 0 && heads.factor != 1)
      four = product(net, four, net.constant(DType::f32, {1, 1, 1, 1}, heads.factor, heads.factor));
    const ValueId moved = net.node("transpose", {four}, {{"perms", order}});
    return shaped(net, moved, order[2] == 3 ? Sizes{heads.count, wide, places} : Sizes{heads.count, places, wide});
  };
  const ValueId none = net.zero(DType::f32);
  ValueId scores = net.node("matmul", {part(0, {0, 2, 1, 3}), part(1, {0, 2, 3, 1}), none, none});
  if (heads.mask) scores = heads.mask(net, scores);
  const ValueId seen = net.node("matmul", {softmax(net, scores), part(2, {0, 2, 1, 3}), none, none});
  const ValueId together =
      net.node("transpose", {shaped(net, seen, {1, heads.count, places, wide})}, {{"perms", Sizes{0, 2, 1, 3}}});
  return net.node(heads.end, {shaped(net, together, {1, places, all})});
}

}  // namespace tosaic::test
