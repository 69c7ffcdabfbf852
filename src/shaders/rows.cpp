// SPDX-License-Identifier: Apache-2.0
#include "shaders/rows.h"

#include <algorithm>
#include <bit>
#include <set>

#include "ir/tosa_operators.h"
#include "plan/groups.h"
#include "plan/views.h"
#include "shaders/elements.h"
#include "shaders/reduction.h"

namespace tosaic::shaders {
namespace {

constexpr std::int64_t shortest = 16;
constexpr std::size_t most_nodes = 96;
constexpr std::uint32_t group_size = 128, near = 16;  // near: results that each invocation folds by itself
// Where there are as many rows as this, a part of a group is enough for one.
constexpr std::int64_t many_rows = 2048;
constexpr std::uint32_t most_parts = 128, few_parts = 32;
constexpr int at_once = 4;
// Elements of a row that an invocation keeps, and how often their shader does an operator for that.
constexpr std::int64_t most_kept = 24, most_operators = 768;

bool is_reduction(const Node& node) {
  return node.op == tosa::op::reduce_max || node.op == tosa::op::reduce_min || node.op == tosa::op::reduce_sum ||
         node.op == tosa::op::reduce_product;
}

// Shapes of the rows and of what they are reduced to.
struct Shapes {
  Shape rows, reduced;
  bool has(const Shape& shape) const { return shape == rows || shape == reduced; }
};

class Chain {
 public:
  Chain(const plan::Uses& uses, const std::function<bool(std::uint32_t)>& can, std::uint32_t first)
      : uses_(uses), can_(can), shapes_{type_in(first).shape, type_out(first).shape} {
    add(first);
  }

  std::vector<std::vector<std::uint32_t>> all() {
    std::vector<std::vector<std::uint32_t>> found;
    while (nodes_.size() < most_nodes) {
      const auto next = next_user();
      if (!next || !takes(*next)) break;
      add(*next);
      if (is_whole()) found.push_back(with_producers());
    }
    std::ranges::reverse(found);
    return found;
  }

 private:
  const TensorType& type_in(std::uint32_t n) const { return uses_.type(uses_.node(n).inputs[0]); }
  const TensorType& type_out(std::uint32_t n) const { return uses_.type(uses_.node(n).outputs[0]); }
  void add(std::uint32_t n) { nodes_.insert(n); }

  bool is_open(std::uint32_t n) const {
    const ValueId v = uses_.node(n).outputs[0];
    return uses_.visible[v] || std::ranges::any_of(uses_.users[v], [&](auto u) { return !nodes_.contains(u); });
  }
  std::optional<std::uint32_t> next_user() const {
    std::optional<std::uint32_t> next;
    for (std::uint32_t n : nodes_)
      for (std::uint32_t u : uses_.users[uses_.node(n).outputs[0]])
        if (!nodes_.contains(u) && (!next || u < *next)) next = u;
    return next;
  }
  bool takes(std::uint32_t n) const {
    const Node& node = uses_.node(n);
    if (node.outputs.size() != 1 || !shapes_.has(type_out(n).shape)) return false;
    if (reduces_rows(uses_.graph, node))
      return type_in(n).shape == shapes_.rows && type_out(n).shape == shapes_.reduced;
    return can_(n);
  }
  // The last one's result is all that others see, and more than a reduction with its epilogue.
  bool is_whole() const {
    for (std::uint32_t n : nodes_)
      if (n != *nodes_.rbegin() && is_open(n)) return false;
    return type_out(*nodes_.rbegin()).shape == shapes_.rows;
  }

  // And what is elementwise and serves only them.
  std::vector<std::uint32_t> with_producers() const {
    return plan::with_producers(uses_, {nodes_.begin(), nodes_.end()}, most_nodes, [&](std::uint32_t n) {
      return shapes_.has(type_out(n).shape) && can_(n) && !finishes_kernel(uses_.node(n));
    });
  }
  // Such nodes are computed with the kernel before them, which then stores less.
  bool finishes_kernel(const Node& node) const {
    return std::ranges::any_of(node.inputs, [&](ValueId v) {
      const std::int32_t producer = uses_.producer[plan::skip_views(uses_.graph, uses_.producer, v)];
      return producer >= 0 && !kernel_rows(uses_.graph.nodes[static_cast<std::size_t>(producer)]).empty();
    });
  }

  const plan::Uses& uses_;
  const std::function<bool(std::uint32_t)>& can_;
  const Shapes shapes_;
  std::set<std::uint32_t> nodes_;
};

class Rows {
  // An element of its row that this invocation has, if it keeps them, with what has been computed of it.
  struct Kept {
    Value at;
    std::optional<Value> inside;  // none: it is
    Known values;
  };

 public:
  Rows(Kernel& s, const std::vector<std::uint32_t>& nodes, const Shape& shape, std::uint32_t parts)
      : s_(s), nodes_(nodes), parts_(parts), rows_(shape) {
    const std::int64_t size = shape.size(shape.rank() - 1);
    const Value local = s.local(), along = s.integer(parts);
    row_ = s.group() * std::int64_t{group_size / parts} + local / along;
    part_ = local % along;
    exists_ = row_ < s.param(shape.elements() / size);
    own_ = s.select(exists_, row_, s.integer(0));
    size_ = s.param(size);
    begin_ = own_ * size_;
    const std::int64_t own = (size + parts - 1) / parts;
    if (own > most_kept || own * static_cast<std::int64_t>(nodes.size()) > most_operators) return;
    kept_.resize(static_cast<std::size_t>(own));
    for (Kept& k : kept_) {
      const std::int64_t number = &k - kept_.data();
      const Value place = number ? part_ + number * parts : part_;
      const bool may_be_beyond = (number + 1) * parts > size;
      if (may_be_beyond) k.inside = place < size_;
      k.at = begin_ + (may_be_beyond ? s_.select(*k.inside, place, s_.integer(0)) : place);
    }
  }

  MadeList make() {
    const Kernel::MoreParams more(s_);
    const Graph& graph = s_.graph();
    for (std::uint32_t n : nodes_) {
      const Node& node = graph.nodes[n];
      const ValueId result = node.outputs[0];
      if (reduces_rows(graph, node))
        known_[result] = reduced(node);
      else if (graph[result].type.shape != rows_)
        known_[result] = evaluate(s_, plan::expression_of(graph, {n}), own_, known_);
    }
    const ValueId output = graph.nodes[nodes_.back()].outputs[0];
    if (!kept_.empty()) {
      const std::vector<Value> results = all_kept(output);
      for (const Kept& k : kept_) {
        const Value there = k.inside ? exists_ & *k.inside : exists_;
        s_.when(there,
                [&] { s_.store(s_.output(output), k.at, results[static_cast<std::size_t>(&k - kept_.data())]); });
      }
      return one(s_);
    }
    s_.when(exists_, [&] {
      for_elements(output, part_, [&](Value at, Value inside, Value result) {
        s_.when(inside, [&] { s_.store(s_.output(output), at, result); });
      });
    });
    return one(s_);
  }

 private:
  // Element `at` of what has the rows' shape: an operand, or computed from some.
  Value element(ValueId v, Value at) {
    const std::vector<std::uint32_t> needed = nodes_for(v);
    if (needed.empty()) return s_.load(s_.input(v), at);
    return evaluate(s_, plan::expression_of(s_.graph(), needed), at, known_);
  }
  // The same of all elements that this invocation keeps, each computed once.
  std::vector<Value> all_kept(ValueId v) {
    std::vector<Value> values;
    s_.repeat(static_cast<int>(kept_.size()), [&](int i) {
      Kept& k = kept_[static_cast<std::size_t>(i)];
      if (const auto found = k.values.find(v); found != k.values.end()) return values.push_back(found->second);
      for (std::uint32_t n : nodes_for(v, k.values)) compute(k, n);
      if (!k.values.contains(v)) k.values[v] = s_.load(s_.input(v), k.at);
      values.push_back(k.values[v]);
    });
    return values;
  }
  void compute(Kept& k, std::uint32_t n) {
    const Node& node = s_.graph().nodes[n];
    Known known;
    for (ValueId read : node.inputs) {
      if (is_read_once(read) && !k.values.contains(read)) k.values[read] = s_.load(s_.input(read), k.at);
      if (const auto at = k.values.find(read); at != k.values.end()) known.insert(*at);
      if (const auto at = known_.find(read); at != known_.end()) known.insert(*at);
    }
    k.values[node.outputs[0]] = evaluate(s_, plan::expression_of(s_.graph(), {n}), k.at, known);
  }
  // Of this part from `first` on, several at once: their reads wait together.
  void for_elements(ValueId v, Value first, const std::function<void(Value at, Value inside, Value x)>& body) {
    s_.loop(first, size_, s_.integer(std::int64_t{parts_} * at_once), [&](Value begin) {
      std::vector<std::array<Value, 3>> list;
      s_.repeat(at_once, [&](int i) {
        const Value place = begin + i * std::int64_t{parts_}, inside = place < size_;
        const Value at = begin_ + s_.select(inside, place, s_.integer(0));
        list.push_back({at, inside, element(v, at)});
      });
      for (const auto& [at, inside, x] : list) body(at, inside, x);
    });
  }
  // From outside, by the element's own place.
  bool is_read_once(ValueId v) const {
    const Graph& graph = s_.graph();
    return graph[v].type.shape == rows_ && !graph[v].is_constant() &&
           std::ranges::none_of(nodes_, [&](std::uint32_t n) { return graph.nodes[n].outputs[0] == v; });
  }
  std::vector<std::uint32_t> nodes_for(ValueId v, const Known& further = {}) const {
    std::set<ValueId> wanted{v};
    std::vector<std::uint32_t> needed;
    for (auto n = nodes_.rbegin(); n != nodes_.rend(); ++n) {
      const Node& node = s_.graph().nodes[*n];
      if (!wanted.contains(node.outputs[0]) || known_.contains(node.outputs[0]) || further.contains(node.outputs[0]))
        continue;
      needed.push_back(*n);
      wanted.insert(node.inputs.begin(), node.inputs.end());
    }
    std::ranges::reverse(needed);
    return needed;
  }

  Value reduced(const Node& node) {
    reduced_ = node.outputs[0];
    const Reduction reduction(node);
    if (!kept_.empty()) {
      const std::vector<Value> values = all_kept(node.inputs[0]);
      Value all = values[0];
      for (std::size_t i = 1; i < values.size(); ++i) {
        const Value next = reduction(all, values[i]);
        all = kept_[i].inside ? s_.select(*kept_[i].inside, next, all) : next;
      }
      return folded(reduction, s_.variable(all));
    }
    // There is an element for every invocation: a part is no longer than a row.
    const Variable sum = s_.variable(element(node.inputs[0], begin_ + part_));
    for_elements(node.inputs[0], part_ + std::int64_t{parts_}, [&](Value, Value inside, Value x) {
      const Value before = sum.get();
      sum.set(s_.select(inside, reduction(before, x), before));
    });
    return folded(reduction, sum);
  }
  Value folded(const Reduction& reduction, const Variable& sum) {
    const Value all = combine(reduction, sum);
    return s_.work().in_half_precision ? all : rounded(all, s_.type(reduced_).dtype);
  }

  // What all parts of a row have, for each of them.
  Value combine(const Reduction& reduction, const Variable& sum) {
    const Kind kind = sum.get().kind;
    const auto [found, added] = shared_.try_emplace(kind);
    if (added)
      found->second = s_.shared(kind, group_size / 4);
    else
      s_.barrier();  // until the others have read what was there
    const Shared memory = found->second;
    const Value four = s_.integer(4), local = s_.local();
    s_.store(memory, local / four, local % four, sum.get());
    std::uint32_t left = parts_;
    for (; left > near; left /= 2) {
      s_.barrier();
      s_.when(part_ < std::int64_t{left / 2}, [&] {
        const Value other = (local + std::int64_t{left / 2}) % s_.integer(group_size);
        sum.set(reduction(sum.get(), s_.load(memory, other / four, other % four)));
        s_.store(memory, local / four, local % four, sum.get());
      });
    }
    s_.barrier();
    const Value first = local / s_.integer(parts_) * std::int64_t{parts_ / 4};
    std::optional<Value> all;
    for (std::uint32_t i = 0; i < left / 4; ++i) {
      const Vector v = s_.load(memory, first + std::int64_t{i});
      for (Word q = 0; q < 4; ++q) all = all ? reduction(*all, lane(v, q)) : lane(v, q);
    }
    return *all;
  }

  Kernel& s_;
  const std::vector<std::uint32_t>& nodes_;
  const std::uint32_t parts_;
  Value row_, part_, exists_, own_, size_, begin_;
  Known known_;
  std::vector<Kept> kept_;
  const Shape rows_;
  ValueId reduced_ = no_value;
  std::map<Kind, Shared> shared_;
};

}  // namespace

bool reduces_rows(const Graph& graph, const Node& node) {
  if (!is_reduction(node)) return false;
  const tosa::View view(graph, node);
  const TensorType& in = view.in(0);
  return in.shape.is_static() && view.out().shape.is_static() && view.integer("axis") == in.shape.rank() - 1 &&
         in.shape.size(in.shape.rank() - 1) >= shortest && in.dtype != DType::boolean && storage_size(in.dtype) <= 4;
}

std::vector<std::vector<std::uint32_t>> row_chains(const plan::Uses& uses,
                                                   const std::function<bool(std::uint32_t node)>& can,
                                                   std::uint32_t first) {
  if (!reduces_rows(uses.graph, uses.node(first))) return {};
  return Chain(uses, can, first).all();
}

MadeList make_rows(const Work& work, const std::vector<std::uint32_t>& nodes) {
  const Shape& shape = work.graph[work.graph.nodes[nodes.back()].outputs[0]].type.shape;
  const std::int64_t size = shape.size(shape.rank() - 1), rows = shape.elements() / size;
  const std::uint32_t most = rows >= many_rows ? few_parts : most_parts;
  const auto parts = std::bit_floor(static_cast<std::uint32_t>(std::min<std::int64_t>(size, most)));
  Kernel s(work, "rows", Groups{(rows * parts + group_size - 1) / group_size, group_size});
  return Rows(s, nodes, shape, parts).make();
}

}  // namespace tosaic::shaders
