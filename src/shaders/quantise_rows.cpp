// SPDX-License-Identifier: Apache-2.0
#include "shaders/quantise_rows.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <set>

#include "ir/tosa_operators.h"
#include "ops/definitions/extension.h"
#include "shaders/elements.h"
#include "shaders/reduction.h"
#include "shaders/steps.h"

namespace tosaic::shaders {
namespace {

constexpr std::uint32_t most_invocations = 256, subgroup = 8;
constexpr int at_once = 4;
constexpr std::int64_t most_kept = 4;  // quads of a row that an invocation keeps

// What an empty one would give; nullopt: none of those that are computed here.
std::optional<double> empty_reduction(const Node& node) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (node.op == tosa::op::reduce_sum) return 0;
  if (node.attrs.get_or<std::string>("nan_mode", "") == "ignore") return std::nullopt;
  return node.op == tosa::op::reduce_max   ? std::optional(-infinity)
         : node.op == tosa::op::reduce_min ? std::optional(infinity)
                                           : std::nullopt;
}
bool is_reduction(const Node& node) { return empty_reduction(node).has_value(); }

// Rows of whole quads, and one number for each.
struct RowShapes {
  Shape rows, reduced;
  explicit RowShapes(const Shape& shape) : rows(shape) {
    std::vector<Dim> dims = shape.dims();
    dims.back() = 1;
    reduced = Shape(dims);
  }
  std::int64_t size() const { return rows.size(rows.rank() - 1); }
  // A number for each row, in whatever shape.
  bool is_by_row(const Shape& shape) const { return elements_of(shape) == elements_of(reduced); }
};

class Search {
 public:
  Search(const plan::Uses& uses, const Asked& free, const Asked& can, const Shape& rows)
      : uses_(uses), free_(free), can_(can), shapes_(rows) {}

  // Those that make `wanted` and depend on a reduction, from reduction `first` on.
  std::vector<std::uint32_t> nodes(const std::set<ValueId>& wanted, std::uint32_t first) const {
    std::vector<std::uint32_t> found;
    std::set<std::uint32_t> candidates;
    const auto ask = [&](ValueId v) {
      if (v != no_value && uses_.producer[v] >= 0) candidates.insert(static_cast<std::uint32_t>(uses_.producer[v]));
    };
    for (ValueId v : wanted) ask(v);
    while (!candidates.empty()) {
      const std::uint32_t n = *candidates.rbegin();
      candidates.erase(n);
      if (n < first || !takes(n)) continue;
      found.push_back(n);
      for (ValueId v : uses_.node(n).inputs) ask(v);
    }
    std::ranges::reverse(found);
    std::set<ValueId> reduced;  // and what depends on them
    std::erase_if(found, [&](std::uint32_t n) {
      const Node& node = uses_.node(n);
      const bool depends =
          is_reduction(node) || std::ranges::any_of(node.inputs, [&](ValueId v) { return reduced.contains(v); });
      if (depends) reduced.insert(node.outputs[0]);
      return !depends;
    });
    return found;
  }

  bool comes_together(const std::vector<std::uint32_t>& nodes) const {
    return std::ranges::all_of(nodes, [&](std::uint32_t n) { return is_read_behind(uses_.node(n).outputs[0], nodes); });
  }

 private:
  bool is_read_behind(ValueId v, const std::vector<std::uint32_t>& nodes) const {
    return std::ranges::all_of(uses_.users[v], [&](std::uint32_t user) {
      const Node& node = uses_.node(user);
      return user > nodes.back() || std::ranges::binary_search(nodes, user) ||
             (is_view(node) && is_read_behind(node.outputs[0], nodes));
    });
  }

  bool takes(std::uint32_t n) const {
    const Node& node = uses_.node(n);
    if (node.outputs.size() != 1) return false;
    const Shape& made = uses_.type(node.outputs[0]).shape;
    if (is_view(node)) return shapes_.is_by_row(made);
    if (!is_reduction(node)) return (shapes_.is_by_row(made) || (made == shapes_.rows && walks_rows(node))) && can_(n);
    const tosa::View view(uses_.graph, node);
    return free_(n) && made == shapes_.reduced && view.in(0).shape == shapes_.rows && is_float(view.in(0).dtype) &&
           view.integer("axis") == shapes_.rows.rank() - 1;
  }
  // A number for each row is the same for all of its elements.
  bool walks_rows(const Node& node) const {
    return std::ranges::none_of(node.inputs, [&](ValueId v) {
      return v != no_value && !uses_.constant(v) && shapes_.is_by_row(uses_.type(v).shape) &&
             uses_.type(v).shape != shapes_.reduced;
    });
  }

  const plan::Uses& uses_;
  const Asked &free_, &can_;
  const RowShapes shapes_;
};

class RowQuantisation {
 public:
  RowQuantisation(Kernel& s, const std::vector<std::uint32_t>& nodes, const Shape& rows, std::uint32_t parts)
      : s_(s), nodes_(nodes), shapes_(rows), parts_(parts) {
    row_ = s.group();
    part_ = s.local();
    const Value all_rows = s.param(elements_of(shapes_.reduced));
    exists_ = row_ < all_rows;
    own_ = s.select(exists_, row_, s.integer(0));
    const std::int64_t quads = shapes_.size() / 4, own = (quads + parts - 1) / parts;
    quads_ = s.param(quads);
    begin_ = own_ * quads_;
    if (own > most_kept) return;
    kept_.resize(static_cast<std::size_t>(own));
    for (std::size_t i = 0; i < kept_.size(); ++i) {
      const Value at = part_ + static_cast<std::int64_t>(i * parts);
      kept_[i].inside = at < quads_;
      kept_[i].at = begin_ + s.select(kept_[i].inside, at, s.integer(0));
    }
  }

  MadeList make() {
    const plan::Uses& uses = s_.work().uses;
    std::vector<std::uint32_t> left = nodes_;
    while (!left.empty()) {
      reduce(left);
      std::erase_if(left, [&](std::uint32_t n) { return makes_known(n); });
      // What is left now makes elements.
      if (std::ranges::none_of(left, [&](std::uint32_t n) { return is_reduction(s_.graph().nodes[n]); })) break;
    }
    std::vector<ValueId> of_rows;
    for (std::uint32_t n : nodes_) {
      const ValueId v = s_.graph().nodes[n].outputs[0];
      const auto is_outside = [&](std::uint32_t user) { return !std::ranges::binary_search(nodes_, user); };
      if (!uses.visible[v] && std::ranges::none_of(uses.users[v], is_outside)) continue;
      if (const auto known = known_.find(v); known != known_.end())
        s_.when(exists_ & (part_ == 0), [&] { s_.store(s_.output(v), own_, known->second); });
      else
        of_rows.push_back(v);
    }
    for_quads(of_rows, [&](const Kept& k, const std::vector<Quad>& elements) {
      s_.when(exists_ & k.inside, [&] {
        for (std::size_t i = 0; i < of_rows.size(); ++i) s_.store_quad(s_.output(of_rows[i], true), k.at, elements[i]);
      });
    });
    return one(s_);
  }

 private:
  // A quad of the row, with what has been computed of it if it is kept.
  struct Kept {
    Value at, inside;
    std::map<ValueId, Quad> values;
  };

  // All reductions of what can be computed by now go along the row together.
  void reduce(const std::vector<std::uint32_t>& left) {
    std::vector<std::uint32_t> now;
    std::vector<ValueId> reduced;
    for (std::uint32_t n : left) {
      const Node& node = s_.graph().nodes[n];
      if (!is_reduction(node) || known_.contains(node.outputs[0]) || !can_compute(node.inputs[0])) continue;
      now.push_back(n);
      reduced.push_back(node.inputs[0]);
    }
    std::vector<Reduction> reductions;
    std::vector<Variable> sums;
    for (std::uint32_t n : now) {
      reductions.emplace_back(s_.graph().nodes[n]);
      sums.push_back(s_.variable(s_.real(*empty_reduction(s_.graph().nodes[n]))));
    }
    for_quads(reduced, [&](const Kept& k, const std::vector<Quad>& elements) {
      for (std::size_t i = 0; i < now.size(); ++i) {
        Value all = sums[i].get(), of_quad = elements[i][0];
        for (std::size_t q = 1; q < 4; ++q) of_quad = reductions[i](of_quad, elements[i][q]);
        sums[i].set(s_.select(k.inside, reductions[i](all, of_quad), all));
      }
    });
    for (std::size_t i = 0; i < now.size(); ++i) {
      const ValueId v = s_.graph().nodes[now[i]].outputs[0];
      const Value all = combine(reductions[i], sums[i]);
      known_[v] = s_.work().in_half_precision ? all : rounded(all, s_.type(v).dtype);
    }
  }

  // Is it a number of the row that is known, or follows from such? Then it is known now.
  bool makes_known(std::uint32_t n) {
    const ValueId v = s_.graph().nodes[n].outputs[0];
    if (known_.contains(v)) return true;
    const Node& node = s_.graph().nodes[n];
    if (is_reduction(node) || !shapes_.is_by_row(s_.type(v).shape) || !can_compute(v)) return false;
    known_[v] =
        is_view(node) ? known_.at(node.inputs[0]) : evaluate(s_, plan::expression_of(s_.graph(), {n}), own_, known_);
    return true;
  }

  // No reduction stands before it that is not known.
  bool can_compute(ValueId v) const {
    return std::ranges::none_of(nodes_for(v, {}), [&](std::uint32_t n) { return is_reduction(s_.graph().nodes[n]); });
  }
  std::vector<std::uint32_t> nodes_for(ValueId v, const std::map<ValueId, Quad>& further) const {
    std::set<ValueId> wanted{v};
    std::vector<std::uint32_t> needed;
    for (auto n = nodes_.rbegin(); n != nodes_.rend(); ++n) {
      const Node& node = s_.graph().nodes[*n];
      const ValueId made = node.outputs[0];
      if (!wanted.contains(made) || known_.contains(made) || further.contains(made)) continue;
      needed.push_back(*n);
      wanted.insert(node.inputs.begin(), node.inputs.end());
    }
    std::ranges::reverse(needed);
    return needed;
  }

  // Four elements of what has the rows' shape.
  Quad quad_of(ValueId v, Value at, std::map<ValueId, Quad>* values) {
    std::map<ValueId, Quad> known = values ? *values : std::map<ValueId, Quad>{};
    if (const auto found = known.find(v); found != known.end()) return found->second;
    const std::vector<std::uint32_t> needed = nodes_for(v, known);
    Quad made;
    if (needed.empty()) {
      made = load(v, at);
    } else {
      for (std::uint32_t n : needed)
        for (ValueId read : s_.graph().nodes[n].inputs)
          if (is_read_by_place(read) && !known.contains(read)) {
            known[read] = load(read, at);
            if (values) (*values)[read] = known[read];
          }
      for (const auto& [number, value] : known_) known[number] = {value, value, value, value};
      made = evaluate_quad(s_, plan::expression_of(s_.graph(), needed), at << s_.integer(2), known);
    }
    if (values) (*values)[v] = made;
    return made;
  }
  Quad load(ValueId v, Value at) {
    if (!reads_texels(s_.work().tier) || has_quads(s_.type(v).dtype)) return s_.load_quad(s_.input(v, true), at);
    Quad four;
    for (int q = 0; q < 4; ++q) four[static_cast<std::size_t>(q)] = s_.load(s_.input(v), at * 4 + q);
    return four;
  }
  // From outside, by the element's own place.
  bool is_read_by_place(ValueId v) const {
    const Graph& graph = s_.graph();
    return v != no_value && graph[v].type.shape == shapes_.rows && !graph[v].is_constant() &&
           std::ranges::none_of(nodes_, [&](std::uint32_t n) { return graph.nodes[n].outputs[0] == v; });
  }

  // All quads of the row that are this invocation's: several at once, so that their reads wait together.
  void for_quads(const std::vector<ValueId>& wanted,
                 const std::function<void(const Kept& k, const std::vector<Quad>& elements)>& body) {
    if (wanted.empty()) return;
    const auto all_of = [&](Kept& k, bool keeps) {
      std::vector<Quad> elements;
      for (ValueId v : wanted) elements.push_back(quad_of(v, k.at, keeps ? &k.values : nullptr));
      return elements;
    };
    if (!kept_.empty()) {
      s_.repeat(static_cast<int>(kept_.size()), [&](int i) {
        Kept& k = kept_[static_cast<std::size_t>(i)];
        body(k, all_of(k, true));
      });
      return;
    }
    const int count = reads_texels(s_.work().tier) ? 1 : at_once;
    s_.loop(part_, quads_, s_.integer(std::int64_t{parts_} * count), [&](Value first) {
      std::vector<Kept> quads;
      std::vector<std::vector<Quad>> elements;
      s_.repeat(count, [&](int i) {
        const Value at = first + i * std::int64_t{parts_}, inside = at < quads_;
        quads.push_back({begin_ + s_.select(inside, at, s_.integer(0)), inside, {}});
        elements.push_back(all_of(quads.back(), false));
      });
      for (std::size_t i = 0; i < quads.size(); ++i) body(quads[i], elements[i]);
    });
  }

  // What all parts of the row have, for each of them.
  Value combine(const Reduction& reduction, const Variable& sum) {
    if (!shares_memory(s_.work().tier)) {
      Value all = s_.shuffle(sum.get(), s_.integer(0));
      for (std::uint32_t lane = 1; lane < subgroup; ++lane)
        all = reduction(all, s_.shuffle(sum.get(), s_.integer(lane)));
      return all;
    }
    const Value four = s_.integer(4);
    if (memory_)
      s_.barrier();  // until the others have read what was there
    else
      memory_ = s_.shared(Kind::real, most_invocations / 4);
    s_.store(*memory_, part_ / four, part_ % four, sum.get());
    std::uint32_t left = parts_;
    for (; left > 16; left /= 2) {
      s_.barrier();
      s_.when(part_ < std::int64_t{left / 2}, [&] {
        const Value other = (part_ + std::int64_t{left / 2}) % s_.integer(most_invocations);
        sum.set(reduction(sum.get(), s_.load(*memory_, other / four, other % four)));
        s_.store(*memory_, part_ / four, part_ % four, sum.get());
      });
    }
    s_.barrier();
    std::optional<Value> all;
    for (std::uint32_t i = 0; i < left / 4; ++i) {
      const Vector v = s_.load(*memory_, s_.integer(i));
      for (Word q = 0; q < 4; ++q) all = all ? reduction(*all, lane(v, q)) : lane(v, q);
    }
    return *all;
  }

  Kernel& s_;
  const std::vector<std::uint32_t>& nodes_;
  const RowShapes shapes_;
  const std::uint32_t parts_;
  Value row_, part_, exists_, own_, quads_, begin_;
  Known known_;  // numbers of the row
  std::vector<Kept> kept_;
  std::optional<Shared> memory_;
};

}  // namespace

std::vector<std::vector<std::uint32_t>> find_row_quantisation(const plan::Uses& uses, const Asked& free,
                                                              const Asked& can, const Node& product) {
  const Shape& rows = uses.type(product.inputs[0]).shape;
  const std::int32_t last = uses.producer[product.inputs[0]];
  if (last < 0 || rows.rank() == 0 || !rows[rows.rank() - 1].is_number() || rows.size(rows.rank() - 1) % 4 != 0)
    return {};
  std::set<ValueId> wanted{product.inputs[0]};
  if (product.op == extension::op::scaled_product)
    wanted.insert(product.inputs.begin() + extension::scaled_product::scales + 1, product.inputs.end());
  const Search search(uses, free, can, rows);
  std::vector<std::vector<std::uint32_t>> found;
  for (std::uint32_t first = 0;; ++first) {
    std::vector<std::uint32_t> nodes = search.nodes(wanted, first);
    if (nodes.empty() || !std::ranges::binary_search(nodes, static_cast<std::uint32_t>(last))) return found;
    first = nodes.front();
    if (search.comes_together(nodes)) found.push_back(std::move(nodes));
  }
}

MadeList make_row_quantisation(const Work& work, const std::vector<std::uint32_t>& nodes) {
  const Shape& shape = work.graph[work.graph.nodes[nodes.front()].inputs[0]].type.shape;
  const auto quads = static_cast<std::uint32_t>(shape.size(shape.rank() - 1) / 4);
  const std::uint32_t parts =
      shares_memory(work.tier) ? std::clamp(std::bit_floor(quads), 16u, most_invocations) : subgroup;
  Kernel s(work, "codes", Groups{elements_of(RowShapes(shape).reduced), parts});
  s.rounds_reciprocals = true;
  return RowQuantisation(s, nodes, shape, parts).make();
}

}  // namespace tosaic::shaders
