// SPDX-License-Identifier: Apache-2.0
// PyTorch's pads: a list {left, right, top, bottom, ...} that begins at the last dim; negative numbers crop.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "ir/tosa_operators.h"
#include "ops/op.h"

namespace tosaic {

struct Pads {
  std::vector<std::int64_t> before, after;  // one per dim of the tensor, outermost first
};
inline Pads pads_of(Builder& b, const std::string& op, const std::vector<std::int64_t>& list, int rank) {
  if (list.size() % 2 || static_cast<int>(list.size()) > 2 * rank)
    b.refuse("aten." + op + ".length",
             std::to_string(list.size()) + " pads for a tensor of rank " + std::to_string(rank));
  Pads pads{std::vector<std::int64_t>(static_cast<std::size_t>(rank), 0),
            std::vector<std::int64_t>(static_cast<std::size_t>(rank), 0)};
  for (std::size_t i = 0; i < list.size() / 2; ++i) {
    const std::size_t axis = static_cast<std::size_t>(rank) - 1 - i;
    pads.before[axis] = list[2 * i];
    pads.after[axis] = list[2 * i + 1];
  }
  return pads;
}

// Takes the negative pads off the tensor and sets them to 0.
inline Val cropped(Builder& b, const std::string& op, Val x, Pads& pads) {
  auto start = pads.before, size = x.shape().sizes();
  for (std::size_t i = 0; i < start.size(); ++i) {
    start[i] = std::max<std::int64_t>(-pads.before[i], 0);
    size[i] -= start[i] + std::max<std::int64_t>(-pads.after[i], 0);
    if (size[i] < 1)
      b.refuse("aten." + op + ".empty",
               "the pads crop all of dim " + std::to_string(i) + " of " + to_string(x.shape()));
    pads.before[i] = std::max<std::int64_t>(pads.before[i], 0);
    pads.after[i] = std::max<std::int64_t>(pads.after[i], 0);
  }
  return b.slice(x, start, size);
}

inline Val padded_with(Builder& b, const std::string& op, Val x, const std::vector<std::int64_t>& list, double value) {
  Pads pads = pads_of(b, op, list, x.rank());
  x = cropped(b, op, x, pads);
  return b.pad(x, pads.before, pads.after, value);
}

enum class Edge { reflect, replicate, circular };
// One dim continued beyond its ends.
inline Val continued(Builder& b, const std::string& op, Val x, int axis, std::int64_t before, std::int64_t after,
                     Edge edge) {
  const std::int64_t size = x.dim(axis), limit = edge == Edge::reflect ? size - 1 : size;
  if (edge != Edge::replicate && std::max(before, after) > limit)
    b.refuse("aten." + op + ".size", "pads of " + std::to_string(before) + " and " + std::to_string(after) +
                                         " for a dim of " + std::to_string(size));
  auto edge_slice = [&](std::int64_t start, std::int64_t count) {
    Val y = b.slice_axis(x, axis, start, edge == Edge::replicate ? 1 : count);
    if (edge == Edge::reflect && count > 1) {
      const TensorType type = y.type();
      y = b.tosa(tosa::op::reverse, {y}, {{"axis", std::int64_t{axis}}});
      b.graph()[y.id()].type = type;
    }
    if (edge == Edge::replicate) {
      std::vector<std::int64_t> multiples(static_cast<std::size_t>(x.rank()), 1);
      multiples[static_cast<std::size_t>(axis)] = count;
      y = b.tile(y, multiples);
    }
    return y;
  };
  std::vector<Val> parts;
  if (before > 0)
    parts.push_back(edge_slice(edge == Edge::reflect ? 1 : edge == Edge::circular ? size - before : 0, before));
  parts.push_back(x);
  if (after > 0)
    parts.push_back(edge_slice(edge == Edge::reflect    ? size - 1 - after
                               : edge == Edge::circular ? 0
                                                        : size - 1,
                               after));
  return b.concat(parts, axis);
}
inline Val padded_by_edges(Builder& b, const std::string& op, Val x, const std::vector<std::int64_t>& list, Edge edge) {
  Pads pads = pads_of(b, op, list, x.rank());
  // Edges are continued before a negative pad of the other side crops them away.
  for (int i = 0; i < x.rank(); ++i) {
    const auto k = static_cast<std::size_t>(i);
    x = continued(b, op, x, i, std::max<std::int64_t>(pads.before[k], 0), std::max<std::int64_t>(pads.after[k], 0),
                  edge);
    pads.before[k] = std::min<std::int64_t>(pads.before[k], 0);
    pads.after[k] = std::min<std::int64_t>(pads.after[k], 0);
  }
  return cropped(b, op, x, pads);
}

}  // namespace tosaic
