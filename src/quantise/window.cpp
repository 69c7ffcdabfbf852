// SPDX-License-Identifier: Apache-2.0
#include "quantise/window.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "ir/tosa_operators.h"
#include "ops/definitions/tosa_op.h"
#include "ops/lowering/weight.h"
#include "ops/op.h"

namespace tosaic {
namespace {

// One number per spatial dim, as the schema has it where the call has none.
Ints spread(const Schema& schema, const Node& node, const char* name, std::size_t dims, std::int64_t otherwise) {
  const Attr* given = node.attrs.find(name);
  if (!given && schema.argument(name)) given = &schema.argument(name)->default_value;
  Ints list;
  if (given && std::holds_alternative<Ints>(*given)) list = std::get<Ints>(*given);
  if (given && std::holds_alternative<std::int64_t>(*given)) list = {std::get<std::int64_t>(*given)};
  if (list.empty()) list = {otherwise};
  list.resize(dims, list[0]);
  return list;
}

std::vector<Ints> dense(const Ints& sizes) {
  std::vector<Ints> offsets(sizes.size());
  std::int64_t stride = 1;
  for (std::size_t d = sizes.size(); d-- > 0; stride *= sizes[d])
    for (std::int64_t i = 0; i < sizes[d]; ++i) offsets[d].push_back(i * stride);
  return offsets;
}

// One dim as several. False: where one of their indices leads depends on the others.
bool split(const Ints& all, std::span<const std::int64_t> sizes, std::vector<Ints>& offsets) {
  const std::size_t first = offsets.size();
  auto stride = static_cast<std::int64_t>(all.size());
  for (const std::int64_t size : sizes) {
    stride /= size;
    Ints& dim = offsets.emplace_back();
    for (std::int64_t i = 0; i < size; ++i)
      dim.push_back(all[static_cast<std::size_t>(i * stride)] - (offsets.size() - 1 == first ? 0 : all[0]));
  }
  return joined(std::span(offsets).subspan(first)) == all;
}

// Dims of `offsets` as dims of other sizes: those whose product is the same, from the left, belong together.
std::optional<std::vector<Ints>> reshaped(const std::vector<Ints>& offsets, const Ints& to) {
  std::vector<Ints> found;
  std::size_t d = 0, t = 0;
  while (t < to.size()) {
    const std::size_t first = t, first_from = d;
    auto wanted = to[t++];
    std::int64_t have = 1;
    while (have != wanted)
      if (have < wanted)
        have *= static_cast<std::int64_t>(offsets[d++].size());
      else
        wanted *= to[t++];
    const Ints one = joined(std::span(offsets).subspan(first_from, d - first_from));
    if (!split(one, std::span(to).subspan(first, t - first), found)) return std::nullopt;
  }
  return found;
}

std::optional<std::vector<Ints>> offsets_behind(const Shape& from, const std::vector<Move>& moves) {
  std::optional<std::vector<Ints>> offsets = dense(from.sizes());
  for (const Move& move : moves) {
    if (move.node.op == tosa::op::transpose) {
      std::vector<Ints> permuted;
      for (const std::int64_t d : move.node.attrs.get<Ints>("perms"))
        permuted.push_back(std::move((*offsets)[static_cast<std::size_t>(d)]));
      offsets = std::move(permuted);
    } else {
      offsets = reshaped(*offsets, move.to.shape.sizes());
    }
    if (!offsets) return std::nullopt;
  }
  return offsets;
}

Bytes moved(std::span<const float> x, TensorType type, const std::vector<Move>& moves) {
  Bytes content = Bytes::copy(x.data(), x.size_bytes());
  for (const Move& move : moves) {
    Graph one;
    Node node = move.node;
    node.inputs = {one.add_value("x", type, content)};
    type.shape = move.to.shape;
    if (node.op != tosa::op::transpose) continue;
    node.outputs = {one.add_value("y", type)};
    content = *tosa::constant_result(one, node, *tosa::find(node.op), type);
  }
  return content;
}

}  // namespace

std::int64_t product(std::span<const std::int64_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

std::optional<Window> window_of(const Graph& graph, const Node& node) {
  const Schema& schema = *find_aten(node.op).schema;
  const ValueId x = node.inputs[0];
  if (x == no_value || graph[x].is_constant() || node.outputs.empty() || node.outputs[0] == no_value) return {};
  const Shape &from = graph[x].type.shape, &to = graph[node.outputs[0]].type.shape,
              &weight = graph[node.inputs[1]].type.shape;
  if (!from.is_static() || !to.is_static() || from.is_empty() || to.is_empty() || weight.rank() < 2) return {};
  const auto dims = static_cast<std::size_t>(weight.rank() - 2);
  const Ints& sizes = weight.sizes();
  if (from.rank() < static_cast<int>(dims) + 1) return {};
  Window window;
  window.x = x;
  window.input = from.sizes();
  window.kernel = Ints(sizes.begin() + 2, sizes.end());
  window.stride = spread(schema, node, "stride", dims, 1);
  window.dilation = spread(schema, node, "dilation", dims, 1);
  window.padding = spread(schema, node, "padding", dims, 0);
  const Attr* mode = node.attrs.find("padding");
  if (const auto* text = mode ? std::get_if<std::string>(mode) : nullptr)
    for (std::size_t d = 0; d < dims; ++d)
      window.padding[d] = *text == "same" ? window.dilation[d] * (window.kernel[d] - 1) / 2 : 0;
  window.groups = node.attrs.get_or<std::int64_t>("groups", 1);
  window.transposed = weight_axis(schema, node.attrs) != 0;
  const std::size_t channel = window.channel();
  if (window.channels() != (window.transposed ? sizes[0] : window.groups * sizes[1])) return {};
  window.output = Ints(to.sizes().begin(), to.sizes().begin() + static_cast<std::ptrdiff_t>(channel));
  window.output.insert(window.output.end(), to.sizes().end() - static_cast<std::ptrdiff_t>(dims), to.sizes().end());
  return window;
}

Ints joined(std::span<const Ints> offsets) {
  Ints all{0};
  for (const Ints& dim : offsets) {
    Ints next;
    next.reserve(all.size() * dim.size());
    for (const std::int64_t from : all)
      for (const std::int64_t at : dim) next.push_back(from + at);
    all = std::move(next);
  }
  return all;
}

const Placed& Look::placed() const {
  if (placed_) return *placed_;
  if (auto offsets = offsets_behind(type_.shape, moves_)) {
    placed_ = Placed{x_.data(), std::move(*offsets)};
  } else {
    Bytes copy = moved(x_, type_, moves_);
    const float* elements = copy.as<float>().data();
    placed_ = Placed{elements, dense(moves_.back().to.shape.sizes()), std::move(copy)};
  }
  return *placed_;
}

}  // namespace tosaic
