// SPDX-License-Identifier: Apache-2.0
// Two quantised values of -8..7 in a byte b = 16 h + l, with h the second half's code and l that of the first half plus
// 8:
//   h = floor(b / 16), l = b - 16 h
// exact in floats of any width, so that the profile without integers has packed weights, too.
#include <algorithm>
#include <atomic>

#include "base/parallel.h"
#include "ir/rewriter.h"
#include "ir/tosa_operators.h"
#include "ops/definitions/tosa_op.h"
#include "tidy/tidy.h"

namespace tosaic {
namespace {

constexpr std::size_t least_elements = 1 << 14;
constexpr std::size_t grain = 1 << 18, block = 1 << 12;  // elements of a thread, and between its looks at the others

bool fits(const Graph& graph, const Node& node) {
  if (node.op != tosa::op::cast || !is_float(graph[node.outputs[0]].type.dtype)) return false;
  const Value& quantised = graph[node.inputs[0]];
  const Shape& shape = quantised.type.shape;
  if (quantised.type.dtype != DType::i8 || quantised.constant.size() < least_elements ||
      shape.size(shape.rank() - 1) % 2 != 0)
    return false;
  const auto all = quantised.constant.as<std::int8_t>();
  std::atomic<bool> wide = false;
  in_parallel(all.size(), grain, [&](std::size_t first, std::size_t end) {
    for (; first < end && !wide; first += block) {
      std::uint8_t any = 0;
      for (const std::int8_t value : all.subspan(first, std::min(block, end - first)))
        any |= static_cast<std::uint8_t>(value + 8);
      if (any > 15) wide = true;
    }
  });
  return !wide;
}

Bytes packed(const Value& quantised) {
  const Shape& shape = quantised.type.shape;
  const auto row = static_cast<std::size_t>(shape.size(shape.rank() - 1)), half = row / 2;
  const auto from = quantised.constant.as<std::int8_t>();
  std::int8_t* to = nullptr;
  Bytes bytes = Bytes::fresh(from.size() / 2, to);
  in_parallel(from.size() / row, grain / row + 1, [&](std::size_t r, std::size_t end) {
    for (; r < end; ++r)
      for (std::size_t i = 0; i < half; ++i)
        to[r * half + i] = static_cast<std::int8_t>(from[r * row + half + i] * 16 + from[r * row + i] + 8);
  });
  return bytes;
}

class Packing {
 public:
  Packing(Graph& graph, Rewriter& out) : graph_(graph), out_(out) {}

  void pack(Node node) {
    const Value quantised = graph_[node.inputs[0]];
    const TensorType whole = graph_[node.outputs[0]].type;
    name_ = quantised.name;
    loc_ = node.loc;
    std::vector<std::int64_t> sizes = whole.shape.sizes();
    sizes.back() /= 2;
    half_ = {whole.dtype, Shape(sizes), {}};
    const ValueId both =
        add(tosa::op::cast, {graph_.add_value(name_ + ".packed", half_.with(DType::i8), packed(quantised))});
    const ValueId second = add(tosa::op::floor, {add(tosa::op::mul, {both, number(0.0625), unshifted()})});
    const ValueId first = add(tosa::op::sub, {both, add(tosa::op::mul, {second, number(16), unshifted()})});
    const Attrs last{{"axis", std::int64_t{whole.shape.rank() - 1}}};
    out_.add(tosa::op::concat, {add(tosa::op::sub, {first, number(8)}), second}, last, node.outputs[0], loc_);
  }

 private:
  Graph& graph_;
  Rewriter& out_;
  std::string name_;
  LocRef loc_;
  TensorType half_;

  ValueId add(Operator op, std::vector<ValueId> inputs) {
    return out_.add(op, std::move(inputs), {}, graph_.add_value(name_ + ".half", half_), loc_);
  }
  ValueId number(double value) {
    const Shape ones(std::vector<std::int64_t>(static_cast<std::size_t>(half_.shape.rank()), 1));
    return graph_.add_value(name_ + ".number", {half_.dtype, ones, {}},
                            constant_bytes(half_.dtype, std::vector<double>{value}));
  }
  ValueId unshifted() {
    return graph_.add_value(name_ + ".shift", {DType::i8, Shape{1}, {}},
                            constant_bytes(DType::i8, std::vector<std::int64_t>{0}));
  }
};

}  // namespace

void pack_int4(Graph& graph) {
  Rewriter out(graph);
  Packing packing(graph, out);
  out.each([&](Node& node) { fits(graph, node) ? packing.pack(std::move(node)) : out.keep(std::move(node)); });
  share_equal(graph);
  drop_dead(graph);
  make_names_unique(graph);
}

}  // namespace tosaic
