// SPDX-License-Identifier: Apache-2.0
// PyTorch counts in int64, TOSA 1.0 in int32. A node is narrowed where everything that it computes provably fits 32
// bits, or would for all that is known if the program's own inputs do, which is then said. The others keep int64,
// behind explicit conversions, and stay outside the delegates; so do int64 inputs and outputs.
#include <fmt/format.h>
#include <algorithm>
#include <map>
#include <set>

#include "ir/rewriter.h"
#include "ir/tensor.h"
#include "lower/lower.h"
#include "normalise/integer_ranges.h"
#include "normalise/normalise.h"
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
        out_(graph) {
    ranges_.resize(count_);
    narrow_.assign(count_, no_value);
  }

  void run() {
    for (ValueId v = 0; v < count_; ++v) start(v);
    for (ValueId v : g_.inputs)
      if (is_wide(g_, v) && !stays(v)) narrow_input(v);
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
    IntegerInterval& range = ranges_[v];
    if (value.is_constant()) {
      Trial one;
      one.graph.add_value("c", value.type, value.constant);
      range = integer_ranges(one, {})[0];
      return;
    }
    const DType type = value.type.dtype;
    const bool large = type == DType::i64 || type == DType::i32;
    const IntegerRange whole = range_of(large ? DType::i32 : type);
    range = {whole.lowest, whole.highest, large};
  }

  void narrow_input(ValueId v) {
    // Saturated first: an index beyond 32 bits must not become another one that is inside.
    const TensorType type = g_[v].type;
    const ValueId held = g_.add_value(g_[v].name + ".held", type);
    narrow_[v] = g_.add_value(g_[v].name + ".i32", type.with(DType::i32));
    const Attrs bounds{{"min", std::int64_t{INT32_MIN}}, {"max", std::int64_t{INT32_MAX}}};
    out_.add("aten.clamp.default", {v}, bounds, held, nullptr);
    convert(held, narrow_[v], DType::i32, nullptr);
    remember(narrow_[v]);
    auto note =
        warning("model.int64-input", fmt::format("input '{}' is int64 and is computed with as int32", g_[v].name));
    note.severity = Severity::note;
    if (sink_) sink_(std::move(note));
  }

  void take(Node node) {
    const bool counts =
        std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) { return is_count(v); }) ||
        std::any_of(node.outputs.begin(), node.outputs.end(), [&](ValueId v) { return is_wide(g_, v); });
    if (counts && options_.bodies && bodies_may_narrow(node))
      narrow_bodies(node);
    else if (counts)
      !all_stay(node) && narrows(node) ? narrow(node) : keep(node);
    out_.keep(std::move(node));
  }
  bool stays(ValueId v) const { return options_.single_stay && g_[v].type.shape.elements() == 1; }
  bool all_stay(const Node& node) const {
    const auto stay = [&](ValueId v) { return v == no_value || stays(v); };
    return std::all_of(node.inputs.begin(), node.inputs.end(), stay) &&
           std::all_of(node.outputs.begin(), node.outputs.end(), stay);
  }

  // ---- loops and branches as a target takes them: what they are given and give is int32, inside as well
  bool bodies_may_narrow(const Node& node) const {
    return node.op.starts_with("higher_order.") && node.attrs.find("kept") &&
           std::all_of(node.inputs.begin(), node.inputs.end(),
                       [&](ValueId v) { return !is_wide(g_, v) || narrow_[v] != no_value || ranges_[v].fits_i32(); });
  }
  void narrow_bodies(Node& node) {
    const bool loop = node.op == "higher_order.while_loop";
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
      ranges_[v] = {INT32_MIN, INT32_MAX, true};
      doubtful_.emplace_back(g_[v].name, node.loc);
      for (std::size_t b = loop ? 1 : 0; b < node.regions.size(); ++b) gives_i32(node.regions[b], i);
    }
  }
  static void takes_i32(Graph& body, std::size_t input) {
    const ValueId wide = body.inputs[input];
    if (body[wide].type.dtype != DType::i64) return;
    body.inputs[input] = body.add_value(body[wide].name + ".i32", body[wide].type.with(DType::i32));
    body.nodes.insert(body.nodes.begin(),
                      {"aten._to_copy.default", {body.inputs[input]}, {{"dtype", DType::i64}}, {wide}, nullptr, {}});
  }
  static void gives_i32(Graph& body, std::size_t output) {
    const ValueId wide = body.outputs[output];
    body.outputs[output] =
        body.add_value(fmt::format("{}.out{}", body[wide].name, output), body[wide].type.with(DType::i32));
    body.nodes.push_back(
        {"aten._to_copy.default", {wide}, {{"dtype", DType::i32}}, {body.outputs[output]}, nullptr, {}});
  }

  // int64 in the program, whatever it is by now.
  bool is_count(ValueId v) const { return v != no_value && (is_wide(g_, v) || original_.contains(v)); }

  // A conversion between codes and real numbers whose only int64 are its zero points, of a size that codes have: seen
  // at once, where the trial below would convert whole weights.
  bool subtracts_zero_points(const Node& node) const {
    if (!node.op.starts_with("quantized_decomposed.") || node.inputs.size() != 3) return false;
    const ValueId zero_points = node.inputs[2];
    const auto wide = [&](ValueId v) { return v != no_value && v != zero_points && is_count(v); };
    return zero_points != no_value && ranges_[zero_points].lowest >= -65536 && ranges_[zero_points].highest <= 65536 &&
           std::none_of(node.inputs.begin(), node.inputs.end(), wide) &&
           std::none_of(node.outputs.begin(), node.outputs.end(), wide);
  }

  // May the node be computed in 32 bits? Finds the ranges of its results.
  bool narrows(const Node& node) {
    for (ValueId v : node.inputs)
      if (v != no_value && is_wide(g_, v) && narrow_[v] == no_value && !ranges_[v].fits_i32()) return lost(node);
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
    std::vector<IntegerInterval> operands;
    bool assumed = false;
    for (ValueId v : node.inputs) {
      operands.push_back(v == no_value ? IntegerInterval{} : ranges_[v]);
      assumed |= v != no_value && (ranges_[v].assumed || is_float(g_[v].type.dtype));
    }
    const std::vector<IntegerInterval> found = integer_ranges(*trial, operands);
    bool fit = true, certain = false;
    for (ValueId v = 0; v < found.size(); ++v) {
      const Value& value = trial->graph[v];
      if (!is_integer(value.type.dtype)) continue;
      const bool operand = std::count(trial->operands.begin(), trial->operands.end(), v) > 0;
      fit &= operand || found[v].fits_i32();
      certain |=
          found[v].lowest > INT32_MAX || found[v].highest < INT32_MIN || (value.is_constant() && !found[v].fits_i32());
    }
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      if (!is_read(node.outputs[i]) || !is_wide(g_, node.outputs[i])) continue;
      IntegerInterval& range = ranges_[node.outputs[i]];
      range = found[trial->results[i]];
      range.assumed = assumed;
    }
    if (fit) return true;
    if (certain || !assumed) return false;
    for (ValueId v : node.outputs)
      if (is_read(v) && is_wide(g_, v) && !ranges_[v].fits_i32()) {
        ranges_[v] = {INT32_MIN, INT32_MAX, true};
        doubtful_.emplace_back(g_[v].name, node.loc);
      }
    return true;
  }
  bool is_read(ValueId v) const { return v != no_value && used_[v]; }
  bool lost(const Node& node) {
    for (ValueId v : node.outputs)
      if (v != no_value && is_wide(g_, v)) ranges_[v] = {INT64_MIN, INT64_MAX, false};
    return false;
  }

  // The numbers among the arguments that are elements, not sizes or places.
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
      narrow_[v] = g_.add_value(g_[v].name + ".i32", g_[v].type.with(DType::i32));
      convert(v, narrow_[v], DType::i32, loc);
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
    out_.add("aten._to_copy.default", {from}, {{"dtype", dtype}}, to, loc);
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
    auto note = located(
        warning(
            "model.int64-narrowed",
            fmt::format("'{}'{} is int64 and computed in 32 bits inside a delegate: for large inputs it may overflow",
                        name, others)),
        loc);
    note.severity = Severity::note;
    sink_(std::move(note));
  }

  Graph& g_;
  const Sink& sink_;
  std::vector<std::string>* names_;
  const NarrowOptions options_;
  const ValueId count_;  // values before narrowing
  const std::vector<char> used_;
  Rewriter out_;
  std::vector<IntegerInterval> ranges_;
  std::vector<ValueId> narrow_;  // the int32 form of a value that is int64
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
