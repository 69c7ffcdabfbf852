// SPDX-License-Identifier: Apache-2.0
// Transposes move towards the outputs. One walk keeps, for each value v, a pair (u, p) with v = transpose(u, p);
// the transpose is written only where a reader needs v itself. Transposes that meet compose and mostly vanish.
//
// p maps output dims to input dims: v.shape[i] = u.shape[p[i]].
#include <algorithm>
#include <map>
#include <optional>

#include "ir/rewriter.h"
#include "ir/tensor.h"
#include "ir/tosa_operators.h"
#include "ops/definitions/keeps_order.h"
#include "ops/definitions/tosa_op.h"
#include "tidy/tidy.h"

namespace tosaic {
namespace {

using Perm = std::vector<int>;
using tosa::keeps_order;

Perm identity_perm(int rank) {
  Perm p(static_cast<std::size_t>(rank));
  for (int i = 0; i < rank; ++i) p[static_cast<std::size_t>(i)] = i;
  return p;
}
bool is_identity(const Perm& p) { return std::is_sorted(p.begin(), p.end()); }
// transpose(transpose(x, first), then) == transpose(x, composed)
Perm composed(const Perm& first, const Perm& then) {
  Perm r;
  for (int i : then) r.push_back(first[static_cast<std::size_t>(i)]);
  return r;
}
Perm inverse(const Perm& p) {
  Perm r(p.size());
  for (std::size_t i = 0; i < p.size(); ++i) r[static_cast<std::size_t>(p[i])] = static_cast<int>(i);
  return r;
}
Shape permuted(const Shape& shape, const Perm& p) {
  std::vector<std::int64_t> dims;
  for (int i : p) dims.push_back(shape.size(i));
  return Shape(dims);
}

struct Pending {
  ValueId value;
  Perm perm;
};

class Sinker {
 public:
  explicit Sinker(Graph& graph)
      : g_(graph), before_(transpose_cost(graph)), out_(graph), pending_(graph.values.size()) {
    for (ValueId v = 0; v < g_.values.size(); ++v) pending_[v] = {v, identity_perm(g_[v].type.rank())};
  }

  bool run() {
    out_.each([&](Node& node) { visit(std::move(node)); });
    for (ValueId& v : g_.outputs) {
      ValueId made = materialised(v);
      if (made != v) g_[made].name = std::exchange(g_[v].name, g_[v].name + ".sunk");
      v = made;
    }
    drop_dead(g_);
    return transpose_cost(g_) != before_;
  }

 private:
  static std::size_t transpose_cost(const Graph& g) {
    std::size_t cost = 0;
    for (const Node& n : g.nodes)
      if (n.op == tosa::op::transpose) cost += static_cast<std::size_t>(g[n.outputs[0]].type.shape.elements()) + 1;
    return cost;
  }

  // v as the layout q of a reader: w with v = transpose(w, q).
  ValueId in_layout(ValueId v, const Perm& q) {
    const Pending& p = pending_[v];
    if (p.perm == q) return p.value;
    return transposed(p.value, composed(p.perm, inverse(q)));
  }
  ValueId materialised(ValueId v) { return in_layout(v, identity_perm(g_[v].type.rank())); }

  ValueId transposed(ValueId u, const Perm& perm) {
    if (is_identity(perm)) return u;
    auto [it, fresh] = made_.try_emplace({u, perm}, no_value);
    if (!fresh) return it->second;
    TensorType type = g_[u].type.with(permuted(g_[u].type.shape, perm));
    if (type.scales && !type.scales->per_tensor()) type.scales.reset();
    ValueId out = it->second = g_.add_value(g_[u].name + ".t" + std::to_string(g_.values.size()), type);
    pending_.push_back({out, identity_perm(type.rank())});
    if (keeps_order(g_[u].type.shape, perm))
      out_.add(tosa::op::reshape, {u, shape_value(type.shape.sizes())}, {}, out, loc_);
    else
      out_.add(tosa::op::transpose, {u}, {{"perms", std::vector<std::int64_t>(perm.begin(), perm.end())}}, out, loc_);
    if (g_[u].is_constant()) fold_last();
    return out;
  }

  void fold_last() {
    const Node node = std::move(g_.nodes.back());
    g_.nodes.pop_back();
    Value& value = g_[node.outputs[0]];
    if (auto content = tosa::constant_result(g_, node, *tosa::find(node.op), value.type)) value.constant = *content;
  }

  ValueId shape_value(std::vector<std::int64_t> dims) {
    TensorType type{DType::shape, Shape{static_cast<std::int64_t>(dims.size())}, {}};
    ValueId v = g_.add_value("shape.t" + std::to_string(g_.values.size()), type, Bytes::of(std::move(dims)));
    pending_.push_back({v, identity_perm(1)});
    return v;
  }

  // The node runs on permuted operands; its output stands transposed by q.
  void emit_permuted(Node node, const Perm& q) {
    ValueId old = node.outputs[0];
    TensorType type = g_[old].type;
    type.shape = permuted(type.shape, inverse(q));
    if (type.scales && !type.scales->per_tensor()) type.scales.reset();
    ValueId out = is_identity(q) ? old : g_.add_value(g_[old].name + ".p" + std::to_string(g_.values.size()), type);
    if (out != old) pending_.push_back({out, identity_perm(type.rank())});
    node.outputs[0] = out;
    pending_[old] = {out, q};
    out_.keep(std::move(node));
  }

  void visit(Node node) {
    loc_ = node.loc;
    const tosa::Op* op = tosa::find(node.op);
    if (node.op == tosa::op::transpose) {
      const Pending& p = pending_[node.inputs[0]];
      const auto& perms = node.attrs.get<std::vector<std::int64_t>>("perms");
      pending_[node.outputs[0]] = {p.value, composed(p.perm, Perm(perms.begin(), perms.end()))};
      return;
    }
    if (op && op->elementwise && node.outputs.size() == 1 && elementwise(node, *op)) return;
    if (along_axis(node) || per_dim(node) || reshaped(node)) return;
    for (ValueId& v : node.inputs)
      if (v != no_value) v = materialised(v);
    out_.keep(std::move(node));
  }

  // Operands of one rank under a common layout: the one that needs the fewest elements moved.
  Perm best_layout(const std::vector<ValueId>& operands) {
    Perm best = identity_perm(g_[operands[0]].type.rank());
    std::int64_t best_cost = INT64_MAX;
    auto cost_of = [&](const Perm& q) {
      std::int64_t cost = 0;
      for (ValueId v : operands)
        if (!g_[v].is_constant() && pending_[v].perm != q &&
            !keeps_order(g_[pending_[v].value].type.shape, composed(pending_[v].perm, inverse(q))))
          cost += g_[v].type.shape.elements();
      return cost;
    };
    std::vector<Perm> candidates;
    for (ValueId v : operands)
      if (!g_[v].is_constant()) candidates.push_back(pending_[v].perm);
    candidates.push_back(best);
    for (const Perm& q : candidates)
      if (auto cost = cost_of(q); cost < best_cost) {
        best_cost = cost;
        best = q;
      }
    return best;
  }

  bool elementwise(Node& node, const tosa::Op& op) {
    // The floating-point profile converts to integers, and moves none.
    if (node.op == tosa::op::cast && is_float(g_[node.inputs[0]].type.dtype) &&
        !is_float(g_[node.outputs[0]].type.dtype))
      return false;
    std::vector<std::size_t> operands_at;
    for (std::size_t i = 0; i < op.inputs.size() && i < node.inputs.size(); ++i)
      if (!op.inputs[i].constant) operands_at.push_back(i);
    std::vector<ValueId> operands;
    for (auto i : operands_at) operands.push_back(node.inputs[i]);
    const int rank = g_[node.outputs[0]].type.rank();
    for (ValueId v : operands)
      if (g_[v].type.rank() != rank) return false;
    Perm q = best_layout(operands);
    // Scales along the last dim need it to stay last.
    if (node.attrs.get_or("per_channel", false) && !q.empty() && q.back() != rank - 1) return false;
    for (auto i : operands_at) node.inputs[i] = in_layout(node.inputs[i], q);
    emit_permuted(std::move(node), q);
    return true;
  }

  // Operators with an axis attribute that keep the rank.
  bool along_axis(Node& node) {
    if (!node.attrs.find("axis") || node.outputs.size() != 1) return false;
    if (g_[node.outputs[0]].type.rank() != g_[node.inputs[0]].type.rank()) return false;
    Perm q = best_layout(node.inputs);
    for (ValueId& v : node.inputs) v = in_layout(v, q);
    auto axis = node.attrs.get<std::int64_t>("axis");
    node.attrs.set("axis", static_cast<std::int64_t>(q[static_cast<std::size_t>(axis)]));
    emit_permuted(std::move(node), q);
    return true;
  }

  // What moves elements with one number (or pair) per dim in its shape operands: SLICE, TILE, PAD.
  bool per_dim(Node& node) {
    const tosa::Op* op = tosa::find(node.op);
    if (!op || op->moves < tosa::Moves::some || node.op == tosa::op::reshape) return false;
    std::vector<std::size_t> shapes;
    for (std::size_t i = 0; i < op->inputs.size(); ++i)
      if (op->inputs[i].type == "shape") shapes.push_back(i);
    if (shapes.empty()) return false;
    const Pending p = pending_[node.inputs[0]];
    if (is_identity(p.perm)) return false;
    for (std::size_t i : shapes)
      if (!g_[node.inputs[i]].is_constant()) return false;
    for (std::size_t i : shapes) {
      auto given = g_[node.inputs[i]].constant.as<std::int64_t>();
      const std::size_t width = given.size() / p.perm.size();
      std::vector<std::int64_t> moved(given.size());
      for (std::size_t d = 0; d < p.perm.size(); ++d)
        for (std::size_t k = 0; k < width; ++k)
          moved[static_cast<std::size_t>(p.perm[d]) * width + k] = given[d * width + k];
      node.inputs[i] = shape_value(std::move(moved));
    }
    node.inputs[0] = p.value;
    emit_permuted(std::move(node), p.perm);
    return true;
  }

  // Dims of the operand and of the result with as many elements.
  struct Group {
    int first_in, in_count, first_out, out_count;
  };
  // Dims of size 1 in front stay there: compilers of NPUs know commands for them.
  static int leading_ones(const Shape& to) {
    const auto& sizes = to.sizes();
    return static_cast<int>(std::find_if(sizes.begin(), sizes.end(), [](auto d) { return d != 1; }) - sizes.begin());
  }
  // The operand's dims that are not 1, and those of the result from `ones` on, group by group; none where they do not
  // fall into groups.
  static std::optional<std::vector<Group>> groups_of(const std::vector<std::int64_t>& from, const Shape& to, int ones) {
    const auto in_rank = static_cast<int>(from.size());
    std::vector<Group> groups;
    int i = 0, j = ones;
    while (i < in_rank || j < to.rank()) {
      Group group{i, 0, j, 0};
      std::int64_t a = 1, b = 1;
      auto take_in = [&] {
        a *= from[static_cast<std::size_t>(i++)];
        ++group.in_count;
      };
      auto take_out = [&] {
        b *= to.size(j++);
        ++group.out_count;
      };
      if (i < in_rank) take_in();
      if (j < to.rank()) take_out();
      while (a != b || group.in_count == 0 || group.out_count == 0) {
        if ((a < b || group.in_count == 0) && i < in_rank)
          take_in();
        else if ((b < a || group.out_count == 0) && j < to.rank())
          take_out();
        else
          break;
      }
      if (a != b) return std::nullopt;
      if (group.in_count == 0 || group.out_count == 0) {  // trailing dims of size 1 join the last group
        if (groups.empty()) return std::nullopt;
        groups.back().in_count += group.in_count;
        groups.back().out_count += group.out_count;
        continue;
      }
      groups.push_back(group);
    }
    return groups;
  }

  // A reshape of a transposed tensor: free when the transpose keeps the order of dims larger than 1; it also
  // passes when the reshape only merges or splits dims that lie together, in the same order, before it.
  bool reshaped(Node& node) {
    if (node.op != tosa::op::reshape) return false;
    const Pending p = pending_[node.inputs[0]];
    if (is_identity(p.perm)) return false;
    if (keeps_order(g_[p.value].type.shape, p.perm)) {
      node.inputs[0] = p.value;
      out_.keep(std::move(node));
      return true;
    }
    const Shape to = g_[node.outputs[0]].type.shape;
    // Dims of size 1 stand nowhere in particular: v's others, and where each is among u's others.
    std::vector<std::int64_t> from;
    std::vector<int> position;
    for (int d : p.perm)
      if (const Shape& u = g_[p.value].type.shape; u[d] != 1) {
        from.push_back(u.size(d));
        position.push_back(static_cast<int>(
            std::count_if(u.sizes().begin(), u.sizes().begin() + d, [](auto size) { return size != 1; })));
      }
    const auto ones = leading_ones(to);
    const std::optional<std::vector<Group>> groups = groups_of(from, to, ones);
    if (!groups) return false;
    // Inside u, the dims of each group must be neighbours in the same order.
    for (const Group& group : *groups)
      for (int d = 1; d < group.in_count; ++d) {
        auto at = static_cast<std::size_t>(group.first_in + d);
        if (position[at] != position[at - 1] + 1) return false;
      }
    std::vector<const Group*> by_position;
    for (const Group& group : *groups) by_position.push_back(&group);
    std::sort(by_position.begin(), by_position.end(), [&](const Group* a, const Group* b) {
      return position[static_cast<std::size_t>(a->first_in)] < position[static_cast<std::size_t>(b->first_in)];
    });
    std::vector<std::int64_t> dims(static_cast<std::size_t>(ones), 1);
    Perm q = identity_perm(to.rank());
    for (const Group* group : by_position)
      for (int d = 0; d < group->out_count; ++d) {
        q[static_cast<std::size_t>(group->first_out + d)] = static_cast<int>(dims.size());
        dims.push_back(to.size(group->first_out + d));
      }
    node.inputs = {p.value, shape_value(dims)};
    emit_permuted(std::move(node), q);
    return true;
  }

  Graph& g_;
  const std::size_t before_;
  Rewriter out_;
  std::vector<Pending> pending_;
  std::map<std::pair<ValueId, Perm>, ValueId> made_;
  LocRef loc_;
};

}  // namespace

bool sink_transposes(Graph& graph) {
  for (const Node& node : graph.nodes)
    if (node.op == tosa::op::transpose) return Sinker(graph).run();
  return false;
}

}  // namespace tosaic
