// SPDX-License-Identifier: Apache-2.0
// PyTorch counts in int64, TOSA 1.0 in int32. A node is narrowed where everything that it computes provably fits 32
// bits, or where nothing shows that an operand was saturated to them (saturation_safe.h). The others keep int64, behind
// explicit conversions, and stay outside the delegates; so do int64 inputs and outputs. Where nothing can stay outside,
// a node is narrowed if its results fit as long as the program's inputs do, which is then said.
#include <fmt/format.h>
#include <algorithm>
#include <map>
#include <set>

#include "ir/aten_operators.h"
#include "ir/marks.h"
#include "ir/program_operators.h"
#include "ir/rewriter.h"
#include "ir/tensor.h"
#include "lower/lower.h"
#include "normalise/integer_bounds.h"
#include "normalise/normalise.h"
#include "normalise/saturation_safe.h"
#include "ops/trial.h"

namespace tosaic {
namespace {

bool is_wide(const Graph& graph, ValueId v) { return v != no_value && graph[v].type.dtype == DType::i64; }
bool fits_i32(std::int64_t v) { return v >= INT32_MIN && v <= INT32_MAX; }

class Narrowing {
 public:
  Narrowing(Graph& graph, const Sink& sink, std::vector<std::string>* names, const NarrowOptions& options)
      : g_(graph),
        sink_(sink),
        names_(names),
        options_(options),
        count_(static_cast<ValueId>(graph.values.size())),
        used_(used_values(graph)),
        safe_(saturation_safe(graph)),
        out_(graph) {
    ranges_.resize(count_);
    narrow_.assign(count_, no_value);
  }

  void run() {
    for (ValueId v = 0; v < count_; ++v) start(v);
    for (ValueId v : g_.inputs)
      if (options_.all_inside && is_wide(g_, v) && !stays(v)) narrow_input(v);
    out_.each([&](Node& node) { take(std::move(node)); });
    for (ValueId& v : g_.outputs)
      if (v < count_ && original_.contains(v)) {
        ValueId wide = g_.add_value(g_[v].name + ".i64", g_[v].type.with(DType::i64));
        convert(v, wide, DType::i64, nullptr);
        v = wide;
      }
    say_doubtful();
  }

 private:
  // What is known of a value before the program runs.
  void start(ValueId v) {
    const Value& value = g_[v];
    if (!is_integer(value.type.dtype) && value.type.dtype != DType::boolean) return;
    if (value.is_constant()) {
      ranges_[v] = integer_bounds(value);
      return;
    }
    const DType type = value.type.dtype;
    if (type == DType::i64 && !options_.all_inside) return;  // anything
    const bool large = type == DType::i64 || type == DType::i32;
    ranges_[v] = {tosa::bounds_of(large ? DType::i32 : type), large};
  }

  void narrow_input(ValueId v) {
    narrow_[v] = g_.add_value(g_[v].name + ".i32", g_[v].type.with(DType::i32));
    saturate(v, narrow_[v], nullptr);
    remember(narrow_[v]);
    if (sink_ && !safe_[v])
      sink_(warning("model.int64-input",
                    fmt::format("input '{}' is int64 and is computed with as int32: values beyond 32 bits saturate",
                                g_[v].name)));
  }
  // Not wrapped: an index beyond 32 bits must not become another one that is inside.
  void saturate(ValueId wide, ValueId narrow, const LocRef& loc) {
    const ValueId held = g_.add_value(g_[wide].name + ".held", g_[wide].type);
    const Attrs bounds{{"min", std::int64_t{INT32_MIN}}, {"max", std::int64_t{INT32_MAX}}};
    out_.add(aten::op::clamp, {wide}, bounds, held, loc);
    convert(held, narrow, DType::i32, loc);
  }

  void take(Node node) {
    const bool counts =
        std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) { return is_count(v); }) ||
        std::any_of(node.outputs.begin(), node.outputs.end(), [&](ValueId v) { return is_wide(g_, v); });
    if (counts && options_.bodies && bodies_may_narrow(node))
      narrow_bodies(node);
    else if (counts)
      !all_stay(node) && narrows(node) ? narrow(node) : keep(node);
    else
      learn(node);
    out_.keep(std::move(node));
  }
  bool is_plain_i32(ValueId v) const { return is_read(v) && g_[v].type.dtype == DType::i32 && !g_[v].type.quantised(); }
  // int32 of which more is known than that: what is counted of it may fit, too.
  void learn(const Node& node) {
    if (std::none_of(node.outputs.begin(), node.outputs.end(), [&](ValueId v) { return is_plain_i32(v); })) return;
    const auto trial = try_node(g_, node, {.fold = true});
    if (!trial.ok() || trial->results.size() < node.outputs.size()) return;
    std::vector<IntegerBounds> operands;
    for (ValueId v : node.inputs) operands.push_back(v == no_value ? IntegerBounds{} : ranges_[v]);
    learn(node, *trial, integer_bounds(*trial, operands));
  }
  void learn(const Node& node, const Trial& trial, const std::vector<IntegerBounds>& found) {
    for (ValueId v = 0; v < found.size(); ++v)
      if (is_integer(trial.graph[v].type.dtype) && !found[v].fits_i32()) return;  // it may wrap
    for (std::size_t i = 0; i < node.outputs.size(); ++i)
      if (is_plain_i32(node.outputs[i])) ranges_[node.outputs[i]] = found[trial.results[i]];
  }
  bool stays(ValueId v) const { return options_.single_stay && g_[v].type.shape.elements() == 1; }
  bool all_stay(const Node& node) const {
    const auto stay = [&](ValueId v) { return v == no_value || stays(v); };
    return std::all_of(node.inputs.begin(), node.inputs.end(), stay) &&
           std::all_of(node.outputs.begin(), node.outputs.end(), stay);
  }

  // ---- loops and branches as a target takes them: what they are given and give is int32, inside as well
  bool bodies_may_narrow(const Node& node) const {
    return node.op.is_control_flow() && has_mark(node, mark::kept) &&
           std::all_of(node.inputs.begin(), node.inputs.end(),
                       [&](ValueId v) { return !is_wide(g_, v) || narrow_[v] != no_value || ranges_[v].fits_i32(); });
  }
  void narrow_bodies(Node& node) {
    const bool loop = node.op == higher_order::op::while_loop;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (!is_count(node.inputs[i])) continue;
      if (is_wide(g_, node.inputs[i])) node.inputs[i] = narrowed_operand(node.inputs[i], node.loc);
      for (Graph& body : node.regions) takes_i32(body, i - (loop ? 0 : 1));
    }
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      const ValueId v = node.outputs[i];
      if (!is_wide(g_, v)) continue;
      g_[v].type.dtype = DType::i32;
      remember(v);
      ranges_[v] = {int32_, true};
      doubtful_.emplace_back(g_[v].name, node.loc);
      for (std::size_t b = loop ? 1 : 0; b < node.regions.size(); ++b) gives_i32(node.regions[b], i);
    }
  }
  static void takes_i32(Graph& body, std::size_t input) {
    const ValueId wide = body.inputs[input];
    if (body[wide].type.dtype != DType::i64) return;
    body.inputs[input] = body.add_value(body[wide].name + ".i32", body[wide].type.with(DType::i32));
    body.nodes.insert(body.nodes.begin(),
                      {aten::op::_to_copy, {body.inputs[input]}, {{"dtype", DType::i64}}, {wide}, nullptr, {}});
  }
  static void gives_i32(Graph& body, std::size_t output) {
    const ValueId wide = body.outputs[output];
    body.outputs[output] =
        body.add_value(fmt::format("{}.out{}", body[wide].name, output), body[wide].type.with(DType::i32));
    body.nodes.push_back({aten::op::_to_copy, {wide}, {{"dtype", DType::i32}}, {body.outputs[output]}, nullptr, {}});
  }

  // int64 in the program, whatever it is by now.
  bool is_count(ValueId v) const { return v != no_value && (is_wide(g_, v) || original_.contains(v)); }

  // A conversion between quantised values and real numbers whose only int64 are its zero points, of a size that
  // quantised values have: seen at once, where the trial below would convert whole weights.
  bool subtracts_zero_points(const Node& node) const {
    if (!node.op.is_conversion() || node.inputs.size() != 3) return false;
    const ValueId zero_points = node.inputs[2];
    const auto wide = [&](ValueId v) { return v != no_value && v != zero_points && is_count(v); };
    return zero_points != no_value && ranges_[zero_points].lowest >= -65536 && ranges_[zero_points].highest <= 65536 &&
           std::none_of(node.inputs.begin(), node.inputs.end(), wide) &&
           std::none_of(node.outputs.begin(), node.outputs.end(), wide);
  }

  // May the node be computed in 32 bits? Finds the ranges of its results.
  bool narrows(const Node& node) {
    for (ValueId v : node.inputs)
      if (v != no_value && is_unbounded(v) && (options_.all_inside || g_[v].is_constant())) return lost(node);
    if (!scalars_fit(node)) return lost(node);
    if (subtracts_zero_points(node)) return true;
    const auto trial =
        try_node(g_, node, {.fold = true, .operand = [&](std::size_t i, TensorType& type, Bytes& elements) {
                              if (!original_.contains(node.inputs[i])) return;  // as the program has it
                              if (!elements.null()) elements = converted({type, elements.data()}, DType::i64);
                              type.dtype = DType::i64;
                            }});
    // Nobody computes it but a kernel outside, in PyTorch's types.
    if (!trial.ok()) return lost(node);
    for (std::size_t i = trial->results.size(); i < node.outputs.size(); ++i)
      if (is_read(node.outputs[i])) return lost(node);
    std::vector<IntegerBounds> operands;
    bool assumed = false;
    for (ValueId v : node.inputs) {
      operands.push_back(v == no_value ? IntegerBounds{} : is_unbounded(v) ? IntegerBounds{int32_} : ranges_[v]);
      assumed |= v != no_value && (ranges_[v].assumed || is_float(g_[v].type.dtype));
    }
    const std::vector<IntegerBounds> found = integer_bounds(*trial, operands);
    std::vector<char> saturated(found.size(), 0);
    if (!options_.all_inside && !may_saturate(node, *trial, saturated)) return lost(node);
    bool fit = true, certain = false;
    for (ValueId v = 0; v < found.size(); ++v) {
      const Value& value = trial->graph[v];
      if (!is_integer(value.type.dtype) || saturated[v]) continue;
      const bool operand = std::count(trial->operands.begin(), trial->operands.end(), v) > 0;
      fit &= operand || found[v].fits_i32();
      certain |=
          found[v].lowest > INT32_MAX || found[v].highest < INT32_MIN || (value.is_constant() && !found[v].fits_i32());
    }
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      if (!is_read(node.outputs[i]) || !is_wide(g_, node.outputs[i])) continue;
      const ValueId result = trial->results[i];
      ranges_[node.outputs[i]] = {saturated[result] ? int32_ : found[result], assumed};
      if (fit && saturated[result]) saturated_.insert(node.outputs[i]);
    }
    if (std::none_of(saturated.begin(), saturated.end(), [](char one) { return one != 0; })) learn(node, *trial, found);
    if (fit) return true;
    if (certain || !assumed || !options_.all_inside) return unsaturated(node, *trial, saturated);
    for (ValueId v : node.outputs)
      if (is_read(v) && is_wide(g_, v) && !ranges_[v].fits_i32()) {
        ranges_[v] = {int32_, true};
        doubtful_.emplace_back(g_[v].name, node.loc);
      }
    return true;
  }
  bool is_read(ValueId v) const { return v != no_value && used_[v]; }
  // int64 that may be beyond 32 bits, and has not been saturated to them yet.
  bool is_unbounded(ValueId v) const { return is_wide(g_, v) && narrow_[v] == no_value && !ranges_[v].fits_i32(); }

  // May the operands that are beyond 32 bits, or were, be saturated? Marks what is made of them, which needs no range:
  // the nearest int32 of what it should be, or an index outside a table.
  bool may_saturate(const Node& node, const Trial& trial, std::vector<char>& saturated) const {
    mark_rounded(trial, saturated);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId v = node.inputs[i];
      if (v == no_value || (!is_unbounded(v) && !saturated_.contains(v))) continue;
      const Saturated made = saturated_operand(trial, i);
      if (!made.safe) return false;
      for (ValueId t = 0; t < saturated.size(); ++t) saturated[t] |= made.touched[t];
    }
    for (std::size_t i = 0; i < node.outputs.size(); ++i)
      if (const ValueId v = node.outputs[i];
          is_read(v) && saturated[trial.results[i]] && (!is_wide(g_, v) || !safe_[v]))
        return false;
    return true;
  }
  // A float is cast to the nearest int32, elements of which may then be moved.
  static void mark_rounded(const Trial& trial, std::vector<char>& saturated) {
    for (const Node& made : trial.graph.nodes) {
      const tosa::Op* op = tosa::find(made.op);
      const TensorType& type = trial.graph[made.outputs[0]].type;
      if (!op || type.dtype != DType::i64) continue;
      const bool cast = made.op == tosa::op::cast && is_float(trial.graph[made.inputs[0]].type.dtype);
      const bool moved = op->keeps_scales() && saturated[made.inputs[0]];
      saturated[made.outputs[0]] = cast || moved;
    }
  }
  // Stays outside, in 64 bits.
  bool unsaturated(const Node& node, const Trial& trial, const std::vector<char>& saturated) {
    for (std::size_t i = 0; i < node.outputs.size(); ++i)
      if (const ValueId v = node.outputs[i]; is_read(v) && is_wide(g_, v) && saturated[trial.results[i]])
        ranges_[v] = {};
    return false;
  }
  bool lost(const Node& node) {
    for (ValueId v : node.outputs)
      if (v != no_value && is_wide(g_, v)) ranges_[v] = {};
    return false;
  }

  // The numbers among the arguments that are elements, not sizes or indices.
  static bool scalars_fit(const Node& node) {
    const FoundOp found = find_aten(node.op);
    for (const auto& [name, attr] : node.attrs) {
      const auto* number = std::get_if<std::int64_t>(&attr);
      const SchemaArgument* argument = found.op ? found.schema->argument(name) : nullptr;
      if (number && !fits_i32(*number) && (!argument || argument->type.starts_with("Scalar"))) return false;
    }
    return true;
  }

  void narrow(Node& node) {
    for (ValueId& v : node.inputs)
      if (is_wide(g_, v)) v = narrowed_operand(v, node.loc);
    bool results = false;
    for (ValueId v : node.outputs) {
      if (!is_wide(g_, v)) continue;
      g_[v].type.dtype = DType::i32;
      remember(v);
      results = true;
    }
    for (const auto& [name, attr] : Attrs(node.attrs))
      if (const auto* t = std::get_if<DType>(&attr); results && t && *t == DType::i64) node.attrs.set(name, DType::i32);
  }
  ValueId narrowed_operand(ValueId v, const LocRef& loc) {
    if (narrow_[v] != no_value) return narrow_[v];
    if (g_[v].is_constant()) {
      narrow_[v] = g_.add_value(g_[v].name + ".i32", g_[v].type.with(DType::i32),
                                converted({g_[v].type, g_[v].constant.data()}, DType::i32));
    } else {
      const bool bounded = ranges_[v].fits_i32();
      narrow_[v] = g_.add_value(g_[v].name + ".i32", g_[v].type.with(DType::i32));
      if (bounded)
        convert(v, narrow_[v], DType::i32, loc);
      else
        saturate(v, narrow_[v], loc);
      if (!bounded) saturated_.insert(v);
    }
    remember(narrow_[v]);
    return narrow_[v];
  }

  // The node stays as it is: what was narrowed before it becomes int64 again.
  void keep(Node& node) {
    for (ValueId& v : node.inputs) {
      if (v == no_value || v >= count_ || !original_.contains(v)) continue;
      auto [known, fresh] = widened_.try_emplace(v, no_value);
      if (fresh) {
        known->second = g_.add_value(g_[v].name + ".i64", g_[v].type.with(DType::i64));
        convert(v, known->second, DType::i64, node.loc);
      }
      v = known->second;
    }
  }

  void convert(ValueId from, ValueId to, DType dtype, const LocRef& loc) {
    out_.add(aten::op::_to_copy, {from}, {{"dtype", dtype}}, to, loc);
  }
  void remember(ValueId v) {
    original_.insert(v);
    if (names_) names_->push_back(g_[v].name);
  }

  void say_doubtful() const {
    if (doubtful_.empty() || !sink_) return;
    const auto& [name, loc] = doubtful_.front();
    std::string others;
    if (doubtful_.size() > 1) others = fmt::format(" (and {} more)", doubtful_.size() - 1);
    sink_(located(
        warning(
            "model.int64-narrowed",
            fmt::format("'{}'{} is int64 and computed in 32 bits inside a delegate: for large inputs it may overflow",
                        name, others))
            .hint("outside a delegate it is computed in 64 bits, where the whole program need not be one; or bound it "
                  "(x.clamp(-1000, 1000))"),
        loc));
  }

  static constexpr tosa::Bounds int32_{INT32_MIN, INT32_MAX};

  Graph& g_;
  const Sink& sink_;
  std::vector<std::string>* names_;
  const NarrowOptions options_;
  const ValueId count_;  // values before narrowing
  const std::vector<char> used_;
  const std::vector<char> safe_;  // read by nothing that tells it from what is saturated to 32 bits
  Rewriter out_;
  std::vector<IntegerBounds> ranges_;
  std::vector<ValueId> narrow_;  // the int32 form of a value that is int64
  std::set<ValueId> saturated_;  // to 32 bits
  std::set<ValueId> original_;   // int32 values that the program has as int64
  std::map<ValueId, ValueId> widened_;
  std::vector<std::pair<std::string, LocRef>> doubtful_;
};

}  // namespace

Status narrow_integers(Graph& graph, const Sink& sink, std::vector<std::string>* names, const NarrowOptions& options) {
  Narrowing(graph, sink, names, options).run();
  drop_dead(graph);
  return {};
}

}  // namespace tosaic
