// SPDX-License-Identifier: Apache-2.0
#include "shaders/coded_weights.h"

#include <algorithm>

#include "ir/tosa_operators.h"
#include "plan/coded_form.h"
#include "plan/row_codes.h"
#include "plan/uses.h"
#include "shaders/product.h"
#include "shaders/steps.h"

namespace tosaic::shaders {
namespace {

constexpr std::int64_t longest_sum = 1 << 16;  // of 255 times 128, which 32 bits hold

// An i8 product by constant codes, which count from 0 as those of the other factor do.
bool multiplies_integers(const tosa::View& view) {
  const auto counts_from_0 = [&](std::size_t operand) {
    const auto zero = view.constant_integers(operand);
    return zero && zero->at(0) == 0;
  };
  const Shape& weight = view.in(1).shape;
  return view.in(0).dtype == DType::i8 && view.in(1).dtype == DType::i8 && view.out().dtype == DType::i32 &&
         !view.constant(1).null() && weight.size(1) % 4 == 0 && weight.size(1) <= longest_sum && counts_from_0(2) &&
         counts_from_0(3);
}

// Which operand of a node may be codes, and how many rows it then has; 0: none. MATMUL has them as columns.
struct Reading {
  std::size_t operand = 0;
  std::int64_t rows = 0;
  bool by_columns = false;
};
Reading reading_of(const Graph& graph, const Node& node) {
  const tosa::View view(graph, node);
  if (node.op == tosa::op::gather) {
    const TensorType& table = view.in(0);
    return {0, is_float(table.dtype) && table.shape.is_static() && table.shape.size(0) == 1 ? table.shape.size(1) : 0};
  }
  if (node.op == tosa::op::matmul) {
    const TensorType& weight = view.in(1);
    const bool one = weight.shape.is_static() && weight.shape.size(0) == 1;
    return {1, one && (is_float(weight.dtype) || multiplies_integers(view)) ? weight.shape.size(2) : 0, true};
  }
  if (node.op != tosa::op::conv2d || !is_float(view.in(1).dtype) || !view.in(1).shape.is_static()) return {};
  return {1, is_plain(view) ? view.in(1).shape.size(0) : 0};
}

const Node* maker(const Graph& graph, ValueId v) {
  for (std::size_t n = graph.nodes.size(); n-- > 0;)
    if (std::ranges::find(graph.nodes[n].outputs, v) != graph.nodes[n].outputs.end()) return &graph.nodes[n];
  return nullptr;
}
ValueId behind_views(const Graph& graph, ValueId v) {
  for (const Node* node = maker(graph, v); node && is_view(*node); node = maker(graph, v)) v = node->inputs[0];
  return v;
}

bool is_cast_codes(const Graph& graph, const Node& node) {
  return node.op == tosa::op::cast && graph[node.inputs[0]].is_constant() &&
         graph[node.inputs[0]].type.dtype == DType::i8;
}

// The codes, and the product of them and scales, if there are any, behind views.
struct Found {
  const Node* product = nullptr;
  ValueId codes = no_value;
};
Found found_in(const Graph& graph, ValueId weight) {
  if (graph[weight].is_constant()) return {nullptr, graph[weight].type.dtype == DType::i8 ? weight : no_value};
  const Node* product = maker(graph, behind_views(graph, weight));
  if (!product) return {};
  if (is_cast_codes(graph, *product)) return {nullptr, product->inputs[0]};
  if (product->op != tosa::op::mul) return {};
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
    const Node* cast = maker(graph, behind_views(graph, product->inputs[i]));
    if (cast && is_cast_codes(graph, *cast) && graph[product->inputs[1 - i]].is_constant())
      return {product, cast->inputs[0]};
  }
  return {};
}

// Of a product by a weight of codes: the elements of its rows, if codes of those can be multiplied; else 0.
std::int64_t depth_of_codes(const Graph& graph, const Node& node) {
  if (node.op == tosa::op::gather || !has_codes(graph, node)) return 0;
  const Reading r = reading_of(graph, node);
  const ValueId weight = node.inputs[r.operand];
  const std::int64_t depth = graph[weight].type.shape.elements() / r.rows;
  const Found found = found_in(graph, weight);
  const auto form = found.product ? plan::coded_form(graph, *found.product, depth) : std::nullopt;
  const std::int64_t group = form ? form->group : depth;
  return (found.product && !form) || group % 4 != 0 || group > longest_sum ? 0 : depth;
}

class Weights {
 public:
  explicit Weights(const Graph& graph) : graph_(graph), uses_(graph), fixed_(graph.values.size(), false) {
    for (ValueId v = 0; v < graph.values.size(); ++v) fixed_[v] = graph[v].is_constant() && !graph[v].size;
    for (const Node& node : graph.nodes)
      if (const tosa::Op* op = tosa::find(node.op); op && op->eval && is_fixed(node)) {
        fixed_[node.outputs[0]] = true;
        any_ = any_ || (node.op == tosa::op::cast && graph[node.inputs[0]].type.dtype == DType::i8);
      }
  }
  // Are there codes that become other numbers?
  bool any() const { return any_; }

  Graph made() {
    for (const Node& node : graph_.nodes)
      if (const Reading r = reading_of(graph_, node); r.rows > 0) keep(node, r);
    fold();
    std::vector<Node> nodes;
    for (Node& node : graph_.nodes) {
      if (node.op == tosa::op::mul && kept(node.outputs[0])) code(node.outputs[0], nodes);
      nodes.push_back(std::move(node));
    }
    graph_.nodes = std::move(nodes);
    fold();  // what turned out to be no codes
    take_activations();
    drop_dead(graph_);
    return std::move(graph_);
  }

 private:
  bool is_fixed(const Node& node) const {
    return !node.inputs.empty() && node.outputs.size() == 1 && node.regions.empty() && node.op != tosa::op::custom &&
           !tosa::is_variable(node.op) && !uses_.visible[node.outputs[0]] &&
           std::ranges::all_of(node.inputs, [&](ValueId v) { return v != no_value && fixed_[v]; });
  }
  bool kept(ValueId product) const { return std::ranges::find(kept_, product) != kept_.end(); }

  // Does nothing else than products and look-ups read it?
  bool is_read_as_codes(ValueId v) const {
    return std::ranges::all_of(uses_.users[v], [&](std::uint32_t n) {
      const Node& user = uses_.node(n);
      if (is_view(user)) return is_read_as_codes(user.outputs[0]);
      const Reading r = reading_of(uses_.graph, user);
      return r.rows > 0 && user.inputs[r.operand] == v;
    });
  }
  void keep(const Node& node, const Reading& r) {
    ValueId v = node.inputs[r.operand];
    if (!fixed_[v] || graph_[v].is_constant()) return;
    const std::int64_t depth = graph_[v].type.shape.elements() / r.rows;
    v = behind_views(graph_, v);
    const Node* product = maker(graph_, v);
    if (!product || kept(v) || !is_read_as_codes(v)) return;
    const bool scaled =
        product->op == tosa::op::mul && !r.by_columns && plan::coded_form(graph_, *product, depth).has_value();
    if (scaled || is_cast_codes(graph_, *product)) kept_.push_back(v);
  }

  void fold() {
    for (const Node& node : graph_.nodes) {
      if (node.outputs.size() != 1 || graph_[node.outputs[0]].is_constant() || kept(node.outputs[0])) continue;
      const tosa::Op* op = tosa::find(node.op);
      if (!op || !op->eval || node.inputs.empty() || !fixed_[node.outputs[0]] || stays(node)) continue;
      if (!std::ranges::all_of(node.inputs, [&](ValueId v) { return graph_[v].is_constant(); })) continue;
      tosaic::Value& result = graph_[node.outputs[0]];
      if (auto content = tosa::constant_result(graph_, node, *op, result.type)) result.constant = *std::move(content);
    }
  }
  // Codes as they are, which are no numbers before somebody wants to see them.
  bool stays(const Node& node) const {
    return is_cast_codes(graph_, node) && std::ranges::all_of(uses_.users[node.outputs[0]], [&](std::uint32_t n) {
             return kept(uses_.node(n).outputs[0]) ||
                    (is_view(uses_.node(n)) && leads_to_codes(uses_.node(n).outputs[0]));
           });
  }
  bool leads_to_codes(ValueId v) const {
    return std::ranges::all_of(uses_.users[v], [&](std::uint32_t n) { return kept(uses_.node(n).outputs[0]); });
  }

  // mul(x, scales) of whole numbers x becomes mul(cast(codes), scales); of others it is kept no longer.
  void code(ValueId product, std::vector<Node>& before) {
    const Node& mul = *maker(graph_, product);
    const std::int64_t row = graph_[product].type.shape.size(graph_[product].type.shape.rank() - 1);
    const auto form = plan::coded_form(graph_, mul, row);
    const ValueId x = form ? form->codes : no_value;
    const bool folded = x != no_value && graph_[x].is_constant() && graph_[form->scales].is_constant();
    if (x != no_value && !graph_[x].is_constant() && graph_[form->scales].is_constant()) return;  // codes as they are
    if (!folded || graph_[x].type.dtype != DType::f32 || plan::bits_of_codes(graph_[x].constant.as<float>()) == 0) {
      std::erase(kept_, product);
      return;
    }
    std::int8_t* to = nullptr;
    const std::span<const float> numbers = graph_[x].constant.as<float>();
    const Bytes codes = Bytes::fresh(numbers.size(), to);
    std::ranges::transform(numbers, to, [](float c) { return static_cast<std::int8_t>(c); });
    const ValueId v = graph_.add_value(graph_[x].name + ".codes", graph_[x].type.with(DType::i8), codes);
    graph_[x].constant = {};
    before.push_back({.op = tosa::op::cast, .inputs = {v}, .attrs = {}, .outputs = {x}, .loc = mul.loc, .regions = {}});
  }

  // Products by codes read those of their activations, too.
  void take_activations() {
    const std::vector<std::int32_t> producer = producers(graph_);
    for (Node& node : graph_.nodes) {
      const std::int64_t depth = depth_of_codes(graph_, node);
      if (depth == 0) continue;
      const auto codes = plan::row_codes(graph_, producer, node.inputs[0], depth);
      if (codes && (codes->zero == no_value || is_cast_code(codes->zero))) plan::read_row_codes(node, *codes);
    }
  }

  // Whole numbers of 8 bits, which sums of 32 bits have room for.
  bool is_cast_code(ValueId v) const {
    const Node* cast = maker(graph_, behind_views(graph_, v));
    return cast && cast->op == tosa::op::cast && graph_[cast->inputs[0]].type.dtype == DType::i8;
  }

  Graph graph_;
  const plan::Uses uses_;
  std::vector<bool> fixed_;    // follows from constants
  std::vector<ValueId> kept_;  // products of codes and scales
  bool any_ = false;
};

std::vector<float> numbers_of(const tosaic::Value& constant) {
  std::vector<float> list(static_cast<std::size_t>(constant.type.shape.elements()));
  for (std::size_t i = 0; i < list.size(); ++i)
    list[i] = static_cast<float>(element_as_double(constant.type.dtype, constant.constant.data(), i));
  return list;
}

std::shared_ptr<const CodedMatrix> packed(const Graph& graph, ValueId weight, std::int64_t rows, bool by_columns,
                                          bool by_depth) {
  const Found found = found_in(graph, weight);
  CodedMatrix m;
  m.rows = rows;
  m.by_depth = by_depth;
  m.depth = m.group = graph[weight].type.shape.elements() / rows;
  std::vector<float> scales(static_cast<std::size_t>(rows), 1.0f);
  if (found.product) {
    const auto form = plan::coded_form(graph, *found.product, m.depth);
    if (!form) return nullptr;
    m.group = form->group;
    scales = form->spread(numbers_of(graph[form->scales]));
  }
  const auto codes = graph[found.codes].constant.as<std::int8_t>();
  const bool narrow = std::ranges::all_of(codes, [](std::int8_t c) { return c >= -8 && c <= 7; });
  m.bits = narrow && m.group % (by_depth ? 8 : 2) == 0 ? 4 : 8;
  const auto quads = static_cast<std::size_t>(m.quads()), depth = static_cast<std::size_t>(m.depth),
             per = static_cast<std::size_t>(m.per_word()), groups = depth / static_cast<std::size_t>(m.group);
  std::vector<std::uint32_t> words(quads * depth / per * (by_depth ? 4 : 1),
                                   m.bits == 4 && !by_depth ? 0x88888888u : 0u);
  std::vector<float> by_four(quads * groups * 4, 0.0f);
  for (std::size_t r = 0; r < static_cast<std::size_t>(rows); ++r) {
    const std::size_t shift = r % 4 * 8;
    std::uint32_t* to = words.data() + r / 4 * (depth / per);
    for (std::size_t k = 0; k < depth; ++k) {
      const std::int8_t code = codes[by_columns ? k * static_cast<std::size_t>(rows) + r : r * depth + k];
      if (by_depth)
        words[(r / 4 * (depth / per) + k / per) * 4 + r % 4] |=
            (static_cast<std::uint32_t>(code) & (per == 8 ? 15 : 255)) << (k % 4 * 8 + (k % per >= 4 ? 4 : 0));
      else if (per == 1)
        to[k] |= std::uint32_t{static_cast<std::uint8_t>(code)} << shift;
      else
        to[k / 2] ^= static_cast<std::uint32_t>((code + 8) ^ 8) << (shift + k % 2 * 4);
    }
    for (std::size_t g = 0; g < groups; ++g) by_four[(r / 4 * groups + g) * 4 + r % 4] = scales[r * groups + g];
  }
  m.words = Bytes::of(std::move(words));
  m.scales = Bytes::of(std::move(by_four));
  return std::make_shared<const CodedMatrix>(std::move(m));
}

}  // namespace

std::optional<Graph> with_codes(const Graph& graph) {
  const auto is_of_codes = [&](const Node& node) {
    return node.op == tosa::op::cast && graph[node.inputs[0]].type.dtype == DType::i8;
  };
  if (std::ranges::none_of(graph.nodes, is_of_codes)) return std::nullopt;
  Weights weights(graph);
  if (!weights.any()) return std::nullopt;
  return weights.made();
}

bool has_codes(const Graph& graph, const Node& node) {
  const Reading r = reading_of(graph, node);
  if (r.rows == 0) return false;
  const Found found = found_in(graph, node.inputs[r.operand]);
  return found.codes != no_value && !(found.product && r.by_columns);
}

bool multiplies_codes(const Graph& graph, const Node& node) {
  return node.op != tosa::op::gather && reading_of(graph, node).rows > 0 &&
         graph[node.inputs[0]].type.dtype == DType::i8;
}

std::shared_ptr<const CodedMatrix> coded_matrix(const Work& work, const Node& node) {
  const Graph& graph = work.graph;
  if (!has_codes(graph, node)) return nullptr;
  const Reading r = reading_of(graph, node);
  const ValueId weight = behind_views(graph, node.inputs[r.operand]);
  const auto multiplies_it = [&](const Node& other) {
    return multiplies_codes(graph, other) && behind_views(graph, other.inputs[1]) == weight;
  };
  // A table lies as a product has it that reads the same.
  const bool by_depth =
      node.op == tosa::op::gather ? std::ranges::any_of(graph.nodes, multiplies_it) : multiplies_codes(graph, node);
  if (!work.coded) return packed(graph, weight, r.rows, r.by_columns, by_depth);
  const auto [found, added] = work.coded->known.try_emplace({weight, r.rows, r.by_columns, by_depth});
  if (added) found->second = packed(graph, weight, r.rows, r.by_columns, by_depth);
  return found->second;
}

}  // namespace tosaic::shaders
