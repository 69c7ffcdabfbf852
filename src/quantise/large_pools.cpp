// SPDX-License-Identifier: Apache-2.0
// Averages over many elements. A pool keeps its quantised values' scale, which suits a few neighbours; the average of a
// whole map is much smaller than its largest element where the map is signed or sparse, and has few quantised values
// left. So it becomes a sum with a range of its own: a mean over the whole map, a depthwise convolution with equal
// weights (exact in 8 bits) over windows, a mean over tiles where an NPU has no convolution of such strides. So does
// what divides by a number of its own (divisor_override), whatever its window.
#include "quantise/large_pools.h"

#include <algorithm>
#include <optional>

#include "ir/aten_operators.h"
#include "ir/rewriter.h"
#include "ops/composer.h"
#include "ops/lowering/calls.h"
#include "ops/op.h"

namespace tosaic {
namespace {

using Ints = std::vector<std::int64_t>;

constexpr std::int64_t many = 16;     // elements of a window
constexpr std::int64_t longest = 64;  // side of a window that NPUs have as a convolution
constexpr std::int64_t longest_stride = 3;

Ints spread(const Node& node, std::string_view name, std::size_t count, std::int64_t otherwise) {
  const Attr* attr = node.attrs.find(name);
  Ints list;
  if (const auto* one = attr ? std::get_if<std::int64_t>(attr) : nullptr) list = {*one};
  if (const auto* all = attr ? std::get_if<Ints>(attr) : nullptr) list = *all;
  if (list.empty() && otherwise != 0) list = {otherwise};
  if (list.size() == 1) list.resize(count, list[0]);
  return list;
}

struct Windows {
  Ints kernel, stride, padding;
  std::optional<std::int64_t> divisor;
};

// Windows that all count as many elements.
std::optional<Windows> windows_of(const Graph& graph, const Node& node) {
  const FoundOp found = find_aten(node.op);
  if (!found.op) return std::nullopt;
  const std::string& name = found.schema->name;
  const bool adaptive = name.find("adaptive_avg_pool") != name.npos;
  if (!adaptive && !name.starts_with("avg_pool")) return std::nullopt;
  const std::size_t dims = static_cast<std::size_t>(name.back() == 'd' ? name[name.size() - 2] - '0' : 0);
  const Value& x = graph[node.inputs[0]];
  if (dims < 1 || dims > 3 || x.type.dtype != DType::f32 || x.type.quantised() || x.is_constant() ||
      !x.type.shape.is_static() || x.type.rank() < static_cast<int>(dims) + 1)
    return std::nullopt;
  Windows w;
  const auto size = [&](std::size_t k) { return x.type.shape.size(x.type.rank() - static_cast<int>(dims - k)); };
  if (adaptive) {
    const Ints out = spread(node, "output_size", dims, 0);
    if (out.size() != dims) return std::nullopt;
    for (std::size_t k = 0; k < dims; ++k) {
      if (out[k] < 1 || size(k) % out[k] != 0) return std::nullopt;
      w.kernel.push_back(size(k) / out[k]);
    }
    w.stride = w.kernel;
    w.padding.assign(dims, 0);
    return w;
  }
  w.kernel = spread(node, "kernel_size", dims, 0);
  w.stride = spread(node, "stride", dims, 0);
  w.padding = spread(node, "padding", dims, 0);
  if (w.stride.empty()) w.stride = w.kernel;
  w.padding.resize(dims, w.padding.empty() ? 0 : w.padding[0]);
  if (w.kernel.size() != dims || w.stride.size() != dims) return std::nullopt;
  const Attr* divisor = node.attrs.find("divisor_override");
  if (divisor && std::holds_alternative<std::int64_t>(*divisor)) w.divisor = std::get<std::int64_t>(*divisor);
  const bool padded = std::any_of(w.padding.begin(), w.padding.end(), [](std::int64_t p) { return p != 0; });
  if (padded && !w.divisor && !node.attrs.get_or("count_include_pad", true)) return std::nullopt;
  for (std::size_t k = 0; k < dims; ++k)
    if (w.kernel[k] < 1 || w.stride[k] < 1 || size(k) + 2 * w.padding[k] < w.kernel[k] ||
        (node.attrs.get_or("ceil_mode", false) && (size(k) + 2 * w.padding[k] - w.kernel[k]) % w.stride[k] != 0))
      return std::nullopt;
  if (w.divisor && *w.divisor < 1) return std::nullopt;
  return w;
}

class Pools {
 public:
  Pools(Graph& graph, std::vector<char>& inner, const QuantiseOptions& options)
      : graph_(graph),
        inner_(inner),
        options_(options),
        any_stride_(!options.spec || !options.spec->product),
        out_(graph) {}

  void run() {
    for (Node& node : out_.nodes()) {
      const auto windows = node.inputs.empty() || node.inputs[0] == no_value ? std::nullopt : windows_of(graph_, node);
      if (!windows || !stay(node, *windows) ||
          !(whole(node, *windows) || by_convolution(node, *windows) || by_tiles(node, *windows)))
        out_.keep(std::move(node));
    }
    inner_.resize(graph_.values.size(), 1);
  }

 private:
  // Are they the same windows whatever the program's sizes are?
  bool stay(const Node& node, const Windows& w) const {
    const int rank = graph_[node.inputs[0]].type.rank(), dims = static_cast<int>(w.kernel.size());
    for (int dim = rank - dims; dim < rank; ++dim)
      if (!size_stays(options_, graph_, node.inputs[0], dim)) return false;
    return true;
  }

  // One window, as large as the map.
  bool whole(const Node& node, const Windows& w) {
    const Shape& x = graph_[node.inputs[0]].type.shape;
    std::int64_t elements = 1;
    Ints dims;
    for (std::size_t k = 0; k < w.kernel.size(); ++k) {
      const int dim = x.rank() - static_cast<int>(w.kernel.size() - k);
      if (w.kernel[k] != x.size(dim) || w.padding[k] != 0) return false;
      dims.push_back(dim);
      elements *= w.kernel[k];
    }
    if (elements < many || w.divisor) return false;
    out_.add(aten::op::mean_dim, {node.inputs[0]}, {{"dim", dims}, {"keepdim", true}}, node.outputs[0], node.loc);
    return true;
  }

  bool by_convolution(const Node& node, const Windows& w) {
    const Shape& x = graph_[node.inputs[0]].type.shape;
    const std::size_t dims = w.kernel.size();
    std::int64_t elements = 1;
    for (std::int64_t k : w.kernel) elements *= k;
    if (dims > 2 || x.rank() != static_cast<int>(dims) + 2 || (elements < many && !w.divisor) ||
        std::any_of(w.kernel.begin(), w.kernel.end(), [](std::int64_t k) { return k > longest; }))
      return false;
    const Shape& y = graph_[node.outputs[0]].type.shape;
    for (std::size_t k = 0; k < dims && !any_stride_; ++k)
      if (w.stride[k] > longest_stride && y.size(2 + static_cast<int>(k)) > 1) return false;
    const std::int64_t channels = x.size(1);
    Ints shape{channels, 1};
    shape.insert(shape.end(), w.kernel.begin(), w.kernel.end());
    const double weight = 1.0 / static_cast<double>(w.divisor.value_or(elements));
    const ValueId weights = graph_.add_value(
        "averaging", {DType::f32, Shape(shape), {}},
        constant_bytes(DType::f32, std::vector<double>(static_cast<std::size_t>(channels * elements), weight)));
    out_.add(dims == 1 ? aten::op::conv1d : aten::op::conv2d, {node.inputs[0], weights, no_value},
             {{"stride", w.stride}, {"padding", w.padding}, {"groups", channels}}, node.outputs[0], node.loc);
    return true;
  }

  // Windows side by side that are the map: x as [N * C, rows, of a tile, columns, of a tile], and a mean.
  bool by_tiles(const Node& node, const Windows& w) {
    const Shape& x = graph_[node.inputs[0]].type.shape;
    std::int64_t elements = 1, others = 1;
    Ints split, dims;
    for (std::size_t k = 0; k < w.kernel.size(); ++k) {
      const std::int64_t size = x.size(x.rank() - static_cast<int>(w.kernel.size() - k));
      if (w.padding[k] != 0 || w.stride[k] != w.kernel[k] || size % w.kernel[k] != 0) return false;
      split.insert(split.end(), {size / w.kernel[k], w.kernel[k]});
      dims.push_back(static_cast<std::int64_t>(split.size()));
      elements *= w.kernel[k];
    }
    if (w.kernel.size() > 2 || elements < many || w.divisor) return false;
    for (int i = 0; i + static_cast<int>(w.kernel.size()) < x.rank(); ++i) others *= x.size(i);
    split.insert(split.begin(), others);
    Composer c(graph_, [](Operator op) { return op == aten::op::view ? "tiles" : "mean"; });
    c.set_loc(node.loc);
    const Val tiles = calls::view(c.value(node.inputs[0]), Shape(split));
    const Val mean = c.aten(aten::op::mean_dim, {tiles}, {{"dim", dims}, {"keepdim", false}});
    const ValueId y = node.outputs[0];
    out_.add(aten::op::view, {mean.id()}, {{"size", graph_[y].type.shape.sizes()}}, y, node.loc);
    return true;
  }

  Graph& graph_;
  std::vector<char>& inner_;
  const QuantiseOptions& options_;
  const bool any_stride_;
  Rewriter out_;
};

}  // namespace

void average_with_ranges(Graph& graph, std::vector<char>& inner, const QuantiseOptions& options) {
  Pools(graph, inner, options).run();
}

}  // namespace tosaic
