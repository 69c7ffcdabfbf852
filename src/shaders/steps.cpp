// SPDX-License-Identifier: Apache-2.0
#include "shaders/steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>

#include "ir/tosa_operators.h"
#include "plan/groups.h"
#include "plan/movement.h"
#include "plan/views.h"
#include "shaders/attention.h"
#include "shaders/compile.h"
#include "shaders/elements.h"
#include "shaders/fused_depthwise.h"
#include "shaders/gated_product.h"
#include "shaders/integer_attention.h"
#include "shaders/kernels.h"
#include "shaders/quantise_rows.h"
#include "shaders/quantised_weights.h"
#include "shaders/rows.h"
#include "shaders/rows_apart.h"
#include "shaders/strided_operand.h"

namespace tosaic::shaders {
namespace {

constexpr std::size_t most_nodes = 24;  // in one group; twice as many where it stores several results

class Planning {
 public:
  explicit Planning(const Work& work)
      : work_(work),
        graph_(work.graph),
        uses_(work.uses),
        taken_(graph_.nodes.size(), false),
        read_(graph_.values.size(), false),
        moved_(graph_.values.size(), false),
        unstored_(graph_.values.size(), false),
        within_(graph_.values.size(), no_value) {
    work_.unstored = &unstored_;
  }

  Result<Steps> plan() {
    const auto count = static_cast<std::uint32_t>(graph_.nodes.size());
    for (std::uint32_t n = 0; n < count; ++n)
      if (const auto violation = refusal(tosa::View(graph_, graph_.nodes[n])))
        return located(error(violation->label, fmt::format("{}: {}", graph_.nodes[n].op, violation->message)),
                       graph_.nodes[n].loc);
    for (std::uint32_t n = 0; n < count; ++n)
      if (is_view(graph_.nodes[n])) take_view(n);
    for (std::uint32_t n = 0; n < count && shares_memory(work_.tier); ++n) take_attention(n);
    for (std::uint32_t n = 0; n < count && tiers_of_int8_matrices.has(work_.tier); ++n) take_integer_attention(n);
    for (std::uint32_t n = 0; n < count; ++n)
      if (multiplies_int8(graph_, graph_.nodes[n])) take_row_quantisation(n);
    for (std::uint32_t n = 0; n < count; ++n)
      if (!taken_[n] && shares_memory(work_.tier)) take_rows(n);
    if (shares_memory(work_.tier)) {
      const std::vector<std::uint32_t> depths = depths_of(graph_);
      for (std::uint32_t n = 0; n < count; ++n)
        if (!taken_[n]) take_rows_apart(n, depths);
    }
    for (std::uint32_t n = 0; n < count; ++n)
      if (!taken_[n]) take_kernel(n);
    take_elementwise();
    take_movements();
    for (std::uint32_t n = 0; n < count; ++n)
      if (!taken_[n]) return located(no_kernel(graph_.nodes[n]), graph_.nodes[n].loc);
    std::sort(steps_.list.begin(), steps_.list.end(),
              [](const Step& a, const Step& b) { return a.nodes.back() < b.nodes.back(); });
    TOSAIC_CHECK(reads_what_is_stored());
    return std::move(steps_);
  }

 private:
  Diagnostic no_kernel(const Node& node) const {
    if (unknown_.empty())
      return error("vulkan.no-kernel", fmt::format("{} needs more parameters than every Vulkan device takes", node.op));
    return error("vulkan.symbolic-size", fmt::format("there is no shader for {} of sizes that change from run to run: "
                                                     "{}",
                                                     node.op, unknown_))
        .hint("choose the sizes: --sizes NAME=SIZE");
  }

  void take_view(std::uint32_t n) {
    taken_[n] = true;
    lay({graph_.nodes[n].outputs[0], graph_.nodes[n].inputs[0], 0});
  }

  void lay(const plan::Alias& alias) {
    within_[alias.alias] = alias.of;
    steps_.aliases.push_back(alias);
  }

  void add(std::vector<std::uint32_t> nodes, MadeList made) {
    Step step;
    for (std::uint32_t n : nodes) taken_[n] = true;
    step.nodes = std::move(nodes);
    for (const Made& m : *made)
      for (const Bound& b : m.bound)
        if (const auto* v = std::get_if<ValueId>(&b.what)) {
          auto& list = b.written ? step.writes : step.reads;
          if (!b.written) read_[*v] = true;
          if (std::ranges::find(list, *v) == list.end()) list.push_back(*v);
        } else if (const auto* scratch = std::get_if<Scratch>(&b.what)) {
          step.scratch_bytes = std::max(step.scratch_bytes, scratch->offset + scratch->bytes);
        }
    step.dispatches = std::move(*made);
    steps_.list.push_back(std::move(step));
  }

  plan::Fusing fusing() {
    return {[this](std::uint32_t n) {
              const tosa::View view(graph_, graph_.nodes[n]);
              return !taken_[n] && has_element_shader(view) && tosa::find(graph_.nodes[n].op)->elementwise;
            },
            most_nodes, true};
  }

  // Those whose results somebody reads: others were looked through.
  void take_movements() {
    std::vector<bool> read = uses_.visible;
    const auto note = [&](const Step& step) {
      for (ValueId v : step.reads) read[v] = true;
    };
    for (const Step& step : steps_.list) note(step);
    for (std::uint32_t n = static_cast<std::uint32_t>(graph_.nodes.size()); n-- > 0;) {
      const Node& node = graph_.nodes[n];
      if (is_view(node) && read[node.outputs[0]]) read[node.inputs[0]] = true;
      if (taken_[n] || !kernel_rows(node).empty()) continue;
      if (!read[node.outputs[0]])
        taken_[n] = plan::symbolic_movement_of(graph_, node).has_value();
      else if (lies_elsewhere(node)) {
        taken_[n] = true;
        for (ValueId v : node.inputs)
          if (v != no_value) read[v] = true;
      } else if (MadeList made = make_movement(work_, node)) {
        add({n}, std::move(made));
        note(steps_.list.back());
      }
    }
  }

  // Is a movement no dispatch, as its result is a part of something, or what it moves is computed where it goes?
  bool lies_elsewhere(const Node& node) {
    const auto is_static = [&](ValueId v) { return v == no_value || graph_[v].type.shape.is_static(); };
    if (uses_.visible[node.outputs[0]] || !is_static(node.outputs[0]) || !std::ranges::all_of(node.inputs, is_static))
      return false;
    const auto movement = plan::movement_of(graph_, node);
    if (!movement || movement->fill != no_value) return false;
    return node.op == tosa::op::concat ? take_parts(node, *movement)
                                       : movement->moves.size() == 1 && take_part(node, movement->moves[0]);
  }

  // A SLICE that is a run of its operand's bytes.
  bool take_part(const Node& node, const plan::Move& move) {
    const ValueId result = node.outputs[0], whole = memory_of(move.from);
    const auto offset = static_cast<std::size_t>(move.read.offset) * storage_size(graph_[result].type.dtype);
    if (!move.is_run() || move.write.offset != 0 || offset % vulkan_program::alignment != 0) return false;
    if (uses_.producer[whole] < 0 || graph_[whole].type.dtype != graph_[result].type.dtype) return false;
    if (!work_.is_stored(whole) || within_[result] != no_value) return false;
    lay({result, move.from, offset});
    return true;
  }

  // What a CONCAT joins is computed where it lies in the result, if nobody else says where any of it lies. Each part
  // but the last is a whole number of quads: none is written beyond its end.
  bool take_parts(const Node& node, const plan::Movement& movement) {
    const ValueId result = node.outputs[0];
    std::vector<plan::Alias> parts;
    for (const plan::Move& move : movement.moves) {
      const ValueId part = memory_of(move.from);
      const auto offset = static_cast<std::size_t>(move.write.offset) * storage_size(graph_[result].type.dtype);
      if (!move.is_dense_part() || offset % vulkan_program::alignment != 0) return false;
      if (uses_.producer[part] < 0 || uses_.visible[part] || !work_.is_stored(part)) return false;
      if (within_[part] != no_value || std::ranges::find(parts, part, &plan::Alias::alias) != parts.end()) return false;
      if (graph_[part].type.dtype != graph_[result].type.dtype) return false;
      parts.push_back({part, result, offset});
    }
    for (const plan::Alias& part : parts) lay(part);
    return true;
  }

  void take_attention(std::uint32_t n) {
    const auto attention = attention_at(uses_, fusing().can, n);
    if (attention)
      finish(attention->nodes, attention->values, true,
             [&](const Finish& end) { return make_attention(work_, *attention, end); });
  }

  void take_integer_attention(std::uint32_t n) {
    const auto attention = integer_attention_at(uses_, fusing().can, n);
    if (attention)
      finish(attention->nodes, attention->values, true,
             [&](const Finish& end) { return make_integer_attention(work_, *attention, end); });
  }

  void take_rows(std::uint32_t n) {
    for (std::vector<std::uint32_t>& chain : row_chains(uses_, fusing().can, n))
      if (MadeList made = make_rows(work_, chain)) return add(std::move(chain), std::move(made));
  }

  void take_row_quantisation(std::uint32_t n) {
    const auto is_free = [&](std::uint32_t m) { return !taken_[m]; };
    for (std::vector<std::uint32_t>& nodes : find_row_quantisation(uses_, is_free, fusing().can, graph_.nodes[n]))
      if (MadeList made = make_row_quantisation(work_, nodes)) return add(std::move(nodes), std::move(made));
  }

  void take_rows_apart(std::uint32_t n, const std::vector<std::uint32_t>& depths) {
    const auto apart = find_rows_apart(uses_, depths, fusing().can, n);
    if (!apart) return;
    const auto made = make_rows_apart(work_, graph_.nodes[n], *apart);
    if (!made) return;
    not_stored(graph_.nodes[n].outputs[0]);
    for (std::uint32_t m : apart->epilogue) not_stored(graph_.nodes[m].outputs[0]);
    for (std::size_t i = 0; i < made->size(); ++i) {
      std::vector<std::uint32_t> nodes{n};
      nodes.insert(nodes.end(), apart->epilogue.begin(), apart->epilogue.end());
      nodes.push_back(apart->rows[i].slice);
      add(std::move(nodes), (*made)[i]);
    }
  }

  void take_kernel(std::uint32_t n) {
    const Node& node = graph_.nodes[n];
    for (const KernelRow& row : kernel_rows(node))
      if (row.tiers.has(work_.tier) && takes(row, node) && take_by(row, n)) return;
  }

  // Nor in its other views.
  void not_stored(ValueId v) {
    unstored_[v] = true;
    for (auto user = uses_.only_user(v); user && is_view(graph_.nodes[*user]); user = uses_.only_user(v))
      unstored_[v = graph_.nodes[*user].outputs[0]] = true;
  }

  // A kernel that asks for a number where the size is none takes the node at numbers alone.
  bool takes(const KernelRow& row, const Node& node) {
    try {
      return !row.takes || row.takes(tosa::View(graph_, node));
    } catch (const UnknownSize& unknown) {
      unknown_ = unknown.what();
      return false;
    }
  }
  bool take_by(const KernelRow& row, std::uint32_t n) {
    try {
      return made_by(row, n);
    } catch (const UnknownSize& unknown) {
      unknown_ = unknown.what();
      return false;
    }
  }

  bool made_by(const KernelRow& row, std::uint32_t n) {
    if (row.before_depthwise && take_with_depthwise(row, n)) return true;
    return finish({n}, n, row.by_strides, [&](const Finish& end) { return row.make(work_, graph_.nodes[n], end); });
  }

  // Does a step so far read the memory, which may be behind nodes that it looked through? Somebody has to store it
  // then.
  bool is_read(ValueId v) const { return is_read_in_some_view(memory_of(v)); }
  ValueId memory_of(ValueId v) const { return plan::skip_views(graph_, uses_.producer, v); }
  bool is_read_in_some_view(ValueId v) const {
    return read_[v] || std::ranges::any_of(uses_.users[v], [&](std::uint32_t u) {
             return is_view(graph_.nodes[u]) && is_read_in_some_view(graph_.nodes[u].outputs[0]);
           });
  }
  // Of what an epilogue leaves inside of the dispatch: all but its last result.
  bool is_read_before_end(ValueId root, const std::vector<std::uint32_t>& epilogue) const {
    return is_read(root) || std::any_of(epilogue.begin(), std::prev(epilogue.end()),
                                        [&](std::uint32_t n) { return is_read(graph_.nodes[n].outputs[0]); });
  }
  // Every step reads what is given, constant or stored by one before it: what nobody stores is memory of something
  // else.
  Status reads_what_is_stored() const {
    const auto root = [&](ValueId v) {
      while (within_[v] != no_value) v = within_[v];
      return v;
    };
    std::vector<bool> stored(graph_.values.size(), false);
    for (const Step& step : steps_.list) {
      for (ValueId v : step.reads)
        if (const ValueId memory = root(v); uses_.producer[memory] >= 0 && !stored[memory])
          return internal_error("a shader reads '" + graph_[v].name + "', which none has stored");
      for (ValueId v : step.writes) stored[root(v)] = true;
    }
    return {};
  }

  // Nodes of which `last` makes the result, by a kernel that `make` makes with as much of what follows as it takes.
  bool finish(const std::vector<std::uint32_t>& nodes, std::uint32_t last, bool by_strides,
              const std::function<MadeList(const Finish&)>& make) {
    const ValueId result = graph_.nodes[last].outputs[0], root = skip_views(uses_, result);
    const auto with = [&](const Finish& end, const std::vector<std::uint32_t>& more) {
      MadeList made = make(end);
      if (!made) return false;
      std::vector<std::uint32_t> all = nodes;
      all.insert(all.end(), more.begin(), more.end());
      std::ranges::sort(all);
      add(std::move(all), std::move(made));
      return true;
    };
    // With a movement of all that it makes, which is the only one that reads it.
    const auto with_movement = [&](const plan::Expression* epilogue, std::vector<std::uint32_t> more) {
      const ValueId made = epilogue ? epilogue->output : result, from = skip_views(uses_, made);
      const auto user = is_read(from) ? std::nullopt : uses_.only_user(from);
      if (!user || (epilogue && depends_on_places(graph_, *epilogue))) return false;
      const auto strided = find_strided_result(graph_, from, graph_[result].type.shape, graph_.nodes[*user]);
      if (!strided) return false;
      more.push_back(*user);
      const Finish end(root, epilogue, Finish::Strides{strided->value, strided->batches, strided->rows});
      if (!with(end, more)) return false;
      not_stored(made);
      return true;
    };
    const bool fused = plan::longest_epilogue(uses_, fusing(), root, [&](const auto& epilogue) {
      if (is_read_before_end(root, epilogue)) return false;
      const plan::Expression expression = plan::expression_of(graph_, epilogue);
      return (by_strides && with_movement(&expression, epilogue)) || with(Finish(root, &expression), epilogue);
    });
    return fused || (by_strides && with_movement(nullptr, {})) || with(Finish(result, nullptr), {});
  }

  // With a depthwise convolution that alone reads it, and what finishes both.
  bool take_with_depthwise(const KernelRow& row, std::uint32_t n) {
    const Node& node = graph_.nodes[n];
    const auto with = [&](ValueId value, const plan::Expression* between, std::vector<std::uint32_t> nodes) {
      const auto user = uses_.only_user(value);
      if (!user || taken_[*user] || graph_.nodes[*user].op != tosa::op::depthwise_conv2d) return false;
      const Node& next = graph_.nodes[*user];
      if (next.inputs[0] != value || !may_fuse_depthwise(tosa::View(graph_, node), tosa::View(graph_, next)))
        return false;
      nodes.push_back(*user);
      const auto ends = [&](ValueId root, const plan::Expression* epilogue, const std::vector<std::uint32_t>& more) {
        const Finish end(root, epilogue);
        MadeList made = row.make(work_, node, Finish(node.outputs[0], between, Finish::Behind{&next, &end}));
        if (!made) return false;
        std::vector<std::uint32_t> all = nodes;
        all.insert(all.end(), more.begin(), more.end());
        std::sort(all.begin(), all.end());
        add(std::move(all), std::move(made));
        return true;
      };
      const ValueId root = skip_views(uses_, next.outputs[0]);
      const bool ended = plan::longest_epilogue(uses_, fusing(), root, [&](const auto& epilogue) {
        if (is_read_before_end(root, epilogue)) return false;
        const plan::Expression expression = plan::expression_of(graph_, epilogue);
        return ends(root, &expression, epilogue);
      });
      return ended || ends(next.outputs[0], nullptr, {});
    };
    if (is_read(node.outputs[0])) return false;
    const bool taken = plan::longest_epilogue(uses_, fusing(), node.outputs[0], [&](const auto& epilogue) {
      if (std::ranges::any_of(epilogue, [&](std::uint32_t m) { return is_read(graph_.nodes[m].outputs[0]); }))
        return false;
      const plan::Expression expression = plan::expression_of(graph_, epilogue);
      std::vector<std::uint32_t> nodes{n};
      nodes.insert(nodes.end(), epilogue.begin(), epilogue.end());
      return with(expression.output, &expression, std::move(nodes));
    });
    return taken || with(node.outputs[0], nullptr, {n});
  }

  // May somebody else see the value or a view of it: the caller, a step so far, or what moves it for such a step?
  bool is_needed(ValueId v) const {
    return uses_.visible[v] || read_[v] || moved_[v] || std::ranges::any_of(uses_.users[v], [&](std::uint32_t u) {
             return is_view(graph_.nodes[u]) && is_needed(graph_.nodes[u].outputs[0]);
           });
  }

  // What is left of them. Those that steps have looked through, and nobody else reads, are not computed.
  void take_elementwise() {
    for (auto n = static_cast<std::uint32_t>(graph_.nodes.size()); n-- > 0;) {
      const Node& node = graph_.nodes[n];
      if (!is_view(node) && (taken_[n] || !kernel_rows(node).empty())) continue;
      const bool elementwise = tosa::find(node.op)->elementwise && !is_view(node);
      const bool needed = std::ranges::any_of(node.outputs, [&](ValueId v) { return is_needed(v); });
      if (elementwise && needed)
        take_elementwise(n);
      else if (elementwise)
        taken_[n] = true;
      else if (needed)
        for (ValueId v : node.inputs) moved_[v] = true;
    }
  }

  // Results but the last one's that are stored as well.
  std::vector<ValueId> needed_inside(const std::vector<std::uint32_t>& nodes) const {
    std::vector<ValueId> needed;
    for (std::uint32_t n : nodes)
      if (const ValueId v = graph_.nodes[n].outputs[0]; n != nodes.back() && is_needed(v)) needed.push_back(v);
    return needed;
  }

  // Are there bindings for all that one dispatch would read and store? Not counted are numbers that fit nowhere else.
  bool may_bind(const std::vector<std::uint32_t>& nodes) const {
    const auto is_bound = [&](ValueId v) {
      return v != no_value && (!uses_.constant(v) || graph_[v].type.shape.elements() != 1);
    };
    const plan::Expression expression = plan::expression_of(graph_, nodes);
    std::size_t count = 1 + needed_inside(nodes).size();
    for (const plan::Expression::Input& input : expression.inputs) count += is_bound(input.value);
    for (const plan::Expression::Call& call : expression.calls) {
      const std::vector<ValueId>& operands = graph_.nodes[call.node].inputs;  // tables, and lists of channels' numbers
      for (std::size_t i = call.operands.size(); i < operands.size(); ++i) count += is_bound(operands[i]);
    }
    return count <= most_buffers;
  }

  // As many as fit into one dispatch.
  void take_elementwise(std::uint32_t n) {
    plan::Fusing how = fusing();
    for (;; how.max_nodes = (how.max_nodes + 1) / 2) {
      std::vector<std::uint32_t> nodes = plan::elementwise_group(uses_, how, n);
      if (take_moved(nodes)) return;
      std::vector<std::uint32_t> more =
          plan::with_shared_results(uses_, {how.can, 2 * how.max_nodes, how.joins}, nodes,
                                    [&](const std::vector<std::uint32_t>& all) { return may_bind(all); });
      if (more.size() > nodes.size() && take_group(std::move(more))) return;
      if (take_group(std::move(nodes)) || how.max_nodes == 1) return;
    }
  }

  bool take_moved(std::vector<std::uint32_t> nodes) {
    const plan::Expression expression = plan::expression_of(graph_, nodes);
    const auto user = uses_.only_user(expression.output);
    if (!user || taken_[*user] || read_[expression.output] || !needed_inside(nodes).empty()) return false;
    MadeList made = make_moved_elementwise(work_, expression, graph_.nodes[*user]);
    if (!made) return false;
    nodes.push_back(*user);
    not_stored(expression.output);
    add(std::move(nodes), std::move(made));
    return true;
  }

  bool take_group(std::vector<std::uint32_t> nodes) {
    const plan::Expression planned = plan::expression_of(graph_, nodes);
    if (shares_memory(work_.tier) && take_with_product(nodes, planned)) return true;
    MadeList made = make_elementwise(work_, planned, needed_inside(nodes));
    if (!made) return false;
    add(std::move(nodes), std::move(made));
    return true;
  }

  // With the product of few rows of which the nodes alone read parts.
  bool take_with_product(const std::vector<std::uint32_t>& nodes, const plan::Expression& planned) {
    plan::Expression expression = before_movements(work_, planned);
    for (plan::Expression::Input& input : expression.inputs) input.value = memory_of(input.value);
    for (const plan::Expression::Input& input : expression.inputs) {
      const auto step = std::ranges::find_if(steps_.list, [&](const Step& s) {
        return s.dispatches.size() == 1 && s.writes.size() == 1 && memory_of(s.writes[0]) == input.value;
      });
      if (step == steps_.list.end() || !is_read_by_these(uses_, input.value, nodes)) continue;
      const auto product =
          std::ranges::find_if(step->nodes, [&](std::uint32_t n) { return graph_.nodes[n].op == tosa::op::conv2d; });
      if (product == step->nodes.end()) continue;
      std::vector<std::uint32_t> epilogue = step->nodes;
      std::erase(epilogue, *product);
      const ValueId result = graph_.nodes[*product].outputs[0];
      const auto end = epilogue.empty() ? std::nullopt : std::optional(plan::expression_of(graph_, epilogue));
      MadeList made = make_gated_product(work_, graph_.nodes[*product],
                                         end ? Finish(skip_views(uses_, result), &*end) : Finish(result, nullptr),
                                         expression, needed_inside(nodes));
      if (!made) continue;
      std::vector<std::uint32_t> all = step->nodes;
      all.insert(all.end(), nodes.begin(), nodes.end());
      std::ranges::sort(all);
      steps_.list.erase(step);
      add(std::move(all), std::move(made));
      return true;
    }
    return false;
  }

  Work work_;
  const Graph& graph_;
  const plan::Uses& uses_;
  std::vector<bool> taken_;
  std::vector<bool> read_;       // values, by the steps so far
  std::vector<bool> moved_;      // values, by what is read itself, as far as take_elementwise() has come
  std::vector<bool> unstored_;   // values, as their elements are stored where they are moved to
  std::vector<ValueId> within_;  // by value: in which other it lies
  std::string unknown_;          // what the last kernel asked for that is no number
  Steps steps_;
};

}  // namespace

ValueId skip_views(const plan::Uses& uses, ValueId v) {
  for (auto user = uses.only_user(v); user && is_view(uses.node(*user)); user = uses.only_user(v))
    v = uses.node(*user).outputs[0];
  return v;
}

Result<Steps> steps_of(const Work& work) { return Planning(work).plan(); }

}  // namespace tosaic::shaders
