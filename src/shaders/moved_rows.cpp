// SPDX-License-Identifier: Apache-2.0
#include "shaders/moved_rows.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "ir/rewriter.h"
#include "ir/tosa_operators.h"
#include "ops/definitions/tosa_op.h"
#include "plan/expression.h"
#include "plan/uses.h"
#include "plan/views.h"

namespace tosaic::shaders {
namespace {

constexpr std::int64_t fewest_elements = 8;  // of a row
constexpr std::size_t most_rows = 1 << 20;   // of what is made
constexpr int fewest_copies = 3;             // that one takes the place of

bool moves(const Node& node) {
  return plan::is_view(node) || node.op == tosa::op::slice || node.op == tosa::op::concat ||
         node.op == tosa::op::transpose;
}

// A tensor whose elements are whole rows of another one: which ones, in the order of its dims, of which the last one
// counts rows.
struct Rows {
  std::vector<std::int64_t> sizes;
  std::vector<std::int32_t> from;
};

class Moved {
 public:
  explicit Moved(const plan::Uses& uses) : uses_(uses) {}

  // What all of it comes from; no_value: several tensors, or computed ones, or constants.
  ValueId source(ValueId v) {
    const auto [known, is_new] = sources_.try_emplace(v, no_value);
    if (!is_new) return known->second;
    const ValueId found = source_of(v);
    return sources_[v] = found;
  }

  std::optional<Rows> rows(ValueId v, ValueId source) {
    const Shape& shape = uses_.type(source).shape;
    if (!shape.is_static() || shape.rank() == 0 || uses_.type(v).dtype != uses_.type(source).dtype) return std::nullopt;
    row_ = shape.size(shape.rank() - 1);
    source_ = source;
    copies_ = 0;
    has_concat_ = false;
    made_.clear();
    return row_ >= fewest_elements && row_ % 4 == 0 ? of(v) : std::nullopt;
  }
  // Of the last one: dispatches without it, and whether parts come together again.
  int copies() const { return copies_; }
  bool has_concat() const { return has_concat_; }

 private:
  const Node* maker(ValueId v) const { return plan::maker(uses_.graph, uses_.producer, v); }

  ValueId source_of(ValueId v) {
    const Node* node = maker(v);
    if (!node || !moves(*node)) return uses_.constant(v) ? no_value : v;
    const ValueId first = source(node->inputs[0]);
    for (std::size_t i = 1; node->op == tosa::op::concat && i < node->inputs.size(); ++i)
      if (source(node->inputs[i]) != first) return no_value;
    return first;
  }

  // Sizes in rows; nullopt: parts of a row stand in the last dim.
  std::optional<std::vector<std::int64_t>> sizes_of(const Shape& shape) const {
    if (!shape.is_static() || shape.rank() == 0) return std::nullopt;
    std::vector<std::int64_t> sizes = shape.sizes();
    if (sizes.back() % row_ != 0) return std::nullopt;
    sizes.back() /= row_;
    return sizes;
  }

  std::optional<Rows> of(ValueId v) {
    if (const auto known = made_.find(v); known != made_.end()) return known->second;
    std::optional<Rows> made = make(v);
    if (made && made->from.size() > most_rows) made.reset();
    made_[v] = made;
    return made;
  }

  std::optional<Rows> make(ValueId v) {
    const auto sizes = sizes_of(uses_.type(v).shape);
    if (!sizes) return std::nullopt;
    if (v == source_) {
      const std::int64_t count = std::accumulate(sizes->begin(), sizes->end(), std::int64_t{1}, std::multiplies<>());
      if (count > static_cast<std::int64_t>(most_rows)) return std::nullopt;
      Rows all{*sizes, std::vector<std::int32_t>(static_cast<std::size_t>(count))};
      std::iota(all.from.begin(), all.from.end(), 0);
      return all;
    }
    const Node& node = *maker(v);
    const tosa::View view(uses_.graph, node);
    if (node.op == tosa::op::concat) return joined(view, *sizes);
    std::optional<Rows> from = of(node.inputs[0]);
    if (!from) return std::nullopt;
    if (plan::is_view(node)) return Rows{*sizes, std::move(from->from)};
    ++copies_;
    // Element (i0, i1, ...) is row begin + sum i * strides of what is read.
    std::vector<std::int64_t> strides(from->sizes.size(), 1);
    for (std::size_t d = strides.size(); d-- > 1;) strides[d - 1] = strides[d] * from->sizes[d];
    if (node.op == tosa::op::slice) {
      const auto start = view.constant_integers(1);
      if (!start || start->back() % row_ != 0) return std::nullopt;
      std::int64_t begin = 0;
      for (std::size_t d = 0; d < strides.size(); ++d)
        begin += (d + 1 == strides.size() ? start->at(d) / row_ : start->at(d)) * strides[d];
      return picked(*from, *sizes, begin, strides);
    }
    const auto perms = view.ints("perms");
    if (perms.back() + 1 != std::ssize(perms)) return std::nullopt;
    std::vector<std::int64_t> moved;
    for (const std::int64_t d : perms) moved.push_back(strides[static_cast<std::size_t>(d)]);
    return picked(*from, *sizes, 0, moved);
  }

  static Rows picked(const Rows& from, const std::vector<std::int64_t>& sizes, std::int64_t begin,
                     const std::vector<std::int64_t>& strides) {
    Rows made{sizes, {}};
    std::vector<std::int64_t> at(sizes.size(), 0);
    const std::int64_t count = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
    for (std::int64_t i = 0; i < count; ++i) {
      std::int64_t place = begin;
      for (std::size_t d = 0; d < at.size(); ++d) place += at[d] * strides[d];
      made.from.push_back(from.from[static_cast<std::size_t>(place)]);
      for (std::size_t d = at.size(); d-- > 0 && ++at[d] == sizes[d];) at[d] = 0;
    }
    return made;
  }

  std::optional<Rows> joined(const tosa::View& view, const std::vector<std::int64_t>& sizes) {
    has_concat_ = true;
    const auto axis = static_cast<std::size_t>(view.integer("axis"));
    Rows made{sizes, {}};
    std::vector<Rows> parts;
    for (const ValueId v : view.node().inputs) {
      auto part = of(v);
      if (!part) return std::nullopt;
      parts.push_back(*std::move(part));
      ++copies_;
    }
    std::int64_t outer = 1;
    for (std::size_t d = 0; d < axis; ++d) outer *= sizes[d];
    for (std::int64_t i = 0; i < outer; ++i)
      for (const Rows& part : parts) {
        const std::int64_t count = std::ssize(part.from) / outer;
        made.from.insert(made.from.end(), part.from.begin() + i * count, part.from.begin() + (i + 1) * count);
      }
    return made;
  }

  const plan::Uses& uses_;
  std::map<ValueId, ValueId> sources_;  // of what was asked: parts that come together again and again are many ways
  ValueId source_ = no_value;
  std::int64_t row_ = 1;
  int copies_ = 0;
  bool has_concat_ = false;
  std::map<ValueId, std::optional<Rows>> made_;
};

bool is_stored_narrow(DType type) { return type != DType::boolean && type != DType::i4 && storage_size(type) <= 4; }

}  // namespace

void gather_moved_rows(Graph& graph) {
  const Graph before = graph;
  const plan::Uses uses(before);
  Moved moved(uses);
  // The last ones of what is moved.
  std::vector<bool> ends(before.values.size(), false), is_added(before.values.size(), false);
  for (const Node& node : before.nodes)
    if (moves(node) && !plan::is_view(node)) {
      const ValueId v = node.outputs[0];
      std::vector<ValueId> seen{v};
      bool goes_on = false, added = false;
      for (std::size_t i = 0; i < seen.size(); ++i)
        for (const std::uint32_t user : uses.users[seen[i]]) {
          if (plan::is_view(uses.node(user)))
            seen.push_back(uses.node(user).outputs[0]);
          else
            goes_on = goes_on || moves(uses.node(user));
          const tosa::Op* op = tosa::find(uses.node(user).op);
          added = op && op->elementwise && plan::walked_operands(*op) == 2 && !plan::is_view(uses.node(user)) &&
                  before[seen[i]].type.shape.rank() < before[v].type.shape.rank() && uses.only_user(seen[i]) == user;
        }
      ends[v] = !goes_on;
      is_added[v] = added && seen.size() == 2 && uses.only_user(v) && node.op == tosa::op::transpose;
    }
  Rewriter rewriter(graph);
  rewriter.each([&](Node& node) {
    const ValueId v = node.outputs.empty() ? no_value : node.outputs[0];
    const ValueId source = v != no_value && v < ends.size() && ends[v] ? moved.source(v) : no_value;
    const auto rows = source != no_value && is_stored_narrow(before[source].type.dtype) ? moved.rows(v, source)
                                                                                        : std::optional<Rows>();
    const bool many = rows && moved.has_concat() && moved.copies() >= fewest_copies;
    if (!rows || !(many || is_added[v])) {
      rewriter.keep(std::move(node));
      return;
    }
    const TensorType type = before[v].type;
    const std::int64_t row = before[source].type.shape.size(before[source].type.shape.rank() - 1),
                       count = std::ssize(rows->from);
    const std::string& name = before[v].name;
    const auto list_of = [&](const char* part, std::int64_t rows_of_list) {
      return graph.add_value(name + part, {type.dtype, Shape{1, rows_of_list, row}, {}});
    };
    const auto seen_as = [&](ValueId from, ValueId to) {
      const std::vector<std::int64_t> sizes = graph[to].type.shape.sizes();
      const TensorType shape{DType::shape, Shape{std::ssize(sizes)}, {}};
      const ValueId wanted = graph.add_value(graph[to].name + ".shape", shape,
                                             constant_bytes(DType::shape, std::span<const std::int64_t>(sizes)));
      rewriter.keep({tosa::op::reshape, {from, wanted}, {}, {to}, node.loc, {}});
    };
    const ValueId list = list_of(".rows", before[source].type.shape.elements() / row);
    seen_as(source, list);
    const std::vector<std::int64_t> indices(rows->from.begin(), rows->from.end());
    const ValueId which = graph.add_value(name + ".which", {DType::i32, Shape{1, count}, {}},
                                          constant_bytes(DType::i32, std::span<const std::int64_t>(indices)));
    const ValueId made = list_of(".moved", count);
    rewriter.keep({tosa::op::gather, {list, which}, {}, {made}, node.loc, {}});
    seen_as(made, v);
  });
}

}  // namespace tosaic::shaders
