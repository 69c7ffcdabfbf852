// SPDX-License-Identifier: Apache-2.0
#include "normalise/split_weights.h"

#include <fmt/format.h>
#include <algorithm>
#include <bit>
#include <cstring>
#include <map>

#include "ir/aten_operators.h"
#include "ir/rewriter.h"
#include "ir/tensor.h"
#include "ops/composer.h"

namespace tosaic {
namespace {

// Where there is room, pieces begin at whole groups of quantised values, and at rows that kernels take together.
constexpr std::int64_t step = 128;

// A stretch of a matrix, along its rows or columns.
struct Stretch {
  int dim;
  std::int64_t begin, count;
  auto operator<=>(const Stretch&) const = default;
};

class Splitter {
 public:
  Splitter(Graph& graph, std::uint64_t most_bytes)
      : graph_(graph), most_bytes_(most_bytes), out_(graph), c_(graph, [this](Operator) { return name_; }) {
    c_.fold(false);
    for (const Node& node : out_.nodes())
      if (node.op == torchao::op::dequantize_affine) of_quantised_.emplace(node.outputs[0], node);
  }

  void run() {
    out_.each([&](Node& node) {
      if (node.op == aten::op::linear && (node.inputs.size() < 3 || !is_computed(node.inputs[2])))
        split(node, 1, 0);
      else if (node.op == aten::op::embedding)
        split(node, 0, 1);
      else
        out_.keep(std::move(node));
    });
  }

 private:
  void split(Node& node, std::size_t at, int dim) {
    const ValueId weight = node.inputs[at];
    const std::int64_t width = width_of_parts(weight, dim);
    if (width == 0) return out_.keep(std::move(node));
    std::vector<ValueId> results;
    const std::int64_t end = graph_[weight].type.shape.size(dim);
    for (std::int64_t begin = 0; begin < end; begin += width) {
      const Stretch stretch{dim, begin, std::min(width, end - begin)};
      std::vector<ValueId> inputs = node.inputs;
      inputs[at] = part(weight, stretch, node.loc);
      if (dim == 0 && inputs.size() > 2 && inputs[2] != no_value)
        inputs[2] = cut(inputs[2], {0, stretch.begin, stretch.count});
      results.push_back(part_node(node.op, inputs, node.attrs, graph_[node.outputs[0]], stretch, node.loc));
    }
    const std::int64_t last = graph_[node.outputs[0]].type.rank() - 1;
    out_.add(aten::op::cat, std::move(results), {{"dim", last}}, node.outputs[0], node.loc);
  }

  // The call on a piece of its operands gives that piece of the whole result.
  ValueId part_node(Operator op, const std::vector<ValueId>& inputs, const Attrs& attrs, const Value& whole,
                    const Stretch& stretch, const LocRef& loc) {
    c_.set_loc(loc);
    name_ = name_of(whole, stretch);
    return c_.aten(op, c_.values(inputs), attrs).id();
  }

  // Along the dim; 0: it stays whole.
  std::int64_t width_of_parts(ValueId matrix, int dim) const {
    const TensorType& type = graph_[matrix].type;
    if (!is_float(type.dtype) || type.quantised() || type.rank() != 2 || !type.shape.is_static()) return 0;
    const auto bytes = static_cast<std::uint64_t>(type.storage_bytes());
    const std::int64_t all = type.shape.size(dim);
    if (bytes <= most_bytes_) return 0;
    const auto fit = static_cast<std::int64_t>(most_bytes_ / (bytes / static_cast<std::uint64_t>(all)));
    if (fit == 0) return 0;
    const auto unit = std::min(step, static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(fit))));
    if (!graph_[matrix].is_constant() && !dequantisation(matrix, dim, unit)) return 0;
    const std::int64_t parts = (all + fit - 1) / fit, even = (all + parts - 1) / parts;
    return std::min((even + unit - 1) / unit, fit / unit) * unit;
  }

  bool is_computed(ValueId v) const { return v != no_value && !graph_[v].is_constant(); }

  // The call that makes the matrix of constant quantised values, with scales of rows, or of groups in them that fill
  // the unit.
  const Node* dequantisation(ValueId matrix, int dim, std::int64_t unit) const {
    const auto found = of_quantised_.find(matrix);
    if (found == of_quantised_.end()) return nullptr;
    const Node& node = found->second;
    if (std::ranges::any_of(node.inputs, [&](ValueId v) { return is_computed(v); })) return nullptr;
    const auto block = node.attrs.get_or<std::vector<std::int64_t>>("block_size", {});
    const std::int64_t columns = graph_[matrix].type.shape.size(1);
    const bool whole_rows = block.size() == 2 && block[1] == columns;
    return block.size() == 2 && block[0] == 1 && (dim == 0 || whole_rows || unit % block[1] == 0) ? &node : nullptr;
  }

  ValueId part(ValueId matrix, const Stretch& stretch, const LocRef& loc) {
    if (graph_[matrix].is_constant()) return cut(matrix, stretch);
    const auto [known, added] = parts_.try_emplace({matrix, stretch}, no_value);
    if (!added) return known->second;
    const Node made = of_quantised_.at(matrix);
    Attrs attrs = made.attrs;
    auto block = attrs.get<std::vector<std::int64_t>>("block_size");
    const std::int64_t rows = graph_[matrix].type.shape.size(0), columns = graph_[matrix].type.shape.size(1);
    const std::int64_t groups = columns / block[1];
    // Of [rows, groups] scales and zero points; one of a row is that of each piece of it.
    const Stretch by_group =
        stretch.dim == 0 ? stretch : Stretch{1, stretch.begin / block[1], stretch.count / block[1]};
    std::vector<ValueId> inputs{cut(made.inputs[0], stretch)};
    for (std::size_t i = 1; i < made.inputs.size(); ++i) {
      const bool cuts = made.inputs[i] != no_value && (stretch.dim == 0 || groups > 1);
      inputs.push_back(cuts ? cut(made.inputs[i], by_group, {rows, groups}) : made.inputs[i]);
    }
    if (stretch.dim == 1 && groups == 1) block[1] = stretch.count;
    attrs.set("block_size", std::move(block));
    return known->second = part_node(made.op, inputs, attrs, graph_[matrix], stretch, loc);
  }

  // Of a constant, seen as a matrix of these sizes. Rows stay where they lie.
  ValueId cut(ValueId whole, const Stretch& stretch, std::vector<std::int64_t> sizes = {}) {
    const auto [known, added] = parts_.try_emplace({whole, stretch}, no_value);
    if (!added) return known->second;
    const Value value = graph_[whole];
    if (sizes.empty()) sizes = value.type.shape.sizes();
    const std::size_t row = value.constant.size() / static_cast<std::size_t>(sizes[0]);
    const auto begin = static_cast<std::size_t>(stretch.begin), count = static_cast<std::size_t>(stretch.count);
    Bytes bytes;
    if (stretch.dim == 0) {
      bytes = value.constant.slice(begin * row, count * row);
    } else {
      const std::size_t element = storage_size(value.type.dtype);
      std::byte* to = nullptr;
      bytes = Bytes::fresh(static_cast<std::size_t>(sizes[0]) * count * element, to);
      for (std::size_t r = 0; r < static_cast<std::size_t>(sizes[0]); ++r)
        std::memcpy(to + r * count * element, value.constant.data() + r * row + begin * element, count * element);
    }
    sizes[static_cast<std::size_t>(stretch.dim)] = stretch.count;
    return known->second = graph_.add_value(name_of(value, stretch), {value.type.dtype, Shape(std::move(sizes)), {}},
                                            std::move(bytes));
  }

  static std::string name_of(const Value& whole, const Stretch& stretch) {
    return fmt::format("{}.{}_{}", whole.name, stretch.dim == 0 ? "rows" : "columns", stretch.begin);
  }

  Graph& graph_;
  const std::uint64_t most_bytes_;
  Rewriter out_;
  Composer c_;
  std::string name_;  // of the next piece
  std::map<ValueId, Node> of_quantised_;
  std::map<std::pair<ValueId, Stretch>, ValueId> parts_;  // layers share weights
};

}  // namespace

Status split_weights(Graph& graph, std::uint64_t most_bytes) {
  if (most_bytes == 0) return {};
  TOSAIC_CHECK(unless_refused([&]() -> Status {
    Splitter(graph, most_bytes).run();
    return {};
  }));
  drop_dead(graph);
  make_names_unique(graph);
  return {};
}

}  // namespace tosaic
