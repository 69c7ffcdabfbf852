// SPDX-License-Identifier: Apache-2.0
#include "shaders/quantised_weights.h"

#include <algorithm>
#include <array>

#include "base/parallel.h"
#include "base/system/mapped_files.h"
#include "ops/definitions/extension.h"
#include "plan/raise.h"

namespace tosaic::shaders {
namespace {

constexpr std::int64_t longest_sum = 1 << 16;  // of 255 times 128, which 32 bits hold

// A MATMUL of integers by constant quantised values, which count from 0 as those of the other factor do.
bool multiplies_integers(const tosa::View& view) {
  if (view.node().op != tosa::op::matmul) return false;
  const auto counts_from_0 = [&](std::size_t operand) {
    const auto zero = view.constant_integers(operand);
    return zero && zero->at(0) == 0;
  };
  const Shape& weight = view.in(1).shape;
  return view.in(0).dtype == DType::i8 && view.in(1).dtype == DType::i8 && view.out().dtype == DType::i32 &&
         !view.constant(1).null() && weight.is_static() && weight.size(0) == 1 && weight.size(1) % 4 == 0 &&
         weight.size(1) <= longest_sum && counts_from_0(2) && counts_from_0(3);
}

bool is_extension(const Node& node) {
  return node.op == extension::op::scaled_product || node.op == extension::op::scaled_gather;
}
bool looks_up(const Node& node) { return node.op == extension::op::scaled_gather; }
ValueId values_of(const Node& node) {
  return node.inputs[looks_up(node) ? extension::scaled_gather::values : extension::scaled_product::values];
}

plan::QuantisedRows rows_of(const Graph& graph, const Node& node) {
  if (is_extension(node)) return plan::quantised_rows(graph, node);
  const tosaic::Value& weight = graph[node.inputs[1]];
  plan::QuantisedRows rows;
  rows.values.bytes = weight.constant;
  rows.n = weight.type.shape.size(2);
  rows.k = rows.group = weight.type.shape.size(1);
  rows.by_columns = true;
  rows.scales = Bytes::of(std::vector<float>(static_cast<std::size_t>(rows.n), 1.0f));
  return rows;
}

// Of a graph of constants, node by node.
Result<Bytes> computed(const Graph& constants) {
  Graph graph = constants;
  for (const Node& node : graph.nodes) {
    auto content = tosa::constant_result(graph, node, *tosa::find(node.op), graph[node.outputs[0]].type);
    if (!content) return Bytes();
    graph[node.outputs[0]].constant = *std::move(content);
  }
  return graph[graph.outputs[0]].constant;
}

// Read between two times that pages are given back.
constexpr std::size_t bytes_of_piece = 1 << 20;

// Four rows; rows behind the last are 0.
void read_quad(const plan::QuantisedRows& from, std::int64_t quad, std::span<std::int8_t> four) {
  const std::int64_t first = quad * 4, rows = std::min<std::int64_t>(4, from.n - first);
  std::ranges::fill(four.subspan(static_cast<std::size_t>(rows * from.k)), 0);
  from.read_values(first, rows, four.data());
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

std::shared_ptr<const QuantisedMatrix> packed(const plan::QuantisedRows& rows, bool by_depth) {
  QuantisedMatrix m{.rows = rows.n, .depth = rows.k, .group = rows.group, .by_depth = by_depth};
  m.bits = m.group % (by_depth ? 8 : 2) == 0 && rows.values.fits_four_bits() ? 4 : 8;
  const auto quads = static_cast<std::size_t>(m.quads()), groups = static_cast<std::size_t>(m.depth / m.group),
             words_of_quad = static_cast<std::size_t>(m.depth / m.per_word() * (by_depth ? 4 : 1));
  std::uint32_t* words = nullptr;
  m.words = Bytes::fresh(quads * words_of_quad, words);
  std::vector<float> by_four(quads * groups * 4, 0.0f);
  in_parallel(quads, bytes_of_piece / static_cast<std::size_t>(4 * m.depth) + 1,
              [&](std::size_t first, std::size_t last) {
                std::vector<std::int8_t> four(static_cast<std::size_t>(4 * m.depth));
                for (std::size_t q = first; q < last; ++q) {
                  read_quad(rows, static_cast<std::int64_t>(q), four);
                  make_words(four, m, words + q * words_of_quad);
                }
                if (rows.by_columns) return;
                const auto row = static_cast<std::int64_t>(first) * 4,
                           end = std::min(static_cast<std::int64_t>(last) * 4, rows.n);
                const auto read = rows.values.stored(row * m.depth, (end - row) * m.depth);
                release_pages(read.data(), read.size());
              });
  const auto scales = rows.scales.as<float>();
  for (std::size_t r = 0; r < static_cast<std::size_t>(rows.n); ++r)
    for (std::size_t g = 0; g < groups; ++g) by_four[(r / 4 * groups + g) * 4 + r % 4] = scales[r * groups + g];
  m.scales = Bytes::of(std::move(by_four));
  return std::make_shared<const QuantisedMatrix>(std::move(m));
}

}  // namespace

std::optional<Graph> raise_quantised(const Graph& graph) {
  std::optional<Graph> in_tosa = extension::in_tosa_1_0(graph);
  const Graph& given = in_tosa ? *in_tosa : graph;
  const auto is_from_quantised = [&](const Node& node) {
    return node.op == tosa::op::cast && given[node.inputs[0]].type.dtype == DType::i8;
  };
  if (std::ranges::none_of(given.nodes, is_from_quantised)) return in_tosa;
  Graph made = given;
  const auto raised = plan::raise_quantised(made, {.takes = [](const Graph&, const Node&) { return true; },
                                                   .takes_rows = [](const plan::QuantisedRows&) { return true; },
                                                   .whole_zeros = true,
                                                   .compute = computed,
                                                   .all_constants = true});
  if (!raised.ok() || !*raised) return in_tosa;
  drop_dead(made);
  return made;
}

bool has_quantised_weight(const Graph& graph, const Node& node) {
  return is_extension(node) || multiplies_integers(tosa::View(graph, node));
}

bool multiplies_int8(const Graph& graph, const Node& node) {
  return !looks_up(node) && has_quantised_weight(graph, node) && graph[node.inputs[0]].type.dtype == DType::i8;
}

std::string name_of_product(const Node& node) {
  const bool by_columns = node.attrs.get_or(extension::quantised::by_columns, node.op == tosa::op::matmul);
  return by_columns ? "matmul" : "conv2d";
}

std::shared_ptr<const QuantisedMatrix> find_quantised_matrix(const Work& work, const Node& node) {
  const Graph& graph = work.graph;
  if (!has_quantised_weight(graph, node)) return nullptr;
  const ValueId values = is_extension(node) ? values_of(node) : node.inputs[1];
  const auto multiplies_it = [&](const Node& other) {
    return other.op == extension::op::scaled_product && values_of(other) == values && multiplies_int8(graph, other);
  };
  // A table lies as a product has it that reads the same.
  const bool by_depth = looks_up(node) ? std::ranges::any_of(graph.nodes, multiplies_it) : multiplies_int8(graph, node);
  if (!work.matrices) return packed(rows_of(graph, node), by_depth);
  const auto [found, added] = work.matrices->known.try_emplace({values, by_depth});
  if (added) found->second = packed(rows_of(graph, node), by_depth);
  return found->second;
}

}  // namespace tosaic::shaders
