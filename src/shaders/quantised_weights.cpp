// SPDX-License-Identifier: Apache-2.0
#include "shaders/quantised_weights.h"

#include <algorithm>
#include <array>

#include "base/mapped_files.h"
#include "base/parallel.h"
#include "ir/tosa_operators.h"
#include "plan/per_row_quantisation.h"
#include "plan/quantised_constant.h"
#include "plan/quantised_form.h"
#include "plan/uses.h"
#include "plan/views.h"
#include "shaders/product.h"
#include "shaders/steps.h"

namespace tosaic::shaders {
namespace {

constexpr std::int64_t longest_sum = 1 << 16;  // of 255 times 128, which 32 bits hold

// An i8 product by constant quantised values, which count from 0 as those of the other factor do.
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

// Which operand of a node may be quantised values, and how many rows it then has; 0: none. MATMUL has them as columns.
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

// The values, and the product of them and scales, if there are any, after views.
struct Found {
  const Node* product = nullptr;
  std::optional<plan::QuantisedConstant> values = std::nullopt;
};
Found found_in(const Graph& graph, ValueId weight) {
  if (graph[weight].is_constant()) {
    if (graph[weight].type.dtype != DType::i8) return {};
    return {nullptr, plan::QuantisedConstant{graph[weight].constant}};
  }
  const std::vector<std::int32_t> producer = producers(graph);
  if (auto values = plan::quantised_constant(graph, producer, weight)) return {nullptr, std::move(values)};
  const Node* product = plan::maker(graph, producer, plan::skip_views(graph, producer, weight));
  if (!product || product->op != tosa::op::mul) return {};
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
    if (!graph[product->inputs[1 - i]].is_constant()) continue;
    if (auto values = plan::quantised_constant(graph, producer, product->inputs[i]))
      return {product, std::move(values)};
  }
  return {};
}

// Of a product by a quantised weight: the elements of its rows, if quantised values of those can be multiplied; else 0.
std::int64_t quantised_depth(const Graph& graph, const Node& node) {
  if (node.op == tosa::op::gather || !has_quantised_weight(graph, node)) return 0;
  const Reading r = reading_of(graph, node);
  const ValueId weight = node.inputs[r.operand];
  const std::int64_t depth = graph[weight].type.shape.elements() / r.rows;
  const Found found = found_in(graph, weight);
  const auto form = found.product ? plan::find_quantised_form(graph, *found.product, depth) : std::nullopt;
  const std::int64_t group = form ? form->group : depth;
  return (found.product && !form) || group % 4 != 0 || group > longest_sum ? 0 : depth;
}

// Which weights stay quantised values; what else follows from constants becomes the numbers that it is.
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
  // Are there quantised values that become other numbers?
  bool any() const { return any_; }

  Graph made() {
    for (const Node& node : uses_.graph.nodes)
      if (const Reading r = reading_of(uses_.graph, node); r.rows > 0) keep(node, r);
    for (const Node& node : uses_.graph.nodes) {
      if (!node.outputs.empty() && fixed_[node.outputs[0]]) continue;
      for (ValueId v : node.inputs)
        if (v != no_value && !kept(skip_views(v))) compute(v);
    }
    graph_.nodes.insert(graph_.nodes.begin(), casts_.begin(), casts_.end());
    for (ValueId v : kept_)
      if (!found_in(graph_, v).values) compute(v);  // somebody else reads what its values are
    take_activations();
    drop_dead(graph_);
    return std::move(graph_);
  }

 private:
  const Node* maker(ValueId v) const { return plan::maker(uses_.graph, uses_.producer, v); }
  ValueId skip_views(ValueId v) const { return plan::skip_views(uses_.graph, uses_.producer, v); }
  bool is_fixed(const Node& node) const {
    return !node.inputs.empty() && node.outputs.size() == 1 && node.regions.empty() && node.op != tosa::op::custom &&
           !tosa::is_variable(node.op) && !uses_.visible[node.outputs[0]] &&
           std::ranges::all_of(node.inputs, [&](ValueId v) { return v != no_value && fixed_[v]; });
  }
  bool kept(ValueId weight) const { return std::ranges::find(kept_, weight) != kept_.end(); }

  // Does nothing else than products and look-ups read it?
  bool is_read_quantised(ValueId v) const {
    return std::ranges::all_of(uses_.users[v], [&](std::uint32_t n) {
      const Node& user = uses_.node(n);
      if (is_view(user)) return is_read_quantised(user.outputs[0]);
      const Reading r = reading_of(uses_.graph, user);
      return r.rows > 0 && user.inputs[r.operand] == v;
    });
  }
  void keep(const Node& node, const Reading& r) {
    ValueId v = node.inputs[r.operand];
    if (!fixed_[v] || uses_.constant(v)) return;
    const std::int64_t depth = uses_.type(v).shape.elements() / r.rows;
    v = skip_views(v);
    const Node* product = maker(v);
    if (!product || kept(v) || !is_read_quantised(v)) return;
    const bool scaled = product->op == tosa::op::mul && !r.by_columns && has_values(*product, depth);
    if (scaled || plan::quantised_constant(uses_.graph, uses_.producer, v)) kept_.push_back(v);
  }

  // mul(values, scales) of values as they are in the program, or of such as turn out to be whole numbers.
  bool has_values(const Node& product, std::int64_t depth) {
    const auto form = plan::find_quantised_form(uses_.graph, product, depth);
    if (!form) return false;
    compute(form->scales);
    if (!graph_[form->scales].is_constant()) return false;
    const auto gives = [&](const Node& node) {
      return std::ranges::find(node.outputs, form->quantised) != node.outputs.end();
    };
    if (plan::quantised_constant(uses_.graph, uses_.producer, form->quantised) || std::ranges::any_of(casts_, gives))
      return true;
    compute(form->quantised);
    const tosaic::Value& x = graph_[form->quantised];
    if (!x.is_constant() || x.type.dtype != DType::f32) return false;
    const Bytes bytes = plan::as_bytes(x.constant.as<float>());
    if (bytes.null()) return false;
    const ValueId v = graph_.add_value(x.name + ".codes", x.type.with(DType::i8), bytes);
    graph_[form->quantised].constant = {};
    casts_.push_back({.op = tosa::op::cast,
                      .inputs = {v},
                      .attrs = {},
                      .outputs = {form->quantised},
                      .loc = product.loc,
                      .regions = {}});
    std::erase_if(graph_.nodes, gives);
    return true;
  }

  // Computes what follows from constants alone.
  void compute(ValueId v) {
    if (graph_[v].is_constant() || !fixed_[v]) return;
    const Node* node = maker(v);
    if (!node) return;
    for (ValueId operand : node->inputs) {
      compute(operand);
      if (!graph_[operand].is_constant()) return;
    }
    if (auto content = tosa::constant_result(graph_, *node, *tosa::find(node->op), graph_[v].type))
      graph_[v].constant = *std::move(content);
  }

  // Products by quantised values read those of their activations, too.
  void take_activations() {
    const std::vector<std::int32_t> producer = producers(graph_);
    for (Node& node : graph_.nodes) {
      const std::int64_t depth = quantised_depth(graph_, node);
      if (depth == 0) continue;
      const auto quantised = plan::find_per_row_quantisation(graph_, producer, node.inputs[0], depth);
      if (quantised && (quantised->zero == no_value || is_cast_quantised(quantised->zero)))
        plan::read_quantised_rows(node, *quantised);
    }
  }

  // Whole numbers of 8 bits, which sums of 32 bits have room for.
  bool is_cast_quantised(ValueId v) const {
    const Node* cast = maker(skip_views(v));
    return cast && cast->op == tosa::op::cast && uses_.type(cast->inputs[0]).dtype == DType::i8;
  }

  Graph graph_;
  const plan::Uses uses_;      // of the graph as it was
  std::vector<bool> fixed_;    // follows from constants
  std::vector<ValueId> kept_;  // weights that stay quantised
  std::vector<Node> casts_;    // that give some of them their values
  bool any_ = false;
};

std::vector<float> numbers_of(const tosaic::Value& constant) {
  std::vector<float> list(static_cast<std::size_t>(constant.type.shape.elements()));
  for (std::size_t i = 0; i < list.size(); ++i)
    list[i] = static_cast<float>(element_as_double(constant.type.dtype, constant.constant.data(), i));
  return list;
}

// Read between two times that pages are given back.
constexpr std::size_t bytes_of_piece = 1 << 20;

// Four rows; rows behind the last are 0.
void read_quad(const plan::QuantisedConstant& values, std::int64_t quad, const QuantisedMatrix& m, bool by_columns,
               std::span<std::int8_t> four) {
  const std::int64_t first = quad * 4, rows = std::min<std::int64_t>(4, m.rows - first);
  std::ranges::fill(four.subspan(static_cast<std::size_t>(rows * m.depth)), 0);
  if (!by_columns) return values.read(first * m.depth, four.first(static_cast<std::size_t>(rows * m.depth)));
  std::array<std::int8_t, 4> column{};
  for (std::int64_t k = 0; k < m.depth; ++k) {
    values.read(k * m.rows + first, std::span(column).first(static_cast<std::size_t>(rows)));
    for (std::int64_t r = 0; r < rows; ++r)
      four[static_cast<std::size_t>(r * m.depth + k)] = column[static_cast<std::size_t>(r)];
  }
}

// The words of a quad, as QuantisedMatrix says.
void make_words(std::span<const std::int8_t> four, const QuantisedMatrix& m, std::uint32_t* to) {
  const auto depth = static_cast<std::size_t>(m.depth);
  const auto bits_of = [](std::int8_t value) { return std::uint32_t{static_cast<std::uint8_t>(value)}; };
  const auto two = [&](std::int8_t a, std::int8_t b) { return (bits_of(a) & 15u) | (bits_of(b) & 15u) << 4; };
  if (m.by_depth) {
    const std::size_t per = m.bits == 4 ? 8 : 4;
    for (std::size_t r = 0; r < 4; ++r)
      for (std::size_t j = 0; j < depth / per; ++j) {
        const std::int8_t* in = four.data() + r * depth + j * per;
        std::uint32_t word = 0;
        for (std::size_t i = 0; i < 4; ++i) word |= (per == 8 ? two(in[i], in[i + 4]) : bits_of(in[i])) << 8 * i;
        to[j * 4 + r] = word;
      }
    return;
  }
  const std::int8_t *a = four.data(), *b = a + depth, *c = b + depth, *d = c + depth;
  if (m.bits == 8)
    for (std::size_t k = 0; k < depth; ++k)
      to[k] = bits_of(a[k]) | bits_of(b[k]) << 8 | bits_of(c[k]) << 16 | bits_of(d[k]) << 24;
  else
    for (std::size_t k = 0; k < depth; k += 2)
      to[k / 2] =
          (two(a[k], a[k + 1]) | two(b[k], b[k + 1]) << 8 | two(c[k], c[k + 1]) << 16 | two(d[k], d[k + 1]) << 24) ^
          0x88888888u;
}

std::shared_ptr<const QuantisedMatrix> packed(const Graph& graph, ValueId weight, std::int64_t rows, bool by_columns,
                                              bool by_depth) {
  const Found found = found_in(graph, weight);
  if (!found.values) return nullptr;
  QuantisedMatrix m;
  m.rows = rows;
  m.by_depth = by_depth;
  m.depth = m.group = graph[weight].type.shape.elements() / rows;
  std::vector<float> scales(static_cast<std::size_t>(rows), 1.0f);
  if (found.product) {
    const auto form = plan::find_quantised_form(graph, *found.product, m.depth);
    if (!form) return nullptr;
    m.group = form->group;
    scales.resize(static_cast<std::size_t>(m.rows * m.depth / m.group));
    form->read_scales(numbers_of(graph[form->scales]), 0, scales);
  }
  const plan::QuantisedConstant& values = *found.values;
  m.bits = m.group % (by_depth ? 8 : 2) == 0 && values.fits_four_bits() ? 4 : 8;
  const auto quads = static_cast<std::size_t>(m.quads()), groups = static_cast<std::size_t>(m.depth / m.group),
             words_of_quad = static_cast<std::size_t>(m.depth / m.per_word() * (by_depth ? 4 : 1));
  std::uint32_t* words = nullptr;
  m.words = Bytes::fresh(quads * words_of_quad, words);
  std::vector<float> by_four(quads * groups * 4, 0.0f);
  in_parallel(quads, bytes_of_piece / static_cast<std::size_t>(4 * m.depth) + 1,
              [&](std::size_t first, std::size_t last) {
                std::vector<std::int8_t> four(static_cast<std::size_t>(4 * m.depth));
                for (std::size_t q = first; q < last; ++q) {
                  read_quad(values, static_cast<std::int64_t>(q), m, by_columns, four);
                  make_words(four, m, words + q * words_of_quad);
                }
                if (by_columns) return;
                const auto row = static_cast<std::int64_t>(first) * 4,
                           end = std::min(static_cast<std::int64_t>(last) * 4, rows);
                const auto read = values.stored(row * m.depth, (end - row) * m.depth);
                release_pages(read.data(), read.size());
              });
  for (std::size_t r = 0; r < static_cast<std::size_t>(rows); ++r)
    for (std::size_t g = 0; g < groups; ++g) by_four[(r / 4 * groups + g) * 4 + r % 4] = scales[r * groups + g];
  m.scales = Bytes::of(std::move(by_four));
  return std::make_shared<const QuantisedMatrix>(std::move(m));
}

}  // namespace

std::optional<Graph> keep_quantised_weights(const Graph& graph) {
  const auto is_from_quantised = [&](const Node& node) {
    return node.op == tosa::op::cast && graph[node.inputs[0]].type.dtype == DType::i8;
  };
  if (std::ranges::none_of(graph.nodes, is_from_quantised)) return std::nullopt;
  Weights weights(graph);
  if (!weights.any()) return std::nullopt;
  return weights.made();
}

bool has_quantised_weight(const Graph& graph, const Node& node) {
  const Reading r = reading_of(graph, node);
  if (r.rows == 0) return false;
  const Found found = found_in(graph, node.inputs[r.operand]);
  return found.values && !(found.product && r.by_columns);
}

bool multiplies_int8(const Graph& graph, const Node& node) {
  return node.op != tosa::op::gather && reading_of(graph, node).rows > 0 &&
         graph[node.inputs[0]].type.dtype == DType::i8;
}

std::shared_ptr<const QuantisedMatrix> find_quantised_matrix(const Work& work, const Node& node) {
  const Graph& graph = work.graph;
  if (!has_quantised_weight(graph, node)) return nullptr;
  const Reading r = reading_of(graph, node);
  const std::vector<std::int32_t> producer = producers(graph);
  const ValueId weight = plan::skip_views(graph, producer, node.inputs[r.operand]);
  const auto multiplies_it = [&](const Node& other) {
    return multiplies_int8(graph, other) && plan::skip_views(graph, producer, other.inputs[1]) == weight;
  };
  // A table lies as a product has it that reads the same.
  const bool by_depth =
      node.op == tosa::op::gather ? std::ranges::any_of(graph.nodes, multiplies_it) : multiplies_int8(graph, node);
  if (!work.matrices) return packed(graph, weight, r.rows, r.by_columns, by_depth);
  const auto [found, added] = work.matrices->known.try_emplace({weight, r.rows, r.by_columns, by_depth});
  if (added) found->second = packed(graph, weight, r.rows, r.by_columns, by_depth);
  return found->second;
}

}  // namespace tosaic::shaders
